//! Running pods are not affected: neither edits of annotations while no controller runs, nor another zone, nor an
//! additional family changes a running pod's port.

use std::collections::BTreeMap;

use http::Method;
use ovnkube_model::{NetworkSettings, Roles};
use ovnkube_ovn::Uuid;
use ovnkube_ovn::nb::{logical_switch as ls, logical_switch_port as lsp};
use ovnkube_ovsdb::Client as Database;
use ovnkube_tests::api::{Api, Running};
use ovnkube_tests::nb::{Release, Server, until};
use ovnkube_tests::settings::Settings;
use serde_json::{Value, json};

const SUBNETS: &str = "k8s.ovn.org/node-subnets";
const POD_NETWORKS: &str = "k8s.ovn.org/pod-networks";
const ZONE: &str = "k8s.ovn.org/zone-name";

struct Lab {
    api: Api,
    server: Server,
    nb: Database,
}

impl Lab {
    /// Two nodes, three running pods, and no controller.
    async fn up(network: NetworkSettings) -> Self {
        let api = Api::up().await;
        let server = Server::new(Release::Lts);
        let nb = server.client().await;
        let lab = Self { api, server, nb };
        lab.api.namespace("a").await;
        for node in ["n1", "n2"] {
            lab.api.node(node, json!({"k8s.ovn.org/node-chassis-id": format!("chassis-{node}")})).await;
        }
        let engine = lab.engine(network).await;
        for (pod, node) in [("p1", "n1"), ("p2", "n1"), ("p3", "n2")] {
            lab.api.pod("a", pod, node, json!({})).await;
            lab.starts(pod).await;
        }
        drop(engine);
        lab
    }

    async fn engine(&self, network: NetworkSettings) -> Running {
        Running::start(&self.api, network, Some(self.server.client().await)).await
    }

    /// The kubelet reports a pod with its addresses once it has them.
    async fn starts(&self, pod: &str) {
        until(&format!("addresses and port of {pod}"), async || {
            !self.addresses(pod).await.is_empty() && self.ports().contains_key(&format!("a_{pod}"))
        })
        .await;
        let ips: Vec<_> = self.addresses(pod).await.iter().map(|ip| json!({"ip": ip})).collect();
        let status = json!({"status": {"phase": "Running", "podIP": ips[0]["ip"], "podIPs": ips}});
        self.patch(&format!("namespaces/a/pods/{pod}/status"), status).await;
    }

    async fn patch(&self, path: &str, what: Value) {
        self.api.ask(Method::PATCH, &format!("/api/v1/{path}"), what).await.unwrap();
    }

    async fn annotate(&self, path: &str, key: &str, value: Value) {
        self.patch(path, json!({"metadata": {"annotations": {key: value}}})).await;
    }

    async fn annotation(&self, path: &str, key: &str) -> String {
        let object = self.api.get(&format!("/api/v1/{path}")).await;
        object["metadata"]["annotations"][key].as_str().unwrap_or_default().to_owned()
    }

    /// The annotated addresses of a pod.
    async fn addresses(&self, pod: &str) -> Vec<String> {
        let text = self.annotation(&format!("namespaces/a/pods/{pod}"), POD_NETWORKS).await;
        let networks: Value = serde_json::from_str(&text).unwrap_or_default();
        let ips = networks["default"]["ip_addresses"].as_array().cloned().unwrap_or_default();
        ips.iter().map(|ip| ip.as_str().unwrap().split('/').next().unwrap().to_owned()).collect()
    }

    /// Uuids and addresses of pods' ports.
    fn ports(&self) -> BTreeMap<String, (Uuid, String)> {
        let cache = self.nb.cache();
        let pods = cache.iter(lsp::TABLE).filter(|(_, row)| row.map(lsp::EXTERNAL_IDS).get("pod") == Some("true"));
        pods.map(|(uuid, row)| (row.str(lsp::NAME).to_owned(), (uuid, row.strs(lsp::ADDRESSES).collect()))).collect()
    }

    /// Transactions that wrote ports of pods or removed them from a switch, after the first `seen`.
    fn writes_to(&self, ports: &BTreeMap<String, (Uuid, String)>, seen: usize) -> Vec<Value> {
        let of_pod = |record: &Value| {
            let rows = record[lsp::TABLE.name].as_object().cloned().unwrap_or_default();
            ports.values().any(|(uuid, _)| rows.contains_key(&uuid.to_string()))
        };
        self.server.log().into_iter().skip(seen).filter(of_pod).collect()
    }

    fn switch_subnet(&self, node: &str) -> String {
        let cache = self.nb.cache();
        let switch = cache.named(ls::TABLE, node).next().map(|(_, row)| row);
        switch.and_then(|row| row.map(ls::OTHER_CONFIG).get("subnet").map(ToOwned::to_owned)).unwrap_or_default()
    }
}

fn network() -> NetworkSettings {
    Settings::default().network()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_annotation_edited_without_a_controller_moves_no_pod() {
    let lab = Lab::up(network()).await;
    let (before, seen) = (lab.ports(), lab.server.log().len());
    let theirs = json!({"default": {
        "ip_addresses": ["10.128.0.201/23"], "mac_address": "0a:58:0a:80:00:c9", "gateway_ips": ["10.128.0.1"],
        "ip_address": "10.128.0.201/23", "gateway_ip": "10.128.0.1",
    }});
    lab.annotate("namespaces/a/pods/p1", POD_NETWORKS, json!(theirs.to_string())).await;
    lab.annotate("namespaces/a/pods/p2", POD_NETWORKS, Value::Null).await;
    let engine = lab.engine(network()).await;
    engine.ready().await;
    until("the annotations are corrected", async || {
        lab.addresses("p1").await == ["10.128.0.3"] && lab.addresses("p2").await == ["10.128.0.4"]
    })
    .await;
    lab.api.event("AddressConflict", "p1").await;
    assert_eq!(lab.ports(), before);
    assert_eq!(lab.writes_to(&before, seen), Vec::<Value>::new(), "ports of running pods were written");
    drop(engine);
    let engine = lab.engine(network()).await;
    engine.ready().await;
    assert_eq!(engine.writes(), (0, 0), "a second start writes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn node_subnets_edited_without_a_controller_move_no_pod() {
    let lab = Lab::up(network()).await;
    let (before, seen) = (lab.ports(), lab.server.log().len());
    assert_eq!(lab.switch_subnet("n1"), "10.128.0.0/23");
    for (edited, other) in [
        (json!(r#"{"default":["10.128.0.0/24"]}"#), json!(r#"{"default":["10.128.0.0/22"]}"#)),
        (json!(r#"{"default":["10.131.0.0/23"]}"#), Value::Null),
    ] {
        lab.annotate("nodes/n1", SUBNETS, edited).await;
        lab.annotate("nodes/n2", SUBNETS, other).await;
        let engine = lab.engine(network()).await;
        engine.ready().await;
        until("the annotations are corrected", async || {
            lab.annotation("nodes/n1", SUBNETS).await == r#"{"default":["10.128.0.0/23"]}"#
                && lab.annotation("nodes/n2", SUBNETS).await == r#"{"default":["10.128.2.0/23"]}"#
        })
        .await;
        lab.api.event("AnnotationNotObeyed", "n1").await;
        assert_eq!(lab.ports(), before);
        assert_eq!(lab.writes_to(&before, seen), Vec::<Value>::new(), "ports of running pods were written");
        assert_eq!(
            (lab.switch_subnet("n1"), lab.switch_subnet("n2")),
            ("10.128.0.0/23".into(), "10.128.2.0/23".into())
        );
    }
}

/// The cluster manager needs no other component to find the subnets that pods run in.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_manager_alone_corrects_subnets() {
    let lab = Lab::up(network()).await;
    lab.annotate("nodes/n1", SUBNETS, json!(r#"{"default":["10.128.0.0/24"]}"#)).await;
    lab.annotate("nodes/n2", SUBNETS, Value::Null).await;
    let alone = NetworkSettings { roles: Roles { cluster_manager: true, ..Roles::default() }, ..network() };
    let engine = Running::start(&lab.api, alone.clone(), None).await;
    until("the annotations are corrected", async || {
        lab.annotation("nodes/n1", SUBNETS).await == r#"{"default":["10.128.0.0/23"]}"#
            && lab.annotation("nodes/n2", SUBNETS).await == r#"{"default":["10.128.2.0/23"]}"#
    })
    .await;
    lab.api.event("AnnotationNotObeyed", "n1").await;
    // while it runs, a Node is recreated
    lab.api.delete_node("n2").await;
    lab.api.node("n2", json!({})).await;
    until("its subnet is there again", async || {
        lab.annotation("nodes/n2", SUBNETS).await == r#"{"default":["10.128.2.0/23"]}"#
    })
    .await;
    drop(engine);
    let engine = Running::start(&lab.api, alone, None).await;
    engine.ready().await;
    assert_eq!(engine.writes(), (0, 0), "a second start writes nothing");
}

/// Without a cluster manager, the controller keeps the subnets that pods run in, and reports it.
#[tokio::test(flavor = "multi_thread")]
async fn a_controller_alone_keeps_the_subnet_that_pods_run_in() {
    let lab = Lab::up(network()).await;
    let (before, seen) = (lab.ports(), lab.server.log().len());
    let alone = NetworkSettings { roles: Roles { controller: true, ..Roles::default() }, ..network() };
    let engine = lab.engine(alone).await;
    engine.ready().await;
    lab.annotate("nodes/n1", SUBNETS, json!(r#"{"default":["10.128.0.0/24"]}"#)).await;
    lab.api.event("AnnotationNotObeyed", "n1").await;
    lab.annotate("nodes/n2", SUBNETS, json!(r#"{"default":["10.131.0.0/23"]}"#)).await;
    lab.api.event("AnnotationNotObeyed", "n2").await;
    assert_eq!(lab.ports(), before);
    assert_eq!(lab.writes_to(&before, seen), Vec::<Value>::new(), "ports of running pods were written");
    assert_eq!(engine.writes(), (0, 0));
    lab.api.delete_pod("a", "p3").await;
    until("the annotation is used when no pod runs there", async || lab.switch_subnet("n2") == "10.131.0.0/23").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_family_moves_no_pod() {
    let lab = Lab::up(network()).await;
    let (before, seen) = (lab.ports(), lab.server.log().len());
    let annotated = lab.annotation("namespaces/a/pods/p1", POD_NETWORKS).await;
    let dual = Settings {
        cluster_subnets: "10.128.0.0/14/23,fd01::/48/64".into(),
        service_cidrs: "10.96.0.0/16,fd02::/112".into(),
        ..Settings::default()
    };
    let engine = lab.engine(dual.network()).await;
    engine.ready().await;
    lab.api.pod("a", "new", "n1", json!({})).await;
    until("a new pod has both", async || lab.addresses("new").await == ["10.128.0.5", "fd01::3"]).await;
    assert_eq!(lab.annotation("namespaces/a/pods/p1", POD_NETWORKS).await, annotated);
    let now = lab.ports();
    assert!(before.iter().all(|port| now.get(port.0) == Some(port.1)), "{now:?}");
    assert_eq!(lab.writes_to(&before, seen), Vec::<Value>::new(), "ports of running pods were written");
    // and back
    let mut both = before.clone();
    both.insert("a_new".into(), now["a_new"].clone());
    lab.starts("new").await;
    drop(engine);
    let engine = lab.engine(network()).await;
    engine.ready().await;
    until("the new pod is annotated with one address", async || lab.addresses("new").await == ["10.128.0.5"]).await;
    let now = lab.ports();
    assert!(before.iter().all(|port| now.get(port.0) == Some(port.1)), "{now:?}");
    assert_eq!(now["a_new"], (both["a_new"].0, "0a:58:0a:80:00:05 10.128.0.5".into()), "its port was never removed");
    assert_eq!(lab.writes_to(&before, seen), Vec::<Value>::new(), "ports of running pods were written");
}

/// Zones do not exist yet; a zone annotation, stale or set by anyone, removes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_zone_name_removes_nothing() {
    let lab = Lab::up(network()).await;
    let (before, seen) = (lab.ports(), lab.server.log().len());
    lab.annotate("nodes/n1", ZONE, json!("n1")).await;
    let engine = lab.engine(network()).await;
    engine.ready().await;
    lab.api.event("BadAnnotation", "n1").await;
    lab.annotate("nodes/n2", ZONE, json!("zz")).await;
    lab.api.event("BadAnnotation", "n2").await;
    assert_eq!(lab.ports(), before);
    assert_eq!(lab.server.log().len(), seen, "{:?}", lab.server.log().split_off(seen));
    lab.api.pod("a", "new", "n2", json!({})).await;
    until("a new pod gets a port", async || lab.ports().contains_key("a_new")).await;
}
