//! The environment of a test: an empty API, empty databases, a directory for logs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ovnkube_tests::dir::fresh_dir;
use ovnkube_tests::nb::{Release, Server, until};
use serde_json::Value;

use crate::api::Api;
use crate::process::Process;

pub(crate) const POD_NETWORKS: &str = "k8s.ovn.org/pod-networks";

/// Distinguishes logs.
static COUNT: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Lab {
    pub(crate) api: Api,
    pub(crate) nb: Server,
    pub(crate) sb: Server,
    pub(crate) dir: Dir,
}

/// A directory that is removed with its test.
pub(crate) struct Dir(PathBuf);

impl Dir {
    pub(crate) fn new() -> Self {
        Self(fresh_dir("ovnkube-binary"))
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Lab {
    pub(crate) async fn new() -> Self {
        let (nb, sb) = (Server::new(Release::Lts), Server::southbound(Release::Lts));
        Self { api: Api::empty().await, nb, sb, dir: Dir::new() }
    }

    /// A process in the given mode (`init-master=one`); later flags win.
    pub(crate) fn start(&self, mode: &str, flags: &[&str]) -> Process {
        let mut words = vec![
            format!("--{mode}"),
            format!("--k8s-kubeconfig={}", self.api.kubeconfig().display()),
            format!("--nb-address=unix:{}", self.nb.socket().display()),
            format!("--sb-address=unix:{}", self.sb.socket().display()),
        ];
        words.extend(self.common(flags));
        let log = format!("{mode}-{}.log", COUNT.fetch_add(1, Ordering::Relaxed));
        Process::start(&self.dir.file(&log), words)
    }

    /// Flags that do not concern the connections to the servers.
    pub(crate) fn common(&self, flags: &[&str]) -> Vec<String> {
        let config = self.dir.file("ovn_k8s.conf");
        std::fs::write(&config, "").unwrap();
        let mut words = vec![format!("--config-file={}", config.display())];
        if !flags.iter().any(|flag| flag.starts_with("--cluster-subnets")) {
            words.push("--cluster-subnets=10.128.0.0/14/23".into());
        }
        words.extend(flags.iter().map(ToString::to_string));
        words
    }

    /// An annotation of a node, parsed; null if it has none.
    pub(crate) async fn node_annotation(&self, node: &str, key: &str) -> Value {
        let node = self.api.get(&format!("/api/v1/nodes/{node}")).await;
        let text = node["metadata"]["annotations"][key].as_str().unwrap_or("null");
        serde_json::from_str(text).unwrap_or(Value::Null)
    }

    /// The node's subnet of the default network; empty if it has none.
    pub(crate) async fn subnet(&self, node: &str) -> String {
        let subnets = self.node_annotation(node, "k8s.ovn.org/node-subnets").await;
        subnets["default"][0].as_str().unwrap_or_default().to_owned()
    }

    /// Addresses of the logical ports of pods, by port name.
    pub(crate) fn ports(&self) -> BTreeMap<String, String> {
        let json = self.nb.nbctl(&[
            "--format=json",
            "--columns=name,addresses",
            "find",
            "Logical_Switch_Port",
            "external_ids:pod=true",
        ]);
        let table: Value = serde_json::from_str(&json).unwrap();
        let text = |cell: &Value| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned);
        table["data"].as_array().unwrap().iter().map(|row| (text(&row[0]), text(&row[1]))).collect()
    }

    /// The pods that are annotated, with `MAC IP` as annotated.
    pub(crate) async fn wirings(&self) -> BTreeMap<String, String> {
        let pods = self.api.pods().await;
        pods.iter().filter_map(|pod| Some((pod["metadata"]["name"].as_str()?.to_owned(), wiring(pod)?))).collect()
    }

    /// Waits until there are that many pods, each with an annotation and one port that says the same,
    /// no two of the same address, and no other ports.
    pub(crate) async fn wired(&self, pods: usize) {
        until(&format!("{pods} pods with a port each"), async || {
            let wirings = self.wirings().await;
            let want = wirings.iter().map(|(name, addresses)| (format!("default_{name}"), addresses.clone()));
            wirings.len() == pods && self.ports() == want.collect()
        })
        .await;
        let wirings = self.wirings().await;
        let unique: std::collections::BTreeSet<_> = wirings.values().collect();
        assert_eq!(unique.len(), pods, "an address twice: {wirings:?}");
    }

    /// Everything ever written to the database: tables, rows and columns of each transaction.
    pub(crate) fn transactions(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(self.nb.socket().with_file_name("db")).unwrap();
        let mut records = log.lines().filter(|line| line.starts_with('{'));
        records.next().expect("the first record is the schema");
        records.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits until nothing has been written for a while.
    pub(crate) async fn quiet(&self) {
        let (mut written, mut same) = (0, 0);
        until("nothing more to write", async || {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let now = self.transactions().len();
            same = if now == written { same + 1 } else { 0 };
            written = now;
            same > 5
        })
        .await;
    }

    /// Waits until a process has written everything for the first time.
    pub(crate) async fn ready(&self, process: &Process) {
        until("everything is written", async || process.log().contains("everything is written")).await;
    }
}

fn wiring(pod: &Value) -> Option<String> {
    let networks: Value = serde_json::from_str(pod["metadata"]["annotations"][POD_NETWORKS].as_str()?).ok()?;
    let network = &networks["default"];
    let ip = network["ip_addresses"][0].as_str()?.split('/').next()?;
    Some(format!("{} {ip}", network["mac_address"].as_str()?))
}
