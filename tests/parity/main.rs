//! The same rows as ovn-kubernetes writes for the same objects, and the takeover of its database in place.
//!
//! `global-base.nb` has its rows for the objects of `global-base.yaml` and the services of
//! `services.yaml`. [`in_scope`] selects the part that is planned here so far. Every difference must
//! be listed in `docs/differences.md`; [`with_what_differs`] adds those of these rows.
#![allow(clippy::unwrap_used, reason = "tests")]

mod dual_stack;
mod more;
mod services;

use ovnkube_tests::dump::{self, Dump};
use ovnkube_tests::foreign::Foreign;
use ovnkube_tests::nb::{Release, Server};
use ovnkube_tests::settings::Settings;
use ovnkube_tests::{Controller, Objects, Write, rules};
use serde_json::Value;

use crate::more::{with_next_tiers, with_rows_of_each_ovn, with_what_differs};

fn settings() -> Settings {
    Settings { multicast: true, host_network_namespace: Some("ovn-host-network".into()), ..Settings::default() }
}

fn objects() -> Objects {
    let mut objects = read(include_str!("global-base.yaml"));
    add(&mut objects, SERVICES);
    objects
}

fn read(text: &str) -> Objects {
    let mut objects = Objects::default();
    add(&mut objects, text);
    objects
}

fn add(objects: &mut Objects, text: &str) {
    for object in serde_saphyr::from_multiple::<Value>(text).unwrap() {
        objects.put(object);
    }
}

const SERVICES: &str = include_str!("services.yaml");

fn original() -> Dump {
    Dump::parse(include_str!("global-base.nb"))
}

/// Owner types of rows that belong to nodes, gateways, namespaces, pods and policies.
const OWNERS: [&str; 9] = [
    "Cluster",
    "Namespace",
    "NetworkPolicy",
    "NetpolNamespace",
    "NetpolDefault",
    "NetpolNode",
    "PodSelector",
    "MulticastCluster",
    "MulticastNS",
];

/// The part of the original's rows that is planned here.
fn in_scope(all: &Dump) -> Dump {
    let mut scope = Dump::default();
    for (label, rows) in &all.0 {
        let (table, name) = label.split_once('(').unwrap();
        let is_in = match table {
            "Port_Group" | "Address_Set" | "ACL" => OWNERS.iter().any(|o| name.contains(&format!("-controller:{o}:"))),
            "Logical_Switch"
            | "Logical_Switch_Port"
            | "Logical_Router"
            | "Logical_Router_Port"
            | "Copp"
            | "Gateway_Chassis"
            | "Load_Balancer"
            | "Load_Balancer_Group"
            | "Meter"
            | "Meter_Band"
            | "NAT"
            | "Logical_Router_Policy"
            | "Logical_Router_Static_Route"
            | "Static_MAC_Binding" => true,
            other => panic!("is {other} in scope or not?"),
        };
        if is_in {
            scope.0.insert(label.clone(), rows.clone());
        }
    }
    scope
}

#[test]
fn the_scope_is_what_it_should_be() {
    let (all, scope) = (original(), in_scope(&original()));
    let count = |table: &str| scope.0.keys().filter(|l| l.starts_with(&format!("{table}("))).count();
    let tables = ["Logical_Switch", "Logical_Switch_Port", "Port_Group", "Address_Set", "Meter", "Load_Balancer"];
    assert_eq!(tables.map(count), [7, 19, 19, 13, 10, 23]);
    assert_eq!(all.0.len(), scope.0.len());
}

async fn rows_on(release: Release) {
    let server = Server::new(release);
    let mut objects = objects();
    let mut controller = Controller::start(settings().network(), server.client().await, &objects);
    let (_, patches) = controller.settle(&mut objects).await;
    let (have, mut want) = (Dump::of(&controller.nb), with_rows_of_each_ovn(in_scope(&original())));
    if release == Release::Host {
        // its ACLs have no tiers: only priorities order them
        want.0.values_mut().flatten().for_each(|row| drop(row.remove("tier")));
    } else {
        want = with_next_tiers(want);
    }
    assert_eq!(have.since(&want), "", "rows that differ from ovn-kubernetes' or are missing there");
    assert_eq!(want.since(&have), "", "rows of ovn-kubernetes that are missing here");
    assert_eq!(patches, [], "annotations that differ from ovn-kubernetes'");
    assert!(controller.notices.is_empty(), "{:?}", controller.notices);
}

#[tokio::test(flavor = "multi_thread")]
async fn same_rows_on_26_03() {
    rows_on(Release::Lts).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn same_rows_on_23_03() {
    rows_on(Release::Host).await;
}

/// A server with all rows that ovn-kubernetes wrote.
async fn taken_over(rows: &Dump) -> Server {
    let server = Server::new(Release::Lts);
    let nb = server.client().await;
    nb.transact(dump::load(rows)).await.unwrap();
    assert_eq!(Dump::of(&nb).since(rows), "", "rows that were loaded differently");
    assert_eq!(rows.since(&Dump::of(&nb)), "", "rows that were not loaded");
    server
}

/// Load balancers of UDP get an option, gateway routers an SNAT, each group of isolated pods two ACLs, rows of gateways
/// marks, rules about whole namespaces one set instead of many; nothing else changes.
#[tokio::test(flavor = "multi_thread")]
async fn takeover_changes_only_what_is_intended() {
    let server = taken_over(&original()).await;
    let mut objects = objects();
    let mut controller = Controller::start(settings().network(), server.client().await, &objects);
    let before = dump::uuids(&controller.nb.cache());
    controller.settle(&mut objects).await;
    let have = Dump::of(&controller.nb);
    assert_eq!(have.since(&with_what_differs(original())), "");
    let now = dump::uuids(&controller.nb.cache());
    assert!(before.keys().all(|uuid| now.contains_key(uuid)), "rows were recreated");
}

/// Next to foreign rows of every kind.
#[tokio::test(flavor = "multi_thread")]
async fn takeover_changes_no_foreign_row() {
    let features = (include_str!("global-features.nb"), include_str!("global-features.yaml"), true);
    for (rows, objects, templates) in
        [(include_str!("global-base.nb"), include_str!("global-base.yaml"), false), features]
    {
        let server = taken_over(&Dump::parse(rows)).await;
        let foreign = Foreign::put(&server, &["node-000", "node-001", "node-002"], true).await;
        let mut objects = read(objects);
        add(&mut objects, SERVICES);
        let network = Settings { svc_template_support: templates, ..settings() }.network();
        for transactions in [1, 0] {
            let mut controller = Controller::start(network.clone(), server.client().await, &objects);
            let before = dump::uuids(&controller.nb.cache());
            assert_eq!(controller.settle(&mut objects).await.0, transactions);
            assert_eq!(foreign.harm(&controller.nb), [""; 0]);
            let now = dump::uuids(&controller.nb.cache());
            for (uuid, (table, row)) in before {
                let now = now.get(&uuid).unwrap_or_else(|| panic!("gone: {row}"));
                let changed: Vec<_> =
                    now.1.differing(&row).map(|(column, _)| row.table().info(column).unwrap().name).collect();
                let allowed: &[&str] = match table {
                    "Logical_Router" => &["external_ids", "nat"],
                    "Logical_Router_Static_Route" | "Logical_Router_Policy" | "NAT" => &["external_ids"],
                    "Load_Balancer" => &["options"],
                    "Port_Group" => &["acls"],
                    "ACL" => &["match"],
                    _ => &[],
                };
                assert!(changed.iter().all(|column| allowed.contains(column)), "{row} is {}", now.1);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn takeover_writes_nothing() {
    let server = taken_over(&with_what_differs(original())).await;
    let mut objects = objects();
    let mut controller = Controller::start(settings().network(), server.client().await, &objects);
    let before = dump::uuids(&controller.nb.cache());
    let mut writes = Vec::new();
    while let Some(write) = controller.step(&mut objects, false).await {
        writes.push(write);
    }
    let now = dump::uuids(&controller.nb.cache());
    assert!(now == before, "{}", Dump::of(&controller.nb).since(&with_what_differs(original())));
    assert!(writes.is_empty(), "{writes:?}");
}

/// Changes that happened while ovn-kubernetes was down are applied; everything that is not planned here stays.
#[tokio::test(flavor = "multi_thread")]
async fn takeover_applies_missed_changes_and_nothing_else() {
    let was = with_what_differs(original());
    let server = taken_over(&was).await;
    let mut objects = objects();
    objects.delete("Pod", "a", "web-0");
    objects.delete("Node", "", "node-002");
    objects.delete("Namespace", "", "udn3");
    objects.put(ovnkube_tests::objects::pod("b", "new", "node-001"));
    let mut controller = Controller::start(settings().network(), server.client().await, &objects);
    while let Some(write) = controller.step(&mut objects, false).await {
        assert!(matches!(write, Write::Transaction(_) | Write::Annotations(_)));
        rules::addresses_are_unique(&controller.nb.cache());
    }
    let have = Dump::of(&controller.nb);
    rules::pods_are_wired(&objects, &controller.world, &controller.nb.cache());
    let labels = |dump: &Dump| in_scope(dump).0.into_keys().collect::<std::collections::BTreeSet<_>>();
    let gone: Vec<_> = labels(&was).difference(&labels(&have)).cloned().collect();
    let controller_id = "default-network-controller:Namespace:udn3";
    let node = "node-002";
    let expected = [
        "ACL(default-network-controller:NetpolNode:node-002:10.129.0.2)".into(),
        format!("Address_Set({controller_id}:v4)"),
        "Gateway_Chassis(rtos-node-002-c0ffee00-0000-4000-8000-000000000002)".into(),
        format!("Load_Balancer(Service_a/itp-local_TCP_node_switch_{node})"),
        format!("Load_Balancer(Service_a/np-etp-local_TCP_node_router_{node})"),
        format!("Load_Balancer(Service_a/np-etp-local_TCP_node_switch_{node})"),
        format!("Load_Balancer(Service_a/np_TCP_node_router+switch_{node})"),
        format!("Logical_Router(GR_{node})"),
        format!("Logical_Router_Policy(1004 inport == \"rtos-{node}\" && ip4.dst == 172.18.0.4 /* {node} */)"),
        format!("Logical_Router_Port(rtoe-GR_{node})"),
        format!("Logical_Router_Port(rtoj-GR_{node})"),
        format!("Logical_Router_Port(rtos-{node})"),
        format!("Logical_Router_Static_Route(0.0.0.0/0 [] via 172.18.255.1 rtoe-GR_{node})"),
        "Logical_Router_Static_Route(10.129.0.0/23 src-ip via 100.64.0.2 [])".into(),
        "Logical_Router_Static_Route(100.64.0.2 [] via 100.64.0.2 [])".into(),
        format!("Logical_Router_Static_Route(169.254.169.0/29 [] via 169.254.169.4 rtoe-GR_{node})"),
        format!("Logical_Switch(ext_{node})"),
        format!("Logical_Switch({node})"),
        "Logical_Switch_Port(a_web-0)".into(),
        format!("Logical_Switch_Port(br-ex_{node})"),
        format!("Logical_Switch_Port(etor-GR_{node})"),
        format!("Logical_Switch_Port(jtor-GR_{node})"),
        format!("Logical_Switch_Port(k8s-{node})"),
        format!("Logical_Switch_Port(stor-{node})"),
        "NAT(snat 10.128.0.0/14->172.18.0.4  )".into(),
        "NAT(snat 100.64.0.2->172.18.0.4  )".into(),
        "NAT(snat 169.254.169.2->100.64.0.2  )".into(),
        format!("Port_Group({controller_id})"),
        format!("Static_MAC_Binding(rtoe-GR_{node} 169.254.169.4)"),
    ];
    assert_eq!(gone, expected);
    let new: Vec<_> = labels(&have).difference(&labels(&was)).cloned().collect();
    assert_eq!(new, ["Logical_Switch_Port(b_new)"]);
    for (label, rows) in was.0.iter().filter(|(label, _)| !labels(&was).contains(*label)) {
        // an ACL that only the switch referred to is deleted with it, as are weak references to deleted ports
        let went_with_node = label.contains("NetpolNode:node-002");
        let lost_a_port = label.starts_with("Port_Group(");
        assert!(went_with_node || lost_a_port || have.0.get(label) == Some(rows), "{label} was changed");
    }
}

/// Switches, routers and ports of other networks resemble those of the default network.
#[tokio::test(flavor = "multi_thread")]
async fn takeover_keeps_other_networks_and_features() {
    let rows = with_what_differs(Dump::parse(include_str!("global-features.nb")));
    let server = taken_over(&rows).await;
    let mut objects = read(include_str!("global-features.yaml"));
    add(&mut objects, SERVICES);
    // node ports are templates there
    let settings = Settings { svc_template_support: true, ..settings() };
    let mut controller = Controller::start(settings.network(), server.client().await, &objects);
    let before = dump::uuids(&controller.nb.cache());
    controller.settle(&mut objects).await;
    assert_eq!(Dump::of(&controller.nb).since(&rows), "", "rows that changed");
    assert!(dump::uuids(&controller.nb.cache()) == before);
}
