//! The clusters in the southbound interconnection database, as they are there: nothing is checked.

use std::collections::{BTreeMap, BTreeSet};

use ovnkube_model::Name;
use ovnkube_ovn::ic_sb::{availability_zone, encap, gateway, port_binding, route};
use ovnkube_ovn::{Row, Uuid};
use ovnkube_ovsdb_data::Cache;
use serde::Serialize;

use crate::databases::questions;
use crate::hearing::Listening;
use crate::rows::{CLUSTER, since};
use crate::text::short;

/// A cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Zone {
    pub name: String,
    /// The cluster's uid, if ovnkube wrote its rows.
    pub cluster: Option<String>,
    /// All uids that its rows have.
    #[serde(skip)]
    pub(super) marks: BTreeSet<String>,
    pub gateways: Vec<Gateway>,
    pub ports: Vec<Port>,
    /// Rows of routes: one for each prefix and transit switch.
    pub routes: usize,
    /// When it made the first of the ports that it has, in seconds since 1970. Only ovnkube says so.
    pub since: Option<u64>,
    /// The last number that it has followed; 0: none, `None`: the database has no such numbers.
    pub answer: Option<i64>,
    /// When it was asked for one that it has not followed, and should have by now.
    pub silent_since: Option<u64>,
}

/// A host that sends to other clusters and receives from them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Gateway {
    /// The id of its chassis.
    pub chassis: String,
    pub hostname: String,
    /// `geneve 10.0.0.1`
    pub tunnels: Vec<String>,
}

/// The port of a cluster in a transit switch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Port {
    pub name: String,
    pub switch: String,
    pub addresses: Vec<String>,
    /// The chassis that it is on; `None`: no gateway has it.
    pub gateway: Option<String>,
}

impl Zone {
    /// Whether it has this name, or is the cluster with this uid under one that it had before. A cluster that gets another name has both
    /// for a while.
    pub(crate) fn is_of(&self, cluster: &str, name: &str, former: &BTreeSet<Name>) -> bool {
        self.name == name || (self.has_mark(cluster) && former.contains(self.name.as_str()))
    }

    /// Whether a row of it has the mark of this cluster. Another one may have written rows there too.
    pub(super) fn has_mark(&self, cluster: &str) -> bool {
        self.cluster.as_deref() == Some(cluster) || self.marks.contains(cluster)
    }

    /// Whether a gateway that exists has one of its ports.
    pub fn has_active_gateway(&self) -> bool {
        self.ports.iter().any(|port| self.gateway(port).is_some())
    }

    /// The gateway that has a port.
    pub fn gateway(&self, port: &Port) -> Option<&Gateway> {
        self.gateways.iter().find(|gateway| port.gateway.as_ref() == Some(&gateway.chassis))
    }
}

/// All clusters by name.
pub(super) fn zones(ic_sb: &Cache) -> Vec<Zone> {
    let has_numbers = ic_sb.supports(availability_zone::TABLE, availability_zone::NB_IC_CFG);
    let zone = |row: &Row| Zone {
        name: short(row.str(availability_zone::NAME)),
        answer: has_numbers.then(|| row.int(availability_zone::NB_IC_CFG)),
        ..Zone::default()
    };
    let rows = ic_sb.iter(availability_zone::TABLE);
    let mut zones: BTreeMap<Uuid, Zone> = rows.map(|(uuid, row)| (uuid, zone(row))).collect();
    for (_, row) in ic_sb.iter(gateway::TABLE) {
        if let Some(zone) = row.uuid(gateway::AVAILABILITY_ZONE).and_then(|uuid| zones.get_mut(&uuid)) {
            zone.learn_owner(row);
            zone.gateways.push(read_gateway(ic_sb, row));
        }
    }
    for (_, row) in ic_sb.iter(port_binding::TABLE) {
        if let Some(zone) = row.uuid(port_binding::AVAILABILITY_ZONE).and_then(|uuid| zones.get_mut(&uuid)) {
            zone.learn_owner(row);
            zone.since = zone.since.into_iter().chain(since(row)).min();
            zone.ports.push(read_port(row));
        }
    }
    for (_, row) in ic_sb.iter(route::TABLE) {
        if let Some(zone) = row.uuid(route::AVAILABILITY_ZONE).and_then(|uuid| zones.get_mut(&uuid)) {
            zone.learn_owner(row);
            zone.routes += 1;
        }
    }
    let mut zones: Vec<Zone> = zones.into_values().collect();
    for zone in &mut zones {
        zone.gateways.sort_by(|a, b| (&a.hostname, &a.chassis).cmp(&(&b.hostname, &b.chassis)));
        zone.ports.sort_by(|a, b| (a.switch.len(), &a.switch, &a.name).cmp(&(b.switch.len(), &b.switch, &b.name)));
    }
    zones.sort_by(|a, b| a.name.cmp(&b.name));
    zones
}

/// Marks the clusters that did not follow a number that they were asked for long ago. One without ovnkube that never followed any may not
/// be able to.
pub(super) fn mark_silent(zones: &mut [Zone], ic_nb: &Cache, now: u64) {
    let waits = Listening::default().silent_after.as_secs();
    let questions = questions(ic_nb);
    for zone in zones {
        let Some(answer) = zone.answer.filter(|answer| *answer != 0 || zone.cluster.is_some()) else { continue };
        let missed = questions.iter().filter(|(number, at)| answer < *number && at.saturating_add(waits) <= now);
        zone.silent_since = missed.map(|(_, at)| *at).min();
    }
}

impl Zone {
    fn learn_owner(&mut self, row: &Row) {
        self.marks.extend(row.external_ids().get(CLUSTER).map(short));
        self.cluster = self.marks.first().cloned();
    }
}

fn read_gateway(ic_sb: &Cache, row: &Row) -> Gateway {
    let encaps = row.uuids(gateway::ENCAPS).filter_map(|uuid| ic_sb.get(encap::TABLE, uuid));
    let mut tunnels: Vec<String> =
        encaps.map(|row| format!("{} {}", short(row.str(encap::TYPE)), short(row.str(encap::IP)))).collect();
    tunnels.sort();
    Gateway { chassis: short(row.str(gateway::NAME)), hostname: short(row.str(gateway::HOSTNAME)), tunnels }
}

fn read_port(row: &Row) -> Port {
    let gateway = row.str(port_binding::GATEWAY);
    Port {
        name: short(row.str(port_binding::LOGICAL_PORT)),
        switch: short(row.str(port_binding::TRANSIT_SWITCH)),
        // the first word is the MAC
        addresses: row.str(port_binding::ADDRESS).split(' ').skip(1).take(4).map(short).collect(),
        gateway: Some(short(gateway)).filter(|gateway| !gateway.is_empty()),
    }
}
