//! The evaluator against the text of the Kubernetes documentation, and the generator against the features that
//! are worth testing.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use crate::evaluate::{addresses, name, selects};
use crate::generate::{PORTS, Size};
use crate::{Cluster, End, Flow, Protocol, generate};

fn pod(namespace: &str, name: &str, ip: &str, labels: &Value, ports: &Value) -> Value {
    json!({
        "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "spec": {"containers": [{"name": "c", "ports": ports}]},
        "status": {"podIPs": [{"ip": ip}]},
    })
}

/// Two namespaces: `default` with `db`, `front` and `other`, `myproject` (labelled `project`) with `client`.
fn cluster(policies: &[Value]) -> Cluster {
    let web = json!([{"name": "web", "containerPort": 8080}, {"name": "dns", "containerPort": 53, "protocol": "UDP"}]);
    let none = json!([]);
    let from = |value: Value| serde_json::from_value(value).unwrap();
    Cluster {
        namespaces: vec![
            serde_json::from_value(json!({"metadata": {"name": "default"}})).unwrap(),
            serde_json::from_value(json!({"metadata": {"name": "myproject", "labels": {"project": "myproject"}}}))
                .unwrap(),
        ],
        pods: vec![
            from(pod("default", "db", "10.0.0.1", &json!({"role": "db"}), &web)),
            from(pod("default", "front", "10.0.0.2", &json!({"role": "frontend"}), &none)),
            from(pod("default", "other", "10.0.0.3", &json!({}), &json!([{"name": "web", "containerPort": 9090}]))),
            from(pod("myproject", "client", "10.0.1.1", &json!({"user": "alice"}), &none)),
        ],
        policies: policies.iter().map(|p| serde_json::from_value(p.clone()).unwrap()).collect(),
    }
}

fn end<'a>(cluster: &'a Cluster, who: &str) -> End<'a> {
    if let Ok(ip) = who.parse::<IpAddr>() {
        return End { pod: None, ip };
    }
    let pod = cluster.pods.iter().find(|p| name(&p.metadata) == who).unwrap();
    End { pod: Some(pod), ip: addresses(pod)[0] }
}

fn ask(policies: &[Value], from: &str, to: &str, protocol: Protocol, port: u16) -> bool {
    let cluster = cluster(policies);
    cluster.allows(&Flow { from: end(&cluster, from), to: end(&cluster, to), protocol, port })
}

fn policy(spec: &Value) -> Value {
    json!({"metadata": {"namespace": "default", "name": "p"}, "spec": spec})
}

const DB: &str = "default/db";
const FRONT: &str = "default/front";
const OTHER: &str = "default/other";
const CLIENT: &str = "myproject/client";
use Protocol::{Sctp, Tcp, Udp};

/// "By default, a pod is non-isolated": without a policy everything is allowed.
#[test]
fn nothing_is_isolated_without_a_policy() {
    for (from, to) in [(FRONT, DB), (CLIENT, DB), ("192.0.2.1", DB), (DB, "192.0.2.1")] {
        assert!(ask(&[], from, to, Tcp, 80), "{from} to {to}");
    }
}

/// The example of the documentation: "test-network-policy".
#[test]
fn example_of_the_documents() {
    let policies = [policy(&json!({
        "podSelector": {"matchLabels": {"role": "db"}},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{
            "from": [
                {"ipBlock": {"cidr": "172.17.0.0/16", "except": ["172.17.1.0/24"]}},
                {"namespaceSelector": {"matchLabels": {"project": "myproject"}}},
                {"podSelector": {"matchLabels": {"role": "frontend"}}},
            ],
            "ports": [{"protocol": "TCP", "port": 6379}],
        }],
        "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/24"}}], "ports": [{"protocol": "TCP", "port": 5978}]}],
    }))];
    let ask = |from, to, protocol, port| ask(&policies, from, to, protocol, port);
    for from in [FRONT, CLIENT, "172.17.0.9", "172.17.2.1", DB] {
        assert!(ask(from, DB, Tcp, 6379), "{from}");
    }
    for from in [OTHER, "172.17.1.9", "172.18.0.1"] {
        assert!(!ask(from, DB, Tcp, 6379), "{from}");
    }
    assert!(!ask(FRONT, DB, Tcp, 6380));
    assert!(!ask(FRONT, DB, Udp, 6379));
    assert!(ask(DB, "10.0.0.77", Tcp, 5978));
    assert!(!ask(DB, "10.0.1.1", Tcp, 5978));
    assert!(ask(FRONT, OTHER, Tcp, 1), "pods that are not selected stay open");
}

/// "default deny" and "allow all", for each direction.
#[test]
fn defaults_for_a_namespace() {
    let spec = |types: &[&str], more: Value| {
        let mut spec = json!({"podSelector": {}, "policyTypes": types});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        policy(&spec)
    };
    let deny_ingress = spec(&["Ingress"], json!({}));
    assert!(!ask(std::slice::from_ref(&deny_ingress), FRONT, DB, Tcp, 80));
    assert!(ask(std::slice::from_ref(&deny_ingress), FRONT, CLIENT, Tcp, 80), "egress is not affected");
    let allow_ingress = spec(&["Ingress"], json!({"ingress": [{}]}));
    assert!(ask(&[deny_ingress, allow_ingress], "192.0.2.1", DB, Sctp, 80), "one policy that allows it is enough");
    let deny_egress = spec(&["Egress"], json!({}));
    assert!(!ask(std::slice::from_ref(&deny_egress), FRONT, "192.0.2.1", Udp, 53));
    assert!(ask(std::slice::from_ref(&deny_egress), CLIENT, DB, Udp, 53), "ingress is not affected");
    let allow_egress = spec(&["Egress"], json!({"egress": [{}]}));
    assert!(ask(&[deny_egress, allow_egress], FRONT, "192.0.2.1", Udp, 53));
}

/// Both ends have to allow it, and a pod always reaches itself.
#[test]
fn both_ends_decide() {
    let deny = policy(&json!({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}));
    assert!(ask(std::slice::from_ref(&deny), DB, DB, Tcp, 80));
    let out = policy(&json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"to": [{"podSelector": {}}]}]}));
    assert!(!ask(&[deny.clone(), out.clone()], FRONT, DB, Tcp, 80), "ingress is still denied");
    let into =
        policy(&json!({"podSelector": {"matchLabels": {"role": "db"}}, "ingress": [{"from": [{"podSelector": {}}]}]}));
    assert!(ask(&[deny, out, into], FRONT, DB, Tcp, 80));
}

/// Missing `policyTypes`.
#[test]
fn directions_by_default() {
    let only_egress = policy(&json!({"podSelector": {}, "egress": [{}]}));
    assert!(!ask(std::slice::from_ref(&only_egress), CLIENT, DB, Tcp, 80), "ingress always applies");
    assert!(ask(std::slice::from_ref(&only_egress), DB, CLIENT, Tcp, 80));
    let no_rules = policy(&json!({"podSelector": {}, "egress": []}));
    assert!(ask(std::slice::from_ref(&no_rules), DB, CLIENT, Tcp, 80), "egress without rules does not apply");
    let egress = policy(&json!({"podSelector": {}, "policyTypes": ["Egress"], "ingress": [{}], "egress": []}));
    assert!(!ask(std::slice::from_ref(&egress), DB, CLIENT, Tcp, 80));
    assert!(ask(&[egress], CLIENT, DB, Tcp, 80));
}

/// Two selectors in one peer must both match; with two peers, one is enough.
#[test]
fn selectors_of_peers() {
    let from =
        |peers: Value| [policy(&json!({"podSelector": {"matchLabels": {"role": "db"}}, "ingress": [{"from": peers}]}))];
    let namespace = json!({"matchLabels": {"project": "myproject"}});
    let alice = json!({"matchLabels": {"user": "alice"}});
    let bob = json!({"matchLabels": {"user": "bob"}});
    let both = |who: &Value| from(json!([{"namespaceSelector": namespace, "podSelector": who}]));
    assert!(ask(&both(&alice), CLIENT, DB, Tcp, 80));
    assert!(!ask(&both(&bob), CLIENT, DB, Tcp, 80));
    let either = from(json!([{"namespaceSelector": namespace}, {"podSelector": bob}]));
    assert!(ask(&either, CLIENT, DB, Tcp, 80));
    assert!(!ask(&from(json!([{"podSelector": alice}])), CLIENT, DB, Tcp, 80), "pods of the policy's own namespace");
    let all = from(json!([{"namespaceSelector": {}}]));
    assert!(ask(&all, CLIENT, DB, Tcp, 80) && ask(&all, FRONT, DB, Tcp, 80));
    assert!(!ask(&all, "192.0.2.1", DB, Tcp, 80), "an address is in no namespace");
    assert!(ask(&from(json!([])), "192.0.2.1", DB, Tcp, 80), "no peers means everybody");
}

/// Ports by number, name and range; several numbers for one name; a protocol alone.
#[test]
fn ports_of_rules() {
    let to = |ports: Value| [policy(&json!({"podSelector": {}, "ingress": [{"ports": ports}]}))];
    let web = to(json!([{"port": "web"}]));
    assert!(ask(&web, CLIENT, DB, Tcp, 8080) && ask(&web, CLIENT, OTHER, Tcp, 9090), "each pod's own number");
    assert!(!ask(&web, CLIENT, DB, Tcp, 9090) && !ask(&web, CLIENT, FRONT, Tcp, 8080));
    assert!(!ask(&web, CLIENT, DB, Udp, 8080), "TCP is the default");
    let dns = to(json!([{"port": "dns"}]));
    assert!(!ask(&dns, CLIENT, DB, Tcp, 53) && !ask(&dns, CLIENT, DB, Udp, 53), "dns is a UDP port");
    assert!(ask(&to(json!([{"port": "dns", "protocol": "UDP"}])), CLIENT, DB, Udp, 53));
    let range = to(json!([{"port": 100, "endPort": 200}]));
    for (port, allowed) in [(99, false), (100, true), (150, true), (200, true), (201, false)] {
        assert_eq!(ask(&range, CLIENT, DB, Tcp, port), allowed, "{port}");
    }
    let all_of_tcp = to(json!([{"protocol": "TCP"}, {"protocol": "TCP", "port": 80}]));
    assert!(ask(&all_of_tcp, CLIENT, DB, Tcp, 7), "a port next to all ports restricts nothing");
    assert!(!ask(&all_of_tcp, CLIENT, DB, Sctp, 7));
    assert!(ask(&to(json!([])), CLIENT, DB, Sctp, 7), "no ports means every port");
    let out =
        [policy(&json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"ports": [{"port": "web"}]}]}))];
    assert!(ask(&out, FRONT, DB, Tcp, 8080), "a name is looked up at the destination");
    assert!(!ask(&out, FRONT, "192.0.2.1", Tcp, 8080), "an address has no names");
}

/// Exceptions affect only their own block.
#[test]
fn exceptions_of_one_block() {
    let from = |blocks: Value| [policy(&json!({"podSelector": {}, "ingress": [{"from": blocks}]}))];
    let holed = json!({"ipBlock": {"cidr": "192.0.2.0/24", "except": ["192.0.2.128/25", "192.0.2.1/32"]}});
    for (ip, allowed) in [("192.0.2.2", true), ("192.0.2.1", false), ("192.0.2.200", false), ("2001:db8::1", false)] {
        assert_eq!(ask(&from(json!([holed])), ip, DB, Tcp, 80), allowed, "{ip}");
    }
    assert!(ask(&from(json!([holed, {"ipBlock": {"cidr": "192.0.2.1/32"}}])), "192.0.2.1", DB, Tcp, 80));
    let everything = from(
        json!([{"ipBlock": {"cidr": "0.0.0.0/0"}}, {"ipBlock": {"cidr": "2001:db8::/32", "except": ["2001:db8:1::/48"]}}]),
    );
    assert!(ask(&everything, "2001:db8:2::1", DB, Tcp, 80) && !ask(&everything, "2001:db8:1::1", DB, Tcp, 80));
    assert!(ask(&everything, FRONT, DB, Tcp, 80), "a pod's address matches as well");
}

/// Rules match pods in the network of their node by the shared address.
#[test]
fn pods_in_the_network_of_their_node() {
    let ports = |ports: Value| {
        generate::host_pod(1, "h", "n1", &["192.0.2.11"]).as_object().cloned().map(|mut pod| {
            pod["metadata"] = json!({"namespace": "default", "name": "host", "labels": {"role": "frontend"}});
            pod["spec"]["containers"] = json!([{"name": "c", "ports": ports}]);
            serde_json::from_value(Value::Object(pod)).unwrap()
        })
    };
    let ask = |policies: &[Value], from: &str, to: &str, port| {
        let mut cluster = cluster(policies);
        cluster.pods.extend(ports(json!([{"name": "web", "containerPort": 8080}])));
        cluster.allows(&Flow { from: end(&cluster, from), to: end(&cluster, to), protocol: Tcp, port })
    };
    let peer = json!({"podSelector": {"matchLabels": {"role": "frontend"}}});
    let of_namespaces = json!({"namespaceSelector": {}});
    let from = |peer: &Value| [policy(&json!({"podSelector": {}, "ingress": [{"from": [peer]}]}))];
    assert!(ask(&from(&peer), "192.0.2.11", DB, 80) && !ask(&from(&peer), "192.0.2.12", DB, 80));
    assert!(!ask(&from(&of_namespaces), "192.0.2.11", DB, 80));
    let to = |rule: Value| [policy(&json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": [rule]}))];
    assert!(ask(&to(json!({"to": [peer]})), DB, "192.0.2.11", 80));
    assert!(!ask(&to(json!({"to": [of_namespaces]})), DB, "192.0.2.11", 80));
    let named = to(json!({"ports": [{"port": "web"}]}));
    assert!(ask(&named, DB, "192.0.2.11", 8080) && !ask(&named, DB, "192.0.2.11", 80));
}

#[test]
fn requirements() {
    let meta = serde_json::from_value(json!({"labels": {"a": "1", "empty": ""}})).unwrap();
    let is = |key: &str, operator: &str, values: &[&str]| {
        let requirement = json!({"key": key, "operator": operator, "values": values});
        selects(&serde_json::from_value(json!({"matchExpressions": [requirement]})).unwrap(), &meta)
    };
    assert!(is("a", "In", &["0", "1"]) && !is("a", "In", &["0"]) && !is("b", "In", &["1"]));
    assert!(!is("a", "NotIn", &["0", "1"]) && is("a", "NotIn", &["0"]) && is("b", "NotIn", &["1"]));
    assert!(is("a", "Exists", &[]) && is("empty", "Exists", &[]) && !is("b", "Exists", &[]));
    assert!(!is("a", "DoesNotExist", &[]) && is("b", "DoesNotExist", &[]));
    assert!(is("empty", "In", &[""]) && !is("a", "In", &[""]) && !is("b", "In", &[""]));
}

/// Generated clusters are worth testing: they contain every feature, and both answers.
#[test]
fn generated_clusters_are_mixed() {
    let size = Size { namespaces: 3, pods: 12, nodes: vec!["n1".into()], image: "i".into() };
    let (mut allowed, mut all, mut text) = (0, 0, String::new());
    for seed in 0..40 {
        let mut objects = generate::objects(seed, &size);
        assert_eq!(objects, generate::objects(seed, &size), "the same seed, the same cluster");
        let pods = objects.split_off(size.namespaces);
        let with_ips = |(number, mut pod): (usize, Value)| {
            let ips = [format!("10.244.0.{}", number + 3), format!("fd00:10:244::{:x}", number + 3)];
            pod["status"] = json!({"podIPs": ips.map(|ip| json!({"ip": ip}))});
            serde_json::from_value(pod).unwrap()
        };
        let mut cluster = Cluster {
            namespaces: objects.into_iter().map(|o| serde_json::from_value(o).unwrap()).collect(),
            pods: pods.into_iter().enumerate().map(with_ips).collect(),
            policies: Vec::new(),
        };
        let policies = generate::policies(seed, 15, &cluster);
        text.push_str(&json!(policies).to_string());
        cluster.policies = policies.into_iter().map(|p| serde_json::from_value(p).unwrap()).collect();
        for (from, to) in cluster.pods.iter().flat_map(|a| cluster.pods.iter().map(move |b| (a, b))) {
            for (place, port) in PORTS.into_iter().enumerate() {
                let family = place % 2;
                let end = |pod| End { pod: Some(pod), ip: addresses(pod)[family] };
                let flow = Flow { from: end(from), to: end(to), protocol: Protocol::ALL[place % 3], port };
                allowed += usize::from(cluster.allows(&flow));
                all += 1;
            }
        }
    }
    assert!((all / 4..all * 3 / 4).contains(&allowed), "{allowed} of {all} allowed");
    let words = [
        "podSelector",
        "namespaceSelector",
        "matchLabels",
        "matchExpressions",
        "NotIn",
        "DoesNotExist",
        "ipBlock",
        "except",
        "endPort",
        "SCTP",
        "policyTypes",
        "\"ingress\":[]",
        "\"from\":[]",
        "\"ports\":[]",
        "\"to\":[]",
        "fd00:",
    ];
    let missing: BTreeSet<_> = words.iter().filter(|word| !text.contains(*word)).collect();
    assert!(missing.is_empty(), "never generated: {missing:?}");
}
