//! A Node that claims what belongs to others.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnetwork::IpNetwork;

use crate::tests::{ONE, Story, with_meta};
use crate::{Affected, Change, Node, NodeFields, PodKey, World, keys};

const SUBNETS: &str = r#"{"default":["10.1.0.0/24"]}"#;

fn gateway(interface_id: &str) -> String {
    format!(
        r#"{{"default":{{"mode":"shared","interface-id":"{interface_id}","mac-address":"02:42:ac:12:00:02","ip-addresses":["172.18.0.2/16"],"next-hops":["172.18.0.1"]}}}}"#
    )
}

impl Story {
    /// A node of this age with these annotations.
    fn says(&mut self, name: &str, created: i64, annotations: &[(&str, &str)]) -> BTreeSet<Affected> {
        let node = with_meta(name, created, annotations, |meta| Node::parse(meta, NodeFields::default()));
        self.world.apply(Change::Node(name.into(), Some(Box::new(node))))
    }

    fn says_chassis(&mut self, name: &str, created: i64, id: &str) -> BTreeSet<Affected> {
        self.says(name, created, &[(keys::CHASSIS_ID, id)])
    }

    fn is_deleted(&mut self, name: &str) -> BTreeSet<Affected> {
        self.world.apply(Change::Node(name.into(), None))
    }

    fn said_of(&self, node: &str) -> String {
        self.world.notices(&Affected::Node(node.into())).into_iter().map(|notice| notice.message).collect()
    }
}

fn chassis(world: &World) -> Vec<(&str, Option<&str>)> {
    world.nodes.iter().map(|(name, node)| (name.as_ref(), node.chassis_id.as_deref())).collect()
}

#[test]
fn a_gateway_has_the_port_of_its_own_node() {
    let mut story = Story::settled(ONE);
    let others =
        ["default_web", "br-ex_n2", "_n1", "n1", "br-ex_n1x", "", "jtor-GR_n1", "etor-GR_n1", "a-bridge-of-sixt_n1"];
    for other in others {
        story.says("n1", 1, &[(keys::GATEWAY, &gateway(other))]);
        assert!(story.world.nodes["n1"].gateway.is_none(), "{other}");
        assert!(story.said_of("n1").contains("interface-id"), "{other}");
    }
    story.says("n1", 1, &[(keys::GATEWAY, &gateway("br-ex_n1"))]);
    assert!(story.world.nodes["n1"].gateway.is_some());
    assert_eq!(story.said_of("n1"), "");
}

/// For every address that a gateway router translates to, or has node ports at, OVN answers in the join switch too.
#[test]
fn a_node_has_no_address_of_the_clusters_routers() {
    let mut story = Story::settled(ONE);
    let own = [(keys::GATEWAY, gateway("br-ex_n1")), (keys::HOST_CIDRS, r#"["172.18.0.2/16"]"#.to_owned())];
    let says = |story: &mut Story, with: &str| {
        let own = own.clone().map(|(key, text)| (key, text.replace(r#""172.18.0.2/16""#, with)));
        story.says("n1", 1, &own.each_ref().map(|(key, text)| (*key, text.as_str())));
        let node = &story.world.nodes["n1"];
        let ips = node.gateway.as_ref().map(|gateway| gateway.ips.iter().map(ToString::to_string).collect::<Vec<_>>());
        (ips, node.host_cidrs.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    for (with, kept) in [
        (r#""172.18.0.2/16","100.64.0.1/16""#, "172.18.0.2/16"),
        (r#""fd98::1/64","172.18.0.2/16","100.64.255.255/32""#, "172.18.0.2/16"),
        (r#""100.65.0.1/8""#, "100.65.0.1/8"),
    ] {
        let kept = vec![kept.to_owned()];
        assert_eq!(says(&mut story, with), (Some(kept.clone()), kept), "{with}");
        let said = story.said_of("n1");
        for key in [keys::GATEWAY, keys::HOST_CIDRS] {
            assert_eq!(said.contains(&format!("cannot use annotation {key}: ")), with.contains(','), "{said}");
        }
    }
    assert_eq!(says(&mut story, r#""100.64.0.1/16""#), (None, Vec::new()));
}

#[test]
fn a_pod_named_like_a_gateways_port_gets_no_port() {
    let namesake = PodKey::new("ns", "n1");
    let mut story = Story::settled(ONE);
    story.says("n1", 1, &[(keys::NODE_SUBNETS, SUBNETS)]);
    story.pod("n1", "1", "n1", &[]);
    assert!(!story.world.is_gateway_port(&namesake));
    let affected = story.says("n1", 1, &[(keys::NODE_SUBNETS, SUBNETS), (keys::GATEWAY, &gateway("ns_n1"))]);
    assert!(affected.contains(&Affected::Pod(namesake.clone())));
    assert!(story.world.is_gateway_port(&namesake));
    assert_eq!(story.reasons("n1"), ["NameReserved"]);
    assert!(story.is_deleted("n1").contains(&Affected::Pod(namesake.clone())));
    assert!(!story.world.is_gateway_port(&namesake));
}

#[test]
fn a_chassis_stays_with_its_node() {
    let mut story = Story::settled(ONE);
    story.says_chassis("n2", 2, "c2");
    story.says_chassis("n1", 1, "c2");
    assert_eq!(chassis(&story.world), [("n1", None), ("n2", Some("c2"))]);
    assert!(story.said_of("n1").contains("k8s.ovn.org/node-chassis-id: c2 is the chassis of node n2"));
    assert!(story.says_chassis("n1", 1, "c2").is_empty(), "the same again says nothing new");
    assert_eq!(story.said_of("n2"), "");
}

#[test]
fn at_the_start_the_older_node_gets_the_chassis() {
    for names in [["n1", "n2", "n3"], ["n3", "n2", "n1"], ["n2", "n1", "n3"]] {
        let mut story = Story::new(ONE);
        for name in names {
            story.says_chassis(name, name[1..].parse().unwrap(), "c");
        }
        story.sync();
        assert_eq!(chassis(&story.world), [("n1", Some("c")), ("n2", None), ("n3", None)]);
        assert!(story.said_of("n3").contains("node-chassis-id"));
    }
}

#[test]
fn a_chassis_that_becomes_free_goes_to_the_next_node() {
    let mut story = Story::settled(ONE);
    for (created, name) in (1..).zip(["n1", "n2", "n3"]) {
        story.says_chassis(name, created, "c");
    }
    assert!(story.is_deleted("n1").contains(&Affected::Node("n2".into())));
    assert_eq!(chassis(&story.world), [("n2", Some("c")), ("n3", None)]);
    assert_eq!(story.said_of("n2"), "");
    assert!(story.says_chassis("n2", 2, "d").contains(&Affected::Node("n3".into())));
    assert_eq!(chassis(&story.world), [("n2", Some("d")), ("n3", Some("c"))]);
    story.says_chassis("n2", 2, "c");
    assert_eq!(chassis(&story.world), [("n2", None), ("n3", Some("c"))]);
}

#[test]
fn a_host_has_a_bounded_number_of_addresses() {
    let mut story = Story::settled(ONE);
    let list = |count: usize| (0..count).map(|n| format!("10.9.{}.{}/32", n / 256, n % 256)).collect::<Vec<_>>();
    let mut says = |cidrs: &[String]| {
        let annotation = serde_json::to_string(cidrs).unwrap();
        story.says("n1", 1, &[(keys::HOST_CIDRS, &annotation), (keys::GATEWAY, &gateway("br-ex_n1"))]);
        let node = &story.world.nodes["n1"];
        let used = node.cidrs_with_rows().iter().map(ToString::to_string).collect::<Vec<_>>();
        // the others are the node's all the same: no user may have them for a service
        assert_eq!(cidrs.iter().take(1000).find(|cidr| !node.has_ip(cidr.parse::<IpNetwork>().unwrap().ip())), None);
        assert!(node.host_cidrs.len() <= 1024, "{}", node.host_cidrs.len());
        (used, story.said_of("n1"))
    };
    assert_eq!(says(&list(64)), (list(64), String::new()));
    assert_eq!(says(&[list(64), list(64)].concat()), (list(64), String::new()), "each is there twice");
    // as agents sort them, the node's own address may be the last one
    let own = vec!["172.18.0.2/16".to_owned()];
    let (used, _) = says(&[list(2000), own.clone()].concat());
    assert_eq!(used, [own.clone(), list(63)].concat());
    let (used, said) = says(&[list(1000), own.clone()].concat());
    assert_eq!(used, [own, list(63)].concat());
    assert!(said.contains("annotation k8s.ovn.org/host-cidrs: it has 1001 addresses and 64 are used"), "{said}");
}

#[test]
fn a_status_has_a_bounded_number_of_addresses() {
    let mut story = Story::settled(ONE);
    let list = |count: u16| (0..count).map(|n| IpAddr::from([10, 9, (n >> 8) as u8, n as u8])).collect::<Vec<_>>();
    let mut says = |internal: u16, others: u16| {
        let (addresses, other_addresses) = (list(internal), list(others));
        let fields = NodeFields { addresses: &addresses, other_addresses: &other_addresses, ..NodeFields::default() };
        let node = with_meta("n1", 1, &[], |meta| Node::parse(meta, fields));
        story.world.apply(Change::Node("n1".into(), Some(Box::new(node))));
        let node = &story.world.nodes["n1"];
        (node.addresses.len(), node.other_addresses.len(), story.said_of("n1"))
    };
    assert_eq!(says(1024, 1024), (1024, 1024, String::new()));
    let (internal, others, said) = says(1030, 1025);
    assert_eq!((internal, others), (1024, 1024));
    assert!(said.contains("cannot use 7 of the addresses in status.addresses: 1024 of type InternalIP"), "{said}");
}

/// Its Events must not take the place of those of others.
#[test]
fn a_node_with_many_addresses_of_services_has_few_notices() {
    let mut story = Story::settled(ONE);
    let addresses: Vec<_> = (0..200).map(|n| IpAddr::from([10, 96, 0, n])).collect();
    let fields = NodeFields { addresses: &addresses, ..NodeFields::default() };
    let node = with_meta("n1", 1, &[], |meta| Node::parse(meta, fields));
    story.world.apply(Change::Node("n1".into(), Some(Box::new(node))));
    let notices = story.world.notices(&Affected::Node("n1".into()));
    assert_eq!(notices.iter().filter(|notice| notice.reason == "AddressConflict").count(), 20);
}

#[test]
fn a_gateway_has_a_bounded_number_of_addresses_and_next_hops() {
    let mut story = Story::settled(ONE);
    let annotation = |ips: usize, next_hops: usize| {
        let ips: Vec<_> = (0..ips).map(|n| format!("10.9.{}.{}/16", n / 256, n % 256)).collect();
        let next_hops: Vec<_> = (0..next_hops).map(|n| format!("10.9.200.{n}")).collect();
        let config = serde_json::json!({
            "mode": "shared", "interface-id": "br-ex_n1", "mac-address": "02:42:ac:12:00:02", "ip-addresses": ips,
            "next-hops": next_hops,
        });
        serde_json::json!({"default": config}).to_string()
    };
    for (ips, next_hops) in [(16, 16), (17_000, 1), (2, 17)] {
        story.says("n1", 1, &[(keys::GATEWAY, &annotation(ips, next_hops))]);
        let gateway = story.world.nodes["n1"].gateway.clone().unwrap();
        assert_eq!((gateway.ips.len(), gateway.next_hops.len()), (ips.min(16), next_hops.min(16)));
        assert_eq!(gateway.ips[0].to_string(), "10.9.0.0/16");
        let said = story.said_of("n1");
        let expected = format!("it has {ips} addresses and {next_hops} next hops; the first 16 of each are used");
        assert_eq!(said.contains(&expected), ips > 16 || next_hops > 16, "{said}");
    }
}
