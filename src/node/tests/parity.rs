//! Compares the host with the one that ovn-kubernetes made for the same node and services: addresses, routes, rules,
//! neighbours, sysctls, nftables, flows. `parity/MODE.differences` lists what differs, below the row of
//! `docs/differences.md` that gives the reason; nothing else may differ, and every listed difference must exist.
#![allow(clippy::unwrap_used)]

mod lab;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use lab::{Lab, eventually, in_node, run};
use ovnkube_model::{
    EndpointFields, EndpointSlice, GatewayMode, Meta, ObjectKey, PortFields, Service, ServiceFields, SliceFields,
};
use ovnkube_node::{Change, GatewaySettings};
use serde_json::{Value, json};

const LINKS: [&str; 2] = ["br-ex", "ovn-k8s-mp0"];
/// A link whose sysctls no program sets.
const UNCHANGED: &str = "br-int";

/// One line for each fact.
type Facts = BTreeSet<String>;

fn of_ip(text: &str) -> Facts {
    let mut facts = Facts::new();
    let mut link = "";
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let after = |key: &str| fields.iter().skip_while(|field| **field != key).nth(1).copied().unwrap_or_default();
        let Some(first) = fields.first() else { continue };
        let kernels = ["fe80:", "ff00:", "::1"].iter().any(|address| line.contains(address));
        if fields.get(1) == Some(&"from") {
            facts.insert(format!("rule {}", fields.join(" ")));
        } else if first.ends_with(':') {
            link = fields[1].trim_end_matches(':').split('@').next().unwrap();
            if LINKS.contains(&link) {
                facts.insert(format!("link {link} mtu {}", after("mtu")));
            }
        } else if line.starts_with(' ') {
            if LINKS.contains(&link) && *first == "link/ether" {
                facts.insert(format!("link {link} address {}", fields[1]));
            } else if LINKS.contains(&link) && first.starts_with("inet") && !kernels {
                facts.insert(format!("address {link} {}", fields.join(" ")));
            }
        } else if line.contains(" lladdr ") {
            facts.insert(format!("neighbour {}", fields.join(" ")));
        } else if !kernels && !["0123456789abcde", "eth0"].contains(&after("dev")) {
            facts.insert(format!("route {}", fields.join(" ")));
        }
    }
    facts
}

fn of_flows(text: &str) -> Facts {
    // the flows of their services have other cookies
    let flow = |line: &str| {
        let line = line.trim();
        if line.starts_with("cookie=") { line.split_once(", ").unwrap().1.to_owned() } else { line.to_owned() }
    };
    text.lines().filter(|line| line.contains("actions=")).map(|line| format!("flow {}", flow(line))).collect()
}

fn of_nft(text: &str) -> Facts {
    let mut facts = Facts::new();
    let (mut table, mut block, mut elements) = (String::new(), String::new(), String::new());
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields.as_slice() {
            ["table", family, name, "{"] => table = format!("{family} {name}"),
            ["chain" | "set" | "map", ..] => block = fields[..2].join(" "),
            ["}"] => {
                let list = elements.trim_start_matches("elements = {").trim_end_matches('}');
                for element in list.split(',').map(str::trim).filter(|element| !element.is_empty()) {
                    facts.insert(format!("nft {table} {block}: {element}"));
                }
                elements.clear();
            }
            [] | ["comment" | "type" | "typeof" | "flags", ..] if !block.starts_with("chain") => {}
            [] | ["comment", ..] => {}
            _ if block.starts_with("chain") => {
                let mut rule = fields.join(" ");
                if let Some((head, tail)) = rule.clone().split_once("counter packets ") {
                    rule = format!("{head}counter {}", tail.splitn(4, ' ').nth(3).unwrap_or_default());
                }
                facts.insert(format!("nft {table} {block}: {}", rule.trim()));
            }
            _ => elements += &fields.join(" "),
        }
    }
    facts
}

/// Sysctls that differ from those of an unchanged link, here and there; those that this kernel lacks are left out.
fn sysctls() -> (Facts, Facts) {
    let theirs: BTreeMap<&str, &str> =
        include_str!("parity/sysctl").lines().filter_map(|line| line.split_once(" = ")).collect();
    let read = |family: &str, link: &str, key: &str| {
        let path = format!("/proc/sys/net/{family}/conf/{link}/{key}");
        std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
    };
    let (mut have, mut want) = (Facts::new(), Facts::new());
    for (name, value) in &theirs {
        let [_, family, _, link, key] = name.split('.').collect::<Vec<_>>()[..] else { panic!("{name}") };
        let (Some(ours), Some(unchanged)) = (read(family, link, key), read(family, UNCHANGED, key)) else { continue };
        if !LINKS.contains(&link) || key == "mtu" {
            continue;
        }
        let unchanged_there = theirs.get(format!("net.{family}.conf.{UNCHANGED}.{key}").as_str()).unwrap_or(value);
        if value != unchanged_there {
            want.insert(format!("sysctl {name} = {value}"));
        }
        if ours != unchanged {
            have.insert(format!("sysctl {name} = {ours}"));
        }
    }
    (have, want)
}

fn meta(labels: &BTreeMap<String, String>) -> Meta<'_> {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    Meta { uid: "u", created: 1, labels, annotations: &NONE }
}

fn ports(ports: Value) -> Vec<PortFields> {
    serde_json::from_value(ports).unwrap()
}

/// With an endpoint on this node and one on another.
fn service(name: &str, port: &Value, fields: ServiceFields<'_>) -> [Change; 2] {
    let ports_of = ports(json!([port]));
    let fields = ServiceFields { ports: &ports_of, ..fields };
    let key = ObjectKey::new("a", name);
    let service = Service::parse(&meta(&BTreeMap::new()), &fields);
    let labels = BTreeMap::from([("kubernetes.io/service-name".to_owned(), name.to_owned())]);
    let endpoints = json!([
        {"addresses": ["10.128.0.5"], "nodeName": "node-1", "conditions": {"ready": true}},
        {"addresses": ["10.129.0.5"], "nodeName": "node-2", "conditions": {"ready": true}},
    ]);
    let endpoints: Vec<EndpointFields> = serde_json::from_value(endpoints).unwrap();
    let targets = ports(json!([{"name": "http", "port": 8080, "protocol": "TCP"}]));
    let slice = SliceFields { address_type: "IPv4", ports: &targets, endpoints: &endpoints };
    let slice = EndpointSlice::parse(&meta(&labels), slice);
    [
        Change::Service(key, Some(Box::new(service))),
        Change::EndpointSlice(ObjectKey::new("a", format!("{name}-x")), Some(Box::new(slice))),
    ]
}

/// The services of the compared cluster that have an effect on a host.
fn services() -> Vec<Change> {
    let ip = |n: u8| vec![format!("10.96.1.{n}")];
    let none = ServiceFields::default;
    let web = json!({"name": "http", "port": 80, "targetPort": 8080});
    let external = vec!["192.0.2.10".to_owned()];
    let on_node = |port: u16| json!({"name": "http", "port": 80, "targetPort": 8080, "nodePort": port});
    [
        service("affinity", &web, ServiceFields { cluster_ips: &ip(2), external_ips: &external, ..none() }),
        service("np", &on_node(30080), ServiceFields { cluster_ips: &ip(3), kind: Some("NodePort"), ..none() }),
        service(
            "np-etp-local",
            &on_node(30081),
            ServiceFields {
                cluster_ips: &ip(4),
                kind: Some("LoadBalancer"),
                external_traffic_policy: Some("Local"),
                ingress: &[("192.0.2.20".to_owned(), None)],
                ..none()
            },
        ),
        service(
            "itp-local",
            &web,
            ServiceFields { cluster_ips: &ip(5), internal_traffic_policy: Some("Local"), ..none() },
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn start(lab: &mut Lab, mode: GatewayMode) {
    lab.start_ovs();
    lab.make_bridge();
    lab.node_subnets = vec!["10.128.0.0/23"];
    lab.start_ovn();
    lab.make_router();
    lab.gateway = Some(GatewaySettings { node_port: true, ..lab::gateway::settings("br-ex", mode) });
    lab.start_agent();
    for change in services().into_iter().chain([Change::NodesSynced]) {
        lab.send(change);
    }
    lab.ready();
    eventually("the services", || {
        lab.ofctl("dump-flows", &["--no-stats"]).contains("192.0.2.20")
            && run("nft", &["list", "ruleset"]).contains("30081")
    });
}

fn ours(lab: &Lab) -> Facts {
    let number = |link: &str| lab.vsctl(&format!("get Interface {link} ofport"));
    let (uplink, patch) = (number("eth0"), number("patch-br-ex_node-1-to-br-int"));
    // ports get the numbers that they have there
    let flows = lab.ofctl("dump-flows", &["--no-stats"]);
    let numbered = [(uplink, "UPLINK"), (patch, "PATCH")].iter().fold(flows, |text, (number, name)| {
        let text = text.replace(&format!("in_port={number},"), &format!("in_port={name},"));
        let text = text.replace(&format!("in_port={number} "), &format!("in_port={name} "));
        text.lines().map(|line| replace_output(line, number, name) + "\n").collect()
    });
    let flows = numbered.replace("UPLINK", "1").replace("PATCH", "2");
    let shown = ["-d addr", "route show table all", "-6 route show table all", "rule", "neigh show nud permanent"];
    let shown = shown.map(|args| run("ip", &args.split(' ').collect::<Vec<_>>())).concat();
    let mut rules = of_nft(&run("nft", &["-s", "list", "ruleset"]));
    // without the lab's own, and without the chains that look services up, which the test `services` compares
    rules.retain(|rule| !rule.contains(" seal ") && !rule.contains(" chain services"));
    [of_ip(&shown), of_flows(&flows), rules].into_iter().flatten().collect()
}

fn replace_output(line: &str, number: &str, name: &str) -> String {
    let actions = line.split(',').map(|part| {
        let (head, output) = part.rsplit_once("output:").unwrap_or(("", ""));
        if output == number { format!("{head}output:{name}") } else { part.to_owned() }
    });
    actions.collect::<Vec<_>>().join(",")
}

/// Lines `- theirs` and `+ ours`, below the row that gives the reason.
fn listed(text: &str) -> Facts {
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/differences.md")).unwrap();
    for row in text.lines().filter_map(|line| line.strip_prefix("# ")) {
        assert!(docs.contains(&format!("\n| {row} |")), "docs/differences.md has no row {row:?}");
    }
    text.lines().filter(|line| line.starts_with(['-', '+'])).map(str::to_owned).collect()
}

fn is_as_listed(mode: GatewayMode, theirs: [&'static str; 3], list: &'static str) {
    in_node(move |lab| {
        start(lab, mode);
        let [ip, flows, nft] = theirs;
        let mut want: Facts = [of_ip(ip), of_flows(flows), of_nft(nft)].into_iter().flatten().collect();
        // ovn-controller and the switch need a moment for MAC addresses and ports
        let deadline = Instant::now() + Duration::from_secs(180);
        loop {
            let mut have = ours(lab);
            let (set, set_there) = sysctls();
            have.extend(set);
            want.extend(set_there);
            let gone = want.difference(&have).map(|fact| format!("- {fact}"));
            let differences: Facts = gone.chain(have.difference(&want).map(|fact| format!("+ {fact}"))).collect();
            let listed = listed(list);
            if differences == listed {
                break;
            }
            let show = |facts: &Facts, but: &Facts| facts.difference(but).cloned().collect::<Vec<_>>().join("\n");
            assert!(
                Instant::now() < deadline,
                "differs and is not listed:\n{}\nis listed and does not differ:\n{}",
                show(&differences, &listed),
                show(&listed, &differences)
            );
            std::thread::sleep(Duration::from_millis(100));
        }
        lab.stop_agent();
    });
}

#[test]
fn the_host_with_shared_gateways() {
    let theirs =
        [include_str!("parity/shared.ip"), include_str!("parity/shared.flows"), include_str!("parity/shared.nft")];
    is_as_listed(GatewayMode::Shared, theirs, include_str!("parity/shared.differences"));
}

#[test]
fn the_host_with_local_gateways() {
    let theirs =
        [include_str!("parity/local.ip"), include_str!("parity/local.flows"), include_str!("parity/local.nft")];
    is_as_listed(GatewayMode::Local, theirs, include_str!("parity/local.differences"));
}
