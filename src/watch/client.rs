//! One connection pool to the API server, and the few ways it is used.

use std::time::Duration;

use futures::{AsyncBufRead, AsyncBufReadExt};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::Error;
use crate::error::chain;

/// An answer that takes longer is none. Watches are bound by their own silence limit.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// No answer that is read whole is longer, bytes.
const LONGEST_ANSWER: usize = 256 * 1024 * 1024;

pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
/// Lists are merged by their key: conditions by type.
pub(crate) const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
/// Asks for the answer without spec and status.
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// Talks to the Kubernetes API. Cloning is cheap, clones share connections. There is no limit of
/// requests per second: the API server's own fairness decides.
#[derive(Clone)]
pub struct Client {
    pub(crate) kube: kube::Client,
    pub(crate) server: String,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl Client {
    /// Reads into `text`, which is cleared first.
    pub(crate) async fn get(&self, action: &str, path: &str, text: &mut Vec<u8>) -> Result<(), Error> {
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
                if text.len() + part.len() > LONGEST_ANSWER {
                    return Err(Error::failed(action, format!("the answer is longer than {LONGEST_ANSWER} bytes")));
                }
                text.extend_from_slice(part);
                let length = part.len();
                stream.consume_unpin(length);
            }
        };
        within(action, read).await
    }

    /// Opens an answer that is read bit by bit.
    pub(crate) async fn stream(&self, action: &str, path: &str) -> Result<impl AsyncBufRead + use<>, Error> {
        within(action, self.open(action, request(action, Method::GET, path, Vec::new())?)).await
    }

    /// Sends `body`; of the answer only success counts.
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
            // read to its end, or the connection cannot be used again
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
        let answer =
            within(action, async { self.kube.request_text(request).await.map_err(|e| Error::from_kube(action, &e)) });
        serde_json::from_str(&answer.await?).map_err(|e| Error::failed(action, format!("cannot read the answer: {e}")))
    }

    async fn open(&self, action: &str, request: Request<Vec<u8>>) -> Result<impl AsyncBufRead + use<>, Error> {
        self.kube.request_stream(request).await.map_err(|e| Error::from_kube(action, &e))
    }
}

async fn within<T>(action: &str, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let late = |_| Error::failed(action, format!("no answer within {} s", ANSWER_WITHIN.as_secs()));
    timeout(ANSWER_WITHIN, call).await.map_err(late)?
}

fn request(action: &str, method: Method, path: &str, body: Vec<u8>) -> Result<Request<Vec<u8>>, Error> {
    let request = Request::builder().method(method).uri(path).body(body);
    request.map_err(|e| Error::Refused { action: action.to_owned(), problem: format!("bad path {path}: {e}") })
}

/// Escapes what may not stand in a path segment or query value.
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
