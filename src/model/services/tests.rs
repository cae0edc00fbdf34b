//! Which endpoints a packet may go to, and which fields of a service are not used.

mod limits;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use proptest::prelude::*;

use crate::tests::with_meta;
use crate::{
    AddressRules, Backend, Backends, EndpointFields, EndpointSlice, Family, Meta, Name, Node, NodeFields, NodeIps,
    ObjectKey, PortFields, Protocol, Service, ServiceFields, ServicePort, Services, SliceFields, Subnet, Topology,
    keys,
};

fn key() -> ObjectKey {
    ObjectKey::new("a", "web")
}

fn meta_of(labels: &BTreeMap<String, String>) -> Meta<'_> {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    Meta { uid: "u", created: 1, labels, annotations: &NONE }
}

/// A slice of the service: a port name and number, and endpoints as JSON.
fn slice(port: (&str, i64), endpoints: &serde_json::Value) -> EndpointSlice {
    let labels = BTreeMap::from([("kubernetes.io/service-name".to_owned(), "web".to_owned())]);
    let ports = [PortFields { name: Some(port.0.to_owned()), port: Some(port.1), ..PortFields::default() }];
    let endpoints: Vec<EndpointFields> = serde_json::from_value(endpoints.clone()).unwrap();
    let address_type = if endpoints.first().is_some_and(|e| e.addresses[0].contains("::")) { "IPv6" } else { "IPv4" };
    EndpointSlice::parse(&meta_of(&labels), SliceFields { address_type, ports: &ports, endpoints: &endpoints })
}

fn service(fields: &ServiceFields<'_>) -> Service {
    Service::parse(&meta_of(&BTreeMap::new()), fields)
}

fn cluster_ip() -> Service {
    service(&ServiceFields { cluster_ip: Some("10.96.0.7"), ..ServiceFields::default() })
}

fn port(name: &str) -> ServicePort {
    ServicePort { name: name.into(), protocol: Protocol::Tcp, port: 80, node_port: None }
}

fn known(slices: &[(&str, EndpointSlice)]) -> Services {
    let mut services = Services::default();
    assert!(!services.apply_service(&key(), Some(cluster_ip())).is_empty());
    for (name, slice) in slices {
        services.apply_slice(&ObjectKey::new("a", *name), Some(slice.clone()));
    }
    services
}

fn text(backends: &[Backend]) -> String {
    backends.iter().map(|b| format!("{}:{}", b.ip, b.port)).collect::<Vec<_>>().join(" ")
}

fn http(services: &Services) -> Backends<'_> {
    services.backends(&key(), &port("http"), Family::V4)
}

#[test]
fn slices_overlap_split_move_and_go() {
    let both =
        serde_json::json!([{"addresses": ["10.1.0.3"]}, {"addresses": ["10.1.0.4"], "conditions": {"ready": false}}]);
    let later = serde_json::json!([{"addresses": ["10.1.0.4"]}]);
    let mut services = known(&[("web-1", slice(("http", 8080), &both)), ("web-2", slice(("http", 8080), &later))]);
    assert_eq!(text(&http(&services).cluster(None)), "10.1.0.3:8080 10.1.0.4:8080", "the ready one of two counts");
    let web_1 = ObjectKey::new("a", "web-1");
    assert!(services.apply_slice(&web_1, Some(slice(("http", 8080), &both))).is_empty(), "nothing new");
    let mut other = slice(("http", 8080), &both);
    other.service = Some("other".into());
    let affected: Vec<_> = services.apply_slice(&web_1, Some(other)).into_iter().map(|k| k.to_string()).collect();
    assert_eq!(affected, ["a/other", "a/web"], "a slice that changes sides");
    assert_eq!(text(&http(&services).cluster(None)), "10.1.0.4:8080");
    assert_eq!(services.apply_slice(&ObjectKey::new("a", "web-2"), None), BTreeSet::from([key()]));
    assert!(http(&services).is_empty());
}

#[test]
fn a_named_port_is_what_each_endpoint_says() {
    let one = serde_json::json!([{"addresses": ["10.1.0.3"]}]);
    let two = serde_json::json!([{"addresses": ["10.1.0.4"]}]);
    let services = known(&[("web-1", slice(("http", 80), &one)), ("web-2", slice(("http", 8080), &two))]);
    assert_eq!(text(&http(&services).cluster(None)), "10.1.0.3:80 10.1.0.4:8080");
    assert!(services.backends(&key(), &port("other"), Family::V4).is_empty());
    assert!(services.backends(&key(), &port("http"), Family::V6).is_empty());
}

#[test]
fn terminating_endpoints_serve_while_none_is_ready() {
    let endpoint = |ip: &str, node: &str, ready: bool, serving: bool, terminating: bool| {
        let conditions = serde_json::json!({"ready": ready, "serving": serving, "terminating": terminating});
        serde_json::json!({"addresses": [ip], "nodeName": node, "conditions": conditions})
    };
    let list = serde_json::json!([
        endpoint("10.1.0.1", "n1", true, true, false),
        endpoint("10.1.0.2", "n2", false, true, true),
        endpoint("10.1.0.3", "n2", false, false, true),
        endpoint("10.1.0.4", "n2", false, true, false),
    ]);
    let with_port = |services: &mut Services| {
        services.apply_service(&key(), Some(Service { ports: vec![port("http")], ..cluster_ip() }));
    };
    let mut services = known(&[("web", slice(("http", 80), &list))]);
    with_port(&mut services);
    let backends = http(&services);
    assert_eq!(text(&backends.cluster(None)), "10.1.0.1:80");
    assert_eq!(text(&backends.local("n1")), "10.1.0.1:80");
    assert_eq!(text(&backends.local("n2")), "10.1.0.2:80");
    assert_eq!(text(&backends.local("n3")), "");
    let nodes = |services: &Services| http(services).nodes().iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(nodes(&services), ["n1"], "an endpoint is ready");
    assert_eq!((services.ready_on(&key(), "n1"), services.ready_on(&key(), "n2")), (1, 0));
    let of_v6 =
        serde_json::json!([endpoint("fd00::1", "n1", true, true, false), endpoint("fd00::5", "n5", true, true, false)]);
    let mut services = known(&[("web", slice(("http", 80), &list)), ("web6", slice(("http", 80), &of_v6))]);
    with_port(&mut services);
    assert_eq!(
        ["n1", "n2", "n5"].map(|node| services.ready_on(&key(), node)),
        [1, 0, 1],
        "its other address is no other endpoint"
    );
    let mut services = known(&[("web", slice(("other", 80), &list))]);
    with_port(&mut services);
    assert_eq!(services.ready_on(&key(), "n1"), 0, "it serves no port of the service");
    let list = serde_json::json!([list[1], list[2], list[3]]);
    let mut services = known(&[("web", slice(("http", 80), &list))]);
    assert_eq!(text(&http(&services).cluster(None)), "10.1.0.2:80");
    assert_eq!(nodes(&services), ["n2"]);
    let mut eager = cluster_ip();
    eager.publish_not_ready = true;
    services.apply_service(&key(), Some(eager));
    assert_eq!(text(&http(&services).cluster(None)), "10.1.0.2:80 10.1.0.3:80 10.1.0.4:80");
}

#[test]
fn hints_apply_if_all_have_them_and_one_matches() {
    let hinted = |ip: &str, zone: &str, node: Option<&str>| {
        let mut hints = serde_json::json!({"forZones": [{"name": zone}]});
        if let Some(node) = node {
            hints["forNodes"] = serde_json::json!([{"name": node}]);
        }
        serde_json::json!({"addresses": [ip], "hints": hints})
    };
    let at = |list: &[serde_json::Value], node: &str, zone: &str| {
        let services = known(&[("web", slice(("http", 80), &serde_json::json!(list)))]);
        text(&http(&services).cluster(Some(Topology { node, zone: Some(zone) })))
    };
    let zones = [hinted("10.1.0.1", "a", None), hinted("10.1.0.2", "b", None)];
    assert_eq!(at(&zones, "n1", "a"), "10.1.0.1:80");
    assert_eq!(at(&zones, "n1", "c"), "10.1.0.1:80 10.1.0.2:80", "none is for this zone");
    let nodes =
        [hinted("10.1.0.1", "a", Some("n1")), hinted("10.1.0.2", "a", Some("n2")), hinted("10.1.0.3", "b", Some("n3"))];
    assert_eq!(at(&nodes, "n2", "a"), "10.1.0.2:80");
    assert_eq!(at(&nodes, "n9", "a"), "10.1.0.1:80 10.1.0.2:80", "none is for this node: its zone");
    let mixed = [hinted("10.1.0.1", "a", None), serde_json::json!({"addresses": ["10.1.0.9"]})];
    assert_eq!(at(&mixed, "n1", "a"), "10.1.0.1:80 10.1.0.9:80", "one has none");
    let services = known(&[("web", slice(("http", 80), &serde_json::json!(zones)))]);
    assert!(http(&services).has_hints());
    assert_eq!(text(&http(&services).cluster(None)), "10.1.0.1:80 10.1.0.2:80");
}

#[test]
fn addresses_of_other_owners_are_left_out() {
    let bad = [
        "127.0.0.1",
        "169.254.169.254",
        "224.0.0.1",
        "0.0.0.0",
        "255.255.255.255",
        "fd00::1",
        "::ffff:10.1.0.1",
        "web",
    ];
    let mut list = vec![serde_json::json!({"addresses": ["10.1.0.3"]})];
    list.extend(bad.map(|ip| serde_json::json!({"addresses": [ip]})));
    let services = known(&[("web-1", slice(("http", 80), &serde_json::json!(list)))]);
    assert_eq!(text(&http(&services).cluster(None)), "10.1.0.3:80");
    let notices = services.notices(&key());
    let messages: Vec<_> = notices.iter().map(|n| n.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "cannot use endpoints of EndpointSlice web-1: \"127.0.0.1\" is a loopback address; it is left out",
            "cannot use endpoints of EndpointSlice web-1: \"169.254.169.254\" is a link-local address; it is left out",
            "cannot use endpoints of EndpointSlice web-1: \"224.0.0.1\" is a multicast address; it is left out",
            "cannot use endpoints of EndpointSlice web-1: 5 more have such problems",
        ]
    );
}

/// Each host has addresses of a masquerade subnet: a client would get to the processes of whichever node its packet leaves.
#[test]
fn addresses_of_the_clusters_routers_are_no_endpoints() {
    let routers = ["100.64.0.0/16", "fd98::/64", "169.254.169.0/29", "fd69::/125"]
        .map(|subnet| subnet.parse::<Subnet>().unwrap());
    let mut services = Services::new(AddressRules { routers: routers.to_vec(), ..AddressRules::default() });
    services.apply_service(&key(), Some(cluster_ip()));
    let lists = [["10.1.0.3", "100.64.0.2", "100.64.0.3"], ["fd00::3", "fd69::2", "fd69::9"]];
    for (name, list) in ["web-4", "web-6"].into_iter().zip(lists) {
        let endpoints = serde_json::json!(list.map(|ip| serde_json::json!({"addresses": [ip]})));
        services.apply_slice(&ObjectKey::new("a", name), Some(slice(("http", 8080), &endpoints)));
    }
    let used = |family| text(&services.backends(&key(), &port("http"), family).cluster(None));
    assert_eq!(Family::ALL.map(used), ["10.1.0.3:8080", "fd00::3:8080 fd69::9:8080"]);
    let messages: Vec<_> = services.notices(&key()).into_iter().map(|notice| notice.message).collect();
    let why =
        "it is in a subnet of the cluster's own routers, so it is left out, as all in it are; use another address";
    let about = ["100.64.0.2 of EndpointSlice web-4", "fd69::2 of EndpointSlice web-6"];
    assert_eq!(messages, about.map(|what| format!("cannot use {what}: {why}")));
}

#[test]
fn refused_parts_of_a_service_are_reported_and_the_rest_served() {
    let texts = |list: &[&str]| list.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
    let (external, ranges) = (texts(&["192.0.2.1", "127.0.0.1", "192.0.2.1"]), texts(&["10.0.0.0/33"]));
    let number = |port, node_port, protocol: &str| PortFields {
        port: Some(port),
        node_port: Some(node_port),
        protocol: Some(protocol.to_owned()),
        name: None,
    };
    let ports = [number(80, 30080, "TCP"), number(80, 0, "TCP"), number(70_000, 0, "UDP"), number(1, 0, "DCCP")];
    let ingress = [("192.0.2.7".to_owned(), None), ("192.0.2.8".to_owned(), Some("Proxy".to_owned()))];
    let found = service(&ServiceFields {
        kind: Some("LoadBalancer"),
        cluster_ip: Some("10.96.0.7"),
        external_ips: &external,
        ingress: &ingress,
        ports: &ports,
        session_affinity: Some("ClientIP"),
        affinity_timeout: Some(0),
        source_ranges: &ranges,
        external_traffic_policy: Some("Local"),
        health_check_port: 31000,
        ..ServiceFields::default()
    });
    assert_eq!(found.ports, [ServicePort { node_port: Some(30080), ..port("") }]);
    assert_eq!(found.claimed_external_ips().map(|ip| ip.to_string()).collect::<Vec<_>>(), ["192.0.2.1", "192.0.2.7"]);
    assert_eq!((found.affinity, found.health_check_port), (Some(10_800), Some(31000)));
    assert_eq!(found.source_ranges.len(), 2, "an invalid range allows no client");
    assert!(found.is_external_local());
    let fields: Vec<_> = found.bad.iter().map(|bad| bad.field.as_ref()).collect();
    assert_eq!(
        fields,
        [
            "spec.externalIPs",
            "spec.ports",
            "spec.ports",
            "spec.ports",
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
            "spec.loadBalancerSourceRanges",
        ]
    );
}

#[test]
fn leading_zeros_are_ignored() {
    let [external, ranges] = [["192.0.02.010", "0300.0.2.1"], ["010.000.0.0/08", "2001:db8::/032"]];
    let found = service(&ServiceFields {
        kind: Some("LoadBalancer"),
        cluster_ip: Some("10.96.0.7"),
        external_ips: &external.map(Into::into),
        source_ranges: &ranges.map(Into::into),
        ..ServiceFields::default()
    });
    assert_eq!(found.external_ips, ["192.0.2.10".parse::<IpAddr>().unwrap()]);
    assert_eq!(found.source_ranges, ["10.0.0.0/8", "2001:db8::/32"].map(|range| range.parse().unwrap()));
    assert_eq!(found.bad[0].problem, r#""0300.0.2.1" is not an address; it is left out"#);
}

#[test]
fn headless_and_external_name_services_have_no_ports() {
    let ports = [PortFields { port: Some(80), ..PortFields::default() }];
    let headless = service(&ServiceFields { cluster_ip: Some("None"), ports: &ports, ..ServiceFields::default() });
    let name = ServiceFields {
        kind: Some("ExternalName"),
        cluster_ip: Some("10.96.0.9"),
        ports: &ports,
        ..ServiceFields::default()
    };
    for service in [headless, service(&name)] {
        assert!(service.is_headless() && service.ports.is_empty() && service.bad.is_empty(), "{service:?}");
    }
}

/// Some load balancers report the cluster IP. With it as an external address, a node without an endpoint would reject what
/// its own processes send there.
#[test]
fn an_external_address_that_is_a_cluster_ip_is_served_as_a_cluster_ip() {
    let own = ["10.96.0.7".to_owned()];
    let ports = [PortFields { port: Some(80), ..PortFields::default() }];
    let ingress = [(own[0].clone(), None), ("192.0.2.7".to_owned(), None)];
    let fields = ServiceFields {
        cluster_ip: Some("10.96.0.7"),
        external_ips: &own,
        ports: &ports,
        external_traffic_policy: Some("Local"),
        ..ServiceFields::default()
    };
    let balanced = service(&ServiceFields { kind: Some("LoadBalancer"), ingress: &ingress, ..fields });
    for (found, outer) in [(balanced, vec!["192.0.2.7"]), (service(&fields), vec![])] {
        assert_eq!(found.claimed_external_ips().map(|ip| ip.to_string()).collect::<Vec<_>>(), outer);
        assert_eq!(found.is_external_local(), !outer.is_empty(), "it has something outside");
        let mut services = Services::default();
        services.apply_service(&key(), Some(found));
        let port = port("");
        assert_eq!(services.cluster_ips(&key(), &port), ["10.96.0.7".parse::<IpAddr>().unwrap()]);
        assert_eq!(services.external_ips(&key(), &port).len(), outer.len());
        assert!(services.notices(&key()).is_empty());
    }
}

#[test]
fn only_services_of_a_type_that_has_node_ports_have_some() {
    let ports = [PortFields { port: Some(80), node_port: Some(30080), ..PortFields::default() }];
    for (kind, has) in [("NodePort", true), ("LoadBalancer", true), ("ClusterIP", false)] {
        let fields = ServiceFields {
            kind: Some(kind),
            cluster_ip: Some("10.96.0.7"),
            ports: &ports,
            ..ServiceFields::default()
        };
        let services: Vec<_> = service(&fields).ports.iter().map(|port| port.node_port.is_some()).collect();
        assert_eq!(services, [has], "{kind}");
    }
}

/// Node, ready, serving, terminating.
type State = (u8, bool, bool, bool);

proptest! {
    /// Each endpoint is in any number of slices, in any order: the choice is the same, no ready endpoint is left
    /// out, and no other is chosen.
    #[test]
    fn the_split_into_slices_does_not_matter(
        endpoints in prop::collection::vec((0_u8..12, 0_u8..3, any::<bool>(), any::<bool>(), any::<bool>()), 0..20),
        cuts in prop::collection::vec(0_usize..4, 20),
        node in 0_u8..3,
    ) {
        let mut states: BTreeMap<u8, State> = BTreeMap::new();
        for (ip, node, ready, serving, terminating) in endpoints {
            states.entry(ip).or_insert((node, ready, serving, terminating));
        }
        let json = |ip: &u8, s: &State| serde_json::json!({
            "addresses": [format!("10.1.0.{}", ip + 1)], "nodeName": format!("n{}", s.0),
            "conditions": {"ready": s.1, "serving": s.2, "terminating": s.3},
        });
        let all: Vec<_> = states.iter().map(|(ip, s)| json(ip, s)).collect();
        let whole = known(&[("web", slice(("http", 80), &serde_json::json!(all)))]);
        let mut parts: Vec<Vec<serde_json::Value>> = vec![Vec::new(); 4];
        for (endpoint, cut) in all.iter().zip(&cuts) {
            parts[*cut].push(endpoint.clone());
            parts[(*cut + 1) % 4].push(endpoint.clone());
        }
        let names = ["d", "b", "a", "c"];
        let slices: Vec<_> = names.iter().zip(&parts).map(|(n, p)| (*n, slice(("http", 80), &serde_json::json!(p)))).collect();
        let cut = known(&slices);
        let node = format!("n{node}");
        prop_assert_eq!(http(&whole).cluster(None), http(&cut).cluster(None));
        prop_assert_eq!(http(&whole).local(&node), http(&cut).local(&node));

        let ips = |wanted: &dyn Fn(&State) -> bool| -> BTreeSet<IpAddr> {
            states.iter().filter(|(_, s)| wanted(s)).map(|(ip, _)| format!("10.1.0.{}", ip + 1).parse().unwrap()).collect()
        };
        let here = |s: &State| Name::from(format!("n{}", s.0)) == Name::from(node.as_str());
        for (chosen, here) in [(http(&cut).cluster(None), None), (http(&cut).local(&node), Some(&here))] {
            let is_here = |s: &State| here.is_none_or(|here| here(s));
            let ready = ips(&|s| is_here(s) && s.1);
            let expected = if ready.is_empty() { ips(&|s| is_here(s) && !s.1 && s.2 && s.3) } else { ready };
            prop_assert_eq!(chosen.iter().map(|b| b.ip).collect::<BTreeSet<_>>(), expected);
        }
    }
}

/// Every author of a service may write `externalIPs`, also into one that is older than the service whose address it is.
#[test]
fn an_external_ip_takes_no_address_of_a_load_balancer() {
    let texts = ["172.18.0.99".to_owned()];
    let ports = [PortFields { port: Some(80), ..PortFields::default() }];
    let mut services = Services::default();
    let links = NodeIps::default().with_links(&["172.18.0.99".parse().unwrap()]);
    let ingress = [(texts[0].clone(), None)];
    let fields = ServiceFields { ports: &ports, ..ServiceFields::default() };
    let old = service(&ServiceFields { cluster_ip: Some("10.96.0.7"), external_ips: &texts, ..fields });
    let kind = Some("LoadBalancer");
    let balanced = service(&ServiceFields { kind, cluster_ip: Some("10.96.0.8"), ingress: &ingress, ..fields });
    let young = ObjectKey::new("a", "young");
    services.apply_service(&key(), Some(old));
    services.apply_service(&young, Some(Service { created: 2, ..balanced }));
    let has = |services: &Services, key: &ObjectKey| {
        let port = &services.get(key).unwrap().ports[0];
        !services.external_ips(key, port).is_empty()
    };
    let has_both = |services: &Services| (has(services, &key()), has(services, &young));
    assert_eq!(has_both(&services), (false, true), "a load balancer gave it, and the older one's author claims it");
    assert_eq!(services.notices(&key())[0].message, "cannot serve 172.18.0.99 TCP 80: it is service a/young's");
    assert_eq!(services.apply_node(&"n1".into(), links).len(), 2);
    assert_eq!(has_both(&services), (false, true), "a load balancer has put it on a node");
    let named = NodeIps::new(["172.18.0.99".parse().unwrap()], []);
    assert_eq!(services.apply_node(&"n1".into(), named).len(), 2);
    assert_eq!(has_both(&services), (false, false), "it is the node's own");
    assert!(services.apply_node(&"n2".into(), NodeIps::default()).is_empty());
    assert_eq!(services.apply_node(&"n1".into(), NodeIps::default()).len(), 2);
    assert_eq!(has_both(&services), (false, true));
    services.apply_service(&young, None);
    assert!(has(&services, &key()), "nobody else has it");
}

#[test]
fn others_reach_a_node_by_an_address_of_its_status_first() {
    let gateway = r#"{"default":{"mode":"shared","interface-id":"br-ex_n1","mac-address":"02:42:ac:12:00:02","ip-addresses":["10.0.0.1/16"],"next-hops":["10.0.0.254"]}}"#;
    let [status, named]: [IpAddr; 2] = ["172.18.0.2", "10.0.0.1"].map(|ip| ip.parse().unwrap());
    for (addresses, other_addresses, want) in [
        (vec![status], vec![], status),
        (vec![], vec![], named),
        // it may be on none of the links of the node
        (vec![], vec![status], named),
    ] {
        let fields = NodeFields { addresses: &addresses, other_addresses: &other_addresses, ..NodeFields::default() };
        let ips = with_meta("n1", 1, &[(keys::GATEWAY, gateway)], |meta| Node::parse(meta, fields)).ips();
        let mut services = Services::default();
        services.apply_node(&"n1".into(), ips);
        assert_eq!(services.node_ip("n1", Family::V4), Some(want), "{addresses:?} {other_addresses:?}");
    }
}

/// Whoever controls a node can write any address there. A cloud's controller or the kubelet writes the status.
#[test]
fn an_address_that_only_an_agent_names_is_not_kept_from_a_load_balancer() {
    let address: IpAddr = "172.18.0.99".parse().unwrap();
    let gateway = r#"{"default":{"mode":"shared","interface-id":"br-ex_n1","mac-address":"02:42:ac:12:00:02","ip-addresses":["172.18.0.99/16"],"next-hops":["172.18.0.1"]}}"#;
    let written = [(keys::GATEWAY, gateway), (keys::HOST_CIDRS, r#"["172.18.0.99/16"]"#)];
    let node = |addresses: &[IpAddr], other_addresses: &[IpAddr]| {
        let fields = NodeFields { addresses, other_addresses, ..NodeFields::default() };
        with_meta("n1", 1, &written, |meta| Node::parse(meta, fields)).ips()
    };
    let texts = [address.to_string()];
    let ports = [PortFields { port: Some(80), ..PortFields::default() }];
    let fields = ServiceFields { kind: Some("LoadBalancer"), ports: &ports, ..ServiceFields::default() };
    let ingress = [(texts[0].clone(), None)];
    let balanced = service(&ServiceFields { cluster_ip: Some("10.96.0.7"), ingress: &ingress, ..fields });
    let written_by_hand = service(&ServiceFields { cluster_ip: Some("10.96.0.7"), external_ips: &texts, ..fields });
    let of_service = service(&ServiceFields { cluster_ip: Some("172.18.0.99"), ..fields });
    let cases: [(&[IpAddr], &[IpAddr], [bool; 3]); 4] = [
        (&[], &[], [true, false, false]),
        (&[address], &[], [false; 3]),
        (&[], &[address], [false; 3]),
        (&[address], &[address], [false; 3]),
    ];
    for (internal, other, served) in cases {
        for (claim, is_served) in [&balanced, &written_by_hand, &of_service].into_iter().zip(served) {
            let mut services = Services::default();
            services.apply_service(&key(), Some(claim.clone()));
            services.apply_node(&"n1".into(), node(internal, other));
            let port = port("");
            let all = [services.cluster_ips(&key(), &port), services.external_ips(&key(), &port)].concat();
            assert_eq!(all.contains(&address), is_served, "{internal:?} {other:?} {claim:?}");
            let told: Vec<_> = services.notices(&key()).into_iter().map(|notice| notice.message).collect();
            assert_eq!(told.iter().any(|message| message.contains("it is node n1's")), !is_served, "{told:?}");
            assert_eq!(services.node_ip("n1", Family::V4), Some(address), "other nodes reach it there");
        }
    }
}

/// The load balancer serves the address itself, so the service has nothing there. What pods send to it must reach the load balancer.
#[test]
fn an_external_ip_takes_no_address_that_a_load_balancer_serves_itself() {
    let (text, young) = ("192.0.2.7".to_owned(), ObjectKey::new("a", "young"));
    let ports = [PortFields { port: Some(80), ..PortFields::default() }];
    let fields = ServiceFields { ports: &ports, ..ServiceFields::default() };
    let external_ips = std::slice::from_ref(&text);
    let old = service(&ServiceFields { cluster_ip: Some("10.96.0.7"), external_ips, ..fields });
    let balanced = |ingress: &[(String, Option<String>)]| {
        let fields = ServiceFields { kind: Some("LoadBalancer"), cluster_ip: Some("10.96.0.8"), ingress, ..fields };
        Some(Service { created: 2, ..service(&fields) })
    };
    let mut services = Services::default();
    let served =
        |services: &Services, key: &ObjectKey| services.external_ips(key, &services.get(key).unwrap().ports[0]).len();
    services.apply_service(&key(), Some(old));
    services.apply_service(&young, balanced(&[]));
    assert_eq!(served(&services, &key()), 1);
    let both = BTreeSet::from([key(), young.clone()]);
    let proxied = [(text.clone(), Some("Proxy".to_owned())), ("nowhere".to_owned(), Some("Proxy".to_owned()))];
    assert_eq!(services.apply_service(&young, balanced(&proxied)), both);
    assert_eq!((served(&services, &key()), served(&services, &young)), (0, 0));
    assert_eq!(services.notices(&key())[0].message, "cannot serve 192.0.2.7 TCP 80: it is service a/young's");
    assert!(services.notices(&young).is_empty());
    assert_eq!(services.apply_service(&young, balanced(&[])), both);
    assert_eq!(served(&services, &key()), 1, "the load balancer has given it back");
}

/// The result for a service: where it is reached, and its notices.
fn said(services: &Services, key: &ObjectKey) -> Option<(Vec<IpAddr>, Vec<String>)> {
    let port = &services.get(key)?.ports[0];
    let notices = services.notices(key).into_iter().map(|notice| notice.message);
    Some(([services.cluster_ips(key, port), services.external_ips(key, port)].concat(), notices.collect()))
}

/// For a service: its age, and whether the address is an external one and its load balancer's; if it is neither, or
/// both, it is the younger service's cluster IP, and if only the latter, the younger one's load balancer serves it itself.
/// For a node: whether its status and its links have the address.
type Fields = Option<(bool, bool, u8)>;

proptest! {
    /// Services and nodes with a common address are added, changed and removed: checking only the affected services
    /// again gives the same result as checking all of them in the end.
    #[test]
    fn unaffected_services_have_not_changed(
        events in prop::collection::vec((prop::bool::weighted(0.3), 0_usize..2, prop::option::weighted(0.8, (any::<bool>(), any::<bool>(), 0_u8..2))), 0..20),
    ) {
        let ip = |has: bool| has.then_some("172.18.0.99");
        let parsed = |has| ip(has).map(|ip| ip.parse::<IpAddr>().unwrap());
        let apply = |services: &mut Services, is_node: bool, number: usize, fields: Fields| {
            let name = ["a", "b"][number];
            if is_node {
                let ips = fields.map(|(named, linked, _)| NodeIps::new(parsed(named), parsed(linked)));
                return services.apply_node(&name.into(), ips.unwrap_or_default());
            }
            let new = fields.map(|(external, balanced, created)| {
                let mode = (!external && created == 1).then(|| "Proxy".to_owned());
                let external: Vec<_> = ip(external).map(str::to_owned).into_iter().collect();
                let ingress: Vec<_> = ip(balanced).map(|ip| (ip.to_owned(), mode)).into_iter().collect();
                let own = format!("10.96.0.{}", number + 1);
                let cluster_ip = ip(created == 1 && external.is_empty() == ingress.is_empty()).map_or(own, str::to_owned);
                let ports = [PortFields { port: Some(80), ..PortFields::default() }];
                let new = service(&ServiceFields {
                    kind: Some("LoadBalancer"),
                    cluster_ip: Some(&cluster_ip),
                    external_ips: &external,
                    ingress: &ingress,
                    ports: &ports,
                    ..ServiceFields::default()
                });
                Service { created: created.into(), ..new }
            });
            services.apply_service(&ObjectKey::new("a", name), new)
        };
        let (mut services, mut known, mut end) = (Services::default(), BTreeMap::new(), BTreeMap::new());
        for (is_node, number, fields) in events {
            for key in apply(&mut services, is_node, number, fields) {
                known.insert(key.clone(), said(&services, &key));
            }
            for (key, known) in &known {
                prop_assert_eq!(known, &said(&services, key), "{}", key);
            }
            end.insert((is_node, number), fields);
        }
        let mut fresh = Services::default();
        for ((is_node, number), fields) in end {
            apply(&mut fresh, is_node, number, fields);
        }
        for (key, known) in known {
            prop_assert_eq!(known, said(&fresh, &key), "{}", key);
        }
    }
}
