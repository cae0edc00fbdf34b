//! A cluster that gets another name: what it has under the earlier one goes when nothing needs it any more.
//!
//! ```text
//!           attach              offer              withdraw            detach
//! new       ports, gateways ──▶ routes ─────────────────────────────────────▶
//! earlier   ports, routes ───────────────────────▶ ports ─────────────────▶ nothing
//! ```
//!
//! Between two stages the other clusters have time to follow. The stage is read from the rows, so a restart goes on with it.

use std::collections::{BTreeMap, BTreeSet};

use ovnkube_model::is_zone;
use ovnkube_ovn::ic_sb::{availability_zone, port_binding, route};
use ovnkube_ovn::{Row, Uuid};
use ovnkube_ovsdb_data::{Cache, Txn};

use crate::rows::{is_of, rows_of_all};
use crate::switches::Switch;

/// The most earlier names that have ports at the same time.
const MOST: usize = 4;

/// The rows of this cluster in other zones than its own.
pub(crate) struct Former<'a> {
    rows: Vec<(Uuid, &'a Row)>,
    /// Names of the zones that hold nothing else.
    zones: BTreeMap<Uuid, &'a str>,
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
    /// `own`: the zone with the cluster's name, if there is one.
    pub(crate) fn find(ic_sb: &'a Cache, cluster: &str, own: Option<Uuid>) -> Self {
        let mut rows = Vec::new();
        let (mut zones, mut others) = (BTreeMap::new(), BTreeSet::new());
        for (uuid, row, zone) in rows_of_all(ic_sb).filter(|(_, _, zone)| *zone != own) {
            if !is_of(row, cluster) {
                others.extend(zone);
                continue;
            }
            rows.push((uuid, row));
            let name = zone.and_then(|zone| Some((zone, ic_sb.get(availability_zone::TABLE, zone)?)));
            zones.extend(name.map(|(zone, row)| (zone, row.str(availability_zone::NAME))));
        }
        zones.retain(|zone, _| !others.contains(zone));
        Self { rows, zones }
    }

    /// The earlier names that ports may have.
    pub(crate) fn names(&self) -> BTreeSet<&'a str> {
        let names: BTreeSet<&str> = self.zones.values().copied().filter(|name| is_zone(name)).collect();
        names.into_iter().take(MOST).collect()
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

    /// Removes what a stage is about.
    pub(crate) fn remove(&self, txn: &mut Txn, stage: Stage, kept: &BTreeSet<Uuid>) {
        for (uuid, row) in &self.rows {
            let goes = stage == Stage::Detach || (stage == Stage::Withdraw && row.table() == route::TABLE);
            if goes && !kept.contains(uuid) {
                txn.delete(row.table(), *uuid);
            }
        }
        if stage == Stage::Detach {
            for zone in self.zones.keys() {
                txn.delete(availability_zone::TABLE, *zone);
            }
        }
    }
}

/// The transit switches that have a port on a gateway among these rows.
fn attached_to<'r>(rows: &'r [(Uuid, &'r Row)]) -> impl Iterator<Item = &'r str> {
    let ports = rows.iter().map(|(_, row)| *row).filter(|row| row.table() == port_binding::TABLE);
    ports.filter(|row| !row.str(port_binding::GATEWAY).is_empty()).map(|row| row.str(port_binding::TRANSIT_SWITCH))
}
