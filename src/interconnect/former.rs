//! A cluster that gets another name: what it has under the earlier one goes when nothing needs it any more.
//!
//! ```text
//!           attach              offer              withdraw            detach
//! new       ports, gateways ──▶ routes ─────────────────────────────────────▶
//! earlier   ports, routes ───────────────────────▶ ports ─────────────────▶ nothing
//! ```
//!
//! Between two stages the other clusters have time to follow. The stage is read from the rows, so a restart goes on with it. Which
//! names the cluster had is not: whoever writes to IC-SB can write its mark, and a copy of the cluster has the same one.

use std::collections::{BTreeMap, BTreeSet};

use ovnkube_ovn::ic_sb::{availability_zone, gateway, port_binding, route};
use ovnkube_ovn::{Row, Uuid};
use ovnkube_ovsdb_data::{Cache, Txn};
use ovnkube_plan::Offer;

use crate::databases::local_chassis;
use crate::rows::{CLUSTER, is_of, rows_of_all, zone_of_row};
use crate::switches::Switch;
use crate::text::{remove_zone, short};

/// The rows of this cluster in other zones than its own.
#[derive(Default)]
pub(crate) struct Former<'a> {
    rows: Vec<(Uuid, &'a Row)>,
    /// Their zones.
    all: BTreeSet<Uuid>,
    /// The gateways among them that no node is any more.
    lost: BTreeSet<Uuid>,
    /// Names of the zones that hold nothing else.
    zones: BTreeMap<Uuid, &'a str>,
    /// Names of zones with this cluster's mark that are not its own.
    strangers: BTreeSet<&'a str>,
}

/// A zone with this cluster's mark.
#[derive(Default)]
struct Zone<'a> {
    marked: Vec<(Uuid, &'a Row)>,
    has_others: bool,
}

/// What is due for a cluster that gets another name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Its new ports get a gateway.
    Attach,
    /// They are there: its routes by them are offered.
    Offer,
    /// These are there: its routes by the earlier ports go.
    Withdraw,
    /// These are gone: the earlier ports go.
    Detach,
    /// It has no earlier name.
    Done,
}

impl<'a> Former<'a> {
    /// `own`: the zone with the cluster's name, if there is one. `sb`: where it is known.
    pub(crate) fn find(ic_sb: &'a Cache, sb: Option<&Cache>, offer: &Offer, own: Option<Uuid>) -> Self {
        let mut zones: BTreeMap<Uuid, Zone<'a>> = BTreeMap::new();
        for (uuid, row, zone) in rows_of_all(ic_sb).filter(|(_, _, zone)| *zone != own) {
            let Some(zone) = zone else { continue };
            let zone = zones.entry(zone).or_default();
            if is_of(row, &offer.cluster) {
                zone.marked.push((uuid, row));
            } else {
                zone.has_others = true;
            }
        }
        let mut found = Self::default();
        for (uuid, zone) in zones.into_iter().filter(|(_, zone)| !zone.marked.is_empty()) {
            let name = ic_sb.get(availability_zone::TABLE, uuid).map(|row| row.str(availability_zone::NAME));
            let name = name.unwrap_or_default();
            if !offer.former.contains(name) || zone.is_copy(offer, sb) {
                found.strangers.insert(name);
                continue;
            }
            let is_lost = |(_, chassis): &(Uuid, &str)| !offer.own_chassis.contains(*chassis);
            found.lost.extend(zone.gateways().filter(is_lost).map(|(uuid, _)| uuid));
            found.rows.extend(zone.marked);
            found.all.insert(uuid);
            if !zone.has_others {
                found.zones.insert(uuid, name);
            }
        }
        found
    }

    /// The earlier names that ports may have.
    pub(crate) fn names(&self) -> BTreeSet<&'a str> {
        self.zones.values().copied().collect()
    }

    /// Whether a zone has rows of this cluster.
    pub(crate) fn has(&self, zone: Uuid) -> bool {
        self.all.contains(&zone)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// What to say of zones that have this cluster's mark and are not its own.
    pub(crate) fn problems(&self) -> impl Iterator<Item = String> {
        self.strangers.iter().map(|name| {
            format!(
                "cluster {0:?} has the mark of this one ({CLUSTER}, the uid of its namespace kube-system), and this one never had that name \
                 or has no such gateway: it is a copy of this cluster, or what is left of an earlier name; nothing of it is changed here. If \
                 it is gone for good: {1}",
                short(name),
                remove_zone(name)
            )
        })
    }

    /// `own`: rows of the cluster under its name. `offers`: whether it has anything to offer.
    pub(crate) fn stage(&self, own: &[(Uuid, &Row)], offers: bool, switches: &[Switch]) -> Stage {
        if self.rows.is_empty() {
            return Stage::Done;
        }
        let attached: BTreeSet<&str> = attached_to(own).collect();
        let is_known = |name: &str| switches.iter().any(|switch| switch.name.as_ref() == name);
        let has_routes = |rows: &[(Uuid, &Row)]| rows.iter().any(|(_, row)| row.table() == route::TABLE);
        if attached_to(&self.rows).any(|switch| is_known(switch) && !attached.contains(switch)) {
            Stage::Attach
        } else if !has_routes(&self.rows) {
            Stage::Detach
        } else if offers && !has_routes(own) {
            Stage::Offer
        } else {
            Stage::Withdraw
        }
    }

    /// Removes what a stage is about, and zones of which nothing is left: `kept` are rows that now are in the cluster's own. `None`: the
    /// others had no time to follow yet. Lost gateways go at once, together with the first of the others that goes over to the own zone:
    /// by these alone the zone would be a copy's from then on.
    pub(crate) fn remove(&self, txn: &mut Txn, stage: Option<Stage>, kept: &BTreeSet<Uuid>) {
        let goes =
            |row: &Row| stage == Some(Stage::Detach) || (stage == Some(Stage::Withdraw) && row.table() == route::TABLE);
        let mut in_use: BTreeSet<Uuid> = BTreeSet::new();
        for (uuid, row) in self.rows.iter().filter(|(uuid, _)| !kept.contains(uuid)) {
            if goes(row) || self.lost.contains(uuid) {
                txn.delete(row.table(), *uuid);
            } else {
                in_use.extend(zone_of_row(row));
            }
        }
        for zone in self.zones.keys().filter(|zone| !in_use.contains(zone)) {
            txn.delete(availability_zone::TABLE, *zone);
        }
    }
}

impl<'a> Zone<'a> {
    /// Whether it is that of a copy of this cluster, or this one is the copy. A copy has all that its API server and its northbound database
    /// held: the uid, the names, the nodes and what was wanted of their gateways. It has not the hosts. So a zone with a gateway that no
    /// node is, as after a node was lost while no master ran, is this cluster's only if another one is a node whose host has written its
    /// chassis here.
    fn is_copy(&self, offer: &Offer, sb: Option<&Cache>) -> bool {
        let is_node = |chassis: &str| offer.own_chassis.contains(chassis);
        let is_here = |chassis: &str| is_node(chassis) && sb.is_some_and(|sb| local_chassis(sb, chassis).is_some());
        let is_own = self.gateways().all(|(_, chassis)| is_node(chassis))
            || self.gateways().any(|(_, chassis)| is_here(chassis));
        !is_own
    }

    /// Its gateways, with the names of their chassis.
    fn gateways(&self) -> impl Iterator<Item = (Uuid, &'a str)> {
        let gateways = self.marked.iter().filter(|(_, row)| row.table() == gateway::TABLE);
        gateways.map(|(uuid, row)| (*uuid, row.str(gateway::NAME)))
    }
}

/// The transit switches that have a port on a gateway among these rows.
fn attached_to<'r>(rows: &'r [(Uuid, &'r Row)]) -> impl Iterator<Item = &'r str> {
    let ports = rows.iter().map(|(_, row)| *row).filter(|row| row.table() == port_binding::TABLE);
    ports.filter(|row| !row.str(port_binding::GATEWAY).is_empty()).map(|row| row.str(port_binding::TRANSIT_SWITCH))
}
