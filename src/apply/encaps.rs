//! The UDP port that tunnels to a host are sent to.
//!
//! Every host makes its tunnels from what the rows `Encap` of the others say, and has no setting for its own: so
//! whoever has chosen the port writes it there, for the hosts that are nodes.

use std::collections::BTreeSet;

use ovnkube_ovn::sb::{self, encap};
use ovnkube_ovsdb::{Cache, Txn};

const PORT: &str = "dst_port";

/// Gives the encapsulations of these chassis the port; `None`: the usual one. Empty where they have it.
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
