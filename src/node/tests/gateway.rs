//! The gateway on a real bridge: what is set up, what is restored, what is refused.
#![allow(clippy::unwrap_used)]

mod lab;

use std::collections::BTreeMap;
use std::time::Instant;

use lab::{Lab, eventually, in_node, run};
use nix::sys::signal::Signal;
use ovnkube_model::{GatewayMode, Meta, NodeIps, ServiceCidr};
use ovnkube_node::{Change, GatewaySettings};

const COOKIE: &str = "cookie=0xdeff105/-1";

fn settings(mode: GatewayMode) -> GatewaySettings {
    lab::gateway::settings("br-ex", mode)
}

/// A node whose bridge has its address, and its gateway router.
fn with_gateway(lab: &mut Lab, mode: GatewayMode) {
    lab.start_ovs();
    lab.make_bridge();
    lab.vsctl("set Open_vSwitch . external_ids:ovn-bridge-mappings=other:br-9");
    lab.ofctl("add-flow", &["cookie=7,priority=33,arp,actions=NORMAL"]);
    lab.start_ovn();
    lab.make_router();
    lab.gateway = Some(settings(mode));
    lab.start_agent();
    lab.ready();
}

/// Our flows, sorted.
fn flows(lab: &Lab) -> Vec<String> {
    let mut flows: Vec<String> =
        lab.ofctl("dump-flows", &["--no-stats", COOKIE]).lines().map(|line| line.trim().to_owned()).collect();
    flows.sort();
    flows
}

/// What is missing on the host.
fn missing() -> Vec<String> {
    let mut missing = Vec::new();
    let mut wants = |command: &str, what: &str| {
        let (program, args) = command.split_once(' ').unwrap();
        let shown = run(program, &args.split(' ').collect::<Vec<_>>()).replace("proto static ", "");
        if !shown.contains(what) {
            missing.push(format!("{what} is not in:\n{shown}"));
        }
    };
    wants("ip addr show dev br-ex", "inet 169.254.169.2/29 brd 169.254.169.7 scope global br-ex");
    wants("ip route", "10.96.0.0/16 via 169.254.169.4 dev br-ex src 169.254.169.2 mtu 1400");
    wants("ip route", "169.254.169.1 dev br-ex src 172.18.0.2");
    wants("ip route", "169.254.169.3 via 10.128.0.1 dev ovn-k8s-mp0");
    wants("ip neigh", "169.254.169.1 dev br-ex lladdr 0a:58:a9:fe:a9:01 PERMANENT");
    wants("ip neigh", "169.254.169.4 dev br-ex lladdr 0a:58:a9:fe:a9:04 PERMANENT");
    wants("sysctl net.ipv4.conf.br-ex.forwarding", "= 1");
    wants("nft list ruleset", "snat ip to 10.128.0.2");
    missing
}

fn host_is_right() {
    let missing = missing();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn a_shared_gateway() {
    in_node(|lab| {
        with_gateway(lab, GatewayMode::Shared);
        host_is_right();
        assert_eq!(
            lab.annotations()["k8s.ovn.org/l3-gateway-config"],
            r#"{"default":{"mode":"shared","bridge-id":"br-ex","interface-id":"br-ex_node-1","mac-address":"02:42:ac:12:00:02","ip-addresses":["172.18.0.2/16"],"ip-address":"172.18.0.2/16","next-hops":["172.18.255.1"],"next-hop":"172.18.255.1","node-port-enable":"false","vlan-id":"0"}}"#
        );
        let mappings = lab.vsctl("get Open_vSwitch . external_ids:ovn-bridge-mappings");
        assert_eq!(mappings, r#""other:br-9,physnet:br-ex""#);
        let wanted = flows(lab);
        assert_eq!(wanted.len(), 30, "{wanted:#?}");
        // an operator breaks things: everything is restored, and other programs' settings stay
        lab.ofctl("del-flows", &["table=1"]);
        lab.ofctl("add-flow", &["cookie=0xdeff105,priority=600,actions=drop"]);
        eventually("the flows", || flows(lab) == wanted);
        run("nft", &["delete table inet ovn-kubernetes"]);
        run("ip", &["route", "del", "10.96.0.0/16"]);
        run("ip", &["addr", "del", "169.254.169.2/29", "dev", "br-ex"]);
        run("ip", &["neigh", "del", "169.254.169.4", "dev", "br-ex"]);
        eventually("the host's side", || missing().is_empty());
        // nothing else wakes the agent after that
        std::thread::sleep(std::time::Duration::from_secs(3));
        run("sysctl", &["-qw", "net.ipv4.ip_forward=0"]);
        eventually("forwarding", || missing().is_empty());
        std::thread::sleep(std::time::Duration::from_secs(3));
        run("sysctl", &["-qw", "net.ipv4.conf.ovn-k8s-mp0.rp_filter=1"]);
        let rp_filter = || run("sysctl", &["-n", "net.ipv4.conf.ovn-k8s-mp0.rp_filter"]);
        eventually("replies to pods", || rp_filter().trim() == "2");
        let all = lab.ofctl("dump-flows", &["--no-stats"]);
        assert!(all.contains("cookie=0x7, priority=33,arp") && all.contains(" priority=0 actions=NORMAL"), "{all}");
    });
}

#[test]
fn a_local_gateway() {
    in_node(|lab| {
        with_gateway(lab, GatewayMode::Local);
        host_is_right();
        assert!(lab.annotations()["k8s.ovn.org/l3-gateway-config"].contains(r#""mode":"local""#));
        let flows = flows(lab).join("\n");
        assert!(flows.contains("check_pkt_larger(1414)->NXM_NX_REG0[0],resubmit(,11)"), "{flows}");
        let table = run("nft", &["-s", "list", "table", "inet", "ovn-kubernetes"]);
        assert!(table.contains("ip saddr 10.128.0.0/24 counter masquerade"), "{table}");
    });
}

#[test]
fn both_address_families() {
    in_node(|lab| {
        lab.start_ovs();
        lab.make_bridge();
        lab.start_ovn();
        lab.make_router();
        lab.cluster_subnets.push("fd00:10::/48");
        lab.node_subnets.push("fd00:10::/64");
        let mut settings = GatewaySettings { disable_forwarding: true, ..settings(GatewayMode::Local) };
        settings.service_cidrs.push("fd00:96::/112".parse().unwrap());
        lab.gateway = Some(settings);
        lab.start_agent();
        eventually("what is missing", || lab.waits_for().contains("it has no IPv6 address that it can use"));
        lab.crash_agent();
        run("ip", &["addr", "add", "fd00:172::2/64", "dev", "br-ex", "nodad"]);
        run("ip", &["-6", "route", "add", "default", "via", "fd00:172::1", "dev", "br-ex"]);
        lab.start_agent();
        lab.ready();
        host_is_right();
        let addresses = run("ip", &["-6", "addr", "show", "dev", "br-ex"]);
        assert!(addresses.contains("inet6 fd69::2/125"), "{addresses}");
        let routes = run("ip", &["-6", "route"]);
        for want in [
            "fd00:96::/112 via fd69::4 dev br-ex proto static src fd69::2 metric 1024 mtu 1400",
            "fd69::1 dev br-ex proto static src fd00:172::2",
            "fd69::3 via fd00:10::1 dev ovn-k8s-mp0",
        ] {
            assert!(routes.contains(want), "{want} is not in:\n{routes}");
        }
        let flows = flows(lab).join("\n");
        assert!(flows.contains("ipv6_src=fd00:172::2,ipv6_dst=fd69::2"), "{flows}");
        let annotations = lab.annotations();
        let config = &annotations["k8s.ovn.org/l3-gateway-config"];
        assert!(config.contains(r#""ip-addresses":["172.18.0.2/16","fd00:172::2/64"]"#), "{config}");
        assert!(config.contains(r#""next-hops":["172.18.255.1","fd00:172::1"]"#), "{config}");
        a_restart_changes_no_flow(lab);
        ranges_of_services_come_and_go(lab);
    });
}

/// Everything that is made for ranges of services, without what the kernel sets at times of its own.
fn of_ranges(lab: &Lab) -> String {
    let routes = ["-4", "-6"].map(|family| run("ip", &[family, "route", "show", "table", "all", "proto", "static"]));
    let table = run("nft", &["-s", "list", "table", "inet", "ovn-kubernetes"]);
    routes.concat() + &table + &flows(lab).join("\n")
}

fn range(cidrs: &[&str]) -> Change {
    let none = BTreeMap::new();
    let meta = Meta { uid: "u", created: 0, labels: &none, annotations: &BTreeMap::new() };
    let cidrs: Vec<String> = cidrs.iter().map(ToString::to_string).collect();
    Change::ServiceCidr("more".into(), Some(ServiceCidr::parse(&meta, &cidrs)))
}

fn ranges_of_services_come_and_go(lab: &mut Lab) {
    let before = of_ranges(lab);
    let wants = |lab: &Lab, part: &str| eventually(part, || of_ranges(lab).contains(part));
    // a range that overlaps the node's network is reported and ignored
    lab.send(range(&["10.97.0.0/16", "172.18.64.0/20", "fd00:97::/112"]));
    for part in [
        "10.97.0.0/16 via 169.254.169.4 dev br-ex src 169.254.169.2 mtu 1400",
        "10.97.0.0/16 via 10.128.0.1 dev ovn-k8s-mp0 table 7",
        "fd00:97::/112 via fd69::4 dev br-ex",
        "fd00:97::/112 via fd00:10::1 dev ovn-k8s-mp0 table 7",
        "ip daddr 10.97.0.0/16 return",
        "ip6 saddr fd00:97::/112 return",
        "in_port=LOCAL,nw_dst=10.97.0.0/16",
        "in_port=LOCAL,ipv6_dst=fd00:97::/112",
    ] {
        wants(lab, part);
    }
    let mut warnings = Vec::new();
    eventually("a warning", || {
        warnings.extend(lab.warnings());
        warnings.iter().any(|warning| warning.reason == "RangeConflict" && warning.message.contains("172.18.64.0/20"))
    });
    assert!(!of_ranges(lab).contains("172.18.64.0"), "{}", of_ranges(lab));
    // a node in another network gets addresses in these ranges, and is deleted again
    let whole = of_ranges(lab);
    let ips = ["10.97.0.5", "fd00:97::5"].map(|ip| ip.parse().unwrap());
    lab.send(Change::NodeIps("node-2".into(), Some(NodeIps::new(ips, []))));
    for (family, ip, via) in [("-4", "10.97.0.5", "172.18.255.1"), ("-6", "fd00:97::5", "fd00:172::1")] {
        let leads = |to: &str| run("ip", &[family, "route", "get", to]);
        eventually("the route to a node", || leads(ip).contains(&format!("via {via} dev br-ex")));
        let (neighbour, masquerade) = (ip.replace(":5", ":6").replace(".5", ".6"), ["169.254.169.4", "fd69::4"]);
        assert!(
            masquerade.iter().any(|via| leads(&neighbour).contains(&format!("via {via} "))),
            "{}",
            leads(&neighbour)
        );
    }
    for whole in ["10.97.0.0/16", "fd00:97::/112"] {
        eventually("the range to be split", || !of_ranges(lab).contains(whole));
    }
    lab.send(Change::NodeIps("node-2".into(), None));
    eventually("the whole range again", || of_ranges(lab) == whole);
    // another range replaces it
    lab.send(range(&["10.98.0.0/16"]));
    wants(lab, "nw_dst=10.98.0.0/16");
    eventually("the first range to be removed", || {
        !of_ranges(lab).contains("0.97.0.0") && !of_ranges(lab).contains("fd00:97:")
    });
    lab.send(Change::ServiceCidr("more".into(), None));
    eventually("the state before", || of_ranges(lab) == before);
    // a range that is deleted while the agent is down
    lab.send(range(&["10.98.0.0/16"]));
    wants(lab, "nw_dst=10.98.0.0/16");
    lab.crash_agent();
    lab.start_agent();
    lab.ready();
    eventually("the state before", || of_ranges(lab) == before);
}

#[test]
fn a_second_start_changes_no_flow() {
    in_node(|lab| {
        with_gateway(lab, GatewayMode::Shared);
        a_restart_changes_no_flow(lab);
    });
}

fn a_restart_changes_no_flow(lab: &mut Lab) {
    let wanted = flows(lab);
    lab.crash_agent();
    let crashed = Instant::now();
    std::fs::remove_file(lab.conf()).unwrap();
    lab.start_agent();
    lab.ready();
    assert_eq!(flows(lab), wanted);
    // the counters of a flow that is written again start at zero
    let age = |line: &str| line.split_once("duration=")?.1.split_once('s')?.0.parse::<f64>().ok();
    let since = crashed.elapsed().as_secs_f64();
    let ages: Vec<f64> = lab.ofctl("dump-flows", &[COOKIE]).lines().filter_map(age).collect();
    assert_eq!(ages.len(), wanted.len());
    assert!(ages.iter().all(|age| *age > since), "{since}: {ages:?}");
}

#[test]
fn a_restart_of_the_switch_is_survived() {
    in_node(|lab| {
        with_gateway(lab, GatewayMode::Shared);
        let wanted = flows(lab);
        lab.kill("vswitchd");
        lab.start_vswitchd();
        lab.address_bridge();
        eventually("the flows", || flows(lab) == wanted);
        eventually("the host's side", || missing().is_empty());
        // the patch port gets another number
        lab.vsctl("set Interface patch-br-ex_node-1-to-br-int ofport_request=77");
        eventually("flows of the new number alone", || {
            let flows = flows(lab);
            let has = |port: &str| flows.iter().any(|flow| flow.contains(port));
            has("in_port=77") && !has("in_port=2,")
        });
    });
}

/// A restart of ovs-vswitchd removes the addresses until the host's setup adds them again.
#[test]
fn addresses_that_are_missing_for_a_moment_stay_annotated() {
    in_node(|lab| {
        with_gateway(lab, GatewayMode::Shared);
        let before = lab.annotations();
        run("ip", &["addr", "flush", "dev", "br-ex"]);
        // the agent does not read this value any more, so it stays
        eventually("the agent to see it", || !lab.all_annotations().contains_key("k8s.ovn.org/host-cidrs"));
        lab.address_bridge();
        eventually("the annotations", || lab.annotations() == before);
    });
}

#[test]
fn a_new_address_of_the_node_is_used() {
    in_node(|lab| {
        with_gateway(lab, GatewayMode::Shared);
        run("ip", &["addr", "del", "172.18.0.2/16", "dev", "br-ex"]);
        run("ip", &["addr", "add", "172.18.0.77/16", "dev", "br-ex"]);
        run("ip", &["route", "replace", "default", "via", "172.18.255.1"]);
        // the Node still has the old one, because the kubelet is slower
        eventually("the gateway", || {
            let gateway = lab.annotations().remove("k8s.ovn.org/l3-gateway-config");
            gateway.is_some_and(|gateway| gateway.contains("172.18.0.77/16"))
        });
        lab.internal_ips = vec!["172.18.0.77"];
        lab.ready();
        eventually("the tunnels' address", || {
            lab.vsctl("get Open_vSwitch . external_ids:ovn-encap-ip") == r#""172.18.0.77""#
        });
        eventually("flows", || {
            let flows = flows(lab).join("\n");
            flows.contains("172.18.0.77") && !flows.contains("172.18.0.2,")
        });
        eventually("the route", || {
            run("ip", &["route"]).contains("169.254.169.1 dev br-ex proto static src 172.18.0.77")
        });
        for (key, value) in [
            ("k8s.ovn.org/host-cidrs", r#"["172.18.0.77/16"]"#),
            ("k8s.ovn.org/node-primary-ifaddr", r#"{"ipv4":"172.18.0.77/16"}"#),
            ("k8s.ovn.org/node-encap-ips", r#"["172.18.0.77"]"#),
        ] {
            eventually(key, || lab.annotations().get(key).is_some_and(|text| text == value));
        }
    });
}

#[test]
fn an_unsuitable_gateway_interface_is_refused() {
    in_node(|lab| {
        lab.start_ovs();
        let refuses = |lab: &mut Lab, change: &dyn Fn(&mut GatewaySettings), want: &str| {
            let mut settings = settings(GatewayMode::Shared);
            change(&mut settings);
            lab.gateway = Some(settings);
            // of another network that the node uses so far: pods go on starting with it
            let other = lab.conf().with_file_name("10-ovn-kubernetes.conf");
            std::fs::create_dir_all(other.parent().unwrap()).unwrap();
            std::fs::write(&other, "{}").unwrap();
            let said = lab.refusal();
            assert!(said.contains(want) && !said.contains('\n'), "{said}\nis not: {want}");
            assert!(other.exists(), "an agent that was never ready has removed another network's configuration");
        };
        // what may still appear is waited for
        let waits = |lab: &mut Lab, change: &dyn Fn(&mut GatewaySettings), want: &str| {
            let mut settings = settings(GatewayMode::Shared);
            change(&mut settings);
            lab.gateway = Some(settings);
            lab.start_agent();
            eventually(want, || lab.waits_for().contains(want));
            lab.crash_agent();
        };
        waits(lab, &|_| {}, "cannot use br-ex as gateway interface: there is no such link and no such bridge");
        waits(lab, &|s| s.interface = None, "cannot find the gateway interface: there is no default route");
        lab.vsctl("add-br br-ex -- set Bridge br-ex datapath_type=netdev");
        waits(lab, &|_| {}, "the bridge holds no link to the outside");
        lab.vsctl("del-br br-ex");
        lab.make_bridge();
        refuses(
            lab,
            &|s| s.interface = Some("eth0".into()),
            "it is a port of bridge br-ex; give --gateway-interface=br-ex",
        );
        refuses(
            lab,
            &|s| s.next_hops = vec!["10.1.1.1".parse().unwrap()],
            "next hop 10.1.1.1 is outside its network 172.18.0.2/16",
        );
        let overlap =
            "cannot start the gateway: network 172.18.0.2/16 of link br-ex overlaps service range 172.16.0.0/12";
        refuses(lab, &|s| s.service_cidrs = vec!["172.16.0.0/12".parse().unwrap()], overlap);
        let overlap =
            "cannot start the gateway: network 172.18.0.2/16 of link br-ex overlaps join subnet 172.18.4.0/24";
        refuses(lab, &|s| s.join_subnets = vec!["172.18.4.0/24".parse().unwrap()], overlap);
        run("ip", &["route", "del", "default"]);
        waits(lab, &|_| {}, "no default route of 172.18.0.2/16's family leads through it");
        run("ip", &["addr", "flush", "dev", "br-ex"]);
        waits(lab, &|_| {}, "it has no IPv4 address that it can use");
        // nothing was changed
        let ids = lab.vsctl("get Open_vSwitch . external_ids");
        assert_eq!(ids, "{ovn-bridge-datapath-type=netdev, system-id=chassis-1}");
        assert!(!lab.vsctl("list-br").contains("br-int"));
        assert_eq!(lab.ofctl("dump-flows", &["--no-stats"]).trim(), "priority=0 actions=NORMAL");
    });
}

/// A bridge that appears late does not end the agent.
#[test]
fn the_agent_waits_for_a_late_bridge() {
    in_node(|lab| {
        lab.start_ovs();
        lab.start_ovn();
        lab.make_router();
        lab.gateway = Some(settings(GatewayMode::Shared));
        lab.start_agent();
        eventually("what is missing", || lab.waits_for().contains("no such link and no such bridge"));
        lab.make_bridge();
        lab.ready();
        host_is_right();
    });
}

/// An observation of the node that does not end does not make the node ready for pods.
#[test]
fn a_switch_that_hangs_is_reported() {
    in_node(|lab| {
        with_gateway(lab, GatewayMode::Shared);
        eventually("quiet", || lab.waits_for().is_empty());
        lab.signal("vswitchd", Signal::SIGSTOP);
        // someone changes something: the agent has to observe the node
        lab.vsctl("--no-wait set Open_vSwitch . external_ids:somebody=else");
        eventually("the report", || lab.waits_for().contains("does not answer the agent"));
        lab.signal("vswitchd", Signal::SIGCONT);
        eventually("it is ready again", || lab.waits_for().is_empty());
        lab.stop_agent();
    });
}
