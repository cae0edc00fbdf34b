//! What ovn-kubernetes has left without marks: on routers it marks nothing but one route, and Static_MAC_Binding has no
//! place for marks.
//!
//! Such a row is ours to remove if it is, value by value, what ovn-kubernetes writes for a node that is or was. What
//! nodes were is told by the ports that the database still has of them: `rtos-<node>`, `rtoj-GR_<node>`,
//! `rtoe-GR_<node>`. A node whose gateway router stays and has our mark was taken over already: what had no marks then
//! has some now, so what has none is not its node's, however much it looks like it.

use std::collections::HashMap;
use std::net::IpAddr;

use ovnkube_model::{ClusterSubnet, Family, Mac, Masquerade, Network, Subnet};
use ovnkube_ovn::nb::{
    logical_router as lr, logical_router_policy as policy, logical_router_port as lrp,
    logical_router_static_route as route, nat, static_mac_binding as smb,
};
use ovnkube_ovn::{Row, Single, kind};

use crate::gateway::routes::{MASQUERADE_ROUTE, TO_NODE, to_node};
use crate::names::CLUSTER_ROUTER;
use crate::whose::{Claim, claim, is_gateways, node_of};

/// A node as the database has it.
#[derive(Default)]
struct Site {
    subnets: Vec<Subnet>,
    /// Of its gateway router on the join switch.
    joins: Vec<IpAddr>,
    /// Of its gateway router outside.
    outer: Vec<IpAddr>,
    taken_over: bool,
    /// Tables of which its gateway router has rows with marks: these were taken over even if the router has lost its own.
    marked: Vec<&'static str>,
    /// Bare default routes. ovn-kubernetes has one in each family: where there are more it can't be told which.
    defaults: Vec<Family>,
    /// Pods leave by their range's SNAT, so that none was made for each.
    by_range: bool,
}

/// See the module. Is told of the rows that say what nodes there are, then judges others.
#[derive(Default)]
pub struct Takeover<'a> {
    ranges: &'a [ClusterSubnet],
    masquerades: Vec<Masquerade>,
    /// Of the cluster router on the join switch.
    hub: Vec<IpAddr>,
    sites: HashMap<String, Site>,
}

impl<'a> Takeover<'a> {
    pub fn new(network: &'a Network) -> Self {
        let masquerades = network.masquerade_subnets.iter().filter_map(|subnet| Masquerade::of(*subnet)).collect();
        Self { ranges: &network.cluster_subnets, masquerades, ..Self::default() }
    }

    /// A port of a router.
    pub fn port(&mut self, row: &Row) {
        let name = row.str(lrp::NAME);
        let networks = || row.strs(lrp::NETWORKS).filter_map(|text| text.parse::<ipnetwork::IpNetwork>().ok());
        if let Some(node) = node_of(name, "rtoj-GR_") {
            self.site(node).joins.extend(networks().map(|network| network.ip()));
        } else if let Some(node) = node_of(name, "rtoe-GR_") {
            self.site(node).outer.extend(networks().map(|network| network.ip()));
        } else if let Some(node) = node_of(name, "rtos-") {
            self.site(node).subnets.extend(networks().map(Subnet::of));
        } else if name.strip_prefix("rtoj-") == Some(CLUSTER_ROUTER) {
            self.hub.extend(networks().map(|network| network.ip()));
        }
    }

    /// A router that stays.
    pub fn router(&mut self, row: &Row) {
        if let Some(node) = node_of(row.str(lr::NAME), "GR_")
            && is_gateways(row)
        {
            self.site(node).taken_over = true;
        }
    }

    /// A route of a gateway router, or a NAT rule.
    pub fn on_gateway(&mut self, router: &str, row: &Row) {
        let Some(node) = node_of(router, "GR_") else { return };
        let (claim, table) = (claim(row), row.table().name);
        let site = self.sites.entry(node.to_owned()).or_default();
        if claim == Claim::Marked && !site.marked.contains(&table) {
            site.marked.push(table);
        }
        if claim != Claim::Foreign && row.external_ids().contains_key(MASQUERADE_ROUTE) {
            let masquerade = row.str(route::IP_PREFIX).parse().ok().and_then(Masquerade::of);
            self.masquerades.extend(masquerade.filter(|masquerade| !self.masquerades.contains(masquerade)));
        } else if claim == Claim::Bare && row.table() == nat::TABLE {
            let by_range = self.is_range(row.str(nat::LOGICAL_IP));
            self.site(node).by_range |= by_range;
        } else if claim == Claim::Bare
            && let Some(family) = default_route(node, row)
        {
            self.site(node).defaults.push(family);
        }
    }

    fn site(&mut self, node: &str) -> &mut Site {
        self.sites.entry(node.to_owned()).or_default()
    }

    /// Whether ovn-kubernetes has written this row in the router of this name; it doesn't matter for rows that are in none.
    pub fn is_left(&self, router: &str, row: &Row) -> bool {
        let gateway = node_of(router, "GR_").and_then(|node| Some((node, self.sites.get(node)?)));
        match (row.table().name, gateway) {
            ("Static_MAC_Binding", _) => self.is_binding(row).unwrap_or_default(),
            _ if claim(row) != Claim::Bare => false,
            (table, Some((_, site))) if site.taken_over || site.marked.contains(&table) => false,
            ("Logical_Router_Static_Route", Some((node, site))) => self.is_gateway_route(node, site, row),
            ("NAT", Some((_, site))) => self.is_snat(site, row).unwrap_or_default(),
            ("Logical_Router_Static_Route", None) if router == CLUSTER_ROUTER => {
                self.is_cluster_route(row).unwrap_or_default()
            }
            ("Logical_Router_Policy", None) if router == CLUSTER_ROUTER => self.is_policy(row).unwrap_or_default(),
            _ => false,
        }
    }

    /// From a node's subnet to its gateway router or its management port, or to that router itself.
    fn is_cluster_route(&self, row: &Row) -> Option<bool> {
        if !row.external_ids().is_empty() || has(row, route::OUTPUT_PORT) || has(row, route::ROUTE_TABLE) {
            return None;
        }
        let (prefix, hop) = (row.str(route::IP_PREFIX), ip(row, route::NEXTHOP)?);
        let mut sites = self.sites.values().filter(|site| !site.taken_over && site.joins.contains(&hop));
        match row.str(route::POLICY) {
            "" => Some(prefix == hop.to_string() && sites.next().is_some()),
            "src-ip" => {
                let subnet: Subnet = prefix.parse().ok()?;
                let by_management = subnet.nth(2) == Some(hop);
                Some(match self.sites.values().find(|site| site.subnets.contains(&subnet)) {
                    Some(site) => !site.taken_over && (by_management || site.joins.contains(&hop)),
                    // the node's switch goes before its routes
                    None => self.is_nodes(subnet) && (by_management || sites.any(|site| site.subnets.is_empty())),
                })
            }
            _ => None,
        }
    }

    /// From a node's pods to an address of the node, by its management port.
    fn is_policy(&self, row: &Row) -> Option<bool> {
        let mut hops = row.strs(policy::NEXTHOPS);
        let (hop, more): (IpAddr, _) = (hops.next()?.parse().ok()?, hops.next());
        let text = row.str(policy::MATCH);
        let (node, rest) = text.strip_prefix("inport == \"rtos-")?.split_once('"')?;
        let host = rest.split_once(".dst == ")?.1.split_once(' ')?.0.parse().ok()?;
        let is_it = row.int(policy::PRIORITY) == TO_NODE && row.str(policy::ACTION) == "reroute" && more.is_none();
        if !is_it || text != to_node(node, host) || node_of(node, "").is_none() {
            return None;
        }
        Some(match self.sites.get(node).filter(|site| site.taken_over || !site.subnets.is_empty()) {
            Some(site) => !site.taken_over && site.subnets.iter().any(|subnet| subnet.nth(2) == Some(hop)),
            None => self.ranges.iter().any(|range| {
                let subnet = ipnetwork::IpNetwork::new(hop, range.host_prefix).ok().map(Subnet::of);
                subnet.is_some_and(|subnet| subnet.nth(2) == Some(hop) && self.is_nodes(subnet))
            }),
        })
    }

    /// To the cluster, to the host's side of the bridge, and out.
    fn is_gateway_route(&self, node: &str, site: &Site, row: &Row) -> bool {
        if has(row, route::POLICY) || has(row, route::ROUTE_TABLE) {
            return false;
        }
        let hop = ip(row, route::NEXTHOP);
        if row.external_ids().contains_key(MASQUERADE_ROUTE) {
            let is_out = row.str(route::OUTPUT_PORT) == format!("rtoe-GR_{node}");
            return is_out && self.masquerades.iter().any(|masquerade| hop == Some(masquerade.next_hop));
        }
        if let Some(family) = default_route(node, row) {
            return site.defaults.iter().filter(|other| **other == family).count() == 1;
        }
        let to_cluster = hop.is_some_and(|hop| self.hub.contains(&hop));
        to_cluster && !has(row, route::OUTPUT_PORT) && self.is_range(row.str(route::IP_PREFIX))
    }

    /// To the node's address: from the router's own, a range of the cluster, or a pod. And what this program made of the
    /// host's before it marked anything.
    fn is_snat(&self, site: &Site, row: &Row) -> Option<bool> {
        if row.str(nat::TYPE) != "snat" || has(row, nat::LOGICAL_PORT) || has(row, nat::MATCH) {
            return None;
        }
        let external = ip(row, nat::EXTERNAL_IP)?;
        if self.is_range(row.str(nat::LOGICAL_IP)) {
            return Some(site.outer.contains(&external));
        }
        let logical = ip(row, nat::LOGICAL_IP)?;
        let is_pod = || !site.by_range && site.subnets.iter().any(|subnet| subnet.contains(logical));
        let is_host = || self.masquerades.iter().any(|masquerade| masquerade.host.ip() == logical);
        Some(
            site.outer.contains(&external) && (site.joins.contains(&logical) || is_pod())
                || site.joins.contains(&external) && is_host(),
        )
    }

    /// The address of a neighbour that is nobody.
    fn is_binding(&self, row: &Row) -> Option<bool> {
        node_of(row.str(smb::LOGICAL_PORT), "rtoe-GR_")?;
        let ip = ip(row, smb::IP)?;
        let is_nobody = self.masquerades.iter().any(|masquerade| masquerade.next_hop == ip);
        Some(is_nobody && row.str(smb::MAC) == Mac::of(ip).to_string() && row.bool(smb::OVERRIDE_DYNAMIC_MAC))
    }

    fn is_range(&self, prefix: &str) -> bool {
        prefix.parse().is_ok_and(|prefix: Subnet| self.ranges.iter().any(|range| range.cidr == prefix))
    }

    /// Whether it is as large as nodes' are, and no node's that the database has.
    fn is_nodes(&self, subnet: Subnet) -> bool {
        let of_range =
            |range: &ClusterSubnet| range.host_prefix == subnet.prefix() && range.cidr.contains_subnet(subnet);
        self.ranges.iter().any(of_range) && self.sites.values().all(|site| !site.subnets.contains(&subnet))
    }
}

/// The family of a bare route to everywhere outside.
fn default_route(node: &str, row: &Row) -> Option<Family> {
    let is_out = row.str(route::OUTPUT_PORT) == format!("rtoe-GR_{node}");
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
