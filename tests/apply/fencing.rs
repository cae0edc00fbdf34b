//! A master that slept between its last check and the request does not overwrite what its successor has given out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use ovnkube_apply::{MayWrite, Outcome, Patches};
use ovnkube_model::{PodAnnotation, PodKey, Roles};
use ovnkube_ovn::nb::logical_switch_port as lsp;
use ovnkube_ovsdb::Client as Database;
use ovnkube_plan::{Key, Patch, PatchTarget, Seen};
use ovnkube_tests::api::{Api, Running};
use ovnkube_tests::nb::{Release, Server, until, within};
use ovnkube_tests::settings::Settings;
use ovnkube_watch::Client;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

const POD_NETWORKS: &str = "k8s.ovn.org/pod-networks";
const SUBNETS: &str = "k8s.ovn.org/node-subnets";

/// A way to the API server. What is sent while it is shut arrives when it opens; answers always pass.
struct Gate {
    port: u16,
    open: watch::Sender<bool>,
    held: Arc<AtomicUsize>,
}

impl Gate {
    async fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (open, is_open) = watch::channel(true);
        let held = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&held);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (mut from_client, mut to_client) = client.into_split();
                let (mut from_server, mut to_server) =
                    TcpStream::connect(("127.0.0.1", server)).await.unwrap().into_split();
                let (mut is_open, count) = (is_open.clone(), Arc::clone(&count));
                tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
                tokio::spawn(async move {
                    let mut bytes = vec![0; 1 << 16];
                    while let Ok(length @ 1..) = from_client.read(&mut bytes).await {
                        if !*is_open.borrow() {
                            count.fetch_add(length, Ordering::Relaxed);
                        }
                        let _ = is_open.wait_for(|open| *open).await;
                        if to_server.write_all(&bytes[..length]).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { port, open, held }
    }

    fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

/// A master behind a gate, and whether it believes to have the lease.
struct Old {
    gate: Gate,
    lease: Arc<AtomicBool>,
    engine: Running,
}

impl Old {
    async fn start(api: &Api, nb: Option<Database>) -> Self {
        let gate = Gate::to(api.port()).await;
        let lease = Arc::new(AtomicBool::new(true));
        let held = Arc::clone(&lease);
        let may_write: MayWrite = Arc::new(move || held.load(Ordering::Relaxed));
        let engine = Running::with(&api.through(gate.port), network(nb.is_some()), nb, None, may_write).await;
        engine.ready().await;
        Self { gate, lease, engine }
    }

    /// It has sent a patch, which has not arrived, and loses its lease.
    async fn falls_asleep(&self) {
        let mut before = 0;
        until("a patch that is held back", async || {
            sleep(Duration::from_millis(500)).await;
            let now = self.gate.held();
            std::mem::replace(&mut before, now) == now && now > 0
        })
        .await;
        self.lease.store(false, Ordering::Relaxed);
    }

    /// What it has sent arrives.
    async fn wakes(&self) {
        let patches = self.engine.writes().1;
        self.gate.open.send_replace(true);
        sleep(Duration::from_secs(3)).await;
        assert_eq!(self.engine.writes().1, patches, "a patch of the old master was accepted");
    }
}

fn network(controls: bool) -> ovnkube_model::NetworkSettings {
    let mut network = Settings::default().network();
    if !controls {
        network.roles = Roles { controller: false, ..network.roles };
    }
    network
}

async fn annotation(api: &Api, path: &str, key: &str) -> String {
    let object = api.get(&format!("/api/v1/{path}")).await;
    object["metadata"]["annotations"][key].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nodes_subnet_is_not_given_out_twice() {
    let api = Api::up().await;
    let old = Old::start(&api, None).await;
    old.gate.open.send_replace(false);
    // one without annotations, and one with
    api.node("n2", Value::Null).await;
    api.node("n3", json!({"a": "b"})).await;
    old.falls_asleep().await;
    // the old master had given out the first two
    let taken = [(SUBNETS, r#"{"default":["10.128.0.0/23"]}"#), ("k8s.ovn.org/node-id", "2")];
    api.node("n1", taken.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect()).await;
    let new = Running::start(&api, network(false), None).await;
    new.ready().await;
    let subnets = async || [annotation(&api, "nodes/n2", SUBNETS).await, annotation(&api, "nodes/n3", SUBNETS).await];
    until("the new master's subnets", async || subnets().await.iter().all(|text| !text.is_empty())).await;
    let given = subnets().await;
    assert!(given[0] != given[1] && !given.contains(&taken[0].1.to_owned()), "{given:?}");
    old.wakes().await;
    assert_eq!(subnets().await, given);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pods_address_is_not_given_out_twice() {
    let (api, server) = (Api::up().await, Server::new(Release::Lts));
    let nb = server.client().await;
    api.namespace("a").await;
    let node = json!({
        "k8s.ovn.org/node-chassis-id": "chassis-n1", "k8s.ovn.org/node-id": "1", SUBNETS: r#"{"default":["10.128.0.0/23"]}"#,
    });
    api.node("n1", node).await;
    let old = Old::start(&api, Some(server.client().await)).await;
    // its first annotations of the node are seen
    until("the node's rows", async || !nb.cache().lookup(lsp::TABLE, "stor-n1").is_empty()).await;
    sleep(Duration::from_secs(1)).await;
    old.gate.open.send_replace(false);
    api.pod("a", "bare", "n1", Value::Null).await;
    api.pod("a", "other", "n1", json!({"x": "y"})).await;
    old.falls_asleep().await;
    let network = |ip: &str, mac: &str| {
        json!({"default": {"ip_addresses": [format!("{ip}/23")], "mac_address": mac}}).to_string()
    };
    for (name, ip, mac) in [("p3", "10.128.0.3", "0a:58:0a:80:00:03"), ("p4", "10.128.0.4", "0a:58:0a:80:00:04")] {
        api.pod("a", name, "n1", json!({POD_NETWORKS: network(ip, mac)})).await;
    }
    let new = Running::start(&api, self::network(true), Some(server.client().await)).await;
    new.ready().await;
    let addresses = async || {
        [
            annotation(&api, "namespaces/a/pods/bare", POD_NETWORKS).await,
            annotation(&api, "namespaces/a/pods/other", POD_NETWORKS).await,
        ]
    };
    until("the new master's addresses", async || addresses().await.iter().all(|text| !text.is_empty())).await;
    let given = addresses().await;
    let is_new = |text: &String| !text.contains("10.128.0.3/") && !text.contains("10.128.0.4/");
    assert!(given[0] != given[1] && given.iter().all(is_new), "{given:?}");
    old.wakes().await;
    assert_eq!(addresses().await, given);
}

/// A master that is stopped waits for these before another one may begin.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_is_waited_for() {
    let api = Api::up().await;
    api.node("n1", json!({"a": "b"})).await;
    let gate = Gate::to(api.port()).await;
    let client = Client::connect(&api.through(gate.port)).await.unwrap();
    let mut patches = Patches::new(client, Arc::new(|| true));
    let on_their_way = patches.on_their_way();
    let patch = Patch {
        target: PatchTarget::Node("n1".into()),
        uid: api.get("/api/v1/nodes/n1").await["metadata"]["uid"].as_str().unwrap().into(),
        annotations: vec![("test", "late".to_owned())],
        seen: Seen::Texts(vec![None]),
        labels: Vec::new(),
        network_unavailable: None,
    };
    gate.open.send_replace(false);
    patches.want(&Key::NodeAnnotations("n1".into()), Some(patch));
    until("the patch is held back", async || gate.held() > 0).await;
    let ended = tokio::time::timeout(Duration::from_millis(500), on_their_way.ended());
    assert!(ended.await.is_err(), "its end was not waited for");
    gate.open.send_replace(true);
    within("its end", on_their_way.ended()).await;
    assert_eq!(annotation(&api, "nodes/n1", "test").await, "late");
}

/// A text of which only the digest is known is read before it is replaced, and another one is left alone.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_text_that_was_planned_for_is_replaced() {
    let api = Api::up().await;
    api.namespace("a").await;
    let text = |ip: &str| json!({"default": {"ip_addresses": [ip], "mac_address": "0a:58:0a:80:00:03"}}).to_string();
    let (first, second, third) = (text("10.128.0.3/23"), text("10.128.0.4/23"), text("10.128.0.5/23"));
    let uid = api.pod("a", "p", "n1", json!({POD_NETWORKS: first})).await;
    let client = Client::connect(&api.access()).await.unwrap();
    let mut patches = Patches::new(client, Arc::new(|| true));
    let (pod, key) = (PodKey::new("a", "p"), Key::Pods(PodKey::new("a", "p")));
    let mut give = async |seen: &str, text: &str| {
        let digest = PodAnnotation::parse(seen).ok().map(|annotation| annotation.digest);
        let patch = Patch {
            target: PatchTarget::Pod(pod.clone()),
            uid: uid.as_str().into(),
            annotations: vec![(POD_NETWORKS, text.to_owned())],
            seen: Seen::Digest(digest),
            labels: Vec::new(),
            network_unavailable: None,
        };
        // not more than a few requests a second
        while let Some(at) = patches.want(&key, Some(patch.clone())) {
            tokio::time::sleep_until(at).await;
        }
        let outcome = patches.finished().await;
        patches.doubt(&key, true);
        (outcome, annotation(&api, "namespaces/a/pods/p", POD_NETWORKS).await)
    };
    let (outcome, have) = give(&second, &third).await;
    assert!(matches!(outcome, Outcome::Conflict(_)) && have == first, "{outcome:?} {have}");
    let (outcome, have) = give(&first, &second).await;
    assert!(matches!(outcome, Outcome::Accepted(_)) && have == second, "{outcome:?} {have}");
    let (outcome, have) = give("unreadable", &third).await;
    assert!(matches!(outcome, Outcome::Conflict(_)) && have == second, "{outcome:?} {have}");
    let broken = json!({"metadata": {"annotations": {POD_NETWORKS: "{"}}});
    api.ask(Method::PATCH, "/api/v1/namespaces/a/pods/p", broken).await.unwrap();
    let (outcome, have) = give("unreadable", &third).await;
    assert!(matches!(outcome, Outcome::Accepted(_)) && have == third, "{outcome:?} {have}");
}
