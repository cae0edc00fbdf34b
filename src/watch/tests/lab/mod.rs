//! A temporary Kubernetes API, a proxy to it that can be closed, and requests to prepare it.
#![allow(dead_code, reason = "each test binary uses a part of it")]

#[allow(unreachable_pub, reason = "of the crate of tests")]
#[path = "../../../../tests/dir.rs"]
mod dir;
#[allow(unreachable_pub, reason = "of the crate of tests")]
#[path = "../../../../tests/servers.rs"]
mod servers;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use ovnkube_model::{Change, Kind};
use ovnkube_watch::{Access, Annotations, Client, Scope, start};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{Receiver, channel, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing_subscriber::fmt::MakeWriter;

use servers::Servers;

/// Longer than any step takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// One annotation.
pub(crate) fn set(key: &str, value: &str) -> Annotations {
    Annotations::from([(key.to_owned(), Some(value.to_owned()))])
}

/// What is logged in a test.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(crate) fn holds(&self, text: &str) -> bool {
        self.count(text) > 0
    }

    /// How often it has been written.
    pub(crate) fn count(&self, text: &str) -> usize {
        String::from_utf8_lossy(&self.0.lock().unwrap()).matches(text).count()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(text)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// etcd and kube-apiserver.
pub(crate) struct Cluster {
    servers: Arc<Servers>,
}

impl Cluster {
    pub(crate) fn up() -> Self {
        Self { servers: Arc::new(Servers::up()) }
    }

    /// One for all tests of a process that run at the same time.
    pub(crate) fn shared() -> Self {
        Self { servers: Servers::shared() }
    }

    /// The same with leases of these names for a master.
    pub(crate) fn with_leases(names: &[&str]) -> Self {
        let cluster = Self::shared();
        for name in names {
            let kubectl = |words: &[&str]| cluster.servers.kubectl(&[words, &["-n", "ovn-kubernetes"]].concat());
            let of = format!("--resource-name={name}");
            kubectl(&["create", "role", name, "--verb=get,patch", "--resource=leases.coordination.k8s.io", &of]);
            let role = format!("--role={name}");
            kubectl(&["create", "rolebinding", name, &role, "--serviceaccount=ovn-kubernetes:ovn"]);
            // like those of masters in dist/yaml
            let file = cluster.file(&format!("lease-{name}"));
            std::fs::write(&file, lease(name).to_string()).unwrap();
            kubectl(&["create", "-f", &file.display().to_string()]);
        }
        cluster
    }

    /// Kills the API server and starts it again: it then knows only the last version of each object.
    pub(crate) fn restart_apiserver(&self) {
        self.servers.kill();
        self.servers.start();
    }

    /// With the rights of a master.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.servers.master()
    }

    /// The kubeconfig of a user with a client certificate; `crt` and `key` are next to it.
    pub(crate) fn user(&self, name: &str, groups: &[&str]) -> PathBuf {
        self.servers.user(name, groups)
    }

    /// With the rights of an agent: that of this node, if one is named.
    pub(crate) fn agent(&self, node: Option<&str>) -> PathBuf {
        self.servers.agent(node)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.servers.file(name)
    }

    pub(crate) fn token(&self) -> String {
        std::fs::read_to_string(self.kubeconfig().with_extension("token")).unwrap().trim().to_owned()
    }

    pub(crate) fn port(&self) -> u16 {
        self.servers.port()
    }

    /// Access by token, through `port` of loopback.
    pub(crate) fn access(&self, port: u16) -> Access {
        Access {
            apiserver: Some(format!("https://127.0.0.1:{port}")),
            ca: Some(self.file("ca.crt")),
            token: Some(self.token().into()),
            role: "test".into(),
            ..Access::default()
        }
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(&self.access(self.port())).await.unwrap()
    }

    /// Sends a request directly, without the code under test.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: Value) -> Result<Value, kube::Error> {
        let kubeconfig = kube::config::Kubeconfig::read_from(self.file("admin.kubeconfig")).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &kube::config::KubeConfigOptions::default())
            .await
            .unwrap();
        let client = kube::Client::try_from(config).unwrap();
        let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
        client
            .request(request.body(if body.is_null() { Vec::new() } else { body.to_string().into_bytes() }).unwrap())
            .await
    }

    pub(crate) async fn create(&self, path: &str, body: Value) -> Value {
        self.ask(Method::POST, path, body).await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.ask(Method::GET, path, Value::Null).await.unwrap()
    }

    /// A namespace in which pods can be created.
    pub(crate) async fn namespace(&self, name: &str) {
        self.create("/api/v1/namespaces", json!({"metadata": {"name": name}})).await;
        let account = json!({"metadata": {"name": "default"}});
        self.create(&format!("/api/v1/namespaces/{name}/serviceaccounts"), account).await;
    }

    /// Creates a pod on a node; returns its uid.
    pub(crate) async fn pod(&self, namespace: &str, name: &str, node: &str) -> String {
        let spec = json!({"nodeName": node, "containers": [{"name": "c", "image": "none"}]});
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        let pod = self.create(&format!("/api/v1/namespaces/{namespace}/pods"), pod).await;
        pod["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn node(&self, name: &str) -> String {
        let node = self.create("/api/v1/nodes", json!({"metadata": {"name": name}})).await;
        node["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn delete_pod(&self, namespace: &str, name: &str) {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        self.ask(Method::DELETE, &path, json!({"gracePeriodSeconds": 0})).await.unwrap();
    }
}

/// A lease that was never held.
fn lease(name: &str) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": {}})
}

/// Creates such a lease.
pub(crate) async fn empty_lease(cluster: &Cluster, name: &str) {
    cluster.create("/apis/coordination.k8s.io/v1/namespaces/ovn-kubernetes/leases", lease(name)).await;
}

/// A port of loopback that forwards to another one while it is open.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    open: Arc<AtomicBool>,
    silence: Arc<watch::Sender<()>>,
    deafness: Arc<watch::Sender<()>>,
    /// In ms.
    late: Arc<AtomicU64>,
    connections: Arc<Mutex<JoinSet<()>>>,
}

/// Forwards what a server says, later. It borrows `to`: a half that is dropped ends its connection, which must stay when this is cut short.
async fn forward(
    from: &mut OwnedReadHalf,
    to: &mut OwnedWriteHalf,
    late: Arc<AtomicU64>,
    mut deaf: watch::Receiver<()>,
) {
    let (sender, mut said) = unbounded_channel::<(Instant, Vec<u8>)>();
    let write = async {
        use tokio::io::AsyncWriteExt as _; // its `write` would be that of std elsewhere
        while let Some((at, bytes)) = said.recv().await {
            sleep_until(at).await;
            if to.write_all(&bytes).await.is_err() {
                break;
            }
        }
    };
    let read = async move {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut bytes).await {
            let at = Instant::now() + Duration::from_millis(late.load(Ordering::SeqCst));
            let _ = sender.send((at, bytes[..length].to_vec()));
        }
    };
    let write = async {
        tokio::select! {
            () = write => {}
            _ = deaf.changed() => std::future::pending().await,
        }
    };
    tokio::join!(read, write);
}

impl Proxy {
    pub(crate) async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            port: listener.local_addr().unwrap().port(),
            open: Arc::new(AtomicBool::new(true)),
            silence: Arc::default(),
            deafness: Arc::default(),
            late: Arc::default(),
            connections: Arc::default(),
        };
        let (open, silence, connections) = (proxy.open.clone(), proxy.silence.clone(), proxy.connections.clone());
        let (deafness, late) = (proxy.deafness.clone(), proxy.late.clone());
        tokio::spawn(async move {
            while let Ok((outside, _)) = listener.accept().await {
                if open.load(Ordering::SeqCst) {
                    let mut silenced = silence.subscribe();
                    let (deaf, late) = (deafness.subscribe(), late.clone());
                    connections.lock().unwrap().spawn(async move {
                        if let Ok(inside) = TcpStream::connect(("127.0.0.1", port)).await {
                            let ((mut heard, mut to), (mut from, mut say)) =
                                (outside.into_split(), inside.into_split());
                            tokio::select! {
                                _ = copy(&mut heard, &mut say) => {}
                                () = forward(&mut from, &mut to, late, deaf) => {}
                                _ = silenced.changed() => std::future::pending().await,
                            }
                        }
                    });
                }
            }
        });
        proxy
    }

    /// Cuts existing connections and new ones.
    pub(crate) fn shut(&self) {
        self.open.store(false, Ordering::SeqCst);
        self.connections.lock().unwrap().abort_all();
    }

    /// From now on what the server says comes so much later.
    pub(crate) fn delay(&self, by: Duration) {
        self.late.store(by.as_millis() as u64, Ordering::SeqCst);
    }

    /// Existing connections stay but forward nothing more, as if one of many API servers hung; new connections work.
    pub(crate) fn silence(&self) {
        self.silence.send_replace(());
    }

    /// Existing connections still forward what clients say, but no answer.
    pub(crate) fn deafen(&self) {
        self.deafness.send_replace(());
    }

    pub(crate) fn open(&self) {
        self.open.store(true, Ordering::SeqCst);
    }
}

/// Watches nodes over a connection that then falls silent, and hears of a new one within this time.
pub(crate) async fn news_comes_after_silence(cluster: &Cluster, proxy: &Proxy, client: &Client, within: Duration) {
    let (sender, mut changes) = channel(1024);
    let _watches = start(client, &Scope::Nodes, &sender);
    let is =
        |name: &'static str| move |change| matches!(change, Change::Node(key, Some(_)) if *key == *name).then_some(());
    next(&mut changes, |change| (change == Change::Synced(Kind::Node)).then_some(())).await;
    // the watch is open once this comes
    cluster.node("before").await;
    next(&mut changes, is("before")).await;
    proxy.silence();
    cluster.node("after").await;
    let heard = timeout(within, next(&mut changes, is("after"))).await;
    heard.expect("blind until the watch counts as dead");
}

/// The first result of `wanted` for the next changes; changes without one are skipped.
pub(crate) async fn next<T>(changes: &mut Receiver<Change>, mut wanted: impl FnMut(Change) -> Option<T>) -> T {
    let find = async {
        loop {
            let change = changes.recv().await.unwrap();
            if let Some(found) = wanted(change) {
                return found;
            }
        }
    };
    timeout(PATIENCE, find).await.expect("the change never came")
}

/// Waits until `condition` holds.
pub(crate) async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !condition().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("never came: {what}"));
}
