//! Gateways of other clusters, which become chassis here, and ours, which others' rows may stand in the way of.

use ovnkube_ovn::nb::logical_router_static_route as static_route;

use super::*;
use crate::Way;

/// Each reason is told, with what to do; the others carry what there is.
#[test]
fn a_gateway_of_ours_that_carries_nothing_is_named() {
    let mut rig = Rig::new();
    assert_eq!(rig.step().idle, None);
    rig.offer.gateways.extend([("n2".into(), None), ("n3".into(), Some("c3".into()))]);
    rig.offer.gateways.insert("n4".into(), Some("c4".into()));
    rig.chassis("c4", "172.18.0.4", &[("is-interconn", "false")]);
    let said = [rig.step().idle.unwrap()];
    says(&said, &["n2: its agent has not written", "start ovnkube's agent"]);
    says(&said, &["n3: chassis c3 is not in the southbound database; start ovn-controller there"]);
    says(&said, &["n4: ovn-controller makes no tunnels to other clusters: is-interconn"]);
    assert!(!said[0].contains("n1"), "{said:?}");
    rig.offer.gateways.extend((5..9).map(|n| (format!("n{n}").into(), None)));
    says(&[rig.step().idle.unwrap()], &[". 2 more"]);
}

/// Ports move to a gateway only once the others can have a tunnel to it, and one that goes stays until its ports have moved.
#[test]
fn a_gateway_begins_and_ends_with_its_tunnels() {
    let mut rig = Rig::new();
    let at = |rig: &Rig, now| step(&rig.offer, rig.databases(), Some(&rig.nb), Moment { now, ..Moment::default() });
    assert_eq!(at(&rig, 100).peers.new_gateways, ["c1".into()].into());
    rig.zone("az1");
    let gateway = rig.gateway("az1", "c1", &[("geneve", "172.18.0.2")], None);
    let marks = [(CLUSTER, "uid1"), ("ovnkube-since", "100")];
    let row = rig.ic_sb.get(gateway::TABLE, gateway).unwrap().as_ref().clone().with(gateway::EXTERNAL_IDS, marks);
    add(&mut rig.ic_sb, "c1", row);
    // the clock of the master before was ahead
    for (now, is_new) in [(101, true), (106, false), (99, false)] {
        let step = at(&rig, now);
        assert_eq!((step.peers.new_gateways.len(), step.is_soon), (usize::from(is_new), is_new), "{now}");
    }

    bound(&mut rig);
    rig.offer.gateways.clear();
    let step = at(&rig, 200);
    assert_eq!(step.peers.carrying, ["c1".into()].into());
    assert!(lines(&step.offers, "delete Gateway").is_empty(), "{:?}", step.offers.lines());
    rig.sb.set(binding::TABLE, derived_uuid(binding::TABLE.name, "cr-az1-ts"), None);
    let step = at(&rig, 200);
    assert!(step.peers.carrying.is_empty());
    assert_eq!(lines(&step.offers, "delete Gateway").len(), 1, "{:?}", step.offers.lines());
}

/// A route of this cluster's router, by which it uses a prefix of another one.
fn use_prefix(rig: &mut Rig, prefix: &str, next_hop: &str) {
    let row = Row::new(static_route::TABLE)
        .with(static_route::IP_PREFIX, prefix)
        .with(static_route::NEXTHOP, next_hop)
        .with(static_route::EXTERNAL_IDS, ovnkube_ovn::owner::marks(ovnkube_ovn::owner::INTERCONNECTION));
    add(&mut rig.nb, &format!("{prefix} by {next_hop}"), row);
}

/// The gateway of the other side may not pass packets of it at once.
#[test]
fn a_new_way_waits_for_the_other_side_while_there_are_others() {
    let mut rig = Rig::new();
    rig.route("az2", "10.244.0.0/16", "169.254.100.9");
    bound(&mut rig);
    let used = |rig: &Rig, known: &BTreeSet<Way>| {
        let moment = Moment { known: Some(known), ..Moment::default() };
        let peers = step(&rig.offer, rig.databases(), Some(&rig.nb), moment).peers;
        (peers.routes.len(), peers.waiting.len())
    };
    assert_eq!(used(&rig, &BTreeSet::new()), (1, 0));
    use_prefix(&mut rig, "10.244.0.0/16", "169.254.101.9");
    assert_eq!(used(&rig, &BTreeSet::new()), (0, 1));
    let way: Way = ("ts".into(), "169.254.100.9".parse().unwrap());
    assert_eq!(used(&rig, &[way].into()), (1, 0));
}

/// A way whose gateway is gone stays while it is the only one: the gateway comes back. Beside an open one it would lose its share of
/// the packets; also of declared routes.
#[test]
fn a_closed_way_stays_only_while_there_is_no_other() {
    let mut rig = Rig::new();
    bound(&mut rig);
    rig.port("az2", "ts", "ts-az2-b", (3, "169.254.100.10/24"), "gw2");
    let bind = |rig: &mut Rig, port: &str, on: Option<&str>| {
        let chassis = on.map(|on| derived_uuid(chassis::TABLE.name, on));
        let row = Row::new(binding::TABLE).with(binding::LOGICAL_PORT, port).with(binding::CHASSIS, chassis);
        add(&mut rig.sb, port, row);
    };
    for next_hop in ["169.254.100.9", "169.254.100.10"] {
        rig.route("az2", "10.244.0.0/16", next_hop);
        use_prefix(&mut rig, "10.244.0.0/16", next_hop);
    }
    let used = |rig: &Rig, known: &[Way]| {
        let known = known.iter().cloned().collect();
        let moment = Moment { known: Some(&known), ..Moment::default() };
        let peers = step(&rig.offer, rig.databases(), Some(&rig.nb), moment).peers;
        let routes: Vec<_> = peers.routes.iter().map(|route| route.next_hop.to_string()).collect();
        let open: Vec<_> = peers.ports.iter().filter(|port| port.open).map(|port| port.address.to_string()).collect();
        assert_eq!(routes, open, "declared routes take the same ways");
        routes
    };
    let [first, second]: [Way; 2] = ["169.254.100.9", "169.254.100.10"].map(|ip| ("ts".into(), ip.parse().unwrap()));
    assert_eq!(used(&rig, std::slice::from_ref(&first)), ["169.254.100.9"], "the second has no gateway");
    bind(&mut rig, "ts-az2-b", Some("gw2"));
    assert_eq!(used(&rig, &[first, second.clone()]), ["169.254.100.9", "169.254.100.10"]);
    bind(&mut rig, "ts-az2", None);
    assert_eq!(used(&rig, &[second]), ["169.254.100.10"], "the first has no gateway any more");
    bind(&mut rig, "ts-az2-b", None);
    assert_eq!(used(&rig, &[]), ["169.254.100.9", "169.254.100.10"], "no way is better than another");
}

/// Another cluster closes a part of its range, and offers the rest in pieces: a way that carried the range carries them, and a new one
/// still has time.
#[test]
fn pieces_of_a_prefix_take_the_ways_that_it_had() {
    for used in [&["10.244.0.0/16"][..], &["10.244.0.0/16", "10.244.7.0/24"]] {
        let mut rig = Rig::new();
        rig.port("az2", "ts", "ts-az2-b", (3, "169.254.100.10/24"), "gw2");
        for prefix in used {
            use_prefix(&mut rig, prefix, "169.254.100.9");
        }
        for piece in ["10.244.0.0/17", "10.244.192.0/18"] {
            rig.route("az2", piece, "169.254.100.9");
            rig.route("az2", piece, "169.254.100.10");
        }
        let first: Way = ("ts".into(), "169.254.100.9".parse().unwrap());
        let known: BTreeSet<Way> = [first].into();
        let ways = |rig: &Rig| {
            let moment = Moment { known: Some(&known), ..Moment::default() };
            let peers = step(&rig.offer, rig.databases(), Some(&rig.nb), moment).peers;
            peers.routes.iter().map(|route| format!("{} {}", route.prefix, route.next_hop)).collect::<Vec<_>>()
        };
        let wanted = ["10.244.0.0/17 169.254.100.9", "10.244.192.0/18 169.254.100.9"];
        assert_eq!(ways(&rig), wanted, "no port is on a gateway, and it is the way of before");
        bound(&mut rig);
        let there = Some(derived_uuid(chassis::TABLE.name, "gw2"));
        let row = Row::new(binding::TABLE).with(binding::LOGICAL_PORT, "ts-az2-b").with(binding::CHASSIS, there);
        add(&mut rig.sb, "ts-az2-b", row);
        assert_eq!(ways(&rig), wanted, "the other way is new");
        // what lies beside it was not used
        rig.route("az2", "10.245.0.0/16", "169.254.100.10");
        assert!(ways(&rig).contains(&"10.245.0.0/16 169.254.100.10".to_owned()), "{:?}", ways(&rig));
    }
}

#[test]
fn a_gateway_with_the_id_of_a_chassis_of_ours_is_refused() {
    let mut rig = Rig::new();
    // of a node that is down, so that SB has no such chassis
    rig.offer.own_chassis.insert("c9".into());
    for id in ["c1", "c9"] {
        rig.gateway("az2", id, &[("geneve", "172.20.0.9")], None);
        let problems = rig.problems();
        says(&problems, &[&format!("cannot use gateway {id} of cluster az2"), "has the same id", "system-id"]);
        assert_eq!(rig.written(), ["gw2".to_owned()].into());
        assert!(lines(&rig.step().chassis, "172.20.0.9").is_empty());
        rig = Rig::new();
        rig.offer.own_chassis.insert("c9".into());
    }
}

/// IC-SB takes an address once, but it may be written in two ways. One bad cluster stops no other.
#[test]
fn an_address_that_another_host_has_is_refused_and_named() {
    for (tunnels, holder) in [
        (&[("geneve", "172.18.0.2")][..], "chassis c1 of this cluster"),
        (&[("geneve", "172.18.0.3")], "a node of this cluster"),
        (&[("geneve", "FD00:19::0:2")], "gateway gw2 of cluster az2"),
        (&[("geneve", "172.21.0.2"), ("geneve", "fd00:19:0::2")], "gateway gw2 of cluster az2"),
    ] {
        let mut rig = Rig::new();
        rig.offer.local.nodes.insert("172.18.0.3".parse().unwrap());
        rig.gateway("az2", "gw2", &[("geneve", "fd00:19::2")], None);
        rig.cluster("az3", "gw3", "172.20.0.2", (3, "169.254.100.10/24"));
        rig.zone("az4");
        rig.gateway("az4", "gw4", tunnels, None);
        says(&rig.problems(), &["cannot use gateway gw4 of cluster az4: ", holder, "has its tunnel address"]);
        assert_eq!(rig.written(), ["gw2".to_owned(), "gw3".to_owned()].into(), "{tunnels:?}");
    }
}

/// The one that is there stays, whoever joined earlier by the keys that clusters choose.
#[test]
fn who_has_the_address_keeps_it() {
    let mut rig = Rig::new();
    let ids = ovnkube_ovn::owner::marks(ovnkube_ovn::owner::INTERCONNECTION);
    let there = rig.chassis("gw2", "fd00:19::2", &[("is-remote", "true")]);
    let row = rig.sb.get(chassis::TABLE, there).unwrap().as_ref().clone().with(chassis::EXTERNAL_IDS, ids);
    add(&mut rig.sb, "gw2", row);
    rig.gateway("az2", "gw2", &[("geneve", "fd00:19::2")], None);
    rig.cluster("az3", "a3", "fd00:19:0::2", (1, "169.254.100.10/24"));
    says(&rig.problems(), &["cannot use gateway a3 of cluster az3: gateway gw2 of cluster az2 has its tunnel address"]);
    assert!(lines(&rig.step().chassis, "delete").is_empty(), "{:?}", rig.step().chassis.lines());

    // a host that gets another id keeps its address: nothing is wrong
    for gone in ["gw2", "a3"] {
        rig.ic_sb.set(gateway::TABLE, derived_uuid("Gateway", gone), None);
    }
    rig.gateway("az2", "gw2-new", &[("geneve", "fd00:19::2")], None);
    assert_eq!(rig.problems(), Vec::<String>::new());
    assert_eq!(rig.written(), ["gw2-new".to_owned()].into());
    assert_eq!(lines(&rig.step().chassis, "delete Chassis").len(), 1, "{:?}", rig.step().chassis.lines());
}

/// The same address twice in one gateway, options that ovn-controller does not know, and addresses that no host has.
#[test]
fn of_a_gateway_what_can_be_used_is_used() {
    let mut rig = Rig::new();
    let tunnels = [("geneve", "fd00:20::2"), ("geneve", "FD00:20::2"), ("stt", "172.20.0.2"), ("geneve", "127.0.0.1")];
    rig.gateway("az2", "gw2", &tunnels, None);
    assert_eq!(rig.problems(), Vec::<String>::new());
    assert_eq!(lines(&rig.step().chassis, "insert Encap").len(), 1, "{:?}", rig.step().chassis.lines());
    for (name, tunnel) in
        [("gw2", "127.0.0.1"), ("gw2", "224.0.0.9"), ("gw2", "::"), ("-gw2", "172.20.0.2"), ("gw\n2", "172.20.0.2")]
    {
        let mut rig = Rig::new();
        rig.ic_sb.set(gateway::TABLE, derived_uuid("Gateway", "gw2"), None);
        rig.gateway("az2", name, &[("geneve", tunnel)], None);
        says(&rig.problems(), &["cannot use gateway ", "of cluster az2", "correct it in that cluster"]);
        assert_eq!(rig.written(), BTreeSet::new(), "{name} {tunnel}");
    }
}

#[test]
fn a_port_on_another_clusters_gateway_is_nowhere() {
    let mut rig = Rig::new();
    rig.cluster("az3", "gw3", "172.20.0.2", (3, "169.254.100.10/24"));
    rig.port("az3", "ts", "ts-az3", (3, "169.254.100.10/24"), "gw2");
    says(&rig.problems(), &["port ts-az3 of cluster az3 is on gw2, a gateway of another cluster"]);
}

/// Another cluster's rows are not changed, even if they name a chassis or an address of ours.
#[test]
fn our_gateways_take_nothing_from_others() {
    let mut rig = Rig::new();
    let theirs = rig.gateway("az2", "c1", &[("geneve", "172.20.0.9")], Some("uid2"));
    let offers = rig.step().offers;
    says(&rig.problems(), &["cannot offer gateway c1: in IC-SB it is one of cluster az2", "ovnkube ic clean node c1"]);
    assert!(lines(&offers, "Gateway").is_empty(), "{theirs}: {:?}", offers.lines());
    assert!(!lines(&offers, "Port_Binding").is_empty(), "the rest goes on");

    let mut rig = Rig::new();
    rig.gateway("az2", "gw9", &[("geneve", "172.18.0.2")], Some("uid2"));
    says(&rig.problems(), &["cannot offer geneve 172.18.0.2 of gateway c1", "gateway gw9 of cluster az2 has it"]);
    let offers = rig.step().offers;
    assert!(lines(&offers, "Gateway").is_empty() && lines(&offers, "Encap").is_empty(), "{:?}", offers.lines());
}

/// Each gateway host opens the port for everyone.
#[test]
fn a_tunnel_has_a_port_of_this_clusters_tunnels() {
    let with_port = |rig: &mut Rig, kind: &str, port: &str| {
        rig.gateway("az2", "gw2", &[(kind, "172.19.0.2")], None);
        let row = Row::new(encap::TABLE).with(encap::TYPE, kind).with(encap::IP, "172.19.0.2");
        add(&mut rig.ic_sb, &format!("gw2 {kind} 172.19.0.2"), row.with(encap::OPTIONS, [("dst_port", port)]));
    };
    for (kind, port, own, is_used) in [
        ("geneve", "6081", 6081, true),
        ("geneve", "6081", 7000, true),
        ("geneve", "7000", 7000, true),
        ("geneve", "53", 6081, false),
        ("geneve", "4789", 6081, false),
        ("geneve", "7000", 6081, false),
    ] {
        let mut rig = Rig::new();
        rig.offer.encap_port = own;
        with_port(&mut rig, kind, port);
        assert_eq!(rig.written().len(), usize::from(is_used), "{kind} {port} {own}");
        let problems = rig.problems();
        assert_eq!(problems.is_empty(), is_used, "{problems:?}");
        if !is_used {
            let why =
                format!("\"gw2\" of cluster az2: its tunnels have UDP port {port}, and those of this cluster {own}");
            says(&problems, &[&why, "give both clusters the same encap-port"]);
        }
    }
}

/// northd counts the chassis of other clusters, too, and has room for 4095 switches and routers where one has VXLAN.
#[test]
fn vxlan_is_used_where_this_cluster_has_it() {
    let mut rig = Rig::new();
    rig.gateway("az2", "gw2", &[("geneve", "172.19.0.2"), ("vxlan", "172.19.0.2")], None);
    assert_eq!(rig.problems(), Vec::<String>::new());
    assert!(lines(&rig.step().chassis, "vxlan").is_empty(), "{:?}", rig.step().chassis.lines());
    rig.gateway("az2", "gw2", &[("vxlan", "172.19.0.2")], None);
    says(&rig.problems(), &["\"gw2\" of cluster az2: it has no address that a tunnel from here can have"]);
    assert_eq!(rig.written(), BTreeSet::new());

    let row = Row::new(sb_encap::TABLE).with(sb_encap::TYPE, "vxlan").with(sb_encap::IP, "172.18.0.2");
    add(&mut rig.sb, "c1 geneve 172.18.0.2", row);
    assert_eq!(rig.problems(), Vec::<String>::new());
    assert_eq!(lines(&rig.step().chassis, "vxlan").len(), 1, "{:?}", rig.step().chassis.lines());
}
