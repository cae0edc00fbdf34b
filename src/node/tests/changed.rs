//! Starts with other settings: what the earlier gateway had is removed, what belongs to others stays.
#![allow(clippy::unwrap_used)]

mod lab;

use std::net::IpAddr;

use lab::{Lab, eventually, in_node, run};
use ovnkube_model::{GatewayMode, Mac};
use ovnkube_node::{Change, GatewaySettings, OwnNode};

const GATEWAY: &str = "k8s.ovn.org/l3-gateway-config";

fn ip(args: &str) -> String {
    run("ip", &args.split(' ').collect::<Vec<_>>())
}

/// The addresses of a bridge's link, and the bridge's flows.
fn bridge(lab: &Lab, name: &str) -> [String; 5] {
    let sorted = |text: String| {
        let lines = text.lines().filter(|line| !line.contains("fe80:") && !line.contains("multicast ff00"));
        let mut lines: Vec<&str> = lines.map(str::trim).collect();
        lines.sort_unstable();
        lines.join("\n")
    };
    let target = format!("unix:{}", lab.path(&format!("{name}.mgmt")));
    [
        sorted(ip(&format!("-o addr show dev {name}"))),
        sorted(ip(&format!("route show table all dev {name}")) + &ip(&format!("-6 route show table all dev {name}"))),
        sorted(ip(&format!("neigh show nud permanent dev {name}"))),
        std::fs::read_to_string(format!("/proc/sys/net/ipv4/conf/{name}/forwarding")).unwrap(),
        sorted(lab.tool("ovs-ofctl", &["--no-stats", "dump-flows", &target])),
    ]
}

/// Everything except the wire.
fn everything(lab: &Lab) -> String {
    let shown = ["-o addr", "rule", "route show table all", "-6 route show table all", "neigh show nud permanent"];
    let flows = ["br-ex", "br-two"].map(|name| bridge(lab, name).concat());
    shown.map(ip).concat() + &run("nft", &["list", "ruleset"]) + &flows.concat()
}

/// A gateway that needs no link to the outside.
fn settings(interface: &str) -> GatewaySettings {
    let mut settings = lab::gateway::settings(interface, GatewayMode::Local);
    settings.service_cidrs.push("fd00:96::/112".parse().unwrap());
    settings.join_subnets.push("fd98::/64".parse().unwrap());
    GatewaySettings { node_port: true, allow_no_uplink: true, ..settings }
}

fn start(lab: &mut Lab, gateway: Option<GatewaySettings>) {
    lab.gateway = gateway;
    lab.start_agent();
    lab.ready();
}

/// br-ex with eth0 in it, br-two with another network, and other programs' settings on both.
fn two_bridges(lab: &mut Lab) {
    lab.start_ovs();
    lab.make_bridge();
    lab.vsctl("add-br br-two -- set Bridge br-two datapath_type=netdev fail_mode=standalone");
    eventually("br-two", || ip("link").contains(" br-two: "));
    for args in [
        "link set br-two up",
        "addr add 172.20.0.2/16 dev br-two",
        "addr add fd00:20::2/64 dev br-two nodad",
        "addr add fd00:18::2/64 dev br-ex nodad",
        "-6 route add default via fd00:18::1 dev br-ex",
        "route add 192.0.2.0/24 via 172.18.0.9",
    ] {
        ip(args);
    }
    lab.cluster_subnets.push("fd00:10::/48");
    lab.node_subnets.push("fd00:10::/64");
    ip("neigh add 172.18.0.9 lladdr 0a:58:ac:12:00:09 dev br-ex nud permanent");
    lab.ofctl("add-flow", &["cookie=7,priority=33,arp,actions=NORMAL"]);
    eventually("quiet", || !ip("addr").contains("tentative"));
    lab.start_ovn();
    lab.make_router();
}

#[test]
fn another_masquerade_subnet_another_bridge_and_no_gateway() {
    in_node(|lab| {
        two_bridges(lab);
        let before = ["br-ex", "br-two"].map(|name| bridge(lab, name));
        start(lab, Some(settings("br-ex")));
        let first = everything(lab);
        assert!(first.contains("169.254.169.2/29") && first.contains("fd69::4"), "{first}");
        lab.stop_agent();

        // a subnet that contains the addresses of the last one
        lab.masquerade_subnets = vec!["169.254.0.0/17", "fd70::/112"];
        start(lab, Some(settings("br-ex")));
        let second = everything(lab);
        assert!(!second.contains("169.254.169.") && !second.contains("fd69:"), "{second}");
        assert!(second.contains("169.254.0.2/17") && second.contains("fd70::4"), "{second}");
        lab.stop_agent();
        // and one with the same addresses
        lab.masquerade_subnets = vec!["169.254.0.0/29", "fd70::/112"];
        start(lab, Some(settings("br-ex")));
        let third = everything(lab);
        assert!(!third.contains("169.254.0.2/17") && third.contains("169.254.0.2/29"), "{third}");
        lab.crash_agent();
        std::fs::remove_file(lab.conf()).unwrap();

        lab.bridge = "br-two";
        lab.nbctl("lsp-add ext_node-1 br-two_node-1 -- lsp-set-type br-two_node-1 localnet -- lsp-set-options br-two_node-1 network_name=physnet -- lsp-set-addresses br-two_node-1 unknown -- lsp-del br-ex_node-1");
        let next_hops = vec!["172.20.0.9".parse().unwrap(), "fd00:20::9".parse().unwrap()];
        start(lab, Some(GatewaySettings { next_hops, ..settings("br-two") }));
        assert_eq!(bridge(lab, "br-ex"), before[0]);
        assert!(bridge(lab, "br-two").concat().contains("169.254.0.2/29"));
        assert_eq!(lab.vsctl("get Open_vSwitch . external_ids:ovn-bridge-mappings"), "\"physnet:br-two\"");
        lab.stop_agent();

        lab.vsctl("set Open_vSwitch . external_ids:ovn-bridge-mappings=other:br-9,physnet:br-two");
        start(lab, None);
        assert_eq!(bridge(lab, "br-ex"), before[0]);
        assert_eq!(bridge(lab, "br-two"), before[1]);
        let none = everything(lab);
        for trace in ["169.254.0.", "fd70:", "table inet ovn-kubernetes", "0x1745ec", "10.96.0.0/16"] {
            assert!(!none.contains(trace), "{trace} in {none}");
        }
        assert_eq!(lab.vsctl("get Open_vSwitch . external_ids:ovn-bridge-mappings"), "\"other:br-9\"");
        assert_eq!(lab.all_annotations().get(GATEWAY).map(String::as_str), Some(""));
        lab.stop_agent();
        assert!(ip("route").contains("192.0.2.0/24 via 172.18.0.9"));

        // as after a reboot: only the mapping is left
        lab.vsctl("set Open_vSwitch . external_ids:ovn-bridge-mappings=other:br-9,physnet:br-two");
        lab.start_agent();
        eventually("nothing is mapped", || {
            lab.vsctl("get Open_vSwitch . external_ids:ovn-bridge-mappings") == "\"other:br-9\""
        });
        lab.stop_agent();
    });
}

#[test]
fn a_nic_is_moved_back_when_the_gateway_is_turned_off() {
    in_node(|lab| {
        lab.outside();
        ip("route add default via 172.18.255.1 metric 100");
        lab.start_switch();
        let before = (ip("-4 addr show dev eth0"), ip("-4 route"));
        lab.bridge = "breth0";
        lab.start_ovn();
        lab.make_router();
        start(lab, Some(lab::gateway::settings("eth0", GatewayMode::Shared)));
        assert!(ip("addr show dev breth0").contains("172.18.0.2/16"));
        lab.stop_agent();
        start(lab, None);
        let pods =
            |text: String| text.lines().filter(|line| !line.contains("ovn-k8s-mp0")).collect::<Vec<_>>().join("\n");
        assert_eq!((ip("-4 addr show dev eth0"), pods(ip("-4 route"))), (before.0, pods(before.1)));
        assert_eq!(lab.vsctl("list-br"), "br-int");
        lab.stop_agent();
    });
}

/// The agent reports what it cannot remove, and removes it later; nothing else waits for that.
#[test]
fn a_leftover_of_an_earlier_gateway_blocks_nothing() {
    in_node(|lab| {
        lab.start_ovs();
        lab.make_bridge();
        lab.start_ovn();
        ip("addr add 169.254.169.2/29 dev br-ex");
        // only its owner can remove it
        let mut holder =
            std::process::Command::new("nft").arg("-i").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let command = b"add table inet ovn-kubernetes { flags owner; }\n";
        std::io::Write::write_all(holder.stdin.as_mut().unwrap(), command).unwrap();
        eventually("the table", || run("nft", &["list", "tables"]).contains("inet ovn-kubernetes"));
        lab.start_agent();
        lab.send(Change::Node(OwnNode {
            internal_ips: vec!["172.18.0.2".parse().unwrap()],
            subnets: vec!["10.128.0.0/24".parse().unwrap()],
            ..OwnNode::default()
        }));
        eventually("the management port", || ip("-o addr").contains("ovn-k8s-mp0    inet 10.128.0.2/24"));
        eventually("annotations", || !lab.annotations().is_empty());
        eventually("the report", || lab.waits_for().contains("inet ovn-kubernetes"));
        // and it stays: the address shows the agent that the table may be its own
        std::thread::sleep(std::time::Duration::from_secs(3));
        assert!(lab.waits_for().contains("inet ovn-kubernetes") && ip("addr").contains("169.254.169.2"));
        assert!(!lab.conf().exists());
        holder.kill().unwrap();
        holder.wait().unwrap();
        lab.ready();
        assert!(!ip("addr").contains("169.254.169.2"));
        lab.stop_agent();
    });
}

/// A new MAC address is announced to everyone who knew the old one, and no subnet leaves anything behind.
#[test]
fn another_mac_address_and_another_subnet() {
    in_node(|lab| {
        lab.start_ovs();
        lab.make_bridge();
        lab.start_ovn();
        start(lab, None);
        let pod = lab.pod("web", 5);
        lab.annotate(&pod);
        lab::result(&lab.shim(&pod, &lab::container("web"), "ADD"));
        let known = || pod.ip_cmd("neigh show 10.128.0.2");
        eventually("the pod knows the node", || {
            let _ = std::process::Command::new("ip")
                .args(["netns", "exec", &pod.netns, "ping", "-c1", "-W1", "10.128.0.2"])
                .output();
            known().contains("0a:58:0a:80:00:02")
        });
        let mac = Mac([2, 0, 0, 0, 0, 7]);
        lab.nbctl_args(&["lsp-set-addresses", "k8s-node-1", &format!("{mac} 10.128.0.2")]);
        let send_subnet = |subnet: &str| {
            lab.send(Change::Node(OwnNode {
                internal_ips: vec!["172.18.0.2".parse::<IpAddr>().unwrap()],
                subnets: vec![subnet.parse().unwrap()],
                mgmt_mac: Some(mac),
                ..OwnNode::default()
            }));
        };
        send_subnet("10.128.0.0/24");
        eventually("the pod knows the new address", || known().contains(&mac.to_string()));
        let ours = || ip("neigh show nud permanent dev ovn-k8s-mp0");
        // before that the switch sets the link down for a moment, and the kernel removes all its routes
        let in_use = || lab.vsctl("get Interface ovn-k8s-mp0 mac_in_use").contains(&mac.to_string());
        eventually("the new address in the switch", in_use);
        eventually("the router is known", || ours().contains("10.128.0.1 "));
        // a route of another program through a pod
        ip("route add 192.0.2.0/24 via 10.128.0.5 dev ovn-k8s-mp0");
        // the MAC address does not change, so the kernel keeps its neighbour entries
        send_subnet("10.129.0.0/24");
        eventually("the other subnet", || {
            ip("route").contains("10.128.0.0/14 via 10.129.0.1") && ours().contains("10.129.0.1 ")
        });
        assert!(!ours().contains("10.128.0.1 "), "{}", ours());
        let all = ip("addr show dev ovn-k8s-mp0") + &ip("route");
        assert!(!all.contains("10.128.0.2/24") && !all.contains("via 10.128.0.1 "), "{all}");
        assert!(all.contains("192.0.2.0/24 via 10.128.0.5"), "{all}");
        lab.stop_agent();
    });
}
