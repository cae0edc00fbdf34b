//! A master that was given the address of another cluster's database.

use std::time::Duration;

use ovnkube_apply::LOCK;
use ovnkube_ovn::nb::{address_set, logical_router as lr};
use ovnkube_tests::api::{Api, Running};
use ovnkube_tests::nb::{Release, Server, until, within};
use ovnkube_tests::settings::Settings;
use serde_json::json;
use tokio::time::sleep;

/// Longer than it takes to take the lock from a controller that is dead.
const LONG: Duration = Duration::from_secs(8);

/// It leaves the rows and the lock as they are and says why, until a person says that the database is to be this cluster's.
#[tokio::test(flavor = "multi_thread")]
async fn another_clusters_database_is_left_alone() {
    let (api, server) = (Api::up().await, Server::new(Release::Lts));
    api.node("n1", json!({"k8s.ovn.org/node-chassis-id": "chassis-n1"})).await;
    let nb = server.client().await;
    server.nbctl(&["lr-add", "ovn_cluster_router"]);
    let mark = |uid: &str| format!("external_ids:ovnkube-cluster={uid}");
    server.nbctl(&[
        "set",
        "Logical_Router",
        "ovn_cluster_router",
        "external_ids:k8s-cluster-router=yes",
        &mark("theirs"),
    ]);
    // of a policy that this cluster does not have
    let id = |key: &str, value: &str| format!("external_ids:k8s.ovn.org/{key}={value}");
    server.nbctl(&[
        "create",
        "address_set",
        "name=theirs",
        &id("owner-controller", "default-network-controller"),
        &id("owner-type", "PodSelector"),
        &id("name", "nobody"),
        &id("ip-family", "v4"),
        &id("primary-id", "default-network-controller\\:PodSelector\\:nobody\\:v4"),
    ]);
    let has_theirs = || !nb.cache().lookup(address_set::TABLE, "theirs").is_empty();
    until("their row", async || has_theirs()).await;
    let other = server.client().await;
    let mut lock = other.lock(LOCK);
    within("the lock", lock.until(true)).await;
    let engine = Running::start(&api, Settings::default().network(), Some(server.client().await)).await;
    api.event("ForeignDatabase", "ovn-kubernetes").await;
    sleep(LONG).await;
    assert!(lock.is_held(), "the lock of the other cluster's master was taken");
    assert_eq!(engine.writes(), (0, 0));
    assert!(has_theirs());
    // the other cluster is gone for good
    drop((lock, other));
    server.nbctl(&["remove", "Logical_Router", "ovn_cluster_router", "external_ids", "ovnkube-cluster"]);
    engine.ready().await;
    until("the sweep", async || !has_theirs()).await;
    let uid = api.get("/api/v1/namespaces/kube-system").await["metadata"]["uid"].as_str().unwrap().to_owned();
    let router = nb
        .cache()
        .iter(lr::TABLE)
        .next()
        .map(|(_, row)| row.map(lr::EXTERNAL_IDS).get("ovnkube-cluster") == Some(&*uid));
    assert_eq!(router, Some(true));
}
