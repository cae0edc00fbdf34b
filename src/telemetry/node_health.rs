//! Whether load balancers in front of the nodes may send to this one: the answer of kube-proxy's health port.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use jiff::Timestamp;
use tokio::sync::Notify;

/// The node may be behind for this long, as with kube-proxy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Clones share their state. Not healthy until services are programmed for the first time.
#[derive(Debug, Clone, Default)]
pub struct NodeHealth {
    state: Arc<Mutex<State>>,
    asked: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    /// The node should get no new connections.
    leaving: bool,
    programmed: bool,
    /// ovs-vswitchd was asked and has not answered yet.
    silent: bool,
    /// When services were last known to be programmed, and ovs-vswitchd to answer.
    updated: Option<Moment>,
    /// When services were last known to be programmed.
    worked: Option<Moment>,
}

/// Someone may set the clock, so what has passed follows from `instant`; `stamp` is only reported.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) instant: Instant,
    pub(crate) stamp: Timestamp,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self { instant: Instant::now(), stamp: Timestamp::now() }
    }
}

impl NodeHealth {
    /// The Node is being deleted, or an autoscaler is about to delete it.
    pub fn set_leaving(&self, leaving: bool) {
        self.lock().leaving = leaving;
    }

    /// Sets whether the node is as its services want it; `false` also while that is being checked.
    pub fn set_programmed(&self, programmed: bool) {
        let mut state = self.lock();
        state.see(Moment::now());
        state.programmed = programmed;
        state.see(Moment::now());
    }

    /// Returns once someone has asked for the node's health since the last call.
    pub async fn asked(&self) {
        self.asked.notified().await;
    }

    /// Sets whether ovs-vswitchd answers; `false` also while it is being asked. Until it answers, the time since it did
    /// counts, as with [`NodeHealth::set_programmed`].
    pub fn set_answering(&self, answering: bool) {
        let mut state = self.lock();
        state.see(Moment::now());
        state.silent = !answering;
        state.see(Moment::now());
    }

    pub fn is_answering(&self) -> bool {
        !self.lock().silent
    }

    /// Whether the node is as its services want it, or was within the last 60 s.
    pub fn is_programmed(&self) -> bool {
        self.was_programmed_within(PATIENCE)
    }

    /// Whether it is, or was within this time.
    pub fn was_programmed_within(&self, patience: Duration) -> bool {
        self.asked.notify_one();
        self.lock().was_programmed_within(patience, Moment::now())
    }

    /// `/healthz`: whether this node may get connections.
    pub(crate) fn healthz(&self) -> impl IntoResponse + use<> {
        self.answer(Moment::now(), true)
    }

    /// `/livez`: whether the agent works; a node that leaves or whose ovs-vswitchd hangs is no reason to restart it.
    pub(crate) fn livez(&self) -> impl IntoResponse + use<> {
        self.answer(Moment::now(), false)
    }

    pub(crate) fn answer(&self, now: Moment, is_about_node: bool) -> impl IntoResponse + use<> {
        self.asked.notify_one();
        let mut state = self.lock();
        let was_programmed = state.was_programmed_within(PATIENCE, now);
        let healthy = if is_about_node { was_programmed } else { is_recent(state.worked, PATIENCE, now) };
        let eligible = !state.leaving;
        let updated = state.updated.map_or(Timestamp::UNIX_EPOCH, |updated| updated.stamp);
        let now = now.stamp;
        let about_node = if is_about_node { format!(r#", "nodeEligible": {eligible}"#) } else { String::new() };
        let text = format!(r#"{{"lastUpdated": "{updated}","currentTime": "{now}"{about_node}}}"#);
        let status =
            if healthy && (eligible || !is_about_node) { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        (status, [(CONTENT_TYPE.as_str(), "application/json"), ("x-content-type-options", "nosniff")], text)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn was_programmed_within(&mut self, patience: Duration, now: Moment) -> bool {
        self.see(now);
        is_recent(self.updated, patience, now)
    }

    fn see(&mut self, now: Moment) {
        if self.programmed {
            self.worked = Some(now);
        }
        if self.programmed && !self.silent {
            self.updated = Some(now);
        }
    }
}

fn is_recent(time: Option<Moment>, patience: Duration, now: Moment) -> bool {
    time.is_some_and(|time| now.instant.saturating_duration_since(time.instant) <= patience)
}
