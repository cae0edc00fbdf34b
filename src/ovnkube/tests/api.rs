//! A real Kubernetes API: etcd and kube-apiserver, and requests to fill it.

use std::path::PathBuf;

use http::Method;
use kube::config::{KubeConfigOptions, Kubeconfig};
use ovnkube_tests::servers::Turn;
use serde_json::{Value, json};

/// The namespace that pods are made in.
pub(crate) const NAMESPACE: &str = "default";

/// The cluster's common values.
pub(crate) const CLUSTER: &str = "/api/v1/namespaces/ovn-kubernetes/configmaps/ovnkube-cluster";

/// How the cluster is joined with others.
const INTERCONNECTION: &str = "/api/v1/namespaces/kube-system/configmaps/ovn-ic-config";

/// The API, reserved for one test.
pub(crate) struct Api {
    servers: Turn,
}

impl Api {
    /// An API without nodes and pods.
    pub(crate) async fn empty() -> Self {
        let api = Self { servers: Turn::take().await };
        // without a controller manager the account that every pod needs is missing
        let account = json!({"metadata": {"name": "default"}});
        let _ = api.ask(Method::POST, &format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts"), account).await;
        let lists = ["pods", "events"].map(|kind| format!("/api/v1/namespaces/{NAMESPACE}/{kind}"));
        let leases = "/apis/coordination.k8s.io/v1/namespaces/ovn-kubernetes/leases".to_owned();
        for list in lists.into_iter().chain(["/api/v1/nodes".to_owned(), leases.clone()]) {
            api.ask(Method::DELETE, &list, json!({"gracePeriodSeconds": 0})).await.unwrap();
        }
        // what a test left that failed
        let _ = api.ask(Method::DELETE, INTERCONNECTION, Value::Null).await;
        // without a holder, as in dist/yaml
        for name in ["ovn-kubernetes-master", "ovn-kubernetes-master-global"] {
            let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}});
            api.ask(Method::POST, &leases, lease).await.unwrap();
        }
        api.ask(Method::PATCH, CLUSTER, json!({"data": null})).await.unwrap();
        api
    }

    /// With the rights of a master.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.servers.master()
    }

    /// With the rights of this node's agent.
    pub(crate) fn agent(&self, node: &str) -> PathBuf {
        self.servers.agent(Some(node))
    }

    /// A file next to the servers: `ca.crt`.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.servers.file(name)
    }

    /// `https://host:port`.
    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.servers.port())
    }

    /// Kills the API server; etcd keeps its data.
    pub(crate) fn kill(&self) {
        self.servers.kill();
    }

    /// Stops the API server from answering; connections stay open.
    pub(crate) fn pause(&self) {
        self.servers.signal("-STOP");
    }

    /// Starts the API server after [`Api::kill`], on the same port.
    pub(crate) fn start(&self) {
        self.servers.start();
    }

    async fn client(&self) -> kube::Client {
        let kubeconfig = Kubeconfig::read_from(self.file("admin.kubeconfig")).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        kube::Client::try_from(config).unwrap()
    }

    /// How many lists of this kind there were since the API server started.
    pub(crate) async fn lists(&self, kind: &str) -> u64 {
        let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
        let text = self.client().await.request_text(request).await.unwrap();
        let words = ["apiserver_request_total{".to_owned(), format!("resource=\"{kind}\""), "verb=\"LIST\"".to_owned()];
        let lines = text.lines().filter(|line| words.iter().all(|word| line.contains(word)));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as u64).sum()
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, body: Value) -> Result<Value, kube::Error> {
        let client = self.client().await;
        let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
        client.request(request.body(body).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.ask(Method::GET, path, Value::Null).await.unwrap()
    }

    /// The objects of a list.
    pub(crate) async fn list(&self, path: &str) -> Vec<Value> {
        self.get(path).await["items"].as_array().unwrap().clone()
    }

    pub(crate) async fn pods(&self) -> Vec<Value> {
        self.list(&format!("/api/v1/namespaces/{NAMESPACE}/pods")).await
    }

    pub(crate) async fn node(&self, name: &str) {
        self.annotated_node(name, json!({})).await;
    }

    pub(crate) async fn annotated_node(&self, name: &str, annotations: Value) {
        let node = json!({"metadata": {"name": name, "annotations": annotations}});
        self.ask(Method::POST, "/api/v1/nodes", node).await.unwrap();
    }

    /// Creates a pod on a node.
    pub(crate) async fn pod(&self, name: &str, node: &str) {
        self.annotated_pod(name, node, json!({})).await;
    }

    pub(crate) async fn annotated_pod(&self, name: &str, node: &str, annotations: Value) {
        let spec = json!({"nodeName": node, "containers": [{"name": "c", "image": "none"}]});
        let pod = json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec});
        self.ask(Method::POST, &format!("/api/v1/namespaces/{NAMESPACE}/pods"), pod).await.unwrap();
    }

    pub(crate) async fn delete_pod(&self, name: &str) {
        self.delete(&format!("/api/v1/namespaces/{NAMESPACE}/pods/{name}")).await;
    }

    pub(crate) async fn delete(&self, path: &str) {
        self.ask(Method::DELETE, path, json!({"gracePeriodSeconds": 0})).await.unwrap();
    }

    /// Sets annotations of an object; null removes one.
    pub(crate) async fn annotate(&self, path: &str, annotations: Value) {
        self.ask(Method::PATCH, path, json!({"metadata": {"annotations": annotations}})).await.unwrap();
    }

    /// Reasons and messages of the Events about an object.
    pub(crate) async fn events(&self, about: &str) -> Vec<(String, String)> {
        let mut events = self.list(&format!("/api/v1/namespaces/{NAMESPACE}/events")).await;
        events.retain(|event| event["involvedObject"]["name"] == about);
        let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
        events.iter().map(|event| (text(event, "reason"), text(event, "message"))).collect()
    }
}
