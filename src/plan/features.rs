//! The list of features.

use std::collections::BTreeSet;
use std::fmt;

use ovnkube_model::{Affected, Object, World};

use crate::feature::Feature;
use crate::interconnection::InterconnectionKey;
use crate::policies::PolicyKey;
use crate::topology::TopologyKey;
use crate::whose::is_of_another_type;
use crate::{RowKey, Want, names};
use crate::{cluster_manager, gateway, interconnection, namespaces, pods, policies, services, topology};

macro_rules! features {
    ($($(#[$doc:meta])* $name:ident: $feature:ty = $label:literal,)*) => {
        /// A key of any feature. Keys are written in this order: rows that others refer to come first.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Key {
            $($(#[$doc])* $name(<$feature as Feature>::Key),)*
        }

        impl fmt::Display for Key {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Self::$name(key) => write!(f, concat!($label, " {}"), key),)* }
            }
        }

        /// The keys of all features that `what` affects.
        pub fn affected(what: &Affected, world: &World, into: &mut BTreeSet<Key>) {
            $(if <$feature>::is_enabled(world.settings.roles) {
                into.extend(<$feature>::affected(what, world).into_iter().map(Key::$name));
            })*
        }

        /// What a key wants.
        pub fn want(key: &Key, world: &World) -> Want {
            let want = match key { $(Key::$name(key) => <$feature>::want(key, world),)* };
            debug_assert!(
                !want.rows.iter().any(|row| is_of_another_type(&row.row)),
                "rows of {key} would never be removed: PLANNED_TYPES in whose.rs lacks their owner type"
            );
            want
        }
    };
}

features! {
    /// Ids, subnets and join addresses of nodes.
    NodeAnnotations: cluster_manager::NodeAnnotations = "annotations of node",
    /// Address sets and port groups of namespaces.
    Namespaces: namespaces::Namespaces = "namespace",
    /// Cluster router, join switch, node switches and their ports.
    Topology: topology::Topology = "topology",
    /// Gateway routers and external switches.
    Gateways: gateway::Gateways = "gateway of node",
    /// Links to other clusters.
    Interconnections: interconnection::Interconnections = "interconnection:",
    /// Who may talk to whom.
    Policies: policies::Policies = "policy",
    /// Addresses of nodes for load balancer templates.
    NodeIps: services::NodeIps = "addresses of node",
    /// Load balancers of services.
    Services: services::Services = "service",
    /// Logical ports and addresses of pods.
    Pods: pods::Pods = "pod",
}

/// How a key bears on who may talk to whom. All changes to that are made in one transaction; otherwise some
/// packets would wrongly pass or be lost meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// It decides who may.
    Says,
    /// It concerns an endpoint that can talk once this row exists.
    Concerns(RowKey),
    Nothing,
}

/// How a key bears on access; see [`Access`].
pub fn access(key: &Key, world: &World) -> Access {
    match key {
        Key::Policies(PolicyKey::Cluster) => Access::Nothing,
        // rules may refer to what nodes send
        Key::Policies(PolicyKey::Node(name)) => Access::Concerns(names::management_port(name)),
        Key::Namespaces(_) | Key::Policies(_) => Access::Says,
        // rules know a host-network pod by its node's address
        Key::Pods(key) if world.pods.get(key).is_some_and(|e| e.pod.host_network) => Access::Says,
        Key::Pods(key) => Access::Concerns(pods::port_key(key)),
        _ => Access::Nothing,
    }
}

/// Whether a key is about the way to a prefix of other clusters.
pub fn is_prefix(key: &Key) -> bool {
    matches!(key, Key::Interconnections(InterconnectionKey::Prefix(_)))
}

/// Puts keys of the order of features in the order in which they are written. A transaction may end between two prefixes of other
/// clusters of which one contains the other: until the next one, packets must not take the way of the larger one that the smaller one
/// has to itself, nor lose both.
pub fn put_in_order(keys: &mut [Key], world: &World) {
    let place = |key: &Key| {
        let Key::Interconnections(InterconnectionKey::Prefix(prefix)) = key else { return (false, 0) };
        let (length, goes) = (i16::from(prefix.prefix()), !world.joined.prefixes().contains_key(prefix));
        (goes, if goes { length } else { -length })
    };
    for together in keys.chunk_by_mut(|one, next| is_prefix(one) && is_prefix(next)) {
        together.sort_by_cached_key(place);
    }
}

/// The object that a key is about, if it exists: users look there when something is wrong.
pub fn object(key: &Key, world: &World) -> Option<Object> {
    Some(match key {
        Key::NodeAnnotations(name)
        | Key::Gateways(name)
        | Key::NodeIps(name)
        | Key::Topology(TopologyKey::Node(name))
        | Key::Interconnections(InterconnectionKey::Node(name)) => {
            Object::Node { name: name.clone(), uid: world.nodes.get(name)?.uid.clone() }
        }
        Key::Namespaces(name) => Object::Namespace { name: name.clone(), uid: world.namespaces.get(name)?.uid.clone() },
        Key::Policies(key) => return policies::object(key, world),
        Key::Pods(key) => Object::Pod { key: key.clone(), uid: world.pods.get(key)?.pod.uid.clone() },
        Key::Services(key) => Object::Service { key: key.clone(), uid: world.services.get(key)?.uid.clone() },
        Key::Topology(TopologyKey::Cluster) | Key::Interconnections(_) => return None,
    })
}
