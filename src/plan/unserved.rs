//! Rows that ovn-kubernetes wrote for objects of its features that are not planned here, such as EgressIP.
//!
//! Only rows that stand for an object of a user count, and only by marks that no other program sets. So these do not:
//! what ovn-kubernetes writes at its start for a feature that is enabled and not used (the policies
//! `EIP-No-Reroute-…`, the address sets `node-ips` and `egresssvc-served-pods`, the ACLs `UDNIsolation`); rows without
//! marks; rows that a person added.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ovnkube_ovn::nb::{address_set, logical_router};
use ovnkube_ovn::{Row, owner};

use crate::names;
use crate::rows::identity;
use crate::whose::{is_no_overlay_set, is_planned};

/// The column that says which network of ovn-kubernetes a row is of.
const NETWORK: &str = "k8s.ovn.org/network";
/// The name of the cluster's own network there.
const DEFAULT: &str = "default";
/// The virtual machine that a route leads to.
const MACHINE: &str = "k8s.ovn.org/vm";
/// How many rows and objects of a feature are named.
const NAMED: usize = 3;
/// Longest names that are repeated, in characters: all of it must fit into an Event.
const LONGEST_ROW: usize = 120;
const LONGEST_OBJECT: usize = 80;

/// The feature that a row belongs to, and the object, if it is one of these rows.
pub fn unserved(row: &Row) -> Option<(&'static str, String)> {
    let (feature, object) = by_owner(row).or_else(|| by_other_marks(row))?;
    Some((feature, shown(object, LONGEST_OBJECT)))
}

/// Whether a master has swept the database before: this gateway router has its mark.
pub fn is_taken_over(row: &Row) -> bool {
    row.table().name == "Logical_Router"
        && names::GATEWAY_ROUTER.node(row.str(logical_router::NAME)).is_some()
        && is_planned(row)
}

/// By the owner ids that ovn-kubernetes has set since 2024.
fn by_owner(row: &Row) -> Option<(&'static str, &str)> {
    let ids = row.external_ids();
    let table = row.table().name;
    if is_planned(row) || !ids.contains_key(owner::OWNER_CONTROLLER) {
        return None;
    }
    let name = ids.get(owner::NAME).unwrap_or_default();
    match (ids.get(owner::OWNER_TYPE)?, table) {
        // EGRESSIP_NAMESPACE/POD; the policies that come with the feature have other names
        ("EgressIP", "Logical_Router_Policy" | "NAT") => {
            let (object, pod) = name.split_once('_')?;
            pod.contains('/').then_some(("EgressIP", object))
        }
        ("EgressFirewall", "ACL") => Some(("EgressFirewall", name)),
        ("EgressQoS", "QoS") => Some(("EgressQoS", name)),
        ("NetworkQoS", "QoS") => Some(("NetworkQoS", name)),
        ("AdminNetworkPolicy", _) => Some(("AdminNetworkPolicy", name)),
        ("BaselineAdminNetworkPolicy", _) => Some(("BaselineAdminNetworkPolicy", name)),
        ("ClusterNetworkConnect", _) => Some(("ClusterNetworkConnect", name)),
        // it is empty when no pod of the node has a gateway of its own any more
        ("HybridNodeRoute", "Address_Set") => {
            row.strs(address_set::ADDRESSES).next().map(|_| ("AdminPolicyBasedExternalRoute", name))
        }
        // the one for all networks has no number
        ("AdvertisedNetwork", "ACL") => {
            ids.get("network").filter(|id| !id.is_empty()).map(|_| ("RouteAdvertisements", name))
        }
        ("VirtualMachine", "DHCP_Options") => Some(("live migration of virtual machines", name)),
        ("Cluster", _) if is_no_overlay_set(row) => Some(("transport no-overlay", name)),
        _ => None,
    }
}

/// By the marks of rows that have no owner type.
fn by_other_marks(row: &Row) -> Option<(&'static str, &str)> {
    let ids = row.external_ids();
    let network = || ids.get(NETWORK).filter(|network| !matches!(*network, "" | DEFAULT));
    match row.table().name {
        "Logical_Switch" | "Logical_Router" => {
            network().map(|network| ("UserDefinedNetwork or NetworkAttachmentDefinition", network))
        }
        "Logical_Router_Policy" | "Logical_Router_Static_Route" => {
            let named = ids.get("name").and_then(|name| name.strip_prefix("hybrid-subnet-"));
            let service = ids.get("EgressSVC").map(|service| ("EgressService", service));
            let machine = || ids.get(MACHINE).map(|machine| ("live migration of virtual machines", machine));
            let overlay = || named.map(|node| ("hybrid overlay", node));
            let zone = || ids.get("ic-node").map(|node| ("interconnect", node));
            let imported = || ids.get(owner::OWNER_CONTROLLER).filter(|by| *by == "RouteImport");
            let route = || imported().map(|by| ("RouteAdvertisements", by));
            service.or_else(machine).or_else(overlay).or_else(zone).or_else(route)
        }
        _ => None,
    }
}

/// What a database holds of a feature.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Holding {
    rows: usize,
    /// The first ones.
    names: BTreeSet<String>,
    objects: BTreeSet<String>,
}

/// What a database holds of features that are not planned here. Its size does not depend on that of the database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unserved(BTreeMap<&'static str, Holding>);

impl Unserved {
    /// Collects what these rows say; others are left out.
    pub fn of<'a>(rows: impl Iterator<Item = &'a Row>) -> Self {
        let mut found = Self::default();
        for row in rows {
            if let Some((feature, object)) = unserved(row) {
                found.add(feature, object, name(row));
            }
        }
        found
    }

    fn add(&mut self, feature: &'static str, object: String, row: String) {
        let holding = self.0.entry(feature).or_default();
        holding.rows += 1;
        for (set, new) in [(&mut holding.names, row), (&mut holding.objects, object)] {
            set.insert(new);
            if set.len() > NAMED {
                set.pop_last();
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each feature, and what there is of it: `2 rows of eip-a: NAT …, Logical_Router_Policy …`.
    pub fn features(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.0.iter().map(|(feature, holding)| (*feature, holding.to_string()))
    }
}

/// One line: every feature and its rows.
impl fmt::Display for Unserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (feature, holding)) in self.0.iter().enumerate() {
            write!(f, "{}{feature}, {holding}", if n == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Holding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |set: &BTreeSet<String>| set.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = self.rows.saturating_sub(self.names.len());
        let plural = if self.rows == 1 { "row" } else { "rows" };
        write!(f, "{} {plural} of {}: {}", self.rows, join(&self.objects), join(&self.names))?;
        if more > 0 { write!(f, " and {more} more") } else { Ok(()) }
    }
}

/// `TABLE OWNER-ID`, or what else identifies the row.
fn name(row: &Row) -> String {
    let id = row.external_ids().get(owner::ID).map(str::to_owned);
    let name = id.or_else(|| identity(row).map(|name| name.to_string())).unwrap_or_default();
    format!("{} {}", row.table().name, shown(name.trim(), LONGEST_ROW))
}

/// The begin of a text, on one line.
fn shown(text: &str, longest: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(longest).collect()
}
