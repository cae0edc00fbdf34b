//! Names of rows, as ovn-kubernetes has them.

use ovnkube_model::{Family, Network};
use ovnkube_ovn::OwnerId;
use ovnkube_ovn::nb::{address_set, copp, load_balancer_group, logical_router, logical_switch, port_group};

use crate::RowKey;

pub(crate) const CLUSTER_ROUTER: &str = "ovn_cluster_router";
pub(crate) const JOIN_SWITCH: &str = "join";
pub(crate) const COPP: &str = "ovnkube-default";
/// On every switch and gateway router.
pub(crate) const CLUSTER_LB_GROUP: &str = "clusterLBGroup";
/// On every node switch.
pub(crate) const SWITCH_LB_GROUP: &str = "clusterSwitchLBGroup";
/// On every gateway router.
pub(crate) const ROUTER_LB_GROUP: &str = "clusterRouterLBGroup";

pub(crate) fn cluster_router() -> RowKey {
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

/// The group of all management ports (`k8s-*`).
pub(crate) fn cluster_port_group() -> OwnerId {
    OwnerId::new("Cluster").name("clusterPortGroup")
}

/// The group of all ports towards the cluster router (`stor-*`).
pub(crate) fn cluster_router_port_group() -> OwnerId {
    OwnerId::new("Cluster").name("clusterRtrPortGroup")
}

/// The group of a namespace's pods.
pub(crate) fn namespace_group(namespace: &str) -> OwnerId {
    OwnerId::new("Namespace").name(namespace)
}

/// The set of a namespace's pod addresses of one family.
pub(crate) fn namespace_set(namespace: &str, family: Family) -> OwnerId {
    OwnerId::new("Namespace").name(namespace).key("ip-family", family.name())
}

/// Cluster CIDRs, joined by spaces, as `arp_proxy` wants them.
pub(crate) fn cluster_cidrs(network: &Network) -> String {
    network.cluster_subnets.iter().map(|r| r.cidr.to_string()).collect::<Vec<_>>().join(" ")
}
