//! Foreign rows stay unchanged, whatever happens to our rows next to them.

use http::Method;
use ovnkube_ovn::nb::{
    acl, address_set, logical_router as lr, logical_router_policy as policy, logical_router_port as lrp,
    logical_router_static_route as route, nat, port_group,
};
use ovnkube_ovn::{OwnerId, Row, Uuid};
use ovnkube_ovsdb::Client as Database;
use ovnkube_tests::api::{Api, Running};
use ovnkube_tests::dump::Dump;
use ovnkube_tests::foreign::Foreign;
use ovnkube_tests::nb::{Release, Server, until};
use ovnkube_tests::objects::{namespace, pod};
use ovnkube_tests::settings::Settings;
use ovnkube_tests::{Controller, Objects, rules};
use serde_json::{Value, json};

const NODES: [&str; 2] = ["n1", "n2"];

fn annotations(name: &str, mode: &str, ip: &str) -> Value {
    let gateway = json!({"default": {
        "mode": mode, "interface-id": format!("br-ex_{name}"), "mac-address": "02:42:ac:12:00:02",
        "ip-addresses": [format!("{ip}/16")], "next-hops": ["172.18.255.1"], "node-port-enable": "true",
    }});
    json!({
        "k8s.ovn.org/node-chassis-id": format!("chassis-{name}"), "k8s.ovn.org/l3-gateway-config": gateway.to_string(),
        "k8s.ovn.org/host-cidrs": json!([format!("{ip}/16")]).to_string(),
    })
}

fn node(name: &str, mode: &str, ip: &str) -> Value {
    json!({"kind": "Node", "metadata": {"name": name, "annotations": annotations(name, mode, ip)}})
}

/// Two nodes with gateways and a pod each.
fn objects() -> Objects {
    let mut objects = Objects::default();
    for (n, name) in NODES.iter().enumerate() {
        objects.put(node(name, "shared", &format!("172.18.0.{}", n + 2)));
    }
    for object in [namespace("a"), pod("a", "p", "n1"), pod("a", "q", "n2")] {
        objects.put(object);
    }
    objects
}

async fn start(server: &Server, objects: &mut Objects) -> (Controller, usize) {
    let mut controller = Controller::start(Settings::default().network(), server.client().await, objects);
    let (transactions, _) = controller.settle(objects).await;
    (controller, transactions)
}

fn assert_unharmed(foreign: &Foreign, nb: &Database, after: &str) {
    let harm = foreign.harm(nb);
    assert!(harm.is_empty(), "{} foreign rows changed after {after}:\n{}", harm.len(), harm.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_rows_stay_whatever_happens_to_ours() {
    let (server, mut objects) = (Server::new(Release::Lts), objects());
    start(&server, &mut objects).await;
    let foreign = Foreign::put(&server, &NODES, true).await;

    let (mut controller, transactions) = start(&server, &mut objects).await;
    assert_unharmed(&foreign, &controller.nb, "a start");
    assert_eq!(transactions, 0);

    let changes = [objects.put(node("n1", "local", "172.18.0.9")), objects.delete("Pod", "a", "q")].concat();
    controller.take(changes);
    controller.settle(&mut objects).await;
    assert_unharmed(&foreign, &controller.nb, "a change of a node");

    controller.take(objects.delete("Node", "", "n1"));
    controller.settle(&mut objects).await;
    assert_unharmed(&foreign, &controller.nb, "a deleted node");

    // back, and changed while no controller ran
    controller.take(objects.put(node("n1", "shared", "172.18.0.2")));
    controller.settle(&mut objects).await;
    objects.put(node("n2", "local", "172.18.0.8"));
    objects.delete("Node", "", "n1");
    let (controller, _) = start(&server, &mut objects).await;
    assert_unharmed(&foreign, &controller.nb, "changes while the controller was away");
    let (controller, transactions) = start(&server, &mut objects).await;
    assert_unharmed(&foreign, &controller.nb, "a second start");
    assert_eq!(transactions, 0);
}

/// Routes, policies and NAT rules that are not `foreign`.
pub(crate) fn ours(nb: &Database, foreign: &Foreign) -> Vec<String> {
    let cache = nb.cache();
    let tables = [route::TABLE, nat::TABLE, policy::TABLE];
    let rows = tables.iter().flat_map(|table| cache.iter(table).filter(|(uuid, _)| !foreign.contains(*uuid)));
    let mut rows: Vec<_> = rows.map(|(_, row)| row.to_string()).collect();
    rows.sort();
    rows
}

/// What each router refers to in these columns.
fn children(nb: &Database) -> Vec<(String, Vec<(&'static str, Uuid)>)> {
    let of = |row: &Row| -> Vec<(&'static str, Uuid)> {
        let routes = row.uuids(lr::STATIC_ROUTES).map(|uuid| ("static_routes", uuid));
        let policies = row.uuids(lr::POLICIES).map(|uuid| ("policies", uuid));
        routes.chain(policies).chain(row.uuids(lr::NAT).map(|uuid| ("nat", uuid))).collect()
    };
    nb.cache().iter(lr::TABLE).map(|(_, row)| (row.str(lr::NAME).to_owned(), of(row))).collect()
}

/// Next to rows like ours, our own rows with our marks are created, and removed without the others.
#[tokio::test(flavor = "multi_thread")]
async fn rows_like_ours_stay_foreign() {
    let (server, mut objects) = (Server::new(Release::Lts), objects());
    let (controller, _) = start(&server, &mut objects).await;
    let expected = ours(&controller.nb, &Foreign::default());
    let before = children(&controller.nb);
    let foreign = Foreign::put(&server, &NODES, true).await;
    // all our rows are lost
    for (name, uuids) in before {
        for (column, uuid) in uuids {
            server.nbctl(&["remove", "logical_router", &name, column, &uuid.to_string()]);
        }
    }
    let (controller, transactions) = start(&server, &mut objects).await;
    assert_eq!(transactions, 1);
    assert_unharmed(&foreign, &controller.nb, "ours were lost");
    assert_eq!(ours(&controller.nb, &foreign), expected);

    for name in NODES {
        objects.delete("Node", "", name);
    }
    let (controller, _) = start(&server, &mut objects).await;
    assert_unharmed(&foreign, &controller.nb, "the deletion of all nodes");
    assert_eq!(ours(&controller.nb, &foreign), [""; 0]);
}

/// Names of routers, switches and load balancers have no index.
#[tokio::test(flavor = "multi_thread")]
async fn rows_with_the_same_name_are_neither_used_nor_removed() {
    let (server, mut objects) = (Server::new(Release::Lts), objects());
    objects.put(json!({
        "kind": "Service", "metadata": {"name": "web", "namespace": "a"},
        "spec": {"clusterIP": "10.96.0.10", "ports": [{"name": "http", "port": 80}]},
    }));
    start(&server, &mut objects).await;
    // uuids are random: some are lower than ours, some higher
    let mut foreign = Vec::new();
    for _ in 0..6 {
        foreign.push(Foreign::namesakes(&server).await);
    }
    let (controller, transactions) = start(&server, &mut objects).await;
    for foreign in &foreign {
        assert_unharmed(foreign, &controller.nb, "a start");
    }
    assert_eq!(transactions, 0);
    objects.delete("Service", "a", "web");
    objects.put(node("n3", "shared", "172.18.0.4"));
    let (controller, _) = start(&server, &mut objects).await;
    for foreign in &foreign {
        assert_unharmed(foreign, &controller.nb, "changes");
    }
    rules::pods_are_wired(&objects, &controller.world, &controller.nb.cache());
    let cache = controller.nb.cache();
    let routers = cache.named(lr::TABLE, "ovn_cluster_router").map(|(_, row)| row);
    let with_ports: Vec<_> = routers.filter(|row| row.uuids(lr::PORTS).next().is_some()).collect();
    assert_eq!(with_ports.len(), 1);
    assert_eq!(with_ports[0].uuids(lr::PORTS).count(), 4);
}

/// Before any row of ours exists, a router of that name is foreign if it names another owner.
#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_router_is_not_used_at_the_first_start() {
    let (server, mut objects) = (Server::new(Release::Lts), objects());
    let create = "create logical_router name=ovn_cluster_router external_ids:owner=somebody";
    let foreign = Foreign::made_by(&server, &[create.to_owned()]).await;
    let (controller, _) = start(&server, &mut objects).await;
    assert_unharmed(&foreign, &controller.nb, "the first start");
    let (_, transactions) = start(&server, &mut objects).await;
    assert_eq!(transactions, 0);
}

struct Lab {
    api: Api,
    server: Server,
    nb: Database,
    _engine: Running,
}

impl Lab {
    /// The engine, after it has written everything.
    async fn up() -> Self {
        let api = Api::up().await;
        let server = Server::new(Release::Lts);
        let nb = server.client().await;
        api.namespace("a").await;
        for (n, name) in NODES.iter().enumerate() {
            api.node(name, annotations(name, "shared", &format!("172.18.0.{}", n + 2))).await;
        }
        api.pod("a", "p", "n1", json!({})).await;
        let engine = Running::start(&api, Settings::default().network(), Some(server.client().await)).await;
        engine.ready().await;
        until("the gateways are there", async || {
            ["GR_n1", "GR_n2"].iter().all(|name| !nb.cache().lookup(lr::TABLE, name).is_empty())
        })
        .await;
        Self { api, server, nb, _engine: engine }
    }

    /// Another client changes our rows and adds one with our marks: everything is restored after a sweep.
    async fn drift(&self) {
        self.server.nbctl(&["lrp-del", "rtos-n1"]);
        self.server.nbctl(&["set", "logical_router", "GR_n2", "options:lb_force_snat_ip=none"]);
        let marks = ["owner-controller=default-network-controller", "owner-type=Namespace"];
        let marks = marks.map(|mark| format!("external_ids:k8s.ovn.org/{mark}"));
        self.server.nbctl(&["create", "address_set", "name=junk", &marks[0], &marks[1]]);
        until("a sweep", async || {
            let cache = self.nb.cache();
            let port = cache.lookup(lrp::TABLE, "rtos-n1");
            cache.lookup(address_set::TABLE, "junk").is_empty() && !port.is_empty()
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_rows_stay_while_the_engine_runs() {
    let lab = Lab::up().await;
    let foreign = Foreign::put(&lab.server, &NODES, true).await;
    lab.drift().await;
    assert_unharmed(&foreign, &lab.nb, "a sweep");

    let change = json!({"metadata": {"annotations": annotations("n1", "local", "172.18.0.9")}});
    lab.api.ask(Method::PATCH, "/api/v1/nodes/n1", change).await.unwrap();
    until("another address", async || Dump::of(&lab.nb).text().contains("172.18.0.9/16")).await;
    assert_unharmed(&foreign, &lab.nb, "a change of a node");
    lab.api.delete_node("n1").await;
    until("no gateway", async || lab.nb.cache().lookup(lr::TABLE, "GR_n1").is_empty()).await;
    assert_unharmed(&foreign, &lab.nb, "a deleted node");
}

/// An ACL that has lost our marks stops allowing traffic.
#[tokio::test(flavor = "multi_thread")]
async fn an_acl_without_marks_is_removed_from_its_group() {
    let lab = Lab::up().await;
    let policy = |ports: Value| {
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "web"},
            "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": ports},
        })
    };
    let path = "/apis/networking.k8s.io/v1/namespaces/a/networkpolicies";
    let rule = json!([{"from": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}]);
    lab.api.ask(Method::POST, path, policy(rule)).await.unwrap();
    let group = OwnerId::new("NetworkPolicy").name("a:web").hashed_name();
    let acls = || -> Vec<Uuid> {
        let cache = lab.nb.cache();
        let uuid = cache.lookup(port_group::TABLE, &group).first().copied();
        let row = uuid.and_then(|uuid| cache.get(port_group::TABLE, uuid));
        row.map(|row| row.uuids(port_group::ACLS).collect()).unwrap_or_default()
    };
    until("the rule", async || acls().len() == 1).await;
    let first = acls()[0];
    lab.server.nbctl(&["clear", "acl", &first.to_string(), "external_ids"]);
    until("the rule again", async || acls().len() == 1 && acls()[0] != first).await;
    assert!(lab.nb.cache().get(acl::TABLE, first).is_none());
    let second = acls()[0];
    lab.server.nbctl(&["clear", "acl", &second.to_string(), "external_ids"]);
    let gone = json!({"spec": {"ingress": null}});
    lab.api.ask(Method::PATCH, &format!("{path}/web"), gone).await.unwrap();
    until("no rule", async || acls().is_empty()).await;
    // an ACL that another client adds does not allow traffic for long either
    let add = ["add", "port_group", group.as_str(), "acls", "@acl"];
    let create = [
        "--id=@acl",
        "create",
        "acl",
        "direction=to-lport",
        "priority=2000",
        "match=\"ip4\"",
        "action=allow",
        "external_ids:owner=somebody",
        "--",
    ];
    lab.server.nbctl(&[&create[..], &add[..]].concat());
    until("no foreign rule", async || acls().is_empty()).await;
}
