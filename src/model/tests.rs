//! The rules of the world, as sequences of changes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::*;

pub(crate) fn network(subnets: &[(&str, u8)]) -> NetworkSettings {
    let cluster_subnets =
        subnets.iter().map(|(cidr, prefix)| ClusterSubnet { cidr: cidr.parse().unwrap(), host_prefix: *prefix });
    NetworkSettings {
        roles: Roles::MASTER,
        zone: "global".into(),
        cluster_subnets: cluster_subnets.collect(),
        encap_port: 6081,
        service_cidrs: vec!["10.96.0.0/16".parse().unwrap()],
        join_subnets: vec!["100.64.0.0/16".parse().unwrap(), "fd98::/64".parse().unwrap()],
        masquerade_subnets: vec!["169.254.169.0/29".parse().unwrap()],
        mtu: 1400,
        acl_logging_rate_limit: 20,
        ..NetworkSettings::default()
    }
}

/// A world and short ways to apply changes to it.
pub(crate) struct Story {
    pub(crate) world: World,
}

impl Story {
    pub(crate) fn new(subnets: &[(&str, u8)]) -> Self {
        Self { world: World::new(network(subnets), [Kind::Node, Kind::Pod]) }
    }

    pub(crate) fn settled(subnets: &[(&str, u8)]) -> Self {
        let mut story = Self::new(subnets);
        story.sync();
        story
    }

    pub(crate) fn sync(&mut self) {
        self.world.apply(Change::Synced(Kind::Node));
        self.world.apply(Change::Synced(Kind::Pod));
    }

    pub(crate) fn node(&mut self, name: &str, annotations: &[(&str, &str)]) -> BTreeSet<Affected> {
        let addresses = ["172.18.0.2".parse().unwrap()];
        let fields = NodeFields { addresses: &addresses, ..NodeFields::default() };
        let node = with_meta(name, 1, annotations, |meta| Node::parse(meta, fields));
        self.world.apply(Change::Node(name.into(), Some(Box::new(node))))
    }

    /// Applies the world's own decision about a node, as the API server would report it.
    pub(crate) fn confirm(&mut self, name: &str) -> BTreeSet<Affected> {
        let subnets: Vec<_> = self.world.node_networks[name].subnets.iter().map(ToString::to_string).collect();
        self.node(name, &[(keys::NODE_SUBNETS, &format!(r#"{{"default":{subnets:?}}}"#))])
    }

    pub(crate) fn pod(
        &mut self,
        name: &str,
        uid: &str,
        node: &str,
        annotations: &[(&str, &str)],
    ) -> BTreeSet<Affected> {
        let fields = PodFields { node_name: Some(node), ..PodFields::default() };
        let pod = with_meta(uid, 1, annotations, |meta| Pod::parse(meta, fields));
        self.world.apply(Change::Pod(PodKey::new("ns", name), Some(Box::new(pod))))
    }

    pub(crate) fn gone(&mut self, pod: &str) -> BTreeSet<Affected> {
        self.world.apply(Change::Pod(PodKey::new("ns", pod), None))
    }

    pub(crate) fn ips(&self, pod: &str) -> Vec<String> {
        let entry = &self.world.pods[&PodKey::new("ns", pod)];
        entry.addresses.iter().flat_map(|a| a.ips.iter().map(ToString::to_string)).collect()
    }

    /// The address that a new pod on `n1` gets.
    fn ip_of_new(&mut self, pod: &str) -> String {
        self.pod(pod, pod, "n1", &[]);
        self.ips(pod).concat()
    }

    pub(crate) fn reasons(&self, pod: &str) -> Vec<&'static str> {
        let notices = self.world.notices(&Affected::Pod(PodKey::new("ns", pod)));
        notices.into_iter().map(|n| n.reason).collect()
    }
}

pub(crate) fn with_meta<T>(uid: &str, created: i64, annotations: &[(&str, &str)], parse: impl Fn(&Meta<'_>) -> T) -> T {
    let annotations: BTreeMap<_, _> = annotations.iter().map(|(k, v)| ((*k).to_string(), (*v).to_string())).collect();
    parse(&Meta { uid, created, labels: &BTreeMap::new(), annotations: &annotations })
}

fn annotated(ip: &str) -> String {
    let mac = Mac::of(ip.split('/').next().unwrap().parse().unwrap());
    format!(r#"{{"default":{{"ip_addresses":["{ip}"],"mac_address":"{mac}","ip_address":"{ip}"}}}}"#)
}

pub(crate) const ONE: &[(&str, u8)] = &[("10.1.0.0/16", 24)];

#[test]
fn a_pod_waits_until_its_nodes_subnet_is_seen_annotated() {
    let mut story = Story::settled(ONE);
    story.node("n1", &[]);
    story.pod("a", "1", "n1", &[]);
    assert!(story.ips("a").is_empty());
    let affected = story.confirm("n1");
    assert_eq!(story.ips("a"), ["10.1.0.3/24"]);
    assert!(affected.contains(&Affected::Pod(PodKey::new("ns", "a"))));
}

#[test]
fn nothing_is_decided_before_all_lists_are_in() {
    let mut story = Story::new(ONE);
    story.node("n1", &[(keys::NODE_SUBNETS, r#"{"default":["10.1.7.0/24"]}"#)]);
    story.pod("new", "1", "n1", &[]);
    story.pod("old", "2", "n1", &[(keys::POD_NETWORKS, &annotated("10.1.7.3/24"))]);
    assert!(story.world.node_networks.is_empty());
    story.sync();
    assert_eq!(story.ips("old"), ["10.1.7.3/24"], "what is annotated is kept");
    assert_eq!(story.ips("new"), ["10.1.7.4/24"]);
}

#[test]
fn a_change_without_news_affects_nothing() {
    let mut story = Story::settled(ONE);
    assert!(!story.node("n1", &[("other.io/heartbeat", "1")]).is_empty());
    assert!(story.node("n1", &[("other.io/heartbeat", "2")]).is_empty());
    story.confirm("n1");
    assert!(!story.pod("a", "1", "n1", &[("other.io/x", "x")]).is_empty());
    assert!(story.pod("a", "1", "n1", &[("other.io/x", "y")]).is_empty());
}

#[test]
fn a_pod_recreated_under_its_name_gets_an_address_of_its_own() {
    let mut story = Story::settled(ONE);
    story.node("n1", &[]);
    story.confirm("n1");
    story.pod("a", "1", "n1", &[]);
    story.pod("a", "2", "n1", &[]);
    assert_eq!(story.ips("a"), ["10.1.0.4/24"], "the old address may still be in use for a moment");
    story.gone("a");
    story.pod("b", "3", "n1", &[]);
    assert_eq!(story.ips("b"), ["10.1.0.5/24"]);
}

#[test]
fn finished_and_host_network_pods_have_no_address() {
    let mut story = Story::settled(ONE);
    story.node("n1", &[]);
    story.confirm("n1");
    for (finished, host_network) in [(true, false), (false, true)] {
        let fields = PodFields { node_name: Some("n1"), host_network, finished, ..PodFields::default() };
        let annotations = annotated("10.1.0.9/24");
        let pod = with_meta("x", 1, &[(keys::POD_NETWORKS, &annotations)], |meta| Pod::parse(meta, fields));
        story.world.apply(Change::Pod(PodKey::new("ns", "x"), Some(Box::new(pod))));
        assert!(story.ips("x").is_empty());
    }
    // other pods may have what the finished pod is still annotated with
    story.pod("y", "2", "n1", &[(keys::POD_NETWORKS, &annotated("10.1.0.9/24"))]);
    assert_eq!(story.ips("y"), ["10.1.0.9/24"]);
    story.gone("x");
    story.pod("z", "3", "n1", &[(keys::POD_NETWORKS, &annotated("10.1.0.9/24"))]);
    assert_eq!(story.ips("z"), ["10.1.0.3/24"], "deleting the finished pod frees nothing");
}

#[test]
fn of_two_claims_to_one_address_the_older_pod_wins() {
    let mut story = Story::new(ONE);
    story.node("n1", &[(keys::NODE_SUBNETS, r#"{"default":["10.1.0.0/24"]}"#)]);
    let claim = annotated("10.1.0.9/24");
    for (name, created) in [("young", 20), ("old", 10)] {
        let fields = PodFields { node_name: Some("n1"), ..PodFields::default() };
        let pod = with_meta(name, created, &[(keys::POD_NETWORKS, &claim)], |meta| Pod::parse(meta, fields));
        story.world.apply(Change::Pod(PodKey::new("ns", name), Some(Box::new(pod))));
    }
    story.sync();
    assert_eq!(story.ips("old"), ["10.1.0.9/24"]);
    assert_eq!(story.ips("young"), ["10.1.0.3/24"]);
    assert_eq!(story.reasons("young"), ["AddressConflict"]);
}

#[test]
fn foreign_and_malformed_pod_annotations_are_replaced() {
    let mut story = Story::settled(ONE);
    story.node("n1", &[]);
    story.confirm("n1");
    for (name, annotation, reason) in [
        ("foreign", annotated("10.9.0.3/24"), "AddressConflict"),
        ("gateway", annotated("10.1.0.1/24"), "AddressConflict"),
        ("broken", "{".to_string(), "BadAnnotation"),
        ("list", "[]".to_string(), "BadAnnotation"),
        ("huge", format!("{{\"x\":\"{}\"}}", "y".repeat(100_000)), "BadAnnotation"),
    ] {
        story.pod(name, name, "n1", &[(keys::POD_NETWORKS, &annotation)]);
        assert_eq!(story.ips(name).len(), 1, "{name}");
        assert_eq!(story.reasons(name), [reason], "{name}");
    }
}

#[test]
fn a_pod_with_addresses_it_was_not_given_is_not_wired_before_they_are_put_right() {
    let mut story = Story::settled(ONE);
    story.node("n1", &[]);
    story.confirm("n1");
    let may = |story: &Story| story.world.pods[&PodKey::new("ns", "a")].may_be_wired;
    story.pod("a", "1", "n1", &[(keys::POD_NETWORKS, &annotated("10.9.0.3/24"))]);
    assert!(!may(&story));
    story.pod("a", "1", "n1", &[(keys::POD_NETWORKS, &annotated("10.1.0.3/24"))]);
    assert!(may(&story));
    story.pod("a", "1", "n1", &[(keys::POD_NETWORKS, &annotated("10.1.0.9/24"))]);
    assert!(may(&story), "a running pod keeps its port whatever is annotated");
    story.pod("a", "2", "n1", &[]);
    assert!(may(&story));
}

#[test]
fn a_fixed_address_is_given_or_waited_for() {
    let mut story = Story::settled(ONE);
    story.node("n1", &[]);
    story.confirm("n1");
    let ask = |ip: &str, mac: &str| format!(r#"[{{"name":"ovn","namespace":"x","ips":["{ip}"],"mac":"{mac}"}}]"#);
    story.pod("a", "1", "n1", &[(keys::DEFAULT_NETWORK, &ask("10.1.0.50/24", "02:00:00:00:00:07"))]);
    assert_eq!(story.ips("a"), ["10.1.0.50/24"]);
    let addresses = story.world.pods[&PodKey::new("ns", "a")].addresses.clone().unwrap();
    assert_eq!(addresses.port_address(), "02:00:00:00:00:07 10.1.0.50");
    for (name, ip, mac) in [
        ("taken", "10.1.0.50", "02:00:00:00:00:08"),
        ("outside", "10.2.0.50", "02:00:00:00:00:09"),
        ("same-mac", "10.1.0.51", "02:00:00:00:00:07"),
        ("our-mac", "10.1.0.52", "0a:58:0a:01:00:09"),
    ] {
        story.pod(name, name, "n1", &[(keys::DEFAULT_NETWORK, &ask(ip, mac))]);
        assert!(story.ips(name).is_empty(), "{name}");
        assert_eq!(story.reasons(name), ["AddressRequestRefused"], "{name}");
    }
    story.gone("a");
    assert_eq!(story.ips("taken"), ["10.1.0.50/24"], "served when it comes free");
    assert_eq!(story.ips("same-mac"), ["10.1.0.51/24"]);
    assert!(story.reasons("taken").is_empty());
}

/// A switch that has two ports of one MAC sends a node's packets to a pod.
#[test]
fn no_pod_gets_the_mac_that_the_management_port_is_annotated_with() {
    let mut story = Story::settled(ONE);
    let with_mac = |story: &mut Story, mac: &str| {
        let mac = format!(r#"{{"default":"{mac}"}}"#);
        story.node("n1", &[(keys::NODE_SUBNETS, r#"{"default":["10.1.0.0/24"]}"#), (keys::MGMT_PORT_MACS, &mac)]);
    };
    with_mac(&mut story, "02:00:00:00:00:07");
    story.pod("asks", "1", "n1", &[(keys::DEFAULT_NETWORK, r#"[{"mac":"02:00:00:00:00:07"}]"#)]);
    assert_eq!(story.reasons("asks"), ["AddressRequestRefused"]);
    let forged = annotated("10.1.0.9/24").replace("0a:58:0a:01:00:09", "02:00:00:00:00:07");
    story.pod("forged", "2", "n1", &[(keys::POD_NETWORKS, &forged)]);
    let mac = |pod: &str| story.world.pods[&PodKey::new("ns", pod)].addresses.as_ref().unwrap().mac.to_string();
    assert_eq!((mac("forged"), story.reasons("forged")), ("0a:58:0a:01:00:09".to_owned(), vec!["AddressConflict"]));
    with_mac(&mut story, "0a:58:0a:01:00:04");
    assert_eq!(story.ips("asks"), ["10.1.0.3/24"], "served when it comes free");
    assert_eq!(story.ip_of_new("a"), "10.1.0.5/24", "from whose neighbour the same MAC is derived");
}

/// The MACs that are derived from the two addresses of a pair are equal: whoever wants such an address finds one.
const EQUAL: [[&str; 2]; 2] = [["fd01::9273", "fd01::3:8dbb"], ["fd01::15", "fd01::89:3254"]];

#[test]
fn no_pod_gets_an_ipv6_address_whose_mac_is_another_pods() {
    let mut story = Story::settled(&[("fd01::/48", 64)]);
    story.node("n1", &[]);
    story.confirm("n1");
    let [[first, second], [early, late]] = EQUAL;
    let ask = |ip: &str| format!(r#"[{{"name":"ovn","namespace":"x","ips":["{ip}"]}}]"#);
    for (name, ip) in [("a", first), ("b", second), ("c", late)] {
        story.pod(name, name, "n1", &[(keys::DEFAULT_NETWORK, &ask(ip))]);
    }
    assert_eq!(story.ips("a"), [format!("{first}/64")]);
    assert!(story.ips("b").is_empty());
    assert_eq!(story.reasons("b"), ["AddressRequestRefused"]);
    story.pod("forged", "forged", "n1", &[(keys::POD_NETWORKS, &annotated(&format!("{second}/64")))]);
    assert_eq!(story.ips("forged"), ["fd01::3/64"]);
    assert_eq!(story.reasons("forged"), ["AddressConflict"]);
    let given: Vec<_> = (0..18).map(|n| story.ip_of_new(&format!("p{n}"))).collect();
    assert_eq!(given[16..], ["fd01::14/64", "fd01::16/64"], "not {early}, whose MAC a pod has");
    story.gone("a");
    assert_eq!(story.ips("b"), [format!("{second}/64")], "served when it comes free");
}

#[test]
fn an_exhausted_switch_serves_the_waiting_when_space_returns() {
    let mut story = Story::settled(&[("10.1.0.0/16", 29)]);
    story.node("n1", &[]);
    story.confirm("n1");
    for name in ["a", "b", "c", "d", "e"] {
        story.pod(name, name, "n1", &[]);
    }
    assert!(story.ips("e").is_empty());
    assert_eq!(story.reasons("e"), ["AddressesExhausted"]);
    assert!(story.gone("b").contains(&Affected::Pod(PodKey::new("ns", "e"))));
    assert_eq!(story.ips("e"), ["10.1.0.4/29"]);
}

#[test]
fn exhausted_ranges_serve_the_waiting_node_when_one_leaves() {
    let mut story = Story::settled(&[("10.1.0.0/23", 24)]);
    for name in ["n1", "n2", "n3"] {
        story.node(name, &[]);
    }
    let notices = story.world.notices(&Affected::Node("n3".into()));
    assert_eq!(notices[0].reason, "SubnetsExhausted");
    let affected = story.world.apply(Change::Node("n1".into(), None));
    assert!(affected.contains(&Affected::Node("n3".into())));
    assert_eq!(story.world.node_networks["n3"].subnets, ["10.1.0.0/24".parse().unwrap()]);
}

#[test]
fn selected_nodes_keep_subnets_of_their_own() {
    let mut settings = network(ONE);
    settings.no_hostsubnet_nodes = Some(NodeSelector(std::sync::Arc::new(|labels| labels.contains_key("windows"))));
    let mut story = Story { world: World::new(settings, []) };
    story.world.apply(Change::Synced(Kind::Node));
    let labels = BTreeMap::from([("windows".to_string(), String::new())]);
    let meta = Meta { uid: "w", created: 1, labels: &labels, annotations: &BTreeMap::new() };
    let node = Node::parse(&meta, NodeFields::default());
    story.world.apply(Change::Node("w".into(), Some(Box::new(node))));
    assert!(story.world.node_networks.get("w").is_none_or(|n| n.subnets.is_empty() && n.id.is_none()));
    story.node("l", &[]);
    assert_eq!(story.world.node_networks["l"].subnets.len(), 1);
}

#[test]
fn node_annotations_that_cannot_be_are_repaired() {
    let mut story = Story::new(ONE);
    story.node("a", &[(keys::NODE_SUBNETS, r#"{"default":["10.1.3.0/24"]}"#), (keys::NODE_ID, "7")]);
    story.node("b", &[(keys::NODE_SUBNETS, r#"{"default":["10.1.3.0/24"]}"#), (keys::NODE_ID, "7")]);
    story.node("c", &[(keys::NODE_SUBNETS, r#"{"default":["192.168.0.0/24"]}"#), (keys::NODE_ID, "x")]);
    story.node("d", &[(keys::NODE_SUBNETS, "nonsense")]);
    story.sync();
    let networks = &story.world.node_networks;
    let all: BTreeSet<_> = networks.values().flat_map(|n| n.subnets.clone()).collect();
    assert_eq!(all.len(), 4);
    assert!(all.iter().all(|s| "10.1.0.0/16".parse::<Subnet>().unwrap().contains_subnet(*s)));
    assert_eq!(networks["a"].id, Some(7));
    let ids: BTreeSet<_> = networks.values().filter_map(|n| n.id).collect();
    assert_eq!(ids.len(), 4);
    for node in ["b", "c", "d"] {
        assert!(!story.world.notices(&Affected::Node(node.into())).is_empty(), "{node}");
    }
}

#[test]
fn a_removed_annotation_changes_nothing_for_pods() {
    let mut story = Story::settled(ONE);
    story.node("n1", &[]);
    story.confirm("n1");
    story.pod("a", "1", "n1", &[]);
    let affected = story.node("n1", &[]);
    assert_eq!(story.ips("a"), ["10.1.0.3/24"]);
    assert_eq!(affected, BTreeSet::from([Affected::Node("n1".into())]), "only the annotation is written again");
}

#[test]
fn a_node_recreated_with_another_uid_starts_over() {
    let mut story = Story::settled(ONE);
    story.node("n1", &[]);
    story.confirm("n1");
    story.pod("a", "1", "n1", &[]);
    let affected = story.world.apply(Change::Node("n1".into(), None));
    assert!(affected.contains(&Affected::Pod(PodKey::new("ns", "a"))));
    assert!(story.ips("a").is_empty());
    story.node("n1", &[]);
    story.confirm("n1");
    assert_eq!(story.ips("a"), ["10.1.1.3/24"], "a freed subnet comes round last");
}

#[test]
fn a_follower_serves_the_node_whose_subnet_came_free() {
    let mut settings = network(ONE);
    settings.roles.cluster_manager = false;
    let mut story = Story { world: World::new(settings, [Kind::Node, Kind::Pod]) };
    story.sync();
    let subnet = [(keys::NODE_SUBNETS, r#"{"default":["10.1.4.0/24"]}"#)];
    story.node("n1", &subnet);
    // the cluster manager has given n1's subnet to n2; the deletion of n1 arrives later
    story.node("n2", &subnet);
    story.pod("a", "1", "n2", &[]);
    assert!(story.ips("a").is_empty());
    story.world.apply(Change::Node("n1".into(), None));
    assert_eq!(story.ips("a"), ["10.1.4.3/24"]);
    story.node("n3", &[(keys::NODE_SUBNETS, r#"{"default":["10.1.4.0/24"]}"#)]);
    story.pod("b", "2", "n3", &[]);
    story.node("n2", &[(keys::NODE_SUBNETS, r#"{"default":["10.1.5.0/24"]}"#)]);
    assert_eq!(story.ips("b"), ["10.1.4.3/24"], "also when the other one moves");
}

#[test]
fn a_zone_changes_nothing_before_there_are_zones() {
    let mut story = Story::settled(ONE);
    let annotations = [(keys::ZONE, "zz"), (keys::NODE_SUBNETS, r#"{"default":["10.1.0.0/24"]}"#)];
    story.node("n1", &annotations[1..]);
    story.pod("a", "1", "n1", &[]);
    story.node("n1", &annotations);
    assert_eq!(story.ips("a"), ["10.1.0.3/24"]);
    assert!(story.world.sites.contains_key("n1"));
    let reasons = |story: &Story| {
        story.world.notices(&Affected::Node("n1".into())).into_iter().map(|n| n.reason).collect::<Vec<_>>()
    };
    assert_eq!(reasons(&story), ["BadAnnotation"]);
    assert!(story.node("n1", &annotations).is_empty(), "the same again says nothing new");
    story.node("n1", &annotations[1..]);
    assert!(reasons(&story).is_empty());
}

#[test]
fn subnets_that_nodes_manage_themselves_are_kept_from_others_and_come_back() {
    for is_gone in [true, false] {
        let mut story = Story::settled(&[("10.1.0.0/23", 24)]);
        story.node("w", &[(keys::HYBRID_SUBNET, "10.1.0.0/24")]);
        story.node("n1", &[]);
        story.node("n2", &[]);
        assert_eq!(story.world.node_networks["n1"].subnets, ["10.1.1.0/24".parse().unwrap()]);
        assert!(story.world.node_networks["n2"].subnets.is_empty());
        if is_gone {
            story.world.apply(Change::Node("w".into(), None));
        } else {
            story.node("w", &[(keys::HYBRID_SUBNET, "10.9.0.0/24")]);
        }
        assert_eq!(story.world.node_networks["n2"].subnets, ["10.1.0.0/24".parse().unwrap()]);
    }
}

#[test]
fn a_node_cannot_have_the_join_switchs_name() {
    let mut story = Story::settled(ONE);
    story.node("join", &[]);
    assert!(story.world.node_networks["join"].subnets.is_empty());
    assert_eq!(story.world.node_networks["join"].lacks().map(|(reason, _)| reason), Some("NameReserved"));
    assert_eq!(story.world.notices(&Affected::Node("join".into()))[0].reason, "NameReserved");
}

#[test]
fn dual_stack_pods_have_one_address_of_each() {
    let mut story = Story::settled(&[("10.1.0.0/16", 24), ("fd01::/48", 64)]);
    story.node("n1", &[]);
    story.confirm("n1");
    story.pod("a", "1", "n1", &[]);
    assert_eq!(story.ips("a"), ["10.1.0.3/24", "fd01::3/64"]);
}

#[test]
fn a_follower_obeys_annotations_and_decides_nothing() {
    let mut settings = network(ONE);
    settings.roles.cluster_manager = false;
    let mut story = Story { world: World::new(settings, [Kind::Node, Kind::Pod]) };
    story.sync();
    story.node("n1", &[]);
    assert!(story.world.node_networks["n1"].subnets.is_empty());
    story.node("n1", &[(keys::NODE_SUBNETS, r#"{"default":["10.1.4.0/24"]}"#)]);
    story.pod("a", "1", "n1", &[]);
    assert_eq!(story.ips("a"), ["10.1.4.3/24"]);
    story.node("n1", &[(keys::NODE_SUBNETS, r#"{"default":["10.1.5.0/24"]}"#)]);
    assert_eq!(story.ips("a"), ["10.1.5.3/24"]);
}

#[test]
fn the_order_of_routes_does_not_matter() {
    let with = |routes: &str| {
        let text =
            annotated("10.1.0.3/24").replace(r#""ip_address":"#, &format!(r#""routes":[{routes}],"ip_address":"#));
        PodAnnotation::parse(&text).unwrap().digest
    };
    let [a, b, c] = ["10.1.0.0/16", "10.96.0.0/16", "100.64.0.0/16"]
        .map(|dest| format!(r#"{{"dest":"{dest}","nextHop":"10.1.0.1"}}"#));
    assert_eq!(with(&format!("{a},{b}")), with(&format!("{b},{a}")));
    let all =
        [String::new(), a.clone(), format!("{a},{a}"), format!("{a},{b}"), format!("{a},{c}"), format!("{a},{b},{b}")];
    let digests: BTreeSet<_> = all.iter().map(|routes| with(routes)).collect();
    assert_eq!(digests.len(), all.len());
}

#[test]
fn annotations_keep_entries_of_other_networks() {
    let network = PodNetwork::parse(&annotated("10.1.0.3/24")).unwrap();
    let have = r#"{"other/net":{"ip_addresses":["1.2.3.4/24"]},"default":{"mac_address":"0a:58:00:00:00:01"}}"#;
    let text = render_pod_networks(&network, Some(have));
    assert!(text.contains("other/net") && PodNetwork::parse(&text).unwrap() == network);
    assert!(PodAnnotation::parse(&text).unwrap().with_others.is_some());
}

proptest! {
    /// Whatever is added and removed in whatever order: no two pods share an address, every address is of
    /// the node's subnet, and a restart that sees the annotations decides the same.
    #[test]
    fn addresses_are_unique_and_survive_a_restart(steps in prop::collection::vec((0u8..8, 0u8..6, 0u8..2), 1..80)) {
        let mut story = Story::settled(&[("10.1.0.0/22", 28)]);
        let mut uid = 0;
        let mut live: BTreeMap<u8, (String, String)> = BTreeMap::new();
        for (what, pod, node) in steps {
            let (pod_name, node_name) = (format!("p{pod}"), format!("n{node}"));
            match what {
                0..=3 => {
                    uid += 1;
                    live.insert(pod, (uid.to_string(), node_name.clone()));
                    story.pod(&pod_name, &uid.to_string(), &node_name, &[]);
                }
                4 => { live.remove(&pod); story.gone(&pod_name); }
                5 => { story.world.apply(Change::Node(node_name.as_str().into(), None)); }
                _ => { story.node(&node_name, &[]); story.confirm(&node_name); }
            }
            let mut seen = BTreeSet::new();
            for entry in story.world.pods.values() {
                for ip in entry.addresses.iter().flat_map(|a| &a.ips) {
                    prop_assert!(seen.insert(ip.ip()), "{ip} twice");
                    let node = entry.pod.wired_on().unwrap();
                    prop_assert!(story.world.node_networks[node].subnets.iter().any(|s| s.contains(ip.ip())));
                }
            }
        }
        let mut again = Story::new(&[("10.1.0.0/22", 28)]);
        for (name, network) in &story.world.node_networks {
            let subnets: Vec<_> = network.subnets.iter().map(ToString::to_string).collect();
            again.node(name, &[(keys::NODE_SUBNETS, &format!(r#"{{"default":{subnets:?}}}"#))]);
        }
        for (pod, (uid, node)) in &live {
            let name = format!("p{pod}");
            let ips = story.ips(&name);
            let annotation = ips.first().map(|ip| annotated(ip));
            let annotations: Vec<_> = annotation.iter().map(|a| (keys::POD_NETWORKS, a.as_str())).collect();
            again.pod(&name, uid, node, &annotations);
        }
        again.sync();
        for pod in live.keys() {
            let name = format!("p{pod}");
            if !story.ips(&name).is_empty() {
                prop_assert_eq!(story.ips(&name), again.ips(&name));
            }
        }
    }
}

#[test]
fn endpoints_affect_their_service() {
    let mut story = Story::settled(&[("10.128.0.0/14", 23)]);
    let slice = with_meta("u", 1, &[], |meta| {
        let labels = BTreeMap::from([("kubernetes.io/service-name".to_owned(), "web".to_owned())]);
        let fields = SliceFields { address_type: "IPv4", ports: &[], endpoints: &[] };
        EndpointSlice::parse(&Meta { labels: &labels, ..*meta }, fields)
    });
    let change = Change::EndpointSlice(ObjectKey::new("a", "web-1"), Some(Box::new(slice)));
    assert_eq!(story.world.apply(change.clone()), BTreeSet::from([Affected::Service(ObjectKey::new("a", "web"))]));
    assert!(story.world.apply(change).is_empty());
}

#[test]
fn names_that_come_again_are_kept_once() {
    let mut names = Names::default();
    let [mut one, mut other]: [Name; 2] = ["node-1", "node-1"].map(Into::into);
    names.share(&mut one);
    names.share(&mut other);
    assert!(std::sync::Arc::ptr_eq(&one, &other));
    for n in 0..5_000 {
        let (mut name, text): (Name, _) = (format!("n{n}").into(), format!("n{n}"));
        names.share(&mut name);
        assert_eq!(*name, *text);
    }
}

/// How long this thread has been on a processor: on a busy machine it waits for much longer.
pub(crate) fn on_cpu() -> Duration {
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(said.split(' ').next().unwrap().parse().unwrap())
}
