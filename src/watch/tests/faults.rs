//! Watches while the API server, or the connection to it, fails.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod lab;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lab::{Cluster, Log, Proxy, news_comes_after_silence, next, until};
use ovnkube_model::{Change, Kind, Notice, Object, Severity};
use ovnkube_watch::{Access, Annotations, Client, Events, Scope, start};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::{sleep, timeout};

/// A pod that was added (its uid) or deleted.
fn pod(change: Change) -> Option<(String, Option<String>)> {
    match change {
        Change::Pod(key, pod) => Some((key.to_string(), pod.map(|p| p.uid.to_string()))),
        _ => None,
    }
}

/// The API's pods by name, with their uids.
async fn pods(cluster: &Cluster) -> BTreeMap<String, String> {
    let list = cluster.get("/api/v1/pods").await;
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let entry = |pod: &serde_json::Value| {
        let meta = &pod["metadata"];
        (format!("{}/{}", text(&meta["namespace"]), text(&meta["name"])), text(&meta["uid"]))
    };
    list["items"].as_array().unwrap().iter().map(entry).collect()
}

async fn synced(changes: &mut Receiver<Change>) {
    next(changes, |change| (change == Change::Synced(Kind::Pod)).then_some(())).await;
}

#[tokio::test]
async fn changes_during_a_lost_history_arrive_as_a_diff() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let cluster = Cluster::up();
    let proxy = Proxy::to(cluster.port()).await;
    cluster.namespace("ns").await;
    for name in ["stays", "goes", "again"] {
        cluster.pod("ns", name, "n1").await;
    }
    let client = Client::connect(&cluster.access(proxy.port)).await.unwrap();
    let (sender, mut changes) = channel(16);
    let _watches = start(&client, &Scope::Node("n1".into()), &sender);
    synced(&mut changes).await;

    proxy.shut();
    cluster.delete_pod("ns", "goes").await;
    cluster.delete_pod("ns", "again").await;
    let again = cluster.pod("ns", "again", "n1").await;
    cluster.pod("ns", "new", "n1").await;
    cluster.restart_apiserver();
    proxy.open();

    let mut heard = Vec::new();
    while heard.len() < 5 {
        heard.push(next(&mut changes, pod).await);
    }
    assert!(log.holds("too old; listing again"), "the watch was resumed instead");
    // the deletion of the recreated pod arrived before its creation; the order of the others is free
    let at =
        |wanted: (&str, Option<&str>)| heard.iter().position(|(n, u)| (n.as_str(), u.as_deref()) == wanted).unwrap();
    assert!(at(("ns/again", None)) < at(("ns/again", Some(&again))));
    at(("ns/goes", None));
    assert!(heard.iter().any(|(name, uid)| name == "ns/new" && uid.is_some()));
    assert!(heard.iter().any(|(name, uid)| name == "ns/stays" && uid.is_some()));
    // synced arrives only once; and later changes are watched again
    cluster.delete_pod("ns", "new").await;
    let mut change = timeout(lab::PATIENCE, changes.recv()).await.unwrap().unwrap();
    // the API server's own service and range, whose lists arrive on watches of their own
    while matches!(change, Change::Service(..) | Change::EndpointSlice(..) | Change::ServiceCidr(..)) {
        change = timeout(lab::PATIENCE, changes.recv()).await.unwrap().unwrap();
    }
    assert!(matches!(&change, Change::Pod(key, _) if key.name.as_ref() == "new"), "{change:?}");
}

#[tokio::test]
async fn nothing_is_lost_while_connections_break() {
    let cluster = Cluster::up();
    let proxy = Arc::new(Proxy::to(cluster.port()).await);
    cluster.namespace("ns").await;
    let client = Client::connect(&cluster.access(proxy.port)).await.unwrap();
    let (sender, mut changes) = channel(4);
    let _watches = start(&client, &Scope::Controller, &sender);
    let have = Arc::new(Mutex::new(BTreeMap::new()));
    let kept = have.clone();
    tokio::spawn(async move {
        while let Some(change) = changes.recv().await {
            let Some((name, uid)) = pod(change) else { continue };
            let mut have = kept.lock().unwrap();
            match uid {
                Some(uid) => have.insert(name, uid),
                None => have.remove(&name),
            };
        }
    });
    let breaking = proxy.clone();
    let breaks = tokio::spawn(async move {
        loop {
            sleep(Duration::from_millis(150)).await;
            breaking.shut();
            sleep(Duration::from_millis(30)).await;
            breaking.open();
        }
    });
    for round in 0..300_u32 {
        let name = format!("p{}", round.wrapping_mul(2_654_435_761) % 7);
        if pods(&cluster).await.contains_key(&format!("ns/{name}")) {
            cluster.delete_pod("ns", &name).await;
        } else {
            cluster.pod("ns", &name, "n1").await;
        }
    }
    breaks.abort();
    proxy.open();
    let want = pods(&cluster).await;
    until("the same pods", async || *have.lock().unwrap() == want).await;
}

/// Node agents have no lease by which they would notice. A cluster without news looks the same, but such a server answers pings.
#[tokio::test]
async fn an_api_server_that_stands_still_is_left_without_a_lease() {
    let cluster = Cluster::up();
    let proxy = Proxy::to(cluster.port()).await;
    let client = Client::connect(&cluster.access(proxy.port)).await.unwrap();
    news_comes_after_silence(&cluster, &proxy, &client, Duration::from_secs(90)).await;
}

#[tokio::test]
async fn starts_before_the_api_server_answers() {
    let cluster = Cluster::shared();
    let proxy = Proxy::to(cluster.port()).await;
    proxy.shut();
    let client = Client::connect(&cluster.access(proxy.port)).await.unwrap();
    let (sender, mut changes) = channel(4);
    let _watches = start(&client, &Scope::Nodes, &sender);
    assert!(timeout(Duration::from_millis(500), changes.recv()).await.is_err(), "a change through a shut proxy");
    proxy.open();
    next(&mut changes, |change| (change == Change::Synced(Kind::Node)).then_some(())).await;
}

/// A client without a right keeps asking, and the log has each kind of request once.
#[tokio::test]
async fn a_forbidden_request_is_logged_once() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let cluster = Cluster::shared();
    let client = Client::connect(&Access { token: None, ..cluster.access(cluster.port()) }).await.unwrap();
    for name in ["one", "two"] {
        let annotations = Annotations::from([("n".to_owned(), None)]);
        assert!(client.annotate_node(name, "uid", &annotations).await.unwrap_err().is_forbidden());
        assert_eq!(log.count("WARN"), 1);
    }
    let object = Object::Node { name: "one".into(), uid: "uid".into() };
    let notice = |reason| Notice { object: object.clone(), severity: Severity::Warning, reason, message: "m".into() };
    let events = Events::start(&client, "ovnkube", "host1");
    for reason in ["One", "Two"] {
        events.publish(notice(reason));
    }
    until("the first Event is refused", async || log.holds("create event One")).await;
    until("all Events were sent", async || events.is_idle()).await;
    assert_eq!(log.count("WARN"), 2);
}
