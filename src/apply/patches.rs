//! Annotations on their way to the API server.
//!
//! Each key has at most one patch on its way. A patch that was sent is remembered until the watch shows it, so that the
//! events in between do not send it again. A patch that failed is not sent again before its retry is due.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use ovnkube_model::{Name, PodAnnotation};
use ovnkube_plan::{Key, Patch, PatchTarget, Seen, Unavailable};
use ovnkube_watch::{Client, Condition, Error, Given};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::MayWrite;

/// How many patches may be on their way at once. The API server handles about 500 a second on one core; more only
/// make each one slower.
const AT_ONCE: usize = 32;
/// If the watch has not shown after this time what a patch found in its place, or what was sent for a key that is planned again, the
/// key is planned once more.
pub(crate) const SEEN_WITHIN: Duration = Duration::from_secs(3);
/// If it has not shown after this time what a patch made, its key is planned again: perhaps another program reverted that before a new
/// watch began, or etcd was restored. A watch that is only slow has shown it by then.
pub(crate) const LOST_AFTER: Duration = Duration::from_secs(60);

/// How many requests about one object are allowed per [`WINDOW`], even if another program keeps reverting them.
const IN_WINDOW: u32 = 5;
const WINDOW: Duration = Duration::from_secs(1);

/// How a patch ended.
#[derive(Debug)]
pub enum Outcome {
    /// The server has it; the watch will show it.
    Accepted(Key),
    /// Nothing was written: another program has changed what was to be replaced. The watch will show it.
    Conflict(Key),
    /// To be tried again, but not before this time has passed.
    Failed(Key, Duration),
    /// The object is gone, or another one has its name now.
    Gone(Key),
    /// The key wants something else by now, whatever the result was.
    Outdated(Key),
}

/// Sends annotations and conditions to the API server; see the module.
pub struct Patches {
    api: Client,
    may_write: MayWrite,
    queue: VecDeque<Key>,
    records: HashMap<Key, Record>,
    tasks: JoinSet<(Key, Result<(), Refused>)>,
    rate_limit: RateLimit,
    on_their_way: OnTheirWay,
}

/// Patches that were sent and have no answer yet: each has a receiver.
#[derive(Clone, Default)]
pub struct OnTheirWay(watch::Sender<()>);

impl OnTheirWay {
    /// Waits until there is none.
    pub async fn ended(&self) {
        self.0.closed().await;
    }
}

/// Number of recent requests for each object: several keys may write to one node.
#[derive(Default)]
struct RateLimit {
    windows: HashMap<PatchTarget, (u32, Instant)>,
    /// The same windows, in the order in which they end.
    ends: VecDeque<(Instant, PatchTarget)>,
}

/// Why a patch failed.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("not sent: the lease is gone")]
    NoLease,
    #[error("the annotation was changed meanwhile")]
    Changed,
    #[error(transparent)]
    Api(#[from] ovnkube_watch::Error),
}

struct Record {
    patch: Patch,
    state: State,
    /// The key wanted something else while the patch was on its way.
    outdated: bool,
    /// The watch showed it before the response arrived.
    seen: bool,
}

#[derive(PartialEq)]
enum State {
    Queued,
    Sent,
    /// Accepted, or in conflict: the same patch makes no sense before the watch has shown the object.
    Answered,
    Failed,
}

impl RateLimit {
    fn note(&mut self, object: &PatchTarget, requests: u32) {
        let now = Instant::now();
        while self.ends.front().is_some_and(|(end, _)| *end <= now) {
            self.ends.pop_front().map(|(_, object)| self.windows.remove(&object));
        }
        let (count, _) = self.windows.entry(object.clone()).or_insert_with(|| {
            self.ends.push_back((now + WINDOW, object.clone()));
            (0, now + WINDOW)
        });
        *count += requests;
    }

    /// When requests about this object may be sent again, if not now.
    fn rests_until(&self, object: &PatchTarget) -> Option<Instant> {
        let (count, end) = self.windows.get(object)?;
        (*count >= IN_WINDOW && *end > Instant::now()).then_some(*end)
    }
}

impl Patches {
    pub fn new(api: Client, may_write: MayWrite) -> Self {
        let (queue, records, tasks, rate_limit) = <_>::default();
        Self { api, may_write, queue, records, tasks, rate_limit, on_their_way: OnTheirWay::default() }
    }

    /// What has been sent and not been answered: the lease is not given back before its end.
    pub fn on_their_way(&self) -> OnTheirWay {
        self.on_their_way.clone()
    }

    /// Notes what a key wants. Returns when to check the key again, if the watch has yet to show a patch that was sent or
    /// too many requests were sent lately.
    pub fn want(&mut self, key: &Key, patch: Option<Patch>) -> Option<Instant> {
        let Some(patch) = patch else {
            // nothing to patch; a patch on its way is left to finish
            match self.records.get_mut(key) {
                Some(record) if record.state == State::Sent => record.seen = true,
                Some(_) => drop(self.records.remove(key)),
                None => {}
            }
            return None;
        };
        match self.records.get_mut(key) {
            Some(record) if record.patch == patch => {
                // perhaps the watch has shown it already, and that another program has reverted it: the answer, which may
                // come later, says nothing of that
                let is_out = matches!(record.state, State::Sent | State::Answered);
                return is_out.then(|| Instant::now() + SEEN_WITHIN);
            }
            Some(record) if record.state == State::Queued => record.patch = patch,
            // the response to the one on its way makes the key dirty again
            Some(record) if record.state == State::Sent => record.outdated = true,
            _ => {
                if let Some(rested) = self.rate_limit.rests_until(&patch.target) {
                    return Some(rested);
                }
                self.records.insert(key.clone(), Record { patch, state: State::Queued, outdated: false, seen: false });
                self.queue.push_back(key.clone());
            }
        }
        self.start();
        None
    }

    /// Whether the server has accepted the key's patch and the watch has not shown it yet.
    pub fn is_unseen(&self, key: &Key) -> bool {
        self.records.get(key).is_some_and(|record| record.state == State::Answered)
    }

    /// Forgets a patch that was answered but not yet seen, or, if its retry is due, one that failed, so that it is sent again
    /// if it is still wanted.
    pub fn doubt(&mut self, key: &Key, is_retry: bool) {
        let is_doubtful = |record: &Record| match record.state {
            State::Answered => true,
            State::Failed => is_retry,
            State::Queued | State::Sent => false,
        };
        if self.records.get(key).is_some_and(is_doubtful) {
            self.records.remove(key);
        }
    }

    /// Waits for the next patch to end; never returns while none is on its way.
    pub async fn finished(&mut self) -> Outcome {
        let (key, result) = loop {
            match self.tasks.join_next().await {
                Some(Ok(done)) => break done,
                Some(Err(error)) => warn!(%error, "a patch was aborted"),
                None => std::future::pending().await,
            }
        };
        let outdated = self.records.get(&key).is_some_and(|r| r.outdated);
        let outcome = match result {
            _ if outdated => Outcome::Outdated(key),
            Ok(()) => Outcome::Accepted(key),
            Err(Refused::Api(error)) if error.is_gone() => {
                debug!(%key, %error, "the object of a patch is gone");
                Outcome::Gone(key)
            }
            Err(error @ (Refused::Changed | Refused::Api(Error::Conflict { .. }))) => {
                debug!(%key, %error, "an annotation is planned again");
                Outcome::Conflict(key)
            }
            Err(error) => {
                let after = if let Refused::Api(error) = &error { error.retry_after() } else { None };
                if matches!(&error, Refused::Api(error) if error.is_forbidden()) {
                    debug!(%key, %error, "trying an annotation again");
                } else {
                    warn!(%key, %error, "trying an annotation again");
                }
                Outcome::Failed(key, after.unwrap_or_default())
            }
        };
        let (key, left) = match &outcome {
            Outcome::Accepted(key) | Outcome::Conflict(key) => (key, Some(State::Answered)),
            Outcome::Failed(key, _) => (key, Some(State::Failed)),
            Outcome::Gone(key) | Outcome::Outdated(key) => (key, None),
        };
        match (self.records.get_mut(key), left) {
            (Some(record), Some(state)) if !record.seen => record.state = state,
            _ => drop(self.records.remove(key)),
        }
        self.start();
        outcome
    }

    /// Whether patches wait although more could be on their way: writing was not allowed when they were to be sent.
    pub fn are_held_up(&self) -> bool {
        !self.queue.is_empty() && self.tasks.len() < AT_ONCE
    }

    /// Sends as many queued patches as may be sent now.
    pub fn start(&mut self) {
        while self.tasks.len() < AT_ONCE && (self.may_write)() {
            let Some(key) = self.queue.pop_front() else { return };
            // a key whose patch was dropped and wanted again is in the queue twice
            let Some(record) = self.records.get_mut(&key).filter(|r| r.state == State::Queued) else { continue };
            record.state = State::Sent;
            let patch = &record.patch;
            let requests = [patch.annotations.is_empty(), patch.labels.is_empty(), patch.network_unavailable.is_none()];
            let requests = requests.into_iter().map(|is_empty| u32::from(!is_empty)).sum::<u32>();
            self.rate_limit.note(&patch.target, requests + u32::from(matches!(patch.seen, Seen::Digest(_))));
            let (api, patch, may_write) = (self.api.clone(), record.patch.clone(), self.may_write.clone());
            let token = self.on_their_way.0.subscribe();
            self.tasks.spawn(async move {
                let result = send(&api, patch, &may_write).await;
                drop(token);
                (key, result)
            });
        }
    }
}

/// Each request checks again whether it may be sent: time may have passed since the last one.
async fn send(api: &Client, patch: Patch, may_write: &MayWrite) -> Result<(), Refused> {
    let fence = || if may_write() { Ok(()) } else { Err(Refused::NoLease) };
    fence()?;
    let (seen, annotations) = (texts(api, &patch).await?, &patch.annotations);
    let given = Given { annotations, seen: seen.as_deref() };
    fence()?;
    let name = match &patch.target {
        PatchTarget::Pod(pod) => return Ok(api.give_pod(pod, &patch.uid, given).await?),
        PatchTarget::Node(name) => name,
    };
    if !annotations.is_empty() {
        api.give_node(name, &patch.uid, given).await?;
    }
    if !patch.labels.is_empty() {
        fence()?;
        api.label_node(name, &patch.uid, &patch.labels).await?;
    }
    if let Some(Unavailable { status, reason, message }) = patch.network_unavailable {
        fence()?;
        let condition = Condition { kind: "NetworkUnavailable", status, reason, message };
        api.set_node_condition(name, &patch.uid, &condition).await?;
    }
    Ok(())
}

/// What the annotations of a patch must still be. A text of which only the digest is kept is read first: few pods' addresses
/// are ever written twice.
async fn texts(api: &Client, patch: &Patch) -> Result<Option<Vec<Option<Name>>>, Refused> {
    let (digest, pod, name) = match (&patch.seen, &patch.target, patch.annotations.first()) {
        (Seen::Texts(texts), ..) => return Ok(Some(texts.clone())),
        (Seen::Digest(digest), PatchTarget::Pod(pod), Some((name, _))) => (digest, pod, name),
        _ => return Ok(None),
    };
    let text = api.pod_annotation(pod, name).await?.ok_or(Refused::Changed)?;
    let is_it = PodAnnotation::parse(&text).ok().map(|annotation| annotation.digest) == *digest;
    if is_it { Ok(Some(vec![Some(text.into())])) } else { Err(Refused::Changed) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ovnkube_watch::Access;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn keys_of_one_object_share_its_requests() {
        let access = Access { apiserver: Some("http://127.0.0.1:9".to_owned()), ..Access::default() };
        let api = Client::connect(&access).await.unwrap();
        let mut patches = Patches::new(api, Arc::new(|| true));
        let mut rests = |key: &str, node: &str| {
            let patch = Patch {
                target: PatchTarget::Node(node.into()),
                uid: "u".into(),
                annotations: vec![("a", "b".to_owned())],
                seen: Seen::Bare,
                labels: Vec::new(),
                network_unavailable: None,
            };
            patches.want(&Key::NodeAnnotations(key.into()), Some(patch)).is_some()
        };
        for key in ["1", "2", "3", "4", "5"] {
            assert!(!rests(key, "n1"), "{key}");
        }
        assert!(rests("6", "n1"), "six at once");
        assert!(!rests("7", "n2"), "another object");
    }
}
