//! Says that the disk of a database's server on this host is full or nearly full: in the log, and as an Event of the namespace of
//! ovnkube. Each master says so, also one that waits for the lease: it looks at its own host only.

use std::time::Duration;

use ovnkube_config::{Settings, Side};
use ovnkube_db::{ClusterStatus, full_disk};
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
    let mut told = None;
    loop {
        // the directory of the socket depends on what is there
        let place = Place::of(settings, side);
        match problem(&place).await {
            // that it is full now is news
            Some((problem, is_full))
                if told.is_none_or(|(at, was): (Instant, bool)| at.elapsed() > REMIND || (is_full && !was)) =>
            {
                let message = format!("{} on host {host}: {problem}", place.database.name);
                warn!("{message}");
                told = Some((Instant::now(), is_full));
                let namespace = &settings.kubernetes.ovn_config_namespace;
                events.publish(warning(api, namespace, "DatabaseDiskFull", message).await);
            }
            Some(_) => {}
            None => {
                if told.take().is_some() {
                    info!(database = place.database.name, "the disk of its server on this host has room again");
                }
            }
        }
        sleep(AGAIN).await;
    }
}

/// Of the disk, and what to do; and whether it is full. None if no server of the database runs here.
async fn problem(place: &Place) -> Option<(String, bool)> {
    if !runs(place).await {
        return None;
    }
    let status = place.control("cluster/status", &[place.database.name], WITHIN).await;
    let is_member = status.is_ok_and(|status| ClusterStatus::parse(&status).is_some());
    let file = files::open_by(place)?;
    let (problem, remedy) = full_disk(&file, is_member)?;
    Some((format!("{problem}; {remedy}"), file.takes_no_writes()))
}
