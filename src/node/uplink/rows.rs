//! The bridge's rows: made, read and removed in single transactions.

use ovnkube_model::Mac;
use ovnkube_node_plan::uplink::bridge_of;
use ovnkube_node_plan::vswitch;
use ovnkube_ovn::vswitch::DATABASE;
use ovnkube_ovn::vswitch::{bridge, interface, open_vswitch, port};
use ovnkube_ovn::{Atom, Datum, Row, Uuid, derived_uuid};
use ovnkube_ovsdb::{Cache, Txn};

use super::journal::Journal;
use crate::{Error, Result};

/// Names the NIC; ovn-kubernetes writes it too, and so does an administrator whose bridge has several.
pub(crate) const UPLINK: &str = "bridge-uplink";
/// Names the bridge itself; ovn-kubernetes writes it too, to bridges that it makes.
const BRIDGE: &str = "bridge-id";
const JOURNAL: &str = "ovnkube-uplink";

/// A bridge made for a NIC, by us or by ovn-kubernetes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Made {
    uuid: Uuid,
    pub(crate) bridge: String,
    pub(crate) nic: String,
    /// The NIC is a port of it.
    pub(super) port: bool,
    pub(super) journal: Option<Journal>,
}

/// All such bridges, sorted by name.
pub(crate) fn made(cache: &Cache) -> Vec<Made> {
    let read = |(uuid, row): (Uuid, &std::sync::Arc<Row>)| {
        let (name, ids) = (row.str(bridge::NAME), row.map(bridge::EXTERNAL_IDS));
        let nic = ids.get(UPLINK)?;
        let (journal, id) = (ids.get(JOURNAL), ids.get(BRIDGE));
        (name == bridge_of(nic) && (journal.is_some() || id == Some(name))).then(|| Made {
            uuid,
            bridge: name.to_owned(),
            nic: nic.to_owned(),
            port: ports_of(cache, uuid, nic).next().is_some(),
            journal: journal.and_then(Journal::parse),
        })
    };
    let mut made: Vec<Made> = cache.iter(bridge::TABLE).filter_map(read).collect();
    made.sort_by(|a, b| a.bridge.cmp(&b.bridge));
    made
}

/// The ports of that name on the bridge.
fn ports_of<'a>(cache: &'a Cache, bridge: Uuid, name: &'a str) -> impl Iterator<Item = Uuid> + 'a {
    let ports = cache.get(bridge::TABLE, bridge).into_iter().flat_map(|row| row.uuids(bridge::PORTS));
    ports.filter(move |port| cache.get(port::TABLE, *port).is_some_and(|row| row.str(port::NAME) == name))
}

/// Makes the bridge, without the NIC; its row names the NIC.
pub(super) fn make(cache: &Cache, nic: &str, mac: Mac, journal: &Journal) -> Result<Txn> {
    let mut txn = Txn::new(&DATABASE);
    let (root, have) = cache.iter(open_vswitch::TABLE).next().ok_or(Error::NoOvs)?;
    let name = &bridge_of(nic);
    if !cache.lookup(bridge::TABLE, name).is_empty() {
        return Ok(txn);
    }
    let id = |table: &str| derived_uuid(table, name);
    let local = Row::new(interface::TABLE).with(interface::NAME, name).with(interface::TYPE, "internal");
    txn.insert(id("Interface"), local);
    txn.insert(id("Port"), Row::new(port::TABLE).with(port::NAME, name).with(port::INTERFACES, [id("Interface")]));
    let ids = [(BRIDGE, name.as_str()), (UPLINK, nic), (JOURNAL, &journal.text())];
    let mut row = Row::new(bridge::TABLE)
        .with(bridge::NAME, name)
        .with(bridge::PORTS, [id("Port")])
        .with(bridge::FAIL_MODE, Some("standalone"))
        .with(bridge::OTHER_CONFIG, [("hwaddr", mac.to_string())])
        .with(bridge::EXTERNAL_IDS, ids);
    if let Some(datapath) = have.map(open_vswitch::EXTERNAL_IDS).get("ovn-bridge-datapath-type") {
        row.set(bridge::DATAPATH_TYPE, datapath);
    }
    txn.insert(id("Bridge"), row);
    txn.insert_into(open_vswitch::TABLE, root, open_vswitch::BRIDGES, Datum::one(Atom::Uuid(id("Bridge"))));
    // it must survive a power cut
    txn.durable();
    Ok(txn)
}

impl Made {
    /// Made by this program, not by ovn-kubernetes.
    pub(crate) fn is_journalled(&self) -> bool {
        self.journal.is_some()
    }

    pub(super) fn write(&self, cache: &Cache, journal: &Journal) -> Txn {
        let mut txn = Txn::new(&DATABASE);
        let text = journal.text();
        let row = cache.get(bridge::TABLE, self.uuid);
        if row.is_some_and(|row| row.map(bridge::EXTERNAL_IDS).get(JOURNAL) != Some(&text)) {
            txn.set_keys(bridge::TABLE, self.uuid, bridge::EXTERNAL_IDS, [(JOURNAL, text.as_str())]);
            txn.durable();
        }
        txn
    }

    /// Adds the NIC. Open vSwitch started with `--delete-transient-ports` gives it back to the host at boot.
    pub(super) fn add_port(&self, cache: &Cache) -> Result<Txn> {
        let mut txn = Txn::new(&DATABASE);
        let nic = self.nic.as_str();
        if let Some((uuid, _)) = vswitch::interface(cache, nic) {
            return match vswitch::bridges(cache, uuid).next() {
                Some(bridge) if bridge == self.bridge => Ok(txn),
                other => Err(Error::gateway(nic, &format!("it is a port of bridge {}", other.unwrap_or_default()))),
            };
        }
        let id = |table: &str| derived_uuid(table, nic);
        txn.insert(id("Interface"), Row::new(interface::TABLE).with(interface::NAME, nic));
        txn.insert(
            id("Port"),
            Row::new(port::TABLE)
                .with(port::NAME, nic)
                .with(port::INTERFACES, [id("Interface")])
                .with(port::OTHER_CONFIG, [("transient", "true")]),
        );
        txn.insert_into(bridge::TABLE, self.uuid, bridge::PORTS, Datum::one(Atom::Uuid(id("Port"))));
        Ok(txn)
    }

    pub(super) fn remove_port(&self, cache: &Cache) -> Txn {
        let mut txn = Txn::new(&DATABASE);
        for port in ports_of(cache, self.uuid, &self.nic) {
            txn.remove_from(bridge::TABLE, self.uuid, bridge::PORTS, Datum::one(Atom::Uuid(port)));
        }
        txn
    }

    /// Removes the bridge with everything that was put on it.
    pub(super) fn remove(&self, cache: &Cache) -> Txn {
        let mut txn = Txn::new(&DATABASE);
        if cache.get(bridge::TABLE, self.uuid).is_some() {
            for (root, _) in cache.iter(open_vswitch::TABLE) {
                let gone = Datum::one(Atom::Uuid(self.uuid));
                txn.remove_from(open_vswitch::TABLE, root, open_vswitch::BRIDGES, gone);
            }
            txn.durable();
        }
        txn
    }
}
