//! Decides whose a row is: the only place that judges marks.

use ovnkube_ovn::nb::{
    acl, chassis_template_var, logical_router, logical_router_policy as policy, logical_router_port,
    logical_router_static_route as route, logical_switch, logical_switch_port as lsp, nat, port_group,
};
use ovnkube_ovn::{ColumnId, Row, Table, owner};

use crate::gateway::routes::MASQUERADE_ROUTE;
use crate::names::{self, NodeRow};

/// Owner types whose rows this program plans, in every table; rows of other types are left alone.
const PLANNED_TYPES: &[&str] = &[
    owner::GATEWAY,
    owner::INTERCONNECTION,
    "Cluster",
    "Namespace",
    "NetworkPolicy",
    "NetpolNamespace",
    "NetpolDefault",
    "NetpolNode",
    "PodSelector",
    "LoadBalancerSourceRanges",
    "MulticastCluster",
    "MulticastNS",
    // of ovn-kubernetes before 2024
    "NetworkPolicyPortIndexOwnerType",
];

/// Whose a row with the name of a wanted one is. Of several rows the one with the least value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ownership {
    /// It is marked as ours.
    Marked,
    /// It has no marks, and holds nothing that we would not write: ours from before there were marks, or of
    /// ovn-kubernetes, or its marks were removed.
    Bare,
    /// It belongs to another program: whatever its name, ours is a row of its own.
    Foreign,
}

/// Judges a row by its content. In a table with an index of names the only row of a name is ours to write.
pub fn ownership(row: &Row) -> Ownership {
    let is_marked = match row.table().name {
        "Logical_Router_Static_Route" | "Logical_Router_Policy" | "NAT" => is_planned(row),
        "Logical_Router" => is_router_of_ours(row),
        "Load_Balancer" => is_balancer_of_ours(row),
        // it has no marks: see `router_peer_port`
        "Logical_Switch" => return Ownership::Bare,
        _ => return Ownership::Marked,
    };
    match is_marked {
        true => Ownership::Marked,
        false if is_bare(row) => Ownership::Bare,
        false => Ownership::Foreign,
    }
}

/// Whether a row without our marks holds nothing besides its identity that would make it a different one.
fn is_bare(row: &Row) -> bool {
    let ids = row.external_ids();
    let only = |columns: &[ColumnId]| row.cells().all(|(column, _)| columns.contains(&column));
    match row.table().name {
        "Logical_Router_Static_Route" => {
            let columns = [
                route::IP_PREFIX.id(),
                route::POLICY.id(),
                route::NEXTHOP.id(),
                route::OUTPUT_PORT.id(),
                route::ROUTE_TABLE.id(),
                route::EXTERNAL_IDS.id(),
            ];
            only(&columns) && ids.iter().all(|id| id == (MASQUERADE_ROUTE, ""))
        }
        "Logical_Router_Policy" => {
            only(&[policy::PRIORITY.id(), policy::MATCH.id(), policy::ACTION.id(), policy::NEXTHOPS.id()])
        }
        // releases after 2024 limit the ports
        "NAT" => {
            let columns = [
                nat::TYPE.id(),
                nat::LOGICAL_IP.id(),
                nat::EXTERNAL_IP.id(),
                nat::LOGICAL_PORT.id(),
                nat::MATCH.id(),
                nat::OPTIONS.id(),
                nat::EXTERNAL_PORT_RANGE.id(),
            ];
            only(&columns) && row.map(nat::OPTIONS).iter().eq([("stateless", "false")])
        }
        _ => ids.is_empty(),
    }
}

/// The port that only our switch or router has, by table and name: names of ports have an index.
pub fn router_peer_port(row: &Row) -> Option<(&'static Table, String)> {
    match row.table().name {
        "Logical_Switch" => {
            let name = row.str(logical_switch::NAME);
            let port = match names::EXTERNAL_SWITCH.node(name) {
                Some(node) => names::EXTERNAL_TO_GATEWAY.of(node),
                None if name == names::JOIN_SWITCH => names::JOIN_TO_CLUSTER_ROUTER.to_owned(),
                None => names::SWITCH_TO_ROUTER.of(name),
            };
            Some((lsp::TABLE, port))
        }
        "Logical_Router" => Some((logical_router_port::TABLE, format!("rtoj-{}", row.str(logical_router::NAME)))),
        _ => None,
    }
}

/// Whether a row that no key wants is ours, judged by the marks that ovn-kubernetes and this program put on rows.
/// For switches and routers, `has_router_peer_port` says that it contains the port that only ours have.
pub fn is_garbage(row: &Row, has_router_peer_port: bool) -> bool {
    match row.table().name {
        // a pod's port, or one of the ports every node has
        "Logical_Switch_Port" => {
            let name = row.str(lsp::NAME);
            match row.str(lsp::TYPE) {
                "router" => {
                    is_one_of(name, &[names::SWITCH_TO_ROUTER, names::JOIN_TO_GATEWAY, names::EXTERNAL_TO_GATEWAY])
                        || is_planned(row)
                }
                "remote" => is_planned(row),
                _ => row.map(lsp::EXTERNAL_IDS).get("pod") == Some("true") && is_of_default_network(name, 1),
            }
        }
        "Load_Balancer" => is_balancer_of_ours(row),
        "Chassis_Template_Var" => row.map(chassis_template_var::VARIABLES).iter().all(|(key, _)| is_our_variable(key)),
        // wanted rows are not judged here: this is another of the same name, or the gateway of a deleted node
        "Logical_Router" => is_router_of_ours(row),
        "Logical_Router_Port" => {
            let kinds = [names::ROUTER_TO_SWITCH, names::GATEWAY_TO_JOIN, names::GATEWAY_TO_EXTERNAL];
            is_one_of(row.str(logical_router_port::NAME), &kinds) || is_planned(row)
        }
        // a node's switch is the one that has the port to the cluster router
        "Logical_Switch" => {
            let name = row.str(logical_switch::NAME);
            let config = row.map(logical_switch::OTHER_CONFIG);
            let has_subnet = config.contains_key("subnet") || config.contains_key("ipv6_prefix");
            let is_node_switch = has_subnet && names::is_node(name);
            let is_of_node = is_node_switch || names::EXTERNAL_SWITCH.node(name).is_some();
            is_of_node && has_router_peer_port || is_planned(row)
        }
        _ => is_planned(row),
    }
}

/// Whether an ACL that no key wants stays in a port group of ours: features of ovn-kubernetes that are not planned
/// here have their ACLs in groups of namespaces. All others are removed, also unmarked ones: unknown rows must not
/// decide who may talk to whom.
pub fn is_anothers_acl(group: &Row, acl: &Row) -> bool {
    let of_policies = |owner_type: &str| owner_type != "Namespace" && owner_type != "Cluster";
    let ids = acl.map(acl::EXTERNAL_IDS);
    !group.map(port_group::EXTERNAL_IDS).get(owner::OWNER_TYPE).is_none_or(of_policies)
        && ids.contains_key(owner::OWNER_CONTROLLER)
        && ids.get(owner::OWNER_TYPE).is_some_and(|owner_type| !PLANNED_TYPES.contains(&owner_type))
}

/// Whether a row says that it is of a type that is not planned here: such a row is never removed.
pub(crate) fn is_of_another_type(row: &Row) -> bool {
    row.external_ids().contains_key(owner::OWNER_TYPE) && !is_planned(row)
}

fn is_router_of_ours(row: &Row) -> bool {
    let (name, ids) = (row.str(logical_router::NAME), row.map(logical_router::EXTERNAL_IDS));
    name == names::CLUSTER_ROUTER && ids.contains_key("k8s-cluster-router")
        || names::GATEWAY_ROUTER.node(name).is_some() && ids.contains_key("physical_ip")
}

/// Load balancers of other networks name their network.
fn is_balancer_of_ours(row: &Row) -> bool {
    let ids = row.external_ids();
    ids.get("k8s.ovn.org/kind") == Some("Service") && !ids.contains_key("k8s.ovn.org/network")
}

/// Whether a variable of load balancer templates is planned here.
pub fn is_our_variable(name: &str) -> bool {
    name.starts_with("NODEIP_IPv") || name.starts_with("Service__")
}

/// Rows of other networks have that network's name and a `_` in front of theirs. Kubernetes' names
/// have no `_`, so the one between a pod's namespace and name is the only one.
fn is_of_default_network(name: &str, underscores: usize) -> bool {
    name.matches('_').count() == underscores
}

fn is_one_of(name: &str, kinds: &[NodeRow]) -> bool {
    kinds.iter().any(|kind| kind.node(name).is_some())
}

/// Whether a row has the owner ids of a type that is planned here.
pub(crate) fn is_planned(row: &Row) -> bool {
    let ids = row.external_ids();
    ids.get(owner::OWNER_CONTROLLER) == Some(owner::DEFAULT_NETWORK)
        && ids.get(owner::OWNER_TYPE).is_some_and(|t| PLANNED_TYPES.contains(&t))
        && !is_no_overlay_set(row)
}

/// Whether a row is the address set in which ovn-kubernetes keeps what nodes without tunnels do not translate. NAT rules
/// refer to it, so the server would refuse its removal.
pub(crate) fn is_no_overlay_set(row: &Row) -> bool {
    let ids = row.external_ids();
    row.table().name == "Address_Set"
        && ids.get(owner::OWNER_TYPE) == Some("Cluster")
        && ids.get(owner::NAME) == Some("no-overlay-snat-exemption")
}
