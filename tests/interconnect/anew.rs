//! Which database it is: other servers of the same one, and one that was made anew.

use std::sync::Arc;
use std::time::Duration;

use ovnkube_ovn::ic_sb::route;
use ovnkube_ovsdb::{Event, Subscription};
use ovnkube_tests::api::Running;
use ovnkube_tests::nb::{Release, Server, until};
use serde_json::Value;
use tokio::time::sleep;

use crate::lab::{Lab, members, shared};

/// Whether no row changes for so many seconds.
async fn is_quiet(changes: &mut Subscription, seconds: u64) -> bool {
    sleep(Duration::from_secs(seconds)).await;
    !changes.take().iter().any(|event| matches!(event, Event::Row(_)))
}

/// Nobody has run `init` there, as with ovnkube's own scripts: only the clusters have rows.
#[tokio::test(flavor = "multi_thread")]
async fn other_servers_of_the_same_raft_databases_change_no_row() {
    let lab = Lab::of(Arc::new(members(Release::Lts)), ("c1", "172.18.0.2")).await;
    lab.add_switch("ts", "169.254.100.0/24");
    let _engine = lab.engine().await;
    lab.configure(&[]).await;
    lab.bind("cr-az1-ts", "c1").await;
    // OVN's own tool would do what init does
    let south = lab.shared[1].client().await;
    until("our prefix is offered", async || south.cache().len(route::TABLE) == 1).await;
    let mut changes = south.subscribe();
    until("nothing changes", async || is_quiet(&mut changes, 2).await).await;

    lab.configure(&[("ic-db-host", "127.0.0.1,localhost")]).await;
    let has_moved = |kept: &str| kept.contains("localhost") && !kept.contains("present");
    until("it has moved", async || has_moved(&lab.kept())).await;
    assert!(is_quiet(&mut changes, 3).await, "it has left its own databases");
    assert!(!lab.kept().contains("left"), "{}", lab.kept());
}

fn has_way(lab: &Lab) -> bool {
    lab.routes().contains("10.244.0.0/16")
}

/// Joined with a cluster whose master is down. The servers can be started again.
async fn joined_with_rows() -> (Lab, Running) {
    let mut lab = Lab::up(Release::Lts).await;
    lab.shared_mut().iter_mut().for_each(Server::keep_port);
    lab.add_switch("ts", "169.254.100.0/24");
    lab.add_other();
    let engine = lab.engine().await;
    lab.configure(&[]).await;
    lab.bind("cr-az1-ts", "c1").await;
    until("their prefix is here", async || has_way(&lab)).await;
    until("our prefix is there", async || lab.shared_rows().contains("10.128.0.0/14")).await;
    lab.is_quiet().await;
    (lab, engine)
}

/// Longer than what is missing may stay away.
const LONG: Duration = Duration::from_secs(12);

#[tokio::test(flavor = "multi_thread")]
async fn ways_stay_for_a_while_where_the_southbound_database_is_made_anew() {
    let (mut lab, _engine) = joined_with_rows().await;
    lab.shared_mut()[1].wipe();
    until("we are there again", async || lab.zones().contains("az1")).await;
    sleep(Duration::from_secs(2)).await;
    assert!(has_way(&lab) && lab.has_chassis("gw2"), "{}", lab.routes());
    lab.add_other();
    lab.event_says("the shared databases lack ways to other clusters").await;
    sleep(LONG).await;
    assert!(has_way(&lab) && lab.has_chassis("gw2"), "{}", lab.routes());

    lab.shared_mut()[1].wipe();
    until("what does not come back goes", async || !has_way(&lab) && !lab.has_chassis("gw2")).await;
    assert!(lab.has_chassis("c1"));
}

/// Nothing changes where the clusters are back soon, each with the address of before.
#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_starts_on_emptied_databases_gives_them_time() {
    let (mut lab, engine) = joined_with_rows().await;
    let before = lab.ports();
    drop(engine);
    lab.shared_mut().iter_mut().for_each(Server::wipe);
    let _engine = lab.engine().await;
    sleep(Duration::from_secs(3)).await;
    assert!(has_way(&lab) && lab.has_chassis("gw2"), "{}", lab.routes());
    assert_eq!(lab.ports(), before);

    lab.add_switch("ts", "169.254.100.0/24");
    until("our port is there", async || lab.shared_rows().contains("ts-az1")).await;
    lab.add_other();
    sleep(LONG).await;
    assert!(has_way(&lab) && lab.has_chassis("gw2"), "{}", lab.routes());
    assert_eq!(lab.ports(), before);
}

/// The other cluster is there already, with the address of before: no row goes, not even for a moment.
#[tokio::test(flavor = "multi_thread")]
async fn ways_stay_where_a_cluster_moves_to_databases_in_which_the_others_are() {
    let (mut lab, _engine) = joined_with_rows().await;
    let first = std::mem::replace(&mut lab.shared, Arc::new(shared(Release::Lts)));
    lab.add_switch("ts", "169.254.100.0/24");
    lab.add_other();
    let seen = lab.nb.log().len();
    lab.configure(&[]).await;
    until("it is in the others", async || lab.zones().contains("az1")).await;
    let zones = || first[1].ctl("ovn-ic-sbctl", &["--bare", "--columns=name", "list", "availability_zone"]);
    until("it has left the first ones", async || !zones().contains("az1")).await;
    lab.is_quiet().await;
    assert_eq!(removals(&lab.nb, seen), Vec::<Value>::new());
    assert!(lab.shared_rows().contains("10.128.0.0/14"), "{}", lab.shared_rows());
}

/// The transactions after the first `seen` ones that removed a row.
pub(crate) fn removals(server: &Server, seen: usize) -> Vec<Value> {
    let removes = |record: &Value| {
        let mut tables = record.as_object().into_iter().flatten().filter_map(|(_, rows)| rows.as_object());
        tables.any(|rows| rows.values().any(Value::is_null))
    };
    server.log().into_iter().skip(seen).filter(removes).collect()
}

/// Somebody writes over the claims of addresses, or IC-NB is made anew: no row goes, not even for a moment, and the address is that of before, not
/// the one that the names would choose.
#[tokio::test(flavor = "multi_thread")]
async fn a_port_stays_where_its_claim_goes() {
    const CLAIM: &str = "external_ids:ovnkube-addresses-az1=169.254.100.200";
    const CLEAR: [&str; 4] = ["clear", "transit_switch", "ts", "external_ids"];
    const SET: [&str; 5] = ["--", "set", "transit_switch", "ts", "external_ids:subnet=169.254.100.0/24"];
    let (mut lab, _engine) = joined_with_rows().await;
    lab.shared[0].ctl("ovn-ic-nbctl", &["set", "transit_switch", "ts", CLAIM]);
    until("it has another address", async || lab.ports().concat().contains("169.254.100.200")).await;
    lab.is_quiet().await;
    let before = lab.ports();
    let seen = [lab.nb.log().len(), lab.shared[1].log().len()];

    let is_claimed = |lab: &Lab| lab.shared[0].ctl("ovn-ic-nbctl", &["list", "transit_switch"]).contains("100.200");
    lab.shared[0].ctl("ovn-ic-nbctl", &[&CLEAR[..], &SET[..]].concat());
    until("its address is claimed again", async || is_claimed(&lab)).await;
    lab.is_quiet().await;
    lab.shared_mut()[0].wipe();
    lab.add_switch("ts", "169.254.100.0/24");
    until("its address is claimed in the new database", async || is_claimed(&lab)).await;
    lab.is_quiet().await;
    assert_eq!(lab.ports(), before);
    for (server, seen) in [&lab.nb, &lab.shared[1]].into_iter().zip(seen) {
        assert_eq!(removals(server, seen), Vec::<Value>::new());
    }
}

/// A Raft cluster that was created again is another database. People are told what to do, and nothing is written there before.
#[tokio::test(flavor = "multi_thread")]
async fn a_raft_database_that_is_created_again_is_used_after_a_restart() {
    let mut lab = Lab::of(Arc::new(members(Release::Lts)), ("c1", "172.18.0.2")).await;
    lab.shared_mut().iter_mut().for_each(Server::keep_port);
    lab.add_switch("ts", "169.254.100.0/24");
    let engine = lab.engine().await;
    lab.configure(&[]).await;
    until("we are there", async || lab.zones().contains("az1")).await;
    lab.shared_mut()[1].wipe();
    lab.event_says("the southbound interconnection database is not used, since its servers now have another one").await;
    lab.event_says("if it was made anew, restart the master, or set enable-ic to").await;
    assert_eq!(lab.zones(), "");
    drop(engine);
    let _engine = lab.engine().await;
    until("we are there again", async || lab.zones().contains("az1")).await;
}
