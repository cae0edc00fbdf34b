//! Which prefixes of other clusters may be used here. A prefix that holds an address of this cluster would take its
//! traffic away, so it is refused before anything is written. Of two clusters that offer the same addresses, all others use
//! the one that joined earlier.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use ovnkube_ipam::Subnet;

use super::declared::{Declared, behind};
use super::peers::{PeerPort, PeerRoute, Peers};
use super::range::{around, nowhere};
use crate::Name;

/// The most prefixes of one cluster that are used, and that this cluster offers.
pub const MOST_PREFIXES: usize = 1024;

/// Addresses of this cluster, and what they are for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalRange {
    pub range: Subnet,
    pub purpose: &'static str,
}

impl fmt::Display for LocalRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, which this cluster uses for {}", self.range, self.purpose)
    }
}

/// What no prefix of another cluster may contain or lie in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Local {
    pub ranges: Vec<LocalRange>,
    /// Addresses of nodes, as Kubernetes knows them.
    pub nodes: BTreeSet<IpAddr>,
    /// Addresses of nodes, as their agents say: any address, if such an agent lies.
    pub hosts: BTreeSet<IpAddr>,
    /// Networks that nodes are on, as their agents say.
    pub networks: BTreeSet<Subnet>,
}

impl Local {
    /// What a prefix has of it: `overlaps 10.128.0.0/14, which this cluster uses for pods`.
    pub fn find(&self, prefix: Subnet) -> Option<String> {
        self.find_sure(prefix).or_else(|| self.find_said(prefix))
    }

    /// Without what only agents say.
    pub(super) fn find_sure(&self, prefix: Subnet) -> Option<String> {
        let range = self.ranges.iter().find(|local| local.range.overlaps(prefix));
        range.map(|range| format!("overlaps {range}")).or_else(|| contained(&self.nodes, prefix))
    }

    /// Of what only agents say.
    pub(super) fn find_said(&self, prefix: Subnet) -> Option<String> {
        // a network that lies in the prefix has an address of a node there
        let network = || {
            let mut ranges = (!self.networks.is_empty()).then(|| around(prefix))?;
            ranges.find(|range| self.networks.contains(range))
        };
        let lies = |range| format!("lies in {range}, a network that nodes of this cluster are on");
        contained(&self.hosts, prefix).or_else(|| network().map(lies))
    }

    pub fn is_of_node(&self, ip: IpAddr) -> bool {
        self.nodes.contains(&ip) || self.hosts.contains(&ip)
    }
}

/// An address of a node in a prefix.
fn contained(nodes: &BTreeSet<IpAddr>, prefix: Subnet) -> Option<String> {
    let ip = nodes.range(prefix.base()..).next().filter(|ip| prefix.contains(**ip))?;
    Some(format!("contains {ip}, the address of a node of this cluster"))
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
    /// By prefix: next hops, with the uuid of the row that offers each; `None`: people declared it.
    pub used: BTreeMap<Subnet, BTreeMap<IpAddr, Option<Name>>>,
    pub declared: BTreeMap<Subnet, Declared>,
    pub refused: BTreeSet<Refused>,
    /// Those that people here close: nothing is wrong with them.
    pub closed: BTreeSet<Refused>,
    /// By cluster.
    pub counts: BTreeMap<Name, RouteCounts>,
}

/// How many routes a cluster offers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RouteCounts {
    pub used: usize,
    pub refused: usize,
}

/// What prefixes are judged by.
pub struct Judge<'a> {
    pub peers: &'a Peers,
    /// Transit switches that are not used.
    pub unused: BTreeSet<&'a Name>,
    pub local: Local,
    /// Ranges that are not used, each with the Subnet that says so. Of a prefix that contains one, the rest is used.
    pub closed: BTreeMap<Subnet, Name>,
    /// Prefixes that people say are behind a cluster. It is theirs, whatever others offer.
    pub declared: &'a BTreeMap<Subnet, Name>,
}

impl Judge<'_> {
    /// What of this cluster has addresses of a prefix.
    fn taken(&self, prefix: Subnet) -> Option<String> {
        self.local.find(prefix).map(|what| taken(&what))
    }

    /// Who closes a prefix here.
    pub(super) fn closed(&self, prefix: Subnet) -> Option<String> {
        if self.closed.is_empty() {
            return None;
        }
        let (range, subnet) = around(prefix).find_map(|range| self.closed.get_key_value(&range))?;
        Some(format!("Subnet {subnet} of this cluster closes {range} with disableInterConnection"))
    }

    /// What is not closed of a prefix; `None`: too many pieces.
    pub(super) fn pieces(&self, prefix: Subnet) -> Option<Vec<Subnet>> {
        let within = self.closed.range(prefix..).map(|(range, _)| *range);
        let within: Vec<Subnet> = within.take_while(|range| prefix.contains(range.base())).collect();
        prefix.without(&within, MOST_PREFIXES)
    }

    /// Where a cluster can be reached.
    pub(super) fn ports(&self, zone: &Name) -> impl Iterator<Item = &PeerPort> {
        self.peers.ports.iter().filter(move |port| port.zone == *zone && !self.unused.contains(&port.switch))
    }

    /// Which other cluster people say it is behind.
    fn elsewhere(&self, prefix: Subnet, zone: &Name) -> Option<(&Subnet, &Name)> {
        behind(self.declared, prefix).filter(|(_, of)| !is_same(self.peers, of, zone))
    }

    /// Why no prefix of any cluster may be this one.
    fn unfit(&self, prefix: Subnet) -> Option<String> {
        let nowhere = nowhere(prefix).map(|why| format!("{why}; have the cluster offer the ranges of its pods"));
        nowhere.or_else(|| self.taken(prefix))
    }

    /// Why it is not this cluster's, as people say.
    fn misplaced(&self, prefix: Subnet, zone: &Name) -> Option<String> {
        let (range, of) = self.elsewhere(prefix, zone)?;
        Some(format!(
            "key routes of this cluster says that {range} is behind {of}; correct it, or have {zone} offer less"
        ))
    }
}

/// What to do about addresses that this cluster has too.
pub(super) fn taken(what: &str) -> String {
    format!("it {what}; give one of the clusters other addresses")
}

/// Judges what the others offer.
pub(super) fn learned(judge: &Judge<'_>) -> Prefixes {
    let mut cut: BTreeMap<Subnet, Option<Vec<Subnet>>> = BTreeMap::new();
    let mut found = Prefixes::default();
    let mut counts: BTreeMap<&Name, BTreeSet<Subnet>> = BTreeMap::new();
    let mut taken = Taken::default();
    let is_one = |(one, _): &(&PeerRoute, bool), (other, _): &(&PeerRoute, bool)| {
        one.zone == other.zone && one.prefix == other.prefix
    };
    // the same prefix of the same cluster by several switches is judged once
    for routes in in_order(judge.peers).chunk_by(is_one) {
        let Some(&(&PeerRoute { prefix, ref zone, .. }, _)) = routes.first() else { continue };
        let unfit = judge.unfit(prefix);
        let closed = if unfit.is_none() { judge.closed(prefix) } else { None };
        let refused = unfit.or_else(|| judge.misplaced(prefix, zone));
        // what is not for use here keeps nobody else's addresses away, such as a much too large prefix. But a route that only cannot be
        // used now does: else a gateway that is down for a moment would move its addresses to another cluster
        let is_fit = closed.is_none() && refused.is_none();
        let anothers = if is_fit { taken.take((prefix, zone), judge.peers) } else { None };
        let is_usable = |(route, is_open): &&(&PeerRoute, bool)| *is_open && !judge.unused.contains(&route.switch);
        let usable: Vec<&PeerRoute> = routes.iter().filter(is_usable).map(|(route, _)| *route).collect();
        if usable.is_empty() {
            continue;
        }
        let count = found.counts.entry(zone.clone()).or_default();
        let of_zone = counts.entry(zone).or_default();
        let close = |reason| Refused { zone: zone.clone(), prefix, reason };
        if let Some(reason) = closed {
            found.closed.insert(close(reason));
            continue;
        }
        let pieces = if let Some(reason) = refused.or(anothers) {
            Err(reason)
        } else {
            let cut = cut.entry(prefix).or_insert_with(|| judge.pieces(prefix));
            few(cut.as_ref(), of_zone)
        };
        match pieces {
            Ok([]) => {
                let reason = "Subnets of this cluster close all of it with disableInterConnection";
                found.closed.insert(close(reason.to_owned()));
            }
            Ok(pieces) => {
                count.used += usable.len();
                for piece in pieces.iter().filter(|piece| judge.elsewhere(**piece, zone).is_none()) {
                    of_zone.insert(*piece);
                    let next_hops = usable.iter().map(|route| (route.next_hop, Some(route.id.clone())));
                    found.used.entry(*piece).or_default().extend(next_hops);
                }
            }
            Err(reason) => {
                count.refused += usable.len();
                found.refused.insert(close(reason));
            }
        }
    }
    found
}

/// All routes, those of the cluster that joined first before the others, and whether packets can take them.
fn in_order(peers: &Peers) -> Vec<(&PeerRoute, bool)> {
    let open = peers.routes.iter().map(|route| (route, true));
    let mut routes: Vec<_> = open.chain(peers.waiting.iter().map(|route| (route, false))).collect();
    let place = |zone: &Name| peers.clusters.get(zone).map(|cluster| cluster.place);
    routes.sort_by_cached_key(|(route, _)| (place(&route.zone), &route.zone, *route));
    routes
}

/// Whether both are names of one cluster.
fn is_same(peers: &Peers, one: &Name, other: &Name) -> bool {
    let new_name = |zone| peers.clusters.get(zone).and_then(|cluster| cluster.new_name.as_ref());
    new_name(one).unwrap_or(one) == new_name(other).unwrap_or(other)
}

/// Prefixes that clusters offer, each with its cluster. None contains another one.
#[derive(Default)]
struct Taken<'a>(BTreeMap<Subnet, &'a Name>);

impl<'a> Taken<'a> {
    /// Why another cluster has addresses of the prefix; if none has, they are this one's.
    fn take(&mut self, (prefix, of): (Subnet, &'a Name), peers: &Peers) -> Option<String> {
        let is_same = |zone: &Name| is_same(peers, zone, of);
        let around = self.0.range(..=prefix).next_back().filter(|(range, _)| range.contains_subnet(prefix));
        let mut within = self.0.range(prefix..).take_while(|(range, _)| prefix.contains_subnet(**range));
        if let Some((range, zone)) =
            around.filter(|(_, zone)| !is_same(zone)).or_else(|| within.find(|(_, zone)| !is_same(zone)))
        {
            return Some(format!(
                "it overlaps {range} of cluster {zone}, which joined earlier; give one of the two other addresses, or if {zone} is gone \
                 for good, remove what is left of it: ovnkube ic clean az {zone}"
            ));
        }
        if around.is_none() {
            let within =
                self.0.range(prefix..).map(|(range, _)| *range).take_while(|range| prefix.contains_subnet(*range));
            for range in within.collect::<Vec<_>>() {
                self.0.remove(&range);
            }
            self.0.insert(prefix, of);
        }
        None
    }
}

/// The pieces, if their cluster has not used up its number.
fn few<'p>(pieces: Option<&'p Vec<Subnet>>, used: &BTreeSet<Subnet>) -> Result<&'p [Subnet], String> {
    let room = MOST_PREFIXES.saturating_sub(used.len());
    let fits = |pieces: &&Vec<Subnet>| pieces.iter().filter(|piece| !used.contains(*piece)).count() <= room;
    let too_many = || format!("the cluster offers more than {MOST_PREFIXES} prefixes; have it offer larger ones");
    pieces.filter(fits).map(Vec::as_slice).ok_or_else(too_many)
}
