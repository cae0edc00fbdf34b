//! Rows that ovn-kubernetes has left without marks: on routers it marks only one route, and Static_MAC_Binding has no
//! column for marks.
//!
//! Such a row is ours to remove if it equals, value by value, what ovn-kubernetes writes for a present or former node.
//! Former nodes are known by the ports that the database still has of them: `rtos-<node>`, `rtoj-GR_<node>`,
//! `rtoe-GR_<node>`. A node whose gateway router stays and has our mark was taken over already: its rows have marks by
//! now, so an unmarked row is not the node's, however similar it looks.

use std::collections::HashMap;
use std::net::IpAddr;

use ovnkube_model::{ClusterSubnet, Family, Mac, Masquerade, NetworkSettings, Subnet};
use ovnkube_ovn::nb::{
    logical_router as lr, logical_router_policy as policy, logical_router_port as lrp,
    logical_router_static_route as route, nat, static_mac_binding as smb,
};
use ovnkube_ovn::{Row, Single, kind};

use crate::gateway::routes::{MASQUERADE_ROUTE, TO_NODE, to_node};
use crate::names::{
    CLUSTER_ROUTER, CLUSTER_ROUTER_TO_JOIN, GATEWAY_ROUTER, GATEWAY_TO_EXTERNAL, GATEWAY_TO_JOIN, ROUTER_TO_SWITCH,
};
use crate::whose::{Ownership, is_planned, ownership};

/// What the database says about a node.
#[derive(Default)]
struct KnownNode {
    subnets: Vec<Subnet>,
    /// Addresses of its gateway router on the join switch.
    joins: Vec<IpAddr>,
    /// Addresses of its gateway router outside.
    outer: Vec<IpAddr>,
    taken_over: bool,
    /// Tables in which its gateway router has marked rows: these were taken over even if the router lost its own mark.
    marked: Vec<&'static str>,
    /// Bare default routes. ovn-kubernetes has one in each family: of several it is not known which.
    defaults: Vec<Family>,
    /// Pods leave by an SNAT of their range, so that there is none for each pod.
    by_range: bool,
}

/// Collects the rows that show which nodes there are, then judges others; see the module.
#[derive(Default)]
pub struct Takeover<'a> {
    ranges: &'a [ClusterSubnet],
    masquerades: Vec<Masquerade>,
    /// Addresses of the cluster router on the join switch.
    hub: Vec<IpAddr>,
    nodes: HashMap<String, KnownNode>,
}

impl<'a> Takeover<'a> {
    pub fn new(network: &'a NetworkSettings) -> Self {
        let masquerades = network.masquerade_subnets.iter().filter_map(|subnet| Masquerade::of(*subnet)).collect();
        Self { ranges: &network.cluster_subnets, masquerades, ..Self::default() }
    }

    /// Adds a port of a router.
    pub fn port(&mut self, row: &Row) {
        let name = row.str(lrp::NAME);
        let networks = || row.strs(lrp::NETWORKS).filter_map(|text| text.parse::<ipnetwork::IpNetwork>().ok());
        if let Some(node) = GATEWAY_TO_JOIN.node(name) {
            self.node_entry(node).joins.extend(networks().map(|network| network.ip()));
        } else if let Some(node) = GATEWAY_TO_EXTERNAL.node(name) {
            self.node_entry(node).outer.extend(networks().map(|network| network.ip()));
        } else if let Some(node) = ROUTER_TO_SWITCH.node(name) {
            self.node_entry(node).subnets.extend(networks().map(Subnet::of));
        } else if name == CLUSTER_ROUTER_TO_JOIN {
            self.hub.extend(networks().map(|network| network.ip()));
        }
    }

    /// Adds a router that stays.
    pub fn router(&mut self, row: &Row) {
        if let Some(node) = GATEWAY_ROUTER.node(row.str(lr::NAME))
            && is_planned(row)
        {
            self.node_entry(node).taken_over = true;
        }
    }

    /// Adds a route of a gateway router, or a NAT rule.
    pub fn on_gateway(&mut self, router: &str, row: &Row) {
        let Some(node) = GATEWAY_ROUTER.node(router) else { return };
        let (ownership, table) = (ownership(row), row.table().name);
        let node_entry = self.nodes.entry(node.to_owned()).or_default();
        if ownership == Ownership::Marked && !node_entry.marked.contains(&table) {
            node_entry.marked.push(table);
        }
        if ownership != Ownership::Foreign && row.external_ids().contains_key(MASQUERADE_ROUTE) {
            let masquerade = row.str(route::IP_PREFIX).parse().ok().and_then(Masquerade::of);
            self.masquerades.extend(masquerade.filter(|masquerade| !self.masquerades.contains(masquerade)));
        } else if ownership == Ownership::Bare && row.table() == nat::TABLE {
            let by_range = self.is_range(row.str(nat::LOGICAL_IP));
            self.node_entry(node).by_range |= by_range;
        } else if ownership == Ownership::Bare
            && let Some(family) = default_route(node, row)
        {
            self.node_entry(node).defaults.push(family);
        }
    }

    fn node_entry(&mut self, node: &str) -> &mut KnownNode {
        self.nodes.entry(node.to_owned()).or_default()
    }

    /// Whether ovn-kubernetes wrote this row in the router of this name; rows that are in none ignore the name.
    pub fn is_left(&self, router: &str, row: &Row) -> bool {
        let gateway = GATEWAY_ROUTER.node(router).and_then(|node| Some((node, self.nodes.get(node)?)));
        match (row.table().name, gateway) {
            ("Static_MAC_Binding", _) => self.is_binding(row).unwrap_or_default(),
            _ if ownership(row) != Ownership::Bare => false,
            (table, Some((_, node_entry))) if node_entry.taken_over || node_entry.marked.contains(&table) => false,
            ("Logical_Router_Static_Route", Some((node, node_entry))) => self.is_gateway_route(node, node_entry, row),
            ("NAT", Some((_, node_entry))) => self.is_snat(node_entry, row).unwrap_or_default(),
            ("Logical_Router_Static_Route", None) if router == CLUSTER_ROUTER => {
                self.is_cluster_route(row).unwrap_or_default()
            }
            ("Logical_Router_Policy", None) if router == CLUSTER_ROUTER => self.is_policy(row).unwrap_or_default(),
            _ => false,
        }
    }

    /// A route from a node's subnet to its gateway router or its management port, or to that router itself.
    fn is_cluster_route(&self, row: &Row) -> Option<bool> {
        if !row.external_ids().is_empty() || has(row, route::OUTPUT_PORT) || has(row, route::ROUTE_TABLE) {
            return None;
        }
        let (prefix, hop) = (row.str(route::IP_PREFIX), ip(row, route::NEXTHOP)?);
        let mut nodes =
            self.nodes.values().filter(|node_entry| !node_entry.taken_over && node_entry.joins.contains(&hop));
        match row.str(route::POLICY) {
            "" => Some(prefix == hop.to_string() && nodes.next().is_some()),
            "src-ip" => {
                let subnet: Subnet = prefix.parse().ok()?;
                let by_management = subnet.nth(2) == Some(hop);
                Some(match self.nodes.values().find(|node_entry| node_entry.subnets.contains(&subnet)) {
                    Some(node_entry) => !node_entry.taken_over && (by_management || node_entry.joins.contains(&hop)),
                    // the node's switch is deleted before its routes
                    None => {
                        self.is_nodes(subnet)
                            && (by_management || nodes.any(|node_entry| node_entry.subnets.is_empty()))
                    }
                })
            }
            _ => None,
        }
    }

    /// A policy from a node's pods to an address of the node, by its management port.
    fn is_policy(&self, row: &Row) -> Option<bool> {
        let mut hops = row.strs(policy::NEXTHOPS);
        let (hop, more): (IpAddr, _) = (hops.next()?.parse().ok()?, hops.next());
        let text = row.str(policy::MATCH);
        let (port, rest) = text.strip_prefix("inport == \"")?.split_once('"')?;
        let node = ROUTER_TO_SWITCH.node(port)?;
        let host = rest.split_once(".dst == ")?.1.split_once(' ')?.0.parse().ok()?;
        let is_it = row.int(policy::PRIORITY) == TO_NODE && row.str(policy::ACTION) == "reroute" && more.is_none();
        if !is_it || text != to_node(node, host) {
            return None;
        }
        Some(match self.nodes.get(node).filter(|node_entry| node_entry.taken_over || !node_entry.subnets.is_empty()) {
            Some(node_entry) => {
                !node_entry.taken_over && node_entry.subnets.iter().any(|subnet| subnet.nth(2) == Some(hop))
            }
            None => self.ranges.iter().any(|range| {
                let subnet = ipnetwork::IpNetwork::new(hop, range.host_prefix).ok().map(Subnet::of);
                subnet.is_some_and(|subnet| subnet.nth(2) == Some(hop) && self.is_nodes(subnet))
            }),
        })
    }

    /// A route to the cluster, to the host's side of the bridge, or out.
    fn is_gateway_route(&self, node: &str, node_entry: &KnownNode, row: &Row) -> bool {
        if has(row, route::POLICY) || has(row, route::ROUTE_TABLE) {
            return false;
        }
        let hop = ip(row, route::NEXTHOP);
        if row.external_ids().contains_key(MASQUERADE_ROUTE) {
            let is_out = row.str(route::OUTPUT_PORT) == GATEWAY_TO_EXTERNAL.of(node);
            return is_out && self.masquerades.iter().any(|masquerade| hop == Some(masquerade.next_hop));
        }
        if let Some(family) = default_route(node, row) {
            return node_entry.defaults.iter().filter(|other| **other == family).count() == 1;
        }
        let to_cluster = hop.is_some_and(|hop| self.hub.contains(&hop));
        to_cluster && !has(row, route::OUTPUT_PORT) && self.is_range(row.str(route::IP_PREFIX))
    }

    /// SNAT to the node's address: from the router's own, a range of the cluster, or a pod. Also the SNAT of the host's
    /// address that this program wrote before it used marks.
    fn is_snat(&self, node_entry: &KnownNode, row: &Row) -> Option<bool> {
        if row.str(nat::TYPE) != "snat" || has(row, nat::LOGICAL_PORT) || has(row, nat::MATCH) {
            return None;
        }
        let external = ip(row, nat::EXTERNAL_IP)?;
        if self.is_range(row.str(nat::LOGICAL_IP)) {
            return Some(node_entry.outer.contains(&external));
        }
        let logical = ip(row, nat::LOGICAL_IP)?;
        let is_pod = || !node_entry.by_range && node_entry.subnets.iter().any(|subnet| subnet.contains(logical));
        let is_host = || self.masquerades.iter().any(|masquerade| masquerade.host.ip() == logical);
        Some(
            node_entry.outer.contains(&external) && (node_entry.joins.contains(&logical) || is_pod())
                || node_entry.joins.contains(&external) && is_host(),
        )
    }

    /// The address of a next hop that no machine has.
    fn is_binding(&self, row: &Row) -> Option<bool> {
        GATEWAY_TO_EXTERNAL.node(row.str(smb::LOGICAL_PORT))?;
        let ip = ip(row, smb::IP)?;
        let is_nobody = self.masquerades.iter().any(|masquerade| masquerade.next_hop == ip);
        Some(is_nobody && row.str(smb::MAC) == Mac::of(ip).to_string() && row.bool(smb::OVERRIDE_DYNAMIC_MAC))
    }

    fn is_range(&self, prefix: &str) -> bool {
        prefix.parse().is_ok_and(|prefix: Subnet| self.ranges.iter().any(|range| range.cidr == prefix))
    }

    /// Whether a subnet is as large as nodes' are, and belongs to no node in the database.
    fn is_nodes(&self, subnet: Subnet) -> bool {
        let of_range =
            |range: &ClusterSubnet| range.host_prefix == subnet.prefix() && range.cidr.contains_subnet(subnet);
        self.ranges.iter().any(of_range) && self.nodes.values().all(|node_entry| !node_entry.subnets.contains(&subnet))
    }
}

/// The family of a bare default route to the outside.
fn default_route(node: &str, row: &Row) -> Option<Family> {
    let is_out = row.str(route::OUTPUT_PORT) == GATEWAY_TO_EXTERNAL.of(node);
    if !is_out || !row.external_ids().is_empty() || has(row, route::POLICY) || has(row, route::ROUTE_TABLE) {
        return None;
    }
    match row.str(route::IP_PREFIX) {
        "0.0.0.0/0" => Some(Family::V4),
        "::/0" => Some(Family::V6),
        _ => None,
    }
}

fn has<T: Single<kind::Str>>(row: &Row, column: ovnkube_ovn::Column<T>) -> bool {
    !row.str(column).is_empty()
}

fn ip<T: Single<kind::Str>>(row: &Row, column: ovnkube_ovn::Column<T>) -> Option<IpAddr> {
    row.str(column).parse().ok()
}
