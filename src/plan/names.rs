//! Names of rows, the same as in ovn-kubernetes.

use ovnkube_model::NetworkSettings;
use ovnkube_ovn::OwnerId;
use ovnkube_ovn::nb::{
    address_set, copp, load_balancer_group, logical_router, logical_switch, logical_switch_port, port_group,
};

use crate::RowKey;

/// The names of one kind of row that each node has: a prefix, then the node's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeRow(&'static str);

/// The node's gateway router.
pub const GATEWAY_ROUTER: NodeRow = NodeRow("GR_");
/// The switch between the gateway router and the outside network.
pub const EXTERNAL_SWITCH: NodeRow = NodeRow("ext_");
/// The node's own port in its switch.
pub const MANAGEMENT_PORT: NodeRow = NodeRow("k8s-");
// both ends of each link: "rtos" is the router's port to the switch, "stor" the switch's to the router
pub const ROUTER_TO_SWITCH: NodeRow = NodeRow("rtos-");
pub const SWITCH_TO_ROUTER: NodeRow = NodeRow("stor-");
pub const GATEWAY_TO_JOIN: NodeRow = NodeRow("rtoj-GR_");
pub const JOIN_TO_GATEWAY: NodeRow = NodeRow("jtor-GR_");
pub const GATEWAY_TO_EXTERNAL: NodeRow = NodeRow("rtoe-GR_");
pub const EXTERNAL_TO_GATEWAY: NodeRow = NodeRow("etor-GR_");
/// The cluster router's port to the join switch.
pub const CLUSTER_ROUTER_TO_JOIN: &str = "rtoj-ovn_cluster_router";
/// The join switch's port to the cluster router.
pub(crate) const JOIN_TO_CLUSTER_ROUTER: &str = "jtor-ovn_cluster_router";

impl NodeRow {
    pub fn of(self, node: &str) -> String {
        format!("{}{node}", self.0)
    }

    /// The node whose row has this name. Rows of other networks have that network's name and a `_` before the node's.
    pub fn node(self, name: &str) -> Option<&str> {
        name.strip_prefix(self.0).filter(|node| is_node(node))
    }
}

/// Whether this may be the name of a node: Kubernetes' names have no `_`.
pub(crate) fn is_node(name: &str) -> bool {
    !name.contains('_')
}

/// Both ends of the link between the cluster router and a transit switch, named as Kube-OVN names them.
pub struct TransitPorts {
    pub switch_side: String,
    pub router_side: String,
}

/// The link of the cluster called `zone` to a transit switch.
pub fn transit(switch: &str, zone: &str) -> TransitPorts {
    TransitPorts { switch_side: format!("{switch}-{zone}"), router_side: format!("{zone}-{switch}") }
}

pub const CLUSTER_ROUTER: &str = "ovn_cluster_router";
pub const JOIN_SWITCH: &str = "join";
/// External id of the cluster router with the interconnection that a master keeps, for the next master.
pub const KEPT_INTERCONNECTION: &str = "ovnkube-interconnection";
/// External id of the cluster router with the uid of the cluster's namespace kube-system: whose database it is.
pub const CLUSTER_UID: &str = "ovnkube-cluster";
pub(crate) const COPP: &str = "ovnkube-default";
/// On every switch and gateway router.
pub(crate) const CLUSTER_LB_GROUP: &str = "clusterLBGroup";
/// On every node switch.
pub(crate) const SWITCH_LB_GROUP: &str = "clusterSwitchLBGroup";
/// On every gateway router.
pub(crate) const ROUTER_LB_GROUP: &str = "clusterRouterLBGroup";

pub fn cluster_router() -> RowKey {
    RowKey::new(logical_router::TABLE, CLUSTER_ROUTER)
}

pub(crate) fn copp() -> RowKey {
    RowKey::new(copp::TABLE, COPP)
}

pub(crate) fn switch(name: &str) -> RowKey {
    RowKey::new(logical_switch::TABLE, name)
}

pub(crate) fn lb_group(name: &str) -> RowKey {
    RowKey::new(load_balancer_group::TABLE, name)
}

pub(crate) fn group_key(owner: &OwnerId) -> RowKey {
    RowKey::new(port_group::TABLE, owner.hashed_name())
}

pub(crate) fn set_key(owner: &OwnerId) -> RowKey {
    RowKey::new(address_set::TABLE, owner.hashed_name())
}

/// A node's own port in its switch.
pub(crate) fn management_port(node: &str) -> RowKey {
    RowKey::new(logical_switch_port::TABLE, MANAGEMENT_PORT.of(node))
}

/// Cluster CIDRs, joined by spaces, as `arp_proxy` wants them.
pub(crate) fn cluster_cidrs(network: &NetworkSettings) -> String {
    network.cluster_subnets.iter().map(|r| r.cidr.to_string()).collect::<Vec<_>>().join(" ")
}
