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
use std::ops::RangeInclusive;

use ovnkube_model::{
    Direction, Family, Name, NetworkPolicy, ObjectKey, Peer, PodAddresses, PodEntry, PodKey, PolicyPort, Protocol,
    Rule, Selector, Service, World,
};

use crate::topology::join_addresses;

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
    /// What they say about answers, at ends where no connection is tracked.
    pub answers: Vec<(Direction, Decision)>,
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
        /// Connections are not tracked: answers are judged like other packets.
        stateless: bool,
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
    #[error("look at {0}: service {1} drops there what {2} sends; add it to its loadBalancerSourceRanges")]
    KeptOut(IpAddr, ObjectKey, IpAddr),
}

impl Answer {
    pub fn is_allowed(&self) -> bool {
        let answers = self.answers.iter().map(|(_, decision)| decision);
        answers.chain([&self.egress, &self.ingress]).all(Decision::is_allowed)
    }
}

impl Decision {
    pub fn is_allowed(&self) -> bool {
        !matches!(self, Self::Denied(_))
    }

    fn is_stateless(&self) -> bool {
        matches!(self, Self::Allowed { stateless: true, .. })
    }
}

/// Decides for each address family that both ends have; there is at least one answer.
pub fn why(world: &World, from: &End, to: &End, protocol: Protocol, port: u16) -> Result<Vec<Answer>, Error> {
    if let End::Address(ip) = to
        && let Some(key) = served_at(world, *ip, protocol, port)
    {
        let sources = ends(world, from, Role::Source)?;
        let service = world.services.get(key);
        let is_kept_out = |from: &IpAddr| service.is_some_and(|service| service.keeps_out(*from, *ip));
        let mut senders = sources.iter().flat_map(Found::senders).filter(|from| from.is_ipv6() == ip.is_ipv6());
        return Err(match senders.find(is_kept_out) {
            Some(from) => Error::KeptOut(*ip, key.clone(), from),
            None => Error::Service(*ip, key.clone()),
        });
    }
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

/// Ports that clients have on Linux, if nobody says otherwise.
const CLIENT_PORTS: RangeInclusive<u16> = 32768..=60999;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Source,
    Destination,
}

type Known<'a> = (&'a PodKey, &'a PodEntry);

/// An end with one of its addresses.
struct Found<'a> {
    pod: Option<Known<'a>>,
    ip: Option<IpAddr>,
    /// Whom rules know by that address: pods in a node's network share it, and none of them is the
    /// address that their packets to pods come from.
    known_as: Vec<Known<'a>>,
}

impl<'a> Found<'a> {
    fn at(world: &'a World, pod: Option<Known<'a>>, ip: IpAddr) -> Self {
        let known_as = world.pods.iter().filter(|(_, entry)| known_by(entry).any(|known| known == ip));
        Self { pod, ip: Some(ip), known_as: known_as.collect() }
    }

    /// What its packets to other than pods come from.
    fn senders(&self) -> Vec<IpAddr> {
        let of_node =
            self.pod.filter(|(_, entry)| entry.pod.host_network).map(|(_, entry)| entry.pod.host_ips().to_vec());
        of_node.unwrap_or_else(|| self.ip.into_iter().collect())
    }
}

/// The service that packets to an external address and port go to: they do before policies see them.
fn served_at(world: &World, ip: IpAddr, protocol: Protocol, port: u16) -> Option<&ObjectKey> {
    let is_served = |(key, service): &(&ObjectKey, &Service)| {
        let mut ports = service.ports.iter().filter(|have| (have.protocol, have.port) == (protocol, port));
        ports.any(|port| world.services.outer_ips(key, port).contains(&ip))
    };
    world.services.iter().find(is_served).map(|(key, _)| key)
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
            let is_at = |(key, service): &(&ObjectKey, &Service)| {
                service.ports.iter().any(|port| world.services.cluster_ips(key, port).contains(ip))
            };
            if let Some((key, _)) = world.services.iter().find(is_at) {
                return Err(Error::Service(*ip, key.clone()));
            }
            let pod = world.pods.iter().find(|(_, entry)| addresses(entry).any(|of_pod| of_pod == *ip));
            Ok(vec![Found::at(world, pod, *ip)])
        }
    }
}

fn found<'a>(world: &'a World, key: &'a PodKey, entry: &'a PodEntry, role: Role) -> Vec<Found<'a>> {
    let pod = Some((key, entry));
    let ips: Vec<_> = if entry.pod.host_network && role == Role::Source {
        // its node's way to pods
        entry.pod.node.iter().flat_map(|node| management(world, node)).collect()
    } else {
        known_by(entry).collect()
    };
    if ips.is_empty() {
        let is_hidden = entry.pod.host_network && role == Role::Source;
        return vec![Found { pod, ip: None, known_as: pod.filter(|_| !is_hidden).into_iter().collect() }];
    }
    ips.into_iter().map(|ip| Found::at(world, pod, ip)).collect()
}

/// The addresses that rules know a pod by.
fn known_by(entry: &PodEntry) -> impl Iterator<Item = IpAddr> {
    let of_node = entry.pod.host_ips().iter().copied().filter(|_| !entry.pod.finished);
    addresses(entry).chain(of_node)
}

/// Of a pod on the cluster's network. Where nobody has decided anything it is what it runs with, or what is
/// annotated until it does.
fn addresses(entry: &PodEntry) -> impl Iterator<Item = IpAddr> {
    let PodEntry { pod, addresses: given, .. } = entry;
    let annotated = pod.annotated.as_ref().map(|annotated| &annotated.addresses).filter(|_| !pod.running);
    let known = given.as_ref().or(annotated).into_iter().flat_map(PodAddresses::each);
    let told = pod.runs_with().filter(|_| given.is_none());
    known.chain(told).filter(|_| !pod.host_network && !pod.finished)
}

/// The addresses that a node's packets to pods come from.
fn management(world: &World, node: &Name) -> impl Iterator<Item = IpAddr> {
    let subnets = world.nodes.get(node).into_iter().flat_map(|node| &node.subnets);
    subnets.filter_map(|subnet| subnet.nth(2))
}

/// Whether packets of some node's own stack come to pods from there, by the node or by its gateway.
fn is_hosts(world: &World, ip: IpAddr) -> bool {
    let mut joins = world.nodes.values().filter_map(|node| node.id).flat_map(|id| join_addresses(world, id));
    joins.any(|join| join.ip() == ip) || world.nodes.keys().any(|node| management(world, node).any(|own| own == ip))
}

struct Flow<'a> {
    world: &'a World,
    from: &'a Found<'a>,
    to: &'a Found<'a>,
    protocol: Protocol,
    port: u16,
}

/// Packets that an end of a flow sends or gets, seen from there.
struct Packets<'a> {
    direction: Direction,
    own: &'a Found<'a>,
    other: &'a Found<'a>,
    /// Where they go to: all of these.
    ports: RangeInclusive<u16>,
}

impl Flow<'_> {
    fn answer(&self) -> Answer {
        let place = |end: &Found<'_>| Place { pod: end.pod.map(|(key, _)| key.clone()), ip: end.ip };
        let mut notes = Vec::new();
        let mut answers = Vec::new();
        let (egress, ingress) = if self.from.pod.is_some() && place(self.from).pod == place(self.to).pod {
            (Decision::Itself, Decision::Itself)
        } else {
            let ends = [(Direction::Egress, self.from, self.to), (Direction::Ingress, self.to, self.from)];
            let [egress, ingress] = ends.map(|(direction, own, other)| {
                let asked = self.decide(&Packets { direction, own, other, ports: self.port..=self.port }, &mut notes);
                if asked.is_stateless() {
                    let direction = direction.opposite();
                    let back = Packets { direction, own, other, ports: CLIENT_PORTS };
                    answers.push((direction, self.decide(&back, &mut notes)));
                }
                asked
            });
            (egress, ingress)
        };
        let (from, to) = (place(self.from), place(self.to));
        Answer { from, to, protocol: self.protocol, port: self.port, egress, ingress, answers, notes }
    }

    fn decide(&self, packets: &Packets<'_>, notes: &mut Vec<String>) -> Decision {
        let Packets { direction, own, other, .. } = packets;
        let Some((key, entry)) = own.pod.filter(|(_, entry)| !entry.pod.host_network) else { return Decision::NoPod };
        if let Some(node) = entry.pod.wired_on().filter(|_| *direction == Direction::Ingress)
            && management(self.world, node).any(|ip| Some(ip) == other.ip)
        {
            return Decision::OwnNode(node.clone());
        }
        let about = self.world.policies_of(key, &entry.pod);
        let mut policies: Vec<_> = about.filter(|(_, policy)| policy.rules(*direction).is_some()).collect();
        policies.sort_by_key(|(key, _)| *key);
        if policies.is_empty() {
            return Decision::Open;
        }
        let fits = |(key, policy): &(&ObjectKey, &NetworkPolicy)| {
            let rules = policy.rules(*direction).unwrap_or_default();
            let rule = rules.iter().position(|rule| self.rule_fits(rule, key, packets))?;
            let stateless = policy.stateless && self.world.network.stateless_netpol;
            Some(Decision::Allowed { policy: (*key).clone(), rule, stateless })
        };
        let mut allowed: Vec<_> = policies.iter().filter_map(fits).collect();
        // one that tracks nothing counts, whichever others there are
        allowed.sort_by_key(|decision| !decision.is_stateless());
        if let Some(decision) = allowed.into_iter().next() {
            return decision;
        }
        notes.extend(unreadable(&policies));
        if other.ip.is_none() {
            let pod = other.pod.map(|(key, _)| key.to_string()).unwrap_or_default();
            notes.push(format!("{pod} has no address yet; blocks of addresses are not looked at"));
        }
        Decision::Denied(policies.into_iter().map(|(key, _)| key.clone()).collect())
    }

    /// Whoever of those that the other end is known as: the rule has to mean the same one throughout.
    fn rule_fits(&self, rule: &Rule, policy: &ObjectKey, packets: &Packets<'_>) -> bool {
        let Packets { direction, own, other, ports } = packets;
        let mut known_as = std::iter::once(None).chain(other.known_as.iter().copied().map(Some));
        known_as.any(|who| {
            let is_peer = |peer: &Peer| self.is_peer(peer, &policy.namespace, who, other.ip);
            let destination = if *direction == Direction::Ingress { own.pod } else { who };
            let is_port = |port: &PolicyPort| self.is_port(port, ports, destination);
            rule.peers.as_ref().is_none_or(|peers| peers.iter().any(is_peer))
                && rule.ports.as_ref().is_none_or(|ports| ports.iter().any(is_port))
        })
    }

    fn is_peer(&self, peer: &Peer, own: &Name, who: Option<Known<'_>>, ip: Option<IpAddr>) -> bool {
        let (namespaces, pods) = match peer {
            Peer::Block(block) => {
                return ip.is_some_and(|ip| {
                    block.cidr.contains(ip) && !block.except.iter().any(|except| except.contains(ip))
                });
            }
            Peer::Namespaces(namespaces) => return self.is_in_namespaces(namespaces, who, ip),
            Peer::Pods { namespaces, pods } => (namespaces.as_ref(), pods),
        };
        let Some((key, entry)) = who else { return false };
        let in_namespace =
            namespaces.map_or(key.namespace == *own, |selector| self.is_labelled(&key.namespace, selector));
        in_namespace && pods.matches(&entry.pod.labels)
    }

    /// In a namespace as a whole: its pods on the cluster's network, or hosts, where they have one.
    fn is_in_namespaces(&self, selector: &Selector, who: Option<Known<'_>>, ip: Option<IpAddr>) -> bool {
        let of_hosts = self.world.network.host_network_namespace.as_ref().filter(|_| who.is_none());
        match who.filter(|(_, entry)| !entry.pod.host_network) {
            Some((key, _)) => self.is_labelled(&key.namespace, selector),
            None => of_hosts
                .is_some_and(|name| self.is_labelled(name, selector) && ip.is_some_and(|ip| is_hosts(self.world, ip))),
        }
    }

    fn is_labelled(&self, namespace: &Name, selector: &Selector) -> bool {
        self.world.namespaces.get(namespace).is_some_and(|namespace| selector.matches(&namespace.labels))
    }

    fn is_port(&self, port: &PolicyPort, asked: &RangeInclusive<u16>, destination: Option<Known<'_>>) -> bool {
        let has = |range: RangeInclusive<u16>| range.contains(asked.start()) && range.contains(asked.end());
        port.protocol() == self.protocol
            && match port {
                PolicyPort::All(_) => true,
                PolicyPort::Numbers(_, first, last) => has(*first..=*last),
                PolicyPort::Named(protocol, name) => {
                    destination.is_some_and(|(_, entry)| entry.pod.numbers(*protocol, name).any(|n| has(n..=n)))
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
            Self::Allowed { policy, rule, stateless } => {
                let how = if *stateless { ", which tracks no connections" } else { "" };
                write!(f, "allowed by rule {} of policy {policy}{how}", rule + 1)
            }
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
        for (direction, decision) in &self.answers {
            let (word, end) = match direction {
                Direction::Egress => ("egress", to),
                Direction::Ingress => ("ingress", from),
            };
            writeln!(f, "  answers, {word} of {}: {decision}", who(end))?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "  note: {note}"))
    }
}
