//! I1: which nodes have subnets, which pods a port, and with which addresses. Only what the API server has says so here, unlike in
//! `ovnkube_tests::rules`, where the product's model does: that expects nothing of a pod to which it gives nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ovnkube_model::{Subnet, keys};
use ovnkube_ovn::Row;
use ovnkube_ovn::nb::{logical_switch as ls, logical_switch_port as lsp};
use ovnkube_ovsdb_data::Cache;
use serde_json::Value;

use crate::api::ApiServer;
use crate::pools;
use crate::state::{annotated, is_for_pods, is_of_node, name, network, subnets, wired};
use crate::world::World;

/// What a pod with a port has.
struct Served {
    mac: String,
    ips: Vec<IpAddr>,
}

/// Each node has subnets of its own, and each pod on it a port, unless it asks for what it cannot have; no two have the same
/// address. No other pod has a port.
pub(crate) fn check(api: &ApiServer, cache: &Cache) {
    let mut ports = ports(cache);
    let (mut given, mut held) = (BTreeSet::new(), BTreeSet::new());
    for node in api.all("Node") {
        let have = subnets(node);
        for subnet in &have {
            assert!(given.insert(*subnet), "two nodes have {subnet}");
        }
        let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
        let mut conditions = conditions.filter(|condition| condition["type"] == "NetworkUnavailable");
        let is_unavailable = conditions.any(|condition| condition["status"] == "True");
        assert_eq!(is_unavailable, have.is_empty(), "whether node {} has no network", name(node));
        if have.is_empty() {
            // more nodes come than there are subnets
            assert!(name(node).starts_with(pools::FULL), "node {} has no subnet", name(node));
            continue;
        }
        let (mut served, mut waiting) = (Vec::new(), Vec::new());
        for pod in wired(api, name(node)) {
            match ports.remove(port_name(pod).as_str()) {
                Some(port) => served.push(check_served(pod, name(node), &have, port)),
                None => waiting.push(pod),
            }
        }
        for ip in served.iter().flat_map(|pod| &pod.ips) {
            assert!(held.insert(*ip), "two pods have {ip}");
        }
        for pod in waiting {
            // of these there are too many on purpose, and nothing is left of what they could have
            let is_too_many = pod["metadata"]["namespace"] == pools::FULL;
            let may_wait = is_too_many || is_denied(pod, &have, &served);
            assert!(may_wait, "{} on node {} could have a port, and has none", port_name(pod), name(node));
        }
    }
    assert!(ports.is_empty(), "ports that no pod needs: {:?}", ports.keys());
}

/// Each pod that runs keeps its addresses, also if its node was deleted and is back, as long as the node can have their subnet.
pub(crate) fn check_running(world: &World) {
    let api = &world.api;
    for pod in api.all("Pod").filter(|pod| pod["status"]["phase"] == "Running") {
        let started = pod["metadata"]["uid"].as_str().and_then(|uid| world.running.get(uid));
        let Some((node, ips)) = started else { continue };
        let have = annotated(pod).unwrap_or_default();
        if ips.iter().all(|ip| is_of_node(api, node, ip)) {
            assert_eq!(have, *ips, "the addresses of {}", port_name(pod));
        }
        for ip in ips {
            let may_lack = !is_of_node(api, node, ip) && is_out_of_reach(api, pod, node, ip.parse().unwrap());
            let key = port_name(pod);
            assert!(may_lack || have.contains(ip), "{key} runs with {ip} on {node}, and is annotated with {have:?}");
        }
    }
}

/// Whether a node cannot have the subnet of an address with which a pod runs: another node has it, or other pods of the node need the
/// one that it has, or run in a third one that another node has. A node follows the subnet in which most of its pods run.
fn is_out_of_reach(api: &ApiServer, pod: &Value, on: &str, ip: IpAddr) -> bool {
    let has = |node: &Value, ip: IpAddr| subnets(node).iter().any(|subnet| subnet.contains(ip));
    let is_anothers = |ip: IpAddr| api.all("Node").any(|node| name(node) != on && has(node, ip));
    let is_nodes = |ip: IpAddr| api.get("Node", "", on).is_some_and(|node| has(node, ip));
    let needs_another = |other: &Value| {
        let runs: Vec<IpAddr> = runs_with(other).filter(|its| its.is_ipv6() == ip.is_ipv6()).collect();
        let given = annotated(other).unwrap_or_default().into_iter().filter_map(|its| its.parse::<IpAddr>().ok());
        let mut given = given.filter(|its| its.is_ipv6() == ip.is_ipv6());
        runs.iter().any(|its| is_nodes(*its) || is_anothers(*its)) || runs.is_empty() && given.any(is_nodes)
    };
    let mut others = wired(api, on).filter(|other| other["metadata"]["uid"] != pod["metadata"]["uid"]);
    is_anothers(ip) || others.any(needs_another)
}

fn port_name(pod: &Value) -> String {
    format!("{}_{}", pod["metadata"]["namespace"].as_str().unwrap_or_default(), name(pod))
}

/// The ports of pods by name, each with the name of its switch.
fn ports(cache: &Cache) -> BTreeMap<&str, (&str, &Row)> {
    let mut ports = BTreeMap::new();
    for (_, switch) in cache.iter(ls::TABLE) {
        let all = switch.uuids(ls::PORTS).filter_map(|uuid| cache.get(lsp::TABLE, uuid));
        for port in all.filter(|port| port.map(lsp::EXTERNAL_IDS).get("pod") == Some("true")) {
            let other = ports.insert(port.str(lsp::NAME), (switch.str(ls::NAME), &**port));
            assert!(other.is_none(), "two ports {}", port.str(lsp::NAME));
        }
    }
    ports
}

/// The port is as the annotation says, and that has an address of each of the node's subnets.
fn check_served(pod: &Value, node: &str, subnets: &[Subnet], (switch, port): (&str, &Row)) -> Served {
    let key = port_name(pod);
    assert_eq!(switch, node, "the switch of {key}");
    assert_eq!(port.map(lsp::OPTIONS).get("iface-id-ver"), pod["metadata"]["uid"].as_str(), "whose port {key} is");
    let texts = annotated(pod).unwrap_or_default();
    let mac = network(pod).unwrap_or_default()["mac_address"].as_str().unwrap_or_default().to_owned();
    let address = format!("{mac} {}", texts.join(" "));
    for column in [lsp::ADDRESSES, lsp::PORT_SECURITY] {
        assert_eq!(port.strs(column).collect::<Vec<_>>(), [address.as_str()], "what {key} is annotated with");
    }
    let ips: Vec<IpAddr> = texts.iter().map(|ip| ip.parse().unwrap()).collect();
    let in_each = subnets.iter().map(|subnet| ips.iter().filter(|ip| is_for_pods(*subnet, **ip)).count());
    let in_each: Vec<usize> = in_each.collect();
    // one that goes on to run with an address that its node cannot keep gets no other one of that family
    let fewest = usize::from(!is_cut_off(pod, subnets));
    let is_whole = in_each.iter().all(|count| (fewest..=1).contains(count)) && !ips.is_empty();
    let is_within = in_each.iter().sum::<usize>() == ips.len();
    assert!(is_whole && is_within, "{key} has {ips:?}, node {node} has {subnets:?}");
    Served { mac, ips }
}

/// Whether a pod runs with an address in none of its node's subnets.
fn is_cut_off(pod: &Value, subnets: &[Subnet]) -> bool {
    runs_with(pod).any(|ip| !subnets.iter().any(|subnet| subnet.contains(ip)))
}

/// What the kubelet reports.
fn runs_with(pod: &Value) -> impl Iterator<Item = IpAddr> {
    let list = pod["status"]["podIPs"].as_array().into_iter().flatten();
    list.filter_map(|ip| ip["ip"].as_str()?.parse().ok())
}

/// Whether a pod asks for an address that its node cannot give, or for what another pod has.
fn is_denied(pod: &Value, subnets: &[Subnet], served: &[Served]) -> bool {
    let text = pod["metadata"]["annotations"][keys::DEFAULT_NETWORK].as_str();
    let request: Value = text.map(|text| serde_json::from_str(text).unwrap()).unwrap_or_default();
    let ip: Option<IpAddr> = request[0]["ips"][0].as_str().map(|ip| ip.parse().unwrap());
    let is_free = |ip: IpAddr| {
        let is_given = subnets.iter().any(|subnet| is_for_pods(*subnet, ip));
        is_given && !served.iter().any(|other| other.ips.contains(&ip))
    };
    let is_taken = |mac: &str| served.iter().any(|other| other.mac == mac);
    ip.is_some_and(|ip| !is_free(ip)) || request[0]["mac"].as_str().is_some_and(is_taken)
}
