//! Says that a database server is refused since it is of another cluster than the one in use, or has an older log than was seen: in
//! `/readyz`, and as an Event of the namespace of ovnkube. Each master says so, also one that waits for the lease.

use std::time::Duration;

use ovnkube_model::{Name, Notice, Object, Severity};
use ovnkube_ovsdb::Unfit;
use ovnkube_telemetry::Readiness;
use ovnkube_watch::{Client, Events};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::cluster::ANSWER_WITHIN;

/// The API server deletes Events after an hour.
pub(crate) const REMIND: Duration = Duration::from_secs(1800);

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
    pub(crate) async fn keep(self, mut stranger: watch::Receiver<Option<Unfit>>) {
        loop {
            let said = stranger.borrow_and_update().clone();
            match said {
                Some(unfit) => {
                    let (Unfit::Stranger(why) | Unfit::Older(why)) = &unfit;
                    self.readiness.wait(self.part, why.as_str());
                    self.events.publish(self.notice(&unfit).await);
                }
                None => self.readiness.ready(self.part),
            }
            if matches!(timeout(REMIND, stranger.changed()).await, Ok(Err(_))) {
                return;
            }
        }
    }

    async fn notice(&self, unfit: &Unfit) -> Notice {
        let (reason, why) = match unfit {
            Unfit::Stranger(why) => ("DatabaseOfAnotherCluster", why),
            Unfit::Older(why) => ("DatabaseOlderThanSeen", why),
        };
        Notice {
            object: namespace(&self.api, &self.namespace).await,
            severity: Severity::Warning,
            reason,
            message: format!("the {} is not used: {why}", self.part),
        }
    }
}

/// The namespace of ovnkube, as Events are about it.
pub(crate) async fn namespace(api: &Client, name: &str) -> Object {
    let named = |namespace: &Value| -> Option<Name> {
        let of = &namespace["metadata"];
        (of["name"] == *name).then(|| of["uid"].as_str().unwrap_or_default().into())
    };
    // without it, kubectl get events shows the Event, and kubectl describe does not
    let uids = timeout(ANSWER_WITHIN, api.survey("/api/v1/namespaces", named)).await;
    let uid = uids.ok().and_then(Result::ok).and_then(|uids| uids.into_iter().next()).unwrap_or_default();
    Object::Namespace { name: name.into(), uid }
}
