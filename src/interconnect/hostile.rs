//! Steps and what they say, from rows that others wrote: no server is needed.

mod bounds;
mod copies;
mod gateways;
mod leaving;
mod names;
mod switches;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ovnkube_model::{Interconnection, Local, LocalRange, Mac};
use ovnkube_ovn::ic_sb::{availability_zone, datapath_binding, encap, gateway, port_binding, route};
use ovnkube_ovn::sb::{self, chassis, encap as sb_encap, port_binding as binding};
use ovnkube_ovn::{Database, Row, ServerSchema, Table, Uuid, derived_uuid, ic_nb, ic_sb, nb};
use ovnkube_ovsdb_data::{Cache, Txn};
use ovnkube_plan::Offer;

use crate::databases::Databases;
use crate::ours::Moment;
use crate::rows::CLUSTER;
use crate::step::{Step, step};
use crate::switches::CLAIM;

fn cache(database: &'static Database, schema: &[u8]) -> Cache {
    let mut cache = Cache::new(database, ovnkube_plan::identity, |_| false);
    cache.set_schema(Arc::new(ServerSchema::parse(schema).unwrap()));
    cache
}

/// The databases, and what cluster `az1` with uid `uid1` offers. Node `n1` has chassis `c1`.
struct Rig {
    ic_nb: Cache,
    ic_sb: Cache,
    sb: Cache,
    nb: Cache,
    offer: Offer,
}

impl Rig {
    /// With switch `ts`, where this cluster has 169.254.100.5, and cluster `az2` with gateway `gw2` and 169.254.100.9.
    fn new() -> Self {
        let wanted = Interconnection {
            zone: "az1".into(),
            servers: Vec::new(),
            nb_port: 6645,
            sb_port: 6646,
            gateways: vec!["n1".into()],
            auto_route: true,
            gateway_mtu: None,
            routes: BTreeMap::new(),
            host_route: false,
        };
        let offer = Offer {
            wanted,
            cluster: "uid1".into(),
            former: BTreeSet::new(),
            gateways: [("n1".into(), Some("c1".into()))].into(),
            prefixes: vec!["10.128.0.0/14".parse().unwrap()],
            local: Local {
                ranges: vec![LocalRange { range: "10.128.0.0/14".parse().unwrap(), purpose: "pods" }],
                nodes: ["172.18.0.2".parse().unwrap()].into(),
                hosts: BTreeSet::new(),
                networks: ["172.18.0.0/16".parse().unwrap()].into(),
            },
            nodes: ["n1".into()].into(),
            own_chassis: ["c1".into()].into(),
            encap_port: 6081,
        };
        let mut rig = Self {
            ic_nb: cache(&ic_nb::DATABASE, include_bytes!("../ovn/schema/ovn-ic-nb.ovsschema")),
            ic_sb: cache(&ic_sb::DATABASE, include_bytes!("../ovn/schema/ovn-ic-sb.ovsschema")),
            sb: cache(&sb::DATABASE, include_bytes!("../ovn/schema/ovn-sb.ovsschema")),
            nb: cache(&nb::DATABASE, include_bytes!("../ovn/schema/ovn-nb.ovsschema")),
            offer,
        };
        rig.switch("ts", "169.254.100.0/24", &[("az1", "169.254.100.5"), ("az2", "169.254.100.9")], 16_711_681);
        rig.cluster("az2", "gw2", "172.19.0.2", (2, "169.254.100.9/24"));
        rig.chassis("c1", "172.18.0.2", &[("is-interconn", "true")]);
        rig
    }

    fn switch(&mut self, name: &str, subnets: &str, claims: &[(&str, &str)], key: i64) {
        let claims = claims.iter().map(|(zone, ip)| (format!("{CLAIM}{zone}"), (*ip).to_owned()));
        let ids = claims.chain([("subnet".to_owned(), subnets.to_owned())]);
        let row = Row::new(ic_nb::transit_switch::TABLE).with(ic_nb::transit_switch::NAME, name);
        add(&mut self.ic_nb, name, row.with(ic_nb::transit_switch::EXTERNAL_IDS, ids));
        let row = Row::new(datapath_binding::TABLE).with(datapath_binding::TRANSIT_SWITCH, name);
        add(&mut self.ic_sb, name, row.with(datapath_binding::TUNNEL_KEY, key));
    }

    fn zone(&mut self, name: &str) -> Uuid {
        add(&mut self.ic_sb, name, Row::new(availability_zone::TABLE).with(availability_zone::NAME, name))
    }

    /// Of another cluster, with a port in `ts`.
    fn cluster(&mut self, zone: &str, chassis: &str, tunnel: &str, (key, address): (i64, &str)) {
        self.zone(zone);
        self.gateway(zone, chassis, &[("geneve", tunnel)], None);
        self.port(zone, "ts", &format!("ts-{zone}"), (key, address), chassis);
    }

    fn gateway(&mut self, zone: &str, chassis: &str, tunnels: &[(&str, &str)], cluster: Option<&str>) -> Uuid {
        let encaps: Vec<Uuid> = tunnels
            .iter()
            .map(|(kind, ip)| {
                let row = Row::new(encap::TABLE).with(encap::TYPE, *kind).with(encap::IP, *ip);
                add(&mut self.ic_sb, &format!("{chassis} {kind} {ip}"), row)
            })
            .collect();
        let row = Row::new(gateway::TABLE)
            .with(gateway::NAME, chassis)
            .with(gateway::AVAILABILITY_ZONE, derived_uuid("Availability_Zone", zone))
            .with(gateway::EXTERNAL_IDS, cluster.map(|cluster| (CLUSTER, cluster)))
            .with(gateway::ENCAPS, encaps);
        add(&mut self.ic_sb, chassis, row)
    }

    /// With the MAC address that goes with `address`, unless that has one itself.
    fn port(&mut self, zone: &str, switch: &str, name: &str, (key, address): (i64, &str), gateway: &str) -> Uuid {
        let ip = address.split('/').next().and_then(|ip| ip.parse().ok());
        let address = ip.map_or_else(|| address.to_owned(), |ip| format!("{} {address}", Mac::of(ip)));
        let row = Row::new(port_binding::TABLE)
            .with(port_binding::LOGICAL_PORT, name)
            .with(port_binding::TRANSIT_SWITCH, switch)
            .with(port_binding::AVAILABILITY_ZONE, derived_uuid("Availability_Zone", zone))
            .with(port_binding::TUNNEL_KEY, key)
            .with(port_binding::GATEWAY, gateway)
            .with(port_binding::ADDRESS, address);
        add(&mut self.ic_sb, name, row)
    }

    fn route(&mut self, zone: &str, prefix: &str, next_hop: &str) -> Uuid {
        let row = Row::new(route::TABLE)
            .with(route::TRANSIT_SWITCH, "ts")
            .with(route::AVAILABILITY_ZONE, derived_uuid("Availability_Zone", zone))
            .with(route::IP_PREFIX, prefix)
            .with(route::NEXTHOP, next_hop);
        add(&mut self.ic_sb, &format!("{zone} {prefix} {next_hop}"), row)
    }

    /// A chassis in SB.
    fn chassis(&mut self, name: &str, tunnel: &str, other_config: &[(&str, &str)]) -> Uuid {
        let row = Row::new(sb_encap::TABLE)
            .with(sb_encap::TYPE, "geneve")
            .with(sb_encap::IP, tunnel)
            .with(sb_encap::CHASSIS_NAME, name);
        let encap = add(&mut self.sb, &format!("{name} geneve {tunnel}"), row);
        let row = Row::new(chassis::TABLE)
            .with(chassis::NAME, name)
            .with(chassis::ENCAPS, [encap])
            .with(chassis::OTHER_CONFIG, other_config.iter().copied());
        add(&mut self.sb, name, row)
    }

    fn databases(&self) -> Databases<'_> {
        Databases { ic_nb: &self.ic_nb, ic_sb: &self.ic_sb, sb: &self.sb }
    }

    fn step(&self) -> Step {
        step(&self.offer, self.databases(), Some(&self.nb), Moment::default())
    }

    fn problems(&self) -> Vec<String> {
        self.step().peers.problems
    }

    /// The chassis of other clusters that a step writes to SB.
    fn written(&self) -> BTreeSet<String> {
        lines(&self.step().chassis, "insert Chassis").iter().filter_map(|line| name_in(line)).collect()
    }
}

fn add(cache: &mut Cache, name: &str, row: Row) -> Uuid {
    let table: &'static Table = row.table();
    let uuid = derived_uuid(table.name, name);
    cache.set(table, uuid, Some(Arc::new(row)));
    uuid
}

/// The lines of a transaction that hold a text.
fn lines(txn: &Txn, text: &str) -> Vec<String> {
    txn.lines().into_iter().filter(|line| line.contains(text)).collect()
}

fn name_in(line: &str) -> Option<String> {
    Some(line.split(" name: \"").nth(1)?.split('"').next()?.to_owned())
}

/// Takes for certain that one problem holds all of these texts, and a remedy.
#[track_caller]
fn says(problems: &[String], texts: &[&str]) {
    let one = problems.iter().find(|problem| texts.iter().all(|text| problem.contains(text)));
    let one = one.unwrap_or_else(|| panic!("{texts:?} in {problems:#?}"));
    assert!(one.contains("; "), "a remedy: {one}");
}

/// A rig where nothing is wrong says nothing, and its ways are used.
#[test]
fn what_is_well_is_not_spoken_of() {
    let mut rig = Rig::new();
    rig.route("az2", "10.244.0.0/16", "169.254.100.9");
    assert_eq!(rig.problems(), Vec::<String>::new());
    assert_eq!(rig.written(), ["gw2".to_owned()].into());
    assert_eq!(rig.step().peers.switches.len(), 1);
}

/// Has the ports of both clusters in `ts` on gateways, so that routes by it are open.
fn bound(rig: &mut Rig) {
    for (port, on) in [("cr-az1-ts", "c1"), ("ts-az2", "gw2")] {
        let chassis = Some(derived_uuid(chassis::TABLE.name, on));
        let row = Row::new(binding::TABLE).with(binding::LOGICAL_PORT, port).with(binding::CHASSIS, chassis);
        add(&mut rig.sb, port, row);
    }
}
