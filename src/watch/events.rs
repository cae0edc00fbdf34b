//! Publishes notices as Kubernetes Events, which `kubectl describe` shows at the end.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Method;
use ovnkube_model::{About, Notice, Severity};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::client::{JSON, MERGE_PATCH, query_value};
use crate::{Client, Error};

/// How many notices may wait to be sent; more are dropped.
const QUEUE: usize = 4096;
/// How many of one reason may wait: what is said of each of many objects does not displace what is said once.
const OF_A_REASON: usize = 256;
/// How many notices are remembered, to count repeated ones.
const REMEMBERED: usize = 4096;
/// Least time between two raises of an Event's count; the API server deletes Events after an hour.
const RAISE_EVERY: Duration = Duration::from_secs(60);
/// Pause after each Event: at most 20 a second.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a notice is tried again. What the API server answers may be about this notice alone, and others wait.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same while it does not answer, as while it restarts, or says when to ask again: it would answer no other.
const PATIENCE_WITH_SILENCE: Duration = Duration::from_secs(60);
/// Between two attempts; each failure in a row doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// Longest message that the API accepts, in bytes.
const LONGEST_MESSAGE: usize = 1000;

/// Publishes notices. Clones share one queue.
#[derive(Debug, Clone)]
pub struct Events {
    queue: mpsc::Sender<Notice>,
    waiting: Waiting,
}

/// How many notices of each reason wait to be sent.
#[derive(Debug, Clone, Default)]
struct Waiting(Arc<Mutex<BTreeMap<&'static str, usize>>>);

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Events {
    /// Publishes as `component` on `host`, until all clones are dropped.
    pub fn start(client: &Client, component: &str, host: &str) -> Self {
        let (queue, notices) = mpsc::channel(QUEUE);
        let recorder =
            Recorder { client: client.clone(), component: component.into(), host: host.into(), sent: BTreeMap::new() };
        let waiting = Waiting::default();
        tokio::spawn(recorder.run(notices, waiting.clone()));
        Self { queue, waiting }
    }

    /// Publishes one notice and returns when the API server has it: for a process that does nothing else.
    pub async fn publish_one(client: &Client, component: &str, host: &str, notice: &Notice) -> Result<(), Error> {
        let recorder =
            Recorder { client: client.clone(), component: component.into(), host: host.into(), sent: BTreeMap::new() };
        recorder.write(digest(notice), notice, PATIENCE).await.map(|_| ())
    }

    /// Whether no notice waits to be sent; one may be on its way.
    pub fn is_idle(&self) -> bool {
        self.queue.capacity() == QUEUE
    }

    /// Queues a notice without waiting: if the queue is full, or many of its reason wait, it is dropped. A repeated notice raises the
    /// count of its Event, at most once a minute.
    pub fn publish(&self, notice: Notice) {
        let (reason, mut waiting) = (notice.reason, self.waiting.lock());
        let of_reason = waiting.entry(reason).or_default();
        if *of_reason < OF_A_REASON && self.queue.try_send(notice).is_ok() {
            *of_reason += 1;
        } else {
            tracing::debug!(reason, "dropped an event: too many wait");
        }
    }
}

/// State of a notice's Event.
struct Sent {
    /// How often it was published, including what is not written yet.
    count: u64,
    written: Instant,
}

struct Recorder {
    client: Client,
    component: String,
    host: String,
    sent: BTreeMap<u64, Sent>,
}

#[derive(Deserialize)]
struct Counted {
    #[serde(default)]
    count: u64,
}

impl Recorder {
    async fn run(mut self, mut notices: mpsc::Receiver<Notice>, waiting: Waiting) {
        while let Some(notice) = notices.recv().await {
            waiting.lock().entry(notice.reason).and_modify(|count| *count = count.saturating_sub(1));
            let id = digest(&notice);
            if let Some(sent) = self.sent.get_mut(&id) {
                sent.count += 1;
                if sent.written.elapsed() < RAISE_EVERY {
                    continue;
                }
            }
            match self.write(id, &notice, PATIENCE_WITH_SILENCE).await {
                Ok(count) => self.remember(id, count),
                Err(error) => {
                    self.sent.remove(&id);
                    tracing::debug!(%error, "the event is lost");
                }
            }
            sleep(PAUSE).await;
        }
    }

    fn remember(&mut self, id: u64, count: u64) {
        if self.sent.len() >= REMEMBERED {
            let oldest = self.sent.iter().min_by_key(|(_, sent)| sent.written).map(|(id, _)| *id);
            oldest.map(|id| self.sent.remove(&id));
        }
        self.sent.insert(id, Sent { count, written: Instant::now() });
    }

    /// `silence`: how long it is tried while there is no answer, or one that says when to ask again.
    async fn write(&self, id: u64, notice: &Notice, silence: Duration) -> Result<u64, Error> {
        let (began, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            let result = match self.sent.get(&id) {
                Some(sent) => self.raise(id, notice, Some(sent.count)).await,
                None => self.create(id, notice).await,
            };
            match result {
                Err(error) if error.is_retryable() => {
                    let after = error.retry_after();
                    let patience = if error.is_unanswered() || after.is_some() { silence } else { PATIENCE };
                    if began.elapsed() >= patience {
                        return Err(error);
                    }
                    sleep(pause.max(after.unwrap_or_default().min(patience))).await;
                }
                result => return result,
            }
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    async fn create(&self, id: u64, notice: &Notice) -> Result<u64, Error> {
        let about = notice.object.about();
        let now = now();
        let kind = if notice.severity == Severity::Warning { "Warning" } else { "Normal" };
        let body = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": { "name": event_name(&about, id), "namespace": event_namespace(&about) },
            "involvedObject": { "apiVersion": about.api_version, "kind": about.kind, "name": about.name, "namespace": about.namespace, "uid": about.uid },
            "type": kind, "reason": notice.reason, "message": shortened(&notice.message),
            "source": { "component": self.component, "host": self.host },
            "reportingComponent": self.component, "reportingInstance": self.host,
            "firstTimestamp": now, "lastTimestamp": now, "count": 1,
        });
        let action = format!("create event {} for {} {}", notice.reason, about.kind, about.name);
        match self.client.send(&action, Method::POST, &events_path(&about), JSON, body.to_string().into_bytes()).await {
            Ok(()) => Ok(1),
            // an earlier run of ours created it
            Err(Error::Conflict { .. }) => match self.raise(id, notice, None).await {
                // accounts of databases and of Open vSwitch may only create them; what it says is there
                Err(error) if error.is_forbidden() => Ok(1),
                raised => raised,
            },
            Err(error) => Err(error),
        }
    }

    /// Raises the count to `count`, or by one.
    async fn raise(&self, id: u64, notice: &Notice, count: Option<u64>) -> Result<u64, Error> {
        let about = notice.object.about();
        let path = format!("{}/{}", events_path(&about), query_value(&event_name(&about, id)));
        let action = format!("count event {} for {} {}", notice.reason, about.kind, about.name);
        let count = match count {
            Some(count) => count,
            None => self.client.exchange::<Counted>(&action, Method::GET, &path, JSON, Vec::new()).await?.count + 1,
        };
        let body = json!({ "count": count, "lastTimestamp": now() }).to_string().into_bytes();
        match self.client.send(&action, Method::PATCH, &path, MERGE_PATCH, body).await {
            Ok(()) => Ok(count),
            // the API server has deleted it
            Err(Error::Gone { .. }) => Box::pin(self.create(id, notice)).await,
            Err(error) => Err(error),
        }
    }
}

/// Events about objects outside namespaces go to `default`.
fn event_namespace<'a>(about: &About<'a>) -> &'a str {
    about.namespace.unwrap_or("default")
}

fn events_path(about: &About<'_>) -> String {
    format!("/api/v1/namespaces/{}/events", query_value(event_namespace(about)))
}

/// The same notice gets the same name in every run.
fn event_name(about: &About<'_>, id: u64) -> String {
    // names are ASCII and have at most 253 bytes
    let name = about.name.get(..230).unwrap_or(about.name).trim_end_matches(['.', '-']);
    format!("{name}.{id:016x}")
}

fn digest(notice: &Notice) -> u64 {
    let mut hasher = DefaultHasher::new();
    notice.hash(&mut hasher);
    hasher.finish()
}

pub(crate) fn shortened(message: &str) -> &str {
    let end = (0..=LONGEST_MESSAGE).rev().find(|end| message.is_char_boundary(*end));
    if message.len() <= LONGEST_MESSAGE { message } else { message.get(..end.unwrap_or_default()).unwrap_or_default() }
}

fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
