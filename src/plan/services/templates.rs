//! Node ports of all nodes in one row: each chassis fills in its own addresses.
//!
//! ```text
//! Load_Balancer …_node_switch_template_IPv4    ^NODEIP_IPv4_0:30080 -> 10.128.0.5:8080,…
//! Chassis_Template_Var <chassis>               NODEIP_IPv4_0 = 172.18.0.2
//! ```

use std::net::IpAddr;
use std::sync::Arc;

use ovnkube_model::{Affected, Family, Name, ObjectKey, Protocol, Roles, Site, World};
use ovnkube_ovn::Row;
use ovnkube_ovn::nb::chassis_template_var as ctv;

use super::balancer::{Balancer, Variable, Vips, name};
use super::configs::Config;
use super::targets::{on_router, on_switch};
use crate::feature::affected_nodes;
use crate::{Feature, RowWant, Want, names};

/// Addresses of nodes as variables of their chassis.
pub struct NodeIps;

impl Feature for NodeIps {
    type Key = Name;

    fn is_enabled(roles: Roles) -> bool {
        roles.controller
    }

    fn affected(what: &Affected, world: &World) -> Vec<Name> {
        affected_nodes(what, world)
    }

    fn want(node: &Name, world: &World) -> Want {
        let mut want = Want::default();
        let router = world.sites.get(node).and_then(|site| Some((site, site.router.as_ref()?)));
        let Some((site, router)) = router.filter(|_| world.settings.svc_template_support) else { return want };
        let chassis = want.row(
            RowWant::new(router.chassis.clone(), Row::new(ctv::TABLE)).with(ctv::CHASSIS, router.chassis.as_ref()),
        );
        for family in world.settings.families() {
            for (number, ip) in ips(site, family).enumerate() {
                want.entry(&chassis, ctv::VARIABLES, node_ip(family, number), ip.to_string());
            }
        }
        want
    }
}

/// One row for the switches and one for the routers, for each family. The nodes are in groups that use the same endpoints.
pub(super) fn balancers(
    key: &ObjectKey,
    protocol: Protocol,
    configs: &[&Config<'_>],
    groups: &[Vec<(&Name, &Site)>],
    world: &World,
) -> Vec<Balancer> {
    let mut all = Vec::new();
    for family in world.settings.families() {
        let most = world.sites.values().map(|site| ips(site, family).count()).max();
        let serving = Serving::new(groups, family);
        for (side, group) in [("node_switch", names::SWITCH_LB_GROUP), ("node_router", names::ROUTER_LB_GROUP)] {
            let scope = format!("{side}_template_{}", kubernetes(family));
            let (mut vips, mut variables) = (Vips::new(), Vec::new());
            for config in configs {
                let on = |(node, site): (&Name, &Site)| match side {
                    "node_switch" => on_switch(config, family, node, site),
                    _ => on_router(config, family, node, site, &world.settings),
                };
                let variable = name(key, protocol, &format!("{}_{scope}", config.port));
                let targets = serving.targets(&config.behind(family).cluster_text, on, &variable, &mut variables);
                for number in 0..most.unwrap_or_default() {
                    vips.insert(format!("^{}:{}", node_ip(family, number), config.port), targets.clone());
                }
            }
            let balancer = Balancer::new(key, protocol, &scope, vips);
            all.extend(balancer.map(|b| Balancer { template: Some(family), groups: vec![group], variables, ..b }));
        }
    }
    all
}

/// The nodes that have node ports at addresses of a family.
struct Serving<'a> {
    /// The first one of each group.
    firsts: Vec<(&'a Name, &'a Site)>,
    /// The name, the chassis, and the place of its group in `firsts`; sorted.
    nodes: Vec<(&'a Name, &'a Name, usize)>,
}

impl<'a> Serving<'a> {
    fn new(groups: &[Vec<(&'a Name, &'a Site)>], family: Family) -> Self {
        let (mut firsts, mut nodes) = (Vec::new(), Vec::new());
        for group in groups {
            let serving = || group.iter().copied().filter(|(_, site)| ips(site, family).next().is_some());
            let Some(first) = serving().next() else { continue };
            let chassis = serving().filter_map(|(node, site)| Some((node, &site.router.as_ref()?.chassis)));
            nodes.extend(chassis.map(|(node, chassis)| (node, chassis, firsts.len())));
            firsts.push(first);
        }
        nodes.sort_unstable();
        Self { firsts, nodes }
    }

    /// The endpoints `same` if all nodes use these, else a variable for those that each node uses.
    fn targets(
        &self,
        same: &Arc<str>,
        on: impl Fn((&'a Name, &'a Site)) -> Arc<str>,
        variable: &str,
        variables: &mut Vec<Variable>,
    ) -> Arc<str> {
        let of_groups: Vec<_> = self.firsts.iter().copied().map(on).collect();
        if of_groups.iter().all(|targets| targets == same) {
            return same.clone();
        }
        let name: Arc<str> = variable_name(variable).into();
        variables.extend(self.nodes.iter().filter_map(|(_, chassis, group)| {
            let value = of_groups.get(*group)?.clone();
            Some(Variable { chassis: Name::clone(chassis), name: name.clone(), value })
        }));
        format!("^{name}").into()
    }
}

fn ips(site: &Site, family: Family) -> impl Iterator<Item = IpAddr> {
    site.node_port_ips().iter().copied().filter(move |ip| Family::of(*ip) == family)
}

fn node_ip(family: Family, number: usize) -> String {
    format!("NODEIP_{}_{number}", kubernetes(family))
}

fn kubernetes(family: Family) -> &'static str {
    if family == Family::V4 { "IPv4" } else { "IPv6" }
}

/// A name that OVN accepts for a variable: `_` is doubled, what it does not accept becomes `_`.
fn variable_name(text: &str) -> String {
    text.replace('_', "__").replace(['/', '-', '$', '@'], "_")
}
