//! Flows, tables and annotation as text.

use std::collections::BTreeSet;

use super::*;
use ovnkube_model::Mac;

fn facts(mode: GatewayMode) -> flows::Facts<'static> {
    let subnets = |list: &[&str]| list.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>().leak() as &[_];
    flows::Facts {
        mode,
        mac: Mac([2, 0x42, 0xac, 0x12, 0, 2]),
        uplink: 1,
        vlan: None,
        patch: 2,
        ips: vec!["172.18.0.2".parse().unwrap()],
        service_cidrs: subnets(&["10.96.0.0/16"]),
        masquerade: subnets(&["169.254.169.0/29", "fd69::/125"]),
        conntrack_zone: 64000,
        encap_port: 6081,
        max_frame: Some(1414),
    }
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

#[test]
fn the_mtu_check_can_be_off() {
    let facts = flows::Facts { max_frame: None, ..facts(GatewayMode::Local) };
    let flows = flows::flows(&facts, &Want::default());
    assert!(!flows.iter().any(|flow| flow.contains("check_pkt_larger") || flow.contains("table=11")));
}

#[test]
fn settings_are_in_the_flows() {
    let facts = flows::Facts { conntrack_zone: 100, encap_port: 7000, uplink: 7, ..facts(GatewayMode::Shared) };
    let text = flows::flows(&facts, &Want::default()).join("\n");
    for zone in [100, 101, 102, 104] {
        assert!(text.contains(&format!("zone={zone}")), "{zone}");
    }
    assert!(!text.contains("zone=64") && !text.contains("6081") && !text.contains("output:1\n"));
    assert!(text.contains("in_port=7,dl_dst=02:42:ac:12:00:02,udp,tp_dst=7000,actions=LOCAL"), "{text}");
}

/// Each family alone gives the same as both together: nothing is lost and nothing is there twice.
#[test]
fn flows_of_both_families() {
    let of = |ips: &[&str]| {
        let ips = ips.iter().map(|ip| ip.parse().unwrap()).collect();
        flows::flows(&flows::Facts { ips, ..facts(GatewayMode::Local) }, &Want::default())
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
    let services = services::nft::body(&Want::default());
    let table = |mode, guard| nft::table(mode, &subnets, &management, &masquerade, &Want::default(), guard).body;
    let body = |mode| table(mode, None);
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
    let guard = nft::Guard { bridge: "br-ex", ranges: &subnets };
    assert_eq!(table(GatewayMode::Shared, Some(&guard)), format!("{services}{shared}{forward}"));
}

/// As `nft -a list table` shows them; what looks alike and is not theirs stays.
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
fn chains_of_ovn_kubernetes_go() {
    let ranges = ["10.128.0.0/14", "10.96.0.0/16"].map(|range| range.parse().unwrap());
    let want = "\
delete rule ip nat OUTPUT handle 4
delete rule ip nat POSTROUTING handle 7
flush chain ip nat OVN-KUBE-NODEPORT
delete chain ip nat OVN-KUBE-NODEPORT
";
    assert_eq!(legacy::plan("ip nat", IPTABLES, &ranges, false), want);
    assert_eq!(legacy::plan("ip nat", "table ip nat {\n}\n", &ranges, false), "");
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
fn pods_pass_what_drops_by_default() {
    assert_eq!(
        legacy::missing("ip filter", FORWARD),
        "insert rule ip filter FORWARD iifname \"ovn-k8s-mp0\" counter accept\n"
    );
    assert_eq!(legacy::missing("ip filter", "table ip filter {\n\tchain DOCKER {\n\t}\n}\n"), "");
    let ranges = ["10.128.0.0/14".parse().unwrap()];
    assert_eq!(legacy::plan("ip filter", FORWARD, &ranges, true), "");
    assert_eq!(legacy::plan("ip filter", FORWARD, &ranges, false), "delete rule ip filter FORWARD handle 4\n");
}
