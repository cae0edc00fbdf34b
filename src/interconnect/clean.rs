//! Removes what a cluster or a gateway that is gone left in the shared databases.

use std::collections::BTreeSet;

use ovnkube_ovn::ic_sb::{availability_zone, gateway, port_binding, route};
use ovnkube_ovn::{Row, Uuid, ic_sb};
use ovnkube_ovsdb_data::{Cache, Txn};
use ovnkube_plan::Offer;

use crate::databases::raise;
use crate::rows::{CLUSTER, rows_of_all, zone_of};
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
    pub txn: Txn,
    /// In words.
    pub rows: String,
}

/// `Ok(None)`: there is nothing of that name. Refuses what is of this cluster, and a name that several have.
pub fn clean(ic_sb: &Cache, left: Left<'_>, own: &Offer) -> Result<Option<Cleaning>, String> {
    let found = match left {
        Left::Zone(name) => zone_of(ic_sb, name).map(|zone| (zone, None)),
        Left::Gateway(name) => one_gateway(ic_sb, name)?.map(|(uuid, zone)| (zone, Some(uuid))),
    };
    let Some((zone_id, gateway)) = found else { return Ok(None) };
    let name = ic_sb.get(availability_zone::TABLE, zone_id).map(|row| row.str(availability_zone::NAME));
    let name = name.unwrap_or_default();
    let marks: BTreeSet<&str> = rows(ic_sb, zone_id).filter_map(|(_, row)| row.external_ids().get(CLUSTER)).collect();
    // a dead cluster may have had the name that this one has now
    let is_own = name == own.wanted.zone.as_ref() && marks.is_empty() && !is_of_others(ic_sb, zone_id, own);
    if is_own || marks.contains(own.cluster.as_ref()) {
        return Err(match left {
            Left::Zone(_) => format!(
                "{} is this cluster; to leave, set enable-ic: \"false\" in the ConfigMap ovn-ic-config, and to have its rows made anew, \
                 ovnkube ic reset",
                short(name)
            ),
            Left::Gateway(_) => {
                "it is a gateway of this cluster; take it out of gw-nodes in the ConfigMap ovn-ic-config".into()
            }
        });
    }
    let mut txn = Txn::new(&ic_sb::DATABASE);
    let rows = match gateway {
        None => whole(&mut txn, ic_sb, zone_id),
        Some(gateway) => one(&mut txn, ic_sb, zone_id, gateway),
    };
    Ok(Some(Cleaning { zone: short(name), zone_id, is_ovnkube: !marks.is_empty(), txn, rows }))
}

/// Whether a zone has rows of OVN's own daemon and none of them is about a chassis of this cluster.
fn is_of_others(ic_sb: &Cache, zone: Uuid, own: &Offer) -> bool {
    let gateways = |row: &Row| row.table() == gateway::TABLE && own.own_chassis.contains(row.str(gateway::NAME));
    rows(ic_sb, zone).next().is_some() && !rows(ic_sb, zone).any(|(_, row)| gateways(row))
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

fn whole(txn: &mut Txn, ic_sb: &Cache, zone: Uuid) -> String {
    let mut counts = [(gateway::TABLE, "gateway", 0), (port_binding::TABLE, "port", 0), (route::TABLE, "route", 0)];
    for (uuid, row) in rows(ic_sb, zone) {
        counts.iter_mut().filter(|(table, ..)| *table == row.table()).for_each(|(.., number)| *number += 1);
        txn.delete(row.table(), uuid);
    }
    txn.delete(availability_zone::TABLE, zone);
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
