//! What rows are called when their uuid is not known, and which of their columns are filled by members.

use std::fmt::Write as _;

use ovnkube_ovn::nb::{
    acl, address_set, chassis_template_var, copp, dhcp_options, gateway_chassis, load_balancer, load_balancer_group,
    logical_router, logical_router_policy as policy, logical_router_port, logical_router_static_route as route,
    logical_switch, logical_switch_port as lsp, meter, meter_band, nat, port_group, qos, static_mac_binding,
};
use ovnkube_ovn::{ColumnId, Row, Table, owner};

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
        "Logical_Router_Policy" => write!(
            id,
            "{} {} {} {}",
            row.int(policy::PRIORITY),
            row.str(policy::MATCH),
            row.str(policy::ACTION),
            row.strs(policy::NEXTHOPS).collect::<Vec<_>>().join(" ")
        ),
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
