//! Why a connection is allowed or denied: which policy and which of its rules decided.
//!
//! ```text
//! denied: a/client 10.244.0.5 to b/db 10.244.1.7 port 5432/TCP
//!   egress of a/client: no policy is about it
//!   ingress of b/db: allowed by no rule of b/deny, b/web
//! ```
//!
//! It looks at the Kubernetes objects, in the same world that rows are planned from, and at no row.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use ovnkube_model::{
    Direction, Family, Name, NetworkPolicy, ObjectKey, Peer, PodAddresses, PodEntry, PodKey, PodSet, PolicyPort,
    Protocol, Rule, Selector, Service, World,
};

use crate::topology::join_addresses;

/// One end of a connection, as the user gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    Pod(PodKey),
    Address(IpAddr),
}

/// The result of a question, for one address family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub from: Resolved,
    pub to: Resolved,
    pub protocol: Protocol,
    pub port: u16,
    /// The decision of the source's policies.
    pub egress: Decision,
    /// The decision of the destination's policies.
    pub ingress: Decision,
    /// Their decisions about replies, at ends where the connection is not tracked.
    pub answers: Vec<(Direction, Decision)>,
    /// What could not be parsed or checked, a line each.
    pub notes: Vec<String>,
}

/// One end of a connection, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    pub pod: Option<PodKey>,
    /// `None` for a pod that has none yet.
    pub ip: Option<IpAddr>,
}

/// The decision about one end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Not a pod of the cluster's network: policies select no other.
    NoPod,
    /// A pod always reaches itself.
    Itself,
    /// A pod can always be reached from its own node, for the kubelet's probes.
    OwnNode(Name),
    /// No policy selects the pod for this direction.
    Open,
    Allowed {
        policy: ObjectKey,
        /// Its index in the policy, from 0.
        rule: usize,
        /// Connections are not tracked: replies are checked like other packets.
        stateless: bool,
    },
    /// Policies select the pod and none of their rules matches.
    Denied(Vec<ObjectKey>),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("cannot find pod {0}: there is none of this name; write namespace/name")]
    NoPod(PodKey),
    #[error("cannot find an address of pod {0}: it has ended")]
    Ended(PodKey),
    #[error("cannot connect {0} to {1}: they have no address family in common")]
    NoFamily(String, String),
    #[error("cannot look at {0}: it is the address of service {1}; policies see its pods, ask about one of these")]
    Service(IpAddr, ObjectKey),
    #[error("cannot look at {0}: service {1} drops what {2} sends there; add {2} to its loadBalancerSourceRanges")]
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

/// Decides for each address family that both ends have; returns at least one answer.
pub fn why(world: &World, from: &Endpoint, to: &Endpoint, protocol: Protocol, port: u16) -> Result<Vec<Answer>, Error> {
    if let Endpoint::Address(ip) = to
        && let Some(key) = served_at(world, *ip, protocol, port)
    {
        let sources = ends(world, from, Role::Source)?;
        let is_kept_out = |from: &IpAddr| world.services.keeps_out(key, *from, *ip);
        let mut senders = sources.iter().flat_map(Party::senders).filter(|from| from.is_ipv6() == ip.is_ipv6());
        return Err(match senders.find(is_kept_out) {
            Some(from) => Error::KeptOut(*ip, key.clone(), from),
            None => Error::Service(*ip, key.clone()),
        });
    }
    let sources = ends(world, from, Role::Source)?;
    let destinations = ends(world, to, Role::Destination)?;
    let pairs = sources.iter().flat_map(|from| destinations.iter().map(move |to| (from, to)));
    let same_family = |(from, to): &(&Party<'_>, &Party<'_>)| match (from.ip, to.ip) {
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

/// Default ports of clients on Linux.
const CLIENT_PORTS: RangeInclusive<u16> = 32768..=60999;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Source,
    Destination,
}

type PodRef<'a> = (&'a PodKey, &'a PodEntry);

/// An end with one of its addresses.
struct Party<'a> {
    pod: Option<PodRef<'a>>,
    ip: Option<IpAddr>,
    /// Pods that rules know by this address: host-network pods share their node's. Rules know no pod by the
    /// address that a node's packets to pods come from.
    known_as: Vec<PodRef<'a>>,
}

impl<'a> Party<'a> {
    fn at(world: &'a World, pod: Option<PodRef<'a>>, ip: IpAddr) -> Self {
        let known_as = world.pods.iter().filter(|(_, entry)| known_by(world, entry).any(|known| known == ip));
        Self { pod, ip: Some(ip), known_as: known_as.collect() }
    }

    /// The sources of its packets to other destinations than pods.
    fn senders(&self) -> Vec<IpAddr> {
        let of_node =
            self.pod.filter(|(_, entry)| entry.pod.host_network).map(|(_, entry)| entry.pod.host_ips().to_vec());
        of_node.unwrap_or_else(|| self.ip.into_iter().collect())
    }
}

/// The service that takes packets to an external address and port, before policies see them.
fn served_at(world: &World, ip: IpAddr, protocol: Protocol, port: u16) -> Option<&ObjectKey> {
    let is_served = |(key, service): &(&ObjectKey, &Service)| {
        let mut ports = service.ports.iter().filter(|have| (have.protocol, have.port) == (protocol, port));
        ports.any(|port| world.services.external_ips(key, port).contains(&ip))
    };
    world.services.iter().find(is_served).map(|(key, _)| key)
}

fn ends<'a>(world: &'a World, end: &Endpoint, role: Role) -> Result<Vec<Party<'a>>, Error> {
    match end {
        Endpoint::Pod(key) => {
            let (key, entry) = world.pods.get_key_value(key).ok_or_else(|| Error::NoPod(key.clone()))?;
            if entry.pod.finished {
                return Err(Error::Ended(key.clone()));
            }
            Ok(found(world, key, entry, role))
        }
        Endpoint::Address(ip) => {
            let is_at = |(key, service): &(&ObjectKey, &Service)| {
                service.ports.iter().any(|port| world.services.cluster_ips(key, port).contains(ip))
            };
            if let Some((key, _)) = world.services.iter().find(is_at) {
                return Err(Error::Service(*ip, key.clone()));
            }
            let pod = world.pods.iter().find(|(_, entry)| addresses(entry).any(|of_pod| of_pod == *ip));
            Ok(vec![Party::at(world, pod, *ip)])
        }
    }
}

fn found<'a>(world: &'a World, key: &'a PodKey, entry: &'a PodEntry, role: Role) -> Vec<Party<'a>> {
    let pod = Some((key, entry));
    let ips: Vec<_> = if entry.pod.host_network && role == Role::Source {
        // the source of packets from its node to pods
        entry.pod.node.iter().flat_map(|node| management(world, node)).collect()
    } else {
        known_by(world, entry).collect()
    };
    if ips.is_empty() {
        let is_hidden = entry.pod.host_network && role == Role::Source;
        return vec![Party { pod, ip: None, known_as: pod.filter(|_| !is_hidden).into_iter().collect() }];
    }
    ips.into_iter().map(|ip| Party::at(world, pod, ip)).collect()
}

/// The addresses that rules know a pod by.
fn known_by<'a>(world: &'a World, entry: &'a PodEntry) -> impl Iterator<Item = IpAddr> + 'a {
    let of_node = world.host_ips(&entry.pod).filter(|_| !entry.pod.finished);
    addresses(entry).chain(of_node)
}

/// The addresses of a pod on the cluster's network: those it was given, else those it runs with, or those annotated
/// until it runs.
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

/// Whether a node's own packets arrive at pods with this source, from the node or from its gateway.
fn is_hosts(world: &World, ip: IpAddr) -> bool {
    let mut joins = world.nodes.values().filter_map(|node| node.id).flat_map(|id| join_addresses(world, id));
    joins.any(|join| join.ip() == ip) || world.nodes.keys().any(|node| management(world, node).any(|own| own == ip))
}

struct Flow<'a> {
    world: &'a World,
    from: &'a Party<'a>,
    to: &'a Party<'a>,
    protocol: Protocol,
    port: u16,
}

/// Packets of a flow, seen from the end that sends or receives them.
struct Packets<'a> {
    direction: Direction,
    own: &'a Party<'a>,
    other: &'a Party<'a>,
    /// Their destination ports: all of these.
    ports: RangeInclusive<u16>,
}

impl Flow<'_> {
    fn answer(&self) -> Answer {
        let place = |end: &Party<'_>| Resolved { pod: end.pod.map(|(key, _)| key.clone()), ip: end.ip };
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
            let stateless = policy.stateless && self.world.settings.stateless_netpol;
            Some(Decision::Allowed { policy: (*key).clone(), rule, stateless })
        };
        let mut allowed: Vec<_> = policies.iter().filter_map(fits).collect();
        // a rule without connection tracking takes precedence
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

    /// Whether a rule matches for one of the pods the other end is known as; peer and port must match the same one.
    fn rule_fits(&self, rule: &Rule, policy: &ObjectKey, packets: &Packets<'_>) -> bool {
        let Packets { direction, own, other, ports } = packets;
        let mut known_as = std::iter::once(None).chain(other.known_as.iter().copied().map(Some));
        known_as.any(|who| {
            let destination = if *direction == Direction::Ingress { own.pod } else { who };
            let fits = |peer: Option<&Peer>, port: Option<&PolicyPort>| {
                port.is_none_or(|port| self.is_port(port, ports, destination))
                    && self.has_room(peer, port, *ports.start(), policy, *direction)
            };
            let fits_ports = |peer: Option<&Peer>| match &rule.ports {
                None => fits(peer, None),
                Some(allowed) => allowed.iter().any(|port| fits(peer, Some(port))),
            };
            let is_peer = |peer: &Peer| self.is_peer(peer, &policy.namespace, who, other.ip);
            match &rule.peers {
                None => fits_ports(None),
                Some(peers) => peers.iter().any(|peer| is_peer(peer) && fits_ports(Some(peer))),
            }
        })
    }

    /// Whether the policy has room for the sets of pods that its rows need for a peer and a port. For a named port, the number
    /// must be among those that it allows in the set of the destination: other sets may have other numbers.
    fn has_room(
        &self,
        peer: Option<&Peer>,
        port: Option<&PolicyPort>,
        number: u16,
        key: &ObjectKey,
        direction: Direction,
    ) -> bool {
        let policies = &self.world.policies;
        let selected = peer.and_then(|peer| PodSet::of_peer(peer, &key.namespace));
        let has_room = |set: &PodSet| policies.has_room(&key.namespace, set);
        let (Some(PolicyPort::Named(protocol, name)), Some(policy)) = (port, policies.get(key)) else {
            return selected.as_ref().is_none_or(has_room);
        };
        let is_common = |set: PodSet| {
            let set = set.with_port(*protocol, name);
            has_room(&set) && policies.is_common(&set, number, policies.most_numbers(key))
        };
        match direction {
            Direction::Ingress => {
                selected.as_ref().is_none_or(has_room) && PodSet::subjects(key, policy).is_some_and(is_common)
            }
            Direction::Egress => is_common(selected.unwrap_or_else(PodSet::everybody)),
        }
    }

    fn is_peer(&self, peer: &Peer, own: &Name, who: Option<PodRef<'_>>, ip: Option<IpAddr>) -> bool {
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

    /// In a whole namespace: a pod of it on the cluster's network, or a host if the namespace stands for hosts.
    fn is_in_namespaces(&self, selector: &Selector, who: Option<PodRef<'_>>, ip: Option<IpAddr>) -> bool {
        let of_hosts = self.world.settings.host_network_namespace.as_ref().filter(|_| who.is_none());
        match who.filter(|(_, entry)| !entry.pod.host_network) {
            Some((key, _)) => self.is_labelled(&key.namespace, selector),
            None => of_hosts
                .is_some_and(|name| self.is_labelled(name, selector) && ip.is_some_and(|ip| is_hosts(self.world, ip))),
        }
    }

    fn is_labelled(&self, namespace: &Name, selector: &Selector) -> bool {
        self.world.namespaces.get(namespace).is_some_and(|namespace| selector.matches(&namespace.labels))
    }

    fn is_port(&self, port: &PolicyPort, asked: &RangeInclusive<u16>, destination: Option<PodRef<'_>>) -> bool {
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

/// Parts of policies that could not be parsed and select nothing.
fn unreadable(policies: &[(&ObjectKey, &NetworkPolicy)]) -> Vec<String> {
    let bad = policies.iter().flat_map(|(key, policy)| policy.bad.iter().map(move |bad| (key, bad)));
    bad.map(|(key, bad)| format!("{key}: {}: {}", bad.field, bad.problem)).collect()
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod(key) => write!(f, "{key}"),
            Self::Address(ip) => write!(f, "{ip}"),
        }
    }
}

impl fmt::Display for Resolved {
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
        let who = |place: &Resolved| place.pod.as_ref().map_or_else(|| place.to_string(), ToString::to_string);
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
