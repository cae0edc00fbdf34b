mod bad_keys;
mod declared;
mod host_routes;
mod judged;
mod notices;

use std::collections::{BTreeMap, BTreeSet};

use ipnetwork::IpNetwork;
use proptest::prelude::*;

use super::*;
use crate::{Change, ClusterSubnet, Kind, Meta, Name, NetworkSettings, Node, NodeFields, Subnet, World};

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

fn judge(routes: Vec<PeerRoute>, local: &Local, closed: &BTreeMap<Subnet, Name>) -> Prefixes {
    of(&Peers { routes, ..Peers::default() }, local, closed, &BTreeMap::new())
}

fn of(peers: &Peers, local: &Local, closed: &BTreeMap<Subnet, Name>, declared: &BTreeMap<Subnet, Name>) -> Prefixes {
    let (local, closed) = (local.clone(), closed.clone());
    prefixes(&Judge { peers, unused: BTreeSet::new(), local, closed, declared }, true)
}

#[test]
fn prefixes_that_would_take_traffic_away_are_refused() {
    let ranges = [("10.128.0.0/14", "pods"), ("10.96.0.0/16", "services"), ("fd98::/64", "routers")];
    let ranges = ranges.map(|(range, purpose)| LocalRange { range: range.parse().unwrap(), purpose });
    let nodes = ["172.18.0.2"].map(|ip| ip.parse().unwrap());
    let hosts = ["172.18.0.3", "fd00:18::2"].map(|ip| ip.parse().unwrap());
    let networks = ["172.18.0.0/24", "fd00:18::/64"].map(|network| network.parse().unwrap());
    let local = Local { ranges: ranges.into(), nodes: nodes.into(), hosts: hosts.into(), networks: networks.into() };
    let judge = |prefix: &str| judge(vec![route(prefix)], &local, &BTreeMap::new());
    for prefix in ["10.244.0.0/16", "172.18.1.0/24", "172.19.0.0/16", "fd00:10:245::/48"] {
        assert_eq!(judge(prefix).used.len(), 1, "{prefix}");
    }
    for (prefix, says) in [
        ("0.0.0.0/0", "it is everything"),
        ("::/0", "it is everything"),
        ("169.254.7.0/24", "its addresses are link-local; have the cluster offer the ranges of its pods"),
        ("168.0.0.0/6", "it contains 169.254.0.0/16, whose addresses are link-local"),
        ("fe80::/64", "link-local"),
        ("127.8.0.0/16", "its addresses are every host's own"),
        ("::1/128", "its addresses are every host's own"),
        ("0.0.0.0/8", "its addresses are no hosts'"),
        ("224.0.0.0/24", "its addresses are multicast"),
        ("192.0.0.0/2", "it contains 224.0.0.0/4"),
        ("ff05::/16", "its addresses are multicast"),
        ("255.255.255.255/32", "its addresses are reserved"),
        ("10.129.1.0/24", "it overlaps 10.128.0.0/14, which this cluster uses for pods"),
        ("10.0.0.0/8", "it overlaps 10.128.0.0/14, which this cluster uses for pods"),
        ("10.96.3.0/24", "10.96.0.0/16, which this cluster uses for services"),
        ("fd98::100/120", "fd98::/64, which this cluster uses for routers"),
        ("172.18.0.0/16", "it contains 172.18.0.2, the address of a node of this cluster"),
        ("172.18.0.3/32", "it contains 172.18.0.3"),
        ("fd00:18::/64", "it contains fd00:18::2"),
        ("172.18.0.4/30", "it lies in 172.18.0.0/24, a network that nodes of this cluster are on"),
        ("172.18.0.9/32", "it lies in 172.18.0.0/24"),
        ("fd00:18::1:0/112", "it lies in fd00:18::/64"),
    ] {
        let judged = judge(prefix);
        assert!(judged.used.is_empty(), "{prefix}");
        let reason = &judged.refused.first().unwrap().reason;
        assert!(reason.contains(says), "{prefix}: {reason}");
    }
}

/// Networks of hosts count, but not those that each host has, those that the cluster has cut up itself, mistakes, and those in which
/// Kubernetes knows no address of the node.
#[test]
fn networks_of_hosts_are_this_clusters() {
    let pods = [("10.128.0.0/14", 23), ("fd01::/48", 64)];
    let pods = pods.map(|(cidr, host_prefix)| ClusterSubnet { cidr: cidr.parse().unwrap(), host_prefix });
    let network = NetworkSettings { cluster_subnets: pods.into(), ..NetworkSettings::default() };
    let mut world = World::new(network, [Kind::Node, Kind::Interconnection]);
    let on = [
        "172.18.0.2/16",
        "192.168.7.2/32",
        "10.0.0.2/8",
        "10.200.3.2/24",
        "10.205.3.2/14",
        "fd00:99::2/64",
        "169.254.9.2/16",
        "fe80::2/64",
        "fd00:18::2/64",
        "1.2.3.4/7",
        "fd::2/8",
    ];
    let annotations = [("k8s.ovn.org/host-cidrs".to_owned(), serde_json::json!(on).to_string())].into();
    let meta = Meta { uid: "u", created: 0, labels: &BTreeMap::new(), annotations: &annotations };
    let known = ["172.18.0.2", "10.0.0.2", "169.254.9.2", "1.2.3.4"].map(|ip| ip.parse().unwrap());
    let others = ["10.200.3.2", "fd00:18::2", "fd::2", "192.168.7.2"].map(|ip| ip.parse().unwrap());
    let node = Node::parse(&meta, NodeFields { addresses: &known, other_addresses: &others, ..NodeFields::default() });
    world.apply(Change::Node("n1".into(), Some(Box::new(node))));
    let networks: Vec<String> = world.own_addresses().networks.iter().map(ToString::to_string).collect();
    assert_eq!(networks, ["10.200.3.0/24", "172.18.0.0/16", "fd00:18::/64"]);
}

#[test]
fn the_masquerade_subnet_of_ovn_kubernetes_leaves_room_for_transit_switches() {
    let subnets = ["169.254.0.0/17", "fd69::/112"].map(|subnet| subnet.parse().unwrap());
    let network = NetworkSettings { masquerade_subnets: subnets.to_vec(), ..NetworkSettings::default() };
    let local = World::new(network, []).own_addresses();
    let ranges: Vec<String> = local.ranges.iter().map(|local| local.range.to_string()).collect();
    assert_eq!(ranges, ["169.254.0.0/29", "fd69::/125"]);
}

/// Three clusters, `c` joined first and gets the name `d`: `zone prefix`, `(zone prefix)` where no packet gets through.
fn of_three(offered: &[&str]) -> (Vec<String>, Vec<String>) {
    let mut peers = Peers::default();
    for (place, (zone, new)) in [("c", Some("d")), ("a", None), ("b", None), ("d", None)].iter().enumerate() {
        let new_name = new.map(Name::from);
        peers.clusters.insert((*zone).into(), PeerCluster { place, new_name, ..PeerCluster::default() });
    }
    for offered in offered {
        let waits = offered.starts_with('(');
        let (zone, prefix) = offered.trim_matches(['(', ')']).split_once(' ').unwrap();
        let route = PeerRoute { zone: zone.into(), id: zone.into(), ..route(prefix) };
        let next_hop = format!("169.254.100.{}", zone.as_bytes()[0]).parse().unwrap();
        let routes = if waits { &mut peers.waiting } else { &mut peers.routes };
        routes.push(PeerRoute { next_hop, ..route });
    }
    let services = LocalRange { range: "172.30.0.0/16".parse().unwrap(), purpose: "services" };
    let local = Local { ranges: vec![services], ..Local::default() };
    let judged = of(&peers, &local, &BTreeMap::new(), &BTreeMap::new());
    let zones = |(prefix, hops): (&Subnet, &BTreeMap<_, Option<Name>>)| {
        hops.values().map(|zone| format!("{} {prefix}", zone.as_ref().unwrap())).collect::<Vec<_>>()
    };
    let used = judged.used.iter().flat_map(zones);
    (used.collect(), judged.refused.iter().map(|r| format!("{} {} {}", r.zone, r.prefix, r.reason)).collect())
}

/// The cluster that joined earlier has its addresses, whichever of the prefixes is larger.
#[test]
fn of_two_clusters_with_the_same_addresses_one_is_used() {
    for (offered, used) in [
        (&["a 10.1.0.0/16", "b 10.1.0.0/16"][..], &["a 10.1.0.0/16"][..]),
        (&["a 10.1.0.0/16", "c 10.1.0.0/16"], &["c 10.1.0.0/16"]),
        (&["a 10.1.0.0/16", "b 10.1.2.0/24"], &["a 10.1.0.0/16"]),
        (&["b 10.1.0.0/16", "a 10.1.2.0/24"], &["a 10.1.2.0/24"]),
        (&["b 10.1.0.0/16", "a 10.1.0.0/24"], &["a 10.1.0.0/24"]),
        (&["b 10.1.0.0/24", "a 10.1.0.0/16"], &["a 10.1.0.0/16"]),
        (&["b 10.1.2.0/24", "b 10.1.0.0/16", "a 10.2.0.0/16"], &["b 10.1.0.0/16", "b 10.1.2.0/24", "a 10.2.0.0/16"]),
        (&["a 10.1.2.0/24", "a 10.1.0.0/16", "b 10.1.9.0/24"], &["a 10.1.0.0/16", "a 10.1.2.0/24"]),
        // what is refused of one does not keep others away
        (&["c 10.1.0.0/16", "a 10.0.0.0/8", "b 10.2.0.0/16"], &["c 10.1.0.0/16", "b 10.2.0.0/16"]),
        // nor what this cluster has itself
        (&["a 172.16.0.0/12", "b 172.17.0.0/16"], &["b 172.17.0.0/16"]),
        // a gateway that is down moves nothing to another cluster
        (&["(a 10.1.0.0/16)", "b 10.1.2.0/24"], &[]),
        (&["a 10.1.0.0/16", "(b 10.1.2.0/24)"], &["a 10.1.0.0/16"]),
        // two names of one cluster
        (&["c 10.1.0.0/16", "d 10.1.0.0/16"], &["c 10.1.0.0/16", "d 10.1.0.0/16"]),
        (&["c 10.1.2.0/24", "d 10.1.0.0/16", "b 10.1.3.0/24"], &["c 10.1.2.0/24", "b 10.1.3.0/24"]),
        (&["c 10.1.2.0/24", "d 10.1.0.0/16"], &["d 10.1.0.0/16", "c 10.1.2.0/24"]),
    ] {
        assert_eq!(of_three(offered).0, used, "{offered:?}");
        let reversed: Vec<_> = offered.iter().rev().copied().collect();
        assert_eq!(of_three(&reversed).0, used, "{reversed:?}");
    }
    let says = of_three(&["a 10.1.0.0/16", "b 10.1.2.0/24"]).1;
    assert_eq!(
        says,
        [
            "b 10.1.2.0/24 it overlaps 10.1.0.0/16 of cluster a, which joined earlier; give one of the two other addresses, or if \
          a is gone for good, remove what is left of it: ovnkube ic clean az a"
        ]
    );
}

proptest! {
    /// No two clusters share an address, whatever they offer; every prefix is used or refused, the first cluster's always used.
    #[test]
    fn clusters_share_no_address(offered in prop::collection::vec((0..3_usize, 0..=255_u8, 24..=29_u8), 1..12)) {
        let text = |(zone, last, length): &(usize, u8, u8)| {
            let prefix = IpNetwork::new([10, 0, 0, *last].into(), *length).unwrap();
            format!("{} {}", ["a", "b", "c"][*zone], Subnet::of(prefix))
        };
        let offered: Vec<String> = offered.iter().map(text).collect();
        let (used, refused) = of_three(&offered.iter().map(String::as_str).collect::<Vec<_>>());
        let parts: Vec<_> = used.iter().map(|text| text.split_once(' ').unwrap()).collect();
        let parsed: Vec<(&str, Subnet)> = parts.iter().map(|(zone, prefix)| (*zone, prefix.parse().unwrap())).collect();
        for (zone, prefix) in &parsed {
            let clash = parsed.iter().find(|(other, another)| other != zone && prefix.overlaps(*another));
            prop_assert!(clash.is_none(), "{} {} and {:?}", zone, prefix, clash);
        }
        for text in &offered {
            let is_refused = refused.iter().any(|refused| refused.starts_with(&format!("{text} ")));
            prop_assert!(used.contains(text) != is_refused, "{}", text);
            prop_assert!(!is_refused || !text.starts_with('c'), "{}", text);
        }
    }
}

#[test]
fn a_cluster_with_too_many_prefixes_keeps_the_first_ones() {
    let offered: Vec<_> = (0..10_000).map(|n| route(&format!("20.{}.{}.0/24", n / 256, n % 256))).collect();
    let judged = judge(offered, &Local::default(), &BTreeMap::new());
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
    let offered = ["10.244.0.0/16", "10.250.3.0/24", "10.249.0.0/16"].map(route);
    let judged = judge(offered.into(), &Local::default(), &closed);
    let used: Vec<_> = judged.used.keys().map(ToString::to_string).collect();
    assert_eq!(used, ["10.244.0.0/18", "10.244.128.0/17", "10.249.0.0/16"]);
    assert!(judged.refused.is_empty(), "it is no fault of the other cluster: {:?}", judged.refused);
    let closed: Vec<_> = judged.closed.iter().map(|r| format!("{} {}", r.prefix, r.reason)).collect();
    assert_eq!(closed, ["10.250.3.0/24 Subnet b of this cluster closes 10.250.0.0/15 with disableInterConnection"]);
}

/// However people and other clusters cut ranges, there is an end.
#[test]
fn pieces_are_bounded() {
    let closed = (0..1500).map(|n| (format!("10.0.{}.{}/32", n / 128, n % 128 * 2).parse().unwrap(), "a".into()));
    let closed: BTreeMap<Subnet, Name> = closed.collect();
    let offered: Vec<_> = (0..16_384).map(|n| route(&format!("10.0.0.0/{}", 9 + n % 16))).collect();
    let judged = judge(offered, &Local::default(), &closed);
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

/// Whoever has zones has them there.
#[test]
fn the_network_between_zones_is_not_offered() {
    let ranges = [ClusterSubnet { cidr: "100.80.0.0/12".parse().unwrap(), host_prefix: 23 }];
    let transit_subnets = vec!["100.88.0.0/16".parse().unwrap()];
    let settings = NetworkSettings { cluster_subnets: ranges.into(), transit_subnets, ..<_>::default() };
    let (offered, _) = World::new(settings, []).offered_ranges();
    let texts: Vec<_> = offered.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["100.80.0.0/13", "100.92.0.0/14", "100.90.0.0/15", "100.89.0.0/16"]);
}

fn wanted(data: &[(&str, &str)]) -> Interconnection {
    let Asks::On(wanted) = parse(data).asks else { panic!("{:?}", parse(data).bad) };
    *wanted
}

#[test]
fn a_wanted_interconnection_is_kept_as_text() {
    for data in [
        &[][..],
        &[
            ("ic-db-host", "10.0.0.1,fd00::1,ssl:db.example,ssl:[fd00::2]"),
            ("ic-nb-port", "7000"),
            ("auto-route", "false"),
        ],
        &[("host-route", "true")],
        &[("host-route", "false")],
        &[("gateway-mtu", "1300"), ("gw-nodes", "a,b,c.d"), ("az-name", "A-1.b")],
        &[("routes", "az2 10.17.0.0/16\naz3 fd00:18::/48, az2 10.18.0.0/16"), ("auto-route", "false")],
    ] {
        let wanted = wanted(data);
        let wanted = Box::new(wanted);
        assert_eq!(Asks::of_text(&wanted.text(true)), Asks::On(wanted.clone()));
        assert_eq!(Asks::of_text(&wanted.text(false)), Asks::Off(Some(wanted)));
    }
    for text in ["", "{", "[]", "{}", "{\"az-name\": 1}", "null", "\u{0}", "{\"enable-ic\": \"true\"}"] {
        assert_eq!(Asks::of_text(text), Asks::Unclear, "{text}");
    }
}

/// A master with what an earlier one has stored, and the ConfigMap that it finds: `None`, there is none.
fn next_master(stored: &str, config: Option<&[(&str, &str)]>) -> World {
    let mut world = World::new(NetworkSettings::default(), [Kind::Interconnection]);
    if let Some(data) = config {
        world.apply(Change::Interconnection(Some(parse(data))));
    }
    world.apply(Change::Synced(Kind::Interconnection));
    world.apply(Change::InterconnectionStored(stored.into()));
    world
}

#[test]
fn a_config_map_that_may_not_be_read_is_not_taken_for_one_that_is_gone() {
    let earlier = wanted(&[("az-name", "earlier")]);
    let start = || {
        let mut world = World::new(NetworkSettings::default(), [Kind::Interconnection]);
        world.apply(Change::InterconnectionHidden(true));
        world.apply(Change::Synced(Kind::Interconnection));
        assert!(!world.joined.is_known() && !world.joined.is_off());
        world.apply(Change::InterconnectionStored(earlier.text(true).into()));
        assert_eq!(world.joined.wanted(), Some(&earlier));
        world
    };
    // when it may be read, it is there or not
    let mut world = start();
    world.apply(Change::InterconnectionHidden(false));
    assert!(world.joined.is_off());
    assert_eq!(world.joined.left(), [&earlier]);
    let mut world = start();
    let other = [("ic-db-host", "10.9.9.9")];
    world.apply(Change::Interconnection(Some(parse(&other))));
    world.apply(Change::InterconnectionHidden(false));
    assert_eq!(world.joined.wanted(), Some(&wanted(&other)));
}

fn data<'a>(at: &'a [(&'a str, String); 1]) -> [(&'a str, &'a str); 1] {
    [(at[0].0, at[0].1.as_str())]
}

/// A move to other databases survives any restart until they are reached, and what is left behind until it is cleared.
#[test]
fn a_move_is_known_to_the_next_master() {
    let at = |host: &str| [("ic-db-host", host.to_owned())];
    let [a, b, c] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(at);
    let [in_a, in_b, in_c] = [&a, &b, &c].map(|at| wanted(&data(at)));
    let hosts = |all: &[Interconnection]| all.iter().map(|one| one.servers[0].host.to_string()).collect::<Vec<_>>();
    let again = |world: &World, at: &[(&str, String); 1]| next_master(&world.joined.kept().unwrap(), Some(&data(at)));

    let mut world = next_master("", Some(&data(&a)));
    assert_eq!((world.joined.present(), world.joined.kept()), (None, Some(in_a.text(true))));
    // edited while the master runs, then twice while none does
    world.apply(Change::Interconnection(Some(parse(&data(&b)))));
    for mut world in [again(&world, &b), again(&again(&world, &c), &b), again(&again(&world, &b), &b)] {
        assert_eq!((world.joined.present(), world.joined.wanted()), (Some(&in_a), Some(&in_b)));
        // back to where it is
        assert_eq!(again(&world, &a).joined.kept(), Some(in_a.text(true)));
        world.apply(Change::InterconnectionMoved(Box::new(in_b.clone()), false));
        assert_eq!((world.joined.present(), hosts(world.joined.left_behind())), (None, vec!["10.0.0.1".to_owned()]));
        let mut next = again(&world, &c);
        assert_eq!(
            (next.joined.present(), hosts(next.joined.left_behind())),
            (Some(&in_b), vec!["10.0.0.1".to_owned()])
        );
        next.apply(Change::InterconnectionLeft(Box::new(in_a.clone())));
        assert!(next.joined.left_behind().is_empty() && next.joined.present() == Some(&in_b));
        // off: all that may have rows of the cluster is left
        let mut off = next_master(&world.joined.kept().unwrap(), Some(&[("enable-ic", "false"), data(&c)[0]]));
        assert_eq!(off.joined.left().len(), 3);
        for left in [&in_b, &in_a] {
            off.apply(Change::InterconnectionLeft(Box::new(left.clone())));
        }
        assert_eq!((off.joined.left(), off.joined.kept()), (vec![&in_c], None));
    }
    // the same databases with other servers are not left
    let mut world = again(&world, &b);
    world.apply(Change::InterconnectionMoved(Box::new(in_b.clone()), true));
    assert_eq!(world.joined.kept(), Some(in_b.text(true)));
}

/// Marks in the shared databases are no proof of it.
#[test]
fn the_next_master_knows_the_earlier_names() {
    let of = |name| [("az-name", name)];
    let mut world = next_master("", Some(&of("a")));
    for name in ["b", "c", "a", "d"] {
        world.apply(Change::Interconnection(Some(parse(&of(name)))));
        assert!(!world.joined.is_stored(), "nothing is written under {name} before that is kept");
    }
    let names = |world: &World| world.joined.former().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(&world), ["a", "b", "c", "d"]);
    let text = world.joined.kept().unwrap();
    assert_eq!(names(&next_master(&text, Some(&of("d")))), ["a", "b", "c", "d"]);
    // the name is changed while no master runs; the oldest is forgotten in the end
    assert_eq!(names(&next_master(&text, Some(&of("e")))), ["a", "b", "c", "d", "e"]);
    let later = next_master(&next_master(&text, Some(&of("e"))).joined.kept().unwrap(), Some(&of("f")));
    assert_eq!(names(&later), ["a", "c", "d", "e", "f"]);
    // it leaves meanwhile
    let mut world = next_master(&text, None);
    assert_eq!(names(&world), ["a", "b", "c", "d"]);
    world.apply(Change::InterconnectionLeft(Box::new(wanted(&of("d")))));
    assert_eq!((names(&world), world.joined.kept()), (Vec::new(), None));
    // what a person writes there is no name of a port of ours
    let text = text.replace("b,c,a", "rtos-worker,cr,a b,x");
    assert_eq!(names(&next_master(&text, Some(&of("d")))), ["d", "x"]);
}

#[test]
fn of_two_switches_with_one_subnet_the_one_that_was_there_first_is_used() {
    let switch = |name: &str, key: u32| {
        let own = OwnPort {
            zone: "az1".into(),
            mac: crate::Mac::of([169, 254, 100, 1].into()),
            addresses: vec!["169.254.100.1/24".parse().unwrap()],
            key: None,
        };
        (Name::from(name), TransitSwitch { key, own: vec![own], remote: BTreeMap::new() })
    };
    let mut world = next_master("", Some(&[]));
    for (keys, used) in [([10, 11], "ts"), ([11, 10], "backup")] {
        let switches = [switch("ts", keys[0]), switch("backup", keys[1])].into();
        world.apply(Change::Peers(Box::new(Peers { switches, ..Peers::default() })));
        let is_used = |name: &str| world.transit_switch(&name.into()).is_some();
        assert_eq!(["ts", "backup"].map(is_used), ["ts" == used, "backup" == used]);
    }
}

#[test]
fn what_an_earlier_master_has_stored_is_used_when_the_config_map_cannot_be() {
    let (bad, off, other) =
        ([("gw-nodes", "a_b"), ("az-name", "-")], [("enable-ic", "false")], [("ic-db-host", "10.9.9.9")]);
    let earlier = wanted(&[("az-name", "earlier")]);
    let (text, leaves) = (earlier.text(true), earlier.text(false));
    assert_eq!(next_master(&text, Some(&bad)).joined.wanted(), Some(&earlier));
    // one that was leaving goes on leaving
    let world = next_master(&leaves, Some(&bad));
    assert!(world.joined.is_off() && world.joined.is_stored());
    assert_eq!(world.joined.left(), [&earlier]);
    assert!(next_master("", Some(&bad)).joined.wanted().is_none());
    assert!(!next_master("nonsense", Some(&bad)).joined.is_known());
    let world = next_master(&text, Some(&other));
    assert!(world.joined.wanted() == Some(&wanted(&other)) && !world.joined.is_stored());

    // it has left, but the databases may still have rows of it
    let mut world = next_master(&text, None);
    assert_eq!((world.joined.left(), world.joined.kept()), (vec![&earlier], Some(leaves.clone())));
    assert_eq!(next_master(&text, Some(&off)).joined.left(), [&earlier]);
    let elsewhere = [off[0], other[0]];
    assert_eq!(next_master(&text, Some(&elsewhere)).joined.left().len(), 2);
    world.apply(Change::InterconnectionLeft(Box::new(wanted(&other))));
    assert!(!world.joined.is_stored());
    world.apply(Change::InterconnectionStored(leaves.into()));
    assert!(world.joined.is_stored());
    world.apply(Change::InterconnectionLeft(Box::new(earlier)));
    assert_eq!((world.joined.left().len(), world.joined.kept(), world.joined.is_stored()), (0, None, false));
    // the row still has it for a moment
    world.apply(Change::InterconnectionStored(text.as_str().into()));
    world.apply(Change::InterconnectionStored("".into()));
    assert!(world.joined.kept().is_none() && world.joined.is_stored());
}

/// People are told at once of a gateway that is no node any more, and that it is one again.
#[test]
fn a_gateway_whose_node_goes_is_named_at_once() {
    let mut world = next_master("", Some(&[]));
    let node = || {
        let meta = Meta { uid: "u", created: 0, labels: &BTreeMap::new(), annotations: &BTreeMap::new() };
        Some(Box::new(Node::parse(&meta, NodeFields::default())))
    };
    let mut told = |node| {
        let affected = world.apply(Change::Node("a".into(), node));
        let notices = affected.iter().flat_map(|affected| world.notices(affected));
        notices.filter(|notice| notice.reason == "UnknownGateway" && notice.message.contains("cannot use a of")).count()
    };
    for _ in 0..2 {
        assert_eq!(told(node()), 0);
        assert_eq!(told(None), 1);
    }
}
