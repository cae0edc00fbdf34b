//! Masters that are killed, and the next ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ovnkube_tests::nb::{Release, until};

use crate::joined;
use crate::lab::{Lab, shared};

/// Killed before each of its writes in turn while it joins and leaves, and followed by another master: the rows become the same, with the
/// same ids. See [`crate::edits`] for all other edits.
#[tokio::test(flavor = "multi_thread")]
async fn a_kill_before_any_write_changes_no_row() {
    const LEFT: &[(&str, &str)] = &[("enable-ic", "false")];
    let lab = Lab::up(Release::Lts).await;
    let (_other, engine) = joined(&lab).await;
    lab.is_quiet().await;
    let joined = lab.everything();
    lab.configure(LEFT).await;
    until("we have left", async || !lab.zones().contains("az1")).await;
    lab.is_quiet().await;
    let left = lab.everything();
    drop(engine);
    let kills = [
        kill_before_each_write(&lab, (Some(LEFT), &left), (Some(&[]), &joined)).await,
        kill_before_each_write(&lab, (Some(&[]), &joined), (Some(LEFT), &left)).await,
        kill_before_each_write(&lab, (Some(&[]), &joined), (None, &left)).await,
    ];
    println!("{kills:?} kills");
    assert!(kills.iter().all(|kills| *kills > 2), "{kills:?}");
}

/// What the ConfigMap has other than usual, `None`: there is none; and the rows then.
type Edit<'a> = (Option<&'a [(&'a str, &'a str)]>, &'a str);

/// From the rows of one edit to those of another one, again and again. Returns how often the first master was killed.
async fn kill_before_each_write(lab: &Lab, from: Edit<'_>, to: Edit<'_>) -> usize {
    let is_as = |(_, rows): Edit<'_>| {
        lab.bind_if_there("cr-az1-ts", "c1");
        lab.everything() == rows
    };
    let edit = async |(changed, _): Edit<'_>| match changed {
        Some(changed) => lab.configure(changed).await,
        None => lab.delete_configuration().await,
    };
    let mut kills = 0;
    for writes in 0.. {
        edit(from).await;
        let engine = lab.engine().await;
        until("all is as at first", async || is_as(from)).await;
        drop(engine);
        edit(to).await;
        let left = Arc::new(AtomicI64::new(writes));
        let killed = lab.engine_that_writes(left.clone()).await;
        let is_killed = || left.load(Ordering::SeqCst) < 0;
        until("it is killed, or all is written", async || is_killed() || is_as(to)).await;
        drop(killed);
        let _engine = lab.engine().await;
        until(&format!("all is as it should be after a kill after {writes} writes"), async || is_as(to)).await;
        if !is_killed() {
            break;
        }
        kills += 1;
    }
    kills
}

/// A master knows from the earlier one where the shared databases are. While they are dead, that stays known.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_whose_configuration_went_while_no_master_ran_has_left() {
    let lab = Lab::up(Release::Lts).await;
    let (other, engine) = joined(&lab).await;
    drop(engine);
    lab.delete_configuration().await;
    for server in lab.shared.iter() {
        server.signal("STOP");
    }
    let engine = lab.engine().await;
    until("their prefix is gone", async || !lab.routes().contains("10.244.0.0/16")).await;
    until("their chassis is gone", async || !lab.has_chassis("gw2")).await;
    assert!(lab.has_chassis("c1"));
    tokio::time::sleep(Duration::from_secs(12)).await;
    drop(engine);
    for server in lab.shared.iter() {
        server.signal("CONT");
    }
    assert!(lab.zones().contains("az1") && lab.kept().contains("az1"), "{}", lab.kept());
    let _engine = lab.engine().await;
    until("we have left", async || !lab.zones().contains("az1")).await;
    until("our prefix is gone", async || !other.routes().contains("10.128.0.0/14")).await;
    until("nothing is kept", async || !lab.kept().contains("az1")).await;
}

/// A zone has no mark of its cluster. So there is none as long as a cluster has nothing else there, and a master that is killed then
/// leaves none that nobody would remove.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_has_nothing_to_offer_yet_leaves_no_zone() {
    let lab = Lab::up(Release::Lts).await;
    let engine = lab.engine().await;
    lab.configure(&[("gw-nodes", "n9")]).await;
    until("a master has taken it up", async || lab.kept().contains("az1")).await;
    lab.event_says("cannot use n9 of key gw-nodes").await;
    lab.is_quiet().await;
    drop(engine);
    lab.delete_configuration().await;
    let _engine = lab.engine().await;
    until("nothing is kept", async || !lab.kept().contains("az1")).await;
    assert_eq!(lab.zones().trim(), "");
}

/// A master that starts while a key is bad goes on as the one before it.
#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_starts_with_a_bad_key_follows_the_others() {
    let lab = Lab::up(Release::Lts).await;
    let (other, engine) = joined(&lab).await;
    lab.is_quiet().await;
    let before = lab.everything();
    drop(engine);
    lab.configure(&[("gw-nodes", "a_b")]).await;
    let engine = lab.engine().await;
    lab.event_says("cannot use key gw-nodes names").await;
    lab.is_quiet().await;
    assert_eq!(lab.everything(), before);
    assert_eq!(engine.writes(), (0, 0));
    other.stop();
    lab.create(&[Lab::route(&lab.zone("az2"), "ts", "10.99.0.0/16", "169.254.100.77")]);
    until("a new route is used", async || lab.routes().contains("10.99.0.0/16")).await;
    lab.configure(&[("enable-ic", "false")]).await;
    until("we have left", async || !lab.zones().contains("az1")).await;
}

/// The ConfigMap names databases that cannot be reached, and the master is restarted: the next one stays where the cluster is, follows
/// what the others do there, and leaves it once it has reached the new ones.
#[tokio::test(flavor = "multi_thread")]
async fn a_move_to_other_databases_goes_on_after_a_restart() {
    let mut lab = Lab::up(Release::Lts).await;
    let (other, engine) = joined(&lab).await;
    lab.is_quiet().await;
    let before = lab.rows();
    lab.configure(&[("ic-nb-port", "1"), ("ic-sb-port", "1")]).await;
    until("the next master will know", async || lab.kept().contains("present")).await;
    drop(engine);
    let engine = lab.engine().await;
    lab.event_says("stays in the previous databases").await;
    assert_eq!(lab.rows(), before);
    other.stop();
    lab.create(&[Lab::route(&lab.zone("az2"), "ts", "10.99.0.0/16", "169.254.100.77")]);
    until("a new route is used", async || lab.routes().contains("10.99.0.0/16")).await;
    drop(engine);

    // edited once more while no master runs
    let first = std::mem::replace(&mut lab.shared, Arc::new(shared(Release::Lts)));
    lab.configure(&[]).await;
    let _engine = lab.engine().await;
    until("it is in the others", async || lab.zones().contains("az1")).await;
    let zones = || first[1].ctl("ovn-ic-sbctl", &["--bare", "--columns=name", "list", "availability_zone"]);
    until("it has left the first ones", async || !zones().contains("az1")).await;
    until("nothing else is kept", async || !lab.kept().contains("present") && !lab.kept().contains("left")).await;
}

/// A master slept between the look at its lease and what it sent, which arrives while the next one works. No lock keeps it out of the
/// databases that clusters share.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_master_sends_late_to_the_shared_databases_is_taken_back() {
    let lab = Lab::up(Release::Lts).await;
    let (other, _engine) = joined(&lab).await;
    lab.is_quiet().await;
    let sbctl = |words: &[&str]| lab.shared[1].ctl("ovn-ic-sbctl", words);
    let rows = || {
        let tables = [
            ("availability_zone", "name"),
            ("gateway", "name,hostname"),
            ("port_binding", "logical_port,transit_switch,gateway,address,tunnel_key"),
            ("route", "ip_prefix,nexthop,transit_switch,origin"),
        ];
        let list = |(table, columns)| {
            let text = sbctl(&["--format=csv", "--no-headings", &format!("--columns={columns}"), "list", table]);
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            (table, lines)
        };
        tables.map(list)
    };
    let before = rows();
    let find = |table: &str, condition: &str| sbctl(&["--bare", "--columns=_uuid", "find", table, condition]);
    let (zone, port) = (find("availability_zone", "name=az1"), find("port_binding", "logical_port=ts-az1"));
    let (gateway, route) = (find("gateway", "name=c1"), find("route", "ip_prefix=\"10.128.0.0/14\""));
    // of another gateway; of a prefix that it had; a port and a route that went; the end of the cluster's membership
    sbctl(&["set", "port_binding", &port, "gateway=c9"]);
    until("its gateway", async || rows() == before).await;
    lab.create(&[Lab::route(&format!("availability_zone={zone}"), "ts", "10.77.0.0/16", "169.254.100.1")]);
    until("its prefixes", async || rows() == before).await;
    sbctl(&["destroy", "route", &route, "--", "destroy", "port_binding", &port]);
    until("its port and its route", async || rows()[3] == before[3] && rows()[2].1.len() == before[2].1.len()).await;
    let words = |table: &'static str, uuids: String| {
        let uuids: Vec<String> = uuids.split_whitespace().map(str::to_owned).collect();
        ["--", "destroy", table].map(str::to_owned).into_iter().chain(uuids).collect::<Vec<_>>()
    };
    let of_zone = format!("availability_zone={zone}");
    lab.create(&[
        words("route", find("route", &of_zone)),
        words("port_binding", find("port_binding", &of_zone)),
        words("gateway", gateway),
        words("availability_zone", zone),
    ]);
    until("all of it", async || {
        lab.bind_if_there("cr-az1-ts", "c1");
        rows()[0] == before[0] && rows()[1] == before[1] && rows()[3] == before[3]
    })
    .await;
    until("their way to us", async || other.routes().contains("10.128.0.0/14")).await;
    assert!(lab.routes().contains("10.244.0.0/16"));
}

/// What does not succeed at once is tried again for a while.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_leaves_once_it_can_write() {
    let lab = Lab::up(Release::Lts).await;
    let (_other, engine) = joined(&lab).await;
    lab.is_quiet().await;
    drop(engine);
    let left = Arc::new(AtomicI64::new(i64::MAX));
    let engine = lab.engine_that_writes(left.clone()).await;
    engine.ready().await;
    lab.is_quiet().await;
    left.store(0, Ordering::SeqCst);
    lab.configure(&[("enable-ic", "false")]).await;
    until("it tries", async || left.load(Ordering::SeqCst) < 0).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(lab.zones().contains("az1"), "{}", lab.zones());
    left.store(i64::MAX, Ordering::SeqCst);
    until("we have left", async || !lab.zones().contains("az1")).await;
}
