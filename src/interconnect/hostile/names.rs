//! Names that others chose.

use ovnkube_ovn::nb::{logical_router_port as lrp, logical_switch as ls, logical_switch_port as lsp};
use ovnkube_ovn::{Row, owner};

use super::*;

const LONG: &str = "a234567890b234567890c234567890d234567890e234567890f234567890g234";

/// A transit switch whose name could be that of something else is not used, and nothing is written for it.
#[test]
fn a_switch_cannot_be_called_as_what_the_cluster_has() {
    for name in [
        "", "-ts", "--help", "ts-", "a b", "a_pod", "ts\"||1", "tsé", "ts\n", LONG, "join", "k8s", "k8s-n", "stor-n",
        "cr-az1", "n1",
    ] {
        let mut rig = Rig::new();
        rig.switch(name, "169.254.7.0/24", &[("az1", "169.254.7.5")], 16_711_690);
        rig.port("az2", name, &format!("{name}-az2"), (2, "169.254.7.9/24"), "gw2");
        let Step { claims, offers, peers, .. } = rig.step();
        says(&peers.problems, &["cannot use transit switch"]);
        assert_eq!(peers.switches.keys().map(AsRef::as_ref).collect::<Vec<_>>(), ["ts"], "{name:?}");
        assert!(claims.is_empty() && lines(&offers, "169.254.7.").is_empty(), "{name:?}: {:?}", offers.lines());
        assert!(peers.problems.iter().all(|problem| !problem.contains(char::is_control)), "{:?}", peers.problems);
    }
    for name in ["k8", "joint", "stork", "ts.1", "TS", "extra", "n2"] {
        let mut rig = Rig::new();
        rig.switch(name, "169.254.7.0/24", &[("az1", "169.254.7.5")], 16_711_690);
        assert_eq!(rig.problems(), Vec::<String>::new());
    }
}

/// A switch or port that a person made is not changed.
#[test]
fn rows_that_a_person_made_stay_theirs() {
    let mut rig = Rig::new();
    let row = Row::new(ls::TABLE).with(ls::NAME, "ts").with(ls::OTHER_CONFIG, [("subnet", "10.9.0.0/24")]);
    add(&mut rig.nb, "ts", row.clone());
    says(&rig.problems(), &["cannot use transit switch ts: the northbound database has another switch of this name"]);
    assert_eq!(rig.step().peers.switches.len(), 0);
    // this cluster's, and one that OVN's own daemon made
    for known in [
        row.clone().with(ls::EXTERNAL_IDS, owner::marks(owner::INTERCONNECTION)),
        row.with(ls::OTHER_CONFIG, [("interconn-ts", "ts")]),
    ] {
        add(&mut rig.nb, "ts", known);
        assert_eq!(rig.problems(), Vec::<String>::new());
    }
    add(&mut rig.nb, "port", Row::new(lsp::TABLE).with(lsp::NAME, "ts-az2"));
    says(&rig.problems(), &["\"ts-az2\"", "the northbound database has another port of this name"]);
    assert!(rig.step().peers.switches["ts"].remote.is_empty());
    add(&mut rig.nb, "own", Row::new(lsp::TABLE).with(lsp::NAME, "ts-az1"));
    says(&rig.problems(), &["cannot use transit switch ts: the northbound database has another port ts-az1"]);
}

/// The router port of another switch keeps its name, whoever made it.
#[test]
fn a_router_port_of_another_switch_stays() {
    let mut rig = Rig::new();
    add(&mut rig.nb, "port", Row::new(lrp::TABLE).with(lrp::NAME, "az1-ts"));
    assert_eq!(rig.problems(), Vec::<String>::new(), "one that leads nowhere is left of OVN's own daemon");
    let row = Row::new(lsp::TABLE).with(lsp::TYPE, "router").with(lsp::OPTIONS, [("router-port", "az1-ts")]);
    add(&mut rig.nb, "end", row.clone().with(lsp::NAME, "ts-az1"));
    assert_eq!(rig.problems(), Vec::<String>::new());
    add(&mut rig.nb, "end", row.with(lsp::NAME, "stor-n1"));
    says(&rig.problems(), &["cannot use transit switch ts: the northbound database has another port az1-ts"]);
    assert_eq!(rig.step().peers.switches.len(), 0);
}

/// Nothing of a cluster with a bad name is used: its name comes into Events, metrics, commands and lists for hosts.
#[test]
fn a_cluster_with_a_bad_name_is_left_out_and_the_others_stay() {
    for name in ["", "-rf", "az3\n az4 10.0.0.0/8", "az 3", "az_3", LONG, "az3\u{1b}[31m"] {
        let mut rig = Rig::new();
        rig.cluster(name, "gw3", "172.20.0.2", (3, "169.254.100.10/24"));
        rig.route(name, "10.245.0.0/16", "169.254.100.10");
        rig.route("az2", "10.244.0.0/16", "169.254.100.9");
        let Step { peers, .. } = rig.step();
        says(&peers.problems, &["cannot use cluster ", "give it another az-name"]);
        assert!(peers.problems.iter().all(|problem| !problem.contains(char::is_control)), "{:?}", peers.problems);
        assert_eq!(peers.clusters.keys().map(AsRef::as_ref).collect::<Vec<_>>(), ["az2"]);
        assert_eq!((peers.waiting.len(), rig.written().len()), (1, 1), "{name:?}");
    }
}

/// `ts` with `a-az1` and `ts-a` with `az1` have ports of one name.
#[test]
fn a_port_of_another_cluster_has_no_name_of_ours() {
    let mut rig = Rig::new();
    rig.switch("ts-a", "169.254.7.0/24", &[("az1", "169.254.7.5")], 16_711_690);
    rig.port("az2", "ts", "ts-a-az1", (3, "169.254.100.10/24"), "gw2");
    says(&rig.problems(), &["\"ts-a-az1\"", "there is another port of this name"]);
    assert!(!rig.step().peers.switches["ts"].remote.contains_key("ts-a-az1"));
}

#[test]
fn a_port_that_cannot_be_used_says_why() {
    for (name, key, address, why) in [
        ("k8s-n1", 3, "169.254.100.10/24", "its name is not ts- and the name of a cluster"),
        ("ts--x", 3, "169.254.100.10/24", "its name is not ts-"),
        ("ts-az3", 0, "169.254.100.10/24", "its tunnel key"),
        ("ts-az3", 32_768, "169.254.100.10/24", "its tunnel key"),
        ("ts-az3", 3, "10.0.0.1/24", "10.0.0.1/24 is not in a subnet of the switch"),
        ("ts-az3", 3, "169.254.100.5/24", "169.254.100.5 is the address of this cluster"),
        ("ts-az3", 3, "169.254.100.9/24", "port ts-az2 has 169.254.100.9 too"),
        ("ts-az3", 3, "nonsense", "no MAC address"),
        // those of this cluster and of az2
        ("ts-az3", 3, "0a:58:a9:fe:64:05 169.254.100.10/24", "0a:58:a9:fe:64:05 is the MAC address of this cluster"),
        ("ts-az3", 3, "0A:58:a9:fe:64:09 169.254.100.10/24", "port ts-az2 has its MAC address 0a:58:a9:fe:64:09 too"),
    ] {
        let mut rig = Rig::new();
        super::switches::attach(&mut rig, "az1-ts", &["169.254.100.5/24"]);
        rig.cluster("az3", "gw3", "172.20.0.2", (3, "169.254.100.11/24"));
        rig.port("az3", "ts", name, (key, address), "gw3");
        let problems = rig.problems();
        says(&problems, &["cannot use port", why, "correct it in that cluster"]);
        assert!(rig.step().peers.switches["ts"].remote.contains_key("ts-az2"), "{problems:?}");
    }
}
