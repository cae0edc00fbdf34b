//! The wanted state of links and routing rules, and the changes that lead to it. Everything else on a link stays.

use std::net::IpAddr;

use ipnetwork::IpNetwork;

use crate::change::{HostChange, What};
use crate::host::{Mac, Route, Rule, Sysctl};
use crate::observed::{LinkState, Observed};

/// The wanted part of the host's network.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostState {
    pub links: Vec<LinkIntent>,
    /// The flag says whether the rule is for IPv6.
    pub rules: Vec<(bool, Rule)>,
    /// Rules to remove.
    pub stale_rules: Vec<(bool, Rule)>,
}

/// The wanted state of one link. A field that is `None` or empty changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkIntent {
    pub name: String,
    pub mac: Option<Mac>,
    /// Bytes.
    pub mtu: Option<u32>,
    pub checksums_in_software: bool,
    pub sysctls: Vec<(Sysctl, &'static str)>,
    pub forwards_ipv6: bool,
    pub addresses: Vec<Address>,
    /// With their tables.
    pub routes: Vec<(u8, Route)>,
    pub neighbours: Vec<(IpAddr, Mac)>,
    /// What earlier settings left on the link.
    pub stale: Stale,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    pub address: IpNetwork,
    /// The kernel may choose it as source address.
    pub preferred: bool,
}

/// What to remove from a link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stale {
    pub routes: Vec<(u8, Route)>,
    pub neighbours: Vec<IpAddr>,
    pub addresses: Vec<IpNetwork>,
}

/// The changes from `have` to `want`, in the order to make them: new entries are added before stale ones are removed,
/// so that packets always find one. A link that does not exist is left out.
pub fn diff(want: &HostState, have: &Observed) -> Vec<HostChange> {
    let mut changes = Vec::new();
    for intent in &want.links {
        if let Some(state) = have.link(&intent.name) {
            let steps = intent.settings(state).chain(intent.content(state)).chain(intent.stale.steps(state));
            changes.extend(steps.map(|what| HostChange::on(&intent.name, what)));
        }
    }
    let rules = want.rules.iter().filter(|rule| !have.rules.contains(rule));
    changes.extend(rules.map(|&(ipv6, rule)| HostChange::of_host(What::AddRule { ipv6, rule })));
    let stale = want.stale_rules.iter().filter(|rule| have.rules.contains(rule));
    changes.extend(stale.map(|&(ipv6, rule)| HostChange::of_host(What::RemoveRule { ipv6, rule })));
    changes
}

impl LinkIntent {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    fn settings(&self, have: &LinkState) -> impl Iterator<Item = What> {
        let mac = self.mac.filter(|mac| have.link.mac != Some(*mac)).map(What::SetMac);
        let mtu = self.mtu.filter(|mtu| have.link.mtu != *mtu).map(What::SetMtu);
        let differs = |(sysctl, value): &&(Sysctl, &str)| have.sysctls.get(sysctl).is_none_or(|have| have != value);
        let sysctls = self.sysctls.iter().filter(differs).map(|(sysctl, value)| What::SetSysctl(*sysctl, value));
        let forward = (self.forwards_ipv6 && !have.forwards_ipv6).then_some(What::ForwardIpv6);
        let checksums = self.checksums_in_software && have.offloads_checksums;
        let checksums = checksums.then_some(What::ChecksumsInSoftware);
        let up = (!have.link.up).then_some(What::SetUp);
        mac.into_iter().chain(mtu).chain(sysctls).chain(forward).chain(checksums).chain(up)
    }

    fn content(&self, have: &LinkState) -> impl Iterator<Item = What> {
        let addresses = self.addresses.iter().filter(|new| !have.addresses.contains(&new.address));
        let addresses = addresses.map(|&Address { address, preferred }| What::AddAddress { address, preferred });
        let routes = self.routes.iter().filter(|route| !have.routes.contains(route));
        let routes = routes.map(|&(table, route)| What::AddRoute { table, route });
        let neighbours = self.neighbours.iter().filter(|neighbour| !have.neighbours.contains(neighbour));
        let neighbours = neighbours.map(|&(ip, mac)| What::AddNeighbour(ip, mac));
        addresses.chain(routes).chain(neighbours)
    }
}

impl Stale {
    /// Addresses go last: with its last address a link would lose all routes, including those of other programs.
    fn steps(&self, have: &LinkState) -> impl Iterator<Item = What> {
        let routes = self.routes.iter().filter(|route| have.routes.contains(route));
        let routes = routes.map(|&(table, route)| What::RemoveRoute { table, route });
        let neighbours = self.neighbours.iter().copied().map(What::RemoveNeighbour);
        routes.chain(neighbours).chain(self.addresses.iter().copied().map(What::RemoveAddress))
    }
}
