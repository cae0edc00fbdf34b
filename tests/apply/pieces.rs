//! Many rows at once: an empty database is filled and an outdated one is cleared in transactions of limited size, and a
//! crash after any of them changes neither the result nor who may talk to whom.

use ovnkube_ovn::nb::{acl, address_set, load_balancer, logical_switch_port as lsp, port_group};
use ovnkube_tests::api::{Api, Running};
use ovnkube_tests::nb::{Release, Server, until};
use ovnkube_tests::objects::{namespace, node, pod};
use ovnkube_tests::settings::Settings;
use ovnkube_tests::{Controller, Objects, Write};
use serde_json::{Value, json};

/// Rows of one transaction, those included that the server deletes with another.
const MOST: usize = 5_500;
const NODES: usize = 7;
const PODS: usize = 3_000;
const POLICIES: usize = 6_000;
const SERVICES: usize = 1_500;

async fn start(server: &Server, objects: &Objects) -> Controller {
    Controller::start(Settings::default().network(), server.client().await, objects)
}

fn nodes() -> Objects {
    let mut objects = Objects::default();
    for number in 0..NODES {
        objects.put(node(&format!("n{number}")));
    }
    objects
}

/// Pods, services with an endpoint each, and policies with two ports each, in ten namespaces.
fn fill(objects: &mut Objects, pods: usize, services: usize, policies: usize) {
    let name = |number: usize| format!("ns-{}", number % 10);
    for number in 0..10 {
        objects.put(namespace(&name(number)));
    }
    for number in 0..pods {
        let node = format!("n{}", number % NODES);
        objects.put(pod(&name(number), &format!("p{number}"), &node));
    }
    // policies know pods in the network of a node by its address
    let mut of_host = pod(&name(0), "host", "n0");
    of_host["spec"]["hostNetwork"] = json!(true);
    of_host["status"] = json!({"hostIPs": [{"ip": "172.18.0.11"}], "podIPs": [{"ip": "172.18.0.11"}]});
    objects.put(of_host);
    let spec = json!({"podSelector": {}, "ingress": [{"from": [{"namespaceSelector": {}, "podSelector": {}}]}]});
    objects.put(json!({"kind": "NetworkPolicy", "metadata": {"namespace": name(0), "name": "from"}, "spec": spec}));
    for number in 0..services {
        let (meta, ip) = (
            json!({"namespace": name(number), "name": format!("s{number}")}),
            format!("10.96.{}.{}", number / 250, number % 250 + 1),
        );
        let spec = json!({"type": "ClusterIP", "clusterIP": ip, "clusterIPs": [ip], "ports": [{"port": 80, "protocol": "TCP"}]});
        objects.put(json!({"kind": "Service", "metadata": meta, "spec": spec}));
    }
    for number in 0..policies {
        let spec =
            json!({"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [{"ports": [{"port": number + 1}]}]});
        let meta = json!({"namespace": name(number), "name": format!("p{number}")});
        objects.put(json!({"kind": "NetworkPolicy", "metadata": meta, "spec": spec}));
    }
}

/// Deletes all but the nodes.
fn clear(objects: &mut Objects) {
    for kind in ["Pod", "Service", "NetworkPolicy", "Namespace"] {
        let metas: Vec<Value> = objects.of(kind).map(|object| object["metadata"].clone()).collect();
        for meta in metas {
            let namespace = meta["namespace"].as_str().unwrap_or_default();
            objects.delete(kind, namespace, meta["name"].as_str().unwrap());
        }
    }
}

/// How many rows each transaction after the first `seen` wrote or deleted.
fn sizes(server: &Server, seen: usize) -> Vec<usize> {
    let rows = |record: &Value| {
        let tables = record.as_object().unwrap().iter().filter(|(name, _)| !name.starts_with('_'));
        tables.filter_map(|(_, rows)| rows.as_object()).map(serde_json::Map::len).sum()
    };
    server.log().iter().skip(seen).map(rows).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_have_a_limited_size() {
    let server = Server::new(Release::Lts);
    let mut objects = nodes();
    fill(&mut objects, PODS, SERVICES, POLICIES);
    let mut controller = start(&server, &objects).await;
    let mut policies_when_wired = None;
    while let Some(write) = controller.step(&mut objects, false).await {
        let cache = controller.nb.cache();
        let is_wired = cache.iter(lsp::TABLE).any(|(_, row)| row.map(lsp::EXTERNAL_IDS).contains_key("pod"));
        if matches!(write, Write::Transaction(_)) && is_wired {
            policies_when_wired.get_or_insert_with(|| cache.len(acl::TABLE));
        }
    }
    assert!(policies_when_wired.is_some_and(|acls| acls > POLICIES), "ACLs at the first port: {policies_when_wired:?}");
    let filled = sizes(&server, 0);
    clear(&mut objects);
    let mut controller = start(&server, &objects).await;
    controller.settle(&mut objects).await;
    let cleared = sizes(&server, filled.len());
    crate::crash::check(&mut objects, &controller).await;
    for sizes in [filled, cleared] {
        assert!(sizes.iter().all(|rows| *rows <= MOST), "{sizes:?}");
    }
}

/// What comes in place of what goes does not wait until all of it is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_sweep_delays_no_service() {
    let server = Server::new(Release::Lts);
    let mut objects = nodes();
    fill(&mut objects, 0, 6_000, 0);
    start(&server, &objects).await.settle(&mut objects).await;
    clear(&mut objects);
    fill(&mut objects, 0, 1, 0);
    objects.put(json!({
        "kind": "Service", "metadata": {"namespace": "ns-0", "name": "new"},
        "spec": {"type": "ClusterIP", "clusterIP": "10.96.200.1", "clusterIPs": ["10.96.200.1"],
                 "ports": [{"port": 80, "protocol": "TCP"}]},
    }));
    let mut controller = start(&server, &objects).await;
    controller.step(&mut objects, false).await;
    let cache = controller.nb.cache();
    let is_new = |(_, row): (_, &std::sync::Arc<ovnkube_ovn::Row>)| row.str(load_balancer::NAME).contains("new");
    assert!(cache.iter(load_balancer::TABLE).any(is_new), "the service is written");
    assert!(cache.len(load_balancer::TABLE) > 500, "more is left to remove");
}

/// The same through the whole engine, which finds that all is gone, and a controller that crashes after each transaction.
#[tokio::test(flavor = "multi_thread")]
async fn an_engine_removes_everything_in_limited_transactions() {
    let (api, server) = (Api::up().await, Server::new(Release::Lts));
    let nb = server.client().await;
    let mut objects = nodes();
    fill(&mut objects, 1_000, SERVICES, POLICIES / 2);
    start(&server, &objects).await.settle(&mut objects).await;
    let seen = server.log().len();
    let engine = Running::start(&api, Settings::default().network(), Some(server.client().await)).await;
    engine.ready().await;
    let count = |table| nb.cache().len(table);
    // what is left are those of the API server's own namespaces and service; the engine writes through another client
    let tables = [address_set::TABLE, load_balancer::TABLE, lsp::TABLE, port_group::TABLE];
    until("all is gone", async || tables.map(count).iter().all(|rows| *rows < 20)).await;
    let sizes = sizes(&server, seen);
    assert!(sizes.len() > 2 && sizes.iter().all(|rows| *rows <= MOST), "{sizes:?}");
    drop(engine);
    let engine = Running::start(&api, Settings::default().network(), Some(server.client().await)).await;
    engine.ready().await;
    assert_eq!(engine.writes(), (0, 0), "a second start writes nothing");
}

/// Pods, policies and services appear and go, with a crash after each of the small transactions.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_after_each_transaction_changes_nothing() {
    let server = Server::new(Release::Lts);
    let mut objects = nodes();
    for fills in [true, false] {
        if fills {
            fill(&mut objects, 20, 20, 20);
        } else {
            clear(&mut objects);
        }
        let mut crashes = 0;
        loop {
            let mut controller = start(&server, &objects).await;
            (controller.batch, controller.rows) = (10, 10);
            match controller.step(&mut objects, false).await {
                None => break crate::crash::check(&mut objects, &controller).await,
                Some(_) => crashes += 1,
            }
        }
        assert!(crashes > 10, "{crashes} crashes");
    }
}
