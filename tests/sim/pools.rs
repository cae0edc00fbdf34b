//! I7: masters can give out exactly what nobody has. Nothing tells from outside what their pools have left, so more nodes and pods come
//! than there is anything for: then all of it must be somebody's. Afterwards they go again.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ovnkube_model::{Subnet, keys};
use ovnkube_tests::objects;
use serde_json::{Value, json};

use crate::api::ApiServer;
use crate::state::{annotated, is_for_pods, name, network, subnets, wired};

/// The namespace of the pods that come for this, and the beginning of the names of such nodes.
pub(crate) const FULL: &str = "full";
/// So many subnets for nodes are in the small ranges, of each family.
const SUBNETS: usize = 4;
/// So many more nodes and pods come than can get anything.
const TOO_MANY: usize = 2;
/// The lowest number of a node.
const FIRST: u64 = 2;
/// The MACs that pods of stories ask for.
const MACS: [&str; 2] = ["02:00:00:00:00:00", "02:00:00:00:00:01"];

/// Small ranges: the pods of a story fit on one node, with few addresses left. Of two families, IPv6 is used up first.
pub(crate) fn small_ranges(both_families: bool) -> &'static str {
    if both_families { "10.128.0.0/25/27,fd01::/122/124" } else { "10.128.0.0/26/28" }
}

/// Lets more nodes come than there are subnets, and on each node more pods than it has addresses. Some ask for MACs that no pod has.
pub(crate) fn fill(api: &mut ApiServer) {
    let nodes: Vec<String> = api.all("Node").map(|node| name(node).to_owned()).collect();
    for number in nodes.len()..SUBNETS + TOO_MANY {
        api.put("Node", objects::node(&format!("{FULL}-{number}")));
    }
    api.put("Namespace", objects::namespace(FULL));
    for node in &nodes {
        let have = api.get("Node", "", node).map(subnets).unwrap_or_default();
        let used = have.first().map_or(0, |subnet| addresses(api, node, *subnet).len());
        let taken = macs(api, node);
        let mut free = MACS.into_iter().filter(|mac| !taken.contains(*mac));
        for number in used..room(&have) + TOO_MANY {
            let mut pod = objects::pod(FULL, &format!("{node}-{number}"), node);
            if let Some(mac) = free.next() {
                let request = json!([{"mac": mac}]).to_string();
                pod["metadata"]["annotations"] = json!({(keys::DEFAULT_NETWORK): request});
            }
            api.put("Pod", pod);
        }
    }
}

/// Each subnet is a node's, each address a pod's, each MAC that was asked for a pod's, and new nodes have the lowest numbers that were
/// free.
pub(crate) fn check_full(api: &ApiServer) {
    let all: BTreeSet<Subnet> = api.all("Node").flat_map(subnets).collect();
    let (v6, v4): (Vec<Subnet>, Vec<Subnet>) = all.into_iter().partition(|subnet| subnet.is_ipv6());
    for of in [v4, v6].into_iter().filter(|of| !of.is_empty()) {
        assert_eq!(of.len(), SUBNETS, "a subnet that no node has is not given out; nodes have {of:?}");
    }
    check_numbers(api);
    for node in api.all("Node").filter(|node| !is_new(node)) {
        let (name, have) = (name(node), subnets(node));
        let held = macs(api, name);
        assert!(MACS.iter().all(|mac| held.contains(*mac)), "a MAC is not given out on {name}; pods have {held:?}");
        for subnet in &have {
            let (all, held) = (for_pods(*subnet), addresses(api, name, *subnet));
            let left: Vec<IpAddr> = all.difference(&held).copied().collect();
            assert_eq!(left.len(), all.len() - room(&have), "no pod of {name} has or gets one of {left:?}");
        }
    }
}

fn check_numbers(api: &ApiServer) {
    let number = |node: &Value| node["metadata"]["annotations"][keys::NODE_ID].as_str()?.parse::<u64>().ok();
    let all: BTreeSet<u64> = api.all("Node").filter_map(number).collect();
    assert_eq!(all.len(), api.all("Node").count(), "each node has a number of its own; they have {all:?}");
    let last = api.all("Node").filter(|node| is_new(node)).filter_map(number).max().unwrap_or_default();
    let left: Vec<u64> = (FIRST..last).filter(|number| !all.contains(number)).collect();
    assert!(left.is_empty(), "numbers that no node has are not given out: {left:?}");
}

/// Deletes what came.
pub(crate) fn clear(api: &mut ApiServer) {
    let pods = api.all("Pod").filter(|pod| pod["metadata"]["namespace"] == FULL);
    let pods: Vec<String> = pods.map(|pod| name(pod).to_owned()).collect();
    for pod in pods {
        api.delete("Pod", FULL, &pod);
    }
    let nodes: Vec<String> = api.all("Node").filter(|node| is_new(node)).map(|node| name(node).to_owned()).collect();
    for node in nodes {
        api.delete("Node", "", &node);
    }
    api.delete("Namespace", "", FULL);
}

/// Whether a node came for this.
fn is_new(node: &Value) -> bool {
    name(node).starts_with(FULL)
}

/// The addresses in a subnet of a node that its pods are annotated with.
fn addresses(api: &ApiServer, node: &str, subnet: Subnet) -> BTreeSet<IpAddr> {
    let all = wired(api, node).filter_map(annotated).flatten();
    all.map(|ip| ip.parse::<IpAddr>().unwrap()).filter(|ip| subnet.contains(*ip)).collect()
}

/// The MACs that a node's pods are annotated with.
fn macs(api: &ApiServer, node: &str) -> BTreeSet<String> {
    let all = wired(api, node).filter_map(network);
    all.filter_map(|network| network["mac_address"].as_str().map(str::to_owned)).collect()
}

/// The addresses of a subnet that pods can get.
fn for_pods(subnet: Subnet) -> BTreeSet<IpAddr> {
    let all = (0..1_u128 << subnet.host_bits()).filter_map(|n| subnet.nth(n));
    all.filter(|ip| is_for_pods(subnet, *ip)).collect()
}

/// How many pods a node with these subnets can have.
fn room(subnets: &[Subnet]) -> usize {
    subnets.iter().map(|subnet| for_pods(*subnet).len()).min().unwrap_or_default()
}
