//! Pods' ports on br-int, as rows of Open_vSwitch.

use std::collections::{BTreeSet, HashMap};

use ovnkube_model::{PodKey, PodNetwork};
use ovnkube_node_plan::vswitch::{self, BR_INT};
use ovnkube_ovn::vswitch::{bridge, interface, port, qos};
use ovnkube_ovn::{Atom, Datum, Row, Uuid};
use ovnkube_ovsdb::{Cache, Parent, Txn};

use crate::bandwidth::Bandwidth;
use crate::pair::host_name;
use crate::pods::PodOnNode;
use crate::{Error, Result};

/// What OVS knows about a pod's port: the external_ids of its Interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodPort {
    pub(crate) link: String,
    /// The logical port, `<namespace>_<name>`; empty if the row has lost it.
    pub(crate) iface_id: String,
    /// Uid of the pod, so that ovn-controller does not bind the port of an earlier pod of the same name.
    pub(crate) iface_id_ver: String,
    pub(crate) sandbox: String,
    pub(crate) mac: String,
    /// Comma separated, with prefix length.
    pub(crate) ips: String,
}

impl PodPort {
    pub(crate) fn new(key: &PodKey, pod: &PodOnNode, network: &PodNetwork, container_id: &str) -> Self {
        let ips: Vec<String> = network.ip_addresses.iter().map(ToString::to_string).collect();
        Self {
            link: host_name(container_id).to_owned(),
            iface_id: key.port_name(),
            iface_id_ver: pod.uid.to_string(),
            sandbox: container_id.to_owned(),
            mac: network.mac_address.to_string(),
            ips: ips.join(","),
        }
    }

    /// `<namespace>/<name>`, for messages.
    pub(crate) fn pod(&self) -> String {
        if self.iface_id.is_empty() {
            return format!("the pod of sandbox {}", self.sandbox);
        }
        self.iface_id.replacen('_', "/", 1)
    }

    /// `None` for interfaces that do not belong to a pod. One that lost its logical port is known by its name: if its pod ends
    /// before it is put right, it must go like any other.
    pub(crate) fn from_row(row: &Row) -> Option<Self> {
        let ids = row.map(interface::EXTERNAL_IDS);
        let text = |key: &str| ids.get(key).unwrap_or_default().to_owned();
        let (link, sandbox) = (row.str(interface::NAME), ids.get("sandbox")?);
        if !ids.contains_key("iface-id") && link != host_name(sandbox) {
            return None;
        }
        Some(Self {
            link: link.to_owned(),
            iface_id: text("iface-id"),
            iface_id_ver: text("iface-id-ver"),
            sandbox: sandbox.to_owned(),
            mac: text("attached_mac"),
            ips: text("ip_addresses"),
        })
    }

    fn external_ids(&self) -> [(&'static str, &str); 5] {
        [
            ("attached_mac", &self.mac),
            ("iface-id", &self.iface_id),
            ("iface-id-ver", &self.iface_id_ver),
            ("ip_addresses", &self.ips),
            ("sandbox", &self.sandbox),
        ]
    }
}

/// A wanted port.
#[derive(Debug, Clone)]
pub(crate) struct PortWant {
    pub(crate) port: PodPort,
    pub(crate) bandwidth: Bandwidth,
}

/// The owner of a port on br-int.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plugged {
    pub(crate) sandbox: String,
    pub(crate) iface_id: String,
    /// ovn-controller binds the port only if this is the uid of the logical port's pod.
    pub(crate) iface_id_ver: String,
}

/// The pods' ports on any bridge.
pub(crate) fn pod_ports(cache: &Cache) -> impl Iterator<Item = PodPort> {
    cache.iter(interface::TABLE).filter_map(|(_, row)| PodPort::from_row(row))
}

/// The pods' ports on br-int that have a logical port, by link.
pub(crate) fn plugged(cache: &Cache) -> HashMap<String, Plugged> {
    let Some((br_int, _)) = vswitch::bridge(cache) else { return HashMap::new() };
    let whose = |row: &Row| {
        let PodPort { sandbox, iface_id, iface_id_ver, .. } = PodPort::from_row(row)?;
        (!iface_id.is_empty()).then_some(Plugged { sandbox, iface_id, iface_id_ver })
    };
    let is_there = |uuid| ports_of(cache, uuid).any(|port| cache.parents(port.uuid).any(|of| of.uuid == br_int));
    let of_pods = cache.iter(interface::TABLE).filter_map(|(uuid, row)| Some((uuid, row, whose(row)?)));
    of_pods
        .filter(|(uuid, ..)| is_there(*uuid))
        .map(|(_, row, port)| (row.str(interface::NAME).to_owned(), port))
        .collect()
}

fn ports_of(cache: &Cache, interface: Uuid) -> impl Iterator<Item = Parent> {
    cache.parents(interface).filter(|parent| parent.table.id == port::TABLE.id)
}

/// The sandbox whose limits a QoS row holds.
fn limited(row: &Row) -> Option<&str> {
    row.map(qos::EXTERNAL_IDS).get("sandbox")
}

/// The sandboxes that have a port or limits, sorted.
pub(crate) fn sandboxes(cache: &Cache) -> Vec<String> {
    let limits = cache.iter(qos::TABLE).filter_map(|(_, row)| limited(row).map(str::to_owned));
    pod_ports(cache).map(|port| port.sandbox).chain(limits).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Puts a port on br-int, and removes those of other sandboxes of the pod.
pub(crate) fn plug(cache: &Cache, txn: &mut Txn, want: &PortWant) -> Result<()> {
    let (br_int, _) = vswitch::bridge(cache).ok_or(Error::NoBridge)?;
    let PortWant { port: want, bandwidth } = want;
    let stale = pod_ports(cache).filter(|have| have.iface_id == want.iface_id && have.sandbox != want.sandbox);
    let stale: Vec<String> = stale.map(|port| port.sandbox).collect();
    remove(cache, txn, &stale.iter().map(String::as_str).collect::<Vec<_>>());
    match vswitch::interface(cache, &want.link) {
        None => {
            add(cache, txn, br_int, want, *bandwidth);
            Ok(())
        }
        Some((uuid, row)) => amend(cache, txn, uuid, row, want, *bandwidth),
    }
}

fn add(cache: &Cache, txn: &mut Txn, br_int: Uuid, want: &PodPort, bandwidth: Bandwidth) {
    let [interface, port] = [interface::TABLE, port::TABLE].map(|table| cache.fresh_uuid(table, &want.sandbox));
    let row = Row::new(interface::TABLE).with(interface::NAME, &want.link);
    txn.insert(interface, policed(row, bandwidth).with(interface::EXTERNAL_IDS, want.external_ids()));
    let row = Row::new(port::TABLE).with(port::NAME, &want.link).with(port::INTERFACES, [interface]);
    let row = row.with(port::OTHER_CONFIG, [TRANSIENT]);
    let limit = limits(cache, txn, want, bandwidth);
    txn.insert(port, if limit.is_some() { row.with(port::QOS, limit) } else { row });
    txn.insert_into(bridge::TABLE, br_int, bridge::PORTS, Datum::one(Atom::Uuid(port)));
}

/// Completes an existing row for the sandbox: the link belongs to the sandbox, so the row is meant for it.
fn amend(cache: &Cache, txn: &mut Txn, uuid: Uuid, have: &Row, want: &PodPort, bandwidth: Bandwidth) -> Result<()> {
    let link = want.link.clone();
    if have.map(interface::EXTERNAL_IDS).get("sandbox").is_some_and(|of| of != want.sandbox) {
        return Err(Error::LinkTaken { name: link });
    }
    if let Some(bridge) = vswitch::bridges(cache, uuid).find(|name| name != BR_INT) {
        return Err(Error::PortElsewhere { link, bridge });
    }
    if PodPort::from_row(have).as_ref() == Some(want) {
        return Ok(());
    }
    txn.set_keys(interface::TABLE, uuid, interface::EXTERNAL_IDS, want.external_ids());
    let row = policed(Row::new(interface::TABLE), bandwidth);
    if !row.is_empty() {
        txn.update(uuid, row);
    }
    let limit = limits(cache, txn, want, bandwidth);
    for port in ports_of(cache, uuid) {
        txn.set_keys(port::TABLE, port.uuid, port::OTHER_CONFIG, [TRANSIENT]);
        if limit.is_some() {
            txn.update(port.uuid, Row::new(port::TABLE).with(port::QOS, limit));
        }
    }
    Ok(())
}

/// Open vSwitch removes the port when it starts with `--delete-transient-ports`, as after a reboot; its link is gone then.
const TRANSIENT: (&str, &str) = ("transient", "true");

/// Limits what the pod sends, which is ingress for OVS; kbit/s.
fn policed(mut row: Row, bandwidth: Bandwidth) -> Row {
    if let Some(rate) = bandwidth.egress {
        row.set(interface::INGRESS_POLICING_RATE, (rate / 1000) as i64);
    }
    row
}

fn limits(cache: &Cache, txn: &mut Txn, want: &PodPort, bandwidth: Bandwidth) -> Option<Uuid> {
    let row = Row::new(qos::TABLE)
        .with(qos::TYPE, "linux-htb")
        .with(qos::OTHER_CONFIG, [("max-rate", bandwidth.ingress?.to_string())])
        .with(qos::EXTERNAL_IDS, [("sandbox", &want.sandbox)]);
    // it outlives a port that another program removed
    let have = cache.iter(qos::TABLE).find(|(_, row)| limited(row) == Some(&want.sandbox)).map(|(uuid, _)| uuid);
    if let Some(uuid) = have {
        txn.update(uuid, row);
        return Some(uuid);
    }
    let uuid = cache.fresh_uuid(qos::TABLE, &want.sandbox);
    txn.insert(uuid, row);
    Some(uuid)
}

/// Removes the sandboxes' ports from their bridges. Port and Interface rows vanish with their last
/// reference; QoS rows do not.
pub(crate) fn remove(cache: &Cache, txn: &mut Txn, sandboxes: &[&str]) {
    let of_port = |row: &Row| PodPort::from_row(row).is_some_and(|port| sandboxes.contains(&port.sandbox.as_str()));
    for (uuid, _) in cache.iter(interface::TABLE).filter(|(_, row)| of_port(row)) {
        for port in ports_of(cache, uuid) {
            for bridge in cache.parents(port.uuid).filter(|parent| parent.table.id == bridge::TABLE.id) {
                txn.remove_from(bridge::TABLE, bridge.uuid, bridge::PORTS, Datum::one(Atom::Uuid(port.uuid)));
            }
        }
    }
    let of_limits = |row: &Row| limited(row).is_some_and(|sandbox| sandboxes.contains(&sandbox));
    for (limit, _) in cache.iter(qos::TABLE).filter(|(_, row)| of_limits(row)) {
        // a reference from a port that the same transaction removes still counts
        for port in cache.parents(limit).filter(|parent| parent.table.id == port::TABLE.id) {
            txn.update(port.uuid, Row::new(port::TABLE).with(port::QOS, None::<Uuid>));
        }
        txn.delete(qos::TABLE, limit);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ovnkube_ovn::vswitch::DATABASE;

    use super::*;

    /// br-int with a port for each link, with what the Interface says of its owner.
    fn cache(links: &[(&str, &[(&str, &str)])]) -> Cache {
        let mut cache = Cache::new(&DATABASE, vswitch::name, |_| true);
        let mut ports = Vec::new();
        for (n, (link, ids)) in (1..).zip(links) {
            let [port, interface] = [n, n + 1000].map(Uuid::from_u128);
            let row = Row::new(interface::TABLE).with(interface::NAME, *link);
            cache.set(interface::TABLE, interface, Some(Arc::new(row.with(interface::EXTERNAL_IDS, ids.to_vec()))));
            let row = Row::new(port::TABLE).with(port::NAME, *link).with(port::INTERFACES, [interface]);
            cache.set(port::TABLE, port, Some(Arc::new(row)));
            ports.push(port);
        }
        let br_int = Row::new(bridge::TABLE).with(bridge::NAME, BR_INT).with(bridge::PORTS, ports);
        cache.set(bridge::TABLE, Uuid::from_u128(9999), Some(Arc::new(br_int)));
        cache
    }

    /// DEL, GC and the look for dead sandboxes have only the row.
    #[test]
    fn a_row_that_lost_its_logical_port_is_removed_with_its_sandbox() {
        let cache = cache(&[
            ("0123456789abcde", &[("sandbox", "0123456789abcdef")]),
            ("fedcba987654321", &[("iface-id", "default_web"), ("sandbox", "fedcba9876543210")]),
            // another program's
            ("eth7", &[("sandbox", "0123456789abcdef")]),
            ("eth8", &[("iface-id", "default_other")]),
        ]);
        assert_eq!(sandboxes(&cache), ["0123456789abcdef", "fedcba9876543210"]);
        assert_eq!(pod_ports(&cache).count(), 2);
        // it is to be put right
        assert_eq!(plugged(&cache).into_keys().collect::<Vec<_>>(), ["fedcba987654321"]);
        for (sandbox, removed) in [("0123456789abcdef", 1), ("0123456789abcde", 0)] {
            let mut txn = Txn::new(&DATABASE);
            remove(&cache, &mut txn, &[sandbox]);
            assert_eq!(txn.lines().len(), removed, "{:?}", txn.lines());
        }
    }
}
