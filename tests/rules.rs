//! Invariants that hold whenever nothing is left to write.

use std::collections::{BTreeMap, BTreeSet};

use ovnkube_model::World;
use ovnkube_ovn::Uuid;
use ovnkube_ovn::nb::{
    load_balancer as lb, load_balancer_group as lbg, logical_router as lr, logical_switch as ls,
    logical_switch_port as lsp,
};
use ovnkube_ovsdb::Cache;
use serde_json::Value;

use crate::Objects;

/// Two ports never have the same IP, nor two on one switch the same MAC; also between two
/// writes.
pub fn addresses_are_unique(cache: &Cache) {
    let mut seen: BTreeMap<(Option<Uuid>, String), String> = BTreeMap::new();
    for (uuid, row) in cache.iter(lsp::TABLE) {
        let switch = cache.parents(uuid).find(|p| p.table == ls::TABLE).map(|p| p.uuid);
        for text in row.strs(lsp::ADDRESSES).filter(|a| *a != "router" && *a != "unknown") {
            for (place, address) in text.split(' ').enumerate() {
                let within = switch.filter(|_| place == 0);
                let other = seen.insert((within, address.to_owned()), row.str(lsp::NAME).to_owned());
                assert_eq!(other, None, "{} and another port both have {address}", row.str(lsp::NAME));
            }
        }
    }
}

/// Every pod that needs a port has exactly one, on its node's switch, with its annotated
/// address; no other pod has one.
pub fn pods_are_wired(objects: &Objects, world: &World, cache: &Cache) {
    let mut expected: BTreeSet<String> = BTreeSet::new();
    for (key, entry) in &world.pods {
        let Some(node) = entry.pod.wired_on().filter(|n| world.nodes.contains_key(*n)) else { continue };
        if !world.namespaces.contains_key(&key.namespace) || entry.addresses.is_none() {
            continue;
        }
        let name = key.port_name();
        let ports: Vec<_> = cache.iter(lsp::TABLE).filter(|(_, row)| row.str(lsp::NAME) == name).collect();
        let [(uuid, port)] = ports.as_slice() else { panic!("{} ports of pod {key}", ports.len()) };
        let parents: Vec<_> = cache.parents(*uuid).filter(|p| p.table == ls::TABLE).collect();
        assert_eq!(parents.len(), 1, "switches of pod {key}");
        assert_eq!(cache.get(ls::TABLE, parents[0].uuid).unwrap().str(ls::NAME), &**node);
        assert_eq!(port.map(lsp::OPTIONS).get("iface-id-ver"), Some(&*entry.pod.uid), "pod {key}");
        let annotated = annotated_address(objects, &key.namespace, &key.name);
        assert_eq!(port.strs(lsp::ADDRESSES).collect::<Vec<_>>(), [annotated.as_str()], "pod {key}");
        expected.insert(name);
    }
    let pods = |row: &ovnkube_ovn::Row| row.map(lsp::EXTERNAL_IDS).get("pod") == Some("true");
    let have: BTreeSet<String> =
        cache.iter(lsp::TABLE).filter(|(_, r)| pods(r)).map(|(_, r)| r.str(lsp::NAME).to_owned()).collect();
    assert_eq!(have, expected, "ports of pods");
}

/// `MAC IP[ IP]` of a pod's annotation.
fn annotated_address(objects: &Objects, namespace: &str, name: &str) -> String {
    let is_it = |o: &&Value| o["metadata"]["namespace"] == namespace && o["metadata"]["name"] == name;
    let pod = objects.of("Pod").find(is_it).unwrap();
    let text = pod["metadata"]["annotations"]["k8s.ovn.org/pod-networks"].as_str().unwrap_or_default();
    let network: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("pod {namespace}/{name}: {text:?}: {e}"));
    let network = &network["default"];
    let ips =
        network["ip_addresses"].as_array().unwrap().iter().map(|ip| ip.as_str().unwrap().split('/').next().unwrap());
    [network["mac_address"].as_str().unwrap()].into_iter().chain(ips).collect::<Vec<_>>().join(" ")
}

/// No two nodes share a subnet.
pub fn subnets_are_unique(cache: &Cache) {
    let mut seen = BTreeSet::new();
    for (_, row) in cache.iter(ls::TABLE) {
        for key in ["subnet", "ipv6_prefix"] {
            if let Some(subnet) = row.map(ls::OTHER_CONFIG).get(key) {
                assert!(seen.insert(subnet.to_owned()), "two switches have {subnet}");
            }
        }
    }
}

/// No switch or router has two load balancers for the same address, port and protocol.
pub fn vips_are_unique(cache: &Cache) {
    let switches = cache.iter(ls::TABLE).map(|(_, row)| {
        (
            row.str(ls::NAME),
            row.uuids(ls::LOAD_BALANCER).collect::<Vec<_>>(),
            row.uuids(ls::LOAD_BALANCER_GROUP).collect(),
        )
    });
    let routers = cache.iter(lr::TABLE).map(|(_, row)| {
        (
            row.str(lr::NAME),
            row.uuids(lr::LOAD_BALANCER).collect::<Vec<_>>(),
            row.uuids(lr::LOAD_BALANCER_GROUP).collect(),
        )
    });
    for (place, own, groups) in switches.chain(routers) {
        let groups: Vec<Uuid> = groups;
        let grouped = groups.iter().filter_map(|uuid| cache.get(lbg::TABLE, *uuid));
        let balancers = own.into_iter().chain(grouped.flat_map(|group| group.uuids(lbg::LOAD_BALANCER)));
        let mut seen: BTreeMap<(String, String), String> = BTreeMap::new();
        for row in balancers.filter_map(|uuid| cache.get(lb::TABLE, uuid)) {
            for (vip, _) in row.map(lb::VIPS).iter() {
                let protocol = row.str(lb::PROTOCOL).to_owned();
                let other = seen.insert((protocol, vip.to_owned()), row.str(lb::NAME).to_owned());
                assert_eq!(other, None, "{place}: {vip} is {}'s too", row.str(lb::NAME));
            }
        }
    }
}
