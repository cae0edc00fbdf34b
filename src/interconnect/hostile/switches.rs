//! Transit switches whose subnets or keys cannot be used.

use ovnkube_ovn::nb::{logical_router_port as lrp, logical_switch as ls};

use super::*;

/// Before anything is written: neither an address in IC-NB nor a port in IC-SB.
#[test]
fn a_subnet_that_is_somebodys_is_refused_first() {
    for (subnet, why) in [
        ("10.129.0.0/24", "10.129.0.0/24 overlaps 10.128.0.0/14, which this cluster uses for pods"),
        ("172.18.0.0/24", "172.18.0.0/24 contains 172.18.0.2, the address of a node"),
        ("172.18.9.0/24", "172.18.9.0/24 lies in 172.18.0.0/16, a network that nodes of this cluster are on"),
        ("169.254.100.0/25", "169.254.100.0/25 overlaps 169.254.100.0/24 of transit switch ts"),
        ("10.244.7.0/24", "10.244.7.0/24 overlaps 10.244.0.0/16, which cluster az2 offers"),
    ] {
        let mut rig = Rig::new();
        bound(&mut rig);
        rig.route("az2", "10.244.0.0/16", "169.254.100.9");
        rig.switch("ts1", subnet, &[], 16_711_690);
        let Step { claims, offers, peers, .. } = rig.step();
        says(
            &peers.problems,
            &["cannot use transit switch ts1: its subnet ", why, "give the switch another subnet in all clusters"],
        );
        assert!(claims.is_empty() && lines(&offers, "ts1").is_empty(), "{subnet}");
        assert!(peers.switches.contains_key("ts") && !peers.switches.contains_key("ts1"));
    }
}

/// A switch that is new takes none away that is in use, whatever its name is.
#[test]
fn the_switch_that_was_there_first_keeps_its_subnet() {
    for key in [Some(16_711_690), None] {
        let mut rig = Rig::new();
        rig.switch("backup", "169.254.100.0/24", &[("az1", "169.254.100.6")], key.unwrap_or(16_711_690));
        if key.is_none() {
            rig.ic_sb.set(datapath_binding::TABLE, derived_uuid("Datapath_Binding", "backup"), None);
        }
        let peers = rig.step().peers;
        says(&peers.problems, &["cannot use transit switch backup: its subnet", "of transit switch ts"]);
        assert_eq!(peers.switches.keys().map(AsRef::as_ref).collect::<Vec<_>>(), ["ts"]);
    }
    // a key that no switch may have makes it no older
    let mut rig = Rig::new();
    rig.switch("backup", "169.254.100.0/24", &[], 1);
    assert!(rig.step().peers.switches.contains_key("ts"));
}

/// Clusters with another cluster's addresses, as they are before anybody adds a switch. `routes`: what people declare.
fn with_prefix_in_use(auto_route: bool, routes: &[(&str, &str)]) -> Rig {
    let mut rig = Rig::new();
    rig.cluster("az3", "gw3", "172.20.0.2", (3, "169.254.100.10/24"));
    rig.route("az3", "10.199.0.0/16", "169.254.100.10");
    rig.offer.wanted.auto_route = auto_route;
    rig.offer.wanted.routes = routes.iter().map(|(prefix, zone)| (prefix.parse().unwrap(), (*zone).into())).collect();
    rig
}

/// This cluster's port in a switch, in its own database.
pub(super) fn attach(rig: &mut Rig, port: &str, networks: &[&str]) {
    let row = Row::new(lrp::TABLE).with(lrp::NAME, port).with(lrp::NETWORKS, networks.iter().copied());
    add(&mut rig.nb, port, row);
}

/// Whoever writes a switch writes claims and ports there too, also this cluster's: they make it no switch that it uses.
#[test]
fn a_new_switch_takes_no_prefix_away() {
    let claims: [&[(&str, &str)]; 3] = [&[], &[("az2", "10.199.0.9")], &[("az2", "10.199.0.9"), ("az1", "10.199.0.5")]];
    for claims in claims {
        let mut rig = with_prefix_in_use(true, &[]);
        rig.switch("ts1", "10.199.0.0/24", claims, 16_711_690);
        rig.port("az2", "ts1", "ts1-az2", (1, "10.199.0.9/24"), "gw2");
        let Step { claims, offers, peers, .. } = rig.step();
        let why = "its subnet 10.199.0.0/24 overlaps 10.199.0.0/16, which cluster az3 offers";
        says(
            &peers.problems,
            &["cannot use transit switch ts1", why, "give the switch another subnet in all clusters"],
        );
        assert!(claims.is_empty() && lines(&offers, "ts1").is_empty(), "{:?}", offers.lines());
        assert!(peers.switches.keys().all(|name| **name == *"ts"), "{:?}", peers.switches);
        assert!(peers.ports.iter().all(|port| *port.switch == *"ts"), "{:?}", peers.ports);
    }
}

/// What people declare is in use, and what is only offered while routes are not learned is not.
#[test]
fn a_new_switch_takes_no_declared_prefix_away() {
    for (routes, is_used) in [(&[("10.199.0.0/16", "az3")][..], false), (&[], true)] {
        let mut rig = with_prefix_in_use(false, routes);
        rig.switch("ts1", "10.199.0.0/24", &[("az2", "10.199.0.9")], 16_711_690);
        let Step { claims, peers, .. } = rig.step();
        assert_eq!((!claims.is_empty(), peers.problems.is_empty()), (is_used, is_used), "{:?}", peers.problems);
    }
    let mut rig = with_prefix_in_use(false, &[("10.199.0.0/16", "az3")]);
    rig.switch("ts1", "10.199.0.0/24", &[("az2", "10.199.0.9")], 16_711_690);
    says(
        &rig.problems(),
        &["cannot use transit switch ts1", "10.199.0.0/16, which is behind cluster az3 as key routes"],
    );
}

/// Where this cluster uses a subnet already, whoever offers its addresses later is the one that is wrong.
#[test]
fn a_prefix_takes_no_switch_away() {
    for (zone, networks) in [("az1", "10.199.0.5/24"), ("az0", "10.199.0.6/24")] {
        let mut rig = with_prefix_in_use(true, &[]);
        rig.zone("az0");
        let port = rig.port("az0", "ts", "ts-az0", (4, "169.254.100.77/24"), "");
        super::leaving::mark(&mut rig, port_binding::TABLE, port, "uid1");
        rig.offer.former.insert("az0".into());
        rig.switch("ts1", "10.199.0.0/24", &[("az1", "10.199.0.5"), ("az0", "10.199.0.6")], 16_711_690);
        attach(&mut rig, &format!("{zone}-ts1"), &[networks]);
        assert_eq!(rig.problems(), Vec::<String>::new());
        assert!(rig.step().peers.switches.contains_key("ts1"), "{zone}");
        // also where somebody removes its claim
        rig.switch("ts1", "10.199.0.0/24", &[("az0", "10.199.0.6")], 16_711_690);
        assert!(!rig.step().claims.is_empty(), "{zone}");
        // a subnet that somebody makes larger is another one
        rig.switch("ts1", "10.199.0.0/20", &[("az1", "10.199.0.5"), ("az0", "10.199.0.6")], 16_711_690);
        says(&rig.problems(), &["cannot use transit switch ts1: its subnet 10.199.0.0/20"]);
    }
}

/// A switch keeps the subnet of the other family.
#[test]
fn a_subnet_that_begins_in_a_prefix_takes_no_other_away() {
    let mut rig = with_prefix_in_use(true, &[]);
    attach(&mut rig, "az1-ts1", &["fd00:7::5/112"]);
    let claims = [("az1", "fd00:7::5 10.199.0.5"), ("az2", "fd00:7::9")];
    rig.switch("ts1", "fd00:7::/112,10.199.0.0/24", &claims, 16_711_690);
    let Step { claims, peers, .. } = rig.step();
    says(&peers.problems, &["cannot use transit switch ts1: its subnet 10.199.0.0/24"]);
    let own: Vec<String> = peers.switches["ts1"].own[0].addresses.iter().map(ToString::to_string).collect();
    assert_eq!((own, claims.is_empty()), (vec!["fd00:7::5/112".to_owned()], true));
}

/// Clusters with OVN's own daemon read no claims. Who has a port keeps its address, and the other one gets another.
#[test]
fn a_claim_whose_address_another_cluster_has_is_given_up_where_there_is_no_port() {
    let mut rig = Rig::new();
    rig.cluster("az3", "gw3", "172.20.0.2", (3, "169.254.100.5/24"));
    let Step { claims, offers, peers, .. } = rig.step();
    assert_eq!(peers.problems, Vec::<String>::new());
    assert!(peers.ports.iter().any(|port| port.address.to_string() == "169.254.100.5"), "{:?}", peers.ports);
    let claimed = lines(&claims, "ovnkube-addresses-az1");
    // the name of the cluster says which one
    assert!(claimed.len() == 1 && claimed[0].contains("169.254.100.133"), "{claimed:?}");
    assert!(lines(&offers, "Port_Binding").is_empty(), "{:?}", offers.lines());
    // while IC-NB is away, nothing can be claimed
    let moment = Moment { is_partial: true, ..Moment::default() };
    let Step { claims, peers, .. } = step(&rig.offer, rig.databases(), Some(&rig.nb), moment);
    assert_eq!((claims.is_empty(), peers.switches["ts"].own.len()), (true, 1));

    attach(&mut rig, "az1-ts", &["169.254.100.5/24"]);
    let Step { claims, peers, .. } = rig.step();
    says(&peers.problems, &["cannot use port \"ts-az3\"", "169.254.100.5 is the address of this cluster"]);
    assert_eq!((claims.is_empty(), peers.switches["ts"].own.len()), (true, 1));
}

/// Somebody writes all external_ids of a switch anew, or IC-NB is: the port stays as it is, and its address is claimed again.
#[test]
fn a_port_stays_where_its_claim_is_removed() {
    let mut rig = Rig::new();
    rig.zone("az1");
    rig.zone("az0");
    rig.offer.former.insert("az0".into());
    for (zone, key, address) in [("az1", 3, "169.254.100.7"), ("az0", 4, "169.254.100.8")] {
        // one from which no packets leave has no more than its address in NB
        attach(&mut rig, &format!("{zone}-ts"), &[address]);
        let port = rig.port(zone, "ts", &format!("ts-{zone}"), (key, &format!("{address}/24")), "c1");
        super::leaving::mark(&mut rig, port_binding::TABLE, port, "uid1");
    }
    let of = |rig: &Rig| {
        let Step { claims, offers, peers, .. } = rig.step();
        assert_eq!(peers.problems, Vec::<String>::new());
        assert!(lines(&offers, "delete").is_empty(), "{:?}", offers.lines());
        let claimed = lines(&claims, "ovnkube-addresses-az1");
        assert_eq!(claimed.len(), 1, "{:?}", claims.lines());
        let own = peers.switches.get("ts").into_iter().flat_map(|switch| &switch.own);
        let own = own.map(|own| (own.zone.to_string(), own.addresses[0].ip().to_string(), own.key));
        (own.collect::<Vec<_>>(), claimed[0].clone())
    };
    let port = |zone: &str, address: &str, key: u32| (zone.to_owned(), address.to_owned(), Some(key));
    let (present, earlier) = (port("az1", "169.254.100.7", 3), port("az0", "169.254.100.8", 4));
    rig.switch("ts", "169.254.100.0/24", &[], 16_711_681);
    let (own, claimed) = of(&rig);
    assert_eq!(own, [present.clone(), earlier.clone()]);
    assert!(claimed.contains("169.254.100.7"), "{claimed}");
    // a switch has got another family too
    rig.switch("ts", "fe80:a9fe:64::/112,169.254.100.0/24", &[], 16_711_681);
    let (own, claimed) = of(&rig);
    assert_eq!(own, [present, earlier]);
    assert!(claimed.contains("169.254.100.7 fe80:a9fe:64::"), "{claimed}");

    // another cluster has claimed it
    rig.switch("ts", "169.254.100.0/24", &[("az2", "169.254.100.7")], 16_711_681);
    let Step { claims, peers, .. } = rig.step();
    let zones: Vec<String> = peers.switches["ts"].own.iter().map(|own| own.zone.to_string()).collect();
    assert_eq!(zones, ["az0"]);
    assert!(lines(&claims, "ovnkube-addresses-az1")[0].contains("169.254.100.133"), "{:?}", claims.lines());
    // in databases where nobody sees it, it is claimed first
    rig.switch("ts", "169.254.100.0/24", &[], 16_711_681);
    for port in ["ts-az1", "ts-az0"] {
        rig.ic_sb.set(port_binding::TABLE, derived_uuid("Port_Binding", port), None);
    }
    let (own, claimed) = of(&rig);
    assert!(own.is_empty() && claimed.contains("169.254.100.7"), "{own:?} {claimed}");
}

/// A key may be that of a switch that is not known yet: while IC-NB is away, and as long as it may tell later of a switch than IC-SB of its key.
#[test]
fn the_key_of_a_switch_goes_only_while_all_switches_are_known() {
    let mut rig = Rig::new();
    rig.switch("ts1", "169.254.7.0/24", &[], 16_711_690);
    rig.switch("ts2", "169.254.8.0/24", &[], 16_711_691);
    let row = derived_uuid(ic_nb::transit_switch::TABLE.name, "ts2");
    rig.ic_nb.set(ic_nb::transit_switch::TABLE, row, None);
    let key = derived_uuid(datapath_binding::TABLE.name, "ts2");
    let long = [key];
    for (is_partial, stale, is_gone) in [(true, &long[..], false), (false, &long[..0], false), (false, &long[..], true)]
    {
        let moment = Moment { is_settled: true, is_partial, stale, ..Moment::default() };
        let Step { claims, offers, stale, .. } = step(&rig.offer, rig.databases(), Some(&rig.nb), moment);
        let gone = lines(&offers, "delete Datapath_Binding");
        assert_eq!(gone, is_gone.then(|| format!("delete Datapath_Binding {key}")).into_iter().collect::<Vec<_>>());
        assert_eq!((stale.contains(&key), claims.is_empty()), (!is_partial, is_partial));
    }
    // a port of another cluster, or a switch that comes, keeps it, however long it had none
    let is_kept = |rig: &Rig| {
        let moment = Moment { stale: &long, ..Moment::default() };
        let Step { offers, stale, .. } = step(&rig.offer, rig.databases(), Some(&rig.nb), moment);
        stale.is_empty() && lines(&offers, "delete").is_empty()
    };
    assert!(!is_kept(&rig));
    let port = rig.port("az2", "ts2", "ts2-az2", (2, "169.254.8.9/24"), "gw2");
    assert!(is_kept(&rig));
    rig.ic_sb.set(port_binding::TABLE, port, None);
    rig.switch("ts2", "169.254.8.0/24", &[], 16_711_691);
    assert!(is_kept(&rig));
}

#[test]
fn a_switch_without_a_free_address_is_named() {
    let mut rig = Rig::new();
    rig.switch("ts1", "169.254.7.0/30", &[("az2", "169.254.7.1"), ("az3", "169.254.7.2")], 16_711_690);
    rig.switch("ts2", "169.254.8.0/31", &[], 16_711_691);
    let problems = rig.problems();
    says(&problems, &["no address is free for this cluster in 169.254.7.0/30 of transit switch ts1", "larger subnet"]);
    says(&problems, &["169.254.8.0/31 of transit switch ts2"]);
    assert!(rig.step().claims.is_empty());
}

/// A key below is one of a cluster's own switches and routers.
#[test]
fn a_tunnel_key_that_transit_switches_do_not_have_is_refused() {
    for key in [-1, 0, 1, 4095, 16_711_680, 16_777_216, i64::MAX] {
        let mut rig = Rig::new();
        rig.switch("ts1", "169.254.7.0/24", &[("az1", "169.254.7.5")], key);
        let Step { offers, peers, .. } = rig.step();
        says(
            &peers.problems,
            &[&format!("cannot use transit switch ts1: its tunnel key {key} is not one from 16711681 to 16777215")],
        );
        assert!(!peers.switches.contains_key("ts1") && lines(&offers, "ts1").is_empty(), "{:?}", offers.lines());
    }
    let mut rig = Rig::new();
    rig.switch("ts1", "169.254.7.0/24", &[("az1", "169.254.7.5")], 16_711_681);
    says(&rig.problems(), &["cannot use transit switch ts1: transit switch ts has its tunnel key 16711681 too"]);
    let row = Row::new(ic_nb::ic_nb_global::TABLE).with(ic_nb::ic_nb_global::OPTIONS, [("vxlan_mode", "true")]);
    add(&mut rig.ic_nb, "global", row);
    rig.switch("ts1", "169.254.7.0/24", &[("az1", "169.254.7.5")], 1024);
    assert_eq!(rig.problems(), Vec::<String>::new());
}

/// Everyone can write one more key for a switch, or the key of a switch for another one.
#[test]
fn a_key_that_somebody_adds_takes_no_switch_away() {
    let add_key = |rig: &mut Rig, switch: &str, key: i64| {
        let row = Row::new(datapath_binding::TABLE).with(datapath_binding::TRANSIT_SWITCH, switch);
        add(&mut rig.ic_sb, &format!("{switch} {key}"), row.with(datapath_binding::TUNNEL_KEY, key));
    };
    let used = |rig: &Rig| {
        let switches = rig.step().peers.switches;
        switches.iter().map(|(name, switch)| format!("{name} {}", switch.key)).collect::<Vec<_>>()
    };
    let mut rig = Rig::new();
    add_key(&mut rig, "ts", 5);
    assert_eq!(used(&rig), ["ts 16711681"]);
    says(&rig.problems(), &["transit switch ts also has a tunnel key 5, which is not one from 16711681 to 16777215"]);

    let mut rig = Rig::new();
    rig.switch("ts1", "169.254.7.0/24", &[("az1", "169.254.7.5")], 16_711_690);
    add_key(&mut rig, "ts1", 16_711_681);
    assert_eq!(used(&rig), ["ts 16711681", "ts1 16711690"]);

    // the one that this cluster has already, whatever name the new one has
    let mut rig = Rig::new();
    let other_config = [("interconn-ts", "ts"), ("requested-tnl-key", "16711681")];
    add(&mut rig.nb, "ts", Row::new(ls::TABLE).with(ls::NAME, "ts").with(ls::OTHER_CONFIG, other_config));
    rig.switch("a", "169.254.7.0/24", &[("az1", "169.254.7.5")], 16_711_681);
    assert_eq!(used(&rig), ["ts 16711681"]);
    says(&rig.problems(), &["cannot use transit switch a: transit switch ts has its tunnel key 16711681 too"]);
}

/// The database takes a key once in a switch: one cell of our port that somebody changes would stop all that we write.
#[test]
fn a_port_that_somebody_changed_gets_a_key_that_is_free() {
    for (switch, key, wanted) in
        [("ts", 7, None), ("ts1", 2, Some("3")), ("ts1", 7, Some("3")), ("ts", 99_999, Some("3")), ("ts", 2, Some("3"))]
    {
        let mut rig = Rig::new();
        rig.switch("ts1", "169.254.7.0/24", &[], 16_711_690);
        rig.zone("az1");
        rig.gateway("az1", "c1", &[("geneve", "172.18.0.2")], Some("uid1"));
        rig.port("az1", switch, "ts-az1", (key, "169.254.100.5/24"), "c1");
        let line = lines(&rig.step().offers, "set Port_Binding");
        let key = line.iter().find_map(|line| line.split("tunnel_key: ").nth(1)?.split([',', ' ', '}']).next());
        assert_eq!(key, wanted, "{switch} {line:?}");
    }
}

/// Tunnels of VXLAN have room for few keys.
#[test]
fn a_switch_gets_a_key_that_its_tunnels_have_room_for() {
    let without_key = |vxlan: &str| {
        let mut rig = Rig::new();
        let row = Row::new(ic_nb::ic_nb_global::TABLE).with(ic_nb::ic_nb_global::OPTIONS, [("vxlan_mode", vxlan)]);
        add(&mut rig.ic_nb, "global", row);
        rig.switch("ts1", "169.254.7.0/24", &[("az1", "169.254.7.5")], 0);
        rig.ic_sb.set(datapath_binding::TABLE, derived_uuid("Datapath_Binding", "ts1"), None);
        rig
    };
    for (vxlan, key) in [("true", "1024"), ("false", "16711682")] {
        let offers = without_key(vxlan).step().offers;
        assert!(lines(&offers, "insert Datapath_Binding")[0].contains(key), "{:?}", offers.lines());
    }
    // one that is new is the last in the order by age, also where a lower key has become free
    let mut rig = without_key("false");
    rig.switch("ts2", "169.254.8.0/24", &[], 16_711_690);
    assert!(lines(&rig.step().offers, "insert Datapath_Binding")[0].contains("16711691"));
    let mut rig = without_key("true");
    for key in 1024_i64..=4095 {
        let row = Row::new(datapath_binding::TABLE).with(datapath_binding::TRANSIT_SWITCH, "ts");
        add(&mut rig.ic_sb, &format!("key{key}"), row.with(datapath_binding::TUNNEL_KEY, key));
    }
    says(&rig.problems(), &["no tunnel key from 1024 to 4095 is left for transit switch ts1"]);
}

/// A route that is in order is not written. One in which somebody changed anything is.
#[test]
fn a_route_that_somebody_changed_is_put_in_order() {
    let router = derived_uuid("Logical_Router", "uid1").to_string();
    let (cluster, router) = ((CLUSTER, "uid1"), ("lr-id", router.as_str()));
    let other = ("lr-id", "b7c1d8a2-3f64-4a5e-9d0c-2e8f6a1b7c3d");
    for (origin, ids, is_written) in [
        ("static", vec![cluster, router], false),
        ("static", vec![cluster, router, ("ovnkube-since", "1")], false),
        ("connected", vec![cluster, router], true),
        ("static", vec![cluster], true),
        ("static", vec![cluster, other], true),
        ("static", vec![cluster, router, ("theirs", "1")], true),
    ] {
        let mut rig = Rig::new();
        bound(&mut rig);
        let zone = rig.zone("az1");
        rig.gateway("az1", "c1", &[("geneve", "172.18.0.2")], Some("uid1"));
        rig.port("az1", "ts", "ts-az1", (3, "169.254.100.5/24"), "c1");
        let row = Row::new(route::TABLE)
            .with(route::TRANSIT_SWITCH, "ts")
            .with(route::AVAILABILITY_ZONE, zone)
            .with(route::ROUTE_TABLE, "")
            .with(route::IP_PREFIX, "10.128.0.0/14")
            .with(route::NEXTHOP, "169.254.100.5")
            .with(route::ORIGIN, origin)
            .with(route::EXTERNAL_IDS, ids.iter().copied());
        add(&mut rig.ic_sb, "own route", row);
        let offers = rig.step().offers;
        let written = lines(&offers, " Route");
        assert_eq!(!written.is_empty(), is_written, "{origin} {ids:?} {written:?} of {:?}", offers.lines());
    }
}
