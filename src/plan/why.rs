//! Why a connection is allowed or denied: which policy and which of its rules decided.
//!
//! ```text
//! denied: a/client 10.244.0.5 to b/db 10.244.1.7 port 5432/TCP
//!   egress of a/client: no policy is about it
//!   ingress of b/db: allowed by no rule of b/deny, b/web
//! ```
//!
//! It looks at what Kubernetes says, in the same world that rows are planned from, and at no row.

use std::fmt;
use std::net::IpAddr;

use ovnkube_model::{
    Direction, Family, Name, NetworkPolicy, ObjectKey, Peer, PodEntry, PodKey, PolicyPort, Protocol, Rule, Selector,
    World,
};

/// One end of a connection, as a person names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Pod(PodKey),
    Address(IpAddr),
}

/// What became of a question, for one address family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub from: Place,
    pub to: Place,
    pub protocol: Protocol,
    pub port: u16,
    /// What the source's policies say.
    pub egress: Decision,
    /// What the destination's policies say.
    pub ingress: Decision,
    /// What could not be read or looked at, a line each.
    pub notes: Vec<String>,
}

/// One end of a connection, found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub pod: Option<PodKey>,
    /// None for a pod that has none yet.
    pub ip: Option<IpAddr>,
}

/// What decided about one end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// No pod of the cluster's network: policies are about none other.
    NoPod,
    /// A pod always reaches itself.
    Itself,
    /// A pod is always reached from its own node: kubelets probe.
    OwnNode(Name),
    /// No policy selects the pod for this direction.
    Open,
    Allowed {
        policy: ObjectKey,
        /// Its place in the policy, from 0.
        rule: usize,
    },
    /// Policies are about the pod and none of their rules fits.
    Denied(Vec<ObjectKey>),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("find pod {0}: there is none of this name; write namespace/name")]
    NoPod(PodKey),
    #[error("find address of pod {0}: it has ended")]
    Ended(PodKey),
    #[error("connect {0} to {1}: they have no address family in common")]
    NoFamily(String, String),
    #[error("look at {0}: it is the address of service {1}; policies see its pods, ask about one of these")]
    Service(IpAddr, ObjectKey),
}

impl Answer {
    pub fn is_allowed(&self) -> bool {
        self.egress.is_allowed() && self.ingress.is_allowed()
    }
}

impl Decision {
    pub fn is_allowed(&self) -> bool {
        !matches!(self, Self::Denied(_))
    }
}

/// Decides for each address family that both ends have; there is at least one answer.
pub fn why(world: &World, from: &End, to: &End, protocol: Protocol, port: u16) -> Result<Vec<Answer>, Error> {
    let sources = ends(world, from, Role::Source)?;
    let destinations = ends(world, to, Role::Destination)?;
    let pairs = sources.iter().flat_map(|from| destinations.iter().map(move |to| (from, to)));
    let same_family = |(from, to): &(&Found<'_>, &Found<'_>)| match (from.ip, to.ip) {
        (Some(from), Some(to)) => Family::of(from) == Family::of(to),
        _ => true,
    };
    let flows = pairs.filter(same_family).map(|(from, to)| Flow { world, from, to, protocol, port });
    let answers: Vec<_> = flows.map(|flow| flow.answer()).collect();
    if answers.is_empty() {
        return Err(Error::NoFamily(from.to_string(), to.to_string()));
    }
    Ok(answers)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Source,
    Destination,
}

/// An end with one of its addresses.
struct Found<'a> {
    pod: Option<(&'a PodKey, &'a PodEntry)>,
    ip: Option<IpAddr>,
}

fn ends<'a>(world: &'a World, end: &End, role: Role) -> Result<Vec<Found<'a>>, Error> {
    match end {
        End::Pod(key) => {
            let (key, entry) = world.pods.get_key_value(key).ok_or_else(|| Error::NoPod(key.clone()))?;
            if entry.pod.finished {
                return Err(Error::Ended(key.clone()));
            }
            Ok(found(world, key, entry, role))
        }
        End::Address(ip) => {
            let mut services = world.services.iter();
            if let Some((key, _)) = services.find(|(_, service)| service.cluster_ips.contains(ip)) {
                return Err(Error::Service(*ip, key.clone()));
            }
            let pod = world.pods.iter().find(|(_, entry)| addresses(entry).any(|of_pod| of_pod == *ip));
            Ok(vec![Found { pod, ip: Some(*ip) }])
        }
    }
}

fn found<'a>(world: &'a World, key: &'a PodKey, entry: &'a PodEntry, role: Role) -> Vec<Found<'a>> {
    let pod = Some((key, entry));
    if entry.pod.host_network && role == Role::Source {
        // its node's way to pods
        let ips = entry.pod.node.iter().flat_map(|node| management(world, node));
        return ips.map(|ip| Found { pod, ip: Some(ip) }).collect();
    }
    let ips: Vec<_> = if entry.pod.host_network { entry.pod.host_ips.to_vec() } else { addresses(entry).collect() };
    if ips.is_empty() {
        return vec![Found { pod, ip: None }];
    }
    ips.into_iter().map(|ip| Found { pod, ip: Some(ip) }).collect()
}

/// Of a pod on the cluster's network: what is annotated, since nobody may have decided anything here.
fn addresses(entry: &PodEntry) -> impl Iterator<Item = IpAddr> {
    let annotated = entry.pod.annotated.as_ref().map(|annotated| &annotated.addresses);
    let known = annotated.or(entry.addresses.as_ref()).filter(|_| !entry.pod.host_network && !entry.pod.finished);
    known.into_iter().flat_map(|addresses| addresses.ips.iter().map(ipnetwork::IpNetwork::ip))
}

/// The addresses that a node's packets to pods come from.
fn management(world: &World, node: &Name) -> impl Iterator<Item = IpAddr> {
    let subnets = world.nodes.get(node).into_iter().flat_map(|node| &node.subnets);
    subnets.filter_map(|subnet| subnet.nth(2))
}

struct Flow<'a> {
    world: &'a World,
    from: &'a Found<'a>,
    to: &'a Found<'a>,
    protocol: Protocol,
    port: u16,
}

impl Flow<'_> {
    fn answer(&self) -> Answer {
        let place = |end: &Found<'_>| Place { pod: end.pod.map(|(key, _)| key.clone()), ip: end.ip };
        let mut notes = Vec::new();
        let (egress, ingress) = if self.from.pod.is_some() && place(self.from).pod == place(self.to).pod {
            (Decision::Itself, Decision::Itself)
        } else {
            let egress = self.decide(Direction::Egress, self.from, self.to, &mut notes);
            let ingress = match self.own_node() {
                Some(node) => Decision::OwnNode(node.clone()),
                None => self.decide(Direction::Ingress, self.to, self.from, &mut notes),
            };
            (egress, ingress)
        };
        let (from, to) = (place(self.from), place(self.to));
        Answer { from, to, protocol: self.protocol, port: self.port, egress, ingress, notes }
    }

    /// The node of the destination, if packets come from there.
    fn own_node(&self) -> Option<&Name> {
        let (_, entry) = self.to.pod?;
        let node = entry.pod.wired_on()?;
        management(self.world, node).any(|ip| Some(ip) == self.from.ip).then_some(node)
    }

    fn decide(&self, direction: Direction, own: &Found<'_>, other: &Found<'_>, notes: &mut Vec<String>) -> Decision {
        let Some((key, entry)) = own.pod.filter(|(_, entry)| !entry.pod.host_network) else { return Decision::NoPod };
        let about = self.world.policies_of(key, &entry.pod);
        let mut policies: Vec<_> = about.filter(|(_, policy)| policy.rules(direction).is_some()).collect();
        policies.sort_by_key(|(key, _)| *key);
        if policies.is_empty() {
            return Decision::Open;
        }
        let fits = |(key, policy): &(&ObjectKey, &NetworkPolicy)| {
            let rules = policy.rules(direction).unwrap_or_default();
            let rule = rules.iter().position(|rule| self.rule_fits(rule, key, direction, other))?;
            Some(Decision::Allowed { policy: (*key).clone(), rule })
        };
        if let Some(decision) = policies.iter().find_map(fits) {
            return decision;
        }
        notes.extend(unreadable(&policies));
        if other.ip.is_none() {
            let pod = other.pod.map(|(key, _)| key.to_string()).unwrap_or_default();
            notes.push(format!("{pod} has no address yet; blocks of addresses are not looked at"));
        }
        Decision::Denied(policies.into_iter().map(|(key, _)| key.clone()).collect())
    }

    fn rule_fits(&self, rule: &Rule, policy: &ObjectKey, direction: Direction, other: &Found<'_>) -> bool {
        let peer = |peer: &Peer| self.is_peer(peer, &policy.namespace, direction, other);
        rule.peers.as_ref().is_none_or(|peers| peers.iter().any(peer))
            && rule.ports.as_ref().is_none_or(|ports| ports.iter().any(|port| self.is_port(port)))
    }

    fn is_peer(&self, peer: &Peer, own: &Name, direction: Direction, other: &Found<'_>) -> bool {
        let (namespaces, pods) = match peer {
            Peer::Block(block) => {
                return other.ip.is_some_and(|ip| {
                    block.cidr.contains(ip) && !block.except.iter().any(|except| except.contains(ip))
                });
            }
            Peer::Namespaces(namespaces) => (Some(namespaces), None),
            Peer::Pods { namespaces, pods } => (namespaces.as_ref(), Some(pods)),
        };
        // what a pod in its node's network sends looks as if the node sent it
        let is_node = |entry: &PodEntry| direction == Direction::Ingress && entry.pod.host_network;
        let Some((key, entry)) = other.pod.filter(|(_, entry)| !is_node(entry)) else { return false };
        let in_namespace =
            namespaces.map_or(key.namespace == *own, |selector| self.is_labelled(&key.namespace, selector));
        in_namespace && pods.is_none_or(|selector| selector.matches(&entry.pod.labels))
    }

    fn is_labelled(&self, namespace: &Name, selector: &Selector) -> bool {
        self.world.namespaces.get(namespace).is_some_and(|namespace| selector.matches(&namespace.labels))
    }

    fn is_port(&self, port: &PolicyPort) -> bool {
        port.protocol() == self.protocol
            && match port {
                PolicyPort::All(_) => true,
                PolicyPort::Numbers(_, first, last) => (*first..=*last).contains(&self.port),
                PolicyPort::Named(protocol, name) => {
                    self.to.pod.is_some_and(|(_, entry)| entry.pod.numbers(*protocol, name).any(|n| n == self.port))
                }
            }
    }
}

/// Parts of policies that could not be read and select nothing.
fn unreadable(policies: &[(&ObjectKey, &NetworkPolicy)]) -> Vec<String> {
    let bad = policies.iter().flat_map(|(key, policy)| policy.bad.iter().map(move |bad| (key, bad)));
    bad.map(|(key, bad)| format!("{key}: {}: {}", bad.field, bad.problem)).collect()
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod(key) => write!(f, "{key}"),
            Self::Address(ip) => write!(f, "{ip}"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.pod, self.ip) {
            (Some(pod), Some(ip)) => write!(f, "{pod} {ip}"),
            (Some(pod), None) => write!(f, "{pod}"),
            (None, ip) => ip.map_or(Ok(()), |ip| write!(f, "{ip}")),
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPod => f.write_str("not a pod of the cluster's network, policies are not about it"),
            Self::Itself => f.write_str("a pod always reaches itself"),
            Self::OwnNode(node) => write!(f, "always reached from its own node {node}"),
            Self::Open => f.write_str("no policy is about it"),
            Self::Allowed { policy, rule } => write!(f, "allowed by rule {} of policy {policy}", rule + 1),
            Self::Denied(policies) => {
                let names: Vec<_> = policies.iter().map(ToString::to_string).collect();
                write!(f, "allowed by no rule of {}", names.join(", "))
            }
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.is_allowed() { "allowed" } else { "denied" };
        let (from, to) = (&self.from, &self.to);
        writeln!(f, "{word}: {from} to {to} port {}/{}", self.port, self.protocol.name())?;
        let who = |place: &Place| place.pod.as_ref().map_or_else(|| place.to_string(), ToString::to_string);
        writeln!(f, "  egress of {}: {}", who(from), self.egress)?;
        writeln!(f, "  ingress of {}: {}", who(to), self.ingress)?;
        self.notes.iter().try_for_each(|note| writeln!(f, "  note: {note}"))
    }
}
