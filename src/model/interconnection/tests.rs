use std::collections::BTreeMap;

use super::*;
use crate::{Change, ClusterSubnet, Meta, Name, NetworkSettings, Subnet, World};

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
    with_meta(|meta| InterconnectionConfig::parse(meta, &all))
}

fn with_meta<T>(parse: impl FnOnce(&Meta<'_>) -> T) -> T {
    let (labels, annotations) = <_>::default();
    parse(&Meta { uid: "u", created: 0, labels: &labels, annotations: &annotations })
}

#[test]
fn the_documented_config_map() {
    let config = parse(&[("ic-nb-port", "7000"), ("ic-db-host", "10.0.0.1,, fd00::1 ,ssl:db.example,10.0.0.1,")]);
    let Asks::On(wanted) = config.asks else { panic!("{:?}", config.bad) };
    assert_eq!((wanted.nb_port, wanted.sb_port, wanted.gateway_mtu), (7000, 6646, None));
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
        ("gateway-mtu", "576", "write a number from 1280 to 65535"),
        ("gateway-mtu", "70000", "write a number from 1280 to 65535"),
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
    assert_eq!((config.asks, config.bad.len()), (Asks::Off(None), 0));
    let Asks::Off(Some(names)) = parse(&[("enable-ic", "false")]).asks else { panic!("what it names") };
    assert_eq!(names.zone.as_ref(), "az1");
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
    let judge = |prefix: &str| prefixes(&[route(prefix)], &local, &BTreeMap::new());
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
    let judged = prefixes(&offered, &[], &BTreeMap::new());
    assert_eq!((judged.used.len(), judged.refused.len()), (1024, 10_000 - 1024));
}

fn closing(cidr_block: &str) -> InterconnectionSubnet {
    with_meta(|meta| InterconnectionSubnet::parse(meta, cidr_block, true))
}

#[test]
fn ranges_of_a_subnet() {
    let texts = |ranges: &[Subnet]| ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    for (cidr_block, closed) in [
        ("10.199.0.0/16", "10.199.0.0/16"),
        (" 10.199.0.1/16 ,fd00:199::/64,", "10.199.0.0/16 fd00:199::/64"),
        ("0.0.0.0/0", "0.0.0.0/0"),
    ] {
        let subnet = closing(cidr_block);
        assert_eq!((texts(&subnet.closed).as_str(), subnet.bad.len()), (closed, 0), "{cidr_block}");
    }
    for (cidr_block, closed, says) in [
        ("", "", "is missing"),
        (" , ", "", "is missing"),
        ("10.199.0.0", "", "has \"10.199.0.0\"; write a range"),
        ("10.199.0.0/33,10.198.0.0/16", "10.198.0.0/16", "has \"10.199.0.0/33\""),
        ("ten", "", "has \"ten\""),
    ] {
        let subnet = closing(cidr_block);
        assert_eq!((texts(&subnet.closed).as_str(), subnet.bad.len()), (closed, 1), "{cidr_block}");
        assert!(subnet.bad[0].contains(says), "{:?}", subnet.bad);
    }
    let many = closing(&"10.0.0.0/8,".repeat(100_000));
    assert_eq!((many.closed.len(), many.bad.len()), (16, 1));
    let open = with_meta(|meta| InterconnectionSubnet::parse(meta, "no range", false));
    assert!(open.closed.is_empty() && open.bad.is_empty());
}

#[test]
fn of_a_larger_prefix_the_rest_is_used() {
    let closed = [("10.244.64.0/18", "a"), ("10.250.0.0/15", "b")];
    let closed: BTreeMap<Subnet, Name> = closed.map(|(range, name)| (range.parse().unwrap(), name.into())).into();
    let judged = prefixes(&["10.244.0.0/16", "10.250.3.0/24", "10.249.0.0/16"].map(route), &[], &closed);
    let used: Vec<_> = judged.used.keys().map(ToString::to_string).collect();
    assert_eq!(used, ["10.244.0.0/18", "10.244.128.0/17", "10.249.0.0/16"]);
    let refused: Vec<_> = judged.refused.iter().map(|r| format!("{} {}", r.prefix, r.reason)).collect();
    assert_eq!(refused, ["10.250.3.0/24 Subnet b of this cluster closes 10.250.0.0/15 with disableInterConnection"]);
}

/// However people and other clusters cut ranges, there is an end.
#[test]
fn pieces_are_bounded() {
    let closed = (0..1500).map(|n| (format!("10.0.{}.{}/32", n / 128, n % 128 * 2).parse().unwrap(), "a".into()));
    let closed: BTreeMap<Subnet, Name> = closed.collect();
    let offered: Vec<_> = (0..16_384).map(|n| route(&format!("10.0.0.0/{}", 9 + n % 16))).collect();
    let judged = prefixes(&offered, &[], &closed);
    assert!(judged.used.len() <= MOST_PREFIXES, "{}", judged.used.len());
    assert!(judged.refused.iter().all(|r| r.reason.contains("more than 1024 prefixes")), "{:?}", judged.refused);
    assert!(!judged.refused.is_empty());
}

#[test]
fn what_is_not_closed_is_offered() {
    let range = |cidr: &str, host_prefix| ClusterSubnet { cidr: cidr.parse().unwrap(), host_prefix };
    let ranges = [range("10.128.0.0/14", 23), range("fd01::/48", 64)];
    let mut world = World::new(NetworkSettings { cluster_subnets: ranges.into(), ..<_>::default() }, []);
    let mut offered = |changes: &[(&str, Option<&str>)]| {
        for (name, cidr_block) in changes {
            world.apply(Change::InterconnectionSubnet((*name).into(), cidr_block.map(closing)));
        }
        let (ranges, more) = world.offered_ranges();
        (ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "), more)
    };
    let is = |text: &str| (text.to_owned(), 0);
    assert_eq!(offered(&[]), is("10.128.0.0/14 fd01::/48"));
    assert_eq!(offered(&[("a", Some("10.130.0.0/16"))]), is("10.128.0.0/15 10.131.0.0/16 fd01::/48"));
    // within a node's range; one that another one has too
    let others = [("b", Some("10.131.255.0/24,fd01:0:0:8000::/49")), ("c", Some("10.130.0.0/16"))];
    assert!(offered(&others).0.starts_with("10.128.0.0/15 10.131.0.0/17 10.131.128.0/18 "));
    assert_eq!(offered(&[("a", None), ("b", None)]), is("10.128.0.0/15 10.131.0.0/16 fd01::/48"));
    assert_eq!(offered(&[("c", Some("10.0.0.0/8"))]), is("fd01::/48"));
    let single: Vec<String> = (0..1500).map(|n| format!("10.128.{}.{}/32", n / 128, n % 128 * 2)).collect();
    let single: Vec<_> = single.iter().map(|range| (range.as_str(), Some(range.as_str()))).collect();
    let (ranges, more) = offered(&[&[("c", None)], &single[..]].concat());
    assert!(ranges.starts_with("10.130.0.0/15 10.129.0.0/16 ") && more > 0, "{ranges} {more}");
}
