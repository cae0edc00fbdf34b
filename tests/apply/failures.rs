//! Failures are retried with backoff, block nothing else, and are not forgotten.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use ovnkube_ovn::nb::{acl, address_set, logical_switch_port as lsp};
use ovnkube_ovsdb::{Client, Remote};
use ovnkube_tests::api::{Api, Running};
use ovnkube_tests::nb::{Release, Server, until};
use ovnkube_tests::settings::Settings;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::sleep;

/// No column can hold a NUL.
const REFUSED: &str = "a\u{0}b";

/// A refused patch waits longer each time, although its pod's rows are written each time.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_patch_is_retried_with_backoff() {
    let (api, server) = (Api::up().await, Server::new(Release::Lts));
    let nb = server.client().await;
    api.namespace("a").await;
    let annotations = json!({
        "k8s.ovn.org/node-chassis-id": "chassis-n1", "k8s.ovn.org/node-id": "1",
        "k8s.ovn.org/node-subnets": r#"{"default":["10.128.0.0/23"]}"#,
    });
    api.node("n1", annotations).await;
    api.pod("a", "p0", "n1", json!({})).await;
    let reader = api.reader().await;
    let network = Settings::default().network();
    let engine = Running::with(&reader, network, Some(server.client().await), None, Arc::new(|| true)).await;
    until("the pod's rows", async || !nb.cache().lookup(lsp::TABLE, "a_p0").is_empty()).await;
    until("the patch is refused", async || engine.metrics.patch_errors.get() > 0).await;
    // their reply may come after the refusal
    until("the rows are answered", async || engine.metrics.transactions.get() > 0).await;
    let mut sent = 0;
    until("no more rows", async || {
        sleep(Duration::from_secs(1)).await;
        std::mem::replace(&mut sent, engine.metrics.transactions.get()) == engine.metrics.transactions.get()
    })
    .await;
    let (refused, started) = (engine.metrics.patch_errors.get(), tokio::time::Instant::now());
    for n in 0..30 {
        // whatever changes on the pod, the same patch is not sent again for it
        let labels = json!({"metadata": {"labels": {"n": n.to_string()}}});
        api.ask(Method::PATCH, "/api/v1/namespaces/a/pods/p0", labels).await.unwrap();
        sleep(Duration::from_millis(100)).await;
    }
    // two objects: retries after 0.2, 0.4, 0.8 … seconds, of which the first may be over
    let (refused, took) = (engine.metrics.patch_errors.get() - refused, started.elapsed().as_secs_f64());
    let most = 2.0 * ((took / 0.2 + 1.0).log2().ceil() + 2.0);
    assert!(refused as f64 <= most, "{refused} more patches in {took} s, {most} at most");
    assert_eq!(engine.metrics.transactions.get(), sent, "rows that are written already");
}

/// A key whose rows are refused is tried at once when its object changes, but not more than five times a second,
/// and the changes do not increase its backoff.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_key_that_changes_all_the_time_is_limited() {
    let (api, server) = (Api::up().await, Server::new(Release::Lts));
    let nb = server.client().await;
    let engine = Running::start(&api, Settings::default().network(), Some(server.client().await)).await;
    engine.ready().await;
    api.node("bad", json!({"k8s.ovn.org/node-chassis-id": REFUSED})).await;
    until("its rows are refused", async || engine.metrics.transaction_errors.get() > 0).await;
    let started = tokio::time::Instant::now();
    for n in 0..40 {
        let other = json!({"metadata": {"annotations": {"k8s.ovn.org/node-chassis-id": format!("{REFUSED}{n}")}}});
        api.ask(Method::PATCH, "/api/v1/nodes/bad", other).await.unwrap();
        sleep(Duration::from_millis(20)).await;
    }
    sleep(Duration::from_secs(2)).await;
    let (errors, most) = (engine.metrics.transaction_errors.get(), 5.0 * started.elapsed().as_secs_f64() + 8.0);
    assert!(errors as f64 <= most, "refused {errors} times, {most} at most");
    let mended = json!({"metadata": {"annotations": {"k8s.ovn.org/node-chassis-id": "good"}}});
    let started = tokio::time::Instant::now();
    api.ask(Method::PATCH, "/api/v1/nodes/bad", mended).await.unwrap();
    until("the rows of the corrected node", async || !nb.cache().lookup(lsp::TABLE, "stor-bad").is_empty()).await;
    // without waiting for a backoff from all these failures
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
}

/// The lease is lost briefly: a sweep that was due in that time runs once the lease is back, without waiting for
/// another change.
#[tokio::test(flavor = "multi_thread")]
async fn work_due_without_the_lease_is_done_when_it_is_back() {
    let (api, server) = (Api::up().await, Server::new(Release::Lts));
    let nb = server.client().await;
    let lease = Arc::new(AtomicBool::new(true));
    let held = lease.clone();
    let may_write = Arc::new(move || held.load(Ordering::Relaxed));
    let network = Settings::default().network();
    let engine = Running::with(&api.access(), network, Some(server.client().await), None, may_write).await;
    engine.ready().await;
    lease.store(false, Ordering::Relaxed);
    let id = "external_ids:k8s.ovn.org/";
    server.nbctl(&[
        "create",
        "address_set",
        "name=leftover",
        &format!("{id}owner-controller=default-network-controller"),
        &format!("{id}owner-type=PodSelector"),
        &format!("{id}name=nobody"),
        &format!("{id}ip-family=v4"),
        &format!("{id}primary-id=default-network-controller\\:PodSelector\\:nobody\\:v4"),
    ]);
    let is_there = || !nb.cache().lookup(address_set::TABLE, "leftover").is_empty();
    until("the leftover row", async || is_there()).await;
    sleep(Duration::from_millis(1500)).await;
    assert!(is_there(), "nothing is written without the lease");
    lease.store(true, Ordering::Relaxed);
    until("the leftover row is gone", async || !is_there()).await;
}

/// Writing is refused at any of the next questions and allowed at those that follow, as when the lease is renewed in time but
/// late: a pod has its port and its annotation soon, without waiting for another change.
#[tokio::test(flavor = "multi_thread")]
async fn work_refused_for_a_moment_is_done_in_the_next() {
    let (api, server) = (Api::up().await, Server::new(Release::Lts));
    let nb = server.client().await;
    api.namespace("a").await;
    api.node("n1", json!({"k8s.ovn.org/node-chassis-id": "chassis-n1"})).await;
    let refusals = Arc::new(AtomicUsize::new(0));
    let left = refusals.clone();
    // the lowest bit answers the next question
    let may_write = Arc::new(move || {
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |bits| Some(bits >> 1)).unwrap() & 1 == 0
    });
    let network = Settings::default().network();
    let engine = Running::with(&api.access(), network, Some(server.client().await), None, may_write).await;
    engine.ready().await;
    for pattern in 1_usize..32 {
        // the last pod's events are in: they would use up questions
        sleep(Duration::from_millis(300)).await;
        refusals.store(pattern, Ordering::Relaxed);
        let (pod, started) = (format!("p{pattern}"), tokio::time::Instant::now());
        api.pod("a", &pod, "n1", json!({})).await;
        let path = format!("/api/v1/namespaces/a/pods/{pod}");
        let is_annotated =
            async || !api.get(&path).await["metadata"]["annotations"]["k8s.ovn.org/pod-networks"].is_null();
        until(&format!("port and annotation after the refusals {pattern:b}"), async || {
            !nb.cache().lookup(lsp::TABLE, &format!("a_{pod}")).is_empty() && is_annotated().await
        })
        .await;
        assert!(started.elapsed() < Duration::from_secs(60), "{pattern:b}: {:?}", started.elapsed());
    }
}

/// A proxy to the server that accepts at most `most` bytes without a reply: more end the connection, like requests that take
/// a cluster longer than its members' timeouts.
fn narrow(server: &Path, most: usize) -> PathBuf {
    let socket = server.with_extension("narrow");
    let listener = UnixListener::bind(&socket).unwrap();
    let server = server.to_owned();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = UnixStream::connect(&server).await.unwrap().into_split();
            tokio::spawn(async move {
                let asked = AtomicUsize::new(0);
                let requests = async {
                    let mut part = vec![0; 1 << 16];
                    while let Ok(length @ 1..) = from_client.read(&mut part).await {
                        if asked.fetch_add(length, Ordering::Relaxed) + length > most {
                            return;
                        }
                        to_server.write_all(&part[..length]).await.unwrap();
                    }
                };
                let replies = async {
                    let mut part = vec![0; 1 << 16];
                    while let Ok(length @ 1..) = from_server.read(&mut part).await {
                        asked.store(0, Ordering::Relaxed);
                        if to_client.write_all(&part[..length]).await.is_err() {
                            return;
                        }
                    }
                };
                tokio::select! { () = requests => {}, () = replies => {} }
            });
        }
    });
    socket
}

/// A transaction whose outcome stays unknown is not repeated unchanged forever: half of it is tried.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_is_lost_again_and_again_is_halved() {
    const POLICIES: usize = 600;
    let (api, server) = (Api::up().await, Server::new(Release::Lts));
    let nb = server.client().await;
    api.namespace("a").await;
    api.node("n1", json!({"k8s.ovn.org/node-chassis-id": "chassis-n1"})).await;
    api.pod("a", "p0", "n1", json!({})).await;
    let network = Settings::default().network();
    let engine = Running::start(&api, network.clone(), Some(server.client().await)).await;
    until("the pod is wired", async || !nb.cache().lookup(lsp::TABLE, "a_p0").is_empty()).await;
    drop(engine);
    for number in 0..POLICIES {
        let spec = json!({"podSelector": {}, "ingress": [{"ports": [{"port": number + 1}]}]});
        let policy = json!({"metadata": {"name": format!("p{number}")}, "spec": spec});
        let path = "/apis/networking.k8s.io/v1/namespaces/a/networkpolicies";
        api.ask(Method::POST, path, policy).await.unwrap();
    }
    let mut options = server.options();
    options.remotes = vec![Remote::Unix(narrow(&server.socket(), 400_000)); 20];
    let engine = Running::start(&api, network, Some(Client::connect(options))).await;
    until("all policies are written", async || nb.cache().len(acl::TABLE) > POLICIES).await;
    assert!(engine.metrics.transaction_errors.get() >= 2);
}
