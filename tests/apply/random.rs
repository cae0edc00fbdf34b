//! Random changes, crashes and meddling: in the end the rows are those of a fresh start on an empty
//! database, at no time do two ports share an address, and started pods keep theirs. Foreign rows stay
//! unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ovnkube_model::{Change, PodAddresses, PodKey, World};
use ovnkube_ovn::nb::{
    logical_router as lr, logical_router_policy as policy, logical_router_static_route as route,
    logical_switch_port as lsp, nat,
};
use ovnkube_ovn::{Row, Uuid, owner};
use ovnkube_ovsdb::Client;
use ovnkube_tests::foreign::Foreign;
use ovnkube_tests::nb::{Release, Server};
use ovnkube_tests::objects::{namespace, node, pod};
use ovnkube_tests::settings::Settings;
use ovnkube_tests::{Controller, Objects, rules};
use proptest::prelude::*;
use serde_json::{Value, json};

const NODES: [&str; 3] = ["n1", "n2", "n3"];
const NAMESPACES: [&str; 2] = ["a", "b"];
const PODS: [&str; 5] = ["p1", "p2", "p3", "p4", "p5"];

#[derive(Debug, Clone)]
enum Happens {
    NodeComes(usize),
    NodeGoes(usize),
    NamespaceComes(usize),
    NamespaceGoes(usize),
    PodComes {
        namespace: usize,
        pod: usize,
        node: usize,
        how: Pod,
    },
    /// Its node has wired it, and its kubelet reports that.
    PodStarts(usize, usize),
    PodEnds(usize, usize),
    PodGoes(usize, usize),
    Write(usize),
    Crash,
    /// Another client runs ovn-nbctl while the controller is down.
    Meddle(usize, usize),
    /// Another client annotates a pod with the n-th address of the first node's subnet; the controller is down or not.
    EditPod(usize, usize, u8, bool),
    /// The same with the subnet of a node.
    EditNode(usize, &'static str, bool),
}

#[derive(Debug, Clone)]
enum Pod {
    Plain,
    HostNetwork,
    /// Requests the n-th address of the first node's subnet.
    Asks(u8),
    /// Is annotated with it.
    Annotated(u8),
    /// With its own MAC.
    Mac(u8),
}

fn happens() -> impl Strategy<Value = Happens> {
    let how = prop_oneof![
        4 => Just(Pod::Plain),
        1 => Just(Pod::HostNetwork),
        1 => (2..8u8).prop_map(Pod::Asks),
        1 => (2..8u8).prop_map(Pod::Annotated),
        1 => (0..2u8).prop_map(Pod::Mac),
    ];
    let comes = (0..2usize, 0..5usize, 0..3usize, how);
    let subnet = prop::sample::select(vec!["10.128.0.0/24", "10.128.0.0/22", "10.128.2.0/23", "10.130.0.0/23", ""]);
    prop_oneof![
        2 => (0..3usize).prop_map(Happens::NodeComes),
        1 => (0..3usize).prop_map(Happens::NodeGoes),
        2 => (0..2usize).prop_map(Happens::NamespaceComes),
        1 => (0..2usize).prop_map(Happens::NamespaceGoes),
        10 => comes.prop_map(|(namespace, pod, node, how)| Happens::PodComes { namespace, pod, node, how }),
        8 => (0..2usize, 0..5usize).prop_map(|(n, p)| Happens::PodStarts(n, p)),
        2 => (0..2usize, 0..5usize).prop_map(|(n, p)| Happens::PodEnds(n, p)),
        5 => (0..2usize, 0..5usize).prop_map(|(n, p)| Happens::PodGoes(n, p)),
        6 => (1..6usize).prop_map(Happens::Write),
        1 => Just(Happens::Crash),
        1 => (0..4usize, 0..10usize).prop_map(|(what, which)| Happens::Meddle(what, which)),
        2 => (0..2usize, 0..5usize, 2..8u8, any::<bool>()).prop_map(|(n, p, ip, away)| Happens::EditPod(n, p, ip, away)),
        1 => (0..3usize, subnet, any::<bool>()).prop_map(|(n, subnet, away)| Happens::EditNode(n, subnet, away)),
    ]
}

fn object(namespace: &str, name: &str, node: &str, how: &Pod) -> serde_json::Value {
    let mut pod = pod(namespace, name, node);
    let ask = |selection: String| json!({"v1.multus-cni.io/default-network": selection});
    match how {
        Pod::Plain => {}
        Pod::HostNetwork => pod["spec"]["hostNetwork"] = json!(true),
        Pod::Asks(n) => pod["metadata"]["annotations"] = ask(format!(r#"[{{"ips":["10.128.0.{n}"]}}]"#)),
        Pod::Mac(n) => pod["metadata"]["annotations"] = ask(format!(r#"[{{"mac":"02:00:00:00:00:0{n}"}}]"#)),
        Pod::Annotated(n) => pod["metadata"]["annotations"] = annotated(*n),
    }
    pod
}

fn annotated(n: u8) -> serde_json::Value {
    let network = json!({"default": {
        "ip_addresses": [format!("10.128.0.{n}/23")], "mac_address": format!("0a:58:0a:80:00:0{n}"),
    }});
    json!({"k8s.ovn.org/pod-networks": network.to_string()})
}

/// Pods that have started, and the address that each runs with.
#[derive(Default)]
struct Running(BTreeMap<(usize, usize), (usize, String)>);

impl Running {
    /// A pod starts once its port has the address that it is annotated with.
    fn start(&mut self, n: usize, p: usize, objects: &mut Objects, controller: &Controller) -> Vec<Change> {
        let is_it = |pod: &&Value| pod["metadata"]["namespace"] == NAMESPACES[n] && pod["metadata"]["name"] == PODS[p];
        let Some(pod) = objects.of("Pod").find(is_it).filter(|pod| pod["status"].is_null()) else { return Vec::new() };
        let text = pod["metadata"]["annotations"]["k8s.ovn.org/pod-networks"].as_str().unwrap_or_default();
        let networks: Value = serde_json::from_str(text).unwrap_or_default();
        let annotated = networks["default"]["ip_address"].as_str().unwrap_or_default();
        let ip = annotated.split('/').next().unwrap().to_owned();
        let cache = controller.nb.cache();
        let name = format!("{}_{}", NAMESPACES[n], PODS[p]);
        let port = cache.named(lsp::TABLE, &name).next().map(|(_, row)| row).map(Arc::as_ref);
        let is_wired = port.is_some_and(|port: &Row| {
            port.map(lsp::OPTIONS).get("iface-id-ver") == pod["metadata"]["uid"].as_str()
                && port.strs(lsp::ADDRESSES).any(|address| address.ends_with(&format!(" {ip}")))
        });
        if !is_wired {
            return Vec::new();
        }
        let node = NODES.iter().position(|node| pod["spec"]["nodeName"] == *node).unwrap();
        // ports in a subnet that the node no longer has are about to be removed
        let network = controller.world.node_networks.get(NODES[node]);
        if !network.is_some_and(|network| network.subnets.iter().any(|s| s.contains(ip.parse().unwrap()))) {
            return Vec::new();
        }
        self.0.insert((n, p), (node, ip.clone()));
        let meta = json!({"namespace": NAMESPACES[n], "name": PODS[p]});
        let status = json!({"phase": "Running", "podIPs": [{"ip": ip}]});
        objects.merge(&json!({"kind": "Pod", "metadata": meta, "status": status}))
    }

    /// Each of them has the address that it started with.
    fn check(&self, world: &World) {
        for ((n, p), (_, ip)) in &self.0 {
            let entry = &world.pods[&PodKey::new(NAMESPACES[*n], PODS[*p])];
            let has: Vec<_> = entry.addresses.iter().flat_map(PodAddresses::each).map(|ip| ip.to_string()).collect();
            assert_eq!(has, [ip.as_str()], "{}/{} runs with {ip}", NAMESPACES[*n], PODS[*p]);
        }
    }
}

async fn play(story: &[Happens]) {
    let server = Server::new(Release::Lts);
    let network = Settings::default().network();
    let mut objects = Objects::default();
    let mut controller = Controller::start(network.clone(), server.client().await, &objects);
    controller.batch = 3;
    let mut running = Running::default();
    for event in story {
        let pod_there = |o: &Objects, n: usize, p: usize| {
            o.of("Pod").any(|x| x["metadata"]["namespace"] == NAMESPACES[n] && x["metadata"]["name"] == PODS[p])
        };
        let changes = match event {
            Happens::NodeComes(n) if objects.of("Node").all(|x| x["metadata"]["name"] != NODES[*n]) => {
                objects.put(node(NODES[*n]))
            }
            // another node may have its subnet when it returns
            Happens::NodeGoes(n) => {
                running.0.retain(|_, (node, _)| node != n);
                objects.delete("Node", "", NODES[*n])
            }
            Happens::NamespaceComes(n) => objects.put(namespace(NAMESPACES[*n])),
            // as with a real API server: its pods are deleted first, and a pod is created only in an existing namespace
            Happens::NamespaceGoes(n) => {
                running.0.retain(|(namespace, _), _| namespace != n);
                let mut changes: Vec<_> =
                    PODS.iter().flat_map(|pod| objects.delete("Pod", NAMESPACES[*n], pod)).collect();
                changes.extend(objects.delete("Namespace", "", NAMESPACES[*n]));
                changes
            }
            Happens::PodComes { namespace, pod, node, how } => {
                running.0.remove(&(*namespace, *pod));
                let there = objects.of("Namespace").any(|x| x["metadata"]["name"] == NAMESPACES[*namespace]);
                let mut changes = if there { Vec::new() } else { objects.put(self::namespace(NAMESPACES[*namespace])) };
                changes.extend(objects.delete("Pod", NAMESPACES[*namespace], PODS[*pod]));
                changes.extend(objects.put(object(NAMESPACES[*namespace], PODS[*pod], NODES[*node], how)));
                changes
            }
            Happens::PodStarts(n, p) => running.start(*n, *p, &mut objects, &controller),
            Happens::PodEnds(n, p) if pod_there(&objects, *n, *p) => {
                running.0.remove(&(*n, *p));
                let meta = json!({"namespace": NAMESPACES[*n], "name": PODS[*p]});
                objects.merge(&json!({"kind": "Pod", "metadata": meta, "status": {"phase": "Succeeded"}}))
            }
            Happens::PodGoes(n, p) => {
                running.0.remove(&(*n, *p));
                objects.delete("Pod", NAMESPACES[*n], PODS[*p])
            }
            Happens::EditPod(n, p, ip, away) if pod_there(&objects, *n, *p) => {
                let meta = json!({"namespace": NAMESPACES[*n], "name": PODS[*p], "annotations": annotated(*ip)});
                let changes = objects.merge(&json!({"kind": "Pod", "metadata": meta}));
                if *away {
                    controller = Controller::start(network.clone(), server.client().await, &objects);
                }
                changes
            }
            Happens::EditNode(n, subnet, away) if objects.of("Node").any(|x| x["metadata"]["name"] == NODES[*n]) => {
                let text = Some(format!(r#"{{"default":["{subnet}"]}}"#)).filter(|_| !subnet.is_empty());
                let meta = json!({"name": NODES[*n], "annotations": {"k8s.ovn.org/node-subnets": text}});
                let changes = objects.merge(&json!({"kind": "Node", "metadata": meta}));
                if *away {
                    controller = Controller::start(network.clone(), server.client().await, &objects);
                }
                changes
            }
            // exists already, or does not exist
            Happens::NodeComes(_) | Happens::PodEnds(..) | Happens::EditPod(..) | Happens::EditNode(..) => Vec::new(),
            Happens::Write(n) => {
                for _ in 0..*n {
                    controller.step(&mut objects, false).await;
                    rules::addresses_are_unique(&controller.nb.cache());
                }
                Vec::new()
            }
            Happens::Crash => {
                controller = Controller::start(network.clone(), server.client().await, &objects);
                Vec::new()
            }
            Happens::Meddle(what, which) => {
                meddle(&server, *what, *which);
                controller = Controller::start(network.clone(), server.client().await, &objects);
                Vec::new()
            }
        };
        controller.take(changes);
        running.check(&controller.world);
    }
    while controller.step(&mut objects, false).await.is_some() {
        rules::addresses_are_unique(&controller.nb.cache());
    }
    running.check(&controller.world);
    crate::crash::check(&mut objects, &controller).await;
}

fn meddle(server: &Server, what: usize, which: usize) {
    let port = format!("{}_{}", NAMESPACES[which % 2], PODS[which % 5]);
    match what {
        0 => server.nbctl(&["--if-exists", "lsp-del", &port]),
        1 => server.nbctl(&["--if-exists", "ls-del", NODES[which % 3]]),
        2 => {
            server.nbctl(&["--if-exists", "set", "logical_switch_port", &port, "addresses=unknown", "port_security=[]"])
        }
        _ => server.nbctl(&["--if-exists", "clear", "port_group", "a17441831628731841464", "ports"]),
    };
}

#[derive(Debug, Clone)]
enum Beside {
    /// With a gateway: mode, address, next hop.
    NodeComes(usize, bool, usize, usize),
    NodeGoes(usize),
    Write(usize),
    Crash,
    /// Another client creates a row: the number selects one of all kinds.
    Foreign(usize),
    /// While the controller is down, another client does this to one of our rows.
    Meddle(Meddle, usize),
}

#[derive(Debug, Clone)]
enum Meddle {
    TakeMarksOff,
    TakeOut,
    Change,
    Double,
}

fn beside() -> impl Strategy<Value = Beside> {
    let meddle = prop_oneof![
        2 => Just(Meddle::TakeMarksOff),
        1 => Just(Meddle::TakeOut),
        1 => Just(Meddle::Change),
        1 => Just(Meddle::Double),
    ];
    let comes = (0..3usize, any::<bool>(), 0..2usize, 0..2usize);
    prop_oneof![
        4 => comes.prop_map(|(node, local, ip, hop)| Beside::NodeComes(node, local, ip, hop)),
        1 => (0..3usize).prop_map(Beside::NodeGoes),
        4 => (1..4usize).prop_map(Beside::Write),
        1 => Just(Beside::Crash),
        6 => (0..1000usize).prop_map(Beside::Foreign),
        3 => (meddle, 0..1000usize).prop_map(|(how, which)| Beside::Meddle(how, which)),
    ]
}

/// The node's subnet and number are always the same, so that foreign rows do not become those of another node.
fn with_gateway(node: usize, local: bool, ip: usize, hop: usize) -> serde_json::Value {
    let (name, address) = (NODES[node], format!("172.18.{ip}.{}/16", node + 2));
    let gateway = json!({"default": {
        "mode": if local { "local" } else { "shared" }, "interface-id": format!("br-ex_{name}"),
        "mac-address": "02:42:ac:12:00:02", "ip-addresses": [address], "next-hops": [format!("172.18.255.{}", hop + 1)],
    }});
    let annotations = json!({
        "k8s.ovn.org/node-chassis-id": format!("chassis-{name}"), "k8s.ovn.org/node-id": (node + 2).to_string(),
        "k8s.ovn.org/node-subnets": json!({"default": [format!("10.128.{}.0/23", 2 * node)]}).to_string(),
        "k8s.ovn.org/l3-gateway-config": gateway.to_string(), "k8s.ovn.org/host-cidrs": json!([address]).to_string(),
    });
    json!({"kind": "Node", "metadata": {"name": name, "annotations": annotations}})
}

/// Marked rows in one of these columns: router, column, row.
fn marked(nb: &Client) -> Vec<(Uuid, &'static str, Uuid)> {
    let cache = nb.cache();
    let mut rows = Vec::new();
    for (router, row) in cache.iter(lr::TABLE) {
        let routes = row.uuids(lr::STATIC_ROUTES).map(|uuid| ("static_routes", route::TABLE, uuid));
        let policies = row.uuids(lr::POLICIES).map(|uuid| ("policies", policy::TABLE, uuid));
        let nats = row.uuids(lr::NAT).map(|uuid| ("nat", nat::TABLE, uuid));
        let is_ours = |row: &Row| row.external_ids().get(owner::OWNER_TYPE) == Some(owner::GATEWAY);
        let ours = routes
            .chain(policies)
            .chain(nats)
            .filter(|(_, table, uuid)| cache.get(table, *uuid).is_some_and(|row| is_ours(row)));
        rows.extend(ours.map(|(column, _, uuid)| (router, column, uuid)));
    }
    rows.sort_unstable();
    rows
}

/// Whether a row can be recognized without its marks: not a changed one, nor one of two equal ones.
fn is_its_own(nb: &Client, rows: &[(Uuid, &str, Uuid)], row: &(Uuid, &str, Uuid)) -> bool {
    let cache = nb.cache();
    let text = |uuid: Uuid| {
        let tables = [route::TABLE, policy::TABLE, nat::TABLE];
        tables.iter().find_map(|table| cache.get(table, uuid)).unwrap().to_string()
    };
    let own = text(row.2);
    let twins = rows.iter().filter(|other| other.0 == row.0 && text(other.2) == own).count();
    twins == 1 && !own.contains("192.0.2.9") && !own.contains("\"drop\"")
}

fn meddle_beside(server: &Server, nb: &Client, how: &Meddle, which: usize) {
    let rows = marked(nb);
    let Some((router, column, uuid)) = rows.get(which % rows.len().max(1)) else { return };
    let (router, uuid) = (router.to_string(), uuid.to_string());
    let (table, changed) = match *column {
        "static_routes" => ("logical_router_static_route", "nexthop"),
        "policies" => ("logical_router_policy", "priority"),
        _ => ("nat", "external_ip"),
    };
    match how {
        Meddle::TakeMarksOff if !is_its_own(nb, &rows, &rows[which % rows.len()]) => {}
        Meddle::TakeMarksOff => drop(server.nbctl(&["clear", table, &uuid, "external_ids"])),
        Meddle::TakeOut => drop(server.nbctl(&["remove", "logical_router", &router, column, &uuid])),
        Meddle::Change if *column == "policies" => drop(server.nbctl(&["set", table, &uuid, "action=drop"])),
        Meddle::Change => drop(server.nbctl(&["set", table, &uuid, &format!("{changed}=192.0.2.9")])),
        Meddle::Double => {
            let values: Vec<_> = match *column {
                "static_routes" => vec!["ip_prefix", "nexthop", "policy", "output_port"],
                "policies" => vec!["priority", "match", "action", "nexthops"],
                _ => vec!["type", "logical_ip", "external_ip", "options"],
            };
            let values = values.iter().chain(&["external_ids"]);
            let cells: Vec<_> = values.map(|c| format!("{c}={}", server.nbctl(&["get", table, &uuid, c]))).collect();
            let create: Vec<_> =
                ["--id=@row", "create", table].into_iter().chain(cells.iter().map(String::as_str)).collect();
            server.nbctl(&[&create[..], &["--", "add", "logical_router", &router, column, "@row"]].concat());
        }
    }
}

async fn play_beside(story: &[Beside]) {
    let server = Server::new(Release::Lts);
    let network = Settings::default().network();
    let mut objects = Objects::default();
    for node in 0..NODES.len() {
        objects.put(with_gateway(node, false, 0, 0));
    }
    let mut controller = Controller::start(network.clone(), server.client().await, &objects);
    controller.settle(&mut objects).await;
    let commands = Foreign::commands(&controller.nb, &NODES, true);
    let (mut made, mut foreign) = (BTreeSet::new(), Foreign::default());
    for event in story {
        let changes = match event {
            Beside::NodeComes(node, local, ip, hop) => objects.put(with_gateway(*node, *local, *ip, *hop)),
            Beside::NodeGoes(node) => objects.delete("Node", "", NODES[*node]),
            Beside::Write(n) => {
                for _ in 0..*n {
                    controller.step(&mut objects, false).await;
                }
                Vec::new()
            }
            Beside::Foreign(which) => {
                let command = &commands[which % commands.len()];
                let has = |node: &&str| !controller.nb.cache().lookup(lr::TABLE, &format!("GR_{node}")).is_empty();
                let possible = NODES.iter().filter(|node| command.contains(**node)).all(has);
                if possible && made.insert(which % commands.len()) {
                    foreign = foreign.and(Foreign::tried(&server, command).await);
                }
                Vec::new()
            }
            Beside::Crash => {
                controller = Controller::start(network.clone(), server.client().await, &objects);
                Vec::new()
            }
            Beside::Meddle(how, which) => {
                // without marks, an unwanted row cannot be recognized as ours
                if matches!(how, Meddle::TakeMarksOff) {
                    controller.settle(&mut objects).await;
                }
                meddle_beside(&server, &server.client().await, how, *which);
                controller = Controller::start(network.clone(), server.client().await, &objects);
                if matches!(how, Meddle::TakeMarksOff) {
                    controller.step(&mut objects, false).await;
                }
                Vec::new()
            }
        };
        controller.take(changes);
        assert_eq!(foreign.harm(&controller.nb), [""; 0]);
        foreign = foreign.left(&controller.nb);
    }
    controller.settle(&mut objects).await;
    assert_eq!(foreign.harm(&controller.nb), [""; 0]);
    let mut again = Controller::start(network.clone(), server.client().await, &objects);
    assert_eq!(again.settle(&mut objects).await, (0, Vec::new()));
    let empty = Server::new(Release::Lts);
    let mut fresh = Controller::start(network, empty.client().await, &objects);
    fresh.settle(&mut objects).await;
    assert_eq!(crate::foreign::ours(&again.nb, &foreign), crate::foreign::ours(&fresh.nb, &Foreign::default()));
}

/// Takes a few seconds; `PROPTEST_CASES` for more.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").map_or(60, |n| n.parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: crate::found("apply/random.seeds"), ..ProptestConfig::default() })]
    #[test]
    fn every_story_ends_like_a_fresh_start(story in proptest::collection::vec(happens(), 5..60)) {
        tokio::runtime::Runtime::new().unwrap().block_on(play(&story));
    }

    #[test]
    fn foreign_rows_outlive_every_story(story in proptest::collection::vec(beside(), 5..40)) {
        tokio::runtime::Runtime::new().unwrap().block_on(play_beside(&story));
    }
}
