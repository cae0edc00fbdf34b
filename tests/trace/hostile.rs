//! User input stays text: names, labels and values that look like OVN's language are never
//! interpreted, and a part of a policy that cannot be parsed allows nothing.
//!
//! The API server rejects most of this; nothing here relies on it.

use std::collections::BTreeSet;

use ovnkube_model::PodKey;
use ovnkube_policy_truth::Random;
use ovnkube_tests::dump::Dump;
use ovnkube_tests::nb::{Release, Server};
use ovnkube_tests::objects::{namespace, node, pod};
use ovnkube_tests::settings::Settings;
use ovnkube_tests::southbound::Southbound;
use ovnkube_tests::{Controller, Objects};
use serde_json::{Value, json};

const TEXTS: [&str; 9] = [
    "\" || ip || \"",
    "x\") || (1",
    "\\",
    "\\\" || ip4 || \\\"",
    "|| ip4",
    "$a1 || @a1 || {0.0.0.0/0}",
    "ünï-cødé \u{202e}\u{1f980}",
    "line\nbreak\ttab",
    "1 /* && */ //",
];

pub(crate) struct Place {
    pub(crate) server: Server,
    pub(crate) southbound: Southbound,
    pub(crate) controller: Controller,
    objects: Objects,
}

impl Place {
    async fn new(release: Release, given: Vec<Value>) -> Self {
        Self::with(release, Settings::default(), given).await
    }

    pub(crate) async fn with(release: Release, settings: Settings, given: Vec<Value>) -> Self {
        let server = Server::new(release);
        let southbound = Southbound::of(&server);
        let mut objects = Objects::default();
        objects.put(node("n1"));
        for object in given {
            objects.put(object);
        }
        let mut controller = Controller::start(settings.network(), server.client().await, &objects);
        controller.settle(&mut objects).await;
        Self { server, southbound, controller, objects }
    }

    pub(crate) async fn put(&mut self, object: Value) {
        let changes = self.objects.put(object);
        self.controller.take(changes);
        self.controller.settle(&mut self.objects).await;
    }

    async fn delete(&mut self, object: &Value) {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let changes = self.objects.delete(text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
        self.controller.take(changes);
        self.controller.settle(&mut self.objects).await;
    }

    /// The pairs of these pods between which packets pass.
    fn passing(&self, pods: &[PodKey]) -> BTreeSet<(PodKey, PodKey, &'static str)> {
        self.server.nbctl(&["--wait=sb", "sync"]);
        let mut tracer = self.southbound.tracer();
        let address = |pod: &PodKey| self.controller.world.pods.get(pod).unwrap().addresses.clone().unwrap();
        let pairs = pods.iter().flat_map(|from| pods.iter().map(move |to| (from, to)));
        let mut passing = BTreeSet::new();
        for (from, to) in pairs.filter(|(from, to)| from != to) {
            let (a, b) = (address(from), address(to));
            for port in ["tcp.src == 40000 && tcp.dst == 80", "udp.src == 40000 && udp.dst == 53"] {
                let microflow = format!(
                    "inport == {} && eth.src == {} && eth.dst == {} && ip4.src == {} && ip4.dst == {} && ip.ttl == 64 && {port}",
                    json!(format!("{}_{}", from.namespace, from.name)),
                    a.mac,
                    b.mac,
                    a.ips[0].ip(),
                    b.ips[0].ip(),
                );
                let trace = tracer.trace("n1", &microflow);
                if trace.contains(&format!("output to {}", json!(format!("{}_{}", to.namespace, to.name)))) {
                    passing.insert((from.clone(), to.clone(), &port[..3]));
                }
            }
        }
        let complaints = self.southbound.complaints();
        assert_eq!(complaints, "", "what OVN does not understand");
        passing
    }
}

fn labelled(mut object: Value, labels: &Value) -> Value {
    object["metadata"]["labels"] = labels.clone();
    object
}

pub(crate) fn policy(namespace: &str, name: &str, spec: &Value) -> Value {
    json!({"kind": "NetworkPolicy", "metadata": {"namespace": namespace, "name": name}, "spec": spec})
}

fn app(value: &str) -> Value {
    json!({"matchLabels": {"app": value}})
}

/// `web` is isolated and allows `friend`; `free` is not isolated.
fn village() -> (Vec<Value>, Vec<PodKey>) {
    let names = ["web", "friend", "stranger", "free"];
    let pods = names.map(|name| labelled(pod("a", name, "n1"), &json!({"app": name})));
    let web = json!({"podSelector": app("web"), "policyTypes": ["Ingress", "Egress"], "ingress": [{"from": [{"podSelector": app("friend")}]}]});
    let mut objects = vec![namespace("a"), policy("a", "web", &web)];
    objects.extend(pods);
    (objects, names.map(|name| PodKey::new("a", name)).to_vec())
}

async fn texts_stay_texts(release: Release) {
    let (village, pods) = village();
    let mut place = Place::new(release, village).await;
    let (rows, before) = (Dump::of(&place.controller.nb), place.passing(&pods));
    assert!(before.len() > 4 && before.len() < 24, "{before:?}");
    for text in TEXTS {
        let own = PodKey::new("a", "own");
        let twin = PodKey::new("a", "twin");
        let selector = json!({"matchLabels": {"app": text, text: text}, "matchExpressions": [
            {"key": "app", "operator": "In", "values": [text, "\""]}, {"key": text, "operator": "Exists"},
        ]});
        let rule = |peers: &str| {
            let of_namespace = json!({"namespaceSelector": {"matchLabels": {text: text}}});
            json!({peers: [{"podSelector": selector}, of_namespace], "ports": [{"port": 80}, {"port": text}]})
        };
        let spec = json!({
            "podSelector": app("own"), "policyTypes": ["Ingress", "Egress"], "ingress": [rule("from")], "egress": [rule("to")],
        });
        let labels = json!({"app": "own", text: text});
        let made = [
            labelled(pod("a", "own", "n1"), &labels),
            labelled(pod("a", "twin", "n1"), &labels),
            policy("a", text, &spec),
            labelled(namespace(text), &labels),
            labelled(pod(text, text, "n1"), &labels),
            policy(text, text, &spec),
        ];
        for object in &made {
            place.put(object.clone()).await;
        }
        assert_eq!(place.passing(&pods), before, "{text:?} changed other pods' connections");
        let all: Vec<_> = pods.iter().cloned().chain([own.clone(), twin.clone()]).collect();
        let with_own =
            |(from, to, _): &(PodKey, PodKey, &str)| [&own, &twin].iter().any(|pod| [from, to].contains(pod));
        let passing: Vec<_> = place.passing(&all).into_iter().filter(with_own).collect();
        assert_eq!(passing, [], "{text:?} opened something");
        for object in made.iter().rev() {
            place.delete(object).await;
        }
        assert_eq!(Dump::of(&place.controller.nb).since(&rows), "", "{text:?} left rows");
        assert_eq!(rows.since(&Dump::of(&place.controller.nb)), "", "{text:?} removed rows");
    }
    // shows that a bad match would be reported
    place.server.nbctl(&["acl-add", "n1", "to-lport", "7", "ip4.src == \"x", "drop"]);
    place.server.nbctl(&["--wait=sb", "sync"]);
    drop(place.southbound.tracer());
    assert!(place.southbound.complaints().contains("pars"), "{}", place.southbound.complaints());
}

#[tokio::test(flavor = "multi_thread")]
async fn text_is_not_interpreted_on_26_03() {
    texts_stay_texts(Release::Lts).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn text_is_not_interpreted_on_23_03() {
    texts_stay_texts(Release::Host).await;
}

/// A meaningless part, in a rule or instead of one of its sides.
fn broken_rule(random: &mut Random, peers: &str) -> Value {
    let text = random.one(&TEXTS);
    let bad_peers = [
        json!({}),
        json!({"ipBlock": {"cidr": text}}),
        json!({"ipBlock": {"cidr": "0.0.0.0/33"}}),
        json!({"ipBlock": {"cidr": "0.0.0.0/0", "except": [text]}}),
        json!({"ipBlock": {"cidr": "0.0.0.0/0", "except": ["::/0"]}}),
        json!({"ipBlock": {"cidr": "0.0.0.0/0"}, "podSelector": {}}),
        json!({"podSelector": {"matchExpressions": [{"key": "app", "operator": text, "values": ["web"]}]}}),
        json!({"podSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": []}]}}),
        json!({"podSelector": {}, "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "NOTIN", "values": ["b"]}]}}),
    ];
    let bad_ports = [
        json!({"port": text}),
        json!({"protocol": text}),
        json!({"protocol": "tcp", "port": 80}),
        json!({"port": 0}),
        json!({"port": 65536}),
        json!({"port": -80}),
        json!({"port": 90, "endPort": 80}),
        json!({"port": "web", "endPort": 80}),
        json!({"endPort": 80}),
    ];
    let count = 1 + random.below(3);
    let (which, everybody) = (random.below(2), random.chance(50));
    if which == 0 {
        let list: Vec<_> = (0..count).map(|_| bad_peers[random.below(bad_peers.len())].clone()).collect();
        if everybody { json!({peers: list}) } else { json!({peers: list, "ports": [{"port": 80}]}) }
    } else {
        let list: Vec<_> = (0..count).map(|_| bad_ports[random.below(bad_ports.len())].clone()).collect();
        if everybody { json!({"ports": list}) } else { json!({peers: [{"podSelector": {}}], "ports": list}) }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_policy_opens_nothing() {
    let (village, pods) = village();
    let mut place = Place::new(Release::Lts, village).await;
    let before = place.passing(&pods);
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let selectors =
            [json!({}), app("web"), app("free"), json!({"matchExpressions": [{"key": "app", "operator": "?"}]})];
        let selector = selectors[random.below(selectors.len())].clone();
        let mut rules = |peers: &str| -> Vec<Value> {
            let count = random.below(3);
            (0..count).map(|_| broken_rule(&mut random, peers)).collect()
        };
        let (ingress, egress) = (rules("from"), rules("to"));
        let types = [json!(null), json!(["Ingress"]), json!(["Egress", TEXTS[0]]), json!([TEXTS[4]])];
        let types = types[random.below(types.len())].clone();
        let spec = json!({"podSelector": selector, "policyTypes": types, "ingress": ingress, "egress": egress});
        let broken = policy("a", "broken", &spec);
        place.put(broken.clone()).await;
        let opened: Vec<_> = place.passing(&pods).difference(&before).cloned().collect();
        assert!(opened.is_empty(), "seed {seed}: {broken} opened {opened:?}");
    }
    place.delete(&policy("a", "broken", &json!({}))).await;
    assert_eq!(place.passing(&pods), before);
}
