//! Routes that people declare.

use std::collections::BTreeMap;
use std::net::IpAddr;

use proptest::prelude::*;

use super::{closing, of, parse, route};
use crate::{
    Affected, Asks, Change, ClusterSubnet, Kind, Local, LocalRange, Meta, Name, NetworkSettings, Node, NodeFields,
    OwnPort, PeerCluster, PeerPort, PeerRoute, Peers, Subnet, TransitSwitch, World,
};

fn routes(text: &str) -> (Vec<String>, Vec<String>) {
    let config = parse(&[("routes", text)]);
    let Asks::On(wanted) = config.asks else { panic!("{:?}", config.bad) };
    let routes = wanted.routes.iter().map(|(prefix, zone)| format!("{zone} {prefix}"));
    (routes.collect(), config.bad.iter().map(ToString::to_string).collect())
}

#[test]
fn entries_stand_on_lines_or_between_commas() {
    let text = "az2 10.17.0.0/16\n\n  az-3.b\tfd00:18::1/48 ,az2 10.18.0.0/16,az2 10.17.0.9/16\r\n";
    assert_eq!(
        routes(text),
        (vec!["az2 10.17.0.0/16".into(), "az2 10.18.0.0/16".into(), "az-3.b fd00:18::/48".into()], vec![])
    );
    assert_eq!(routes(" \n"), (vec![], vec![]));
}

/// All other entries, and all other keys, count.
#[test]
fn a_bad_entry_is_named_and_stops_nothing() {
    for (bad, says) in [
        ("az3", "has \"az3\"; write the az-name of a cluster and a prefix"),
        ("az3 10.18.0.0", "has \"az3 10.18.0.0\"; write the az-name"),
        ("az3 10.18.0.0/33", "write the az-name"),
        ("10.18.0.0/16 az3", "write the az-name"),
        ("az3 10.18.0.0/16 10.19.0.0/16", "write the az-name"),
        ("a_z 10.18.0.0/16", "write the az-name"),
        ("az3=10.18.0.0/16", "write the az-name"),
        ("az1 10.18.0.0/16", "az1 is this cluster; write the az-name of another one"),
        ("az3 0.0.0.0/0", ": it is everything; write the addresses"),
        ("az3 ::/0", ": it is everything; write"),
        ("az3 fe80:1::/32", ": its addresses are link-local; write"),
        ("az3 10.17.0.0/16", "has 10.17.0.0/16 for az2 and for az3; remove one of the two"),
    ] {
        let (used, said) = routes(&format!("az2 10.17.0.0/16,{bad},az2 10.20.0.0/16"));
        assert_eq!(used, ["az2 10.17.0.0/16", "az2 10.20.0.0/16"], "{bad}");
        assert!(matches!(&said[..], [one] if one.starts_with("routes has ") && one.contains(says)), "{bad}: {said:?}");
    }
}

#[test]
fn there_is_an_end_to_entries() {
    let many: Vec<String> = (0..100_000).map(|n| format!("az2 10.{}.{}.0/24", n / 256 % 256, n % 256)).collect();
    let (used, said) = routes(&many.join("\n"));
    assert_eq!((used.len(), said.len()), (256, 1));
    assert!(said[0].contains("more than 256 routes"), "{said:?}");
    let (used, said) = routes(&"nonsense,".repeat(100_000));
    assert_eq!((used.len(), said.len()), (0, 6));
    assert!(said[5].contains("99995 more entries that cannot be used; write"), "{said:?}");
    assert!(routes(&"x".repeat(1 << 20)).1[0].len() < 300);
}

/// `az2` and `az3` have a port in the switches `ts` and `ts1` each, `az4` one that no gateway has, `az5` none.
fn peers() -> Peers {
    let port = |zone: &str, switch: &str, address: &str| PeerPort {
        zone: zone.into(),
        switch: switch.into(),
        address: address.parse().unwrap(),
        open: zone != "az4",
    };
    let ports = [
        ("az2", "ts", "169.254.100.2"),
        ("az2", "ts", "fe80:a9fe:64::2"),
        ("az2", "ts1", "169.254.101.2"),
        ("az3", "ts", "169.254.100.3"),
        ("az4", "ts", "169.254.100.4"),
    ];
    let clusters = ["az2", "az3", "az4", "az5"].map(|zone| (zone.into(), PeerCluster::default()));
    Peers {
        ports: ports.map(|(zone, switch, address)| port(zone, switch, address)).into(),
        clusters: clusters.into(),
        ..Peers::default()
    }
}

fn declared(text: &str) -> BTreeMap<Subnet, Name> {
    let Asks::On(wanted) = parse(&[("routes", text)]).asks else { panic!("{text}") };
    wanted.routes
}

fn offers(zone: &str, prefix: &str, next_hop: &str) -> PeerRoute {
    PeerRoute { zone: zone.into(), next_hop: next_hop.parse().unwrap(), ..route(prefix) }
}

/// `prefix next-hop…`, with `*` after those that a cluster offers.
fn used(prefixes: &BTreeMap<Subnet, BTreeMap<IpAddr, Option<Name>>>) -> Vec<String> {
    let line = |(prefix, hops): (&Subnet, &BTreeMap<IpAddr, Option<Name>>)| {
        let hops = hops.iter().map(|(hop, id)| format!("{hop}{}", if id.is_some() { "*" } else { "" }));
        format!("{prefix} {}", hops.collect::<Vec<_>>().join(" "))
    };
    prefixes.iter().map(line).collect()
}

#[test]
fn a_declared_prefix_is_reached_by_all_open_ports_of_its_family() {
    let text = "az2 10.17.0.0/16,az2 fd00:17::/48,az3 10.18.0.0/16,az4 10.19.0.0/16,az5 10.20.0.0/16,az6 10.21.0.0/16,az3 fd00:18::/48";
    let judged = of(&peers(), &Local::default(), &BTreeMap::new(), &declared(text));
    let ways =
        ["10.17.0.0/16 169.254.100.2 169.254.101.2", "10.18.0.0/16 169.254.100.3", "fd00:17::/48 fe80:a9fe:64::2"];
    assert_eq!(used(&judged.used), ways);
    let state = |prefix: &str| {
        let declared = &judged.declared[&prefix.parse().unwrap()];
        (declared.used, declared.problem.clone().unwrap_or_default())
    };
    assert_eq!(state("10.17.0.0/16"), (true, String::new()));
    for waits in ["10.19.0.0/16", "10.20.0.0/16"] {
        assert_eq!(state(waits), (false, String::new()));
    }
    let unknown = "it waits for cluster az6, which has not joined; correct the name, or have that cluster join";
    assert_eq!(state("10.21.0.0/16"), (false, unknown.into()));
    let family = "cluster az3 has no IPv6 address in a transit switch; give the switches a subnet of IPv6";
    assert_eq!(state("fd00:18::/48"), (false, family.into()));
}

#[test]
fn a_declared_prefix_that_would_take_traffic_away_is_refused() {
    let local = Local {
        ranges: vec![LocalRange { range: "10.128.0.0/14".parse().unwrap(), purpose: "pods" }],
        nodes: ["172.18.0.2".parse().unwrap()].into(),
        ..Local::default()
    };
    let closed = [("10.30.0.0/16".parse().unwrap(), Name::from("private"))].into();
    for (prefix, says) in [
        ("10.0.0.0/8", "it overlaps 10.128.0.0/14, which this cluster uses for pods; give one"),
        ("10.129.3.0/24", "it overlaps 10.128.0.0/14, which this cluster uses for pods; give one"),
        ("172.18.0.0/16", "it contains 172.18.0.2, the address of a node of this cluster; give one"),
        ("10.30.7.0/24", "Subnet private of this cluster closes 10.30.0.0/16"),
    ] {
        let judged = of(&peers(), &local, &closed, &declared(&format!("az2 {prefix},az2 10.17.0.0/16")));
        assert_eq!(used(&judged.used), ["10.17.0.0/16 169.254.100.2 169.254.101.2"], "{prefix}");
        let problem = judged.declared[&prefix.parse().unwrap()].problem.clone().unwrap();
        assert!(problem.contains(says), "{problem}");
    }
    // nothing is left of it
    let closed_half = [("10.30.0.0/17".parse().unwrap(), Name::from("private"))].into();
    let judged = of(&peers(), &local, &closed_half, &declared("az2 10.30.0.0/16,az3 10.30.128.0/17"));
    assert_eq!(used(&judged.used), ["10.30.128.0/17 169.254.100.3"]);
    let problem = judged.declared[&"10.30.0.0/16".parse().unwrap()].problem.clone().unwrap();
    assert!(problem.contains("leave nothing of it; remove it"), "{problem}");
    // of a larger one, the rest is used
    let judged = of(&peers(), &Local::default(), &closed, &declared("az3 10.30.0.0/15"));
    assert_eq!(used(&judged.used), ["10.31.0.0/16 169.254.100.3"]);
}

/// An agent of a node may say anything of its host.
#[test]
fn agents_of_nodes_refuse_no_declared_prefix() {
    let local = Local {
        hosts: ["10.17.3.4".parse().unwrap()].into(),
        networks: ["10.16.0.0/14".parse().unwrap()].into(),
        ..Local::default()
    };
    let peers = Peers { routes: vec![offers("az2", "10.17.0.0/16", "169.254.100.2")], ..peers() };
    let text = "az2 10.17.0.0/16,az3 10.18.0.0/16,az2 10.20.0.0/16";
    let judged = of(&peers, &local, &BTreeMap::new(), &declared(text));
    let ways = [
        "10.17.0.0/16 169.254.100.2 169.254.101.2",
        "10.18.0.0/16 169.254.100.3",
        "10.20.0.0/16 169.254.100.2 169.254.101.2",
    ];
    assert_eq!(used(&judged.used), ways);
    assert_eq!(judged.refused.len(), 1, "what is only offered: {:?}", judged.refused);
    let doubts: Vec<_> = judged.declared.values().map(|one| one.doubt.as_deref().unwrap_or_default()).collect();
    let says = ["contains 10.17.3.4, the address of a node", "lies in 10.16.0.0/14, a network that nodes", ""];
    assert!(doubts.iter().zip(says).all(|(doubt, says)| doubt.starts_with(says)), "{doubts:?}");
    assert!(judged.declared.values().all(|one| one.used && one.problem.is_none()), "{:?}", judged.declared);
}

#[test]
fn what_is_learned_too_is_one_route() {
    let hop = "169.254.100.2";
    for (offered, text, ways) in [
        (offers("az2", "10.17.0.0/16", hop), "az2 10.17.0.0/16", &["10.17.0.0/16 169.254.100.2* 169.254.101.2"][..]),
        (
            offers("az2", "10.16.0.0/14", hop),
            "az2 10.17.0.0/16",
            &["10.16.0.0/14 169.254.100.2*", "10.17.0.0/16 169.254.100.2 169.254.101.2"],
        ),
        // it is behind the cluster that people say
        (offers("az2", "10.17.0.0/16", hop), "az3 10.17.0.0/16", &["10.17.0.0/16 169.254.100.3"]),
        (offers("az2", "10.17.3.0/24", hop), "az3 10.17.0.0/16", &["10.17.0.0/16 169.254.100.3"]),
        (offers("az2", "10.17.0.0/16", hop), "az6 10.17.0.0/16", &[]),
        // the longest says so
        (
            offers("az2", "10.17.3.0/24", hop),
            "az3 10.17.0.0/16,az2 10.17.2.0/23",
            &["10.17.0.0/16 169.254.100.3", "10.17.2.0/23 169.254.100.2 169.254.101.2", "10.17.3.0/24 169.254.100.2*"],
        ),
        (
            offers("az2", "10.16.0.0/14", hop),
            "az3 10.17.0.0/16",
            &["10.16.0.0/14 169.254.100.2*", "10.17.0.0/16 169.254.100.3"],
        ),
    ] {
        let all = Peers { routes: vec![offered.clone()], ..peers() };
        let judged = of(&all, &Local::default(), &BTreeMap::new(), &declared(text));
        assert_eq!(used(&judged.used), ways, "{} and {text}", offered.prefix);
        let is_used = used(&judged.used).iter().any(|line| line.contains('*'));
        assert_eq!(judged.refused.is_empty(), is_used, "{:?}", judged.refused);
        let says = "key routes of this cluster says that 10.17.0.0/16 is behind az";
        assert!(judged.refused.iter().all(|refused| refused.reason.contains(says)), "{:?}", judged.refused);
    }
}

/// Of what is closed here, and of what people say is behind another cluster.
#[test]
fn what_is_not_for_use_here_keeps_no_other_prefix_away() {
    let routes = [("az2", "10.17.0.0/24", "169.254.100.2"), ("az3", "10.17.0.0/16", "169.254.100.3")];
    let routes = routes.map(|(zone, prefix, next_hop)| offers(zone, prefix, next_hop));
    let peers = Peers { routes: routes.into(), ..peers() };
    let private: BTreeMap<Subnet, Name> = [("10.17.0.0/24".parse().unwrap(), "private".into())].into();
    for (closed, text, refused) in [(private, "", 0), (BTreeMap::new(), "az3 10.17.0.0/24", 1)] {
        let judged = of(&peers, &Local::default(), &closed, &declared(text));
        let used = used(&judged.used);
        assert!(used.iter().any(|line| line.ends_with(" 169.254.100.3*")), "{used:?}");
        assert!(used.iter().all(|line| !line.contains("169.254.100.2")), "{used:?}");
        assert_eq!(judged.refused.len(), refused, "{:?}", judged.refused);
    }
}

proptest! {
    /// Whatever people declare and clusters offer, each address is behind one cluster: that of the longest declared prefix around it.
    #[test]
    fn no_address_is_behind_two_clusters(
        wanted in prop::collection::vec((2..4_u8, 0..=255_u8, 24..=29_u8), 0..8),
        offered in prop::collection::vec((2..4_u8, 0..=255_u8, 24..=29_u8), 0..8),
        closed in prop::collection::vec((0..=255_u8, 26..=30_u8), 0..3),
    ) {
        let subnet = |last: u8, length: u8| -> Subnet { format!("10.0.0.{last}/{length}").parse::<ipnetwork::IpNetwork>().map(Subnet::of).unwrap() };
        let wanted: BTreeMap<Subnet, Name> = wanted.iter().map(|(zone, last, length)| (subnet(*last, *length), format!("az{zone}").into())).collect();
        let routes = offered.iter().map(|(zone, last, length)| offers(&format!("az{zone}"), &subnet(*last, *length).to_string(), &format!("169.254.100.{zone}")));
        let closed: BTreeMap<Subnet, Name> = closed.iter().map(|(last, length)| (subnet(*last, *length), "c".into())).collect();
        let judged = of(&Peers { routes: routes.collect(), ..peers() }, &Local::default(), &closed, &wanted);
        let hop_of = |zone: &str| if zone == "az2" { &["169.254.100.2", "169.254.101.2"][..] } else { &["169.254.100.3"] };
        for last in 0..=255_u8 {
            let ip = [10, 0, 0, last].into();
            let longest = |all: &mut dyn Iterator<Item = Subnet>| all.filter(|prefix| prefix.contains(ip)).max_by_key(|prefix| prefix.prefix());
            let way = longest(&mut judged.used.keys().copied());
            let says = longest(&mut wanted.keys().copied());
            let is_closed = closed.keys().any(|range| range.contains(ip));
            prop_assert!(way.is_none() || !is_closed, "{} is closed", ip);
            let Some(way) = way else { prop_assert!(says.is_none() || is_closed, "{} has no way", ip); continue };
            let hops: Vec<String> = judged.used[&way].keys().map(ToString::to_string).collect();
            let fits = says.is_none_or(|says| hops.iter().all(|hop| hop_of(&wanted[&says]).contains(&hop.as_str())));
            prop_assert!(fits && (says.is_some() || hops.len() == 1), "{} by {} over {:?}", ip, way, hops);
        }
    }
}

/// They need no exchange of prefixes, follow the databases, and go when people remove them, also while the databases are away.
#[test]
fn declared_routes_come_and_go() {
    let range = ClusterSubnet { cidr: "10.128.0.0/14".parse().unwrap(), host_prefix: 23 };
    let mut world =
        World::new(NetworkSettings { cluster_subnets: [range].into(), ..<_>::default() }, [Kind::Interconnection]);
    let configure = |world: &mut World, auto: &str, text: &str| {
        world.apply(Change::Interconnection(Some(parse(&[("auto-route", auto), ("routes", text)]))));
        let says =
            world.notices(&Affected::Interconnection).into_iter().filter(|notice| notice.reason == "RouteNotUsed");
        (used(world.joined.prefixes()), says.map(|notice| notice.message).collect::<Vec<_>>())
    };
    let none = (vec![], vec![]);
    assert_eq!(configure(&mut world, "false", "az2 10.17.0.0/16"), none);
    let own = OwnPort {
        zone: "az1".into(),
        mac: crate::Mac::of([169, 254, 100, 1].into()),
        addresses: vec!["169.254.100.1/24".parse().unwrap()],
        key: None,
    };
    let switch = TransitSwitch { key: 1, own: vec![own], remote: BTreeMap::new() };
    let mut now = Peers {
        switches: [("ts".into(), switch)].into(),
        routes: vec![offers("az2", "10.40.0.0/16", "169.254.100.2")],
        ..peers()
    };
    world.apply(Change::Peers(Box::new(now.clone())));
    assert_eq!(used(world.joined.prefixes()), ["10.17.0.0/16 169.254.100.2 169.254.101.2"]);
    // another address
    now.ports[0].address = "169.254.100.9".parse().unwrap();
    world.apply(Change::Peers(Box::new(now)));
    assert_eq!(used(world.joined.prefixes()), ["10.17.0.0/16 169.254.100.9 169.254.101.2"]);
    let said = configure(&mut world, "true", "az9 10.17.0.0/16,az2 10.128.7.0/24").1;
    assert_eq!(
        said,
        [
            "not all of key routes is used: 10.17.0.0/16 behind az9: it waits for cluster az9, which has not joined; correct the name, \
         or have that cluster join; 10.128.7.0/24 behind az2: it overlaps 10.128.0.0/14, which this cluster uses for pods; give one of \
         the clusters other addresses"
        ]
    );
    assert_eq!(used(world.joined.prefixes()), ["10.40.0.0/16 169.254.100.2*"]);
    assert_eq!(configure(&mut world, "false", ""), none);
    world.apply(Change::InterconnectionSubnet("c".into(), Some(closing("10.17.128.0/17"))));
    assert_eq!(configure(&mut world, "false", "az3 10.17.0.0/16").0, ["10.17.0.0/17 169.254.100.3"]);
    world.apply(Change::Interconnection(None));
    assert!(world.joined.prefixes().is_empty() && world.joined.declared().next().is_none());
}

/// With an Event only, a node that writes another cluster's addresses takes a declared route away from nobody.
#[test]
fn nodes_refuse_no_declared_route() {
    let mut world = World::new(NetworkSettings::default(), [Kind::Node, Kind::Interconnection]);
    world.apply(Change::Interconnection(Some(parse(&[("auto-route", "true"), ("routes", "az2 10.17.0.0/16")]))));
    let routes = ["10.17.3.0/24", "10.40.1.0/24"].map(|prefix| offers("az2", prefix, "169.254.100.2"));
    world.apply(Change::Peers(Box::new(Peers { routes: routes.into(), ..peers() })));
    let all =
        ["10.17.0.0/16 169.254.100.2 169.254.101.2", "10.17.3.0/24 169.254.100.2*", "10.40.1.0/24 169.254.100.2*"];
    assert_eq!(used(world.joined.prefixes()), all);

    let says = |cidrs: &[&str]| {
        let annotations = [("k8s.ovn.org/host-cidrs".to_owned(), serde_json::json!(cidrs).to_string())].into();
        let meta = Meta { uid: "u", created: 0, labels: &BTreeMap::new(), annotations: &annotations };
        let known = ["172.18.0.2".parse().unwrap()];
        Node::parse(&meta, NodeFields { addresses: &known, ..NodeFields::default() })
    };
    // a network around none of its addresses counts for nothing
    world.apply(Change::Node("n1".into(), Some(Box::new(says(&["10.41.0.1/14"])))));
    assert_eq!(used(world.joined.prefixes()), all);
    world.apply(Change::Node("n1".into(), Some(Box::new(says(&["10.17.3.1/16"])))));
    assert_eq!(used(world.joined.prefixes()), [all[0], all[2]]);
    let notices = world.notices(&Affected::Interconnection);
    let said = notices.into_iter().filter(|notice| notice.reason == "RouteDoubtful").map(|notice| notice.message);
    assert_eq!(
        said.collect::<Vec<_>>(),
        [
            "agents of nodes contradict key routes, which counts: 10.17.0.0/16 behind az2: it contains 10.17.3.1, the address of a node \
             of this cluster; correct it, or see what runs on that node"
        ]
    );
}
