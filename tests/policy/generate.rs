//! Clusters and policies from a seed.
//!
//! Policies use everything that the API server accepts. They are generated after the pods, because address
//! blocks are interesting only around addresses of pods.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use crate::Random;
use crate::evaluate::{Cluster, Protocol, addresses};

/// The ports that servers listen on and the tables test. Rules also use others.
pub const PORTS: [u16; 5] = [80, 81, 443, 5353, 8080];

/// Addresses outside the cluster.
pub const OUTSIDE: [&str; 3] = ["198.51.100.10", "203.0.113.7", "2001:db8:ffff::10"];

const KEYS: [&str; 5] = ["app", "tier", "app.kubernetes.io/name", "x-1.example.com/Z_z.0", "Env"];
/// Equal except for case, empty, similar to other types, with every permitted character, of every permitted length.
const VALUES: [&str; 9] = [
    "web",
    "Web",
    "db",
    "",
    "0",
    "true",
    "a.b_c-D",
    "x",
    "w12345678901234567890123456789012345678901234567890123456789012",
];
const NAMED: [&str; 4] = ["web", "api", "dns-1", "z"];

/// The size of a cluster.
#[derive(Debug, Clone)]
pub struct Size {
    pub namespaces: usize,
    pub pods: usize,
    /// The pods are assigned to these in turn; without any, the scheduler assigns them.
    pub nodes: Vec<String>,
    pub image: String,
}

/// Namespaces and pods, as JSON for the API server.
pub fn objects(seed: u64, size: &Size) -> Vec<Value> {
    let mut random = Random::new(seed);
    let mut objects = Vec::new();
    for number in 0..size.namespaces {
        let mut labels = labels(&mut random, 3);
        let name = format!("truth-{number}");
        labels.insert("kubernetes.io/metadata.name".into(), json!(name));
        labels.insert("truth".into(), json!("yes"));
        let meta = json!({"name": name, "labels": labels});
        objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": meta}));
    }
    for number in 0..size.pods {
        objects.push(pod(&mut random, size, number));
    }
    objects
}

/// A pod in the network of its node, which has these addresses.
pub fn host_pod(seed: u64, name: &str, node: &str, ips: &[&str]) -> Value {
    let size = Size { namespaces: 3, pods: 3, nodes: vec![node.to_owned()], image: "none".into() };
    let mut random = Random::new(seed);
    let number = random.below(size.pods);
    let mut pod = pod(&mut random, &size, number);
    pod["metadata"]["name"] = json!(name);
    pod["spec"]["hostNetwork"] = json!(true);
    // only one container can have a port of its node
    pod["spec"]["containers"].as_array_mut().unwrap().truncate(1);
    let list: Vec<_> = ips.iter().map(|ip| json!({"ip": ip})).collect();
    pod["status"] = json!({"podIP": ips[0], "podIPs": list, "hostIP": ips[0], "hostIPs": list});
    pod
}

/// At most this many labels.
pub fn labels(random: &mut Random, most: usize) -> Map<String, Value> {
    let keys = random.some(&KEYS, 0, most);
    keys.into_iter().map(|key| (key.to_owned(), json!(random.one(&VALUES)))).collect()
}

fn pod(random: &mut Random, size: &Size, number: usize) -> Value {
    // a dot and a dash are both allowed, and neighbours in a sorted list differ only by them
    let name = format!("p{}{}", random.one(&["-", "."]), number);
    let meta = json!({
        "namespace": format!("truth-{}", number % size.namespaces),
        "name": name,
        "labels": labels(random, 4),
    });
    let mut containers = vec![container(random, "a", size)];
    // each of two containers may have a port of the same name
    if random.chance(25) {
        containers.push(container(random, "b", size));
    }
    let mut spec = json!({"terminationGracePeriodSeconds": 0, "containers": containers});
    if !size.nodes.is_empty() {
        // not aligned with the namespaces
        let place = (number + number / size.nodes.len()) % size.nodes.len();
        spec["nodeName"] = json!(size.nodes[place]);
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
}

fn container(random: &mut Random, name: &str, size: &Size) -> Value {
    let names = random.some(&NAMED, 0, 4);
    let ports = names.into_iter().map(|name| {
        let protocol = protocol(random);
        json!({"name": name, "containerPort": random.one(&PORTS), "protocol": protocol.name()})
    });
    let mut ports: Vec<Value> = ports.collect();
    // a container has each port of each protocol once
    let mut seen = std::collections::BTreeSet::new();
    ports.retain(|port| seen.insert((port["containerPort"].to_string(), port["protocol"].to_string())));
    json!({"name": name, "image": size.image, "args": ["pause"], "ports": ports})
}

fn protocol(random: &mut Random) -> Protocol {
    random.one(&[Protocol::Tcp, Protocol::Tcp, Protocol::Udp, Protocol::Sctp])
}

/// Policies for a cluster whose pods already have addresses.
pub fn policies(seed: u64, count: usize, cluster: &Cluster) -> Vec<Value> {
    let mut random = Random::new(seed ^ 0x706f_6c69_6379);
    let namespaces: Vec<&str> = cluster.namespaces.iter().filter_map(|n| n.metadata.name.as_deref()).collect();
    let mut ips: Vec<IpAddr> = cluster.pods.iter().flat_map(addresses).collect();
    ips.extend(OUTSIDE.iter().map(|ip| ip.parse::<IpAddr>().unwrap()));
    let mut make = |number: usize| {
        let namespace = random.one(&namespaces);
        let name = format!("policy{}{number}", random.one(&["-", "."]));
        let meta = json!({"namespace": namespace, "name": name});
        let spec = spec(&mut random, &ips);
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": meta, "spec": spec})
    };
    (0..count).map(&mut make).collect()
}

fn spec(random: &mut Random, ips: &[IpAddr]) -> Value {
    let mut spec = json!({"podSelector": selector(random, 20)});
    let types = random.one(&[&[][..], &["Ingress"], &["Ingress"], &["Egress"], &["Ingress", "Egress"]]);
    if !types.is_empty() {
        spec["policyTypes"] = json!(types);
    }
    // there may be rules in a direction that the types do not include
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        if random.chance(85) {
            let count = random.below(4);
            spec[direction] = (0..count).map(|_| rule(random, peers, ips)).collect();
        }
    }
    spec
}

fn rule(random: &mut Random, peers: &str, ips: &[IpAddr]) -> Value {
    let mut rule = json!({});
    if !random.chance(10) {
        let count = random.below(4);
        rule[peers] = (0..count).map(|_| peer(random, ips)).collect();
    }
    if !random.chance(35) {
        let count = random.below(4);
        rule["ports"] = (0..count).map(|_| port(random)).collect();
    }
    rule
}

fn peer(random: &mut Random, ips: &[IpAddr]) -> Value {
    match random.below(10) {
        0..=2 => json!({"podSelector": selector(random, 10)}),
        3..=4 => json!({"namespaceSelector": selector(random, 10)}),
        5..=6 => json!({"namespaceSelector": selector(random, 15), "podSelector": selector(random, 10)}),
        _ => json!({"ipBlock": block(random, ips)}),
    }
}

fn selector(random: &mut Random, empty_percent: usize) -> Value {
    let mut selector = json!({});
    if random.chance(empty_percent) {
        return selector;
    }
    if random.chance(40) {
        let keys = random.some(&KEYS, 1, 2);
        selector["matchLabels"] = keys.into_iter().map(|k| (k.to_owned(), json!(random.one(&VALUES)))).collect();
        return selector;
    }
    let count = 1 + random.below(2);
    selector["matchExpressions"] = (0..count).map(|_| requirement(random)).collect();
    selector
}

fn requirement(random: &mut Random) -> Value {
    let key = if random.chance(5) { "nobody.has/this" } else { random.one(&KEYS) };
    match random.below(4) {
        0 => json!({"key": key, "operator": "Exists"}),
        1 => json!({"key": key, "operator": "DoesNotExist"}),
        which => {
            let operator = if which == 2 { "In" } else { "NotIn" };
            json!({"key": key, "operator": operator, "values": random.some(&VALUES, 1, 4)})
        }
    }
}

/// A block around an address, with exceptions around addresses inside it.
fn block(random: &mut Random, ips: &[IpAddr]) -> Value {
    let ip = random.one(ips);
    let lengths: &[u32] = if ip.is_ipv4() { &[0, 8, 16, 24, 28, 31, 32] } else { &[0, 32, 64, 80, 112, 124, 128] };
    let length = random.one(lengths);
    let mut block = json!({"cidr": cidr(ip, length)});
    let longer: Vec<u32> = lengths.iter().copied().filter(|l| *l > length).collect();
    if longer.is_empty() || random.chance(40) {
        return block;
    }
    let of_family = ips.iter().copied().filter(|other| other.is_ipv4() == ip.is_ipv4());
    let within: Vec<IpAddr> = of_family.filter(|other| cidr(*other, length) == cidr(ip, length)).collect();
    let count = random.below(4);
    block["except"] = (0..count).map(|_| json!(cidr(random.one(&within), random.one(&longer)))).collect();
    block
}

/// The block of this length that contains the address.
fn cidr(ip: IpAddr, length: u32) -> String {
    match ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or_default();
            format!("{}/{length}", std::net::Ipv4Addr::from(u32::from(ip) & mask))
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or_default();
            format!("{}/{length}", std::net::Ipv6Addr::from(u128::from(ip) & mask))
        }
    }
}

fn port(random: &mut Random) -> Value {
    let mut port = json!({});
    // TCP is also the default
    if !random.chance(15) {
        port["protocol"] = json!(protocol(random).name());
    }
    match random.below(10) {
        0 => {}
        1..=4 => port["port"] = json!(random.one(&PORTS)),
        5..=7 => port["port"] = json!(random.one(&NAMED)),
        _ => {
            let first = random.one(&[1, 80, 81, 100, 443, 5000]);
            port["port"] = json!(first);
            port["endPort"] = json!(first + random.one(&[0, 1, 400, 8000, 60_000]));
        }
    }
    port
}
