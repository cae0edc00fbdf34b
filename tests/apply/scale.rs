//! The counted cost of many policies: rows grow with the written policies, and a pod's change causes the same work
//! regardless of everything else.

use ovnkube_apply::diff::existing;
use ovnkube_ovn::nb::{self, acl, address_set, logical_router as lr, logical_router_static_route as route, port_group};
use ovnkube_ovn::{Row, derived_uuid};
use ovnkube_ovsdb::Cache;
use ovnkube_plan::{RowKey, RowWant};
use ovnkube_tests::nb::{Release, Server};
use ovnkube_tests::objects::{namespace, node, pod};
use ovnkube_tests::settings::Settings;
use ovnkube_tests::{Controller, Objects, Write};
use serde_json::{Value, json};

/// A cluster with these namespaces and nothing else.
fn cluster(namespaces: &[&str]) -> (Server, Objects) {
    let mut objects = Objects::default();
    objects.put(node("n1"));
    for name in namespaces {
        objects.put(namespace(name));
    }
    (Server::new(Release::Lts), objects)
}

async fn settled(server: &Server, objects: &mut Objects) -> Controller {
    let mut controller = Controller::start(Settings::default().network(), server.client().await, objects);
    controller.settle(objects).await;
    controller
}

fn policy(namespace: &str, name: &str, spec: &Value) -> Value {
    json!({"kind": "NetworkPolicy", "metadata": {"namespace": namespace, "name": name}, "spec": spec})
}

fn labelled(namespace: &str, name: &str, labels: &Value) -> Value {
    let mut pod = pod(namespace, name, "n1");
    pod["metadata"]["labels"] = labels.clone();
    pod
}

/// ACLs, address sets and port groups.
fn rows(controller: &Controller) -> [usize; 3] {
    let cache = controller.nb.cache();
    [acl::TABLE, address_set::TABLE, port_group::TABLE].map(|table| cache.len(table))
}

/// Keys to plan, transactions and their operations for these changes.
async fn work(controller: &mut Controller, objects: &mut Objects, changes: Vec<ovnkube_model::Change>) -> [usize; 3] {
    controller.take(changes);
    let mut work = [controller.waiting(), 0, 0];
    while let Some(write) = controller.step(objects, false).await {
        if let Write::Transaction(operations) = write {
            work[1] += 1;
            work[2] += operations;
        }
    }
    work
}

/// A pod is created, relabelled and deleted next to this many policies that do not select it.
async fn work_beside(unrelated: usize) -> Vec<[usize; 3]> {
    let (server, mut objects) = cluster(&["a", "b", "c"]);
    for number in 0..unrelated {
        let other = json!({"matchLabels": {"app": format!("app-{number}")}});
        let one_of =
            json!({"matchExpressions": [{"key": "tier", "operator": "In", "values": [format!("tier-{number}")]}]});
        let spec = json!({
            "podSelector": other,
            "ingress": [
                {"from": [{"podSelector": other}, {"podSelector": one_of}, {"namespaceSelector": other}]},
                {"from": [{"namespaceSelector": other, "podSelector": {}}], "ports": [{"port": "web"}]},
                {"from": [{"namespaceSelector": {}, "podSelector": one_of}], "ports": [{"port": 80}]},
            ],
            "egress": [{"to": [{"podSelector": other}], "ports": [{"port": "web"}]}],
        });
        objects.put(policy(["a", "b"][number % 2], &format!("other-{number}"), &spec));
    }
    for name in ["one", "two", "three"] {
        let web = json!({"matchLabels": {"app": "web"}});
        let spec =
            json!({"podSelector": web, "ingress": [{"from": [{"podSelector": web}], "ports": [{"port": "web"}]}]});
        objects.put(policy("a", name, &spec));
    }
    let mut controller = settled(&server, &mut objects).await;
    let mut pod = labelled("a", "new", &json!({"app": "web", "tier": "front"}));
    pod["spec"]["containers"] = json!([{"ports": [{"name": "web", "containerPort": 80}]}]);
    let relabel = json!({"kind": "Pod", "metadata": {"namespace": "a", "name": "new", "labels": {"app": "db"}}});
    let changes = objects.put(pod);
    let comes = work(&mut controller, &mut objects, changes).await;
    let changes = objects.merge(&relabel);
    let changes_labels = work(&mut controller, &mut objects, changes).await;
    let changes = objects.delete("Pod", "a", "new");
    let goes = work(&mut controller, &mut objects, changes).await;
    vec![comes, changes_labels, goes]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_costs_the_same_beside_two_thousand_other_policies() {
    let few = work_beside(20).await;
    assert_eq!(work_beside(2000).await, few);
    assert_eq!(few.iter().map(|work| work[1]).collect::<Vec<_>>(), [1, 1, 1], "transactions: {few:?}");
}

/// A namespace of 500 pods that one policy both selects and allows.
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_on_five_hundred_pods() {
    let (server, mut objects) = cluster(&["a"]);
    let web = json!({"matchLabels": {"app": "web"}});
    let spec = json!({"podSelector": web, "ingress": [{"from": [{"podSelector": web}]}], "egress": [{"to": [{"podSelector": web}]}]});
    objects.put(policy("a", "web", &spec));
    let mut controller = settled(&server, &mut objects).await;
    let before = rows(&controller);
    for number in 0..500 {
        let changes = objects.put(labelled("a", &format!("p{number}"), &json!({"app": "web"})));
        controller.take(changes);
    }
    controller.settle(&mut objects).await;
    assert_eq!(rows(&controller), before, "pods make no rows of their own");
    let group = |pods: &str| json!({"kind": "Namespace", "metadata": {"name": "a", "labels": {"pods": pods}}});
    let changes = objects.merge(&group("many"));
    let [keys, transactions, _] = work(&mut controller, &mut objects, changes).await;
    assert_eq!((keys, transactions), (503, 0), "the rows of the policy stay the same");
    // all of them stop being web at one moment, in as few operations as there are groups and sets
    for number in 0..500 {
        let meta = json!({"namespace": "a", "name": format!("p{number}"), "labels": {"app": "db"}});
        let changes = objects.merge(&json!({"kind": "Pod", "metadata": meta}));
        controller.take(changes);
    }
    let [keys, transactions, operations] = work(&mut controller, &mut objects, Vec::new()).await;
    assert_eq!((keys, transactions), (500, 1));
    assert!(operations <= 10, "{operations} operations");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_policies_on_one_pod() {
    let (server, mut objects) = cluster(&["a"]);
    let mut counts = Vec::new();
    for number in 0..200 {
        let spec = json!({"podSelector": {}, "ingress": [{"ports": [{"port": 1000 + number}]}]});
        objects.put(policy("a", &format!("p{number}"), &spec));
        if number % 100 == 99 {
            let mut controller = settled(&server, &mut objects).await;
            let changes = objects.put(pod("a", &format!("pod-{number}"), "n1"));
            let [keys, transactions, operations] = work(&mut controller, &mut objects, changes).await;
            assert_eq!((keys, transactions), (1, 1));
            counts.push((rows(&controller), operations));
        }
    }
    let [(rows, operations), (more_rows, more_operations)] = counts[..] else { panic!("{counts:?}") };
    assert_eq!([0, 1, 2].map(|table| more_rows[table] - rows[table]), [100, 0, 100]);
    assert_eq!(more_operations - operations, 100, "one for each group that gets the pod");
}

#[tokio::test(flavor = "multi_thread")]
async fn three_hundred_blocks() {
    let (server, mut objects) = cluster(&["a"]);
    let mut acls = Vec::new();
    for blocks in [100, 200, 300] {
        let peer = |n: usize| json!({"ipBlock": {"cidr": format!("192.{}.0.0/16", n % 256), "except": [format!("192.{}.{}.0/24", n % 256, n / 256)]}});
        let from: Vec<_> = (0..blocks).map(peer).collect();
        objects.put(policy(
            "a",
            "blocks",
            &json!({"podSelector": {}, "ingress": [{"from": from, "ports": [{"port": 80}]}]}),
        ));
        acls.push(rows(&settled(&server, &mut objects).await)[0]);
    }
    assert_eq!((acls[1] - acls[0], acls[2] - acls[1]), (100, 100));
}

/// Prefixes in matches: about as many as blocks, exceptions and the bits between them, and never their product.
#[tokio::test(flavor = "multi_thread")]
async fn three_hundred_blocks_with_several_exceptions() {
    let (server, mut objects) = cluster(&["a"]);
    let except = |n: usize| (0..5).map(|e| format!("192.{}.{}.{}/32", n % 256, e * 50, n / 256)).collect::<Vec<_>>();
    let peer = |n: usize| json!({"ipBlock": {"cidr": format!("192.{}.0.0/16", n % 256), "except": except(n)}});
    let spec = json!({"podSelector": {}, "ingress": [{"from": (0..300).map(peer).collect::<Vec<_>>()}]});
    objects.put(policy("a", "blocks", &spec));
    let controller = settled(&server, &mut objects).await;
    let cache = controller.nb.cache();
    let matches = cache.iter(acl::TABLE).map(|(_, row)| row.str(acl::MATCH)).filter(|text| text.contains("192."));
    let prefixes: Vec<_> = matches.map(|text| text.matches('/').count()).collect();
    assert_eq!(prefixes.len(), 300);
    assert!(prefixes.iter().all(|count| *count <= 5 * 16), "{prefixes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_two_thousand_policies() {
    let (server, mut objects) = cluster(&["a", "b", "c", "d"]);
    let mut counts = Vec::new();
    for number in 0..2000 {
        let app = |n: usize| json!({"matchLabels": {"app": format!("app-{n}")}});
        let from = json!([{"podSelector": app(number % 100)}, {"namespaceSelector": app(number % 50)}]);
        let spec =
            json!({"podSelector": app(number), "ingress": [{"from": from, "ports": [{"port": 80}, {"port": 443}]}]});
        objects.put(policy(["a", "b", "c", "d"][number % 4], &format!("p{number}"), &spec));
        if number % 500 == 499 {
            counts.push(rows(&settled(&server, &mut objects).await));
        }
    }
    let more: Vec<_> = counts.windows(2).map(|pair| [0, 1, 2].map(|table| pair[1][table] - pair[0][table])).collect();
    // an ACL and a group each; the sets of allowed peers are shared
    assert_eq!(more, [[500, 0, 500]; 3]);
}

/// Policies that select all namespaces use one set: another namespace, its pods and its labels change no ACL.
#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_beside_policies_that_select_all_namespaces() {
    let mut works = Vec::new();
    for policies in [10, 200] {
        let (server, mut objects) = cluster(&["a"]);
        for number in 0..policies {
            let peers = json!([{"namespaceSelector": {}}, {"namespaceSelector": {"matchLabels": {"team": "x"}}}]);
            let spec = json!({"podSelector": {}, "ingress": [{"from": peers}], "egress": [{"to": peers}]});
            objects.put(policy("a", &format!("p{number}"), &spec));
        }
        let mut controller = settled(&server, &mut objects).await;
        let before = server.log().len();
        let changes = objects.put(namespace("b"));
        let comes = work(&mut controller, &mut objects, changes).await;
        let changes = objects.put(pod("b", "first", "n1"));
        let has_a_pod = work(&mut controller, &mut objects, changes).await;
        let team = |name: &str| json!({"kind": "Namespace", "metadata": {"name": "b", "labels": {"team": name}}});
        let changes = objects.merge(&team("x"));
        let joins = work(&mut controller, &mut objects, changes).await;
        let changes = objects.merge(&team("y"));
        let leaves = work(&mut controller, &mut objects, changes).await;
        let changes = [objects.delete("Pod", "b", "first"), objects.delete("Namespace", "", "b")].concat();
        let goes = work(&mut controller, &mut objects, changes).await;
        works.push([comes, has_a_pod, joins, leaves, goes]);
        let log = server.log();
        let records = &log[before..];
        assert_eq!(records.len(), 5);
        assert!(records.iter().all(|record| record.get("ACL").is_none()), "{records:?}");
        let bytes: usize = records.iter().map(|record| record.to_string().len()).sum();
        assert!(bytes < 5000, "{bytes} bytes");
    }
    assert_eq!(works[0], works[1]);
    // besides the namespace's own set and group, one operation for each selector's set: the pod is added or removed
    assert_eq!(
        works[0].map(|[_, transactions, operations]| (transactions, operations)),
        [(1, 2), (1, 5), (1, 1), (1, 1), (1, 4)]
    );
}

/// The CPU time that this thread has used, in nanoseconds: the time of day passes for others on a busy machine, too.
fn spent() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().and_then(|spent| spent.parse().ok()).unwrap()
}

/// The time to find the routes of this many nodes twenty times, since some kernels count in steps of 4 ms: one of one name in each gateway router, and one for each node in the
/// cluster router.
fn time_to_find_routes(nodes: u32) -> u64 {
    let mut cache = Cache::new(&nb::DATABASE, ovnkube_plan::identity, |_| false);
    let mut keys = Vec::new();
    let mut router = |name: &str, mark: &str, next_hops: Vec<String>| {
        let mut routes = Vec::new();
        for next_hop in next_hops {
            let row = Row::new(route::TABLE).with(route::IP_PREFIX, "10.128.0.0/14").with(route::NEXTHOP, next_hop);
            let id = ovnkube_plan::identity(&row).unwrap();
            let uuid = derived_uuid(name, &id);
            let within = RowKey::new(lr::TABLE, name);
            keys.push((RowWant::new(id, row.clone()).within(&within).key, uuid));
            routes.push(uuid);
            cache.set(route::TABLE, uuid, Some(row.into()));
        }
        let row = Row::new(lr::TABLE).with(lr::NAME, name).with(lr::EXTERNAL_IDS, [(mark, "yes")]);
        let row = row.with(lr::STATIC_ROUTES, routes);
        cache.set(lr::TABLE, derived_uuid("router", name), Some(row.into()));
    };
    for node in 0..nodes {
        router(&format!("GR_n{node}"), "physical_ip", vec!["100.64.0.1".to_owned()]);
    }
    let all = (0..nodes).map(|node| std::net::Ipv4Addr::from_bits(0x6440_0002 + node).to_string());
    router("ovn_cluster_router", "k8s-cluster-router", all.collect());
    let before = spent();
    for (key, uuid) in (0..20).flat_map(|_| &keys) {
        assert_eq!(existing(&cache, key), Some(*uuid), "{key}");
    }
    spent() - before
}

/// With ten times as many nodes it is about ten times, not a hundred times the work.
#[test]
fn rows_of_one_name_in_many_routers_are_found_at_once() {
    let (few, many) = (time_to_find_routes(300), time_to_find_routes(3000));
    assert!(many < 40 * few, "{few} ns for 300 nodes, {many} ns for 3000");
}
