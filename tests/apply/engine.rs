//! The whole engine: a real Kubernetes API on one side, a real northbound server on the other.

use std::time::Duration;

use http::Method;
use ovnkube_apply::{Outcome, Patches};
use ovnkube_model::Roles;
use ovnkube_ovn::nb::{load_balancer, logical_switch_port as lsp, port_group};
use ovnkube_ovsdb::Client as Database;
use ovnkube_plan::{Key, Patch, PatchTarget, Seen};
use ovnkube_tests::api::{Api, Running};
use ovnkube_tests::dump::Dump;
use ovnkube_tests::nb::{Release, Server, until};
use ovnkube_tests::settings::Settings;
use ovnkube_tests::{Controller, Objects, rules};
use serde_json::{Value, json};

/// One API and one northbound database, with what the engine writes to them.
struct Lab {
    api: Api,
    server: Server,
    nb: Database,
}

impl Lab {
    async fn up() -> Self {
        let api = Api::up().await;
        let server = Server::new(Release::Lts);
        let nb = server.client().await;
        Self { api, server, nb }
    }

    async fn engine(&self) -> Running {
        Running::start(&self.api, Settings::default().network(), Some(self.server.client().await)).await
    }

    /// Two nodes, a namespace and some pods.
    async fn with_pods(count: usize) -> Self {
        let lab = Self::up().await;
        lab.api.namespace("a").await;
        for node in ["n1", "n2"] {
            lab.api.node(node, json!({"k8s.ovn.org/node-chassis-id": format!("chassis-{node}")})).await;
        }
        for n in 0..count {
            lab.api.pod("a", &format!("p{n}"), ["n1", "n2"][n % 2], json!({})).await;
        }
        lab
    }

    /// A world built from the API's objects; it writes nothing.
    async fn observer(&self) -> (Objects, Controller) {
        let mut objects = Objects::default();
        for kind in ["Node", "Namespace", "Pod", "Service", "EndpointSlice"] {
            for object in self.api.list(kind).await {
                objects.put(object);
            }
        }
        let controller = Controller::start(Settings::default().network(), self.nb.clone(), &objects);
        (objects, controller)
    }

    /// Waits until there is nothing to write, judged externally: no annotation is missing, and the
    /// rows are those of a fresh start on an empty database. Then checks the invariants.
    async fn settled(&self) {
        until("rows and annotations are as planned", async || {
            let (mut objects, _) = self.observer().await;
            let empty = Server::new(Release::Lts);
            let network = Settings::default().network();
            let mut fresh = Controller::start(network, empty.client().await, &objects);
            let (_, patches) = fresh.settle(&mut objects).await;
            patches.is_empty() && Dump::of(&fresh.nb) == Dump::of(&self.nb)
        })
        .await;
        let (objects, controller) = self.observer().await;
        rules::addresses_are_unique(&self.nb.cache());
        rules::subnets_are_unique(&self.nb.cache());
        rules::pods_are_wired(&objects, &controller.world, &self.nb.cache());
    }

    fn has_port(&self, name: &str) -> bool {
        !self.nb.cache().lookup(lsp::TABLE, name).is_empty()
    }

    fn addresses(&self, name: &str) -> String {
        let cache = self.nb.cache();
        let port = cache.named(lsp::TABLE, name).next().map(|(_, row)| row);
        port.map(|port| port.strs(lsp::ADDRESSES).collect()).unwrap_or_default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_start_writes_nothing() {
    let lab = Lab::with_pods(20).await;
    let engine = lab.engine().await;
    lab.settled().await;
    assert!(engine.writes().0 > 0);
    drop(engine);
    let engine = lab.engine().await;
    engine.ready().await;
    lab.settled().await;
    assert_eq!(engine.writes(), (0, 0));
}

/// The engine repairs what others break and removes what others add with our marks.
#[tokio::test(flavor = "multi_thread")]
async fn drift_is_repaired() {
    let lab = Lab::with_pods(4).await;
    let _engine = lab.engine().await;
    lab.settled().await;
    let group = "a17441831628731841464";
    let set = "a4702457242462544204";
    let breaks: &[&[&str]] = &[
        &["lsp-del", "a_p0"],
        &["lsp-set-addresses", "a_p1", "unknown"],
        &["clear", "port_group", group, "ports"],
        &["set", "address_set", set, "addresses=10.9.9.9"],
        &["destroy", "address_set", set],
        &["destroy", "port_group", group],
        &["ls-del", "n1"],
        &["set", "logical_switch", "n1", "name=renamed"],
        &["set", "logical_switch_port", "a_p2", "name=renamed"],
        &["lrp-del", "rtos-n1"],
        &["set", "meter", "acl-logging", "unit=kbps"],
        &["clear", "logical_router_port", "rtos-n2", "gateway_chassis"],
        &["lsp-add", "n2", "a_gone", "--", "set", "logical_switch_port", "a_gone", "external_ids:pod=true"],
        &["lr-del", "ovn_cluster_router"],
    ];
    for words in breaks {
        lab.server.nbctl(words);
        // a renamed switch or port is foreign from then on
        if words.last() == Some(&"name=renamed") {
            let kind = if words[1] == "logical_switch" { "n1" } else { "a_p2" };
            until(&format!("{kind} is back"), async || match words[1] {
                "logical_switch" => !lab.nb.cache().lookup(ovnkube_ovn::nb::logical_switch::TABLE, "n1").is_empty(),
                _ => lab.has_port("a_p2"),
            })
            .await;
            let delete = if words[1] == "logical_switch" { "ls-del" } else { "lsp-del" };
            lab.server.nbctl(&["--if-exists", delete, "renamed"]);
        }
        lab.settled().await;
    }
}

/// The server restarts empty: everything is written again, with the same addresses, and people are told.
#[tokio::test(flavor = "multi_thread")]
async fn the_database_is_wiped() {
    let mut lab = Lab::with_pods(100).await;
    let _engine = lab.engine().await;
    lab.settled().await;
    let before = Dump::of(&lab.nb);
    lab.server.wipe();
    lab.nb = lab.server.client().await;
    lab.settled().await;
    assert_eq!(Dump::of(&lab.nb).text(), before.text());
    lab.api.event("DatabaseEmptied", "ovn-kubernetes").await;
}

/// The server dies while pods are added and removed.
#[tokio::test(flavor = "multi_thread")]
async fn the_database_server_is_killed() {
    let mut lab = Lab::with_pods(2).await;
    let _engine = lab.engine().await;
    lab.settled().await;
    for round in 0..3 {
        lab.server.kill();
        for n in 0..5 {
            lab.api.pod("a", &format!("r{round}-{n}"), "n1", json!({})).await;
        }
        lab.api.delete_pod("a", if round == 0 { "p0" } else { "r0-0" }).await;
        lab.api.pod("a", if round == 0 { "p0" } else { "r0-0" }, "n2", json!({})).await;
        lab.server.start();
        lab.nb = lab.server.client().await;
        lab.settled().await;
    }
}

/// A key whose rows the database refuses does not block the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_fails_blocks_no_other() {
    let lab = Lab::with_pods(10).await;
    // no column can hold a NUL
    lab.api.node("bad", json!({"k8s.ovn.org/node-chassis-id": "a\u{0}b"})).await;
    lab.api.pod("a", "on-bad", "bad", json!({})).await;
    for n in 0..6 {
        lab.api.node(&format!("worse-{n}"), json!({"k8s.ovn.org/node-chassis-id": "a\u{0}b"})).await;
    }
    let _engine = lab.engine().await;
    for n in 0..10 {
        let port = format!("a_p{n}");
        until(&format!("{port} is wired"), async || lab.has_port(&port)).await;
    }
    assert!(!lab.has_port("a_on-bad"));
    lab.api.event("RowsRefused", "bad").await;
    lab.api.pod("a", "late", "n1", json!({})).await;
    until("a later pod is wired", async || lab.has_port("a_late")).await;
    for n in 0..6 {
        lab.api.delete_node(&format!("worse-{n}")).await;
    }
    let fix = json!({"metadata": {"annotations": {"k8s.ovn.org/node-chassis-id": "good"}}});
    lab.api.ask(Method::PATCH, "/api/v1/nodes/bad", fix).await.unwrap();
    lab.settled().await;
    assert!(lab.has_port("a_on-bad"));
}

/// What must change together does so next to a key whose rows the database refuses.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_fails_does_not_split_a_change() {
    const POLICIES: usize = 30;
    let lab = Lab::with_pods(4).await;
    let policies = "/apis/networking.k8s.io/v1/namespaces/a/networkpolicies";
    let policy = |number: usize, cidr: &str| {
        let spec = json!({"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": cidr}}]}]});
        json!({"metadata": {"name": format!("p{number}")}, "spec": spec})
    };
    for number in 0..POLICIES {
        lab.api.ask(Method::POST, policies, policy(number, "10.0.0.0/8")).await.unwrap();
    }
    let engine = lab.engine().await;
    engine.ready().await;
    drop(engine);
    for number in 0..POLICIES {
        let path = format!("{policies}/p{number}");
        lab.api.ask(Method::PUT, &path, policy(number, "11.0.0.0/8")).await.unwrap();
    }
    // no column can hold a NUL
    lab.api.node("bad", json!({"k8s.ovn.org/node-chassis-id": "a\u{0}b"})).await;
    let before = lab.server.log().len();
    let _engine = lab.engine().await;
    lab.api.event("RowsRefused", "bad").await;
    let new = |row: &Value| row["match"].as_str().is_some_and(|text| text.contains("11.0.0.0/8"));
    let mut changed = Vec::new();
    until("all policies are written", async || {
        let log = lab.server.log();
        let rows = log[before..].iter().filter_map(|record| record["ACL"].as_object());
        changed = rows.map(|rows| rows.values().filter(|row| new(row)).count()).filter(|count| *count > 0).collect();
        changed.iter().sum::<usize>() >= POLICIES
    })
    .await;
    assert_eq!(changed, [POLICIES], "policies that each transaction changed");
}

/// The same name is used again at once: the new pod gets its own port and annotation, every time.
#[tokio::test(flavor = "multi_thread")]
async fn recreated_at_once() {
    let lab = Lab::with_pods(2).await;
    let _engine = lab.engine().await;
    lab.settled().await;
    for round in 0..30 {
        lab.api.delete_pod("a", "p0").await;
        let mut uid = lab.api.pod("a", "p0", ["n1", "n2"][round % 2], json!({})).await;
        // sometimes the old one is deleted before it was ever wired
        if round % 3 == 0 {
            continue;
        }
        until("the new pod is annotated", async || {
            let Some(pod) = lab.api.find("/api/v1/namespaces/a/pods/p0").await else {
                // A patch that meets a deletion without grace period makes the API server delete by
                // name once more, without the uid: that may delete the successor.
                uid = lab.api.pod("a", "p0", ["n1", "n2"][round % 2], json!({})).await;
                return false;
            };
            pod["metadata"]["uid"] == uid && pod["metadata"]["annotations"]["k8s.ovn.org/pod-networks"].is_string()
        })
        .await;
    }
    lab.settled().await;
}

/// An address moves from a deleted pod to one that requests it, back and forth.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_moves() {
    let lab = Lab::with_pods(2).await;
    let _engine = lab.engine().await;
    lab.settled().await;
    let ask = json!({"v1.multus-cni.io/default-network": r#"[{"ips":["10.128.0.77"],"mac":"02:00:00:00:00:77"}]"#});
    let subnets =
        lab.api.get("/api/v1/nodes/n1").await["metadata"]["annotations"]["k8s.ovn.org/node-subnets"].to_string();
    let node = if subnets.contains("10.128.0.0/23") { "n1" } else { "n2" };
    lab.api.pod("a", "even", node, ask.clone()).await;
    for round in 0..10 {
        let (from, to) = if round % 2 == 0 { ("even", "odd") } else { ("odd", "even") };
        // the new holder waits until the old one is gone
        lab.api.pod("a", to, node, ask.clone()).await;
        lab.api.delete_pod("a", from).await;
        until(&format!("{to} has the address"), async || {
            rules::addresses_are_unique(&lab.nb.cache());
            lab.addresses(&format!("a_{to}")) == "02:00:00:00:00:77 10.128.0.77"
        })
        .await;
    }
    lab.settled().await;
}

/// B02, B16, B23: a node is deleted before its pods and returns under the same name with another chassis.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_deleted_before_its_pods() {
    let lab = Lab::with_pods(6).await;
    let _engine = lab.engine().await;
    lab.settled().await;
    lab.api.delete_node("n1").await;
    until("no port of the node is left", async || !Dump::of(&lab.nb).text().contains("requested-chassis\":\"n1\""))
        .await;
    lab.settled().await;
    lab.api.node("n1", json!({"k8s.ovn.org/node-chassis-id": "another"})).await;
    lab.settled().await;
    let text = Dump::of(&lab.nb).text();
    assert!(text.contains("Gateway_Chassis(rtos-n1-another)") && !text.contains("rtos-n1-chassis-n1"), "{text}");
}

/// B18: many nodes at once: one subnet and one number each.
#[tokio::test(flavor = "multi_thread")]
async fn fifty_nodes_at_once() {
    let lab = Lab::up().await;
    let _engine = lab.engine().await;
    let nodes = (0..50).map(|n| format!("m{n}")).collect::<Vec<_>>();
    for node in &nodes {
        lab.api.node(node, json!({})).await;
    }
    lab.settled().await;
    let mut subnets: Vec<String> = Vec::new();
    for node in lab.api.list("Node").await {
        let annotations = &node["metadata"]["annotations"];
        subnets.push(annotations["k8s.ovn.org/node-subnets"].as_str().unwrap().into());
        subnets.push(annotations["k8s.ovn.org/node-id"].as_str().unwrap().into());
    }
    assert_eq!(subnets.len(), 100);
    subnets.sort();
    subnets.dedup();
    assert_eq!(subnets.len(), 100, "shared subnets or numbers");
}

/// B27: deleted and recreated twenty times: one row of each kind.
#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_is_recreated_twenty_times() {
    let lab = Lab::with_pods(0).await;
    let _engine = lab.engine().await;
    for _ in 0..20 {
        lab.api.namespace("again").await;
        lab.api.delete_namespace("again").await;
    }
    lab.api.namespace("again").await;
    lab.settled().await;
    let cache = lab.nb.cache();
    let named = |row: &ovnkube_ovn::Row| row.map(port_group::EXTERNAL_IDS).get("k8s.ovn.org/name") == Some("again");
    assert_eq!(cache.iter(port_group::TABLE).filter(|(_, row)| named(row)).count(), 1);
}

/// An annotation that cannot be applied is reported and corrected, and blocks nothing.
#[tokio::test(flavor = "multi_thread")]
async fn bad_annotations_give_events() {
    let lab = Lab::with_pods(1).await;
    lab.api.node("odd", json!({"k8s.ovn.org/node-subnets": "nonsense"})).await;
    lab.api.pod("a", "odd", "n1", json!({"k8s.ovn.org/pod-networks": "nonsense"})).await;
    lab.api.pod("a", "outside", "n1", json!({"v1.multus-cni.io/default-network": r#"[{"ips":["192.0.2.1"]}]"#})).await;
    let _engine = lab.engine().await;
    lab.api.event("BadAnnotation", "odd").await;
    lab.api.event("AddressRequestRefused", "outside").await;
    until("the pod is wired", async || lab.has_port("a_odd")).await;
    lab.settled().await;
}

/// A service that claims an address of a node, a pod or another service gets an Event and is served at its other addresses.
#[tokio::test(flavor = "multi_thread")]
async fn conflicts_of_services_give_events() {
    let lab = Lab::with_pods(1).await;
    lab.api.node("host", json!({"k8s.ovn.org/host-cidrs": r#"["172.18.0.7/16"]"#})).await;
    let post = async |name: &str, spec: Value| {
        let service = json!({"metadata": {"name": name}, "spec": spec});
        lab.api.ask(Method::POST, "/api/v1/namespaces/a/services", service).await.unwrap()
    };
    let owner = post("owner", json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]})).await;
    // the API server assigns a node port only once, whatever the protocol; the golden case covers an etcd that has two
    let twin = json!({"metadata": {"name": "twin"}, "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080, "protocol": "UDP"}]}});
    let refused = lab.api.ask(Method::POST, "/api/v1/namespaces/a/services", twin).await.unwrap_err();
    assert!(refused.to_string().contains("already allocated"), "{refused}");
    let cluster_ip = owner["spec"]["clusterIP"].as_str().unwrap();
    let _engine = lab.engine().await;
    let claims = [("of-a-node", "172.18.0.7"), ("of-a-pod", "10.128.0.3"), ("of-a-service", cluster_ip)];
    for (n, (name, ip)) in claims.into_iter().enumerate() {
        post(name, json!({"ports": [{"port": 80}], "externalIPs": [ip, format!("192.0.2.{n}")]})).await;
        lab.api.event("AddressConflict", name).await;
    }
    let vips = || {
        let cache = lab.nb.cache();
        let vips = cache.iter(load_balancer::TABLE).flat_map(|(_, row)| {
            row.map(load_balancer::VIPS).iter().map(|(vip, _)| vip.to_owned()).collect::<Vec<_>>()
        });
        vips.collect::<Vec<_>>()
    };
    let rest = ["192.0.2.0:80", "192.0.2.1:80", "192.0.2.2:80"].map(str::to_owned);
    until("the rest is served", async || rest.iter().all(|vip| vips().contains(vip))).await;
    let own = format!("{cluster_ip}:80");
    assert_eq!(vips().iter().filter(|vip| **vip == own).count(), 1, "the owner keeps its address");
    assert!(!vips().iter().any(|vip| vip.starts_with("172.18.0.7") || vip.starts_with("10.128.")), "{:?}", vips());
}

/// The engine is killed at any moment while pods are added and removed.
#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_is_killed_again_and_again() {
    let lab = Lab::with_pods(4).await;
    for round in 0..12_u64 {
        let engine = lab.engine().await;
        for n in 0..4 {
            lab.api.pod("a", &format!("k{round}-{n}"), ["n1", "n2"][n % 2], json!({})).await;
            if round > 0 && n % 2 == 1 {
                lab.api.delete_pod("a", &format!("k{}-{n}", round - 1)).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(round * 17 % 150)).await;
        drop(engine);
        rules::addresses_are_unique(&lab.nb.cache());
    }
    let engine = lab.engine().await;
    lab.settled().await;
    drop(engine);
    let engine = lab.engine().await;
    engine.ready().await;
    assert_eq!(engine.writes(), (0, 0));
}

/// One process without a database assigns numbers and subnets, another writes the rows.
#[tokio::test(flavor = "multi_thread")]
async fn separate_cluster_manager_and_controller() {
    let lab = Lab::with_pods(4).await;
    let alone = |roles| Settings { roles, ..Settings::default() };
    let manager = alone(Roles { cluster_manager: true, ..Roles::default() });
    let controller = alone(Roles { controller: true, ..Roles::default() });
    let rows = Running::start(&lab.api, controller.network(), Some(lab.server.client().await)).await;
    rows.ready().await;
    let annotations = Running::start(&lab.api, manager.network(), None).await;
    lab.settled().await;
    assert_eq!(annotations.writes().0, 0);
    lab.api.node("n3", json!({})).await;
    lab.api.pod("a", "late", "n3", json!({})).await;
    until("a pod of a later node is wired", async || lab.has_port("a_late")).await;
    lab.settled().await;
}

/// A patch requested while another is in flight is not lost when that one finishes.
#[tokio::test(flavor = "multi_thread")]
async fn a_patch_replaced_in_flight_is_reported() {
    let api = Api::up().await;
    api.node("n1", json!({})).await;
    let uid = api.get("/api/v1/nodes/n1").await["metadata"]["uid"].as_str().unwrap().to_owned();
    let patch = |value: &str, seen: Seen| Patch {
        target: PatchTarget::Node("n1".into()),
        uid: uid.as_str().into(),
        annotations: vec![("test", value.to_owned())],
        seen,
        labels: Vec::new(),
        network_unavailable: None,
    };
    let client = ovnkube_watch::Client::connect(&api.access()).await.unwrap();
    let mut patches = Patches::new(client, std::sync::Arc::new(|| true));
    let key = Key::NodeAnnotations("n1".into());
    patches.want(&key, Some(patch("first", Seen::Bare)));
    patches.want(&key, Some(patch("second", Seen::Bare)));
    assert!(matches!(patches.finished().await, Outcome::Outdated(k) if k == key));
    patches.want(&key, Some(patch("second", Seen::Texts(vec![Some("first".into())]))));
    assert!(matches!(patches.finished().await, Outcome::Accepted(k) if k == key));
    assert_eq!(api.get("/api/v1/nodes/n1").await["metadata"]["annotations"]["test"], "second");
}

/// The watch shows a patch and that another program has reverted it, and only then does the answer arrive: no event would
/// plan the key again.
#[tokio::test(flavor = "multi_thread")]
async fn a_patch_reverted_before_its_answer_is_sent_again() {
    let api = Api::up().await;
    api.node("n1", json!({"other": "x"})).await;
    let annotation = async || api.get("/api/v1/nodes/n1").await["metadata"]["annotations"]["test"].clone();
    let patch = Patch {
        target: PatchTarget::Node("n1".into()),
        uid: api.get("/api/v1/nodes/n1").await["metadata"]["uid"].as_str().unwrap().into(),
        annotations: vec![("test", "ours".to_owned())],
        seen: Seen::Texts(vec![None]),
        labels: Vec::new(),
        network_unavailable: None,
    };
    let client = ovnkube_watch::Client::connect(&api.access()).await.unwrap();
    for shown_in_between in [true, false] {
        let mut patches = Patches::new(client.clone(), std::sync::Arc::new(|| true));
        let key = Key::NodeAnnotations("n1".into());
        assert_eq!(patches.want(&key, Some(patch.clone())), None);
        until("the patch is carried out", async || annotation().await == "ours").await;
        if shown_in_between {
            assert_eq!(patches.want(&key, None), None);
        }
        let revert = json!({"metadata": {"annotations": {"test": null}}});
        api.ask(Method::PATCH, "/api/v1/nodes/n1", revert.clone()).await.unwrap();
        let check = patches.want(&key, Some(patch.clone())).expect("the key is not checked again");
        assert!(matches!(patches.finished().await, Outcome::Accepted(k) if k == key));
        tokio::time::sleep_until(check).await;
        patches.doubt(&key, true);
        assert_eq!(patches.want(&key, Some(patch.clone())), None);
        assert!(matches!(patches.finished().await, Outcome::Accepted(k) if k == key));
        assert_eq!(annotation().await, "ours");
        api.ask(Method::PATCH, "/api/v1/nodes/n1", revert).await.unwrap();
    }
}
