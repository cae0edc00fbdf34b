//! What the agent receives, and what it reports.

use std::net::IpAddr;

use ovnkube_model::{
    Connections, EndpointSlice, HostRoutes, Mac, Name, NodeIps, ObjectKey, OvnRelease, PodKey, Service, ServiceCidr,
    Subnet, keys,
};
use ovnkube_node_plan::annotations::Annotations;
use ovnkube_telemetry::NodeHealth;
use tokio::sync::watch;

use crate::Result;
use crate::pods::PodOnNode;
use crate::warnings::Warnings;

/// A change in the cluster that the agent receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A pod of this node that is not in the host's network; `None`: it is gone.
    Pod(PodKey, Option<PodOnNode>),
    Node(OwnNode),
    /// Any service; `None`: it is gone.
    Service(ObjectKey, Option<Box<Service>>),
    EndpointSlice(ObjectKey, Option<Box<EndpointSlice>>),
    /// Ranges of service addresses; `None`: they are gone.
    ServiceCidr(Name, Option<ServiceCidr>),
    /// The addresses of any node; `None`: it is gone.
    NodeIps(Name, Option<NodeIps>),
    /// What the host needs to know for routes to other clusters.
    OtherClusters(HostRoutes),
    /// The release of northd, once it is known.
    Northd(OvnRelease),
    /// What nodes connect to; must be sent before any service.
    Connections(Connections),
    /// All existing services, slices and ranges have been sent.
    ServicesSynced,
    /// All existing nodes have been sent.
    NodesSynced,
}

/// The part of the own Node that the agent depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnNode {
    /// `status.addresses` of type InternalIP.
    pub internal_ips: Vec<IpAddr>,
    /// Annotation `k8s.ovn.org/node-subnets`, default network.
    pub subnets: Vec<Subnet>,
    /// Annotation `k8s.ovn.org/node-mgmt-port-mac-addresses`, default network: in place of the MAC that
    /// follows from the management port's address.
    pub mgmt_mac: Option<Mac>,
    /// Annotation `k8s.ovn.org/node-mtu`, as this agent last wrote it.
    pub mtu: Option<u32>,
    /// Annotation `k8s.ovn.org/node-chassis-id`, likewise.
    pub chassis_id: Option<Name>,
    /// Label `ovn.kubernetes.io/ic-gw`: whether the node carries traffic to other clusters. `None`: the Node is not known.
    pub carries: Option<bool>,
}

impl From<&ovnkube_model::Node> for OwnNode {
    fn from(node: &ovnkube_model::Node) -> Self {
        Self {
            internal_ips: node.addresses.clone(),
            subnets: node.subnets.clone(),
            mgmt_mac: node.mgmt_mac,
            mtu: node.mtu,
            chassis_id: node.chassis_id.clone(),
            carries: Some(node.labels.get(keys::INTERCONNECTION_GATEWAY).is_some_and(|value| value == "true")),
        }
    }
}

/// What the agent reports to its caller.
#[derive(Debug, Default)]
pub struct Reports {
    /// The wanted annotations of the own Node; empty text: the annotation must not exist.
    pub annotations: watch::Sender<Annotations>,
    pub warnings: Warnings,
    /// Whether the agent needs the addresses of all nodes, by [`Change::NodeIps`]. Once true, it stays true.
    pub needs_nodes: watch::Sender<bool>,
    /// Whether pods can be wired and services are programmed.
    pub health: NodeHealth,
}

/// Whether pods can be wired, and if not, why.
pub(crate) type Readiness = std::result::Result<(), String>;

/// What failed, and what is only missing so far.
pub(crate) fn split(outcome: Result<Readiness>) -> (Result<()>, Readiness) {
    match outcome {
        Ok(readiness) => (Ok(()), readiness),
        Err(e) => (Err(e), Ok(())),
    }
}
