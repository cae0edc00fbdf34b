//! The owners of addresses other than services: no service may claim these.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::claims::By;
use super::rules::{AddressRules, Refusal};
use crate::{Family, Name, Node, Subnet};

const API_SERVER: &str = "the API server";

/// The addresses of a node, each with its origin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeIps(BTreeMap<IpAddr, AddressOrigin>);

/// In order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AddressOrigin {
    /// The cluster knows the node by this address.
    Name,
    /// The node's status lists it in addition: it may be on none of its links, such as an address that a
    /// cloud translates to the node's.
    Listed,
    /// Only the node's agent names it, as its gateway's.
    Gateway,
    /// It is on one of the node's links, where a load balancer may have put it.
    Link,
}

/// Addresses that no service may have, or only under conditions.
#[derive(Debug, Default)]
pub(super) struct Owners {
    pub(super) rules: AddressRules,
    /// What nodes reach at an address: the API server, and the like.
    connections: BTreeMap<IpAddr, Name>,
    /// The API server's own addresses, by the endpoints of its service.
    api_servers: BTreeSet<IpAddr>,
    nodes: BTreeMap<Name, NodeIps>,
    by_ip: BTreeMap<IpAddr, BTreeSet<(AddressOrigin, Name)>>,
}

impl NodeIps {
    /// From the addresses the cluster knows a node by, and others on its links.
    pub fn new(names: impl IntoIterator<Item = IpAddr>, links: impl IntoIterator<Item = IpAddr>) -> Self {
        let mut ips: BTreeMap<_, _> = links.into_iter().map(|ip| (ip, AddressOrigin::Link)).collect();
        ips.extend(names.into_iter().map(|ip| (ip, AddressOrigin::Name)));
        Self(ips)
    }

    fn add(&mut self, ip: IpAddr, origin: AddressOrigin) {
        let known = self.0.entry(ip).or_insert(origin);
        *known = origin.min(*known);
    }

    /// These addresses and others that were found on the node's links.
    #[must_use]
    pub fn with_links(&self, links: &[IpAddr]) -> Self {
        let mut all = self.clone();
        for ip in links {
            all.0.entry(*ip).or_insert(AddressOrigin::Link);
        }
        all
    }
}

impl AddressOrigin {
    /// The last origin that keeps an address from a service that claims it so. What only an agent names is no reason to take away what a
    /// load balancer has given: whoever controls a node could name any address.
    fn last_against(by: By) -> Self {
        match by {
            By::ClusterIp => Self::Gateway,
            By::LoadBalancer => Self::Listed,
            By::Spec => Self::Link,
        }
    }
}

impl Node {
    pub fn ips(&self) -> NodeIps {
        let ip = ipnetwork::IpNetwork::ip;
        let mut ips = NodeIps::new(self.addresses.iter().copied(), self.host_cidrs.iter().map(ip));
        for ip in self.gateway.iter().flat_map(|gateway| &gateway.ips).map(ip) {
            let is_listed = self.other_addresses.contains(&ip);
            ips.add(ip, if is_listed { AddressOrigin::Name } else { AddressOrigin::Gateway });
        }
        for ip in &self.other_addresses {
            ips.add(*ip, AddressOrigin::Listed);
        }
        ips
    }
}

impl Owners {
    pub(super) fn new(rules: AddressRules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Sets what nodes reach at which address; returns the addresses for which that changes.
    pub(super) fn connect(&mut self, new: BTreeMap<IpAddr, Name>) -> Vec<IpAddr> {
        let old = std::mem::replace(&mut self.connections, new);
        let all: BTreeSet<IpAddr> = old.keys().chain(self.connections.keys()).copied().collect();
        all.into_iter().filter(|ip| old.get(ip) != self.connections.get(ip)).collect()
    }

    /// Sets the addresses of a node; returns those whose owner may have changed.
    pub(super) fn change(&mut self, node: &Name, new: NodeIps) -> Vec<IpAddr> {
        let old = self.nodes.remove(node).unwrap_or_default();
        let changed: BTreeSet<IpAddr> = old.0.keys().chain(new.0.keys()).copied().collect();
        let changed: Vec<IpAddr> = changed.into_iter().filter(|ip| old.0.get(ip) != new.0.get(ip)).collect();
        for ip in &changed {
            let owners = self.by_ip.entry(*ip).or_default();
            if let Some(origin) = old.0.get(ip) {
                owners.remove(&(*origin, node.clone()));
            }
            if let Some(origin) = new.0.get(ip) {
                owners.insert((*origin, node.clone()));
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

    /// Sets the addresses of the API server; returns those that came or went.
    pub(super) fn api_servers(&mut self, new: BTreeSet<IpAddr>) -> Vec<IpAddr> {
        let old = std::mem::replace(&mut self.api_servers, new);
        old.symmetric_difference(&self.api_servers).copied().collect()
    }

    /// What nodes depend on, by address.
    pub(super) fn needed(&self) -> BTreeMap<IpAddr, Name> {
        let mut all: BTreeMap<IpAddr, Name> = self.api_servers.iter().map(|ip| (*ip, API_SERVER.into())).collect();
        all.extend(self.connections.clone());
        all
    }

    fn connection(&self, ip: IpAddr) -> Option<&str> {
        let is_api_server = || self.api_servers.contains(&ip).then_some(API_SERVER);
        self.connections.get(&ip).map(AsRef::as_ref).or_else(is_api_server)
    }

    /// Why a service may not have an external address.
    pub(super) fn refuse(&self, ip: IpAddr, by: By) -> Option<Refusal> {
        let external = &self.rules.external;
        let connection =
            || self.connection(ip).filter(|_| !external.names(ip)).map(|what| Refusal::Needed(what.to_owned()));
        let taken = || self.owner(ip, by).map(Refusal::Taken);
        external.refuse(ip).filter(|_| by == By::Spec).or_else(taken).or_else(connection)
    }

    /// The owner of an address: a node, unless services have its range, or the cluster's own network.
    pub(super) fn owner(&self, ip: IpAddr, by: By) -> Option<String> {
        let node = self.by_ip.get(&ip).filter(|_| !self.rules.is_of_services(ip)).and_then(BTreeSet::first);
        let last = AddressOrigin::last_against(by);
        let node = node.filter(|(origin, _)| *origin <= last).map(|(_, node)| format!("node {node}'s"));
        node.or_else(|| self.rules.part(ip).map(str::to_owned))
    }

    /// The addresses in a range that belong to nodes, whatever services claim. Addresses on links do not count: they
    /// may be there for a service.
    pub(super) fn nodes_in(&self, range: Subnet) -> impl Iterator<Item = IpAddr> {
        let inside = self.by_ip.range(range.base()..).take_while(move |(ip, _)| range.contains(**ip));
        let nodes = inside
            .filter(|(_, owners)| owners.iter().any(|(origin, _)| *origin != AddressOrigin::Link))
            .map(|(ip, _)| *ip);
        nodes.filter(|ip| !self.rules.is_of_services(*ip))
    }

    /// The addresses that a Node claims and services have.
    pub(super) fn misplaced(&self, node: &str) -> impl Iterator<Item = IpAddr> {
        let ips = self.nodes.get(node).into_iter().flat_map(|ips| &ips.0);
        let own = ips.filter(|(_, origin)| **origin != AddressOrigin::Link).map(|(ip, _)| *ip);
        own.filter(|ip| self.rules.is_of_services(*ip))
    }

    /// The address of a family by which others reach a node: one that its status has, or else one that only its agent names.
    pub(super) fn node(&self, node: &str, family: Family) -> Option<IpAddr> {
        let ips = self.nodes.get(node)?.0.iter().map(|(ip, origin)| (*origin, *ip));
        let is_name = |origin: AddressOrigin| matches!(origin, AddressOrigin::Name | AddressOrigin::Gateway);
        let named = ips.filter(|(origin, ip)| is_name(*origin) && Family::of(*ip) == family);
        named.filter(|(_, ip)| !self.rules.is_of_services(*ip)).min().map(|(_, ip)| ip)
    }
}
