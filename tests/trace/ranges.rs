//! `loadBalancerSourceRanges` and pods: which pods may send to a load balancer's address, regardless of policies, and
//! that all other traffic passes.

use std::collections::BTreeMap;

use ovnkube_model::PodKey;
use ovnkube_tests::nb::Release;
use ovnkube_tests::objects::{namespace, node, pod};
use ovnkube_tests::settings::Settings;
use serde_json::{Value, json};

use crate::hostile::{Place, policy};

/// The load balancer's address, of each family.
const BALANCED: [&str; 2] = ["192.0.2.7", "2001:db8::7"];
const EXTERNAL: [&str; 2] = ["192.0.2.9", "2001:db8::9"];
pub(crate) const WEB: [&str; 2] = ["10.96.0.10", "fd00:96::10"];
const FREE: [&str; 2] = ["10.96.0.11", "fd00:96::11"];
/// In OVN's spelling.
const PROTOCOLS: [&str; 3] = ["tcp", "udp", "sctp"];

pub(crate) fn service(name: &str, ips: [&str; 2], port: u16, ranges: &[&str]) -> Value {
    json!({
        "kind": "Service", "metadata": {"namespace": "a", "name": name},
        "spec": {
            "type": "LoadBalancer", "clusterIPs": ips, "externalIPs": EXTERNAL, "loadBalancerSourceRanges": ranges,
            "ports": PROTOCOLS.map(|name| json!({"name": name, "port": port, "protocol": name.to_uppercase()})),
        },
        "status": {"loadBalancer": {"ingress": BALANCED.map(|ip| json!({"ip": ip}))}},
    })
}

pub(crate) fn slice(service: &str, ip: &str) -> Value {
    let family = if ip.contains(':') { "IPv6" } else { "IPv4" };
    json!({
        "kind": "EndpointSlice",
        "metadata": {
            "namespace": "a", "name": format!("{service}-{family}"), "labels": {"kubernetes.io/service-name": service},
        },
        "addressType": family, "endpoints": [{"addresses": [ip], "nodeName": "n1"}],
        "ports": PROTOCOLS.map(|name| json!({"name": name, "port": 8080, "protocol": name.to_uppercase()})),
    })
}

/// A pod's address of each family.
pub(crate) fn ips(place: &Place, pod: &str) -> [String; 2] {
    let addresses = place.controller.world.pods.get(&PodKey::new("a", pod)).unwrap().addresses.clone().unwrap();
    [0, 1].map(|family| addresses.ips[family].ip().to_string())
}

/// Whether packets of a node's pod reach the pod behind the services, with both families and all protocols alike.
pub(crate) fn arrives(place: &Place, (pod, node): (&str, &str), to: [&str; 2], port: u16) -> bool {
    place.server.nbctl(&["--wait=sb", "sync"]);
    let own = place.controller.world.pods.get(&PodKey::new("a", pod)).unwrap().addresses.clone().unwrap();
    let router = place.server.nbctl(&["get", "logical_router_port", &format!("rtos-{node}"), "mac"]);
    let mut tracer = place.southbound.tracer();
    let mut answers = BTreeMap::new();
    for (family, (from, to)) in ["ip4", "ip6"].into_iter().zip(ips(place, pod).iter().zip(to)) {
        for protocol in PROTOCOLS {
            let microflow = format!(
                "inport == \"a_{pod}\" && eth.src == {} && eth.dst == {} && {family}.src == {from} && {family}.dst == {to} \
                 && ip.ttl == 64 && {protocol}.src == 40000 && {protocol}.dst == {port}",
                own.mac,
                router.trim().trim_matches('"'),
            );
            let arrives = tracer.trace(node, &microflow).contains("output to \"a_web\"");
            answers.insert((family, protocol), arrives);
        }
    }
    let first = answers[&("ip4", "tcp")];
    assert!(answers.values().all(|arrives| *arrives == first), "{pod} to {to:?} port {port}: {answers:?}");
    first
}

async fn ranges_are_for_pods_too(release: Release, svc_template_support: bool) {
    let given = vec![
        node("n2"),
        namespace("a"),
        pod("a", "web", "n1"),
        pod("a", "far", "n1"),
        pod("a", "near", "n2"),
        pod("a", "beside", "n2"),
        service("free", FREE, 81, &[]),
    ];
    let cluster_subnets = "10.128.0.0/14/23,fd01::/48/64".into();
    let settings = Settings { svc_template_support, cluster_subnets, ..Settings::default() };
    let mut place = Place::with(release, settings, given).await;
    let (web, near) = (ips(&place, "web"), ips(&place, "near"));
    for (name, ip) in ["web", "free"].into_iter().flat_map(|name| web.iter().map(move |ip| (name, ip))) {
        place.put(slice(name, ip)).await;
    }
    let ranges = ["198.51.100.0/24", &format!("{}/32", near[0]), "2001:db8:1::/48", &format!("{}/128", near[1])];
    let (far, near, beside) = (("far", "n1"), ("near", "n2"), ("beside", "n2"));
    let limited = service("web", WEB, 80, &ranges);
    place.put(limited.clone()).await;
    assert!(arrives(&place, near, BALANCED, 80), "a pod in range");
    assert!(!arrives(&place, far, BALANCED, 80), "a pod out of range");
    assert!(!arrives(&place, beside, BALANCED, 80), "a pod out of range, of the node of one in range");
    for (to, port) in [(WEB, 80), (EXTERNAL, 80), (BALANCED, 81), (web.each_ref().map(String::as_str), 80)] {
        for pod in [far, beside] {
            assert!(arrives(&place, pod, to, port), "{to:?} port {port} is open to everybody");
        }
    }
    let egress = |name: &str, rules: Value| {
        policy("a", name, &json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": rules}))
    };
    place.put(egress("all", json!([{}]))).await;
    assert!(!arrives(&place, far, BALANCED, 80), "a policy opens nothing");
    place.put(egress("all", json!([]))).await;
    assert!(!arrives(&place, near, BALANCED, 80), "a policy closes");
    place.put(egress("all", json!([{}]))).await;
    place.put(service("web", WEB, 80, &["10.0.0.0/8", "fd01::/48"])).await;
    assert!(arrives(&place, far, BALANCED, 80), "every pod is in range");
    place.put(limited).await;
    assert!(!arrives(&place, far, BALANCED, 80), "out of range again");
    place.put(service("web", WEB, 80, &[])).await;
    assert!(arrives(&place, far, BALANCED, 80), "no ranges");
    assert_eq!(place.southbound.complaints(), "", "what OVN does not understand");
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_apply_to_pods_on_26_03() {
    ranges_are_for_pods_too(Release::Lts, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_apply_to_pods_on_23_03() {
    ranges_are_for_pods_too(Release::Host, true).await;
}
