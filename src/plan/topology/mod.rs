//! The logical network that pods are attached to.
//!
//! ```text
//!   LS <node>  ──stor-<node>/rtos-<node>──  LR ovn_cluster_router  ──rtoj-/jtor-──  LS join
//!     ├ k8s-<node>      the node's management port, .2 of its subnet
//!     └ <ns>_<pod> …    added by the pods
//! ```
//!
//! Per cluster: the router, the join switch, control-plane protection, load balancer groups and the
//! port groups that hold all nodes' ports. Per node of this zone: its switch and router port.

mod cluster;
mod node;

pub(crate) use cluster::join_addresses;

use std::fmt;

use ovnkube_model::{Affected, Name, Roles, World};

use crate::{Feature, Want};

pub struct Topology;

/// The cluster as a whole, or one node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TopologyKey {
    Cluster,
    Node(Name),
}

impl fmt::Display for TopologyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster => f.write_str("of the cluster"),
            Self::Node(name) => write!(f, "of node {name}"),
        }
    }
}

impl Feature for Topology {
    type Key = TopologyKey;

    fn is_enabled(roles: Roles) -> bool {
        roles.controller
    }

    fn affected(what: &Affected, world: &World) -> Vec<TopologyKey> {
        match what {
            Affected::Everything => {
                let nodes = world.nodes.keys().cloned().map(TopologyKey::Node);
                std::iter::once(TopologyKey::Cluster).chain(nodes).collect()
            }
            Affected::Node(name) => vec![TopologyKey::Node(name.clone())],
            // the router says whose it is, and which other clusters this one is joined with
            Affected::Namespace(name) if &**name == World::SYSTEM => vec![TopologyKey::Cluster],
            Affected::Interconnection => vec![TopologyKey::Cluster],
            _ => Vec::new(),
        }
    }

    fn want(key: &TopologyKey, world: &World) -> Want {
        match key {
            TopologyKey::Cluster => cluster::want(world),
            TopologyKey::Node(name) => node::want(name, world),
        }
    }
}
