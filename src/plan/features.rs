//! The list of features; the product's table of contents.

use std::collections::BTreeSet;
use std::fmt;

use ovnkube_model::{Name, Object, Roles, Touched, World};

use crate::policies::PolicyKey;
use crate::topology::TopologyKey;
use crate::{RowKey, Want};
use crate::{cluster_manager, gateway, namespaces, pods, policies, services, topology};

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

/// The keys that may want something else now, of a feature that has one for each node.
pub(crate) fn touched_nodes(what: &Touched, world: &World) -> Vec<Name> {
    match what {
        Touched::Everything => world.nodes.keys().cloned().collect(),
        Touched::Node(name) => vec![name.clone()],
        _ => Vec::new(),
    }
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
    /// Addresses of nodes for load balancer templates.
    NodeIps: services::NodeIps = "addresses of node",
    /// Load balancers of services.
    Services: services::Services = "service",
    /// Logical ports and addresses of pods.
    Pods: pods::Pods = "pod",
}

/// How a key bears on who may talk to whom. What keys want about that changes in one transaction, or
/// packets pass, or are lost, that should not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// It says who may.
    Says,
    /// It is about somebody who can talk once this row is there.
    Concerns(RowKey),
    Nothing,
}

/// See [`Access`].
pub fn access(key: &Key, world: &World) -> Access {
    match key {
        Key::Namespaces(_) => Access::Says,
        Key::Policies(key) if !matches!(key, PolicyKey::Cluster | PolicyKey::Node(_)) => Access::Says,
        // others know it by its node's address
        Key::Pods(key) if world.pods.get(key).is_some_and(|e| e.pod.host_network) => Access::Says,
        Key::Pods(key) => Access::Concerns(pods::port_key(key)),
        _ => Access::Nothing,
    }
}

/// The object that a key is about, if it is there: where people look when something is wrong.
pub fn object(key: &Key, world: &World) -> Option<Object> {
    Some(match key {
        Key::NodeAnnotations(name)
        | Key::Gateways(name)
        | Key::NodeIps(name)
        | Key::Topology(TopologyKey::Node(name)) => {
            Object::Node { name: name.clone(), uid: world.nodes.get(name)?.uid.clone() }
        }
        Key::Namespaces(name) => Object::Namespace { name: name.clone(), uid: world.namespaces.get(name)?.uid.clone() },
        Key::Policies(key) => return policies::object(key, world),
        Key::Pods(key) => Object::Pod { key: key.clone(), uid: world.pods.get(key)?.pod.uid.clone() },
        Key::Services(key) => Object::Service { key: key.clone(), uid: world.services.get(key)?.uid.clone() },
        Key::Topology(TopologyKey::Cluster) => return None,
    })
}
