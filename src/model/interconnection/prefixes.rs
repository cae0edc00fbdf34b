//! Which prefixes of other clusters may be used here. A prefix that holds an address of this cluster would take its
//! traffic away, so it is refused before anything is written.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_ipam::Subnet;

use super::PeerRoute;
use crate::Name;

/// The most prefixes of one cluster that are used, and that this cluster offers.
pub const MOST_PREFIXES: usize = 1024;

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
    /// By cluster.
    pub counts: BTreeMap<Name, RouteCounts>,
}

/// How many routes a cluster offers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RouteCounts {
    pub used: usize,
    pub refused: usize,
}

/// Judges what the others offer. `closed`: ranges that are not used, each with the Subnet that says so. Of a prefix that
/// contains one, the rest is used.
pub fn prefixes<'a>(
    offered: impl IntoIterator<Item = &'a PeerRoute>,
    local: &[LocalRange],
    closed: &BTreeMap<Subnet, Name>,
) -> Prefixes {
    let mut cut: BTreeMap<Subnet, Option<Vec<Subnet>>> = BTreeMap::new();
    let mut found = Prefixes::default();
    let mut counts: BTreeMap<&Name, BTreeSet<Subnet>> = BTreeMap::new();
    for route in offered {
        let count = found.counts.entry(route.zone.clone()).or_default();
        let of_zone = counts.entry(&route.zone).or_default();
        let pieces = if let Some(reason) = problem(route.prefix, local, closed) {
            Err(reason)
        } else {
            let cut = cut.entry(route.prefix).or_insert_with(|| pieces(route.prefix, closed));
            few(cut.as_ref(), of_zone)
        };
        match pieces {
            Ok(pieces) => {
                count.used += 1;
                for piece in pieces {
                    of_zone.insert(*piece);
                    found.used.entry(*piece).or_default().insert(route.next_hop, route.id.clone());
                }
            }
            Err(reason) => {
                count.refused += 1;
                found.refused.insert(Refused { zone: route.zone.clone(), prefix: route.prefix, reason });
            }
        }
    }
    found
}

/// What is not closed of a prefix; `None`: too many pieces.
fn pieces(prefix: Subnet, closed: &BTreeMap<Subnet, Name>) -> Option<Vec<Subnet>> {
    let within = closed.range(prefix..).map(|(range, _)| *range).take_while(|range| prefix.contains(range.base()));
    let within: Vec<Subnet> = within.collect();
    prefix.pieces_without(&within, MOST_PREFIXES).map(|_| prefix.without(&within))
}

/// The pieces, if their cluster has not used up its number.
fn few<'p>(pieces: Option<&'p Vec<Subnet>>, used: &BTreeSet<Subnet>) -> Result<&'p [Subnet], String> {
    let room = MOST_PREFIXES.saturating_sub(used.len());
    let fits = |pieces: &&Vec<Subnet>| pieces.iter().filter(|piece| !used.contains(*piece)).count() <= room;
    let too_many = || format!("the cluster offers more than {MOST_PREFIXES} prefixes; have it offer larger ones");
    pieces.filter(fits).map(Vec::as_slice).ok_or_else(too_many)
}

fn problem(prefix: Subnet, local: &[LocalRange], closed: &BTreeMap<Subnet, Name>) -> Option<String> {
    if prefix.prefix() == 0 {
        return Some("it is everything; have the cluster offer the ranges of its pods".into());
    }
    if is_link_local(prefix.base()) {
        return Some("its addresses are link-local".into());
    }
    if let Some(taken) = local.iter().find(|local| local.range.overlaps(prefix)) {
        return Some(format!(
            "this cluster has {} {}; give one of the clusters other addresses",
            taken.purpose, taken.range
        ));
    }
    let around = |length| IpNetwork::new(prefix.base(), length).ok().map(Subnet::of);
    let mut around = (0..=prefix.prefix()).filter_map(around);
    let (range, subnet) = around.find_map(|range| closed.get_key_value(&range))?;
    Some(format!("Subnet {subnet} of this cluster closes {range} with disableInterConnection"))
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}
