//! What the other clusters have in the interconnection databases. Each row is checked here: what is wrong is named and left
//! out, and the rest is used.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_model::{Mac, Name, PeerCluster, PeerRoute, RemotePort, Subnet};
use ovnkube_ovn::ic_sb::{availability_zone, encap, gateway, port_binding, route};
use ovnkube_ovn::{Row, Uuid};
use ovnkube_ovsdb_data::Cache;

use crate::rows::CLUSTER;
use crate::switches::Switch;
use crate::text::{is_name, short};

/// The most rows of all other clusters that are used.
const GATEWAYS: usize = 1024;
const PORTS: usize = 1024;
const ROUTES: usize = 16_384;
/// The most problems that are named.
const PROBLEMS: usize = 20;

/// The rows of the other clusters.
#[derive(Default)]
pub(crate) struct Theirs {
    pub(crate) gateways: BTreeMap<Name, Gateway>,
    pub(crate) ports: Vec<Port>,
    pub(crate) routes: Vec<PeerRoute>,
    pub(crate) clusters: BTreeMap<Name, PeerCluster>,
    /// The numbers that they have followed.
    pub(crate) answers: BTreeMap<Name, i64>,
}

/// A gateway of another cluster.
pub(crate) struct Gateway {
    pub(crate) hostname: Name,
    pub(crate) encaps: BTreeSet<Encap>,
}

/// Where a host receives tunnels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Encap {
    pub(crate) kind: Name,
    pub(crate) ip: IpAddr,
    pub(crate) options: BTreeMap<Name, Name>,
}

/// A port of another cluster in a transit switch.
pub(crate) struct Port {
    pub(crate) name: Name,
    pub(crate) zone: Name,
    pub(crate) switch: Name,
    pub(crate) addresses: Vec<IpAddr>,
    /// The gateway that it is on; empty: none.
    pub(crate) gateway: Name,
    pub(crate) remote: RemotePort,
}

impl Theirs {
    /// Reads the rows of all zones but this cluster's: `own`, and `former` ones.
    pub(crate) fn read(
        ic_sb: &Cache,
        own: &str,
        former: &BTreeSet<&str>,
        switches: &[Switch],
        problems: &mut Vec<String>,
    ) -> Self {
        let zones = ic_sb.iter(availability_zone::TABLE);
        let zones = zones.map(|(uuid, row)| (uuid, row.str(availability_zone::NAME)));
        let zones = zones.filter(|(_, name)| *name != own && !former.contains(name));
        let zones: BTreeMap<Uuid, &str> = zones.collect();
        let clusters = zones.values().map(|name| (Name::from(*name), PeerCluster::default())).collect();
        let mut theirs = Self { clusters, ..Self::default() };
        if ic_sb.supports(availability_zone::TABLE, availability_zone::NB_IC_CFG) {
            let rows =
                zones.iter().filter_map(|(uuid, name)| Some((*name, ic_sb.get(availability_zone::TABLE, *uuid)?)));
            theirs.answers = rows.map(|(name, row)| (name.into(), row.int(availability_zone::NB_IC_CFG))).collect();
        }
        let mut wrong = Vec::new();
        theirs.read_gateways(ic_sb, &zones, &mut wrong);
        theirs.read_ports(ic_sb, &zones, switches, &mut wrong);
        theirs.read_routes(ic_sb, &zones, switches, &mut wrong);
        theirs.order(switches);
        let more = wrong.len().saturating_sub(PROBLEMS);
        wrong.truncate(PROBLEMS);
        problems.append(&mut wrong);
        if more > 0 {
            problems.push(format!("{more} more rows of other clusters are not used"));
        }
        theirs
    }

    fn read_gateways(&mut self, ic_sb: &Cache, zones: &BTreeMap<Uuid, &str>, wrong: &mut Vec<String>) {
        for (_, row) in ic_sb.iter(gateway::TABLE) {
            let Some(zone) = row.uuid(gateway::AVAILABILITY_ZONE).and_then(|uuid| zones.get(&uuid)) else { continue };
            let name = row.str(gateway::NAME);
            let rows = row.uuids(gateway::ENCAPS).filter_map(|uuid| ic_sb.get(encap::TABLE, uuid));
            let encaps: Option<BTreeSet<Encap>> = rows.map(|row| read_encap(row)).collect();
            let encaps = encaps.filter(|encaps| !encaps.is_empty());
            match encaps.filter(|_| !name.is_empty() && name.len() <= 255 && self.gateways.len() < GATEWAYS) {
                Some(encaps) => {
                    let hostname = short(row.str(gateway::HOSTNAME)).into();
                    self.gateways.insert(name.into(), Gateway { hostname, encaps });
                    self.clusters.entry((*zone).into()).or_default().gateways += 1;
                }
                None => wrong.push(format!(
                    "cannot use gateway {:?} of cluster {}: it has no tunnel address, or too many exist",
                    short(name),
                    short(zone)
                )),
            }
        }
    }

    fn read_ports(
        &mut self,
        ic_sb: &Cache,
        zones: &BTreeMap<Uuid, &str>,
        switches: &[Switch],
        wrong: &mut Vec<String>,
    ) {
        for (_, row) in ic_sb.iter(port_binding::TABLE) {
            let Some(zone) = row.uuid(port_binding::AVAILABILITY_ZONE).and_then(|uuid| zones.get(&uuid)) else {
                continue;
            };
            let of = row.str(port_binding::TRANSIT_SWITCH);
            let Some(switch) = switches.iter().find(|switch| switch.name.as_ref() == of) else { continue };
            match read_port(row, zone, switch).filter(|_| self.ports.len() < PORTS) {
                Some(port) => {
                    if let Some(id) = row.external_ids().get(CLUSTER) {
                        self.clusters.entry((*zone).into()).or_default().id = Some(id.into());
                    }
                    self.ports.push(port);
                }
                // a port that has just been made has no address yet
                None if row.str(port_binding::ADDRESS).is_empty() => {}
                None => wrong.push(format!(
                    "cannot use port {:?} of cluster {} in transit switch {}: its name does not begin with that of the \
                     switch, or its address {:?} is not a free one of the switch",
                    short(row.str(port_binding::LOGICAL_PORT)),
                    short(zone),
                    switch.name,
                    short(row.str(port_binding::ADDRESS))
                )),
            }
        }
    }

    fn read_routes(
        &mut self,
        ic_sb: &Cache,
        zones: &BTreeMap<Uuid, &str>,
        switches: &[Switch],
        wrong: &mut Vec<String>,
    ) {
        for (uuid, row) in ic_sb.iter(route::TABLE) {
            let Some(zone) = row.uuid(route::AVAILABILITY_ZONE).and_then(|uuid| zones.get(&uuid)) else { continue };
            let of = row.str(route::TRANSIT_SWITCH);
            // routes of other tables than the main one are for routers that ask for them
            if !row.str(route::ROUTE_TABLE).is_empty() || !switches.iter().any(|switch| switch.name.as_ref() == of) {
                continue;
            }
            match self.read_route(row, uuid, zone, of).filter(|_| self.routes.len() < ROUTES) {
                Some(route) => self.routes.push(route),
                None => wrong.push(format!(
                    "cannot use the route to {:?} of cluster {} by {:?}: it is not a prefix, or no port in transit switch {of} \
                     has that address",
                    short(row.str(route::IP_PREFIX)),
                    short(zone),
                    short(row.str(route::NEXTHOP))
                )),
            }
        }
        self.routes.sort();
    }

    /// Gives each cluster its place: by its tunnel key in the first switch where it has one. Who joins a switch gets a higher one than
    /// all that are there, and keeps it: all clusters see the same order, also after a restart.
    fn order(&mut self, switches: &[Switch]) {
        let number = |switch: &Name| switches.iter().position(|other| other.name == *switch);
        let mut first: BTreeMap<&Name, (Option<usize>, u32)> = BTreeMap::new();
        for port in &self.ports {
            let key = (number(&port.switch), port.remote.key);
            first.entry(&port.zone).and_modify(|least| *least = key.min(*least)).or_insert(key);
        }
        let mut order: Vec<_> = first.into_iter().map(|(zone, key)| (key, zone)).collect();
        order.sort();
        for (place, (_, zone)) in order.into_iter().enumerate() {
            self.clusters.entry(zone.clone()).or_default().place = place;
        }
    }

    /// The next hop must be a port of the switch: else traffic could be led to any address.
    fn read_route(&self, row: &Row, uuid: Uuid, zone: &str, switch: &str) -> Option<PeerRoute> {
        let prefix: IpNetwork = row.str(route::IP_PREFIX).parse().ok()?;
        let next_hop: IpAddr = row.str(route::NEXTHOP).parse().ok()?;
        let mut ports = self.ports.iter().filter(|port| port.switch.as_ref() == switch);
        let is_port = ports.any(|port| port.addresses.contains(&next_hop));
        (is_port && prefix.is_ipv6() == next_hop.is_ipv6()).then(|| PeerRoute {
            prefix: Subnet::of(prefix),
            zone: zone.into(),
            switch: switch.into(),
            next_hop,
            id: uuid.to_string().into(),
        })
    }
}

pub(crate) fn read_encap(row: &Row) -> Option<Encap> {
    let kind = row.str(encap::TYPE);
    let ip = row.str(encap::IP).parse().ok()?;
    let options = row.map(encap::OPTIONS).iter().map(|(key, value)| (key.into(), value.into())).collect();
    matches!(kind, "geneve" | "vxlan").then(|| Encap { kind: kind.into(), ip, options })
}

fn read_port(row: &Row, zone: &str, switch: &Switch) -> Option<Port> {
    let name = row.str(port_binding::LOGICAL_PORT);
    let rest = name.strip_prefix(switch.name.as_ref())?.strip_prefix('-')?;
    let mut words = row.str(port_binding::ADDRESS).split(' ');
    let mac: Mac = words.next()?.parse().ok()?;
    let networks: Vec<IpNetwork> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let is_own = |ip: IpAddr| switch.ports().flat_map(|own| &own.addresses).any(|own| own.ip() == ip);
    let fits = |net: &IpNetwork| switch.contains(net.ip()) && !is_own(net.ip());
    if !is_name(rest) || networks.is_empty() || networks.len() > 4 || !networks.iter().all(fits) {
        return None;
    }
    let mut address = mac.to_string();
    for network in &networks {
        address.push(' ');
        address.push_str(&network.to_string());
    }
    Some(Port {
        name: name.into(),
        zone: zone.into(),
        switch: switch.name.clone(),
        addresses: networks.iter().map(IpNetwork::ip).collect(),
        gateway: row.str(port_binding::GATEWAY).into(),
        remote: RemotePort { key: u32::try_from(row.int(port_binding::TUNNEL_KEY)).ok()?, address: address.into() },
    })
}
