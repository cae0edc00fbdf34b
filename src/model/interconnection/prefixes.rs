//! Which prefixes of other clusters may be used here. A prefix that holds an address of this cluster would take its
//! traffic away, so it is refused before anything is written.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ovnkube_ipam::Subnet;

use super::PeerRoute;
use crate::Name;

/// The most prefixes of one cluster that are used.
const MOST: usize = 1024;

/// Addresses of this cluster, and what they are for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalRange {
    pub range: Subnet,
    pub purpose: &'static str,
}

/// A prefix that is not used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refused {
    pub zone: Name,
    pub prefix: Subnet,
    pub reason: String,
}

/// The prefixes of the other clusters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prefixes {
    /// By prefix: next hops, with the uuid of the row that offers each.
    pub used: BTreeMap<Subnet, BTreeMap<IpAddr, Name>>,
    pub refused: BTreeSet<Refused>,
}

/// Judges what the others offer.
pub fn prefixes(offered: &[PeerRoute], local: &[LocalRange]) -> Prefixes {
    let mut found = Prefixes::default();
    let mut counts: BTreeMap<&Name, BTreeSet<Subnet>> = BTreeMap::new();
    for route in offered {
        let of_zone = counts.entry(&route.zone).or_default();
        let reason = problem(route.prefix, local).or_else(|| {
            let is_more = of_zone.len() >= MOST && !of_zone.contains(&route.prefix);
            is_more.then(|| format!("the cluster offers more than {MOST} prefixes; have it offer larger ones"))
        });
        if let Some(reason) = reason {
            found.refused.insert(Refused { zone: route.zone.clone(), prefix: route.prefix, reason });
            continue;
        }
        of_zone.insert(route.prefix);
        found.used.entry(route.prefix).or_default().insert(route.next_hop, route.id.clone());
    }
    found
}

fn problem(prefix: Subnet, local: &[LocalRange]) -> Option<String> {
    if prefix.prefix() == 0 {
        return Some("it is everything; have the cluster offer the ranges of its pods".into());
    }
    if is_link_local(prefix.base()) {
        return Some("its addresses are link-local".into());
    }
    let taken = local.iter().find(|local| local.range.overlaps(prefix))?;
    Some(format!("this cluster has {} {}; give one of the clusters other addresses", taken.purpose, taken.range))
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}
