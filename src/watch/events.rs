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
    name: String,
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

/// An Event that the API server has.
struct Written {
    name: String,
    count: u64,
}

/// What is read of an Event.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Found {
    count: i32,
    r#type: String,
    reason: String,
    message: String,
    involved_object: Involved,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Involved {
    kind: String,
    name: String,
    uid: String,
}

impl Found {
    /// Whether it says what the notice does: everybody who may make Events can take its name first.
    fn says(&self, notice: &Notice) -> bool {
        let (about, of) = (notice.object.about(), &self.involved_object);
        let is_about = (&*of.kind, &*of.name, &*of.uid) == (about.kind, about.name, about.uid);
        let said = (&*self.r#type, &*self.reason, &*self.message);
        is_about && said == (kind(notice), notice.reason, shortened(&notice.message))
    }
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
                Ok(written) => self.remember(id, written),
                Err(error) => {
                    self.sent.remove(&id);
                    tracing::debug!(%error, "the event is lost");
                }
            }
            sleep(PAUSE).await;
        }
    }

    fn remember(&mut self, id: u64, Written { name, count }: Written) {
        if self.sent.len() >= REMEMBERED {
            let oldest = self.sent.iter().min_by_key(|(_, sent)| sent.written).map(|(id, _)| *id);
            oldest.map(|id| self.sent.remove(&id));
        }
        self.sent.insert(id, Sent { name, count, written: Instant::now() });
    }

    /// `silence`: how long it is tried while there is no answer, or one that says when to ask again.
    async fn write(&self, id: u64, notice: &Notice, silence: Duration) -> Result<Written, Error> {
        let (began, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            let result = match self.sent.get(&id) {
                Some(sent) => self.raise(sent.name.clone(), notice, Some(sent.count)).await,
                None => self.create(event_name(&notice.object.about(), id), notice).await,
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

    async fn create(&self, name: String, notice: &Notice) -> Result<Written, Error> {
        let about = notice.object.about();
        let now = now(&self.client);
        let body = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": { "name": name, "namespace": event_namespace(&about) },
            "involvedObject": { "apiVersion": about.api_version, "kind": about.kind, "name": about.name, "namespace": about.namespace, "uid": about.uid },
            "type": kind(notice), "reason": notice.reason, "message": shortened(&notice.message),
            "source": { "component": self.component, "host": self.host },
            "reportingComponent": self.component, "reportingInstance": self.host,
            "firstTimestamp": now, "lastTimestamp": now, "count": 1,
        });
        let action = format!("create event {} for {} {}", notice.reason, about.kind, about.name);
        match self.client.send(&action, Method::POST, &events_path(&about), JSON, body.to_string().into_bytes()).await {
            Ok(()) => Ok(Written { name, count: 1 }),
            // an earlier run of ours created it
            Err(Error::Conflict { .. }) => match self.raise(name.clone(), notice, None).await {
                // accounts of databases and of Open vSwitch may only create them; what it says is there
                Err(error) if error.is_forbidden() => Ok(Written { name, count: 1 }),
                raised => raised,
            },
            Err(error) => Err(error),
        }
    }

    /// Raises the count to `count`, or by one.
    async fn raise(&self, name: String, notice: &Notice, count: Option<u64>) -> Result<Written, Error> {
        let about = notice.object.about();
        let path = format!("{}/{}", events_path(&about), query_value(&name));
        let action = format!("count event {} for {} {}", notice.reason, about.kind, about.name);
        let count = if let Some(count) = count {
            count
        } else {
            let found: Found = self.client.exchange(&action, Method::GET, &path, JSON, Vec::new()).await?;
            if !found.says(notice) {
                // a name of the time, as those of Kubernetes' own components
                let nanoseconds = self.client.wall_time().as_nanosecond() as u64;
                return Box::pin(self.create(event_name(&about, nanoseconds), notice)).await;
            }
            u64::try_from(found.count.saturating_add(1)).unwrap_or_default()
        };
        let body = json!({ "count": count, "lastTimestamp": now(&self.client) }).to_string().into_bytes();
        match self.client.send(&action, Method::PATCH, &path, MERGE_PATCH, body).await {
            Ok(()) => Ok(Written { name, count }),
            // the API server has deleted it
            Err(Error::Gone { .. }) => Box::pin(self.create(name, notice)).await,
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

fn kind(notice: &Notice) -> &'static str {
    if notice.severity == Severity::Warning { "Warning" } else { "Normal" }
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

fn now(client: &Client) -> String {
    client.wall_time().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use kube::client::Body;
    use ovnkube_model::Object;
    use serde_json::Value;

    use super::*;

    /// Requests so far, each as `METHOD name`.
    type Asked = Arc<Mutex<Vec<String>>>;

    /// An API server that has this Event under the first name that it is asked to create.
    fn api(has: &Value) -> (Client, Asked) {
        let (asked, has) = (Asked::default(), has.clone());
        let log = asked.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (log, has) = (log.clone(), has.clone());
            async move {
                let (method, path) = (request.method().clone(), request.uri().path().to_owned());
                let body = request.into_body().collect_bytes().await.unwrap();
                let body: Value = serde_json::from_slice(&body).unwrap_or_default();
                let name = body["metadata"]["name"].as_str().or(path.rsplit('/').next()).unwrap_or_default();
                let is_first = log.lock().unwrap().is_empty();
                log.lock().unwrap().push(format!("{method} {name}"));
                let taken = json!({"kind": "Status", "status": "Failure", "code": 409, "message": "already exists"});
                let (status, answer) = if is_first { (409_u16, taken) } else { (200, has) };
                let answer = Response::builder().status(status).body(Body::from(answer.to_string().into_bytes()));
                Ok::<_, Infallible>(answer.unwrap())
            }
        });
        (Client::over(kube::Client::new(service, "default")), asked)
    }

    fn notice() -> Notice {
        let object = Object::Node { name: "n1".into(), uid: "u1".into() };
        Notice { object, severity: Severity::Warning, reason: "NoSubnet", message: "no subnet is left".into() }
    }

    /// As the API server returns it.
    fn event(message: &str) -> Value {
        let involved = json!({"kind": "Node", "name": "n1", "uid": "u1"});
        json!({
            "involvedObject": involved, "type": "Warning", "reason": "NoSubnet", "message": message, "count": 3,
        })
    }

    /// What is asked for a notice, and for the same one two minutes later.
    async fn published_twice(has: &Value) -> Vec<String> {
        let (client, asked) = api(has);
        let events = Events::start(&client, "ovnkube", "host1");
        for _ in 0..2 {
            events.publish(notice());
            sleep(RAISE_EVERY * 2).await;
        }
        let asked = asked.lock().unwrap();
        asked.clone()
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_of_an_earlier_run_is_counted() {
        let name = event_name(&notice().object.about(), digest(&notice()));
        let expected = ["POST", "GET", "PATCH", "PATCH"].map(|method| format!("{method} {name}"));
        assert_eq!(published_twice(&event("no subnet is left")).await, expected);
    }

    /// The Event would be lost, and people would read what somebody else wrote.
    #[tokio::test(start_paused = true)]
    async fn a_notice_whose_name_is_taken_gets_another() {
        let mut odd = event("all is well");
        odd["count"] = json!(-1);
        for taken in [event("all is well"), odd] {
            let asked = published_twice(&taken).await;
            let [created, read, again, counted] = <[String; 4]>::try_from(asked).unwrap();
            assert_eq!(read.strip_prefix("GET "), created.strip_prefix("POST "));
            assert_ne!(again, created);
            assert_eq!(counted.strip_prefix("PATCH "), again.strip_prefix("POST "));
        }
    }
}
