//! What the other clusters have in the interconnection databases. Each row is checked here: what is wrong is named and left
//! out, and the rest is used.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_model::{Mac, Name, PeerCluster, PeerRoute, RemotePort, Subnet, is_zone};
use ovnkube_ovn::ic_sb::{availability_zone, encap, gateway, port_binding, route};
use ovnkube_ovn::nb::logical_switch_port as lsp;
use ovnkube_ovn::{Row, Uuid};
use ovnkube_ovsdb_data::Cache;
use ovnkube_plan::names;

use crate::keys::port_key;
use crate::rows::CLUSTER;
use crate::switches::{Reader, Switch};
use crate::text::{is_chassis, short};

/// The most rows of all other clusters that are used.
const CLUSTERS: usize = 1024;
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
    pub(crate) zone: Name,
    /// What tells its cluster from others of the same name.
    pub(crate) cluster: Option<Name>,
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
    /// Reads the rows of all zones but this cluster's, of its name and earlier ones.
    pub(crate) fn read(reader: Reader<'_>, switches: &[Switch], problems: &mut Vec<String>) -> Self {
        let Reader { databases, nb, zone: own, former, .. } = reader;
        let ic_sb = databases.ic_sb;
        let mut wrong = Vec::new();
        let zones = ic_sb.iter(availability_zone::TABLE);
        let zones = zones.map(|(uuid, row)| (uuid, row.str(availability_zone::NAME)));
        let zones = zones.filter(|(_, name)| *name != own && !former.contains(name)).collect();
        let zones = named(zones, &mut wrong);
        let clusters = zones.values().map(|name| (Name::from(*name), PeerCluster::default())).collect();
        let mut theirs = Self { clusters, ..Self::default() };
        if ic_sb.supports(availability_zone::TABLE, availability_zone::NB_IC_CFG) {
            let rows =
                zones.iter().filter_map(|(uuid, name)| Some((*name, ic_sb.get(availability_zone::TABLE, *uuid)?)));
            theirs.answers = rows.map(|(name, row)| (name.into(), row.int(availability_zone::NB_IC_CFG))).collect();
        }
        theirs.read_gateways(ic_sb, &zones, &mut wrong);
        theirs.read_ports(ic_sb, &zones, switches, nb, &mut wrong);
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
            let encaps = rows.filter_map(|row| read_encap(row)).map(|encap| ((encap.kind.clone(), encap.ip), encap));
            let encaps: BTreeMap<_, Encap> = encaps.collect();
            let encaps = Some(encaps).filter(|encaps| !encaps.is_empty());
            match encaps.filter(|_| is_chassis(name) && self.gateways.len() < GATEWAYS) {
                Some(encaps) => {
                    let (zone, hostname) = ((*zone).into(), short(row.str(gateway::HOSTNAME)).into());
                    self.clusters.entry(Name::clone(&zone)).or_default().gateways += 1;
                    let cluster = row.external_ids().get(CLUSTER).map(Name::from);
                    let encaps = encaps.into_values().collect();
                    self.gateways.insert(name.into(), Gateway { zone, cluster, hostname, encaps });
                }
                None => wrong.push(format!(
                    "cannot use gateway {:?} of cluster {zone}: it has no address that a tunnel can have, its name is not the id of a \
                     chassis, or there are more than {GATEWAYS}; correct it in that cluster",
                    short(name)
                )),
            }
        }
    }

    fn read_ports(
        &mut self,
        ic_sb: &Cache,
        zones: &BTreeMap<Uuid, &str>,
        switches: &[Switch],
        nb: Option<&Cache>,
        wrong: &mut Vec<String>,
    ) {
        let mut taken = Taken::of(switches);
        let of_others = ic_sb.iter(port_binding::TABLE).filter_map(|(_, row)| {
            let zone = zones.get(&row.uuid(port_binding::AVAILABILITY_ZONE)?)?;
            let of = row.str(port_binding::TRANSIT_SWITCH);
            let switch = switches.iter().find(|switch| switch.name.as_ref() == of)?;
            // a port that has just been made has no address yet
            (!row.str(port_binding::ADDRESS).is_empty()).then_some((row, *zone, switch))
        });
        let mut ports: Vec<_> = of_others.collect();
        // who joined earlier has what two want
        ports.sort_by_key(|(row, ..)| (row.int(port_binding::TUNNEL_KEY), row.str(port_binding::LOGICAL_PORT)));
        for (row, zone, switch) in ports {
            let is_free = |name: &str| nb.is_none_or(|nb| !is_taken(nb, name));
            let port = read_port(row, zone, switch).and_then(|mut port| {
                if self.ports.len() >= PORTS {
                    return Err("there are too many".into());
                }
                if !is_free(&port.name) {
                    return Err("the northbound database has another port of this name".into());
                }
                taken.take(&port)?;
                // a cluster that gets another name has gateways of the new one, and ports of both
                let cluster = row.external_ids().get(CLUSTER);
                let is_its = |gateway: &Gateway| {
                    gateway.zone == port.zone || (cluster.is_some() && gateway.cluster.as_deref() == cluster)
                };
                if self.gateways.get(&port.gateway).is_some_and(|gateway| !is_its(gateway)) {
                    port.gateway = Name::default();
                    wrong.push(format!(
                        "port {} of cluster {zone} is on {}, a gateway of another cluster; its packets go nowhere until that cluster \
                         corrects it",
                        port.name,
                        short(row.str(port_binding::GATEWAY))
                    ));
                }
                Ok(port)
            });
            match port {
                Ok(port) => {
                    if let Some(id) = row.external_ids().get(CLUSTER) {
                        self.clusters.entry(zone.into()).or_default().id = Some(id.into());
                    }
                    self.ports.push(port);
                }
                Err(why) => wrong.push(format!(
                    "cannot use port {:?} of cluster {zone} in transit switch {}, address {:?}: {why}; correct it in that cluster",
                    short(row.str(port_binding::LOGICAL_PORT)),
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
                    "cannot use the route to {:?} of cluster {} by {:?}: it is not a prefix, or no port of that cluster in transit \
                     switch {of} has that address; correct it in that cluster",
                    short(row.str(route::IP_PREFIX)),
                    zone,
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
        let mut ports = self.ports.iter().filter(|port| port.switch.as_ref() == switch && port.zone.as_ref() == zone);
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

/// The clusters whose names can be used.
fn named<'a>(mut zones: Vec<(Uuid, &'a str)>, wrong: &mut Vec<String>) -> BTreeMap<Uuid, &'a str> {
    zones.sort_by_key(|(_, name)| *name);
    zones.retain(|(_, name)| {
        if !is_zone(name) {
            wrong.push(format!(
                "cannot use cluster {:?}: its name is not one of at most 63 letters, digits, '-' and '.' with a letter or digit at both \
                 ends; give it another az-name",
                short(name)
            ));
        }
        is_zone(name)
    });
    if zones.len() > CLUSTERS {
        wrong.push(format!("there are {} clusters; the first {CLUSTERS} are used: remove some", zones.len()));
        zones.truncate(CLUSTERS);
    }
    zones.into_iter().collect()
}

/// What ports have that nobody else may.
struct Taken {
    /// Names of this cluster's ports, and of those that were read.
    names: BTreeSet<Name>,
    addresses: BTreeMap<(Name, IpAddr), Name>,
}

impl Taken {
    fn of(switches: &[Switch]) -> Self {
        let ends = |switch: &Switch| {
            switch.ports().map(|own| names::transit(&switch.name, &own.zone).switch_side.into()).collect::<Vec<_>>()
        };
        Self { names: switches.iter().flat_map(ends).collect(), addresses: BTreeMap::new() }
    }

    fn take(&mut self, port: &Port) -> Result<(), String> {
        if self.names.contains(&port.name) {
            return Err("there is another port of this name".into());
        }
        let of = |ip: &IpAddr| self.addresses.get(&(port.switch.clone(), *ip));
        if let Some((ip, other)) = port.addresses.iter().find_map(|ip| Some((ip, of(ip)?))) {
            return Err(format!("port {other} has {ip} too"));
        }
        self.names.insert(port.name.clone());
        let addresses = port.addresses.iter().map(|ip| ((port.switch.clone(), *ip), port.name.clone()));
        self.addresses.extend(addresses);
        Ok(())
    }
}

/// Options of tunnels that ovn-controller knows, with values that it knows.
fn is_option(key: &str, value: &str) -> bool {
    match key {
        "csum" | "is_default" => matches!(value, "true" | "false"),
        "dst_port" => value.parse::<u16>().is_ok_and(|port| port != 0),
        _ => false,
    }
}

/// Whether a host can have this address, for tunnels.
fn is_of_host(ip: IpAddr) -> bool {
    let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    !ip.is_unspecified() && !ip.is_loopback() && !ip.is_multicast() && !is_broadcast
}

fn read_encap(row: &Row) -> Option<Encap> {
    let kind = row.str(encap::TYPE);
    let ip = row.str(encap::IP).parse().ok().filter(|ip| is_of_host(*ip))?;
    let options = row.map(encap::OPTIONS);
    let options = options.iter().filter(|(key, value)| is_option(key, value));
    let options = options.map(|(key, value)| (key.into(), value.into())).collect();
    matches!(kind, "geneve" | "vxlan").then(|| Encap { kind: kind.into(), ip, options })
}

fn read_port(row: &Row, zone: &str, switch: &Switch) -> Result<Port, String> {
    let name = row.str(port_binding::LOGICAL_PORT);
    let rest = name.strip_prefix(switch.name.as_ref()).and_then(|rest| rest.strip_prefix('-'));
    if !rest.is_some_and(is_zone) {
        return Err(format!("its name is not {}- and the name of a cluster", switch.name));
    }
    let Some((mac, networks)) = read_address(row.str(port_binding::ADDRESS)) else {
        return Err("it has no MAC address with one to four addresses after it".into());
    };
    let is_own = |ip: IpAddr| switch.ports().flat_map(|own| &own.addresses).any(|own| own.ip() == ip);
    if let Some(outside) = networks.iter().find(|net| !switch.contains(net.ip())) {
        return Err(format!("{outside} is not in a subnet of the switch"));
    }
    if let Some(own) = networks.iter().find(|net| is_own(net.ip())) {
        return Err(format!("{} is the address of this cluster", own.ip()));
    }
    let mut address = mac.to_string();
    for network in &networks {
        address.push(' ');
        address.push_str(&network.to_string());
    }
    Ok(Port {
        name: name.into(),
        zone: zone.into(),
        switch: switch.name.clone(),
        addresses: networks.iter().map(IpNetwork::ip).collect(),
        gateway: row.str(port_binding::GATEWAY).into(),
        remote: RemotePort { key: port_key(row).ok_or("its tunnel key is none of a port")?, address: address.into() },
    })
}

/// `0a:58:a9:fe:64:4d 169.254.100.77/24`
fn read_address(text: &str) -> Option<(Mac, Vec<IpNetwork>)> {
    let mut words = text.split(' ');
    let mac: Mac = words.next()?.parse().ok().filter(|mac: &Mac| mac.is_unicast())?;
    let networks: Vec<IpNetwork> = words.take(5).map(|word| word.parse().ok()).collect::<Option<_>>()?;
    (1..=4).contains(&networks.len()).then_some((mac, networks))
}

/// Whether a row of ports of switches in NB is another one than that of a port of another cluster.
fn is_taken(nb: &Cache, port: &str) -> bool {
    let mut rows = nb.lookup(lsp::TABLE, port).iter().filter_map(|uuid| nb.get(lsp::TABLE, *uuid));
    rows.any(|row| row.str(lsp::TYPE) != "remote")
}
