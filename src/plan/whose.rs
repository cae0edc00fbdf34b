//! Whose a row is: the one place that judges marks.

use ovnkube_ovn::nb::{
    acl, chassis_template_var, logical_router, logical_router_policy as policy, logical_router_port,
    logical_router_static_route as route, logical_switch, logical_switch_port as lsp, nat, port_group,
};
use ovnkube_ovn::{ColumnId, Row, StrMap, Table, owner};

use crate::gateway::routes::MASQUERADE_ROUTE;
use crate::names;

/// Owner types whose rows this program plans; rows of other types are left alone.
const PLANNED_TYPES: [&str; 11] = [
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
    // what ovn-kubernetes had before 2024
    "NetworkPolicyPortIndexOwnerType",
];

/// Whose a row may be that is called as one that is wanted. The lesser one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Claim {
    /// It says that it is ours.
    Marked,
    /// It says nothing, and holds nothing that we would not write: ours from before there were marks, or of
    /// ovn-kubernetes, or one that somebody took the marks off.
    Bare,
    /// Somebody else's: whatever it is called, ours stands beside it.
    Foreign,
}

/// Judges a row by what it holds. Where names have an index there is but one of a name, which is ours to write.
pub fn claim(row: &Row) -> Claim {
    let is_marked = match row.table().name {
        "Logical_Router_Static_Route" | "Logical_Router_Policy" | "NAT" => is_gateways(row),
        "Logical_Router" => is_router_of_ours(row),
        "Load_Balancer" => is_balancer_of_ours(row),
        // it says nothing at all: see `cable`
        "Logical_Switch" => return Claim::Bare,
        _ => return Claim::Marked,
    };
    match is_marked {
        true => Claim::Marked,
        false if is_bare(row) => Claim::Bare,
        false => Claim::Foreign,
    }
}

/// Whether a row without our marks holds nothing that would make it another one, beside its identity.
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

/// The port of a switch or router that only ours has, whatever others call theirs. Names of ports have an index.
pub fn cable(row: &Row) -> Option<(&'static Table, String)> {
    match row.table().name {
        "Logical_Switch" => {
            let name = row.str(logical_switch::NAME);
            let port = match name.strip_prefix("ext_") {
                Some(node) => format!("etor-GR_{node}"),
                None if name == names::JOIN_SWITCH => format!("jtor-{}", names::CLUSTER_ROUTER),
                None => format!("stor-{name}"),
            };
            Some((lsp::TABLE, port))
        }
        "Logical_Router" => Some((logical_router_port::TABLE, format!("rtoj-{}", row.str(logical_router::NAME)))),
        _ => None,
    }
}

/// Whether a row that nobody wants is one of ours, judged by the marks that ovn-kubernetes and this
/// program put on rows. Of switches and routers: `has_cable` if the port is in there that only ours have.
pub fn is_garbage(row: &Row, has_cable: bool) -> bool {
    match row.table().name {
        "Address_Set" | "Port_Group" | "ACL" => is_planned(row.external_ids()),
        // a pod's port, or one of the ports every node has
        "Logical_Switch_Port" => {
            let name = row.str(lsp::NAME);
            match row.str(lsp::TYPE) {
                "router" => is_cable(name, &["stor-", "jtor-GR_", "etor-GR_"]),
                _ => row.map(lsp::EXTERNAL_IDS).get("pod") == Some("true") && is_of_default_network(name, 1),
            }
        }
        "Load_Balancer" => is_balancer_of_ours(row),
        "Chassis_Template_Var" => row.map(chassis_template_var::VARIABLES).iter().all(|(key, _)| is_our_variable(key)),
        // a wanted one is never asked about: this is another of the same name, or a gone node's gateway
        "Logical_Router" => is_router_of_ours(row),
        "Logical_Router_Port" => is_cable(row.str(logical_router_port::NAME), &["rtos-", "rtoj-GR_", "rtoe-GR_"]),
        "Logical_Router_Static_Route" | "Logical_Router_Policy" | "NAT" => is_gateways(row),
        // a node's switch is the one that has the node's cable to its router
        "Logical_Switch" => {
            let name = row.str(logical_switch::NAME);
            let config = row.map(logical_switch::OTHER_CONFIG);
            let has_subnet = config.contains_key("subnet") || config.contains_key("ipv6_prefix");
            let (node, looks_ours) = name.strip_prefix("ext_").map_or((name, has_subnet), |node| (node, true));
            looks_ours && is_of_default_network(node, 0) && has_cable
        }
        _ => false,
    }
}

/// Whether an ACL that nobody here wants stays in a port group of ours all the same: a feature of ovn-kubernetes that
/// is not planned here has its ACLs in groups of namespaces. All others are thrown out, also those that say nothing:
/// who may talk to whom is not left to rows that nobody knows.
pub fn is_anothers_acl(group: &Row, acl: &Row) -> bool {
    let of_policies = |owner_type: &str| owner_type != "Namespace" && owner_type != "Cluster";
    let ids = acl.map(acl::EXTERNAL_IDS);
    !group.map(port_group::EXTERNAL_IDS).get(owner::OWNER_TYPE).is_none_or(of_policies)
        && ids.contains_key(owner::OWNER_CONTROLLER)
        && ids.get(owner::OWNER_TYPE).is_some_and(|owner_type| !PLANNED_TYPES.contains(&owner_type))
}

/// Whether routes, policies, NAT rules and gateway routers say that they are ours.
pub(crate) fn is_gateways(row: &Row) -> bool {
    let ids = row.external_ids();
    owner::marks(owner::GATEWAY).iter().all(|(key, value)| ids.get(key) == Some(value))
}

fn is_router_of_ours(row: &Row) -> bool {
    let (name, ids) = (row.str(logical_router::NAME), row.map(logical_router::EXTERNAL_IDS));
    name == names::CLUSTER_ROUTER && ids.contains_key("k8s-cluster-router")
        || is_cable(name, &["GR_"]) && ids.contains_key("physical_ip")
}

/// Those of other networks say so.
fn is_balancer_of_ours(row: &Row) -> bool {
    let ids = row.external_ids();
    ids.get("k8s.ovn.org/kind") == Some("Service") && !ids.contains_key("k8s.ovn.org/network")
}

/// Whether a variable of load balancer templates is one that is planned here.
pub fn is_our_variable(name: &str) -> bool {
    name.starts_with("NODEIP_IPv") || name.starts_with("Service__")
}

/// Rows of other networks have that network's name and a `_` in front of theirs. Kubernetes' names
/// have no `_`, so the one between a pod's namespace and name is the only one.
fn is_of_default_network(name: &str, underscores: usize) -> bool {
    name.matches('_').count() == underscores
}

/// One of the default network's names that begin like this and end with a node's name.
fn is_cable(name: &str, beginnings: &[&str]) -> bool {
    beginnings.iter().any(|beginning| node_of(name, beginning).is_some())
}

/// The node of the default network whose name comes after this.
pub(crate) fn node_of<'a>(name: &'a str, beginning: &str) -> Option<&'a str> {
    name.strip_prefix(beginning).filter(|node| is_of_default_network(node, 0))
}

fn is_planned(ids: StrMap<'_>) -> bool {
    ids.get(owner::OWNER_CONTROLLER) == Some(owner::DEFAULT_NETWORK)
        && ids.get(owner::OWNER_TYPE).is_some_and(|t| PLANNED_TYPES.contains(&t))
}
