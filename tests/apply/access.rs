//! Which connections are allowed, after every single transaction of any story: exactly those that the Kubernetes reference
//! allows for the objects at that time, for every existing port. So no change of a policy, of labels or of namespaces
//! allows or drops a packet even briefly, and a new pod is isolated from its first packet on.

use std::collections::BTreeSet;

use ovnkube_ovn::nb::{logical_switch_port as lsp, port_group};
use ovnkube_ovsdb::Client;
use ovnkube_policy_truth::evaluate::is_in_host_network;
use ovnkube_policy_truth::generate::{self, PORTS, Size};
use ovnkube_policy_truth::{Cluster, End, Flow, Protocol, Random};
use ovnkube_tests::acls::{Acls, Packet, Parsed, Place, places, switch_of};
use ovnkube_tests::nb::{Release, Server};
use ovnkube_tests::objects::{namespace, node, pod};
use ovnkube_tests::settings::Settings;
use ovnkube_tests::{Controller, Objects, Write};
use proptest::prelude::*;
use serde_json::{Value, json};

const NAMESPACES: usize = 3;
const PODS: usize = 8;
const POLICIES: usize = 6;
/// Keys and rows of a transaction, except of what changes together: few, so that there are many transactions.
const LIMITS: (usize, usize) = (3, 4);
const NODES: [&str; 2] = ["n1", "n2"];
const HOST_IPS: [[&str; 2]; 2] = [["172.18.0.11", "fd00:172:18::11"], ["172.18.0.12", "fd00:172:18::12"]];

#[derive(Debug, Clone)]
enum Happens {
    PolicyComes(usize, u64),
    PolicyGoes(usize),
    PodComes(usize, u64),
    PodIsRelabelled(usize, u64),
    PodEnds(usize),
    PodGoes(usize),
    NamespaceIsRelabelled(usize, u64),
    NamespaceGoes(usize),
    /// Does some writes; others wait.
    Write(usize),
    Crash,
    /// Another client runs ovn-nbctl while the controller is down.
    Meddle(usize),
}

fn happens() -> impl Strategy<Value = Happens> {
    use Happens::{
        Crash, Meddle, NamespaceGoes, NamespaceIsRelabelled, PodComes, PodEnds, PodGoes, PodIsRelabelled, PolicyComes,
        PolicyGoes, Write,
    };
    prop_oneof![
        6 => (0..POLICIES, any::<u64>()).prop_map(|(p, seed)| PolicyComes(p, seed)),
        2 => (0..POLICIES).prop_map(PolicyGoes),
        6 => (0..PODS, any::<u64>()).prop_map(|(p, seed)| PodComes(p, seed)),
        3 => (0..PODS, any::<u64>()).prop_map(|(p, seed)| PodIsRelabelled(p, seed)),
        1 => (0..PODS).prop_map(PodEnds),
        2 => (0..PODS).prop_map(PodGoes),
        2 => (0..NAMESPACES, any::<u64>()).prop_map(|(n, seed)| NamespaceIsRelabelled(n, seed)),
        1 => (0..NAMESPACES).prop_map(NamespaceGoes),
        8 => (1..8usize).prop_map(Write),
        1 => Just(Crash),
        1 => (0..3usize).prop_map(Meddle),
    ]
}

/// The state that events change, and the checks on it.
struct Story {
    server: Server,
    settings: Settings,
    objects: Objects,
    controller: Controller,
    parsed: Parsed,
    flows: usize,
}

impl Story {
    async fn begin(settings: Settings) -> Self {
        let server = Server::new(Release::Lts);
        let mut objects = Objects::default();
        for number in 0..NAMESPACES {
            objects.put(namespace(&name(number)));
        }
        for number in 0..NODES.len() {
            objects.put(host(number));
        }
        let mut controller = Controller::start(settings.network(), server.client().await, &objects);
        controller.settle(&mut objects).await;
        (controller.batch, controller.rows) = LIMITS;
        Self { server, settings, objects, controller, parsed: Parsed::default(), flows: 0 }
    }

    async fn happen(&mut self, what: &Happens) {
        let objects = &mut self.objects;
        let changes = match *what {
            Happens::PolicyComes(..) if objects.of("Namespace").next().is_none() => Vec::new(),
            Happens::PolicyComes(number, seed) => {
                let known = cluster(objects, &self.controller.nb);
                let mut policy = generate::policies(seed, 1, &known).remove(0);
                policy["metadata"]["name"] = json!(format!("policy-{number}"));
                objects.put(policy)
            }
            Happens::PolicyGoes(number) => {
                let gone =
                    (0..NAMESPACES).map(|n| objects.delete("NetworkPolicy", &name(n), &format!("policy-{number}")));
                gone.flatten().collect()
            }
            Happens::PodComes(number, seed) => pod_comes(objects, number, seed),
            Happens::PodIsRelabelled(number, seed) => {
                relabel(objects, "Pod", &format!("p{number}"), generate::labels(&mut Random::new(seed), 4))
            }
            Happens::PodEnds(number) => {
                let patch = json!({"status": {"phase": "Succeeded"}});
                change(objects, "Pod", &format!("p{number}"), &patch)
            }
            Happens::PodGoes(number) => objects.delete("Pod", &name(number % NAMESPACES), &format!("p{number}")),
            Happens::NamespaceIsRelabelled(number, seed) => {
                relabel(objects, "Namespace", &name(number), generate::labels(&mut Random::new(seed), 3))
            }
            Happens::NamespaceGoes(number) => namespace_goes(objects, &name(number)),
            Happens::Write(count) => {
                for _ in 0..count {
                    self.step().await;
                }
                Vec::new()
            }
            Happens::Crash => {
                self.start_again().await;
                Vec::new()
            }
            Happens::Meddle(what) => {
                self.meddle(what).await;
                self.start_again().await;
                Vec::new()
            }
        };
        self.controller.take(changes);
    }

    async fn start_again(&mut self) {
        self.controller = Controller::start(self.settings.network(), self.server.client().await, &self.objects);
        (self.controller.batch, self.controller.rows) = LIMITS;
    }

    async fn meddle(&self, what: usize) {
        let groups: Vec<String> = {
            let nb = self.server.client().await;
            let cache = nb.cache();
            cache.iter(port_group::TABLE).map(|(_, row)| row.str(port_group::NAME).to_owned()).collect()
        };
        for group in groups {
            match what {
                0 => self.server.nbctl(&["clear", "port_group", &group, "ports"]),
                1 => self.server.nbctl(&["clear", "port_group", &group, "acls"]),
                _ => self.server.nbctl(&["destroy", "port_group", &group]),
            };
        }
    }

    /// Does one more write; returns false if there is none.
    async fn step(&mut self) -> bool {
        let write = self.controller.step(&mut self.objects, false).await;
        if let Some(Write::Transaction(_)) = write {
            self.check();
        }
        write.is_some()
    }

    fn check(&mut self) {
        let cluster = cluster(&self.objects, &self.controller.nb);
        let cache = self.controller.nb.cache();
        let acls = Acls::of(&cache, &mut self.parsed);
        let wired = cluster.pods.iter().filter(|pod| !is_in_host_network(pod));
        let ends: Vec<_> = wired.flat_map(|pod| ends(pod, &cache)).chain(of_nodes(&cache)).collect();
        for (from, from_place) in &ends {
            for (to, to_place) in &ends {
                if from_place.port == to_place.port || from.ip.is_ipv4() != to.ip.is_ipv4() {
                    continue;
                }
                for protocol in Protocol::ALL {
                    for port in PORTS {
                        let expected = cluster.allows(&Flow { from: *from, to: *to, protocol, port });
                        let ovn = protocol.name().to_lowercase();
                        let packet = Packet { from: *from_place, to: *to_place, protocol: &ovn, port };
                        assert_eq!(acls.allow(&packet), expected, "{} to {} {ovn} {port}", from.ip, to.ip);
                        self.flows += 1;
                    }
                }
            }
        }
    }
}

/// A node with its addresses.
fn host(number: usize) -> Value {
    let ips = HOST_IPS[number].map(|ip| json!({"type": "InternalIP", "address": ip}));
    let mut node = node(NODES[number]);
    node["status"] = json!({"addresses": ips});
    node
}

fn name(number: usize) -> String {
    format!("truth-{number}")
}

/// The pods that have a port with their name and uid, with its addresses, those in their node's network, and all objects
/// that affect them.
fn cluster(objects: &Objects, nb: &Client) -> Cluster {
    let cache = nb.cache();
    let mut cluster = Cluster::default();
    for value in objects.of("Namespace") {
        cluster.namespaces.push(serde_json::from_value(value.clone()).unwrap());
    }
    for value in objects.of("NetworkPolicy") {
        cluster.policies.push(serde_json::from_value(value.clone()).unwrap());
    }
    for value in objects.of("Pod").filter(|pod| pod["status"]["phase"] != "Succeeded") {
        if value["spec"]["hostNetwork"] == true {
            cluster.pods.push(serde_json::from_value(value.clone()).unwrap());
            continue;
        }
        let port = port_name(&value["metadata"]);
        let has = cache.named(lsp::TABLE, &port).next().map(|(_, row)| row);
        if has.is_some_and(|row| row.map(lsp::OPTIONS).get("iface-id-ver") == value["metadata"]["uid"].as_str()) {
            let ips: Vec<_> = places(&cache, &port).iter().map(|place| json!({"ip": place.ip.to_string()})).collect();
            let mut value = value.clone();
            value["status"] = json!({"podIPs": ips});
            cluster.pods.push(serde_json::from_value(value).unwrap());
        }
    }
    cluster
}

fn port_name(meta: &Value) -> String {
    format!("{}_{}", meta["namespace"].as_str().unwrap(), meta["name"].as_str().unwrap())
}

fn ends<'a>(
    pod: &'a k8s_openapi::api::core::v1::Pod,
    cache: &ovnkube_ovsdb::Cache,
) -> impl Iterator<Item = (End<'a>, Place)> {
    let meta = &pod.metadata;
    let port = format!("{}_{}", meta.namespace.as_deref().unwrap(), meta.name.as_deref().unwrap());
    places(cache, &port).into_iter().map(move |place| (End { pod: Some(pod), ip: place.ip }, place))
}

/// The addresses of nodes; their packets enter and leave through a switch's router port.
fn of_nodes<'a>(cache: &ovnkube_ovsdb::Cache) -> Vec<(End<'a>, Place)> {
    let of_node = |number: usize| {
        let port = cache.lookup(lsp::TABLE, &format!("stor-{}", NODES[number])).first().copied();
        let place = port.and_then(|port| Some((port, switch_of(cache, port)?)));
        let ips = HOST_IPS[number].map(|ip| ip.parse().unwrap());
        place
            .into_iter()
            .flat_map(move |(port, switch)| ips.map(|ip| (End { pod: None, ip }, Place { port, switch, ip })))
    };
    (0..NODES.len()).flat_map(of_node).collect()
}

fn pod_comes(objects: &mut Objects, number: usize, seed: u64) -> Vec<ovnkube_model::Change> {
    let (pod, node) = (format!("p{number}"), number % NODES.len());
    let size = Size { namespaces: 1, pods: 1, nodes: vec![NODES[node].into()], image: String::new() };
    let mut made = match seed % 4 {
        0 => generate::host_pod(seed, &pod, NODES[node], &HOST_IPS[node]),
        _ => generate::objects(seed, &size).pop().unwrap(),
    };
    made["metadata"]["namespace"] = json!(name(number % NAMESPACES));
    made["metadata"]["name"] = json!(pod);
    let there = objects.of("Namespace").any(|n| n["metadata"]["name"] == made["metadata"]["namespace"]);
    let mut changes = if there { Vec::new() } else { objects.put(namespace(&name(number % NAMESPACES))) };
    changes.extend(objects.delete("Pod", &name(number % NAMESPACES), &format!("p{number}")));
    changes.extend(objects.put(made));
    changes
}

fn namespace_goes(objects: &mut Objects, name: &str) -> Vec<ovnkube_model::Change> {
    let mine = |value: &&Value| value["metadata"]["namespace"] == name;
    let names: BTreeSet<_> = ["Pod", "NetworkPolicy"]
        .iter()
        .flat_map(|kind| {
            objects.of(kind).filter(mine).map(|v| (*kind, v["metadata"]["name"].as_str().unwrap().to_owned()))
        })
        .collect();
    let mut changes: Vec<_> = names.iter().flat_map(|(kind, object)| objects.delete(kind, name, object)).collect();
    changes.extend(objects.delete("Namespace", "", name));
    changes
}

/// Changes the object of that name, if it exists.
fn change(objects: &mut Objects, kind: &str, name: &str, patch: &Value) -> Vec<ovnkube_model::Change> {
    let Some(object) = objects.of(kind).find(|o| o["metadata"]["name"] == name) else { return Vec::new() };
    let mut object = object.clone();
    for (field, value) in patch.as_object().unwrap() {
        object[field] = value.clone();
    }
    objects.put(object)
}

fn relabel(
    objects: &mut Objects,
    kind: &str,
    name: &str,
    labels: serde_json::Map<String, Value>,
) -> Vec<ovnkube_model::Change> {
    let Some(object) = objects.of(kind).find(|o| o["metadata"]["name"] == name) else { return Vec::new() };
    let mut meta = object["metadata"].clone();
    meta["labels"] = Value::Object(labels);
    change(objects, kind, name, &json!({"metadata": meta}))
}

/// Plays a story, in the middle of which the database is emptied if there is a second part, and returns how many connections it
/// checked.
async fn play(settings: Settings, events: &[Happens], after_wipe: Option<&[Happens]>) -> usize {
    let mut story = Story::begin(settings).await;
    for event in events {
        story.happen(event).await;
    }
    if after_wipe.is_some() {
        story.server.wipe();
        story.start_again().await;
    }
    for event in after_wipe.unwrap_or_default() {
        story.happen(event).await;
    }
    while story.step().await {}
    let Story { mut objects, controller, flows, .. } = story;
    crate::crash::check(&mut objects, &controller).await;
    flows
}

fn settings(both: bool) -> Settings {
    let subnets = if both { "10.128.0.0/14/23,fd01::/48/64" } else { "10.128.0.0/14/23" };
    Settings { cluster_subnets: subnets.into(), ..Settings::default() }
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").map_or(40, |n| n.parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: crate::found("apply/access.seeds"), ..ProptestConfig::default() })]
    #[test]
    fn every_transaction_allows_what_the_reference_allows(
        story in proptest::collection::vec(happens(), 10..50), both in any::<bool>(),
    ) {
        tokio::runtime::Runtime::new().unwrap().block_on(play(settings(both), &story, None));
    }

    #[test]
    fn an_emptied_database_is_filled_again_without_other_access(
        before in proptest::collection::vec(happens(), 10..30), after in proptest::collection::vec(happens(), 1..20),
        both in any::<bool>(),
    ) {
        tokio::runtime::Runtime::new().unwrap().block_on(play(settings(both), &before, Some(&after)));
    }
}

/// Many pods, many more than fit into one transaction, change which policies of both directions select them.
#[tokio::test(flavor = "multi_thread")]
async fn many_pods_change_at_the_same_time() {
    let mut story = Story::begin(settings(true)).await;
    for number in 0..PODS {
        story.happen(&Happens::PodComes(number, number as u64)).await;
    }
    while story.step().await {}
    for seed in 0..12 {
        story.happen(&Happens::PolicyComes(seed as usize % POLICIES, seed)).await;
        for number in 0..PODS {
            story.happen(&Happens::PodIsRelabelled(number, seed + number as u64)).await;
        }
        while story.step().await {}
    }
    assert!(story.flows > 10_000, "only {} flows were judged", story.flows);
}

/// Packets of all nodes become allowed or denied at the same moment, since rules select the namespace that represents nodes.
#[tokio::test(flavor = "multi_thread")]
async fn traffic_of_nodes_is_allowed_at_one_moment() {
    let server = Server::new(Release::Lts);
    let mut objects = Objects::default();
    for name in ["a", "nodes"] {
        objects.put(namespace(name));
    }
    let nodes: Vec<_> = (1..=6).map(|number| format!("n{number}")).collect();
    for name in &nodes {
        objects.put(node(name));
    }
    objects.put(pod("a", "p", "n1"));
    let network = Settings { host_network_namespace: Some("nodes".into()), ..settings(true) }.network();
    let mut controller = Controller::start(network, server.client().await, &objects);
    controller.settle(&mut objects).await;
    controller.batch = 1;
    let mut parsed = Parsed::default();
    let from = |selector: Value| {
        let spec = json!({"podSelector": {}, "ingress": [{"from": [{"namespaceSelector": selector}]}]});
        json!({"kind": "NetworkPolicy", "metadata": {"namespace": "a", "name": "from"}, "spec": spec})
    };
    let role = |role: &str| json!({"kind": "Namespace", "metadata": {"name": "nodes", "labels": {"role": role}}});
    let of_nodes = || from(json!({"matchLabels": {"role": "nodes"}}));
    let story = [
        (objects.put(of_nodes()), false),
        (objects.merge(&role("nodes")), true),
        (objects.merge(&role("x")), false),
        (objects.merge(&role("nodes")), true),
        // other selectors, each the first and the last of its kind
        (objects.put(from(json!({}))), true),
        (objects.put(from(json!({"matchLabels": {"role": "x"}}))), false),
        (objects.put(of_nodes()), true),
        (objects.delete("NetworkPolicy", "a", "from"), true),
    ];
    for (at, (changes, expected)) in story.into_iter().enumerate() {
        controller.take(changes);
        while controller.step(&mut objects, false).await.is_some() {
            let cache = controller.nb.cache();
            let acls = Acls::of(&cache, &mut parsed);
            let pod = places(&cache, "a_p");
            // the pod's own node is always allowed
            for from in nodes.iter().skip(1).flat_map(|node| places(&cache, &format!("k8s-{node}"))) {
                let to = *pod.iter().find(|to| to.ip.is_ipv4() == from.ip.is_ipv4()).unwrap();
                let packet = Packet { from, to, protocol: "tcp", port: 80 };
                assert_eq!(acls.allow(&packet), expected, "step {at}: from {}", from.ip);
            }
        }
    }
}

/// Pods in the network of their node are deleted together, some replaced by others of the same name with different ports.
#[tokio::test(flavor = "multi_thread")]
async fn pods_in_the_network_of_their_node_are_deleted() {
    let mut story = Story::begin(settings(true)).await;
    let spec = json!({"podSelector": {}, "ingress": [{"from": [{"namespaceSelector": {}, "podSelector": {}}]}]});
    let meta = json!({"namespace": name(0), "name": "open"});
    let changes = story.objects.put(json!({"kind": "NetworkPolicy", "metadata": meta, "spec": spec}));
    story.controller.take(changes);
    let (wired, in_host_network) = (1, 0);
    story.happen(&Happens::PodComes(0, wired)).await;
    for number in 1..PODS {
        story.happen(&Happens::PodComes(number, in_host_network)).await;
    }
    while story.step().await {}
    for number in 1..PODS {
        let next = if number % 2 == 0 { Happens::PodGoes(number) } else { Happens::PodComes(number, wired) };
        story.happen(&next).await;
    }
    while story.step().await {}
    assert!(story.flows > 100, "only {} flows were judged", story.flows);
}
