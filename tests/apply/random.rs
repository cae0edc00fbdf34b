//! Random changes, crashes and meddling: in the end the rows are those of a fresh start on an empty
//! database, and at no time do two ports share an address.

use ovnkube_tests::nb::{Release, Server};
use ovnkube_tests::objects::{namespace, node, pod};
use ovnkube_tests::settings::Settings;
use ovnkube_tests::{Controller, Objects, rules};
use proptest::prelude::*;
use serde_json::json;

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
    PodEnds(usize, usize),
    PodGoes(usize, usize),
    Write(usize),
    Crash,
    /// Somebody runs ovn-nbctl while the controller is away.
    Meddle(usize, usize),
}

#[derive(Debug, Clone)]
enum Pod {
    Plain,
    HostNetwork,
    /// Asks for the n-th address of the first node's subnet.
    Asks(u8),
    /// Is annotated with it.
    Annotated(u8),
    /// With a MAC of its own.
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
    prop_oneof![
        2 => (0..3usize).prop_map(Happens::NodeComes),
        1 => (0..3usize).prop_map(Happens::NodeGoes),
        2 => (0..2usize).prop_map(Happens::NamespaceComes),
        1 => (0..2usize).prop_map(Happens::NamespaceGoes),
        10 => comes.prop_map(|(namespace, pod, node, how)| Happens::PodComes { namespace, pod, node, how }),
        2 => (0..2usize, 0..5usize).prop_map(|(n, p)| Happens::PodEnds(n, p)),
        5 => (0..2usize, 0..5usize).prop_map(|(n, p)| Happens::PodGoes(n, p)),
        6 => (1..6usize).prop_map(Happens::Write),
        1 => Just(Happens::Crash),
        1 => (0..4usize, 0..10usize).prop_map(|(what, which)| Happens::Meddle(what, which)),
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
        Pod::Annotated(n) => {
            let network = json!({"default": {"ip_addresses": [format!("10.128.0.{n}/23")], "mac_address": format!("0a:58:0a:80:00:0{n}")}});
            pod["metadata"]["annotations"] = json!({"k8s.ovn.org/pod-networks": network.to_string()});
        }
    }
    pod
}

async fn play(story: &[Happens]) {
    let server = Server::new(Release::Trixie);
    let network = Settings::default().network();
    let mut objects = Objects::default();
    let mut controller = Controller::start(network.clone(), server.client().await, &objects);
    controller.batch = 3;
    for event in story {
        let pod_there = |o: &Objects, n: usize, p: usize| {
            o.of("Pod").any(|x| x["metadata"]["namespace"] == NAMESPACES[n] && x["metadata"]["name"] == PODS[p])
        };
        let changes = match event {
            Happens::NodeComes(n) if objects.of("Node").all(|x| x["metadata"]["name"] != NODES[*n]) => {
                objects.put(node(NODES[*n]))
            }
            Happens::NodeGoes(n) => objects.delete("Node", "", NODES[*n]),
            Happens::NamespaceComes(n) => objects.put(namespace(NAMESPACES[*n])),
            // as with a real API server: its pods go first, and no pod comes without its namespace
            Happens::NamespaceGoes(n) => {
                let mut changes: Vec<_> =
                    PODS.iter().flat_map(|pod| objects.delete("Pod", NAMESPACES[*n], pod)).collect();
                changes.extend(objects.delete("Namespace", "", NAMESPACES[*n]));
                changes
            }
            Happens::PodComes { namespace, pod, node, how } => {
                let there = objects.of("Namespace").any(|x| x["metadata"]["name"] == NAMESPACES[*namespace]);
                let mut changes = if there { Vec::new() } else { objects.put(self::namespace(NAMESPACES[*namespace])) };
                changes.extend(objects.delete("Pod", NAMESPACES[*namespace], PODS[*pod]));
                changes.extend(objects.put(object(NAMESPACES[*namespace], PODS[*pod], NODES[*node], how)));
                changes
            }
            Happens::PodEnds(n, p) if pod_there(&objects, *n, *p) => {
                let meta = json!({"namespace": NAMESPACES[*n], "name": PODS[*p]});
                objects.merge(&json!({"kind": "Pod", "metadata": meta, "status": {"phase": "Succeeded"}}))
            }
            // there already, or not there
            Happens::NodeComes(_) | Happens::PodEnds(..) => Vec::new(),
            Happens::PodGoes(n, p) => objects.delete("Pod", NAMESPACES[*n], PODS[*p]),
            Happens::Write(n) => {
                for _ in 0..*n {
                    controller.step(&mut objects, false).await;
                    rules::addresses_are_unique(&controller.nb);
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
    }
    while controller.step(&mut objects, false).await.is_some() {
        rules::addresses_are_unique(&controller.nb);
    }
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

/// Some seconds' worth; `PROPTEST_CASES` for more.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").map_or(60, |n| n.parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_story_ends_as_a_fresh_start(story in proptest::collection::vec(happens(), 5..60)) {
        tokio::runtime::Runtime::new().unwrap().block_on(play(&story));
    }
}
