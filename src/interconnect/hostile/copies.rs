//! Clusters that have the mark of another one: as a copy, or since someone wrote it.

use ovnkube_model::{Judge, Subnet, prefixes};

use super::leaving::mark;
use super::*;

const UID: &str = "uid3";

/// Cluster `az3` with the mark [`UID`], and `az4` with `other`. Their ports in `ts` have these keys.
fn two(other: Option<&str>, [first, second]: [i64; 2]) -> Rig {
    let mut rig = Rig::new();
    bound(&mut rig);
    for (zone, chassis, tunnel, key, address, cluster) in [
        ("az3", "gw3", "172.20.0.2", first, "169.254.100.10", Some(UID)),
        ("az4", "gw4", "172.21.0.2", second, "169.254.100.11", other),
    ] {
        rig.zone(zone);
        rig.gateway(zone, chassis, &[("geneve", tunnel)], cluster);
        let port = rig.port(zone, "ts", &format!("ts-{zone}"), (key, &format!("{address}/24")), chassis);
        if let Some(cluster) = cluster {
            mark(&mut rig, port_binding::TABLE, port, cluster);
        }
        bind(&mut rig, &format!("ts-{zone}"));
    }
    rig
}

fn bind(rig: &mut Rig, port: &str) {
    let chassis = Some(derived_uuid(chassis::TABLE.name, "any"));
    add(&mut rig.sb, port, Row::new(binding::TABLE).with(binding::LOGICAL_PORT, port).with(binding::CHASSIS, chassis));
}

/// The next hops of each prefix that is used, and the clusters of which one is refused.
fn judged(rig: &Rig) -> (Vec<String>, Vec<String>) {
    let peers = rig.step().peers;
    let (local, closed, declared) = (Local::default(), BTreeMap::new(), BTreeMap::new());
    let judge = Judge { peers: &peers, unused: BTreeSet::new(), local, closed, declared: &declared };
    let found = prefixes(&judge, true);
    let hops = |(prefix, hops): (&Subnet, &BTreeMap<std::net::IpAddr, _>)| {
        hops.keys().map(|hop| format!("{prefix} {hop}")).collect::<Vec<_>>()
    };
    let refused = found.refused.iter().map(|refused| format!("{} {}", refused.zone, refused.prefix));
    (found.used.iter().flat_map(hops).collect(), refused.collect())
}

/// A uid is no secret. Who writes that of another cluster gets none of its addresses: not beside it, and not a part of them.
#[test]
fn a_copied_mark_takes_no_prefix() {
    for keys in [[3, 4], [4, 3]] {
        let mut rig = two(Some(UID), keys);
        rig.route("az3", "10.17.0.0/16", "169.254.100.10");
        for prefix in ["10.17.0.0/16", "10.17.9.0/24"] {
            rig.route("az4", prefix, "169.254.100.11");
        }
        let (used, refused) = judged(&rig);
        if keys == [3, 4] {
            assert_eq!(used, ["10.17.0.0/16 169.254.100.10"]);
            assert_eq!(refused, ["az4 10.17.0.0/16", "az4 10.17.9.0/24"]);
        } else {
            assert_eq!(refused, ["az3 10.17.0.0/16"], "who joined earlier has it");
        }
        let texts = ["clusters az3, az4 have the same mark (ovnkube-cluster uid3)", "ovnkube ic clean az az4"];
        says(&rig.problems(), &texts);
    }
    assert_eq!(two(None, [3, 4]).problems(), Vec::<String>::new());
    assert_eq!(two(Some("uid4"), [3, 4]).problems(), Vec::<String>::new());
}

/// Who has a mark answers questions from the start.
#[test]
fn clusters_of_ovnkube_are_known_by_their_marks() {
    assert_eq!(two(None, [3, 4]).step().numbers.followers, ["az3".into()].into());
    assert_eq!(two(Some("uid4"), [3, 4]).step().numbers.followers, ["az3".into(), "az4".into()].into());
}

/// Nor if its port is said to be on the gateway of that cluster.
#[test]
fn a_copied_mark_and_gateway_take_no_prefix() {
    let mut rig = two(Some(UID), [3, 4]);
    rig.ic_sb.set(gateway::TABLE, derived_uuid("Gateway", "gw4"), None);
    let port = rig.port("az4", "ts", "ts-az4", (4, "169.254.100.11/24"), "gw3");
    mark(&mut rig, port_binding::TABLE, port, UID);
    for (zone, next_hop) in [("az3", "169.254.100.10"), ("az4", "169.254.100.11")] {
        rig.route(zone, "10.17.0.0/16", next_hop);
    }
    assert_eq!(judged(&rig), (vec!["10.17.0.0/16 169.254.100.10".into()], vec!["az4 10.17.0.0/16".into()]));
    says(&rig.problems(), &["clusters az3, az4 have the same mark"]);
}

/// A cluster that gets another name takes its gateways along. Both names count as one, from its first step on to its last.
#[test]
fn a_cluster_that_gets_another_name_is_one() {
    let mut rig = two(Some(UID), [3, 4]);
    rig.ic_sb.set(gateway::TABLE, derived_uuid("Gateway", "gw4"), None);
    rig.gateway("az4", "gw3", &[("geneve", "172.20.0.2")], Some(UID));
    rig.route("az3", "10.17.0.0/16", "169.254.100.10");
    let port = derived_uuid("Port_Binding", "ts-az4");
    rig.ic_sb.set(port_binding::TABLE, port, None);
    assert_eq!(rig.problems(), Vec::<String>::new());
    assert_eq!(judged(&rig), (vec!["10.17.0.0/16 169.254.100.10".into()], vec![]));
    for gateway in ["", "gw3"] {
        let port = rig.port("az4", "ts", "ts-az4", (4, "169.254.100.11/24"), gateway);
        mark(&mut rig, port_binding::TABLE, port, UID);
        assert_eq!(rig.problems(), Vec::<String>::new(), "{gateway:?}");
    }
    rig.route("az4", "10.17.0.0/16", "169.254.100.11");
    let both = ["10.17.0.0/16 169.254.100.10", "10.17.0.0/16 169.254.100.11"].map(str::to_owned);
    assert_eq!(judged(&rig), (both.to_vec(), vec![]));
    // someone else has written the mark too
    rig.cluster("az5", "gw5", "172.22.0.2", (5, "169.254.100.12/24"));
    mark(&mut rig, port_binding::TABLE, derived_uuid("Port_Binding", "ts-az5"), UID);
    rig.route("az5", "10.17.9.0/24", "169.254.100.12");
    bind(&mut rig, "ts-az5");
    assert_eq!(judged(&rig), (both.to_vec(), vec!["az5 10.17.9.0/24".into()]));
    says(&rig.problems(), &["clusters az4, az5 have the same mark"]);
}
