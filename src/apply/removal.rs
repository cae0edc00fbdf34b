//! All rows of one node, found by names and contents: for a node that no controller removes.

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
use ovnkube_plan::{Takeover, is_garbage, names};

use crate::diff::{Diff, has_router_peer_port};
use crate::garbage::takeover;

/// What the northbound database has of a node, and how to remove it.
pub struct NodeRemoval {
    /// Removes all of it; empty if there is nothing.
    pub txn: Txn,
    /// The chassis that these rows name and rows of other nodes do not.
    pub chassis: BTreeSet<String>,
}

/// Finds all rows of a node.
pub fn northbound(node: &str, nb: &Cache) -> NodeRemoval {
    let site = NodeRows::of(node, nb);
    let mut diff = Diff::new(nb);
    let chassis = site.chassis();
    site.own_rows(&mut diff, &chassis);
    site.places_in_others(&mut diff);
    NodeRemoval { txn: diff.into_txn(&nb::DATABASE), chassis }
}

/// What the southbound database has of a node.
pub struct NodeChassis {
    pub its: BTreeSet<String>,
    /// Chassis that another host has now, with that host's name: a renamed host keeps its chassis.
    pub others: Vec<(String, String)>,
}

/// Finds the chassis with the node's hostname, and those in `named` that belong to no other host.
pub fn chassis(node: &str, named: &BTreeSet<String>, sb: &Cache) -> NodeChassis {
    let mut found = NodeChassis { its: BTreeSet::new(), others: Vec::new() };
    for (_, row) in sb.iter(chassis::TABLE).filter(|(_, row)| !ovnkube_interconnect::is_remote(row)) {
        let (name, host) = (row.str(chassis::NAME), row.str(chassis::HOSTNAME));
        if host == node || (named.contains(name) && host.is_empty()) {
            found.its.insert(name.to_owned());
        } else if named.contains(name) {
            found.others.push((name.to_owned(), host.to_owned()));
        }
    }
    // rows that are left of a deleted chassis
    let private = sb.iter(chassis_private::TABLE).map(|(_, row)| row.str(chassis_private::NAME));
    let lone = private.filter(|name| named.contains(*name) && found.others.iter().all(|(other, _)| other != name));
    found.its.extend(lone.map(str::to_owned));
    found
}

/// A transaction that removes these chassis.
pub fn southbound(its: &BTreeSet<String>, sb: &Cache) -> Txn {
    crate::chassis::remove(sb, |name| its.contains(name))
}

/// What the name of a node's load balancer has between service and node.
const KINDS: [&str; 4] = ["node_router+switch", "node_router", "node_local_router", "node_switch"];

/// A node as the northbound database shows it.
struct NodeRows<'a> {
    node: &'a str,
    nb: &'a Cache,
    /// Subnets of its switch.
    subnets: Vec<IpNetwork>,
    /// Addresses of its gateway router on the join switch.
    joins: Vec<IpAddr>,
    takeover: Takeover<'static>,
}

impl<'a> NodeRows<'a> {
    fn of(node: &'a str, nb: &'a Cache) -> Self {
        let networks = |port: &str| {
            let rows = nb.named(lrp::TABLE, port);
            rows.flat_map(|(_, row)| row.strs(lrp::NETWORKS)).filter_map(|text| text.parse().ok()).collect::<Vec<_>>()
        };
        let joins = networks(&names::GATEWAY_TO_JOIN.of(node)).iter().map(IpNetwork::ip).collect();
        let takeover = takeover(nb, Takeover::default(), |_| false);
        Self { node, nb, subnets: networks(&names::ROUTER_TO_SWITCH.of(node)), joins, takeover }
    }

    fn chassis(&self) -> BTreeSet<String> {
        let of_port = self.nb.iter(gateway_chassis::TABLE).map(|(_, row)| {
            let chassis = row.str(gateway_chassis::CHASSIS_NAME);
            (row.str(gateway_chassis::NAME) == format!("{}-{chassis}", names::ROUTER_TO_SWITCH.of(self.node)), chassis)
        });
        let own = names::GATEWAY_ROUTER.of(self.node);
        let of_router = self.nb.iter(lr::TABLE).filter_map(|(_, row)| {
            let is_it = row.str(lr::NAME) == own;
            Some((is_it, row.map(lr::OPTIONS).get("chassis").filter(|id| !id.is_empty())?))
        });
        let (its, others): (Vec<_>, Vec<_>) = of_port.chain(of_router).partition(|(is_it, _)| *is_it);
        let others: BTreeSet<&str> = others.into_iter().map(|(_, id)| id).collect();
        its.into_iter().filter(|(_, id)| !others.contains(id)).map(|(_, id)| id.to_owned()).collect()
    }

    /// Deletes the rows that belong to this node alone; their child rows go with them.
    fn own_rows(&self, diff: &mut Diff<'_>, chassis: &BTreeSet<String>) {
        let node = self.node;
        for name in [node.to_owned(), names::EXTERNAL_SWITCH.of(node)] {
            for (uuid, row) in self.nb.named(ls::TABLE, &name) {
                if is_garbage(row, has_router_peer_port(self.nb, row)) {
                    diff.delete(ls::TABLE, uuid);
                }
            }
        }
        for (uuid, row) in self.nb.named(lr::TABLE, &names::GATEWAY_ROUTER.of(node)) {
            if is_garbage(row, false) {
                diff.delete(lr::TABLE, uuid);
            }
        }
        let mut delete = |table: &'static Table, is_it: &dyn Fn(&Row) -> bool| {
            for (uuid, _) in self.nb.iter(table).filter(|(_, row)| is_it(row)) {
                diff.delete(table, uuid);
            }
        };
        let outer = names::GATEWAY_TO_EXTERNAL.of(node);
        delete(static_mac_binding::TABLE, &|row| {
            row.str(static_mac_binding::LOGICAL_PORT) == outer && self.takeover.is_left("", row)
        });
        delete(chassis_template_var::TABLE, &|row| chassis.contains(row.str(chassis_template_var::CHASSIS)));
        for (uuid, _) in self.nb.iter(load_balancer::TABLE).filter(|(uuid, row)| self.is_own_balancer(*uuid, row)) {
            diff.delete(load_balancer::TABLE, uuid);
        }
    }

    /// Whether a load balancer belongs to a service and is only on this node's switch and router.
    fn is_own_balancer(&self, uuid: Uuid, row: &Row) -> bool {
        let own = [(ls::TABLE.id, self.node.to_owned()), (lr::TABLE.id, names::GATEWAY_ROUTER.of(self.node))];
        let mut parents = self.nb.parents(uuid).map(|parent| {
            let name =
                |row: &Row| row.str(if parent.table.id == ls::TABLE.id { ls::NAME } else { lr::NAME }).to_owned();
            self.nb.get(parent.table, parent.uuid).is_some_and(|row| own.contains(&(parent.table.id, name(row))))
        });
        row.map(load_balancer::EXTERNAL_IDS).get("k8s.ovn.org/kind") == Some("Service")
            && match parents.next() {
                Some(first) => first && parents.all(|is_own| is_own),
                // its switch and router are gone already
                None => {
                    KINDS.iter().any(|kind| row.str(load_balancer::NAME).ends_with(&format!("_{kind}_{}", self.node)))
                }
            }
    }

    /// Removes what the node has in rows that all nodes share.
    fn places_in_others(&self, diff: &mut Diff<'_>) {
        let node = self.node;
        let port = names::ROUTER_TO_SWITCH.of(node);
        let inport = format!("inport == \"{port}\"");
        for (router, row) in
            self.nb.iter(lr::TABLE).filter(|(_, row)| row.map(lr::EXTERNAL_IDS).contains_key("k8s-cluster-router"))
        {
            self.drop_children(diff, (router, row), lr::PORTS, lrp::TABLE, |child| child.str(lrp::NAME) == port);
            self.drop_children(diff, (router, row), lr::POLICIES, policy::TABLE, |child| {
                child.str(policy::MATCH).contains(&inport) && self.is_own_row(row, child)
            });
            self.drop_children(diff, (router, row), lr::STATIC_ROUTES, route::TABLE, |child| {
                let next_hop = child.str(route::NEXTHOP).parse();
                next_hop.is_ok_and(|ip| self.has(ip)) && self.is_own_row(row, child)
            });
        }
        let port = names::JOIN_TO_GATEWAY.of(node);
        for (join, row) in self.nb.named(ls::TABLE, names::JOIN_SWITCH) {
            self.drop_children(diff, (join, row), ls::PORTS, lsp::TABLE, |child| child.str(lsp::NAME) == port);
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

    fn is_own_row(&self, router: &Row, row: &Row) -> bool {
        is_garbage(row, false) || self.takeover.is_left(router.str(lr::NAME), row)
    }

    fn has(&self, ip: IpAddr) -> bool {
        self.joins.contains(&ip) || self.subnets.iter().any(|subnet| subnet.contains(ip))
    }
}
