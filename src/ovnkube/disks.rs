//! Says that the disk of a database's server on this host is full or nearly full, or that the log of a member has not been compacted: in
//! the log, and as an Event of the namespace of ovnkube. Each master says so, also one that waits for the lease: it looks at its own host
//! only.

use std::collections::BTreeMap;
use std::time::Duration;

use ovnkube_config::{Settings, Side};
use ovnkube_db::{ClusterStatus, FileProblem, file_problems};
use ovnkube_watch::{Client, Events};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::db::files;
use crate::db::look::runs;
use crate::db::place::{Place, WITHIN};
use crate::stranger::{REMIND, warning};

/// How often it is looked at: 100 MB are left when it is told.
const AGAIN: Duration = Duration::from_secs(60);

/// Runs for as long as the process does, on the host of this name.
pub(crate) async fn keep(settings: &Settings, host: &str, api: &Client, events: &Events) {
    let sides = [Side::North, Side::South].map(|side| keep_one(settings, side, host, api, events));
    futures::future::join_all(sides).await;
}

async fn keep_one(settings: &Settings, side: Side, host: &str, api: &Client, events: &Events) {
    // by reason: when, and whether the disk was full
    let mut told: BTreeMap<&'static str, (Instant, bool)> = BTreeMap::new();
    loop {
        // the directory of the socket depends on what is there
        let place = Place::of(settings, side);
        let problems = problems(&place).await;
        for problem in &problems {
            let (reason, is_full) = (problem.reason, problem.is_full);
            // that it is full now is news
            if told.get(reason).is_some_and(|(at, was)| at.elapsed() <= REMIND && (*was || !is_full)) {
                continue;
            }
            told.insert(reason, (Instant::now(), is_full));
            let message = format!("{} on host {host}: {}", place.database.name, problem.text);
            warn!("{message}");
            let namespace = &settings.kubernetes.ovn_config_namespace;
            events.publish(warning(api, namespace, reason, message).await);
        }
        told.retain(|reason, _| {
            let stays = problems.iter().any(|problem| problem.reason == *reason);
            if !stays {
                info!(database = place.database.name, reason, "this problem of its server on this host is over");
            }
            stays
        });
        sleep(AGAIN).await;
    }
}

/// Of the server on this host. None if no server of the database runs here.
async fn problems(place: &Place) -> Vec<FileProblem> {
    if !runs(place).await {
        return Vec::new();
    }
    let status = place.control("cluster/status", &[place.database.name], WITHIN).await;
    let status = status.ok().as_deref().and_then(ClusterStatus::parse);
    let file = files::open_by(place);
    file.map(|file| file_problems(&file, status.as_ref(), place.word)).unwrap_or_default()
}
