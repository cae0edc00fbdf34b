//! Southbound rows: the chassis of the others' gateways, so that hosts make tunnels to them, and where the others' ports
//! are.

use std::collections::{BTreeMap, BTreeSet};

use ovnkube_model::Name;
use ovnkube_ovn::sb::{chassis, encap, port_binding};
use ovnkube_ovn::{Row, Uuid, owner};
use ovnkube_ovsdb_data::{Cache, Txn};

use crate::databases::is_remote;
use crate::theirs::{Encap, Gateway, Theirs};
use crate::write::put;

pub(crate) fn write(txn: &mut Txn, sb: &Cache, theirs: &Theirs, problems: &mut Vec<String>) {
    let mut written: BTreeMap<&Name, Uuid> = BTreeMap::new();
    for (name, gateway) in &theirs.gateways {
        match write_one(txn, sb, name, gateway) {
            Ok(uuid) => drop(written.insert(name, uuid)),
            Err(problem) => problems.push(problem),
        }
    }
    let stale = sb.iter(chassis::TABLE).filter(|(uuid, row)| is_marked(row) && !written.values().any(|w| w == uuid));
    for (uuid, _) in stale {
        txn.delete(chassis::TABLE, uuid);
    }
    for port in &theirs.ports {
        let mut rows = sb.iter(port_binding::TABLE);
        let is_it = |row: &Row| row.str(port_binding::LOGICAL_PORT) == port.name.as_ref();
        let row = rows.find(|(_, row)| is_it(row) && row.str(port_binding::TYPE) == "remote");
        let Some((uuid, row)) = row else { continue };
        let wanted = written.get(&port.gateway).copied();
        if row.uuid(port_binding::CHASSIS) != wanted {
            txn.update(uuid, Row::new(port_binding::TABLE).with(port_binding::CHASSIS, wanted));
        }
    }
}

/// A chassis of another program is never changed, except for one that OVN's own daemon left behind.
fn write_one(txn: &mut Txn, sb: &Cache, name: &Name, gateway: &Gateway) -> Result<Uuid, String> {
    let have = sb.iter(chassis::TABLE).find(|(_, row)| row.str(chassis::NAME) == name.as_ref());
    if have.is_some_and(|(_, row)| !is_remote(row)) {
        return Err(format!("cannot use gateway {name} of another cluster: a chassis of this cluster has the same id"));
    }
    let taken = |encap: &&Encap| {
        let mut rows = sb.iter(encap::TABLE);
        rows.any(|(_, row)| {
            let is_same = row.str(encap::TYPE) == encap.kind.as_ref() && row.str(encap::IP).parse() == Ok(encap.ip);
            is_same && row.str(encap::CHASSIS_NAME) != name.as_ref()
        })
    };
    if let Some(encap) = gateway.encaps.iter().find(taken) {
        return Err(format!(
            "cannot use gateway {name} of another cluster: a host of this cluster has its tunnel address {} too",
            encap.ip
        ));
    }
    let of = have.into_iter().flat_map(|(_, row)| row.uuids(chassis::ENCAPS));
    let existing: Vec<(Uuid, &Row)> =
        of.filter_map(|uuid| Some((uuid, sb.get(encap::TABLE, uuid)?.as_ref()))).collect();
    let mut encaps = BTreeSet::new();
    for encap in &gateway.encaps {
        let ip = encap.ip.to_string();
        let same =
            existing.iter().find(|(_, row)| row.str(encap::TYPE) == encap.kind.as_ref() && row.str(encap::IP) == ip);
        let want = Row::new(encap::TABLE)
            .with(encap::CHASSIS_NAME, name.as_ref())
            .with(encap::TYPE, encap.kind.as_ref())
            .with(encap::IP, ip.as_str())
            .with(encap::OPTIONS, encap.options.iter().map(|(key, value)| (key.as_ref(), value.as_ref())));
        encaps.insert(put(txn, sb, same.map(|(uuid, _)| *uuid), &format!("{name} {} {ip}", encap.kind), want));
    }
    let want = Row::new(chassis::TABLE)
        .with(chassis::NAME, name.as_ref())
        .with(chassis::HOSTNAME, gateway.hostname.as_ref())
        .with(chassis::ENCAPS, encaps)
        .with(chassis::OTHER_CONFIG, [("is-remote", "true")])
        .with(chassis::EXTERNAL_IDS, owner::marks(owner::INTERCONNECTION));
    Ok(put(txn, sb, have.map(|(uuid, _)| uuid), name, want))
}

/// Whether a chassis is one that was written here.
fn is_marked(row: &Row) -> bool {
    row.map(chassis::EXTERNAL_IDS).get(owner::OWNER_TYPE) == Some(owner::INTERCONNECTION)
}
