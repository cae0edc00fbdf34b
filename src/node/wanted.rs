//! The wanted state of the host, as it follows from settings and the own Node.

use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_node_plan::chassis::{Chassis, MgmtPort, external_ids};
use ovnkube_node_plan::gateway::GatewayBridge;
use ovnkube_node_plan::management_port::{self, ManagementPort};
use ovnkube_node_plan::observed::Observed;

use crate::exchange::OwnNode;
use crate::settings::NodeSettings;

/// Where the packages of OVS keep the id of the chassis.
const SYSTEM_ID: &str = "/etc/openvswitch/system-id.conf";

/// The tunnels' addresses; empty while the node's address is not known.
pub(crate) fn encap_ips(settings: &NodeSettings, node: &OwnNode) -> Vec<IpAddr> {
    if settings.chassis.encap_ips.is_empty() {
        node.internal_ips.first().copied().into_iter().collect()
    } else {
        settings.chassis.encap_ips.clone()
    }
}

/// The addresses on the node's links by which endpoints and databases on this host are known.
pub(crate) fn own_ips(settings: &NodeSettings, host: &Observed) -> Vec<IpAddr> {
    let masquerade = |ip: &IpAddr| settings.masquerade_subnets.iter().any(|range| range.contains(*ip));
    let all = host.addresses_except(management_port::LINK);
    all.iter().map(IpNetwork::ip).filter(|ip| !ip.is_loopback() && !masquerade(ip)).collect()
}

/// `None` until the node has a subnet.
pub(crate) fn management_port(
    settings: &NodeSettings,
    node: &OwnNode,
    mtu: u32,
    checksums_in_software: bool,
) -> Option<ManagementPort> {
    ManagementPort::new(&management_port::Facts {
        subnets: &node.subnets,
        cluster: &settings.cluster_subnets,
        mac: node.mgmt_mac,
        mtu,
        route_mtu: settings.mtu.routable,
        checksums_in_software,
    })
}

/// Rows of the local Open vSwitch.
pub(crate) fn chassis(
    settings: &NodeSettings,
    node: &OwnNode,
    encap_ips: &[IpAddr],
    mgmt: Option<&ManagementPort>,
    bridge: Option<&GatewayBridge>,
    system_id: Option<String>,
    waits: Option<bool>,
) -> Chassis {
    let encap: Vec<String> = encap_ips.iter().map(ToString::to_string).collect();
    Chassis {
        external_ids: external_ids(&settings.node, &settings.chassis, &encap, node.carries, waits),
        tls: settings.chassis.sb_tls.clone(),
        system_id,
        mgmt: mgmt.and_then(|mgmt| {
            Some(MgmtPort { iface_id: format!("k8s-{}", settings.node), mac: mgmt.mac()?, mtu: mgmt.mtu })
        }),
        gateway_bridge: bridge.map(|bridge| bridge.link.name.clone()),
    }
}

/// A new id for a chassis that has none.
pub(crate) fn fresh_id() -> Option<String> {
    id_in("/proc/sys/kernel/random/uuid")
}

/// The id for this host's chassis, if it has none.
pub(crate) fn system_id(node: &OwnNode, fresh: Option<&str>) -> Option<String> {
    choose_system_id(id_in(SYSTEM_ID), node, fresh)
}

/// The id that the packages of OVS keep, else the one that the Node is annotated with: an OVS that has lost everything
/// continues as the same chassis. Else a new one, once the Node is known.
pub(crate) fn choose_system_id(kept: Option<String>, node: &OwnNode, fresh: Option<&str>) -> Option<String> {
    let annotated = node.chassis_id.as_deref();
    let fresh = fresh.filter(|_| *node != OwnNode::default());
    kept.or_else(|| annotated.or(fresh).map(str::to_owned))
}

fn id_in(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|id| id.trim().to_owned()).filter(|id| !id.is_empty())
}
