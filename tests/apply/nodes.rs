//! Nodes are added, changed and removed: the rows left in both databases, with northd running.

use std::cell::Cell;
use std::collections::BTreeMap;

use ovnkube_model::NetworkSettings;
use ovnkube_ovn::sb::{self, chassis, chassis_private};
use ovnkube_ovn::{Database as Schema, nb};
use ovnkube_ovsdb::{Cache, Client as Database};
use ovnkube_tests::api::{Api, Running};
use ovnkube_tests::dump::Dump;
use ovnkube_tests::nb::{Daemon, Host, Release, Server, until};
use ovnkube_tests::settings::Settings;
use serde_json::{Value, json};

const MARK: &str = "other_config:ovn-cms-options=ovnkube-node";
const GATEWAY: &str = "k8s.ovn.org/l3-gateway-config";
const CHASSIS: &str = "k8s.ovn.org/node-chassis-id";

/// One API, both databases, northd between them.
struct Lab {
    api: Api,
    north: Server,
    south: Server,
    nb: Database,
    sb: Database,
    _northd: Daemon,
    /// Gives each host its own address.
    hosts: Cell<u32>,
}

impl Lab {
    /// With a namespace, and a node and a pod that stay.
    async fn up() -> Self {
        let api = Api::up().await;
        let (north, south) = (Server::new(Release::Lts), Server::southbound(Release::Lts));
        let northd = Daemon::northd(&north, &south);
        let (nb, sb) = (north.client().await, south.client().await);
        let lab = Self { api, north, south, nb, sb, _northd: northd, hosts: Cell::new(0) };
        lab.api.namespace("a").await;
        lab.node("stays", "c-stays").await;
        lab.host("c-stays", "stays", &[MARK]);
        lab.api.pod("a", "stays", "stays", json!({})).await;
        lab
    }

    fn network() -> NetworkSettings {
        Settings { host_network_namespace: Some("a".into()), multicast: true, ..Settings::default() }.network()
    }

    async fn engine(&self) -> Running {
        self.engine_with(Self::network()).await
    }

    async fn engine_with(&self, network: NetworkSettings) -> Running {
        let (nb, sb) = (self.north.client().await, self.south.client().await);
        Running::with_southbound(&self.api, network, Some(nb), Some(sb)).await
    }

    async fn node(&self, name: &str, chassis: &str) {
        self.api.node(name, json!({CHASSIS: chassis, GATEWAY: gateway(name, "shared")})).await;
    }

    async fn annotate(&self, node: &str, annotations: Value) {
        self.patch(node, json!({"metadata": {"annotations": annotations}})).await;
    }

    async fn patch(&self, node: &str, patch: Value) {
        self.api.ask(http::Method::PATCH, &format!("/api/v1/nodes/{node}"), patch).await.unwrap();
    }

    /// Creates the rows that a host's ovn-controller leaves when it dies.
    fn host(&self, id: &str, hostname: &str, more: &[&str]) {
        let (name, hostname) = (format!("name={id}"), format!("hostname={hostname}"));
        let words = ["--", "create", "chassis_private", &name, "--", "set", "chassis", id, &hostname];
        let address = format!("172.18.1.{}", self.hosts.replace(self.hosts.get() + 1));
        self.south.sbctl(&[&["chassis-add", id, "geneve", &address], &words[..], more].concat());
    }

    fn chassis(&self) -> Vec<String> {
        names(&self.sb.cache())
    }

    async fn chassis_are(&self, want: &[&str]) {
        until(&format!("chassis {want:?}"), async || self.chassis() == want).await;
    }

    /// Waits until the pod's port is in the northbound database and northd has bound it.
    async fn is_wired(&self, pod: &str) {
        let port = format!("a_{pod}");
        let bound = |cache: &Cache| {
            cache.iter(sb::port_binding::TABLE).any(|(_, row)| row.str(sb::port_binding::LOGICAL_PORT) == port)
        };
        until(&format!("port {port}"), async || bound(&self.sb.cache())).await;
    }

    /// Waits until the southbound database, and its client, have everything from the northbound one.
    async fn is_settled(&self) {
        self.north.nbctl(&["--timeout=180", "--wait=sb", "sync"]);
        let at = self.north.nbctl(&["get", "NB_Global", ".", "nb_cfg"]);
        let seen = |cache: &Cache| {
            cache.iter(sb::sb_global::TABLE).any(|(_, r)| r.int(sb::sb_global::NB_CFG).to_string() == at.trim())
        };
        until("the southbound database follows", async || seen(&self.sb.cache())).await;
    }

    /// Number of rows in each table of both databases.
    fn counts(&self) -> BTreeMap<String, usize> {
        let count = |client: &Database, schema: &'static Schema| {
            let cache = client.cache();
            let tables = schema.tables.iter();
            tables.map(|t| (format!("{}.{}", schema.name, t.name), cache.iter(t).count())).collect::<Vec<_>>()
        };
        count(&self.nb, &nb::DATABASE).into_iter().chain(count(&self.sb, &sb::DATABASE)).collect()
    }

    /// Waits until everything is as before.
    async fn is_as_before(&self, rows: &Dump, counts: &BTreeMap<String, usize>, what: &str) {
        until(&format!("all rows as before {what}"), async || self.counts() == *counts && Dump::of(&self.nb) == *rows)
            .await;
    }
}

/// Names of chassis; also checks that each has its private row and that there are no others.
fn names(sb: &Cache) -> Vec<String> {
    let mut names: Vec<_> = sb.iter(chassis::TABLE).map(|(_, row)| row.str(chassis::NAME).to_owned()).collect();
    let mut private: Vec<_> =
        sb.iter(chassis_private::TABLE).map(|(_, row)| row.str(chassis_private::NAME).to_owned()).collect();
    names.sort();
    private.sort();
    if names == private { names } else { private }
}

/// A host with ovn-controller, configured as the node's agent does it.
fn controller(lab: &Lab, id: &str, hostname: &str, address: &str) -> Host {
    let settings =
        [("system-id", id), ("hostname", hostname), ("ovn-encap-ip", address), ("ovn-cms-options", "ovnkube-node")];
    Host::start(&lab.south, &settings)
}

fn gateway(node: &str, mode: &str) -> String {
    let config = json!({
        "mode": mode, "interface-id": format!("br-ex_{node}"), "mac-address": "02:42:ac:12:00:09",
        "ip-addresses": ["172.18.0.9/16"], "next-hops": ["172.18.255.1"], "node-port-enable": "true", "vlan-id": "0",
    });
    json!({ "default": config }).to_string()
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// 100 times, in every order of events: both databases and this process are as before each time.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_times() {
    let lab = Lab::up().await;
    let engine = lab.engine().await;
    engine.ready().await;
    lab.is_wired("stays").await;
    let mut before = None;
    for round in 0..100 {
        let (node, id) = (["m1", "m2"][round % 2], format!("c{round}"));
        lab.host(&id, node, if round % 3 == 0 { &[] } else { &[MARK] });
        lab.node(node, &id).await;
        for pod in ["p1", "p2"] {
            lab.api.pod("a", pod, node, json!({})).await;
        }
        lab.is_wired("p1").await;
        if round % 4 == 1 {
            // another chassis, another gateway mode
            let other = format!("d{round}");
            lab.host(&other, node, &[MARK]);
            lab.annotate(node, json!({CHASSIS: other, GATEWAY: gateway(node, "local")})).await;
            lab.chassis_are(&["c-stays", &other]).await;
        }
        if round % 4 == 2 {
            lab.annotate(node, json!({GATEWAY: r#"{"default":{"mode":""}}"#})).await;
        }
        let pods_first = round % 2 == 0;
        if !pods_first {
            lab.api.delete_node(node).await;
        }
        for pod in ["p1", "p2"] {
            lab.api.delete_pod("a", pod).await;
        }
        if pods_first {
            lab.api.delete_node(node).await;
        }
        if let Some((rows, counts, most_files)) = &before {
            lab.is_as_before(rows, counts, &format!("round {round}")).await;
            let files = open_files();
            assert!(files < *most_files, "{files} files are open after round {round}");
        } else {
            lab.chassis_are(&["c-stays"]).await;
            until("no trace of the node", async || !Dump::of(&lab.nb).text().contains(node)).await;
            lab.is_settled().await;
            // 80 more for connections to the API, and for other tests of this process; one file a round is still too many
            before = Some((Dump::of(&lab.nb), lab.counts(), open_files() + 80));
        }
    }
}

/// B16: a dead host's chassis is removed with its Node, and the Node returns at once as another chassis with the same address.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_dies_and_is_replaced() {
    let lab = Lab::up().await;
    let _engine = lab.engine().await;
    let host = controller(&lab, "c1", "m1", "172.18.0.1");
    lab.node("m1", "c1").await;
    lab.chassis_are(&["c-stays", "c1"]).await;
    drop(host);
    lab.api.delete_node("m1").await;
    lab.chassis_are(&["c-stays"]).await;
    // and once more while its Node stays
    let host = controller(&lab, "c1", "m1", "172.18.0.1");
    lab.node("m1", "c1").await;
    lab.chassis_are(&["c-stays", "c1"]).await;
    drop(host);
    let _host = controller(&lab, "c2", "m1", "172.18.0.1");
    lab.annotate("m1", json!({CHASSIS: "c2"})).await;
    lab.chassis_are(&["c-stays", "c2"]).await;
}

/// A host that runs although its Node is deleted is not removed repeatedly; when the Node returns, the chassis is left alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_outlives_its_node() {
    let lab = Lab::up().await;
    lab.node("m2", "c2").await;
    lab.host("c2", "m2", &[MARK]);
    lab.host("c3", "m2-renamed", &[]);
    let engine = lab.engine().await;
    lab.node("m1", "c1").await;
    // an engine that sees the host before its Node removes the chassis for that reason
    until("the Node is known", async || Dump::of(&lab.nb).text().contains("GR_m1")).await;
    let _host = controller(&lab, "c1", "m1", "172.18.0.1");
    lab.chassis_are(&["c-stays", "c1", "c2", "c3"]).await;
    let uuid = |lab: &Lab| {
        let cache = lab.sb.cache();
        cache.iter(chassis::TABLE).find(|(_, row)| row.str(chassis::NAME) == "c1").map(|(uuid, _)| uuid)
    };
    let first = uuid(&lab);
    lab.api.delete_node("m1").await;
    until("the chassis is created again", async || uuid(&lab).is_some_and(|uuid| Some(uuid) != first)).await;
    let second = uuid(&lab);
    // this later change shows that the engine has processed the earlier one
    lab.annotate("m2", json!({CHASSIS: "c3"})).await;
    lab.chassis_are(&["c-stays", "c1", "c3"]).await;
    assert_eq!(uuid(&lab), second, "the chassis of a host that runs is removed again and again");
    // the next controller tries once more
    drop(engine);
    let _engine = lab.engine().await;
    until("the chassis is created again", async || uuid(&lab).is_some_and(|uuid| Some(uuid) != second)).await;
    let third = uuid(&lab);
    lab.node("m1", "c1").await;
    lab.api.pod("a", "p1", "m1", json!({})).await;
    lab.is_wired("p1").await;
    assert_eq!(uuid(&lab), third);
}

/// Nodes that were deleted or annotated while no controller ran.
#[tokio::test(flavor = "multi_thread")]
async fn changes_while_no_controller_ran_are_applied() {
    let lab = Lab::up().await;
    let engine = lab.engine().await;
    for (node, id) in [("gone", "c-gone"), ("moved", "c-moved"), ("bare", "c-bare")] {
        lab.node(node, id).await;
        lab.host(id, node, &[]);
        lab.api.pod("a", node, node, json!({})).await;
        lab.is_wired(node).await;
    }
    // never a node's, whatever the names
    lab.host("c-other", "elsewhere", &["other_config:ovn-cms-options=enable-chassis-as-gw"]);
    lab.chassis_are(&["c-bare", "c-gone", "c-moved", "c-other", "c-stays"]).await;
    drop(engine);
    // chassis of nodes that only the mark identifies
    lab.host("c-marked", "forgotten", &["other_config:ovn-cms-options=\"enable-chassis-as-gw,ovnkube-node\""]);
    lab.api.delete_node("gone").await;
    lab.annotate("moved", json!({CHASSIS: "c-new"})).await;
    // its agent sets it again later
    lab.annotate("bare", json!({CHASSIS: null})).await;
    let _engine = lab.engine().await;
    lab.chassis_are(&["c-bare", "c-other", "c-stays"]).await;
    // another Node's annotation protects a chassis, whatever the hostname
    lab.host("c-shared", "stays", &[MARK]);
    lab.host("c-claimed", "gone", &[MARK]);
    lab.annotate("moved", json!({CHASSIS: "c-shared"})).await;
    lab.annotate("stays", json!({CHASSIS: "c-late"})).await;
    lab.chassis_are(&["c-bare", "c-other", "c-shared"]).await;
}

/// ovn-ic makes a chassis for each gateway of other clusters, which may have the name of a node here.
#[tokio::test(flavor = "multi_thread")]
async fn gateways_of_other_clusters_stay() {
    let lab = Lab::up().await;
    lab.host("c-theirs", "m1", &["other_config:is-remote=true"]);
    lab.host("c-old", "m1", &[MARK]);
    lab.host("c1", "m1", &[MARK]);
    lab.node("m1", "c1").await;
    let _engine = lab.engine().await;
    lab.chassis_are(&["c-stays", "c-theirs", "c1"]).await;
}
