//! A real Kubernetes API and the real engine connected to it.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use ovnkube_apply::{
    Chassis, Engine, Interconnection, JoinSettings, Listening, MayWrite, OwnDatabases, Parts, Patches, TakeoverCheck,
};
use ovnkube_model::{NetworkSettings, World};
use ovnkube_ovsdb::Client as Database;
use ovnkube_telemetry::Metrics;
use ovnkube_watch::{Access, Client, Events, Scope};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::nb::until;
use crate::servers::Turn;

/// The API, reserved for one test.
pub struct Api {
    servers: Turn,
    client: kube::Client,
}

/// Objects that tests create in namespaces, apart from pods.
const NAMESPACED: [&str; 4] = [
    "api/v1/serviceaccounts",
    "api/v1/services",
    "apis/discovery.k8s.io/v1/endpointslices",
    "apis/networking.k8s.io/v1/networkpolicies",
];

impl Api {
    /// An API without nodes, pods and namespaces of ours.
    pub async fn up() -> Self {
        let servers = Turn::take().await;
        let kubeconfig = kube::config::Kubeconfig::read_from(servers.file("admin.kubeconfig")).unwrap();
        let options = kube::config::KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        let api = Self { servers, client: kube::Client::try_from(config).unwrap() };
        api.clear().await;
        api
    }

    /// Removes the objects of earlier tests.
    async fn clear(&self) {
        for namespace in self.list("Namespace").await {
            let name = namespace["metadata"]["name"].as_str().unwrap();
            self.clear_list(&format!("/api/v1/namespaces/{name}/pods")).await;
            self.clear_list(&format!("/api/v1/namespaces/{name}/events")).await;
            // the last has the shipped accounts
            if name != "default" && !name.starts_with("kube-") && name != "ovn-kubernetes" {
                for list in NAMESPACED {
                    let (group, kind) = list.rsplit_once('/').unwrap();
                    self.clear_list(&format!("/{group}/namespaces/{name}/{kind}")).await;
                }
                self.delete_namespace(name).await;
            }
        }
        self.clear_list("/api/v1/nodes").await;
        self.clear_list("/apis/kubeovn.io/v1/subnets").await;
    }

    async fn clear_list(&self, path: &str) {
        self.ask(Method::DELETE, path, json!({"gracePeriodSeconds": 0})).await.unwrap();
    }

    /// With the rights of a master.
    pub fn access(&self) -> Access {
        Access { kubeconfig: Some(self.servers.master()), role: "test".into(), ..Access::default() }
    }

    /// The same through another port of loopback.
    pub fn through(&self, port: u16) -> Access {
        let token_file = Some(self.servers.master().with_extension("token"));
        let ca = Some(self.servers.file("ca.crt"));
        Access {
            apiserver: Some(format!("https://127.0.0.1:{port}")),
            ca,
            token_file,
            role: "test".into(),
            ..Access::default()
        }
    }

    /// The port of the API server.
    pub fn port(&self) -> u16 {
        self.servers.port()
    }

    /// With the right to read everything, and no other rights.
    pub async fn reader(&self) -> Access {
        let path = "/apis/rbac.authorization.k8s.io/v1";
        let rules = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]);
        let role = json!({"metadata": {"name": "test-reader"}, "rules": rules});
        let subjects = json!([{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "test-reader"}]);
        let of = json!({"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": "test-reader"});
        let binding = json!({"metadata": {"name": "test-reader"}, "roleRef": of, "subjects": subjects});
        // an earlier test may have created them
        let _ = self.ask(Method::POST, &format!("{path}/clusterroles"), role).await;
        let _ = self.ask(Method::POST, &format!("{path}/clusterrolebindings"), binding).await;
        let kubeconfig = Some(self.servers.user("test-reader", &[]));
        Access { kubeconfig, role: "test".into(), ..Access::default() }
    }

    /// Sends a request directly, without the code under test.
    pub async fn ask(&self, method: Method, path: &str, body: Value) -> Result<Value, kube::Error> {
        let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
        self.client.request(request.body(body).unwrap()).await
    }

    pub async fn get(&self, path: &str) -> Value {
        self.ask(Method::GET, path, Value::Null).await.unwrap()
    }

    /// The object of this path, if there is one.
    pub async fn find(&self, path: &str) -> Option<Value> {
        match self.ask(Method::GET, path, Value::Null).await {
            Ok(object) => Some(object),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => panic!("get {path}: {error}"),
        }
    }

    /// A namespace in which pods can be created.
    pub async fn namespace(&self, name: &str) {
        self.ask(Method::POST, "/api/v1/namespaces", json!({"metadata": {"name": name}})).await.unwrap();
        let account = json!({"metadata": {"name": "default"}});
        // an earlier namespace may have left one of this name: there is no garbage collector here
        let _ = self.ask(Method::POST, &format!("/api/v1/namespaces/{name}/serviceaccounts"), account).await;
    }

    /// Deletes a namespace completely; nothing else here finalizes it.
    pub async fn delete_namespace(&self, name: &str) {
        let path = format!("/api/v1/namespaces/{name}");
        self.ask(Method::DELETE, &path, Value::Null).await.unwrap();
        let meta = json!({"name": name});
        let rest = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": meta, "spec": {"finalizers": []}});
        self.ask(Method::PUT, &format!("{path}/finalize"), rest).await.unwrap();
    }

    pub async fn node(&self, name: &str, annotations: Value) {
        let node = json!({"metadata": {"name": name, "annotations": annotations}});
        self.ask(Method::POST, "/api/v1/nodes", node).await.unwrap();
    }

    pub async fn delete_node(&self, name: &str) {
        self.ask(Method::DELETE, &format!("/api/v1/nodes/{name}"), Value::Null).await.unwrap();
    }

    /// Creates a pod on a node and returns its uid.
    pub async fn pod(&self, namespace: &str, name: &str, node: &str, annotations: Value) -> String {
        let spec = json!({"nodeName": node, "containers": [{"name": "c", "image": "none"}]});
        let pod = json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec});
        let pod = self.ask(Method::POST, &format!("/api/v1/namespaces/{namespace}/pods"), pod).await.unwrap();
        pod["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    pub async fn delete_pod(&self, namespace: &str, name: &str) {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        self.ask(Method::DELETE, &path, json!({"gracePeriodSeconds": 0})).await.unwrap();
    }

    /// All objects of a kind, each with its kind.
    pub async fn list(&self, kind: &str) -> Vec<Value> {
        let group = if kind == "EndpointSlice" { "apis/discovery.k8s.io/v1" } else { "api/v1" };
        let mut list = self.get(&format!("/{group}/{}s", kind.to_lowercase())).await;
        let mut items = list["items"].as_array_mut().map(std::mem::take).unwrap();
        for item in &mut items {
            item["kind"] = json!(kind);
        }
        items
    }

    /// Waits until there is an Event with this reason about an object of this name.
    pub async fn event(&self, reason: &str, object: &str) {
        until(&format!("event {reason} of {object}"), async || {
            let events = self.get("/api/v1/events").await;
            let is_it = |e: &Value| e["reason"] == reason && e["involvedObject"]["name"] == object;
            events["items"].as_array().unwrap().iter().any(is_it)
        })
        .await;
    }
}

/// A running engine with its watches; dropping it is a crash.
pub struct Running {
    pub metrics: Arc<Metrics>,
    task: JoinHandle<()>,
}

impl Running {
    /// As the controller starts it, without the lease; without a database, as the cluster manager does.
    pub async fn start(api: &Api, network: NetworkSettings, nb: Option<Database>) -> Self {
        Self::with_southbound(api, network, nb, None).await
    }

    /// The same with a southbound database from which it removes chassis.
    pub async fn with_southbound(
        api: &Api,
        network: NetworkSettings,
        nb: Option<Database>,
        sb: Option<Database>,
    ) -> Self {
        Self::with(&api.access(), network, nb, sb, Arc::new(|| true)).await
    }

    /// With other rights than a master's, or a lease that can be lost and regained.
    pub async fn with(
        access: &Access,
        network: NetworkSettings,
        nb: Option<Database>,
        sb: Option<Database>,
        may_write: MayWrite,
    ) -> Self {
        Self::listening(access, network, (nb, sb), may_write, Listening::default()).await
    }

    /// One that asks other clusters more often.
    pub async fn listening(
        access: &Access,
        network: NetworkSettings,
        (nb, sb): (Option<Database>, Option<Database>),
        may_write: MayWrite,
        listening: Listening,
    ) -> Self {
        let client = Client::connect(access).await.unwrap();
        let metrics = Metrics::new("test");
        let counted = metrics.clone();
        let task = tokio::spawn(async move {
            let (changes, incoming) = mpsc::channel(1024);
            let scope = if nb.is_some() { Scope::Controller } else { Scope::ClusterManager };
            let watches = ovnkube_watch::start(&client, &scope, &changes);
            let weak = changes.downgrade();
            drop(changes);
            let settings = || JoinSettings {
                tls: None,
                txn_timeout: Duration::from_secs(10),
                may_write: may_write.clone(),
                metrics: counted.interconnection.clone(),
                listening,
            };
            let own = nb.clone().zip(sb.clone()).map(|(nb, sb)| OwnDatabases { nb, sb });
            let (offers, joined) = own.map(|own| Interconnection::new(own, settings(), &weak)).unzip();
            let joined = joined.map(|joined| tokio::spawn(joined.run()));
            let (claims, stale) =
                sb.map(|sb| Chassis::new(sb, may_write.clone(), None, watch::Sender::default())).unzip();
            stale.map(|stale| tokio::spawn(stale.run()));
            let engine = Engine::new(Parts {
                offers,
                world: World::new(network, scope.kinds().iter().copied()),
                nb,
                writing: watch::Sender::default(),
                chassis: claims,
                patches: Patches::new(client.clone(), may_write.clone()),
                events: Events::start(&client, "ovnkube", "test"),
                may_write,
                takeover: TakeoverCheck::new(false, "ovn-kubernetes"),
                metrics: counted,
                readiness: ovnkube_telemetry::Readiness::default(),
            });
            engine.run(incoming).await;
            drop(watches);
            joined.iter().for_each(tokio::task::JoinHandle::abort);
        });
        Self { metrics, task }
    }

    /// Waits until everything that existed at the start is written.
    pub async fn ready(&self) {
        until("everything is written", async || self.metrics.ready_duration.get() > 0.0).await;
    }

    /// Transactions and annotations so far.
    pub fn writes(&self) -> (u64, u64) {
        (self.metrics.transactions.get(), self.metrics.patches.get())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}
