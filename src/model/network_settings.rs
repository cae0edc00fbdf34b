//! The settings of the cluster's network.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use ovnkube_ipam::{ClusterSubnet, Subnet};
use serde::{Deserialize, Serialize};

use crate::{AddressRules, ExternalIps, Family, Masquerade, Name};

/// The roles of this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Roles {
    /// Gives nodes their numbers, subnets and join addresses.
    pub cluster_manager: bool,
    /// Writes OVN rows for nodes, namespaces and pods.
    pub controller: bool,
}

impl Roles {
    /// Cluster manager and controller.
    pub const MASTER: Self = Self { cluster_manager: true, controller: true };
}

/// Chooses nodes by their labels.
#[derive(Clone)]
pub struct NodeSelector(pub Arc<Predicate>);

type Predicate = dyn Fn(&BTreeMap<String, String>) -> bool + Send + Sync;

impl fmt::Debug for NodeSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeSelector")
    }
}

/// Settings the plan depends on. A recording of an older release lacks newer ones.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own that people set")]
pub struct NetworkSettings {
    pub roles: Roles,
    /// The zone this process writes for; `global` in central mode.
    pub zone: Name,
    pub cluster_subnets: Vec<ClusterSubnet>,
    pub service_cidrs: Vec<Subnet>,
    pub external_ips: ExternalIps,
    /// UDP port of the tunnels between nodes.
    pub encap_port: u16,
    /// Where the gateway routers meet the cluster router: 100.64.0.0/16 and fd98::/64.
    pub join_subnets: Vec<Subnet>,
    /// Pods with other gateways leave with their own addresses instead of the node's.
    pub disable_snat_multiple_gws: bool,
    /// 169.254.169.0/29 and fd69::/125.
    pub masquerade_subnets: Vec<Subnet>,
    /// Where zones meet each other: 100.88.0.0/16 and fd97::/64.
    pub transit_subnets: Vec<Subnet>,
    /// MTU of pods, bytes.
    pub mtu: u32,
    /// Namespace whose address set stands for host-network traffic.
    pub host_network_namespace: Option<Name>,
    /// Nodes that manage subnets of their own: ovnkube gives them nothing.
    #[serde(skip)]
    pub no_hostsubnet_nodes: Option<NodeSelector>,
    pub multicast: bool,
    pub egress_firewall: bool,
    /// Policies with the annotation for it are written without connection tracking.
    pub stateless_netpol: bool,
    /// Leaves `requested-chassis` off pod ports.
    pub disable_requested_chassis: bool,
    /// Leaves `iface-id-ver` off pod ports.
    pub disable_iface_id_ver: bool,
    /// Serves the node ports of all nodes with one load balancer.
    pub svc_template_support: bool,
    /// Limit of log messages per second for all ACLs together.
    pub acl_logging_rate_limit: u32,
}

impl NetworkSettings {
    /// Whether namespaces have port groups: only if something uses them, since northd processes all of a pod's
    /// groups with each pod.
    pub fn has_namespace_groups(&self) -> bool {
        self.multicast || self.egress_firewall
    }

    /// The families the cluster has, IPv4 first.
    pub fn families(&self) -> Vec<Family> {
        let has = |family: &Family| self.cluster_subnets.iter().any(|range| Family::of_subnet(range.cidr) == *family);
        Family::ALL.into_iter().filter(has).collect()
    }

    /// Which addresses services may have.
    pub fn address_rules(&self) -> AddressRules {
        AddressRules {
            pods: self.cluster_subnets.iter().map(|range| range.cidr).collect(),
            routers: [self.join_subnets.as_slice(), &self.masquerade_subnets].concat(),
            services: self.service_cidrs.clone(),
            external: self.external_ips.clone(),
            tunnels: self.encap_port,
        }
    }

    pub fn join_subnet(&self, family: Family) -> Option<Subnet> {
        self.join_subnets.iter().copied().find(|s| Family::of_subnet(*s) == family)
    }

    pub fn masquerade(&self, family: Family) -> Option<Masquerade> {
        Masquerade::find(&self.masquerade_subnets, family)
    }
}
