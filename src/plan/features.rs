//! The list of features; the product's table of contents.

use std::collections::BTreeSet;
use std::fmt;

use ovnkube_model::{Object, Roles, Touched, World};

use crate::Want;
use crate::policies::PolicyKey;
use crate::topology::TopologyKey;
use crate::{cluster_manager, gateway, namespaces, pods, policies, topology};

/// One thing OVN does for Kubernetes. Pure: same world, same want.
pub trait Feature {
    /// What it is computed per: a node, a namespace, a pod.
    type Key: Ord + Clone + fmt::Display;

    /// Whether a process with these roles has it.
    fn is_ours(roles: Roles) -> bool;

    /// The keys that may want something else now.
    fn touched(what: &Touched, world: &World) -> Vec<Self::Key>;

    /// All that this key should have now. Nothing = it should not exist.
    fn want(key: &Self::Key, world: &World) -> Want;
}

macro_rules! features {
    ($($(#[$doc:meta])* $name:ident: $feature:ty = $label:literal,)*) => {
        /// A key of any feature. The order is the order of writing: what others refer to comes first.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Key {
            $($(#[$doc])* $name(<$feature as Feature>::Key),)*
        }

        impl fmt::Display for Key {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Self::$name(key) => write!(f, concat!($label, " {}"), key),)* }
            }
        }

        /// The keys of all features that `what` touches.
        pub fn touched(what: &Touched, world: &World, into: &mut BTreeSet<Key>) {
            $(if <$feature>::is_ours(world.network.roles) {
                into.extend(<$feature>::touched(what, world).into_iter().map(Key::$name));
            })*
        }

        /// What a key wants.
        pub fn want(key: &Key, world: &World) -> Want {
            match key { $(Key::$name(key) => <$feature>::want(key, world),)* }
        }
    };
}

features! {
    /// Numbers, subnets and join addresses of nodes.
    NodeAnnotations: cluster_manager::NodeAnnotations = "annotations of node",
    /// Address sets and port groups of namespaces.
    Namespaces: namespaces::Namespaces = "namespace",
    /// Cluster router, join switch, node switches and their ports.
    Topology: topology::Topology = "topology",
    /// Gateway routers and external switches.
    Gateways: gateway::Gateways = "gateway of node",
    /// Who may talk to whom.
    Policies: policies::Policies = "policy",
    /// Logical ports and addresses of pods.
    Pods: pods::Pods = "pod",
}

/// Whether a key decides about packets of other keys' ports: what it wants and what these want change
/// together or packets pass, or are lost, that should not.
pub fn decides_access(key: &Key) -> bool {
    matches!(key, Key::Policies(PolicyKey::Namespace(_) | PolicyKey::Set(_) | PolicyKey::Policy(_)))
}

/// The object that a key is about, if it is there: where people look when something is wrong.
pub fn object(key: &Key, world: &World) -> Option<Object> {
    Some(match key {
        Key::NodeAnnotations(name) | Key::Gateways(name) | Key::Topology(TopologyKey::Node(name)) => {
            Object::Node { name: name.clone(), uid: world.nodes.get(name)?.uid.clone() }
        }
        Key::Namespaces(name) => Object::Namespace { name: name.clone(), uid: world.namespaces.get(name)?.uid.clone() },
        Key::Policies(key) => return policies::object(key, world),
        Key::Pods(key) => Object::Pod { key: key.clone(), uid: world.pods.get(key)?.pod.uid.clone() },
        Key::Topology(TopologyKey::Cluster) => return None,
    })
}
