//! Services with their endpoints, and which of them a packet may go to.
//!
//! ```text
//!  service ──port──▶ Backends: the endpoints of all its slices under the port's name, each once
//!                       ├ cluster(place)   any node's; near ones where all carry hints
//!                       └ local(node)      those of one node
//! ```
//!
//! Whichever is asked for: those that are ready; where none is, those that still serve while they
//! terminate; where there is none either, nobody. The controller and the node's agent both ask here,
//! so that a packet is treated alike wherever it comes in.

mod claims;
mod owners;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use self::claims::{Claims, Door};
pub use self::owners::NodeIps;
use self::owners::Owners;
use self::rules::Refusal;
pub use self::rules::{AddressRules, ExternalIps};
use crate::{EndpointSlice, Family, Hints, Name, Notice, Object, ObjectKey, Service, ServicePort, Severity, Subnet};

/// All services and slices, by service.
#[derive(Debug, Default)]
pub struct Services {
    known: BTreeMap<ObjectKey, Service>,
    /// Slices by their service, which may not be there.
    slices: BTreeMap<ObjectKey, BTreeMap<Name, EndpointSlice>>,
    /// Whose each slice is.
    service_of: BTreeMap<ObjectKey, ObjectKey>,
    claims: Claims,
    owners: Owners,
}

impl Services {
    /// None yet.
    pub fn new(rules: AddressRules) -> Self {
        Self { owners: Owners::new(rules), ..Self::default() }
    }

    /// What nodes reach by which address, as `the API server`: no service takes these over. The services that are reached
    /// at one for which that changes.
    pub fn apply_connections(&mut self, connections: BTreeMap<IpAddr, Name>) -> BTreeSet<ObjectKey> {
        let changed = self.owners.connect(connections);
        changed.into_iter().flat_map(|ip| self.at(ip)).collect()
    }

    /// Takes the addresses of a node in, none for one that is gone; the services that are reached at one
    /// that came or went.
    pub fn apply_node(&mut self, node: &Name, ips: NodeIps) -> BTreeSet<ObjectKey> {
        let changed = self.owners.change(node, ips);
        changed.into_iter().flat_map(|ip| self.at(ip)).collect()
    }

    /// Takes a service in; itself if that says something new, and others whose addresses it had or has.
    pub fn apply_service(&mut self, key: &ObjectKey, new: Option<Service>) -> BTreeSet<ObjectKey> {
        let old = self.known.get(key);
        if old == new.as_ref() {
            return BTreeSet::new();
        }
        let mut touched = self.claims.change(key, old, new.as_ref());
        touched.insert(key.clone());
        // whether it may have an address, and so keep it from others, depends on who wrote it down
        let balanced = |service: Option<&Service>| -> BTreeSet<IpAddr> {
            service.into_iter().flat_map(|service| &service.ingress_ips).copied().collect()
        };
        for ip in balanced(old).symmetric_difference(&balanced(new.as_ref())) {
            self.claims.at(*ip, &mut touched);
        }
        match new {
            Some(service) => self.known.insert(key.clone(), service),
            None => self.known.remove(key),
        };
        touched
    }

    /// Takes a slice in; the services whose endpoints that changes, and those that are reached where the API server is.
    pub fn apply_slice(&mut self, key: &ObjectKey, new: Option<EndpointSlice>) -> BTreeSet<ObjectKey> {
        let mut touched = self.change_slice(key, new);
        if let Some(api_server) = touched.iter().find(|service| is_api_server(service)) {
            let endpoints = self.slices(api_server).flat_map(|(_, slice)| slice.endpoints.iter());
            let changed = self.owners.api_servers(endpoints.map(|endpoint| endpoint.ip).collect());
            touched.extend(changed.into_iter().flat_map(|ip| self.at(ip)));
        }
        touched
    }

    fn change_slice(&mut self, key: &ObjectKey, new: Option<EndpointSlice>) -> BTreeSet<ObjectKey> {
        let mut touched = BTreeSet::new();
        let service = new.as_ref().and_then(|slice| slice.service.clone());
        let service = service.map(|name| ObjectKey { namespace: key.namespace.clone(), name });
        let old = self.service_of.get(key).cloned();
        if let Some(old) = old.filter(|old| Some(old) != service.as_ref()) {
            self.service_of.remove(key);
            if let Some(slices) = self.slices.get_mut(&old) {
                slices.remove(&key.name);
                if slices.is_empty() {
                    self.slices.remove(&old);
                }
            }
            touched.insert(old);
        }
        if let (Some(slice), Some(service)) = (new, service) {
            let slices = self.slices.entry(service.clone()).or_default();
            if slices.get(&key.name) != Some(&slice) {
                slices.insert(key.name.clone(), slice);
                self.service_of.insert(key.clone(), service.clone());
                touched.insert(service);
            }
        }
        touched
    }

    pub fn get(&self, key: &ObjectKey) -> Option<&Service> {
        self.known.get(key)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Service)> {
        self.known.iter()
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The slices of a service, by name.
    pub fn slices(&self, key: &ObjectKey) -> impl Iterator<Item = (&Name, &EndpointSlice)> {
        self.slices.get(key).into_iter().flatten()
    }

    /// The cluster IPs of a service that are neither an older service's nor anybody else's.
    pub fn cluster_ips(&self, key: &ObjectKey, port: &ServicePort) -> Vec<IpAddr> {
        let ips = self.get(key).map(|service| service.cluster_ips.as_slice()).unwrap_or_default();
        let is_free = |ip: &IpAddr| self.cluster_ip_taken_by(*ip).is_none() && self.rival_at(key, port, *ip).is_none();
        ips.iter().copied().filter(is_free).collect()
    }

    /// The addresses beside them at which the outside reaches a port of a service: neither another
    /// service's nor anybody else's.
    pub fn outer_ips(&self, key: &ObjectKey, port: &ServicePort) -> Vec<IpAddr> {
        let Some(service) = self.get(key) else { return Vec::new() };
        let is_free = |ip: &IpAddr| self.refuse(service, *ip).is_none() && self.rival_at(key, port, *ip).is_none();
        service.outer_ips().filter(is_free).collect()
    }

    /// Why a service may not have an address that it claims beside its cluster IPs.
    fn refuse(&self, service: &Service, ip: IpAddr) -> Option<Refusal> {
        self.owners.refuse(ip, service.ingress_ips.contains(&ip))
    }

    /// Whose a cluster IP is beside its service's: ranges of services can overlap others by mistake. What answers
    /// for a service on its node, such as a cache of its DNS, has its address on a link there.
    fn cluster_ip_taken_by(&self, ip: IpAddr) -> Option<String> {
        self.owners.owner(ip, true)
    }

    /// The port on nodes, unless it is an older service's.
    pub fn node_port(&self, key: &ObjectKey, port: &ServicePort) -> Option<u16> {
        let number = port.node_port?;
        self.node_port_rival(key, port).is_none().then_some(number)
    }

    /// The address of a family that the cluster knows a node by.
    pub fn node_ip(&self, node: &str, family: Family) -> Option<IpAddr> {
        self.owners.node(node, family)
    }

    /// What a Node says that it has and that is services': it counts for nothing.
    pub fn misplaced(&self, node: &str) -> impl Iterator<Item = IpAddr> {
        self.owners.misplaced(node)
    }

    /// The addresses in a range of services that are nodes' and no service's.
    pub fn nodes_in(&self, range: Subnet) -> impl Iterator<Item = IpAddr> {
        self.owners.nodes_in(range)
    }

    fn at(&self, ip: IpAddr) -> BTreeSet<ObjectKey> {
        let mut all = BTreeSet::new();
        self.claims.at(ip, &mut all);
        all
    }

    fn rival_at(&self, key: &ObjectKey, port: &ServicePort, ip: IpAddr) -> Option<&ObjectKey> {
        // who may not have an address keeps it from nobody
        let may_have = |by: &ObjectKey| self.get(by).is_some_and(|service| self.refuse(service, ip).is_none());
        self.claims.rival(key, Door::Address(ip, port.protocol, port.port), may_have)
    }

    fn node_port_rival(&self, key: &ObjectKey, port: &ServicePort) -> Option<&ObjectKey> {
        self.claims.rival(key, Door::NodePort(port.protocol, port.node_port?), |_| true)
    }

    /// Everybody of a family behind a port of a service, in whatever state.
    pub fn backends(&self, key: &ObjectKey, port: &ServicePort, family: Family) -> Backends<'_> {
        let all_are_ready = self.get(key).is_some_and(|service| service.publish_not_ready);
        let mut best: BTreeMap<Backend, Candidate<'_>> = BTreeMap::new();
        for (_, slice) in self.slices(key) {
            let names = |p: &&crate::SlicePort| p.name == port.name && p.protocol == port.protocol;
            for number in slice.ports.iter().filter(names).map(|p| p.port) {
                let is_meant = |ip| Family::of(ip) == family && !self.owners.rules.is_tunnel(ip, port.protocol, number);
                for endpoint in slice.endpoints.iter().filter(|endpoint| is_meant(endpoint.ip)) {
                    let state = match () {
                        () if endpoint.ready || all_are_ready => State::Ready,
                        () if endpoint.serving && endpoint.terminating => State::Terminating,
                        () => State::Away,
                    };
                    let candidate = Candidate { state, node: endpoint.node.as_ref(), hints: endpoint.hints.as_deref() };
                    // while slices are split anew an endpoint may stand in two of them
                    let backend = Backend { ip: endpoint.ip, port: number };
                    let known = best.entry(backend).or_insert(candidate);
                    if candidate.state < known.state {
                        *known = candidate;
                    }
                }
            }
        }
        Backends(best)
    }

    /// What people should hear about a service.
    pub fn notices(&self, key: &ObjectKey) -> Vec<Notice> {
        let Some(service) = self.known.get(key) else { return Vec::new() };
        let notice = |reason, message| Notice {
            object: Object::Service { key: key.clone(), uid: service.uid.clone() },
            severity: Severity::Warning,
            reason,
            message,
        };
        let own = service.bad.iter().map(|bad| notice("BadField", format!("{}: {}", bad.field, bad.problem)));
        let slices = self.slices(key).flat_map(|(name, slice)| {
            let message = move |bad: &crate::BadField| format!("EndpointSlice {name}: {}: {}", bad.field, bad.problem);
            slice.bad.iter().map(move |bad| notice("BadEndpoint", message(bad)))
        });
        let tunnels = self.slices(key).filter_map(|(name, slice)| Some((name, self.tunnel_of(slice)?)));
        let tunnels = tunnels.map(|(name, (ip, port))| {
            let why =
                "is where a node's tunnels end: it is left out; use another port, or a pod with an address of its own";
            notice("BadEndpoint", format!("EndpointSlice {name}: {ip} UDP {port} {why}"))
        });
        let mistaken = service.cluster_ips.iter().filter_map(|ip| Some((ip, self.cluster_ip_taken_by(*ip)?)));
        let mistaken = mistaken.map(|(ip, whose)| {
            let remedy = "it is not served there; make the service anew, with an address of another ServiceCIDR";
            notice("AddressConflict", format!("cluster IP {ip} is {whose}: {remedy}"))
        });
        let refused = service.outer_ips().filter_map(|ip| Some((ip, self.refuse(service, ip)?)));
        let refused = refused.map(|(ip, why)| {
            let reason = match why {
                Refusal::Taken(_) | Refusal::Needed(_) => "AddressConflict",
                Refusal::Disabled | Refusal::NotAllowed => "ExternalIPNotAllowed",
            };
            notice(reason, format!("external address {ip} {why}"))
        });
        let ports = service.ports.iter().flat_map(|port| {
            let ips = service.cluster_ips.iter().copied().chain(service.outer_ips());
            // what is somebody else's is no service's
            let ips = ips.filter(|ip| self.cluster_ip_taken_by(*ip).is_none());
            let addresses = ips.filter_map(move |ip| {
                let rival = self.rival_at(key, port, ip)?;
                let message =
                    format!("{ip} {} {} is service {rival}'s: it is not served there", port.protocol, port.port);
                Some(notice("AddressConflict", message))
            });
            let rival = port.node_port.and_then(|number| {
                let rival = self.node_port_rival(key, port)?;
                let message =
                    format!("node port {} {number} is service {rival}'s: it is not served there", port.protocol);
                Some(notice("NodePortConflict", message))
            });
            addresses.chain(rival)
        });
        own.chain(slices).chain(tunnels).chain(mistaken).chain(refused).chain(ports).collect()
    }

    /// An endpoint of a slice that is the end of a node's tunnels, and its port.
    fn tunnel_of(&self, slice: &EndpointSlice) -> Option<(IpAddr, u16)> {
        let each = slice.ports.iter().flat_map(|port| slice.endpoints.iter().map(move |endpoint| (endpoint.ip, port)));
        let mut tunnels = each.filter(|(ip, port)| self.owners.rules.is_tunnel(*ip, port.protocol, port.port));
        tunnels.next().map(|(ip, port)| (ip, port.port))
    }

    /// How many endpoints on a node take new connections: what its `healthCheckNodePort` says. One with an
    /// address of each family is one.
    pub fn ready_on(&self, key: &ObjectKey, node: &str) -> usize {
        let on_node = |endpoint: &&crate::Endpoint| endpoint.ready && endpoint.node.as_deref() == Some(node);
        let slices = self.slices(key).flat_map(|(_, slice)| slice.endpoints.iter());
        let ips: BTreeSet<IpAddr> = slices.filter(on_node).map(|endpoint| endpoint.ip).collect();
        let of_family = |family| ips.iter().filter(|ip| Family::of(**ip) == family).count();
        Family::ALL.into_iter().map(of_family).max().unwrap_or_default()
    }
}

/// Whether a service is the one that the API server makes for itself.
fn is_api_server(service: &ObjectKey) -> bool {
    (&*service.namespace, &*service.name) == ("default", "kubernetes")
}

/// An address and port behind a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Backend {
    pub ip: IpAddr,
    pub port: u16,
}

/// In the order in which they are preferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Ready,
    /// On its way out, and still answering.
    Terminating,
    Away,
}

#[derive(Debug, Clone, Copy)]
struct Candidate<'a> {
    state: State,
    node: Option<&'a Name>,
    hints: Option<&'a Hints>,
}

/// Where a packet comes in.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub node: &'a str,
    /// Label `topology.kubernetes.io/zone` of the node.
    pub zone: Option<&'a str>,
}

/// Everybody behind a port of a service, each once.
#[derive(Debug, Clone)]
pub struct Backends<'a>(BTreeMap<Backend, Candidate<'a>>);

impl Backends<'_> {
    /// Those a packet may go to wherever it comes in; of these only near ones for whom all carry hints.
    pub fn cluster(&self, place: Option<Place<'_>>) -> Vec<Backend> {
        let near = place.and_then(|place| self.near(place));
        near.unwrap_or_else(|| self.preferred(|_| true))
    }

    /// Those on one node.
    pub fn local(&self, node: &str) -> Vec<Backend> {
        self.preferred(|candidate| candidate.node.is_some_and(|n| **n == *node))
    }

    /// Whether it matters for [`Self::cluster`] where a packet comes in.
    pub fn has_hints(&self) -> bool {
        let mut ready = self.ready().peekable();
        ready.peek().is_some() && ready.all(|(_, candidate)| candidate.hints.is_some())
    }

    /// True when nobody can take a packet anywhere.
    pub fn is_empty(&self) -> bool {
        self.0.values().all(|candidate| candidate.state == State::Away)
    }

    /// The nodes of those that [`Self::cluster`] gives anywhere.
    pub fn nodes(&self) -> BTreeSet<&Name> {
        self.preferred(|_| true).iter().filter_map(|backend| self.0.get(backend)?.node).collect()
    }

    fn ready(&self) -> impl Iterator<Item = (Backend, &Candidate<'_>)> {
        self.0.iter().filter(|(_, c)| c.state == State::Ready).map(|(backend, c)| (*backend, c))
    }

    /// The ready ones among these, else those that still serve.
    fn preferred(&self, among: impl Fn(&Candidate<'_>) -> bool) -> Vec<Backend> {
        let of = |state| {
            let those = self.0.iter().filter(|(_, c)| c.state == state && among(c));
            those.map(|(backend, _)| *backend).collect::<Vec<_>>()
        };
        let ready = of(State::Ready);
        if ready.is_empty() { of(State::Terminating) } else { ready }
    }

    /// The ready ones hinted at for this node, else for its zone; `None` where hints say nothing,
    /// which is so unless all have some and one is for this place.
    fn near(&self, place: Place<'_>) -> Option<Vec<Backend>> {
        let hinted = |names: for<'h> fn(&'h Hints) -> &'h [Name], wanted: &str| {
            if !self.ready().all(|(_, c)| c.hints.is_some_and(|hints| !names(hints).is_empty())) {
                return None;
            }
            let is_for = |c: &Candidate<'_>| c.hints.is_some_and(|hints| names(hints).iter().any(|n| **n == *wanted));
            let near: Vec<_> = self.ready().filter(|(_, c)| is_for(c)).map(|(backend, _)| backend).collect();
            (!near.is_empty()).then_some(near)
        };
        hinted(|hints| &hints.nodes, place.node).or_else(|| hinted(|hints| &hints.zones, place.zone?))
    }
}
