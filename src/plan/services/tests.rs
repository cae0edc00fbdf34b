//! What one service can make on many nodes.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use ovnkube_model::{
    Affected, Change, ClusterSubnet, EndpointFields, EndpointSlice, Family, Kind, Meta, Name, NetworkSettings, Node,
    NodeFields, ObjectKey, PortFields, Protocol, Roles, Service, ServiceFields, Site, SiteRouter, SliceFields, World,
    keys,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::balancer::{Balancer, Sort, Vips};
use super::balancers::{balancers, on_node};
use super::configs::{Config, configs};
use super::targets::{on_router, on_switch};
use super::{Services, alike, templates};
use crate::{Feature, Want};

fn meta<T>(labels: &[(&str, &str)], annotations: &[(&str, String)], parse: impl Fn(&Meta<'_>) -> T) -> T {
    let labels = labels.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
    let annotations = annotations.iter().map(|(key, text)| ((*key).to_owned(), text.clone())).collect();
    parse(&Meta { uid: "u", created: 1, labels: &labels, annotations: &annotations })
}

/// A cluster with so many nodes.
fn world(nodes: usize) -> World {
    let mut world = World::new(
        NetworkSettings {
            roles: Roles::MASTER,
            zone: "global".into(),
            cluster_subnets: vec![ClusterSubnet { cidr: "10.128.0.0/14".parse().unwrap(), host_prefix: 24 }],
            join_subnets: vec!["100.64.0.0/16".parse().unwrap()],
            masquerade_subnets: vec!["169.254.169.0/29".parse().unwrap()],
            ..NetworkSettings::default()
        },
        [Kind::Node],
    );
    world.apply(Change::Synced(Kind::Node));
    for n in 0..nodes {
        let gateway = serde_json::json!({"default": {
            "mode": "shared", "interface-id": format!("br-ex_n{n}"), "mac-address": "02:42:ac:12:00:02",
            "ip-addresses": [format!("172.18.1.{n}/16")], "node-port-enable": "true",
        }});
        let annotations = [(keys::CHASSIS_ID, format!("c{n}")), (keys::GATEWAY, gateway.to_string())];
        let node = meta(&[], &annotations, |meta| Node::parse(meta, NodeFields::default()));
        world.apply(Change::Node(format!("n{n}").into(), Some(Box::new(node))));
    }
    world
}

/// The rows of a service each of whose 32 endpoints is meant for clients on two nodes, so that nodes' rows differ.
fn want(world: &mut World, external: usize) -> Want {
    let key = ObjectKey::new("a", "web");
    let ports = [PortFields { port: Some(80), ..PortFields::default() }];
    let ips: Vec<_> = (0..external).map(|n| format!("192.{}.{}.1", n / 250, n % 250)).collect();
    let fields =
        ServiceFields { cluster_ip: Some("10.96.0.7"), external_ips: &ips, ports: &ports, ..ServiceFields::default() };
    let service = meta(&[], &[], |meta| Service::parse(meta, &fields));
    let endpoint = |n: usize| -> EndpointFields {
        let nodes = [2 * n, 2 * n + 1].map(|node| serde_json::json!({"name": format!("n{node}")}));
        let endpoint = serde_json::json!({"addresses": [format!("10.128.{n}.3")], "hints": {"forNodes": nodes}});
        serde_json::from_value(endpoint).unwrap()
    };
    let endpoints: Vec<_> = (0..32).map(endpoint).collect();
    let fields = SliceFields { address_type: "IPv4", ports: &ports, endpoints: &endpoints };
    let slice = meta(&[("kubernetes.io/service-name", "web")], &[], |meta| EndpointSlice::parse(meta, fields));
    world.apply(Change::Service(key.clone(), Some(Box::new(service))));
    world.apply(Change::EndpointSlice(ObjectKey::new("a", "web-1"), Some(Box::new(slice))));
    Services::want(&key, world)
}

#[test]
fn a_service_that_is_too_large_for_all_nodes_has_no_rows() {
    let mut world = world(64);
    let said = |world: &World| -> Vec<_> {
        let notices = world.notices(&Affected::Service(ObjectKey::new("a", "web")));
        notices.into_iter().map(|notice| notice.message).collect()
    };
    assert!(!want(&mut world, 10).rows.is_empty());
    assert_eq!(said(&world), [""; 0]);
    assert!(want(&mut world, 20_000).rows.is_empty());
    let messages = said(&world);
    assert!(messages.concat().contains("cannot use spec.ports: 1 of 1 ports are left out"), "{messages:?}");
    let affected: Vec<_> = (0..32).map(|n| world.apply(Change::Node(format!("n{n}").into(), None))).collect();
    assert!(affected[0].contains(&Affected::Service(ObjectKey::new("a", "web"))));
    assert_eq!(said(&world), [""; 0], "half of the nodes are left");
}

/// A service with ports of two protocols.
#[derive(Debug, Clone)]
struct Given {
    external_ips: Vec<String>,
    node_ports: bool,
    external_local: bool,
    internal_local: bool,
    endpoints: Vec<Value>,
}

impl Given {
    fn add(&self, world: &mut World) -> ObjectKey {
        let key = ObjectKey::new("a", "web");
        let port = |protocol: &str, port: i64| PortFields {
            name: Some(format!("p{port}")),
            protocol: Some(protocol.into()),
            port: Some(port),
            node_port: self.node_ports.then_some(30_000 + port),
        };
        let ports = [port("TCP", 80), port("UDP", 53), port("TCP", 81)];
        let policy = |local: bool| Some(if local { "Local" } else { "Cluster" });
        let fields = ServiceFields {
            kind: Some(if self.node_ports { "NodePort" } else { "ClusterIP" }),
            cluster_ip: Some("10.96.0.7"),
            external_ips: &self.external_ips,
            ports: &ports,
            external_traffic_policy: policy(self.external_local),
            internal_traffic_policy: policy(self.internal_local),
            ..ServiceFields::default()
        };
        let service = meta(&[], &[], |meta| Service::parse(meta, &fields));
        let endpoints: Vec<EndpointFields> = serde_json::from_value(json!(self.endpoints)).unwrap();
        let fields = SliceFields { address_type: "IPv4", ports: &ports, endpoints: &endpoints };
        let slice = meta(&[("kubernetes.io/service-name", "web")], &[], |meta| EndpointSlice::parse(meta, fields));
        world.apply(Change::Service(key.clone(), Some(Box::new(service))));
        world.apply(Change::EndpointSlice(ObjectKey::new("a", "web-1"), Some(Box::new(slice))));
        key
    }
}

prop_compose! {
    /// An endpoint that is a pod or, of any node, the host.
    fn endpoint(hints: u8)(
        pod in any::<bool>(), ip in 1..4_u8, home in prop::option::of(0..8_u8), ready in prop::bool::weighted(0.8),
        zone in 0..3_u8, near in 0..8_u8
    ) -> Value {
        let address = if pod { format!("10.128.0.{ip}") } else { format!("172.18.1.{ip}") };
        let (zones, nodes) = ([json!({"name": format!("z{zone}")})], [json!({"name": format!("n{near}")})]);
        let hints = match hints {
            0 => Value::Null,
            1 => json!({"forZones": zones}),
            _ => json!({"forZones": zones, "forNodes": nodes}),
        };
        let home = home.map(|home| format!("n{home}"));
        let conditions = json!({"ready": ready, "serving": true, "terminating": !ready});
        json!({"addresses": [address], "nodeName": home, "conditions": conditions, "hints": hints})
    }
}

fn given() -> impl Strategy<Value = Given> {
    let flags = any::<[bool; 4]>();
    let endpoints = (0..3_u8).prop_flat_map(|hints| prop::collection::vec(endpoint(hints), 0..5));
    (flags, endpoints).prop_map(|([is_external, node_ports, external_local, internal_local], endpoints)| Given {
        external_ips: is_external.then(|| "192.0.2.1".to_owned()).into_iter().collect(),
        node_ports,
        external_local,
        internal_local,
        endpoints,
    })
}

/// A node that may have the addresses of others, no router, or no node ports.
fn site() -> impl Strategy<Value = Site> {
    let zone = prop::option::of(0..3_u8);
    (0..5_u8, any::<bool>(), prop::bool::weighted(0.8), zone).prop_map(|(ip, node_port, has_router, zone)| {
        let ips = vec![IpAddr::from([172, 18, 1, ip])];
        let router = has_router.then(|| SiteRouter { ips: ips.clone(), node_port, chassis: "c".into() });
        Site { host_ips: ips, router, topology_zone: zone.map(|zone| format!("z{zone}").into()) }
    })
}

/// Name, content, switches and routers.
type Placed = (String, (Sort, Vips), Vec<Name>, Vec<Name>);

fn placed(balancer: Balancer) -> Placed {
    let content = (balancer.sort(), Vips::clone(&balancer.vips));
    (balancer.name, content, balancer.switches, balancer.routers)
}

/// The load balancers on nodes, made for each node alone.
fn node_by_node(key: &ObjectKey, configs: &[Config<'_>], world: &World) -> Vec<Placed> {
    let mut all: Vec<Placed> = Vec::new();
    for (site, protocol) in world.sites.iter().flat_map(|site| Protocol::ALL.map(|protocol| (site, protocol))) {
        let is_meant = |config: &&Config<'_>| config.is_per_node() && config.protocol == protocol;
        let configs: Vec<_> = configs.iter().filter(is_meant).collect();
        let alone = on_node(key, protocol, &configs, site, world);
        for (name, content, switches, routers) in alone.into_iter().map(placed) {
            if let Some(same) = all.iter_mut().find(|known| known.1 == content) {
                same.0 = format!("{}_merged", same.0.trim_end_matches("_merged"));
                same.2.extend(switches);
                same.3.extend(routers);
            } else {
                all.push((name, content, switches, routers));
            }
        }
    }
    all
}

proptest! {
    #[test]
    fn nodes_that_are_alike_have_what_each_would_have_alone(
        service in given(),
        sites in prop::collection::vec(site(), 0..8),
    ) {
        let mut world = world(0);
        let key = service.add(&mut world);
        world.sites = sites.into_iter().enumerate().map(|(n, site)| (format!("n{n}").into(), site)).collect();
        let configs = configs(&key, &world);
        let is_per_node = configs.iter().any(Config::is_per_node);
        prop_assert!(!is_per_node || Services::affected(&Affected::Sites, &world).contains(&key));
        let all = balancers(&key, &configs, &world).into_iter().filter(|balancer| balancer.groups.is_empty());
        prop_assert_eq!(all.map(placed).collect::<Vec<_>>(), node_by_node(&key, &configs, &world));
    }
}

/// Of thousands of services, those whose rows are the same for all nodes are left alone when a node changes.
#[test]
fn a_change_of_nodes_affects_services_that_may_differ_between_nodes() {
    let pod = || json!({"addresses": ["10.128.0.3"], "nodeName": "n1"});
    let plain = || Given {
        external_ips: vec!["192.0.2.1".to_owned()],
        node_ports: false,
        external_local: false,
        internal_local: false,
        endpoints: vec![pod()],
    };
    let hinted = json!({"addresses": ["10.128.0.4"], "hints": {"forZones": [{"name": "z"}]}});
    let host = json!({"addresses": ["172.18.1.2"]});
    let cases = [
        (plain(), false),
        (Given { node_ports: true, ..plain() }, true),
        (Given { external_local: true, ..plain() }, true),
        (Given { external_local: true, external_ips: Vec::new(), ..plain() }, false),
        (Given { internal_local: true, ..plain() }, true),
        (Given { endpoints: vec![hinted], ..plain() }, true),
        (Given { endpoints: vec![pod(), host], ..plain() }, true),
    ];
    for (given, is_affected) in cases {
        let mut world = world(2);
        let key = given.add(&mut world);
        let affected = Services::affected(&Affected::Sites, &world);
        assert_eq!(affected.contains(&key), is_affected, "{given:?}");
    }
}

/// Name, addresses, and the variables in them: chassis, name and value.
type Template = (String, Vips, Vec<(Name, Arc<str>, Arc<str>)>);

fn template(balancer: Balancer) -> Template {
    let variables = balancer.variables.into_iter().map(|variable| (variable.chassis, variable.name, variable.value));
    (balancer.name, Vips::clone(&balancer.vips), variables.collect())
}

/// The templates, for which each node is asked alone, and twice if one differs.
fn templates_node_by_node(configs: &[Config<'_>], world: &World) -> Vec<Template> {
    let serving = || world.sites.iter().filter(|(_, site)| !site.node_port_ips().is_empty());
    let mut all = Vec::new();
    for (protocol, side) in Protocol::ALL.into_iter().flat_map(|protocol| ["switch", "router"].map(|s| (protocol, s))) {
        let (mut vips, mut variables) = (Vips::new(), Vec::new());
        for config in configs.iter().filter(|config| config.is_template && config.protocol == protocol) {
            let on = |node: &Name, site: &Site| match side {
                "switch" => on_switch(config, Family::V4, node, site),
                _ => on_router(config, Family::V4, node, site, &world.settings),
            };
            let mut targets = config.behind(Family::V4).cluster_text.clone();
            if serving().any(|(node, site)| on(node, site) != targets) {
                let port = config.port;
                let name: Arc<str> = format!("Service__a_web__{protocol}__{port}__node__{side}__template__IPv4").into();
                for (node, site) in serving() {
                    variables.push((site.router.as_ref().unwrap().chassis.clone(), name.clone(), on(node, site)));
                }
                targets = format!("^{name}").into();
            }
            if serving().next().is_some() {
                vips.insert(format!("^NODEIP_IPv4_0:{}", config.port), targets);
            }
        }
        if !vips.is_empty() {
            all.push((format!("Service_a/web_{protocol}_node_{side}_template_IPv4"), vips, variables));
        }
    }
    all
}

/// The templates of a service.
fn templates_of(key: &ObjectKey, configs: &[Config<'_>], world: &World) -> Vec<Template> {
    let in_templates: Vec<_> = configs.iter().filter(|config| config.is_template).collect();
    let groups = alike::groups(&in_templates, world);
    let of = |protocol: Protocol| {
        let configs: Vec<_> = in_templates.iter().copied().filter(|config| config.protocol == protocol).collect();
        templates::balancers(key, protocol, &configs, &groups, world)
    };
    Protocol::ALL.into_iter().flat_map(of).map(template).collect()
}

proptest! {
    #[test]
    fn templates_have_what_each_node_would_ask_for_alone(
        service in given(),
        sites in prop::collection::vec(site(), 0..8),
    ) {
        let mut world = world(0);
        world.settings.svc_template_support = true;
        let key = Given { node_ports: true, external_local: false, ..service }.add(&mut world);
        for (n, mut site) in sites.into_iter().enumerate() {
            if let Some(router) = &mut site.router {
                router.chassis = format!("c{}", 7 - n).into();
            }
            world.sites.insert(format!("n{n}").into(), site);
        }
        let configs = configs(&key, &world);
        prop_assert_eq!(templates_of(&key, &configs, &world), templates_node_by_node(&configs, &world));
    }
}

/// Each node has a variable for each port, so a list that many nodes have is made and kept once.
#[test]
fn nodes_of_a_zone_have_the_same_text_in_their_variables() {
    let mut world = world(0);
    world.settings.svc_template_support = true;
    let endpoint =
        |n: u8| json!({"addresses": [format!("10.128.0.{n}")], "hints": {"forZones": [{"name": format!("z{n}")}]}});
    let endpoints = vec![endpoint(1), endpoint(2)];
    let policies =
        Given { external_ips: Vec::new(), node_ports: true, external_local: false, internal_local: false, endpoints };
    let key = policies.add(&mut world);
    for n in 0..64_u8 {
        let ips = vec![IpAddr::from([172, 18, 1, n])];
        let router = Some(SiteRouter { ips: ips.clone(), node_port: true, chassis: format!("c{n}").into() });
        let zone = format!("z{}", 1 + n % 2).into();
        world.sites.insert(format!("n{n}").into(), Site { host_ips: ips, router, topology_zone: Some(zone) });
    }
    for (name, _, variables) in templates_of(&key, &configs(&key, &world), &world) {
        let names: BTreeSet<_> = variables.iter().map(|(_, name, _)| name).collect();
        let made: BTreeSet<_> = variables.iter().map(|(_, _, value)| Arc::as_ptr(value).cast::<u8>()).collect();
        assert_eq!((variables.len(), made.len()), (64 * names.len(), 2 * names.len()), "{name}");
    }
}

/// With thousands of ports and nodes the engine would be busy for tens of seconds at each change.
#[test]
fn rows_are_made_once_for_all_nodes_that_are_alike() {
    let mut world = world(0);
    let endpoints = vec![
        json!({"addresses": ["10.128.0.3"], "nodeName": "n1"}),
        json!({"addresses": ["172.18.1.2"], "nodeName": "n2"}),
        json!({"addresses": ["172.18.1.9"]}),
    ];
    let external_ips = vec!["192.0.2.1".to_owned()];
    let service = Given { external_ips, node_ports: false, external_local: false, internal_local: true, endpoints };
    let key = service.add(&mut world);
    for n in 0..64_u8 {
        let ips = vec![IpAddr::from([172, 18, 1, n])];
        let router = Some(SiteRouter { ips: ips.clone(), node_port: true, chassis: "c".into() });
        world.sites.insert(format!("n{n}").into(), Site { host_ips: ips, router, topology_zone: Some("z".into()) });
    }
    let configs = configs(&key, &world);
    let groups = alike::groups(&configs.iter().collect::<Vec<_>>(), &world);
    let firsts: Vec<_> = groups.iter().map(|nodes| (&**nodes[0].0, nodes.len())).collect();
    assert_eq!(firsts, [("n0", 61), ("n1", 1), ("n2", 1), ("n9", 1)]);
}
