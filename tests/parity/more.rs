//! What ovnkube has and ovn-kubernetes has not, as `docs/differences.md` tells.

use ovnkube_tests::dump::{Columns, Dump};
use serde_json::{Value, json};

pub(crate) fn with_what_differs(dump: Dump) -> Dump {
    with_next_tiers(with_rows_of_each_ovn(dump))
}

pub(crate) fn with_rows_of_each_ovn(dump: Dump) -> Dump {
    with_marks(with_flushing(with_host_snat(dump)))
}

/// Gateway routers and what they and the cluster router have for nodes say whose they are; there they say nothing.
fn with_marks(mut dump: Dump) -> Dump {
    for (label, rows) in &mut dump.0 {
        let (table, _) = label.split_once('(').unwrap();
        let is_marked = match table {
            "Logical_Router" => label.starts_with("Logical_Router(GR_node-"),
            "Logical_Router_Static_Route" | "NAT" => true,
            "Logical_Router_Policy" => label.starts_with("Logical_Router_Policy(1004 "),
            _ => false,
        };
        for row in rows.iter_mut().filter(|_| is_marked) {
            let ids = row.entry("external_ids".into()).or_insert_with(|| json!({})).as_object_mut().unwrap();
            // all others carry marks of their own
            if ids.keys().all(|key| key.starts_with("physical_ip") || key == "k8s.ovn.org/node-masquerade-subnet") {
                ids.insert("k8s.ovn.org/owner-controller".into(), json!("default-network-controller"));
                ids.insert("k8s.ovn.org/owner-type".into(), json!("Gateway"));
            }
        }
    }
    dump
}

/// What a node's processes send through its gateway router always has that router's address on the join switch.
fn with_host_snat(mut dump: Dump) -> Dump {
    let mut nats = Vec::new();
    let gateways = dump.0.iter_mut().filter(|(label, _)| label.starts_with("Logical_Router(GR_node-"));
    for row in gateways.flat_map(|(_, rows)| rows) {
        let list = row.get_mut("nat").unwrap().as_array_mut().unwrap();
        let sources: Vec<_> =
            list.iter().filter_map(|nat| nat.as_str()?.strip_prefix("NAT(snat ")?.split_once("->")).collect();
        let of = |join: &str| {
            sources.iter().find(|(source, _)| source.starts_with(join)).map(|(source, _)| source.to_string())
        };
        let hosts = [("169.254.169.2", of("100.64.")), ("fd69::2", of("fd98::"))];
        for (host, join) in hosts.into_iter().filter_map(|(host, join)| Some((host, join?))) {
            let label = format!("NAT(snat {host}->{join}  )");
            list.push(json!(label));
            let nat = Columns::from([
                ("external_ip".into(), json!(join)),
                ("logical_ip".into(), json!(host)),
                ("options".into(), json!({"stateless": "false"})),
                ("type".into(), json!("snat")),
            ]);
            nats.push((label, vec![nat]));
        }
        list.sort_by_key(Value::to_string);
    }
    dump.0.extend(nats);
    dump
}

/// Connections to a UDP endpoint end when it is gone; there they last as long as the sender goes on.
pub(crate) fn with_flushing(mut dump: Dump) -> Dump {
    let udp = |row: &&mut Columns| row.get("protocol").is_some_and(|protocol| protocol == "udp");
    for row in dump.0.values_mut().flatten().filter(udp) {
        row.get_mut("options").unwrap()["ct_flush"] = "true".into();
    }
    dump
}

/// What keeps denied a connection that was established before, as `docs/differences.md` has it: in
/// each group of isolated pods an ACL for either tier before that of policies.
pub(crate) fn with_next_tiers(mut dump: Dump) -> Dump {
    let groups = dump.0.iter_mut().filter(|(label, _)| is_isolated(label));
    let mut acls = Vec::new();
    for (label, rows) in groups {
        let owner = label.trim_start_matches("Port_Group(").trim_end_matches(')').to_owned();
        for group in rows {
            for tier in [0, 1] {
                let (label, row) = next_tier(&owner, group, tier);
                let list = group.get_mut("acls").unwrap().as_array_mut().unwrap();
                list.push(json!(label));
                list.sort_by_key(Value::to_string);
                acls.push((label, vec![row]));
            }
        }
    }
    dump.0.extend(acls);
    dump
}

fn is_isolated(label: &str) -> bool {
    label.starts_with("Port_Group(default-network-controller:NetpolNamespace:") && label.ends_with(":Ingress)")
}

fn next_tier(owner: &str, group: &Columns, tier: u8) -> (String, Columns) {
    let id = format!("{owner}:nextTier:{tier}");
    let mut ids = group["external_ids"].clone();
    ids["k8s.ovn.org/id"] = json!(id);
    ids["type"] = json!("nextTier");
    ids["tier"] = json!(tier.to_string());
    let mut row = Columns::from([
        ("action".into(), json!("pass")),
        ("direction".into(), json!("to-lport")),
        ("external_ids".into(), ids),
        ("match".into(), json!(format!("outport == @{}", group["name"].as_str().unwrap()))),
        ("meter".into(), json!("acl-logging")),
    ]);
    if tier > 0 {
        row.insert("tier".into(), json!(tier));
    }
    (format!("ACL({id})"), row)
}
