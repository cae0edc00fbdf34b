//! A node with a gateway.

use std::net::IpAddr;

use ovnkube_model::{Family, Gateway, Name, Node, NodeNetwork, World};

use crate::names;
use crate::topology::join_addresses;

/// Everything that a gateway is made from.
pub(super) struct GatewayNode<'a> {
    pub(super) name: &'a Name,
    pub(super) node: &'a Node,
    pub(super) network: &'a NodeNetwork,
    pub(super) gateway: &'a Gateway,
    pub(super) chassis: &'a Name,
    /// The gateway router's addresses on the join switch.
    pub(super) joins: Vec<ipnetwork::IpNetwork>,
    pub(super) world: &'a World,
}

impl<'a> GatewayNode<'a> {
    /// The node, if it is in this zone and has everything that a gateway needs.
    pub(super) fn of(name: &'a Name, world: &'a World) -> Option<Self> {
        let node = world.nodes.get(name).filter(|node| node.zone == world.settings.zone)?;
        let network = world.node_networks.get(name).filter(|network| !network.subnets.is_empty())?;
        let joins = join_addresses(world, network.id?).collect();
        let (gateway, chassis) = (node.gateway.as_ref()?, node.chassis_id.as_ref()?);
        Some(Self { name, node, network, gateway, chassis, joins, world })
    }

    pub(super) fn router_name(&self) -> String {
        names::GATEWAY_ROUTER.of(self.name)
    }

    /// The router's port to the outside.
    pub(super) fn outer_port(&self) -> String {
        names::GATEWAY_TO_EXTERNAL.of(self.name)
    }

    pub(super) fn join(&self, family: Family) -> Option<IpAddr> {
        self.joins.iter().map(ipnetwork::IpNetwork::ip).find(|ip| Family::of(*ip) == family)
    }
}
