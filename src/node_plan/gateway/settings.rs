//! Settings of the gateway.

use std::net::IpAddr;
use std::time::Duration;

use ovnkube_model::{GatewayMode, Subnet};

/// Filled by the binary from its flags and files.
#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own that people set")]
pub struct GatewaySettings {
    pub mode: GatewayMode,
    /// The bridge or NIC to the outside; `None`: that of the default route.
    pub interface: Option<String>,
    /// Empty: the default routes' gateways.
    pub next_hops: Vec<IpAddr>,
    /// VLAN tag of the outside network.
    pub vlan: Option<u16>,
    /// Allow a bridge without a port to the outside.
    pub allow_no_uplink: bool,
    /// Forward on bridge and management port only for the cluster.
    pub disable_forwarding: bool,
    /// Pods may leave with their own addresses through other gateways, so packets from outside to pods are delivered.
    pub pods_outside: bool,
    pub node_port: bool,
    /// The first of five conntrack zones.
    pub conntrack_zone: u16,
    /// Let the host answer packets that are too large for pods.
    pub check_mtu: bool,
    /// UDP port of the tunnels.
    pub encap_port: u16,
    pub service_cidrs: Vec<Subnet>,
    pub join_subnets: Vec<Subnet>,
    /// Such as `10.0.0.1:6443`: must be reachable after a NIC was put into a bridge, if it was before.
    pub api_server: Option<String>,
    /// How long after a NIC was put into a bridge a loss of connectivity undoes the move.
    pub probation: Duration,
    /// How long after the agent's start the host's own setup may take to give the NIC an address of each family that
    /// had a default route before the reboot.
    pub first_address: Duration,
    /// How long it may then take to set the default routes.
    pub default_route: Duration,
}
