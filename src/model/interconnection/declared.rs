//! Routes that people declare: "this prefix is behind that cluster". The master writes them by the addresses that the cluster
//! has in the transit switches, whatever these are at the time.
//!
//! ```text
//! routes: |
//!   az2 10.17.0.0/16
//!   az3 fd00:18::/48
//! ```

use std::collections::BTreeMap;

use ovnkube_ipam::Subnet;

use super::range::{around, nowhere, range};
use super::text::{is_zone, short};
use crate::Name;

/// The most routes of one ConfigMap.
pub(super) const MOST: usize = 256;
/// The most entries that are named as bad.
const NAMED: usize = 5;
/// What an entry looks like.
const WRITE: &str =
    "write the az-name of a cluster and a prefix that is behind it, such as az2 10.17.0.0/16, one on each line";

/// A route that a person declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The cluster that the prefix is behind.
    pub zone: Name,
    /// Whether packets take it.
    pub used: bool,
    /// Why not, and what to do. `None` where it is not used: no gateway has the cluster's ports.
    pub problem: Option<String>,
    /// What the agents of nodes say of it, although it is declared: `contains 172.18.0.2, the address of a node of this cluster`.
    pub doubt: Option<String>,
}

/// Reads the text of the key. An entry that cannot be used is left out, with the reason and what to do.
pub(super) fn read(text: &str, own: Option<&str>) -> (BTreeMap<Subnet, Name>, Vec<String>) {
    let mut routes: BTreeMap<Subnet, Name> = BTreeMap::new();
    let mut bad = Vec::new();
    for text in text.split([',', '\n']).map(str::trim).filter(|text| !text.is_empty()) {
        match entry(text, own) {
            Err(problem) => bad.push(problem),
            Ok((zone, prefix)) => match routes.get(&prefix) {
                Some(other) if *other != zone => {
                    bad.push(format!("has {prefix} for {other} and for {zone}; remove one of the two"));
                }
                None if routes.len() == MOST => {
                    bad.push(format!(
                        "has more than {MOST} routes, and the others are not used; write larger prefixes"
                    ));
                    break;
                }
                _ => drop(routes.insert(prefix, zone)),
            },
        }
    }
    let more = bad.len().saturating_sub(NAMED);
    bad.truncate(NAMED);
    if more > 0 {
        bad.push(format!("has {more} more entries that cannot be used; {WRITE}"));
    }
    (routes, bad)
}

fn entry(text: &str, own: Option<&str>) -> Result<(Name, Subnet), String> {
    let words: Vec<&str> = text.split_whitespace().take(3).collect();
    let parsed = match words[..] {
        [zone, prefix] if is_zone(zone) => range(prefix).map(|prefix| (zone, prefix)),
        _ => None,
    };
    let text = short(text);
    let (zone, prefix) = parsed.ok_or_else(|| format!("has {text:?}; {WRITE}"))?;
    if own == Some(zone) {
        return Err(format!("has {text:?}, and {zone} is this cluster; write the az-name of another one"));
    }
    match nowhere(prefix) {
        Some(why) => Err(format!("has {text:?}: {why}; write the addresses of that cluster's pods")),
        None => Ok((zone.into(), prefix)),
    }
}

/// The cluster that people say a prefix is behind: of the declared ones that contain it, the longest says so.
pub(super) fn behind(routes: &BTreeMap<Subnet, Name>, prefix: Subnet) -> Option<(&Subnet, &Name)> {
    if routes.is_empty() {
        return None;
    }
    around(prefix).rev().find_map(|range| routes.get_key_value(&range))
}
