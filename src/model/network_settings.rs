//! The settings of the cluster's network.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use ovnkube_ipam::{ClusterSubnet, Subnet};
use serde::{Deserialize, Serialize};

use crate::{AddressRules, ExternalIps, Family, Masquerade, Name};

/// The last node id of ovn-kubernetes.
const LAST_NODE_ID: u32 = 65_533;

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

    /// The last number that a node can have: the join subnet of each family has an address with it.
    pub(crate) fn last_node_id(&self) -> u32 {
        let last = |subnet: Subnet| {
            let size = 1u128.checked_shl(u32::from(subnet.host_bits())).unwrap_or(u128::MAX);
            // the last IPv4 address is that of broadcasts
            u32::try_from(size.saturating_sub(if subnet.is_ipv6() { 1 } else { 2 })).unwrap_or(u32::MAX)
        };
        let subnets = self.families().into_iter().filter_map(|family| self.join_subnet(family));
        subnets.map(last).fold(LAST_NODE_ID, u32::min)
    }

    /// Whether larger join subnets would have addresses for more nodes.
    pub(crate) fn has_short_join_subnet(&self) -> bool {
        self.last_node_id() < LAST_NODE_ID
    }

    pub fn masquerade(&self, family: Family) -> Option<Masquerade> {
        Masquerade::find(&self.masquerade_subnets, family)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_id_has_an_address_in_the_join_subnet_of_each_family() {
        let range = |cidr: &str, host_prefix| ClusterSubnet { cidr: cidr.parse().unwrap(), host_prefix };
        let (v4, v6) = (range("10.128.0.0/14", 23), range("fd01::/48", 64));
        for (pods, join, last) in [
            (vec![v4], ["100.64.0.0/16", "fd98::/125"], 65_533),
            (vec![v4], ["100.64.0.0/17", "fd98::/64"], 32_766),
            (vec![v4], ["100.64.0.0/29", "fd98::/64"], 6),
            (vec![v6], ["100.64.0.0/29", "fd98::/64"], 65_533),
            (vec![v6], ["100.64.0.0/29", "fd98::/125"], 7),
            (vec![v6, v4], ["100.64.0.0/28", "fd98::/125"], 7),
            (vec![v6, v4], ["100.64.0.0/32", "::/0"], 0),
        ] {
            let join_subnets = join.map(|subnet| subnet.parse::<Subnet>().unwrap()).into();
            let network = NetworkSettings { cluster_subnets: pods, join_subnets, ..<_>::default() };
            assert_eq!(network.last_node_id(), last, "{network:?}");
        }
    }
}
