//! The ways to the other clusters, in a southbound interconnection database that was made anew.
//!
//! Each cluster writes its rows there again, but not at the same moment, and packets pass meanwhile. So what this cluster uses stays for a
//! while. Its own northbound database tells what that is, also to the next master.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use ovnkube_model::Peers;
use ovnkube_ovn::nb::{logical_router_static_route as static_route, logical_switch as ls};
use ovnkube_ovsdb_data::Cache;
use ovnkube_plan::LEARNED;

use crate::emptied::FILLED_WITHIN;
use crate::in_use::way;
use crate::rows::is_ours;

/// What was seen so far. All times are from one moment on.
#[derive(Debug, Default)]
pub struct Returning {
    /// What tells the database from others.
    database: Option<String>,
    /// An earlier master may have had another one.
    is_resumed: bool,
    /// Since when what is missing may come back.
    since: Option<Duration>,
}

impl Returning {
    /// After an earlier master, or in other databases than before.
    pub fn resumed() -> Self {
        Self { is_resumed: true, ..Self::default() }
    }

    /// Whether the ways of before should stay. `database`: what tells it from others, where it has something. `peers`: what is there now.
    pub fn waits(&mut self, database: Option<String>, nb: &Cache, peers: &Peers, now: Duration) -> bool {
        let is_other = self.database.is_some() && self.database != database;
        if is_other || std::mem::take(&mut self.is_resumed) {
            self.since = Some(now);
        }
        self.database = database;
        let waits = self.since.is_some_and(|since| now < since + FILLED_WITHIN) && lacks(nb, peers);
        if !waits {
            self.since = None;
        }
        waits
    }
}

/// Whether a switch or a next hop that is used is missing.
fn lacks(nb: &Cache, peers: &Peers) -> bool {
    let ports: BTreeSet<IpAddr> = peers.ports.iter().map(|port| port.address).collect();
    let offered: BTreeSet<IpAddr> = peers.routes.iter().chain(&peers.waiting).map(|route| route.next_hop).collect();
    let mut switches = nb.iter(ls::TABLE).filter(|(_, row)| is_ours(row));
    let mut routes = nb.iter(static_route::TABLE).filter(|(_, row)| is_ours(row));
    switches.any(|(_, row)| !peers.switches.contains_key(row.str(ls::NAME)))
        || routes.any(|(_, row)| {
            let is_learned = row.external_ids().contains_key(LEARNED);
            let is_there = |next_hop: &IpAddr| ports.contains(next_hop) && (!is_learned || offered.contains(next_hop));
            way(row).is_some_and(|(_, next_hop)| !is_there(&next_hop))
        })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ovnkube_model::{PeerPort, PeerRoute};
    use ovnkube_ovn::{Row, derived_uuid, owner};

    use super::*;

    const WAY: &str = "169.254.100.9";

    /// With a route to another cluster.
    fn northbound() -> Cache {
        let mut nb = Cache::new(&ovnkube_ovn::nb::DATABASE, ovnkube_plan::identity, |_| false);
        let row = Row::new(static_route::TABLE)
            .with(static_route::IP_PREFIX, "10.244.0.0/16")
            .with(static_route::NEXTHOP, WAY)
            .with(static_route::EXTERNAL_IDS, owner::marks(owner::INTERCONNECTION).into_iter().chain([(LEARNED, "1")]));
        nb.set(static_route::TABLE, derived_uuid(static_route::TABLE.name, WAY), Some(Arc::new(row)));
        nb
    }

    fn there() -> Peers {
        let (zone, switch, address): (_, _, IpAddr) = ("az2".into(), "ts".into(), WAY.parse().unwrap());
        let prefix = "10.244.0.0/16".parse().unwrap();
        let port = PeerPort { zone, switch, address, open: false };
        let (zone, switch) = (port.zone.clone(), port.switch.clone());
        let route = PeerRoute { prefix, zone, switch, next_hop: address, id: "1".into() };
        Peers { ports: vec![port], waiting: vec![route], ..Peers::default() }
    }

    #[test]
    fn ways_are_given_time_in_a_database_that_was_made_anew() {
        let (nb, there, gone) = (northbound(), there(), Peers::default());
        let mut returning = Returning::default();
        let mut waits = |database: &str, peers: &Peers, at| {
            returning.waits(Some(database.to_owned()), &nb, peers, Duration::from_secs(at))
        };
        assert!(!waits("one", &there, 0));
        assert!(!waits("one", &gone, 1), "they have left");
        assert!(waits("two", &gone, 2) && waits("two", &gone, 11));
        let without_route = Peers { waiting: Vec::new(), ..there.clone() };
        assert!(waits("two", &without_route, 11), "it is not all there yet");
        assert!(!waits("two", &gone, 12) && !waits("two", &gone, 13), "they do not come back");
        assert!(waits("three", &gone, 20) && !waits("three", &there, 21));
        assert!(!waits("three", &gone, 22), "all were there");
    }

    #[test]
    fn the_next_master_gives_them_time_too() {
        let (nb, gone) = (northbound(), Peers::default());
        let mut returning = Returning::resumed();
        let mut waits = |at| returning.waits(None, &nb, &gone, Duration::from_secs(at));
        assert!(waits(5) && waits(14));
        assert!(!waits(15) && !waits(16));
        let mut nb = northbound();
        assert!(!Returning::resumed().waits(None, &nb, &there(), Duration::ZERO));
        let row = Row::new(ls::TABLE).with(ls::NAME, "ts").with(ls::EXTERNAL_IDS, owner::marks(owner::INTERCONNECTION));
        nb.set(ls::TABLE, derived_uuid(ls::TABLE.name, "ts"), Some(Arc::new(row)));
        assert!(Returning::resumed().waits(None, &nb, &there(), Duration::ZERO), "its own switch is not there");
    }
}
