//! What is beyond a limit is allowed to nobody.

use std::collections::BTreeMap;

use ovnkube_model::{
    Change, ClusterSubnet, Kind, Meta, NamedPort, Namespace, NetworkPolicy, NetworkSettings, ObjectKey, Pod, PodFields,
    PodKey, PolicyFields, Protocol, World,
};
use ovnkube_ovn::nb::acl;

use super::{Policies, PolicyKey};
use crate::Feature;

fn meta<T>(parse: impl Fn(&Meta<'_>) -> T) -> T {
    let none = BTreeMap::new();
    parse(&Meta { uid: "u", created: 1, labels: &none, annotations: &none })
}

/// A cluster with the namespace `ns`.
fn world() -> World {
    let subnet = ClusterSubnet { cidr: "10.1.0.0/16".parse().unwrap(), host_prefix: 24 };
    let settings = NetworkSettings { cluster_subnets: vec![subnet], ..NetworkSettings::default() };
    let mut world = World::new(settings, [Kind::Pod]);
    world.apply(Change::Synced(Kind::Pod));
    world.apply(Change::Namespace("ns".into(), Some(meta(Namespace::parse))));
    world
}

fn add(world: &mut World, name: &str, spec: serde_json::Value) {
    let fields: PolicyFields = serde_json::from_value(spec).unwrap();
    let policy = meta(|meta| NetworkPolicy::parse(meta, &fields));
    world.apply(Change::NetworkPolicy(ObjectKey::new("ns", name), Some(Box::new(policy))));
}

/// The matches of what a policy allows.
fn allowed(world: &World, name: &str) -> Vec<String> {
    let want = Policies::want(&PolicyKey::Policy(ObjectKey::new("ns", name)), world);
    let acls = want.rows.iter().map(|want| &want.row).filter(|row| row.table() == acl::TABLE);
    acls.map(|row| row.str(acl::MATCH).to_owned()).collect()
}

#[test]
fn a_selector_without_room_is_in_no_match() {
    let mut world = world();
    let peer = |n| serde_json::json!({"namespaceSelector": {"matchExpressions": [{"key": format!("k{n}"), "operator": "DoesNotExist"}]}});
    for (name, first) in [("a", 0), ("b", 100)] {
        let peers: Vec<_> = (first..first + 100).map(peer).collect();
        add(&mut world, name, serde_json::json!({"ingress": [{"from": peers}]}));
        let matches = allowed(&world, name);
        assert_eq!(matches.iter().map(|text| text.matches('$').count()).collect::<Vec<_>>(), [100]);
    }
    add(&mut world, "c", serde_json::json!({"ingress": [{"from": [peer(200)]}, {"from": [peer(7)]}]}));
    assert_eq!(allowed(&world, "c").len(), 1, "the second rule's selector is used by another policy too");
    let named =
        serde_json::json!({"policyTypes": ["Egress"], "egress": [{"to": [peer(300)], "ports": [{"port": "web"}]}]});
    add(&mut world, "d", named);
    assert_eq!(allowed(&world, "d"), [""; 0]);
}

#[test]
fn a_named_port_has_a_bounded_number_of_acls() {
    let mut world = world();
    for number in 1..=100 {
        let ports = [NamedPort { name: "web".into(), protocol: Protocol::Tcp, number }];
        let fields = PodFields { node_name: Some("n"), ports: &ports, ..PodFields::default() };
        let pod = meta(|meta| Pod::parse(meta, fields));
        world.apply(Change::Pod(PodKey::new("ns", format!("p{number}")), Some(Box::new(pod))));
    }
    add(&mut world, "x", serde_json::json!({"ingress": [{"ports": [{"port": "web"}]}]}));
    let matches = allowed(&world, "x");
    assert_eq!(matches.len(), 64);
    assert!(matches.iter().any(|text| text.contains("tcp.dst==64 ")), "{matches:?}");
    assert!(!matches.iter().any(|text| text.contains("tcp.dst==65 ")), "{matches:?}");
}
