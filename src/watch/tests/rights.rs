//! What the shipped accounts and kubelets may read and write, on a real API server.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod lab;

use std::collections::BTreeMap;

use lab::{Cluster, next, set, until};
use ovnkube_model::{Change, ForHosts, HostRoutes, Kind, Notice, Object, ObjectKey, Severity, keys};
use ovnkube_watch::{Access, Annotations, Client, Condition, Data, Error, Events, Scope, start};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::mpsc::channel;
use tokio::task::block_in_place;

/// What the agents' account may change, by dist/yaml/admission.yaml.
#[tokio::test]
async fn an_agent_is_kept_to_its_own_node() {
    let cluster = Cluster::shared();
    let (own, other) = (cluster.node("agent-own").await, cluster.node("agent-other").await);
    let access = |node| Access { kubeconfig: Some(cluster.agent(node)), ..Access::default() };
    let agent = Client::connect(&access(Some("agent-own"))).await.unwrap();
    let zone = set("k8s.ovn.org/zone-name", "global");
    agent.annotate_node("agent-own", &own, &zone).await.unwrap();
    // a new policy takes effect a moment later
    until("other nodes are out of reach", async || {
        let outcome = agent.annotate_node("agent-other", &other, &zone).await;
        outcome.is_err_and(|error| error.is_forbidden())
    })
    .await;
    agent
        .annotate_node("agent-own", &own, &Annotations::from([("k8s.ovn.org/zone-name".to_owned(), None)]))
        .await
        .unwrap();
    for key in ["k8s.ovn.org/node-subnets", "k8s.ovn.org/node-id", "somebodys"] {
        let error = agent.annotate_node("agent-own", &own, &set(key, "x")).await.unwrap_err();
        assert!(error.is_forbidden() && error.to_string().contains(key), "{error}");
    }
    agent.annotate_node("agent-own", &own, &set("k8s.ovn.org/node-chassis-id", "one")).await.unwrap();
    for (key, value) in [("node-chassis-id", "two"), ("zone-name", "agent-other")] {
        let key = format!("k8s.ovn.org/{key}");
        assert!(agent.annotate_node("agent-own", &own, &set(&key, value)).await.unwrap_err().is_forbidden());
        let gone = Annotations::from([(key.clone(), None)]);
        assert_eq!(agent.annotate_node("agent-own", &own, &gone).await.is_err(), key.ends_with("chassis-id"));
    }
    let condition = Condition { kind: "NetworkUnavailable", status: true, reason: "Hostile", message: String::new() };
    assert!(agent.set_node_condition("agent-own", &own, &condition).await.unwrap_err().is_forbidden());
    let agent_of_nobody = Client::connect(&access(None)).await.unwrap();
    let error = agent_of_nobody.annotate_node("agent-own", &own, &zone).await.unwrap_err();
    assert!(error.is_forbidden() && error.to_string().contains("the token names no node"), "{error}");

    let object = Object::Node { name: "agent-own".into(), uid: own.as_str().into() };
    let notice = |reason| Notice { object: object.clone(), severity: Severity::Warning, reason, message: "m".into() };
    let forged = Events::start(&agent, "ovnkube-node", "agent-other");
    forged.publish(notice("Forged"));
    until("the forged one was sent", async || forged.is_idle()).await;
    Events::start(&agent, "ovnkube-node", "agent-own").publish(notice("MtuTooLarge"));
    let reasons = async || {
        let mut events = cluster.get("/api/v1/namespaces/default/events").await["items"].as_array().unwrap().clone();
        events.retain(|event| event["involvedObject"]["name"] == "agent-own");
        events.iter().map(|event| event["reason"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    until("an Event of the agent", async || reasons().await == ["MtuTooLarge"]).await;
}

/// What kubelets' credentials, which an agent may use, may change, by dist/yaml/admission.yaml.
#[tokio::test]
async fn a_kubelet_keeps_to_the_annotations_of_agents() {
    let cluster = Cluster::shared();
    let own = cluster.node("kubelet-own").await;
    let kubeconfig = cluster.user("system:node:kubelet-own", &["system:nodes"]);
    let kubelet = Client::connect(&Access { kubeconfig: Some(kubeconfig), ..Access::default() }).await.unwrap();
    let annotate = async |key: &str, value: Option<&str>| {
        let values = Annotations::from([(key.to_owned(), value.map(str::to_owned))]);
        kubelet.annotate_node("kubelet-own", &own, &values).await
    };
    annotate("somebodys", Some("x")).await.unwrap();
    // a new policy takes effect a moment later; writing an existing value again is no change
    let tries = std::sync::atomic::AtomicU32::new(0);
    until("what masters write is out of reach", async || {
        let value = tries.fetch_add(1, std::sync::atomic::Ordering::Relaxed).to_string();
        annotate(keys::NODE_SUBNETS, Some(&value)).await.is_err()
    })
    .await;
    for (key, value) in [(keys::NODE_SUBNETS, "x"), (keys::NODE_ID, "9"), (keys::ZONE, "another")] {
        let error = annotate(key, Some(value)).await.unwrap_err();
        assert!(error.is_forbidden(), "{key}: {error}");
    }
    for (key, value) in [(keys::ZONE, "kubelet-own"), (keys::CHASSIS_ID, "one"), (keys::HOST_CIDRS, "[]")] {
        annotate(key, Some(value)).await.unwrap();
    }
    for value in [Some("two"), None] {
        assert!(annotate(keys::CHASSIS_ID, value).await.unwrap_err().is_forbidden());
    }
    let condition = Condition { kind: "NetworkUnavailable", status: true, reason: "Own", message: String::new() };
    kubelet.set_node_condition("kubelet-own", &own, &condition).await.unwrap();
}

/// dist/yaml creates it empty: the master may fill it, agents may read it, and neither may have any other.
#[tokio::test(flavor = "multi_thread")]
async fn only_masters_write_the_clusters_values() {
    let cluster = Cluster::shared();
    let by = async |kubeconfig| {
        Client::connect(&Access { kubeconfig: Some(kubeconfig), ..Access::default() }).await.unwrap()
    };
    let (namespace, name) = ("ovn-kubernetes", "ovnkube-cluster");
    let data = |value: &str| Data::from([("a".to_owned(), value.to_owned())]);
    cluster.node("reads").await;
    let (master, agent) = (by(cluster.kubeconfig()).await, by(cluster.agent(Some("reads"))).await);
    let kubelet = by(cluster.user("system:node:reads", &["system:nodes"])).await;
    assert_eq!(agent.config_map(namespace, name).await.unwrap().unwrap_or_default(), Data::new());
    assert_eq!(master.set_config_map(namespace, name, &data("1"), || true).await.unwrap(), Data::new());
    assert_eq!(master.set_config_map(namespace, name, &data("2"), || true).await.unwrap(), data("1"));
    let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
    let version = async || cluster.get(&path).await["metadata"]["resourceVersion"].clone();
    let before = version().await;
    assert_eq!(master.set_config_map(namespace, name, &data("2"), || true).await.unwrap(), data("2"));
    assert_eq!(version().await, before, "written without need");

    // the master slept before it read this, or after that: another one has the lease by then, and has written
    let error = master.set_config_map(namespace, name, &data("late"), || false).await.unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
    let other = by(cluster.kubeconfig()).await;
    let overtaken = || {
        let written = async { other.set_config_map(namespace, name, &data("3"), || true).await };
        block_in_place(|| Handle::current().block_on(written)).is_ok()
    };
    let error = master.set_config_map(namespace, name, &data("late"), overtaken).await.unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
    assert_eq!(cluster.get(&path).await["data"], json!({"a": "3"}));
    assert_eq!(master.set_config_map(namespace, name, &data("2"), || true).await.unwrap(), data("3"));

    for reader in [agent, kubelet] {
        assert_eq!(reader.config_map(namespace, name).await.unwrap(), Some(data("2")));
        assert!(reader.set_config_map(namespace, name, &data("3"), || true).await.unwrap_err().is_forbidden());
        assert!(reader.config_map(namespace, "other").await.unwrap_err().is_forbidden());
    }
    assert!(master.set_config_map(namespace, "other", &data("3"), || true).await.unwrap_err().is_forbidden());
    assert_eq!(cluster.get(&path).await["data"], json!({"a": "2"}));

    // agents of both kinds follow what masters tell the hosts
    let agent = by(cluster.agent(Some("reads"))).await;
    let kubelet = by(cluster.user("system:node:reads", &["system:nodes"])).await;
    let scope = Scope::ForHosts(ObjectKey { namespace: namespace.into(), name: name.into() });
    let routes = |text: &str| Data::from([(keys::HOST_ROUTES.to_owned(), text.to_owned())]);
    let told = |routes: Option<HostRoutes>| Change::ForHosts(Box::new(ForHosts { routes, northd: None }));
    for reader in [agent, kubelet] {
        let (sender, mut changes) = channel(9);
        let _watches = start(&reader, &scope, &sender);
        let mut next = async || next(&mut changes, Some).await;
        let before = cluster.get(&path).await["data"][keys::HOST_ROUTES].is_null();
        assert_eq!(next().await, told((!before).then(HostRoutes::default)));
        assert_eq!(next().await, Change::Synced(Kind::ForHosts));
        master.set_config_map(namespace, name, &routes("az2 10.244.0.0/16\n"), || true).await.unwrap();
        let prefixes = BTreeMap::from([("10.244.0.0/16".parse().unwrap(), "az2".into())]);
        assert_eq!(next().await, told(Some(HostRoutes { prefixes, ..HostRoutes::default() })));
        master.set_config_map(namespace, name, &routes(""), || true).await.unwrap();
        assert_eq!(next().await, told(Some(HostRoutes::default())));
    }
}
