//! Southbound rows: the chassis of the others' gateways, so that hosts make tunnels to them, and where the others' ports
//! are.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ovnkube_model::Name;
use ovnkube_ovn::sb::{chassis, encap, port_binding};
use ovnkube_ovn::{Row, Uuid, owner};
use ovnkube_ovsdb_data::{Cache, Txn};
use ovnkube_plan::Offer;

use crate::databases::is_remote;
use crate::theirs::Theirs;
use crate::tunnels::{Encap, Gateway};
use crate::write::put;

/// `offer`: what of this cluster no gateway of another one may have.
pub(crate) fn write(txn: &mut Txn, sb: &Cache, theirs: &Theirs, offer: Option<&Offer>, problems: &mut Vec<String>) {
    let there = sb.iter(chassis::TABLE).map(|(uuid, row)| (row.str(chassis::NAME), (uuid, row.as_ref()))).collect();
    let mut writer = Writer { txn, sb, offer, there, tunnels: tunnels(sb) };
    let mut written: BTreeMap<&Name, Uuid> = BTreeMap::new();
    for (name, gateway) in in_order(sb, theirs) {
        match writer.write(name, gateway) {
            Ok(uuid) => drop(written.insert(name, uuid)),
            Err(why) => problems.push(format!("cannot use gateway {name} of cluster {}: {why}", gateway.zone)),
        }
    }
    let kept: BTreeSet<Uuid> = written.values().copied().collect();
    for (uuid, _) in sb.iter(chassis::TABLE).filter(|(uuid, row)| is_marked(row) && !kept.contains(uuid)) {
        txn.delete(chassis::TABLE, uuid);
    }
    let remote = sb.iter(port_binding::TABLE).filter(|(_, row)| row.str(port_binding::TYPE) == "remote");
    let remote: BTreeMap<&str, (Uuid, &Row)> =
        remote.map(|(uuid, row)| (row.str(port_binding::LOGICAL_PORT), (uuid, row.as_ref()))).collect();
    for port in &theirs.ports {
        let Some(&(uuid, row)) = remote.get(port.name.as_ref()) else { continue };
        let wanted = written.get(&port.gateway).copied();
        if row.uuid(port_binding::CHASSIS) != wanted {
            txn.update(uuid, Row::new(port_binding::TABLE).with(port_binding::CHASSIS, wanted));
        }
    }
}

/// Those that are there first, as they are; then those of clusters that joined earlier.
fn in_order<'t>(sb: &Cache, theirs: &'t Theirs) -> Vec<(&'t Name, &'t Gateway)> {
    let there = sb.iter(chassis::TABLE).filter(|(_, row)| is_marked(row));
    let there: BTreeMap<&str, &Row> = there.map(|(_, row)| (row.str(chassis::NAME), row.as_ref())).collect();
    let is_there = |name: &Name, gateway: &Gateway| {
        let encaps = there.get(name.as_ref()).into_iter().flat_map(|row| row.uuids(chassis::ENCAPS));
        let have: BTreeSet<_> = encaps.filter_map(|uuid| tunnel(sb.get(encap::TABLE, uuid)?)).collect();
        gateway.encaps.iter().all(|encap| have.contains(&(encap.kind.clone(), encap.ip)))
    };
    let place = |gateway: &Gateway| theirs.clusters.get(&gateway.zone).map(|cluster| cluster.place);
    let mut gateways: Vec<_> = theirs.gateways.iter().collect();
    gateways.sort_by_cached_key(|(name, gateway)| (!is_there(name, gateway), place(gateway), (*name).clone()));
    gateways
}

/// What a tunnel to a host is: two are never the same in SB.
type Tunnel = (Name, IpAddr);

fn tunnel(row: &Row) -> Option<Tunnel> {
    Some((row.str(encap::TYPE).into(), row.str(encap::IP).parse().ok()?))
}

/// Who has which tunnel: all chassis but those that were written here, each with its name and in words.
fn tunnels(sb: &Cache) -> BTreeMap<Tunnel, (Name, String)> {
    let holder = |row: &Row| {
        let (name, whose) = (row.str(chassis::NAME), if is_remote(row) { "another program" } else { "this cluster" });
        (Name::from(name), format!("chassis {name} of {whose}"))
    };
    let others = sb.iter(chassis::TABLE).filter(|(_, row)| !is_marked(row));
    let encaps = others.flat_map(|(_, row)| row.uuids(chassis::ENCAPS).map(move |uuid| (uuid, row)));
    encaps.filter_map(|(uuid, row)| Some((tunnel(sb.get(encap::TABLE, uuid)?)?, holder(row)))).collect()
}

struct Writer<'a, 't> {
    txn: &'t mut Txn,
    sb: &'a Cache,
    offer: Option<&'a Offer>,
    /// The chassis that are there, by name.
    there: BTreeMap<&'a str, (Uuid, &'a Row)>,
    /// Each with the chassis that has it.
    tunnels: BTreeMap<Tunnel, (Name, String)>,
}

impl Writer<'_, '_> {
    /// A chassis of another program is never changed, except for one that OVN's own daemon left behind.
    fn write(&mut self, name: &Name, gateway: &Gateway) -> Result<Uuid, String> {
        let have = self.there.get(name.as_ref()).copied();
        let is_node = self.offer.is_some_and(|offer| offer.own_chassis.contains(name));
        if is_node || have.is_some_and(|(_, row)| !is_remote(row)) {
            return Err(
                "a chassis of this cluster has the same id; give the host in that cluster another system-id".into()
            );
        }
        for Encap { kind, ip, .. } in &gateway.encaps {
            let node = self.offer.filter(|offer| offer.local.is_of_node(*ip)).map(|_| "a node of this cluster");
            let holder = self.tunnels.get(&(kind.clone(), *ip)).filter(|(holder, _)| holder != name);
            if let Some(other) = holder.map(|(_, text)| text.as_str()).or(node) {
                return Err(format!(
                    "{other} has its tunnel address {ip} too; give one of the two hosts another address"
                ));
            }
        }
        for Encap { kind, ip, .. } in &gateway.encaps {
            let text = format!("gateway {name} of cluster {}", gateway.zone);
            self.tunnels.insert((kind.clone(), *ip), (name.clone(), text));
        }
        Ok(self.put(name, gateway, have))
    }

    fn put(&mut self, name: &Name, gateway: &Gateway, have: Option<(Uuid, &Row)>) -> Uuid {
        let (sb, txn) = (self.sb, &mut *self.txn);
        let of = have.into_iter().flat_map(|(_, row)| row.uuids(chassis::ENCAPS));
        let existing: Vec<(Uuid, &Row)> =
            of.filter_map(|uuid| Some((uuid, sb.get(encap::TABLE, uuid)?.as_ref()))).collect();
        let mut encaps = BTreeSet::new();
        for encap in &gateway.encaps {
            let ip = encap.ip.to_string();
            let same = existing
                .iter()
                .find(|(_, row)| row.str(encap::TYPE) == encap.kind.as_ref() && row.str(encap::IP) == ip);
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
        put(txn, sb, have.map(|(uuid, _)| uuid), name, want)
    }
}

/// Whether a chassis is one that was written here.
fn is_marked(row: &Row) -> bool {
    row.map(chassis::EXTERNAL_IDS).get(owner::OWNER_TYPE) == Some(owner::INTERCONNECTION)
}
