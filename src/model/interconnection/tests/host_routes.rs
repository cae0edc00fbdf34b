//! What hosts are told.

use std::collections::BTreeMap;

use super::{parse, route};
use crate::{
    Affected, Change, HostRoutes, Kind, MOST_HOST_ROUTES, Meta, NetworkSettings, Node, NodeFields, PeerCluster,
    PeerPort, PeerRoute, Peers, World, keys,
};

fn world(changed: &[(&str, &str)]) -> World {
    let mut world = World::new(NetworkSettings::default(), [Kind::Interconnection]);
    world.apply(Change::Interconnection(Some(parse(changed))));
    world.apply(Change::Synced(Kind::Interconnection));
    world
}

fn told(world: &World) -> Option<String> {
    Some(world.host_routes()?.get(keys::HOST_ROUTES)?.trim_end().replace('\n', ","))
}

fn said(world: &World) -> Vec<String> {
    let notices = world.notices(&Affected::Interconnection).into_iter();
    notices.filter(|notice| notice.reason == "HostRouteRefused").map(|notice| notice.message).collect()
}

fn peers(routes: impl IntoIterator<Item = PeerRoute>) -> Change {
    Change::Peers(Box::new(Peers { routes: routes.into_iter().collect(), ..Peers::default() }))
}

fn of(zone: &str, n: usize, prefix: &str) -> PeerRoute {
    PeerRoute { zone: zone.into(), id: format!("{zone}-{n}").into(), ..route(prefix) }
}

fn node(label: Option<&str>) -> Change {
    let labels = label.map(|value| (keys::HOST_ROUTE.to_owned(), value.to_owned())).into_iter().collect();
    let meta = Meta { uid: "1", created: 0, labels: &labels, annotations: &<_>::default() };
    Change::Node("n1".into(), Some(Box::new(Node::parse(&meta, NodeFields::default()))))
}

#[test]
fn prefixes_are_told_with_their_clusters() {
    let mut world =
        world(&[("host-route", "true"), ("routes", "az3 10.17.0.0/16"), ("ic-db-host", "172.19.0.5,db.example")]);
    assert_eq!(told(&world), None, "until it is known what others offer, hosts keep what they have");
    let servers = &world.host_routes().unwrap()[keys::HOST_ROUTE_SERVERS];
    assert_eq!(servers, "172.19.0.5,db.example", "but this is known");
    let port = PeerPort { zone: "az3".into(), switch: "ts".into(), address: [169, 254, 100, 3].into(), open: true };
    let mut new = Peers { ports: vec![port], ..Peers::default() };
    new.clusters.insert("az3".into(), PeerCluster::default());
    new.routes = vec![of("az2", 0, "10.244.0.0/16"), of("az2", 1, "172.19.0.0/16"), of("az2", 2, "fd00:244::/48")];
    world.apply(Change::Peers(Box::new(new)));
    let all = told(&world).unwrap();
    assert_eq!(all, "az3 10.17.0.0/16,az2 10.244.0.0/16,az2 172.19.0.0/16,az2 fd00:244::/48");
    let (read, bad) = HostRoutes::read(&world.host_routes().unwrap()).unwrap();
    assert_eq!(bad, [""; 0]);
    assert_eq!(read.prefixes[&"fd00:244::/48".parse().unwrap()].as_ref(), "az2");
    assert_eq!(read.servers, ["172.19.0.5".parse().unwrap()].into());
}

#[test]
fn off_is_told_only_to_those_who_look() {
    for config in [Some(parse(&[])), Some(parse(&[("enable-ic", "false"), ("host-route", "true")])), None] {
        let mut world = world(&[]);
        world.apply(peers([of("az2", 0, "10.244.0.0/16")]));
        assert_eq!(told(&world), None);
        world.apply(node(Some("false")));
        assert_eq!(told(&world), None);
        world.apply(Change::Interconnection(Some(parse(&[("host-route", "true")]))));
        assert_eq!(told(&world).as_deref(), Some("az2 10.244.0.0/16"));
        world.apply(node(Some("true")));
        // a value that cannot be used changes nothing
        world.apply(Change::Interconnection(Some(parse(&[("host-route", "maybe")]))));
        assert_eq!(told(&world).as_deref(), Some("az2 10.244.0.0/16"));
        let affected = world.apply(Change::Interconnection(config));
        assert!(affected.contains(&Affected::Node("n1".into())), "its label is planned again");
        assert_eq!(told(&world).as_deref(), Some(""));
        world.apply(node(None));
        assert_eq!(world.host_routes(), None);
    }
    // nobody knows what is wanted
    let mut world = World::new(NetworkSettings::default(), [Kind::Interconnection]);
    world.apply(Change::InterconnectionHidden(true));
    world.apply(Change::Synced(Kind::Interconnection));
    world.apply(node(Some("true")));
    assert_eq!(told(&world), None);
    let affected = world.apply(Change::InterconnectionHidden(false));
    assert!(affected.contains(&Affected::Node("n1".into())), "{affected:?}");
    assert_eq!(told(&world).as_deref(), Some(""));
}

/// A cluster with very many prefixes leaves the others theirs.
#[test]
fn clusters_get_their_share() {
    let mut world = world(&[("host-route", "true")]);
    let many = (0..500).map(|n| of("az2", n, &format!("20.{}.{}.0/24", n / 256, n % 256)));
    let few = (0..3).map(|n| of("az3", n, &format!("30.0.{n}.0/24")));
    world.apply(peers(many.chain(few)));
    let read = HostRoutes::read(&world.host_routes().unwrap()).unwrap().0.prefixes;
    let share = |zone: &str| read.values().filter(|of| of.as_ref() == zone).count();
    assert_eq!((read.len(), share("az3")), (MOST_HOST_ROUTES, 3));
    assert!(
        matches!(&said(&world)[..], [said] if said.starts_with("hosts get no routes to 247 of")),
        "{:?}",
        said(&world)
    );
}

#[test]
fn what_cannot_be_read_is_left_out() {
    let read = |routes: &str, servers: &str| {
        let keys = [(keys::HOST_ROUTES, routes), (keys::HOST_ROUTE_SERVERS, servers)];
        let (read, bad) = HostRoutes::read(&keys.map(|(key, text)| (key.to_owned(), text.to_owned())).into()).unwrap();
        (read.prefixes.len(), read.servers.len(), bad.len())
    };
    let text = "az2 10.244.0.0/16\naz2 x\naz3 224.0.0.0/8\naz3 127.0.0.0/8\naz3 ::/0\n10.1.0.0/16\n\0";
    assert_eq!(read(text, "x,192.0.2.7,,192.0.2.8"), (1, 2, 6));
    let many: Vec<String> = (0..300).map(|n| format!("az2 20.{}.{}.0/24", n / 256, n % 256)).collect();
    assert_eq!(read(&many.join("\n"), "").0, MOST_HOST_ROUTES);
    assert_eq!(HostRoutes::read(&BTreeMap::new()), None);
}
