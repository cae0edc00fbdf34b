use std::collections::BTreeMap;

use super::*;
use crate::Meta;

fn parse(data: &[(&str, &str)]) -> InterconnectionConfig {
    let whole = [
        ("enable-ic", "true"),
        ("az-name", "az1"),
        ("ic-db-host", "192.168.65.3,192.168.65.4"),
        ("gw-nodes", "a, b"),
        ("auto-route", "true"),
    ];
    let mut all: BTreeMap<String, String> = whole.map(|(key, value)| (key.into(), value.into())).into();
    for (key, value) in data {
        match *value {
            "-" => drop(all.remove(*key)),
            value => drop(all.insert((*key).into(), value.into())),
        }
    }
    let (labels, annotations) = <_>::default();
    InterconnectionConfig::parse(&Meta { uid: "u", created: 0, labels: &labels, annotations: &annotations }, &all)
}

#[test]
fn the_documented_config_map() {
    let config = parse(&[("ic-nb-port", "7000"), ("ic-db-host", "10.0.0.1,, fd00::1 ,ssl:db.example,10.0.0.1,")]);
    let Asks::On(wanted) = config.asks else { panic!("{:?}", config.bad) };
    assert_eq!((wanted.nb_port, wanted.sb_port), (7000, 6646));
    assert_eq!(wanted.gateways, ["a".into(), "b".into()]);
    let remotes: Vec<_> = wanted.servers.iter().map(|server| server.remote(6645)).collect();
    assert_eq!(remotes, ["tcp:10.0.0.1:6645", "tcp:[fd00::1]:6645", "ssl:db.example:6645"]);
}

#[test]
fn a_bad_key_is_named_with_its_remedy() {
    for (key, value, says) in [
        ("enable-ic", "maybe", "write \"true\" or \"false\""),
        ("enable-ic", "-", "is missing"),
        ("az-name", "-", "give each cluster a name of its own"),
        ("az-name", "a b", "letters, digits"),
        ("az-name", "-a", "at both ends"),
        ("ic-db-host", "10.0.0", "write addresses or DNS names"),
        ("ic-db-host", "a/b", "write addresses or DNS names"),
        ("ic-db-host", " , ", "write one or more"),
        ("ic-nb-port", "0", "write a port from 1 to 65535"),
        ("ic-sb-port", "66460", "write a port from 1 to 65535"),
        ("gw-nodes", "a_b", "write names of nodes"),
        ("auto-route", "yes", "write \"true\" or \"false\""),
    ] {
        let config = parse(&[(key, value)]);
        assert_eq!(config.asks, Asks::Unclear, "{key}: {value}");
        let [bad] = &config.bad[..] else { panic!("{key}: {:?}", config.bad) };
        assert!(bad.key.as_ref() == key && bad.problem.contains(says), "{bad}");
    }
}

#[test]
fn all_bad_keys_are_named() {
    assert_eq!(parse(&[("az-name", "-"), ("gw-nodes", "-"), ("ic-nb-port", "x")]).bad.len(), 3);
}

#[test]
fn off_needs_no_other_key() {
    let config = parse(&[("enable-ic", "false"), ("az-name", "-")]);
    assert_eq!((config.asks, config.bad.len()), (Asks::Off, 0));
}

fn route(prefix: &str) -> PeerRoute {
    let next_hop = if prefix.contains(':') { "fe80:a9fe:64::2" } else { "169.254.100.2" };
    PeerRoute {
        prefix: prefix.parse().unwrap(),
        zone: "az2".into(),
        switch: "ts".into(),
        next_hop: next_hop.parse().unwrap(),
        id: "row".into(),
    }
}

#[test]
fn prefixes_that_would_take_traffic_away_are_refused() {
    let local = [("10.128.0.0/14", "pods in"), ("10.96.0.0/16", "services in"), ("fd98::/64", "routers in")];
    let local = local.map(|(range, purpose)| LocalRange { range: range.parse().unwrap(), purpose });
    let judge = |prefix: &str| prefixes(&[route(prefix)], &local);
    for prefix in ["10.244.0.0/16", "fd00:10:245::/48"] {
        assert_eq!(judge(prefix).used.len(), 1, "{prefix}");
    }
    for (prefix, says) in [
        ("0.0.0.0/0", "it is everything"),
        ("::/0", "it is everything"),
        ("169.254.7.0/24", "link-local"),
        ("fe80::/64", "link-local"),
        ("10.129.1.0/24", "pods in 10.128.0.0/14"),
        ("10.0.0.0/8", "pods in 10.128.0.0/14"),
        ("10.96.3.0/24", "services in 10.96.0.0/16"),
        ("fd98::100/120", "routers in fd98::/64"),
    ] {
        let judged = judge(prefix);
        assert!(judged.used.is_empty(), "{prefix}");
        let reason = &judged.refused.first().unwrap().reason;
        assert!(reason.contains(says), "{prefix}: {reason}");
    }
}

#[test]
fn a_cluster_with_too_many_prefixes_keeps_the_first_ones() {
    let offered: Vec<_> = (0..10_000).map(|n| route(&format!("20.{}.{}.0/24", n / 256, n % 256))).collect();
    let judged = prefixes(&offered, &[]);
    assert_eq!((judged.used.len(), judged.refused.len()), (1024, 10_000 - 1024));
}
