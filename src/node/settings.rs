//! The agent's settings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ovnkube_model::{AddressRules, Name, Subnet};
use ovnkube_node_plan::chassis::ChassisSettings;
use ovnkube_node_plan::gateway::GatewaySettings;
use ovnkube_node_plan::stale;

use crate::conf::CniConf;

/// Filled by the binary from its flags and files.
#[derive(Debug, Clone, Default)]
pub struct NodeSettings {
    /// Name of the own Node.
    pub node: Name,
    pub zone: Name,
    pub mtu: MtuSettings,
    pub cluster_subnets: Vec<Subnet>,
    /// 169.254.169.0/29 and the like: addresses that every node has.
    pub masquerade_subnets: Vec<Subnet>,
    /// Which addresses services may have.
    pub address_rules: AddressRules,
    /// The local ovsdb-server, as `unix:/var/run/openvswitch/db.sock`.
    pub ovs_remote: String,
    /// Where ovn-controller has its pid file and its control socket: `/var/run/ovn`.
    pub ovn_run_dir: PathBuf,
    /// The shim's socket: `/var/run/ovn-kubernetes/cni/ovn-cni-server.sock`.
    pub cni_socket: PathBuf,
    pub cni_conf: CniConf,
    /// How long pods cannot be wired before CNI's STATUS reports it.
    pub patience: Duration,
    pub chassis: ChassisSettings,
    /// `None`: no gateway, so pods reach only each other.
    pub gateway: Option<GatewaySettings>,
}

/// How large packets may be, bytes.
#[derive(Debug, Clone, Default)]
pub struct MtuSettings {
    /// MTU of pods and the management port; `None`: what the uplink leaves.
    pub given: Option<u32>,
    /// MTU of routes of pods and of the management port, where that is less.
    pub routable: Option<u32>,
    /// No other nodes, hence no tunnels.
    pub single_node: bool,
}

impl NodeSettings {
    /// The directory of ovs-vswitchd's sockets.
    pub(crate) fn run_dir(&self) -> &Path {
        run_dir(&self.ovs_remote)
    }

    /// The known ranges of an earlier gateway.
    pub(crate) fn stale_ranges(&self) -> stale::Ranges<'_> {
        stale::Ranges { cluster: &self.cluster_subnets, service: &[], masquerade: &self.masquerade_subnets }
    }
}

/// ovs-vswitchd's sockets are where the database's is.
pub(crate) fn run_dir(ovs_remote: &str) -> &Path {
    let socket = ovs_remote.strip_prefix("unix:").unwrap_or_default();
    Path::new(socket).parent().unwrap_or(Path::new("/var/run/openvswitch"))
}
