//! What rows are called when their uuid is not known, and which of them are ours.

use std::fmt::Write as _;

use ovnkube_ovn::nb::{
    acl, address_set, chassis_template_var, copp, dhcp_options, gateway_chassis, load_balancer, load_balancer_group,
    logical_router, logical_router_policy as policy, logical_router_port, logical_router_static_route as route,
    logical_switch, logical_switch_port as lsp, meter, meter_band, nat, port_group, qos, static_mac_binding,
};
use ovnkube_ovn::{ColumnId, Row, Table, owner};

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

/// What a row is called within its table: its name where it has one that is its own, the owner id of
/// rows that carry one, else the columns that make it what it is. Rows under different parents may
/// share an identity (routes of two routers); then the parent tells them apart.
pub fn identity(row: &Row) -> Option<String> {
    let text = match row.table().name {
        "Logical_Switch" => row.str(logical_switch::NAME),
        "Logical_Switch_Port" => row.str(lsp::NAME),
        "Logical_Router" => row.str(logical_router::NAME),
        "Logical_Router_Port" => row.str(logical_router_port::NAME),
        "Load_Balancer" => row.str(load_balancer::NAME),
        "Load_Balancer_Group" => row.str(load_balancer_group::NAME),
        "Port_Group" => row.str(port_group::NAME),
        "Address_Set" => row.str(address_set::NAME),
        "Meter" => row.str(meter::NAME),
        "Copp" => row.str(copp::NAME),
        "Gateway_Chassis" => row.str(gateway_chassis::NAME),
        "Chassis_Template_Var" => row.str(chassis_template_var::CHASSIS),
        "ACL" => row.map(acl::EXTERNAL_IDS).get(owner::ID)?,
        "QoS" => row.map(qos::EXTERNAL_IDS).get(owner::ID)?,
        "DHCP_Options" => row.map(dhcp_options::EXTERNAL_IDS).get(owner::ID)?,
        _ => return composed(row),
    };
    (!text.is_empty()).then(|| text.to_owned())
}

/// Identity out of several columns.
fn composed(row: &Row) -> Option<String> {
    let mut id = String::new();
    let written = match row.table().name {
        "Meter_Band" => {
            let (action, rate, burst) =
                (row.str(meter_band::ACTION), row.int(meter_band::RATE), row.int(meter_band::BURST_SIZE));
            write!(id, "{action} {rate} {burst}")
        }
        "Logical_Router_Static_Route" => write!(
            id,
            "{} {} {} {} {}",
            row.str(route::IP_PREFIX),
            row.str(route::POLICY),
            row.str(route::NEXTHOP),
            row.str(route::OUTPUT_PORT),
            row.str(route::ROUTE_TABLE)
        ),
        "Logical_Router_Policy" => write!(id, "{} {}", row.int(policy::PRIORITY), row.str(policy::MATCH)),
        "NAT" => write!(
            id,
            "{} {} {} {} {}",
            row.str(nat::TYPE),
            row.str(nat::LOGICAL_IP),
            row.str(nat::EXTERNAL_IP),
            row.str(nat::LOGICAL_PORT),
            row.str(nat::MATCH)
        ),
        "Static_MAC_Binding" => {
            write!(id, "{} {}", row.str(static_mac_binding::LOGICAL_PORT), row.str(static_mac_binding::IP))
        }
        _ => return None,
    };
    written.ok().map(|()| id)
}

/// Set and map columns that are filled by members: whatever of ours stands in one and is wanted by
/// nobody is garbage.
pub fn member_columns(table: &Table) -> &'static [ColumnId] {
    const SWITCH: &[ColumnId] =
        &[logical_switch::PORTS.id(), logical_switch::ACLS.id(), logical_switch::LOAD_BALANCER.id()];
    const ROUTER: &[ColumnId] = &[
        logical_router::PORTS.id(),
        logical_router::STATIC_ROUTES.id(),
        logical_router::POLICIES.id(),
        logical_router::NAT.id(),
        logical_router::LOAD_BALANCER.id(),
    ];
    const BALANCERS: &[ColumnId] = &[load_balancer_group::LOAD_BALANCER.id()];
    const VARIABLES: &[ColumnId] = &[chassis_template_var::VARIABLES.id()];
    const GROUP: &[ColumnId] = &[port_group::PORTS.id(), port_group::ACLS.id()];
    const SET: &[ColumnId] = &[address_set::ADDRESSES.id()];
    match table.name {
        "Logical_Switch" => SWITCH,
        "Logical_Router" => ROUTER,
        "Load_Balancer_Group" => BALANCERS,
        "Chassis_Template_Var" => VARIABLES,
        "Port_Group" => GROUP,
        "Address_Set" => SET,
        _ => &[],
    }
}

/// Whether a row that nobody wants is one of ours, judged by the marks that ovn-kubernetes and this
/// program put on rows. `names_of_ports` gives the names of the ports of a switch.
pub fn is_garbage<'a>(row: &Row, mut names_of_ports: impl Iterator<Item = &'a str>) -> bool {
    match row.table().name {
        "Address_Set" => is_planned(row.map(address_set::EXTERNAL_IDS)),
        "Port_Group" => is_planned(row.map(port_group::EXTERNAL_IDS)),
        "ACL" => is_planned(row.map(acl::EXTERNAL_IDS)),
        // a pod's port, or one of the ports every node has
        "Logical_Switch_Port" => {
            let name = row.str(lsp::NAME);
            match row.str(lsp::TYPE) {
                "router" => is_cable(name, &["stor-", "jtor-GR_", "etor-GR_"]),
                _ => row.map(lsp::EXTERNAL_IDS).get("pod") == Some("true") && is_of_default_network(name, 1),
            }
        }
        // those of other networks say so
        "Load_Balancer" => {
            let ids = row.map(load_balancer::EXTERNAL_IDS);
            ids.get("k8s.ovn.org/kind") == Some("Service") && !ids.contains_key("k8s.ovn.org/network")
        }
        "Chassis_Template_Var" => row.map(chassis_template_var::VARIABLES).iter().all(|(key, _)| is_our_variable(key)),
        // a wanted one is never asked about: this is another of the same name, or a gone node's gateway
        "Logical_Router" => {
            let (name, ids) = (row.str(logical_router::NAME), row.map(logical_router::EXTERNAL_IDS));
            name == names::CLUSTER_ROUTER && ids.contains_key("k8s-cluster-router")
                || is_cable(name, &["GR_"]) && ids.contains_key("physical_ip")
        }
        "Logical_Router_Port" => is_cable(row.str(logical_router_port::NAME), &["rtos-", "rtoj-GR_", "rtoe-GR_"]),
        // of the cluster router: by subnet to a gateway, and to each gateway itself; of gateways: to outside
        "Logical_Router_Static_Route" => {
            let alone = row.str(route::IP_PREFIX) == row.str(route::NEXTHOP);
            row.str(route::POLICY) == "src-ip" || alone || !row.str(route::OUTPUT_PORT).is_empty()
        }
        "Logical_Router_Policy" => row.int(policy::PRIORITY) == 1004,
        // those of egress addresses carry an owner
        "NAT" => row.str(nat::TYPE) == "snat" && row.map(nat::EXTERNAL_IDS).is_empty(),
        "Static_MAC_Binding" => is_cable(row.str(static_mac_binding::LOGICAL_PORT), &["rtoe-GR_"]),
        // a node's switch is the one that has the node's cable to its router
        "Logical_Switch" => {
            let name = row.str(logical_switch::NAME);
            let config = row.map(logical_switch::OTHER_CONFIG);
            let has_subnet = config.contains_key("subnet") || config.contains_key("ipv6_prefix");
            let (cable, node, looks_ours) = match name.strip_prefix("ext_") {
                Some(node) => (format!("etor-GR_{node}"), node, true),
                None => (format!("stor-{name}"), name, has_subnet),
            };
            looks_ours && is_of_default_network(node, 0) && names_of_ports.any(|name| name == cable)
        }
        _ => false,
    }
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
    let node = beginnings.iter().find_map(|beginning| name.strip_prefix(beginning));
    node.is_some_and(|node| is_of_default_network(node, 0))
}

fn is_planned(ids: ovnkube_ovn::StrMap<'_>) -> bool {
    ids.get(owner::OWNER_CONTROLLER) == Some(owner::DEFAULT_NETWORK)
        && ids.get(owner::OWNER_TYPE).is_some_and(|t| PLANNED_TYPES.contains(&t))
}
