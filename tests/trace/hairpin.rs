//! A pod reaches itself through a service, whatever policies isolate it. OVN sends such a packet back to the pod before the ACLs for
//! egress, and gives it another source, which the ACLs for ingress allow.

use ovnkube_model::PodKey;
use ovnkube_tests::nb::Release;
use ovnkube_tests::objects::{namespace, pod};
use ovnkube_tests::settings::Settings;
use serde_json::json;

use crate::hostile::{Place, policy};
use crate::ranges::{WEB, arrives, ips, service, slice};

/// The sources of packets that reach their own pod through a service, in the masquerade subnets of the tests.
const HAIRPIN: [&str; 2] = ["169.254.169.5", "fd69::5"];
const STRANGER: [&str; 2] = ["192.0.2.1", "2001:db8::1"];

/// Whether packets from these addresses enter the pod behind the service: the same for both families.
fn enters(place: &Place, from: [&str; 2]) -> bool {
    place.server.nbctl(&["--wait=sb", "sync"]);
    let own = place.controller.world.pods.get(&PodKey::new("a", "web")).unwrap().addresses.clone().unwrap();
    let router = place.server.nbctl(&["get", "logical_router_port", "rtos-n1", "mac"]);
    let mut tracer = place.southbound.tracer();
    let [v4, v6] = [("ip4", 0), ("ip6", 1)].map(|(family, at)| {
        let microflow = format!(
            "inport == \"stor-n1\" && eth.src == {} && eth.dst == {} && {family}.src == {} && {family}.dst == {} \
             && ip.ttl == 64 && tcp.src == 40000 && tcp.dst == 8080",
            router.trim().trim_matches('"'),
            own.mac,
            from[at],
            own.ips[at].ip(),
        );
        tracer.trace("n1", &microflow).contains("output to \"a_web\"")
    });
    assert_eq!(v4, v6, "{from:?}");
    v4
}

async fn reaches_itself(release: Release) {
    let given = vec![namespace("a"), pod("a", "web", "n1"), pod("a", "far", "n1")];
    let settings = Settings { cluster_subnets: "10.128.0.0/14/23,fd01::/48/64".into(), ..Settings::default() };
    let mut place = Place::with(release, settings, given).await;
    for ip in ips(&place, "web") {
        place.put(slice("web", &ip)).await;
    }
    place.put(service("web", WEB, 80, &[])).await;
    let (itself, other) = (("web", "n1"), ("far", "n1"));
    assert!(arrives(&place, itself, WEB, 80) && arrives(&place, other, WEB, 80), "there is no policy");
    let isolate = |types: &[&str]| policy("a", "nothing", &json!({"podSelector": {}, "policyTypes": types}));
    place.put(isolate(&["Egress"])).await;
    assert!(!arrives(&place, other, WEB, 80), "the policy closes");
    assert!(arrives(&place, itself, WEB, 80), "a pod that may send nothing reaches itself");
    // before 25.03, ovn-trace keeps the source of such packets: so the other half is traced alone
    place.put(isolate(&["Ingress", "Egress"])).await;
    assert!(!enters(&place, STRANGER), "the policy closes");
    assert!(enters(&place, HAIRPIN), "a pod that receives nothing is reached by itself");
    assert_eq!(place.southbound.complaints(), "", "what OVN does not understand");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_isolated_pod_reaches_itself_on_26_03() {
    reaches_itself(Release::Lts).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_isolated_pod_reaches_itself_on_23_03() {
    reaches_itself(Release::Host).await;
}
