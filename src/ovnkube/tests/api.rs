//! A real Kubernetes API: etcd and kube-apiserver, and requests to fill it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};

use http::Method;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::sync::{Mutex as Turn, MutexGuard};

/// The namespace that pods are made in.
pub(crate) const NAMESPACE: &str = "default";

static TURN: Turn<()> = Turn::const_new(());

/// The API in the hands of one test.
pub(crate) struct Api {
    servers: Arc<Servers>,
    _turn: MutexGuard<'static, ()>,
}

/// etcd and kube-apiserver, stopped when dropped.
struct Servers {
    dir: PathBuf,
}

impl Servers {
    fn up() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("ovnkube-api-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let servers = Self { dir: std::env::temp_dir().join(name) };
        servers.k8slab("up");
        servers
    }

    fn k8slab(&self, word: &str) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/k8slab");
        let lab = std::env::var("LAB_HOME").unwrap_or_else(|_| "/var/lib/ovnkube-lab".into());
        let mut command = Command::new(script);
        command.arg(word).env("K8SLAB_DIR", &self.dir).env("KUBEBUILDER_ASSETS", format!("{lab}/bin"));
        let out = command.output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "k8slab {word}: {said}; run lab/install");
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.k8slab("down");
    }
}

impl Api {
    /// An API without nodes and pods. The servers are shared by all tests of a process, which take
    /// turns: starting them anew takes longer than most tests.
    pub(crate) async fn empty() -> Self {
        static SHARED: Mutex<Weak<Servers>> = Mutex::new(Weak::new());
        let servers = {
            let mut shared = SHARED.lock().unwrap();
            shared.upgrade().unwrap_or_else(|| {
                let servers = Arc::new(Servers::up());
                *shared = Arc::downgrade(&servers);
                servers
            })
        };
        let api = Self { servers, _turn: TURN.lock().await };
        // without a controller manager nobody makes the account that every pod needs
        let account = json!({"metadata": {"name": "default"}});
        let _ = api.ask(Method::POST, &format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts"), account).await;
        let lists = ["pods", "events"].map(|kind| format!("/api/v1/namespaces/{NAMESPACE}/{kind}"));
        let leases = "/apis/coordination.k8s.io/v1/namespaces/ovn-kubernetes/leases".to_owned();
        for list in lists.into_iter().chain(["/api/v1/nodes".to_owned(), leases]) {
            api.ask(Method::DELETE, &list, json!({"gracePeriodSeconds": 0})).await.unwrap();
        }
        api
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.file("admin.kubeconfig")
    }

    /// A file beside the servers: `ca.crt`, `admin.token`.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.servers.dir.join(name)
    }

    /// `https://host:port`.
    pub(crate) fn url(&self) -> String {
        let ports = std::fs::read_to_string(self.file("ports")).unwrap();
        format!("https://127.0.0.1:{}", ports.lines().find_map(|l| l.strip_prefix("PORT=")).unwrap())
    }

    /// Kills the API server; etcd keeps what there is.
    pub(crate) fn kill(&self) {
        let pid = self.signal("-KILL");
        while Path::new("/proc").join(&pid).join("exe").exists() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        std::fs::remove_file(self.file("apiserver.pid")).unwrap();
    }

    /// Lets the API server answer nothing more, connections stay as they are.
    pub(crate) fn pause(&self) {
        self.signal("-STOP");
    }

    fn signal(&self, signal: &str) -> String {
        let pid = std::fs::read_to_string(self.file("apiserver.pid")).unwrap().trim().to_owned();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        pid
    }

    /// Starts the API server after [`Api::kill`], on the same port.
    pub(crate) fn start(&self) {
        self.servers.k8slab("up");
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, body: Value) -> Result<Value, kube::Error> {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig()).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let client = kube::Client::try_from(config).unwrap();
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

    /// Makes a pod on a node.
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
