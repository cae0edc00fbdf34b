//! An API server that says when to ask again.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{Request, Response};
use kube::client::Body;
use ovnkube_model::{Change, Kind, Notice, Object, Severity};
use serde_json::json;
use tokio::sync::mpsc::channel;
use tokio::time::{Instant, sleep};

use crate::client::RetryAfter;
use crate::{Client, Events, Scope, start};

const WAIT: Duration = Duration::from_secs(7);
/// More than the pause of a first attempt.
const SOON: Duration = Duration::from_secs(1);

/// When it was asked.
type Asked = Arc<Mutex<Vec<Instant>>>;

/// Asks to wait at first, and then answers each request with an empty list.
fn busy() -> (Client, Asked) {
    let asked = Asked::default();
    let log = asked.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let log = log.clone();
        async move {
            let is_first = log.lock().unwrap().is_empty();
            log.lock().unwrap().push(Instant::now());
            let list = json!({"metadata": {"resourceVersion": "1"}, "items": []}).to_string();
            let (status, text) = if is_first { (429_u16, "busy".to_owned()) } else { (200, list) };
            let answer = Response::builder().status(status).header(RETRY_AFTER, WAIT.as_secs());
            let answer = answer.body(Body::from(text.into_bytes())).unwrap();
            if let Some(after) = request.extensions().get::<RetryAfter>() {
                after.note(answer.headers());
            }
            Ok::<_, Infallible>(answer)
        }
    });
    (Client::over(kube::Client::new(service, "default")), asked)
}

/// Between the first request and the next.
fn waited(asked: &Asked) -> Duration {
    let asked = asked.lock().unwrap();
    asked[1] - asked[0]
}

#[tokio::test(start_paused = true)]
async fn a_list_waits_as_long_as_the_server_says() {
    let (client, asked) = busy();
    let (sender, mut changes) = channel(9);
    let _watches = start(&client, &Scope::Nodes, &sender);
    assert!(matches!(changes.recv().await, Some(Change::Synced(Kind::Node))));
    let waited = waited(&asked);
    assert!(waited >= WAIT && waited < WAIT + SOON, "{waited:?}");
}

/// It is asked for no other Event meanwhile, and none is lost.
#[tokio::test(start_paused = true)]
async fn an_event_waits_as_long_as_the_server_says() {
    let (client, asked) = busy();
    let events = Events::start(&client, "ovnkube", "host1");
    let object = Object::Node { name: "n1".into(), uid: "u".into() };
    events.publish(Notice { object, severity: Severity::Normal, reason: "Said", message: "m".into() });
    while asked.lock().unwrap().len() < 2 {
        sleep(SOON / 10).await;
    }
    let waited = waited(&asked);
    assert!(waited >= WAIT && waited < WAIT + SOON, "{waited:?}");
}

/// Those whose answer is parsed, such as renewals of the lease.
#[tokio::test(start_paused = true)]
async fn every_request_says_how_long_to_wait() {
    let (client, _) = busy();
    assert_eq!(client.version().await.unwrap_err().retry_after(), Some(WAIT));
}
