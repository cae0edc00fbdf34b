//! Says that the leader cannot write to a database: in `/readyz`, in the metrics, and as an Event of the namespace of ovnkube.

use std::time::Duration;

use ovnkube_apply::Writing;
use ovnkube_telemetry::WritingMetrics;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tracing::{info, warn};

use crate::stranger::{REMIND, Report};

/// Elections and restarts of servers take less, and so does the lock of a controller that was killed.
const TOLD_AFTER: Duration = Duration::from_secs(30);

impl Report {
    /// Follows what the controller says of a database. Runs for as long as the process does.
    pub(crate) async fn follow(
        self,
        database: &'static str,
        metrics: WritingMetrics,
        mut writing: watch::Receiver<Writing>,
    ) {
        let (mut since, mut told) = (None, None);
        loop {
            let now = *writing.borrow_and_update();
            metrics.seen(database, (now != Writing::Idle).then_some(now == Writing::Possible));
            let mut wait = REMIND;
            if let Writing::Blocked(why) = now {
                let began: Instant = *since.get_or_insert_with(Instant::now);
                let left = TOLD_AFTER.saturating_sub(began.elapsed());
                if left.is_zero() {
                    self.readiness.wait(self.part, format!("nothing can be written: {why}"));
                    if told.is_none_or(|at: Instant| at.elapsed() >= REMIND) {
                        let message = format!("nothing can be written to the {database} database: {why}");
                        warn!("{message}");
                        self.events.publish(self.warning("DatabaseNotWritable", message).await);
                        told = Some(Instant::now());
                    }
                } else {
                    wait = left;
                }
            } else {
                self.readiness.ready(self.part);
                since = None;
                if told.take().is_some() && now == Writing::Possible {
                    info!("the {database} database can be written to again");
                }
            }
            if let Ok(Err(_)) = timeout(wait, writing.changed()).await {
                return;
            }
        }
    }
}
