//! Services on a real database: a change writes only what it changes, and whatever happens to
//! services, the rows are in the end those of a fresh start.

use std::collections::BTreeMap;

use ovnkube_ovn::OwnerId;
use ovnkube_ovn::nb::load_balancer;
use ovnkube_tests::nb::{Daemon, Release, Server};
use ovnkube_tests::settings::Settings;
use ovnkube_tests::{Controller, Objects, rules};
use proptest::prelude::*;
use serde_json::{Value, json};

const NODES: usize = 3;

/// A node with a gateway that answers on node ports.
fn node(n: usize, zone: Option<usize>) -> Value {
    let ip = format!("172.18.0.{}", n + 2);
    let gateway = json!({"default": {
        "mode": "shared", "interface-id": format!("br-ex_n{n}"), "mac-address": format!("02:42:ac:12:00:0{n}"),
        "ip-addresses": [format!("{ip}/16")], "next-hops": ["172.18.255.1"], "node-port-enable": "true",
    }});
    let annotations = json!({
        "k8s.ovn.org/node-chassis-id": format!("chassis-n{n}"), "k8s.ovn.org/l3-gateway-config": gateway.to_string(),
        "k8s.ovn.org/host-cidrs": json!([format!("{ip}/16")]).to_string(),
    });
    let labels = zone.map_or(json!({}), |zone| json!({"topology.kubernetes.io/zone": format!("z{zone}")}));
    json!({"kind": "Node", "metadata": {"name": format!("n{n}"), "annotations": annotations, "labels": labels}})
}

fn service(name: &str, ip: usize, more: &Value) -> Value {
    let mut spec = json!({"clusterIP": format!("10.96.0.{ip}"), "ports": [{"name": "http", "port": 80}]});
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    json!({"kind": "Service", "metadata": {"name": name, "namespace": "a"}, "spec": spec})
}

fn slice(service: &str, name: &str, endpoints: &[Value]) -> Value {
    let labels = json!({"kubernetes.io/service-name": service});
    json!({
        "kind": "EndpointSlice", "metadata": {"name": format!("{service}-{name}"), "namespace": "a", "labels": labels},
        "addressType": "IPv4", "endpoints": endpoints, "ports": [{"name": "http", "port": 8080}],
    })
}

fn endpoints(ips: &[&str]) -> Vec<Value> {
    ips.iter().map(|ip| json!({"addresses": [ip], "nodeName": "n0"})).collect()
}

struct Lab {
    server: Server,
    objects: Objects,
    controller: Controller,
}

impl Lab {
    /// Three nodes and twenty services with endpoints; every fifth has a node port.
    async fn up(template: bool) -> Self {
        Self::on(Release::Lts, template).await
    }

    async fn on(release: Release, template: bool) -> Self {
        let server = Server::new(release);
        let mut objects = Objects::default();
        for n in 0..NODES {
            objects.put(node(n, None));
        }
        objects.put(ovnkube_tests::objects::namespace("a"));
        for n in 0..20 {
            let name = format!("s{n}");
            let port = json!({"type": "NodePort", "ports": [{"name": "http", "port": 80, "nodePort": 30000 + n}]});
            let more = if n % 5 == 4 { port } else { json!({}) };
            objects.put(service(&name, 10 + n, &more));
            objects.put(slice(&name, "1", &endpoints(&["10.128.0.5", "10.128.0.6"])));
        }
        let network = Settings { svc_template_support: template, ..Settings::default() }.network();
        let mut controller = Controller::start(network, server.client().await, &objects);
        controller.settle(&mut objects).await;
        Self { server, objects, controller }
    }

    /// What the database recorded for these changes: `TABLE NAME: COLUMN COLUMN`.
    async fn written(&mut self, objects: Vec<Value>) -> Vec<String> {
        let before = self.server.log().len();
        for object in objects {
            let changes = if object["gone"] == true {
                let name = object["name"].as_str().unwrap();
                self.objects.delete(object["kind"].as_str().unwrap(), "a", name)
            } else {
                self.objects.put(object)
            };
            self.controller.take(changes);
        }
        // deleted rows have no name afterwards
        let names = self.names();
        self.controller.settle(&mut self.objects).await;
        let names: BTreeMap<_, _> = names.into_iter().chain(self.names()).collect();
        let log = self.server.log();
        let mut written = Vec::new();
        for record in log.iter().skip(before) {
            for (table, rows) in record.as_object().unwrap().iter().filter(|(table, _)| !table.starts_with('_')) {
                for (uuid, row) in rows.as_object().unwrap() {
                    let columns = match row.as_object() {
                        Some(columns) => columns.keys().cloned().collect::<Vec<_>>().join(" "),
                        None => "deleted".to_owned(),
                    };
                    let name = names.get(uuid).map_or("", String::as_str);
                    written.push(format!("{table} {name}: {columns}"));
                }
            }
        }
        written.sort();
        written
    }

    fn names(&self) -> BTreeMap<String, String> {
        use ovnkube_ovn::nb;
        let cache = self.controller.nb.cache();
        let of = |table, column| {
            let rows = cache.iter(table).map(|(uuid, row)| (uuid.to_string(), row.str(column).to_owned()));
            rows.collect::<Vec<_>>()
        };
        let groups = of(nb::load_balancer_group::TABLE, nb::load_balancer_group::NAME);
        let all = [of(nb::load_balancer::TABLE, nb::load_balancer::NAME), groups];
        let places = [
            of(nb::logical_switch::TABLE, nb::logical_switch::NAME),
            of(nb::logical_router::TABLE, nb::logical_router::NAME),
        ];
        all.into_iter().chain(places).flatten().collect()
    }
}

/// `kubectl replace --force`, faster than northd reacts: with one uuid for both rows, 25.03 crashed here.
#[tokio::test(flavor = "multi_thread")]
async fn northd_survives_recreated_services() {
    let mut lab = Lab::on(Release::Trixie, false).await;
    let south = Server::southbound(Release::Trixie);
    let mut northd = Daemon::northd(&lab.server, &south);
    let made_again: Vec<_> = lab.objects.of("Service").cloned().collect();
    lab.server.nbctl(&["--wait=sb", "sync"]);
    for round in 0..3 {
        northd.signal("STOP");
        for service in &made_again {
            let name = service["metadata"]["name"].as_str().unwrap();
            lab.controller.take(lab.objects.delete("Service", "a", name));
            lab.controller.settle(&mut lab.objects).await;
            lab.controller.take(lab.objects.put(service.clone()));
            lab.controller.settle(&mut lab.objects).await;
        }
        northd.signal("CONT");
        lab.server.nbctl(&["--wait=sb", "--timeout=60", "sync"]);
        assert_eq!(northd.ended(), None, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_writes_only_changed_columns() {
    let mut lab = Lab::up(false).await;
    let three = &["10.128.0.5", "10.128.0.6", "10.128.0.7"];
    let http = "Load_Balancer Service_a/s0_TCP_cluster: vips";
    // one more endpoint
    assert_eq!(lab.written(vec![slice("s0", "1", &endpoints(three))]).await, [http]);
    // the same again, in another order, and with fields that ovnkube does not read
    let mut updated = slice("s0", "1", &endpoints(&["10.128.0.7", "10.128.0.5", "10.128.0.6"]));
    updated["metadata"]["resourceVersion"] = json!("77");
    updated["endpoints"][0]["targetRef"] = json!({"kind": "Pod", "name": "p"});
    assert_eq!(lab.written(vec![updated]).await, [""; 0]);
    // the slices are split differently; for a moment an endpoint is in both
    assert_eq!(lab.written(vec![slice("s0", "2", &endpoints(&["10.128.0.7"]))]).await, [""; 0]);
    assert_eq!(lab.written(vec![slice("s0", "1", &endpoints(&three[..2]))]).await, [""; 0]);
    // another port
    let ports = json!({"ports": [{"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "TCP"}]});
    assert_eq!(lab.written(vec![service("s0", 10, &ports)]).await, [http]);
    // affinity is an option
    let affinity =
        json!({"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}}});
    let one = lab.written(vec![service("s1", 11, &affinity)]).await;
    assert_eq!(one, ["Load_Balancer Service_a/s1_TCP_cluster: options"]);
    // a node port has a row for each node
    let rows = lab.written(vec![slice("s4", "1", &endpoints(three))]).await;
    let each = |what: &str, columns: &str| {
        (0..NODES).map(|n| format!("{}: {columns}", what.replace('%', &format!("n{n}")))).collect::<Vec<_>>()
    };
    let mut expected = vec!["Load_Balancer Service_a/s4_TCP_cluster: vips".to_owned()];
    expected.extend(each("Load_Balancer Service_a/s4_TCP_node_router+switch_%", "vips"));
    assert_eq!(rows, expected);
    // it is added and removed
    let node_port = json!({"type": "NodePort", "ports": [{"name": "http", "port": 80, "nodePort": 30100}]});
    let mut places = each("Logical_Router GR_%", "load_balancer");
    places.extend(each("Logical_Switch %", "load_balancer"));
    let on_nodes = "Load_Balancer Service_a/s2_TCP_node_router+switch_%";
    let mut expected = each(on_nodes, "external_ids name options protocol vips");
    expected.extend(places.clone());
    assert_eq!(lab.written(vec![service("s2", 12, &node_port)]).await, expected);
    let mut expected = each(on_nodes, "deleted");
    expected.extend(places);
    assert_eq!(lab.written(vec![service("s2", 12, &json!({}))]).await, expected);
    // without endpoints the address stays
    let gone = json!({"gone": true, "kind": "EndpointSlice", "name": "s3-1"});
    assert_eq!(lab.written(vec![gone]).await, ["Load_Balancer Service_a/s3_TCP_cluster: vips"]);
    let gone = json!({"gone": true, "kind": "Service", "name": "s3"});
    let group = "Load_Balancer_Group clusterLBGroup: load_balancer";
    assert_eq!(lab.written(vec![gone]).await, ["Load_Balancer Service_a/s3_TCP_cluster: deleted", group]);
    crate::crash::check(&mut lab.objects, &lab.controller).await;
}

/// In fifteen slices, as the control plane creates them; removing one changes only one column again.
#[tokio::test(flavor = "multi_thread")]
async fn fifteen_hundred_endpoints() {
    let mut lab = Lab::up(false).await;
    let ips = |slice: usize, from: usize| -> Vec<Value> {
        let ips = (from..100).map(|n| format!("10.128.{}.{}", slice, n + 3));
        ips.map(|ip| json!({"addresses": [ip], "nodeName": "n1"})).collect()
    };
    let slices = (2..16).map(|n| slice("s0", &n.to_string(), &ips(n, 0)));
    let all = [slice("s0", "1", &ips(1, 0))].into_iter().chain(slices).collect();
    let row = "Load_Balancer Service_a/s0_TCP_cluster: vips";
    assert_eq!(lab.written(all).await, [row]);
    let behind = |lab: &Lab| {
        let cache = lab.controller.nb.cache();
        let mut rows = cache.iter(load_balancer::TABLE);
        let (_, row) = rows.find(|(_, row)| row.str(load_balancer::NAME) == "Service_a/s0_TCP_cluster").unwrap();
        row.map(load_balancer::VIPS).get("10.96.0.10:80").unwrap().split(',').count()
    };
    assert_eq!(behind(&lab), 1500);
    assert_eq!(lab.written(vec![slice("s0", "7", &ips(7, 1))]).await, [row]);
    assert_eq!(behind(&lab), 1499);
}

/// With templates, the number of nodes does not matter.
#[tokio::test(flavor = "multi_thread")]
async fn templates_are_written_once_for_all_nodes() {
    let mut lab = Lab::up(true).await;
    let rows = lab.written(vec![slice("s4", "1", &endpoints(&["10.128.0.5"]))]).await;
    let expected = ["cluster", "node_switch_template_IPv4_merged"];
    assert_eq!(rows, expected.map(|scope| format!("Load_Balancer Service_a/s4_TCP_{scope}: vips")));
}

#[derive(Debug, Clone)]
enum Happens {
    NodeComes(usize, Option<usize>),
    NodeGoes(usize),
    ServiceComes(usize, usize, How),
    ServiceGoes(usize),
    SliceComes(usize, usize, Vec<(u8, State)>),
    SliceGoes(usize, usize),
    Write(usize),
    Crash,
    /// Another client runs ovn-nbctl while the controller is down.
    Meddle(usize, usize),
}

#[derive(Debug, Clone, Copy)]
enum How {
    Plain,
    NodePort(usize),
    LocalOutside,
    LocalInside,
    /// At an address that other services may have, too.
    External(usize),
    /// A load balancer's address that only the pods of one node may use.
    Limited(usize),
    Affinity,
    Datagrams,
    Headless,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Ready,
    Unready,
    Terminating,
    /// In its node's network.
    Host,
    /// For a zone.
    Hinted(usize),
    Loopback,
}

const EXTERNAL: [&str; 4] = ["192.0.2.1", "10.96.0.11", "172.18.0.2", "10.128.0.5"];

fn happens() -> impl Strategy<Value = Happens> {
    let how = prop_oneof![
        3 => Just(How::Plain),
        3 => (0..3usize).prop_map(How::NodePort),
        1 => Just(How::LocalOutside),
        1 => Just(How::LocalInside),
        2 => (0..4usize).prop_map(How::External),
        2 => (0..4usize).prop_map(How::Limited),
        1 => Just(How::Affinity),
        1 => Just(How::Datagrams),
        1 => Just(How::Headless),
    ];
    let state = prop_oneof![
        4 => Just(State::Ready),
        1 => Just(State::Unready),
        1 => Just(State::Terminating),
        1 => Just(State::Host),
        2 => (0..2usize).prop_map(State::Hinted),
        1 => Just(State::Loopback),
    ];
    let zone = proptest::option::of(0..2usize);
    let behind = proptest::collection::vec((0..6u8, state), 0..4);
    prop_oneof![
        2 => (0..NODES, zone).prop_map(|(n, zone)| Happens::NodeComes(n, zone)),
        1 => (0..NODES).prop_map(Happens::NodeGoes),
        6 => (0..3usize, 0..3usize, how).prop_map(|(n, age, how)| Happens::ServiceComes(n, age, how)),
        2 => (0..3usize).prop_map(Happens::ServiceGoes),
        8 => (0..3usize, 0..2usize, behind).prop_map(|(n, slice, behind)| Happens::SliceComes(n, slice, behind)),
        2 => (0..3usize, 0..2usize).prop_map(|(n, slice)| Happens::SliceGoes(n, slice)),
        6 => (1..6usize).prop_map(Happens::Write),
        1 => Just(Happens::Crash),
        1 => (0..5usize, 0..9usize).prop_map(|(what, which)| Happens::Meddle(what, which)),
    ]
}

fn random_service(n: usize, age: usize, how: How) -> Value {
    let http = json!({"name": "http", "port": 80});
    let with_port = |port: usize| json!([{"name": "http", "port": 80, "nodePort": 30080 + port}]);
    let more = match how {
        How::Plain => json!({}),
        How::NodePort(port) => json!({"type": "NodePort", "ports": with_port(port)}),
        How::LocalOutside => json!({"type": "NodePort", "ports": with_port(n), "externalTrafficPolicy": "Local"}),
        How::LocalInside => json!({"internalTrafficPolicy": "Local"}),
        How::External(at) => json!({"externalIPs": [EXTERNAL[at]]}),
        How::Limited(_) => json!({"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.128.2.0/23"]}),
        How::Affinity => json!({"sessionAffinity": "ClientIP"}),
        How::Datagrams => json!({"ports": [http, {"name": "dns", "port": 53, "protocol": "UDP"}]}),
        How::Headless => json!({"clusterIP": "None"}),
    };
    let mut service = service(&format!("s{n}"), 10 + n, &more);
    service["metadata"]["creationTimestamp"] = json!(format!("2026-01-0{}T00:00:00Z", age + 1));
    if let How::Limited(at) = how {
        service["status"] = json!({"loadBalancer": {"ingress": [{"ip": EXTERNAL[at]}]}});
    }
    service
}

fn random_slice(n: usize, which: usize, behind: &[(u8, State)]) -> Value {
    let endpoint = |(ip, state): &(u8, State)| {
        let node = usize::from(*ip) % NODES;
        let address = match state {
            State::Host => format!("172.18.0.{}", node + 2),
            State::Loopback => "127.0.0.1".to_owned(),
            _ => format!("10.128.{node}.{}", ip + 5),
        };
        let mut endpoint = json!({"addresses": [address], "nodeName": format!("n{node}")});
        match state {
            State::Unready => endpoint["conditions"] = json!({"ready": false}),
            State::Terminating => {
                endpoint["conditions"] = json!({"ready": false, "serving": true, "terminating": true});
            }
            State::Hinted(zone) => endpoint["hints"] = json!({"forZones": [{"name": format!("z{zone}")}]}),
            State::Ready | State::Host | State::Loopback => {}
        }
        endpoint
    };
    let mut slice = slice(&format!("s{n}"), &which.to_string(), &behind.iter().map(endpoint).collect::<Vec<_>>());
    slice["ports"] = json!([{"name": "http", "port": 8080}, {"name": "dns", "port": 5353, "protocol": "UDP"}]);
    slice
}

async fn play(story: &[Happens], template: bool) {
    let server = Server::new(Release::Lts);
    let network = Settings { svc_template_support: template, ..Settings::default() }.network();
    let mut objects = Objects::default();
    let mut controller = Controller::start(network.clone(), server.client().await, &objects);
    controller.batch = 2;
    for event in story {
        let changes = match event {
            Happens::NodeComes(n, zone) => objects.put(node(*n, *zone)),
            Happens::NodeGoes(n) => objects.delete("Node", "", &format!("n{n}")),
            // changes of immutable fields require a new service
            Happens::ServiceComes(n, age, how) => {
                [objects.delete("Service", "a", &format!("s{n}")), objects.put(random_service(*n, *age, *how))].concat()
            }
            Happens::ServiceGoes(n) => objects.delete("Service", "a", &format!("s{n}")),
            Happens::SliceComes(n, which, behind) => objects.put(random_slice(*n, *which, behind)),
            Happens::SliceGoes(n, which) => objects.delete("EndpointSlice", "a", &format!("s{n}-{which}")),
            Happens::Write(n) => {
                for _ in 0..*n {
                    controller.step(&mut objects, false).await;
                }
                Vec::new()
            }
            Happens::Crash => {
                controller = Controller::start(network.clone(), server.client().await, &objects);
                controller.batch = 2;
                Vec::new()
            }
            Happens::Meddle(what, which) => {
                meddle(&server, *what, *which);
                controller = Controller::start(network.clone(), server.client().await, &objects);
                Vec::new()
            }
        };
        controller.take(changes);
    }
    controller.settle(&mut objects).await;
    rules::vips_are_unique(&controller.nb.cache());
    crate::crash::check(&mut objects, &controller).await;
}

fn meddle(server: &Server, what: usize, which: usize) {
    let balancer = format!("Service_a/s{}_TCP_cluster", which % 3);
    let node = format!("n{}", which % NODES);
    match what {
        0 => server.nbctl(&["--if-exists", "lb-del", &balancer]),
        1 => server.nbctl(&["--if-exists", "set", "load_balancer", &balancer, "vips={\"10.96.0.99:80\"=\"\"}"]),
        2 => server.nbctl(&["--if-exists", "clear", "logical_switch", &node, "load_balancer"]),
        3 => {
            let group = OwnerId::new("Cluster").name("clusterRtrPortGroup").hashed_name();
            server.nbctl(&["--if-exists", "clear", "port_group", &group, "acls"])
        }
        _ => server.nbctl(&["--all", "destroy", "chassis_template_var"]),
    };
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").map_or(40, |n| n.parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: crate::found("apply/services.seeds"), ..ProptestConfig::default() })]
    #[test]
    fn every_story_of_services_ends_like_a_fresh_start(
        story in proptest::collection::vec(happens(), 5..50), template in any::<bool>(),
    ) {
        tokio::runtime::Runtime::new().unwrap().block_on(play(&story, template));
    }
}
