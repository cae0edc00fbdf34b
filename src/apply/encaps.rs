//! The UDP port that tunnels to a host use.
//!
//! Each host creates its tunnels from the `Encap` rows of the others and has no setting for its own port. So the
//! controller writes the configured port there, for the hosts that are nodes.

use std::collections::BTreeSet;

use ovnkube_ovn::sb::{self, encap};
use ovnkube_ovsdb::{Cache, Txn};

const PORT: &str = "dst_port";

/// Sets the port in the encapsulations of these chassis; `None`: the default. Empty if nothing differs.
pub(crate) fn plan(sb: &Cache, port: Option<u16>, chassis: &BTreeSet<&str>) -> Txn {
    let mut txn = Txn::new(&sb::DATABASE);
    let port = port.map(|port| port.to_string());
    for (uuid, row) in sb.iter(encap::TABLE).filter(|(_, row)| chassis.contains(row.str(encap::CHASSIS_NAME))) {
        let have = row.map(encap::OPTIONS).get(PORT);
        if have == port.as_deref() {
            continue;
        }
        match port.as_deref() {
            Some(port) => txn.set_keys(encap::TABLE, uuid, encap::OPTIONS, [(PORT, port)]),
            None => txn.remove_keys(encap::TABLE, uuid, encap::OPTIONS, [PORT]),
        };
    }
    txn
}
