//! What the operator decided about the cluster's network.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use ovnkube_ipam::{ClusterSubnet, Subnet};
use serde::{Deserialize, Serialize};

use crate::{AddressRules, ExternalIps, Masquerade, Name};

/// IPv4 or IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    pub fn of(ip: IpAddr) -> Self {
        if ip.is_ipv6() { Self::V6 } else { Self::V4 }
    }

    pub fn of_subnet(subnet: Subnet) -> Self {
        Self::of(subnet.base())
    }

    /// `v4` or `v6`, as owner ids spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::V4 => "v4",
            Self::V6 => "v6",
        }
    }

    /// As OVN spells it in a match.
    pub fn ovn(self) -> &'static str {
        match self {
            Self::V4 => "ip4",
            Self::V6 => "ip6",
        }
    }

    /// Prefix length of a single address.
    pub fn bits(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }
}

/// The parts this process plays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roles {
    /// Gives nodes their numbers, subnets and join addresses.
    pub cluster_manager: bool,
    /// Writes OVN rows for nodes, namespaces and pods.
    pub controller: bool,
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

/// Settings the plan depends on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own that people set")]
pub struct Network {
    pub roles: Roles,
    /// The zone this process writes for; `global` in central mode.
    pub zone: Name,
    pub cluster_subnets: Vec<ClusterSubnet>,
    pub service_cidrs: Vec<Subnet>,
    #[serde(default)]
    pub external_ips: ExternalIps,
    /// UDP port of the tunnels between nodes.
    #[serde(default)]
    pub encap_port: u16,
    /// Where the gateway routers meet the cluster router: 100.64.0.0/16 and fd98::/64.
    pub join_subnets: Vec<Subnet>,
    /// Pods leave with addresses of their own instead of the node's where they have other gateways.
    pub disable_snat_multiple_gws: bool,
    /// 169.254.169.0/29 and fd69::/125.
    pub masquerade_subnets: Vec<Subnet>,
    /// MTU of pods, bytes.
    pub mtu: u32,
    /// Namespace whose address set stands for host-network traffic.
    pub host_network_namespace: Option<Name>,
    /// Nodes that keep subnets of their own: they get nothing.
    #[serde(skip)]
    pub no_hostsubnet_nodes: Option<NodeSelector>,
    pub multicast: bool,
    pub egress_firewall: bool,
    /// Policies that are annotated for it need no connection tracking.
    pub stateless_netpol: bool,
    /// Leaves `requested-chassis` off pod ports.
    pub disable_requested_chassis: bool,
    /// Leaves `iface-id-ver` off pod ports.
    pub disable_iface_id_ver: bool,
    /// Node ports of all nodes by one load balancer.
    pub svc_template_support: bool,
    /// Log messages a second of all ACLs together.
    pub acl_logging_rate_limit: u32,
}

impl Network {
    /// Whether namespaces have port groups: where something hangs on them, since northd looks at each
    /// of a pod's groups with each pod.
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
