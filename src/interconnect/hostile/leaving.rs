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

fn mark(rig: &mut Rig, table: &'static Table, uuid: Uuid, cluster: &str) {
    let mut row = rig.ic_sb.get(table, uuid).unwrap().as_ref().clone();
    row.set(port_binding::EXTERNAL_IDS, [(CLUSTER, cluster)]);
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
    assert!(clean(&rig.ic_sb, Left::Zone("az1"), &rig.offer).is_err());
}
