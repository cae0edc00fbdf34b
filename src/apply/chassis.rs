//! Chassis of nodes that are gone: every other host keeps a tunnel to each, so they are removed. Those of nodes that are there
//! get the tunnels' port, see [`encaps`](crate::encaps).
//!
//! ```text
//!  World ──Claim──▶ which chassis whose node is ──┬─ encaps ─▶ one transaction
//!  SB: Chassis, Chassis_Private, Encap ───────────┴─ stale ──▶ one transaction
//! ```
//!
//! ovn-controller makes the rows of its host, and takes them away when it is stopped in good order. What is removed
//! here is what a host left behind that died, was renamed, or is in the cluster no more:
//!
//! - the chassis that a Node was annotated with before it was deleted or annotated with another one;
//! - another chassis with the hostname of a Node: two cannot have one address, so the old one would keep the new one
//!   out. Looked for once for each chassis that a Node is annotated with;
//! - a chassis that says that it is a node's ([`owner::NODE_CHASSIS`]) while there is no Node of its hostname.
//!
//! *Invariant*: a chassis that a Node claims is never removed, nor one that neither a Node nor its own mark ever made
//! a node's: hosts that are not in Kubernetes may share the southbound database.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ovnkube_model::{Name, Touched, World};
use ovnkube_ovn::nb::gateway_chassis;
use ovnkube_ovn::sb::{self, chassis, chassis_private, encap};
use ovnkube_ovn::{Row, owner};
use ovnkube_ovsdb::{Cache, Client, Monitored, Txn};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::Instant;
use tracing::{info, warn};

use crate::turn::{LOCK, TAKE_AFTER, Turn};
use crate::{MayWrite, encaps};

/// A host that is in the cluster no more but still runs ovn-controller makes its chassis anew at once. That is not
/// fought over: it goes for good once the host is off.
const COMES_BACK: Duration = Duration::from_secs(300);
/// Nothing is expected to happen.
const REST: Duration = Duration::from_secs(3600);
/// After a failure, and while writing is not allowed.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// What the engine says about nodes.
enum Claim {
    Node(Name, Option<Name>),
    Gone(Name),
    /// The northbound database has this chassis as this node's.
    Was(Name, Name),
    /// All nodes have been said.
    Complete,
}

/// The engine's end: says which chassis whose node is.
pub struct Claims(UnboundedSender<Claim>);

impl Claims {
    pub(crate) fn tell(&self, touched: &Touched, world: &World) {
        match touched {
            Touched::Node(name) => self.node(name, world),
            Touched::Everything => {
                world.nodes.keys().for_each(|name| self.node(name, world));
                self.send(Claim::Complete);
            }
            _ => {}
        }
    }

    fn node(&self, name: &Name, world: &World) {
        self.send(match world.nodes.get(name) {
            Some(node) => Claim::Node(name.clone(), node.chassis_id.clone()),
            None => Claim::Gone(name.clone()),
        });
    }

    /// What an earlier run wrote: it tells of Nodes that were deleted meanwhile.
    pub(crate) fn found(&self, nb: &Cache) {
        for (_, row) in nb.iter(gateway_chassis::TABLE) {
            let chassis = row.str(gateway_chassis::CHASSIS_NAME);
            let name = row.str(gateway_chassis::NAME).strip_prefix("rtos-");
            let node = name.and_then(|name| name.strip_suffix(chassis)?.strip_suffix('-'));
            if let Some(node) = node {
                self.send(Claim::Was(node.into(), chassis.into()));
            }
        }
    }

    fn send(&self, claim: Claim) {
        // nobody listens while the controller is being stopped
        let _ = self.0.send(claim);
    }
}

/// See the module.
pub struct Chassis {
    sb: Client,
    turn: Turn,
    claims: UnboundedReceiver<Claim>,
    may_write: MayWrite,
    known: Known,
    /// UDP port of the tunnels where it is not the usual one.
    encap_port: Option<u16>,
    /// What was removed a short while ago, and when.
    removed: BTreeMap<Name, Instant>,
}

impl Chassis {
    /// `encap_port`: UDP port of the tunnels; `None`: the usual one.
    pub fn new(sb: Client, may_write: MayWrite, encap_port: Option<u16>) -> (Claims, Self) {
        let (to, claims) = mpsc::unbounded_channel();
        let turn = Turn::new(&sb, may_write.clone(), TAKE_AFTER);
        let (known, removed) = (Known::default(), BTreeMap::new());
        (Claims(to), Self { sb, turn, claims, may_write, known, encap_port, removed })
    }

    /// What has to be monitored of the southbound database.
    pub fn monitored() -> Vec<Monitored> {
        let columns = [chassis::NAME.id(), chassis::HOSTNAME.id(), chassis::OTHER_CONFIG.id()];
        let private = [chassis_private::NAME.id()];
        let encaps = [encap::CHASSIS_NAME.id(), encap::OPTIONS.id()];
        vec![
            Monitored::only(chassis::TABLE, columns),
            Monitored::only(chassis_private::TABLE, private),
            Monitored::only(encap::TABLE, encaps),
        ]
    }

    /// Runs until the engine is gone.
    pub async fn run(mut self) {
        let mut changes = self.sb.subscribe();
        let mut news = Vec::new();
        loop {
            let wake = self.sweep().await.min(self.set_encap_ports().await);
            tokio::select! {
                count = self.claims.recv_many(&mut news, 1024) => {
                    if count == 0 {
                        return;
                    }
                    news.drain(..).for_each(|claim| self.known.take(claim));
                }
                _ = changes.recv() => {}
                () = tokio::time::sleep_until(wake) => {}
            }
        }
    }

    /// When to look again is returned.
    async fn set_encap_ports(&self) -> Instant {
        let now = Instant::now();
        if !self.known.complete || !self.sb.state().borrow().is_live() {
            return now + REST;
        }
        let mut txn = encaps::plan(&self.sb.cache(), self.encap_port, &self.known.chassis());
        if txn.is_empty() {
            return now + REST;
        }
        if !self.turn.is_held() || !(self.may_write)() {
            return now + TRY_AGAIN;
        }
        txn.assert_lock(LOCK);
        if let Err(error) = self.sb.transact(txn).await {
            warn!(%error, "cannot set the UDP port of the tunnels; trying again");
            return now + TRY_AGAIN;
        }
        now + REST
    }

    /// Removes what is stale; when to look again is returned.
    async fn sweep(&mut self) -> Instant {
        let now = Instant::now();
        self.removed.retain(|_, at| *at + COMES_BACK > now);
        let rested = self.removed.values().min().map_or(now + REST, |at| *at + COMES_BACK);
        if !self.known.complete || !self.sb.state().borrow().is_live() {
            return rested;
        }
        let stale = self.known.stale(&self.sb.cache(), |name| self.removed.contains_key(name));
        if !stale.is_empty() {
            if !self.turn.is_held() || !(self.may_write)() {
                return now + TRY_AGAIN;
            }
            let mut txn = remove(&self.sb.cache(), |name| stale.contains_key(name));
            txn.assert_lock(LOCK);
            if let Err(error) = self.sb.transact(txn).await {
                warn!(%error, "cannot remove the chassis of nodes that are gone; trying again");
                return now + TRY_AGAIN;
            }
        }
        self.known.removed(&stale, &self.sb.cache());
        for (name, host) in stale {
            info!(chassis = %name, %host, "removed the chassis of a node that is gone");
            self.removed.insert(name, now);
        }
        rested.min(now + COMES_BACK)
    }
}

/// Nodes and their chassis, as far as they were told.
#[derive(Default)]
struct Known {
    nodes: BTreeMap<Name, Claimed>,
    /// Chassis that were a node's and are not any more.
    former: BTreeSet<Name>,
    complete: bool,
}

#[derive(Default)]
struct Claimed {
    chassis: Option<Name>,
    /// The last one; an annotation may be gone for a while.
    last: Option<Name>,
    /// Other chassis of the node's hostname were looked for.
    looked: bool,
}

impl Known {
    fn take(&mut self, claim: Claim) {
        match claim {
            Claim::Node(name, chassis) => {
                let node = self.nodes.entry(name).or_default();
                if let Some(new) = chassis.as_ref().filter(|new| node.last.as_ref() != Some(new)) {
                    self.former.extend(node.last.replace(new.clone()));
                    node.looked = false;
                }
                node.chassis = chassis;
            }
            Claim::Gone(name) => self.former.extend(self.nodes.remove(&name).and_then(|node| node.last)),
            Claim::Was(name, chassis) => match self.nodes.get_mut(&name) {
                Some(node) if node.last.is_none() => node.last = Some(chassis),
                Some(node) if node.last.as_ref() == Some(&chassis) => {}
                _ => drop(self.former.insert(chassis)),
            },
            Claim::Complete => self.complete = true,
        }
    }

    /// Those that nodes have now.
    fn chassis(&self) -> BTreeSet<&str> {
        self.nodes.values().filter_map(|node| node.chassis.as_deref()).collect()
    }

    /// Chassis that should not be there, and their hosts. Those that rest are left until later.
    fn stale(&self, sb: &Cache, rests: impl Fn(&str) -> bool) -> BTreeMap<Name, Name> {
        let claimed: BTreeSet<&str> = self.nodes.values().filter_map(|node| node.last.as_deref()).collect();
        let there: BTreeSet<&str> = sb.iter(chassis::TABLE).map(|(_, row)| row.str(chassis::NAME)).collect();
        let is_stale = |row: &Row| {
            let (name, host) = (row.str(chassis::NAME), row.str(chassis::HOSTNAME));
            let orphaned = match self.nodes.get(host) {
                Some(node) => !node.looked && node.chassis.is_some(),
                None => is_marked(row) && !rests(name),
            };
            !claimed.contains(name) && (orphaned || self.former.contains(name))
        };
        let rows = sb.iter(chassis::TABLE).filter(|(_, row)| is_stale(row));
        let stale = rows.map(|(_, row)| (row.str(chassis::NAME).into(), row.str(chassis::HOSTNAME).into()));
        // a second row for ovn-controller's own use may have stayed alone
        let private = sb.iter(chassis_private::TABLE).map(|(_, row)| row.str(chassis_private::NAME));
        let alone = private.filter(|name| !there.contains(name) && !claimed.contains(name));
        let alone = alone.filter(|name| self.former.contains(*name)).map(|name| (name.into(), "".into()));
        alone.chain(stale).collect()
    }

    /// These were all that was stale. A host that still runs may have made one anew already.
    fn removed(&mut self, stale: &BTreeMap<Name, Name>, sb: &Cache) {
        let there: BTreeSet<&str> = sb.iter(chassis::TABLE).map(|(_, row)| row.str(chassis::NAME)).collect();
        self.former.retain(|name| there.contains(name.as_ref()) && !stale.contains_key(name));
        self.nodes.values_mut().for_each(|node| node.looked |= node.chassis.is_some());
    }
}

fn is_marked(row: &Row) -> bool {
    let options = row.map(chassis::OTHER_CONFIG).get("ovn-cms-options").unwrap_or_default();
    options.split(',').any(|word| word.trim() == owner::NODE_CHASSIS)
}

/// Removes chassis by name, with what ovn-controller keeps beside them.
pub fn remove(sb: &Cache, is_gone: impl Fn(&str) -> bool) -> Txn {
    let mut txn = Txn::new(&sb::DATABASE);
    for (uuid, _) in sb.iter(chassis::TABLE).filter(|(_, row)| is_gone(row.str(chassis::NAME))) {
        txn.delete(chassis::TABLE, uuid);
    }
    for (uuid, _) in sb.iter(chassis_private::TABLE).filter(|(_, row)| is_gone(row.str(chassis_private::NAME))) {
        txn.delete(chassis_private::TABLE, uuid);
    }
    txn
}
