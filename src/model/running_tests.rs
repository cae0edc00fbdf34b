//! Pods keep the addresses that they run with, whatever is annotated and whichever object arrives first.

mod subnets;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use proptest::prelude::*;

use crate::tests::{ONE, Story, network, with_meta};
use crate::{Affected, Change, Kind, Mac, Pod, PodAddresses, PodEntry, PodFields, PodKey, World, keys};

const DUAL: &[(&str, u8)] = &[("10.1.0.0/16", 24), ("fd01::/48", 64)];
const V4: &str = "10.1.0.0/24";
const V6: &str = "fd01::/64";

/// A pod to be applied; older than the next one.
#[derive(Clone)]
struct Told<'a> {
    name: &'a str,
    created: i64,
    node: &'a str,
    annotation: Option<String>,
    status: Vec<IpAddr>,
}

fn told(name: &str, created: i64) -> Told<'_> {
    Told { name, created, node: "n1", annotation: None, status: Vec::new() }
}

impl<'a> Told<'a> {
    fn on(self, node: &'a str) -> Self {
        Self { node, ..self }
    }

    /// `10.1.0.3/24`, or one of each family.
    fn annotated(self, ips: &[&str]) -> Self {
        let mac = Mac::of(ips[0].split('/').next().unwrap().parse().unwrap());
        self.with_mac(ips, &mac.to_string())
    }

    fn with_mac(self, ips: &[&str], mac: &str) -> Self {
        let text = format!(r#"{{"default":{{"ip_addresses":{ips:?},"mac_address":"{mac}"}}}}"#);
        Self { annotation: Some(text), ..self }
    }

    fn runs(self, ips: &[&str]) -> Self {
        Self { status: ips.iter().map(|ip| ip.parse().unwrap()).collect(), ..self }
    }

    /// The pod once it has started.
    fn started(self, ips: &[&str]) -> Self {
        let status: Vec<_> = ips.iter().map(|ip| ip.split('/').next().unwrap()).collect();
        self.annotated(ips).runs(&status)
    }
}

impl Story {
    fn told(&mut self, pod: &Told<'_>) -> BTreeSet<Affected> {
        let fields = PodFields { node_name: Some(pod.node), ips: &pod.status, ..PodFields::default() };
        let annotations: Vec<_> = pod.annotation.iter().map(|text| (keys::POD_NETWORKS, text.as_str())).collect();
        let parsed = with_meta(pod.name, pod.created, &annotations, |meta| Pod::parse(meta, fields));
        self.world.apply(Change::Pod(PodKey::new("ns", pod.name), Some(Box::new(parsed))))
    }

    fn subnets(&mut self, node: &str, subnets: &[&str]) -> BTreeSet<Affected> {
        self.node(node, &[(keys::NODE_SUBNETS, &format!(r#"{{"default":{subnets:?}}}"#))])
    }

    /// First lists with these subnets of `n1` and these pods.
    fn begins(ranges: &[(&str, u8)], subnets: &[&str], pods: &[Told<'_>]) -> Self {
        let mut story = Self::new(ranges);
        story.subnets("n1", subnets);
        for pod in pods {
            story.told(pod);
        }
        story.sync();
        story
    }

    fn entry(&self, pod: &str) -> &PodEntry {
        &self.world.pods[&PodKey::new("ns", pod)]
    }

    fn has(&self, node: &str) -> Vec<String> {
        self.world.node_networks[node].subnets.iter().map(ToString::to_string).collect()
    }

    fn node_reasons(&self, node: &str) -> Vec<&'static str> {
        self.world.notices(&Affected::Node(node.into())).into_iter().map(|notice| notice.reason).collect()
    }

    fn text(&self, pod: &str) -> String {
        let notices = self.world.notices(&Affected::Pod(PodKey::new("ns", pod)));
        notices.into_iter().map(|n| n.message).collect()
    }
}

/// After a silence of the API server, a new Node may come before the status of the pod that ran there all the while.
#[test]
fn a_recreated_node_gets_the_subnet_in_which_its_pod_runs() {
    let mut story = Story::settled(ONE);
    story.node("n1", &[]);
    story.confirm("n1");
    story.told(&told("a", 1));
    story.world.apply(Change::Node("n1".into(), None));
    story.node("n1", &[]);
    story.confirm("n1");
    assert_eq!(story.ips("a"), ["10.1.1.3/24"]);
    story.told(&told("a", 1).runs(&["10.1.0.3"]));
    assert_eq!(story.has("n1"), [V4]);
    story.confirm("n1");
    assert_eq!(story.ips("a"), ["10.1.0.3/24"]);
    // a subnet that serves a pod is not given up
    story.told(&told("b", 2));
    story.told(&told("a", 1).runs(&["10.1.7.3"]));
    assert_eq!((story.has("n1"), story.ips("b")), (vec![V4.to_owned()], vec!["10.1.0.4/24".to_owned()]));
}

/// Who writes a pod's annotation and its status, as a kubelet does for its static pods, gets the node no more than others have.
#[test]
fn a_node_gets_no_larger_subnet_than_its_share() {
    let pod = told("mirror", 1).started(&["10.1.130.5/17"]);
    let mut story = Story::settled(ONE);
    story.node("n1", &[]);
    story.confirm("n1");
    story.told(&pod);
    assert_eq!(story.has("n1"), ["10.1.130.0/24"]);
    assert_eq!(Story::begins(ONE, &[V4], &[pod]).has("n1"), ["10.1.130.0/24"]);
    // one that it has already, from other settings
    let larger = told("a", 1).started(&["10.1.5.3/23"]);
    assert_eq!(Story::begins(ONE, &["10.1.4.0/23"], &[larger]).has("n1"), ["10.1.4.0/23"]);
}

/// A kubelet could report addresses of others, and rules would let their packets through.
#[test]
fn a_pod_in_its_hosts_network_is_known_by_its_nodes_addresses() {
    let mut story = Story::settled(ONE);
    story.node("n1", &[]);
    let ips = ["172.18.0.2", "10.1.0.9", "192.0.2.7"].map(|ip| ip.parse().unwrap());
    let fields = PodFields { node_name: Some("n1"), host_network: true, ips: &ips, ..PodFields::default() };
    let pod = with_meta("u", 1, &[], |meta| Pod::parse(meta, fields));
    let key = PodKey::new("ns", "host");
    story.world.apply(Change::Pod(key.clone(), Some(Box::new(pod))));
    let known = |story: &Story| {
        let ips = story.world.host_ips(&story.world.pods[&key].pod);
        ips.map(|ip| ip.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(known(&story), ["172.18.0.2"]);
    let affected = story.node("n1", &[(keys::HOST_CIDRS, r#"["192.0.2.7/24","10.1.0.9/24"]"#)]);
    assert!(affected.contains(&Affected::Pod(key.clone())));
    assert_eq!(known(&story), ["172.18.0.2", "192.0.2.7"]);
    let affected = story.world.apply(Change::Node("n1".into(), None));
    assert!(affected.contains(&Affected::Pod(key.clone())) && known(&story).is_empty());
}

#[test]
fn a_refused_annotation_takes_no_address() {
    let pods = [
        told("old", 1).annotated(&["10.9.0.3/24"]),
        told("a", 2).annotated(&["10.1.0.3/24"]),
        told("b", 3).annotated(&["10.1.0.4/24"]),
    ];
    let story = Story::begins(ONE, &[V4], &pods);
    assert_eq!(story.ips("a"), ["10.1.0.3/24"]);
    assert_eq!(story.ips("b"), ["10.1.0.4/24"]);
    assert_eq!(story.ips("old"), ["10.1.0.5/24"]);
    assert!(story.reasons("a").is_empty() && story.reasons("b").is_empty());
    assert_eq!(story.reasons("old"), ["AddressConflict"]);
}

#[test]
fn a_requested_address_is_not_taken_from_others() {
    let mut story = Story::new(ONE);
    story.subnets("n1", &[V4]);
    story.pod("asks", "1", "n1", &[(keys::DEFAULT_NETWORK, r#"[{"ips":["10.1.0.3"]}]"#)]);
    story.told(&told("old", 2).annotated(&["10.9.0.3/24"]));
    story.told(&told("a", 3).annotated(&["10.1.0.3/24"]));
    story.sync();
    assert_eq!(story.ips("a"), ["10.1.0.3/24"]);
    assert_eq!(story.reasons("asks"), ["AddressRequestRefused"]);
}

#[test]
fn the_status_wins_over_the_annotation() {
    // edited while ovnkube did not run
    let pods = [told("a", 1).annotated(&["10.1.0.201/24"]).runs(&["10.1.0.3"]), told("b", 2)];
    let mut story = Story::begins(ONE, &[V4], &pods);
    assert_eq!(story.ips("a"), ["10.1.0.3/24"]);
    assert_eq!(story.entry("a").addresses.as_ref().unwrap().port_address(), "0a:58:0a:01:00:03 10.1.0.3");
    assert!(story.entry("a").may_be_wired, "its port stays while the annotation is corrected");
    assert_eq!(story.reasons("a"), ["AddressConflict"]);
    assert!(story.text("a").contains("10.1.0.201"), "{}", story.text("a"));
    assert_eq!(story.ips("b"), ["10.1.0.4/24"]);
    story.told(&told("a", 1).started(&["10.1.0.3/24"]));
    assert!(story.reasons("a").is_empty());
}

#[test]
fn a_removed_or_unreadable_annotation_changes_no_address() {
    let mut broken = told("b", 2).runs(&["10.1.0.8"]);
    broken.annotation = Some("{".to_owned());
    let story = Story::begins(ONE, &[V4], &[told("a", 1).runs(&["10.1.0.9"]), broken, told("c", 3)]);
    assert_eq!(story.ips("a"), ["10.1.0.9/24"]);
    assert_eq!(story.ips("b"), ["10.1.0.8/24"]);
    assert_eq!(story.ips("c"), ["10.1.0.3/24"]);
}

#[test]
fn a_running_pods_claim_comes_before_older_annotations() {
    let pods =
        [told("old", 1).annotated(&["10.1.0.9/24"]), told("a", 2).annotated(&["10.1.0.4/24"]).runs(&["10.1.0.9"])];
    let story = Story::begins(ONE, &[V4], &pods);
    assert_eq!(story.ips("a"), ["10.1.0.9/24"]);
    assert_eq!(story.ips("old"), ["10.1.0.3/24"]);
    assert!(!story.entry("old").may_be_wired);
}

#[test]
fn a_status_takes_no_other_pods_address() {
    let pods = [
        told("liar", 1).annotated(&["10.1.0.4/24"]).runs(&["10.1.0.3"]),
        told("a", 2).started(&["10.1.0.3/24"]),
        told("gateway", 3).annotated(&["10.1.0.5/24"]).runs(&["10.1.0.1"]),
        told("node", 4).annotated(&["10.1.0.6/24"]).runs(&["10.1.0.2"]),
        told("outside", 5).annotated(&["10.1.0.7/24"]).runs(&["10.1.1.3"]),
        told("elsewhere", 6).runs(&["192.0.2.1"]),
        told("other-family", 7).annotated(&["10.1.0.8/24"]).runs(&["fd01::8"]),
    ];
    let story = Story::begins(ONE, &[V4], &pods);
    for (pod, ip) in
        [("liar", 4), ("a", 3), ("gateway", 5), ("node", 6), ("outside", 7), ("elsewhere", 9), ("other-family", 8)]
    {
        assert_eq!(story.ips(pod), [format!("10.1.0.{ip}/24")], "{pod}");
    }
    assert!(story.reasons("a").is_empty());
    for pod in ["liar", "gateway", "node", "outside", "elsewhere"] {
        assert_eq!(story.reasons(pod), ["AddressConflict"], "{pod}");
        assert!(story.text(pod).contains("recreate the pod"), "{}", story.text(pod));
    }
}

#[test]
fn of_two_that_run_with_one_address_the_older_keeps_it() {
    let pods = [told("young", 2).runs(&["10.1.0.9"]), told("old", 1).runs(&["10.1.0.9"])];
    let story = Story::begins(ONE, &[V4], &pods);
    assert_eq!(story.ips("old"), ["10.1.0.9/24"]);
    assert_eq!(story.ips("young"), ["10.1.0.3/24"]);
    assert_eq!(story.reasons("young"), ["AddressConflict"]);
}

#[test]
fn a_pod_whose_address_comes_free_gets_it_back() {
    let pods = [told("young", 2).runs(&["10.1.0.9"]), told("old", 1).runs(&["10.1.0.9"])];
    let mut story = Story::begins(ONE, &[V4], &pods);
    let affected = story.gone("old");
    assert_eq!(story.ips("young"), ["10.1.0.9/24"]);
    assert!(affected.contains(&Affected::Pod(PodKey::new("ns", "young"))));
    assert!(story.reasons("young").is_empty());
}

#[test]
fn a_pod_that_comes_later_keeps_its_address_too() {
    let mut story = Story::begins(ONE, &[V4], &[told("a", 1)]);
    story.told(&told("b", 2).annotated(&["10.1.0.50/24"]).runs(&["10.1.0.40"]));
    assert_eq!(story.ips("b"), ["10.1.0.40/24"]);
    story.told(&told("thief", 1).annotated(&["10.1.0.50/24"]).runs(&["10.1.0.40"]));
    assert_eq!(story.ips("thief"), ["10.1.0.50/24"]);
    assert_eq!(story.ips("b"), ["10.1.0.40/24"]);
    // a pod that has not started can still be given another address
    story.told(&told("a", 1).annotated(&["10.1.0.3/24"]));
    let affected = story.told(&told("c", 3).runs(&["10.1.0.3"]));
    assert_eq!(story.ips("c"), ["10.1.0.3/24"]);
    assert_eq!(story.ips("a"), ["10.1.0.4/24"]);
    assert!(affected.contains(&Affected::Pod(PodKey::new("ns", "a"))));
    assert!(!story.entry("a").may_be_wired, "before its annotation says so");
}

/// A pod that runs with another address than it was given leaves that one to whoever waits for it.
#[test]
fn an_address_that_its_pod_does_not_run_with_goes_to_the_pod_that_requests_it() {
    let mut story = Story::begins(ONE, &[V4], &[told("a", 1)]);
    story.pod("asks", "2", "n1", &[(keys::DEFAULT_NETWORK, r#"[{"ips":["10.1.0.3"]}]"#)]);
    assert_eq!(story.reasons("asks"), ["AddressRequestRefused"]);
    let affected = story.told(&told("a", 1).runs(&["10.1.0.9"]));
    assert_eq!(story.ips("a"), ["10.1.0.9/24"]);
    assert_eq!(story.ips("asks"), ["10.1.0.3/24"]);
    assert!(affected.contains(&Affected::Pod(PodKey::new("ns", "asks"))) && story.reasons("asks").is_empty());
    // so does one that must leave an address to a pod that runs with it: all that it had comes free
    let mut story = Story::begins(DUAL, &[V4, V6], &[told("a", 1)]);
    story.pod("asks", "2", "n1", &[(keys::DEFAULT_NETWORK, r#"[{"ips":["fd01::3"]}]"#)]);
    story.told(&told("b", 3).runs(&["10.1.0.3"]));
    assert_eq!(story.ips("b"), ["10.1.0.3/24"]);
    assert_eq!(story.ips("a"), ["10.1.0.4/24", "fd01::4/64"]);
    assert_eq!(story.ips("asks"), ["10.1.0.5/24", "fd01::3/64"]);
}

#[test]
fn a_start_changes_nothing_if_the_status_agrees() {
    let mut story = Story::begins(ONE, &[V4], &[told("a", 1)]);
    story.told(&told("a", 1).annotated(&["10.1.0.3/24"]));
    let affected = story.told(&told("a", 1).started(&["10.1.0.3/24"]));
    assert!(affected.is_empty(), "{affected:?}");
    // its annotation was different for a moment, and its node wired it with that
    let affected = story.told(&told("a", 1).annotated(&["10.1.0.3/24"]).runs(&["10.1.0.9"]));
    assert_eq!(affected, BTreeSet::from([Affected::Pod(PodKey::new("ns", "a"))]));
    assert_eq!(story.ips("a"), ["10.1.0.9/24"], "as after a restart");
}

#[test]
fn a_custom_mac_stays() {
    let pods = [
        told("a", 1).with_mac(&["10.1.0.201/24"], "02:00:00:00:00:07").runs(&["10.1.0.3"]),
        told("b", 2).with_mac(&["10.1.0.4/24"], "0a:58:0a:01:00:03").runs(&["10.1.0.4"]),
    ];
    let story = Story::begins(ONE, &[V4], &pods);
    let port = |pod| story.entry(pod).addresses.as_ref().unwrap().port_address();
    assert_eq!(port("a"), "02:00:00:00:00:07 10.1.0.3");
    assert_eq!(port("b"), "0a:58:0a:01:00:04 10.1.0.4", "that one spells another address");
    assert_eq!(story.reasons("b"), ["AddressConflict"]);
}

#[test]
fn a_running_pod_stays_though_its_mac_is_anothers() {
    // the MACs derived from the two addresses are equal
    let (first, second) = ("fd01::9273/64", "fd01::3:8dbb/64");
    let pods = [told("new", 1).annotated(&[second]), told("a", 2).started(&[first]), told("b", 3).started(&[second])];
    let mut story = Story::begins(&[("fd01::/48", 64)], &[V6], &pods);
    for (pod, ip) in [("a", first), ("b", second), ("new", "fd01::3/64")] {
        assert_eq!(story.ips(pod), [ip], "{pod}");
    }
    assert!(story.reasons("b").is_empty() && story.entry("b").may_be_wired);
    story.gone("a");
    assert_eq!((story.ips("b"), story.ips("new")), (vec![second.to_owned()], vec!["fd01::3/64".to_owned()]));
}

/// ovn-kubernetes derives the MAC from the node's first family.
#[test]
fn a_mac_of_an_ipv6_address_stays_with_a_pod_of_both_families() {
    let mac = |story: &Story| story.entry("a").addresses.as_ref().unwrap().mac;
    let story = Story::begins(DUAL, &[V6, V4], &[told("a", 1).started(&["fd01::3/64", "10.1.0.3/24"])]);
    assert_eq!(mac(&story), Mac::of("fd01::3".parse().unwrap()));
    assert!(story.reasons("a").is_empty());
    // unless it may be that of another pod: this one is 0a:58:93:09:c3:40
    let ranges = &[("147.9.195.0/24", 24), DUAL[1]];
    let pods = [told("a", 1).started(&["fd01::4/64", "147.9.195.3/24"])];
    let story = Story::begins(ranges, &[V6, "147.9.195.0/24"], &pods);
    assert_eq!(mac(&story), Mac::of("147.9.195.3".parse().unwrap()));
    assert_eq!(story.ips("a"), ["fd01::4/64", "147.9.195.3/24"]);
}

#[test]
fn single_stack_to_dual_stack_changes_no_address() {
    let pods = [told("a", 1).started(&["10.1.0.3/24"]), told("b", 2).annotated(&["10.1.0.4/24"]), told("new", 3)];
    let mut story = Story::begins(DUAL, &[V4], &pods);
    assert_eq!(story.has("n1"), [V4, V6]);
    for (pod, ip) in [("a", "10.1.0.3/24"), ("b", "10.1.0.4/24")] {
        assert_eq!(story.ips(pod), [ip], "before the API server shows the second subnet");
        assert!(story.entry(pod).may_be_wired && story.reasons(pod).is_empty());
    }
    assert!(story.ips("new").is_empty(), "waits for both");
    story.subnets("n1", &[V4, V6]);
    assert_eq!(story.ips("a"), ["10.1.0.3/24"]);
    assert_eq!(story.ips("b"), ["10.1.0.4/24"]);
    assert_eq!(story.ips("new"), ["10.1.0.5/24", "fd01::3/64"]);
}

#[test]
fn dual_stack_to_single_stack_changes_no_address() {
    let pods = [
        told("a", 1).started(&["10.1.0.3/24", "fd01::3/64"]),
        told("b", 2).annotated(&["10.1.0.4/24", "fd01::4/64"]),
        told("c", 3).started(&["10.1.0.5/24", "fd01::5/64"]).annotated(&["10.1.0.77/24"]),
    ];
    let story = Story::begins(ONE, &[V4, V6], &pods);
    for (pod, ip) in [("a", "10.1.0.3/24"), ("b", "10.1.0.4/24"), ("c", "10.1.0.5/24")] {
        assert_eq!(story.ips(pod), [ip]);
    }
    assert!(story.entry("a").may_be_wired, "its port stays while its annotation loses the other address");
    assert!(story.reasons("a").is_empty() && story.reasons("b").is_empty());
    assert_eq!(story.reasons("c"), ["AddressConflict"]);
}

#[test]
fn the_order_of_addresses_does_not_matter() {
    // a kubelet writes its node's first family first
    let pods = [
        told("a", 1).annotated(&["10.1.0.3/24", "fd01::3/64"]).runs(&["fd01::3", "10.1.0.3"]),
        told("b", 2).with_mac(&["fd01::4/64", "10.1.0.4/24"], "0a:58:0a:01:00:04").runs(&["10.1.0.4", "fd01::4"]),
    ];
    let story = Story::begins(DUAL, &[V6, V4], &pods);
    assert!(story.entry("a").pod.ips.is_empty(), "nothing to be kept beside the annotation");
    assert_eq!(story.ips("a"), ["10.1.0.3/24", "fd01::3/64"]);
    assert_eq!(story.ips("b"), ["fd01::4/64", "10.1.0.4/24"]);
    assert!(story.reasons("a").is_empty() && story.reasons("b").is_empty());
}

#[test]
fn one_family_of_two_may_be_contested() {
    let pods = [
        told("old", 1).started(&["10.1.0.3/24", "fd01::3/64"]),
        told("a", 2).started(&["10.1.0.4/24", "fd01::4/64"]).runs(&["10.1.0.3", "fd01::4"]),
        told("b", 3).annotated(&["10.1.0.5/24"]).runs(&["10.1.0.5", "fd01::5"]),
        told("c", 4).annotated(&["10.1.0.6/24", "fd01::6/64"]).runs(&["10.1.0.6"]),
    ];
    let story = Story::begins(DUAL, &[V4, V6], &pods);
    assert_eq!(story.ips("old"), ["10.1.0.3/24", "fd01::3/64"]);
    assert_eq!(story.ips("a"), ["10.1.0.4/24", "fd01::4/64"], "the annotation counts where the status does not");
    assert_eq!(story.ips("b"), ["10.1.0.5/24", "fd01::5/64"]);
    assert_eq!(story.ips("c"), ["10.1.0.6/24", "fd01::6/64"]);
}

#[test]
fn recordings_of_before_can_be_read() {
    let line = r#"{"Pod":[{"namespace":"a","name":"p"},{"uid":"u","created":1,"node":"n1","host_network":true,
        "finished":false,"labels":[],"ports":[],"host_ips":["172.18.0.2"],"annotated":null,"request":null,"bad":[],
        "wiring":null}]}"#;
    let Change::Pod(_, Some(pod)) = serde_json::from_str(line).unwrap() else { panic!() };
    assert_eq!(pod.host_ips(), ["172.18.0.2".parse::<IpAddr>().unwrap()]);
    let again: Pod = serde_json::from_str(&serde_json::to_string(&pod).unwrap()).unwrap();
    assert_eq!(again, *pod);
}

/// Possible values of one family of an annotation or of a status.
fn claim() -> impl Strategy<Value = Option<u8>> {
    prop_oneof![1 => Just(None), 3 => (0u8..24).prop_map(Some)]
}

proptest! {
    /// Any pods with any annotations and statuses, applied in any order, some of them only later: a pod that runs
    /// with an address of its node's subnet has it if no other pod runs with it, and no two pods have the same.
    /// A start that finds the decisions in annotations decides the same.
    #[test]
    fn no_running_pod_is_given_another_address(
        pods in prop::collection::vec((claim(), claim(), claim(), claim(), 0i64..5, any::<bool>()), 1..14),
        edited in prop::sample::select(vec!["10.1.0.0/28", "10.1.0.0/27", "10.1.1.0/28", "10.1.0.16/28", ""]),
        dual in any::<bool>(),
    ) {
        let ranges: &[(&str, u8)] = if dual { &[("10.1.0.0/20", 28), ("fd01::/116", 124)] } else { &[("10.1.0.0/20", 28)] };
        let (v4, v6) = (|n: u8| format!("10.1.0.{n}"), |n: u8| format!("fd01::{n:x}"));
        let names: Vec<_> = (0..pods.len()).map(|n| format!("p{n}")).collect();
        let pods: Vec<_> = pods.iter().zip(&names).map(|((a4, a6, s4, s6, created, late), name)| {
            let annotated: Vec<_> =
                a4.map(|n| v4(n) + "/28").into_iter().chain(a6.map(|n| v6(n) + "/124")).collect();
            let status: Vec<_> = s4.map(v4).into_iter().chain(s6.map(v6)).collect();
            let pod = told(name, *created + if *late { 10 } else { 0 }).runs(&status.iter().map(String::as_str).collect::<Vec<_>>());
            let annotated: Vec<_> = annotated.iter().map(String::as_str).collect();
            (if annotated.is_empty() { pod } else { pod.annotated(&annotated) }, *late)
        }).collect();
        let mut story = Story::new(ranges);
        story.subnets("n1", &[edited][..usize::from(!edited.is_empty())]);
        for (pod, _) in pods.iter().filter(|(_, late)| !late) {
            story.told(pod);
        }
        story.sync();
        story.confirm("n1");
        let settled = |story: &Story, pod: &Told<'_>| story.ips(pod.name);
        let early: BTreeMap<_, _> =
            pods.iter().filter(|(_, late)| !late).map(|(pod, _)| (pod.name, settled(&story, pod))).collect();
        for (pod, _) in pods.iter().filter(|(_, late)| *late) {
            story.told(pod);
        }
        story.confirm("n1");
        let subnets = story.world.node_networks["n1"].subnets.clone();
        for (pod, late) in &pods {
            let runs = |ip: &str| pod.status.iter().any(|own| ip.split('/').next() == Some(&own.to_string()));
            let has = settled(&story, pod);
            prop_assert!(*late || early[pod.name].iter().all(|ip| !runs(ip) || has.contains(ip)), "{} was moved", pod.name);
            for ip in &pod.status {
                let unique = pods.iter().all(|(other, _)| other.name == pod.name || !other.status.contains(ip));
                let can_be = subnets.iter().any(|s| (3..15).any(|n| s.nth(n) == Some(*ip)));
                let has_it = has.iter().any(|have| have.split('/').next() == Some(&ip.to_string()));
                prop_assert!(has_it || !unique || !can_be, "{} runs with {} and has {:?}", pod.name, ip, has);
            }
        }
        let mut seen = BTreeSet::new();
        for entry in story.world.pods.values() {
            for ip in entry.addresses.iter().flat_map(PodAddresses::each) {
                prop_assert!(seen.insert(ip), "{} twice", ip);
                prop_assert!(subnets.iter().any(|subnet| subnet.contains(ip)));
            }
        }
        // at a start a node gets the subnet that its pods run in, later it keeps the one it has
        let is_ours = |ip: &IpAddr| subnets.iter().any(|subnet| subnet.contains(*ip));
        // and of two that run with one address the first to arrive keeps it then
        let times = |ip: &IpAddr| pods.iter().filter(|(pod, _)| pod.status.contains(ip)).count();
        let open = |pod: &Told<'_>| pod.status.iter().any(|ip| !is_ours(ip) || times(ip) > 1);
        if pods.iter().any(|(pod, late)| *late && open(pod)) {
            return Ok(());
        }
        let mut again = Story::new(ranges);
        for (pod, _) in pods.iter().rev() {
            let ips = settled(&story, pod);
            let ips: Vec<_> = ips.iter().map(String::as_str).collect();
            let annotated = if ips.is_empty() { pod.clone() } else {
                let mac = story.entry(pod.name).addresses.as_ref().unwrap().mac.to_string();
                pod.clone().with_mac(&ips, &mac)
            };
            again.told(&annotated);
        }
        let subnets: Vec<_> = subnets.iter().map(ToString::to_string).collect();
        again.subnets("n1", &subnets.iter().map(String::as_str).collect::<Vec<_>>());
        again.sync();
        for (pod, _) in &pods {
            prop_assert_eq!(settled(&again, pod), settled(&story, pod), "{}", pod.name);
        }
    }
}
