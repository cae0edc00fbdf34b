//! Keeps the election timer of a cluster of databases as configured. It is changed over the control socket of the leader, so the master
//! on the leader's host does it, also one that only waits for the lease.

use std::time::Duration;

use ovnkube_config::{Settings, Side, election_timer_ms};
use ovnkube_db::{ClusterStatus, TimerStep};
use tokio::time::sleep;
use tracing::{info, warn};

use crate::db::look::servers;
use crate::db::place::{Place, WITHIN};

/// How often the timer is looked at: any member may become the leader.
const AGAIN: Duration = Duration::from_secs(30);
/// The change before must be in the log of the cluster first.
const NEXT_STEP: Duration = Duration::from_secs(1);

/// Runs for as long as the process does, for each database that has a timer configured.
pub(crate) async fn keep(settings: &Settings) {
    let timers = [(Side::North, settings.ovnnorth.election_timer), (Side::South, settings.ovnsouth.election_timer)];
    let kept = timers.into_iter().filter(|(_, wanted)| *wanted > 0);
    let kept = kept.map(|(side, wanted)| keep_one(settings, side, election_timer_ms(wanted).into()));
    futures::future::join_all(kept).await;
}

async fn keep_one(settings: &Settings, side: Side, wanted: u64) {
    let mut told = None;
    loop {
        // the directory of the socket depends on what is there
        let place = Place::of(settings, side);
        let wait = match step(&place, wanted).await {
            Ok(TimerStep::Set(_) | TimerStep::UnderWay) => NEXT_STEP,
            Ok(TimerStep::Right | TimerStep::NotOurs) => AGAIN,
            Err(problem) => {
                let (what, error) = &problem;
                if told.as_ref() != Some(&problem) {
                    warn!(database = place.database.name, wanted, %error, "{what}");
                    told = Some(problem);
                }
                AGAIN
            }
        };
        sleep(wait).await;
    }
}

const NOT_HERE: &str = "this host cannot set the election timer of the cluster: it has no member of it that answers on its control \
                        socket. A master on the host of the leader does it, or ovs-appctl cluster/change-election-timer there";
const OF_ANOTHER: &str = "the election timer of the member on this host stays as it is: no server that answers at the addresses of the \
                          database is in its cluster";
const REFUSED: &str = "the member on this host refuses to change the election timer of the cluster";

/// What could not be done, and why.
type Problem = (&'static str, String);

/// One step, if the member on this host leads.
async fn step(place: &Place, wanted: u64) -> Result<TimerStep, Problem> {
    let name = place.database.name;
    let status = place.control("cluster/status", &[name], WITHIN).await.map_err(|why| (NOT_HERE, why.to_string()))?;
    let untold = || (NOT_HERE, "the server does not tell how its cluster is".to_owned());
    let status = ClusterStatus::parse(&status).ok_or_else(untold)?;
    let step = status.timer_step(wanted);
    if let TimerStep::Set(next) = step {
        if !is_used(place, &status.cluster).await {
            return Err((OF_ANOTHER, format!("it is in cluster {}", status.cluster)));
        }
        let changed = place.control("cluster/change-election-timer", &[name, &next.to_string()], WITHIN).await;
        changed.map_err(|why| (REFUSED, why.to_string()))?;
        info!(
            database = name,
            from = status.election_timer_ms,
            to = next,
            wanted,
            "election timer of the cluster changed"
        );
    }
    Ok(step)
}

/// Whether the addresses of the database lead to this cluster: a host may have a member of another one too.
async fn is_used(place: &Place, cluster: &str) -> bool {
    let named = servers(&place.remotes, place.tls.as_ref(), place.database).await;
    let mut answers = named.servers.iter().filter_map(|seen| seen.answer.as_ref());
    answers.any(|answer| answer.cluster.as_deref() == Some(cluster))
}
