//! Verdicts while an API server refuses some of them.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};

use super::{ControlFlow, Duration, PATH, Verdict};
use crate::Client;

const PATIENCE: Duration = Duration::from_secs(60);

/// An API server with these requests on pages of their own. It cannot write verdicts about `stuck`.
fn api(names: &'static [&str], written: &Arc<Mutex<Vec<Value>>>) -> Client {
    let written = written.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let written = written.clone();
        async move {
            let path = request.uri().to_string();
            let body = request.into_body().collect_bytes().await.unwrap();
            let (status, answer) = if path.starts_with(&format!("{PATH}/stuck/")) {
                let message = "etcdserver: request is too large";
                (500, json!({"kind": "Status", "status": "Failure", "code": 500, "message": message}))
            } else if path.starts_with(&format!("{PATH}/")) {
                written.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
                (200, json!({}))
            } else {
                (200, page(names, &path))
            };
            let answer = Response::builder().status(status).body(Body::from(answer.to_string().into_bytes()));
            Ok::<_, Infallible>(answer.unwrap())
        }
    });
    Client::over(kube::Client::new(service, "default"))
}

fn page(names: &[&str], path: &str) -> Value {
    // a watch gets a page too, which it gives up
    let next = path.split_once("continue=").and_then(|(_, rest)| rest.split('&').next()).unwrap_or_default();
    let at: usize = next.parse().unwrap_or_default();
    let next = if at + 1 < names.len() { (at + 1).to_string() } else { String::new() };
    let spec = json!({"request": "", "signerName": "kubernetes.io/kube-apiserver-client"});
    let item = json!({"metadata": {"name": names[at], "uid": names[at], "resourceVersion": "1"}, "spec": spec});
    json!({"metadata": {"resourceVersion": "1", "continue": next}, "items": [item]})
}

/// Denies all requests until `last` was denied; returns what was written.
async fn deny(names: &'static [&str], message: &str, last: &str) -> Vec<Value> {
    let written = Arc::new(Mutex::new(Vec::new()));
    let api = api(names, &written);
    let verdict = Verdict { is_approved: false, message: message.to_owned() };
    let follow = api.follow_signing_requests("spec.signerName", "x", |_| {
        let is_done = written.lock().unwrap().iter().any(|one: &Value| one["metadata"]["name"] == last);
        if is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(Some(verdict.clone())) }
    });
    tokio::time::timeout(PATIENCE, follow).await.expect("the last one gets a verdict");
    written.lock().unwrap().clone()
}

#[tokio::test]
async fn a_verdict_that_cannot_be_written_keeps_no_other_back() {
    let written = deny(&["a", "stuck", "b", "c"], "no", "c").await;
    let names: Vec<_> = written.iter().map(|one| one["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_long_verdict_is_shortened() {
    let written = deny(&["a"], &"ä".repeat(400_000), "a").await;
    assert_eq!(written[0]["status"]["conditions"][0]["message"], "ä".repeat(500));
}
