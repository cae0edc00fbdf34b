//! Gateways: how the pods of a node get out, and the outside gets in.
//!
//! ```text
//!  LS join ──jtor-/rtoj-──  LR GR_<node>  ──rtoe-/etor-──  LS ext_<node> ──<bridge>_<node> (localnet)
//!                             ├ routes: cluster → join, masquerade and everything else → outside
//!                             └ SNAT: join address and cluster CIDRs (or each pod) → the node's address,
//!                                     the host's masquerade address → join address
//!  LR ovn_cluster_router: from the node's subnet → GR_<node> (shared) or the management port (local)
//!                         to the node's own addresses → the management port
//! ```
//!
//! A node has a gateway once its agent has said so in `l3-gateway-config`.

pub(crate) mod routes;

use std::net::IpAddr;

use ovnkube_model::{Family, Gateway, Name, Node, NodeNetwork, Roles, Touched, World};
use ovnkube_ovn::nb::{
    logical_router as lr, logical_router_port as lrp, logical_switch as ls, logical_switch_port as lsp,
    static_mac_binding as smb,
};
use ovnkube_ovn::{Row, owner};

use crate::features::touched_nodes;
use crate::topology::join_addresses;
use crate::{Feature, RowKey, RowWant, Want, names};

pub struct Gateways;

impl Feature for Gateways {
    type Key = Name;

    fn is_ours(roles: Roles) -> bool {
        roles.controller
    }

    fn touched(what: &Touched, world: &World) -> Vec<Name> {
        touched_nodes(what, world)
    }

    fn want(name: &Name, world: &World) -> Want {
        let mut want = Want::default();
        let Some(site) = Site::of(name, world) else { return want };
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
    if !world.network.disable_snat_multiple_gws {
        return;
    }
    if let Some(site) = Site::of(node, world) {
        addresses.for_each(|address| routes::pod_nat(want, &site, address));
    }
}

/// All that a gateway is made of.
struct Site<'a> {
    name: &'a Name,
    node: &'a Node,
    network: &'a NodeNetwork,
    gateway: &'a Gateway,
    chassis: &'a Name,
    /// The gateway router's own on the join switch.
    joins: Vec<ipnetwork::IpNetwork>,
    world: &'a World,
}

impl<'a> Site<'a> {
    /// A node of this zone that has everything.
    fn of(name: &'a Name, world: &'a World) -> Option<Self> {
        let node = world.nodes.get(name).filter(|node| node.zone == world.network.zone)?;
        let network = world.networks.get(name).filter(|network| !network.subnets.is_empty())?;
        let joins = join_addresses(world, network.id?).collect();
        let (gateway, chassis) = (node.gateway.as_ref()?, node.chassis_id.as_ref()?);
        Some(Self { name, node, network, gateway, chassis, joins, world })
    }

    fn router_name(&self) -> String {
        format!("GR_{}", self.name)
    }

    /// The router's port to the outside.
    fn outer_port(&self) -> String {
        format!("rtoe-GR_{}", self.name)
    }

    fn join(&self, family: Family) -> Option<IpAddr> {
        self.joins.iter().map(ipnetwork::IpNetwork::ip).find(|ip| Family::of(*ip) == family)
    }
}

fn router(want: &mut Want, site: &Site<'_>) -> RowKey {
    let ips: Vec<_> = site.gateway.ips.iter().map(|ip| ip.ip().to_string()).collect();
    let first = ips.first().cloned().unwrap_or_default();
    let mut groups = vec![names::lb_group(names::CLUSTER_LB_GROUP)];
    if site.gateway.node_port {
        groups.push(names::lb_group(names::ROUTER_LB_GROUP));
    }
    let name = site.router_name();
    // marked as its routes are: on a router without a mark ovn-kubernetes had the last word
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

/// The cable to the join switch.
fn join(want: &mut Want, site: &Site<'_>, router: &RowKey) {
    let router_side = format!("rtoj-GR_{}", site.name);
    let switch_side = format!("jtor-GR_{}", site.name);
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

/// Whoever sends more to the node's pods hears of it from the router.
fn gateway_mtu(site: &Site<'_>) -> Option<u32> {
    site.node.checks_mtu.then_some(site.node.mtu.unwrap_or(site.world.network.mtu))
}

/// The switch to the node's bridge, and the router's port in it.
fn outside(want: &mut Want, site: &Site<'_>, router: &RowKey) {
    let gateway = site.gateway;
    let switch_name = format!("ext_{}", site.name);
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
    let switch_side = format!("etor-GR_{}", site.name);
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
    // the masquerade next hop is nobody's: its MAC is only known from here
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
