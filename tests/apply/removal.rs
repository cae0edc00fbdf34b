//! Removes all rows of a node by their names: no others, whatever the node's name and wherever its host moved.

use std::collections::BTreeSet;

use ovnkube_apply::{Chassis, removal};
use ovnkube_ovn::sb;
use ovnkube_ovsdb::{Client as Database, Options, Remote};
use ovnkube_tests::dump::Dump;
use ovnkube_tests::foreign::Foreign;
use ovnkube_tests::nb::{Release, Server, within};
use ovnkube_tests::settings::Settings;
use ovnkube_tests::{Controller, Objects};
use serde_json::{Value, json};

/// A node with a gateway that answers on node ports.
fn node(name: &str, ip: &str, chassis: &str) -> Value {
    let gateway = json!({"default": {
        "mode": "shared", "interface-id": format!("br-ex_{name}"), "mac-address": "02:42:ac:12:00:02",
        "ip-addresses": [format!("{ip}/16")], "next-hops": ["172.18.255.1"], "node-port-enable": "true",
    }});
    let annotations = json!({
        "k8s.ovn.org/node-chassis-id": chassis, "k8s.ovn.org/l3-gateway-config": gateway.to_string(),
        "k8s.ovn.org/host-cidrs": json!([format!("{ip}/16")]).to_string(),
    });
    json!({"kind": "Node", "metadata": {"name": name, "annotations": annotations}})
}

fn cluster(nodes: &[Value]) -> Objects {
    let mut objects = Objects::default();
    objects.put(ovnkube_tests::objects::namespace("a"));
    objects.put(json!({
        "kind": "Service", "metadata": {"name": "web", "namespace": "a"},
        "spec": {"type": "NodePort", "clusterIP": "10.96.0.10", "ports": [{"name": "http", "port": 80, "nodePort": 30080}]},
    }));
    objects.put(json!({
        "kind": "EndpointSlice", "metadata": {"name": "web-1", "namespace": "a", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.128.0.5"]}], "ports": [{"name": "http", "port": 8080}],
    }));
    for node in nodes {
        objects.put(node.clone());
    }
    objects
}

/// The rows that a controller has written for these nodes.
async fn written(nodes: &[Value], template: bool) -> (Server, Dump) {
    let server = Server::new(Release::Lts);
    let mut objects = cluster(nodes);
    let network = Settings { svc_template_support: template, ..Settings::default() }.network();
    let mut controller = Controller::start(network, server.client().await, &objects);
    controller.settle(&mut objects).await;
    drop(controller);
    let rows = Dump::of(&server.client().await);
    (server, rows)
}

/// Names of load balancers end with words that may be node names.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_named_like_load_balancers() {
    for name in ["cluster", "template", "merged", "switch", "ipv4"] {
        for template in [false, true] {
            let stays = node("a1", "172.18.0.2", "c1");
            let (_keep, want) = written(std::slice::from_ref(&stays), template).await;
            let (server, all) = written(&[stays, node(name, "172.18.0.3", "c2")], template).await;
            assert!(all.text().contains(&format!("Logical_Router(GR_{name})")));
            let nb = server.client().await;
            let found = removal::northbound(name, &nb.cache());
            assert_eq!(found.chassis, BTreeSet::from(["c2".to_owned()]));
            nb.transact(found.txn).await.unwrap();
            let left = Dump::of(&nb);
            assert_eq!((left.since(&want), want.since(&left)), (String::new(), String::new()), "{name}");
        }
    }
}

/// Foreign rows on the remaining routers are not the node's, whether our rows have marks or not.
#[tokio::test(flavor = "multi_thread")]
async fn foreign_rows_stay() {
    for marked in [true, false] {
        let nodes = [node("a1", "172.18.0.2", "c1"), node("a2", "172.18.0.3", "c2")];
        let (server, _) = written(&nodes, false).await;
        let nb = server.client().await;
        if !marked {
            crate::takeover::take_marks_off(&server, &nb);
        }
        let foreign = Foreign::put(&server, &["a1", "a2"], true).await;
        let of_node = |nb: &Database| {
            let of_node = |row: &String| ["a2", "100.64.0.3", "10.128.2."].iter().any(|what| row.contains(what));
            crate::foreign::ours(nb, &foreign).into_iter().filter(of_node).collect::<Vec<_>>()
        };
        let nb = server.client().await;
        assert_eq!(of_node(&nb).len(), 7);
        let found = removal::northbound("a2", &nb.cache());
        nb.transact(found.txn).await.unwrap();
        assert_eq!(foreign.harm(&nb), [""; 0]);
        assert_eq!(of_node(&nb), [""; 0]);
    }
}

/// A renamed host has the chassis of its old node.
#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_hosts_chassis_stays() {
    let (south, ids) = (Server::southbound(Release::Lts), ["c1", "c2", "c3"].map(str::to_owned));
    for (id, hostname, ip) in [("c1", "new", "172.18.0.2"), ("c2", "old", "172.18.0.3"), ("c3", "", "172.18.0.4")] {
        let (name, host) = (format!("name={id}"), format!("hostname={hostname}"));
        south.sbctl(&["chassis-add", id, "geneve", ip, "--", "create", "chassis_private", &name]);
        if !hostname.is_empty() {
            south.sbctl(&["set", "chassis", id, &host]);
        }
    }
    // another cluster's gateway of the same name
    let theirs = ["hostname=old", "other_config:is-remote=true"];
    south.sbctl(&[&["chassis-add", "c4", "geneve", "172.18.0.5", "--", "set", "chassis", "c4"], &theirs[..]].concat());
    let remotes = vec![Remote::Unix(south.socket())];
    let sb = Database::connect(Options { tables: Chassis::monitored(), ..Options::new(&sb::DATABASE, remotes) });
    within("the first download", sb.synced()).await;
    let found = removal::chassis("old", &BTreeSet::from(ids), &sb.cache());
    assert_eq!(found.its, BTreeSet::from(["c2".to_owned(), "c3".to_owned()]));
    assert_eq!(found.others, [("c1".to_owned(), "new".to_owned())]);
    let txn = removal::southbound(&found.its, &sb.cache());
    sb.transact(txn).await.unwrap();
    assert_eq!(south.sbctl(&["--bare", "--columns=name", "list", "chassis_private"]).trim(), "c1");
}

/// In the northbound database, the new node has the chassis, and its variables.
#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_hosts_variables_stay() {
    let (old, new) = (node("old", "172.18.0.2", "c1"), node("new", "172.18.0.2", "c1"));
    let (server, all) = written(&[old, new], true).await;
    assert!(all.text().contains("Chassis_Template_Var(c1)"), "{}", all.text());
    let nb = server.client().await;
    let found = removal::northbound("old", &nb.cache());
    assert!(found.chassis.is_empty(), "{:?}", found.chassis);
    nb.transact(found.txn).await.unwrap();
    let left = Dump::of(&nb).text();
    assert!(left.contains("Chassis_Template_Var(c1)") && !left.contains("GR_old"), "{left}");
}
