//! Whose an address is, beside services': what no service may claim.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::rules::{AddressRules, Refusal};
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
    pub(super) rules: AddressRules,
    /// What nodes reach by an address: the API server, and the like.
    connections: BTreeMap<IpAddr, Name>,
    /// The API server's own, by the endpoints of its service.
    api_servers: BTreeSet<IpAddr>,
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
    pub(super) fn new(rules: AddressRules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Notes what nodes reach by which address; the addresses for which that changes.
    pub(super) fn connect(&mut self, new: BTreeMap<IpAddr, Name>) -> Vec<IpAddr> {
        let old = std::mem::replace(&mut self.connections, new);
        let all: BTreeSet<IpAddr> = old.keys().chain(self.connections.keys()).copied().collect();
        all.into_iter().filter(|ip| old.get(ip) != self.connections.get(ip)).collect()
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

    /// Notes where the API server is; the addresses that come or go.
    pub(super) fn api_servers(&mut self, new: BTreeSet<IpAddr>) -> Vec<IpAddr> {
        let old = std::mem::replace(&mut self.api_servers, new);
        old.symmetric_difference(&self.api_servers).copied().collect()
    }

    fn connection(&self, ip: IpAddr) -> Option<&str> {
        let is_api_server = || self.api_servers.contains(&ip).then_some("the API server");
        self.connections.get(&ip).map(AsRef::as_ref).or_else(is_api_server)
    }

    /// Why a service may not have an address beside its cluster IPs. `balanced`: a load balancer says that it is the
    /// service's, and may have put it on a node itself; else a user wrote it down.
    pub(super) fn refuse(&self, ip: IpAddr, balanced: bool) -> Option<Refusal> {
        let external = &self.rules.external;
        let connection =
            || self.connection(ip).filter(|_| !external.names(ip)).map(|what| Refusal::Needed(what.to_owned()));
        let taken = || self.owner(ip, balanced).map(Refusal::Taken);
        external.refuse(ip).filter(|_| !balanced).or_else(taken).or_else(connection)
    }

    /// Whose an address is: a node's, where it is not services', or of the cluster's own network.
    pub(super) fn owner(&self, ip: IpAddr, balanced: bool) -> Option<String> {
        let node = self.by_ip.get(&ip).filter(|_| !self.rules.is_of_services(ip)).and_then(BTreeSet::first);
        let node = node.filter(|(tie, _)| *tie != Tie::Link || !balanced).map(|(_, node)| format!("node {node}'s"));
        node.or_else(|| self.rules.part(ip).map(str::to_owned))
    }

    /// The addresses in a range that are nodes', whatever a service says. What is on a link may be there for a
    /// service.
    pub(super) fn nodes_in(&self, range: Subnet) -> impl Iterator<Item = IpAddr> {
        let inside = self.by_ip.range(range.base()..).take_while(move |(ip, _)| range.contains(**ip));
        let nodes = inside.filter(|(_, owners)| owners.iter().any(|(tie, _)| *tie != Tie::Link)).map(|(ip, _)| *ip);
        nodes.filter(|ip| !self.rules.is_of_services(*ip))
    }

    /// What a Node says that it has and services have.
    pub(super) fn misplaced(&self, node: &str) -> impl Iterator<Item = IpAddr> {
        let ips = self.nodes.get(node).into_iter().flat_map(|ips| &ips.0);
        let own = ips.filter(|(_, tie)| **tie != Tie::Link).map(|(ip, _)| *ip);
        own.filter(|ip| self.rules.is_of_services(*ip))
    }

    /// The address of a family that the cluster knows a node by.
    pub(super) fn node(&self, node: &str, family: Family) -> Option<IpAddr> {
        let ips = self.nodes.get(node)?.0.iter();
        let named = ips.filter(|(_, tie)| **tie == Tie::Name).map(|(ip, _)| *ip);
        named.filter(|ip| !self.rules.is_of_services(*ip)).find(|ip| Family::of(*ip) == family)
    }
}
