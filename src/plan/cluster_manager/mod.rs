//! Node annotations of the cluster manager.
//!
//! Every node gets its id, its subnets and the join addresses that follow from the id:
//!
//! ```text
//! k8s.ovn.org/node-id                          "2"
//! k8s.ovn.org/node-subnets                     {"default":["10.128.0.0/23"]}
//! k8s.ovn.org/node-gateway-router-lrp-ifaddrs  {"default":{"ipv4":"100.64.0.2/16"}}
//! k8s.ovn.org/network-ids                      {"default":"0"}
//! ```
//!
//! A node for which no id or no subnet is left has the condition NetworkUnavailable until there is one, so that no pod is
//! scheduled there. One that cannot have a network because of its name has it too.
//!
//! Entries of other networks in the same annotations are kept. Edits by others are corrected: a subnet that the node does
//! not have is taken out, also while there is no other one for it.

use ovnkube_model::{Affected, Family, Name, NetworkSettings, Node, NodeNetwork, Roles, World, keys};
use serde_json::{Map, Value, json};

use crate::feature::affected_nodes;
use crate::{Feature, Patch, PatchTarget, Seen, Unavailable, Want};

pub struct NodeAnnotations;

impl Feature for NodeAnnotations {
    type Key = Name;

    fn is_enabled(roles: Roles) -> bool {
        roles.cluster_manager
    }

    fn affected(what: &Affected, world: &World) -> Vec<Name> {
        affected_nodes(what, world)
    }

    fn want(name: &Name, world: &World) -> Want {
        let Some(node) = world.nodes.get(name) else { return Want::default() };
        // none for a node that manages its own subnets
        let network = world.node_networks.get(name);
        let annotations: Vec<_> = network
            .into_iter()
            .flat_map(|network| given(node, network, &world.settings))
            .filter(|(key, value)| node.written.get(*key).map(AsRef::as_ref) != Some(value.as_str()))
            .collect();
        let network_unavailable = unavailable(node, network);
        if annotations.is_empty() && network_unavailable.is_none() {
            return Want::default();
        }
        let texts = || annotations.iter().map(|(key, _)| node.written.get(*key).cloned()).collect();
        let seen = if node.is_bare { Seen::Bare } else { Seen::Texts(texts()) };
        let (target, uid) = (PatchTarget::Node(name.clone()), node.uid.clone());
        let patch = Patch { target, uid, annotations, seen, labels: Vec::new(), network_unavailable };
        Want { patch: Some(patch), ..Want::default() }
    }
}

fn given(
    node: &Node,
    network: &NodeNetwork,
    settings: &NetworkSettings,
) -> impl Iterator<Item = (&'static str, String)> {
    let all = [
        (keys::NODE_ID, network.id.map(|id| id.to_string())),
        (keys::NODE_SUBNETS, subnets(node, network)),
        (keys::JOIN_ADDRESSES, join_addresses(node, network, settings)),
        (keys::NETWORK_IDS, Some(with_default(node, keys::NETWORK_IDS, json!("0")))),
    ];
    all.into_iter().filter_map(|(key, value)| Some((key, value?)))
}

/// Sets the condition on a node without an id or a subnet, and clears it once the node has them, or manages its own
/// subnets. It is also cleared where others set it on a node with subnets, as clouds do on new nodes.
fn unavailable(node: &Node, network: Option<&NodeNetwork>) -> Option<Unavailable> {
    let cleared = |reason, message: &str| Some(Unavailable { status: false, reason, message: message.to_owned() });
    match (network.and_then(NodeNetwork::lacks), node.network_unavailable.as_deref()) {
        (Some((reason, _)), Some(have)) if have == reason => None,
        (Some((reason, message)), _) => Some(Unavailable { status: true, reason, message: message.to_owned() }),
        (None, Some(_)) if network.is_some_and(|network| !network.subnets.is_empty()) => {
            cleared("SubnetAssigned", "the node has its subnets")
        }
        (None, Some(have)) if NodeNetwork::may_lack(have) => {
            cleared("NotManaged", "the node gets no subnet from ovnkube")
        }
        // if others have set it, they know when it is over
        (None, _) => None,
    }
}

fn subnets(node: &Node, network: &NodeNetwork) -> Option<String> {
    if network.subnets.is_empty() {
        // what is annotated is another node's, or of no range: the node's agent must not use it
        return (!node.subnets.is_empty()).then(|| without_default(node, keys::NODE_SUBNETS));
    }
    let mut subnets = network.subnets.clone();
    // an annotation with the same subnets in another order is not written again
    subnets.sort_by_key(|subnet| node.subnets.iter().position(|s| s == subnet).unwrap_or(usize::MAX));
    let subnets: Vec<_> = subnets.iter().map(ToString::to_string).collect();
    Some(with_default(node, keys::NODE_SUBNETS, json!(subnets)))
}

fn join_addresses(node: &Node, network: &NodeNetwork, settings: &NetworkSettings) -> Option<String> {
    let id = network.id?;
    let mut addresses = Map::new();
    for family in settings.families() {
        let address = settings.join_subnet(family)?.nth_with_prefix(u128::from(id))?;
        let name = if family == Family::V4 { "ipv4" } else { "ipv6" };
        addresses.insert(name.into(), json!(address));
    }
    Some(with_default(node, keys::JOIN_ADDRESSES, Value::Object(addresses)))
}

/// The annotation's text without the default network, other networks' entries kept.
fn without_default(node: &Node, key: &str) -> String {
    let mut networks = networks(node, key);
    networks.remove("default");
    Value::Object(networks).to_string()
}

/// The annotation's text with `value` for the default network, other networks' entries kept.
fn with_default(node: &Node, key: &str, value: Value) -> String {
    let mut networks = networks(node, key);
    if networks.get("default") == Some(&value) {
        // equal except for spacing or order: not worth a write
        return node.written.get(key).map(ToString::to_string).unwrap_or_default();
    }
    networks.insert("default".into(), value);
    Value::Object(networks).to_string()
}

/// The annotation's entries; none if it cannot be read.
fn networks(node: &Node, key: &str) -> Map<String, Value> {
    node.written.get(key).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}
