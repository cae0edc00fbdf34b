//! A connection pool to the API server, and the requests that are made through it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use futures::{AsyncBufRead, AsyncBufReadExt};
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, Method, Request, Uri};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::{Instant, timeout};

use crate::error::chain;
use crate::{Access, Error};

/// A request without an answer after this time fails. Watches have their own limit of silence.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Longest answer that is read whole, in bytes.
pub(crate) const LONGEST_ANSWER: usize = 256 * 1024 * 1024;

/// So long a client is not doubted again: an API server that is slow for everybody must not get more to do for it.
const DOUBT_AGAIN: Duration = Duration::from_secs(30);

/// Longest wait that an answer can ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
/// Merges lists by their key: conditions by type.
pub(crate) const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
/// Asks for the answer without spec and status.
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// Talks to the Kubernetes API. Cloning is cheap; clones share connections. Requests per second are not limited: that
/// is left to the API server's priority and fairness.
#[derive(Clone)]
pub struct Client {
    pub(crate) kube: kube::Client,
    /// `None`: there is nothing to connect with but `kube`.
    pub(crate) access: Option<Arc<Access>>,
    pub(crate) server: String,
    pub(crate) forbidden: Forbidden,
    pub(crate) doubt: Doubt,
    pub(crate) wall: WallClock,
}

/// The machine's, but in simulations.
#[derive(Clone)]
pub(crate) struct WallClock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Default for WallClock {
    fn default() -> Self {
        Self(Arc::new(SystemTime::now))
    }
}

/// Whether connections hang, and since when that is known: an API server that stands still says nothing on a watch, as one does
/// without news. After a doubt, requests go out on new connections, and watches go on there.
#[derive(Clone, Default)]
pub(crate) struct Doubt(Arc<Doubts>);

#[derive(Default)]
struct Doubts {
    last: Mutex<Option<Instant>>,
    /// Wakes the watches in the order in which they wait, as a `watch` channel would not: a simulated story can be played again.
    raised: Notify,
}

impl Doubt {
    /// A connection did not answer and another one did.
    pub(crate) fn raise(&self) {
        {
            let mut last = self.0.last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.is_some_and(|last| last.elapsed() < DOUBT_AGAIN) {
                return;
            }
            *last = Some(Instant::now());
        }
        tracing::warn!("an API server answers on one connection but not on another; the watches use new connections");
        self.0.raised.notify_waiters();
    }

    pub(crate) fn last(&self) -> Option<Instant> {
        *self.0.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends with the next doubt that comes from now on.
    pub(crate) fn next(&self) -> Notified<'_> {
        self.0.raised.notified()
    }
}

/// Requests that the account may not make, such as `POST /api/v1/namespaces/*/events`: each is logged once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forbidden(Arc<Mutex<BTreeSet<String>>>);

/// The header `Retry-After` of an answer, which kube does not pass on.
#[derive(Clone, Debug, Default)]
pub(crate) struct RetryAfter(Arc<OnceLock<Duration>>);

impl RetryAfter {
    /// Reads seconds only: no API server writes a date.
    pub(crate) fn note(&self, headers: &HeaderMap) {
        let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        if let Some(seconds) = seconds {
            let _ = self.0.set(Duration::from_secs(seconds).min(LONGEST_PAUSE));
        }
    }
}

impl Forbidden {
    fn note(&self, method: &Method, path: &Uri, error: &Error) {
        if error.is_forbidden() {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if known.insert(format!("{method} {}", without_names(path.path()))) {
                tracing::warn!(%error, "give the account the rights that dist/yaml has, or bind its token to its own node");
            }
        }
    }
}

/// `/api/v1/namespaces/a/pods/b/status` → `/api/v1/namespaces/*/pods/*/status`
fn without_names(path: &str) -> String {
    // /api/v1/RESOURCE/NAME/…, /apis/GROUP/VERSION/RESOURCE/NAME/…
    let first = if path.starts_with("/api/") { 4 } else { 5 };
    let part = |(n, part): (usize, &str)| if n >= first && (n - first) % 2 == 0 { "*" } else { part }.to_owned();
    path.split('/').enumerate().map(part).collect::<Vec<_>>().join("/")
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl Client {
    /// The same client with another wall clock, which a simulation can set.
    #[must_use]
    pub fn with_wall_clock(self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self { wall: WallClock(Arc::new(now)), ..self }
    }

    /// The wall clock's time, for people and other programs to read. Nothing may be decided by it: it can be set at any moment.
    pub(crate) fn wall_time(&self) -> jiff::Timestamp {
        jiff::Timestamp::try_from((self.wall.0)()).unwrap_or_default()
    }

    /// Reads an answer into `text`, which is cleared first.
    pub(crate) async fn get(&self, action: &str, path: &str, text: &mut Vec<u8>) -> Result<(), Error> {
        self.get_up_to(LONGEST_ANSWER, action, path, text).await
    }

    /// The same; fails with [`Error::Long`] if the answer has more than `most` bytes.
    pub(crate) async fn get_up_to(
        &self,
        most: usize,
        action: &str,
        path: &str,
        text: &mut Vec<u8>,
    ) -> Result<(), Error> {
        text.clear();
        let read = async {
            let stream = self.open(action, request(action, Method::GET, path, Vec::new())?).await?;
            let mut stream = std::pin::pin!(stream);
            // read_to_end would zero the free part of `text` before each of its reads
            loop {
                let part = stream.fill_buf().await.map_err(|e| Error::failed(action, chain(&e)))?;
                if part.is_empty() {
                    return Ok(());
                }
                if text.len() + part.len() > most {
                    return Err(Error::Long { action: action.to_owned(), most });
                }
                text.extend_from_slice(part);
                let length = part.len();
                stream.consume_unpin(length);
            }
        };
        within(action, read).await
    }

    /// Opens an answer that is read in parts.
    pub(crate) async fn stream(&self, action: &str, path: &str) -> Result<impl AsyncBufRead + use<>, Error> {
        within(action, self.open(action, request(action, Method::GET, path, Vec::new())?)).await
    }

    /// Sends `body`; only success or failure of the answer matters.
    pub(crate) async fn send(
        &self,
        action: &str,
        method: Method,
        path: &str,
        content_type: &'static str,
        body: Vec<u8>,
    ) -> Result<(), Error> {
        let mut request = request(action, method, path, body)?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, http::HeaderValue::from_static(content_type));
        headers.insert(ACCEPT, http::HeaderValue::from_static(METADATA_ONLY));
        let send = async {
            let stream = self.open(action, request).await?;
            // read to the end, or the connection cannot be used again
            futures::io::copy(stream, &mut futures::io::sink()).await.map_err(|e| Error::failed(action, chain(&e)))
        };
        within(action, send).await.map(|_| ())
    }

    /// Sends `body` and reads the answer.
    pub(crate) async fn exchange<T: DeserializeOwned>(
        &self,
        action: &str,
        method: Method,
        path: &str,
        content_type: &'static str,
        body: Vec<u8>,
    ) -> Result<T, Error> {
        let mut request = request(action, method, path, body)?;
        request.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(content_type));
        let answer = self.ask(action, request, |request| self.kube.request_text(request));
        let answer = within(action, answer).await?;
        serde_json::from_str(&answer).map_err(|e| Error::failed(action, format!("its answer cannot be parsed: {e}")))
    }

    async fn open(&self, action: &str, request: Request<Vec<u8>>) -> Result<impl AsyncBufRead + use<>, Error> {
        self.ask(action, request, |request| self.kube.request_stream(request)).await
    }

    /// Makes a request in one of kube's ways.
    async fn ask<T, F>(
        &self,
        action: &str,
        mut request: Request<Vec<u8>>,
        way: impl FnOnce(Request<Vec<u8>>) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, kube::Error>>,
    {
        let (method, path, after) = (request.method().clone(), request.uri().clone(), RetryAfter::default());
        request.extensions_mut().insert(after.clone());
        let answer = way(request).await.map_err(|e| Error::from_kube(action, &e).later(after.0.get().copied()));
        answer.inspect_err(|error| self.forbidden.note(&method, &path, error))
    }
}

async fn within<T>(action: &str, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let late = |_| Error::failed(action, format!("no answer within {} s", ANSWER_WITHIN.as_secs()));
    timeout(ANSWER_WITHIN, call).await.map_err(late)?
}

fn request(action: &str, method: Method, path: &str, body: Vec<u8>) -> Result<Request<Vec<u8>>, Error> {
    let request = Request::builder().method(method).uri(path).body(body);
    request.map_err(|e| Error::Refused { action: action.to_owned(), problem: format!("path {path} is wrong: {e}") })
}

/// Escapes what is not allowed in a path segment or query value.
pub(crate) fn query_value(text: &str) -> String {
    use std::fmt::Write;
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}
