//! Removes the chassis of nodes that are gone: every other host keeps a tunnel to each. Also sets the UDP port of the
//! tunnels on the chassis of nodes, see [`encaps`](crate::encaps).
//!
//! ```text
//!  World ──Report──▶ the chassis of each node ────┬─ encaps ─▶ one transaction
//!  SB: Chassis, Chassis_Private, Encap ───────────┴─ stale ──▶ one transaction
//! ```
//!
//! ovn-controller creates the rows of its host and removes them when it is stopped cleanly. This module removes what is
//! left of hosts that died, were renamed, or left the cluster:
//!
//! - the chassis that a Node was annotated with before it was deleted or annotated with another one;
//! - another chassis with the hostname of a Node: two chassis cannot have the same address, so the old one would keep
//!   out the new one. Checked once for each chassis that a Node is annotated with;
//! - a chassis that is marked as a node's ([`owner::NODE_CHASSIS`]) while there is no Node of its hostname.
//!
//! *Invariant*: a chassis that a Node claims is never removed, nor one that neither a Node nor its mark ever made a
//! node's: hosts outside Kubernetes may share the southbound database. Gateways of other clusters have chassis too, with
//! hostnames that may be those of nodes here.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ovnkube_interconnect::is_remote;
use ovnkube_model::{Affected, Name, World};
use ovnkube_ovn::nb::gateway_chassis;
use ovnkube_ovn::sb::{self, chassis, chassis_private, encap, port_binding, sb_global};
use ovnkube_ovn::{Atom, Datum, Row, owner};
use ovnkube_ovsdb::{Cache, Class, Client, Condition, Monitored, Txn};
use ovnkube_plan::names;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::backoff::Backoff;
use crate::write_lock::{LOCK, TAKE_AFTER, WriteLock};
use crate::writing::Writing;
use crate::{MayWrite, encaps};

/// A host that left the cluster but still runs ovn-controller creates its chassis again at once. It is then removed
/// only this often, until the host is off.
const COMES_BACK: Duration = Duration::from_secs(300);
/// Longest wait when nothing is due.
const REST: Duration = Duration::from_secs(3600);
/// Wait after a failure, and while writing is not allowed.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// The longest wait after several failures.
const LONGEST: Duration = Duration::from_secs(32);

/// What the engine reports about nodes.
enum Report {
    Node(Name, Option<Name>),
    Gone(Name),
    /// The northbound database has this chassis for this node.
    Was(Name, Name),
    /// All of these have been reported.
    Complete,
}

/// The engine's end: reports which chassis belongs to which node.
pub struct ChassisReports(UnboundedSender<Report>);

impl ChassisReports {
    pub(crate) fn update(&self, affected: &Affected, world: &World) {
        match affected {
            Affected::Node(name) => self.node(name, world),
            Affected::Everything => world.nodes.keys().for_each(|name| self.node(name, world)),
            _ => {}
        }
    }

    fn node(&self, name: &Name, world: &World) {
        self.send(match world.nodes.get(name) {
            Some(node) => Report::Node(name.clone(), node.chassis_id.clone()),
            None => Report::Gone(name.clone()),
        });
    }

    /// Reports what an earlier run wrote, which includes Nodes that were deleted meanwhile. That is all: the first sweep
    /// begins, and from now on southbound rows may be changed too.
    pub(crate) fn found(&self, nb: &Cache) {
        for (_, row) in nb.iter(gateway_chassis::TABLE) {
            let chassis = row.str(gateway_chassis::CHASSIS_NAME);
            let name = row.str(gateway_chassis::NAME);
            let port = name.strip_suffix(chassis).and_then(|name| name.strip_suffix('-'));
            let node = port.and_then(|port| names::ROUTER_TO_SWITCH.node(port));
            if let Some(node) = node {
                self.send(Report::Was(node.into(), chassis.into()));
            }
        }
        self.send(Report::Complete);
    }

    fn send(&self, report: Report) {
        // the receiver is gone while the controller is being stopped
        let _ = self.0.send(report);
    }
}

/// Removes stale chassis and sets the tunnels' port; see the module.
pub struct Chassis {
    sb: Client,
    lock: WriteLock,
    reports: UnboundedReceiver<Report>,
    may_write: MayWrite,
    known: KnownNodes,
    /// UDP port of the tunnels if it is not the default.
    encap_port: Option<u16>,
    /// What was removed within `COMES_BACK`, and when.
    removed: BTreeMap<Name, Instant>,
    /// Of each kind of transaction.
    failures: BTreeMap<&'static str, Backoff>,
}

impl Chassis {
    /// The engine's end, and the part to run. `encap_port`: UDP port of the tunnels; `None`: the default. `said` hears
    /// whether the database can be written to.
    pub fn new(
        sb: Client,
        may_write: MayWrite,
        encap_port: Option<u16>,
        said: watch::Sender<Writing>,
    ) -> (ChassisReports, Self) {
        let (to, reports) = mpsc::unbounded_channel();
        let lock = WriteLock::new(&sb, may_write.clone(), TAKE_AFTER, said);
        let (known, removed, failures) = (KnownNodes::default(), BTreeMap::new(), BTreeMap::new());
        (ChassisReports(to), Self { sb, lock, reports, may_write, known, encap_port, removed, failures })
    }

    /// What to monitor of the southbound database: see also [`Chassis::watch_ports`].
    pub fn monitored() -> Vec<Monitored> {
        let columns = [
            chassis::NAME.id(),
            chassis::HOSTNAME.id(),
            chassis::OTHER_CONFIG.id(),
            chassis::EXTERNAL_IDS.id(),
            chassis::ENCAPS.id(),
        ];
        let private = [chassis_private::NAME.id()];
        let encaps = [encap::CHASSIS_NAME.id(), encap::OPTIONS.id(), encap::TYPE.id(), encap::IP.id()];
        let ports = [port_binding::LOGICAL_PORT.id(), port_binding::TYPE.id(), port_binding::CHASSIS.id()];
        vec![
            Monitored::only(port_binding::TABLE, ports),
            Monitored::only(chassis::TABLE, columns),
            Monitored::only(chassis_private::TABLE, private),
            Monitored::only(encap::TABLE, encaps),
            Monitored::only(sb_global::TABLE, [sb_global::EXTERNAL_IDS.id()]),
        ]
    }

    /// Whether the ports that interconnection needs are kept in the cache: those on gateways and those of other clusters.
    pub fn watch_ports(sb: &Client, on: bool) {
        let is = |kind: &str| (port_binding::TYPE.id(), Datum::one(Atom::Str(kind.into())));
        let kinds = if on { vec![is("chassisredirect"), is("remote")] } else { Vec::new() };
        sb.set_condition(port_binding::TABLE, Condition::Any(kinds));
    }

    /// Runs until [`ChassisReports`] is dropped.
    pub async fn run(mut self) {
        let mut changes = self.sb.subscribe();
        let mut news = Vec::new();
        loop {
            let wake = self.sweep().await.min(self.set_encap_ports().await);
            tokio::select! {
                count = self.reports.recv_many(&mut news, 1024) => {
                    if count == 0 {
                        return;
                    }
                    news.drain(..).for_each(|report| self.known.take(report));
                }
                _ = changes.recv() => {}
                () = tokio::time::sleep_until(wake) => {}
            }
        }
    }

    /// Sets the tunnels' port where it differs; returns when to check again.
    async fn set_encap_ports(&mut self) -> Instant {
        let now = Instant::now();
        if !self.known.complete || !self.sb.state().borrow().is_live() {
            return now + REST;
        }
        let txn = encaps::plan(&self.sb.cache(), self.encap_port, &self.known.chassis());
        if txn.is_empty() {
            return now + REST;
        }
        let sent = self.send(txn, "set the UDP port of the tunnels").await;
        sent.map_or_else(|pause| now + pause, |()| now + REST)
    }

    /// Sends a transaction under the lock; if it was not committed, returns how long to wait until it is planned again.
    async fn send(&mut self, mut txn: Txn, what: &'static str) -> Result<(), Duration> {
        if !self.lock.is_held() || !(self.may_write)() {
            return Err(TRY_AGAIN);
        }
        // each change of the database leads here, and each attempt that fails is logged
        if let Some(rest) = self.failures.get(what).and_then(|failures| failures.rest(Instant::now())) {
            return Err(rest);
        }
        txn.assert_lock(LOCK);
        match self.sb.transact(txn).await {
            Ok(_) => {
                self.failures.remove(what);
                Ok(())
            }
            Err(error) if error.class == Class::Claimed => Err(Duration::ZERO),
            Err(error) => {
                let pause = self
                    .failures
                    .entry(what)
                    .or_insert_with(|| Backoff::new(TRY_AGAIN, LONGEST))
                    .failed(Instant::now());
                warn!(%error, "cannot {what}; trying again in {} s", pause.as_secs());
                Err(pause)
            }
        }
    }

    /// Removes what is stale; returns when to check again.
    async fn sweep(&mut self) -> Instant {
        let now = Instant::now();
        self.removed.retain(|_, at| *at + COMES_BACK > now);
        let rested = self.removed.values().min().map_or(now + REST, |at| *at + COMES_BACK);
        if !self.known.complete || !self.sb.state().borrow().is_live() {
            return rested;
        }
        let stale = self.known.stale(&self.sb.cache(), |name| self.removed.contains_key(name));
        if !stale.is_empty() {
            let txn = remove(&self.sb.cache(), |name| stale.contains_key(name));
            if let Err(pause) = self.send(txn, "remove the chassis of nodes that are gone").await {
                return now + pause;
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

/// Nodes and their chassis, as far as they were reported.
#[derive(Default)]
struct KnownNodes {
    nodes: BTreeMap<Name, NodeChassis>,
    /// Chassis that belonged to a node and no longer do.
    former: BTreeSet<Name>,
    complete: bool,
}

#[derive(Default)]
struct NodeChassis {
    chassis: Option<Name>,
    /// The last known one: the annotation may be missing for a while.
    last: Option<Name>,
    /// Whether other chassis of the node's hostname have been looked for.
    looked: bool,
}

impl KnownNodes {
    fn take(&mut self, report: Report) {
        match report {
            Report::Node(name, chassis) => {
                let node = self.nodes.entry(name).or_default();
                if let Some(new) = chassis.as_ref().filter(|new| node.last.as_ref() != Some(new)) {
                    self.former.extend(node.last.replace(new.clone()));
                    node.looked = false;
                }
                node.chassis = chassis;
            }
            Report::Gone(name) => self.former.extend(self.nodes.remove(&name).and_then(|node| node.last)),
            Report::Was(name, chassis) => match self.nodes.get_mut(&name) {
                Some(node) if node.last.is_none() => node.last = Some(chassis),
                Some(node) if node.last.as_ref() == Some(&chassis) => {}
                _ => drop(self.former.insert(chassis)),
            },
            Report::Complete => self.complete = true,
        }
    }

    /// The chassis that nodes have now.
    fn chassis(&self) -> BTreeSet<&str> {
        self.nodes.values().filter_map(|node| node.chassis.as_deref()).collect()
    }

    /// Chassis that should not exist, and their hosts. Marked ones for which `rests` is true are left until later.
    fn stale(&self, sb: &Cache, rests: impl Fn(&str) -> bool) -> BTreeMap<Name, Name> {
        let claimed: BTreeSet<&str> = self.nodes.values().filter_map(|node| node.last.as_deref()).collect();
        let there: BTreeSet<&str> = sb.iter(chassis::TABLE).map(|(_, row)| row.str(chassis::NAME)).collect();
        let is_stale = |row: &Row| {
            let (name, host) = (row.str(chassis::NAME), row.str(chassis::HOSTNAME));
            let orphaned = match self.nodes.get(host) {
                Some(node) => !node.looked && node.chassis.is_some(),
                None => is_marked(row) && !rests(name),
            };
            !claimed.contains(name) && !is_remote(row) && (orphaned || self.former.contains(name))
        };
        let rows = sb.iter(chassis::TABLE).filter(|(_, row)| is_stale(row));
        let stale = rows.map(|(_, row)| (row.str(chassis::NAME).into(), row.str(chassis::HOSTNAME).into()));
        // the row in `Chassis_Private` may have outlived the one in `Chassis`
        let private = sb.iter(chassis_private::TABLE).map(|(_, row)| row.str(chassis_private::NAME));
        let alone = private.filter(|name| !there.contains(name) && !claimed.contains(name));
        let alone = alone.filter(|name| self.former.contains(*name)).map(|name| (name.into(), "".into()));
        alone.chain(stale).collect()
    }

    /// Notes that these, which were all that was stale, are removed. A host that still runs may have created one again.
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

/// A transaction that removes chassis by name, with their rows in `Chassis_Private`.
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
