//! Says that a database server is refused since it is of another cluster than the one in use, has an older log than was seen, or has
//! other databases: in `/readyz`, and as an Event of the namespace of ovnkube. Each master says so, also one that waits for the lease. The
//! one that writes also says that a server cannot write its file.

use std::time::Duration;

use ovnkube_model::{Name, Notice, Object, Severity};
use ovnkube_ovsdb::Unfit;
use ovnkube_telemetry::Readiness;
use ovnkube_watch::{Client, Events};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::cluster::ANSWER_WITHIN;

/// The API server deletes Events after an hour.
pub(crate) const REMIND: Duration = Duration::from_secs(1800);
/// What comes and goes is told again after this time.
const AGAIN: Duration = Duration::from_secs(60);
/// What could not be written is tried again more often than this; if it is no longer tried, nothing is to be written any more.
const TRIED_AGAIN: Duration = Duration::from_secs(90);

pub(crate) struct Report {
    /// Which database, for `/readyz` and the Event.
    pub(crate) part: &'static str,
    pub(crate) api: Client,
    pub(crate) namespace: String,
    pub(crate) readiness: Readiness,
    pub(crate) events: Events,
}

impl Report {
    /// Runs for as long as the process does.
    pub(crate) async fn keep(self, mut unfit: watch::Receiver<Option<Unfit>>) {
        let mut told: Option<(Unfit, Instant)> = None;
        loop {
            let said = unfit.borrow_and_update().clone();
            let mut wait = REMIND;
            if let Some(now) = said {
                let (Unfit::Stranger(why)
                | Unfit::Older(why)
                | Unfit::TooLarge(why)
                | Unfit::Missing { why, .. }
                | Unfit::Full(why)) = &now;
                self.readiness.wait(self.part, why.as_str());
                if matches!(now, Unfit::Full(_)) {
                    wait = TRIED_AGAIN;
                }
                if told.as_ref().is_none_or(|(before, at)| *before != now || at.elapsed() >= REMIND) {
                    self.events.publish(self.notice(&now).await);
                    told = Some((now, Instant::now()));
                }
            } else {
                self.readiness.ready(self.part);
                told.take_if(|(_, at)| at.elapsed() > AGAIN);
            }
            match timeout(wait, unfit.changed()).await {
                Ok(Err(_)) => return,
                Err(_) if wait == TRIED_AGAIN => {
                    self.readiness.ready(self.part);
                    if unfit.changed().await.is_err() {
                        return;
                    }
                }
                Ok(Ok(())) | Err(_) => {}
            }
        }
    }

    async fn notice(&self, unfit: &Unfit) -> Notice {
        let (reason, what, why) = match unfit {
            Unfit::Stranger(why) => ("DatabaseOfAnotherCluster", "is not used", why),
            Unfit::Older(why) => ("DatabaseOlderThanSeen", "is not used", why),
            Unfit::TooLarge(why) => ("DatabaseTooLarge", "is not used", why),
            Unfit::Missing { why, .. } => ("DatabaseMissing", "is not used", why),
            Unfit::Full(why) => ("DatabaseCannotWrite", "takes no changes", why),
        };
        self.warning(reason, format!("the {} {what}: {why}", self.part)).await
    }

    /// A warning about the namespace of ovnkube.
    pub(crate) async fn warning(&self, reason: &'static str, message: String) -> Notice {
        warning(&self.api, &self.namespace, reason, message).await
    }
}

/// A warning about the namespace of ovnkube, which has this name.
pub(crate) async fn warning(api: &Client, name: &str, reason: &'static str, message: String) -> Notice {
    Notice { object: namespace(api, name).await, severity: Severity::Warning, reason, message }
}

/// The namespace of ovnkube, as Events are about it.
async fn namespace(api: &Client, name: &str) -> Object {
    // without it, kubectl get events shows the Event, and kubectl describe does not
    let uid = timeout(ANSWER_WITHIN, namespace_uid(api, name)).await.ok().flatten().unwrap_or_default();
    Object::Namespace { name: name.into(), uid }
}

/// The uid of a namespace. Nothing if there is none, or the API server does not tell.
pub(crate) async fn namespace_uid(api: &Client, name: &str) -> Option<Name> {
    let named = |namespace: &Value| -> Option<Name> {
        let of = &namespace["metadata"];
        (of["name"] == *name).then(|| of["uid"].as_str().unwrap_or_default().into())
    };
    api.survey("/api/v1/namespaces", named).await.ok()?.into_iter().next()
}
