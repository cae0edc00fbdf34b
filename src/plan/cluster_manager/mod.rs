//! Node annotations of the cluster manager.
//!
//! Every node learns its number, its subnets and the join addresses that follow from the number:
//!
//! ```text
//! k8s.ovn.org/node-id                          "2"
//! k8s.ovn.org/node-subnets                     {"default":["10.128.0.0/23"]}
//! k8s.ovn.org/node-gateway-router-lrp-ifaddrs  {"default":{"ipv4":"100.64.0.2/16"}}
//! k8s.ovn.org/network-ids                      {"default":"0"}
//! ```
//!
//! A node for which no subnet is left gets the condition NetworkUnavailable, so that no pod is sent
//! there, until one is.
//!
//! Entries of other networks in the same annotations stay. What somebody else changed is put right.

use ovnkube_model::{Family, Name, Network, Node, NodeNetwork, Roles, Touched, World, keys};
use serde_json::{Map, Value, json};

use crate::features::touched_nodes;
use crate::{Feature, Patch, PatchTarget, Unavailable, Want};

/// Reason of the condition while the ranges are exhausted.
const NO_SUBNET: &str = "NoSubnet";

pub struct NodeAnnotations;

impl Feature for NodeAnnotations {
    type Key = Name;

    fn is_ours(roles: Roles) -> bool {
        roles.cluster_manager
    }

    fn touched(what: &Touched, world: &World) -> Vec<Name> {
        touched_nodes(what, world)
    }

    fn want(name: &Name, world: &World) -> Want {
        let (Some(node), Some(network)) = (world.nodes.get(name), world.networks.get(name)) else {
            return Want::default();
        };
        let annotations: Vec<_> = [
            (keys::NODE_ID, network.id.map(|id| id.to_string())),
            (keys::NODE_SUBNETS, subnets(node, network)),
            (keys::JOIN_ADDRESSES, join_addresses(node, network, &world.network)),
            (keys::NETWORK_IDS, Some(with_default(node, keys::NETWORK_IDS, json!("0")))),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .filter(|(key, value)| node.written.get(*key).map(AsRef::as_ref) != Some(value.as_str()))
        .collect();
        let network_unavailable = unavailable(node, network);
        if annotations.is_empty() && network_unavailable.is_none() {
            return Want::default();
        }
        let target = PatchTarget::Node(name.clone());
        Want {
            patch: Some(Patch { target, uid: node.uid.clone(), annotations, network_unavailable }),
            ..Want::default()
        }
    }
}

/// A node without a subnet says so, and says when it has one. Whoever says so of a node that has its subnets, as clouds do of
/// new nodes, is wrong.
fn unavailable(node: &Node, network: &NodeNetwork) -> Option<Unavailable> {
    match (network.exhausted(), node.network_unavailable.as_deref()) {
        (Some(_), Some(NO_SUBNET)) | (None, None) => None,
        (Some(message), _) => Some(Unavailable { status: true, reason: NO_SUBNET, message: message.to_owned() }),
        (None, Some(_)) if network.subnets.is_empty() => None,
        (None, Some(_)) => {
            Some(Unavailable { status: false, reason: "SubnetAssigned", message: "the node has its subnets".into() })
        }
    }
}

fn subnets(node: &Node, network: &NodeNetwork) -> Option<String> {
    let mut subnets = network.subnets.clone();
    // an annotation that says the same in another order is not written again
    subnets.sort_by_key(|subnet| node.subnets.iter().position(|s| s == subnet).unwrap_or(usize::MAX));
    let subnets: Vec<_> = subnets.iter().map(ToString::to_string).collect();
    (!subnets.is_empty()).then(|| with_default(node, keys::NODE_SUBNETS, json!(subnets)))
}

fn join_addresses(node: &Node, network: &NodeNetwork, settings: &Network) -> Option<String> {
    let id = network.id?;
    let mut addresses = Map::new();
    for family in settings.families() {
        let address = settings.join_subnet(family)?.nth_with_prefix(u128::from(id))?;
        let name = if family == Family::V4 { "ipv4" } else { "ipv6" };
        addresses.insert(name.into(), json!(address));
    }
    Some(with_default(node, keys::JOIN_ADDRESSES, Value::Object(addresses)))
}

/// The annotation's text with `value` for the default network, other networks' entries kept.
fn with_default(node: &Node, key: &str, value: Value) -> String {
    let have = node.written.get(key).and_then(|text| serde_json::from_str(text).ok());
    let mut networks: Map<String, Value> = have.unwrap_or_default();
    if networks.get("default") == Some(&value) {
        // equal but for spacing or order: not worth a write
        return node.written.get(key).map(ToString::to_string).unwrap_or_default();
    }
    networks.insert("default".into(), value);
    Value::Object(networks).to_string()
}
