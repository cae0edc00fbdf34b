//! The Node is deleted and created with other subnets and addresses: nothing of the earlier ones stays on the host.
#![allow(clippy::unwrap_used)]

mod lab;

use std::time::{Duration, Instant};

use lab::gateway::settings;
use lab::{Lab, eventually, in_node, run};
use ovnkube_model::GatewayMode;
use ovnkube_node::{Change, OwnNode};

fn start(lab: &mut Lab) {
    lab.start_ovs();
    lab.make_bridge();
    run("ip", &["addr", "add", "fd00:172::2/64", "dev", "br-ex", "nodad"]);
    run("ip", &["-6", "route", "add", "default", "via", "fd00:172::1", "dev", "br-ex"]);
    lab.start_ovn();
    lab.make_router();
    lab.cluster_subnets.push("fd00:10::/48");
    lab.node_subnets.push("fd00:10::/64");
    let mut settings = settings("br-ex", GatewayMode::Local);
    settings.service_cidrs.push("fd00:96::/112".parse().unwrap());
    settings.join_subnets.push("fd98::/64".parse().unwrap());
    lab.gateway = Some(settings);
    lab.start_agent();
    lab.ready();
}

/// Everything that the agent writes: links, addresses, routes of all tables, rules, permanent neighbours, nftables,
/// flows, OVS rows.
fn host(lab: &Lab) -> Vec<String> {
    let mut shown = vec![run("nft", &["-s", "list", "ruleset"])];
    for family in ["-4", "-6"] {
        for what in ["addr", "rule", "route show table all", "neigh show nud permanent"] {
            let args: Vec<&str> = [family].into_iter().chain(what.split(' ')).collect();
            shown.push(run("ip", &args));
        }
    }
    shown.push(lab.ofctl("dump-flows", &["--no-stats"]));
    shown.push(lab.vsctl("get Open_vSwitch . external_ids"));
    shown.push(lab.vsctl("--columns=name,type,mac,external_ids,mtu_request list Interface"));
    // the kernel adds link-local addresses a moment after a link is up
    let lines = shown.iter().flat_map(|text| text.lines()).filter(|line| !line.contains("fe80::"));
    let mut lines: Vec<String> = lines.map(|line| line.trim().to_owned()).collect();
    lines.sort();
    lines
}

fn node(subnets: &[String], ips: &[&str]) -> Change {
    Change::Node(OwnNode {
        internal_ips: ips.iter().map(|ip| ip.parse().unwrap()).collect(),
        subnets: subnets.iter().map(|subnet| subnet.parse().unwrap()).collect(),
        ..OwnNode::default()
    })
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn has_all(shown: &str, wanted: &[String]) -> bool {
    wanted.iter().all(|address| shown.contains(address))
}

#[test]
fn a_hundred_new_nodes_of_the_same_name() {
    in_node(|lab| {
        start(lab);
        let first = host(lab);
        let files = open_files();
        for round in 1..=100 {
            // a new Node has fewer fields than an old one
            if round % 3 == 0 {
                lab.send(node(&[], &[]));
            }
            let of_family = [format!("10.129.{round}.0/24"), format!("fd00:10:0:{round}::/64")];
            // for a while some Nodes have one family only
            let count = if round % 4 == 0 { 1 } else { 2 };
            let subnets = of_family.get(..count).unwrap();
            lab.send(node(subnets, if round % 2 == 1 && round < 50 { &["fd00:172::2"] } else { &["172.18.0.2"] }));
            if round % 10 == 0 {
                lab.crash_agent();
                lab.start_agent();
                lab.send(node(subnets, &["172.18.0.2"]));
            }
            let addresses = [format!("10.129.{round}.2/24"), format!("fd00:10:0:{round}::2/64")];
            eventually("the node's addresses", || {
                has_all(&run("ip", &["addr", "show", "dev", "ovn-k8s-mp0"]), addresses.get(..count).unwrap())
            });
        }
        lab.ready();
        // ovn-controller probes more often for a while after the address has changed
        let deadline = Instant::now() + Duration::from_secs(300);
        while host(lab) != first {
            assert!(Instant::now() < deadline, "was {first:#?}, is {:#?}", host(lab));
            std::thread::sleep(Duration::from_millis(100));
        }
        // a program that the agent runs just now has six
        eventually("no more open files than at first", || open_files() <= files + 3);
        lab.stop_agent();
        assert_eq!(host(lab), first, "running pods keep their network");
    });
}
