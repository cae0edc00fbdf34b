//! Services on a real bridge and in the kernel.
#![allow(clippy::unwrap_used)]

mod lab;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use lab::{Lab, Release, eventually, in_node, in_node_of, run};
use ovnkube_model::{
    EndpointFields, EndpointSlice, GatewayMode, Meta, Object, ObjectKey, PortFields, Service, ServiceFields,
    SliceFields,
};
use ovnkube_node::{Change, GatewaySettings};
use serde_json::{Value, json};

fn with_gateway(lab: &mut Lab, mode: GatewayMode) {
    lab.start_ovs();
    lab.make_bridge();
    lab.start_ovn();
    lab.make_router();
    lab.gateway = Some(GatewaySettings { node_port: true, ..lab::gateway::settings("br-ex", mode) });
    lab.start_agent();
    lab.ready();
}

fn meta(labels: &BTreeMap<String, String>) -> Meta<'_> {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    Meta { uid: "u", created: 1, labels, annotations: &NONE }
}

fn key() -> ObjectKey {
    ObjectKey::new("a", "web")
}

/// A load balancer with local endpoints only, on port 80 and UDP 53.
fn service(internal_policy: &str) -> Change {
    let ports = json!([
        {"name": "http", "port": 80, "nodePort": 30080}, {"name": "dns", "port": 53, "nodePort": 30053, "protocol": "UDP"},
    ]);
    let ports: Vec<PortFields> = serde_json::from_value(ports).unwrap();
    let fields = ServiceFields {
        kind: Some("LoadBalancer"),
        cluster_ips: &["10.96.1.3".to_owned()],
        ingress: &[("192.0.2.20".to_owned(), None)],
        ports: &ports,
        external_traffic_policy: Some("Local"),
        internal_traffic_policy: Some(internal_policy),
        health_check_port: 32080,
        ..ServiceFields::default()
    };
    Change::Service(key(), Some(Box::new(Service::parse(&meta(&BTreeMap::new()), &fields))))
}

fn endpoint(ip: &str, node: &str) -> Change {
    endpoints(&json!([{"addresses": [ip], "nodeName": node}]))
}

fn endpoints(list: &Value) -> Change {
    let labels = BTreeMap::from([("kubernetes.io/service-name".to_owned(), "web".to_owned())]);
    let ports = json!([{"name": "http", "port": 8080}, {"name": "dns", "port": 5353, "protocol": "UDP"}]);
    let ports: Vec<PortFields> = serde_json::from_value(ports).unwrap();
    let endpoints: Vec<EndpointFields> = serde_json::from_value(list.clone()).unwrap();
    let fields = SliceFields { address_type: "IPv4", ports: &ports, endpoints: &endpoints };
    Change::EndpointSlice(ObjectKey::new("a", "web-x"), Some(Box::new(EndpointSlice::parse(&meta(&labels), fields))))
}

fn flows(lab: &Lab) -> String {
    lab.ofctl("dump-flows", &["--no-stats", "cookie=0xdeff105/-1"])
}

fn table() -> String {
    run("nft", &["-s", "list", "table", "inet", "ovn-kubernetes"]).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Status and body.
fn health() -> Option<(String, Value)> {
    let output = std::process::Command::new("curl")
        .args(["-s", "-w", "\n%{http_code}", "http://172.18.0.2:32080/healthz"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, status) = text.split_once('\n')?;
    Some((status.to_owned(), serde_json::from_str(body).ok()?))
}

#[test]
fn a_service_is_added_changed_and_deleted() {
    in_node(|lab| {
        with_gateway(lab, GatewayMode::Shared);
        let (before, table_before) = (flows(lab), table());
        let rules = run("ip", &["rule"]);
        assert!(rules.contains("30:\tfrom all fwmark 0x1745ec lookup 7"), "{rules}");
        let routes = run("ip", &["route", "show", "table", "7"]);
        assert!(routes.contains("10.96.0.0/16 via 10.128.0.1 dev ovn-k8s-mp0"), "{routes}");

        run("sysctl", &["-q", "net.ipv6.bindv6only=1"]);
        let foreign = std::net::TcpListener::bind("0.0.0.0:32080").unwrap();
        lab.send(service("Local"));
        eventually("the node port's flow", || flows(lab).contains("nw_dst=172.18.0.2,tp_dst=30080 actions=output:"));
        for part in ["udp . 30053 : 10.96.1.3 . 53", "192.0.2.20 . tcp . 80 : 10.96.1.3 . 80", "tcp . 30080"] {
            eventually(part, || table().contains(part));
        }
        let body = |n: u32| json!({"service": {"namespace": "a", "name": "web"}, "localEndpoints": n, "serviceProxyHealthy": true});
        let mut warnings = Vec::new();
        eventually("a warning", || {
            warnings.extend(lab.warnings());
            warnings
                .iter()
                .any(|warning| warning.message.contains("cannot listen on healthCheckNodePort 32080 of a/web"))
        });
        let of_service = Object::Service { key: key(), uid: "u".into() };
        assert!(warnings.iter().any(|warning| warning.about.as_ref() == Some(&of_service)), "{warnings:?}");
        drop(foreign);
        eventually("an answer", || health() == Some(("503".to_owned(), body(0))));
        lab.send(endpoint("10.128.0.5", "node-1"));
        eventually("a healthy answer", || health() == Some(("200".to_owned(), body(1))));
        // a client that would keep its connection: no connection outlives the port
        let mut client = TcpStream::connect("172.18.0.2:32080").unwrap();
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        client.write_all(b"GET /healthz HTTP/1.1\r\nHost: node\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        // an endpoint on the host itself
        lab.send(endpoint("172.18.0.2", "node-1"));
        let to_host = "actions=ct(commit,table=6,zone=64003,nat(dst=172.18.0.2:8080))";
        eventually("the flow to the host", || flows(lab).contains(to_host));
        let to_host = "10.96.1.3 . tcp . 80 : 172.18.0.2 . 8080";
        eventually(to_host, || table().contains(to_host));

        run("nft", &["delete", "table", "inet", "ovn-kubernetes"]);
        eventually("the table", || table_has("tcp . 30080 : 10.96.1.3 . 80"));
        lab.send(Change::Service(key(), None));
        eventually("the state before", || (flows(lab), table()) == (before.clone(), table_before.clone()));
        eventually("a closed port", || health().is_none());
    });
}

fn table_has(part: &str) -> bool {
    let listed = std::process::Command::new("nft").args(["list", "table", "inet", "ovn-kubernetes"]).output().unwrap();
    String::from_utf8_lossy(&listed.stdout).split_whitespace().collect::<Vec<_>>().join(" ").contains(part)
}

/// The switch has connections that its flows no longer make.
#[test]
fn udp_connections_in_the_switch_are_ended() {
    udp_connections_end(Release::Lts);
}

#[test]
fn udp_connections_in_the_switch_are_ended_by_the_oldest_release() {
    udp_connections_end(Release::Host);
}

fn udp_connections_end(release: Release) {
    in_node_of(release, |lab| {
        with_gateway(lab, GatewayMode::Shared);
        lab.send(service("Cluster"));
        let pods = |hosts: std::ops::RangeInclusive<u8>| {
            let pod = |n| json!({"addresses": [format!("10.128.0.{n}")], "nodeName": "node-2"});
            endpoints(&hosts.map(pod).collect())
        };
        lab.send(pods(8..=9));
        eventually("the service", || flows(lab).contains("tp_dst=30053"));
        let pid = std::fs::read_to_string(lab.path("ovs-vswitchd.pid")).unwrap();
        let control = lab.path(&format!("ovs-vswitchd.{}.ctl", pid.trim()));
        let connections = || lab.tool("ovs-appctl", &["-t", &control, "dpctl/dump-conntrack"]);
        let stands = |ip: &str| {
            connections().lines().any(|line| line.contains(&format!("src={ip},")) && line.contains("zone=9"))
        };
        // clients, and an address in the place of OVN's load balancer
        let senders = [8, 9].map(|n| {
            let sender = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
            let (port, ip) = (sender.local_addr().unwrap().port(), format!("10.128.0.{n}"));
            let matches = format!("priority=1000,udp,in_port=LOCAL,nw_dst=10.96.1.3,tp_src={port}");
            lab.ofctl("add-flow", &[&format!("{matches},actions=ct(commit,zone=9,nat(dst={ip}:5353))")]);
            (sender, ip)
        });
        let connect = || {
            for (sender, ip) in &senders {
                eventually("a connection", || {
                    sender.send_to(b"x", "10.96.1.3:53").unwrap();
                    stands(ip)
                });
            }
        };
        connect();
        lab.send(pods(8..=8));
        eventually("its end", || !stands("10.128.0.9"));
        assert!(stands("10.128.0.8"), "another endpoint's");
        // many at once
        lab.send(pods(8..=60));
        connect();
        lab.send(pods(8..=8));
        eventually("its end", || !stands("10.128.0.9"));
        assert!(stands("10.128.0.8"), "another endpoint's");
    });
}
