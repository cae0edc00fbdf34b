//! Does what a story tells: users and kubelets through the API server, others in the database.

use ovnkube_model::keys;
use ovnkube_ovn::nb::{
    acl, address_set, load_balancer as lb, logical_router as lr, logical_router_policy as policy,
    logical_router_static_route as route, logical_switch as ls, logical_switch_port as lsp, port_group,
};
use ovnkube_ovn::wire::WireDatum;
use ovnkube_ovn::{ColumnId, Row, Table, Uuid};
use ovnkube_policy_truth::Random;
use ovnkube_policy_truth::generate::{self, Size};
use serde_json::{Value, json};

use crate::database::on;
use crate::observer::{Foreign, Place};
use crate::state::{annotated, cluster, is_of_node};
use crate::story::{Event, NAMESPACES, NODES};
use crate::world::World;

/// First half of the uuids of other programs' rows.
const OTHERS: u128 = 0xf0e1_0000_0000_4000_8000_0000_0000_0000;

/// Whether another program has made a row.
pub(crate) fn is_others(uuid: Uuid) -> bool {
    uuid.as_u128() >> 64 == OTHERS >> 64
}

pub(crate) fn node(number: usize) -> String {
    format!("n{number}")
}

pub(crate) fn namespace(number: usize) -> String {
    format!("truth-{}", number % NAMESPACES)
}

fn pod(number: usize) -> String {
    format!("p{number}")
}

pub(crate) fn happen(world: &mut World, event: Event) {
    match event {
        Event::NodeComes(number, seed) => node_comes(world, number, seed),
        Event::NodeGoes(number) => node_goes(world, &node(number)),
        Event::NamespaceComes(number, seed) => namespace_comes(world, number, seed),
        Event::NamespaceGoes(number) => namespace_goes(world, &namespace(number)),
        Event::PodComes(number, seed) => pod_comes(world, number, seed),
        Event::AddressPasses(number, seed) => address_passes(world, number, seed),
        Event::PodIsRelabelled(number, seed) => {
            relabel(world, "Pod", &namespace(number), &pod(number), generate::labels(&mut Random::new(seed), 4));
        }
        Event::PodStarts(number) => pod_starts(world, number),
        Event::PodEnds(number) => {
            let patch = json!({"status": {"phase": "Succeeded"}});
            world.api.merge("Pod", &namespace(number), &pod(number), &patch);
        }
        Event::PodGoes(number) => world.api.delete("Pod", &namespace(number), &pod(number)),
        Event::PolicyComes(number, seed) => policy_comes(world, number, seed),
        Event::PolicyGoes(number) => {
            (0..NAMESPACES).for_each(|n| world.api.delete("NetworkPolicy", &namespace(n), &format!("policy-{number}")));
        }
        Event::ServiceComes(number, seed) => service_comes(world, number, seed),
        Event::ServiceGoes(number) => world.api.delete("Service", &namespace(number), &format!("s{number}")),
        Event::EndpointsCome(number, seed) => endpoints_come(world, number, seed),
        Event::EndpointsGo(number) => world.api.delete("EndpointSlice", &namespace(number), &format!("s{number}-1")),
        Event::Foreign(kind, seed) => foreign(world, kind, seed),
        Event::Meddle(kind, seed) => meddle(world, kind, seed),
        Event::Fault(fault) => world.fail(fault),
        // the player does it
        Event::Rest => {}
    }
}

/// A node whose agent has reported its chassis and, perhaps, its gateway. Its annotations by others stay.
fn node_comes(world: &mut World, number: usize, seed: u64) {
    let name = node(number);
    let mut annotations = json!({(keys::CHASSIS_ID): format!("chassis-{name}")});
    let ip = format!("172.18.0.{}", 11 + number);
    if !seed.is_multiple_of(3) {
        let address = format!("{ip}/16");
        let gateway = json!({"default": {
            "mode": "shared", "interface-id": format!("br-ex_{name}"), "mac-address": "02:42:ac:12:00:02",
            "ip-addresses": [address], "next-hops": [format!("172.18.255.{}", 1 + seed % 2)], "node-port-enable": "true",
        }});
        annotations[keys::GATEWAY] = json!(gateway.to_string());
        annotations[keys::HOST_CIDRS] = json!(json!([address]).to_string());
    }
    let mut status = json!({"addresses": [{"type": "InternalIP", "address": ip}]});
    // clouds say so of new nodes
    if seed % 10 == 5 {
        status["conditions"] = json!([{"type": "NetworkUnavailable", "status": "True", "reason": "NoRouteCreated"}]);
    }
    let object = json!({"metadata": {"name": name, "annotations": annotations}, "status": status});
    if world.api.get("Node", "", &name).is_none() {
        world.api.put("Node", object);
    } else {
        world.api.merge("Node", "", &name, &object);
    }
}

/// Its pods stay for now: Kubernetes waits whether it comes back.
fn node_goes(world: &mut World, name: &str) {
    if world.api.get("Node", "", name).is_some() {
        *world.observer.deleted.entry(name.to_owned()).or_default() += 1;
        world.api.delete("Node", "", name);
    }
}

fn namespace_comes(world: &mut World, number: usize, seed: u64) {
    let name = namespace(number);
    if world.api.get("Namespace", "", &name).is_none() {
        world.api.put("Namespace", json!({"metadata": {"name": name}}));
    }
    relabel(world, "Namespace", "", &name, generate::labels(&mut Random::new(seed), 3));
}

fn relabel(world: &mut World, kind: &str, within: &str, name: &str, labels: serde_json::Map<String, Value>) {
    if let Some(object) = world.api.get(kind, within, name).cloned() {
        let mut changed = object.clone();
        changed["metadata"]["labels"] = Value::Object(labels);
        if changed != object {
            world.api.put(kind, changed);
        }
    }
}

/// What is in it goes first, as with a real API server.
fn namespace_goes(world: &mut World, name: &str) {
    for kind in ["Pod", "NetworkPolicy", "EndpointSlice", "Service"] {
        let mine = world.api.all(kind).filter(|object| object["metadata"]["namespace"] == name);
        let names: Vec<String> = mine.map(|o| o["metadata"]["name"].as_str().unwrap().to_owned()).collect();
        for object in &names {
            world.api.delete(kind, name, object);
        }
    }
    world.api.delete("Namespace", "", name);
}

/// A new pod in place of the last one of its name.
fn pod_comes(world: &mut World, number: usize, seed: u64) {
    if world.api.get("Namespace", "", &namespace(number)).is_none() {
        namespace_comes(world, number, seed);
    }
    let on = (seed / 16) as usize % NODES;
    let host = format!("172.18.0.{}", 11 + on);
    let made = match seed % 10 {
        0 => generate::host_pod(seed, &pod(number), &node(on), &[&host]),
        1 => asking(seed, &node(on), &format!(r#"[{{"ips":["10.128.0.{}"]}}]"#, 3 + seed / 64 % 5)),
        2 => asking(seed, &node(on), &format!(r#"[{{"mac":"02:00:00:00:00:0{}"}}]"#, seed / 64 % 2)),
        _ => some_pod(seed, &node(on)),
    };
    put_pod(world, number, made);
}

fn some_pod(seed: u64, on: &str) -> Value {
    let size = Size { namespaces: 1, pods: 1, nodes: vec![on.to_owned()], image: String::new() };
    generate::objects(seed, &size).pop().unwrap()
}

/// A pod that asks for an address.
fn asking(seed: u64, on: &str, what: &str) -> Value {
    let mut made = some_pod(seed, on);
    made["metadata"]["annotations"] = json!({(keys::DEFAULT_NETWORK): what});
    made
}

fn put_pod(world: &mut World, number: usize, mut made: Value) {
    made["metadata"]["namespace"] = json!(namespace(number));
    made["metadata"]["name"] = json!(pod(number));
    world.api.delete("Pod", &namespace(number), &pod(number));
    world.api.put("Pod", made);
}

/// A pod comes and asks for the address of another in its namespace, which goes.
fn address_passes(world: &mut World, number: usize, seed: u64) {
    let (within, name) = (namespace(number), pod(number));
    let others = world.api.all("Pod").filter(|other| other["metadata"]["namespace"] == within);
    let held: Vec<_> = others
        .filter(|other| other["metadata"]["name"] != name)
        .filter_map(|other| {
            let text = |path: &str| other.pointer(path).and_then(Value::as_str).map(str::to_owned);
            Some((text("/metadata/name")?, text("/spec/nodeName")?, annotated(other)?.first()?.clone()))
        })
        .collect();
    if held.is_empty() {
        return;
    }
    let (other, on, ip) = &held[seed as usize % held.len()];
    world.api.delete("Pod", &within, other);
    put_pod(world, number, asking(seed, on, &format!(r#"[{{"ips":["{ip}"]}}]"#)));
}

/// A pod starts once its port has the addresses that it is annotated with, and they are its node's.
fn pod_starts(world: &mut World, number: usize) {
    let Some(object) = world.api.get("Pod", &namespace(number), &pod(number)) else { return };
    if !object["status"].is_null() || object["spec"]["hostNetwork"] == true {
        return;
    }
    let Some(ips) = annotated(object) else { return };
    let cache = &world.observer.cache;
    let name = format!("{}_{}", namespace(number), pod(number));
    let port = cache.named(lsp::TABLE, &name).next().map(|(_, row)| row);
    let is_wired = |port: &Row| {
        let has: Vec<&str> = port.strs(lsp::ADDRESSES).flat_map(|address| address.split(' ').skip(1)).collect();
        port.map(lsp::OPTIONS).get("iface-id-ver") == object["metadata"]["uid"].as_str() && has == ips
    };
    // ports in a subnet that the node no longer has are about to be removed
    let on = object["spec"]["nodeName"].as_str().unwrap_or_default();
    if port.is_some_and(|port| is_wired(port)) && ips.iter().all(|ip| is_of_node(&world.api, on, ip)) {
        let list: Vec<_> = ips.iter().map(|ip| json!({"ip": ip})).collect();
        let status = json!({"status": {"phase": "Running", "podIPs": list}});
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        world.running.insert(uid, (on.to_owned(), ips));
        world.api.merge("Pod", &namespace(number), &pod(number), &status);
    }
}

fn policy_comes(world: &mut World, number: usize, seed: u64) {
    let cluster = cluster(world);
    if cluster.namespaces.is_empty() {
        return;
    }
    let mut made = generate::policies(seed, 1, &cluster).remove(0);
    made["metadata"]["name"] = json!(format!("policy-{number}"));
    world.api.put("NetworkPolicy", made);
}

fn service_comes(world: &mut World, number: usize, seed: u64) {
    if world.api.get("Namespace", "", &namespace(number)).is_none() {
        return;
    }
    let kind = if seed.is_multiple_of(3) { "NodePort" } else { "ClusterIP" };
    let mut ports = vec![json!({"name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080})];
    if seed % 2 == 1 {
        ports.push(json!({"name": "dns", "protocol": "UDP", "port": 53, "targetPort": 5353}));
    }
    if kind == "NodePort" {
        for (at, port) in ports.iter_mut().enumerate() {
            port["nodePort"] = json!(30_000 + 10 * number + at);
        }
    }
    let ip = format!("10.96.0.{}", 10 + number);
    let spec = json!({"type": kind, "clusterIP": ip, "clusterIPs": [ip], "ports": ports});
    let meta = json!({"namespace": namespace(number), "name": format!("s{number}")});
    world.api.put("Service", json!({"metadata": meta, "spec": spec}));
}

fn endpoints_come(world: &mut World, number: usize, seed: u64) {
    if world.api.get("Namespace", "", &namespace(number)).is_none() {
        return;
    }
    let endpoint = |at: u64| {
        let ready = !(seed >> at).is_multiple_of(4);
        json!({"addresses": [format!("10.128.0.{}", 3 + at)], "nodeName": "n0", "conditions": {"ready": ready}})
    };
    let endpoints: Vec<_> = (0..6).filter(|at| (seed >> (20 + at)).is_multiple_of(2)).map(endpoint).collect();
    let ports = json!([
        {"name": "http", "protocol": "TCP", "port": 8080}, {"name": "dns", "protocol": "UDP", "port": 5353},
    ]);
    let labels = json!({"kubernetes.io/service-name": format!("s{number}")});
    let meta = json!({"namespace": namespace(number), "name": format!("s{number}-1"), "labels": labels});
    let slice = json!({"metadata": meta, "addressType": "IPv4", "endpoints": endpoints, "ports": ports});
    world.api.put("EndpointSlice", slice);
}

/// Another program creates a row: alone, or in one of ours.
fn foreign(world: &mut World, kind: usize, seed: u64) {
    let n = seed % 200;
    let at = node(seed as usize % NODES);
    let marks = [("owner", "somebody")];
    let (row, parent): (Row, Option<(&'static Table, &str, ColumnId)>) = match kind {
        0 => (Row::new(lb::TABLE).with(lb::NAME, format!("theirs-{n}")).with(lb::EXTERNAL_IDS, marks), None),
        1 => (Row::new(address_set::TABLE).with(address_set::NAME, format!("theirs{n}")), None),
        2 => (Row::new(ls::TABLE).with(ls::NAME, format!("blue_{n}")), None),
        3 => {
            let row = Row::new(route::TABLE).with(route::IP_PREFIX, format!("192.0.2.{n}/32"));
            let row = row.with(route::NEXTHOP, "100.64.0.2").with(route::EXTERNAL_IDS, marks);
            (row, Some((lr::TABLE, "ovn_cluster_router", lr::STATIC_ROUTES.id())))
        }
        4 => {
            let row = Row::new(policy::TABLE).with(policy::MATCH, format!("ip4.src==10.1.0.{n}"));
            let row = row.with(policy::PRIORITY, 501_i64).with(policy::ACTION, "drop");
            (row, Some((lr::TABLE, "ovn_cluster_router", lr::POLICIES.id())))
        }
        5 => {
            let row = Row::new(acl::TABLE).with(acl::MATCH, format!("ip4.dst==10.66.0.{n}"));
            let row = row.with(acl::PRIORITY, 7_i64).with(acl::ACTION, "drop").with(acl::DIRECTION, "from-lport");
            (row, Some((ls::TABLE, &at, ls::ACLS.id())))
        }
        _ => {
            let row = Row::new(lsp::TABLE).with(lsp::NAME, format!("vm-{n}"));
            let row = row.with(lsp::ADDRESSES, [format!("02:00:00:01:00:{n:02x} 10.1.1.{n}")]);
            (row, Some((ls::TABLE, &at, ls::PORTS.id())))
        }
    };
    let uuid = Uuid::from_u128(OTHERS + u128::from(n) * 16 + kind as u128);
    let place = parent.map(|(table, name, column)| {
        let uuid = world.observer.cache.lookup(table, name).first().copied();
        uuid.map(|uuid| Place { table, uuid, column })
    });
    // the parent is missing, or the row exists
    if place.is_some_and(|place| place.is_none()) || world.nb.database.get(row.table(), uuid).is_some() {
        return;
    }
    let place = place.flatten();
    let mut ops =
        vec![json!({"op": "insert", "table": row.table().name, "uuid": uuid.to_string(), "row": cells(&row)})];
    ops.extend(place.map(|place| mutate(place, "insert", uuid)));
    world.meddle(&ops);
    let row = std::sync::Arc::clone(world.nb.database.get(row.table(), uuid).unwrap());
    world.observer.foreign.push(Foreign { uuid, row, place });
}

pub(crate) fn cells(row: &Row) -> Value {
    let cells = row.cells().map(|(id, datum)| {
        let info = row.table().info(id).unwrap();
        (info.name.to_owned(), serde_json::to_value(WireDatum { datum, is_map: info.is_map() }).unwrap())
    });
    Value::Object(cells.collect())
}

/// Adds a row to a set, or takes it out.
pub(crate) fn mutate(place: Place, how: &str, uuid: Uuid) -> Value {
    let column = place.table.info(place.column).unwrap().name;
    let mut op = on(place.table, place.uuid, "mutate");
    op["mutations"] = json!([[column, how, ["uuid", uuid.to_string()]]]);
    op
}

/// Another program changes or deletes a row of ours, or makes one that looks like ours.
fn meddle(world: &mut World, kind: usize, seed: u64) {
    let observer = &world.observer;
    let is_taken = |uuid: Uuid| observer.taken.contains(&uuid) || observer.foreign.iter().any(|f| f.uuid == uuid);
    let is_foreign = |uuid: Uuid| is_others(uuid) || is_taken(uuid);
    let pick = |table: &Table| {
        let ours: Vec<_> = world.nb.database.rows(table).map(|(uuid, _)| uuid).filter(|u| !is_foreign(*u)).collect();
        (!ours.is_empty()).then(|| ours[seed as usize % ours.len()])
    };
    let is_router_port =
        |uuid: Uuid| world.nb.database.get(lsp::TABLE, uuid).is_some_and(|row| row.str(lsp::TYPE) == "router");
    let update = |table: &Table, uuid: Uuid, row: Value| {
        let mut op = on(table, uuid, "update");
        op["row"] = row;
        op
    };
    let mut taken = None;
    let op = match kind {
        // without the port to its router, a switch cannot be recognized as ours
        0 => pick(lsp::TABLE).filter(|uuid| !is_router_port(*uuid)).and_then(|uuid| {
            let parent = world.observer.cache.parents(uuid).find(|parent| parent.table == ls::TABLE)?;
            Some(mutate(Place { table: ls::TABLE, uuid: parent.uuid, column: ls::PORTS.id() }, "delete", uuid))
        }),
        1 => pick(port_group::TABLE).map(|uuid| update(port_group::TABLE, uuid, json!({"ports": ["set", []]}))),
        2 => pick(lsp::TABLE).map(|uuid| update(lsp::TABLE, uuid, json!({"addresses": "unknown"}))),
        3 => pick(ls::TABLE).map(|uuid| on(ls::TABLE, uuid, "delete")),
        4 => pick(lb::TABLE).map(|uuid| update(lb::TABLE, uuid, json!({"name": "renamed"}))),
        5 => pick(port_group::TABLE).map(|uuid| on(port_group::TABLE, uuid, "delete")),
        // it is theirs from then on
        7 => pick(address_set::TABLE).map(|uuid| {
            taken = Some(uuid);
            let row = json!({"name": format!("taken{seed}"), "external_ids": ["map", []]});
            update(address_set::TABLE, uuid, row)
        }),
        _ => {
            let row = json!({"name": "Service_gone/web_TCP_cluster", "external_ids": ["map", [
                ["k8s.ovn.org/kind", "Service"], ["k8s.ovn.org/owner", "gone/web"],
            ]]});
            let uuid = Uuid::from_u128((OTHERS << 1) + u128::from(seed));
            let is_there = world.nb.database.get(lb::TABLE, uuid).is_some();
            (!is_there).then(|| json!({"op": "insert", "table": "Load_Balancer", "uuid": uuid.to_string(), "row": row}))
        }
    };
    if let Some(op) = op {
        world.meddle(&[op]);
    }
    world.observer.taken.extend(taken);
}
