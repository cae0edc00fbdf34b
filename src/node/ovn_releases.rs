//! Follows the release of this node's ovn-controller, which people update at any time.

use std::path::Path;
use std::time::Duration;

use ovnkube_host::unixctl::Program;
use ovnkube_model::OvnRelease;
use ovnkube_node_plan::releases::Releases;
use tokio::sync::watch;
use tokio::time::sleep;

/// How often ovn-controller is looked for where none answers. One that runs is not asked again until it ends.
const AGAIN: Duration = Duration::from_secs(2);
/// After so many failures it is told, once: ovn-controller may start later than the agent.
const TOLD_AFTER: u32 = 30;
const UNKNOWN: &str = "while its release is not known, an update of northd may interrupt this node's pods";

/// Runs until the process ends. While no ovn-controller runs, the release of the last one stands.
pub(crate) async fn follow(run_dir: &Path, releases: &watch::Sender<Releases>) {
    let mut failed = 0;
    loop {
        if let Some(mut running) = Program::OvnController.running(run_dir).await
            && let Ok(text) = Program::OvnController.run(run_dir, "version", &[]).await
        {
            failed = 0;
            if let Some(release) = release(&text) {
                set(releases, |releases| releases.controller = Some(release));
            } else {
                let version = text.lines().next();
                tracing::warn!(version, "the version of ovn-controller names no release such as 26.03.1; {UNKNOWN}");
            }
            running.ended().await;
        } else {
            failed += 1;
            if failed == TOLD_AFTER {
                let directory = run_dir.display();
                tracing::warn!(
                    "ovn-controller does not answer, or its pid file and its control socket are not in {directory}; {UNKNOWN}"
                );
            }
        }
        sleep(AGAIN).await;
    }
}

/// `text`: `ovn-controller 26.03.1`, with more lines.
fn release(text: &str) -> Option<OvnRelease> {
    OvnRelease::parse(text.lines().next()?.split_whitespace().nth(1)?)
}

pub(crate) fn set(releases: &watch::Sender<Releases>, change: impl FnOnce(&mut Releases)) {
    releases.send_if_modified(|releases| {
        let before = *releases;
        change(releases);
        *releases != before
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_in_the_first_line() {
        assert_eq!(release("ovn-controller 26.03.1\nOpen vSwitch Library 3.7.1\n"), Some(OvnRelease::new(26, 3, 1)));
        for text in ["", "ovn-controller", "\novn-controller 26.03.1", "ovn-controller new"] {
            assert_eq!(release(text), None, "{text}");
        }
    }
}
