//! The identities of rows whose uuid is not known, and the columns that members fill.

use std::fmt::Write as _;
use std::sync::Arc;

use ovnkube_model::Subnet;
use ovnkube_ovn::nb::{
    acl, address_set, chassis_template_var, copp, dhcp_options, gateway_chassis, load_balancer, load_balancer_group,
    logical_router, logical_router_policy as policy, logical_router_port, logical_router_static_route as route,
    logical_switch, logical_switch_port as lsp, meter, meter_band, nat, port_group, qos, static_mac_binding,
};
use ovnkube_ovn::{ColumnId, Row, Table, owner};

/// The identity of a row within its table: its name if that is unique, the owner id of rows that carry one,
/// else the columns that define it. Rows under different parents may share an identity (routes of two
/// routers); then the parent tells them apart.
pub fn identity(row: &Row) -> Option<Arc<str>> {
    let text = match row.table().name {
        "Logical_Switch" => row.text(logical_switch::NAME),
        "Logical_Switch_Port" => row.text(lsp::NAME),
        "Logical_Router" => row.text(logical_router::NAME),
        "Logical_Router_Port" => row.text(logical_router_port::NAME),
        "Load_Balancer" => row.text(load_balancer::NAME),
        "Load_Balancer_Group" => row.text(load_balancer_group::NAME),
        "Port_Group" => row.text(port_group::NAME),
        "Address_Set" => row.text(address_set::NAME),
        "Meter" => row.text(meter::NAME),
        "Copp" => row.text(copp::NAME),
        "Gateway_Chassis" => row.text(gateway_chassis::NAME),
        "Chassis_Template_Var" => row.text(chassis_template_var::CHASSIS),
        "ACL" => row.map(acl::EXTERNAL_IDS).text(owner::ID),
        "QoS" => row.map(qos::EXTERNAL_IDS).text(owner::ID),
        "DHCP_Options" => row.map(dhcp_options::EXTERNAL_IDS).text(owner::ID),
        _ => return composed(row).map(Into::into),
    };
    text.filter(|text| !text.is_empty()).cloned()
}

/// People write routes and policies to other clusters, too: ours would take theirs over, and later remove them.
fn own_kind(row: &Row) -> &'static str {
    if is_of_interconnection(row) { " interconnection" } else { "" }
}

fn is_of_interconnection(row: &Row) -> bool {
    row.external_ids().get(owner::OWNER_TYPE) == Some(owner::INTERCONNECTION)
}

/// The prefix of other clusters to which a row of ours is a way, if it is one.
pub fn prefix_of_way(row: &Row) -> Option<Subnet> {
    let prefix = match row.table().name {
        "Logical_Router_Static_Route" => row.str(route::IP_PREFIX),
        "Logical_Router_Policy" => row.str(policy::MATCH).split_once(".dst == ")?.1,
        _ => return None,
    };
    prefix.parse().ok().filter(|_| is_of_interconnection(row))
}

/// An identity made of several columns.
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
            "{} {} {} {} {}{}",
            row.str(route::IP_PREFIX),
            row.str(route::POLICY),
            row.str(route::NEXTHOP),
            row.str(route::OUTPUT_PORT),
            row.str(route::ROUTE_TABLE),
            own_kind(row)
        ),
        "Logical_Router_Policy" => write!(
            id,
            "{} {} {} {}{}",
            row.int(policy::PRIORITY),
            row.str(policy::MATCH),
            row.str(policy::ACTION),
            row.strs(policy::NEXTHOPS).collect::<Vec<_>>().join(" "),
            own_kind(row)
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

/// Whether only their routers may tell rows of a table apart: their keys then include the router.
pub(crate) fn is_named_within(table: &Table) -> bool {
    matches!(table.name, "Logical_Router_Static_Route" | "Logical_Router_Policy" | "NAT")
}

/// Set and map columns that are filled by members: a value of ours in them that no key wants is garbage.
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
