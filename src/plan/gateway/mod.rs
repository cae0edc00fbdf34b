//! Gateways: how traffic of a node's pods gets out, and outside traffic gets in.
//!
//! ```text
//!  LS join ──jtor-/rtoj-──  LR GR_<node>  ──rtoe-/etor-──  LS ext_<node> ──<bridge>_<node> (localnet)
//!                             ├ routes: cluster → join, masquerade and everything else → outside
//!                             └ SNAT: join address and cluster CIDRs (or each pod) → the node's first address,
//!                                     the host's masquerade address → join address
//!  LR ovn_cluster_router: from the node's subnet → GR_<node> (shared) or the management port (local)
//!                         to the node's own addresses → the management port
//! ```
//!
//! A node has a gateway once its agent has written `l3-gateway-config`.

mod gateway_node;
pub(crate) mod routes;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use ovnkube_model::{Affected, Name, Roles, World};
use ovnkube_ovn::nb::{
    logical_router as lr, logical_router_port as lrp, logical_switch as ls, logical_switch_port as lsp,
    static_mac_binding as smb,
};
use ovnkube_ovn::{Row, owner};

use self::gateway_node::GatewayNode;
use crate::feature::affected_nodes;
use crate::{Feature, RowKey, RowWant, Want, names};

pub struct Gateways;

impl Feature for Gateways {
    type Key = Name;

    fn is_enabled(roles: Roles) -> bool {
        roles.controller
    }

    fn affected(what: &Affected, world: &World) -> Vec<Name> {
        affected_nodes(what, world)
    }

    fn want(name: &Name, world: &World) -> Want {
        let mut want = Want::default();
        let Some(site) = GatewayNode::of(name, world) else { return want };
        let router = router(&mut want, &site);
        join(&mut want, &site, &router);
        outside(&mut want, &site, &router);
        routes::routes(&mut want, &site, &router);
        routes::nat(&mut want, &site, &router);
        want
    }
}

/// What a pod on this node needs at the gateway: with `disable-snat-multiple-gws` an SNAT of its own.
pub(crate) fn of_pod(want: &mut Want, node: &Name, addresses: impl Iterator<Item = IpAddr>, world: &World) {
    if !world.settings.disable_snat_multiple_gws {
        return;
    }
    if let Some(site) = GatewayNode::of(node, world) {
        addresses.for_each(|address| routes::pod_nat(want, &site, address));
    }
}

fn router(want: &mut Want, site: &GatewayNode<'_>) -> RowKey {
    let ips: Vec<_> = site.gateway.ips.iter().map(|ip| ip.ip().to_string()).collect();
    let first = ips.first().cloned().unwrap_or_default();
    let mut groups = vec![names::lb_group(names::CLUSTER_LB_GROUP)];
    if site.gateway.node_port {
        groups.push(names::lb_group(names::ROUTER_LB_GROUP));
    }
    let name = site.router_name();
    // marked like its routes: a router without the mark was last written by ovn-kubernetes
    let ids = [("physical_ip", first), ("physical_ips", ips.join(","))];
    let ids = ids.into_iter().chain(owner::marks(owner::GATEWAY).map(|(key, value)| (key, value.to_owned())));
    want.row(
        RowWant::new(name.as_str(), Row::new(lr::TABLE))
            .with(lr::NAME, name.as_str())
            .with(lr::EXTERNAL_IDS, ids)
            .with(
                lr::OPTIONS,
                [
                    ("chassis", site.chassis.as_ref()),
                    ("always_learn_from_arp_request", "false"),
                    ("dynamic_neigh_routers", "true"),
                    ("lb_force_snat_ip", "router_ip"),
                    ("mac_binding_age_threshold", "300"),
                    ("snat-ct-zone", "0"),
                ],
            )
            .refers(lr::COPP, [names::copp()])
            .refers(lr::LOAD_BALANCER_GROUP, groups),
    )
}

/// The router port and its peer on the join switch.
fn join(want: &mut Want, site: &GatewayNode<'_>, router: &RowKey) {
    let router_side = names::GATEWAY_TO_JOIN.of(site.name);
    let switch_side = names::JOIN_TO_GATEWAY.of(site.name);
    let first = site.joins.iter().min_by_key(|ip| ip.is_ipv6());
    let port = want.row(
        RowWant::new(router_side.as_str(), Row::new(lrp::TABLE))
            .with(lrp::NAME, router_side.as_str())
            .with(lrp::MAC, first.map(|ip| ovnkube_model::Mac::of(ip.ip()).to_string()).unwrap_or_default())
            .with(lrp::NETWORKS, site.joins.iter().map(ToString::to_string))
            .with(lrp::OPTIONS, gateway_mtu(site).map(|mtu| ("gateway_mtu", mtu.to_string()))),
    );
    want.member(router, lr::PORTS, &port);
    let port = want.row(
        RowWant::new(switch_side.as_str(), Row::new(lsp::TABLE))
            .with(lsp::NAME, switch_side.as_str())
            .with(lsp::TYPE, "router")
            .with(lsp::ADDRESSES, ["router"])
            .with(lsp::OPTIONS, [("router-port", router_side)]),
    );
    want.member(&names::switch(names::JOIN_SWITCH), ls::PORTS, &port);
}

/// The router tells senders of larger packets to the node's pods.
fn gateway_mtu(site: &GatewayNode<'_>) -> Option<u32> {
    site.node.checks_mtu.then_some(site.node.mtu.unwrap_or(site.world.settings.mtu))
}

/// The switch to the node's bridge, and the router's port in it.
fn outside(want: &mut Want, site: &GatewayNode<'_>, router: &RowKey) {
    let gateway = site.gateway;
    let switch_name = names::EXTERNAL_SWITCH.of(site.name);
    let switch = want.row(RowWant::new(switch_name.as_str(), Row::new(ls::TABLE)).with(ls::NAME, switch_name.as_str()));
    let bridge = want.row(
        RowWant::new(gateway.interface_id.as_str(), Row::new(lsp::TABLE))
            .with(lsp::NAME, gateway.interface_id.as_str())
            .with(lsp::TYPE, "localnet")
            .with(lsp::ADDRESSES, ["unknown"])
            .with(lsp::OPTIONS, [("network_name", "physnet")])
            .with(lsp::TAG_REQUEST, gateway.vlan),
    );
    want.member(&switch, ls::PORTS, &bridge);
    let router_side = site.outer_port();
    let mac = gateway.mac.to_string();
    let port = want.row(
        RowWant::new(router_side.as_str(), Row::new(lrp::TABLE))
            .with(lrp::NAME, router_side.as_str())
            .with(lrp::MAC, mac.as_str())
            .with(lrp::NETWORKS, gateway.ips.iter().map(ToString::to_string))
            .with(lrp::EXTERNAL_IDS, [("gateway-physical-ip", "yes")]),
    );
    want.member(router, lr::PORTS, &port);
    let switch_side = names::EXTERNAL_TO_GATEWAY.of(site.name);
    let options =
        [("router-port", router_side.as_str()), ("nat-addresses", "router"), ("exclude-lb-vips-from-garp", "true")];
    let port = want.row(
        RowWant::new(switch_side.as_str(), Row::new(lsp::TABLE))
            .with(lsp::NAME, switch_side.as_str())
            .with(lsp::TYPE, "router")
            .with(lsp::ADDRESSES, [mac.as_str()])
            .with(lsp::OPTIONS, options),
    );
    want.member(&switch, ls::PORTS, &port);
    // no machine has the masquerade next hop: its MAC is only known from here
    for next_hop in routes::dummy_next_hops(site) {
        want.row(
            RowWant::new(format!("{router_side} {next_hop}"), Row::new(smb::TABLE))
                .with(smb::LOGICAL_PORT, router_side.as_str())
                .with(smb::IP, next_hop.to_string())
                .with(smb::MAC, ovnkube_model::Mac::of(next_hop).to_string())
                .with(smb::OVERRIDE_DYNAMIC_MAC, true),
        );
    }
}
