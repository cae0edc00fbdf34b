//! I4: on the switch and the gateway router of each node, each port of a service leads to exactly its ready endpoints, at the
//! cluster IP and at the node's own node ports; and nothing else leads anywhere, nor do other switches and routers.

use std::collections::{BTreeMap, BTreeSet};

use ovnkube_model::keys;
use ovnkube_ovn::Uuid;
use ovnkube_ovn::nb::{load_balancer as lb, load_balancer_group as lbg, logical_router as lr, logical_switch as ls};
use ovnkube_ovsdb_data::Cache;
use ovnkube_tests::rules;
use serde_json::Value;

use crate::api::ApiServer;
use crate::state::{name, subnets};

/// The endpoints behind each protocol, address and port.
type Vips = BTreeMap<(String, String), BTreeSet<String>>;

/// A port of a service.
struct Port {
    protocol: String,
    number: String,
    on_nodes: Option<u64>,
    endpoints: BTreeSet<String>,
}

pub(crate) fn check(api: &ApiServer, cache: &Cache) {
    rules::vips_are_unique(cache);
    let mut expected = expected(api);
    for (place, vips) in places(cache) {
        let wanted = expected.remove(place).unwrap_or_default();
        assert_eq!(vips, wanted, "where services lead on {place}");
    }
    assert!(expected.is_empty(), "switches and routers that are missing: {:?}", expected.keys());
}

/// For the switch and the gateway router of each node.
fn expected(api: &ApiServer) -> BTreeMap<String, Vips> {
    let services: Vec<(&str, Port)> = api.all("Service").flat_map(|service| ports(api, service)).collect();
    let cluster = services
        .iter()
        .map(|(ip, port)| ((port.protocol.clone(), format!("{ip}:{}", port.number)), port.endpoints.clone()));
    let cluster: Vips = cluster.collect();
    let mut expected = BTreeMap::new();
    for node in api.all("Node").filter(|node| !subnets(node).is_empty()) {
        let annotations = &node["metadata"]["annotations"];
        let mut vips = cluster.clone();
        if annotations[keys::GATEWAY].is_string() {
            let cidrs: Vec<String> = serde_json::from_str(annotations[keys::HOST_CIDRS].as_str().unwrap()).unwrap();
            for ip in cidrs.iter().filter_map(|cidr| cidr.split('/').next()) {
                let at_node = services.iter().filter_map(|(_, port)| {
                    Some(((port.protocol.clone(), format!("{ip}:{}", port.on_nodes?)), port.endpoints.clone()))
                });
                vips.extend(at_node);
            }
            expected.insert(format!("GR_{}", name(node)), vips.clone());
        }
        expected.insert(name(node).to_owned(), vips);
    }
    expected
}

/// The ports of a service, each with the cluster IP.
fn ports<'a>(api: &'a ApiServer, service: &'a Value) -> Vec<(&'a str, Port)> {
    let text = |value: &'a Value| value.as_str().unwrap_or_default();
    let slice = api.get("EndpointSlice", text(&service["metadata"]["namespace"]), &format!("{}-1", name(service)));
    let list = |of: Option<&'a Value>, field: &str| {
        of.and_then(|of| of[field].as_array()).into_iter().flatten().collect::<Vec<_>>()
    };
    let ready = list(slice, "endpoints").into_iter().filter(|endpoint| endpoint["conditions"]["ready"] == true);
    let ready: Vec<&str> = ready.map(|endpoint| text(&endpoint["addresses"][0])).collect();
    let targets = list(slice, "ports");
    let port = |port: &'a Value| {
        let mine = |target: &&&Value| target["name"] == port["name"] && target["protocol"] == port["protocol"];
        let numbers = targets.iter().filter(mine).map(|target| &target["port"]);
        let endpoints = numbers.flat_map(|number| ready.iter().map(move |ip| format!("{ip}:{number}"))).collect();
        let (protocol, number) = (text(&port["protocol"]).to_lowercase(), port["port"].to_string());
        let port = Port { protocol, number, on_nodes: port["nodePort"].as_u64(), endpoints };
        (text(&service["spec"]["clusterIP"]), port)
    };
    list(Some(&service["spec"]), "ports").into_iter().map(port).collect()
}

/// All switches and routers with what their load balancers do, those of groups too.
fn places(cache: &Cache) -> Vec<(&str, Vips)> {
    let vips = |own: Vec<Uuid>, groups: Vec<Uuid>| -> Vips {
        let groups = groups.into_iter().filter_map(|uuid| cache.get(lbg::TABLE, uuid));
        let all = own.into_iter().chain(groups.flat_map(|group| group.uuids(lbg::LOAD_BALANCER)));
        let pairs = all.filter_map(|uuid| cache.get(lb::TABLE, uuid)).flat_map(|row| {
            let protocol = row.str(lb::PROTOCOL);
            row.map(lb::VIPS).iter().map(move |(vip, to)| ((protocol.to_owned(), vip.to_owned()), endpoints(to)))
        });
        pairs.collect()
    };
    let switches = cache.iter(ls::TABLE).map(|(_, row)| {
        let (own, groups) = (row.uuids(ls::LOAD_BALANCER), row.uuids(ls::LOAD_BALANCER_GROUP));
        (row.str(ls::NAME), vips(own.collect(), groups.collect()))
    });
    let routers = cache.iter(lr::TABLE).map(|(_, row)| {
        let (own, groups) = (row.uuids(lr::LOAD_BALANCER), row.uuids(lr::LOAD_BALANCER_GROUP));
        (row.str(lr::NAME), vips(own.collect(), groups.collect()))
    });
    switches.chain(routers).collect()
}

fn endpoints(list: &str) -> BTreeSet<String> {
    list.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}
