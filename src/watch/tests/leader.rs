//! The lease: one holder at a time, whatever happens.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod lab;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use http::Method;
use lab::{Cluster, Door, Log, PATIENCE, until};
use ovnkube_watch::{Client, Leader, LeaseSettings};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

const INSTANCE: &str = "ovnkube.io/holder-instance";

fn settings(name: &str, identity: &str) -> LeaseSettings {
    LeaseSettings {
        lease: Duration::from_secs(2),
        renew: Duration::from_millis(1500),
        retry: Duration::from_millis(300),
        ..LeaseSettings::new(name, identity)
    }
}

fn path(name: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/ovn-kubernetes/leases/{name}")
}

async fn elected(leader: &mut Leader) {
    timeout(PATIENCE, leader.elected()).await.expect("never elected");
}

#[tokio::test]
async fn released_lease_goes_to_the_next() {
    let cluster = Cluster::with_leases(&["released"]);
    let client = cluster.client().await;
    let (mut first, first_task) = Leader::run(&client, settings("released", "first"));
    elected(&mut first).await;
    let (mut second, second_task) = Leader::run(&client, settings("released", "second"));
    until("the second sees the first", async || second.holder() == "first").await;
    assert!(first.is_leader_now() && !second.is_leader_now());
    let lease = cluster.get(&path("released")).await["spec"].clone();
    assert_eq!((&lease["holderIdentity"], &lease["leaseDurationSeconds"]), (&json!("first"), &json!(2)));

    first_task.release().await;
    assert!(!first.is_leader_now());
    elected(&mut second).await;
    assert_eq!(second.holder(), "second");
    assert_eq!(cluster.get(&path("released")).await["spec"]["leaseTransitions"], json!(2));
    second_task.release().await;
    assert_eq!(cluster.get(&path("released")).await["spec"]["holderIdentity"], Value::Null);
}

#[test]
fn same_identity_takes_its_lease_again_soon() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let cluster = Cluster::with_leases(&["again"]);
    // an hour long: nobody could wait for its end
    let long = LeaseSettings { lease: Duration::from_secs(3600), ..settings("again", "me") };
    let run = async || {
        let (mut leader, task) = Leader::run(&cluster.client().await, long.clone());
        elected(&mut leader).await;
        (leader, task)
    };
    let before = runtime();
    before.block_on(run());
    // killed: nothing is given back
    drop(before);
    runtime().block_on(async {
        let (_, task) = run().await;
        let lease = cluster.get(&path("again")).await;
        assert_eq!(lease["spec"]["leaseTransitions"], json!(1));
        task.release().await;
        assert_eq!(cluster.get(&path("again")).await["metadata"]["annotations"], Value::Null);
    });
}

/// A lease held by an earlier run of `me`.
async fn left(cluster: &Cluster, name: &str, renewed: &str) {
    let (mut leader, task) = Leader::run(&cluster.client().await, settings(name, "me"));
    elected(&mut leader).await;
    task.release().await;
    let spec = json!({"holderIdentity": "me", "leaseDurationSeconds": 3600, "renewTime": renewed});
    let body = json!({"metadata": {"annotations": {INSTANCE: "earlier"}}, "spec": spec});
    cluster.ask(Method::PATCH, &path(name), body).await.unwrap();
}

#[tokio::test]
async fn own_lease_that_ran_out_long_ago_is_taken_at_once() {
    let cluster = Cluster::with_leases(&["old", "young"]);
    // nobody could wait until it does not change
    let hour = Duration::from_secs(3600);
    let slow = |name| LeaseSettings { lease: hour, retry: hour, ..settings(name, "me") };
    left(&cluster, "old", "2020-01-01T00:00:00.000000Z").await;
    let (mut leader, _task) = Leader::run(&cluster.client().await, slow("old"));
    elected(&mut leader).await;
    assert_ne!(cluster.get(&path("old")).await["metadata"]["annotations"][INSTANCE], json!("earlier"));
    // one that did not is left alone
    left(&cluster, "young", "2999-01-01T00:00:00.000000Z").await;
    let (leader, _task) = Leader::run(&cluster.client().await, slow("young"));
    until("the lease is seen", async || leader.holder() == "me").await;
    assert!(!leader.is_leader_now());
}

#[tokio::test]
async fn two_of_one_name_do_not_lead_both() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let cluster = Cluster::with_leases(&["twins"]);
    let client = cluster.client().await;
    let (mut first, _first_task) = Leader::run(&client, LeaseSettings::new("twins", "me"));
    elected(&mut first).await;
    let holder = cluster.get(&path("twins")).await["metadata"]["annotations"][INSTANCE].clone();
    let (second, second_task) = Leader::run(&client, LeaseSettings::new("twins", "me"));
    until("the second complains", async || log.holds("another process that is called me too")).await;
    assert!(first.is_leader_now() && !second.is_leader_now());
    // the second has nothing to give back
    second_task.release().await;
    let lease = cluster.get(&path("twins")).await;
    assert_eq!(
        (&lease["spec"]["holderIdentity"], &lease["metadata"]["annotations"][INSTANCE]),
        (&json!("me"), &holder)
    );
}

#[tokio::test]
async fn lease_lost_to_one_of_the_same_name_is_lost() {
    let cluster = Cluster::with_leases(&["usurped"]);
    let (mut leader, _task) = Leader::run(&cluster.client().await, LeaseSettings::new("usurped", "me"));
    elected(&mut leader).await;
    let other = json!({"metadata": {"annotations": {INSTANCE: "other"}}});
    cluster.ask(Method::PATCH, &path("usurped"), other).await.unwrap();
    timeout(PATIENCE, leader.lost()).await.expect("never lost");
    assert_eq!(leader.holder(), "me");
    // the other does not renew it
    elected(&mut leader).await;
}

#[tokio::test]
async fn holder_cut_off_stops_by_itself_before_another_starts() {
    let cluster = Cluster::with_leases(&["cut"]);
    let door = Door::to(cluster.port()).await;
    let behind = Client::connect(&cluster.access(door.port)).await.unwrap();
    let (mut first, _first_task) = Leader::run(&behind, settings("cut", "first"));
    elected(&mut first).await;
    let (mut second, _second_task) = Leader::run(&cluster.client().await, settings("cut", "second"));
    until("the second sees the first", async || second.holder() == "first").await;
    door.shut();
    timeout(PATIENCE, first.lost()).await.expect("the first never stops");
    assert!(!second.is_leader_now(), "two leaders");
    elected(&mut second).await;
    assert!(!first.is_leader_now());
    // back again, the first finds out and waits
    door.open();
    until("the first sees the second", async || first.holder() == "second").await;
    assert!(!first.is_leader_now() && second.is_leader_now());
}

#[test]
fn holder_stopped_in_the_middle_is_fenced() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let cluster = Cluster::with_leases(&["frozen"]);
    let (tell, told) = mpsc::channel();
    let (freeze, frozen) = mpsc::channel::<()>();
    let (thaw, thawed) = mpsc::channel::<()>();
    let access = cluster.access(cluster.port());
    // all of the first's tasks run in this one thread: it stops as if by SIGSTOP
    let first_thread = thread::spawn(move || {
        runtime().block_on(async {
            let client = Client::connect(&access).await.unwrap();
            let (mut first, _task) = Leader::run(&client, settings("frozen", "first"));
            elected(&mut first).await;
            tell.send(first.clone()).unwrap();
            while frozen.try_recv().is_err() {
                sleep(Duration::from_millis(10)).await;
            }
            thawed.recv().unwrap();
            // the very first thing after waking up
            assert!(!first.is_leader_now(), "may write with a lease that is lost");
            until("the first sees the second", async || first.holder() == "second").await;
        });
    });
    let first: Leader = told.recv().unwrap();
    runtime().block_on(async {
        let (mut second, _task) = Leader::run(&cluster.client().await, settings("frozen", "second"));
        until("the second sees the first", async || second.holder() == "first").await;
        freeze.send(()).unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let (until_over, asked) = (over.clone(), second.clone());
        let watcher = thread::spawn(move || {
            let mut both = 0;
            while !until_over.load(Ordering::SeqCst) {
                // the second is asked first: meanwhile the first can only lose the lease
                both += u32::from(asked.is_leader_now() && first.is_leader_now());
                thread::sleep(Duration::from_millis(1));
            }
            both
        });
        elected(&mut second).await;
        sleep(Duration::from_millis(300)).await;
        over.store(true, Ordering::SeqCst);
        assert_eq!(watcher.join().unwrap(), 0, "two leaders at once");
        thaw.send(()).unwrap();
        // the second goes on to renew while the first wakes up
        until("the end of the first", async || first_thread.is_finished()).await;
    });
    first_thread.join().unwrap();
}

#[tokio::test]
async fn lease_taken_by_force_or_deleted_is_noticed() {
    let cluster = Cluster::with_leases(&["force"]);
    let (mut leader, _task) = Leader::run(&cluster.client().await, settings("force", "me"));
    elected(&mut leader).await;
    let thief = json!({"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 3600}});
    cluster.ask(Method::PATCH, &path("force"), thief).await.unwrap();
    timeout(PATIENCE, leader.lost()).await.expect("never lost");
    until("the thief is seen", async || leader.holder() == "thief").await;
    cluster.ask(Method::DELETE, &path("force"), Value::Null).await.unwrap();
    elected(&mut leader).await;
}
