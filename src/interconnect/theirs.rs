//! What the other clusters have in the interconnection databases. Each row is checked here: what is wrong is named and left
//! out, and the rest is used.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use ipnetwork::IpNetwork;
use ovnkube_model::{Mac, Name, PeerCluster, PeerRoute, RemotePort, Subnet, is_zone};
use ovnkube_ovn::ic_sb::{availability_zone, gateway, port_binding, route};
use ovnkube_ovn::nb::logical_switch_port as lsp;
use ovnkube_ovn::{Row, Uuid};
use ovnkube_ovsdb_data::Cache;
use ovnkube_plan::names;

use crate::in_use;
use crate::keys::port_key;
use crate::rows::CLUSTER;
use crate::switches::{Reader, Switch};
use crate::text::{note, short};
use crate::tunnels::{Gateway, Tunnels};

/// The most rows of all other clusters that are used.
const CLUSTERS: usize = 1024;
const GATEWAYS: usize = 1024;
const PORTS: usize = 1024;
const ROUTES: usize = 16_384;
/// Of what it has in use, a cluster keeps as many as this part of these numbers, whatever others offer.
const KEPT: usize = 16;

/// The rows of the other clusters.
#[derive(Default)]
pub(crate) struct Theirs {
    pub(crate) gateways: BTreeMap<Name, Gateway>,
    pub(crate) ports: Vec<Port>,
    pub(crate) routes: Vec<PeerRoute>,
    pub(crate) clusters: BTreeMap<Name, PeerCluster>,
    /// The numbers that they have followed.
    pub(crate) answers: BTreeMap<Name, i64>,
    /// Those that have the mark of ovnkube.
    pub(crate) followers: BTreeSet<Name>,
}

/// A port of another cluster in a transit switch.
pub(crate) struct Port {
    pub(crate) name: Name,
    pub(crate) zone: Name,
    pub(crate) switch: Name,
    pub(crate) addresses: Vec<IpAddr>,
    mac: Mac,
    /// The mark of its cluster, or of the one whose mark it has written.
    pub(crate) cluster: Option<Name>,
    /// The gateway that it is on; empty: none.
    pub(crate) gateway: Name,
    pub(crate) remote: RemotePort,
}

impl Theirs {
    /// Reads the rows of all zones but this cluster's, of its name and earlier ones.
    pub(crate) fn read(reader: Reader<'_>, switches: &[Switch], problems: &mut Vec<String>) -> Self {
        let Reader { databases, nb, zone: own, former, .. } = reader;
        let ic_sb = databases.ic_sb;
        let zones = ic_sb.iter(availability_zone::TABLE);
        let zones = zones.map(|(uuid, row)| (uuid, row.str(availability_zone::NAME)));
        let zones = zones.filter(|(_, name)| *name != own && !former.contains(name)).collect();
        let zones = named(zones, &ages(ic_sb, nb), problems);
        let clusters = zones.values().map(|name| (Name::from(*name), PeerCluster::default())).collect();
        let mut theirs = Self { clusters, ..Self::default() };
        if ic_sb.supports(availability_zone::TABLE, availability_zone::NB_IC_CFG) {
            let rows =
                zones.iter().filter_map(|(uuid, name)| Some((*name, ic_sb.get(availability_zone::TABLE, *uuid)?)));
            theirs.answers = rows.map(|(name, row)| (name.into(), row.int(availability_zone::NB_IC_CFG))).collect();
        }
        theirs.read_gateways(reader, &zones, problems);
        theirs.read_ports(ic_sb, &zones, switches, nb, problems);
        theirs.read_routes(ic_sb, &zones, switches, nb, problems);
        let gateways = theirs.gateways.values().map(|gateway| (&gateway.zone, &gateway.cluster));
        let ports = theirs.ports.iter().map(|port| (&port.zone, &port.cluster));
        let marked = gateways.chain(ports).filter(|(_, cluster)| cluster.is_some());
        theirs.followers = marked.map(|(zone, _)| zone.clone()).collect();
        theirs
    }

    fn read_gateways(&mut self, reader: Reader<'_>, zones: &BTreeMap<Uuid, &str>, wrong: &mut Vec<String>) {
        let (ic_sb, tunnels) = (reader.databases.ic_sb, Tunnels::of(reader));
        let rows = ic_sb.iter(gateway::TABLE);
        let rows =
            rows.filter_map(|(_, row)| Some((*zones.get(&row.uuid(gateway::AVAILABILITY_ZONE)?)?, row.as_ref())));
        let mut rows: Vec<(&str, &Row)> = rows.collect();
        rows.sort_by_key(|(zone, row)| (*zone, row.str(gateway::NAME)));
        let mut found: Vec<(Name, Gateway)> = Vec::new();
        for (zone, row) in rows {
            let name = row.str(gateway::NAME);
            match tunnels.read_gateway(ic_sb, zone, row) {
                Ok(gateway) => found.push((name.into(), gateway)),
                Err(why) => {
                    note(wrong, || format!("cannot use gateway {:?} of cluster {zone}: {why}", short(name)));
                }
            }
        }
        let there = LazyCell::new(|| in_use::gateways(reader.databases.sb));
        let is_in_use = |(name, _): &(Name, Gateway)| there.contains(name.as_ref());
        for (name, gateway) in shared(found, (GATEWAYS, "gateways"), |(_, gateway)| &gateway.zone, is_in_use, wrong) {
            self.clusters.entry(gateway.zone.clone()).or_default().gateways += 1;
            self.gateways.insert(name, gateway);
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
        let has = |name: &str| nb.is_some_and(|nb| in_use::has_port(nb, name));
        let is_in_use = |(row, ..): &(&Arc<Row>, &str, &Switch)| has(row.str(port_binding::LOGICAL_PORT));
        for (row, zone, switch) in shared(ports, (PORTS, "ports"), |(_, zone, _)| zone, is_in_use, wrong) {
            let is_free = |name: &str| nb.is_none_or(|nb| !is_taken(nb, name));
            let port = read_port(row, zone, switch).and_then(|mut port| {
                if !is_free(&port.name) {
                    return Err("the northbound database has another port of this name".into());
                }
                taken.take(&port)?;
                // a cluster that gets another name has gateways of the new one, and ports of both
                let is_its = |gateway: &Gateway| {
                    gateway.zone == port.zone || (port.cluster.is_some() && gateway.cluster == port.cluster)
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
                Ok(port) => self.ports.push(port),
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
        nb: Option<&Cache>,
        wrong: &mut Vec<String>,
    ) {
        let mut rows = Vec::new();
        for (uuid, row) in ic_sb.iter(route::TABLE) {
            let Some(zone) = row.uuid(route::AVAILABILITY_ZONE).and_then(|uuid| zones.get(&uuid)) else { continue };
            let of = row.str(route::TRANSIT_SWITCH);
            // routes of other tables than the main one are for routers that ask for them
            if row.str(route::ROUTE_TABLE).is_empty() && switches.iter().any(|switch| switch.name.as_ref() == of) {
                rows.push((*zone, row.str(route::IP_PREFIX), row.str(route::NEXTHOP), of, uuid));
            }
        }
        rows.sort_unstable();
        let mut ports: Ports<'_> = BTreeMap::new();
        for port in &self.ports {
            ports.extend(port.addresses.iter().map(|ip| ((port.zone.as_ref(), port.switch.as_ref(), *ip), port)));
        }
        let mut found = Vec::new();
        for (zone, prefix, next_hop, switch, uuid) in rows {
            match read_route(&ports, (zone, switch), (prefix, next_hop), uuid) {
                Some(route) => found.push(route),
                None => note(wrong, || {
                    format!(
                        "cannot use the route to {:?} of cluster {zone} by {:?}: it is not a prefix, or no port of that cluster in \
                         transit switch {switch} has that address; correct it in that cluster",
                        short(prefix),
                        short(next_hop)
                    )
                }),
            }
        }
        let there = LazyCell::new(|| nb.map(in_use::routes).unwrap_or_default());
        let is_in_use = |route: &PeerRoute| there.get(&route.next_hop).is_some_and(|of| of.contains(&route.prefix));
        self.routes = shared(found, (ROUTES, "routes"), |route| &route.zone, is_in_use, wrong);
        self.routes.sort();
    }

    /// Leaves out what is in other switches than these.
    pub(crate) fn keep(&mut self, switches: &[Switch]) {
        let is_kept = |name: &Name| switches.iter().any(|switch| switch.name == *name);
        self.ports.retain(|port| is_kept(&port.switch));
        self.routes.retain(|route| is_kept(&route.switch));
    }

    /// Gives each cluster its place: by its tunnel key in the first switch where it has one. Who joins a switch gets a higher one than
    /// all that are there, and keeps it: all clusters see the same order, also after a restart.
    pub(crate) fn order(&mut self, switches: &[Switch]) {
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
}

/// Ports by cluster, switch and address.
type Ports<'a> = BTreeMap<(&'a str, &'a str, IpAddr), &'a Port>;

/// The next hop must be one of the `ports` of the cluster in the switch: else traffic could be led to any address.
fn read_route(
    ports: &Ports<'_>,
    (zone, switch): (&str, &str),
    (prefix, next_hop): (&str, &str),
    uuid: Uuid,
) -> Option<PeerRoute> {
    let prefix: IpNetwork = prefix.parse().ok()?;
    let next_hop: IpAddr = next_hop.parse().ok()?;
    let port = ports.get(&(zone, switch, next_hop)).filter(|_| prefix.is_ipv6() == next_hop.is_ipv6())?;
    let (zone, switch, id) = (port.zone.clone(), port.switch.clone(), text(uuid));
    Some(PeerRoute { prefix: Subnet::of(prefix), zone, switch, next_hop, id })
}

fn text(uuid: Uuid) -> Name {
    let mut text = [0; 36];
    Name::from(&*uuid.hyphenated().encode_lower(&mut text))
}

/// What is used of rows that are in order. If there are more than `most`, each cluster has its share: one that offers much takes
/// nothing from one that offers little. Names cost nothing, and many of them would make the shares small: so a cluster keeps what it has
/// in use, up to a part of `most`.
fn shared<T>(
    rows: Vec<T>,
    (most, what): (usize, &str),
    zone: impl Fn(&T) -> &str,
    is_in_use: impl Fn(&T) -> bool,
    wrong: &mut Vec<String>,
) -> Vec<T> {
    if rows.len() <= most {
        return rows;
    }
    let mut counts: BTreeMap<Name, Count> = BTreeMap::new();
    for row in &rows {
        let count = counts.entry(zone(row).into()).or_default();
        count.offered += 1;
        count.kept += usize::from(count.kept < most / KEPT && is_in_use(row));
    }
    let share = share(&counts, most);
    for (zone, count) in &counts {
        let (all, used) = (count.offered, count.used(share));
        if used < all {
            wrong.push(format!("cluster {zone} offers {all} {what}, of which {used} are used; have it offer fewer"));
        }
    }
    let mut left: BTreeMap<Name, usize> = counts.into_iter().map(|(zone, count)| (zone, count.used(share))).collect();
    let is_used = |row: &T| {
        let Some(left) = left.get_mut(zone(row)).filter(|left| **left > 0) else { return false };
        *left -= 1;
        true
    };
    rows.into_iter().filter(is_used).take(most).collect()
}

/// How many rows a cluster has.
#[derive(Default)]
struct Count {
    offered: usize,
    /// Of those that are in use, as many as it keeps whatever others offer.
    kept: usize,
}

impl Count {
    /// How many of them are used.
    fn used(&self, share: usize) -> usize {
        self.offered.min(share.max(self.kept))
    }
}

/// How many rows each cluster may have, so that there are at most `most`. What one does not need is there for the others.
fn share(counts: &BTreeMap<Name, Count>, most: usize) -> usize {
    let fits = |share: usize| counts.values().map(|count| count.used(share)).sum::<usize>() <= most;
    let (mut share, mut too_many) = (0, most + 1);
    while share + 1 < too_many {
        let middle = usize::midpoint(share, too_many);
        if fits(middle) {
            share = middle;
        } else {
            too_many = middle;
        }
    }
    share
}

/// Orders zones: those of which this cluster has a port in use are first, then by the least tunnel key of their ports: who joins later
/// gets a higher one. By the keys alone, zones that somebody invents could all be old.
fn ages(ic_sb: &Cache, nb: Option<&Cache>) -> BTreeMap<Uuid, (bool, u32)> {
    let mut ages: BTreeMap<Uuid, (bool, u32)> = BTreeMap::new();
    for (_, row) in ic_sb.iter(port_binding::TABLE) {
        let (Some(key), Some(zone)) = (port_key(row), row.uuid(port_binding::AVAILABILITY_ZONE)) else { continue };
        let is_new = nb.is_none_or(|nb| !in_use::has_port(nb, row.str(port_binding::LOGICAL_PORT)));
        let age = (is_new, key);
        ages.entry(zone).and_modify(|least| *least = age.min(*least)).or_insert(age);
    }
    ages
}

/// The clusters whose names can be used. A new one takes no place away.
fn named<'a>(
    mut zones: Vec<(Uuid, &'a str)>,
    ages: &BTreeMap<Uuid, (bool, u32)>,
    wrong: &mut Vec<String>,
) -> BTreeMap<Uuid, &'a str> {
    zones.sort_by_key(|(uuid, name)| (ages.get(uuid).copied().unwrap_or((true, u32::MAX)), *name));
    zones.retain(|(_, name)| {
        if !is_zone(name) {
            note(wrong, || {
                format!(
                    "cannot use cluster {:?}: its name is not one of at most 63 letters, digits, '-' and '.' with a letter or digit at \
                     both ends; give it another az-name",
                    short(name)
                )
            });
        }
        is_zone(name)
    });
    if zones.len() > CLUSTERS {
        wrong.push(format!(
            "there are {} clusters; the {CLUSTERS} that joined first are used: remove some",
            zones.len()
        ));
        zones.truncate(CLUSTERS);
    }
    zones.into_iter().collect()
}

/// What ports have that nobody else may.
struct Taken {
    /// Names of this cluster's ports, and of those that were read.
    names: BTreeSet<Name>,
    /// By transit switch: the ports that have an address.
    addresses: BTreeMap<(Name, IpAddr), Name>,
    macs: BTreeMap<(Name, Mac), Name>,
}

impl Taken {
    fn of(switches: &[Switch]) -> Self {
        let ends = |switch: &Switch| {
            switch.ports().map(|own| names::transit(&switch.name, &own.zone).switch_side.into()).collect::<Vec<_>>()
        };
        Self { names: switches.iter().flat_map(ends).collect(), addresses: BTreeMap::new(), macs: BTreeMap::new() }
    }

    fn take(&mut self, port: &Port) -> Result<(), String> {
        if self.names.contains(&port.name) {
            return Err("there is another port of this name".into());
        }
        let of = |ip: &IpAddr| self.addresses.get(&(port.switch.clone(), *ip));
        if let Some((ip, other)) = port.addresses.iter().find_map(|ip| Some((ip, of(ip)?))) {
            return Err(format!("port {other} has {ip} too"));
        }
        let mac = (port.switch.clone(), port.mac);
        if let Some(other) = self.macs.get(&mac) {
            return Err(format!("port {other} has its MAC address {} too", port.mac));
        }
        self.names.insert(port.name.clone());
        self.macs.insert(mac, port.name.clone());
        let addresses = port.addresses.iter().map(|ip| ((port.switch.clone(), *ip), port.name.clone()));
        self.addresses.extend(addresses);
        Ok(())
    }
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
    // a switch finds its ports by these
    if switch.ports().any(|own| own.mac == mac) {
        return Err(format!("{mac} is the MAC address of this cluster"));
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
        mac,
        cluster: row.external_ids().get(CLUSTER).map(Name::from),
        gateway: row.str(port_binding::GATEWAY).into(),
        remote: RemotePort { key: port_key(row).ok_or("its tunnel key is none of a port")?, address: address.into() },
    })
}

/// `0a:58:a9:fe:64:4d 169.254.100.77/24`
pub(crate) fn read_address(text: &str) -> Option<(Mac, Vec<IpNetwork>)> {
    let mut words = text.split(' ');
    let mac: Mac = words.next()?.parse().ok().filter(|mac: &Mac| mac.is_unicast())?;
    let networks: Vec<IpNetwork> = words.take(5).map(|word| word.parse().ok()).collect::<Option<_>>()?;
    (1..=4).contains(&networks.len()).then_some((mac, networks))
}

/// Whether a row of ports of switches in NB is another one than that of a port of another cluster.
fn is_taken(nb: &Cache, port: &str) -> bool {
    nb.named(lsp::TABLE, port).any(|(_, row)| row.str(lsp::TYPE) != "remote")
}
