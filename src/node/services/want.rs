//! What the host has to do for each service, worked out from the service, its endpoints and the node.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use ipnetwork::IpNetwork;
use ovnkube_model::{
    Backend, Backends, Family, Name, Object, ObjectKey, Protocol, Service, ServiceCidr, ServicePort, Services,
    TrafficPolicy,
};

/// The node that it is worked out for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Here {
    pub(crate) node: Name,
    /// The node's own addresses: endpoints that have one are on the host.
    pub(crate) ips: Vec<IpAddr>,
    /// Whether node ports are served.
    pub(crate) node_ports: bool,
    /// Whether it is known whose addresses other nodes' are: before, no service is led there that an
    /// external address leads to.
    pub(crate) knows_nodes: bool,
}

/// All that is wanted, the older service first: it keeps what two of them claim.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Want {
    pub(crate) parts: Vec<Arc<Part>>,
    /// Where services have their addresses from, besides the ranges that were given.
    pub(crate) ranges: BTreeMap<Name, ServiceCidr>,
    /// The addresses in any of these ranges that are nodes'; `None` until that is known.
    pub(crate) nodes: Option<BTreeSet<IpAddr>>,
}

/// What one service wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) service: Object,
    pub(crate) doors: Vec<Door>,
    /// Cluster addresses with `internalTrafficPolicy: Local`.
    pub(crate) inner: Vec<Inner>,
    /// Cluster addresses with nobody behind them, for whom the host refuses: an answer of OVN's would
    /// not find its way back to the host.
    pub(crate) refused: Vec<(Protocol, Backend)>,
    /// Node ports with local endpoints only, and none here.
    pub(crate) elsewhere: Vec<Elsewhere>,
    pub(crate) health: Option<Health>,
}

/// Where the host's own packets to its node port go, so that endpoints see who sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Elsewhere {
    pub(crate) family: Family,
    pub(crate) protocol: Protocol,
    pub(crate) port: u16,
    /// A node that has an endpoint.
    pub(crate) node: IpAddr,
}

/// One way in from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Door {
    pub(crate) at: At,
    pub(crate) protocol: Protocol,
    pub(crate) port: u16,
    /// The service's own address and port.
    pub(crate) service: Backend,
    /// `externalTrafficPolicy: Local`.
    pub(crate) local: Option<Local>,
    /// Who may come in; empty: everybody.
    pub(crate) sources: Vec<IpNetwork>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum At {
    /// A node port, on each of the node's addresses of a family.
    Node(Family),
    /// An external address or one of a load balancer.
    Ip(IpAddr),
}

/// How packets reach endpoints of this node and nobody else.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Local {
    pub(crate) node_port: Option<u16>,
    /// The node's own addresses of the family: the node port is there.
    pub(crate) node_ips: Vec<IpAddr>,
    pub(crate) endpoints: Vec<Backend>,
    /// A client keeps to one of them.
    pub(crate) affinity: bool,
    /// One of them that is in the host's network.
    pub(crate) host: Option<Backend>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inner {
    pub(crate) protocol: Protocol,
    pub(crate) service: Backend,
    pub(crate) host: Option<Backend>,
}

/// What `healthCheckNodePort` answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Health {
    pub(crate) port: u16,
    pub(crate) service: ObjectKey,
    pub(crate) endpoints: usize,
}

/// Where UDP senders are led to, and by what.
pub(crate) type Senders = BTreeMap<(At, u16), BTreeSet<Backend>>;

impl At {
    pub(crate) fn family(self) -> Family {
        match self {
            Self::Node(family) => family,
            Self::Ip(ip) => Family::of(ip),
        }
    }
}

impl Part {
    /// Most services want nothing.
    pub(crate) fn of(key: &ObjectKey, services: &Services, here: &Here) -> Option<Self> {
        let service = services.get(key)?;
        let mut part = Self::new(Object::Service { key: key.clone(), uid: service.uid.clone() });
        for port in &service.ports {
            let protocol = port.protocol;
            let outer = outer_ips(key, services, port, here);
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
                    part.elsewhere.extend(node.map(|node| Elsewhere { family, protocol, port, node }));
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
        Self { service, doors: Vec::new(), inner: Vec::new(), refused: Vec::new(), elsewhere: Vec::new(), health: None }
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
        let door = |at, number, sources: &[IpNetwork]| Door {
            at,
            protocol: port.protocol,
            port: number,
            service: own,
            local: local.clone(),
            sources: sources.to_vec(),
        };
        self.doors.extend(node_port.map(|number| door(At::Node(Family::of(ip)), number, &[])));
        for &outer in ways.outer.iter().filter(|outer| outer.is_ipv6() == ip.is_ipv6()) {
            let sources = if service.ingress_ips.contains(&outer) {
                sources(&service.source_ranges, outer, here)
            } else {
                Vec::new()
            };
            self.doors.push(door(At::Ip(outer), port.port, &sources));
        }
    }
}

/// How a port of a service is reached, but for its own address.
struct Ways<'a> {
    node_port: Option<u16>,
    outer: &'a [IpAddr],
    local: &'a [Backend],
}

/// Whether it matters which addresses other nodes have.
pub(crate) fn minds_nodes(service: &Service) -> bool {
    service.outer_ips().next().is_some() || service.is_external_local()
}

/// Before other nodes' addresses are known, none: it may be one of them.
fn outer_ips(key: &ObjectKey, services: &Services, port: &ServicePort, here: &Here) -> Vec<IpAddr> {
    if here.knows_nodes { services.outer_ips(key, port) } else { Vec::new() }
}

/// Every address of a service that UDP senders know, and whoever of this node or another may answer there.
pub(crate) fn senders(key: &ObjectKey, services: &Services, here: &Here) -> Senders {
    let Some(service) = services.get(key) else { return Senders::new() };
    let mut senders = Senders::new();
    for port in service.ports.iter().filter(|port| port.protocol == Protocol::Udp) {
        let outer = outer_ips(key, services, port, here);
        for ip in services.cluster_ips(key, port) {
            let family = Family::of(ip);
            let all = services.backends(key, port, family);
            // `Local` is a question of where a packet comes in: pods are served by others where it is not
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

/// The node that leads to endpoints where none is here. Different hosts take different nodes.
fn elsewhere<'a>(backends: &'a Backends<'_>, here: &Here) -> Option<&'a Name> {
    let nodes = backends.nodes();
    nodes.iter().find(|node| ****node > *here.node).or_else(|| nodes.first()).copied()
}

/// Who may send to an address, as kube-proxy has it: ranges of one family say nothing about the other, and
/// a host that may send may do so from that very address, which a load balancer can have put on it.
/// Empty: everybody. Of ranges within each other the widest.
fn sources(ranges: &[IpNetwork], to: IpAddr, here: &Here) -> Vec<IpNetwork> {
    let within = |inner: &IpNetwork, outer: &IpNetwork| {
        outer.contains(inner.ip())
            && (outer.prefix() < inner.prefix()
                || outer.prefix() == inner.prefix() && outer.network() == inner.network())
    };
    let mut kept: Vec<IpNetwork> = Vec::new();
    let mut add = |range: &IpNetwork| {
        if !kept.iter().any(|wide| within(range, wide)) {
            kept.retain(|narrow| !within(narrow, range));
            kept.extend(IpNetwork::new(range.network(), range.prefix()));
        }
    };
    let same: Vec<&IpNetwork> = ranges.iter().filter(|range| range.is_ipv6() == to.is_ipv6()).collect();
    for range in &same {
        add(range);
    }
    if here.ips.iter().any(|ip| same.iter().any(|range| range.contains(*ip))) {
        add(&IpNetwork::from(to));
    }
    if kept.iter().any(|range| range.prefix() == 0) {
        return Vec::new();
    }
    kept.sort();
    kept
}

/// Parts by service, the older service first.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    parts: BTreeMap<(i64, ObjectKey), Arc<Part>>,
    created: BTreeMap<ObjectKey, i64>,
}

impl Parts {
    /// True when that says something new.
    pub(crate) fn set(&mut self, key: &ObjectKey, created: i64, part: Option<Part>) -> bool {
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

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Part>> {
        self.parts.values()
    }
}
