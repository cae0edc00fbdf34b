//! `NetworkPolicies`.
//!
//! What cannot be parsed selects nothing: a broken peer no pods, a broken port no port. A list that had
//! entries stays a list, so that an error never means "everything".

pub(crate) mod fields;
mod need;
mod size;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::need::Need;
pub(crate) use self::need::{MOST_NUMBERS, OF_NAMESPACE};
use crate::{BadField, Family, Name, Protocol, Selector, Subnet};

/// A policy's spec, parsed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkPolicy {
    pub uid: Name,
    /// Creation, seconds since 1970.
    #[serde(default)]
    pub created: i64,
    /// The pods of its namespace that it selects; `None` if the selector is invalid: it selects no pods.
    pub pods: Option<Selector>,
    /// The rules for ingress; `None` if the policy does not cover ingress.
    pub ingress: Option<Vec<Rule>>,
    /// The rules for egress; `None` if the policy does not cover egress.
    pub egress: Option<Vec<Rule>>,
    /// Annotated to work without connection tracking.
    pub stateless: bool,
    /// How many numbers each of its named ports may stand for.
    #[serde(default = "most_numbers")]
    pub most_numbers: usize,
    /// What its rules need.
    #[serde(default)]
    pub need: Need,
    pub bad: Vec<BadField>,
}

/// Ingress or egress, seen from the pods that a policy selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    Egress,
    Ingress,
}

/// Allows packets that match one of the peers and one of the ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// `None`: any peer.
    pub peers: Option<Vec<Peer>>,
    /// `None`: every port of every protocol, and protocols without ports.
    pub ports: Option<Vec<PolicyPort>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Peer {
    /// All pods of the namespaces with these labels: `namespaceSelector` alone.
    Namespaces(Selector),
    /// Pods with these labels, in the policy's own namespace or in namespaces with labels.
    Pods {
        namespaces: Option<Selector>,
        pods: Selector,
    },
    Block(Block),
}

/// `ipBlock`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Its index among the rule's blocks.
    pub index: u32,
    pub cidr: Subnet,
    /// Excluded parts of `cidr`.
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
    /// A named port of the destination pod, whatever its number there.
    Named(Protocol, Name),
}

/// For policies that were recorded without it.
fn most_numbers() -> usize {
    MOST_NUMBERS
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

    /// The direction of replies.
    pub fn opposite(self) -> Self {
        match self {
            Self::Egress => Self::Ingress,
            Self::Ingress => Self::Egress,
        }
    }

    /// The field of a rule.
    pub(crate) fn field(self, index: usize) -> String {
        match self {
            Self::Egress => format!("spec.egress[{index}]"),
            Self::Ingress => format!("spec.ingress[{index}]"),
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
    /// The rules of a direction; `None` if the policy does not cover it.
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

    /// Whether it allows anything besides named ports.
    pub fn has_plain_ports(&self) -> bool {
        self.ports.as_ref().is_none_or(|ports| ports.iter().any(|p| !matches!(p, PolicyPort::Named(..))))
    }
}
