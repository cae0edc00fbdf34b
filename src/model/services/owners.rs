//! Whose an address is, beside services': what no service may claim.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::{Family, Name, Node, Subnet};

/// The addresses of a node, each with how it came to it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeIps(BTreeMap<IpAddr, Tie>);

/// In the order in which they count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tie {
    /// The cluster knows the node by it.
    Name,
    /// Its status lists it beside those: it may be on none of its links, as the address that a cloud
    /// translates to the node's.
    Listed,
    /// It is on one of the node's links, where a load balancer may have put it.
    Link,
}

/// Addresses that are somebody's.
#[derive(Debug, Default)]
pub(super) struct Owners {
    pods: Vec<Subnet>,
    routers: Vec<Subnet>,
    nodes: BTreeMap<Name, NodeIps>,
    by_ip: BTreeMap<IpAddr, BTreeSet<(Tie, Name)>>,
}

impl NodeIps {
    /// Those the cluster knows a node by, and others on its links.
    pub fn new(names: impl IntoIterator<Item = IpAddr>, links: impl IntoIterator<Item = IpAddr>) -> Self {
        let mut ips: BTreeMap<_, _> = links.into_iter().map(|ip| (ip, Tie::Link)).collect();
        ips.extend(names.into_iter().map(|ip| (ip, Tie::Name)));
        Self(ips)
    }

    /// With others that were found on its links.
    #[must_use]
    pub fn with_links(&self, links: &[IpAddr]) -> Self {
        let mut all = self.clone();
        for ip in links {
            all.0.entry(*ip).or_insert(Tie::Link);
        }
        all
    }
}

impl Node {
    pub fn ips(&self) -> NodeIps {
        let ip = ipnetwork::IpNetwork::ip;
        let gateway = self.gateway.iter().flat_map(|gateway| &gateway.ips).map(ip);
        let mut ips = NodeIps::new(self.addresses.iter().copied().chain(gateway), self.host_cidrs.iter().map(ip));
        for ip in &self.other_addresses {
            let tie = ips.0.entry(*ip).or_insert(Tie::Listed);
            *tie = Tie::Listed.min(*tie);
        }
        ips
    }
}

impl Owners {
    pub(super) fn new(pods: Vec<Subnet>, routers: Vec<Subnet>) -> Self {
        Self { pods, routers, ..Self::default() }
    }

    /// Notes which addresses a node has; those whose owner that can change.
    pub(super) fn change(&mut self, node: &Name, new: NodeIps) -> Vec<IpAddr> {
        let old = self.nodes.remove(node).unwrap_or_default();
        let changed: BTreeSet<IpAddr> = old.0.keys().chain(new.0.keys()).copied().collect();
        let changed: Vec<IpAddr> = changed.into_iter().filter(|ip| old.0.get(ip) != new.0.get(ip)).collect();
        for ip in &changed {
            let owners = self.by_ip.entry(*ip).or_default();
            if let Some(tie) = old.0.get(ip) {
                owners.remove(&(*tie, node.clone()));
            }
            if let Some(tie) = new.0.get(ip) {
                owners.insert((*tie, node.clone()));
            }
            if owners.is_empty() {
                self.by_ip.remove(ip);
            }
        }
        if !new.0.is_empty() {
            self.nodes.insert(node.clone(), new);
        }
        changed
    }

    /// Whose an address is. `balanced`: a load balancer says that it is the service's; it may have put it
    /// on a node itself.
    pub(super) fn of(&self, ip: IpAddr, balanced: bool) -> Option<String> {
        let node = self.by_ip.get(&ip).and_then(BTreeSet::first);
        if let Some((_, node)) = node.filter(|(tie, _)| *tie != Tie::Link || !balanced) {
            return Some(format!("node {node}'s"));
        }
        let inside = |subnets: &[Subnet]| subnets.iter().any(|subnet| subnet.contains(ip));
        match () {
            () if inside(&self.pods) => Some("in the pod network".to_owned()),
            () if inside(&self.routers) => Some("in a subnet of the cluster's own routers".to_owned()),
            () => None,
        }
    }

    /// The addresses in a range that are nodes', whatever a service says. What is on a link may be there for a
    /// service.
    pub(super) fn nodes_in(&self, range: Subnet) -> impl Iterator<Item = IpAddr> {
        let inside = self.by_ip.range(range.base()..).take_while(move |(ip, _)| range.contains(**ip));
        inside.filter(|(_, owners)| owners.iter().any(|(tie, _)| *tie != Tie::Link)).map(|(ip, _)| *ip)
    }

    /// The address of a family that the cluster knows a node by.
    pub(super) fn node(&self, node: &str, family: Family) -> Option<IpAddr> {
        let ips = self.nodes.get(node)?.0.iter();
        ips.filter(|(_, tie)| **tie == Tie::Name).map(|(ip, _)| *ip).find(|ip| Family::of(*ip) == family)
    }
}
