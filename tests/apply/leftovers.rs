//! What a start finds: leftovers with our marks are removed, foreign rows stay.

use std::collections::BTreeSet;

use ovnkube_ovn::nb::logical_switch_port as lsp;
use ovnkube_tests::dump::Dump;
use ovnkube_tests::nb::{Release, Server};
use ovnkube_tests::objects::{namespace, node, pod};
use ovnkube_tests::settings::Settings;
use ovnkube_tests::{Controller, Objects, rules};
use serde_json::json;

/// A node with two pods, all written.
async fn cluster() -> (Server, Objects) {
    let server = Server::new(Release::Lts);
    let mut objects = Objects::default();
    for object in [node("n1"), node("n2"), namespace("a"), pod("a", "p", "n1"), pod("a", "q", "n1")] {
        objects.put(object);
    }
    start(&server, &mut objects).await;
    (server, objects)
}

async fn start(server: &Server, objects: &mut Objects) -> (Controller, usize) {
    let mut controller = Controller::start(Settings::default().network(), server.client().await, objects);
    let (transactions, _) = controller.settle(objects).await;
    (controller, transactions)
}

#[tokio::test(flavor = "multi_thread")]
async fn leftovers_with_our_marks_are_removed() {
    let (server, mut objects) = cluster().await;
    let clean = Dump::of(&server.client().await);
    let owner = "external_ids:k8s.ovn.org/owner-controller=default-network-controller";
    let junk: &[&[&str]] = &[
        &[
            "lsp-add",
            "n1",
            "a_gone",
            "--",
            "set",
            "logical_switch_port",
            "a_gone",
            "external_ids:pod=true",
            "external_ids:namespace=a",
        ],
        &["lsp-set-addresses", "a_gone", "0a:58:0a:80:00:09 10.128.0.9"],
        &["lsp-add", "n1", "stor-gone", "--", "lsp-set-type", "stor-gone", "router"],
        &["lrp-add", "ovn_cluster_router", "rtos-gone", "0a:58:0a:80:08:01", "10.128.8.1/23"],
        &["ls-add", "gone", "--", "set", "logical_switch", "gone", "other_config:subnet=10.128.8.0/23"],
        &[
            "lsp-add",
            "gone",
            "stor-gone2",
            "--",
            "lsp-set-type",
            "stor-gone2",
            "router",
            "--",
            "set",
            "logical_switch_port",
            "stor-gone2",
            "name=stor-gone2",
        ],
        &[
            "create",
            "address_set",
            "name=a1",
            owner,
            "external_ids:k8s.ovn.org/owner-type=Namespace",
            "addresses=10.128.0.9",
        ],
        &["create", "port_group", "name=a2", owner, "external_ids:k8s.ovn.org/owner-type=Namespace"],
        &["add", "address_set", "a4702457242462544204", "addresses", "10.128.0.99"],
    ];
    for words in junk {
        server.nbctl(words);
    }
    server.nbctl(&["lsp-del", "stor-gone"]);
    server.nbctl(&["lsp-add", "gone", "stor-gone", "--", "lsp-set-type", "stor-gone", "router"]);
    assert!(Dump::of(&server.client().await).0.len() > clean.0.len());
    let (controller, _) = start(&server, &mut objects).await;
    assert_eq!(Dump::of(&controller.nb).text(), clean.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_rows_stay() {
    let (server, mut objects) = cluster().await;
    let others: &[&[&str]] = &[
        &["ls-add", "theirs", "--", "set", "logical_switch", "theirs", "other_config:subnet=10.99.0.0/24"],
        &["lsp-add", "theirs", "a_b", "--", "lsp-set-addresses", "a_b", "02:00:00:00:00:09 10.99.0.9"],
        &["lsp-add", "n1", "vm", "--", "lsp-set-addresses", "vm", "02:00:00:00:00:0a 10.128.1.9"],
        &["lsp-add", "n1", "local", "--", "lsp-set-type", "local", "localnet"],
        &["lr-add", "their-router"],
        &["lrp-add", "their-router", "rtos-x_y", "0a:58:0a:80:08:01", "10.98.8.1/23"],
        &["lr-route-add", "ovn_cluster_router", "10.77.0.0/16", "100.64.0.9"],
        &["lr-policy-add", "ovn_cluster_router", "5", "ip4.dst == 10.66.0.0/16", "drop"],
        &["lb-add", "their-lb", "10.55.0.1:80", "10.55.0.2:80"],
        &["ls-lb-add", "n1", "their-lb"],
        &["acl-add", "n1", "from-lport", "7", "ip", "allow"],
        &["create", "address_set", "name=theirs", "addresses=10.1.2.3"],
        &[
            "create",
            "port_group",
            "name=theirs",
            "external_ids:k8s.ovn.org/owner-controller=default-network-controller",
            "external_ids:k8s.ovn.org/owner-type=EgressFirewall",
        ],
        &["set", "logical_switch", "n1", "external_ids:theirs=1"],
        &["set", "logical_switch_port", "a_p", "external_ids:theirs=1"],
    ];
    for words in others {
        server.nbctl(words);
    }
    objects.delete("Pod", "a", "q");
    let before = Dump::of(&server.client().await);
    let (controller, _) = start(&server, &mut objects).await;
    let mut after = Dump::of(&controller.nb);
    let gone: Vec<_> = before.0.keys().filter(|label| !after.0.contains_key(*label)).cloned().collect();
    assert_eq!(gone, ["Logical_Switch_Port(a_q)"]);
    // a column of ours is corrected as a whole; these keep their content except for the pod
    let ports = after.0["Logical_Switch(n1)"][0]["ports"].clone();
    assert!(ports.to_string().contains("(vm)") && ports.to_string().contains("(local)"), "{ports}");
    assert_eq!(after.0["Logical_Switch(n1)"][0]["external_ids"], json!({"theirs": "1"}));
    for label in [
        "Logical_Switch(n1)",
        "Port_Group(default-network-controller:Namespace:a)",
        "Address_Set(default-network-controller:Namespace:a:v4)",
        "Logical_Switch_Port(a_p)",
    ] {
        after.0.remove(label);
    }
    for (label, rows) in &after.0 {
        assert_eq!(before.0.get(label), Some(rows), "{label} was changed");
    }
}

/// Names of switches and routers have no index: two old controllers could create two.
#[tokio::test(flavor = "multi_thread")]
async fn duplicates_are_removed() {
    let (server, mut objects) = cluster().await;
    let clean = Dump::of(&server.client().await);
    server.nbctl(&["--add-duplicate", "ls-add", "n2"]);
    server.nbctl(&["create", "logical_router", "name=ovn_cluster_router", "external_ids:k8s-cluster-router=yes"]);
    let (mut controller, _) = start(&server, &mut objects).await;
    controller.settle(&mut objects).await;
    let rows = Dump::of(&controller.nb);
    assert_eq!(rows.0["Logical_Router(ovn_cluster_router)"].len(), 1);
    rules::pods_are_wired(&objects, &controller.world, &controller.nb.cache());
    let (_, transactions) = start(&server, &mut objects).await;
    assert_eq!(transactions, 0);
    let mut known = rows.clone();
    // an empty switch with a node's name carries no mark: it may be foreign
    known.0.insert("Logical_Switch(n2)".into(), clean.0["Logical_Switch(n2)"].clone());
    assert_eq!(known.text(), clean.text());
}

/// B01: a pod deleted while the controller was down frees an address that another pod gets.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_freed_meanwhile_is_assigned_once() {
    let (server, mut objects) = cluster().await;
    objects.delete("Pod", "a", "p");
    let mut heir = pod("a", "heir", "n1");
    heir["metadata"]["annotations"] = json!({"v1.multus-cni.io/default-network": r#"[{"ips":["10.128.0.3"]}]"#});
    objects.put(heir);
    let mut controller = Controller::start(Settings::default().network(), server.client().await, &objects);
    while controller.step(&mut objects, false).await.is_some() {
        rules::addresses_are_unique(&controller.nb.cache());
    }
    rules::pods_are_wired(&objects, &controller.world, &controller.nb.cache());
}

/// B17, B30: a node that returns with another subnet keeps nothing of the old one.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_moved_while_no_controller_ran() {
    let (server, mut objects) = cluster().await;
    objects.delete("Node", "", "n1");
    let mut back = node("n1");
    back["metadata"]["annotations"]["k8s.ovn.org/node-subnets"] = json!(r#"{"default":["10.130.0.0/23"]}"#);
    objects.put(back);
    let (controller, _) = start(&server, &mut objects).await;
    let text = Dump::of(&controller.nb).text().replace("10.128.0.0/14", "");
    assert!(!text.contains("10.128.0."), "{text}");
    rules::pods_are_wired(&objects, &controller.world, &controller.nb.cache());
}

/// The new holder of an address is planned before the previous one, and both do not fit
/// into one transaction: two ports never have it.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_passes_to_a_pod_that_is_planned_first() {
    let (server, mut objects) = cluster().await;
    let mut controller = Controller::start(Settings::default().network(), server.client().await, &objects);
    controller.settle(&mut objects).await;
    controller.batch = 1;
    let ask = json!({"v1.multus-cni.io/default-network": r#"[{"ips":["10.128.0.4"]}]"#});
    let mut heir = pod("a", "before-q", "n1");
    heir["metadata"]["annotations"] = ask;
    let changes = [objects.delete("Pod", "a", "q"), objects.put(heir)].concat();
    controller.take(changes);
    while controller.step(&mut objects, false).await.is_some() {
        rules::addresses_are_unique(&controller.nb.cache());
    }
    crate::crash::check(&mut objects, &controller).await;
}

/// `ovn-northd` 25.03 crashes when load balancers are deleted and recreated with the same uuid between two of its runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_recreated_row_has_another_uuid() {
    let (server, mut objects) = cluster().await;
    let (mut controller, _) = start(&server, &mut objects).await;
    let port = |controller: &Controller| controller.nb.cache().lookup(lsp::TABLE, "a_p").to_vec();
    let mut seen = BTreeSet::from_iter(port(&controller));
    for round in 0..5 {
        let gone = objects.of("Pod").find(|p| p["metadata"]["name"] == "p").unwrap().clone();
        controller.take(objects.delete("Pod", "a", "p"));
        controller.settle(&mut objects).await;
        assert!(port(&controller).is_empty());
        controller.take(objects.put(gone));
        controller.settle(&mut objects).await;
        assert!(seen.insert(port(&controller)[0]), "round {round}: {seen:?}");
    }
    crate::crash::check(&mut objects, &controller).await;
}

/// The server would refuse the removal, and with it all that a new master writes first.
#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_a_nat_rule_names_stays_and_stops_nobody() {
    let (server, mut objects) = cluster().await;
    let owner = "external_ids:k8s.ovn.org/owner-controller=default-network-controller";
    let kind = "external_ids:k8s.ovn.org/owner-type=Namespace";
    let set = server.nbctl(&["create", "address_set", "name=a1", owner, kind, "addresses=10.128.0.9"]);
    let (set, sets) = (set.trim(), || server.nbctl(&["--bare", "--columns=name", "find", "address_set", "name=a1"]));
    server.nbctl(&["lr-add", "theirs", "--", "lr-nat-add", "theirs", "snat", "192.0.2.1", "10.0.0.0/24"]);
    let nat = server.nbctl(&["--bare", "--columns=_uuid", "find", "nat", "external_ip=192.0.2.1"]);
    server.nbctl(&["set", "nat", nat.trim(), &format!("exempted_ext_ips={set}")]);
    objects.put(pod("a", "r", "n1"));
    start(&server, &mut objects).await;
    assert!(server.nbctl(&["lsp-list", "n1"]).contains("a_r"));
    assert!(!sets().trim().is_empty());
    server.nbctl(&["lr-del", "theirs"]);
    start(&server, &mut objects).await;
    assert_eq!(sets().trim(), "");
}
