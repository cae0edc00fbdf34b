//! Sets of pods that policies refer to. Policies that select pods in the same way share a set.

use std::fmt;

use ovnkube_ovn::{OwnerId, owner};

use crate::{Direction, Labels, Name, NetworkPolicy, ObjectKey, Peer, Pod, Protocol, Rule, Selector};

/// Pods by namespace and labels, and optionally by a named port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodSet {
    /// What the ids of its rows begin with, hashed. As the first field it also decides comparisons: selectors may have long texts that
    /// differ only at their end.
    hash: u64,
    pub namespaces: Namespaces,
    pub pods: Selector,
    /// Only pods that have a port of this name, grouped by its number.
    pub port: Option<(Protocol, Name)>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Namespaces {
    One(Name),
    Labelled(Selector),
    /// Whole namespaces: not their host-network pods, but the nodes themselves if one of these namespaces stands for
    /// them.
    Whole(Selector),
}

impl PodSet {
    /// The owner type of its rows.
    pub(crate) const OWNER_TYPE: &str = "PodSelector";

    pub(crate) fn new(namespaces: Namespaces, pods: Selector) -> Self {
        let mut set = Self { hash: 0, namespaces, pods, port: None };
        set.hash = owner::fnv1a_on(OwnerId::new(Self::OWNER_TYPE).hash(), &format!(":{set}"));
        set
    }

    /// Pods in a policy's own namespace.
    fn own(namespace: &Name, pods: &Selector) -> Self {
        Self::new(Namespaces::One(namespace.clone()), pods.clone())
    }

    fn labelled(namespaces: &Selector, pods: &Selector) -> Self {
        Self::new(Namespaces::Labelled(namespaces.clone()), pods.clone())
    }

    /// The hash of what the ids of its rows begin with: controller, owner type and its text.
    pub(crate) fn text_hash(&self) -> u64 {
        self.hash
    }

    /// All pods of the cluster.
    pub fn everybody() -> Self {
        Self::labelled(&Selector::default(), &Selector::default())
    }

    /// The pods that a peer selects; `None` for a block of addresses.
    pub fn of_peer(peer: &Peer, own: &Name) -> Option<Self> {
        match peer {
            Peer::Namespaces(namespaces) => Some(Self::new(Namespaces::Whole(namespaces.clone()), Selector::default())),
            Peer::Pods { namespaces: None, pods } => Some(Self::own(own, pods)),
            Peer::Pods { namespaces: Some(namespaces), pods } => Some(Self::labelled(namespaces, pods)),
            Peer::Block(_) => None,
        }
    }

    /// The pods that a policy selects, as a set; `None` also if the selector is too long for one.
    pub fn subjects(key: &ObjectKey, policy: &NetworkPolicy) -> Option<Self> {
        policy.pods.as_ref().filter(|pods| !pods.is_long()).map(|pods| Self::own(&key.namespace, pods))
    }

    /// The sets in which an egress rule's named ports are looked up: all pods for a block, since pods may have
    /// addresses in it.
    pub fn destinations(rule: &Rule, own: &Name) -> Vec<Self> {
        let of_peer = |peer| Self::of_peer(peer, own).unwrap_or_else(Self::everybody);
        rule.peers.as_ref().map_or_else(|| vec![Self::everybody()], |peers| peers.iter().map(of_peer).collect())
    }

    /// The sets in which a rule's named ports are looked up.
    pub fn looked_up(key: &ObjectKey, policy: &NetworkPolicy, direction: Direction, rule: &Rule) -> Vec<Self> {
        match direction {
            Direction::Ingress => Self::subjects(key, policy).into_iter().collect(),
            Direction::Egress => Self::destinations(rule, &key.namespace),
        }
    }

    /// Those of a set without a port that have a port of this name.
    pub fn with_port(mut self, protocol: Protocol, name: &Name) -> Self {
        debug_assert!(self.port.is_none(), "{self}");
        self.hash = owner::fnv1a_on(self.hash, &port_text(protocol, name));
        self.port = Some((protocol, name.clone()));
        self
    }

    /// Whether it may hold nearly all pods of the cluster.
    pub(crate) fn is_open(&self) -> bool {
        match &self.namespaces {
            Namespaces::One(_) => false,
            Namespaces::Labelled(selector) | Namespaces::Whole(selector) => {
                !selector.is_specific() && !self.pods.is_specific()
            }
        }
    }

    /// Whether a pod of this namespace is in the set, regardless of its ports.
    pub(crate) fn holds(&self, namespace: &str, namespace_labels: Option<&Labels>, pod: &Pod) -> bool {
        let is_labelled = |selector: &Selector| namespace_labels.is_some_and(|labels| selector.matches(labels));
        let in_namespace = match &self.namespaces {
            Namespaces::One(name) => name.as_ref() == namespace,
            Namespaces::Labelled(selector) => is_labelled(selector),
            Namespaces::Whole(selector) => !pod.host_network && is_labelled(selector),
        };
        in_namespace && self.pods.matches(&pod.labels)
    }
}

/// The name that ovn-kubernetes uses: the namespace or its selector, and the pods' selector.
impl fmt::Display for PodSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespaces {
            Namespaces::One(name) => write!(f, "{name}_{}", self.pods)?,
            Namespaces::Labelled(selector) => write!(f, "{selector}_{}", self.pods)?,
            Namespaces::Whole(selector) => write!(f, "{selector}")?,
        }
        self.port.as_ref().map_or(Ok(()), |(protocol, name)| f.write_str(&port_text(*protocol, name)))
    }
}

/// What the text of a set with a port ends with.
fn port_text(protocol: Protocol, name: &Name) -> String {
    format!("_{}:{name}", protocol.ovn())
}

/// The sets that a policy refers to.
pub(crate) fn of_policy(key: &ObjectKey, policy: &NetworkPolicy) -> Vec<PodSet> {
    let mut sets = Vec::new();
    for rule in policy.ingress.iter().flatten() {
        // the peers, whatever ports the rule allows
        sets.extend(selected(rule, &key.namespace));
        // one that selects nothing, as when it is too large, has no use for its names
        let selects = rule.peers.as_ref().is_none_or(|peers| !peers.is_empty());
        for (protocol, name) in rule.named_ports().filter(|_| selects) {
            sets.extend(PodSet::subjects(key, policy).map(|set| set.with_port(protocol, name)));
        }
    }
    for rule in policy.egress.iter().flatten() {
        if rule.has_plain_ports() {
            sets.extend(selected(rule, &key.namespace));
        }
        for (protocol, name) in rule.named_ports() {
            let named = PodSet::destinations(rule, &key.namespace);
            sets.extend(named.into_iter().map(|set| set.with_port(protocol, name)));
        }
    }
    sets.sort();
    sets.dedup();
    sets
}

/// The sets of a rule's peers, regardless of its ports.
fn selected(rule: &Rule, own: &Name) -> impl Iterator<Item = PodSet> {
    rule.peers.iter().flatten().filter_map(|peer| PodSet::of_peer(peer, own))
}
