//! The lease: one holder at a time, whatever happens.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod lab;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use http::Method;
use lab::{Cluster, Log, PATIENCE, Proxy, news_comes_after_silence, until};
use ovnkube_watch::{Access, Client, Leader, LeaseSettings};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

const INSTANCE: &str = "ovnkube.io/holder-instance";

/// How long a holder may write after a renewal.
const RENEW: Duration = Duration::from_secs(8);

/// Times as in a cluster: with shorter ones a busy machine would lose leases by itself.
fn settings(name: &str, identity: &str) -> LeaseSettings {
    LeaseSettings {
        namespace: "ovn-kubernetes".into(),
        name: name.into(),
        identity: identity.into(),
        lease: Duration::from_secs(10),
        renew: RENEW,
        retry: Duration::from_secs(2),
    }
}

fn path(name: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/ovn-kubernetes/leases/{name}")
}

/// An API server with a lease, and a client that reaches it through a proxy.
async fn behind_a_proxy(lease: &str) -> (Cluster, Proxy, Client) {
    let cluster = Cluster::with_leases(&[lease]);
    let proxy = Proxy::to(cluster.port()).await;
    let behind = Client::connect(&cluster.access(proxy.port)).await.unwrap();
    (cluster, proxy, behind)
}

async fn elected(leader: &mut Leader) {
    timeout(PATIENCE, leader.elected()).await.expect("never elected");
}

/// The first must have stopped when another starts. Both are asked at the same moment: the order in which a busy machine
/// wakes those who wait for either event says nothing.
async fn follows(second: &mut Leader, first: &mut Leader) {
    elected(second).await;
    assert!(!first.is_leader_now(), "two leaders");
    timeout(PATIENCE, first.lost()).await.expect("the first never stops");
}

#[tokio::test]
async fn released_lease_goes_to_the_next() {
    let cluster = Cluster::with_leases(&["released"]);
    let client = cluster.client().await;
    let (mut first, first_task) = Leader::run(&client, settings("released", "first")).unwrap();
    elected(&mut first).await;
    let (mut second, second_task) = Leader::run(&client, settings("released", "second")).unwrap();
    until("the second sees the first", async || second.holder() == "first").await;
    assert!(first.is_leader_now() && !second.is_leader_now());
    let lease = cluster.get(&path("released")).await["spec"].clone();
    assert_eq!((&lease["holderIdentity"], &lease["leaseDurationSeconds"]), (&json!("first"), &json!(10)));

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
    // an hour: too long to wait for
    let long = LeaseSettings { lease: Duration::from_secs(3600), ..settings("again", "me") };
    let run = async || {
        let (mut leader, task) = Leader::run(&cluster.client().await, long.clone()).unwrap();
        elected(&mut leader).await;
        (leader, task)
    };
    let before = runtime();
    before.block_on(run());
    // killed: the lease is not released
    drop(before);
    runtime().block_on(async {
        let (_, task) = run().await;
        let lease = cluster.get(&path("again")).await;
        assert_eq!(lease["spec"]["leaseTransitions"], json!(1));
        task.release().await;
        assert_eq!(cluster.get(&path("again")).await["metadata"]["annotations"], Value::Null);
    });
}

/// The time that another host wrote is ignored: that host may have our name and renew its lease.
#[tokio::test]
async fn an_old_time_in_the_lease_makes_it_no_older() {
    let cluster = Cluster::with_leases(&["clock"]);
    let hour = Duration::from_secs(3600);
    let spec =
        json!({"holderIdentity": "me", "leaseDurationSeconds": 3600, "renewTime": "2020-01-01T00:00:00.000000Z"});
    let body = json!({"metadata": {"annotations": {INSTANCE: "another"}}, "spec": spec});
    cluster.ask(Method::PATCH, &path("clock"), body).await.unwrap();
    let settings = LeaseSettings { lease: hour, retry: hour, ..settings("clock", "me") };
    let (leader, _task) = Leader::run(&cluster.client().await, settings).unwrap();
    until("the lease is seen", async || leader.holder() == "me").await;
    assert!(!leader.is_leader_now(), "two leaders");
}

/// It may be slow to renew, and write until the lease runs out.
#[tokio::test]
async fn one_of_our_name_on_another_host_keeps_its_lease() {
    let cluster = Cluster::with_leases(&["elsewhere"]);
    for instance in ["00112233445566778899aabbccddeeff-0011223344556677", "-0011223344556677", "of an earlier release"]
    {
        let spec = json!({"holderIdentity": "me", "leaseDurationSeconds": 3600});
        let body = json!({"metadata": {"annotations": {INSTANCE: instance}}, "spec": spec});
        cluster.ask(Method::PATCH, &path("elsewhere"), body).await.unwrap();
        let long = LeaseSettings { lease: Duration::from_secs(3600), ..settings("elsewhere", "me") };
        let (mut leader, _task) = Leader::run(&cluster.client().await, long).unwrap();
        until("the lease is seen", async || leader.holder() == "me").await;
        assert!(timeout(RENEW / 2, leader.elected()).await.is_err(), "two leaders");
    }
}

#[tokio::test]
async fn two_of_one_name_do_not_lead_both() {
    let log = Log::default();
    // of every thread
    tracing_subscriber::fmt().with_writer(log.clone()).init();
    let cluster = Cluster::with_leases(&["twins"]);
    let client = cluster.client().await;
    let (mut first, _first_task) = Leader::run(&client, settings("twins", "me")).unwrap();
    elected(&mut first).await;
    let holder = cluster.get(&path("twins")).await["metadata"]["annotations"][INSTANCE].clone();
    let (second, second_task) = Leader::run(&client, settings("twins", "me")).unwrap();
    until("the second complains", async || log.holds("another process that is called me too")).await;
    timeout(PATIENCE, second.twin()).await.expect("no twin");
    assert!(first.is_leader_now() && !second.is_leader_now());
    // the second has no lease to release
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
    let (mut leader, _task) = Leader::run(&cluster.client().await, settings("usurped", "me")).unwrap();
    elected(&mut leader).await;
    let other = json!({"metadata": {"annotations": {INSTANCE: "other"}}});
    cluster.ask(Method::PATCH, &path("usurped"), other).await.unwrap();
    timeout(PATIENCE, leader.lost()).await.expect("never lost");
    assert_eq!(leader.holder(), "me");
    // the other does not renew it
    elected(&mut leader).await;
}

/// The process is busy while its lease goes to another and comes back: it must start over all the same.
#[tokio::test]
async fn a_lease_that_is_lost_and_back_is_lost() {
    let cluster = Cluster::with_leases(&["back"]);
    let (mut leader, _task) = Leader::run(&cluster.client().await, settings("back", "me")).unwrap();
    let (any_term, deadline) = (leader.clone(), Instant::now() + PATIENCE);
    elected(&mut leader).await;
    let fence = leader.clone();
    let other = json!({"metadata": {"annotations": {INSTANCE: "other"}}});
    cluster.ask(Method::PATCH, &path("back"), other).await.unwrap();
    for is_held in [false, true] {
        while any_term.is_leader_now() != is_held {
            assert!(Instant::now() < deadline, "never held: {is_held}");
            thread::sleep(Duration::from_millis(20));
        }
    }
    assert!(!fence.is_leader_now(), "writes what it knew in an earlier term");
    timeout(PATIENCE, leader.lost()).await.expect("never lost");
    elected(&mut leader).await;
    assert!(leader.is_leader_now() && !fence.is_leader_now());
}

#[tokio::test]
async fn holder_cut_off_stops_by_itself_before_another_starts() {
    let (cluster, proxy, behind) = behind_a_proxy("cut").await;
    let (mut first, _first_task) = Leader::run(&behind, settings("cut", "first")).unwrap();
    elected(&mut first).await;
    let (mut second, _second_task) = Leader::run(&cluster.client().await, settings("cut", "second")).unwrap();
    until("the second sees the first", async || second.holder() == "first").await;
    proxy.shut();
    follows(&mut second, &mut first).await;
    // connected again, the first learns of it and waits
    proxy.open();
    until("the first sees the second", async || first.holder() == "second").await;
    assert!(!first.is_leader_now() && second.is_leader_now());
}

/// The test that runs as the other process.
const HOLDER: &str = "a_holder_in_a_process_of_its_own";

#[tokio::test]
async fn holder_stopped_in_the_middle_is_fenced() {
    let cluster = Cluster::with_leases(&["frozen"]);
    let mut first = Holder(
        Command::new(std::env::current_exe().unwrap())
            .args([HOLDER, "--exact", "--ignored", "--nocapture"])
            .env("PORT", cluster.port().to_string())
            .env("CA", cluster.file("ca.crt"))
            .env("TOKEN", cluster.token())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let said = BufReader::new(first.0.stdout.take().unwrap());
    let heard = spawn_blocking(move || {
        let mut lines = said.lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("elected")));
        lines
    });
    let rest = timeout(PATIENCE, heard).await.unwrap().unwrap();
    let (mut second, _task) = Leader::run(&cluster.client().await, settings("frozen", "second")).unwrap();
    until("the second sees the first", async || second.holder() == "first").await;
    first.signal("-STOP");
    elected(&mut second).await;
    first.signal("-CONT");
    // the second keeps renewing while the first wakes up
    until("the end of the first", async || first.0.try_wait().unwrap().is_some()).await;
    assert!(first.0.wait().unwrap().success(), "{:?}", rest.collect::<Vec<_>>());
    assert!(second.is_leader_now());
}

struct Holder(Child);

impl Holder {
    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap().success());
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
#[ignore = "started by holder_stopped_in_the_middle_is_fenced"]
async fn a_holder_in_a_process_of_its_own() {
    let Some(port) = std::env::var_os("PORT") else { return };
    let access = Access {
        apiserver: Some(format!("https://127.0.0.1:{}", port.display())),
        ca: std::env::var_os("CA").map(Into::into),
        token: std::env::var("TOKEN").ok().map(Into::into),
        role: "test".into(),
        ..Access::default()
    };
    let client = Client::connect(&access).await.unwrap();
    let (mut first, _task) = Leader::run(&client, settings("frozen", "first")).unwrap();
    elected(&mut first).await;
    println!("\nelected");
    loop {
        let before = Instant::now();
        thread::sleep(Duration::from_millis(5));
        // the first thing it does after it is continued
        let leads = first.is_leader_now();
        // no starved thread sleeps that long
        if before.elapsed() + Duration::from_secs(2) > RENEW {
            assert!(!leads, "may write with a lease that is lost");
            break;
        }
    }
    until("the first sees the second", async || first.holder() == "second").await;
}

#[tokio::test]
async fn lease_taken_by_force_or_deleted_is_noticed() {
    let cluster = Cluster::with_leases(&["force"]);
    let (mut leader, _task) = Leader::run(&cluster.client().await, settings("force", "me")).unwrap();
    elected(&mut leader).await;
    let thief = json!({"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 10}});
    cluster.ask(Method::PATCH, &path("force"), thief).await.unwrap();
    timeout(PATIENCE, leader.lost()).await.expect("never lost");
    until("the thief is seen", async || leader.holder() == "thief").await;
    cluster.ask(Method::DELETE, &path("force"), Value::Null).await.unwrap();
    elected(&mut leader).await;
}

/// An API server behind a load balancer hangs: connections to it stay, new ones reach another.
#[tokio::test]
async fn a_silent_connection_does_not_cost_the_lease() {
    let (_cluster, proxy, behind) = behind_a_proxy("silent").await;
    let (mut leader, _task) = Leader::run(&behind, settings("silent", "me")).unwrap();
    elected(&mut leader).await;
    proxy.silence();
    assert!(timeout(RENEW + Duration::from_secs(2), leader.lost()).await.is_err(), "lost");
}

/// The watches' connections stay, too, and say nothing: no more than of a cluster without news.
#[tokio::test]
async fn watches_leave_a_silent_api_server_as_the_lease_does() {
    let (cluster, proxy, behind) = behind_a_proxy("left").await;
    let (mut leader, _task) = Leader::run(&behind, settings("left", "me")).unwrap();
    elected(&mut leader).await;
    // before a ping would tell
    news_comes_after_silence(&cluster, &proxy, &behind, Duration::from_secs(20)).await;
    assert!(leader.is_leader_now());
}

/// Two requests in a row, such as reading the lease and taking it, need longer than one may.
#[tokio::test]
async fn answers_that_come_late_do_not_cost_the_lease() {
    let (_cluster, proxy, behind) = behind_a_proxy("late").await;
    proxy.delay(Duration::from_millis(1400));
    let (mut leader, _task) = Leader::run(&behind, settings("late", "me")).unwrap();
    timeout(Duration::from_secs(30), leader.elected()).await.expect("never elected");
    assert!(timeout(RENEW * 2, leader.lost()).await.is_err(), "lost");
}

/// A renewal is carried out and its answer is lost; what follows takes its time, too.
#[tokio::test]
async fn a_lost_answer_and_late_ones_do_not_cost_the_lease() {
    let (_cluster, proxy, behind) = behind_a_proxy("lost-answer").await;
    let (mut leader, _task) = Leader::run(&behind, settings("lost-answer", "me")).unwrap();
    elected(&mut leader).await;
    proxy.delay(Duration::from_secs(1));
    for _ in 0..2 {
        proxy.deafen();
        assert!(timeout(RENEW + Duration::from_secs(2), leader.lost()).await.is_err(), "lost");
    }
}

/// A first plan of a large cluster occupies the only thread of everything else.
#[tokio::test]
async fn a_busy_process_keeps_its_lease() {
    let cluster = Cluster::with_leases(&["busy"]);
    let (mut leader, _task) = Leader::run(&cluster.client().await, settings("busy", "me")).unwrap();
    elected(&mut leader).await;
    thread::sleep(RENEW + Duration::from_millis(500));
    assert!(leader.is_leader_now(), "lost");
}

/// The holder learns nothing of it, and may write for a while.
#[tokio::test]
async fn a_lease_that_is_deleted_is_not_free_before_its_holder_stops() {
    let (cluster, proxy, behind) = behind_a_proxy("deleted").await;
    let (mut first, _first_task) = Leader::run(&behind, settings("deleted", "first")).unwrap();
    elected(&mut first).await;
    let (mut second, _second_task) = Leader::run(&cluster.client().await, settings("deleted", "second")).unwrap();
    until("the second sees the first", async || second.holder() == "first").await;
    proxy.shut();
    cluster.ask(Method::DELETE, &path("deleted"), Value::Null).await.unwrap();
    let nobody = "nobody: the lease was missing";
    until("the second says that nobody holds it", async || second.holder() == nobody).await;
    // this one has never seen who held it
    let (mut third, _third_task) = Leader::run(&cluster.client().await, settings("deleted", "third")).unwrap();
    tokio::select! {
        () = elected(&mut second) => {}
        () = elected(&mut third) => {}
    }
    assert!(!first.is_leader_now(), "two leaders");
    timeout(PATIENCE, first.lost()).await.expect("the first never stops");
    assert!(second.is_leader_now() != third.is_leader_now());
}

#[tokio::test]
async fn a_holder_keeps_a_lease_that_is_deleted() {
    let cluster = Cluster::with_leases(&["kept"]);
    let client = cluster.client().await;
    let (mut first, _first_task) = Leader::run(&client, settings("kept", "first")).unwrap();
    elected(&mut first).await;
    let (second, _second_task) = Leader::run(&client, settings("kept", "second")).unwrap();
    until("the second sees the first", async || second.holder() == "first").await;
    for _ in 0..2 {
        cluster.ask(Method::DELETE, &path("kept"), Value::Null).await.unwrap();
        let is_back = until("the lease is back", async || {
            let lease = cluster.ask(Method::GET, &path("kept"), Value::Null).await;
            lease.is_ok_and(|lease| lease["spec"]["holderIdentity"] == "first")
        });
        tokio::select! {
            biased;
            () = is_back => {}
            () = first.lost() => panic!("lost"),
        }
        assert!(first.is_leader_now() && !second.is_leader_now());
    }
}

/// Another program deletes and recreates the lease: no process can tell whether it was ever held.
#[tokio::test]
async fn an_empty_lease_in_place_of_another_one_is_waited_for() {
    let (cluster, proxy, behind) = behind_a_proxy("again-made").await;
    let (mut first, _first_task) = Leader::run(&behind, settings("again-made", "first")).unwrap();
    elected(&mut first).await;
    let (mut second, _second_task) = Leader::run(&cluster.client().await, settings("again-made", "second")).unwrap();
    until("the second sees the first", async || second.holder() == "first").await;
    proxy.shut();
    cluster.ask(Method::DELETE, &path("again-made"), Value::Null).await.unwrap();
    lab::empty_lease(&cluster, "again-made").await;
    follows(&mut second, &mut first).await;
}

/// Those of the chart of ovn-kubernetes.
#[tokio::test]
async fn accounts_that_may_replace_a_lease_but_not_patch_it() {
    let cluster = Cluster::with_leases(&["replaced"]);
    let rights = json!([{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "get", "list", "update"]}]);
    let kind = "/apis/rbac.authorization.k8s.io/v1/namespaces/ovn-kubernetes";
    cluster.create(&format!("{kind}/roles"), json!({"metadata": {"name": "chart"}, "rules": rights})).await;
    let binding = json!({
        "metadata": {"name": "chart"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "chart"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "chart"}],
    });
    cluster.create(&format!("{kind}/rolebindings"), binding).await;
    let access = Access { kubeconfig: Some(cluster.user("chart", &[])), role: "test".into(), ..Access::default() };
    let client = Client::connect(&access).await.unwrap();

    let (mut leader, task) = Leader::run(&client, settings("replaced", "first")).unwrap();
    elected(&mut leader).await;
    let taken = cluster.get(&path("replaced")).await;
    assert_eq!(taken["spec"]["holderIdentity"], "first");
    until("it is renewed", async || {
        cluster.get(&path("replaced")).await["metadata"]["resourceVersion"] != taken["metadata"]["resourceVersion"]
    })
    .await;
    assert!(leader.is_leader_now());
    task.release().await;
    let released = cluster.get(&path("replaced")).await;
    assert!(released["spec"]["holderIdentity"].is_null() && released["metadata"]["annotations"][INSTANCE].is_null());
}
