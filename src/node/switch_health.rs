//! Learns whether ovs-vswitchd answers. In a quiet node the agent has no other reason to speak to it, so it asks when
//! someone asks for the node's health, and nothing is polled.

use std::path::Path;
use std::time::Duration;

use ovnkube_host::unixctl;
use ovnkube_telemetry::NodeHealth;
use tokio::time::sleep;

/// Anyone may ask for the node's health as often as he likes.
const PAUSE: Duration = Duration::from_secs(1);

/// Runs until the process ends.
pub(crate) async fn watch(health: &NodeHealth, run_dir: &Path) {
    // an earlier run may have ended while it asked
    health.set_answering(true);
    let mut told = false;
    loop {
        // a switch that does not answer is asked until it does, since that is news
        if !told {
            health.asked().await;
        }
        // if the answer takes long, the time since the last one shows it
        health.set_answering(false);
        match unixctl::ask(run_dir).await {
            Ok(()) => {
                health.set_answering(true);
                if told {
                    tracing::info!("ovs-vswitchd answers again");
                }
                told = false;
            }
            Err(error) => {
                if !told {
                    tracing::warn!(%error, "trying again");
                }
                told = true;
            }
        }
        sleep(PAUSE).await;
    }
}
