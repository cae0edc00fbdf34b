//! What one service can make on many nodes.

use ovnkube_model::{
    Affected, Change, ClusterSubnet, EndpointFields, EndpointSlice, Kind, Meta, NetworkSettings, Node, NodeFields,
    ObjectKey, PortFields, Roles, Service, ServiceFields, SliceFields, World, keys,
};

use super::Services;
use crate::{Feature, Want};

fn meta<T>(labels: &[(&str, &str)], annotations: &[(&str, String)], parse: impl Fn(&Meta<'_>) -> T) -> T {
    let labels = labels.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
    let annotations = annotations.iter().map(|(key, text)| ((*key).to_owned(), text.clone())).collect();
    parse(&Meta { uid: "u", created: 1, labels: &labels, annotations: &annotations })
}

/// A cluster with so many nodes.
fn world(nodes: usize) -> World {
    let mut world = World::new(
        NetworkSettings {
            roles: Roles::MASTER,
            zone: "global".into(),
            cluster_subnets: vec![ClusterSubnet { cidr: "10.128.0.0/14".parse().unwrap(), host_prefix: 24 }],
            join_subnets: vec!["100.64.0.0/16".parse().unwrap()],
            masquerade_subnets: vec!["169.254.169.0/29".parse().unwrap()],
            ..NetworkSettings::default()
        },
        [Kind::Node],
    );
    world.apply(Change::Synced(Kind::Node));
    for n in 0..nodes {
        let gateway = serde_json::json!({"default": {
            "mode": "shared", "interface-id": format!("br-ex_n{n}"), "mac-address": "02:42:ac:12:00:02",
            "ip-addresses": [format!("172.18.1.{n}/16")], "node-port-enable": "true",
        }});
        let annotations = [(keys::CHASSIS_ID, format!("c{n}")), (keys::GATEWAY, gateway.to_string())];
        let node = meta(&[], &annotations, |meta| Node::parse(meta, NodeFields::default()));
        world.apply(Change::Node(format!("n{n}").into(), Some(Box::new(node))));
    }
    world
}

/// The rows of a service whose only endpoint is meant for clients on one node, so that nodes' rows differ.
fn want(world: &mut World, external: usize) -> Want {
    let key = ObjectKey::new("a", "web");
    let ports = [PortFields { port: Some(80), ..PortFields::default() }];
    let ips: Vec<_> = (0..external).map(|n| format!("192.{}.{}.1", n / 250, n % 250)).collect();
    let fields =
        ServiceFields { cluster_ip: Some("10.96.0.7"), external_ips: &ips, ports: &ports, ..ServiceFields::default() };
    let service = meta(&[], &[], |meta| Service::parse(meta, &fields));
    let endpoint = serde_json::json!({"addresses": ["10.128.0.3"], "hints": {"forNodes": [{"name": "n1"}]}});
    let endpoints: [EndpointFields; 1] = [serde_json::from_value(endpoint).unwrap()];
    let fields = SliceFields { address_type: "IPv4", ports: &ports, endpoints: &endpoints };
    let slice = meta(&[("kubernetes.io/service-name", "web")], &[], |meta| EndpointSlice::parse(meta, fields));
    world.apply(Change::Service(key.clone(), Some(Box::new(service))));
    world.apply(Change::EndpointSlice(ObjectKey::new("a", "web-1"), Some(Box::new(slice))));
    Services::want(&key, world)
}

#[test]
fn a_service_that_is_too_large_for_all_nodes_has_no_rows() {
    let mut world = world(64);
    let said = |world: &World| -> Vec<_> {
        let notices = world.notices(&Affected::Service(ObjectKey::new("a", "web")));
        notices.into_iter().map(|notice| notice.message).collect()
    };
    assert!(!want(&mut world, 10).rows.is_empty());
    assert_eq!(said(&world), [""; 0]);
    assert!(want(&mut world, 20_000).rows.is_empty());
    let messages = said(&world);
    assert!(messages.concat().contains("cannot use spec.ports: 1 of 1 ports are left out"), "{messages:?}");
    let affected: Vec<_> = (0..32).map(|n| world.apply(Change::Node(format!("n{n}").into(), None))).collect();
    assert!(affected[0].contains(&Affected::Service(ObjectKey::new("a", "web"))));
    assert_eq!(said(&world), [""; 0], "half of the nodes are left");
}
