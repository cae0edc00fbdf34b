//! All rows of one node, found by their names and what they hold: for a node that no controller removes.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_ovn::nb::{
    self, address_set, chassis_template_var, gateway_chassis, load_balancer, logical_router as lr,
    logical_router_policy as policy, logical_router_port as lrp, logical_router_static_route as route,
    logical_switch as ls, logical_switch_port as lsp, static_mac_binding,
};
use ovnkube_ovn::sb::{chassis, chassis_private};
use ovnkube_ovn::{Atom, Column, Datum, Row, Table, Uuid};
use ovnkube_ovsdb::{Cache, Txn};
use ovnkube_plan::{Takeover, is_garbage};

use crate::diff::{Diff, has_cable};
use crate::garbage::takeover;

/// What the northbound database has of a node.
pub struct Found {
    /// Removes it all; empty when there is nothing.
    pub txn: Txn,
    /// The chassis that these rows name, and those of no other node.
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

/// What the southbound database has of a node.
pub struct Chassis {
    pub its: BTreeSet<String>,
    /// Another host has these now, and its name: one that was renamed keeps its chassis.
    pub others: Vec<(String, String)>,
}

/// Looks for those of the node's hostname, and among `named` for those that are no other host's.
pub fn chassis(node: &str, named: &BTreeSet<String>, sb: &Cache) -> Chassis {
    let mut found = Chassis { its: BTreeSet::new(), others: Vec::new() };
    for (_, row) in sb.iter(chassis::TABLE) {
        let (name, host) = (row.str(chassis::NAME), row.str(chassis::HOSTNAME));
        if host == node || (named.contains(name) && host.is_empty()) {
            found.its.insert(name.to_owned());
        } else if named.contains(name) {
            found.others.push((name.to_owned(), host.to_owned()));
        }
    }
    // what is left of a chassis that is gone
    let private = sb.iter(chassis_private::TABLE).map(|(_, row)| row.str(chassis_private::NAME));
    let lone = private.filter(|name| named.contains(*name) && found.others.iter().all(|(other, _)| other != name));
    found.its.extend(lone.map(str::to_owned));
    found
}

/// Removes these chassis.
pub fn southbound(its: &BTreeSet<String>, sb: &Cache) -> Txn {
    crate::chassis::remove(sb, |name| its.contains(name))
}

/// What a load balancer of one node is called, between its service and the node.
const KINDS: [&str; 4] = ["node_router+switch", "node_router", "node_local_router", "node_switch"];

/// A node as the northbound database has it.
struct Site<'a> {
    node: &'a str,
    nb: &'a Cache,
    /// Of its switch.
    subnets: Vec<IpNetwork>,
    /// Of its gateway router.
    joins: Vec<IpAddr>,
    takeover: Takeover<'static>,
}

impl<'a> Site<'a> {
    fn of(node: &'a str, nb: &'a Cache) -> Self {
        let networks = |port: &str| {
            let rows = rows(nb, lrp::TABLE, port);
            rows.flat_map(|(_, row)| row.strs(lrp::NETWORKS)).filter_map(|text| text.parse().ok()).collect::<Vec<_>>()
        };
        let joins = networks(&format!("rtoj-GR_{node}")).iter().map(IpNetwork::ip).collect();
        let takeover = takeover(nb, Takeover::default(), |_| false);
        Self { node, nb, subnets: networks(&format!("rtos-{node}")), joins, takeover }
    }

    fn chassis(&self) -> BTreeSet<String> {
        let of_port = self.nb.iter(gateway_chassis::TABLE).map(|(_, row)| {
            let chassis = row.str(gateway_chassis::CHASSIS_NAME);
            (row.str(gateway_chassis::NAME) == format!("rtos-{}-{chassis}", self.node), chassis)
        });
        let own = format!("GR_{}", self.node);
        let of_router = self.nb.iter(lr::TABLE).filter_map(|(_, row)| {
            let is_it = row.str(lr::NAME) == own;
            Some((is_it, row.map(lr::OPTIONS).get("chassis").filter(|id| !id.is_empty())?))
        });
        let (its, others): (Vec<_>, Vec<_>) = of_port.chain(of_router).partition(|(is_it, _)| *is_it);
        let others: BTreeSet<&str> = others.into_iter().map(|(_, id)| id).collect();
        its.into_iter().filter(|(_, id)| !others.contains(id)).map(|(_, id)| id.to_owned()).collect()
    }

    /// Rows that are the node's alone; what hangs on them goes with them.
    fn own_rows(&self, diff: &mut Diff<'_>, chassis: &BTreeSet<String>) {
        let node = self.node;
        for name in [node.to_owned(), format!("ext_{node}")] {
            for (uuid, row) in rows(self.nb, ls::TABLE, &name) {
                if is_garbage(row, has_cable(self.nb, row)) {
                    diff.delete(ls::TABLE, uuid);
                }
            }
        }
        for (uuid, row) in rows(self.nb, lr::TABLE, &format!("GR_{node}")) {
            if is_garbage(row, false) {
                diff.delete(lr::TABLE, uuid);
            }
        }
        let mut delete = |table: &'static Table, is_it: &dyn Fn(&Row) -> bool| {
            for (uuid, _) in self.nb.iter(table).filter(|(_, row)| is_it(row)) {
                diff.delete(table, uuid);
            }
        };
        let outer = format!("rtoe-GR_{node}");
        delete(static_mac_binding::TABLE, &|row| {
            row.str(static_mac_binding::LOGICAL_PORT) == outer && self.takeover.is_left("", row)
        });
        delete(chassis_template_var::TABLE, &|row| chassis.contains(row.str(chassis_template_var::CHASSIS)));
        for (uuid, _) in self.nb.iter(load_balancer::TABLE).filter(|(uuid, row)| self.is_own_balancer(*uuid, row)) {
            diff.delete(load_balancer::TABLE, uuid);
        }
    }

    /// Whether a load balancer is a service's, and on this node's switch and router alone.
    fn is_own_balancer(&self, uuid: Uuid, row: &Row) -> bool {
        let own = [(ls::TABLE.id, self.node.to_owned()), (lr::TABLE.id, format!("GR_{}", self.node))];
        let mut parents = self.nb.parents(uuid).map(|parent| {
            let name =
                |row: &Row| row.str(if parent.table.id == ls::TABLE.id { ls::NAME } else { lr::NAME }).to_owned();
            self.nb.get(parent.table, parent.uuid).is_some_and(|row| own.contains(&(parent.table.id, name(row))))
        });
        row.map(load_balancer::EXTERNAL_IDS).get("k8s.ovn.org/kind") == Some("Service")
            && match parents.next() {
                Some(first) => first && parents.all(|is_own| is_own),
                // its switch is gone already
                None => {
                    KINDS.iter().any(|kind| row.str(load_balancer::NAME).ends_with(&format!("_{kind}_{}", self.node)))
                }
            }
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
                child.str(policy::MATCH).contains(&inport) && self.is_ours(row, child)
            });
            self.drop_children(diff, (router, row), lr::STATIC_ROUTES, route::TABLE, |child| {
                let next_hop = child.str(route::NEXTHOP).parse();
                next_hop.is_ok_and(|ip| self.has(ip)) && self.is_ours(row, child)
            });
        }
        let cable = format!("jtor-GR_{node}");
        for parent in rows(self.nb, ls::TABLE, "join") {
            self.drop_children(diff, parent, ls::PORTS, lsp::TABLE, |child| child.str(lsp::NAME) == cable);
        }
        for (set, row) in self.nb.iter(address_set::TABLE).filter(|(_, row)| is_garbage(row, false)) {
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

    fn is_ours(&self, router: &Row, row: &Row) -> bool {
        is_garbage(row, false) || self.takeover.is_left(router.str(lr::NAME), row)
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
