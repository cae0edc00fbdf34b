//! The subnets in which pods run.

use super::*;
use crate::{Node, NodeFields};

#[test]
fn pods_keep_a_subnet_that_is_no_more_annotated() {
    for (annotated, what) in [
        (&["10.1.7.0/25"][..], "halved"),
        (&["10.1.6.0/23"][..], "doubled"),
        (&["10.1.9.0/24"][..], "moved"),
        (&["192.168.0.0/24"][..], "moved out of the ranges"),
        (&[][..], "removed"),
    ] {
        let pods = [
            told("a", 1).started(&["10.1.7.3/24"]),
            told("b", 2).started(&["10.1.7.200/24"]),
            told("c", 3).annotated(&["10.1.7.9/24"]),
        ];
        let mut story = Story::begins(ONE, annotated, &pods);
        assert_eq!(story.has("n1"), ["10.1.7.0/24"], "{what}");
        for (pod, ip) in [("a", "10.1.7.3/24"), ("b", "10.1.7.200/24"), ("c", "10.1.7.9/24")] {
            assert_eq!(story.ips(pod), [ip], "{what}");
            assert!(story.entry(pod).may_be_wired && story.reasons(pod).is_empty(), "{what}");
        }
        assert_eq!(story.node_reasons("n1"), vec!["AnnotationNotObeyed"; annotated.len()], "{what}");
        story.told(&told("new", 4));
        assert!(story.ips("new").is_empty(), "{what}: no pod gets an address that the API server does not show");
        story.confirm("n1");
        assert_eq!(story.ips("new").len(), 1);
        assert!(story.node_reasons("n1").is_empty());
    }
}

#[test]
fn pods_addresses_take_no_other_nodes_subnet() {
    let mut story = Story::new(ONE);
    story.subnets("a-liar", &["10.1.5.0/24"]);
    story.subnets("b", &["10.1.6.0/24"]);
    story.subnets("c-copies", &["10.1.7.0/24"]);
    story.subnets("d", &["10.1.7.0/24"]);
    story.told(&told("p1", 1).on("a-liar").started(&["10.1.6.3/24"]));
    story.told(&told("p2", 1).on("d").started(&["10.1.7.3/24"]));
    story.sync();
    assert_eq!(story.has("a-liar"), ["10.1.5.0/24"]);
    assert_eq!(story.has("b"), ["10.1.6.0/24"]);
    assert_eq!(story.has("d"), ["10.1.7.0/24"], "whose pods run in it has it, though the other node is as old");
    assert!(!story.has("c-copies").contains(&"10.1.7.0/24".to_owned()));
    assert_eq!(story.ips("p1"), ["10.1.5.3/24"]);
    assert_eq!(story.ips("p2"), ["10.1.7.3/24"]);
}

#[test]
fn a_single_pods_status_or_annotation_moves_no_subnet() {
    let pods = [
        told("a", 1).started(&["10.1.7.3/24"]),
        told("b", 2).started(&["10.1.7.4/24"]),
        told("liar", 3).started(&["10.1.9.3/24"]),
        told("short", 4).started(&["10.1.7.5/29"]),
        told("wide", 5).started(&["10.1.7.6/16"]),
        told("shorter", 6).started(&["10.1.7.7/29"]),
    ];
    let story = Story::begins(ONE, &["10.1.7.0/24"], &pods);
    assert_eq!(story.has("n1"), ["10.1.7.0/24"]);
    assert_eq!(story.ips("a"), ["10.1.7.3/24"]);
}

/// A subnet like that has no gateway, and a node that had it would keep it.
#[test]
fn no_node_has_a_subnet_without_room_for_pods() {
    for (length, annotated) in [(30, "10.1.7.8/30"), (31, "10.1.7.8/31"), (32, "10.1.7.9/32")] {
        let story = Story::begins(ONE, &[annotated], &[]);
        assert_eq!((story.has("n1"), story.node_reasons("n1")), (vec![V4.to_owned()], vec!["BadAnnotation"]));
        let story = Story::begins(ONE, &[], &[told("a", 1).started(&[&format!("10.1.7.9/{length}")])]);
        assert_eq!((story.has("n1"), story.ips("a")), (vec!["10.1.7.0/24".to_owned()], vec!["10.1.7.9/24".to_owned()]));
    }
}

#[test]
fn a_subnet_of_an_older_host_prefix_stays() {
    let story = Story::begins(ONE, &["10.1.6.0/23"], &[told("a", 1).started(&["10.1.7.3/23"])]);
    assert_eq!(story.has("n1"), ["10.1.6.0/23"]);
    assert!(story.node_reasons("n1").is_empty());
    assert_eq!(story.ips("a"), ["10.1.7.3/23"]);
}

#[test]
fn pods_of_a_node_with_its_own_subnet_are_ignored() {
    let mut story = Story::new(ONE);
    story.node("n1", &[(keys::HYBRID_SUBNET, "10.1.0.0/24")]);
    story.told(&told("a", 1).runs(&["10.1.0.3"]));
    story.sync();
    assert!(story.has("n1").is_empty() && story.ips("a").is_empty());
}

#[test]
fn a_recreated_node_gets_its_pods_subnet_back() {
    let mut story = Story::begins(ONE, &["10.1.7.0/24"], &[told("a", 1).started(&["10.1.7.3/24"])]);
    story.world.apply(Change::Node("n1".into(), None));
    assert!(story.ips("a").is_empty());
    story.node("n1", &[]);
    assert_eq!(story.has("n1"), ["10.1.7.0/24"]);
    assert_eq!(story.ips("a"), ["10.1.7.3/24"]);
    // unless another pod has it by then
    story.world.apply(Change::Node("n1".into(), None));
    story.subnets("n2", &["10.1.7.0/24"]);
    story.node("n1", &[]);
    assert_ne!(story.has("n1"), ["10.1.7.0/24"]);
    story.confirm("n1");
    assert_eq!(story.reasons("a"), ["AddressConflict"]);
}

/// Their Nodes were deleted and created again before the API server showed that the pods had started.
#[test]
fn nodes_exchange_the_subnets_in_which_each_others_pods_run() {
    for dual in [false, true] {
        let mut story = Story::settled(&[("10.1.0.0/22", 24), ("fd01::/62", 64)][..if dual { 2 } else { 1 }]);
        for name in ["n0", "n1", "n2", "n3"] {
            story.node(name, &[]);
            story.confirm(name);
        }
        let run = [("a", "n1", "10.1.2.3"), ("b", "n2", "10.1.3.3"), ("c", "n0", "10.1.1.3"), ("d", "n3", "10.1.1.4")];
        for (pod, node, ip) in run {
            story.told(&told(pod, 1).on(node).runs(&[ip]));
        }
        let has = |story: &Story| ["n0", "n1", "n2", "n3"].map(|name| story.has(name)[0].clone());
        assert_eq!(has(&story), ["10.1.0.0/24", "10.1.2.0/24", "10.1.3.0/24", "10.1.1.0/24"]);
        for (pod, _, ip) in run.into_iter().filter(|(pod, ..)| *pod != "c") {
            assert_eq!(story.ips(pod)[0], format!("{ip}/24"));
        }
    }
}

/// Another node has the subnet in which most of its pods run.
#[test]
fn a_recreated_node_gets_what_is_free_of_its_pods_subnets() {
    let mut story = Story::settled(ONE);
    story.subnets("m", &["10.1.7.0/24"]);
    for (name, ip) in [("a", "10.1.7.3"), ("b", "10.1.7.4"), ("c", "10.1.9.3")] {
        story.told(&told(name, 1).runs(&[ip]));
    }
    story.node("n1", &[]);
    assert_eq!((story.has("n1"), story.ips("c")), (vec!["10.1.9.0/24".to_owned()], vec!["10.1.9.3/24".to_owned()]));
    story.world.apply(Change::Node("m".into(), None));
    assert_eq!(story.has("n1"), ["10.1.9.0/24"], "it serves a pod");
}

/// Its agent changes its annotations while a pod keeps it in its new subnet.
#[test]
fn a_node_does_not_forget_the_pods_that_run_in_its_former_subnet() {
    let mut story = Story::settled(ONE);
    story.told(&told("a", 1).started(&["10.1.0.3/24"]));
    story.subnets("m", &[V4]);
    story.node("n1", &[]);
    story.confirm("n1");
    assert_eq!(story.has("n1"), ["10.1.1.0/24"]);
    story.told(&told("b", 2).started(&["10.1.1.4/24"]));
    let subnets = (keys::NODE_SUBNETS, r#"{"default":["10.1.1.0/24"]}"#);
    story.node("n1", &[subnets, (keys::HOST_CIDRS, r#"["192.0.2.7/24"]"#)]);
    story.world.apply(Change::Node("m".into(), None));
    assert_eq!((story.has("n1"), story.ips("b")), (vec!["10.1.1.0/24".to_owned()], vec!["10.1.1.4/24".to_owned()]));
    story.gone("b");
    assert_eq!((story.has("n1"), story.ips("a")), (vec![V4.to_owned()], vec!["10.1.0.3/24".to_owned()]));
}

/// Whoever waits for a subnet comes after a node whose pods run in the one that is free.
#[test]
fn a_node_gets_its_pods_subnet_before_others_that_wait() {
    let mut story = Story::settled(&[("10.1.0.0/23", 24)]);
    story.node("z", &[]);
    story.node("other", &[]);
    story.told(&told("p", 1).on("z").started(&["10.1.0.3/24"]));
    story.world.apply(Change::Node("z".into(), None));
    for name in ["m", "a", "z"] {
        story.node(name, &[]);
    }
    assert_eq!(story.has("m"), [V4]);
    story.world.apply(Change::Node("m".into(), None));
    assert_eq!((story.has("z"), story.has("a")), (vec![V4.to_owned()], vec![]));
    // another Node of its name, whose deletion was not seen
    let node = with_meta("another", 2, &[], |meta| Node::parse(meta, NodeFields::default()));
    story.world.apply(Change::Node("z".into(), Some(Box::new(node))));
    assert_eq!((story.has("z"), story.has("a")), (vec![V4.to_owned()], vec![]));
    assert_eq!(story.ips("p"), ["10.1.0.3/24"]);
}

#[test]
fn a_follower_keeps_the_subnet_that_pods_run_in() {
    let mut settings = network(ONE);
    settings.roles.cluster_manager = false;
    let mut story = Story { world: World::new(settings, [Kind::Node, Kind::Pod]) };
    story.subnets("n1", &["10.1.4.0/24"]);
    story.told(&told("a", 1).started(&["10.1.4.3/24"]));
    story.sync();
    for edited in ["10.1.5.0/24", "10.1.4.0/25"] {
        story.subnets("n1", &[edited]);
        assert_eq!(story.has("n1"), ["10.1.4.0/24"]);
        assert_eq!(story.ips("a"), ["10.1.4.3/24"]);
        assert_eq!(story.node_reasons("n1"), ["AnnotationNotObeyed"]);
    }
    story.subnets("n1", &["10.1.5.0/24"]);
    story.told(&told("b", 2));
    story.gone("a");
    assert_eq!(story.has("n1"), ["10.1.5.0/24"], "no pod runs in the other one any more");
    assert_eq!(story.ips("b"), ["10.1.5.3/24"]);
    assert!(story.node_reasons("n1").is_empty());
}

/// An address of the former subnet can be the gateway's of one that lies in it.
#[test]
fn no_pod_keeps_an_address_that_is_the_gateways_of_its_nodes_new_subnet() {
    let mut settings = network(ONE);
    settings.roles.cluster_manager = false;
    let mut story = Story { world: World::new(settings, [Kind::Node, Kind::Pod]) };
    story.subnets("n1", &["10.1.0.0/23"]);
    story.told(&told("a", 1).annotated(&["10.1.1.1/23"]));
    story.sync();
    assert_eq!(story.ips("a"), ["10.1.1.1/23"]);
    story.subnets("n1", &["10.1.1.0/24"]);
    assert_eq!(story.ips("a"), ["10.1.1.3/24"]);
}

/// A node whose second family came later, and follows a pod that runs with an address elsewhere.
#[test]
fn a_pod_with_one_family_keeps_what_it_runs_with_in_a_subnet_that_follows_it() {
    let mut story = Story::new(DUAL);
    story.subnets("n1", &[V4]);
    story.sync();
    story.confirm("n1");
    let other = story.has("n1")[1].clone();
    story.told(&told("a", 1).runs(&["10.1.0.3", "fd01:0:0:5::3"]));
    assert_ne!(story.has("n1")[1], other);
    assert_eq!(story.ips("a"), ["10.1.0.3/24", "fd01:0:0:5::3/64"]);
    story.told(&told("b", 2).annotated(&["fd01:0:0:5::3/64"]));
    story.confirm("n1");
    assert_eq!(story.ips("a"), ["10.1.0.3/24", "fd01:0:0:5::3/64"]);
}
