//! What the agent has to be told.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ovnkube_model::{AddressRules, Name, Subnet};

use crate::conf::CniConf;
use crate::gateway::GatewaySettings;

/// Filled by the binary from its flags and files.
#[derive(Debug, Clone)]
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
    /// The shim's socket: `/var/run/ovn-kubernetes/cni/ovn-cni-server.sock`.
    pub cni_socket: PathBuf,
    pub cni_conf: CniConf,
    /// For how long CNI's STATUS keeps to itself that pods cannot be wired.
    pub patience: Duration,
    pub chassis: ChassisSettings,
    /// `None`: pods stay among themselves.
    pub gateway: Option<GatewaySettings>,
}

/// How large packets may be, bytes.
#[derive(Debug, Clone, Default)]
pub struct MtuSettings {
    /// Of pods and the management port; `None`: what the uplink leaves.
    pub given: Option<u32>,
    /// What routes of pods and of the management port use, where that is less.
    pub routable: Option<u32>,
    /// No other nodes, hence no tunnels.
    pub single_node: bool,
}

impl NodeSettings {
    /// ovs-vswitchd's sockets are where the database's is.
    pub(crate) fn run_dir(&self) -> &Path {
        let socket = self.ovs_remote.strip_prefix("unix:").unwrap_or_default();
        Path::new(socket).parent().unwrap_or(Path::new("/var/run/openvswitch"))
    }
}

/// What ovn-controller reads from the local Open_vSwitch row.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each is a setting of ovn-controller's own")]
pub struct ChassisSettings {
    /// The SB databases, comma separated.
    pub sb_remote: String,
    /// Set for `ssl:` remotes.
    pub sb_tls: Option<Tls>,
    /// `geneve`.
    pub encap_type: String,
    /// Empty: the node's InternalIP.
    pub encap_ips: Vec<IpAddr>,
    /// Milliseconds.
    pub remote_probe_interval: u32,
    /// Seconds.
    pub openflow_probe_interval: u32,
    pub monitor_all: bool,
    /// Milliseconds.
    pub ofctrl_wait_before_clear: u32,
    pub lflow_cache: bool,
    /// Entries; `None`: ovn-controller's default.
    pub lflow_cache_limit: Option<u32>,
    /// KiB; `None`: ovn-controller's default.
    pub lflow_cache_limit_kb: Option<u32>,
    pub set_local_ip: bool,
    pub interconnect: bool,
}

/// Files for ovn-controller's TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    pub private_key: String,
    pub certificate: String,
    pub ca_certificate: String,
}
