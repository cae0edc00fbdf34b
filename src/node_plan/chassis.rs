//! Rows of the local OVS besides those of pods: the settings that ovn-controller reads, br-int, and
//! the management port on it. Only differences are written.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ovnkube_model::Mac;
use ovnkube_ovn::vswitch::{bridge, interface, open_vswitch, port, ssl};
use ovnkube_ovn::{Atom, Datum, Row, Uuid, derived_uuid, owner, vswitch};
use ovnkube_ovsdb_data::{Cache, Txn};

use crate::management_port;
use crate::vswitch::{self as rows, BR_INT};

/// external_ids that exist only if they are configured.
const OPTIONAL: [&str; 2] = ["ovn-limit-lflow-cache", "ovn-memlimit-lflow-cache-kb"];

/// Comma-separated words for the CMS, the program that manages OVN.
const CMS_OPTIONS: &str = "ovn-cms-options";
/// Whether ovn-controller waits for a northd of its own release.
const MATCH: &str = "ovn-match-northd-version";
/// external_ids that are always written, besides `hostname`.
const WRITTEN: [&str; 11] = [
    "ovn-enable-lflow-cache",
    "ovn-encap-ip",
    "ovn-encap-type",
    "ovn-is-interconn",
    MATCH,
    "ovn-monitor-all",
    "ovn-ofctrl-wait-before-clear",
    "ovn-openflow-probe-interval",
    "ovn-remote",
    "ovn-remote-probe-interval",
    "ovn-set-local-ip",
];
/// Seconds; the default of 10 would break up ovn-controller's large flow bundles on a busy node.
const BUNDLE_TIMEOUT: (&str, &str) = ("bundle-idle-timeout", "180");

const MAPPINGS: &str = "ovn-bridge-mappings";
/// The name of the outside network in OVN.
const OUTSIDE: &str = "physnet";

/// What ovn-controller reads from the local Open_vSwitch row.
#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a setting of ovn-controller's own")]
pub struct ChassisSettings {
    /// The SB databases, comma separated.
    pub sb_remote: String,
    /// Set for `ssl:` remotes.
    pub sb_tls: Option<Tls>,
    /// `geneve`.
    pub encap_type: String,
    /// Empty: the node's InternalIP.
    pub encap_ips: Vec<IpAddr>,
    /// Milliseconds.
    pub remote_probe_interval: u32,
    /// Seconds.
    pub openflow_probe_interval: u32,
    pub monitor_all: bool,
    /// Milliseconds.
    pub ofctrl_wait_before_clear: u32,
    pub lflow_cache: bool,
    /// Entries; `None`: ovn-controller's default.
    pub lflow_cache_limit: Option<u32>,
    /// KiB; `None`: ovn-controller's default.
    pub lflow_cache_limit_kb: Option<u32>,
    pub set_local_ip: bool,
}

/// Files for ovn-controller's TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    pub private_key: String,
    pub certificate: String,
    pub ca_certificate: String,
}

/// The wanted rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chassis {
    pub external_ids: BTreeMap<&'static str, String>,
    pub tls: Option<Tls>,
    /// Written when OVS has no system-id; `None`: not known yet.
    pub system_id: Option<String>,
    pub mgmt: Option<MgmtPort>,
    /// The bridge to map to network [`OUTSIDE`].
    pub gateway_bridge: Option<String>,
}

/// The management port's interface row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MgmtPort {
    pub iface_id: String,
    pub mac: Mac,
    pub mtu: u32,
}

/// The external_ids of the Open_vSwitch row. `encap_ips` may be empty while the node's address is not known.
/// `carries`: whether the node carries traffic to other clusters; `None`: not known. `waits`: as [`crate::releases::Releases::waits`] says.
pub fn external_ids(
    node: &str,
    settings: &ChassisSettings,
    encap_ips: &[String],
    carries: Option<bool>,
    waits: Option<bool>,
) -> BTreeMap<&'static str, String> {
    let flag = |on: bool| on.to_string();
    let mut ids = BTreeMap::from([
        ("hostname", node.to_owned()),
        ("ovn-enable-lflow-cache", flag(settings.lflow_cache)),
        ("ovn-encap-type", settings.encap_type.clone()),
        ("ovn-monitor-all", flag(settings.monitor_all)),
        ("ovn-ofctrl-wait-before-clear", settings.ofctrl_wait_before_clear.to_string()),
        ("ovn-openflow-probe-interval", settings.openflow_probe_interval.to_string()),
        ("ovn-remote", settings.sb_remote.clone()),
        ("ovn-remote-probe-interval", settings.remote_probe_interval.to_string()),
        ("ovn-set-local-ip", flag(settings.set_local_ip)),
    ]);
    ids.extend(carries.map(|carries| ("ovn-is-interconn", flag(carries))));
    ids.extend(waits.map(|waits| (MATCH, flag(waits))));
    if !encap_ips.is_empty() {
        ids.insert("ovn-encap-ip", encap_ips.join(","));
    }
    if let Some(limit) = settings.lflow_cache_limit {
        ids.insert("ovn-limit-lflow-cache", limit.to_string());
    }
    if let Some(limit) = settings.lflow_cache_limit_kb {
        ids.insert("ovn-memlimit-lflow-cache-kb", limit.to_string());
    }
    ids
}

impl Chassis {
    /// Empty when OVS is as wanted; `None` when its database is empty.
    pub fn plan(&self, cache: &Cache) -> Option<Txn> {
        let mut txn = Txn::new(&vswitch::DATABASE);
        let (root, have) = cache.iter(open_vswitch::TABLE).next()?;
        self.plan_root(&mut txn, root, have);
        self.plan_tls(&mut txn, cache, root, have);
        let br_int = plan_bridge(&mut txn, cache, root, have);
        if let Some(mgmt) = &self.mgmt {
            mgmt.plan(&mut txn, cache, br_int);
        }
        Some(txn)
    }

    fn plan_root(&self, txn: &mut Txn, root: Uuid, have: &Row) {
        let ids = have.map(open_vswitch::EXTERNAL_IDS);
        let mut set: Vec<(&str, &str)> = self.external_ids.iter().map(|(key, value)| (*key, value.as_str())).collect();
        if ids.get("system-id").is_none_or(str::is_empty) {
            set.extend(self.system_id.iter().map(|id| ("system-id", id.as_str())));
        }
        let mappings = self.gateway_bridge.as_ref().map(|bridge| map_outside(ids.get(MAPPINGS), bridge));
        let options = mark_node(ids.get(CMS_OPTIONS));
        set.push((CMS_OPTIONS, &options));
        set.extend(mappings.as_ref().map(|mappings| (MAPPINGS, mappings.as_str())));
        set.retain(|(key, value)| ids.get(key) != Some(value));
        if !set.is_empty() {
            txn.set_keys(open_vswitch::TABLE, root, open_vswitch::EXTERNAL_IDS, set);
        }
        let unwanted = |key: &&str| ids.contains_key(key) && !self.external_ids.contains_key(key);
        let gone: Vec<&str> = OPTIONAL.into_iter().filter(unwanted).collect();
        if !gone.is_empty() {
            txn.remove_keys(open_vswitch::TABLE, root, open_vswitch::EXTERNAL_IDS, gone);
        }
        if have.map(open_vswitch::OTHER_CONFIG).get(BUNDLE_TIMEOUT.0) != Some(BUNDLE_TIMEOUT.1) {
            txn.set_keys(open_vswitch::TABLE, root, open_vswitch::OTHER_CONFIG, [BUNDLE_TIMEOUT]);
        }
    }

    fn plan_tls(&self, txn: &mut Txn, cache: &Cache, root: Uuid, have: &Row) {
        let Some(tls) = &self.tls else { return };
        let want = Row::new(ssl::TABLE)
            .with(ssl::PRIVATE_KEY, &tls.private_key)
            .with(ssl::CERTIFICATE, &tls.certificate)
            .with(ssl::CA_CERT, &tls.ca_certificate);
        let present = have.uuid(open_vswitch::SSL).and_then(|uuid| Some((uuid, cache.get(ssl::TABLE, uuid)?)));
        if let Some((uuid, row)) = present {
            update(txn, uuid, &want, row);
        } else {
            let uuid = derived_uuid("SSL", "ovn-controller");
            txn.insert(uuid, want);
            txn.update(root, Row::new(open_vswitch::TABLE).with(open_vswitch::SSL, Some(uuid)));
        }
    }
}

/// Maps the outside to `bridge`; other mappings stay.
fn map_outside(have: Option<&str>, bridge: &str) -> String {
    let ours = format!("{OUTSIDE}:{bridge}");
    others(have).chain([ours.as_str()]).collect::<Vec<_>>().join(",")
}

fn others(mappings: Option<&str>) -> impl Iterator<Item = &str> {
    words(mappings).filter(|one| one.split(':').next() != Some(OUTSIDE))
}

fn words(list: Option<&str>) -> impl Iterator<Item = &str> {
    list.unwrap_or_default().split(',').map(str::trim).filter(|one| !one.is_empty())
}

/// Bridges that are mapped to the outside.
pub fn mapped(cache: &Cache) -> Vec<String> {
    let roots = cache.iter(open_vswitch::TABLE);
    let mappings = roots.flat_map(|(_, row)| words(row.map(open_vswitch::EXTERNAL_IDS).get(MAPPINGS)));
    let bridges = mappings.filter_map(|one| one.split_once(':')).filter(|(network, _)| *network == OUTSIDE);
    bridges.map(|(_, bridge)| bridge.to_owned()).collect()
}

/// Removes a bridge from the mappings; other mappings stay.
pub fn unmap(cache: &Cache, bridge: &str) -> Txn {
    let mut txn = Txn::new(&vswitch::DATABASE);
    let ours = format!("{OUTSIDE}:{bridge}");
    for (root, row) in cache.iter(open_vswitch::TABLE) {
        let have = row.map(open_vswitch::EXTERNAL_IDS).get(MAPPINGS);
        let kept: Vec<&str> = words(have).filter(|one| *one != ours).collect();
        if words(have).count() == kept.len() {
            continue;
        }
        if kept.is_empty() {
            txn.remove_keys(open_vswitch::TABLE, root, open_vswitch::EXTERNAL_IDS, vec![MAPPINGS]);
        } else {
            txn.set_keys(open_vswitch::TABLE, root, open_vswitch::EXTERNAL_IDS, [(MAPPINGS, kept.join(",").as_str())]);
        }
    }
    txn
}

/// Removes what [`Chassis`] wrote from the Open_vSwitch row. The system-id stays: it belongs to the host.
pub fn forget(txn: &mut Txn, root: Uuid, have: &Row, node: &str) {
    let ids = have.map(open_vswitch::EXTERNAL_IDS);
    let mut gone: Vec<&str> = WRITTEN.iter().chain(&OPTIONAL).copied().filter(|key| ids.contains_key(key)).collect();
    // Open vSwitch's own scripts write the host's name there too
    if ids.get("hostname") == Some(node) {
        gone.push("hostname");
    }
    let options = words(ids.get(CMS_OPTIONS)).filter(|one| *one != owner::NODE_CHASSIS);
    let lists = [(MAPPINGS, others(ids.get(MAPPINGS)).collect::<Vec<_>>()), (CMS_OPTIONS, options.collect())];
    for (key, kept) in lists {
        let kept = kept.join(",");
        match ids.get(key) {
            None => {}
            Some(_) if kept.is_empty() => gone.push(key),
            Some(have) if have == kept => {}
            Some(_) => {
                txn.set_keys(open_vswitch::TABLE, root, open_vswitch::EXTERNAL_IDS, [(key, kept.as_str())]);
            }
        }
    }
    if !gone.is_empty() {
        txn.remove_keys(open_vswitch::TABLE, root, open_vswitch::EXTERNAL_IDS, gone);
    }
    // ovn-controller writes the last two
    let is_written = |(key, value): &(&str, &str)| {
        (*key, *value) == BUNDLE_TIMEOUT || (*key, *value) == ("vlan-limit", "0") || key.starts_with("ovn-chassis-idx-")
    };
    let config: Vec<&str> =
        have.map(open_vswitch::OTHER_CONFIG).iter().filter(is_written).map(|(key, _)| key).collect();
    if !config.is_empty() {
        txn.remove_keys(open_vswitch::TABLE, root, open_vswitch::OTHER_CONFIG, config);
    }
    let tls = derived_uuid("SSL", "ovn-controller");
    if have.uuid(open_vswitch::SSL) == Some(tls) {
        txn.update(root, Row::new(open_vswitch::TABLE).with(open_vswitch::SSL, None::<Uuid>));
    }
}

/// Marks this chassis as a node; other words stay.
fn mark_node(have: Option<&str>) -> String {
    words(have).filter(|one| *one != owner::NODE_CHASSIS).chain([owner::NODE_CHASSIS]).collect::<Vec<_>>().join(",")
}

/// Plans br-int as ovn-controller would create it.
fn plan_bridge(txn: &mut Txn, cache: &Cache, root: Uuid, have: &Row) -> Uuid {
    let mut want = Row::new(bridge::TABLE).with(bridge::FAIL_MODE, Some("secure"));
    if let Some(datapath) = have.map(open_vswitch::EXTERNAL_IDS).get("ovn-bridge-datapath-type") {
        want.set(bridge::DATAPATH_TYPE, datapath);
    }
    if let Some((uuid, row)) = rows::bridge(cache) {
        update(txn, uuid, &want, row);
        if row.map(bridge::OTHER_CONFIG).get("disable-in-band") != Some("true") {
            txn.set_keys(bridge::TABLE, uuid, bridge::OTHER_CONFIG, [("disable-in-band", "true")]);
        }
        return uuid;
    }
    let id = |table| cache.fresh_uuid(table, BR_INT);
    let (interface, port, bridge) = (id(interface::TABLE), id(port::TABLE), id(bridge::TABLE));
    let local = Row::new(interface::TABLE).with(interface::NAME, BR_INT).with(interface::TYPE, "internal");
    txn.insert(interface, local);
    txn.insert(port, Row::new(port::TABLE).with(port::NAME, BR_INT).with(port::INTERFACES, [interface]));
    want.set(bridge::NAME, BR_INT);
    want.set(bridge::PORTS, [port]);
    want.set(bridge::OTHER_CONFIG, [("disable-in-band", "true")]);
    txn.insert(bridge, want);
    txn.insert_into(open_vswitch::TABLE, root, open_vswitch::BRIDGES, Datum::one(Atom::Uuid(bridge)));
    bridge
}

impl MgmtPort {
    fn plan(&self, txn: &mut Txn, cache: &Cache, br_int: Uuid) {
        // the tap gets MAC and MTU from ovs-vswitchd, also after its restart
        let mut want = Row::new(interface::TABLE)
            .with(interface::TYPE, "internal")
            .with(interface::MAC, Some(self.mac.to_string()))
            .with(interface::MTU_REQUEST, Some(i64::from(self.mtu)));
        let ids = [("iface-id", self.iface_id.as_str())];
        if let Some((uuid, row)) = rows::interface(cache, management_port::LINK) {
            update(txn, uuid, &want, row);
            if row.map(interface::EXTERNAL_IDS).get("iface-id") != Some(&self.iface_id) {
                txn.set_keys(interface::TABLE, uuid, interface::EXTERNAL_IDS, ids);
            }
            return;
        }
        let [interface, port] =
            [interface::TABLE, port::TABLE].map(|table| cache.fresh_uuid(table, management_port::LINK));
        want.set(interface::NAME, management_port::LINK);
        want.set(interface::EXTERNAL_IDS, ids);
        txn.insert(interface, want);
        txn.insert(
            port,
            Row::new(port::TABLE).with(port::NAME, management_port::LINK).with(port::INTERFACES, [interface]),
        );
        txn.insert_into(bridge::TABLE, br_int, bridge::PORTS, Datum::one(Atom::Uuid(port)));
    }
}

/// Updates the columns of `want` that differ from `have`.
fn update(txn: &mut Txn, uuid: Uuid, want: &Row, have: &Row) {
    let mut row = Row::new(want.table());
    for (column, datum) in want.differing(have) {
        row.put(column, datum.clone());
    }
    if !row.is_empty() {
        txn.update(uuid, row);
    }
}

#[cfg(test)]
mod tests {
    use super::{ChassisSettings, external_ids};

    /// While the Node is not known, a gateway keeps its tunnels.
    #[test]
    fn only_gateways_make_tunnels_to_other_clusters() {
        let written = |carries| {
            let ids = external_ids("n1", &ChassisSettings::default(), &[], carries, None);
            ids.get("ovn-is-interconn").cloned()
        };
        let said = [Some(true), Some(false), None].map(written);
        assert_eq!(said, [Some("true".to_owned()), Some("false".to_owned()), None]);
    }
}
