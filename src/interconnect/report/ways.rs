//! The prefixes of the other clusters and the ways to them. Which are used is decided in `ovnkube-model`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ovnkube_model::{PeerRoute, Peers, Refused, Subnet, World};
use serde::Serialize;

use super::northbound::Northbound;

/// What another cluster offers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Routes {
    pub zone: String,
    pub prefixes: Vec<Offered>,
}

/// A prefix of another cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Offered {
    pub prefix: Subnet,
    pub used: bool,
    /// Why it is not used.
    pub reason: Option<String>,
    /// People here want it so: nothing is wrong.
    pub closed: bool,
    /// When its cluster made the first of the ways that there are, in seconds since 1970. Only ovnkube says so.
    pub since: Option<u64>,
    pub ways: Vec<Way>,
}

/// One way to a prefix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Way {
    pub switch: String,
    /// The other cluster's address there.
    pub next_hop: IpAddr,
    /// Whether the northbound database has the route, if that is known.
    pub written: Option<bool>,
}

impl Way {
    /// `ts 169.254.100.77`
    pub(crate) fn text(&self, used: bool) -> String {
        let missing = if used && self.written == Some(false) { " (not written yet)" } else { "" };
        format!("{} {}{missing}", self.switch, self.next_hop)
    }
}

impl Routes {
    /// What the clusters with these names offer. `world` knows the peers; `since` when a row was made.
    pub(crate) fn of(
        zones: &[String],
        world: &World,
        peers: &Peers,
        northbound: Option<&Northbound>,
        since: impl Fn(&PeerRoute) -> Option<u64>,
    ) -> Vec<Self> {
        let mut all: BTreeMap<&str, BTreeMap<Subnet, Vec<&PeerRoute>>> =
            zones.iter().map(|zone| (zone.as_str(), BTreeMap::new())).collect();
        for route in &peers.routes {
            all.entry(&route.zone).or_default().entry(route.prefix).or_default().push(route);
        }
        let judged = Judged::of(world);
        let of_zone = |(zone, prefixes): (&str, BTreeMap<Subnet, Vec<&PeerRoute>>)| Self {
            zone: zone.to_owned(),
            prefixes: prefixes
                .into_iter()
                .map(|(prefix, routes)| Offered {
                    since: routes.iter().filter_map(|route| since(route)).min(),
                    ..judged.offered(prefix, &routes, northbound)
                })
                .collect(),
        };
        all.into_iter().map(of_zone).collect()
    }

    /// Whether the northbound database lacks no way that is used.
    pub fn is_written(&self) -> bool {
        self.missing() == 0
    }

    /// How many ways are used and not in the northbound database.
    pub(crate) fn missing(&self) -> usize {
        let used = self.prefixes.iter().filter(|offered| offered.used);
        used.flat_map(|offered| &offered.ways).filter(|way| way.written == Some(false)).count()
    }

    pub fn used(&self) -> usize {
        self.prefixes.iter().filter(|offered| offered.used).count()
    }

    pub fn refused(&self) -> usize {
        self.prefixes.len() - self.used() - self.closed()
    }

    /// How many people here do not want.
    pub fn closed(&self) -> usize {
        self.prefixes.iter().filter(|offered| offered.closed).count()
    }
}

/// What World says about prefixes.
struct Judged<'a> {
    /// By cluster and prefix.
    refused: BTreeMap<(&'a str, Subnet), &'a Refused>,
    closed: BTreeMap<(&'a str, Subnet), &'a Refused>,
    /// By next hop, without what only people declared.
    used: BTreeMap<IpAddr, Vec<Subnet>>,
}

impl<'a> Judged<'a> {
    fn of(world: &'a World) -> Self {
        fn by_prefix<'a>(all: impl Iterator<Item = &'a Refused>) -> BTreeMap<(&'a str, Subnet), &'a Refused> {
            all.map(|refused| ((refused.zone.as_ref(), refused.prefix), refused)).collect()
        }
        let mut used: BTreeMap<IpAddr, Vec<Subnet>> = BTreeMap::new();
        for (prefix, next_hops) in world.joined.prefixes() {
            for (next_hop, _) in next_hops.iter().filter(|(_, offered)| offered.is_some()) {
                used.entry(*next_hop).or_default().push(*prefix);
            }
        }
        Self { refused: by_prefix(world.joined.refused()), closed: by_prefix(world.joined.closed_prefixes()), used }
    }

    /// `routes`: those of one cluster to this prefix, at least one.
    fn offered(&self, prefix: Subnet, routes: &[&PeerRoute], northbound: Option<&Northbound>) -> Offered {
        let ways = routes.iter().map(|route| Way {
            switch: route.switch.to_string(),
            next_hop: route.next_hop,
            written: northbound.map(|nb| self.parts(route).all(|part| nb.learned.contains(&(part, route.next_hop)))),
        });
        let of = |all: &BTreeMap<(&str, Subnet), &Refused>| {
            routes.iter().find_map(|route| Some(all.get(&(route.zone.as_ref(), prefix))?.reason.clone()))
        };
        let (reason, closed) = match (of(&self.refused), of(&self.closed)) {
            (Some(reason), _) => (Some(reason), false),
            (None, Some(reason)) => (Some(reason), true),
            (None, None) if routes.iter().any(|route| self.parts(route).next().is_some()) => (None, false),
            (None, None) => {
                let reason = "auto-route is \"false\", or all of it is closed or declared otherwise here";
                (Some(reason.to_owned()), true)
            }
        };
        Offered { prefix, used: reason.is_none(), reason, closed, since: None, ways: ways.collect() }
    }

    /// The parts of a prefix that are used by a way: mostly it is one, the whole.
    fn parts(&self, route: &PeerRoute) -> impl Iterator<Item = Subnet> {
        let used = self.used.get(&route.next_hop).into_iter().flatten().copied();
        used.filter(|part| route.prefix.contains_subnet(*part))
    }
}
