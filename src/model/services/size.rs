//! How much of a service is served. OVN has the text of all of it in rows, which each node reads.
//!
//! ```text
//!  entries    addresses × ports, again for each node whose rows differ; a node port is at the addresses of all nodes
//!  pairs      entries with a list of endpoints that any node would use × these endpoints
//! ```

use std::collections::BTreeSet;

use super::Services;
use super::places::{Most, Places};
use crate::{ObjectKey, Service, ServicePort, TrafficPolicy};

/// Limit for the addresses of a service times its ports times their endpoints, where all nodes have the same rows.
const MOST_PAIRS: usize = 1_000_000;
/// The same for the rows of all nodes together.
const MOST_PAIRS_ON_NODES: usize = 10_000_000;
/// Limit for the addresses of a service times its ports, in the rows of all nodes together.
const MOST_ENTRIES: usize = 1_000_000;

/// What each port of a service makes.
struct Size {
    entries: usize,
    /// Those of a family that list endpoints of all nodes.
    lists: usize,
}

impl Services {
    /// Sets the nodes where services are served. Returns the services that are so large that another part of them may be served
    /// now.
    pub(crate) fn apply_places(&mut self, places: Places) -> BTreeSet<ObjectKey> {
        if self.places == places {
            return BTreeSet::new();
        }
        let mut large = self.large();
        self.places = places;
        large.extend(self.large());
        large
    }

    fn large(&self) -> BTreeSet<ObjectKey> {
        let is_large = |key: &ObjectKey, service: &Service| {
            let entries = self.most_entries(service).saturating_mul(service.ports.len());
            let endpoints: usize = self.slices(key).map(|(_, slice)| slice.endpoints.len()).sum();
            entries > MOST_ENTRIES || entries.saturating_mul(endpoints) > MOST_PAIRS
        };
        self.iter().filter(|(key, service)| is_large(key, service)).map(|(key, _)| key.clone()).collect()
    }

    /// The ports of a service that are served: so many that their rows have room.
    pub fn ports(&self, key: &ObjectKey) -> &[ServicePort] {
        let Some(service) = self.get(key) else { return &[] };
        service.ports.get(..self.most_ports(key, service)).unwrap_or(&service.ports)
    }

    fn most_ports(&self, key: &ObjectKey, service: &Service) -> usize {
        let count = service.ports.len();
        if self.most_entries(service).saturating_mul(count) <= MOST_ENTRIES {
            return count;
        }
        count.min(MOST_ENTRIES / self.size(key, service).entries.max(1))
    }

    /// How many endpoints of a family each port of a service may have, if it has so many.
    pub(super) fn most_endpoints(&self, key: &ObjectKey, service: &Service, listed: usize) -> Most {
        let all = self.most_entries(service).saturating_mul(service.ports.len());
        // that of most services is found without a look at their endpoints
        if all.saturating_mul(listed) <= MOST_PAIRS {
            return Most { all: listed, in_list: listed };
        }
        self.most(key, service)
    }

    /// The same for any number. Only lists count for each node: of its own endpoints each node needs all, and these are in no other
    /// node's rows. But all may be of one node, which lists them at each of its addresses.
    fn most(&self, key: &ObjectKey, service: &Service) -> Most {
        let ports = self.most_ports(key, service);
        let lists = self.size(key, service).lists * ports;
        let has_own_lists = service.has_node_ports() && service.is_external_local();
        let own_lists = if has_own_lists { self.places.node_port_ips_of_a_node * ports } else { 0 };
        let all = MOST_PAIRS / service.frontends().max(1);
        Most { all: all.min(MOST_PAIRS_ON_NODES / own_lists.max(1)), in_list: MOST_PAIRS_ON_NODES / lists.max(1) }
    }

    /// What each port of a service makes at most, whatever its endpoints are.
    fn most_entries(&self, service: &Service) -> usize {
        let nodes = self.places.nodes.max(1);
        let node_ports = if service.has_node_ports() { 2 * (self.places.node_port_ips.max(1) + nodes) } else { 0 };
        service.addresses().saturating_mul(nodes).saturating_add(node_ports)
    }

    fn size(&self, key: &ObjectKey, service: &Service) -> Size {
        let nodes = self.places.nodes.max(1);
        let is_internal_local = service.internal_policy == TrafficPolicy::Local;
        let is_local = is_internal_local || service.is_external_local();
        let endpoints = || self.slices(key).flat_map(|(_, slice)| &slice.endpoints);
        // nodes differ from all others if an endpoint is their own address, or on them where only such are used
        let hosts = endpoints().map(|endpoint| endpoint.ip).filter(|ip| !self.owners.rules.is_of_pods(*ip));
        let hosts: BTreeSet<_> = hosts.collect();
        let homes: BTreeSet<_> =
            endpoints().filter(|_| is_local).filter_map(|endpoint| endpoint.node.as_ref()).collect();
        // switches of these nodes have lists for external addresses in the rows with their own endpoints
        let has_external = service.addresses() > service.cluster_ips.len();
        let homes_with_lists = if is_internal_local && has_external { homes.len() } else { 0 };
        let by_hints = self.by_hints(key);
        let has_hints = by_hints > 0;
        let is_in_template = self.places.in_template.is_some() && service.fits_template();
        // with these no two nodes have the same rows
        let has_own_ports = service.has_node_ports() && !is_in_template;
        let copies = |differing: usize, is_per_node: bool| match () {
            () if (has_hints || is_per_node) && has_own_ports => nodes,
            () => nodes.min(differing + 1),
        };
        // if one node differs, each has a variable with its endpoints: for its router, with hints for its switch too
        let variables = match () {
            () if has_hints => 2 * nodes,
            () if !hosts.is_empty() => nodes,
            () => 0,
        };
        let node_ports = |of_all: usize| match self.places.in_template {
            _ if !service.has_node_ports() => 0,
            // a row each for switches and routers
            Some(most) if is_in_template => 2 * most + variables,
            _ => of_all.max(1),
        };
        let is_per_node = !hosts.is_empty() || service.is_external_local();
        Size {
            entries: service.addresses() * copies(hosts.len() + homes.len() + by_hints, is_per_node || is_local)
                + node_ports(self.places.node_port_ips),
            lists: service.addresses_of_a_family()
                * copies(hosts.len() + homes_with_lists + by_hints, is_per_node || is_internal_local)
                + node_ports(self.places.node_port_ips_of_a_family),
        }
    }

    /// How many nodes and zones the hints of endpoints name, each of which may have rows of its own. If only hints for one port name
    /// it, these rows have all endpoints of another port.
    fn by_hints(&self, key: &ObjectKey) -> usize {
        let endpoints = self.slices(key).flat_map(|(_, slice)| &slice.endpoints);
        let (mut nodes, mut zones) = (BTreeSet::new(), BTreeSet::new());
        for hints in endpoints.filter_map(|endpoint| endpoint.hints.as_deref()) {
            nodes.extend(&hints.nodes);
            zones.extend(&hints.zones);
        }
        nodes.len() + zones.len()
    }

    /// What is left out of a service: reason and message.
    pub(super) fn excess<'a>(
        &'a self,
        key: &'a ObjectKey,
        service: &'a Service,
    ) -> impl Iterator<Item = (&'static str, String)> + 'a {
        let left_out = service.ports.len() - self.most_ports(key, service);
        let ports = (left_out > 0).then(|| {
            let all = service.ports.len();
            let limit = format!("{MOST_ENTRIES}, the limit for addresses times ports of a service on all nodes");
            let message = format!(
                "cannot use spec.ports: {left_out} of {all} ports are left out: there would be more than {limit}; divide its \
                 addresses or ports among several services"
            );
            ("BadField", message)
        });
        ports.into_iter().chain(self.excess_endpoints(key, service).map(|message| ("BadEndpoint", message)))
    }

    /// The notices about ports whose endpoints are too many.
    fn excess_endpoints<'a>(&'a self, key: &'a ObjectKey, service: &'a Service) -> impl Iterator<Item = String> + 'a {
        let most = self.most(key, service);
        // most services have fewer in all slices together
        let in_all = move |port: &ServicePort| {
            let listed = self
                .slices(key)
                .map(|(_, slice)| slice.numbers(&port.name, port.protocol).count() * slice.endpoints.len());
            listed.sum::<usize>()
        };
        let of = "the limit for addresses times ports times endpoints of a service";
        let too_many = move |port: &ServicePort| match () {
            () if in_all(port) <= most.all.min(most.in_list) => None,
            () if most.in_list < most.all && self.longest_list(key, port) > most.in_list => {
                Some((most.in_list, format!("{MOST_PAIRS_ON_NODES}, {of} on all nodes")))
            }
            () if self.most_listed(key, port) <= most.all => None,
            () if most.all < MOST_PAIRS / service.frontends().max(1) => {
                Some((most.all, format!("{MOST_PAIRS_ON_NODES}, {of} on one node")))
            }
            () => Some((most.all, format!("{MOST_PAIRS}, {of}"))),
        };
        self.ports(key).iter().filter_map(move |port| {
            let (most, limit) = too_many(port)?;
            Some(format!(
                "each family of port {} {} has {most} endpoints at most, ready ones first: with more there would be more than \
                 {limit}; divide the service's addresses or ports among several services",
                port.protocol, port.port
            ))
        })
    }
}
