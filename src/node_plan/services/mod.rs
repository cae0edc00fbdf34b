//! What the host has to do for each service, worked out from the service, its endpoints and the node.

pub mod element;
pub mod flows;
pub mod nft;
pub mod stale;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use ipnetwork::IpNetwork;
use ovnkube_model::{
    Backend, Backends, Family, Name, Object, ObjectKey, Protocol, Service, ServiceCidr, ServicePort, Services,
    TrafficPolicy,
};

use crate::databases::Databases;

/// This node, as far as services depend on it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Here {
    pub node: Name,
    /// The node's own addresses: endpoints that have one are on the host.
    pub ips: Vec<IpAddr>,
    /// Whether node ports are served.
    pub node_ports: bool,
    /// Whether the addresses of other nodes are known. Until then no external address is served, since
    /// it may be one of them.
    pub knows_nodes: bool,
}

/// What all services need, the oldest service first: it gets what two of them claim.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Want {
    pub parts: Vec<Arc<ServiceIntent>>,
    /// Ranges of `ServiceCIDR` objects, besides the configured service ranges.
    pub ranges: BTreeMap<Name, ServiceCidr>,
    /// Addresses of nodes in any of these ranges; `None` until they are known.
    pub nodes: Option<BTreeSet<IpAddr>>,
    /// What pods may not connect to.
    pub databases: Databases,
}

/// What one service needs on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceIntent {
    pub service: Object,
    pub frontends: Vec<Frontend>,
    /// Cluster addresses with `internalTrafficPolicy: Local`.
    pub inner: Vec<Inner>,
    /// Cluster addresses without endpoints, which the host rejects: a reject from OVN would not reach
    /// the host.
    pub refused: Vec<(Protocol, Backend)>,
    /// Node ports with `externalTrafficPolicy: Local` and no endpoint on this node.
    pub elsewhere: Vec<RemoteNodePort>,
    pub health: Option<Health>,
}

/// Where the host's own packets to its node port go, so that endpoints see the host's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteNodePort {
    pub family: Family,
    pub protocol: Protocol,
    pub port: u16,
    /// A node that has an endpoint.
    pub node: IpAddr,
}

/// One address and port where a service is reached from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frontend {
    pub at: At,
    pub protocol: Protocol,
    pub port: u16,
    /// The service's own address and port.
    pub service: Backend,
    /// `externalTrafficPolicy: Local`.
    pub local: Option<Local>,
    /// Ranges of allowed clients; empty: all clients.
    pub sources: Vec<IpNetwork>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum At {
    /// A node port, on each of the node's addresses of a family.
    Node(Family),
    /// An external address or one of a load balancer.
    Ip(IpAddr),
}

/// How packets reach only endpoints of this node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Local {
    pub node_port: Option<u16>,
    /// The node's own addresses of the family, where the node port is served.
    pub node_ips: Vec<IpAddr>,
    pub endpoints: Vec<Backend>,
    /// Session affinity: a client stays with one endpoint.
    pub affinity: bool,
    /// One of the endpoints that is in the host's network.
    pub host: Option<Backend>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inner {
    pub protocol: Protocol,
    pub service: Backend,
    pub host: Option<Backend>,
}

/// What `healthCheckNodePort` answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    pub port: u16,
    pub service: ObjectKey,
    pub endpoints: usize,
}

/// The endpoints that UDP senders reach, by frontend.
pub type Senders = BTreeMap<(At, u16), BTreeSet<Backend>>;

impl At {
    pub fn family(self) -> Family {
        match self {
            Self::Node(family) => family,
            Self::Ip(ip) => Family::of(ip),
        }
    }
}

impl ServiceIntent {
    /// What a service needs; `None` for most services, which need nothing.
    pub fn of(key: &ObjectKey, services: &Services, here: &Here) -> Option<Self> {
        let service = services.get(key)?;
        let mut part = Self::new(Object::Service { key: key.clone(), uid: service.uid.clone() });
        for port in &service.ports {
            let protocol = port.protocol;
            let outer = external_ips(key, services, port, here);
            let node_port = services.node_port(key, port);
            for ip in services.cluster_ips(key, port) {
                let backends = services.backends(key, port, Family::of(ip));
                if backends.is_empty() {
                    part.refused.push((port.protocol, Backend { ip, port: port.port }));
                }
                let local = backends.local(&here.node);
                let is_away = service.is_external_local() && here.node_ports && local.is_empty();
                if let Some(port) = node_port.filter(|_| is_away) {
                    let family = Family::of(ip);
                    let node = elsewhere(&backends, here).and_then(|node| services.node_ip(node, family));
                    part.elsewhere.extend(node.map(|node| RemoteNodePort { family, protocol, port, node }));
                }
                let ways = Ways { node_port, outer: &outer, local: &local };
                part.add(service, port, ip, here, &ways);
            }
        }
        part.health = service.health_check_port.map(|port| Health {
            port,
            service: key.clone(),
            endpoints: services.ready_on(key, &here.node),
        });
        (part != Self::new(part.service.clone())).then_some(part)
    }

    fn new(service: Object) -> Self {
        Self {
            service,
            frontends: Vec::new(),
            inner: Vec::new(),
            refused: Vec::new(),
            elsewhere: Vec::new(),
            health: None,
        }
    }

    fn add(&mut self, service: &Service, port: &ServicePort, ip: IpAddr, here: &Here, ways: &Ways<'_>) {
        let own = Backend { ip, port: port.port };
        let host = ways.local.iter().copied().find(|backend| here.ips.contains(&backend.ip));
        if service.internal_policy == TrafficPolicy::Local {
            self.inner.push(Inner { protocol: port.protocol, service: own, host });
        }
        let node_port = ways.node_port.filter(|_| here.node_ports);
        let local = service.is_external_local().then(|| {
            let node_ips = here.ips.iter().copied().filter(|own| Family::of(*own) == Family::of(ip)).collect();
            let affinity = service.affinity.is_some();
            Local { node_port, node_ips, endpoints: ways.local.to_vec(), affinity, host }
        });
        let frontend = |at, number, sources: &[IpNetwork]| Frontend {
            at,
            protocol: port.protocol,
            port: number,
            service: own,
            local: local.clone(),
            sources: sources.to_vec(),
        };
        self.frontends.extend(node_port.map(|number| frontend(At::Node(Family::of(ip)), number, &[])));
        for &outer in ways.outer.iter().filter(|outer| outer.is_ipv6() == ip.is_ipv6()) {
            let sources = if service.ingress_ips.contains(&outer) {
                sources(&service.source_ranges, outer, here)
            } else {
                Vec::new()
            };
            self.frontends.push(frontend(At::Ip(outer), port.port, &sources));
        }
    }
}

/// How a port of a service is reached besides its cluster address.
struct Ways<'a> {
    node_port: Option<u16>,
    outer: &'a [IpAddr],
    local: &'a [Backend],
}

/// Whether the service depends on the addresses of other nodes.
pub fn needs_nodes(service: &Service) -> bool {
    service.claimed_external_ips().next().is_some() || service.is_external_local()
}

/// The external addresses; none until other nodes' addresses are known, since one may be theirs.
fn external_ips(key: &ObjectKey, services: &Services, port: &ServicePort, here: &Here) -> Vec<IpAddr> {
    if here.knows_nodes { services.external_ips(key, port) } else { Vec::new() }
}

/// The UDP frontends of a service, each with the endpoints on any node that may answer.
pub fn senders(key: &ObjectKey, services: &Services, here: &Here) -> Senders {
    let Some(service) = services.get(key) else { return Senders::new() };
    let mut senders = Senders::new();
    for port in service.ports.iter().filter(|port| port.protocol == Protocol::Udp) {
        let outer = external_ips(key, services, port, here);
        for ip in services.cluster_ips(key, port) {
            let family = Family::of(ip);
            let all = services.backends(key, port, family);
            // what `Local` means depends on where a packet enters: pods may be served by endpoints of other nodes
            let backends: BTreeSet<Backend> = all.cluster(None).into_iter().chain(all.local(&here.node)).collect();
            let outer = outer.iter().filter(|outer| Family::of(**outer) == family);
            for at in [&ip].into_iter().chain(outer) {
                senders.insert((At::Ip(*at), port.port), backends.clone());
            }
            if let Some(number) = services.node_port(key, port) {
                senders.insert((At::Node(family), number), backends);
            }
        }
    }
    senders
}

/// A node with endpoints, for a host without: the next one by name, so that different hosts use different nodes.
fn elsewhere<'a>(backends: &'a Backends<'_>, here: &Here) -> Option<&'a Name> {
    let nodes = backends.nodes();
    nodes.iter().find(|node| ****node > *here.node).or_else(|| nodes.first()).copied()
}

/// The ranges that may send to an address, as in kube-proxy: ranges of one family do not limit the other,
/// and a host that is allowed may also send from that very address, which a load balancer can have put on it.
/// Empty: all clients.
fn sources(ranges: &[IpNetwork], to: IpAddr, here: &Here) -> Vec<IpNetwork> {
    let mut kept: Vec<_> = ranges.iter().copied().filter(|range| range.is_ipv6() == to.is_ipv6()).collect();
    let allows = |ip: IpAddr| kept.iter().any(|range| range.contains(ip));
    if here.ips.iter().any(|ip| allows(*ip)) && !allows(to) {
        kept.push(IpNetwork::from(to));
    }
    if kept.iter().any(|range| range.prefix() == 0) {
        return Vec::new();
    }
    kept.sort();
    kept
}

/// ServiceIntents by service, the oldest service first.
#[derive(Debug, Default)]
pub struct ServiceIntents {
    parts: BTreeMap<(i64, ObjectKey), Arc<ServiceIntent>>,
    created: BTreeMap<ObjectKey, i64>,
}

impl ServiceIntents {
    /// Sets or removes the intent of a service. Returns true if that changes anything.
    pub fn set(&mut self, key: &ObjectKey, created: i64, part: Option<ServiceIntent>) -> bool {
        let old = self.created.get(key).map(|created| (*created, key.clone()));
        let have = old.as_ref().and_then(|old| self.parts.get(old));
        let kept = part.as_ref().is_none_or(|_| old.as_ref().is_none_or(|old| old.0 == created));
        if kept && have.map(|part| &**part) == part.as_ref() {
            return false;
        }
        if let Some(old) = old {
            self.parts.remove(&old);
            self.created.remove(key);
        }
        if let Some(part) = part {
            self.created.insert(key.clone(), created);
            self.parts.insert((created, key.clone()), Arc::new(part));
        }
        true
    }

    pub fn all(&self) -> impl Iterator<Item = &Arc<ServiceIntent>> {
        self.parts.values()
    }
}
