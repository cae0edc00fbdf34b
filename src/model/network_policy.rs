//! `NetworkPolicies`.
//!
//! What cannot be read selects nothing: a broken peer nobody, a broken port no port. A list that had
//! something in it stays a list, so that nothing broken ever means everything.

mod fields;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::fields::PolicyFields;
use crate::{BadField, Family, Name, Protocol, Selector, Subnet};

/// A policy's spec, reduced to what it means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkPolicy {
    pub uid: Name,
    /// The pods it is about, of its own namespace. None where that cannot be read: it is about nobody.
    pub pods: Option<Selector>,
    /// What may come in; none where the policy is not about that.
    pub ingress: Option<Vec<Rule>>,
    /// Where packets may go; none where the policy is not about that.
    pub egress: Option<Vec<Rule>>,
    /// Annotated to need no connection tracking.
    pub stateless: bool,
    pub bad: Vec<BadField>,
}

/// Coming in or going out, seen from the pods a policy is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    Egress,
    Ingress,
}

/// Everything at the same time: a peer of the rule and a port of the rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// None: everybody.
    pub peers: Option<Vec<Peer>>,
    /// None: every port of every protocol, and what has no ports.
    pub ports: Option<Vec<PolicyPort>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Peer {
    /// All pods of the namespaces with these labels: `namespaceSelector` alone.
    Namespaces(Selector),
    /// Pods with these labels of the policy's own namespace, or of namespaces with labels.
    Pods {
        namespaces: Option<Selector>,
        pods: Selector,
    },
    Block(Block),
}

/// `ipBlock`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Which of the rule's blocks it is.
    pub index: u32,
    pub cidr: Subnet,
    /// Parts of it.
    pub except: Vec<Subnet>,
}

impl Block {
    pub fn family(&self) -> Family {
        Family::of_subnet(self.cidr)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PolicyPort {
    All(Protocol),
    /// From the first number to the last.
    Numbers(Protocol, u16, u16),
    /// Of the destination pod, whatever its number there.
    Named(Protocol, Name),
}

impl PolicyPort {
    pub fn protocol(&self) -> Protocol {
        match self {
            Self::All(protocol) | Self::Numbers(protocol, ..) | Self::Named(protocol, _) => *protocol,
        }
    }
}

impl Direction {
    pub const ALL: [Self; 2] = [Self::Egress, Self::Ingress];

    /// That of answers.
    pub fn opposite(self) -> Self {
        match self {
            Self::Egress => Self::Ingress,
            Self::Ingress => Self::Egress,
        }
    }

    /// As Kubernetes spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Egress => "Egress",
            Self::Ingress => "Ingress",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl NetworkPolicy {
    /// The rules of a direction; `None` where the policy is not about it.
    pub fn rules(&self, direction: Direction) -> Option<&[Rule]> {
        match direction {
            Direction::Egress => self.egress.as_deref(),
            Direction::Ingress => self.ingress.as_deref(),
        }
    }
}

impl Rule {
    /// The named ports among its ports.
    pub fn named_ports(&self) -> impl Iterator<Item = (Protocol, &Name)> {
        self.ports.iter().flatten().filter_map(|port| match port {
            PolicyPort::Named(protocol, name) => Some((*protocol, name)),
            _ => None,
        })
    }

    /// Whether it lets anything through that is not a named port.
    pub fn has_plain_ports(&self) -> bool {
        self.ports.as_ref().is_none_or(|ports| ports.iter().any(|p| !matches!(p, PolicyPort::Named(..))))
    }
}
