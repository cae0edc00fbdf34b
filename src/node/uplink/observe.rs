//! Reads the current state: both links, the bridge's rows, and what only the journal has.

use ipnetwork::IpNetwork;
use ovnkube_host::{Link, Net, SavedAddress, SavedRoute};
use ovnkube_model::Subnet;
use ovnkube_node_plan::uplink::{LinkSnapshot, Observed, UplinkLink, bridge_of};

use super::journal::Journal;
use super::rows::{Made, made};
use crate::ovs::Ovs;
use crate::{Error, Result};

pub(super) type Snapshot = LinkSnapshot<SavedAddress, SavedRoute>;
pub(super) type Now = Observed<SavedAddress, SavedRoute>;

/// A NIC and its bridge.
pub(crate) struct Uplink<'a> {
    pub(super) nic: &'a str,
    /// Ranges of the gateway's own addresses, which are not moved.
    pub(super) masquerade: &'a [Subnet],
    pub(super) here: &'a Net,
    pub(super) ovs: &'a Ovs,
    /// What the journal knows and neither link has counts as lost by the bridge.
    pub(super) restore: bool,
    /// Routes that the bridge should have too.
    pub(super) missing: &'a [SavedRoute],
    /// Routes that stay where they are.
    pub(super) left: &'a [SavedRoute],
}

/// What ovs-vswitchd must do before the move goes on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    Bridge,
    NoBridge,
    Port,
    NoPort,
}

impl Wanted {
    pub(super) fn action(self) -> &'static str {
        match self {
            Self::Bridge => "make its bridge",
            Self::NoBridge => "remove its bridge",
            Self::Port => "take it into its bridge",
            Self::NoPort => "release it",
        }
    }
}

impl<'a> Uplink<'a> {
    pub(crate) fn new(nic: &'a str, masquerade: &'a [Subnet], here: &'a Net, ovs: &'a Ovs) -> Self {
        Self { nic, masquerade, here, ovs, restore: false, missing: &[], left: &[] }
    }

    /// Sets the routes that the bridge should have too, and those that stay where they are.
    pub(crate) fn with(self, missing: &'a [SavedRoute], left: &'a [SavedRoute]) -> Self {
        Self { missing, left, ..self }
    }

    pub(super) fn made(&self) -> Option<Made> {
        self.ovs.read(made).into_iter().find(|made| made.nic == self.nic)
    }

    pub(super) fn journal(&self) -> Option<Journal> {
        self.made()?.journal
    }

    pub(super) async fn link(&self, end: UplinkLink) -> Result<Link> {
        let name = match end {
            UplinkLink::Nic => self.nic.to_owned(),
            UplinkLink::Bridge => bridge_of(self.nic),
        };
        self.here.link(&name).await?.ok_or(Error::LinkGone { name })
    }

    pub(super) async fn is(&self, wanted: Wanted) -> Result<bool> {
        Ok(match wanted {
            Wanted::Bridge => self.here.link(&bridge_of(self.nic)).await?.is_some(),
            Wanted::NoBridge => self.here.link(&bridge_of(self.nic)).await?.is_none(),
            Wanted::Port => self.ovs.port_number(self.nic).is_some(),
            Wanted::NoPort => self.here.link(self.nic).await?.is_none_or(|link| link.master.is_none()),
        })
    }

    pub(super) fn refuse(&self, why: &str) -> Error {
        Error::gateway(self.nic, why)
    }
}

pub(super) struct Seen {
    pub(super) have: Now,
    /// The journal as it would be written now.
    pub(super) journal: Journal,
}

impl Uplink<'_> {
    pub(super) async fn see(&self) -> Result<Seen> {
        let made = self.made();
        let name = bridge_of(self.nic);
        let (link, bridge) = (self.here.link(self.nic).await?, self.here.link(&name).await?);
        let (mut nic, mut held) = (self.held(link.as_ref()).await?, self.held(bridge.as_ref()).await?);
        // a link goes down before it loses what it holds: if it is up afterwards, what was read is complete
        let after = self.here.link(&name).await?;
        let index = bridge.as_ref().map(|link| link.index);
        let up = after.is_some_and(|after| after.up && Some(after.index) == index);
        if let Some(held) = &mut held {
            held.up = up;
        }
        let journal = made.as_ref().and_then(|made| made.journal.as_ref());
        let mut lost = journal.map_or_else(nothing, |journal| journal.lost(index.filter(|_| !self.restore), up));
        lost.routes.extend_from_slice(self.missing);
        lost.routes.retain(|route| !self.left.contains(route));
        for kept in [&nic, &held].into_iter().flatten() {
            lost.addresses.retain(|one| !kept.addresses.iter().any(|have| have.address() == one.address()));
            lost.routes.retain(|one| !kept.routes.contains(one));
        }
        let written = journal.map(Journal::networks).unwrap_or_default();
        self.keep_usable(&mut lost, &[&nic, &held], &written).await?;
        let all = all(&[held.as_ref(), nic.as_ref(), Some(&lost)]);
        let mut now = Journal::of(index.unwrap_or(0), &all, &[], journal);
        now.down = !lost.addresses.is_empty() || !lost.routes.is_empty();
        if let Some(held) = &mut nic {
            held.routes.retain(|route| !self.left.contains(route));
        }
        let have = Now {
            nic,
            row: made.is_some(),
            port: made.as_ref().is_some_and(|made| made.port),
            taken: self.is(Wanted::Port).await?,
            caught: link.is_some_and(|link| link.master.is_some()),
            unwritten: journal.is_none_or(|journal| !journal.agrees(&now)),
            bridge: held,
            lost,
        };
        Ok(Seen { have, journal: now })
    }

    /// Drops routes that the kernel would refuse: those whose source address the host no longer has, and those through
    /// the network of an address that was `written` to the journal and is gone.
    async fn keep_usable(&self, lost: &mut Snapshot, kept: &[&Option<Snapshot>], written: &[IpNetwork]) -> Result<()> {
        if lost.routes.is_empty() {
            return Ok(());
        }
        let held = kept.iter().filter_map(|held| held.as_ref()).chain([&*lost]);
        let held: Vec<_> = held.flat_map(|held| &held.addresses).map(SavedAddress::address).collect();
        let others = self.here.all_addresses(self.nic).await?;
        let has = |ip| held.iter().chain(&others).any(|have| have.ip() == ip);
        let is_cut = |ip| !held.iter().any(|net| net.contains(ip)) && written.iter().any(|net| net.contains(ip));
        let is_usable =
            |route: &SavedRoute| route.source().is_none_or(has) && !route.addresses().into_iter().any(is_cut);
        lost.routes.retain(is_usable);
        Ok(())
    }

    /// The link's addresses and routes, without those of the gateway itself.
    pub(super) async fn held(&self, link: Option<&Link>) -> Result<Option<Snapshot>> {
        let Some(link) = link else { return Ok(None) };
        let ours = |ip| self.masquerade.iter().any(|range| range.contains(ip));
        let mut addresses = self.here.held_addresses(link).await?;
        addresses.retain(|held| !ours(held.address().ip()));
        let mut routes = self.here.held_routes(link).await?;
        routes.retain(|route| !route.addresses().into_iter().any(ours));
        Ok(Some(LinkSnapshot { up: link.up, addresses, routes }))
    }
}

pub(super) fn nothing() -> Snapshot {
    LinkSnapshot { up: true, addresses: Vec::new(), routes: Vec::new() }
}

/// Everything that any of them holds, without duplicates.
fn all(of: &[Option<&Snapshot>]) -> Snapshot {
    let mut all = nothing();
    for held in of.iter().copied().flatten() {
        for address in &held.addresses {
            if !all.addresses.iter().any(|have| have.address() == address.address()) {
                all.addresses.push(address.clone());
            }
        }
        for route in &held.routes {
            if !all.routes.contains(route) {
                all.routes.push(route.clone());
            }
        }
    }
    all
}
