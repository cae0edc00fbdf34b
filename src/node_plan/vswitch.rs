//! Rows of the local `Open_vSwitch` database, by name.

use std::sync::Arc;

use ovnkube_ovn::vswitch::{bridge, interface, port};
use ovnkube_ovn::{Row, Uuid};
use ovnkube_ovsdb_data::Cache;

/// The bridge that pods are connected to.
pub const BR_INT: &str = "br-int";

/// The name of a bridge, port or interface, by which the cache looks it up.
pub fn name(row: &Row) -> Option<Arc<str>> {
    let text = match row.table().name {
        "Bridge" => row.text(bridge::NAME),
        "Port" => row.text(port::NAME),
        "Interface" => row.text(interface::NAME),
        _ => None,
    };
    text.cloned()
}

pub fn bridge(cache: &Cache) -> Option<(Uuid, &Arc<Row>)> {
    let uuid = *cache.lookup(bridge::TABLE, BR_INT).first()?;
    Some((uuid, cache.get(bridge::TABLE, uuid)?))
}

pub fn interface<'a>(cache: &'a Cache, link: &str) -> Option<(Uuid, &'a Arc<Row>)> {
    let uuid = *cache.lookup(interface::TABLE, link).first()?;
    Some((uuid, cache.get(interface::TABLE, uuid)?))
}

/// Names of the bridges that hold an interface.
pub fn bridges(cache: &Cache, interface: Uuid) -> impl Iterator<Item = String> {
    let ports = cache.parents(interface).filter(|parent| parent.table.id == port::TABLE.id);
    let bridges = ports.flat_map(|port| cache.parents(port.uuid)).filter(|parent| parent.table.id == bridge::TABLE.id);
    bridges.filter_map(|parent| Some(cache.get(bridge::TABLE, parent.uuid)?.str(bridge::NAME).to_owned()))
}
