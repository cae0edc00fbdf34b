//! After `-cleanup-node` the host is as it was before the agent ran.
#![allow(clippy::unwrap_used)]

mod lab;

use std::collections::BTreeMap;

use lab::{Lab, container, eventually, in_node, result, run};
use ovnkube_model::GatewayMode;
use ovnkube_node::{Change, GatewaySettings, PodOnNode};

fn settings(interface: &str, mode: GatewayMode) -> GatewaySettings {
    GatewaySettings { node_port: true, ..lab::gateway::settings(interface, mode) }
}

/// The visible state of the host's network.
fn host(lab: &Lab) -> BTreeMap<&'static str, String> {
    let ip = |args: &str| run("ip", &args.split(' ').collect::<Vec<_>>());
    let sorted = |text: String| {
        // ignores the numbers of links and the switch's own taps
        let lines = text.lines().map(|line| line.split_once(": ").map_or(line, |(_, rest)| rest).to_owned());
        // before Linux 6.17 all links forward IPv6 and keep doing so: then they have anycast addresses
        let of_kernel = |line: &String| ["fe80:", "multicast ff00", "anycast "].iter().any(|part| line.contains(part));
        let lines = lines.filter(|line| !of_kernel(line));
        let mut lines: Vec<String> = lines.filter(|line| !line.starts_with("ovs-netdev")).collect();
        lines.sort();
        lines.join("\n")
    };
    let links = ip("-o -br link").lines().filter(|line| !line.starts_with("ovs-netdev")).collect::<Vec<_>>().join("\n");
    let rows = lab.vsctl("--columns=external_ids,other_config,bridges,ssl list Open_vSwitch");
    let bridges = lab.vsctl("--columns=name,ports,external_ids,other_config,fail_mode list Bridge");
    let tables = ["Port", "Interface", "QoS", "SSL"].map(|table| {
        let mut names: Vec<String> = lab.vsctl(&format!("--bare list {table}")).lines().map(str::to_owned).collect();
        names.retain(|line| table == "Port" && line.contains("br"));
        names.join("\n")
    });
    let flows =
        if lab.vsctl("list-br").contains("br-ex") { lab.ofctl("dump-flows", &["--no-stats"]) } else { String::new() };
    BTreeMap::from([
        ("links", links),
        ("addresses", sorted(ip("-o addr"))),
        ("routes", sorted(ip("route show table all") + &ip("-6 route show table all"))),
        ("rules", ip("rule") + &ip("-6 rule")),
        ("neighbours", sorted(ip("neigh show nud permanent"))),
        ("nftables", run("nft", &["-s", "list", "ruleset"])),
        ("rows", rows + &bridges + &tables.join("")),
        ("ports", lab.vsctl("--bare --columns=name list Port")),
        ("flows", flows),
        ("forwarding", std::fs::read_to_string("/proc/sys/net/ipv4/conf/all/forwarding").unwrap()),
    ])
}

fn same(before: &BTreeMap<&'static str, String>, after: &BTreeMap<&'static str, String>) {
    for (what, before) in before {
        assert_eq!(*before, after[what], "{what}");
    }
}

/// Settings of other programs that look like ours.
fn others(lab: &Lab) {
    lab.vsctl("set Open_vSwitch . external_ids:ovn-bridge-mappings=other:br-9 external_ids:mine=1 other_config:mine=1");
    lab.vsctl(
        "add-br br-9 -- set Bridge br-9 datapath_type=netdev -- add-port br-9 tap9 -- set Interface tap9 type=internal",
    );
    run(
        "nft",
        &[
            "table ip nat { chain OTHER { counter; }; chain POSTROUTING { type nat hook postrouting priority 100; ip saddr 192.0.2.0/24 masquerade; }; }",
        ],
    );
    run("nft", &["table inet mine { chain x { type filter hook forward priority 0; counter; }; }"]);
    eventually("tap9", || run("ip", &["link"]).contains(" tap9: "));
    for args in [
        "rule add priority 31 fwmark 0x1 lookup 8",
        "route add 192.0.2.0/24 via 172.18.0.9",
        "link set lo up",
        // inside of wide masquerade subnets
        "addr add 169.254.1.2/16 dev tap9",
        "addr add fd69::1:2/64 dev tap9 nodad",
    ] {
        run("ip", &args.split(' ').collect::<Vec<_>>());
    }
}

/// The chains that ovn-kubernetes leaves.
fn chains_of_ovn_kubernetes() {
    for rules in [
        "table ip nat { chain OVN-KUBE-ITP { }; chain OVN-KUBE-NODEPORT { tcp dport 30080 dnat to 10.96.1.3:80; }; }",
        "add chain ip nat OUTPUT { type nat hook output priority -100; }; add rule ip nat OUTPUT counter jump OVN-KUBE-ITP; add rule ip nat OUTPUT counter accept",
        "add rule ip nat POSTROUTING ip saddr 169.254.0.1 counter masquerade; add rule ip nat POSTROUTING ip saddr 10.128.0.0/23 counter masquerade",
        "table ip6 nat { chain OVN-KUBE-ITP { }; chain POSTROUTING { type nat hook postrouting priority 100; ip6 saddr fd69::1 counter masquerade; }; }",
        "table ip filter { chain FORWARD { type filter hook forward priority 0; iifname \"ovn-k8s-mp0\" counter accept; oifname \"ovn-k8s-mp0\" counter accept; ip saddr 192.0.2.9 counter accept; }; }",
    ] {
        run("nft", &[rules]);
    }
}

fn a_node_with_a_pod(lab: &mut Lab) {
    lab.start_ovn();
    lab.make_router();
    lab.start_agent();
    lab.ready();
    let pod = lab.pod("web", 5);
    lab.send(Change::Pod(pod.key(), Some(PodOnNode { egress_bandwidth: Some("10M".into()), ..pod.annotated() })));
    result(&lab.shim(&pod, &container("web"), "ADD"));
    assert!(run("nft", &["list", "tables"]).contains("inet ovn-kubernetes"));
}

/// With wide masquerade subnets.
fn both_families(lab: &mut Lab) {
    lab.masquerade_subnets = vec!["169.254.0.0/17", "fd69::/111"];
    lab.cluster_subnets.push("fd00:10::/48");
    lab.node_subnets.push("fd00:10::/64");
    for args in ["addr add fd00:18::2/64 dev br-ex nodad", "-6 route add default via fd00:18::1 dev br-ex"] {
        run("ip", &args.split(' ').collect::<Vec<_>>());
    }
}

#[test]
fn a_bridge_of_the_host_is_as_before() {
    for mode in [GatewayMode::Shared, GatewayMode::Local] {
        in_node(move |lab| {
            lab.start_ovs();
            lab.make_bridge();
            both_families(lab);
            others(lab);
            lab.ofctl("add-flow", &["cookie=7,priority=33,arp,actions=NORMAL"]);
            eventually("quiet", || !run("ip", &["addr"]).contains("tentative"));
            let before = host(lab);
            chains_of_ovn_kubernetes();
            let mut settings = settings("br-ex", mode);
            settings.service_cidrs.push("fd00:96::/112".parse().unwrap());
            settings.join_subnets.push("fd98::/64".parse().unwrap());
            lab.gateway = Some(settings);
            a_node_with_a_pod(lab);
            let gateway = host(lab);
            for (what, traces) in [
                ("addresses", ["169.254.0.2/17", "fd69::2/111"]),
                ("routes", ["10.96.0.0/16", "fd00:96::/112"]),
                ("neighbours", ["169.254.0.4", "fd69::4"]),
            ] {
                assert!(traces.iter().all(|trace| gateway[what].contains(trace)), "{}", gateway[what]);
            }
            assert_eq!(gateway["rules"].matches("0x1745ec").count(), 2, "{}", gateway["rules"]);
            lab.stop_agent();
            lab.kill("controller");
            assert_eq!(lab.clean_up(), Vec::<String>::new());
            without_iptables_tables(before, lab);
            // a second time
            assert_eq!(lab.clean_up(), Vec::<String>::new());
        });
    }
}

/// Tables and base chains that iptables makes are not removed: only our rules in them are.
fn without_iptables_tables(mut before: BTreeMap<&'static str, String>, lab: &Lab) {
    let mut after = host(lab);
    let (was, is) = (before.remove("nftables").unwrap(), after.remove("nftables").unwrap());
    same(&before, &after);
    // the lab's own table also names the management port
    let of_ours = |line: &&str| {
        ["OVN-KUBE", "ovn-k", "10.128", "169.254", "fd00:10:", "fd69:"].iter().any(|part| line.contains(part))
    };
    assert_eq!(is.lines().find(|line| of_ours(line) && !line.contains("\"br-int\"")), None, "{is}");
    for kept in ["chain OTHER", "ip saddr 192.0.2.0/24 masquerade", "table inet mine", "table inet seal"] {
        assert!(was.contains(kept) && is.contains(kept), "{kept} is not in:\n{is}");
    }
    assert!(is.contains("ip saddr 192.0.2.9 counter accept") && is.contains("counter accept"), "{is}");
}

#[test]
fn a_nic_is_as_before() {
    in_node(|lab| {
        lab.outside();
        run("ip", &["route", "add", "default", "via", "172.18.255.1", "metric", "100"]);
        lab.start_switch();
        lab.vsctl("add-br br-ex -- set Bridge br-ex datapath_type=netdev");
        others(lab);
        eventually("quiet", || !run("ip", &["addr"]).contains("tentative"));
        let before = host(lab);
        lab.gateway = Some(settings("eth0", GatewayMode::Shared));
        lab.bridge = "breth0";
        a_node_with_a_pod(lab);
        lab.stop_agent();
        lab.kill("controller");
        assert_eq!(lab.clean_up(), Vec::<String>::new());
        same(&before, &host(lab));
        // of ovn-kubernetes, to which the node has gone back
        let theirs = lab.conf().with_file_name("10-ovn-kubernetes.conf");
        std::fs::write(&theirs, "{}").unwrap();
        assert_eq!(lab.clean_up(), Vec::<String>::new());
        same(&before, &host(lab));
        assert!(theirs.exists(), "the configuration of ovn-kubernetes is gone");
    });
}

/// The agent would keep its network configuration, so that the kubelet goes on to ask for pods, without its socket.
#[test]
fn an_agent_that_runs_keeps_everything() {
    in_node(|lab| {
        lab.start_ovs();
        lab.make_bridge();
        lab.gateway = Some(settings("br-ex", GatewayMode::Local));
        a_node_with_a_pod(lab);
        lab.kill("controller");
        let before = host(lab);
        let left = lab.clean_up();
        assert!(left.len() == 1 && left[0].contains("another node agent does; stop that one"), "{left:?}");
        same(&before, &host(lab));
        assert!(lab.conf().exists(), "its network configuration");
        assert_eq!(lab.waits_for(), "", "its socket");
        lab.stop_agent();
        assert_eq!(lab.clean_up(), Vec::<String>::new());
        assert!(!lab.socket().exists());
    });
}

/// Removes everything it can, and reports what stays.
#[test]
fn without_open_vswitch() {
    in_node(|lab| {
        lab.start_ovs();
        lab.make_bridge();
        lab.gateway = Some(settings("br-ex", GatewayMode::Local));
        a_node_with_a_pod(lab);
        lab.stop_agent();
        lab.kill("controller");
        lab.kill("db");
        let left = lab.clean_up();
        assert_eq!(left.len(), 1, "{left:?}");
        assert!(
            left[0].contains("cannot connect to Open_vSwitch") && left[0].contains("start Open vSwitch"),
            "{left:?}"
        );
        assert!(!run("nft", &["list", "tables"]).contains("ovn-kubernetes"));
        assert!(!run("ip", &["addr"]).contains("169.254.169."));
        assert!(!run("ip", &["rule"]).contains("0x1745ec"));
        assert!(run("ip", &["addr", "show", "dev", "br-ex"]).contains("172.18.0.2/16"));
        lab.start_database_server("db");
        assert_eq!(lab.clean_up(), Vec::<String>::new());
        assert_eq!(lab.vsctl("list-br"), "br-ex");
    });
}

/// A cleanup that crashed after step 0, 1, 2, … is completed by the next one.
#[test]
fn a_cleanup_that_was_interrupted() {
    in_node(|lab| {
        lab.start_ovs();
        lab.make_bridge();
        others(lab);
        eventually("quiet", || !run("ip", &["addr"]).contains("tentative"));
        let before = host(lab);
        lab.start_ovn();
        lab.make_router();
        lab.kill("controller");
        lab.gateway = Some(settings("br-ex", GatewayMode::Local));
        for steps in 0.. {
            lab.start_controller();
            lab.start_agent();
            lab.ready();
            lab.stop_agent();
            lab.kill("controller");
            let halted = lab.clean_up_halted(Some(steps));
            assert!(halted.iter().all(|left| left.contains("a test ended it")), "{halted:?}");
            assert_eq!(lab.clean_up(), Vec::<String>::new(), "after step {steps}");
            same(&before, &host(lab));
            if halted.is_empty() {
                return;
            }
        }
    });
}

/// A table that another program owns cannot be removed; everything else is.
#[test]
fn a_table_that_stays_blocks_nothing() {
    in_node(|lab| {
        lab.start_ovs();
        lab.make_bridge();
        others(lab);
        lab.gateway = Some(settings("br-ex", GatewayMode::Shared));
        a_node_with_a_pod(lab);
        lab.stop_agent();
        lab.kill("controller");
        run("nft", &["delete table inet ovn-kubernetes"]);
        let mut holder =
            std::process::Command::new("nft").arg("-i").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let command = "add table inet ovn-kubernetes { flags owner; }\n";
        std::io::Write::write_all(holder.stdin.as_mut().unwrap(), command.as_bytes()).unwrap();
        eventually("the table", || run("nft", &["list", "tables"]).contains("inet ovn-kubernetes"));
        chains_of_ovn_kubernetes();
        let left = lab.clean_up();
        assert!(left.len() == 1 && left[0].contains("inet ovn-kubernetes"), "{left:?}");
        let ruleset = run("nft", &["list", "ruleset"]);
        assert!(!ruleset.contains("OVN-KUBE") && !ruleset.contains("ip saddr 10.128.0.0/23"), "{ruleset}");
        assert!(!run("ip", &["rule"]).contains("0x1745ec"));
        assert_eq!(lab.vsctl("list-br"), "br-9\nbr-ex");
        holder.kill().unwrap();
        holder.wait().unwrap();
        assert_eq!(lab.clean_up(), Vec::<String>::new());
    });
}
