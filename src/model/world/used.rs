//! The subnets that nodes' pods run in, taken from the pods' status: edited annotations cannot change it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;

use ovnkube_ipam::{ClusterSubnet, Subnet};

use super::World;
use super::pod_entry::PodEntry;
use crate::node::has_room;
use crate::{Node, Pod, PodAddresses};

/// What a node's pods say about its annotated subnets, strongest claim first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Claims {
    Used,
    /// None of its pods runs.
    Unused,
    Contradicted,
}

/// The first subnet of each family.
pub(super) fn best(used: &[Subnet]) -> Vec<Subnet> {
    let of = |is_ipv6| used.iter().find(|subnet| subnet.is_ipv6() == is_ipv6).copied();
    [false, true].into_iter().filter_map(of).collect()
}

impl World {
    /// How the node's pods support its annotation.
    pub(super) fn claims(&self, name: &str) -> Claims {
        let annotated = |subnet: &Subnet| self.nodes.get(name).is_some_and(|node| node.subnets.contains(subnet));
        match best(&self.used_subnets(name)).as_slice() {
            [] => Claims::Unused,
            used if used.iter().all(annotated) => Claims::Used,
            _ => Claims::Contradicted,
        }
    }

    /// The subnets that the node's running pods are in, the best ones first: the annotated one, then that of the most pods.
    pub(super) fn used_subnets(&self, name: &str) -> Vec<Subnet> {
        let node = self.nodes.get(name);
        // a node that manages its own subnet has annotated it
        if node.is_some_and(|node| node.foreign_subnet.is_some()) {
            return Vec::new();
        }
        let is_annotated = |subnet: &Subnet| node.is_some_and(|node| node.subnets.contains(subnet));
        let mut pods: BTreeMap<Subnet, usize> = BTreeMap::new();
        for pod in self.pods_on(name).filter_map(|key| self.pods.get(key)).map(|entry| &entry.pod) {
            let subnets = pod.runs_with().filter_map(|ip| self.used_subnet(ip, pod, node));
            subnets.for_each(|subnet| *pods.entry(subnet).or_default() += 1);
        }
        let mut ranked: Vec<_> =
            pods.into_iter().map(|(subnet, count)| (is_annotated(&subnet), count, subnet)).map(Reverse).collect();
        ranked.sort();
        ranked.into_iter().map(|Reverse((.., subnet))| subnet).collect()
    }

    /// Subnets that the node has or is annotated with, and that no pod has an address of, but for pods that run with others.
    pub(super) fn idle_subnets(&self, name: &str) -> Vec<Subnet> {
        let node = self.nodes.get(name);
        let has = |entry: &PodEntry, subnet: &Subnet| {
            let pod = &entry.pod;
            let mut runs = pod.runs_with().filter(|ip| ip.is_ipv6() == subnet.is_ipv6()).peekable();
            if runs.peek().is_some() {
                return runs.any(|ip| self.used_subnet(ip, pod, node) == Some(*subnet));
            }
            // what a pod runs with is certain
            let annotated = pod.annotated.iter().filter(|_| pod.runs_with().next().is_none());
            let mut annotated = annotated.flat_map(|annotated| &annotated.addresses.ips);
            entry.addresses.iter().flat_map(PodAddresses::each).any(|ip| subnet.contains(ip))
                || annotated.any(|address| Subnet::of(*address) == *subnet)
        };
        let entries = || self.pods_on(name).filter_map(|key| self.pods.get(key));
        let held = self.node_networks.get(name).into_iter().flat_map(|network| &network.subnets);
        let all = held.chain(node.into_iter().flat_map(|node| &node.subnets));
        all.filter(|subnet| !entries().any(|entry| has(entry, subnet))).copied().collect()
    }

    /// The node's subnet that a pod with this address is in. A subnet of the usual length follows from the address;
    /// for another length the pods' annotations tell it. Whoever writes these gets the node no more than its share: a larger subnet counts
    /// only if it is the node's already.
    fn used_subnet(&self, ip: IpAddr, pod: &Pod, node: Option<&Node>) -> Option<Subnet> {
        let range: &ClusterSubnet = self.settings.cluster_subnets.iter().find(|range| range.cidr.contains(ip))?;
        let annotated = node.and_then(|node| node.subnets.iter().copied().find(|subnet| subnet.contains(ip)));
        if let Some(usual) = annotated.filter(|subnet| subnet.prefix() == range.host_prefix) {
            return Some(usual);
        }
        let known = pod.annotated.iter().flat_map(|annotated| &annotated.addresses.ips);
        let wired = known.map(|address| (address.ip(), Subnet::of(*address))).find(|(have, _)| *have == ip);
        let is_share = |subnet: &Subnet| subnet.prefix() >= range.host_prefix || self.is_of_node(*subnet, pod, node);
        let is_possible = |subnet: &Subnet| range.cidr.contains_subnet(*subnet) && has_room(*subnet);
        let wired = wired.map(|(_, subnet)| subnet).filter(is_possible).filter(is_share);
        let usual = || ipnetwork::IpNetwork::new(ip, range.host_prefix).ok().map(Subnet::of);
        wired.or(annotated).or_else(usual)
    }

    /// Whether the node of a pod has the subnet, or is annotated with it.
    fn is_of_node(&self, subnet: Subnet, pod: &Pod, node: Option<&Node>) -> bool {
        let network = pod.node.as_ref().and_then(|name| self.node_networks.get(name));
        let had = network.into_iter().flat_map(|network| &network.subnets);
        node.into_iter().flat_map(|node| &node.subnets).chain(had).any(|own| *own == subnet)
    }
}
