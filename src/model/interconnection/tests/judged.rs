//! Prefixes of other clusters are judged again only where it may matter. What is found must be the same.

use std::collections::BTreeMap;
use std::net::IpAddr;

use proptest::prelude::*;

use super::{closing, parse, route, with_meta};
use crate::{Change, Kind, Name, NetworkSettings, Node, NodeFields, PeerCluster, PeerRoute, Peers, Subnet, World};

/// Ranges that contain each other, overlap nothing, and lie in the pods' own.
const RANGES: [&str; 8] = [
    "10.0.0.0/14",
    "10.1.0.0/16",
    "10.1.2.0/24",
    "10.1.2.128/25",
    "10.2.0.0/16",
    "10.128.4.0/23",
    "fd00:1::/48",
    "fd00:1:0:2::/64",
];
const ADDRESSES: [&str; 3] = ["10.1.2.3", "10.2.0.1", "172.18.0.2"];

#[derive(Debug, Clone)]
enum Event {
    /// A Subnet closes some ranges, or is gone.
    Subnet(usize, Vec<usize>),
    /// A node has an address, and another label each time; or it is gone.
    Node(usize, Option<(usize, u8)>),
    /// The other clusters offer these, by one or two switches.
    Peers(Vec<(bool, usize, bool)>),
    /// People declare these.
    Declared(Vec<usize>),
}

fn event() -> impl Strategy<Value = Event> {
    let ranges = || prop::collection::vec(0..RANGES.len(), 0..3);
    let node = prop::option::of((0..ADDRESSES.len(), 0..3_u8));
    prop_oneof![
        (0..3_usize, ranges()).prop_map(|(subnet, closed)| Event::Subnet(subnet, closed)),
        (0..2_usize, node).prop_map(|(name, node)| Event::Node(name, node)),
        prop::collection::vec((any::<bool>(), 0..RANGES.len(), any::<bool>()), 0..4).prop_map(Event::Peers),
        ranges().prop_map(Event::Declared),
    ]
}

fn change(event: &Event) -> Change {
    match event {
        Event::Subnet(subnet, closed) => {
            let text: Vec<&str> = closed.iter().map(|range| RANGES[*range]).collect();
            let subnet: Name = format!("subnet{subnet}").into();
            Change::InterconnectionSubnet(subnet, (!closed.is_empty()).then(|| closing(&text.join(","))))
        }
        Event::Node(name, node) => {
            let of = |(address, label): &(usize, u8)| {
                let addresses: [IpAddr; 1] = [ADDRESSES[*address].parse().unwrap()];
                let fields = NodeFields { addresses: &addresses, ..NodeFields::default() };
                let mut node = with_meta(|meta| Node::parse(meta, fields));
                node.labels = [("label".to_owned(), label.to_string())].into();
                Box::new(node)
            };
            Change::Node(format!("n{name}").into(), node.as_ref().map(of))
        }
        Event::Peers(offered) => Change::Peers(Box::new(peers(offered))),
        Event::Declared(ranges) => {
            let text: Vec<String> = ranges.iter().map(|range| format!("az2 {}", RANGES[*range])).collect();
            Change::Interconnection(Some(parse(&[("routes", &text.join(","))])))
        }
    }
}

fn peers(offered: &[(bool, usize, bool)]) -> Peers {
    let mut peers = Peers::default();
    for (place, zone) in ["az2", "az3"].into_iter().enumerate() {
        peers.clusters.insert(zone.into(), PeerCluster { place, ..PeerCluster::default() });
    }
    for (is_second, range, has_two) in offered {
        let zone: Name = if *is_second { "az3" } else { "az2" }.into();
        let one = PeerRoute { zone, ..route(RANGES[*range]) };
        if *has_two {
            let next_hop = if one.prefix.is_ipv6() { "fe80:a9fe:65::2" } else { "169.254.101.2" };
            peers.waiting.push(PeerRoute { switch: "ts1".into(), next_hop: next_hop.parse().unwrap(), ..one.clone() });
        }
        peers.routes.push(one);
    }
    peers.routes.sort();
    peers.waiting.sort();
    peers
}

fn world<'a>(changes: impl IntoIterator<Item = &'a Event>) -> World {
    let mut world = World::new(NetworkSettings::default(), [Kind::Interconnection]);
    world.apply(Change::Interconnection(Some(parse(&[]))));
    world.apply(Change::Synced(Kind::Interconnection));
    for event in changes {
        world.apply(change(event));
    }
    world
}

/// Of each thing the last event, and what the other clusters offer at the end: then all is judged.
fn at_once(events: &[Event]) -> World {
    let mut last: BTreeMap<(u8, usize), &Event> = BTreeMap::new();
    for event in events {
        let key = match event {
            Event::Subnet(subnet, _) => (0, *subnet),
            Event::Node(name, _) => (1, *name),
            Event::Declared(_) => (2, 0),
            Event::Peers(_) => (3, 0),
        };
        last.insert(key, event);
    }
    world(last.into_values())
}

/// All that is found of prefixes.
fn found(world: &World) -> String {
    let joined = &world.joined;
    let refused: Vec<_> = joined.refused().collect();
    let closed: Vec<_> = joined.closed_prefixes().collect();
    let declared: Vec<_> = joined.declared().collect();
    let counts: Vec<_> = joined.clusters().collect();
    format!("{:#?}", (joined.prefixes(), refused, closed, declared, counts))
}

proptest! {
    #[test]
    fn what_is_found_does_not_depend_on_the_order(events in prop::collection::vec(event(), 1..24)) {
        prop_assert_eq!(found(&world(&events)), found(&at_once(&events)));
    }
}

/// Both switches of a prefix count, and lead there.
#[test]
fn each_route_of_a_prefix_is_used() {
    let mut peers = peers(&[(false, 4, true)]);
    peers.routes.append(&mut peers.waiting);
    peers.routes.sort();
    let mut world = world([]);
    world.apply(Change::Peers(Box::new(peers)));
    let range: Subnet = RANGES[4].parse().unwrap();
    let next_hops: Vec<String> = world.joined.prefixes()[&range].keys().map(ToString::to_string).collect();
    assert_eq!(next_hops, ["169.254.100.2", "169.254.101.2"]);
    let used: Vec<usize> = world.joined.clusters().map(|(_, _, counts)| counts.used).collect();
    assert_eq!(used, [2, 0]);
}
