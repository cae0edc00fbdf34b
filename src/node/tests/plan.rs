//! `ovnkube plan --node` on real programs: it prints everything that an agent would do, and does none of it.
#![allow(clippy::unwrap_used)]

mod lab;

use lab::{Lab, eventually, in_node, run};
use ovnkube_model::GatewayMode;

/// The visible state of the host's network and of Open vSwitch, without counters.
fn seen(lab: &Lab) -> String {
    let ip = |args: &str| run("ip", &args.split(' ').collect::<Vec<_>>());
    let host =
        ["-o addr", "route show table all", "-6 route show table all", "rule", "neigh show nud permanent"].map(ip);
    let rows = ["Open_vSwitch", "Bridge", "Port"]
        .map(|table| lab.vsctl(&format!("--columns=_uuid,external_ids list {table}")));
    host.concat() + &rows.concat() + &run("nft", &["-s", "list", "ruleset"]) + &format!("{}", lab.conf().exists())
}

fn has(plan: &[String], line: &str) {
    assert!(plan.iter().any(|have| have.contains(line)), "{line:?} is not in {plan:#?}");
}

#[test]
fn a_plan_is_carried_out_and_then_empty() {
    for mode in [GatewayMode::Shared, GatewayMode::Local] {
        in_node(move |lab| {
            lab.start_ovs();
            lab.make_bridge();
            lab.start_ovn();
            lab.make_router();
            lab.gateway = Some(lab::gateway::settings("br-ex", mode));
            eventually("quiet", || !run("ip", &["addr"]).contains("tentative"));
            let reached_by = lab.runtime.block_on(ovnkube_node::uplink_addresses()).unwrap();
            assert_eq!(reached_by, ["172.18.0.2".parse::<std::net::IpAddr>().unwrap()]);
            let before = seen(lab);
            let plan = lab.plan();
            for line in [
                "Open vSwitch: set Open_vSwitch{external_ids: {",
                "Open vSwitch: insert Interface{",
                "ovn-k8s-mp0: add address 10.128.0.2/24",
                "br-ex: add route 10.96.0.0/16 via 169.254.",
                "write nftables table inet ovn-kubernetes",
                "br-ex: write the gateway's flows, later: ovn-controller has not made port patch-br-ex_",
                "10-ovn-kubernetes.conflist",
            ] {
                has(&plan, line);
            }
            assert_eq!(seen(lab), before, "a plan changes nothing");
            lab.start_agent();
            lab.ready();
            lab.stop_agent();
            // an agent that ends removes the configuration
            let after = lab.plan();
            assert!(after.len() == 1 && after[0].contains("10-ovn-kubernetes.conflist"), "{after:#?}");
            // someone changes it
            run("ip", &["addr", "del", "10.128.0.2/24", "dev", "ovn-k8s-mp0"]);
            run("nft", &["flush", "table", "inet", "ovn-kubernetes"]);
            lab.ofctl("del-flows", &["cookie=0xdeff105/-1,table=1"]);
            lab.vsctl("remove Open_vSwitch . external_ids ovn-encap-type");
            eventually("quiet", || !run("ip", &["addr"]).contains("tentative"));
            let before = seen(lab);
            let plan = lab.plan();
            for line in [
                "ovn-k8s-mp0: add address 10.128.0.2/24",
                "write nftables table inet ovn-kubernetes",
                "br-ex: flow add table=1,",
                "ovn-encap-type",
            ] {
                has(&plan, line);
            }
            assert_eq!(seen(lab), before, "a plan changes nothing");
        });
    }
}

/// A NIC that would be moved into a bridge: the steps, and the settings of the bridge.
#[test]
fn a_nic_that_would_be_moved() {
    in_node(|lab| {
        lab.outside();
        run("ip", &["route", "add", "default", "via", "172.18.255.1"]);
        lab.start_switch();
        lab.gateway = Some(lab::gateway::settings("eth0", GatewayMode::Shared));
        eventually("quiet", || !run("ip", &["addr"]).contains("tentative"));
        let before = seen(lab);
        let plan = lab.plan();
        for line in [
            "gateway interface eth0: make the bridge",
            "gateway interface eth0: add the interface to the bridge",
            "gateway interface eth0: move route default via 172.18.255.1 to the bridge",
            "ovn-bridge-mappings",
            "breth0: add route 10.96.0.0/16 via 169.254.",
        ] {
            has(&plan, line);
        }
        assert_eq!(seen(lab), before, "a plan changes nothing");
    });
}
