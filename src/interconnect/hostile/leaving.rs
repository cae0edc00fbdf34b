//! What goes when the cluster leaves: its own rows, and nothing else.

use super::*;
use crate::rows::is_of;
use crate::step::withdraw;

const TABLES: [&Table; 4] = [availability_zone::TABLE, gateway::TABLE, port_binding::TABLE, route::TABLE];

/// The rows that are left, without those of az2.
fn left(rig: &Rig, was_here: bool) -> Vec<String> {
    let txn = withdraw(&rig.offer, rig.databases(), was_here);
    let gone: BTreeSet<Uuid> = txn.subjects().into_iter().flatten().map(|(uuid, _)| uuid).collect();
    let of = |table: &'static Table| rig.ic_sb.iter(table).filter(|(uuid, _)| !gone.contains(uuid)).map(|(_, row)| row);
    let name = |row: &Row| match row.table().name {
        "Gateway" => row.str(gateway::NAME).to_owned(),
        "Port_Binding" => row.str(port_binding::LOGICAL_PORT).to_owned(),
        "Route" => row.str(route::IP_PREFIX).to_owned(),
        _ => row.str(availability_zone::NAME).to_owned(),
    };
    let mut left: Vec<String> =
        TABLES.into_iter().flat_map(|table| of(table).map(|row| name(row)).collect::<Vec<_>>()).collect();
    left.retain(|name| !["az2", "gw2", "ts-az2"].contains(&name.as_str()));
    left.sort();
    left
}

pub(super) fn mark(rig: &mut Rig, table: &'static Table, uuid: Uuid, cluster: &str) {
    let mut row = rig.ic_sb.get(table, uuid).unwrap().as_ref().clone();
    let column = if table == route::TABLE { route::EXTERNAL_IDS } else { port_binding::EXTERNAL_IDS };
    row.set(column, [(CLUSTER, cluster)]);
    assert!(is_of(&row, cluster));
    rig.ic_sb.set(table, uuid, Some(Arc::new(row)));
}

#[test]
fn all_of_this_cluster_goes() {
    let mut rig = Rig::new();
    rig.zone("az1");
    rig.gateway("az1", "c1", &[("geneve", "172.18.0.2")], Some("uid1"));
    let port = rig.port("az1", "ts", "ts-az1", (1, "169.254.100.5/24"), "c1");
    mark(&mut rig, port_binding::TABLE, port, "uid1");
    assert_eq!(left(&rig, false), Vec::<String>::new());
    // OVN's own daemon, which had been there before, marked nothing
    rig.route("az1", "10.128.0.0/14", "169.254.100.5");
    assert_eq!(left(&rig, false), Vec::<String>::new());
}

/// The name is another cluster's, and with ours there are rows of both.
#[test]
fn nothing_of_a_cluster_of_the_same_name_goes() {
    for theirs in [Some("uid9"), None] {
        let mut rig = Rig::new();
        rig.zone("az1");
        rig.gateway("az1", "gw9", &[("geneve", "172.29.0.2")], theirs);
        let port = rig.port("az1", "ts", "ts-az1", (1, "169.254.100.66/24"), "gw9");
        if let Some(theirs) = theirs {
            mark(&mut rig, port_binding::TABLE, port, theirs);
        }
        rig.route("az1", "10.99.0.0/16", "169.254.100.66");
        let all = ["10.99.0.0/16", "az1", "gw9", "ts-az1"];
        for was_here in [false, true] {
            assert_eq!(left(&rig, was_here), all, "{theirs:?}");
        }
        rig.gateway("az1", "c1", &[("geneve", "172.18.0.2")], Some("uid1"));
        assert_eq!(left(&rig, true), all, "{theirs:?}: ours goes all the same");
        // without gateways, as while they are all down
        rig.ic_sb.set(gateway::TABLE, derived_uuid("Gateway", "c1"), None);
        rig.ic_sb.set(gateway::TABLE, derived_uuid("Gateway", "gw9"), None);
        assert_eq!(left(&rig, true), ["10.99.0.0/16", "az1", "ts-az1"], "{theirs:?}");
        says(&rig.problems(), &["another cluster has az-name \"az1\" too"]);
        assert!(rig.step().offers.is_empty());
    }
    // a zone that has nothing yet is this cluster's if it was there
    let mut rig = Rig::new();
    rig.zone("az1");
    assert_eq!((left(&rig, false), left(&rig, true)), (vec!["az1".to_owned()], Vec::new()));
}

/// Rows that a cluster of OVN's own daemon left under this name can be removed, and those of this cluster cannot.
#[test]
fn what_a_dead_cluster_of_the_same_name_left_can_be_removed() {
    use crate::clean::{Left, clean};
    let mut rig = Rig::new();
    rig.zone("az1");
    assert!(clean(&rig.ic_sb, Left::Zone("az1"), &rig.offer).is_err());
    rig.gateway("az1", "gw9", &[("geneve", "172.29.0.2")], None);
    assert!(clean(&rig.ic_sb, Left::Zone("az1"), &rig.offer).unwrap().is_some());
    rig.gateway("az1", "c1", &[("geneve", "172.18.0.2")], None);
    let found = clean(&rig.ic_sb, Left::Zone("az1"), &rig.offer).unwrap().unwrap();
    assert_eq!((found.rows.as_str(), found.txn.len()), ("1 gateway, 0 ports, 0 routes", 1), "c1 and the zone stay");
    rig.ic_sb.set(gateway::TABLE, derived_uuid("Gateway", "gw9"), None);
    assert!(clean(&rig.ic_sb, Left::Zone("az1"), &rig.offer).is_err());
}

/// Each remedy that is named removes what others have under this cluster's name, and nothing of ours.
#[test]
fn what_others_have_under_our_name_can_be_removed() {
    use crate::clean::{Left, clean};
    let mut rig = Rig::new();
    rig.zone("az1");
    let own = rig.gateway("az1", "c1", &[("geneve", "172.18.0.2")], Some("uid1"));
    let port = rig.port("az1", "ts", "ts-az1", (1, "169.254.100.5/24"), "c1");
    mark(&mut rig, port_binding::TABLE, port, "uid1");
    for theirs in [None, Some("uid9")] {
        let foreign = rig.gateway("az1", "gw3", &[("geneve", "172.20.0.2")], theirs);
        says(&rig.problems(), &["of another cluster under az-name \"az1\"", "gateway gw3", "ovnkube ic clean az az1"]);
        assert!(
            crate::reset::may_reset(&rig.offer, rig.databases()).is_err(),
            "without its rows it would not come back"
        );
        for left in [Left::Zone("az1"), Left::Gateway("gw3")] {
            let found = clean(&rig.ic_sb, left, &rig.offer).unwrap().unwrap();
            assert!(!found.has_our_mark, "{left:?}: what has it stays");
            let gone: Vec<Uuid> = found.txn.subjects().into_iter().flatten().map(|(uuid, _)| uuid).collect();
            assert_eq!(gone, [foreign], "{left:?}");
        }
        assert!(clean(&rig.ic_sb, Left::Gateway("c1"), &rig.offer).is_err());
        rig.ic_sb.set(gateway::TABLE, foreign, None);
        assert!(clean(&rig.ic_sb, Left::Zone("az1"), &rig.offer).is_err());
    }
    assert!(rig.ic_sb.get(gateway::TABLE, own).is_some());
}

/// Rows of others under this cluster's name stay as they are, and are named. All else goes on.
#[test]
fn what_others_have_under_our_name_stops_nothing_else() {
    for theirs in [None, Some("uid9")] {
        let mut rig = Rig::new();
        bound(&mut rig);
        rig.zone("az1");
        rig.gateway("az1", "c1", &[("geneve", "172.18.0.2")], Some("uid1"));
        let port = rig.port("az1", "ts", "ts-az1", (3, "169.254.100.5/24"), "c9");
        mark(&mut rig, port_binding::TABLE, port, "uid1");
        let old = rig.route("az1", "10.99.0.0/16", "169.254.100.5");
        mark(&mut rig, route::TABLE, old, "uid1");
        // those of others
        let same = rig.route("az1", "10.128.0.0/14", "169.254.100.5");
        mark(&mut rig, route::TABLE, same, "uid9");
        let foreign = [rig.gateway("az1", "gw3", &[("geneve", "172.20.0.2")], theirs), same];
        rig.switch("ts1", "169.254.101.0/24", &[("az1", "169.254.101.5")], 16_711_690);
        let taken = rig.port("az1", "ts1", "ts1-az1", (3, "169.254.101.5/24"), "gw3");
        mark(&mut rig, port_binding::TABLE, taken, "uid9");

        let Step { offers, peers, .. } = rig.step();
        let lines_of = |text: &str| lines(&offers, text);
        assert_eq!(lines_of("set Port_Binding").len(), 1, "it follows the gateway: {:?}", offers.lines());
        assert_eq!(lines_of("delete"), [format!("delete Route {old}")], "what it had before goes");
        let written: Vec<Uuid> = offers.subjects().into_iter().flatten().map(|(uuid, _)| uuid).collect();
        assert!(foreign.iter().chain([&taken]).all(|uuid| !written.contains(uuid)), "{:?}", offers.lines());
        assert!(lines_of("insert Route").is_empty(), "the database takes it once: {:?}", offers.lines());
        let texts =
            ["of another cluster under az-name \"az1\"", "gateway gw3", "a route to 10.128.0.0/14", "port ts1-az1"];
        says(&peers.problems, &texts);
        says(&peers.problems, &["another cluster has a port ts1-az1"]);

        // it leaves, and theirs stays
        let all = ["10.128.0.0/14", "az1", "gw3", "ts1-az1"];
        assert_eq!(left(&rig, true), all, "{theirs:?}");
    }
}

/// An empty zone does not say whose it is, so a master that is killed, or a cluster without gateways and switches, leaves none.
#[test]
fn a_zone_is_there_as_long_as_it_has_something() {
    let mut rig = Rig::new();
    rig.switch("ts", "169.254.100.0/24", &[("az2", "169.254.100.9")], 16_711_681);
    rig.offer.gateways.clear();
    let step = rig.step();
    assert!(step.offers.is_empty() && !step.claims.is_empty(), "{:?}", step.offers.lines());
    rig.offer.gateways.insert("n1".into(), Some("c1".into()));
    let inserted = lines(&rig.step().offers, "insert ");
    for table in ["Availability_Zone", "Gateway"] {
        assert!(inserted.iter().any(|line| line.starts_with(&format!("insert {table}{{"))), "{inserted:?}");
    }

    // what it has there is no more wanted
    let zone = rig.zone("az1");
    rig.gateway("az1", "c1", &[("geneve", "172.18.0.2")], Some("uid1"));
    rig.offer.gateways.clear();
    assert!(lines(&rig.step().offers, "delete").contains(&format!("delete Availability_Zone {zone}")));
    rig.gateway("az1", "gw3", &[("geneve", "172.20.0.2")], Some("uid9"));
    assert_eq!(lines(&rig.step().offers, "delete").len(), 1, "another cluster has something there");
    // nor does one of an earlier name stay, when its last row moves
    let earlier = rig.zone("az0");
    rig.ic_sb.set(gateway::TABLE, derived_uuid("Gateway", "gw3"), None);
    rig.gateway("az0", "c1", &[("geneve", "172.18.0.2")], Some("uid1"));
    rig.offer.former.insert("az0".into());
    rig.offer.gateways.insert("n1".into(), Some("c1".into()));
    assert_eq!(lines(&rig.step().offers, "delete"), [format!("delete Availability_Zone {earlier}")]);
    rig.offer.gateways.clear();
    // one that is empty may be another cluster's, which has just begun
    rig.ic_sb.set(gateway::TABLE, derived_uuid("Gateway", "c1"), None);
    rig.ic_sb.set(gateway::TABLE, derived_uuid("Gateway", "gw3"), None);
    assert!(rig.step().offers.is_empty());
}

/// What has this cluster's mark under a name that it never had can be removed, and what it had before cannot.
#[test]
fn what_only_has_our_mark_can_be_removed() {
    use crate::clean::{Left, clean};
    let mut rig = renamed("az9", "gw9");
    for left in [Left::Zone("az9"), Left::Gateway("gw9")] {
        assert!(
            clean(&rig.ic_sb, left, &rig.offer).unwrap().is_some_and(|found| found.is_ovnkube && found.has_our_mark),
            "{left:?}"
        );
    }
    rig.offer.former.insert("az9".into());
    rig.offer.own_chassis.insert("gw9".into());
    for left in [Left::Zone("az9"), Left::Gateway("gw9")] {
        assert!(clean(&rig.ic_sb, left, &rig.offer).is_err(), "{left:?}");
    }
}

/// Zone `az9` with a port of it, both marked as this cluster's, and a gateway `chassis`.
fn renamed(name: &str, chassis: &str) -> Rig {
    let mut rig = Rig::new();
    rig.zone(name);
    rig.gateway(name, chassis, &[("geneve", "172.18.0.2")], Some("uid1"));
    let port = rig.port(name, "ts", &format!("ts-{name}"), (1, "169.254.100.7/24"), chassis);
    mark(&mut rig, port_binding::TABLE, port, "uid1");
    rig.switch(
        "ts",
        "169.254.100.0/24",
        &[("az1", "169.254.100.5"), ("az2", "169.254.100.9"), (name, "169.254.100.7")],
        16_711_681,
    );
    rig
}

/// Everyone who writes to IC-SB can write this cluster's mark. What the northbound database does not know of as an earlier name is
/// another cluster's: no port here gets its name, and nothing of it is removed.
#[test]
fn a_mark_makes_no_earlier_name() {
    let own_ports = |rig: &Rig| rig.step().peers.switches["ts"].own.iter().map(|own| own.zone.to_string()).collect();
    for name in ["rtos-worker", "az9"] {
        let mut rig = renamed(name, "gw9");
        let zones: Vec<String> = own_ports(&rig);
        assert_eq!(zones, ["az1"], "{name}");
        says(&rig.problems(), &[name, "has the mark of this one", &format!("ovnkube ic clean az {name}")]);
        assert!(lines(&rig.step().offers, "delete").is_empty(), "{:?}", rig.step().offers.lines());
        assert_eq!(
            left(&rig, true),
            BTreeSet::from([name.to_owned(), "gw9".into(), format!("ts-{name}")]).into_iter().collect::<Vec<_>>()
        );
        assert!(!crate::step::has_rows(&rig.offer, rig.databases()));
        // an earlier one indeed
        rig.offer.former.insert(name.into());
        rig.offer.own_chassis.insert("gw9".into());
        let zones: Vec<String> = own_ports(&rig);
        assert_eq!(zones, ["az1", name]);
        assert_eq!(left(&rig, true), Vec::<String>::new());
        assert!(crate::step::has_rows(&rig.offer, rig.databases()));
    }
}

/// A gateway is gone, with its node and its chassis, while the name was edited and no master ran: another one tells whose zone it is.
#[test]
fn an_earlier_name_stays_own_where_a_gateway_is_lost() {
    let with_lost = || {
        let mut rig = renamed("az0", "c1");
        rig.offer.former.insert("az0".into());
        let lost = rig.gateway("az0", "c2", &[("geneve", "172.18.0.3")], Some("uid1"));
        (rig, lost)
    };
    let is_own = |rig: &Rig| {
        let peers = rig.step().peers;
        assert_eq!(peers.problems, Vec::<String>::new());
        peers.switches["ts"].own.iter().map(|own| own.zone.to_string()).collect::<Vec<_>>() == ["az1", "az0"]
    };
    let (mut rig, lost) = with_lost();
    assert!(is_own(&rig));
    assert_eq!(lines(&rig.step().offers, "delete"), [format!("delete Gateway {lost}")]);
    assert_eq!(left(&rig, true), Vec::<String>::new());
    assert!(crate::step::has_rows(&rig.offer, rig.databases()));
    // the next master finds the other one in the zone of the new name
    rig.ic_sb.set(gateway::TABLE, lost, None);
    rig.zone("az1");
    rig.gateway("az1", "c1", &[("geneve", "172.18.0.2")], Some("uid1"));
    assert!(is_own(&rig));

    // the API server of a copy has the node too, and one that was made from a backup has no chassis of it
    let (mut rig, _) = with_lost();
    rig.sb.set(chassis::TABLE, derived_uuid("Chassis", "c1"), None);
    says(&rig.problems(), &["az0", "has the mark of this one"]);
    assert!(lines(&rig.step().offers, "delete").is_empty());
    assert!(!crate::step::has_rows(&rig.offer, rig.databases()));
    // nor is one that others have written a node's host
    let (mut rig, _) = with_lost();
    rig.chassis("c1", "172.18.0.2", &[("is-remote", "true")]);
    says(&rig.problems(), &["az0", "has the mark of this one"]);
    // and a chassis alone is no node
    let (mut rig, _) = with_lost();
    rig.offer.own_chassis.clear();
    says(&rig.problems(), &["az0", "has the mark of this one"]);
}

/// The database takes an address once, and refuses all that is written with the second one.
#[test]
fn a_gateway_with_our_mark_and_our_address_stops_nothing_else() {
    let rig = renamed("az9", "gw9");
    let offers = rig.step().offers;
    says(&rig.problems(), &["cannot offer geneve 172.18.0.2 of gateway c1", "gateway gw9 of cluster az9 has it"]);
    assert!(lines(&offers, "Encap").is_empty() && !lines(&offers, "ts-az1").is_empty(), "{:?}", offers.lines());
}

/// People type what a message names, and everyone who writes to IC-SB chooses the name of a zone.
#[test]
fn no_command_has_a_name_that_a_shell_obeys() {
    let rig = renamed("az9; curl e|sh", "gw9");
    let problems = rig.problems();
    says(&problems, &["has the mark of this one", "If it is gone for good: remove its rows in IC-SB"]);
    says(&problems, &["cannot offer geneve 172.18.0.2", "is gone for good: remove its rows in IC-SB"]);
    assert!(problems.iter().all(|problem| !problem.contains("; curl")), "{problems:#?}");
}

/// A zone that the cluster made, and that another one has taken since, is no longer its own.
#[test]
fn a_zone_with_rows_of_others_is_not_own() {
    let mut rig = Rig::new();
    let is_own = |rig: &Rig| crate::step::has_own_zone(&rig.ic_sb, "az1x", "uid1");
    assert!(!is_own(&rig));
    rig.zone("az1x");
    assert!(is_own(&rig));
    rig.gateway("az1x", "c1", &[("geneve", "172.18.0.2")], Some("uid1"));
    assert!(is_own(&rig));
    rig.gateway("az1x", "gw9", &[("geneve", "172.29.0.2")], None);
    assert!(!is_own(&rig));
}

/// Somebody changes the name of this cluster's zone: its gateway and port move to one with the right name.
#[test]
fn what_has_our_mark_and_our_name_is_taken_back() {
    let mut rig = renamed("zz", "c1");
    let port = rig.port("zz", "ts", "ts-az1", (5, "169.254.100.5/24"), "c1");
    mark(&mut rig, port_binding::TABLE, port, "uid1");
    let offers = rig.step().offers;
    assert_eq!(lines(&offers, "insert Availability_Zone").len(), 1, "{:?}", offers.lines());
    assert_eq!(lines(&offers, "set Gateway").len(), 1, "{:?}", offers.lines());
    let of_port: Vec<String> = lines(&offers, "Port_Binding");
    assert!(of_port.len() == 1 && of_port[0].starts_with("set"), "{:?}", offers.lines());
}

/// A name that was wrong is corrected before the cluster has a gateway: nothing moves that would take its zone away.
#[test]
fn an_empty_zone_of_an_earlier_name_goes() {
    let mut rig = Rig::new();
    let zone = rig.zone("az1x");
    let offers = |rig: &Rig, vacated: &[ovnkube_model::Name]| {
        let moment = Moment { vacated, ..Moment::default() };
        lines(&step(&rig.offer, rig.databases(), Some(&rig.nb), moment).offers, "delete")
    };
    assert!(offers(&rig, &[]).is_empty(), "it may be another cluster's");
    assert_eq!(offers(&rig, &["az1x".into(), "az1".into()]), [format!("delete Availability_Zone {zone}")]);
    rig.gateway("az1x", "gw9", &[("geneve", "172.29.0.2")], None);
    assert!(offers(&rig, &["az1x".into()]).is_empty(), "another cluster has taken it");
}
