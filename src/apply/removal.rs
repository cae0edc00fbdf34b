//! All rows of one node, found by their names and what they hold: for a node that no controller removes.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_ovn::nb::{
    self, address_set, chassis_template_var, gateway_chassis, load_balancer, logical_router as lr,
    logical_router_policy as policy, logical_router_port as lrp, logical_router_static_route as route,
    logical_switch as ls, logical_switch_port as lsp, static_mac_binding,
};
use ovnkube_ovn::sb::chassis;
use ovnkube_ovn::{Atom, Column, Datum, Row, Table, Uuid};
use ovnkube_ovsdb::{Cache, Txn};
use ovnkube_plan::is_garbage;

use crate::diff::Diff;
use crate::garbage::ports;

/// What the northbound database has of a node.
pub struct Found {
    /// Removes it all; empty when there is nothing.
    pub txn: Txn,
    /// The chassis that these rows name.
    pub chassis: BTreeSet<String>,
}

/// Looks for all of a node's rows.
pub fn northbound(node: &str, nb: &Cache) -> Found {
    let site = Site::of(node, nb);
    let mut diff = Diff::new(nb);
    let chassis = site.chassis();
    site.own_rows(&mut diff, &chassis);
    site.places_in_others(&mut diff);
    Found { txn: diff.into_txn(&nb::DATABASE), chassis }
}

/// Removes the chassis of a node: those of its hostname and these.
pub fn southbound(node: &str, chassis: &BTreeSet<String>, sb: &Cache) -> Txn {
    let hosts = sb.iter(chassis::TABLE).filter(|(_, row)| row.str(chassis::HOSTNAME) == node);
    let hosts: BTreeSet<&str> = hosts.map(|(_, row)| row.str(chassis::NAME)).collect();
    crate::chassis::remove(sb, |name| hosts.contains(name) || chassis.contains(name))
}

/// A node as the northbound database has it.
struct Site<'a> {
    node: &'a str,
    nb: &'a Cache,
    /// Of its switch.
    subnets: Vec<IpNetwork>,
    /// Of its gateway router.
    joins: Vec<IpAddr>,
}

impl<'a> Site<'a> {
    fn of(node: &'a str, nb: &'a Cache) -> Self {
        let networks = |port: &str| {
            let rows = rows(nb, lrp::TABLE, port);
            rows.flat_map(|(_, row)| row.strs(lrp::NETWORKS)).filter_map(|text| text.parse().ok()).collect::<Vec<_>>()
        };
        let joins = networks(&format!("rtoj-GR_{node}")).iter().map(IpNetwork::ip).collect();
        Self { node, nb, subnets: networks(&format!("rtos-{node}")), joins }
    }

    fn chassis(&self) -> BTreeSet<String> {
        let of_port = self.nb.iter(gateway_chassis::TABLE).filter_map(|(_, row)| {
            let chassis = row.str(gateway_chassis::CHASSIS_NAME);
            let is_it = row.str(gateway_chassis::NAME) == format!("rtos-{}-{chassis}", self.node);
            is_it.then_some(chassis)
        });
        let routers = rows(self.nb, lr::TABLE, &format!("GR_{}", self.node));
        let of_router = routers.filter_map(|(_, row)| row.map(lr::OPTIONS).get("chassis"));
        of_port.chain(of_router).filter(|id| !id.is_empty()).map(str::to_owned).collect()
    }

    /// Rows that are the node's alone; what hangs on them goes with them.
    fn own_rows(&self, diff: &mut Diff<'_>, chassis: &BTreeSet<String>) {
        let node = self.node;
        for name in [node.to_owned(), format!("ext_{node}")] {
            for (uuid, row) in rows(self.nb, ls::TABLE, &name) {
                if is_garbage(row, ports(self.nb, row)) {
                    diff.delete(ls::TABLE, uuid);
                }
            }
        }
        for (uuid, row) in rows(self.nb, lr::TABLE, &format!("GR_{node}")) {
            if is_garbage(row, std::iter::empty()) {
                diff.delete(lr::TABLE, uuid);
            }
        }
        let mut delete = |table: &'static Table, is_it: &dyn Fn(&Row) -> bool| {
            for (uuid, _) in self.nb.iter(table).filter(|(_, row)| is_it(row)) {
                diff.delete(table, uuid);
            }
        };
        let outer = format!("rtoe-GR_{node}");
        delete(static_mac_binding::TABLE, &|row| row.str(static_mac_binding::LOGICAL_PORT) == outer);
        delete(chassis_template_var::TABLE, &|row| chassis.contains(row.str(chassis_template_var::CHASSIS)));
        // a load balancer of one node is called Service_<namespace>/<name>_<protocol>_<where>_<node>
        delete(load_balancer::TABLE, &|row| {
            let is_a_services = row.map(load_balancer::EXTERNAL_IDS).get("k8s.ovn.org/kind") == Some("Service");
            is_a_services && row.str(load_balancer::NAME).rsplit('_').next() == Some(node)
        });
    }

    /// What the node has in rows that are everybody's.
    fn places_in_others(&self, diff: &mut Diff<'_>) {
        let node = self.node;
        let port = format!("rtos-{node}");
        let inport = format!("inport == \"{port}\"");
        for (router, row) in
            self.nb.iter(lr::TABLE).filter(|(_, row)| row.map(lr::EXTERNAL_IDS).contains_key("k8s-cluster-router"))
        {
            self.drop_children(diff, (router, row), lr::PORTS, lrp::TABLE, |child| child.str(lrp::NAME) == port);
            self.drop_children(diff, (router, row), lr::POLICIES, policy::TABLE, |child| {
                child.str(policy::MATCH).contains(&inport) && is_garbage(child, std::iter::empty())
            });
            self.drop_children(diff, (router, row), lr::STATIC_ROUTES, route::TABLE, |child| {
                let next_hop = child.str(route::NEXTHOP).parse();
                next_hop.is_ok_and(|ip| self.has(ip)) && is_garbage(child, std::iter::empty())
            });
        }
        let cable = format!("jtor-GR_{node}");
        for parent in rows(self.nb, ls::TABLE, "join") {
            self.drop_children(diff, parent, ls::PORTS, lsp::TABLE, |child| child.str(lsp::NAME) == cable);
        }
        for (set, row) in self.nb.iter(address_set::TABLE).filter(|(_, row)| is_garbage(row, std::iter::empty())) {
            for address in row.strs(address_set::ADDRESSES).filter(|text| text.parse().is_ok_and(|ip| self.has(ip))) {
                diff.drop_value(address_set::TABLE, set, address_set::ADDRESSES.id(), Atom::Str(address.into()));
            }
        }
    }

    fn drop_children<T>(
        &self,
        diff: &mut Diff<'_>,
        (parent, row): (Uuid, &Row),
        column: Column<T>,
        table: &'static Table,
        is_it: impl Fn(&Row) -> bool,
    ) {
        let children = row.get(column.id()).into_iter().flat_map(Datum::uuids);
        for child in children.filter(|child| self.nb.get(table, *child).is_some_and(|row| is_it(row))) {
            diff.drop_value(row.table(), parent, column.id(), Atom::Uuid(child));
        }
    }

    fn has(&self, ip: IpAddr) -> bool {
        self.joins.contains(&ip) || self.subnets.iter().any(|subnet| subnet.contains(ip))
    }
}

/// Rows of this identity.
fn rows<'a>(nb: &'a Cache, table: &'static Table, name: &str) -> impl Iterator<Item = (Uuid, &'a Row)> + use<'a> {
    let uuids = nb.lookup(table, name).iter().copied();
    uuids.filter_map(move |uuid| Some((uuid, nb.get(table, uuid)?.as_ref())))
}
