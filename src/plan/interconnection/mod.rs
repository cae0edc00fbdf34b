//! Interconnection: pods of joined clusters reach each other by their own addresses.
//!
//! ```text
//!   LR ovn_cluster_router ──<zone>-<ts>/<ts>-<zone>── LS <ts> ──<ts>-<other zone> (remote)
//! ```
//!
//! Per transit switch: the switch, the port to the cluster router with the gateways that may hold it, and the other
//! clusters' ports. Per prefix of other clusters: a route for each next hop, as OVN's own daemon writes them, and a policy
//! that sends packets for it to all next hops. Routes alone would not do: the routes by source that lead pods to their
//! gateway would win against a shorter prefix. Per node: the labels that say whether it is a gateway, and whether its host has
//! routes to other clusters.

mod offer;
mod routes;
mod switch;

pub use offer::{Offer, left, offer};
pub use routes::LEARNED;

use std::fmt;

use ovnkube_model::{Affected, Name, Roles, Subnet, World, keys};

use crate::{Feature, Patch, PatchTarget, Seen, Want};

pub struct Interconnections;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InterconnectionKey {
    Switch(Name),
    Prefix(Subnet),
    Node(Name),
}

impl fmt::Display for InterconnectionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(name) => write!(f, "transit switch {name}"),
            Self::Prefix(prefix) => write!(f, "prefix {prefix} of other clusters"),
            Self::Node(name) => write!(f, "labels of node {name} for other clusters"),
        }
    }
}

impl Feature for Interconnections {
    type Key = InterconnectionKey;

    fn is_enabled(roles: Roles) -> bool {
        roles.controller
    }

    fn affected(what: &Affected, world: &World) -> Vec<InterconnectionKey> {
        let switches = || world.joined.switches().cloned().map(InterconnectionKey::Switch);
        match what {
            Affected::Everything => {
                let prefixes = world.joined.prefixes().keys().copied().map(InterconnectionKey::Prefix);
                let nodes = world.nodes.keys().cloned().map(InterconnectionKey::Node);
                switches().chain(prefixes).chain(nodes).collect()
            }
            Affected::TransitSwitch(name) => vec![InterconnectionKey::Switch(name.clone())],
            Affected::Prefix(prefix) => vec![InterconnectionKey::Prefix(*prefix)],
            Affected::Node(name) => {
                let is_gateway = world.joined.wanted().is_some_and(|wanted| wanted.gateways.contains(name));
                let node = InterconnectionKey::Node(name.clone());
                let concerned =
                    |key: &InterconnectionKey| is_gateway || *key == InterconnectionKey::Switch(name.clone());
                std::iter::once(node).chain(switches().filter(concerned)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn want(key: &InterconnectionKey, world: &World) -> Want {
        match key {
            InterconnectionKey::Switch(name) => switch::want(name, world),
            InterconnectionKey::Prefix(prefix) => routes::want(*prefix, world),
            InterconnectionKey::Node(name) => labels(name, world),
        }
    }
}

/// Nodes that were gateways, or had routes, get the label's other value, as in Kube-OVN.
fn labels(name: &Name, world: &World) -> Want {
    let Some(node) = world.nodes.get(name) else { return Want::default() };
    let is_gateway = match world.joined.wanted() {
        Some(_) => Some(world.is_interconnection_gateway(name)),
        None => world.joined.is_off().then_some(false),
    };
    let label = |key: &'static str, is: Option<bool>| match (is?, node.labels.get(key).map(String::as_str)) {
        (true, Some("true")) | (false, None | Some("false")) => None,
        (true, _) => Some((key, "true")),
        (false, _) => Some((key, "false")),
    };
    let gateway = label(keys::INTERCONNECTION_GATEWAY, is_gateway);
    let labels: Vec<_> = gateway.into_iter().chain(label(keys::HOST_ROUTE, world.has_host_routes())).collect();
    if labels.is_empty() {
        return Want::default();
    }
    let patch = Patch {
        target: PatchTarget::Node(name.clone()),
        uid: node.uid.clone(),
        annotations: Vec::new(),
        seen: Seen::Bare,
        labels,
        network_unavailable: None,
    };
    Want { patch: Some(patch), ..Want::default() }
}
