//! Keeps what agents read of routes of their hosts to other clusters: two keys of the ConfigMap `ovnkube-cluster`. Where no cluster has
//! such routes, nothing is asked or written.

use std::time::Duration;

use ovnkube_apply::MayWrite;
use ovnkube_config::Settings;
use ovnkube_watch::{Client, Data};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use crate::cluster::{NAME, WRITTEN_WITHIN};

/// Other clusters come and go with many prefixes: one change serves them all.
const SETTLE: Duration = Duration::from_secs(2);
/// So long an edit by hand lasts.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// First pause after a failure; it doubles.
const TRY_AGAIN: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Runs while somebody says what agents should read.
pub(crate) async fn keep(
    api: &Client,
    settings: &Settings,
    may_write: MayWrite,
    mut told: watch::Receiver<Option<Data>>,
) {
    let namespace = &settings.kubernetes.ovn_config_namespace;
    let mut written: Option<Data> = None;
    let mut pause = TRY_AGAIN;
    loop {
        // only whether somebody told is kept: the guard of what was told must not live on while this waits
        let is_told = timeout(LOOK_AGAIN, told.wait_for(|told| *told != written)).await.map(|told| told.is_ok());
        match is_told {
            Ok(true) => sleep(SETTLE).await,
            Ok(false) => break,
            Err(_) if written.is_none() => continue,
            Err(_) => {}
        }
        let want = told.borrow_and_update().clone();
        if let Some(data) = want.as_ref().filter(|_| may_write()) {
            match timeout(WRITTEN_WITHIN, api.set_config_map(namespace, NAME, data, &*may_write)).await {
                Ok(Ok(_)) => {
                    (written, pause) = (want, TRY_AGAIN);
                    continue;
                }
                // already logged
                Ok(Err(error)) if error.is_forbidden() => debug!(%error, "trying again"),
                Ok(Err(error)) => warn!(%error, "trying again"),
                Err(_) => warn!(namespace, config_map = NAME, "cannot write the config map: no answer; trying again"),
            }
        }
        sleep(pause).await;
        pause = LONGEST_PAUSE.min(pause * 2);
    }
    std::future::pending::<()>().await;
}
