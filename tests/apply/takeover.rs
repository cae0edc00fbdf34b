//! Routes, policies and NAT rules without marks, as ovn-kubernetes leaves them: those of existing nodes get marks, those
//! of deleted nodes are removed, and after that rows without marks are foreign.

use std::collections::{BTreeMap, BTreeSet};

use ovnkube_model::NetworkSettings;
use ovnkube_ovn::nb::{
    logical_router as lr, logical_router_policy as policy, logical_router_static_route as route, nat,
    static_mac_binding as smb,
};
use ovnkube_ovn::{ColumnId, Row, Table, Uuid, owner};
use ovnkube_ovsdb::Client as Database;
use ovnkube_tests::dump;
use ovnkube_tests::foreign::Foreign;
use ovnkube_tests::nb::{Release, Server};
use ovnkube_tests::objects::{namespace, pod};
use ovnkube_tests::settings::Settings;
use ovnkube_tests::{Controller, Objects};
use serde_json::{Value, json};

const NODES: [&str; 3] = ["n1", "n2", "n3"];
const TABLES: [&Table; 4] = [route::TABLE, policy::TABLE, nat::TABLE, smb::TABLE];

/// A node with a gateway: mode, number of its address, last byte of its next hop.
fn node(name: &str, mode: &str, n: usize, hop: usize) -> Value {
    let ips = [format!("172.18.0.{n}/16"), format!("fd00:18::{n}/64")];
    let gateway = json!({"default": {
        "mode": mode, "interface-id": format!("br-ex_{name}"), "mac-address": "02:42:ac:12:00:02",
        "ip-addresses": ips, "next-hops": [format!("172.18.255.{hop}"), format!("fd00:18::{hop}:1")],
    }});
    let annotations = json!({
        "k8s.ovn.org/node-chassis-id": format!("chassis-{name}"), "k8s.ovn.org/l3-gateway-config": gateway.to_string(),
        "k8s.ovn.org/host-cidrs": json!([ips[0], ips[1], format!("10.1.0.{n}/24")]).to_string(),
    });
    json!({"kind": "Node", "metadata": {"name": name, "annotations": annotations}})
}

/// Three nodes, one of them with a local gateway, and a pod on each.
fn objects() -> Objects {
    let mut objects = Objects::default();
    objects.put(namespace("a"));
    for (n, name) in NODES.iter().enumerate() {
        objects.put(node(name, if n == 2 { "local" } else { "shared" }, n + 2, 1));
        objects.put(pod("a", &format!("on-{name}"), name));
    }
    objects
}

fn network(snat_per_pod: bool) -> NetworkSettings {
    let cluster_subnets = "10.128.0.0/14/23,fd01::/48/64".to_owned();
    Settings { cluster_subnets, disable_snat_multiple_gws: snat_per_pod, ..Settings::default() }.network()
}

async fn start(server: &Server, objects: &mut Objects, network: &NetworkSettings) -> (Controller, usize) {
    let mut controller = Controller::start(network.clone(), server.client().await, objects);
    let (transactions, _) = controller.settle(objects).await;
    (controller, transactions)
}

/// The rows as ovn-kubernetes would have them: everything without our marks, NAT rules with a range of ports.
async fn left(objects: &mut Objects, network: &NetworkSettings) -> Server {
    let server = Server::new(Release::Lts);
    let (controller, _) = start(&server, objects, network).await;
    take_marks_off(&server, &controller.nb);
    for (uuid, _) in controller.nb.cache().iter(nat::TABLE) {
        server.nbctl(&["set", "nat", &uuid.to_string(), "external_port_range=32768-60999"]);
    }
    let nb = server.client().await;
    assert!(TABLES.iter().all(|table| nb.cache().iter(table).all(|(_, row)| !is_marked(row))));
    server
}

/// Removes all marks that ovn-kubernetes does not use.
pub(crate) fn take_marks_off(server: &Server, nb: &Database) {
    let keys = owner::marks(owner::GATEWAY).map(|(key, _)| key);
    for table in [lr::TABLE, route::TABLE, policy::TABLE, nat::TABLE] {
        for (uuid, _) in nb.cache().iter(table).filter(|(_, row)| is_marked(row)) {
            server.nbctl(&["remove", table.name, &uuid.to_string(), "external_ids", keys[0], keys[1]]);
        }
    }
}

fn is_marked(row: &Row) -> bool {
    row.external_ids().get(owner::OWNER_TYPE) == Some(owner::GATEWAY)
}

/// Rows that are not `foreign`, without the range of ports that only ovn-kubernetes sets, each with its parent.
fn ours(nb: &Database, foreign: &Foreign) -> BTreeMap<String, usize> {
    let cache = nb.cache();
    let mut rows = BTreeMap::new();
    for (table, (uuid, row)) in TABLES.iter().flat_map(|table| cache.iter(table).map(move |row| (table, row))) {
        if !foreign.contains(uuid) {
            let name = |parent: Uuid| cache.get(lr::TABLE, parent).unwrap().str(lr::NAME).to_owned();
            let parents: Vec<_> = cache.parents(uuid).map(|parent| name(parent.uuid)).collect();
            let mut row = Row::clone(row);
            if **table == *nat::TABLE {
                row.remove(nat::EXTERNAL_PORT_RANGE);
            }
            *rows.entry(format!("{row} in {parents:?}")).or_default() += 1;
        }
    }
    rows
}

/// The rows that a fresh controller writes.
async fn fresh(objects: &Objects, network: &NetworkSettings) -> BTreeMap<String, usize> {
    let server = Server::new(Release::Lts);
    let (controller, _) = start(&server, &mut objects.clone(), network).await;
    ours(&controller.nb, &Foreign::default())
}

fn assert_same(have: &BTreeMap<String, usize>, want: &BTreeMap<String, usize>) {
    let lines =
        |rows: &BTreeMap<String, usize>| rows.iter().map(|(row, n)| format!("{n} {row}")).collect::<BTreeSet<_>>();
    let (have, want) = (lines(have), lines(want));
    let (more, less): (Vec<_>, Vec<_>) = (have.difference(&want).collect(), want.difference(&have).collect());
    assert!(more.is_empty() && less.is_empty(), "left over: {more:#?}\nmissing: {less:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_get_only_marks() {
    for snat_per_pod in [false, true] {
        let (mut objects, network) = (objects(), network(snat_per_pod));
        let server = left(&mut objects, &network).await;
        let before = dump::uuids(&server.client().await.cache());
        let (controller, transactions) = start(&server, &mut objects, &network).await;
        assert_eq!(transactions, 1);
        let now = dump::uuids(&controller.nb.cache());
        assert_eq!(before.keys().collect::<Vec<_>>(), now.keys().collect::<Vec<_>>());
        for ((_, (table, was)), (_, is)) in before.iter().zip(now.values()) {
            let changed: Vec<ColumnId> = is.differing(was).map(|(column, _)| column).collect();
            let ids = was.table().column("external_ids").filter(|_| is_marked(is));
            assert_eq!(changed, ids.into_iter().collect::<Vec<_>>(), "{was}");
            assert!(is_marked(is) || ![route::TABLE.name, policy::TABLE.name, nat::TABLE.name].contains(table), "{is}");
        }
        let (_, transactions) = start(&server, &mut objects, &network).await;
        assert_eq!(transactions, 0);
    }
}

/// What happened between the two programs.
type Meanwhile = fn(&mut Objects, &Server);

/// Each leaves unwanted rows without marks.
const MEANWHILE: &[(&str, Meanwhile)] = &[
    ("a node went", |objects, _| drop(objects.delete("Node", "", "n1"))),
    ("all nodes went", |objects, _| NODES.iter().for_each(|name| drop(objects.delete("Node", "", name)))),
    ("a node got other addresses and another next hop", |objects, _| drop(objects.put(node("n1", "shared", 9, 7)))),
    ("gateways changed their mode", |objects, _| {
        objects.put(node("n1", "local", 2, 1));
        objects.put(node("n3", "shared", 4, 1));
    }),
    ("a node is another one with another subnet", |objects, _| {
        objects.delete("Node", "", "n1");
        let mut back = node("n1", "shared", 2, 1);
        back["metadata"]["annotations"]["k8s.ovn.org/node-subnets"] =
            json!(r#"{"default":["10.130.0.0/23","fd01:0:0:77::/64"]}"#);
        objects.put(back);
    }),
    ("another node has what one that went had", |objects, _| {
        objects.delete("Node", "", "n1");
        objects.delete("Node", "", "n3");
        objects.put(node("n0", "shared", 8, 1));
        objects.put(node("n9", "local", 9, 1));
    }),
    ("ovn-kubernetes died when it had removed a node's switch", |objects, server| {
        objects.delete("Node", "", "n1");
        server.nbctl(&["ls-del", "n1", "--", "lrp-del", "rtos-n1"]);
    }),
    ("ovn-kubernetes died when it had removed the switch of a node with a local gateway", |objects, server| {
        objects.delete("Node", "", "n3");
        server.nbctl(&["ls-del", "n3", "--", "lrp-del", "rtos-n3"]);
    }),
    ("a pod went", |objects, _| drop(objects.delete("Pod", "a", "on-n1"))),
];

#[tokio::test(flavor = "multi_thread")]
async fn old_rows_are_removed_and_foreign_rows_stay() {
    for snat_per_pod in [false, true] {
        for (what, meanwhile) in MEANWHILE {
            println!("{what}, SNAT per pod: {snat_per_pod}");
            let (mut objects, network) = (objects(), network(snat_per_pod));
            let server = left(&mut objects, &network).await;
            // it is impossible to know the creator of an SNAT for an address without a pod, or of one of two default routes
            let alone = snat_per_pod || what.contains("next hop");
            let foreign = if alone { Foreign::default() } else { Foreign::put(&server, &NODES, true).await };
            meanwhile(&mut objects, &server);
            let (controller, _) = start(&server, &mut objects, &network).await;
            assert_eq!(foreign.harm(&controller.nb), [""; 0], "{what}");
            assert_same(&ours(&controller.nb, &foreign), &fresh(&objects, &network).await);
            let (_, transactions) = start(&server, &mut objects, &network).await;
            assert_eq!(transactions, 0, "{what}");
        }
    }
}

/// An SNAT for each pod, where ovn-kubernetes had one for all, and vice versa.
#[tokio::test(flavor = "multi_thread")]
async fn another_kind_of_snat() {
    for snat_per_pod in [false, true] {
        let mut objects = objects();
        let server = left(&mut objects, &network(snat_per_pod)).await;
        let (controller, _) = start(&server, &mut objects, &network(!snat_per_pod)).await;
        assert_same(&ours(&controller.nb, &Foreign::default()), &fresh(&objects, &network(!snat_per_pod)).await);
    }
}

/// Of rows that are equal in every column one stays: with marks always, without marks as long as they may be
/// ovn-kubernetes'.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_equal_rows_is_removed() {
    let (mut objects, network) = (objects(), network(false));
    let server = left(&mut objects, &network).await;
    let cells = "policy=src-ip ip_prefix=10.128.0.0/23 nexthop=100.64.0.2";
    let twin = |more: &str| [format!("route ovn_cluster_router {cells} {more}")];
    Foreign::made_by(&server, &twin("")).await;
    let (controller, _) = start(&server, &mut objects, &network).await;
    assert_same(&ours(&controller.nb, &Foreign::default()), &fresh(&objects, &network).await);

    let foreign = Foreign::made_by(&server, &twin("")).await;
    let (controller, transactions) = start(&server, &mut objects, &network).await;
    assert_eq!((foreign.harm(&controller.nb), transactions), (Vec::new(), 0));

    let [first, second] = owner::marks(owner::GATEWAY).map(|(key, value)| format!("external_ids:{key}={value}"));
    Foreign::made_by(&server, &twin(&format!("{first} {second}"))).await;
    let (controller, _) = start(&server, &mut objects, &network).await;
    assert_same(&ours(&controller.nb, &foreign), &fresh(&objects, &network).await);
}

/// Marks that another client removed are restored on the same rows, not on others.
#[tokio::test(flavor = "multi_thread")]
async fn removed_marks_are_restored() {
    let (mut objects, network) = (objects(), network(false));
    let server = Server::new(Release::Lts);
    let (controller, _) = start(&server, &mut objects, &network).await;
    let rows = dump::uuids(&controller.nb.cache());
    for (uuid, (table, row)) in rows.iter().filter(|(_, (_, row))| is_marked(row)) {
        server.nbctl(&["clear", table, &uuid.to_string(), "external_ids"]);
        assert!(row.external_ids().len() >= 2);
    }
    let (controller, transactions) = start(&server, &mut objects, &network).await;
    assert_eq!(transactions, 1);
    assert!(dump::uuids(&controller.nb.cache()) == rows);
}
