//! From services to elements and flows, as text; and the table in a real kernel.

mod kernel;
mod udp;
mod vlan;

use std::collections::{BTreeMap, BTreeSet};

use ovnkube_model::{
    AddressRules, Connections, EndpointFields, EndpointSlice, GatewayMode, Mac, Meta, ObjectKey, PortFields, Service,
    ServiceFields, Services, SliceFields, Subnet,
};
use serde_json::{Value, json};

use std::net::{IpAddr, SocketAddr};

use ovnkube_model::{NodeIps, ServiceCidr};
use ovnkube_node_plan::services::{self as want, Here, ServiceIntent, ServiceIntents, Want, stale};
use tokio::sync::watch;

use super::tracker::ServiceTracker;
use ovnkube_node_plan::gateway::flows::flows;
use ovnkube_node_plan::openflow::Facts;
use ovnkube_node_plan::services::element::Element;
use ovnkube_node_plan::services::nft;

fn here() -> Here {
    Here { node: "node-000".into(), ips: vec!["172.18.0.2".parse().unwrap()], node_ports: true, knows_nodes: true }
}

/// The addresses by which the cluster knows nodes.
fn ips(ips: &[&str]) -> NodeIps {
    NodeIps::new(ips.iter().map(|ip| ip.parse().unwrap()), [])
}

fn given() -> Vec<Subnet> {
    vec!["10.96.0.0/16".parse().unwrap()]
}

/// The node under test in a cluster of three nodes.
fn no_services() -> Services {
    let mut services = Services::new(AddressRules {
        pods: vec!["10.128.0.0/14".parse().unwrap()],
        routers: vec!["100.64.0.0/16".parse().unwrap()],
        ..AddressRules::default()
    });
    for (n, ip) in ["172.18.0.2", "172.18.0.3", "172.18.0.4"].into_iter().enumerate() {
        services.apply_node(&format!("node-00{n}").into(), ips(&[ip]));
    }
    services
}

fn meta_of(labels: &BTreeMap<String, String>, created: i64) -> Meta<'_> {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    Meta { uid: "u", created, labels, annotations: &NONE }
}

fn service(created: i64, spec: &Value) -> Service {
    let strings = |key: &str| -> Vec<String> { serde_json::from_value(spec[key].clone()).unwrap_or_default() };
    let ports: Vec<PortFields> = serde_json::from_value(spec["ports"].clone()).unwrap();
    let ingress: Vec<(String, Option<String>)> = strings("ingress").into_iter().map(|ip| (ip, None)).collect();
    let fields = ServiceFields {
        kind: spec["type"].as_str(),
        cluster_ips: &strings("clusterIPs"),
        external_ips: &strings("externalIPs"),
        ingress: &ingress,
        ports: &ports,
        external_traffic_policy: spec["externalTrafficPolicy"].as_str(),
        internal_traffic_policy: spec["internalTrafficPolicy"].as_str(),
        source_ranges: &strings("loadBalancerSourceRanges"),
        session_affinity: spec["sessionAffinity"].as_str(),
        health_check_port: spec["healthCheckNodePort"].as_i64().unwrap_or_default(),
        ..ServiceFields::default()
    };
    Service::parse(&meta_of(&BTreeMap::new(), created), &fields)
}

fn slice(of: &str, port: (&str, i64), endpoints: &Value) -> EndpointSlice {
    let labels = BTreeMap::from([("kubernetes.io/service-name".to_owned(), of.to_owned())]);
    let protocol = Some(port.0.to_owned());
    let ports = [PortFields { protocol, port: Some(port.1), ..PortFields::default() }];
    let endpoints: Vec<EndpointFields> = serde_json::from_value(endpoints.clone()).unwrap();
    let family = if endpoints[0].addresses[0].contains(':') { "IPv6" } else { "IPv4" };
    let fields = SliceFields { address_type: family, ports: &ports, endpoints: &endpoints };
    EndpointSlice::parse(&meta_of(&labels, 1), fields)
}

/// The cluster's services of one namespace, created in this order.
struct Cluster(Services, i64);

impl Default for Cluster {
    fn default() -> Self {
        Self(no_services(), 0)
    }
}

impl Cluster {
    fn add(&mut self, name: &str, spec: &Value) -> &mut Self {
        self.1 += 1;
        self.0.apply_service(&key(name), Some(service(self.1, spec)));
        self
    }

    fn endpoints(&mut self, name: &str, port: (&str, i64), endpoints: &Value) -> &mut Self {
        self.0.apply_slice(&key(&format!("{name}-x")), Some(slice(name, port, endpoints)));
        self
    }

    fn want(&self) -> Want {
        let mut parts = ServiceIntents::default();
        for (key, service) in self.0.iter() {
            parts.set(key, service.created, ServiceIntent::of(key, &self.0, &here()));
        }
        Want { parts: parts.all().cloned().collect(), ..Want::default() }
    }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("a", name)
}

/// The services of the cluster of `peer` when its host was dumped, in both gateway modes.
fn samples() -> Cluster {
    let mut cluster = Cluster::default();
    let web = json!([{"port": 80}]);
    let endpoints = json!([{"addresses": ["10.128.0.5"], "nodeName": "node-000"}, {"addresses": ["10.129.0.5"], "nodeName": "node-001"}]);
    cluster
        .add("cip", &json!({"clusterIPs": ["10.96.1.1"], "ports": web}))
        .add("affinity", &json!({"clusterIPs": ["10.96.1.2"], "externalIPs": ["192.0.2.10"], "ports": web}))
        .add("np", &json!({"type": "NodePort", "clusterIPs": ["10.96.1.3"], "ports": [{"port": 80, "nodePort": 30080}]}))
        .add("np-etp-local", &json!({
            "type": "LoadBalancer", "externalTrafficPolicy": "Local", "clusterIPs": ["10.96.1.4"], "ingress": ["192.0.2.20"],
            "ports": [{"port": 80, "nodePort": 30081}], "healthCheckNodePort": 32000,
        }))
        .add("itp-local", &json!({"clusterIPs": ["10.96.1.5"], "internalTrafficPolicy": "Local", "ports": web}));
    for name in ["cip", "np", "np-etp-local", "itp-local"] {
        cluster.endpoints(name, ("TCP", 8080), &endpoints);
    }
    cluster
}

fn masquerade() -> Vec<Subnet> {
    vec!["169.254.169.0/29".parse().unwrap(), "fd69::/125".parse().unwrap()]
}

fn elements(cluster: &Cluster, mode: GatewayMode) -> Vec<String> {
    let elements = nft::elements(&cluster.want(), mode, &masquerade());
    let line = |(element, value): (&Element, &Option<SocketAddr>)| {
        let end = if value.is_none() { " : " } else { "" };
        format!("{} {}{end}", element.set_name(), element.with(*value))
    };
    let mut lines: Vec<String> = elements.iter().map(line).collect();
    lines.sort();
    lines
}

/// Without elements that only refuse connections.
fn led(cluster: &Cluster, mode: GatewayMode) -> Vec<String> {
    let mut led = elements(cluster, mode);
    led.retain(|element| !element.starts_with("refused"));
    led
}

/// Only an endpoint on the same node sees the client's address.
#[test]
fn a_node_port_without_local_endpoints_goes_to_a_node_that_has_some() {
    let mut cluster = Cluster::default();
    let spec = json!({
        "type": "NodePort", "externalTrafficPolicy": "Local", "clusterIPs": ["10.96.1.1"], "ports": [{"port": 80, "nodePort": 30080}],
    });
    cluster.add("web", &spec);
    let mut elsewhere = |nodes: &[&str]| {
        let ips = nodes.iter().enumerate();
        let endpoints = ips.map(|(n, node)| {
            let (node, goes) = node.strip_suffix(" terminating").map_or((*node, false), |node| (node, true));
            let conditions = json!({"ready": !goes, "serving": true, "terminating": goes});
            json!({"addresses": [format!("10.128.1.{n}")], "nodeName": node, "conditions": conditions})
        });
        cluster.endpoints("web", ("TCP", 8080), &endpoints.collect::<Vec<_>>().into());
        let mut led = elements(&cluster, GatewayMode::Shared);
        led.retain(|element| element.starts_with("nodeports-elsewhere"));
        led
    };
    assert_eq!(elsewhere(&["node-002", "node-001"]), ["nodeports-elsewhere-v4 tcp . 30080 : 172.18.0.3 . 30080"]);
    assert_eq!(elsewhere(&["node-002"]), ["nodeports-elsewhere-v4 tcp . 30080 : 172.18.0.4 . 30080"]);
    assert!(elsewhere(&["node-002", "node-000"]).is_empty(), "an endpoint is here");
    assert!(elsewhere(&["node-007"]).is_empty(), "the node's address is not known");
    let ready = elsewhere(&["node-001 terminating", "node-002"]);
    assert_eq!(ready, ["nodeports-elsewhere-v4 tcp . 30080 : 172.18.0.4 . 30080"]);
    let last = elsewhere(&["node-001 terminating"]);
    assert_eq!(last, ["nodeports-elsewhere-v4 tcp . 30080 : 172.18.0.3 . 30080"]);
    assert!(elsewhere(&["node-000 terminating", "node-002"]).is_empty(), "a local endpoint still serves");

    let needs_nodes = watch::Sender::default();
    let mut needed = needs_nodes.subscribe();
    let tracker = ServiceTracker::new("node-000".into(), true, Some(given()), Services::default(), needs_nodes);
    tracker.services_synced();
    assert!(tracker.want().is_some() && !*needed.borrow_and_update(), "no service needs other nodes");
    let there = json!([{"addresses": ["10.128.1.1"], "nodeName": "node-002"}]);
    tracker.slice(&key("web-x"), Some(slice("web", ("TCP", 8080), &there)));
    tracker.service(&key("web"), Some(service(1, &spec)));
    assert!(*needed.borrow_and_update());
    let leads_to =
        || tracker.want().unwrap().parts[0].elsewhere.iter().map(|there| there.node.to_string()).collect::<Vec<_>>();
    assert!(leads_to().is_empty());
    for ip in ["172.18.0.4", "172.18.0.44"] {
        let mut changes = tracker.changes();
        for is_new in [true, false] {
            changes.mark_unchanged();
            tracker.node(&"node-002".into(), Some(ips(&[ip])));
            assert_eq!(changes.has_changed().unwrap(), is_new);
            assert_eq!(leads_to(), [ip], "the node has another address");
        }
    }
    tracker.node(&"node-002".into(), None);
    assert!(leads_to().is_empty());
}

/// OVN's reply to the host would not reach it.
#[test]
fn the_host_rejects_connections_to_services_without_endpoints() {
    let mut cluster = Cluster::default();
    let ports = json!([{"port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]);
    cluster.add("none", &json!({"clusterIPs": ["10.96.1.1", "fd00:96::1"], "ports": ports}));
    let refused = [
        "refused-services-v4 10.96.1.1 . tcp . 80 : ",
        "refused-services-v4 10.96.1.1 . udp . 53 : ",
        "refused-services-v6 fd00:96::1 . tcp . 80 : ",
        "refused-services-v6 fd00:96::1 . udp . 53 : ",
    ];
    assert_eq!(elements(&cluster, GatewayMode::Shared), refused);
    cluster.endpoints("none", ("TCP", 8080), &json!([{"addresses": ["10.129.0.5"], "nodeName": "node-001"}]));
    assert_eq!(elements(&cluster, GatewayMode::Shared), refused[1..]);
    let away = json!([{"addresses": ["10.129.0.5"], "nodeName": "node-001", "conditions": {"ready": false}}]);
    cluster.endpoints("none", ("TCP", 8080), &away);
    assert_eq!(elements(&cluster, GatewayMode::Shared), refused);
}

#[test]
fn elements_of_the_samples() {
    let shared = [
        "external-ips-etp-local-v4 192.0.2.20 . tcp . 80 : 169.254.169.3 . 30081",
        "external-ips-v4 192.0.2.10 . tcp . 80 : 10.96.1.2 . 80",
        "external-ips-v4 192.0.2.20 . tcp . 80 : 10.96.1.4 . 80",
        "itp-services-to-mark-v4 10.96.1.5 . tcp . 80 : ",
        "nodeports-etp-local-v4 tcp . 30081 : 169.254.169.3 . 30081",
        "nodeports-v4 tcp . 30080 : 10.96.1.3 . 80",
        "nodeports-v4 tcp . 30081 : 10.96.1.4 . 80",
        "refused-services-v4 10.96.1.2 . tcp . 80 : ",
    ];
    assert_eq!(elements(&samples(), GatewayMode::Shared), shared);
    let mut local = shared.map(str::to_owned).to_vec();
    local.push("mgmtport-no-snat-nodeports tcp . 30081 : ".to_owned());
    local.sort();
    assert_eq!(elements(&samples(), GatewayMode::Local), local);
}

fn facts(mode: GatewayMode, ips: &[&str]) -> Facts<'static> {
    Facts {
        mode,
        mac: Mac([2, 0x42, 0xac, 0x12, 0, 2]),
        uplink: Some(1),
        vlan: None,
        patch: 2,
        ips: ips.iter().map(|ip| ip.parse().unwrap()).collect(),
        service_cidrs: &[],
        masquerade: &[],
        pods: &[],
        pods_outside: false,
        management: Vec::new(),
        conntrack_zone: 64000,
        encap_port: 6081,
        max_frame: None,
    }
}

/// What services add to the flows of a node with these addresses.
fn added(cluster: &Cluster, mode: GatewayMode, ips: &[&str]) -> Vec<String> {
    let facts = facts(mode, ips);
    let without: BTreeSet<String> = flows(&facts, &Want::default()).into_iter().collect();
    let with = flows(&facts, &cluster.want());
    let unique: BTreeSet<&String> = with.iter().collect();
    assert_eq!(unique.len(), with.len(), "a flow occurs twice");
    let added = with.into_iter().filter(|flow| !without.contains(flow));
    added.map(|flow| flow.replace("cookie=0xdeff105,table=0,priority=110,", "")).collect()
}

#[test]
fn flows_of_the_samples() {
    let mut shared = added(&samples(), GatewayMode::Shared, &["172.18.0.2"]);
    shared.sort();
    let want = [
        "arp,in_port=1,arp_tpa=192.0.2.10,arp_op=1,actions=LOCAL",
        "arp,in_port=1,arp_tpa=192.0.2.20,arp_op=1,actions=LOCAL",
        "icmp,in_port=1,nw_dst=192.0.2.10,icmp_type=3,icmp_code=4,actions=output:2",
        "icmp,in_port=1,nw_dst=192.0.2.20,icmp_type=3,icmp_code=4,actions=output:2",
        "tcp,in_port=1,nw_dst=172.18.0.2,tp_dst=30080,actions=output:2",
        "tcp,in_port=1,nw_dst=172.18.0.2,tp_dst=30081,actions=output:2",
        "tcp,in_port=1,nw_dst=192.0.2.10,tp_dst=80,actions=output:2",
        "tcp,in_port=1,nw_dst=192.0.2.20,tp_dst=80,actions=output:2",
        "tcp,in_port=2,dl_src=02:42:ac:12:00:02,nw_src=172.18.0.2,tp_src=30080,actions=output:1",
        "tcp,in_port=2,dl_src=02:42:ac:12:00:02,nw_src=172.18.0.2,tp_src=30081,actions=output:1",
        "tcp,in_port=2,dl_src=02:42:ac:12:00:02,nw_src=192.0.2.10,tp_src=80,actions=output:1",
        "tcp,in_port=2,dl_src=02:42:ac:12:00:02,nw_src=192.0.2.20,tp_src=80,actions=output:1",
    ];
    assert_eq!(shared, want);
    assert_eq!(added(&samples(), GatewayMode::Local, &["172.18.0.2"]), want[..2]);
    assert!(added(&samples(), GatewayMode::Shared, &[]).is_empty(), "a node without such addresses");
}

/// The node's other addresses also keep the client's address, and services whose endpoints are on other nodes get no
/// flows there.
#[test]
fn local_node_ports_exist_at_all_addresses_of_the_node() {
    let mut cluster = samples();
    let spec = json!({
        "type": "NodePort", "externalTrafficPolicy": "Local", "clusterIPs": ["10.96.1.6"], "ports": [{"port": 80, "nodePort": 30082}],
    });
    cluster.add("away", &spec).endpoints(
        "away",
        ("TCP", 8080),
        &json!([{"addresses": ["10.129.0.5"], "nodeName": "node-001"}]),
    );
    let mut here = here();
    here.ips.extend(["172.18.0.9", "fd00::9"].map(|ip| ip.parse::<IpAddr>().unwrap()));
    let part = |name: &str| ServiceIntent::of(&key(name), &cluster.0, &here).map(std::sync::Arc::new);
    let want = Want { parts: ["np", "np-etp-local", "away"].into_iter().filter_map(part).collect(), ..Want::default() };
    let at = |mode| -> Vec<String> {
        let flows = flows(&facts(mode, &["172.18.0.2"]), &want).into_iter();
        flows
            .filter_map(|flow| Some(flow.split_once(",priority=110,")?.1.to_owned()))
            .filter(|flow| flow.contains("172.18.0.9"))
            .collect()
    };
    let shared = [
        "tcp,in_port=1,nw_dst=172.18.0.9,tp_dst=30081,actions=output:2",
        "tcp,in_port=2,dl_src=02:42:ac:12:00:02,nw_src=172.18.0.9,tp_src=30081,actions=output:1",
    ];
    assert_eq!(at(GatewayMode::Shared), shared);
    assert!(at(GatewayMode::Local).is_empty());
}

#[test]
fn endpoints_on_the_host_see_the_clients_address() {
    let mut cluster = Cluster::default();
    let spec = json!({
        "type": "LoadBalancer", "externalTrafficPolicy": "Local", "internalTrafficPolicy": "Local", "clusterIPs": ["10.96.1.4"],
        "ingress": ["192.0.2.20"], "ports": [{"port": 53, "nodePort": 30053, "protocol": "UDP"}],
        "loadBalancerSourceRanges": ["10.0.0.0/8", "10.1.0.0/16", "192.0.2.1/32", "fd00::/8"],
    });
    cluster.add("dns", &spec);
    cluster.endpoints("dns", ("UDP", 5353), &json!([{"addresses": ["172.18.0.2"], "nodeName": "node-000"}]));
    let flows = added(&cluster, GatewayMode::Shared, &["172.18.0.2"]);
    let to_host = "actions=ct(commit,zone=64003,nat(dst=172.18.0.2:5353),table=6)";
    for flow in [
        format!("udp,in_port=1,nw_dst=172.18.0.2,tp_dst=30053,{to_host}"),
        format!("udp,in_port=1,nw_dst=192.0.2.20,tp_dst=53,nw_src=10.0.0.0/8,{to_host}"),
        format!("udp,in_port=1,nw_dst=192.0.2.20,tp_dst=53,nw_src=192.0.2.1/32,{to_host}"),
        "cookie=0xdeff105,table=0,priority=109,udp,in_port=1,nw_dst=192.0.2.20,tp_dst=53,actions=drop".to_owned(),
        "udp,in_port=LOCAL,nw_src=172.18.0.2,tp_src=5353,actions=ct(zone=64003,nat,table=7)".to_owned(),
        "cookie=0xdeff105,table=6,priority=110,actions=LOCAL".to_owned(),
        "cookie=0xdeff105,table=7,priority=110,actions=output:1".to_owned(),
    ] {
        assert!(flows.contains(&flow), "{flow} is not in {flows:#?}");
    }
    assert!(!flows.iter().any(|flow| flow.contains("10.1.0.0")), "a range inside another one has a flow");
    let elements = elements(&cluster, GatewayMode::Local);
    assert!(!elements.iter().any(|element| element.starts_with("external-ips-no")), "{elements:#?}");
    for element in [
        "external-ips-etp-local-v4 192.0.2.20 . udp . 53 : 172.18.0.2 . 5353",
        "nodeports-etp-local-v4 udp . 30053 : 172.18.0.2 . 5353",
        "itp-services-to-redirect-v4 10.96.1.4 . udp . 53 : 172.18.0.2 . 5353",
        "limited-services-v4 192.0.2.20 . udp . 53 : ",
        "services-sources-v4 192.0.2.20 . udp . 53 . 10.0.0.0/8 : ",
    ] {
        assert!(elements.iter().any(|have| have == element), "{element} is not in {elements:#?}");
    }
}

#[test]
fn the_older_service_wins_a_conflict() {
    let mut cluster = Cluster::default();
    let claim = |ip: &str| json!({"clusterIPs": [ip], "externalIPs": ["192.0.2.10"], "ports": [{"port": 80}]});
    cluster.add("z", &claim("10.96.1.1")).add("a", &claim("10.96.1.2"));
    assert_eq!(led(&cluster, GatewayMode::Shared), ["external-ips-v4 192.0.2.10 . tcp . 80 : 10.96.1.1 . 80"]);
    let flows = added(&cluster, GatewayMode::Shared, &["172.18.0.2"]);
    assert_eq!(flows.len(), 4, "{flows:#?}");
}

/// A user who can create a service must not take the ports of any node.
#[test]
fn an_external_ip_of_another_owner_is_ignored() {
    let ports = json!([{"port": 10250}]);
    for ip in ["172.18.0.2", "172.18.0.3", "10.129.0.5", "10.96.1.2", "100.64.0.3"] {
        for thief in [json!({"externalIPs": [ip]}), json!({"type": "LoadBalancer", "ingress": [ip]})] {
            let mut cluster = Cluster::default();
            let mut spec = json!({"clusterIPs": ["10.96.1.1"], "ports": ports});
            spec.as_object_mut().unwrap().extend(thief.as_object().unwrap().clone());
            cluster.add("thief", &spec);
            cluster.add("owner", &json!({"clusterIPs": ["10.96.1.2"], "ports": ports}));
            for mode in [GatewayMode::Local, GatewayMode::Shared] {
                assert!(led(&cluster, mode).is_empty(), "{ip} is redirected");
                assert!(added(&cluster, mode, &["172.18.0.2"]).is_empty(), "{ip} is sent to OVN");
            }
        }
    }
}

/// A load balancer may put its address on a node; a service that has it only in spec.externalIPs does not get it.
#[test]
fn an_address_that_a_load_balancer_put_on_a_node_is_served() {
    let spec = |from: &str| json!({"type": "LoadBalancer", "clusterIPs": ["10.96.1.1"], from: ["172.18.0.99"], "ports": [{"port": 80}]});
    for node in ["node-000", "node-001"] {
        let mut cluster = Cluster::default();
        let own = ips(&["172.18.0.2"]);
        cluster
            .0
            .apply_node(&node.into(), own.with_links(&["172.18.0.2".parse().unwrap(), "172.18.0.99".parse().unwrap()]));
        cluster.add("vip", &spec("ingress"));
        assert_eq!(led(&cluster, GatewayMode::Shared), ["external-ips-v4 172.18.0.99 . tcp . 80 : 10.96.1.1 . 80"]);
        cluster.add("vip", &spec("externalIPs"));
        assert!(led(&cluster, GatewayMode::Shared).is_empty());
    }
}

#[test]
fn both_families() {
    let mut cluster = Cluster::default();
    let spec = json!({
        "type": "LoadBalancer", "clusterIPs": ["10.96.1.4", "fd00:96::4"], "ingress": ["192.0.2.20", "2001:db8::20"],
        "ports": [{"port": 80, "nodePort": 30081}], "loadBalancerSourceRanges": ["10.0.0.0/8"],
    });
    cluster.add("web", &spec);
    let flows = added(&cluster, GatewayMode::Shared, &["172.18.0.2", "fd00:172::2"]);
    for flow in [
        "icmp6,in_port=1,nd_target=2001:db8::20,icmp_type=135,icmp_code=0,actions=LOCAL",
        "icmp6,in_port=1,ipv6_dst=2001:db8::20,icmp_type=2,icmp_code=0,actions=output:2",
        "tcp6,in_port=1,ipv6_dst=fd00:172::2,tp_dst=30081,actions=output:2",
        "tcp6,in_port=2,dl_src=02:42:ac:12:00:02,ipv6_src=2001:db8::20,tp_src=80,actions=output:1",
        "tcp,in_port=1,nw_dst=192.0.2.20,tp_dst=80,nw_src=10.0.0.0/8,actions=output:2",
        // ranges of one family do not restrict the other
        "tcp6,in_port=1,ipv6_dst=2001:db8::20,tp_dst=80,actions=output:2",
    ] {
        assert!(flows.iter().any(|have| have == flow), "{flow} is not in {flows:#?}");
    }
    let elements = elements(&cluster, GatewayMode::Local);
    assert!(elements.contains(&"nodeports-v6 tcp . 30081 : fd00:96::4 . 80".to_owned()), "{elements:#?}");
}

/// As kube-proxy does it.
#[test]
fn source_ranges() {
    let sources = |ranges: &[&str]| {
        let mut cluster = Cluster::default();
        let spec = json!({
            "type": "LoadBalancer", "clusterIPs": ["10.96.1.4"], "ingress": ["192.0.2.20"], "externalIPs": ["192.0.2.21"],
            "ports": [{"port": 80}], "loadBalancerSourceRanges": ranges,
        });
        cluster.add("web", &spec);
        let sources = |frontend: &want::Frontend| frontend.sources.iter().map(ToString::to_string).collect::<Vec<_>>();
        let frontends: Vec<_> = cluster.want().parts[0].frontends.iter().map(sources).collect();
        assert!(frontends[1].is_empty(), "externalIPs have none");
        frontends[0].clone()
    };
    assert_eq!(sources(&["10.0.0.1/8", "10.1.0.0/16"]), ["10.0.0.0/8"]);
    assert!(sources(&["10.0.0.0/8", "0.0.0.0/0"]).is_empty(), "everybody");
    assert!(sources(&["fd00::/8"]).is_empty(), "IPv4 is not restricted");
    assert_eq!(sources(&["172.18.0.0/16"]), ["172.18.0.0/16", "192.0.2.20/32"], "the node may have the address itself");
    assert_eq!(sources(&["10.0.0.0/33"]), ["0.0.0.0/32"], "an invalid range allows no client");
}

fn tracker() -> ServiceTracker {
    let tracker = ServiceTracker::new("node-000".into(), true, Some(given()), no_services(), watch::Sender::default());
    tracker.addresses(&here().ips);
    tracker.nodes_synced();
    tracker
}

#[test]
fn nothing_is_written_before_all_lists_are_complete() {
    let tracker = tracker();
    let spec = json!({"type": "NodePort", "clusterIPs": ["10.96.1.3"], "ports": [{"port": 80, "nodePort": 30080}]});
    tracker.service(&key("np"), Some(service(1, &spec)));
    assert_eq!(tracker.want(), None);
    let changes = tracker.changes();
    tracker.services_synced();
    assert!(changes.has_changed().unwrap());
    assert_eq!(tracker.want().unwrap().parts.len(), 1);
}

/// Whether the host must act on a change.
fn is_reported(tracker: &ServiceTracker, change: &dyn Fn()) -> bool {
    // counts from here on
    let changes = tracker.changes();
    change();
    changes.has_changed().unwrap()
}

/// OVN has the endpoints; the host learns of a change only if it must act on it.
#[test]
fn only_changes_for_the_host_are_reported() {
    let tracker = tracker();
    tracker.services_synced();
    let reported = |change: &dyn Fn()| is_reported(&tracker, change);
    let spec = json!({"type": "NodePort", "clusterIPs": ["10.96.1.3"], "ports": [{"port": 80, "nodePort": 30080}]});
    assert!(reported(&|| tracker.service(&key("np"), Some(service(1, &spec)))));
    let pod = |ip: &str, node: &str| slice("np", ("TCP", 8080), &json!([{"addresses": [ip], "nodeName": node}]));
    assert!(reported(&|| tracker.slice(&key("np-x"), Some(pod("10.129.0.4", "node-001")))), "it no longer rejects");
    for slice in [pod("10.128.0.5", "node-000"), pod("10.129.0.5", "node-001")] {
        assert!(!reported(&|| tracker.slice(&key("np-x"), Some(slice.clone()))));
    }
    let mut local = spec.clone();
    local["externalTrafficPolicy"] = "Local".into();
    assert!(reported(&|| tracker.service(&key("np"), Some(service(1, &local)))));
    assert!(reported(&|| tracker.slice(&key("np-x"), Some(pod("10.128.0.6", "node-000")))));
    assert!(reported(&|| tracker.addresses(&["10.128.0.6".parse().unwrap()])), "the endpoint is on the host");
    assert!(reported(&|| tracker.service(&key("np"), None)));
    assert_eq!(tracker.want(), Some(Want { nodes: Some(BTreeSet::new()), ..Want::default() }));
}

/// The host must act when databases without TLS change, or which of them is its own.
#[test]
fn databases_without_tls_are_told_once() {
    let tracker =
        ServiceTracker::new("node-000".into(), true, Some(given()), Services::default(), watch::Sender::default());
    tracker.services_synced();
    let reported = |change: &dyn Fn()| is_reported(&tracker, change);
    let databases = Connections { databases: ["172.18.0.2:6642".parse().unwrap()].into(), ..Connections::default() };
    assert!(reported(&|| tracker.connections(databases.clone())));
    assert!(!reported(&|| tracker.connections(databases.clone())));
    assert!(reported(&|| tracker.addresses(&["172.18.0.2".parse().unwrap()])), "it is on this host");
    assert!(!reported(&|| tracker.addresses(&["172.18.0.2", "172.18.0.3"].map(|ip| ip.parse().unwrap()))));
    assert_eq!(tracker.want().unwrap().databases.here, [6642].into());
}

/// The first external address, added later: until other nodes' addresses are known, it may be one of them, and
/// connections to it are not ended.
#[test]
fn connections_to_an_address_that_may_be_another_nodes_stay() {
    let tracker =
        ServiceTracker::new("node-000".into(), true, Some(given()), Services::default(), watch::Sender::default());
    tracker.services_synced();
    assert!(tracker.want().is_some(), "no service needs nodes");
    let ports = json!([{"protocol": "UDP", "port": 53}]);
    let spec = json!({"clusterIPs": ["10.96.1.3"], "externalIPs": ["172.18.0.3"], "ports": ports});
    tracker.service(&key("dns"), Some(service(1, &spec)));
    let endpoints = json!([{"addresses": ["10.128.0.5"], "nodeName": "node-000"}]);
    tracker.slice(&key("dns-x"), Some(slice("dns", ("UDP", 53), &endpoints)));
    tracker.node(&"node-001".into(), Some(ips(&["172.18.0.3"])));
    tracker.nodes_synced();
    assert_eq!(tracker.stale(udp::later()).0, []);
}

/// Once there are more ranges than configured: nodes' addresses in them belong to the nodes, whatever services claim.
#[test]
fn nodes_keep_their_addresses_in_ranges_of_services() {
    let needs_nodes = watch::Sender::default();
    let tracker = ServiceTracker::new("node-000".into(), true, Some(given()), no_services(), needs_nodes.clone());
    let range = |cidrs: &[&str]| {
        let cidrs: Vec<String> = cidrs.iter().map(ToString::to_string).collect();
        Some(ServiceCidr::parse(&meta_of(&BTreeMap::new(), 1), &cidrs))
    };
    tracker.range("kubernetes".into(), range(&["10.96.0.0/16", "10.96.64.0/20"]));
    tracker.services_synced();
    assert_eq!((*needs_nodes.borrow(), tracker.want().unwrap().nodes), (false, None));
    tracker.range("more".into(), range(&["10.97.0.0/16"]));
    assert_eq!((*needs_nodes.borrow(), tracker.want().unwrap().nodes), (true, None));
    tracker.nodes_synced();
    let kept = || tracker.want().unwrap().nodes.unwrap().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    assert_eq!(kept(), "");
    let spec = json!({"clusterIPs": ["10.97.0.5"], "ports": [{"port": 80}]});
    tracker.service(&key("mistaken"), Some(service(1, &spec)));
    assert_eq!(tracker.want().unwrap().parts.len(), 1, "there is no endpoint: it is rejected");
    let mut changes = tracker.changes();
    let mut reported = |node: &str, named: &[&str], linked: &[&str]| {
        changes.mark_unchanged();
        let parsed = |ips: &[&str]| ips.iter().map(|ip| ip.parse().unwrap()).collect::<Vec<IpAddr>>();
        tracker.node(&node.into(), Some(NodeIps::new(parsed(named), parsed(linked))));
        changes.has_changed().unwrap()
    };
    assert!(!reported("node-003", &["172.18.0.5"], &["10.97.0.10"]), "a DNS cache has a service's address");
    assert!(reported("node-003", &["172.18.0.5", "10.97.0.5"], &["10.97.0.10"]));
    assert_eq!((kept().as_str(), tracker.want().unwrap().parts.len()), ("10.97.0.5", 0));
    assert!(reported("node-004", &["10.97.0.6", "fd00:97::6", "10.98.0.6"], &[]));
    assert_eq!(kept(), "10.97.0.5 10.97.0.6");
    assert!(!reported("node-004", &["10.97.0.6", "10.98.0.6"], &["10.97.0.10"]));
    assert!(reported("node-004", &[], &[]));
    assert_eq!(kept(), "10.97.0.5");
}
