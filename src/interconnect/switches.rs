//! Transit switches, and the address that this cluster has in each.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_model::{Local, Mac, Name, OwnPort, Subnet, is_zone};
use ovnkube_ovn::ic_nb::transit_switch;
use ovnkube_ovn::ic_sb::port_binding;
use ovnkube_ovn::nb::{logical_router_port as lrp, logical_switch as ls, logical_switch_port as lsp};
use ovnkube_ovn::{Row, Uuid};
use ovnkube_ovsdb_data::Cache;
use ovnkube_plan::{Offer, names};

use crate::databases::Databases;
use crate::keys::{Keys, port_key};
use crate::rows::is_ours;
use crate::text::short;

/// External id of a transit switch with the addresses of one cluster; its name follows. Set once, so that the cluster keeps
/// its addresses whatever happens to it.
pub(crate) const CLAIM: &str = "ovnkube-addresses-";
/// External id with the subnets of a transit switch, as Kube-OVN writes it.
const SUBNET: &str = "subnet";
/// The most transit switches that are used.
const MOST: usize = 64;
/// The most that are compared with each other, to find these.
const COMPARED: usize = 2 * MOST;
/// The most claims of others in a switch that are read, and the most addresses of one: everyone can write any number of them.
const CLAIMS: usize = 1024;
const ADDRESSES: usize = 4;
/// Names of our own switches, and first words of the names of their ports.
const RESERVED: [&str; 10] = ["cr", "join", "stor", "jtor", "etor", "k8s", "rtos", "rtoj", "rtoe", "ext"];
/// Those that come before the name of a node alone: a port of a switch `k8s-a` could be that of the node `a-b`.
const BEFORE_NODES: [&str; 3] = ["cr-", "k8s-", "stor-"];

/// A transit switch that can be used.
pub(crate) struct Switch {
    pub(crate) name: Name,
    pub(crate) uuid: Uuid,
    pub(crate) subnets: Vec<Subnet>,
    /// Tunnel key; `None` until some cluster has chosen it.
    pub(crate) key: Option<u32>,
    pub(crate) own: Option<OwnPort>,
    /// Those of its addresses that are claimed.
    claims: BTreeSet<IpAddr>,
    /// The ports that this cluster still has under earlier names.
    pub(crate) former: Vec<OwnPort>,
    /// Addresses that other clusters have claimed.
    pub(crate) claimed: BTreeSet<IpAddr>,
    pub(crate) external_ids: Row,
}

impl Switch {
    /// Whether an address is of one of its subnets.
    pub(crate) fn contains(&self, ip: IpAddr) -> bool {
        self.subnets.iter().any(|subnet| subnet.contains(ip))
    }

    /// The ports of this cluster.
    pub(crate) fn ports(&self) -> impl Iterator<Item = &OwnPort> {
        self.own.iter().chain(&self.former)
    }

    /// Both ends of each of them.
    pub(crate) fn ends(&self) -> impl Iterator<Item = names::TransitPorts> {
        self.ports().map(|own| names::transit(&self.name, &own.zone))
    }

    /// The subnets that have none of these addresses.
    pub(crate) fn without(&self, addresses: &BTreeSet<IpAddr>) -> Vec<Subnet> {
        let has = |subnet: &Subnet| addresses.iter().any(|ip| subnet.contains(*ip));
        self.subnets.iter().filter(|subnet| !has(subnet)).copied().collect()
    }

    /// The subnets in which this cluster claims no address.
    pub(crate) fn unclaimed(&self) -> Vec<Subnet> {
        self.without(&self.claims)
    }

    /// The addresses of the port that this cluster has under one of its names, as its own database says.
    pub(crate) fn networks(&self, nb: &Cache, zone: &str) -> Vec<IpNetwork> {
        let name = names::transit(&self.name, zone).router_side;
        let rows = nb.named(lrp::TABLE, &name);
        rows.flat_map(|(_, row)| row.strs(lrp::NETWORKS)).filter_map(|text| text.parse().ok()).collect()
    }

    /// Somebody may remove claims, as by writing all external_ids of the switch anew. Until the addresses are claimed again, the ports of
    /// this cluster keep them, unless another cluster claims one. NB must say that a port has it, since all that IC-SB says can be anybody's;
    /// and IC-SB too, since others take what they do not see there.
    fn keep(&mut self, reader: Reader<'_>) {
        let Some(nb) = reader.nb else { return };
        for zone in reader.former.iter().copied().chain([reader.zone]) {
            let of_zone = self.ports().filter(|port| port.zone.as_ref() == zone);
            let mut addresses: BTreeSet<IpAddr> = of_zone.flat_map(|port| &port.addresses).map(IpNetwork::ip).collect();
            let lacking = self.without(&addresses);
            if lacking.is_empty() {
                continue;
            }
            let is_lacking =
                |ip: &IpAddr| lacking.iter().any(|subnet| subnet.contains(*ip)) && !self.claimed.contains(ip);
            let mut kept: BTreeSet<IpAddr> =
                self.networks(nb, zone).iter().map(IpNetwork::ip).filter(is_lacking).collect();
            if kept.is_empty() {
                continue;
            }
            let there = shared_addresses(reader.databases.ic_sb, &names::transit(&self.name, zone).switch_side);
            kept.retain(|ip| there.contains(ip));
            addresses.extend(kept);
            let port = self.own_port(zone, &addresses.into_iter().collect::<Vec<_>>());
            if zone == reader.zone {
                self.own = port;
            } else {
                self.former.retain(|port| port.zone.as_ref() != zone);
                self.former.extend(port);
            }
        }
    }

    /// Has one of its subnets less, and no addresses there.
    pub(crate) fn leave_out(&mut self, subnet: Subnet) {
        self.subnets.retain(|other| *other != subnet);
        let is_left = |own: &mut OwnPort| {
            own.addresses.retain(|net| !subnet.contains(net.ip()));
            !own.addresses.is_empty()
        };
        self.own.take_if(|own| !is_left(own));
        self.former.retain_mut(is_left);
    }

    /// Has these addresses no more, and leaves them to other clusters.
    pub(crate) fn give_up(&mut self, addresses: BTreeSet<IpAddr>) {
        let is_left = |own: &mut OwnPort| {
            own.addresses.retain(|net| !addresses.contains(&net.ip()));
            !own.addresses.is_empty()
        };
        self.own.take_if(|own| !is_left(own));
        self.claims.retain(|ip| !addresses.contains(ip));
        self.claimed.extend(addresses);
    }

    /// The port with the addresses that are claimed. A switch may have got one more subnet since; the MAC address stays.
    fn own_port(&self, zone: &str, addresses: &[IpAddr]) -> Option<OwnPort> {
        let with_length = |subnet: &Subnet| {
            let ip = addresses.iter().find(|ip| subnet.contains(**ip))?;
            IpNetwork::new(*ip, subnet.prefix()).ok()
        };
        let addresses: Vec<IpNetwork> = self.subnets.iter().filter_map(with_length).collect();
        let mac = Mac::of(addresses.iter().find(|net| net.is_ipv4()).or(addresses.first())?.ip());
        Some(OwnPort { zone: zone.into(), mac, addresses, key: None })
    }
}

/// Whose switches are read.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) databases: Databases<'a>,
    /// Where it is known.
    pub(crate) nb: Option<&'a Cache>,
    pub(crate) offer: &'a Offer,
    /// The name of this cluster; empty: another cluster has it.
    pub(crate) zone: &'a str,
    /// Its earlier names.
    pub(crate) former: &'a BTreeSet<&'a str>,
}

/// The switches that can be used, the one with the shortest name first: `ts`, `ts1`, … `ts10`.
pub(crate) fn read(reader: Reader<'_>, problems: &mut Vec<String>) -> Vec<Switch> {
    let ic_nb = reader.databases.ic_nb;
    let (mut found, mut bad) = (Vec::new(), Vec::new());
    for (uuid, row) in ic_nb.iter(transit_switch::TABLE) {
        match switch(uuid, row, reader.zone, reader.former) {
            Ok(switch) => found.push(switch),
            Err(problem) => bad.push(problem),
        }
    }
    if found.len() > MOST {
        problems.push(format!(
            "there are {} transit switches; at most {MOST} are used, those that are there the longest: remove some",
            found.len()
        ));
    }
    bad.sort();
    problems.append(&mut bad);
    // of two that exclude each other all clusters use the same, and a new one takes none away that is in use
    let mut keys = Keys::read(reader.databases, reader.nb);
    found.sort_by_cached_key(|switch| (keys.age(&switch.name), switch.name.len(), switch.name.clone()));
    found.truncate(COMPARED);
    let mut switches: Vec<Switch> = Vec::new();
    for mut switch in found {
        switch.keep(reader);
        match problem(&switch, &switches, reader).map_or_else(|| keys.of(&switch.name), Err) {
            Ok(key) => {
                switch.key = key;
                problems.extend(key.and_then(|_| keys.stray(&switch.name)));
                set_port_keys(&mut switch, reader.databases.ic_sb);
                switches.push(switch);
            }
            Err(problem) => problems.push(format!("cannot use transit switch {}: {problem}", switch.name)),
        }
    }
    switches.truncate(MOST);
    switches.sort_by(by_length);
    switches
}

fn by_length(a: &Switch, b: &Switch) -> Ordering {
    (a.name.len(), &a.name).cmp(&(b.name.len(), &b.name))
}

/// The addresses that a port has in IC-SB: there they follow a MAC address.
fn shared_addresses(ic_sb: &Cache, port: &str) -> BTreeSet<IpAddr> {
    let rows = ic_sb.iter(port_binding::TABLE).map(|(_, row)| row);
    let rows = rows.filter(|row| row.str(port_binding::LOGICAL_PORT) == port);
    let words = rows.flat_map(|row| row.str(port_binding::ADDRESS).split(' ').skip(1));
    words.filter_map(|word| word.parse::<IpNetwork>().ok()).map(|net| net.ip()).collect()
}

fn set_port_keys(switch: &mut Switch, ic_sb: &Cache) {
    for own in switch.own.iter_mut().chain(&mut switch.former) {
        let mut ports = ic_sb.iter(port_binding::TABLE);
        let name = names::transit(&switch.name, &own.zone).switch_side;
        let port = ports.find(|(_, row)| row.str(port_binding::LOGICAL_PORT) == name);
        own.key = port.and_then(|(_, row)| port_key(row));
    }
}

/// What to say if the cluster has prefixes of a family that no switch has.
pub(crate) fn missing_family(prefixes: &[Subnet], switches: &[Switch]) -> Option<String> {
    let subnets = || switches.iter().flat_map(|switch| &switch.subnets);
    let lacks = |v6: bool| {
        prefixes.iter().any(|prefix| prefix.is_ipv6() == v6) && !subnets().any(|subnet| subnet.is_ipv6() == v6)
    };
    let (family, example) = match (switches.is_empty(), lacks(false), lacks(true)) {
        (false, true, _) => ("IPv4", "169.254.100.0/24"),
        (false, _, true) => ("IPv6", "fe80:a9fe:64::/112"),
        _ => return None,
    };
    Some(format!(
        "pods of other clusters do not reach those here by {family}: no transit switch has a subnet of that family; add one to \
         external_ids:{SUBNET} of each in IC-NB, such as {example}"
    ))
}

fn switch(uuid: Uuid, row: &Row, zone: &str, former: &BTreeSet<&str>) -> Result<Switch, String> {
    let name = row.str(transit_switch::NAME);
    if !is_zone(name) {
        return Err(format!(
            "cannot use transit switch {:?}: its name is not one of at most 63 letters, digits, '-' and '.' with a letter or digit at \
             both ends; make one with such a name in IC-NB, and remove this one",
            short(name)
        ));
    }
    if RESERVED.contains(&name) || BEFORE_NODES.iter().any(|word| name.starts_with(word)) {
        return Err(format!(
            "cannot use transit switch {name}: switches and ports of this cluster have such names; make one in IC-NB whose name does not \
             begin with {}, and is none of {}",
            BEFORE_NODES.join(", "),
            RESERVED.join(", ")
        ));
    }
    let ids = row.map(transit_switch::EXTERNAL_IDS);
    let text = ids.get(SUBNET).unwrap_or_default();
    let subnets: Vec<Subnet> = text.split(',').filter_map(|text| text.trim().parse().ok()).collect();
    let families: BTreeSet<bool> = subnets.iter().map(|subnet| subnet.is_ipv6()).collect();
    if subnets.is_empty() || families.len() != subnets.len() {
        return Err(format!(
            "cannot use transit switch {name}: external_ids:{SUBNET} in IC-NB is {:?}; set it to one subnet of each family, \
             such as 169.254.100.0/24,fe80:a9fe:64::/112",
            short(text)
        ));
    }
    let claims = ids.iter().filter_map(|(key, value)| Some((key.strip_prefix(CLAIM)?, value)));
    let parsed =
        |text: &str| text.split(' ').take(ADDRESSES).filter_map(|text| text.parse().ok()).collect::<Vec<IpAddr>>();
    let mut external_ids = Row::new(transit_switch::TABLE);
    external_ids
        .put(transit_switch::EXTERNAL_IDS.id(), row.get(transit_switch::EXTERNAL_IDS).cloned().unwrap_or_default());
    let mut switch = Switch {
        name: name.into(),
        uuid,
        subnets,
        key: None,
        own: None,
        claims: BTreeSet::new(),
        former: Vec::new(),
        claimed: BTreeSet::new(),
        external_ids,
    };
    let mut of_others = 0;
    for (of, text) in claims {
        if of == zone {
            switch.own = switch.own_port(of, &parsed(text));
            switch.claims = switch.own.iter().flat_map(|port| &port.addresses).map(IpNetwork::ip).collect();
        } else if former.contains(of) {
            let port = switch.own_port(of, &parsed(text));
            switch.former.extend(port);
        } else if of_others < CLAIMS {
            of_others += 1;
            switch.claimed.extend(parsed(text));
        }
    }
    Ok(switch)
}

/// Key of `other_config` with the transit switch that a switch stands for.
const TRANSIT: &str = "interconn-ts";

/// Why a switch cannot be used, and what to do. `others`: those that are used.
fn problem(switch: &Switch, others: &[Switch], reader: Reader<'_>) -> Option<String> {
    if reader.offer.nodes.contains(&switch.name) {
        return Some("a node has this name; give the switch another one".to_owned());
    }
    subnets(switch, others, &reader.offer.local)
        .map(|problem| format!("its subnet {problem}; give the switch another subnet in all clusters"))
        .or_else(|| ports(switch, others).map(|problem| format!("{problem}; give it another name")))
        .or_else(|| {
            northbound(switch, reader.nb?).map(|problem| format!("{problem}; give one of the two another name"))
        })
}

/// Its subnet becomes a route of the cluster's router.
fn subnets(switch: &Switch, others: &[Switch], local: &Local) -> Option<String> {
    switch.subnets.iter().find_map(|net| {
        let others = others.iter().flat_map(|other| other.subnets.iter().map(move |of| (other, of)));
        let mut others = others.filter(|(_, of)| of.overlaps(*net));
        let other = || others.next().map(|(other, of)| format!("overlaps {of} of transit switch {}", other.name));
        local.find(*net).or_else(other).map(|taken| format!("{net} {taken}"))
    })
}

/// `a` in `b-c` and `a-b` in `c` have ports of the same name.
fn ports(switch: &Switch, others: &[Switch]) -> Option<String> {
    let mut ends = switch.ports().map(|own| names::transit(&switch.name, &own.zone));
    let taken = |end: &names::TransitPorts| {
        let of = |other: &&Switch| {
            let mut ports = other.ports().map(|own| names::transit(&other.name, &own.zone));
            ports.any(|port| port.router_side == end.router_side || port.switch_side == end.switch_side)
        };
        others.iter().find(of)
    };
    ends.find_map(|end| Some(format!("its port {} is called as that in {}", end.router_side, taken(&end)?.name)))
}

/// Rows that somebody else has made.
fn northbound(switch: &Switch, nb: &Cache) -> Option<String> {
    let rows = |table, name: &str| nb.named(table, name).map(|(_, row)| row).collect::<Vec<_>>();
    let is_transit = |row: &Row| row.map(ls::OTHER_CONFIG).get(TRANSIT) == Some(switch.name.as_ref());
    if rows(ls::TABLE, &switch.name).iter().any(|row| !is_transit(row) && !is_ours(row)) {
        return Some("the northbound database has another switch of this name".to_owned());
    }
    switch.ports().find_map(|own| {
        let ends = names::transit(&switch.name, &own.zone);
        let is_other = |row: &Row| !is_ours(row) && row.str(lsp::TYPE) != "router";
        // one that leads nowhere is left of OVN's own daemon
        let leads_there = |row: &Row| row.map(lsp::OPTIONS).get("router-port") == Some(ends.router_side.as_str());
        let leads_elsewhere =
            || nb.iter(lsp::TABLE).any(|(_, row)| leads_there(row) && row.str(lsp::NAME) != ends.switch_side.as_str());
        let port = if rows(lsp::TABLE, &ends.switch_side).iter().any(|row| is_other(row)) {
            &ends.switch_side
        } else if rows(lrp::TABLE, &ends.router_side).iter().any(|row| !is_ours(row)) && leads_elsewhere() {
            &ends.router_side
        } else {
            return None;
        };
        Some(format!("the northbound database has another port {port}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(subnets: &str, claim: &str) -> Switch {
        let claim_key = format!("{CLAIM}az1");
        let row = Row::new(transit_switch::TABLE)
            .with(transit_switch::NAME, "ts")
            .with(transit_switch::EXTERNAL_IDS, [(SUBNET, subnets), (claim_key.as_str(), claim)]);
        switch(Uuid::default(), &row, "az1", &BTreeSet::new()).unwrap_or_else(|problem| panic!("{problem}"))
    }

    #[test]
    fn a_port_stays_when_its_switch_gets_another_subnet() {
        let before = with("169.254.100.0/24", "169.254.100.7").own.unwrap();
        for subnets in ["169.254.100.0/24,fe80:a9fe:64::/112", "fe80:a9fe:64::/112,169.254.100.0/24"] {
            let switch = with(subnets, "169.254.100.7");
            assert_eq!(switch.own.as_ref(), Some(&before));
            assert_eq!(switch.unclaimed(), ["fe80:a9fe:64::/112".parse().unwrap()]);
            let both = with(subnets, "169.254.100.7 fe80:a9fe:64::7");
            assert_eq!((both.unclaimed().len(), both.own.unwrap().mac), (0, before.mac));
        }
    }

    #[test]
    fn a_family_that_no_switch_has_is_said() {
        let prefixes: [Subnet; 2] = ["10.128.0.0/14".parse().unwrap(), "fd01::/48".parse().unwrap()];
        let (four, both) = (with("169.254.100.0/24", ""), with("169.254.101.0/24,fe80:a9fe:65::/112", ""));
        assert_eq!(missing_family(&prefixes, &[]), None);
        assert!(missing_family(&prefixes, &[with("169.254.100.0/24", "")]).unwrap().contains("by IPv6"));
        assert_eq!(missing_family(&prefixes[..1], &[with("169.254.100.0/24", "")]), None);
        assert!(missing_family(&prefixes, &[with("fe80:a9fe:64::/112", "")]).unwrap().contains("by IPv4"));
        assert_eq!(missing_family(&prefixes, &[four, both]), None);
    }
}
