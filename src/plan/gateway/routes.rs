//! Routes, policies and NAT of a gateway. Other programs have such rows on the same routers, so each of ours is marked.

use std::net::IpAddr;

use ovnkube_model::{Family, GatewayMode, Masquerade, Subnet};
use ovnkube_ovn::nb::{
    logical_router as lr, logical_router_policy as policy, logical_router_static_route as route, nat,
};
use ovnkube_ovn::{Row, owner};

use super::gateway_node::GatewayNode;
use crate::{RowKey, RowWant, Want, names, rows};

/// Priority of policies that send traffic for the node's own addresses over its management port.
pub(crate) const TO_NODE: i64 = 1004;
/// External id of the route to the host's side of the bridge.
pub(crate) const MASQUERADE_ROUTE: &str = "k8s.ovn.org/node-masquerade-subnet";

/// What a policy of priority [`TO_NODE`] matches: packets of a node's pods to an address of the node.
pub(crate) fn to_node(node: &str, host: IpAddr) -> String {
    let ip = Family::of(host).ovn();
    format!("inport == \"{}\" && {ip}.dst == {host} /* {node} */", names::ROUTER_TO_SWITCH.of(node))
}

/// Next hops that no machine has.
pub(super) fn dummy_next_hops(site: &GatewayNode<'_>) -> Vec<IpAddr> {
    masquerades(site).map(|(_, masquerade)| masquerade.next_hop).collect()
}

fn masquerades<'a>(site: &'a GatewayNode<'_>) -> impl Iterator<Item = (Subnet, Masquerade)> + 'a {
    let families = site.world.settings.families();
    let subnets = site.world.settings.masquerade_subnets.iter().copied();
    let subnets = subnets.filter(move |subnet| families.contains(&Family::of_subnet(*subnet)));
    subnets.filter_map(|subnet| Some((subnet, Masquerade::of(subnet)?)))
}

pub(super) fn routes(want: &mut Want, site: &GatewayNode<'_>, router: &RowKey) {
    let network = &site.world.settings;
    for range in &network.cluster_subnets {
        let join = network.join_subnet(Family::of_subnet(range.cidr)).and_then(|subnet| subnet.nth(1));
        if let Some(cluster_router) = join {
            add(want, router, marked_route(), range.cidr.to_string(), cluster_router);
        }
    }
    let out = site.outer_port();
    for (subnet, masquerade) in masquerades(site) {
        let ids = owner::marks(owner::GATEWAY).into_iter().chain([(MASQUERADE_ROUTE, "")]);
        let row = Row::new(route::TABLE).with(route::OUTPUT_PORT, Some(out.as_str())).with(route::EXTERNAL_IDS, ids);
        add(want, router, row, subnet.to_string(), masquerade.next_hop);
    }
    for next_hop in &site.gateway.next_hops {
        let everything = if next_hop.is_ipv6() { "::/0" } else { "0.0.0.0/0" };
        let row = marked_route().with(route::OUTPUT_PORT, Some(out.as_str()));
        add(want, router, row, everything.to_owned(), *next_hop);
    }
    cluster_routes(want, site);
    policies(want, site);
}

/// Routes on the cluster router: to the gateway router, and the way out for the node's pods.
fn cluster_routes(want: &mut Want, site: &GatewayNode<'_>) {
    let router = names::cluster_router();
    for join in site.joins.iter().map(ipnetwork::IpNetwork::ip) {
        add(want, &router, marked_route(), join.to_string(), join);
    }
    for subnet in &site.network.subnets {
        let next_hop = match site.gateway.mode {
            GatewayMode::Shared => site.join(Family::of_subnet(*subnet)),
            GatewayMode::Local => subnet.nth(2),
        };
        if let Some(next_hop) = next_hop {
            let row = marked_route().with(route::POLICY, Some("src-ip"));
            add(want, &router, row, subnet.to_string(), next_hop);
        }
    }
}

fn marked_route() -> Row {
    Row::new(route::TABLE).with(route::EXTERNAL_IDS, owner::marks(owner::GATEWAY))
}

fn add(want: &mut Want, router: &RowKey, row: Row, prefix: String, next_hop: IpAddr) {
    let row = row.with(route::IP_PREFIX, prefix).with(route::NEXTHOP, next_hop.to_string());
    let id = rows::identity(&row).unwrap_or_default();
    let key = want.row(RowWant::new(id, row).within(router));
    want.member(router, lr::STATIC_ROUTES, &key);
}

/// Pods reach the addresses of their own node through its management port.
fn policies(want: &mut Want, site: &GatewayNode<'_>) {
    let router = names::cluster_router();
    let mut hosts: Vec<IpAddr> =
        site.node.cidrs_with_rows().iter().chain(&site.gateway.ips).map(ipnetwork::IpNetwork::ip).collect();
    hosts.sort_unstable();
    hosts.dedup();
    for host in hosts {
        let family = Family::of(host);
        let management = site.network.management().map(|ip| ip.ip()).find(|ip| Family::of(*ip) == family);
        let Some(management) = management else { continue };
        let row = Row::new(policy::TABLE)
            .with(policy::PRIORITY, TO_NODE)
            .with(policy::MATCH, to_node(site.name, host))
            .with(policy::ACTION, "reroute")
            .with(policy::NEXTHOPS, [management.to_string()])
            .with(policy::EXTERNAL_IDS, owner::marks(owner::GATEWAY));
        let id = rows::identity(&row).unwrap_or_default();
        let key = want.row(RowWant::new(id, row).within(&router));
        want.member(&router, lr::POLICIES, &key);
    }
}

/// SNAT of what leaves to the node's address, and of the node's own processes to the router's.
pub(super) fn nat(want: &mut Want, site: &GatewayNode<'_>, router: &RowKey) {
    for join in site.joins.iter().map(ipnetwork::IpNetwork::ip) {
        // lb_force_snat_ip only applies to packets that the load balancer itself handled. Of a UDP connection
        // without a reply that is only the first: for the others the endpoint's node would reply to its own host
        if let Some(masquerade) = site.world.settings.masquerade(Family::of(join)) {
            snat(want, router, masquerade.host.ip().to_string(), join);
        }
    }
    for family in Family::ALL {
        let Some(ip) = site.gateway.outer_ip(family) else { continue };
        let joins = site.join(family).map(|join| join.to_string());
        let clusters =
            site.world.settings.cluster_subnets.iter().filter(|range| Family::of_subnet(range.cidr) == family);
        let clusters = clusters.filter(|_| !site.world.settings.disable_snat_multiple_gws).map(|r| r.cidr.to_string());
        for logical in joins.into_iter().chain(clusters) {
            snat(want, router, logical, ip);
        }
    }
}

/// SNAT for single pods instead of their range, so that one can be exempted.
pub(super) fn pod_nat(want: &mut Want, site: &GatewayNode<'_>, pod: IpAddr) {
    let router = RowKey::new(lr::TABLE, site.router_name());
    if let Some(ip) = site.gateway.outer_ip(Family::of(pod)) {
        snat(want, &router, pod.to_string(), ip);
    }
}

fn snat(want: &mut Want, router: &RowKey, logical: String, external: IpAddr) {
    let row = Row::new(nat::TABLE)
        .with(nat::TYPE, "snat")
        .with(nat::LOGICAL_IP, logical)
        .with(nat::EXTERNAL_IP, external.to_string())
        .with(nat::OPTIONS, [("stateless", "false")])
        .with(nat::EXTERNAL_IDS, owner::marks(owner::GATEWAY));
    let id = rows::identity(&row).unwrap_or_default();
    let key = want.row(RowWant::new(id, row).within(router));
    want.member(router, lr::NAT, &key);
}
