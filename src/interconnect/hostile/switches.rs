//! Transit switches whose subnets or keys cannot be used.

use super::*;

/// Before anything is written: neither an address in IC-NB nor a port in IC-SB.
#[test]
fn a_subnet_that_is_somebodys_is_refused_first() {
    for (subnet, why) in [
        ("10.129.0.0/24", "10.129.0.0/24 overlaps 10.128.0.0/14, which this cluster uses for pods"),
        ("172.18.0.0/24", "172.18.0.0/24 contains 172.18.0.2, the address of a node"),
        ("172.18.9.0/24", "172.18.9.0/24 lies in 172.18.0.0/16, a network that nodes of this cluster are on"),
        ("169.254.100.0/25", "169.254.100.0/25 overlaps 169.254.100.0/24 of transit switch ts"),
        ("10.244.7.0/24", "10.244.7.0/24 overlaps 10.244.0.0/16, which cluster az2 offers"),
    ] {
        let mut rig = Rig::new();
        bound(&mut rig);
        rig.route("az2", "10.244.0.0/16", "169.254.100.9");
        rig.switch("ts1", subnet, &[], 16_711_690);
        let Step { claims, offers, peers, .. } = rig.step();
        says(
            &peers.problems,
            &["cannot use transit switch ts1: its subnet ", why, "give the switch another subnet in all clusters"],
        );
        assert!(claims.is_empty() && lines(&offers, "ts1").is_empty(), "{subnet}");
        assert!(peers.switches.contains_key("ts") && !peers.switches.contains_key("ts1"));
    }
}

/// Where clusters use a subnet already, whoever offers its addresses later is the one that is wrong.
#[test]
fn a_prefix_takes_no_switch_away() {
    let mut rig = Rig::new();
    rig.switch("ts1", "10.199.0.0/24", &[("az2", "10.199.0.9")], 16_711_690);
    rig.cluster("az3", "gw3", "172.20.0.2", (3, "169.254.100.10/24"));
    rig.route("az3", "10.199.0.0/16", "169.254.100.10");
    assert_eq!(rig.problems(), Vec::<String>::new());
    assert!(!rig.step().claims.is_empty());
}

#[test]
fn a_switch_without_a_free_address_is_named() {
    let mut rig = Rig::new();
    rig.switch("ts1", "169.254.7.0/30", &[("az2", "169.254.7.1"), ("az3", "169.254.7.2")], 16_711_690);
    rig.switch("ts2", "169.254.8.0/31", &[], 16_711_691);
    let problems = rig.problems();
    says(&problems, &["no address is free for this cluster in 169.254.7.0/30 of transit switch ts1", "larger subnet"]);
    says(&problems, &["169.254.8.0/31 of transit switch ts2"]);
    assert!(rig.step().claims.is_empty());
}

/// A key below is one of a cluster's own switches and routers.
#[test]
fn a_tunnel_key_that_transit_switches_do_not_have_is_refused() {
    for key in [-1, 0, 1, 4095, 16_711_680, 16_777_216, i64::MAX] {
        let mut rig = Rig::new();
        rig.switch("ts1", "169.254.7.0/24", &[("az1", "169.254.7.5")], key);
        let Step { offers, peers, .. } = rig.step();
        says(
            &peers.problems,
            &[&format!("cannot use transit switch ts1: its tunnel key {key} is not one from 16711681 to 16777215")],
        );
        assert!(!peers.switches.contains_key("ts1") && lines(&offers, "ts1").is_empty(), "{:?}", offers.lines());
    }
    let mut rig = Rig::new();
    rig.switch("ts1", "169.254.7.0/24", &[("az1", "169.254.7.5")], 16_711_681);
    says(&rig.problems(), &["cannot use transit switch ts1: transit switch ts has its tunnel key 16711681 too"]);
    let row = Row::new(ic_nb::ic_nb_global::TABLE).with(ic_nb::ic_nb_global::OPTIONS, [("vxlan_mode", "true")]);
    add(&mut rig.ic_nb, "global", row);
    rig.switch("ts1", "169.254.7.0/24", &[("az1", "169.254.7.5")], 1024);
    assert_eq!(rig.problems(), Vec::<String>::new());
}
