//! Ends a wait of ovs-vswitchd that would cut the host off.
//!
//! ovn-controller of OVN 24.03.8, 25.03.3, 25.09.3 and 26.03.1 sets `other_config:flow-restore-wait` on each of several gateways of a
//! port, so that the next ovs-vswitchd waits for it. But ovn-controller ends the wait only once it has reached the southbound database,
//! and where the host's own network goes through Open vSwitch, it never does: neither that nor anything else reaches the host. Later
//! releases do not set it, and remove it.

use std::convert::Infallible;
use std::future::pending;
use std::path::Path;
use std::time::Duration;

use ovnkube_host::unixctl::Program;
use ovnkube_node_plan::vswitch::end_wait;
use tokio::time::sleep;

use crate::Result;
use crate::ovs::Ovs;

/// How often a switch is looked for that is not there, and how long after an attempt that failed there is another.
const AGAIN: Duration = Duration::from_secs(1);

/// Looks at each ovs-vswitchd once, when it starts. It needs neither the API server nor the own Node: without the network there are none.
/// `remote`: of the local database.
pub async fn end_waits(remote: &str, run_dir: &Path) -> Infallible {
    loop {
        if let Some(mut switch) = Program::Vswitchd.running(run_dir).await {
            tokio::select! {
                () = switch.ended() => {}
                never = end(remote) => match never {},
            }
        }
        sleep(AGAIN).await;
    }
}

async fn end(remote: &str) -> Infallible {
    let mut told = false;
    loop {
        match try_end(remote).await {
            Ok(()) => return pending().await,
            Err(error) if !told => tracing::warn!(%error, "cannot see whether ovs-vswitchd waits; trying again"),
            Err(_) => {}
        }
        told = true;
        sleep(AGAIN).await;
    }
}

async fn try_end(remote: &str) -> Result<()> {
    let ovs = Ovs::reach(remote, "see that ovsdb-server runs").await?;
    if ovs.read(|cache| !end_wait(cache).is_empty()) {
        tracing::info!(
            "OVN has left flow-restore-wait for this start of ovs-vswitchd, which would cut the host off: ending the wait"
        );
    }
    ovs.apply("end the wait of ovs-vswitchd", |cache| Ok(end_wait(cache))).await
}
