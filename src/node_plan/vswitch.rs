//! Rows of the local `Open_vSwitch` database, by name.

use std::sync::Arc;

use ovnkube_ovn::vswitch::{bridge, interface, open_vswitch, port};
use ovnkube_ovn::{Row, Uuid, vswitch};
use ovnkube_ovsdb_data::{Cache, Txn};

/// The bridge that pods are connected to.
pub const BR_INT: &str = "br-int";

/// While it is set when ovs-vswitchd starts, that neither sends nor receives packets.
const RESTORE_WAIT: &str = "flow-restore-wait";
/// OVN has set the other key.
const BY_OVN: &str = "ovn-managed-flow-restore-wait";

/// What ends a wait of ovs-vswitchd that ovn-controller has left for its next start. One of another program, such as `ovs-ctl
/// restart`, stays: that program ends it.
pub fn end_wait(cache: &Cache) -> Txn {
    let mut txn = Txn::new(&vswitch::DATABASE);
    for (root, row) in cache.iter(open_vswitch::TABLE) {
        let is_by_ovn = row.map(open_vswitch::EXTERNAL_IDS).get(BY_OVN) == Some("true");
        if is_by_ovn && row.map(open_vswitch::OTHER_CONFIG).get(RESTORE_WAIT).is_some() {
            txn.remove_keys(open_vswitch::TABLE, root, open_vswitch::OTHER_CONFIG, vec![RESTORE_WAIT]);
            txn.remove_keys(open_vswitch::TABLE, root, open_vswitch::EXTERNAL_IDS, vec![BY_OVN]);
        }
    }
    txn
}

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
    cache.named(bridge::TABLE, BR_INT).next()
}

pub fn interface<'a>(cache: &'a Cache, link: &str) -> Option<(Uuid, &'a Arc<Row>)> {
    cache.named(interface::TABLE, link).next()
}

/// Names of the bridges that hold an interface.
pub fn bridges(cache: &Cache, interface: Uuid) -> impl Iterator<Item = String> {
    let ports = cache.parents(interface).filter(|parent| parent.table.id == port::TABLE.id);
    let bridges = ports.flat_map(|port| cache.parents(port.uuid)).filter(|parent| parent.table.id == bridge::TABLE.id);
    bridges.filter_map(|parent| Some(cache.get(bridge::TABLE, parent.uuid)?.str(bridge::NAME).to_owned()))
}
