//! Says that no northd is active: without one, nothing that ovnkube writes has an effect. In the log, and as an Event of the namespace of
//! ovnkube. Metrics tell whether one is, and how the one on this host is. Each master says so, also one that waits for the lease.

use std::time::Duration;

use ovnkube_config::{Settings, Side};
use ovnkube_telemetry::{Northd, NorthdMetrics, NorthdState};
use ovnkube_watch::{Client, Events};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::db::look::{is_northd_active, northd_here};
use crate::db::place::Place;
use crate::stranger::{REMIND, warning};

/// How often it is asked for. One that takes over, or is restarted, is active again before the second question.
const AGAIN: Duration = Duration::from_secs(20);
const MISSING: &str = "no northd is active: what ovnkube writes to the northbound database has no effect; start northd on a host of the \
                       databases, and look at its log";

/// Runs for as long as the process does.
pub(crate) async fn keep(settings: &Settings, api: &Client, events: &Events, metrics: &NorthdMetrics) {
    let (mut missed, mut told) = (0, None);
    loop {
        sleep(AGAIN).await;
        // the files of TLS and the sockets depend on what is there
        let place = Place::of(settings, Side::North);
        let (here, is_active) = tokio::join!(northd_here(&place), is_northd_active(&place));
        metrics.seen(Northd { is_active, here: here.as_deref().map(NorthdState::of) });
        match is_active {
            Some(false) => missed += 1,
            // what is not known is said by who uses the database
            None => {}
            Some(true) => {
                if told.take().is_some() {
                    info!("a northd is active again");
                }
                missed = 0;
            }
        }
        let is_due = told.is_none_or(|at: Instant| at.elapsed() > REMIND);
        if missed > 1 && is_due {
            warn!("{MISSING}");
            told = Some(Instant::now());
            let namespace = &settings.kubernetes.ovn_config_namespace;
            events.publish(warning(api, namespace, "NoNorthd", MISSING.to_owned()).await);
        }
    }
}
