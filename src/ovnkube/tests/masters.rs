//! Two masters: one writes, the other takes over.

use std::time::{Duration, Instant};

use ovnkube_tests::nb::{Release, until};
use ovnkube_tests::raft::Member;
use serde_json::Value;

use crate::db::addresses;
use crate::lab::Lab;
use crate::process::soon;

/// Of the lease, in seconds.
const TIMES: [&str; 3] =
    ["--ha-election-lease-duration=10", "--ha-election-renew-deadline=8", "--ha-election-retry-period=2"];

/// Which process holds the lease.
async fn holder(lab: &Lab) -> String {
    let path = "/apis/coordination.k8s.io/v1/namespaces/ovn-kubernetes/leases";
    let leases = lab.api.list(path).await;
    let holder = leases.first().and_then(|lease| lease["spec"]["holderIdentity"].as_str());
    holder.unwrap_or_default().to_owned()
}

/// Fails if one of these transactions did more than wiring this pod.
fn only_wire(pod: &str, transactions: &[Value]) {
    for transaction in transactions {
        for (table, rows) in transaction.as_object().unwrap().iter().filter(|(table, _)| !table.starts_with('_')) {
            let rows = rows.as_object().unwrap();
            assert!(rows.len() == 1, "more than a pod: {transaction}");
            match table.as_str() {
                "Logical_Switch_Port" => {
                    assert!(rows.values().all(|row| row["name"] == format!("default_{pod}")), "{transaction}");
                }
                "Logical_Switch" | "Address_Set" | "Port_Group" => {}
                _ => panic!("not of a pod: {transaction}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_masters_of_one_name_are_told() {
    let lab = Lab::new().await;
    let first = lab.start("init-master=one", &TIMES);
    lab.ready(&first).await;
    let second = lab.start("init-master=one", &TIMES);
    let tells = |(reason, message): &(String, String)| {
        reason == "MasterNameTaken" && message.starts_with("two masters are called one: ")
    };
    until("an Event", async || lab.api.events("ovn-kubernetes").await.iter().any(tells)).await;
    drop(second);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_leader_is_replaced_and_nothing_rewritten() {
    let lab = Lab::new().await;
    for node in ["a", "b"] {
        lab.api.node(node).await;
    }
    let first = lab.start("init-master=first", &TIMES);
    lab.ready(&first).await;
    let mut second = lab.start("init-master=second", &TIMES);
    for (pod, node) in [("one", "a"), ("two", "a"), ("three", "b")] {
        lab.api.pod(pod, node).await;
    }
    lab.wired(3).await;
    // it has seen the lease, or will see it later: in any case it waits for it
    assert_eq!(holder(&lab).await, "first");
    assert!(!second.log().contains("holds the lease"), "two leaders");
    lab.quiet().await;
    let written = lab.transactions().len();

    first.kill();
    let killed = Instant::now();
    lab.api.pod("next", "b").await;
    until("the other master leads", async || holder(&lab).await == "second").await;
    // ten seconds in which the lease does not change, and two until it is checked again
    let took = killed.elapsed();
    assert!(took < Duration::from_secs(12) + soon(), "taken over after {took:?}");
    lab.wired(4).await;
    let transactions = lab.transactions();
    only_wire("next", &transactions[written..]);
    assert!(second.is_running());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_leader_hands_over() {
    let lab = Lab::new().await;
    lab.api.node("a").await;
    // a lease that no test waits for
    let long = ["--ha-election-lease-duration=600", "--ha-election-renew-deadline=500", "--ha-election-retry-period=1"];
    let first = lab.start("init-master=first", &long);
    lab.ready(&first).await;
    let second = lab.start("init-master=second", &long);
    lab.api.pod("one", "a").await;
    lab.wired(1).await;
    lab.quiet().await;
    let written = lab.transactions().len();
    let (status, _) = first.terminate();
    assert!(status.success(), "{status}");
    lab.api.pod("two", "a").await;
    until("the other master leads", async || holder(&lab).await == "second").await;
    lab.wired(2).await;
    only_wire("two", &lab.transactions()[written..]);
    assert!(second.terminate().0.success());
    assert_eq!(holder(&lab).await, "");
}

/// As on three hosts with a master and a member each: the master beside the leader sets the election timer.
#[tokio::test(flavor = "multi_thread")]
async fn a_master_beside_the_leader_sets_the_election_timer() {
    let lab = Lab::new().await;
    let members = Member::cluster(Release::Lts, 3);
    let leader = members.iter().position(Member::is_leader).unwrap();
    let addresses = format!("--nb-address={}", addresses(&members));
    let beside = |name: &str, member: usize, timer: &str| {
        let run_dir = format!("--nb-run-dir={}", members[member].dir().display());
        lab.start(&format!("init-master={name}"), &[&addresses, &run_dir, timer, "--sb-raft-election-timer=3"])
    };
    let timers = || members.iter().map(timer).collect::<Vec<_>>();
    let follower = beside("beside-a-follower", (leader + 1) % 3, "--nb-raft-election-timer=3");
    until("SB has no control socket", async || follower.log().contains("cannot set the election timer")).await;
    assert_eq!(timers(), ["1000"; 3], "only the leader may change it");
    let first = beside("beside-the-leader", leader, "--nb-raft-election-timer=3");
    until("the timer of seconds", async || timers() == ["3000"; 3]).await;
    drop(first);
    // of milliseconds; lower ones in one step
    let second = beside("again", leader, "--nb-raft-election-timer=1500");
    until("the timer of milliseconds", async || timers() == ["1500"; 3]).await;
    let changes = second.log().matches("election timer of the cluster changed").count();
    assert_eq!(changes, 1, "{}", second.log());
}

/// Its host has a member of another cluster, which no address leads to.
#[tokio::test(flavor = "multi_thread")]
async fn the_election_timer_of_another_cluster_stays() {
    let lab = Lab::new().await;
    let [used, other] = [(); 2].map(|()| Member::cluster(Release::Lts, 1).remove(0));
    let flags = [
        format!("--nb-address={}", used.remote()),
        format!("--nb-run-dir={}", other.dir().display()),
        "--nb-raft-election-timer=2".to_owned(),
    ];
    let master = lab.start("init-master=one", &flags.each_ref().map(String::as_str));
    let said = "no server that answers at the addresses of the database is in its cluster";
    until("its refusal", async || master.log().contains(said)).await;
    assert!(master.log().contains(&format!("it is in cluster {}", other.cluster_id())));
    assert_eq!([&used, &other].map(timer), ["1000"; 2]);
}

/// Milliseconds, when no change is under way.
fn timer(member: &Member) -> String {
    let status = member.control(&["cluster/status", "OVN_Northbound"]);
    status.lines().find_map(|line| line.strip_prefix("Election timer: ")).unwrap_or_default().to_owned()
}
