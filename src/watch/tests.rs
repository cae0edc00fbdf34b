//! Cases that a real API server never produces, and cases that need none.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ovnkube_model::{Change, Kind, PodKey, ServiceCidr};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::{Instant, timeout};

use crate::backoff::Backoff;
use crate::error::Error;
use crate::interconnection::InterconnectionConfigs;
use crate::nodes::NodeObject;
use crate::object::{Identified, Watched, WatchedKey};
use crate::pods::{PodObject, Pods};
use crate::service_cidrs::ServiceCidrs;
use crate::stream::{LARGEST_PAGE, run};
use crate::{Access, Client, Scope, start};

const PATIENCE: Duration = Duration::from_secs(120);

/// Answers each connection with the next of `script`, then no more; returns the client and the paths that it requests.
async fn server(script: Vec<String>) -> (Client, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let apiserver = format!("http://{}", listener.local_addr().unwrap());
    let paths = Arc::new(Mutex::new(Vec::new()));
    let log = paths.clone();
    tokio::spawn(async move {
        let mut held = Vec::new();
        let mut script = script.into_iter();
        while let Ok((mut stream, _)) = listener.accept().await {
            let (mut asked, mut byte) = (Vec::new(), [0]);
            while !asked.ends_with(b"\r\n\r\n") && stream.read(&mut byte).await.is_ok_and(|n| n > 0) {
                asked.extend(byte);
            }
            let asked = String::from_utf8(asked).unwrap();
            log.lock().unwrap().push(asked.split(' ').nth(1).unwrap_or_default().to_owned());
            let text = script.next();
            stream.write_all(text.as_deref().unwrap_or_default().as_bytes()).await.unwrap();
            if text.is_none_or(|text| text.contains(": keep-alive")) {
                held.push(stream);
            }
        }
    });
    let access = Access { apiserver: Some(apiserver), ..Access::default() };
    (Client::connect(&access).await.unwrap(), paths)
}

fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// A watch that is cut off after these frames.
fn frames(frames: &[Value]) -> String {
    let body = frames.iter().map(Value::to_string).collect::<Vec<_>>().join("\n") + "\n";
    format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}")
}

fn list(version: &str, next: &str, items: &[Value]) -> String {
    let body = json!({"kind": "NodeList", "metadata": {"resourceVersion": version, "continue": next}, "items": items});
    answer("200 OK", &body.to_string())
}

fn node(name: &str, uid: &str, version: &str) -> Value {
    json!({"metadata": {"name": name, "uid": uid, "resourceVersion": version}})
}

/// The next changes, each as `+name uid`, `-name` or `synced`.
async fn heard(changes: &mut Receiver<Change>, count: usize) -> Vec<String> {
    let mut heard = Vec::new();
    while heard.len() < count {
        let change = timeout(PATIENCE, changes.recv()).await;
        heard.push(match change.unwrap_or_else(|_| panic!("only {heard:?}")).unwrap() {
            Change::Node(name, Some(node)) => format!("+{name} {}", node.uid),
            Change::Node(name, None) => format!("-{name}"),
            Change::Synced(Kind::Node) => "synced".into(),
            other => panic!("{other:?}"),
        });
    }
    heard
}

#[tokio::test]
async fn list_that_expires_between_pages_is_asked_for_whole() {
    let gone = r#"{"kind":"Status","status":"Failure","reason":"Expired","code":410,"message":"too old"}"#;
    let (client, paths) = server(vec![
        list("5", "tok/en=", &[node("a", "1", "1")]),
        answer("410 Gone", gone),
        list("9", "", &[node("a", "1", "1"), node("b", "2", "2")]),
    ])
    .await;
    let (sender, mut changes) = channel(9);
    let _watches = start(&client, &Scope::Nodes, &sender);
    assert_eq!(heard(&mut changes, 4).await, ["+a 1", "+a 1", "+b 2", "synced"]);
    let paths = paths.lock().unwrap().clone();
    assert_eq!(paths[0], "/api/v1/nodes?limit=100&continue=");
    assert_eq!(paths[1], "/api/v1/nodes?limit=100&continue=tok%2Fen%3D");
    assert_eq!(paths[2], "/api/v1/nodes?limit=500000&continue=");
}

#[tokio::test]
async fn list_that_cannot_be_had_whole_comes_in_pages_again() {
    let gone = r#"{"kind":"Status","status":"Failure","reason":"Expired","code":410,"message":"too old"}"#;
    let (client, paths) = server(vec![
        list("5", "more", &[node("a", "1", "1")]),
        answer("410 Gone", gone),
        answer("504 Gateway Timeout", "too much"),
        list("6", "more", &[node("a", "1", "1")]),
        answer("410 Gone", gone),
        answer("410 Gone", gone),
        list("7", "more", &[node("a", "1", "1")]),
        list("7", "", &[node("b", "2", "2")]),
    ])
    .await;
    let (sender, mut changes) = channel(9);
    let _watches = start(&client, &Scope::Nodes, &sender);
    assert_eq!(heard(&mut changes, 5).await, ["+a 1", "+a 1", "+a 1", "+b 2", "synced"]);
    let asked = paths.lock().unwrap().clone();
    let limits: Vec<_> = asked.iter().filter_map(|p| p.split_once("limit=")?.1.split('&').next()).collect();
    assert_eq!(limits, ["100", "100", "500000", "100", "100", "500000", "100", "100"]);
}

/// Everybody who may create objects can make them large: a page of the usual number might never be read, and nothing would be planned.
#[tokio::test]
async fn a_list_of_large_objects_comes_in_smaller_pages() {
    let large = |name: &str, share: usize| {
        let mut node = node(name, "1", "1");
        node["metadata"]["annotations"] = json!({"a": "x".repeat(LARGEST_PAGE / share)});
        node
    };
    let (client, paths) = server(vec![
        list("5", "", &[large("a", 2), large("b", 2), large("c", 2)]),
        list("5", "more", &[large("a", 2)]),
        list("5", "more", &[large("b", 2), large("c", 2)]),
        list("5", "most", &[large("b", 3), large("c", 3)]),
        // the rest is small: one large object does not make all later lists slow
        list("5", "d", &[node("d", "1", "1")]),
        list("5", "e", &[node("e", "1", "1")]),
        list("5", "f", &[node("f", "1", "1")]),
        list("5", "", &[node("g", "1", "1")]),
    ])
    .await;
    let (sender, mut changes) = channel(9);
    let _watches = start(&client, &Scope::Nodes, &sender);
    assert_eq!(heard(&mut changes, 8).await, ["+a 1", "+b 1", "+c 1", "+d 1", "+e 1", "+f 1", "+g 1", "synced"]);
    let asked = paths.lock().unwrap().clone();
    let pages: Vec<_> = asked.iter().filter_map(|path| path.split_once("limit=")).map(|(_, page)| page).collect();
    let shrink = ["100&continue=", "50&continue=", "50&continue=more", "25&continue=more"];
    let grow = ["25&continue=most", "50&continue=d", "100&continue=e", "100&continue=f"];
    assert_eq!(pages, [shrink, grow].concat());
}

/// A page of one object cannot have fewer.
#[tokio::test]
async fn a_page_of_one_large_object_is_read() {
    let large = json!({"metadata": {"name": "ovn-ic-config", "uid": "1"}, "data": {"a": "x".repeat(LARGEST_PAGE)}});
    let (client, _) = server(vec![list("5", "", &[large])]).await;
    let (sender, mut changes) = channel(9);
    let watch = tokio::spawn(run::<InterconnectionConfigs>(client, String::new(), sender));
    let mut next = async || timeout(PATIENCE, changes.recv()).await.unwrap().unwrap();
    assert!(matches!(next().await, Change::Interconnection(Some(_))));
    assert_eq!(next().await, Change::Synced(Kind::Interconnection));
    watch.abort();
}

#[tokio::test]
async fn a_missing_or_forbidden_kind_is_tried_again_and_not_waited_for() {
    let forbidden = r#"{"kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":"may not list"}"#;
    let range =
        json!({"metadata": {"name": "more", "uid": "1"}, "spec": {"cidrs": ["10.97.0.0/16", "no", "fd00:97::1/112"]}});
    let (client, paths) = server(vec![
        answer("404 Not Found", "404 page not found"),
        answer("403 Forbidden", forbidden),
        list("5", "", std::slice::from_ref(&range)),
        answer("404 Not Found", "404 page not found"),
        answer("403 Forbidden", forbidden),
        answer("404 Not Found", "404 page not found"),
        list("7", "", std::slice::from_ref(&range)),
        answer("404 Not Found", "404 page not found"),
        list("9", "", &[]),
    ])
    .await;
    let (sender, mut changes) = channel(9);
    let watch = tokio::spawn(run::<ServiceCidrs>(client, String::new(), sender));
    let mut next = async || timeout(PATIENCE, changes.recv()).await.unwrap().unwrap();
    assert_eq!(next().await, Change::Synced(Kind::ServiceCidr));
    let range = ServiceCidr {
        uid: "1".into(),
        cidrs: vec!["10.97.0.0/16".parse().unwrap()],
        bad: vec!["no".into(), "fd00:97::1/112".into()],
    };
    // with the kind, its objects go, and come back with it
    for _ in 0..2 {
        assert_eq!(next().await, Change::ServiceCidr("more".into(), Some(range.clone())));
        assert_eq!(next().await, Change::ServiceCidr("more".into(), None));
    }
    watch.abort();
    let paths = paths.lock().unwrap().clone();
    assert!(paths.iter().all(|path| path.starts_with("/apis/networking.k8s.io/v1/servicecidrs?")), "{paths:?}");
}

#[tokio::test]
async fn a_config_map_of_the_interconnection_that_may_not_be_read_is_hidden() {
    let forbidden = r#"{"kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":"may not list"}"#;
    let (client, _) =
        server(vec![answer("403 Forbidden", forbidden), answer("403 Forbidden", forbidden), list("5", "", &[])]).await;
    let (sender, mut changes) = channel(9);
    let watch = tokio::spawn(run::<InterconnectionConfigs>(client, String::new(), sender));
    let mut next = async || timeout(PATIENCE, changes.recv()).await.unwrap().unwrap();
    assert_eq!(next().await, Change::InterconnectionHidden(true));
    assert_eq!(next().await, Change::Synced(Kind::Interconnection));
    assert_eq!(next().await, Change::InterconnectionHidden(false));
    watch.abort();
}

#[tokio::test]
async fn one_bad_object_stops_nothing_and_is_not_taken_for_a_deleted_one() {
    let mut bad = node("bad", "3", "3");
    bad["status"] = json!({"addresses": "none"});
    let added = |object: &Value| json!({"type": "ADDED", "object": object});
    let (client, paths) = server(vec![
        list("5", "", &[json!({"metadata": {"name": 5}}), bad.clone(), node("a", "1", "1")]),
        frames(&[
            added(&node("bad", "3", "6")),
            added(&bad),
            json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "8"}}}),
        ]),
        // a watch that ends in the middle of a line, and one that answers with garbage
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"type\":\"ADDED\",\"obj".into(),
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n\u{1}garbage\n".into(),
        answer("500 Internal Server Error", "no"),
        frames(&[json!({"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}})]),
        // "a" was created again, "bad" is still bad
        list("20", "", &[bad, node("a", "9", "19")]),
        frames(&[json!({"type": "DELETED", "object": node("bad", "3", "21")})]),
    ])
    .await;
    let (sender, mut changes) = channel(9);
    let _watches = start(&client, &Scope::Nodes, &sender);
    assert_eq!(heard(&mut changes, 6).await, ["+a 1", "synced", "+bad 3", "-a", "+a 9", "-bad"]);
    // every watch began at the version that the last one reached
    let paths = paths.lock().unwrap().clone();
    let versions: Vec<_> = paths.iter().filter_map(|p| p.split("resourceVersion=").nth(1)).collect();
    assert_eq!(versions[..6], ["5", "8", "8", "8", "8", "20"]);
}

/// Its version may be one that the API server has yet to reach, as after etcd was restored from an older snapshot.
#[tokio::test]
async fn after_a_watch_that_says_nothing_there_is_a_list() {
    let silent = |line: &str| format!("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n{line}");
    let bookmark = json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}});
    let (client, paths) = server(vec![
        list("5", "", &[node("b", "2", "4")]),
        // this one has brought something: its version is good
        silent(&format!("{bookmark}\n")),
        silent(""),
        list("3", "", &[node("a", "1", "2")]),
        frames(&[json!({"type": "ADDED", "object": node("c", "3", "4")})]),
    ])
    .await;
    let (sender, mut changes) = channel(9);
    let _watches = start(&client, &Scope::Nodes, &sender);
    assert_eq!(heard(&mut changes, 5).await, ["+b 2", "synced", "+a 1", "-b", "+c 3"]);
    let paths = paths.lock().unwrap().clone();
    let versions: Vec<_> = paths.iter().map(|p| p.split("resourceVersion=").nth(1).unwrap_or("list")).collect();
    assert_eq!(versions[..5], ["list", "5", "9", "list", "3"]);
}

/// An API server that hangs is no reason to list everything from the others.
#[tokio::test]
async fn after_a_doubt_a_watch_goes_on_from_its_version() {
    let silent = "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n".to_owned();
    let added = json!({"type": "ADDED", "object": node("a", "1", "7")});
    let (client, paths) = server(vec![list("5", "", &[]), silent, frames(&[added])]).await;
    let (sender, mut changes) = channel(9);
    let _watches = start(&client, &Scope::Nodes, &sender);
    assert_eq!(heard(&mut changes, 1).await, ["synced"]);
    while paths.lock().unwrap().len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // the second comes too soon after the first
    client.doubt.raise();
    client.doubt.raise();
    assert_eq!(heard(&mut changes, 1).await, ["+a 1"]);
    let paths = paths.lock().unwrap().clone();
    let versions: Vec<_> = paths.iter().map(|p| p.split("resourceVersion=").nth(1).unwrap_or("list")).collect();
    assert_eq!(versions[..3], ["list", "5", "5"]);
}

/// One that stands still accepts connections: its kernel does that.
#[tokio::test]
async fn a_server_that_says_nothing_is_given_up_before_its_answer_is_late() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let apiserver = Some(format!("https://{}", listener.local_addr().unwrap()));
    let client = Client::connect(&Access { apiserver, ..Access::default() }).await.unwrap();
    let error = client.get("ask", "/version", &mut Vec::new()).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("no TLS within 1 s"), "{error}");
}

/// An account may lose a right while a watch is open: the rows of what it no longer sees are not taken for current.
#[tokio::test]
async fn a_kind_that_may_no_longer_be_watched_is_hidden() {
    let forbidden = r#"{"kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":"may not"}"#;
    let (client, _) = server(vec![
        list("5", "", &[]),
        answer("403 Forbidden", forbidden),
        answer("403 Forbidden", forbidden),
        list("7", "", &[]),
    ])
    .await;
    let (sender, mut changes) = channel(9);
    let watch = tokio::spawn(run::<InterconnectionConfigs>(client, String::new(), sender));
    let mut next = async || timeout(PATIENCE, changes.recv()).await.unwrap().unwrap();
    assert_eq!(next().await, Change::Synced(Kind::Interconnection));
    assert_eq!(next().await, Change::InterconnectionHidden(true));
    assert_eq!(next().await, Change::InterconnectionHidden(false));
    watch.abort();
}

#[tokio::test]
async fn slow_receiver_makes_the_watch_wait() {
    let items: Vec<_> = (0..50).map(|n| node(&format!("n{n}"), "1", "1")).collect();
    let (client, _paths) = server(vec![list("5", "", &items)]).await;
    let (sender, mut changes) = channel(1);
    let _watches = start(&client, &Scope::Nodes, &sender);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(heard(&mut changes, 51).await.last().unwrap(), "synced");
}

#[test]
fn only_needed_fields_of_a_pod_are_read() {
    let text = r#"{"kind":"Pod","metadata":{"name":"w\u0065b","namespace":"ns","uid":"u1","resourceVersion":"7",
        "creationTimestamp":"2026-01-02T03:04:05Z","managedFields":[{"fieldsV1":{"f:a":{}}}],"labels":{"a":"b"}},
        "spec":{"nodeName":"n1","hostNetwork":true,"containers":[{"name":"c"}]},"status":{"phase":"Failed","podIPs":[]}}"#;
    let object: PodObject<'_> = serde_json::from_str(text).unwrap();
    let key = PodKey::of(Pods::metadata(&object));
    assert_eq!(key.to_string(), "ns/web");
    let Change::Pod(_, Some(pod)) = Pods::change(key, &object) else { panic!("not a pod") };
    assert_eq!((pod.uid.as_ref(), pod.created, pod.node.as_deref()), ("u1", 1_767_323_045, Some("n1")));
    assert!(pod.host_network && pod.finished);
}

#[test]
fn any_text_is_read_or_refused() {
    bolero::check!().for_each(|bytes| {
        let _ =
            serde_json::from_slice::<PodObject<'_>>(bytes).map(|o| Pods::change(PodKey::of(Pods::metadata(&o)), &o));
        let _ = serde_json::from_slice::<NodeObject<'_>>(bytes).is_ok();
        let _ = serde_json::from_slice::<Identified<'_>>(bytes).is_ok();
    });
}

/// A value for each step: objects of unusual shapes, most of them almost valid.
#[test]
fn odd_objects_are_read_or_refused_and_keep_their_name() {
    let odd =
        [json!(null), json!(5), json!("x"), json!([]), json!({}), json!({"a": null}), json!(["x", 1]), json!(true)];
    bolero::check!().with_type::<Vec<(u8, u8)>>().for_each(|steps| {
        let mut pod = json!({
            "metadata": {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "1", "annotations": {}, "labels": {}},
            "spec": {"nodeName": "n"}, "status": {"phase": "Running"},
        });
        let keys = ["metadata/annotations", "metadata/labels", "spec/nodeName", "spec/hostNetwork", "status/phase",
            "metadata/creationTimestamp", "spec", "status", "metadata/annotations/k8s.ovn.org~1pod-networks"];
        for (key, value) in steps.iter().take(8) {
            let (parent, child) = keys[*key as usize % keys.len()].rsplit_once('/').unwrap_or(("", keys[*key as usize % keys.len()]));
            let parent = if parent.is_empty() { Some(&mut pod) } else { pod.pointer_mut(&format!("/{parent}")) };
            if let Some(Value::Object(parent)) = parent {
                parent.insert(child.replace("~1", "/"), odd[*value as usize % odd.len()].clone());
            }
        }
        let text = pod.to_string();
        if let Ok(object) = serde_json::from_str::<PodObject<'_>>(&text) {
            assert_eq!(PodKey::of(Pods::metadata(&object)).to_string(), "ns/p");
            Pods::change(PodKey::of(Pods::metadata(&object)), &object);
        }
        let identity = serde_json::from_str::<Identified<'_>>(&text).unwrap().metadata.into_metadata();
        assert_eq!(PodKey::of(&identity).to_string(), "ns/p");
    });
}

#[test]
fn pauses_grow_to_a_bound() {
    let mut backoff = Backoff::default();
    let pauses: Vec<_> = (0..40).map(|_| backoff.next()).collect();
    assert!(pauses[0] >= Duration::from_millis(50) && pauses[0] <= Duration::from_millis(100), "{pauses:?}");
    assert!(pauses[39] >= Duration::from_millis(1500) && pauses[39] <= Duration::from_secs(3), "{pauses:?}");
    backoff.reset();
    assert!(backoff.next() <= Duration::from_millis(100));
}

#[test]
fn answers_are_classified_by_the_reaction() {
    let class = |code, text| Error::from_status("do it", code, text);
    assert!(class(404, "not found").is_gone());
    assert!(class(422, "metadata.uid: Invalid value: \"x\": field is immutable").is_gone());
    assert!(class(409, "Precondition failed: UID in precondition: a, UID in object meta: b").is_gone());
    // an account that may create Events is not told that it lacks the right
    let goes =
        r#"events "a.1" is forbidden: unable to create new content in namespace a because it is being terminated"#;
    assert!(class(403, goes).is_gone());
    let unmet = "the server rejected our request due to an error in our request";
    assert!(matches!(class(422, unmet), Error::Conflict { .. }));
    assert!(matches!(class(422, "metadata.annotations: too long"), Error::Refused { .. }));
    assert!(matches!(class(409, "the object has been modified"), Error::Conflict { .. }));
    for code in [401, 408, 429, 500, 503, 504] {
        assert!(class(code, "x").is_retryable(), "{code}");
    }
    for code in [400, 403, 405, 413] {
        assert!(!class(code, "x").is_retryable() && !class(code, "x").is_gone(), "{code}");
    }
    assert_eq!(class(403, "a\n b").to_string(), "cannot do it: a b (403)");
}

/// A file of its own for each test.
fn file(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ovnkube-watch-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

async fn refused(access: Access) -> String {
    let error = Client::connect(&access).await.unwrap_err();
    assert!(matches!(error, Error::Access(_)) && !error.is_retryable());
    let text = error.to_string();
    assert!(!text.contains('\n') && !text.contains("s3cret"), "{text}");
    text
}

#[tokio::test]
async fn access_that_cannot_work_is_refused_in_one_line() {
    let kubeconfig = async |name: &str, text: &str| {
        let path = file(name, text);
        let said = refused(Access { kubeconfig: Some(path.clone()), ..Access::default() }).await;
        std::fs::remove_file(&path).unwrap();
        said.replace(&path.display().to_string(), "FILE")
    };
    let missing = Access { kubeconfig: Some("/nonexistent".into()), ..Access::default() };
    let remedy = "set k8s-kubeconfig to one that kubectl can use";
    let said = refused(missing).await;
    assert_eq!(said, format!("cannot read kubeconfig /nonexistent: No such file or directory (os error 2); {remedy}"));
    let endless = Access { kubeconfig: Some("/dev/zero".into()), ..Access::default() };
    let said = refused(endless).await;
    assert_eq!(
        said,
        format!("cannot read kubeconfig /dev/zero: it is not a regular file of a sensible size; {remedy}")
    );
    let said = kubeconfig("broken", "users:\n- user: {token: s3cret\n  - ]: s3cret").await;
    assert!(said.starts_with("cannot read kubeconfig FILE: it is not a kubeconfig: line "), "{said}");
    let said = kubeconfig("typed", "users: s3cret").await;
    assert!(said.starts_with("cannot read kubeconfig FILE: it is not a kubeconfig"), "{said}");
    let said = kubeconfig("empty", "{}").await;
    assert!(said.starts_with("cannot read kubeconfig FILE: it has no current-context"), "{said}");
    let said = kubeconfig("context", "{current-context: c, contexts: []}").await;
    assert!(said.starts_with("cannot read kubeconfig FILE: failed to load current context: c"), "{said}");
    let whole = |user: &str| {
        format!(
            "{{current-context: c, contexts: [{{name: c, context: {{cluster: k, user: u}}}}],
            clusters: [{{name: k, cluster: {{server: 'https://127.0.0.1:1'}}}}], users: [{{name: u, user: {user}}}]}}"
        )
    };
    let said = kubeconfig("exec", &whole("{exec: {command: touch, args: [/tmp/never], apiVersion: x}}")).await;
    assert!(said.contains("credential plugin, which a daemon does not"), "{said}");
    let path = file("silent", &whole("{exec: {command: sleep, args: ['20'], apiVersion: x, interactiveMode: Never}}"));
    let within = Some(Duration::from_millis(200));
    let asked = Instant::now();
    let said = refused(Access { kubeconfig: Some(path.clone()), plugin: within, ..Access::default() }).await;
    std::fs::remove_file(&path).unwrap();
    assert!(
        said.contains("credential plugin \"sleep\" of the kubeconfig: it has not ended within 200ms; run it"),
        "{said}"
    );
    assert!(asked.elapsed() < Duration::from_secs(10));
    let said = kubeconfig("certificate", &whole("{client-certificate: /nonexistent, client-key: /nonexistent}")).await;
    assert!(said.contains("/nonexistent"), "{said}");

    let explicit = |apiserver: &str| Access { apiserver: Some(apiserver.into()), ..Access::default() };
    for address in ["localhost:8443", "ftp://x", "https://", "/var/run/x", "http://a b"] {
        let said = refused(explicit(address)).await;
        assert!(said.starts_with(&format!("cannot use k8s-apiserver {address:?}: ")), "{said}");
    }
    let said = refused(Access { token: Some("s3cret\u{7}".to_owned().into()), ..explicit("https://x") }).await;
    assert!(said.starts_with("cannot use the token: "), "{said}");
    let said = refused(Access { token_file: Some("/nonexistent".into()), ..explicit("https://x") }).await;
    assert_eq!(said, "cannot read token file /nonexistent: No such file or directory (os error 2)");
    for (data, problem) in
        [("{", "it is not base64 of PEM: "), ("AAAA", "it has no certificate"), ("", "it has no certificate")]
    {
        let said = refused(Access { ca_data: Some(data.into()), ..explicit("https://x") }).await;
        assert!(said.starts_with(&format!("cannot read k8s-cacert-data: {problem}")), "{said}");
    }
    let said = refused(Access { ca: Some("/dev/null".into()), ..explicit("https://x") }).await;
    assert_eq!(said, "cannot read k8s-cacert /dev/null: it has no certificate");
    let said = refused(Access::default()).await;
    assert!(
        said.starts_with("cannot find the API server: ") && said.ends_with("set k8s-kubeconfig or k8s-apiserver"),
        "{said}"
    );
}

/// Settings with `http://` and a token work, but log that the token is no longer secret.
#[tokio::test]
async fn a_token_in_clear_text_is_warned_of() {
    let warnings = async |server: &str, token: Option<&str>| {
        let log = Log::default();
        let written = log.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || written.clone()).finish();
        let _guard = tracing::subscriber::set_default(subscriber);
        let token = token.map(|token| token.to_owned().into());
        let access = Access { apiserver: Some(server.into()), token, role: "node".into(), ..Access::default() };
        Client::connect(&access).await.unwrap();
        String::from_utf8(log.0.lock().unwrap().clone()).unwrap()
    };
    let said = warnings("http://192.0.2.1:8080", Some("s3cret")).await;
    assert!(said.contains("WARN") && said.contains("in clear text") && said.contains("https://"), "{said}");
    assert!(!said.contains("s3cret") && said.lines().count() == 1, "{said}");
    for (server, token) in [
        ("http://192.0.2.1:8080", None),
        ("https://192.0.2.1:8080", Some("s3cret")),
        ("http://localhost:8443", Some("s3cret")),
        ("http://127.0.0.1:8443", Some("s3cret")),
        ("http://[::1]:8443", Some("s3cret")),
    ] {
        assert_eq!(warnings(server, token).await, "", "{server}");
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        std::io::Write::write(&mut *self.0.lock().unwrap(), text)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn secrets_are_not_shown() {
    let access = Access { token: Some("s3cret".to_owned().into()), ..Access::default() };
    assert!(!format!("{access:?}").contains("s3cret"));
}

/// An address that a cloud translates to the node's address is on none of its links.
#[test]
fn a_nodes_external_address_is_no_services() {
    let address = |kind: &str, address: &str| json!({"type": kind, "address": address});
    let addresses =
        [address("Hostname", "n1"), address("InternalIP", "172.18.0.2"), address("ExternalIP", "192.0.2.9")];
    let node = json!({"kind": "Node", "metadata": {"name": "n1"}, "status": {"addresses": addresses}});
    let service = json!({"kind": "Service", "metadata": {"name": "web", "namespace": "a"}, "spec": {
        "clusterIP": "10.96.0.7", "externalIPs": ["192.0.2.9", "192.0.2.10"], "ports": [{"port": 80}],
    }});
    let Ok(Change::Node(name, Some(node))) = crate::decode(&node.to_string()) else { panic!("a node") };
    let Ok(Change::Service(key, Some(service))) = crate::decode(&service.to_string()) else { panic!("a service") };
    let port = service.ports[0].clone();
    let mut services = ovnkube_model::Services::default();
    services.apply_service(&key, Some(*service));
    services.apply_node(&name, node.ips());
    assert_eq!(services.external_ips(&key, &port), ["192.0.2.10".parse::<std::net::IpAddr>().unwrap()]);
    let notices = services.notices(&key);
    assert!(
        notices.iter().any(|notice| notice.message.contains("external address 192.0.2.9: it is node n1's")),
        "{notices:?}"
    );
    assert_eq!(services.node_ip("n1", ovnkube_model::Family::V4), Some("172.18.0.2".parse().unwrap()));
}

#[tokio::test]
async fn a_busy_server_says_when_to_ask_again() {
    let busy = |status: &str, wait: &str| {
        format!("HTTP/1.1 {status}\r\nretry-after: {wait}\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbusy")
    };
    let (many, down) = ("429 Too Many Requests", "503 Service Unavailable");
    let script = [busy(many, "7"), busy(down, "86400"), busy(many, "soon"), busy("403 Forbidden", "7")];
    let (client, _) = server(script.into()).await;
    let node = async || client.annotate_node("n1", "u", &crate::Annotations::new()).await.unwrap_err();
    for expected in [Some(7), Some(60), None] {
        let error = node().await;
        assert!(error.is_retryable() && error.to_string().contains("busy"), "{error}");
        assert_eq!(error.retry_after(), expected.map(Duration::from_secs), "{error}");
    }
    assert!(node().await.is_forbidden());
}
