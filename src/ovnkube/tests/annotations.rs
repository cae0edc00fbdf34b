//! What the cluster manager writes on nodes, and how it treats annotations that others wrote.

use std::io::ErrorKind;
use std::net::TcpListener;

use ovnkube_tests::nb::until;
use serde_json::{Value, json};

use crate::lab::{Lab, POD_NETWORKS};
use crate::process::Process;

const SUBNETS: &str = "k8s.ovn.org/node-subnets";

/// Status and reason of the condition NetworkUnavailable.
async fn unavailable(lab: &Lab, node: &str) -> Option<(String, String)> {
    let node = lab.api.get(&format!("/api/v1/nodes/{node}")).await;
    let conditions = node["status"]["conditions"].as_array()?.clone();
    let condition = conditions.into_iter().find(|c| c["type"] == "NetworkUnavailable")?;
    Some((condition["status"].as_str()?.to_owned(), condition["reason"].as_str()?.to_owned()))
}

async fn await_event(lab: &Lab, about: &str, reason: &str, text: &str) {
    until(&format!("event {reason} on {about} with {text:?}"), async || {
        lab.api.events(about).await.iter().any(|(is, message)| is == reason && message.contains(text))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_manager_needs_no_database() {
    let lab = Lab::new().await;
    // connections are queued, accepted or not
    let door = TcpListener::bind("127.0.0.1:0").unwrap();
    door.set_nonblocking(true).unwrap();
    let kubeconfig = format!("--k8s-kubeconfig={}", lab.api.kubeconfig().display());
    let address = door.local_addr().unwrap();
    let databases = [format!("--nb-address=tcp:{address}"), format!("--sb-address=tcp:{address}")];
    let text = ["--init-cluster-manager=one".into(), kubeconfig].into_iter().chain(databases).chain(lab.common(&[]));
    let mut process = Process::start(&lab.dir.file("log"), text);
    for node in ["a", "b"] {
        lab.api.node(node).await;
    }
    for node in ["a", "b"] {
        until("the node is annotated", async || !lab.subnet(node).await.is_empty()).await;
    }
    let (a, b) = (lab.subnet("a").await, lab.subnet("b").await);
    assert!(a != b && [&a, &b].iter().all(|s| s.starts_with("10.128.") && s.ends_with("/23")), "{a} {b}");
    for node in ["a", "b"] {
        let id = lab.node_annotation(node, "k8s.ovn.org/node-id").await;
        let join = lab.node_annotation(node, "k8s.ovn.org/node-gateway-router-lrp-ifaddrs").await;
        let Value::Number(id) = id else { panic!("node id of {node}: {id}") };
        assert_eq!(join, json!({"default": {"ipv4": format!("100.64.0.{id}/16")}}));
        assert_eq!(lab.node_annotation(node, "k8s.ovn.org/network-ids").await, json!({"default": "0"}));
    }
    assert!(process.is_running());
    assert_eq!(door.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "a database was asked");
    let (status, _) = process.terminate();
    assert!(status.success(), "{status}");
    assert_eq!(door.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "a database was asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_subnet_waits_for_one() {
    let lab = Lab::new().await;
    let _process = lab.start("init-cluster-manager=one", &["--cluster-subnets=10.128.0.0/23/24"]);
    for node in ["a", "b"] {
        lab.api.node(node).await;
        until("the node has a subnet", async || !lab.subnet(node).await.is_empty()).await;
        assert_eq!(unavailable(&lab, node).await, None);
    }
    lab.api.node("c").await;
    until("the condition", async || unavailable(&lab, "c").await == Some(("True".into(), "NoSubnet".into()))).await;
    await_event(&lab, "c", "SubnetsExhausted", "cluster-subnets").await;
    assert_eq!(lab.subnet("c").await, "");
    let free = lab.subnet("a").await;
    lab.api.delete("/api/v1/nodes/a").await;
    until("the freed subnet is given on", async || lab.subnet("c").await == free).await;
    until("the condition ends", async || unavailable(&lab, "c").await.is_some_and(|(status, _)| status == "False"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_annotations_are_corrected_and_reported() {
    let lab = Lab::new().await;
    // they exist before the first start
    lab.api.annotated_node("garbled", json!({SUBNETS: "{not json"})).await;
    lab.api.annotated_node("foreign", json!({SUBNETS: r#"{"default":["192.168.0.0/24"]}"#})).await;
    lab.api.annotated_pod("early", "garbled", json!({POD_NETWORKS: "{not json"})).await;
    let mut process = lab.start("init-master=one", &[]);
    lab.api.node("right").await;
    until("the node has a subnet", async || !lab.subnet("right").await.is_empty()).await;
    let subnet = lab.subnet("right").await;
    // and while it runs
    let same = json!({"default": [subnet]}).to_string();
    lab.api.annotated_node("twin", json!({SUBNETS: same})).await;
    lab.api.annotated_pod("late", "right", json!({POD_NETWORKS: r#"{"default": 7}"#})).await;
    let nodes = ["garbled", "foreign", "twin", "right"];
    for node in nodes {
        lab.api.pod(&format!("on-{node}"), node).await;
    }
    lab.wired(nodes.len() + 2).await;
    let mut subnets = Vec::new();
    for node in nodes {
        subnets.push(lab.subnet(node).await);
    }
    assert_eq!(subnets.last(), Some(&subnet), "who was right stays");
    subnets.sort();
    subnets.dedup();
    assert!(subnets.len() == nodes.len() && subnets.iter().all(|s| s.starts_with("10.128.")), "{subnets:?}");
    await_event(&lab, "garbled", "BadAnnotation", SUBNETS).await;
    await_event(&lab, "foreign", "AnnotationNotObeyed", "192.168.0.0/24").await;
    await_event(&lab, "twin", "AnnotationNotObeyed", &subnet).await;
    await_event(&lab, "early", "BadAnnotation", POD_NETWORKS).await;
    await_event(&lab, "late", "BadAnnotation", POD_NETWORKS).await;

    lab.quiet().await;
    let before = lab.transactions().len();
    lab.api.annotate("/api/v1/nodes/right", json!({SUBNETS: r#"{"default":["10.131.0.0/23"]}"#})).await;
    until("the subnet is put back", async || lab.subnet("right").await == subnet).await;
    await_event(&lab, "right", "AnnotationNotObeyed", "10.131.0.0/23").await;
    lab.api.annotate("/api/v1/nodes/right", json!({SUBNETS: null})).await;
    until("the subnet is put back", async || lab.subnet("right").await == subnet).await;
    lab.wired(nodes.len() + 2).await;
    assert_eq!(lab.transactions().len(), before, "pods do not notice");
    assert!(process.is_running());
}
