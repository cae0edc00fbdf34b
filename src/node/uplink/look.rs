//! What there is: both links, the bridge's rows, and what the journal knows beyond them.

use ipnetwork::IpNetwork;
use ovnkube_host::{HeldAddress, HeldRoute, Link};

use super::journal::Journal;
use super::plan::Holder;
use super::{Held, Now, Uplink, Wanted, bridge_of};
use crate::Result;

pub(super) struct Seen {
    pub(super) have: Now,
    /// As it would be written now.
    pub(super) journal: Journal,
}

impl Uplink<'_> {
    pub(super) async fn see(&self) -> Result<Seen> {
        let made = self.made();
        let name = bridge_of(self.nic);
        let (link, bridge) = (self.here.link(self.nic).await?, self.here.link(&name).await?);
        let (mut nic, mut held) = (self.held(link.as_ref()).await?, self.held(bridge.as_ref()).await?);
        // a link goes down before it loses what it holds: what was read of one that is up afterwards was whole
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

    /// Without the routes that the kernel would not take: those whose source address the host no longer has, and those
    /// through the network of an address that was `written` down and is no longer there.
    async fn keep_usable(&self, lost: &mut Held, kept: &[&Option<Held>], written: &[IpNetwork]) -> Result<()> {
        if lost.routes.is_empty() {
            return Ok(());
        }
        let held = kept.iter().filter_map(|held| held.as_ref()).chain([&*lost]);
        let held: Vec<_> = held.flat_map(|held| &held.addresses).map(HeldAddress::address).collect();
        let others = self.here.all_addresses(self.nic).await?;
        let has = |ip| held.iter().chain(&others).any(|have| have.ip() == ip);
        let is_cut = |ip| !held.iter().any(|net| net.contains(ip)) && written.iter().any(|net| net.contains(ip));
        let is_usable =
            |route: &HeldRoute| route.source().is_none_or(has) && !route.addresses().into_iter().any(is_cut);
        lost.routes.retain(is_usable);
        Ok(())
    }

    /// Without what the gateway itself put there.
    pub(super) async fn held(&self, link: Option<&Link>) -> Result<Option<Held>> {
        let Some(link) = link else { return Ok(None) };
        let ours = |ip| self.masquerade.iter().any(|range| range.contains(ip));
        let mut addresses = self.here.held_addresses(link).await?;
        addresses.retain(|held| !ours(held.address().ip()));
        let mut routes = self.here.held_routes(link).await?;
        routes.retain(|route| !route.addresses().into_iter().any(ours));
        Ok(Some(Holder { up: link.up, addresses, routes }))
    }
}

pub(super) fn nothing() -> Held {
    Holder { up: true, addresses: Vec::new(), routes: Vec::new() }
}

/// What any of them holds, once.
fn all(of: &[Option<&Held>]) -> Held {
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
