//! UDP connections to endpoints that no longer exist.

use std::time::Duration;

use ovnkube_host::conntrack::Connection;
use ovnkube_model::{Backend, Family, Protocol};
use ovnkube_node_plan::services::element::{Key, Set};
use tokio::time::Instant;

use super::*;

/// When each stale connection is looked for again.
pub(super) fn later() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn moved(have: &nft::Elements, want: &nft::Elements) -> nft::Moved {
    nft::led(&nft::turned(have, want), want)
}

#[test]
fn udp_connections_to_deleted_endpoints_are_ended() {
    let tracker = tracker();
    tracker.services_synced();
    let spec = json!({
        "type": "NodePort", "clusterIPs": ["10.96.1.3"], "ports": [{"port": 53, "nodePort": 30053, "protocol": "UDP"}],
    });
    tracker.service(&key("dns"), Some(service(1, &spec)));
    let pods = |ips: &[&str]| {
        let endpoints: Vec<Value> = ips.iter().map(|ip| json!({"addresses": [ip]})).collect();
        Some(slice("dns", ("UDP", 5353), &endpoints.into()))
    };
    // each look is a long time after the one before
    let mut now = Instant::now();
    let mut stale = || {
        now += Duration::from_secs(60);
        let (stale, mut ips) = tracker.stale(now);
        tracker.looked(&stale, now);
        ips.extend(nft::local_masquerade_ips(&masquerade()));
        stale.iter().flat_map(|stale| stale::tuples(stale, &ips)).map(|tuples| tuples.join(" ")).collect::<Vec<_>>()
    };
    tracker.slice(&key("dns-x"), pods(&["10.128.0.5", "10.128.0.6"]));
    assert!(stale().is_empty());
    tracker.slice(&key("dns-x"), pods(&["10.128.0.6"]));
    let gone = [
        "ct_nw_dst=172.18.0.2,ct_nw_proto=17,ct_tp_dst=30053 ct_nw_src=10.128.0.5,ct_nw_proto=17,ct_tp_src=5353",
        "ct_nw_dst=169.254.169.3,ct_nw_proto=17,ct_tp_dst=30053 ct_nw_src=10.128.0.5,ct_nw_proto=17,ct_tp_src=5353",
        "ct_nw_dst=10.96.1.3,ct_nw_proto=17,ct_tp_dst=53 ct_nw_src=10.128.0.5,ct_nw_proto=17,ct_tp_src=5353",
    ];
    for _ in 0..stale::LOOKS {
        assert_eq!(stale(), gone);
    }
    assert!(stale().is_empty());
    tracker.slice(&key("dns-x"), pods(&["10.128.0.7"]));
    assert_eq!(stale().len(), 3);
    tracker.slice(&key("dns-x"), pods(&["10.128.0.6", "10.128.0.7"]));
    assert!(stale().is_empty(), "it is back");
    tracker.service(&key("dns"), None);
    assert_eq!(stale().len(), 6);
}

/// The switch is away for longer than all looks take. Connections are ended once it is back.
#[tokio::test]
async fn looks_that_do_not_reach_the_switch_are_none() {
    let tracker = tracker();
    tracker.services_synced();
    let spec = json!({"clusterIPs": ["10.96.1.3"], "ports": [{"port": 53, "protocol": "UDP"}]});
    tracker.service(&key("dns"), Some(service(1, &spec)));
    tracker.slice(&key("dns-x"), Some(slice("dns", ("UDP", 5353), &json!([{"addresses": ["10.128.0.5"]}]))));
    let dir = std::env::temp_dir().join(format!("ovnkube-away-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let work = super::super::stale::run(&tracker, &dir, &[]);
    let story = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        tracker.slice(&key("dns-x"), None);
        // five pauses of 0.7 s, as many as there were looks once
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(tracker.next_look().is_some(), "it was never looked for");
        let (switch, flushed) = super::super::stale::tests::switch(&dir);
        while *flushed.lock().unwrap() == 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        switch.abort();
    };
    tokio::select! {
        () = work => panic!("it ended"),
        done = tokio::time::timeout(Duration::from_secs(60), story) => done.expect("the connection is ended"),
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

/// A service that claims an address without getting it does not end the owner's connections.
#[test]
fn only_connections_to_own_addresses_are_ended() {
    let tracker = tracker();
    tracker.services_synced();
    let udp = |port: u16, ips: &[&str]| {
        json!({"type": "NodePort", "clusterIPs": [ips[0]], "externalIPs": ips[1..],
            "ports": [{"port": port, "nodePort": 30053, "protocol": "UDP"}]})
    };
    tracker.service(&key("old"), Some(service(1, &udp(53, &["10.96.1.3", "192.0.2.9"]))));
    tracker.service(
        &key("young"),
        Some(service(2, &udp(53, &["10.96.1.4", "192.0.2.9", "172.18.0.3", "10.128.0.7", "10.96.1.3"]))),
    );
    tracker.slice(&key("young-x"), Some(slice("young", ("UDP", 5353), &json!([{"addresses": ["10.128.0.5"]}]))));
    tracker.slice(&key("young-x"), None);
    let frontends: Vec<_> = tracker
        .stale(Instant::now() + Duration::from_secs(1))
        .0
        .into_iter()
        .map(|((at, port), _)| (at, port))
        .collect();
    assert_eq!(frontends, [(want::At::Ip("10.96.1.4".parse().unwrap()), 53)]);
}

/// With local endpoints only, a terminating one still serves if the node has no other, whatever other nodes have.
#[test]
fn connections_to_the_last_local_endpoint_end_when_it_is_deleted() {
    let tracker = tracker();
    tracker.services_synced();
    let spec = json!({
        "type": "NodePort", "externalTrafficPolicy": "Local", "clusterIPs": ["10.96.1.3"],
        "ports": [{"port": 53, "nodePort": 30053, "protocol": "UDP"}],
    });
    tracker.service(&key("dns"), Some(service(1, &spec)));
    let there = json!({"addresses": ["10.129.0.5"], "nodeName": "node-001"});
    let mut here = json!({"addresses": ["10.128.0.5"], "nodeName": "node-000"});
    let endpoints = |list: &[&Value]| tracker.slice(&key("dns-x"), Some(slice("dns", ("UDP", 5353), &json!(list))));
    endpoints(&[&there, &here]);
    here["conditions"] = json!({"ready": false, "serving": true, "terminating": true});
    endpoints(&[&there, &here]);
    assert!(tracker.stale(later()).0.is_empty(), "it still serves");
    endpoints(&[&there]);
    let gone: BTreeSet<_> = tracker.stale(later()).0.into_iter().map(|(_, backend)| backend.ip.to_string()).collect();
    assert_eq!(gone, ["10.128.0.5".to_owned()].into());
}

/// Each is named completely: the switch would look at all its connections for one that is not.
#[test]
fn stale_connections_in_the_list_of_the_switch() {
    let backend = |ip: &str| Backend { ip: ip.parse().unwrap(), port: 5353 };
    let at = |ip: &str| (want::At::Ip(ip.parse().unwrap()), 53);
    let stale = [
        (at("10.96.1.3"), backend("10.128.0.9")),
        (at("fd00:96::3"), backend("fd00::9")),
        ((want::At::Node(Family::V4), 30053), backend("10.128.0.9")),
    ];
    let of = |lines: &[&str]| {
        let all = stale::listed(&lines.join("\n"), &stale, &here().ips);
        all.iter().map(|named| named.join(" ")).collect::<Vec<_>>()
    };
    let v4 = "udp,orig=(src=10.128.0.4,dst=10.96.1.3,sport=4000,dport=53),reply=(src=10.128.0.9,dst=10.128.0.4,sport=5353,dport=4000),zone=9,mark=2";
    let v6 = "udp,orig=(src=fd00::4,dst=fd00:96::3,sport=4000,dport=53),reply=(src=fd00::9,dst=fd00::4,sport=5353,dport=4000)";
    let node_port = v4.replace("dst=10.96.1.3,sport=4000,dport=53)", "dst=172.18.0.2,sport=4000,dport=30053)");
    assert_eq!(
        of(&[v4, v6, &node_port]),
        [
            "zone=9 ct_nw_src=10.128.0.4,ct_nw_dst=10.96.1.3,ct_nw_proto=17,ct_tp_src=4000,ct_tp_dst=53",
            "zone=0 ct_ipv6_src=fd00::4,ct_ipv6_dst=fd00:96::3,ct_nw_proto=17,ct_tp_src=4000,ct_tp_dst=53",
            "zone=9 ct_nw_src=10.128.0.4,ct_nw_dst=172.18.0.2,ct_nw_proto=17,ct_tp_src=4000,ct_tp_dst=30053",
        ]
    );
    for other in [
        "",
        &v4.replace("udp", "tcp"),
        &v4.replace("10.128.0.9", "10.128.0.8"),
        &v4.replace("10.96.1.3", "10.96.1.4"),
        &v4.replace("dport=53)", "dport=54)"),
        "udp,orig=(src=10.128.0.4),reply=(src=10.128.0.9)",
        "udp,reply=(src=a,sport=1)",
    ] {
        assert!(of(&[other]).is_empty(), "{other}");
    }
}

#[test]
fn changes_of_translations_are_found() {
    let mut cluster = Cluster::default();
    let spec = |ip: &str| {
        json!({"type": "NodePort", "clusterIPs": [ip], "externalIPs": ["192.0.2.9"],
            "ports": [{"port": 53, "nodePort": 30053, "protocol": "UDP"}, {"port": 80, "nodePort": 30080}]})
    };
    let elements = |cluster: &Cluster| nft::elements(&cluster.want(), GatewayMode::Shared, &masquerade());
    let none = elements(&cluster);
    let old = elements(cluster.add("dns", &spec("10.96.1.3")));
    let new = elements(cluster.add("dns", &spec("10.96.1.4")));
    let to = |ip: &str| BTreeSet::from([format!("{ip}:53").parse().unwrap()]);
    let keys = [(None, false, 30053), (Some("192.0.2.9".parse().unwrap()), false, 53)];
    for (have, want, to) in
        [(&none, &old, to("10.96.1.3")), (&old, &new, to("10.96.1.4")), (&new, &none, BTreeSet::new())]
    {
        assert_eq!(moved(have, want), keys.map(|key| (key, to.clone())).into());
    }
    assert!(moved(&new, &new).is_empty());
    // clients outside are translated to local endpoints, the host to the service
    let portless = json!({
        "type": "LoadBalancer", "externalTrafficPolicy": "Local", "clusterIPs": ["10.96.1.5"], "ingress": ["192.0.2.9"],
        "ports": [{"port": 53, "protocol": "UDP"}],
    });
    let mut cluster = Cluster::default();
    let without = elements(cluster.add("dns", &portless));
    let key = Key::of_ip("192.0.2.9".parse().unwrap(), Protocol::Udp, 53);
    let nobody = Element::new(Set::Nobody, Family::V4, key);
    assert!(without.contains_key(&nobody));
    let one = json!([{"addresses": ["10.128.0.5"], "nodeName": "node-000"}]);
    let with = elements(cluster.endpoints("dns", ("UDP", 5353), &one));
    assert!(!with.contains_key(&nobody));
    let led = ["10.96.1.5:53", "10.128.0.5:5353"].map(|to| to.parse().unwrap());
    assert_eq!(moved(&without, &with), [(keys[1], led.into())].into());
    assert_eq!(moved(&with, &without), [(keys[1], to("10.96.1.5"))].into());
}

/// The host's table is written again when the agent starts: then every translation is new.
#[test]
fn only_connections_to_the_nodes_own_addresses_are_ended() {
    let mut cluster = Cluster::default();
    let spec = json!({"type": "NodePort", "clusterIPs": ["10.96.1.3"], "externalIPs": ["192.0.2.9"],
        "ports": [{"port": 53, "nodePort": 30053, "protocol": "UDP"}]});
    cluster.add("dns", &spec);
    let elements = nft::elements(&cluster.want(), GatewayMode::Local, &masquerade());
    let led = moved(&nft::Elements::new(), &elements);
    let is_moved = |to: &str, answers: &str| {
        let connection = Connection { to: to.parse().unwrap(), answers: answers.parse().unwrap() };
        stale::is_moved(&connection, &led, &here().ips)
    };
    assert!(is_moved("172.18.0.2:30053", "172.18.0.2:30053"), "it was not translated");
    assert!(is_moved("172.18.0.2:30053", "10.96.1.4:53"));
    assert!(!is_moved("172.18.0.2:30053", "10.96.1.3:53"));
    assert!(!is_moved("203.0.113.5:30053", "203.0.113.5:30053"), "a pod's connection to a host outside");
    assert!(!is_moved("127.0.0.1:30053", "127.0.0.1:30053"));
    assert!(is_moved("192.0.2.9:53", "192.0.2.9:53"));
    assert!(!is_moved("192.0.2.9:30053", "192.0.2.9:30053"));
}
