//! Rows of each node of this zone.

use std::net::IpAddr;

use ovnkube_model::{Name, Node, NodeNetwork, World, row_owners};
use ovnkube_ovn::Row;
use ovnkube_ovn::nb::{
    gateway_chassis as gc, logical_router as lr, logical_router_port as lrp, logical_switch as ls,
    logical_switch_port as lsp, port_group,
};

use crate::{RowKey, RowWant, Want, names};

pub(super) fn want(name: &Name, world: &World) -> Want {
    let mut want = Want::default();
    let (Some(node), Some(network)) = (world.nodes.get(name), world.node_networks.get(name)) else { return want };
    if network.subnets.is_empty() || node.zone != world.settings.zone {
        return want;
    }
    let switch = switch(&mut want, name, network, world);
    router_port(&mut want, name, node, network, world, &switch);
    management_port(&mut want, name, node, network, &switch);
    want
}

fn switch(want: &mut Want, name: &Name, network: &NodeNetwork, world: &World) -> RowKey {
    let mut config: Vec<(&str, String)> = Vec::new();
    for subnet in &network.subnets {
        let key = if subnet.is_ipv6() { "ipv6_prefix" } else { "subnet" };
        // OVN wants the prefix of an IPv6 switch without its length
        let value = if subnet.is_ipv6() { subnet.base().to_string() } else { subnet.to_string() };
        config.push((key, value));
    }
    if world.settings.multicast {
        config.push(("mcast_snoop", "true".into()));
        config.push(("mcast_querier", "true".into()));
        if let Some(mac) = network.gateway_mac() {
            config.push(("mcast_eth_src", mac.to_string()));
            config.extend(network.gateways().map(|gateway| match gateway.ip() {
                IpAddr::V4(ip) => ("mcast_ip4_src", ip.to_string()),
                // hosts ignore queries from other addresses (RFC 3810, 5.1.14)
                IpAddr::V6(_) => ("mcast_ip6_src", mac.link_local().to_string()),
            }));
        }
    }
    let groups = [names::CLUSTER_LB_GROUP, names::SWITCH_LB_GROUP].map(names::lb_group);
    want.row(
        RowWant::new(name.clone(), Row::new(ls::TABLE))
            .with(ls::NAME, name.as_ref())
            .with(ls::OTHER_CONFIG, config)
            .refers(ls::LOAD_BALANCER_GROUP, groups),
    )
}

/// The router port and its peer between the node's switch and the cluster router.
fn router_port(want: &mut Want, name: &Name, node: &Node, network: &NodeNetwork, world: &World, switch: &RowKey) {
    let router_side = names::ROUTER_TO_SWITCH.of(name);
    let switch_side = names::SWITCH_TO_ROUTER.of(name);
    let mac = network.gateway_mac().map(|mac| mac.to_string()).unwrap_or_default();
    let mut port = RowWant::new(router_side.as_str(), Row::new(lrp::TABLE))
        .with(lrp::NAME, router_side.as_str())
        .with(lrp::MAC, mac)
        .with(lrp::NETWORKS, network.gateways().map(|g| g.to_string()));
    let chassis = node.chassis_id.as_ref().map(|chassis| {
        let id = format!("{router_side}-{chassis}");
        want.row(
            RowWant::new(id.as_str(), Row::new(gc::TABLE))
                .with(gc::NAME, id.as_str())
                .with(gc::CHASSIS_NAME, chassis.as_ref())
                .with(gc::PRIORITY, 1),
        )
    });
    port = port.refers(lrp::GATEWAY_CHASSIS, chassis);
    let port = want.row(port);
    want.member(&names::cluster_router(), lr::PORTS, &port);

    // the router answers pods' requests for any address of the cluster and for the link-local gateway
    let proxy = format!("0a:58:a9:fe:01:01 169.254.1.1 fe80::1 {}", names::cluster_cidrs(&world.settings));
    let port = want.row(
        RowWant::new(switch_side.as_str(), Row::new(lsp::TABLE))
            .with(lsp::NAME, switch_side.as_str())
            .with(lsp::TYPE, "router")
            .with(lsp::ADDRESSES, ["router"])
            .with(lsp::OPTIONS, [("router-port", router_side), ("arp_proxy", proxy)]),
    );
    want.member(switch, ls::PORTS, &port);
    want.member(&names::group_key(&row_owners::cluster_router_port_group()), port_group::PORTS, &port);
}

/// The node's own port in its switch.
fn management_port(want: &mut Want, name: &Name, node: &Node, network: &NodeNetwork, switch: &RowKey) {
    let Some(mac) = node.mgmt_mac.or(network.management_mac()) else { return };
    let mut address = mac.to_string();
    for ip in network.management() {
        address.push(' ');
        address.push_str(&ip.ip().to_string());
    }
    let key = names::management_port(name);
    let port = want.row(
        RowWant::new(key.id.clone(), Row::new(lsp::TABLE)).with(lsp::NAME, &*key.id).with(lsp::ADDRESSES, [address]),
    );
    want.member(switch, ls::PORTS, &port);
    want.member(&names::group_key(&row_owners::cluster_port_group()), port_group::PORTS, &port);
}
