//! What is wanted and known of the interconnection with other clusters.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ovnkube_ipam::Subnet;

use crate::{
    Asks, Declared, Interconnection, InterconnectionConfig, InterconnectionSubnet, Kept, Name, PeerCluster, Peers,
    Prefixes, Refused, RouteCounts, Stuck,
};

/// What is wanted and what is known; see the module.
#[derive(Debug, Default)]
pub struct Joined {
    /// The ConfigMap.
    pub(super) asked: Option<InterconnectionConfig>,
    /// This process may not read the ConfigMap, and has not yet.
    pub(super) is_hidden: bool,
    pub(super) wanted: Wanted,
    /// What the northbound database should say, for the next master.
    pub(super) kept: Kept,
    /// What it says; `None`: it was not read yet.
    pub(super) stored: Option<Name>,
    /// Why it stays as it is.
    pub(super) stuck: BTreeMap<Stuck, Name>,
    /// Those that close ranges, or should.
    pub(super) subnets: BTreeMap<Name, InterconnectionSubnet>,
    pub(super) peers: Option<Peers>,
    pub(super) prefixes: Prefixes,
}

#[derive(Debug, Default, PartialEq)]
pub(super) enum Wanted {
    /// The ConfigMap is not read yet, or neither it nor what an earlier master has stored can be used: what there is stays.
    #[default]
    Unknown,
    /// With what the ConfigMap names.
    Off(Option<Box<Interconnection>>),
    On(Box<Interconnection>),
}

impl Joined {
    /// What people want; `None`: nothing, or it is not known.
    pub fn wanted(&self) -> Option<&Interconnection> {
        match &self.wanted {
            Wanted::On(wanted) => Some(wanted),
            Wanted::Off(_) | Wanted::Unknown => None,
        }
    }

    /// What the ConfigMap asks for, or that there is none; `None`: that cannot be said.
    pub(super) fn asked_for(&self) -> Option<Wanted> {
        let Some(asked) = &self.asked else { return Some(Wanted::Off(None)) };
        let asks = match (&asked.asks, &self.kept.wanted) {
            // a cluster that is off, or leaves, joins no others with half of a ConfigMap
            (Asks::Unclear, Some(last)) if !self.is_off() => asked.with_last(last),
            (asks, _) => asks.clone(),
        };
        match asks {
            Asks::On(wanted) => Some(Wanted::On(wanted)),
            Asks::Off(names) => Some(Wanted::Off(names)),
            Asks::Unclear => None,
        }
    }

    /// Whether it is known what should exist. Until then rows of an earlier run stay.
    pub fn is_known(&self) -> bool {
        match self.wanted {
            Wanted::Unknown => false,
            Wanted::Off(_) => true,
            Wanted::On(_) => self.peers.is_some(),
        }
    }

    /// Whether nobody wants an interconnection.
    pub fn is_off(&self) -> bool {
        matches!(self.wanted, Wanted::Off(_))
    }

    /// Where nobody wants an interconnection: where rows of this cluster may be all the same.
    pub fn left(&self) -> Vec<&Interconnection> {
        let Wanted::Off(names) = &self.wanted else { return Vec::new() };
        let names = names.as_deref().filter(|names| !self.kept.all().any(|kept| kept.has_servers_of(names)));
        self.kept.all().chain(names).collect()
    }

    /// Where the cluster is, if it should move to other databases and has not reached them yet.
    pub fn present(&self) -> Option<&Interconnection> {
        self.wanted().and(self.kept.present.as_ref())
    }

    /// Where it was before, and rows of it may be. Elsewhere it is joined.
    pub fn left_behind(&self) -> &[Interconnection] {
        if self.wanted().is_some() { &self.kept.left } else { &[] }
    }

    /// The names that rows of the cluster may have beside the one that it goes by: those that it had before, and those of all databases
    /// that are known. In databases that it has left, the present name is one of them.
    pub fn former(&self) -> BTreeSet<Name> {
        self.kept.former.iter().chain(self.kept.all().map(|kept| &kept.zone)).cloned().collect()
    }

    /// What the next master finds; `None`: nothing.
    pub fn kept(&self) -> Option<String> {
        self.kept.text(!self.is_off())
    }

    /// Whether this is what the northbound database was last known to say of it.
    pub fn has_stored(&self, text: &str) -> bool {
        self.stored.as_deref() == Some(text)
    }

    /// Whether the next master will find it.
    pub fn is_stored(&self) -> bool {
        self.has_stored(&self.kept().unwrap_or_default())
    }

    /// Ranges that are neither offered to other clusters nor learned from them, each with a Subnet that says so.
    pub fn closed(&self) -> BTreeMap<Subnet, Name> {
        let of = |(name, subnet): (&Name, &InterconnectionSubnet)| {
            subnet.closed.iter().map(|range| (*range, name.clone())).collect::<Vec<_>>()
        };
        self.subnets.iter().flat_map(of).collect()
    }

    /// Whether another cluster offers, or people declare, a prefix that overlaps a range.
    pub(super) fn has_prefix_in(&self, range: Subnet) -> bool {
        let offered = self.peers.iter().flat_map(|peers| peers.routes.iter().chain(&peers.waiting));
        let declared = self.wanted().into_iter().flat_map(|wanted| wanted.routes.keys());
        offered.map(|route| &route.prefix).chain(declared).any(|prefix| prefix.overlaps(range))
    }

    pub fn switches(&self) -> impl Iterator<Item = &Name> {
        self.peers.iter().flat_map(|peers| peers.switches.keys())
    }

    /// The prefixes of other clusters that are used, each with its next hops and the uuids of the rows that offer them. People
    /// declared the others.
    pub fn prefixes(&self) -> &BTreeMap<Subnet, BTreeMap<IpAddr, Option<Name>>> {
        &self.prefixes.used
    }

    /// The routes that people declared.
    pub fn declared(&self) -> impl Iterator<Item = (&Subnet, &Declared)> {
        self.prefixes.declared.iter()
    }

    /// The other clusters, each with its gateways and the routes that it offers.
    pub fn clusters(&self) -> impl Iterator<Item = (&Name, &PeerCluster, RouteCounts)> {
        let clusters = self.peers.iter().flat_map(|peers| &peers.clusters);
        clusters.map(|(name, cluster)| (name, cluster, self.prefixes.counts.get(name).copied().unwrap_or_default()))
    }

    /// Prefixes of other clusters that Subnets close here.
    pub fn closed_prefixes(&self) -> impl Iterator<Item = &Refused> {
        self.prefixes.closed.iter()
    }

    pub fn refused(&self) -> impl Iterator<Item = &Refused> {
        self.prefixes.refused.iter()
    }
}
