//! What a node's agent, or whoever controls the node, can write in `l3-gateway-config`.

use std::collections::{BTreeMap, BTreeSet};

use ovnkube_model::{Change, ClusterSubnet, Kind, Meta, NetworkSettings, Node, NodeFields, Roles, Subnet, World, keys};
use ovnkube_ovn::nb::{logical_router_static_route as route, nat};

use super::{Gateways, of_pod};
use crate::{Feature, Want};

/// A cluster with the node `n1`, whose gateway has these addresses and next hops.
fn world(ips: &[&str], next_hops: &[&str], snat_per_pod: bool) -> World {
    let range = |cidr: &str, host_prefix| ClusterSubnet { cidr: cidr.parse().unwrap(), host_prefix };
    let subnets = |texts: [&str; 2]| -> Vec<Subnet> { texts.iter().map(|text| text.parse().unwrap()).collect() };
    let mut world = World::new(
        NetworkSettings {
            roles: Roles::MASTER,
            zone: "global".into(),
            cluster_subnets: vec![range("10.1.0.0/16", 24), range("fd01::/48", 64)],
            join_subnets: subnets(["100.64.0.0/16", "fd98::/64"]),
            masquerade_subnets: subnets(["169.254.169.0/29", "fd69::/125"]),
            disable_snat_multiple_gws: snat_per_pod,
            ..NetworkSettings::default()
        },
        [Kind::Node],
    );
    world.apply(Change::Synced(Kind::Node));
    let config = serde_json::json!({"default": {
        "mode": "shared", "interface-id": "br-ex_n1", "mac-address": "02:42:ac:12:00:02", "ip-addresses": ips,
        "next-hops": next_hops,
    }});
    let annotations =
        [(keys::CHASSIS_ID, "c1".to_owned()), (keys::NODE_ID, "2".to_owned()), (keys::GATEWAY, config.to_string())];
    let annotations: BTreeMap<_, _> = annotations.into_iter().map(|(key, text)| (key.to_owned(), text)).collect();
    let meta = Meta { uid: "u", created: 1, labels: &BTreeMap::new(), annotations: &annotations };
    let node = Node::parse(&meta, NodeFields::default());
    world.apply(Change::Node("n1".into(), Some(Box::new(node))));
    world
}

/// `LOGICAL>EXTERNAL` of each NAT, sorted.
fn translations(want: &Want) -> Vec<String> {
    let rows = want.rows.iter().map(|want| &want.row).filter(|row| row.table() == nat::TABLE);
    let mut all: Vec<_> =
        rows.map(|row| format!("{}>{}", row.str(nat::LOGICAL_IP), row.str(nat::EXTERNAL_IP))).collect();
    all.sort();
    all
}

/// OVN would use any one of several rules for the same packets.
#[test]
fn what_leaves_gets_the_first_address_of_its_family() {
    let ips = ["172.18.0.9/16", "fd00:18::9/64", "172.18.0.2/16", "fd00:18::2/64"];
    let shared = [
        "10.1.0.0/16>172.18.0.9",
        "100.64.0.2>172.18.0.9",
        "169.254.169.2>100.64.0.2",
        "fd01::/48>fd00:18::9",
        "fd69::2>fd98::2",
        "fd98::2>fd00:18::9",
    ];
    assert_eq!(translations(&Gateways::want(&"n1".into(), &world(&ips, &["172.18.0.1"], false))), shared);
    let world = world(&ips, &["172.18.0.1"], true);
    let mut of = Want::default();
    of_pod(&mut of, &"n1".into(), ["10.1.0.3", "fd01::3"].map(|ip| ip.parse().unwrap()).into_iter(), &world);
    assert_eq!(translations(&of), ["10.1.0.3>172.18.0.9", "fd01::3>fd00:18::9"]);
}

#[test]
fn an_address_or_next_hop_that_is_there_twice_counts_once() {
    let ips = ["172.18.0.2/16", "172.18.0.2/16", "172.18.0.2/24"];
    let want = Gateways::want(&"n1".into(), &world(&ips, &["172.18.0.1", "172.18.0.1", "172.18.0.3"], false));
    let rows: BTreeSet<_> = want.rows.iter().map(|want| &want.key).collect();
    assert_eq!(rows.len(), want.rows.len(), "no row is wanted twice");
    let routes = want.rows.iter().map(|want| &want.row).filter(|row| row.table() == route::TABLE);
    let out = routes.filter(|row| row.str(route::IP_PREFIX) == "0.0.0.0/0").map(|row| row.str(route::NEXTHOP));
    assert_eq!(out.collect::<Vec<_>>(), ["172.18.0.1", "172.18.0.3"]);
}
