//! What hosts need to know for routes to other clusters. The master keeps it in two keys of the ConfigMap `ovnkube-cluster`, where
//! agents read it.
//!
//! ```text
//! host-routes: |
//!   az2 10.244.0.0/16
//!   az3 fd00:244::/48
//! host-route-servers: 192.168.65.3,192.168.65.4
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use ovnkube_ipam::Subnet;
use serde::{Deserialize, Serialize};

use super::declared;
use super::peers::Peers;
use super::prefixes::Prefixes;
use crate::{Name, keys};

/// The most prefixes of all clusters.
pub const MOST_HOST_ROUTES: usize = declared::MOST;

/// What hosts need to know.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRoutes {
    /// The prefixes, each with its cluster.
    pub prefixes: BTreeMap<Subnet, Name>,
    /// Addresses of the servers of the shared databases: a master on the host needs them.
    pub servers: BTreeSet<IpAddr>,
}

impl HostRoutes {
    /// From the data of the ConfigMap, with what cannot be used of it; `None`: hosts have no routes.
    pub fn read(data: &BTreeMap<String, String>) -> Option<(Self, Vec<String>)> {
        let (prefixes, bad) = declared::read(data.get(keys::HOST_ROUTES)?, None);
        let servers = data.get(keys::HOST_ROUTE_SERVERS).map(String::as_str).unwrap_or_default();
        let servers = servers.split(',').filter_map(|ip| ip.parse().ok()).take(MOST_HOST_ROUTES).collect();
        Some((Self { prefixes, servers }, bad))
    }
}

/// The prefixes that are used, by cluster.
pub(crate) fn by_cluster(
    prefixes: &Prefixes,
    peers: &Peers,
    declared: &BTreeMap<Subnet, Name>,
) -> BTreeMap<Name, BTreeSet<Subnet>> {
    let zones: HashMap<&Name, &Name> = peers.routes.iter().map(|route| (&route.id, &route.zone)).collect();
    let mut clusters: BTreeMap<Name, BTreeSet<Subnet>> = BTreeMap::new();
    for (prefix, hops) in &prefixes.used {
        let offered = hops.values().flatten().find_map(|id| zones.get(id).copied());
        let zone = offered.or_else(|| declared::behind(declared, *prefix).map(|(_, zone)| zone));
        clusters.entry(zone.cloned().unwrap_or_default()).or_default().insert(*prefix);
    }
    clusters
}

/// Of the prefixes of each cluster as many as there is room for: while there is, each cluster has one more. With how many are
/// left out.
pub(crate) fn fair(mut clusters: BTreeMap<Name, BTreeSet<Subnet>>) -> (BTreeMap<Subnet, Name>, usize) {
    let all = clusters.values().map(BTreeSet::len).sum::<usize>();
    let mut routes = BTreeMap::new();
    while clusters.values().any(|left| !left.is_empty()) && routes.len() < MOST_HOST_ROUTES {
        for (zone, left) in &mut clusters {
            let next = left.pop_first().filter(|_| routes.len() < MOST_HOST_ROUTES);
            routes.extend(next.map(|prefix| (prefix, zone.clone())));
        }
    }
    let left = all - routes.len();
    (routes, left)
}

pub(crate) fn text(prefixes: &BTreeMap<Subnet, Name>) -> String {
    let lines = prefixes.iter().map(|(prefix, zone)| format!("{zone} {prefix}\n"));
    lines.collect()
}
