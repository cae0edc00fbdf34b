//! Verdicts while an API server refuses some of them.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};

use super::{ControlFlow, Duration, PATH, Verdict};
use crate::Client;

const PATIENCE: Duration = Duration::from_secs(60);

/// An API server with these requests on pages of their own; notes the verdicts that are sent. It cannot write those about `stuck`.
fn api(names: &'static [&str], sent: &Arc<Mutex<Vec<Value>>>) -> Client {
    let sent = sent.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let sent = sent.clone();
        async move {
            let path = request.uri().to_string();
            let body = request.into_body().collect_bytes().await.unwrap();
            let (status, answer) = if path.starts_with(&format!("{PATH}/")) {
                sent.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
                if path.starts_with(&format!("{PATH}/stuck/")) {
                    let message = "etcdserver: request is too large";
                    (500, json!({"kind": "Status", "status": "Failure", "code": 500, "message": message}))
                } else {
                    (200, json!({}))
                }
            } else {
                if let Some((_, seconds)) = path.split_once("timeoutSeconds=") {
                    let seconds = seconds.split('&').next().unwrap().parse().unwrap();
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                }
                (200, page(names, &path))
            };
            let answer = Response::builder().status(status).body(Body::from(answer.to_string().into_bytes()));
            Ok::<_, Infallible>(answer.unwrap())
        }
    });
    Client::over(kube::Client::new(service, "default"))
}

fn page(names: &[&str], path: &str) -> Value {
    // a watch that ends gets a page too, which it gives up
    let next = path.split_once("continue=").and_then(|(_, rest)| rest.split('&').next()).unwrap_or_default();
    let at: usize = next.parse().unwrap_or_default();
    let next = if at + 1 < names.len() { (at + 1).to_string() } else { String::new() };
    let spec = json!({"request": "", "signerName": "kubernetes.io/kube-apiserver-client"});
    let item = json!({"metadata": {"name": names[at], "uid": names[at], "resourceVersion": "1"}, "spec": spec});
    json!({"metadata": {"resourceVersion": "1", "continue": next}, "items": [item]})
}

/// Denies all requests until `last` was denied; returns the verdicts that were sent.
async fn deny(names: &'static [&str], message: &str, last: &str) -> Vec<Value> {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let api = api(names, &sent);
    let verdict = Verdict { is_approved: false, message: message.to_owned() };
    let follow = api.follow_signing_requests("spec.signerName", "x", |_| {
        let is_done = sent.lock().unwrap().iter().any(|one: &Value| one["metadata"]["name"] == last);
        if is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(Some(verdict.clone())) }
    });
    let ended = tokio::time::timeout(PATIENCE, follow).await;
    assert_eq!(ended.is_ok(), names.contains(&last), "the last one gets a verdict");
    sent.lock().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn a_verdict_that_cannot_be_written_keeps_no_other_back() {
    let sent = deny(&["a", "stuck", "b", "c"], "no", "c").await;
    let names: Vec<_> = sent.iter().map(|one| one["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "stuck", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_verdict_that_is_never_written_is_sent_less_and_less_often() {
    let sent = deny(&["stuck"], "no", "none").await;
    assert!((4..8).contains(&sent.len()), "{} times in {PATIENCE:?}", sent.len());
}

#[tokio::test(start_paused = true)]
async fn a_long_verdict_is_shortened() {
    let sent = deny(&["a"], &"ä".repeat(400_000), "a").await;
    assert_eq!(sent[0]["status"]["conditions"][0]["message"], "ä".repeat(500));
}
