//! What people are told of other clusters.

use super::{parse, route};
use crate::{Affected, Change, Kind, NetworkSettings, PeerCluster, PeerRoute, Peers, World};

/// Events of hundreds of clusters would keep those of pods and nodes from being written.
#[test]
fn the_first_clusters_are_named_and_the_others_counted() {
    for (count, told) in [(1, 1), (10, 10), (11, 11), (500, 11)] {
        let mut world = World::new(NetworkSettings::default(), [Kind::Interconnection]);
        world.apply(Change::Interconnection(Some(parse(&[]))));
        world.apply(Change::Synced(Kind::Interconnection));
        let mut peers = Peers::default();
        for n in 0..count {
            let zone: crate::Name = format!("other{n:03}").into();
            peers.clusters.insert(zone.clone(), PeerCluster { silent: true, ..PeerCluster::default() });
            peers.routes.push(PeerRoute { zone, ..route("0.0.0.0/0") });
        }
        world.apply(Change::Peers(Box::new(peers)));
        let notices = world.notices(&Affected::Interconnection);
        for (reason, first, last) in [
            ("ClusterSilent", "cluster other000 is silent", "clusters are silent: ovnkube ic status names them"),
            (
                "PrefixRefused",
                "cluster other000 offers prefixes that are not used: 0.0.0.0/0",
                "clusters offer prefixes that are not used: ovnkube ic routes names them",
            ),
        ] {
            let all = notices.iter().filter(|notice| notice.reason == reason);
            let all: Vec<&str> = all.map(|notice| notice.message.as_str()).collect();
            assert_eq!(all.len(), told, "{all:#?}");
            assert!(all[0].starts_with(first), "{all:#?}");
            let rest = format!("{} more {last}", count - 10.min(count));
            assert_eq!(all[told - 1] == rest, count > 10, "{all:#?}");
        }
    }
}
