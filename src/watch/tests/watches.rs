//! Watches, patches and access against a real API server.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod lab;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use lab::{Cluster, next, set, until};
use ovnkube_model::{Backend, Change, Family, Kind, Name, Notice, Object, ObjectKey, PodKey, Services, Severity};
use ovnkube_watch::{Access, Client, Condition, Endpoints, Error, Events, Given, Scope, start};
use serde_json::{Value, json};
use tokio::sync::mpsc::channel;
use tokio::time::timeout;

#[tokio::test]
async fn everything_there_is_comes_before_synced_and_in_pages() {
    let cluster = Cluster::shared();
    // a page of nodes holds 100
    for number in 0..130 {
        cluster.node(&format!("page-{number}")).await;
    }
    let (sender, mut changes) = channel(1);
    let _watches = start(&cluster.client().await, &Scope::Nodes, &sender);
    let mut seen = BTreeSet::new();
    next(&mut changes, |change| match change {
        Change::Node(name, Some(node)) => {
            assert!(!node.uid.is_empty() && node.created > 1_600_000_000);
            if name.starts_with("page-") {
                assert!(seen.insert(name.clone()), "{name} came twice");
            }
            None
        }
        Change::Synced(Kind::Node) => Some(()),
        other => panic!("{other:?} was not requested"),
    })
    .await;
    assert_eq!(seen.len(), 130);
}

#[tokio::test]
async fn pods_come_change_and_go() {
    let cluster = Cluster::shared();
    cluster.namespace("life").await;
    let (sender, mut changes) = channel(16);
    let _watches = start(&cluster.client().await, &Scope::Controller, &sender);
    let mut missing: BTreeSet<Kind> = Scope::Controller.kinds().iter().copied().collect();
    let mut namespace = None;
    while !missing.is_empty() {
        let kind = next(&mut changes, |change| match change {
            Change::Synced(kind) => Some(kind),
            Change::Namespace(name, Some(found)) => {
                namespace = namespace.take().or((name.as_ref() == "life").then_some(found.uid));
                None
            }
            _ => None,
        })
        .await;
        assert!(missing.remove(&kind), "{kind:?} was synced twice");
    }
    assert!(namespace.is_some());

    let pod = |change| match change {
        Change::Pod(key, pod) if key.namespace.as_ref() == "life" => Some((key, pod)),
        _ => None,
    };
    let uid = cluster.pod("life", "web", "n1").await;
    let (key, found) = next(&mut changes, pod).await;
    assert_eq!((key.to_string().as_str(), found.as_ref().unwrap().uid.as_ref()), ("life/web", uid.as_str()));
    assert_eq!(found.unwrap().node.as_deref(), Some("n1"));

    let path = "/api/v1/namespaces/life/pods/web/status";
    cluster.ask(Method::PATCH, path, json!({"status": {"phase": "Succeeded"}})).await.unwrap();
    next(&mut changes, |change| pod(change).filter(|(_, pod)| pod.as_ref().unwrap().finished)).await;
    cluster.delete_pod("life", "web").await;
    next(&mut changes, |change| pod(change).filter(|(_, pod)| pod.is_none())).await;
}

#[tokio::test]
async fn node_sees_itself_and_its_pods_only() {
    let cluster = Cluster::shared();
    cluster.namespace("mine").await;
    for node in ["scope-a", "scope-b"] {
        cluster.node(node).await;
        cluster.pod("mine", &format!("on-{node}"), node).await;
    }
    let (sender, mut changes) = channel(16);
    let scope = Scope::Node("scope-a".into());
    let _watches = start(&cluster.client().await, &scope, &sender);
    cluster.pod("mine", "later-b", "scope-b").await;
    cluster.pod("mine", "later-a", "scope-a").await;
    let mut wanted = BTreeSet::from(["scope-a", "mine/on-scope-a", "mine/later-a"].map(String::from));
    while !wanted.is_empty() {
        let name = next(&mut changes, |change| match change {
            Change::Node(name, Some(_)) => Some(name.to_string()),
            Change::Pod(key, Some(_)) => Some(key.to_string()),
            _ => None,
        })
        .await;
        assert!(name == "scope-a" || name.ends_with("-a"), "{name} is not on scope-a");
        wanted.remove(&name);
    }
}

/// The cluster manager receives pods only when they run.
#[tokio::test]
async fn cluster_manager_sees_what_runs() {
    let cluster = Cluster::shared();
    cluster.namespace("runs").await;
    cluster.node("runs-1").await;
    for pod in ["waits", "runs"] {
        cluster.pod("runs", pod, "runs-1").await;
    }
    let status = |pod: &str| format!("/api/v1/namespaces/runs/pods/{pod}/status");
    let runs = json!({"status": {"phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}]}});
    cluster.ask(Method::PATCH, &status("runs"), runs).await.unwrap();
    let (sender, mut changes) = channel(64);
    let client = cluster.client().await;
    let _watches = start(&client, &Scope::ClusterManager, &sender);
    let (mut synced, mut found) = (0, None);
    while synced < 2 {
        next(&mut changes, |change| match change {
            Change::Synced(Kind::Node | Kind::Pod) => {
                synced += 1;
                Some(())
            }
            Change::Pod(key, Some(pod)) if key.namespace.as_ref() == "runs" => {
                assert!(found.replace((key, pod)).is_none(), "a pod that does not run");
                Some(())
            }
            Change::Pod(..) | Change::Node(..) => Some(()),
            other => panic!("a cluster manager has no use for {other:?}"),
        })
        .await;
    }
    let (key, pod) = found.unwrap();
    assert_eq!((key.name.as_ref(), pod.node.as_deref()), ("runs", Some("runs-1")));
    assert!(pod.runs_with().eq(["10.1.2.3".parse::<std::net::IpAddr>().unwrap()]));
    let ends = json!({"status": {"phase": "Succeeded"}});
    cluster.ask(Method::PATCH, &status("runs"), ends).await.unwrap();
    let ended = |change| matches!(change, Change::Pod(gone, None) if gone == key).then_some(());
    next(&mut changes, ended).await;
}

#[tokio::test]
async fn services_come_with_their_endpoints_unless_others_serve_them() {
    let cluster = Cluster::shared();
    cluster.namespace("served").await;
    let service = |name: &str, labels: Value, ip: Value| {
        let spec = json!({"clusterIP": ip, "ports": [{"name": "http", "port": 80, "targetPort": "web"}]});
        json!({"metadata": {"name": name, "labels": labels}, "spec": spec})
    };
    let slice = |name: &str, mut labels: Value| {
        labels["kubernetes.io/service-name"] = json!("web");
        let endpoint = json!({"addresses": ["10.1.0.3"], "nodeName": "n1", "hints": {"forZones": [{"name": "a"}]}});
        let ports = json!([{"name": "http", "port": 8080}]);
        json!({"metadata": {"name": name, "labels": labels}, "addressType": "IPv4", "ports": ports, "endpoints": [endpoint]})
    };
    let (services, slices) =
        ("/api/v1/namespaces/served/services", "/apis/discovery.k8s.io/v1/namespaces/served/endpointslices");
    let proxied = json!({"service.kubernetes.io/service-proxy-name": "other"});
    cluster.create(services, service("others", proxied.clone(), Value::Null)).await;
    cluster.create(slices, slice("others-1", proxied.clone())).await;
    let headless = json!({"service.kubernetes.io/headless": ""});
    cluster.create(services, service("headless", headless.clone(), Value::Null)).await;
    cluster.create(slices, slice("headless-1", headless)).await;
    let (sender, mut changes) = channel(16);
    let _watches = start(&cluster.client().await, &Scope::Node("n1".into()), &sender);
    cluster.create(services, service("web", json!({}), Value::Null)).await;
    cluster.create(slices, slice("web-1", json!({}))).await;
    let mut known = Services::default();
    let key = ObjectKey::new("served", "web");
    let found = next(&mut changes, |change| {
        match change {
            Change::Service(key, service) if key.namespace.as_ref() == "served" => {
                assert_eq!(key.name.as_ref(), "web", "a service that others serve");
                known.apply_service(&key, service.map(|s| *s));
            }
            Change::EndpointSlice(key, slice) if key.namespace.as_ref() == "served" => {
                assert_eq!(key.name.as_ref(), "web-1", "endpoints of a service that others serve");
                known.apply_slice(&key, slice.map(|s| *s));
            }
            _ => return None,
        }
        let port = known.get(&key)?.ports.first()?;
        let backends = known.backends(&key, port, Family::V4);
        (!backends.is_empty()).then(|| (backends.local("n1"), backends.has_hints()))
    })
    .await;
    assert_eq!(found, (vec![Backend { ip: "10.1.0.3".parse().unwrap(), port: 8080 }], true));

    // passed to another proxy
    let path = format!("{services}/web");
    cluster.ask(Method::PATCH, &path, json!({"metadata": {"labels": proxied}})).await.unwrap();
    next(&mut changes, |change| (change == Change::Service(key.clone(), None)).then_some(())).await;
}

#[tokio::test]
async fn ranges_of_services_come_and_go() {
    let cluster = Cluster::shared();
    let (sender, mut changes) = channel(16);
    let _watches = start(&cluster.client().await, &Scope::Node("n1".into()), &sender);
    let ranges = "/apis/networking.k8s.io/v1/servicecidrs";
    cluster.create(ranges, json!({"metadata": {"name": "more"}, "spec": {"cidrs": ["10.97.0.0/16"]}})).await;
    let more = |change| match change {
        Change::ServiceCidr(name, range) if name.as_ref() == "more" => Some(range),
        _ => None,
    };
    let range = next(&mut changes, more).await.unwrap();
    assert_eq!((range.cidrs, range.bad), (vec!["10.97.0.0/16".parse().unwrap()], vec![]));
    cluster.ask(Method::DELETE, &format!("{ranges}/more"), Value::Null).await.unwrap();
    next(&mut changes, |change| more(change).filter(Option::is_none)).await;
}

#[tokio::test]
async fn a_patch_changes_only_the_intended_pod() {
    let cluster = Cluster::shared();
    let client = cluster.client().await;
    cluster.namespace("patch").await;
    let key = PodKey::new("patch", "again");
    let path = "/api/v1/namespaces/patch/pods/again";

    let old = cluster.pod("patch", "again", "n1").await;
    let give = async |uid: &str, name, seen: Option<Option<&str>>, text: &str| {
        let (annotations, seen) = ([(name, text.to_owned())], seen.map(|seen| [seen.map(Name::from)]));
        client
            .give_pod(&key, uid, Given { annotations: &annotations, seen: seen.as_ref().map(<[_; 1]>::as_slice) })
            .await
    };
    let (networks, nothing) = ("k8s.ovn.org/pod-networks", Some(None));
    let is_conflict = |result| matches!(result, Err(Error::Conflict { .. }));
    assert!(is_conflict(give(&old, networks, nothing, "{}").await), "it has no annotations at all");
    give(&old, networks, None, "{}").await.unwrap();
    assert!(is_conflict(give(&old, networks, None, "1").await));
    give(&old, "other/quoted", nothing, "\"quoted\"").await.unwrap();
    let both = json!({networks: "{}", "other/quoted": "\"quoted\""});
    assert_eq!(cluster.get(path).await["metadata"]["annotations"], both);
    // what is replaced is no longer there, or is something else
    for seen in [nothing, Some(Some("")), Some(Some("[]"))] {
        assert!(is_conflict(give(&old, networks, seen, "1").await), "{seen:?}");
    }
    assert_eq!(cluster.get(path).await["metadata"]["annotations"], both);
    // a report of its kubelet is no conflict
    let status = json!({"status": {"phase": "Running"}});
    cluster.ask(Method::PATCH, &format!("{path}/status"), status).await.unwrap();
    give(&old, networks, Some(Some("{}")), "1").await.unwrap();
    assert_eq!(client.pod_annotation(&key, networks).await.unwrap().as_deref(), Some("1"));
    assert_eq!(client.pod_annotation(&key, "none").await.unwrap(), None);

    cluster.delete_pod("patch", "again").await;
    let error = give(&old, networks, None, "1").await.unwrap_err();
    assert!(error.is_gone() && !error.is_retryable(), "{error:?}");
    cluster.pod("patch", "again", "n1").await;
    let error = give(&old, networks, None, "1").await.unwrap_err();
    assert!(error.is_gone(), "{error:?}");
    assert!(error.to_string().starts_with("cannot annotate pod patch/again: "), "{error}");
    assert_eq!(cluster.get(path).await["metadata"]["annotations"], Value::Null);

    let new = cluster.get(path).await["metadata"]["uid"].as_str().unwrap().to_owned();
    let error = give(&new, "not a key", None, "1").await.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
}

#[tokio::test]
async fn nodes_are_annotated_too() {
    let cluster = Cluster::shared();
    let client = cluster.client().await;
    let uid = cluster.node("annotated").await;
    client.annotate_node("annotated", &uid, &set("k8s.ovn.org/node-id", "2")).await.unwrap();
    let have = cluster.get("/api/v1/nodes/annotated").await["metadata"]["annotations"].clone();
    assert_eq!(have["k8s.ovn.org/node-id"], "2");
    assert!(client.annotate_node("annotated", "other", &set("a", "1")).await.unwrap_err().is_gone());

    let status = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    cluster.ask(Method::PATCH, "/api/v1/nodes/annotated/status", status).await.unwrap();
    let mut condition =
        Condition { kind: "NetworkUnavailable", status: true, reason: "NoSubnet", message: "none is left".into() };
    client.set_node_condition("annotated", &uid, &condition).await.unwrap();
    condition.status = false;
    client.set_node_condition("annotated", &uid, &condition).await.unwrap();
    assert!(client.set_node_condition("annotated", "other", &condition).await.unwrap_err().is_gone());
    let have = cluster.get("/api/v1/nodes/annotated").await["status"]["conditions"].clone();
    let mut have: Vec<_> = have.as_array().unwrap().iter().map(|c| format!("{}={}", c["type"], c["status"])).collect();
    have.sort();
    assert_eq!(have, [r#""NetworkUnavailable"="False""#, r#""Ready"="True""#]);
    assert!(client.annotate_node("nobody", &uid, &set("a", "1")).await.unwrap_err().is_gone());
    let error = client.annotate_node("annotated", &uid, &set("not a key", "1")).await.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
}

#[tokio::test]
async fn token_file_is_read_again_when_it_changes() {
    let cluster = Cluster::shared();
    let uid = cluster.node("token").await;
    let file = cluster.file("rotating.token");
    let write = |token: &str| {
        // like kubelet: a new file replaces the old one
        let next = file.with_extension("next");
        std::fs::write(&next, format!("{token}\n")).unwrap();
        std::fs::rename(&next, &file).unwrap();
    };
    write(&cluster.token());
    let access = Access { token: None, token_file: Some(file.clone()), ..cluster.access(cluster.port()) };
    let client = Client::connect(&access).await.unwrap();
    client.annotate_node("token", &uid, &set("n", "1")).await.unwrap();
    write("expired");
    let error = client.annotate_node("token", &uid, &set("n", "2")).await.unwrap_err();
    assert!(error.is_retryable(), "{error:?}");
    assert_eq!(
        error.to_string(),
        "cannot annotate node token: Unauthorized (401); check the token or client certificate"
    );
    write(&cluster.token());
    client.annotate_node("token", &uid, &set("n", "3")).await.unwrap();
    std::fs::remove_file(&file).unwrap();
    client.annotate_node("token", &uid, &set("n", "4")).await.unwrap();
}

#[tokio::test]
async fn access_by_kubeconfig_and_refusals() {
    let cluster = Cluster::shared();
    let uid = cluster.node("access").await;
    let kubeconfig = Access { kubeconfig: Some(cluster.kubeconfig()), ..Access::default() };
    let client = Client::connect(&kubeconfig).await.unwrap();
    client.annotate_node("access", &uid, &set("n", "1")).await.unwrap();

    let pem = std::fs::read_to_string(cluster.file("ca.crt")).unwrap();
    for ca in [STANDARD.encode(&pem), pem] {
        let with_data = Access { ca: None, ca_data: Some(format!("{ca}\n")), ..cluster.access(cluster.port()) };
        Client::connect(&with_data).await.unwrap().annotate_node("access", &uid, &set("n", "1")).await.unwrap();
    }

    let stranger = Access { ca: None, ca_data: Some(other_ca(&cluster)), ..cluster.access(cluster.port()) };
    let client = Client::connect(&stranger).await.unwrap();
    let error = client.annotate_node("access", &uid, &set("n", "2")).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("set k8s-cacert to the CA"), "{error}");

    let nobody = Access { token: None, ..cluster.access(cluster.port()) };
    let client = Client::connect(&nobody).await.unwrap();
    let error = client.annotate_node("access", &uid, &set("n", "2")).await.unwrap_err();
    assert!(matches!(error, Error::Forbidden { .. }) && error.to_string().contains("forbidden"), "{error}");
}

/// A kubelet's certificate is replaced before it expires, and the cluster's CA at some time, while the process runs.
#[tokio::test]
async fn certificates_of_a_kubeconfig_are_read_again() {
    let cluster = Cluster::shared();
    let uid = cluster.node("renewed").await;
    let (stranger, kubelet) = (cluster.user("stranger", &[]), cluster.user("system:node:renewed", &["system:nodes"]));
    let dir = cluster.file("renewed");
    std::fs::create_dir(&dir).unwrap();
    let certificate = |user: &Path| {
        for kind in ["crt", "key"] {
            let new = dir.join(format!("{kind}.new"));
            std::fs::copy(user.with_extension(kind), &new).unwrap();
            std::fs::rename(new, dir.join(kind)).unwrap();
        }
    };
    certificate(&stranger);
    let text = |path: &Path| path.display().to_string();
    let server = format!("https://127.0.0.1:{}", cluster.port());
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": text(&dir.join("ca"))}}],
        "users": [{"name": "u", "user": {"client-certificate": text(&dir.join("crt")), "client-key": text(&dir.join("key"))}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    });
    std::fs::write(dir.join("kubeconfig"), kubeconfig.to_string()).unwrap();
    std::fs::write(dir.join("ca"), other_ca(&cluster)).unwrap();
    let access = Access { kubeconfig: Some(dir.join("kubeconfig")), ..Access::default() };
    let client = Client::connect(&access).await.unwrap();
    let error = client.annotate_node("renewed", &uid, &set("n", "1")).await.unwrap_err();
    assert!(error.to_string().contains("set k8s-cacert to the CA"), "{error}");
    std::fs::copy(cluster.file("ca.crt"), dir.join("ca.new")).unwrap();
    std::fs::rename(dir.join("ca.new"), dir.join("ca")).unwrap();
    assert!(client.annotate_node("renewed", &uid, &set("n", "1")).await.unwrap_err().is_forbidden());
    certificate(&kubelet);
    client.annotate_node("renewed", &uid, &set("n", "2")).await.unwrap();
    // one that cannot be read is not used
    std::fs::write(dir.join("crt"), "").unwrap();
    client.annotate_node("renewed", &uid, &set("n", "3")).await.unwrap();
}

/// A CA that did not sign the API server's certificate.
fn other_ca(cluster: &Cluster) -> String {
    std::fs::read_to_string(cluster.file("front-proxy-ca.crt")).unwrap()
}

#[tokio::test]
async fn same_notice_is_one_event() {
    let cluster = Cluster::shared();
    let client = cluster.client().await;
    cluster.namespace("told").await;
    let uid = cluster.pod("told", "p", "n1").await;
    let object = Object::Pod { key: PodKey::new("told", "p"), uid: uid.as_str().into() };
    let notice =
        |reason, message: String| Notice { object: object.clone(), severity: Severity::Warning, reason, message };
    let list = async || cluster.get("/api/v1/namespaces/told/events").await["items"].as_array().unwrap().clone();

    let events = Events::start(&client, "ovnkube", "host1");
    for _ in 0..5 {
        events.publish(notice("AddressConflict", "10.0.0.3 is taken".into()));
    }
    events.publish(notice("BadAnnotation", "ä".repeat(5000)));
    until("two events", async || list().await.len() == 2).await;
    let found = list().await;
    let conflict = found.iter().find(|e| e["reason"] == "AddressConflict").unwrap();
    assert_eq!((&conflict["count"], &conflict["type"]), (&json!(1), &json!("Warning")));
    assert_eq!(conflict["involvedObject"]["uid"], json!(uid));
    assert_eq!(conflict["source"], json!({"component": "ovnkube", "host": "host1"}));

    // after a restart the same Event continues
    let again = Events::start(&client, "ovnkube", "host1");
    again.publish(notice("AddressConflict", "10.0.0.3 is taken".into()));
    until("a count of two", async || list().await.iter().any(|e| e["count"] == 2)).await;
    assert_eq!(list().await.len(), 2);

    let node = Object::Node { name: "n1".into(), uid: "u1".into() };
    again.publish(Notice { object: node, severity: Severity::Normal, reason: "SubnetGiven", message: "x".into() });
    until("the node's event in default", async || {
        let all = cluster.get("/api/v1/namespaces/default/events").await;
        all["items"].as_array().unwrap().iter().any(|e| e["reason"] == "SubnetGiven" && e["type"] == "Normal")
    })
    .await;
}

#[tokio::test]
async fn publishing_never_waits() {
    let cluster = Cluster::shared();
    let client = cluster.client().await;
    let events = Events::start(&client, "ovnkube", "host1");
    for number in 0..100_000 {
        let object = Object::Namespace { name: "nowhere".into(), uid: "u".into() };
        let message = number.to_string();
        events.publish(Notice { object, severity: Severity::Normal, reason: "Many", message });
    }
    let object = Object::Namespace { name: "nowhere".into(), uid: "u".into() };
    events.publish(Notice { object, severity: Severity::Normal, reason: "Once", message: "m".into() });
    // the first of them are sent, in order
    until("an event", async || {
        let all = cluster.get("/api/v1/namespaces/default/events").await;
        all["items"].as_array().unwrap().iter().any(|e| e["reason"] == "Many" && e["message"] == "0")
    })
    .await;
    // and so is what is said once
    until("the event behind them", async || {
        let all = cluster.get("/api/v1/namespaces/default/events").await;
        all["items"].as_array().unwrap().iter().any(|e| e["reason"] == "Once")
    })
    .await;
}

#[tokio::test]
async fn watches_end_with_their_receiver() {
    let cluster = Cluster::shared();
    let (sender, mut changes) = channel(1);
    let _watches = start(&cluster.client().await, &Scope::Controller, &sender);
    for _ in Scope::Controller.kinds() {
        next(&mut changes, |change| matches!(change, Change::Synced(_)).then_some(())).await;
    }
    assert!(sender.strong_count() > 1);
    drop(changes);
    until("the end of the watches", async || sender.strong_count() == 1).await;
}

/// All watches and requests share a connection: what one leaves unread holds up no other.
#[tokio::test]
async fn a_receiver_that_reads_nothing_stops_no_request() {
    let cluster = Cluster::shared();
    let client = cluster.client().await;
    cluster.namespace("unread").await;
    let (sender, mut changes) = channel(1);
    let _watches = start(&client, &Scope::Node("unread".into()), &sender);
    next(&mut changes, |change| (change == Change::Synced(Kind::Pod)).then_some(())).await;
    let much = "x".repeat(100_000);
    for n in 0..20 {
        let meta = json!({"name": format!("pod-{n}"), "annotations": {"much": much}});
        let spec = json!({"nodeName": "unread", "containers": [{"name": "c", "image": "none"}]});
        cluster.create("/api/v1/namespaces/unread/pods", json!({"metadata": meta, "spec": spec})).await;
    }
    let last = PodKey::new("unread", "pod-19");
    let read = timeout(Duration::from_secs(20), client.pod_annotation(&last, "much")).await;
    assert_eq!(read.expect("held up").unwrap(), Some(much));
    next(&mut changes, |change| matches!(change, Change::Pod(key, Some(_)) if key == last).then_some(())).await;
}

/// Charts of ovn-kubernetes tell in this way where the databases are.
#[tokio::test]
async fn endpoints_are_made_once() {
    let cluster = Cluster::shared();
    let access =
        Access { kubeconfig: Some(cluster.file("admin.kubeconfig")), role: "test".into(), ..Access::default() };
    let client = Client::connect(&access).await.unwrap();
    cluster.namespace("databases").await;
    assert_eq!(client.endpoints("databases", "ovnkube-db").await.unwrap(), None);
    let want = Endpoints {
        addresses: vec!["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()],
        ports: [("north".to_owned(), 6641), ("south".to_owned(), 6642)].into(),
    };
    client.make_endpoints("databases", "ovnkube-db", &want).await.unwrap();
    assert_eq!(client.endpoints("databases", "ovnkube-db").await.unwrap(), Some(want.clone()));
    let again = client.make_endpoints("databases", "ovnkube-db", &want).await;
    assert!(matches!(again, Err(Error::Conflict { .. })), "{again:?}");
}
