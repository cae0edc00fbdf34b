//! Flows, tables and annotation as text.

use std::cell::RefCell;
use std::collections::BTreeSet;

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::*;
use crate::databases::Databases;
use crate::host::{DefaultRoute, Link};
use crate::masquerade::masquerade_subnets;
use crate::observed::{LinkState, Observed};
use crate::openflow;
use crate::services::Want;
use crate::{Warning, iptables_cleanup, services};
use ovnkube_model::{GatewayMode, Mac, Meta, Object, ServiceCidr, Subnet};

fn facts(mode: GatewayMode) -> openflow::Facts<'static> {
    let subnets = |list: &[&str]| list.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>().leak() as &[_];
    openflow::Facts {
        mode,
        mac: Mac([2, 0x42, 0xac, 0x12, 0, 2]),
        uplink: Some(1),
        vlan: None,
        patch: 2,
        ips: vec!["172.18.0.2".parse().unwrap()],
        service_cidrs: subnets(&["10.96.0.0/16"]),
        masquerade: subnets(&["169.254.169.0/29", "fd69::/125"]),
        pods: subnets(&["10.128.0.0/14", "fd00:10::/48"]),
        pods_outside: false,
        management: vec!["10.128.0.2".parse().unwrap()],
        conntrack_zone: 64000,
        encap_port: 6081,
        max_frame: Some(1414),
    }
}

#[test]
fn ranges_of_objects_are_served_unless_they_overlap_others() {
    let given = ["10.96.0.0/16", "fd00:96::/112"].map(|s| s.parse().unwrap());
    let [cluster, join, masquerade] =
        ["10.128.0.0/14", "100.64.0.0/16", "169.254.169.0/29"].map(|s| [s.parse::<Subnet>().unwrap()]);
    let host = ["127.0.0.1/8", "172.18.0.2/16"].map(|s| s.parse().unwrap());
    let taken = ranges::Taken { cluster: &cluster, join: &join, masquerade: &masquerade, host: &host };
    let nodes = RefCell::new(Some(BTreeSet::new()));
    let of = |lists: &[&[&str]]| {
        let none = BTreeMap::new();
        let meta = Meta { uid: "u", created: 0, labels: &none, annotations: &BTreeMap::new() };
        let range =
            |list: &&[&str]| ServiceCidr::parse(&meta, &list.iter().map(ToString::to_string).collect::<Vec<_>>());
        let named = lists.iter().enumerate().map(|(n, list)| (format!("r{n}").as_str().into(), range(list)));
        let want = Want { ranges: named.collect(), nodes: nodes.borrow().clone(), ..Want::default() };
        let (all, wrong) = ranges::of_services("n1", &given, &want, &taken);
        let more = all.iter().filter(|range| !given.contains(range));
        (more.map(ToString::to_string).collect::<Vec<_>>().join(" "), wrong)
    };
    // the range of the API server's flag has an object too
    assert_eq!(of(&[&["10.96.0.0/16", "fd00:96::/112"]]), (String::new(), vec![]));
    // ranges of services may contain each other; a family that the cluster does not have has no services
    assert_eq!(of(&[&["10.97.0.0/16", "fd00:97::/112"], &["10.96.0.0/12"]]).0, "10.96.0.0/12 10.97.0.0/16");
    for (range, why) in [
        ("0.0.0.0/0", "the range overlaps cluster subnet 10.128.0.0/14; use another range"),
        ("10.128.4.0/24", "the range overlaps cluster subnet 10.128.0.0/14; use another range"),
        ("100.64.0.0/10", "the range overlaps join subnet 100.64.0.0/16; use another range"),
        ("169.254.169.4/32", "the range overlaps masquerade subnet 169.254.169.0/29; use another range"),
        ("172.16.0.0/12", "the range overlaps the network of its address 172.18.0.2/16; use another range"),
        ("127.1.0.0/16", "the range overlaps the network of its address 127.0.0.1/8; use another range"),
    ] {
        let (all, wrong) = of(&[&[range], &["10.97.0.0/16"]]);
        assert_eq!(all, "10.97.0.0/16");
        let message = format!("cannot reach services of {range} from node n1: {why}");
        let about = Some(Object::ServiceCidr { name: "r0".into(), uid: "u".into() });
        assert_eq!(wrong, [Warning { about, reason: "RangeConflict", message }]);
    }
    let (all, wrong) = of(&[&["10.97.0.1/16", "10.98.0.0/16"]]);
    assert_eq!((all.as_str(), wrong[0].reason, wrong.len()), ("10.98.0.0/16", "BadField", 1));
    // without the addresses of other nodes in them
    *nodes.borrow_mut() = Some(["10.97.0.5", "fd00:97::5"].map(|ip| ip.parse().unwrap()).into());
    let pieces = "10.97.0.0/30 10.97.0.4/32 10.97.0.6/31 10.97.0.8/29 10.97.0.16/28";
    assert_eq!(of(&[&["10.97.0.0/27"]]).0, pieces);
    assert_eq!(of(&[&["10.97.0.0/27", "10.97.0.4/30"]]).0, pieces);
    // those of a node that claims a great many leave too many pieces of it
    let address = |n: u32| IpAddr::from(std::net::Ipv4Addr::from(0x0a61_0000 + 2 * n));
    *nodes.borrow_mut() = Some((0..12_000).map(address).collect());
    let (all, wrong) = of(&[&["10.97.0.0/16"], &["10.98.0.0/16"]]);
    assert_eq!((all.as_str(), wrong.len()), ("10.98.0.0/16", 1));
    assert!(wrong[0].message.contains("10.97.0.0/16 from node n1: the range has addresses of too many nodes"));
    // any address may belong to a node
    *nodes.borrow_mut() = None;
    assert_eq!(of(&[&["10.96.0.0/16", "10.97.0.0/16"]]), (String::new(), vec![]));
}

/// As `ovs-ofctl` prints flows: parts in one order, numbers in one form.
fn normal(flow: &str) -> String {
    let (head, actions) = flow.split_once("actions=").unwrap();
    let mut head: Vec<&str> = head.split([',', ' ']).filter(|part| !part.is_empty() && *part != "table=0").collect();
    head.retain(|part| *part != "priority=32768");
    head.sort_unstable();
    format!("{} actions={actions}", head.join(","))
}

fn is_golden(mode: GatewayMode, golden: &str) {
    let want: BTreeSet<String> = golden.lines().map(normal).collect();
    let have: BTreeSet<String> = flows::flows(&facts(mode), &Want::default()).iter().map(|flow| normal(flow)).collect();
    assert_eq!(
        (want.difference(&have).collect::<Vec<_>>(), have.difference(&want).collect::<Vec<_>>()),
        (vec![], vec![])
    );
}

#[test]
fn flows_of_shared_mode() {
    is_golden(GatewayMode::Shared, include_str!("tests/shared.flows"));
}

#[test]
fn flows_of_local_mode() {
    is_golden(GatewayMode::Local, include_str!("tests/local.flows"));
}

/// One is on this host, others on another.
#[test]
fn pods_do_not_reach_databases_without_tls() {
    let all = ["172.18.0.2:6642", "172.18.0.9:6641", "[fd00::9]:6642"].map(|at| at.parse().unwrap()).into();
    let databases = Databases::of(&all, &["172.18.0.2".parse().unwrap()]);
    let want = Want { databases, ..Want::default() };
    let all = flows::flows(&facts(GatewayMode::Shared), &want);
    let more = all.iter().filter(|flow| flow.contains("tp_dst=664"));
    let more: Vec<_> = more.map(|flow| flow.split_once(',').unwrap().1).collect();
    assert_eq!(
        more,
        [
            "table=0,priority=700,in_port=2,tcp,nw_dst=172.18.0.2,tp_dst=6642,actions=drop",
            "table=0,priority=700,in_port=2,tcp,nw_dst=172.18.0.9,tp_dst=6641,actions=drop",
            "table=0,priority=700,in_port=2,tcp6,ipv6_dst=fd00::9,tp_dst=6642,actions=drop",
            "table=0,priority=700,in_port=2,tcp,dl_dst=02:42:ac:12:00:02,tp_dst=6642,actions=drop",
            "table=0,priority=700,in_port=2,tcp,nw_dst=169.254.169.2,tp_dst=6642,actions=drop",
            "table=0,priority=700,in_port=2,tcp6,dl_dst=02:42:ac:12:00:02,tp_dst=6642,actions=drop",
            "table=0,priority=700,in_port=2,tcp6,ipv6_dst=fd69::2,tp_dst=6642,actions=drop",
        ]
    );
    let elements = services::nft::elements(&want, GatewayMode::Shared, &[]);
    let text: Vec<_> = elements.keys().map(|element| format!("{} {}", element.set_name(), element.key())).collect();
    assert_eq!(
        text,
        [
            "databases-v4 172.18.0.2 . tcp . 6642",
            "databases-v4 172.18.0.9 . tcp . 6641",
            "databases-v6 fd00::9 . tcp . 6642",
            "database-ports tcp . 6642",
        ]
    );
}

#[test]
fn the_mtu_check_can_be_off() {
    let facts = openflow::Facts { max_frame: None, ..facts(GatewayMode::Local) };
    let flows = flows::flows(&facts, &Want::default());
    assert!(!flows.iter().any(|flow| flow.contains("check_pkt_larger") || flow.contains("table=11")));
}

#[test]
fn the_host_sees_no_tags_of_the_network_outside() {
    let ips = ["172.18.0.2", "fc00:18::2"].map(|ip| ip.parse().unwrap());
    for mode in [GatewayMode::Shared, GatewayMode::Local] {
        let facts = openflow::Facts { vlan: Some(7), ips: ips.to_vec(), ..facts(mode) };
        for flow in flows::flows(&facts, &Want::default()) {
            let (matches, actions) = flow.split_once("actions=").unwrap();
            let taken_off = actions.ends_with("strip_vlan,LOCAL") && matches.contains("dl_vlan=7");
            assert!(taken_off || !(actions.contains("LOCAL") || actions.contains("FLOOD")), "{flow}");
        }
    }
}

/// New connections from outside reach pods at their own addresses, and the host at its address in the pods' range.
#[test]
fn pods_can_be_sent_to_from_outside() {
    for mode in [GatewayMode::Shared, GatewayMode::Local] {
        let without: BTreeSet<String> = flows::flows(&facts(mode), &Want::default()).into_iter().collect();
        let with = openflow::Facts { pods_outside: true, ..facts(mode) };
        let with: BTreeSet<String> = flows::flows(&with, &Want::default()).into_iter().collect();
        let more: Vec<&String> = with.difference(&without).collect();
        assert_eq!(
            more,
            [
                "cookie=0xdeff105,table=0,priority=190,in_port=1,ip,nw_src=10.128.0.2,actions=drop",
                "cookie=0xdeff105,table=1,priority=15,ip,nw_dst=10.128.0.0/14,actions=output:2",
                "cookie=0xdeff105,table=1,priority=16,ip,nw_dst=10.128.0.2,actions=LOCAL",
            ]
        );
        let less: Vec<&String> = without.difference(&with).collect();
        assert_eq!(less, ["cookie=0xdeff105,table=0,priority=190,in_port=1,ip,nw_src=10.128.0.0/14,actions=drop"]);
    }
}

/// Services that keep the client's address would take such packets to pods, whose policies trust these addresses.
#[test]
fn nothing_from_outside_has_an_address_of_the_cluster() {
    let masquerade = ["169.254.0.0/16", "fd69::/112"].map(|range| range.parse().unwrap());
    for mode in [GatewayMode::Shared, GatewayMode::Local] {
        let dropped = |pods_outside| {
            let ips = ["172.18.0.2", "fc00:18::2"].map(|ip| ip.parse().unwrap()).to_vec();
            let management = ["10.128.0.2", "fd00:10::2"].map(|ip| ip.parse().unwrap()).to_vec();
            let facts = openflow::Facts { ips, management, masquerade: &masquerade, pods_outside, ..facts(mode) };
            let flows = flows::flows(&facts, &Want::default());
            let source = |flow: &String| {
                let head = "cookie=0xdeff105,table=0,priority=190,in_port=1,";
                Some(flow.strip_prefix(head)?.strip_suffix(",actions=drop")?.to_owned())
            };
            flows.iter().filter_map(source).collect::<Vec<_>>()
        };
        // other addresses of the masquerade subnet may be those of hosts, such as a cloud's 169.254.169.254
        let of_gateway = ["ip,nw_src=169.254.0.0/29", "ipv6,ipv6_src=fd69::/125"];
        let of_pods = ["ip,nw_src=10.128.0.0/14", "ipv6,ipv6_src=fd00:10::/48"];
        let own = ["ip,nw_src=10.128.0.2", "ipv6,ipv6_src=fd00:10::2"];
        assert_eq!(dropped(false), [of_gateway[0], of_pods[0], of_gateway[1], of_pods[1]]);
        assert_eq!(dropped(true), [of_gateway[0], own[0], of_gateway[1], own[1]]);
    }
}

#[test]
fn settings_are_in_the_flows() {
    let facts =
        openflow::Facts { conntrack_zone: 100, encap_port: 7000, uplink: Some(7), ..facts(GatewayMode::Shared) };
    let text = flows::flows(&facts, &Want::default()).join("\n");
    for zone in [100, 101, 102, 104] {
        assert!(text.contains(&format!("zone={zone}")), "{zone}");
    }
    assert!(!text.contains("zone=64") && !text.contains("6081") && !text.contains("output:1\n"));
    assert!(text.contains("in_port=7,dl_dst=02:42:ac:12:00:02,udp,tp_dst=7000,actions=LOCAL"), "{text}");
}

/// Each family alone gives the same flows as both together, without loss or duplicates.
#[test]
fn flows_of_both_families() {
    let of = |ips: &[&str]| {
        let ips = ips.iter().map(|ip| ip.parse().unwrap()).collect();
        flows::flows(&openflow::Facts { ips, ..facts(GatewayMode::Local) }, &Want::default())
    };
    let both = of(&["172.18.0.2", "fd00::2"]);
    let unique: BTreeSet<&String> = both.iter().collect();
    assert_eq!(unique.len(), both.len());
    let (v4, v6) = (of(&["172.18.0.2"]), of(&["fd00::2"]));
    assert_eq!(unique, v4.iter().chain(&v6).collect());
    assert!(v6.iter().any(|flow| flow.contains("ipv6_src=fd00::2,ipv6_dst=fd69::2")));
    assert!(!v6.iter().any(|flow| flow.contains("169.254") || flow.contains(",ip,")));
}

#[test]
fn nftables_of_each_mode() {
    let subnets = ["10.128.0.0/23", "fd00:10::/64"].map(|s| s.parse().unwrap());
    let management = ["10.128.0.2", "fd00:10::2"].map(|s| s.parse().unwrap());
    let masquerade = ["169.254.169.0/29".parse().unwrap()];
    let pods = ["10.128.0.0/14", "fd00:10::/48"].map(|s| s.parse().unwrap());
    let shared = "\
\tchain mgmtport-snat {
\t\ttype nat hook postrouting priority srcnat; policy accept;
\t\toifname != \"ovn-k8s-mp0\" return
\t\tmeta l4proto . th dport @mgmtport-no-snat-nodeports counter return
\t\tip saddr 10.128.0.2 counter return
\t\tip daddr . meta l4proto . th dport @mgmtport-no-snat-services-v4 counter return
\t\tmeta nfproto ipv4 counter snat ip to 10.128.0.2
\t\tip6 saddr fd00:10::2 counter return
\t\tip6 daddr . meta l4proto . th dport @mgmtport-no-snat-services-v6 counter return
\t\tmeta nfproto ipv6 counter snat ip6 to fd00:10::2
\t}
";
    let local = "\
\tchain ovn-kube-pod-subnet-masq {
\t\ttype nat hook postrouting priority srcnat; policy accept;
\t\tip saddr 169.254.169.1 counter masquerade
\t\tip saddr 10.128.0.0/23 counter masquerade
\t\tip6 saddr fd00:10::/64 counter masquerade
\t}
";
    let walls = "\
\tchain mgmtport-tunnels {
\t\ttype filter hook prerouting priority -310; policy accept;
\t\tiifname \"ovn-k8s-mp0\" udp dport 6081 counter drop
\t}
\tchain mgmtport-databases {
\t\ttype filter hook prerouting priority -90; policy accept;
\t\tiifname \"ovn-k8s-mp0\" ip daddr . meta l4proto . th dport @databases-v4 counter drop
\t\tiifname \"ovn-k8s-mp0\" ip6 daddr . meta l4proto . th dport @databases-v6 counter drop
\t\tiifname \"ovn-k8s-mp0\" fib daddr type local meta l4proto . th dport @database-ports counter drop
\t}
\tchain mgmtport-forward {
\t\ttype filter hook forward priority filter; policy accept;
\t\toifname != \"ovn-k8s-mp0\" return
FORGED\t\tct state established,related return
\t\tct status dnat return
\t\tcounter drop
\t}
";
    let forged = |sources: &[&str]| {
        let others = "\t\tiifname != \"ovn-k8s-mp0\" iifname != \"br-ex\"";
        let rule = |source: &&str| format!("{others} {source} counter drop\n");
        let rules = sources.iter().map(rule).collect::<Vec<_>>().concat();
        format!("{}{}", services::nft::body(), walls.replace("FORGED", &rules))
    };
    let services = forged(&["ip saddr 169.254.169.0/29", "ip saddr 10.128.0.0/14", "ip6 saddr fd00:10::/48"]);
    let (subnets, management, masquerade) = (&subnets[..], &management[..], &masquerade[..]);
    let (mode, bridge, pods_outside, encap_port) = (GatewayMode::Shared, "br-ex", false, 6081);
    let pods = &pods[..];
    let parts =
        nft::Parts { mode, bridge, pods, pods_outside, subnets, management, masquerade, encap_port, guard: None };
    let table = |parts: &nft::Parts<'_>| nft::table(parts, &Want::default()).body;
    let body = |mode| table(&nft::Parts { mode, ..parts });
    assert_eq!(body(GatewayMode::Shared), format!("{services}{shared}"));
    assert_eq!(body(GatewayMode::Local), format!("{services}{shared}{local}"));
    let forward = "\
\tchain forward {
\t\ttype filter hook forward priority filter; policy accept;
\t\tiifname != { \"br-ex\", \"ovn-k8s-mp0\" } oifname != { \"br-ex\", \"ovn-k8s-mp0\" } return
\t\tip saddr 10.128.0.0/23 return
\t\tip daddr 10.128.0.0/23 return
\t\tip6 saddr fd00:10::/64 return
\t\tip6 daddr fd00:10::/64 return
\t\tcounter drop
\t}
";
    assert_eq!(table(&nft::Parts { guard: Some(subnets), ..parts }), format!("{services}{shared}{forward}"));
    // pods' addresses may come from outside then
    let own = forged(&["ip saddr 169.254.169.0/29", "ip saddr 10.128.0.2", "ip6 saddr fd00:10::2"]);
    assert_eq!(table(&nft::Parts { pods_outside: true, ..parts }), format!("{own}{shared}"));
}

/// As `nft -a list table` shows them, with similar rules of other programs, which stay.
const IPTABLES: &str = "\
table ip nat { # handle 1
\tchain OVN-KUBE-NODEPORT { # handle 1
\t\ttcp dport 30080 counter packets 0 bytes 0 dnat to 10.96.1.3:80 # handle 9
\t}

\tchain KUBE-SERVICES { # handle 2
\t\tip daddr 10.96.0.1 tcp dport 443 counter packets 0 bytes 0 accept # handle 10
\t}

\tchain OUTPUT { # handle 3
\t\ttype nat hook output priority -100; policy accept;
\t\tcounter packets 1 bytes 2 jump OVN-KUBE-NODEPORT # handle 4
\t\tcounter packets 1 bytes 2 jump KUBE-SERVICES # handle 5
\t}

\tchain POSTROUTING { # handle 6
\t\tip saddr 10.128.0.0/23 counter packets 0 bytes 0 masquerade # handle 7
\t\tip saddr 192.0.2.0/24 counter packets 0 bytes 0 masquerade # handle 8
\t}
}
";

#[test]
fn chains_of_ovn_kubernetes_are_removed() {
    let ranges = ["10.128.0.0/14", "10.96.0.0/16"].map(|range| range.parse().unwrap());
    let want = "\
delete rule ip nat OUTPUT handle 4
delete rule ip nat POSTROUTING handle 7
flush chain ip nat OVN-KUBE-NODEPORT
delete chain ip nat OVN-KUBE-NODEPORT
";
    assert_eq!(iptables_cleanup::plan("ip nat", IPTABLES, &ranges, false), want);
    assert_eq!(iptables_cleanup::plan("ip nat", "table ip nat {\n}\n", &ranges, false), "");
}

/// Chains that other programs' rules jump to stay, and so do rules with more conditions than those of ovn-kubernetes.
#[test]
fn rules_of_others_stay() {
    let shown = "\
table ip nat { # handle 1
\tchain OVN-KUBE-ETP { # handle 1
\t\ttcp dport 30080 counter dnat to 10.96.1.3:80 # handle 2
\t}

\tchain OVN-KUBE-ITP { # handle 3
\t\tcounter jump OVN-KUBE-ETP # handle 4
\t}

\tchain MINE { # handle 5
\t\tip daddr vmap { 10.96.1.3 : jump OVN-KUBE-ETP } # handle 6
\t}

\tchain POSTROUTING { # handle 7
\t\tip saddr 10.128.0.0/23 oifname \"wg0\" counter masquerade # handle 8
\t\tip saddr 10.0.0.0/8 counter masquerade # handle 9
\t\tip saddr 169.254.169.1 counter masquerade # handle 10
\t}

\tchain FORWARD { # handle 11
\t\tiifname \"docker0\" ip daddr 10.128.0.0/14 counter accept # handle 12
\t\tip saddr 10.128.3.4 counter accept # handle 13
\t\tiifname \"ovn-k8s-mp0\" oifname \"wg0\" counter accept # handle 14
\t\tip daddr 10.128.0.0/14 counter accept # handle 15
\t\tiifname \"ovn-k8s-mp0\"  counter accept comment \"from OVN to localhost\" # handle 16
\t}
}
";
    let ranges = ["10.128.0.0/14", "169.254.169.0/29"].map(|range| range.parse().unwrap());
    let want = "\
delete rule ip nat POSTROUTING handle 10
delete rule ip nat FORWARD handle 15
delete rule ip nat FORWARD handle 16
flush chain ip nat OVN-KUBE-ETP
flush chain ip nat OVN-KUBE-ITP
delete chain ip nat OVN-KUBE-ITP
";
    assert_eq!(iptables_cleanup::plan("ip nat", shown, &ranges, false), want);
}

/// Two permanent neighbours identify a masquerade subnet; one alone does not.
#[test]
fn masquerade_subnets_are_known_by_neighbours() {
    let of = |ips: &[&str]| -> Vec<(IpAddr, Mac)> {
        ips.iter().map(|ip| ip.parse().unwrap()).map(|ip| (ip, Mac::of(ip))).collect()
    };
    let found = |have: &[(IpAddr, Mac)]| {
        let neighbours = have.iter().map(|(ip, mac)| (*ip, mac.0)).collect();
        let state = LinkState { link: Link::default(), neighbours, ..LinkState::default() };
        masquerade_subnets(&state).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let both = of(&["169.254.0.1", "169.254.0.4", "fd69::1", "fd69::4", "172.18.255.1"]);
    assert_eq!(found(&both), ["169.254.0.0/29", "fd69::/125"]);
    for ips in [&["169.254.0.1"][..], &["169.254.0.4"], &["169.254.0.2", "169.254.0.5"], &["fd69::1", "169.254.0.4"]] {
        assert!(found(&of(ips)).is_empty(), "{ips:?}");
    }
    let mut other = of(&["169.254.0.1", "169.254.0.4"]);
    other[0].1 = Mac([2, 0, 0, 0, 0, 1]);
    assert!(found(&other).is_empty());
}

/// A family whose next hop is given needs no default route, and the interface must reach that.
#[test]
fn given_next_hops_choose_among_the_interfaces_of_default_routes() {
    let place = |cluster: &[&str], hops: &[&str], routes: &[(&str, u32)]| {
        let ips = |list: &[&str]| list.iter().map(|ip| ip.parse().unwrap()).collect::<Vec<IpAddr>>();
        let link = |index: u32, addresses: [&str; 2]| LinkState {
            link: Link { index, name: format!("eth{index}"), ..Link::default() },
            addresses: addresses.map(|address| address.parse().unwrap()).to_vec(),
            ..LinkState::default()
        };
        let route =
            |(gateway, link): &(&str, u32)| DefaultRoute { metric: 0, gateway: gateway.parse().unwrap(), link: *link };
        let host = Observed {
            links: vec![link(0, ["172.18.0.2/16", "fd00:18::2/64"]), link(1, ["172.19.0.2/16", "fd00:19::2/64"])],
            default_routes: routes.iter().map(route).collect(),
            ..Observed::default()
        };
        let cluster: Vec<Subnet> = cluster.iter().map(|range| range.parse().unwrap()).collect();
        let settings = GatewaySettings { next_hops: ips(hops), ..GatewaySettings::default() };
        let ranges = ReservedRanges { cluster: &cluster, masquerade: &[] };
        settings.place(ranges, &host).map(|place| place.link).map_err(|why| why.to_string())
    };
    let (v4, v6) = ("10.128.0.0/14", "fd00:10::/48");
    let (to_0, to_1, v6_to_1) = (("172.18.0.1", 0), ("172.19.0.1", 1), ("fd00:19::1", 1));
    let none = Err(Refused::NoDefaultRoute.to_string());
    assert_eq!(place(&[v6], &["fd00:18::1"], &[to_0]), Ok("eth0".to_owned()));
    assert_eq!(place(&[v6], &["fd00:18::1"], &[to_1, to_0]), Ok("eth0".to_owned()), "the hop is there");
    assert_eq!(place(&[v6], &["fe80::1"], &[to_1]), Ok("eth1".to_owned()));
    assert_eq!(place(&[v6], &["fd00:18::1"], &[to_0, v6_to_1]), Ok("eth0".to_owned()), "also before the family's");
    assert_eq!(place(&[v6], &["fe80::1"], &[to_0, v6_to_1]), Ok("eth1".to_owned()), "both reach it: of the family");
    assert_eq!(place(&[v6], &["fd00:20::1"], &[to_0, v6_to_1]), Ok("eth1".to_owned()), "neither reaches it");
    assert_eq!(place(&[v6], &[], &[to_0]), none);
    assert_eq!(place(&[v6], &["172.18.0.1"], &[to_0]), none, "of no pods");
    // a family whose next hop is given makes no other link the better one
    let of_both = [to_0, to_1, v6_to_1];
    assert_eq!(place(&[v4, v6], &["fd00:18::1"], &of_both), Ok("eth0".to_owned()));
    assert_eq!(place(&[v4, v6], &[], &of_both), Ok("eth1".to_owned()));
    // the route of IPv6 through eth0 may still appear, as after a boot; with eth1 the agent would end
    assert_eq!(place(&[v4, v6], &["172.18.0.1"], &[to_0, v6_to_1]), Ok("eth0".to_owned()));
    assert_eq!(place(&[v4, v6], &["172.20.0.1"], &[to_0, v6_to_1]), Ok("eth1".to_owned()), "neither reaches it");
}

const FORWARD: &str = "\
table ip filter { # handle 1
\tchain FORWARD { # handle 1
\t\ttype filter hook forward priority filter; policy drop;
\t\toifname \"ovn-k8s-mp0\" counter packets 0 bytes 0 accept # handle 4
\t\tiifname \"docker0\" counter packets 0 bytes 0 accept # handle 5
\t}
}
";

#[test]
fn pods_pass_chains_that_drop_by_default() {
    assert_eq!(
        iptables_cleanup::missing("ip filter", FORWARD),
        "insert rule ip filter FORWARD iifname \"ovn-k8s-mp0\" counter accept\n"
    );
    assert_eq!(iptables_cleanup::missing("ip filter", "table ip filter {\n\tchain DOCKER {\n\t}\n}\n"), "");
    let ranges = ["10.128.0.0/14".parse().unwrap()];
    assert_eq!(iptables_cleanup::plan("ip filter", FORWARD, &ranges, true), "");
    assert_eq!(
        iptables_cleanup::plan("ip filter", FORWARD, &ranges, false),
        "delete rule ip filter FORWARD handle 4\n"
    );
}
