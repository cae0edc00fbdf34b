//! What the objects and rows of the moment say.

use std::net::IpAddr;

use ovnkube_model::{Subnet, keys};
use ovnkube_ovn::nb::logical_switch_port as lsp;
use ovnkube_policy_truth::Cluster;
use ovnkube_tests::acls::places;
use serde_json::{Value, json};

use crate::api::ApiServer;
use crate::world::World;

pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// The pods that need a port on a node.
pub(crate) fn wired<'a>(api: &'a ApiServer, node: &'a str) -> impl Iterator<Item = &'a Value> {
    let is_wired = move |pod: &&Value| {
        let is_there = pod["spec"]["nodeName"] == node && pod["spec"]["hostNetwork"] != true;
        is_there && pod["status"]["phase"] != "Succeeded"
    };
    api.all("Pod").filter(is_wired)
}

/// The subnets that a node is annotated with.
pub(crate) fn subnets(node: &Value) -> Vec<Subnet> {
    let text = node["metadata"]["annotations"][keys::NODE_SUBNETS].as_str();
    let subnets: Value = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let subnets = subnets["default"].as_array().into_iter().flatten().filter_map(Value::as_str);
    subnets.filter_map(|subnet| subnet.parse::<Subnet>().ok()).collect()
}

/// So many addresses at the beginning of a node's subnet no pod gets: that of the network, the gateway's and the management port's.
const RESERVED: u128 = 3;

/// Whether pods can have this address of a node's subnet. The last one of IPv4 is for broadcasts.
pub(crate) fn is_for_pods(subnet: Subnet, ip: IpAddr) -> bool {
    let last = (1_u128 << subnet.host_bits()) - 1;
    subnet.offset(ip).is_some_and(|at| at >= RESERVED && (subnet.is_ipv6() || at < last))
}

/// Whether an address is in the subnets of a node.
pub(crate) fn is_of_node(api: &ApiServer, name: &str, ip: &str) -> bool {
    let ip = ip.parse().unwrap();
    api.get("Node", "", name).is_some_and(|node| subnets(node).iter().any(|subnet| subnet.contains(ip)))
}

/// The pods that have a port with their name and uid, with its addresses, and all objects that affect them.
pub(crate) fn cluster(world: &World) -> Cluster {
    let cache = &world.observer.cache;
    let mut cluster = Cluster::default();
    for value in world.api.all("Namespace") {
        cluster.namespaces.push(serde_json::from_value(value.clone()).unwrap());
    }
    for value in world.api.all("NetworkPolicy") {
        cluster.policies.push(serde_json::from_value(value.clone()).unwrap());
    }
    for value in world.api.all("Pod").filter(|pod| pod["status"]["phase"] != "Succeeded") {
        let mut value = value.clone();
        if value["spec"]["hostNetwork"] == true {
            let node = value["spec"]["nodeName"].as_str().unwrap_or_default();
            // without its Node nobody says whose its address is
            if world.api.get("Node", "", node).is_none() {
                continue;
            }
        } else {
            let name = |field: &str| value["metadata"][field].as_str().unwrap_or_default();
            let port = format!("{}_{}", name("namespace"), name("name"));
            let row = cache.named(lsp::TABLE, &port).next().map(|(_, row)| row);
            if row.is_none_or(|row| row.map(lsp::OPTIONS).get("iface-id-ver") != Some(name("uid"))) {
                continue;
            }
            let ips: Vec<_> = places(cache, &port).iter().map(|place| json!({"ip": place.ip.to_string()})).collect();
            value["status"] = json!({"podIPs": ips});
        }
        cluster.pods.push(serde_json::from_value(value).unwrap());
    }
    cluster
}

/// What a pod is annotated with.
pub(crate) fn network(pod: &Value) -> Option<Value> {
    let text = pod["metadata"]["annotations"][keys::POD_NETWORKS].as_str()?;
    let mut networks: Value = serde_json::from_str(text).unwrap();
    Some(networks["default"].take())
}

/// The addresses that a pod is annotated with.
pub(crate) fn annotated(pod: &Value) -> Option<Vec<String>> {
    let network = network(pod)?;
    let list = network["ip_addresses"].as_array()?.iter().filter_map(Value::as_str);
    Some(list.map(|ip| ip.split('/').next().unwrap_or_default().to_owned()).collect())
}
