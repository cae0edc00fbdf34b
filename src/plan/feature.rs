//! What a feature is.

use std::fmt;

use ovnkube_model::{Affected, Name, Roles, World};

use crate::Want;

/// One thing OVN does for Kubernetes. Pure: the same world gives the same want.
pub trait Feature {
    /// What it is planned per: a node, a namespace, a pod.
    type Key: Ord + Clone + fmt::Display;

    /// Whether a process with these roles plans it.
    fn is_enabled(roles: Roles) -> bool;

    /// The keys whose want may have changed.
    fn affected(what: &Affected, world: &World) -> Vec<Self::Key>;

    /// Everything this key should have now. Empty = it should not exist.
    fn want(key: &Self::Key, world: &World) -> Want;
}

/// The keys whose want may have changed, of a feature that has one for each node.
pub(crate) fn affected_nodes(what: &Affected, world: &World) -> Vec<Name> {
    match what {
        Affected::Everything => world.nodes.keys().cloned().collect(),
        Affected::Node(name) => vec![name.clone()],
        _ => Vec::new(),
    }
}
