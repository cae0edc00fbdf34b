//! Names of the annotations ovnkube reads and writes, and how a bad one is reported.

use serde::{Deserialize, Serialize};

use crate::Name;

/// Names of annotations, labels and objects, as ovn-kubernetes has them; those of interconnection as Kube-OVN has them.
pub mod keys {
    pub const NODE_SUBNETS: &str = "k8s.ovn.org/node-subnets";
    pub const NODE_ID: &str = "k8s.ovn.org/node-id";
    pub const NETWORK_IDS: &str = "k8s.ovn.org/network-ids";
    pub const JOIN_ADDRESSES: &str = "k8s.ovn.org/node-gateway-router-lrp-ifaddrs";
    pub const CHASSIS_ID: &str = "k8s.ovn.org/node-chassis-id";
    pub const ZONE: &str = "k8s.ovn.org/zone-name";
    pub const MGMT_PORT_MACS: &str = "k8s.ovn.org/node-mgmt-port-mac-addresses";
    pub const PRIMARY_IFADDR: &str = "k8s.ovn.org/node-primary-ifaddr";
    pub const HOST_CIDRS: &str = "k8s.ovn.org/host-cidrs";
    pub const ENCAP_IPS: &str = "k8s.ovn.org/node-encap-ips";
    pub const GATEWAY: &str = "k8s.ovn.org/l3-gateway-config";
    pub const MASQUERADE_SUBNET: &str = "k8s.ovn.org/node-masquerade-subnet";
    /// `false`: the gateway router does not check the size of packets.
    pub const GATEWAY_MTU_SUPPORT: &str = "k8s.ovn.org/gateway-mtu-support";
    /// Only in ovnkube: the MTU of the node's pods if the node chose it.
    pub const NODE_MTU: &str = "k8s.ovn.org/node-mtu";
    pub const HYBRID_SUBNET: &str = "k8s.ovn.org/hybrid-overlay-node-subnet";
    pub const POD_NETWORKS: &str = "k8s.ovn.org/pod-networks";
    pub const INGRESS_BANDWIDTH: &str = "kubernetes.io/ingress-bandwidth";
    pub const EGRESS_BANDWIDTH: &str = "kubernetes.io/egress-bandwidth";
    /// On a namespace: what its policies log, `{"deny":"alert","allow":"notice"}`.
    pub const ACL_LOGGING: &str = "k8s.ovn.org/acl-logging";
    /// On a policy: `true` to work without connection tracking.
    pub const ACL_STATELESS: &str = "k8s.ovn.org/acl-stateless";
    /// On a namespace: `true` where pods may send multicast to each other.
    pub const MULTICAST: &str = "k8s.ovn.org/multicast-enabled";
    /// On the mirror of a static pod: the uid that the kubelet knows it by.
    pub const CONFIG_MIRROR: &str = "kubernetes.io/config.mirror";
    /// Label of a node that carries the traffic to other clusters.
    pub const INTERCONNECTION_GATEWAY: &str = "ovn.kubernetes.io/ic-gw";
    /// Label of a node whose host has routes to other clusters; only in ovnkube.
    pub const HOST_ROUTE: &str = "ovn.kubernetes.io/host-route";
    /// Key of the ConfigMap `ovnkube-cluster`: the prefixes of these routes.
    pub const HOST_ROUTES: &str = "host-routes";
    /// Another one: addresses that none of these prefixes may contain.
    pub const HOST_ROUTE_SERVERS: &str = "host-route-servers";
    /// Another one: the release of northd.
    pub const NORTHD_RELEASE: &str = "northd-release";
    /// Namespace and name of the ConfigMap that asks for interconnection.
    pub const INTERCONNECTION: (&str, &str) = ("kube-system", "ovn-ic-config");
    /// Network selection of Multus for the default network: where users ask for a fixed IP or MAC.
    pub const DEFAULT_NETWORK: &str = "v1.multus-cni.io/default-network";
}

/// An annotation with an impossible value, which is not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadAnnotation {
    pub key: Name,
    /// What is wrong with it and what would be right.
    pub problem: String,
}

impl BadAnnotation {
    pub(crate) fn new(key: &str, problem: impl std::fmt::Display) -> Self {
        Self { key: key.into(), problem: problem.to_string() }
    }
}
