//! Removes what a cluster or a gateway that is gone left in the shared databases.

use std::collections::BTreeSet;

use ovnkube_ovn::ic_sb::{availability_zone, gateway, port_binding, route};
use ovnkube_ovn::{Row, Uuid, ic_sb};
use ovnkube_ovsdb_data::{Cache, Txn};
use ovnkube_plan::Offer;

use crate::databases::raise;
use crate::former::Former;
use crate::rows::{CLUSTER, is_of, rows_of_all, zone_of};
use crate::text::{count, short};

/// What to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left<'a> {
    /// All of the cluster of this name.
    Zone(&'a str),
    /// A gateway: the name of its host, or the id of its chassis.
    Gateway(&'a str),
}

/// What is to be removed.
pub struct Cleaning {
    /// The cluster that it is of.
    pub zone: String,
    pub zone_id: Uuid,
    /// Whether ovnkube wrote it: then it answers, see [`answered`].
    pub is_ovnkube: bool,
    /// It has this cluster's mark: only that the northbound database does not know its name says that it is another one.
    pub has_our_mark: bool,
    pub txn: Txn,
    /// In words.
    pub rows: String,
}

/// `Ok(None)`: there is nothing of that name. Refuses what is of this cluster, and a name that several have. Of the zone with this
/// cluster's name, what others have there is removed: while it is there, this cluster writes nothing.
pub fn clean(ic_sb: &Cache, left: Left<'_>, own: &Offer) -> Result<Option<Cleaning>, String> {
    let found = match left {
        Left::Zone(name) => zone_of(ic_sb, name).map(|zone| (zone, None)),
        Left::Gateway(name) => one_gateway(ic_sb, name)?.map(|(uuid, zone)| (zone, Some(uuid))),
    };
    let Some((zone_id, gateway)) = found else { return Ok(None) };
    let name = ic_sb.get(availability_zone::TABLE, zone_id).map(|row| row.str(availability_zone::NAME));
    let name = name.unwrap_or_default();
    let all: Vec<(Uuid, &Row)> = rows(ic_sb, zone_id).collect();
    let is_ovnkube = all.iter().any(|(_, row)| row.external_ids().contains_key(CLUSTER));
    let ours = Ours::find(ic_sb, own, zone_id, &all);
    let has_our_mark = !ours.is_zone && all.iter().any(|(_, row)| is_of(row, &own.cluster));
    let mut txn = Txn::new(&ic_sb::DATABASE);
    let rows = match gateway {
        None => {
            let gone: Vec<_> = all.iter().copied().filter(|(_, row)| !ours.has(row)).collect();
            if gone.is_empty() && ours.is_zone {
                return Err(format!(
                    "{} is this cluster; to leave, set enable-ic: \"false\" in the ConfigMap ovn-ic-config, and to have its rows made anew, \
                     ovnkube ic reset",
                    short(name)
                ));
            }
            if gone.len() == all.len() {
                txn.delete(availability_zone::TABLE, zone_id);
            }
            whole(&mut txn, &gone)
        }
        Some(gateway) => {
            if ic_sb.get(gateway::TABLE, gateway).is_some_and(|row| ours.has_gateway(row)) {
                return Err(
                    "it is a gateway of this cluster; take it out of gw-nodes in the ConfigMap ovn-ic-config".into()
                );
            }
            one(&mut txn, ic_sb, zone_id, gateway)
        }
    };
    Ok(Some(Cleaning { zone: short(name), zone_id, is_ovnkube, has_our_mark, txn, rows }))
}

/// What of a zone is this cluster's.
struct Ours<'a> {
    own: &'a Offer,
    /// The zone has its name, or an earlier one.
    is_zone: bool,
    /// OVN's own daemon does not say whose its ports and routes are: they are this cluster's if it has something else there.
    has_unmarked: bool,
}

impl<'a> Ours<'a> {
    fn find(ic_sb: &Cache, own: &'a Offer, zone: Uuid, rows: &[(Uuid, &Row)]) -> Self {
        let named = zone_of(ic_sb, &own.wanted.zone);
        let is_zone = named == Some(zone) || Former::find(ic_sb, None, own, named).has(zone);
        let mut ours = Self { own, is_zone, has_unmarked: false };
        ours.has_unmarked = rows.iter().any(|(_, row)| ours.has(row));
        ours
    }

    fn has(&self, row: &Row) -> bool {
        self.is_zone
            && match row.external_ids().get(CLUSTER) {
                Some(_) => is_of(row, &self.own.cluster),
                None if row.table() == gateway::TABLE => self.own.own_chassis.contains(row.str(gateway::NAME)),
                None => self.has_unmarked,
            }
    }

    /// Wherever somebody has put it.
    fn has_gateway(&self, row: &Row) -> bool {
        let is_node = || self.own.own_chassis.contains(row.str(gateway::NAME));
        self.has(row) || (is_of(row, &self.own.cluster) && is_node())
    }
}

/// The clusters that there are.
pub fn names(ic_sb: &Cache) -> Vec<String> {
    let rows = ic_sb.iter(availability_zone::TABLE);
    let mut names: Vec<String> = rows.map(|(_, row)| short(row.str(availability_zone::NAME))).collect();
    names.sort();
    names
}

/// The rows of a cluster, apart from its own.
fn rows(ic_sb: &Cache, zone: Uuid) -> impl Iterator<Item = (Uuid, &Row)> {
    rows_of_all(ic_sb).filter(move |(.., of)| *of == Some(zone)).map(|(uuid, row, _)| (uuid, row))
}

fn whole(txn: &mut Txn, rows: &[(Uuid, &Row)]) -> String {
    let mut counts = [(gateway::TABLE, "gateway", 0), (port_binding::TABLE, "port", 0), (route::TABLE, "route", 0)];
    for (uuid, row) in rows {
        counts.iter_mut().filter(|(table, ..)| *table == row.table()).for_each(|(.., number)| *number += 1);
        txn.delete(row.table(), *uuid);
    }
    counts.map(|(_, what, number)| count(number, what)).join(", ")
}

/// A gateway, and the routes by the ports that it has. If its cluster lives, another gateway gets them.
fn one(txn: &mut Txn, ic_sb: &Cache, zone: Uuid, gone: Uuid) -> String {
    let chassis = ic_sb.get(gateway::TABLE, gone).map(|row| row.str(gateway::NAME)).unwrap_or_default();
    let has = |row: &Row| row.table() == port_binding::TABLE && row.str(port_binding::GATEWAY) == chassis;
    let ports: Vec<(Uuid, &Row)> = rows(ic_sb, zone).filter(|(_, row)| has(row)).collect();
    let switches: BTreeSet<&str> = ports.iter().map(|(_, row)| row.str(port_binding::TRANSIT_SWITCH)).collect();
    let by = |row: &Row| row.table() == route::TABLE && switches.contains(row.str(route::TRANSIT_SWITCH));
    let routes: Vec<Uuid> = rows(ic_sb, zone).filter(|(_, row)| by(row)).map(|(uuid, _)| uuid).collect();
    txn.delete(gateway::TABLE, gone);
    for (uuid, _) in &ports {
        txn.update(*uuid, Row::new(port_binding::TABLE).with(port_binding::GATEWAY, ""));
    }
    for uuid in &routes {
        txn.delete(route::TABLE, *uuid);
    }
    format!("1 gateway that had {}, and {}", count(ports.len(), "port"), count(routes.len(), "route"))
}

/// The gateway of this host or chassis, and its cluster.
fn one_gateway(ic_sb: &Cache, name: &str) -> Result<Option<(Uuid, Uuid)>, String> {
    let is_it = |row: &Row| row.str(gateway::NAME) == name || row.str(gateway::HOSTNAME) == name;
    let found: Vec<(Uuid, &Row)> =
        ic_sb.iter(gateway::TABLE).map(|(uuid, row)| (uuid, row.as_ref())).filter(|(_, row)| is_it(row)).collect();
    match found.as_slice() {
        [] => Ok(None),
        [(uuid, row)] => Ok(row.uuid(gateway::AVAILABILITY_ZONE).map(|zone| (*uuid, zone))),
        several => {
            let chassis: Vec<String> = several.iter().map(|(_, row)| short(row.str(gateway::NAME))).collect();
            Err(format!("several gateways have this name; name the chassis of one: {}", chassis.join(", ")))
        }
    }
}

/// Asks all clusters whether they are alive: those that are change [`answered`]. `None`: the databases are too old.
/// `now`: seconds since 1970.
pub fn question(north: &Cache, south: &Cache, now: u64) -> Option<Txn> {
    if !south.supports(availability_zone::TABLE, availability_zone::NB_IC_CFG) {
        return None;
    }
    // a number that no cluster has answered yet
    let last = south.iter(availability_zone::TABLE).map(|(_, row)| row.int(availability_zone::NB_IC_CFG)).max();
    raise(north, last.unwrap_or_default(), now)
}

/// What a cluster has answered last; 0: nothing.
pub fn answered(ic_sb: &Cache, zone: Uuid) -> i64 {
    ic_sb.get(availability_zone::TABLE, zone).map_or(0, |row| row.int(availability_zone::NB_IC_CFG))
}
