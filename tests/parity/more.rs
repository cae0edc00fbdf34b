//! What only ovnkube has and ovn-kubernetes does not, as `docs/differences.md` lists.

use std::collections::BTreeSet;

use ovnkube_ovn::OwnerId;
use ovnkube_tests::dump::{Columns, Dump};
use serde_json::{Value, json};

pub(crate) fn with_what_differs(dump: Dump) -> Dump {
    with_next_tiers(with_rows_of_each_ovn(dump))
}

pub(crate) fn with_rows_of_each_ovn(dump: Dump) -> Dump {
    with_sets_of_namespaces(with_marks(with_flushing(with_host_snat(dump))))
}

/// A rule that selects whole namespaces uses one set; in the original it uses the sets of all these namespaces. The selectors
/// of the rules of `a/allow-web`, and the namespace they select; all if none is named.
fn with_sets_of_namespaces(mut dump: Dump) -> Dump {
    for (rule, selector, only) in [("Ingress:0", "LS{ML:{team: b,},}", Some("b")), ("Egress:1", "LS{}", None)] {
        let is_meant = |label: &str| {
            let name = label.strip_prefix("Address_Set(default-network-controller:Namespace:");
            name.is_some_and(|name| only.is_none_or(|only| name == format!("{only}:v4)")))
        };
        let sets: Vec<_> = dump.0.iter().filter(|(label, _)| is_meant(label)).flat_map(|(_, rows)| rows).collect();
        let list: Vec<_> = sets.iter().map(|set| format!("${}", set["name"].as_str().unwrap())).collect();
        let addresses: BTreeSet<_> = sets.iter().flat_map(|set| texts(set.get("addresses"))).collect();
        let owner = OwnerId::new("PodSelector").name(selector).key("ip-family", "v4");
        let acls = format!("ACL(default-network-controller:NetworkPolicy:a:allow-web:{rule}:");
        let rows = dump.0.iter_mut().filter(|(label, _)| label.starts_with(&acls)).flat_map(|(_, rows)| rows);
        let mut is_used = false;
        for row in rows {
            if let Some(text) = with_one_for(&list, &owner.hashed_name(), row["match"].as_str().unwrap()) {
                row.insert("match".into(), json!(text));
                is_used = true;
            }
        }
        if is_used {
            let addresses = if addresses.len() == 1 { json!(addresses.first()) } else { json!(addresses) };
            let row = Columns::from([
                ("addresses".into(), addresses),
                ("external_ids".into(), json!(owner.external_ids())),
                ("name".into(), json!(owner.hashed_name())),
            ]);
            dump.0.insert(format!("Address_Set({})", owner.id()), vec![row]);
        }
    }
    dump
}

/// A match with one set instead of these, if it has them all.
fn with_one_for(sets: &[String], one: &str, text: &str) -> Option<String> {
    let (before, rest) = text.split_once('{')?;
    let (list, after) = rest.split_once('}')?;
    let mut list: BTreeSet<_> = list.split(", ").map(str::to_owned).collect();
    if !sets.iter().all(|set| list.remove(set)) {
        return None;
    }
    list.insert(format!("${one}"));
    Some(format!("{before}{{{}}}{after}", list.into_iter().collect::<Vec<_>>().join(", ")))
}

/// A column's texts; a single one is not in an array.
fn texts(column: Option<&Value>) -> Vec<String> {
    let list = column.map(|value| value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]));
    list.into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// Gateway routers, and rows on them and on the cluster router for nodes, have owner marks; the original's have none.
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
            // all others have their own marks
            if ids.keys().all(|key| key.starts_with("physical_ip") || key == "k8s.ovn.org/node-masquerade-subnet") {
                ids.insert("k8s.ovn.org/owner-controller".into(), json!("default-network-controller"));
                ids.insert("k8s.ovn.org/owner-type".into(), json!("Gateway"));
            }
        }
    }
    of_cluster(dump, "kube-system-1")
}

/// The cluster router has the uid of the cluster's namespace kube-system.
pub(crate) fn of_cluster(mut dump: Dump, uid: &str) -> Dump {
    for row in dump.0.get_mut("Logical_Router(ovn_cluster_router)").into_iter().flatten() {
        let ids = row.get_mut("external_ids").and_then(Value::as_object_mut).unwrap();
        ids.insert("ovnkube-cluster".into(), json!(uid));
    }
    dump
}

/// Packets that a node's processes send through its gateway router always have that router's address on the join switch.
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

/// Connections to a UDP endpoint end when it is removed; in the original they last as long as the sender continues.
pub(crate) fn with_flushing(mut dump: Dump) -> Dump {
    let udp = |row: &&mut Columns| row.get("protocol").is_some_and(|protocol| protocol == "udp");
    for row in dump.0.values_mut().flatten().filter(udp) {
        row.get_mut("options").unwrap()["ct_flush"] = "true".into();
    }
    dump
}

/// Keeps denying a connection that was established earlier, as `docs/differences.md` describes: in
/// each group of isolated pods, an ACL for either tier before that of policies.
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
