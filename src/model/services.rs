//! Services with their endpoints, and which endpoints a packet may go to.
//!
//! ```text
//!  service ──port──▶ Backends: the endpoints of all its slices under the port's name, each once
//!                       ├ cluster(topology) on any node; near ones where all carry hints
//!                       └ local(node)      on one node
//! ```
//!
//! Both prefer ready endpoints. If there are none, they return those that still serve while terminating, and
//! otherwise nothing. The controller and the node's agent both use this, so that a packet is treated alike
//! wherever it comes in.

mod claims;
pub(crate) mod kept_out;
mod owners;
pub(crate) mod places;
mod rules;
mod size;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use self::claims::{By, Claims, Frontend};
pub use self::owners::NodeIps;
use self::owners::Owners;
use self::places::{Most, Places};
use self::rules::Refusal;
pub use self::rules::{AddressRules, ExternalIps};
use crate::service::MOST_REPORTED;
use crate::{
    EndpointSlice, Family, Hints, Name, Notice, Object, ObjectKey, Protocol, Service, ServicePort, Severity, SlicePort,
    Subnet,
};

/// All services and slices, by service.
#[derive(Debug, Default)]
pub struct Services {
    /// Boxed, since up to half of a B-tree's slots are empty.
    known: BTreeMap<ObjectKey, Box<Service>>,
    /// Slices by their service, which may not exist; sorted by name. Most services have one.
    slices: BTreeMap<ObjectKey, Vec<(Name, EndpointSlice)>>,
    /// The service of each slice.
    service_of: BTreeMap<ObjectKey, ObjectKey>,
    claims: Claims,
    owners: Owners,
    places: Places,
}

impl Services {
    /// No services, and the rules for their addresses.
    pub fn new(rules: AddressRules) -> Self {
        Self { owners: Owners::new(rules), ..Self::default() }
    }

    /// Sets the addresses that nodes depend on, with what they reach there, as `the API server`: no service may
    /// take them. Returns the services at an address for which that changes.
    pub fn apply_connections(&mut self, connections: BTreeMap<IpAddr, Name>) -> BTreeSet<ObjectKey> {
        let changed = self.owners.connect(connections);
        changed.into_iter().flat_map(|ip| self.at(ip)).collect()
    }

    /// Sets the addresses of a node, none for one that is gone. Returns the services at an address that came
    /// or went.
    pub fn apply_node(&mut self, node: &Name, ips: NodeIps) -> BTreeSet<ObjectKey> {
        let changed = self.owners.change(node, ips);
        changed.into_iter().flat_map(|ip| self.at(ip)).collect()
    }

    /// Applies a service. Returns it if anything changed, and others that claim addresses it had or has.
    pub fn apply_service(&mut self, key: &ObjectKey, new: Option<Service>) -> BTreeSet<ObjectKey> {
        let old = self.known.get(key).map(AsRef::as_ref);
        if old == new.as_ref() {
            return BTreeSet::new();
        }
        let mut affected = self.claims.change(key, old, new.as_ref());
        affected.insert(key.clone());
        // whether the service may have an address, and so keep it from others, depends on who wrote it
        let balanced = |service: Option<&Service>| -> BTreeSet<IpAddr> {
            service.into_iter().flat_map(Service::balanced_ips).collect()
        };
        for ip in balanced(old).symmetric_difference(&balanced(new.as_ref())) {
            self.claims.at(*ip, &mut affected);
        }
        match new {
            Some(service) => self.known.insert(key.clone(), Box::new(service)),
            None => self.known.remove(key),
        };
        affected
    }

    /// Applies a slice. Returns the services whose endpoints change, and those at changed addresses of the API server.
    pub fn apply_slice(&mut self, key: &ObjectKey, new: Option<EndpointSlice>) -> BTreeSet<ObjectKey> {
        let mut affected = self.change_slice(key, new);
        if let Some(api_server) = affected.iter().find(|service| is_api_server(service)) {
            let endpoints = self.slices(api_server).flat_map(|(_, slice)| slice.endpoints.iter());
            let changed = self.owners.api_servers(endpoints.map(|endpoint| endpoint.ip).collect());
            affected.extend(changed.into_iter().flat_map(|ip| self.at(ip)));
        }
        affected
    }

    fn change_slice(&mut self, key: &ObjectKey, new: Option<EndpointSlice>) -> BTreeSet<ObjectKey> {
        let mut affected = BTreeSet::new();
        // sorted, for [`EndpointSlice::numbers`]
        let new = new.map(|mut slice| {
            slice.ports.sort_unstable();
            slice
        });
        let service = new.as_ref().and_then(|slice| slice.service.clone());
        let service = service.map(|name| ObjectKey { namespace: key.namespace.clone(), name });
        let old = self.service_of.get(key).cloned();
        if let Some(old) = old.filter(|old| Some(old) != service.as_ref()) {
            self.service_of.remove(key);
            if let Some(slices) = self.slices.get_mut(&old) {
                slices.retain(|(name, _)| *name != key.name);
                if slices.is_empty() {
                    self.slices.remove(&old);
                }
            }
            affected.insert(old);
        }
        if let (Some(slice), Some(service)) = (new, service) {
            let slices = self.slices.entry(service.clone()).or_default();
            let place = slices.binary_search_by(|(name, _)| name.cmp(&key.name));
            let known = place.ok().and_then(|at| slices.get_mut(at));
            if known.as_ref().is_none_or(|known| known.1 != slice) {
                match (known, place) {
                    (Some(known), _) => known.1 = slice,
                    (None, Ok(at) | Err(at)) => {
                        slices.reserve_exact(1);
                        slices.insert(at, (key.name.clone(), slice));
                    }
                }
                self.service_of.insert(key.clone(), service.clone());
                affected.insert(service);
            }
        }
        affected
    }

    pub fn get(&self, key: &ObjectKey) -> Option<&Service> {
        self.known.get(key).map(AsRef::as_ref)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Service)> {
        self.known.iter().map(|(key, service)| (key, service.as_ref()))
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The slices of a service, by name.
    pub fn slices(&self, key: &ObjectKey) -> impl Iterator<Item = (&Name, &EndpointSlice)> {
        self.slices.get(key).into_iter().flatten().map(|(name, slice)| (name, slice))
    }

    /// The cluster IPs of a service that belong neither to an older service nor to another owner.
    pub fn cluster_ips(&self, key: &ObjectKey, port: &ServicePort) -> Vec<IpAddr> {
        let ips = self.get(key).map(|service| service.cluster_ips.as_slice()).unwrap_or_default();
        let is_free = |ip: &IpAddr| {
            self.cluster_ip_taken_by(*ip).is_none() && self.conflicting_service_at(key, port, *ip).is_none()
        };
        ips.iter().copied().filter(is_free).collect()
    }

    /// The external addresses of a service's port that the service may have and that belong to no other service.
    pub fn external_ips(&self, key: &ObjectKey, port: &ServicePort) -> Vec<IpAddr> {
        let Some(service) = self.get(key) else { return Vec::new() };
        let is_free =
            |ip: &IpAddr| self.refuse(service, *ip).is_none() && self.conflicting_service_at(key, port, *ip).is_none();
        service.claimed_external_ips().filter(is_free).collect()
    }

    /// Why a service may not have an external address that it claims.
    fn refuse(&self, service: &Service, ip: IpAddr) -> Option<Refusal> {
        let is_balanced = service.balanced_ips().any(|balanced| balanced == ip);
        self.owners.refuse(ip, if is_balanced { By::LoadBalancer } else { By::Spec })
    }

    /// The owner of a cluster IP other than its service: service ranges can overlap others by mistake. Addresses on
    /// a node's link do not count: a local proxy of the service, such as a DNS cache, has its address there.
    fn cluster_ip_taken_by(&self, ip: IpAddr) -> Option<String> {
        self.owners.owner(ip, By::ClusterIp)
    }

    /// The node port, unless an older service has it.
    pub fn node_port(&self, key: &ObjectKey, port: &ServicePort) -> Option<u16> {
        let number = port.node_port?;
        self.node_port_conflict(key, port).is_none().then_some(number)
    }

    /// The address of a family by which others reach a node: one that its status has, or else one that only its agent names.
    pub fn node_ip(&self, node: &str, family: Family) -> Option<IpAddr> {
        self.owners.node(node, family)
    }

    /// Addresses that a Node claims in a range of services; they are ignored.
    pub fn misplaced(&self, node: &str) -> impl Iterator<Item = IpAddr> {
        self.owners.misplaced(node)
    }

    /// Addresses of nodes in `range`, except those in the configured ranges of services.
    pub fn nodes_in(&self, range: Subnet) -> impl Iterator<Item = IpAddr> {
        self.owners.nodes_in(range)
    }

    /// What nodes depend on, by address: the API server, databases, their DNS.
    pub fn needed(&self) -> BTreeMap<IpAddr, Name> {
        self.owners.needed()
    }

    fn at(&self, ip: IpAddr) -> BTreeSet<ObjectKey> {
        let mut all = BTreeSet::new();
        self.claims.at(ip, &mut all);
        all
    }

    fn conflicting_service_at(&self, key: &ObjectKey, port: &ServicePort, ip: IpAddr) -> Option<&ObjectKey> {
        // a service that may not have an address does not keep it from others
        let may_have = |by: &ObjectKey| self.get(by).is_some_and(|service| self.refuse(service, ip).is_none());
        self.claims.conflicting_service(key, Frontend::Address(ip, port.protocol, port.port), may_have)
    }

    fn node_port_conflict(&self, key: &ObjectKey, port: &ServicePort) -> Option<&ObjectKey> {
        self.claims.conflicting_service(key, Frontend::NodePort(port.protocol, port.node_port?), |_| true)
    }

    /// All endpoints of a family behind a port of a service, in whatever state; of too many the ready ones first. Lists of them
    /// may be shorter.
    pub fn backends(&self, key: &ObjectKey, port: &ServicePort, family: Family) -> Backends<'_> {
        let mut best = self.listed(key, port, family);
        let most = self.get(key).map(|service| self.most_endpoints(key, service, best.len()));
        let Most { all: most, in_list } = most.unwrap_or(Most { all: usize::MAX, in_list: usize::MAX });
        if best.len() > most {
            let mut left: Vec<_> = best.into_iter().collect();
            left.sort_by_key(|(backend, candidate)| (candidate.state, *backend));
            left.truncate(most);
            best = left.into_iter().collect();
        }
        Backends { all: best, in_list }
    }

    /// The endpoints of the family that has most, without a limit.
    fn most_listed(&self, key: &ObjectKey, port: &ServicePort) -> usize {
        Family::ALL.into_iter().map(|family| self.listed(key, port, family).len()).max().unwrap_or_default()
    }

    /// The longest list that a node may have of them, without a limit.
    fn longest_list(&self, key: &ObjectKey, port: &ServicePort) -> usize {
        let of_family = |family| Backends { all: self.listed(key, port, family), in_list: usize::MAX }.longest_list();
        Family::ALL.into_iter().map(of_family).max().unwrap_or_default()
    }

    /// The same as [`Self::backends`] without a limit.
    fn listed(&self, key: &ObjectKey, port: &ServicePort, family: Family) -> BTreeMap<Backend, Candidate<'_>> {
        let all_are_ready = self.get(key).is_some_and(|service| service.publish_not_ready);
        let mut best: BTreeMap<Backend, Candidate<'_>> = BTreeMap::new();
        for (_, slice) in self.slices(key) {
            for number in slice.numbers(&port.name, port.protocol) {
                let rules = &self.owners.rules;
                let is_refused = |ip| rules.is_of_routers(ip) || rules.is_tunnel(ip, port.protocol, number);
                let is_meant = |ip| Family::of(ip) == family && !is_refused(ip);
                for endpoint in slice.endpoints.iter().filter(|endpoint| is_meant(endpoint.ip)) {
                    let state = match () {
                        () if endpoint.ready || all_are_ready => State::Ready,
                        () if endpoint.serving && endpoint.terminating => State::Terminating,
                        () => State::Away,
                    };
                    let candidate = Candidate { state, node: endpoint.node.as_ref(), hints: endpoint.hints.as_deref() };
                    // while the control plane rearranges slices an endpoint may be in two of them
                    let backend = Backend { ip: endpoint.ip, port: number };
                    let known = best.entry(backend).or_insert(candidate);
                    if candidate.state < known.state {
                        *known = candidate;
                    }
                }
            }
        }
        best
    }

    /// The notices about a service; of each kind as many as somebody would read.
    pub fn notices(&self, key: &ObjectKey) -> Vec<Notice> {
        let Some(service) = self.known.get(key) else { return Vec::new() };
        let notice = |reason, message| Notice {
            object: Object::Service { key: key.clone(), uid: service.uid.clone() },
            severity: Severity::Warning,
            reason,
            message,
        };
        let own = service.bad.iter().cloned().chain(self.unusable_ranges(key));
        let own = own.map(|bad| notice("BadField", format!("cannot use {}: {}", bad.field, bad.problem)));
        let slices = self.slices(key).flat_map(|(name, slice)| {
            let message = move |bad: &crate::BadField| {
                format!("cannot use {} of EndpointSlice {name}: {}", bad.field, bad.problem)
            };
            slice.bad.iter().map(move |bad| notice("BadEndpoint", message(bad)))
        });
        let tunnels = self.slices(key).filter_map(|(name, slice)| Some((name, self.tunnel_of(slice)?)));
        let tunnels = tunnels.map(|(name, (ip, port))| {
            let why =
                "it is a node's tunnel endpoint, so it is left out; use another port, or a pod without host network";
            notice("BadEndpoint", format!("cannot use {ip} UDP {port} of EndpointSlice {name}: {why}"))
        });
        let routers = self.slices(key).filter_map(|(name, slice)| {
            let ip = slice.endpoints.iter().map(|endpoint| endpoint.ip).find(|ip| self.owners.rules.is_of_routers(*ip))?;
            let why =
                "it is in a subnet of the cluster's own routers, so it is left out, as all in it are; use another address";
            Some(notice("BadEndpoint", format!("cannot use {ip} of EndpointSlice {name}: {why}")))
        });
        let mistaken = service.cluster_ips.iter().filter_map(|ip| Some((ip, self.cluster_ip_taken_by(*ip)?)));
        let mistaken = mistaken.map(|(ip, whose)| {
            let remedy = "recreate the service with an address of another ServiceCIDR";
            notice("AddressConflict", format!("cannot serve cluster IP {ip}: it is {whose}; {remedy}"))
        });
        let refused = service.claimed_external_ips().filter_map(|ip| Some((ip, self.refuse(service, ip)?)));
        let refused = refused.map(|(ip, why)| {
            let reason = match why {
                Refusal::Taken(_) | Refusal::Needed(_) => "AddressConflict",
                Refusal::Disabled | Refusal::NotAllowed => "ExternalIPNotAllowed",
            };
            notice(reason, format!("cannot serve external address {ip}: {why}"))
        });
        let ports = service.ports.iter().flat_map(|port| {
            let ips = service.cluster_ips.iter().copied().chain(service.claimed_external_ips());
            // an address with another owner is reported as such, not as a conflict of services
            let ips = ips.filter(|ip| self.owners.owner(*ip, By::LoadBalancer).is_none());
            let addresses = ips.filter_map(move |ip| {
                let conflicting_service = self.conflicting_service_at(key, port, ip)?;
                let message =
                    format!("cannot serve {ip} {} {}: it is service {conflicting_service}'s", port.protocol, port.port);
                Some(notice("AddressConflict", message))
            });
            let conflicting_service = port.node_port.and_then(|number| {
                let conflicting_service = self.node_port_conflict(key, port)?;
                let message =
                    format!("cannot serve node port {} {number}: it is service {conflicting_service}'s", port.protocol);
                Some(notice("NodePortConflict", message))
            });
            addresses.chain(conflicting_service)
        });
        let excess = self.excess(key, service).map(|(reason, message)| notice(reason, message)).take(MOST_REPORTED);
        let (slices, left_out) = (slices.take(MOST_REPORTED), tunnels.chain(routers).take(MOST_REPORTED));
        let (refused, ports) = (refused.take(MOST_REPORTED), ports.take(MOST_REPORTED));
        own.chain(slices).chain(excess).chain(left_out).chain(mistaken).chain(refused).chain(ports).collect()
    }

    /// The first endpoint of a slice that is a node's tunnel endpoint, with its port.
    fn tunnel_of(&self, slice: &EndpointSlice) -> Option<(IpAddr, u16)> {
        let rules = &self.owners.rules;
        let is_meant = |port: &&SlicePort| port.protocol == Protocol::Udp && port.port == rules.tunnels;
        let port = slice.ports.iter().find(is_meant)?;
        let mut ips = slice.endpoints.iter().map(|endpoint| endpoint.ip);
        ips.find(|ip| rules.is_tunnel(*ip, port.protocol, port.port)).map(|ip| (ip, port.port))
    }

    /// How many endpoints on a node are ready and serve a port, as `healthCheckNodePort` reports it. An endpoint with an
    /// address of each family counts once.
    pub fn ready_on(&self, key: &ObjectKey, node: &str) -> usize {
        let ports = self.get(key).map(|service| service.ports.as_slice()).unwrap_or_default();
        let of_family = |family| {
            let mut ips = BTreeSet::new();
            for port in ports {
                let backends = self.backends(key, port, family);
                let here = backends.ready().filter(|(_, candidate)| candidate.node.is_some_and(|n| **n == *node));
                ips.extend(here.map(|(backend, _)| backend.ip));
            }
            ips.len()
        };
        Family::ALL.into_iter().map(of_family).max().unwrap_or_default()
    }
}

/// Whether a service is the API server's own.
fn is_api_server(service: &ObjectKey) -> bool {
    (&*service.namespace, &*service.name) == ("default", "kubernetes")
}

/// An address and port behind a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Backend {
    pub ip: IpAddr,
    pub port: u16,
}

/// In order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Ready,
    /// Terminating and still serving.
    Terminating,
    Away,
}

#[derive(Debug, Clone, Copy)]
struct Candidate<'a> {
    state: State,
    node: Option<&'a Name>,
    hints: Option<&'a Hints>,
}

/// The node where a packet comes in.
#[derive(Debug, Clone, Copy)]
pub struct Topology<'a> {
    pub node: &'a str,
    /// Label `topology.kubernetes.io/zone` of the node.
    pub zone: Option<&'a str>,
}

/// The endpoints behind a port of a service, each once.
#[derive(Debug, Clone)]
pub struct Backends<'a> {
    all: BTreeMap<Backend, Candidate<'a>>,
    /// So many are in each list, but for [`Self::local`]: such lists are parts, so that all of them together are short.
    in_list: usize,
}

impl Backends<'_> {
    /// The endpoints a packet may go to wherever it comes in; if all carry hints, only those near `topology`.
    pub fn cluster(&self, topology: Option<Topology<'_>>) -> Vec<Backend> {
        let near = topology.and_then(|from| self.near(from));
        let mut list = near.unwrap_or_else(|| self.preferred(|_| true));
        list.truncate(self.in_list);
        list
    }

    /// The endpoints on one node.
    pub fn local(&self, node: &str) -> Vec<Backend> {
        self.preferred(|candidate| candidate.node.is_some_and(|n| **n == *node))
    }

    /// Whether the result of [`Self::cluster`] depends on where a packet comes in.
    pub fn has_hints(&self) -> bool {
        let mut ready = self.ready().peekable();
        ready.peek().is_some() && ready.all(|(_, candidate)| candidate.hints.is_some())
    }

    /// True if no endpoint can take a packet.
    pub fn is_empty(&self) -> bool {
        self.all.values().all(|candidate| candidate.state == State::Away)
    }

    /// The nodes of all endpoints that [`Self::cluster`] may return.
    pub fn nodes(&self) -> BTreeSet<&Name> {
        self.preferred(|_| true).iter().filter_map(|backend| self.all.get(backend)?.node).collect()
    }

    /// The nodes of all endpoints, also of those that take no packets; the same one several times.
    pub fn homes(&self) -> impl Iterator<Item = &Name> {
        self.all.values().filter_map(|candidate| candidate.node)
    }

    /// The addresses of all endpoints, also of those that take no packets; the same one for each of its ports.
    pub fn ips(&self) -> impl Iterator<Item = IpAddr> {
        self.all.keys().map(|backend| backend.ip)
    }

    /// The nodes that hints name.
    pub fn hinted_nodes(&self) -> impl Iterator<Item = &Name> {
        self.all.values().filter_map(|candidate| candidate.hints).flat_map(|hints| &hints.nodes)
    }

    /// How many a node may have in its list: those near the node or the zone that most hints name, else all. Where some hints name
    /// nodes, the longer lists of other nodes do not count.
    fn longest_list(&self) -> usize {
        let most_named = |names: for<'h> fn(&'h Hints) -> &'h [Name]| {
            let mut counts = BTreeMap::new();
            for (_, candidate) in self.ready() {
                let named = candidate.hints.map(names).filter(|named| !named.is_empty())?;
                for name in named {
                    *counts.entry(name).or_insert(0_usize) += 1;
                }
            }
            counts.into_values().max()
        };
        let near = most_named(|hints| &hints.nodes).or_else(|| most_named(|hints| &hints.zones));
        near.unwrap_or_else(|| self.preferred(|_| true).len())
    }

    fn ready(&self) -> impl Iterator<Item = (Backend, &Candidate<'_>)> {
        self.all.iter().filter(|(_, c)| c.state == State::Ready).map(|(backend, c)| (*backend, c))
    }

    /// The ready ones of these endpoints, else the terminating ones that still serve.
    fn preferred(&self, among: impl Fn(&Candidate<'_>) -> bool) -> Vec<Backend> {
        let of = |state| {
            let those = self.all.iter().filter(|(_, c)| c.state == state && among(c));
            those.map(|(backend, _)| *backend).collect::<Vec<_>>()
        };
        let ready = of(State::Ready);
        if ready.is_empty() { of(State::Terminating) } else { ready }
    }

    /// The ready endpoints with a hint for this node, else for its zone. `None` unless all have such hints and one
    /// is for this topology.
    fn near(&self, from: Topology<'_>) -> Option<Vec<Backend>> {
        let hinted = |names: for<'h> fn(&'h Hints) -> &'h [Name], wanted: &str| {
            if !self.ready().all(|(_, c)| c.hints.is_some_and(|hints| !names(hints).is_empty())) {
                return None;
            }
            let is_for = |c: &Candidate<'_>| c.hints.is_some_and(|hints| names(hints).iter().any(|n| **n == *wanted));
            let near: Vec<_> = self.ready().filter(|(_, c)| is_for(c)).map(|(backend, _)| backend).collect();
            (!near.is_empty()).then_some(near)
        };
        hinted(|hints| &hints.nodes, from.node).or_else(|| hinted(|hints| &hints.zones, from.zone?))
    }
}
