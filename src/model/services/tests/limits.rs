//! Services of any size cost a bounded amount of work.

use std::time::Duration;

use super::*;
use crate::services::places::Places;
use crate::tests::on_cpu;

fn numbered(count: usize, one: impl Fn(usize) -> String) -> Vec<String> {
    (0..count).map(one).collect()
}

fn external(count: usize) -> Vec<String> {
    numbered(count, |n| format!("192.0.{}.{}", n / 250, n % 250 + 1))
}

fn ports(count: usize) -> Vec<PortFields> {
    let port = |n: usize| PortFields {
        name: Some(format!("port-{n}")),
        protocol: Some("UDP".to_owned()),
        port: Some(i64::try_from(n).unwrap() + 1),
        node_port: None,
    };
    (0..count).map(port).collect()
}

fn told(service: &Service) -> Vec<String> {
    service.bad.iter().map(|bad| format!("{}: {}", bad.field, bad.problem)).collect()
}

#[test]
fn addresses_times_ports_are_bounded() {
    let (many_ips, many_ports) = (external(3000), ports(3000));
    let [two, four] = ["10.96.0.7 fd00::7", "192.0.2.1 192.0.2.2 2001:db8::1 2001:db8::2"]
        .map(|ips| ips.split(' ').map(str::to_owned).collect::<Vec<_>>());
    let fields = ServiceFields { cluster_ip: Some("10.96.0.7"), ..ServiceFields::default() };
    let huge = service(&ServiceFields { external_ips: &many_ips, ports: &many_ports, ..fields });
    assert_eq!((huge.ports.len(), huge.external_ips.len()), (3000, 15), "16 addresses with 3000 ports are 48,000");
    let limit = "there would be more than 50000, the limit for addresses times ports of a service";
    let remedy = "divide them among several services";
    assert_eq!(told(&huge), [format!("spec.externalIPs: 2985 of 3000 addresses are left out: {limit}; {remedy}")]);

    // a load balancer's addresses come before those that an author writes, and its own come before all
    let ingress: Vec<_> = external(10).into_iter().map(|ip| (ip, None)).collect();
    let balanced = ServiceFields { kind: Some("LoadBalancer"), ingress: &ingress, ..fields };
    let of_both = service(&ServiceFields { external_ips: &four[..2], ports: &many_ports, ..balanced });
    assert_eq!((of_both.ingress_ips.len(), of_both.external_ips.len(), of_both.bad.len()), (10, 2, 0));
    let of_both = service(&ServiceFields { external_ips: &four[..2], ports: &ports(10_000), ..balanced });
    assert_eq!((of_both.ports.len(), of_both.ingress_ips.len(), of_both.external_ips.len()), (10_000, 4, 0));
    let left_out: Vec<_> = of_both.bad.iter().map(|bad| bad.field.as_ref()).collect();
    assert_eq!(left_out, ["status.loadBalancer.ingress", "spec.externalIPs"]);
    let of_ports = service(&ServiceFields { cluster_ips: &two, ports: &ports(30_000), ..ServiceFields::default() });
    assert_eq!((of_ports.ports.len(), of_ports.cluster_ips.len()), (25_000, 2));
    assert_eq!(told(&of_ports), [format!("spec.ports: 5000 of 30000 ports are left out: {limit}; {remedy}")]);

    // a range of ports for calls, at an address of each family and one of a load balancer for each
    let calls =
        service(&ServiceFields { cluster_ips: &two, external_ips: &four[1..3], ports: &ports(10_001), ..fields });
    assert_eq!((calls.ports.len(), calls.external_ips.len(), calls.bad.len()), (10_001, 2, 0));
}

/// A service may have as many ports as its slices.
#[test]
fn the_work_grows_with_ports_and_not_with_their_square() {
    let (count, started) = (50_000, on_cpu());
    let (fields, many) = (ServiceFields { cluster_ip: Some("10.96.0.7"), ..ServiceFields::default() }, ports(count));
    let mut services = Services::default();
    services.apply_service(&key(), Some(service(&ServiceFields { ports: &many, ..fields })));
    let labels = BTreeMap::from([("kubernetes.io/service-name".to_owned(), "web".to_owned())]);
    let endpoints = [EndpointFields { addresses: vec!["10.1.0.3".to_owned()], ..EndpointFields::default() }];
    let fields = SliceFields { address_type: "IPv4", ports: &many, endpoints: &endpoints };
    services.apply_slice(&ObjectKey::new("a", "web-1"), Some(EndpointSlice::parse(&meta_of(&labels), fields)));
    let all = &services.get(&key()).unwrap().ports;
    for (n, port) in all.iter().enumerate() {
        assert_eq!(text(&services.backends(&key(), port, Family::V4).cluster(None)), format!("10.1.0.3:{}", n + 1));
    }
    assert_eq!(all.len(), count);
    let took = on_cpu().saturating_sub(started);
    // comparing each with each would take minutes
    assert!(took < Duration::from_secs(60), "{took:?}");
}

/// Each notice is an Event.
#[test]
fn as_many_notices_as_somebody_reads() {
    let broken = numbered(3000, |n| format!("192.0.2.{n}.1"));
    let fields = ServiceFields { cluster_ip: Some("10.96.0.7"), ..ServiceFields::default() };
    let bad = service(&ServiceFields { external_ips: &broken, ..fields });
    assert_eq!((bad.bad.len(), bad.external_ips.len()), (20, 0));
    let mut services = Services::default();
    for (name, ip) in [("first", "10.96.0.8"), ("web", "10.96.0.7")] {
        let fields = ServiceFields { cluster_ip: Some(ip), external_ips: &external(1), ports: &ports(100), ..fields };
        services.apply_service(&ObjectKey::new("a", name), Some(service(&fields)));
    }
    assert_eq!(services.notices(&key()).len(), 20, "each of its ports conflicts");
}

fn balanced<'a>(
    ranges: &'a [String],
    ports: &'a [PortFields],
    ingress: &'a [(String, Option<String>)],
) -> ServiceFields<'a> {
    let cluster_ip = Some("10.96.0.7");
    ServiceFields {
        kind: Some("LoadBalancer"),
        cluster_ip,
        source_ranges: ranges,
        ports,
        ingress,
        ..Default::default()
    }
}

/// Every second address of a range, each alone.
fn scattered(count: usize) -> Vec<String> {
    numbered(count, |n| format!("10.{}.{}.{}/32", 128 + n / 32_768, n / 128 % 256, n % 128 * 2))
}

#[test]
fn ranges_times_what_they_limit_are_bounded() {
    let ingress: Vec<_> = external(2).into_iter().map(|ip| (ip, None)).collect();
    let mut ranges = scattered(30_000);
    ranges.push("2001:db8::/32".to_owned());
    let found = service(&balanced(&ranges, &ports(10), &ingress));
    let limit = "there would be more than 100000, the limit for ranges times addresses and ports";
    let problem = format!("25000 of 30000 IPv4 ranges allow no client: with them {limit}; write wider ranges");
    assert_eq!(told(&found), [format!("spec.loadBalancerSourceRanges: {problem}")]);
    assert_eq!(found.source_ranges.len(), 5001, "the other family has its own limit");
    let at = found.ingress_ips[0];
    let is_out = |from: &str| found.keeps_out(from.parse().unwrap(), at);
    assert_eq!(["10.128.0.0", "10.128.0.1", "10.128.100.0"].map(is_out), [false, true, true]);

    let nested = ["10.1.0.0/16", "10.0.0.1/8", "10.0.0.0/8", "11.0.0.0/8"].map(str::to_owned);
    let found = service(&balanced(&nested, &ports(10_000), &ingress));
    assert_eq!(found.source_ranges, ["10.0.0.0/8", "11.0.0.0/8"].map(|range| range.parse().unwrap()));
    assert_eq!(told(&found), [""; 0]);
}

/// Where ranges leave too many parts of the pod network, no pod may send, and those outside may as before.
#[test]
fn ranges_that_cut_the_pod_network_to_pieces_allow_no_pod() {
    let rules = pod_network();
    let ingress = [("192.0.2.1".to_owned(), None)];
    let (pod, at) = ("10.128.0.2".parse().unwrap(), "192.0.2.1".parse().unwrap());
    let kept_out = |count: usize| {
        let mut services = Services::new(rules.clone());
        let ranges = [scattered(count), vec!["198.51.100.0/24".to_owned()]].concat();
        services.apply_service(&key(), Some(service(&balanced(&ranges, &ports(1), &ingress))));
        let outside = services.keeps_out(&key(), "198.51.100.7".parse().unwrap(), at);
        let pods = services.kept_out(&key(), Family::V4).unwrap().pods;
        (pods, services.keeps_out(&key(), pod, at), outside, services.notices(&key()))
    };
    let (pods, is_pod_out, is_outside_out, notices) = kept_out(300);
    assert!(pods.len() > 300 && !is_pod_out && !is_outside_out && notices.is_empty(), "{notices:?}");
    let (pods, is_pod_out, is_outside_out, notices) = kept_out(60_000);
    assert_eq!((pods, is_pod_out, is_outside_out), (rules.pods.clone(), true, false));
    let messages: Vec<_> = notices.iter().map(|notice| (notice.reason, notice.message.as_str())).collect();
    let message = "cannot use spec.loadBalancerSourceRanges: IPv4 ranges leave more than 50000 parts of the pod network, the \
                   limit for the ACL of a service; they allow no pod; write wider ranges, which end where nodes' subnets end";
    assert_eq!(messages, [("BadField", message)]);
}

#[test]
fn endpoints_times_addresses_and_ports_have_a_limit() {
    let external: Vec<_> = (0..499).map(|i| format!("203.0.{}.{}", 100 + i / 200, 1 + i % 200)).collect();
    let ports = ["http", "other"].map(|name| PortFields {
        name: Some(name.to_owned()),
        port: Some(80 + name.len() as i64),
        ..PortFields::default()
    });
    let endpoint = |net: u32, i: u32| {
        let ready = serde_json::json!({"ready": net == 2, "serving": true, "terminating": net == 1});
        serde_json::json!({"addresses": [format!("10.{net}.{}.{}", i / 200, 1 + i % 200)], "conditions": ready})
    };
    let list = |net: u32| (0..600).map(|i| endpoint(net, i)).collect::<Vec<_>>();
    let [leaving, ready] = [1, 2].map(|net| slice(("http", 8080), &list(net).into()));
    let mut services = known(&[("web-1", leaving), ("web-2", ready)]);
    let few = cluster_ip();
    let many = service(&ServiceFields {
        cluster_ip: Some("10.96.0.7"),
        external_ips: &external,
        ports: &ports,
        ..ServiceFields::default()
    });
    let said = |services: &Services| -> Vec<String> {
        services.notices(&key()).into_iter().map(|notice| notice.message).collect()
    };
    assert_eq!((http(&services).all.len(), said(&services)), (1200, vec![]), "one address: {few:?}");
    services.apply_service(&key(), Some(many));
    // 500 addresses x 2 ports x 1,000 endpoints
    assert_eq!(
        (http(&services).all.len(), http(&services).cluster(None).len()),
        (1000, 600),
        "all of the ready ones stay"
    );
    assert_eq!(
        said(&services),
        [
            "each family of port TCP 84 has 1000 endpoints at most, ready ones first: with more there would be more than 1000000, \
          the limit for addresses times ports times endpoints of a service; divide the service's addresses or ports among \
          several services"
        ]
    );
    let again = slice(("http", 8080), &list(2).into());
    services.apply_slice(&ObjectKey::new("a", "web-1"), Some(again));
    assert_eq!((http(&services).all.len(), said(&services)), (600, vec![]), "listed twice");
    services.apply_service(&key(), Some(few));
    assert_eq!((http(&services).all.len(), said(&services)), (600, vec![]));
}

/// Rows of single nodes count for each node: one service must not fill the database of a large cluster.
#[test]
fn what_all_nodes_have_of_a_service_is_bounded() {
    let mut services = Services::new(pod_network());
    let node_port = |(port, number): (PortFields, i64)| PortFields { node_port: Some(number), ..port };
    let many: Vec<_> = ports(2000).into_iter().zip(30_000..).map(node_port).collect();
    let fields = ServiceFields { kind: Some("NodePort"), cluster_ip: Some("10.96.0.7"), ..ServiceFields::default() };
    services.apply_service(&key(), Some(service(&ServiceFields { ports: &many, ..fields })));
    let served = |services: &Services| {
        let said: Vec<_> = services.notices(&key()).into_iter().map(|notice| notice.message).collect();
        (services.ports(&key()).len(), said.concat())
    };
    assert_eq!(served(&services), (2000, String::new()));
    // with the cluster IP, which is the same on all nodes, 1,000 addresses
    let places = Places { nodes: 500, node_port_ips: 999, node_port_ips_of_a_family: 500, ..Places::default() };
    assert_eq!(services.apply_places(places), BTreeSet::from([key()]));
    let limit = "there would be more than 1000000, the limit for addresses times ports of a service on all nodes";
    let left_out = format!("cannot use spec.ports: 1000 of 2000 ports are left out: {limit}");
    assert_eq!(served(&services), (1000, format!("{left_out}; divide its addresses or ports among several services")));
    assert_eq!(services.apply_places(places), BTreeSet::new());
    assert_eq!(services.apply_places(Places { in_template: Some(2), ..places }), BTreeSet::from([key()]));
    assert_eq!(served(&services), (2000, String::new()), "one row has the node ports of all nodes");

    // only the 250 nodes with endpoints differ from the others
    let cluster_ip = ServiceFields { kind: None, internal_traffic_policy: Some("Local"), ..fields };
    services.apply_service(&key(), Some(service(&ServiceFields { ports: &many, ..cluster_ip })));
    let endpoint = |n: usize| serde_json::json!({"addresses": [format!("10.128.{n}.3")], "nodeName": format!("n{n}")});
    let endpoints: Vec<_> = (0..250).map(endpoint).collect();
    services.apply_slice(&ObjectKey::new("a", "web-1"), Some(slice(("http", 8080), &endpoints.into())));
    assert_eq!(served(&services).0, 2000);
    let addresses = external(19);
    let more = ServiceFields { external_ips: &addresses, external_traffic_policy: Some("Local"), ..cluster_ip };
    services.apply_service(&key(), Some(service(&ServiceFields { ports: &many, ..more })));
    assert_eq!(served(&services).0, 1_000_000 / (20 * 251));
}

#[test]
fn endpoints_on_all_nodes_have_a_limit() {
    let mut services = Services::default();
    let ports = [("http", 80), ("other", 81)].map(|(name, port)| PortFields {
        name: Some(name.to_owned()),
        port: Some(port),
        node_port: Some(30_000 + port),
        ..PortFields::default()
    });
    let fields = ServiceFields { kind: Some("NodePort"), cluster_ip: Some("10.96.0.7"), ..ServiceFields::default() };
    services.apply_service(&key(), Some(service(&ServiceFields { ports: &ports, ..fields })));
    let endpoint = |n: u32| serde_json::json!({"addresses": [format!("172.18.{}.{}", n / 200, 1 + n % 200)]});
    let hosts: Vec<_> = (0..1200).map(endpoint).collect();
    services.apply_slice(&ObjectKey::new("a", "web-1"), Some(slice(("http", 8080), &hosts.into())));
    assert_eq!((http(&services).cluster(None).len(), services.notices(&key()).len()), (1200, 0));
    // in the rows of each node its address and the cluster IP, each with two ports; the other family has no endpoints
    let places = Places { nodes: 3000, node_port_ips: 6000, node_port_ips_of_a_family: 3000, ..Places::default() };
    services.apply_places(places);
    assert_eq!(http(&services).cluster(None).len(), 10_000_000 / (2 * 6000));
    let said = |services: &Services| -> Vec<String> {
        services.notices(&key()).into_iter().map(|notice| notice.message).collect()
    };
    let message = "each family of port TCP 80 has 833 endpoints at most, ready ones first: with more there would be more than \
                   10000000, the limit for addresses times ports times endpoints of a service on all nodes; divide the \
                   service's addresses or ports among several services";
    assert_eq!(said(&services), [message]);
    // in a template, each node has a variable with the endpoints of each port, as soon as one node differs from others
    services.apply_places(Places { in_template: Some(2), ..places });
    assert_eq!(http(&services).cluster(None).len(), 10_000_000 / (2 * (1201 + 2 * 2 + 3000)));
    services.apply_places(places);
    // without node ports, rows of the 1,200 nodes that are endpoints, and of the others
    let fields = ServiceFields { kind: None, ..fields };
    services.apply_service(&key(), Some(service(&ServiceFields { ports: &ports, ..fields })));
    assert_eq!((http(&services).cluster(None).len(), said(&services)), (1200, vec![]));
}

/// What nodes have by hints are parts of the list: a large cluster may give each node its own endpoint, or those of its zone.
#[test]
fn hints_divide_the_endpoints_among_nodes() {
    let mut services = Services::new(pod_network());
    let fields = ServiceFields { cluster_ip: Some("10.96.0.7"), ..ServiceFields::default() };
    services.apply_service(&key(), Some(service(&ServiceFields { ports: &two_ports(None), ..fields })));
    let endpoint = |n: u32| {
        let hints =
            serde_json::json!({"forNodes": [{"name": format!("n{n}")}], "forZones": [{"name": format!("z{}", n % 3)}]});
        serde_json::json!({"addresses": [pod_ip(n)], "hints": hints})
    };
    let endpoints: Vec<_> = (0..5000).map(endpoint).collect();
    services.apply_slice(&ObjectKey::new("a", "web-1"), Some(slice(("http", 8080), &endpoints.into())));
    services.apply_places(LARGE);
    let used = |services: &Services, name: &str, node: &str| {
        let near = Some(Topology { node, zone: Some("z1") });
        services.backends(&key(), &port(name), Family::V4).cluster(near).len()
    };
    assert_eq!((used(&services, "http", "n7"), services.notices(&key())), (1, vec![]));
    assert_eq!(http(&services).all.len(), 5000);
    // so many rows with all those of a zone or of the cluster would be too much
    assert_eq!(used(&services, "http", "new"), 10_000_000 / (2 * 5000));
    // node ports are at other addresses on each node
    let kind = Some("NodePort");
    services.apply_service(&key(), Some(service(&ServiceFields { kind, ports: &two_ports(Some(30_000)), ..fields })));
    assert_eq!((used(&services, "http", "n7"), services.notices(&key())), (1, vec![]));
    assert_eq!(used(&services, "http", "new"), 10_000_000 / (2 * (5000 + 5000)));

    // each node has rows of its own by the hints of one port, and in them all endpoints of the other port
    services.apply_service(&key(), Some(service(&ServiceFields { ports: &two_ports(None), ..fields })));
    let same = |n: u32| serde_json::json!({"addresses": [pod_ip(n)], "hints": {"forNodes": [{"name": "n0"}]}});
    let endpoints: Vec<_> = (0..5000).map(same).collect();
    services.apply_slice(&ObjectKey::new("a", "web-2"), Some(slice(("other", 8080), &endpoints.into())));
    assert_eq!(used(&services, "other", "n7"), 1000);
    assert!(services.notices(&key())[0].message.starts_with("each family of port TCP 85 has 1000 endpoints at most"));
}

/// Without them the node would have none: a load balancer goes on sending there.
#[test]
fn a_node_has_all_endpoints_of_its_own() {
    let mut services = Services::new(pod_network());
    let ports = two_ports(Some(30_000));
    let fields = local_node_ports(&ports);
    services.apply_service(&key(), Some(service(&fields)));
    let endpoint = |n: u32| serde_json::json!({"addresses": [pod_ip(n)], "nodeName": format!("n{n}")});
    let endpoints: Vec<_> = (0..5000).map(endpoint).collect();
    services.apply_slice(&ObjectKey::new("a", "web-1"), Some(slice(("http", 8080), &endpoints.into())));
    services.apply_places(LARGE);
    assert_eq!(http(&services).cluster(None).len(), 10_000_000 / (2 * (5000 + 5000)));
    let without = |all: &Backends<'_>| (0..5000).step_by(9).find(|n| all.local(&format!("n{n}")).len() != 1);
    assert_eq!(without(&http(&services)), None);
    // inside the cluster too, and there its switch has a list for the external address in the same row
    let (external, inner) = (external(1), two_ports(None));
    let inside = ServiceFields {
        kind: None,
        external_ips: &external,
        ports: &inner,
        external_traffic_policy: None,
        internal_traffic_policy: Some("Local"),
        ..fields
    };
    services.apply_service(&key(), Some(service(&inside)));
    assert_eq!(http(&services).cluster(None).len(), 10_000_000 / (2 * 2 * 5000));
    assert_eq!(http(&services).local("n4999").len(), 1);
}

/// One node may have many addresses, and each lists all of its endpoints.
#[test]
fn what_one_node_has_of_its_own_endpoints_is_bounded() {
    let mut services = Services::new(pod_network());
    let ports = two_ports(Some(30_000));
    let fields = local_node_ports(&ports);
    services.apply_service(&key(), Some(service(&fields)));
    let endpoint = |n: u32| serde_json::json!({"addresses": [pod_ip(n)], "nodeName": "n0"});
    let endpoints: Vec<_> = (0..8000).map(endpoint).collect();
    services.apply_slice(&ObjectKey::new("a", "web-1"), Some(slice(("http", 8080), &endpoints.into())));
    let places = |of_a_family| {
        let (node_port_ips, node_port_ips_of_a_node) = (2 * of_a_family, 2 * of_a_family);
        Places {
            nodes: 1,
            node_port_ips,
            node_port_ips_of_a_family: of_a_family,
            node_port_ips_of_a_node,
            in_template: None,
        }
    };
    services.apply_places(places(300));
    assert_eq!((http(&services).local("n0").len(), services.notices(&key())), (8000, vec![]));
    services.apply_places(places(500));
    assert_eq!(http(&services).local("n0").len(), 10_000_000 / (2 * 1000));
    let message = "each family of port TCP 84 has 5000 endpoints at most, ready ones first: with more there would be more than \
                   10000000, the limit for addresses times ports times endpoints of a service on one node;";
    let said: Vec<_> = services.notices(&key()).into_iter().map(|notice| notice.message).collect();
    assert!(said.len() == 1 && said[0].starts_with(message), "{said:?}");
    // elsewhere the node's addresses do not count
    services.apply_service(&key(), Some(service(&ServiceFields { external_traffic_policy: None, ..fields })));
    assert_eq!(http(&services).local("n0").len(), 8000);
}

const LARGE: Places = Places {
    nodes: 5000,
    node_port_ips: 5000,
    node_port_ips_of_a_family: 5000,
    node_port_ips_of_a_node: 1,
    in_template: None,
};

fn pod_ip(n: u32) -> String {
    format!("10.128.{}.{}", n / 200, 1 + n % 200)
}

fn pod_network() -> AddressRules {
    AddressRules { pods: vec!["10.128.0.0/14".parse().unwrap()], ..AddressRules::default() }
}

fn local_node_ports(ports: &[PortFields]) -> ServiceFields<'_> {
    ServiceFields {
        kind: Some("NodePort"),
        cluster_ip: Some("10.96.0.7"),
        external_traffic_policy: Some("Local"),
        ports,
        ..ServiceFields::default()
    }
}

fn two_ports(node_port: Option<i64>) -> [PortFields; 2] {
    ["http", "other"].map(|name| PortFields {
        name: Some(name.to_owned()),
        port: Some(80 + name.len() as i64),
        node_port: node_port.map(|first| first + name.len() as i64),
        ..PortFields::default()
    })
}
