//! `loadBalancerSourceRanges` and pods: who may send to a load balancer's address, whatever policies say, and
//! that nobody else is held up.

use ovnkube_model::PodKey;
use ovnkube_tests::nb::Release;
use ovnkube_tests::objects::{namespace, node, pod};
use ovnkube_tests::settings::Settings;
use serde_json::{Value, json};

use crate::hostile::{Place, policy};

/// The load balancer's.
const BALANCED: &str = "192.0.2.7";

fn service(name: &str, ip: &str, port: u16, ranges: &[&str]) -> Value {
    json!({
        "kind": "Service", "metadata": {"namespace": "a", "name": name},
        "spec": {
            "type": "LoadBalancer", "clusterIP": ip, "externalIPs": ["192.0.2.9"], "loadBalancerSourceRanges": ranges,
            "ports": [{"name": "http", "port": port}],
        },
        "status": {"loadBalancer": {"ingress": [{"ip": BALANCED}]}},
    })
}

fn slice(service: &str, ip: &str) -> Value {
    json!({
        "kind": "EndpointSlice",
        "metadata": {"namespace": "a", "name": service, "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4", "endpoints": [{"addresses": [ip], "nodeName": "n1"}],
        "ports": [{"name": "http", "port": 8080}],
    })
}

/// Whether what a pod of a node sends there comes to the pod behind the services.
fn arrives(place: &Place, (pod, node): (&str, &str), to: &str, port: u16) -> bool {
    place.server.nbctl(&["--wait=sb", "sync"]);
    let own = place.controller.world.pods.get(&PodKey::new("a", pod)).unwrap().addresses.clone().unwrap();
    let router = place.server.nbctl(&["get", "logical_router_port", &format!("rtos-{node}"), "mac"]);
    let microflow = format!(
        "inport == \"a_{pod}\" && eth.src == {} && eth.dst == {} && ip4.src == {} && ip4.dst == {to} && ip.ttl == 64 \
         && tcp.src == 40000 && tcp.dst == {port}",
        own.mac,
        router.trim().trim_matches('"'),
        own.ips[0].ip(),
    );
    place.southbound.tracer().trace(node, &microflow).contains("output to \"a_web\"")
}

async fn ranges_are_for_pods_too(release: Release, svc_template_support: bool) {
    let given = vec![
        node("n2"),
        namespace("a"),
        pod("a", "web", "n1"),
        pod("a", "far", "n1"),
        pod("a", "near", "n2"),
        service("free", "10.96.0.11", 81, &[]),
    ];
    let settings = Settings { svc_template_support, ..Settings::default() };
    let mut place = Place::with(release, settings, given).await;
    let ip = |pod: &str| {
        let entry = place.controller.world.pods.get(&PodKey::new("a", pod)).unwrap();
        entry.addresses.clone().unwrap().ips[0].ip().to_string()
    };
    let (web, inside) = (ip("web"), format!("{}/32", ip("near")));
    for name in ["web", "free"] {
        place.put(slice(name, &web)).await;
    }
    let (far, near) = (("far", "n1"), ("near", "n2"));
    let limited = service("web", "10.96.0.10", 80, &["198.51.100.0/24", &inside]);
    place.put(limited.clone()).await;
    assert!(arrives(&place, near, BALANCED, 80), "a pod in range");
    assert!(!arrives(&place, far, BALANCED, 80), "a pod out of range");
    for (to, port) in [("10.96.0.10", 80), ("192.0.2.9", 80), (BALANCED, 81), (web.as_str(), 80)] {
        assert!(arrives(&place, far, to, port), "{to} port {port} is for everybody");
    }
    let egress = |name: &str, rules: Value| {
        policy("a", name, &json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": rules}))
    };
    place.put(egress("all", json!([{}]))).await;
    assert!(!arrives(&place, far, BALANCED, 80), "a policy opens nothing");
    place.put(egress("all", json!([]))).await;
    assert!(!arrives(&place, near, BALANCED, 80), "a policy closes");
    place.put(egress("all", json!([{}]))).await;
    place.put(service("web", "10.96.0.10", 80, &["10.0.0.0/8"])).await;
    assert!(arrives(&place, far, BALANCED, 80), "every pod is in range");
    place.put(limited).await;
    assert!(!arrives(&place, far, BALANCED, 80), "out of range again");
    place.put(service("web", "10.96.0.10", 80, &[])).await;
    assert!(arrives(&place, far, BALANCED, 80), "no ranges");
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_are_for_pods_too_on_25_03() {
    ranges_are_for_pods_too(Release::Trixie, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_are_for_pods_too_on_23_03() {
    ranges_are_for_pods_too(Release::Host, true).await;
}
