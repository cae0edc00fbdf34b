//! Raft clusters of three, and the active-backup pair.

use std::ffi::OsStr;
use std::time::Duration;

use ovnkube_ovn::nb::logical_switch as ls;
use ovnkube_ovn::{Row, Uuid, derived_uuid, nb};
use ovnkube_ovsdb::{Class, Client, Event, Options, Remote, State, Txn};

use crate::lab::{Dir, Host, NB, Release, Server, Trixie, assert_cache_is_fresh, live, options, within};

struct Cluster {
    members: Vec<Server>,
    _dir: Dir,
}

impl Cluster {
    fn new(release: Release) -> Self {
        let dir = Dir::new();
        let address = |n: usize| format!("unix:{}", dir.file(&format!("raft{n}")).display());
        let mut members = Vec::new();
        for n in 0..3 {
            let db = dir.file(&format!("db{n}"));
            let (file, own) = (db.as_os_str(), address(n));
            if n == 0 {
                let schema = release.schema(NB);
                let args = ["create-cluster".as_ref(), file, schema.as_os_str(), own.as_ref()];
                release.run::<&OsStr>("ovsdb-tool", &args);
            } else {
                let first = address(0);
                let args = ["join-cluster".as_ref(), file, "OVN_Northbound".as_ref(), own.as_ref(), first.as_ref()];
                release.run::<&OsStr>("ovsdb-tool", &args);
            }
            members.push(Server::start(release, &dir, &format!("m{n}"), &db, &[]));
            let member = &members[n];
            member.wait_joined();
        }
        Cluster { members, _dir: dir }
    }

    fn remotes(&self) -> Vec<Remote> {
        self.members.iter().map(Server::remote).collect()
    }

    /// The number of the server that a client is connected to.
    async fn member_of(&self, client: &Client) -> usize {
        let mut state = client.state();
        let live = within("a server", state.wait_for(State::is_live)).await.unwrap().clone();
        let State::Live { remote } = live else { unreachable!() };
        self.members.iter().position(|m| m.remote() == remote).unwrap()
    }
}

fn switch(n: u32) -> (Uuid, Row) {
    let name = format!("s{n}");
    (
        derived_uuid("Logical_Switch", &name),
        Row::new(ls::TABLE).with(ls::NAME, name).with(ls::OTHER_CONFIG, [("n", "1")]),
    )
}

/// Writes switch `n`, trying as often as necessary; then it exists exactly once.
async fn write(client: &Client, n: u32) {
    loop {
        let (uuid, row) = switch(n);
        let mut txn = Txn::new(&nb::DATABASE);
        txn.insert(uuid, row);
        match client.transact(txn).await {
            Ok(_) => return,
            Err(e) if e.class == Class::Duplicate => return,
            Err(e) => assert!(e.is_retryable(), "{e}"),
        }
        client.synced().await;
        if client.cache().get(ls::TABLE, uuid).is_some() {
            return;
        }
    }
}

async fn leader_killed(release: Release) {
    let mut cluster = Cluster::new(release);
    let client = live(options(cluster.remotes())).await;
    for n in 0..150 {
        within("write", write(&client, n)).await;
    }
    let mut sub = client.subscribe();
    for round in 0..2_u32 {
        let leader = cluster.member_of(&client).await;
        let before = client.stats();
        cluster.members[leader].kill();
        for n in 0..20 {
            within("write with a new leader", write(&client, 1000 * (round + 1) + n)).await;
        }
        assert_ne!(cluster.member_of(&client).await, leader);
        assert!(client.stats().sessions > before.sessions);
        assert_eq!(client.stats().downloads, before.downloads, "members send only what has changed");
        cluster.members[leader].restart();
        cluster.members[leader].wait_joined();
    }
    let rows = client.cache().len(ls::TABLE);
    assert_eq!(rows, 150 + 40);
    assert_cache_is_fresh(&client, cluster.members[cluster.member_of(&client).await].remote()).await;
    let events = sub.take();
    assert!(events.iter().any(|e| matches!(e, Event::Lost)));
    assert!(matches!(events.last(), Some(Event::Synced)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_continue_when_leaders_die_3_1() {
    leader_killed(Host).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_continue_when_leaders_die_3_5() {
    leader_killed(Trixie).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_leader_is_used_unless_configured_otherwise() {
    let cluster = Cluster::new(Trixie);
    let client = live(options(cluster.remotes())).await;
    within("write", write(&client, 1)).await;
    let leader = cluster.member_of(&client).await;
    let follower = cluster.members[(leader + 1) % 3].remote();
    let strict = Client::connect(options(vec![follower.clone()]));
    let not_leader = |s: &State| matches!(s, State::Disconnected { error } if error.contains("not the leader"));
    within("refusal", strict.state().wait_for(not_leader)).await.unwrap();
    assert!(strict.cache().is_empty(ls::TABLE), "no rows are read from it");
    let reader = live(Options { leader_only: false, ..options(vec![follower]) }).await;
    // a follower forwards writes
    within("write through a follower", write(&reader, 2)).await;
    assert_cache_is_fresh(&client, cluster.members[leader].remote()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_hangs_is_left() {
    let cluster = Cluster::new(Trixie);
    let short = Duration::from_secs(1);
    let timeouts = Options { txn_timeout: short, step_timeout: short, ..options(cluster.remotes()) };
    let client = live(timeouts).await;
    within("write", write(&client, 1)).await;
    let leader = cluster.member_of(&client).await;
    cluster.members[leader].signal("-STOP");
    within("write with a new leader", write(&client, 2)).await;
    assert_ne!(cluster.member_of(&client).await, leader);
    cluster.members[leader].signal("-CONT");
    within("another write", write(&client, 3)).await;
    assert_cache_is_fresh(&client, cluster.members[cluster.member_of(&client).await].remote()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_cut_off_from_its_cluster_is_left() {
    let mut cluster = Cluster::new(Trixie);
    let client = live(Options { leader_only: false, ..options(vec![cluster.members[0].remote()]) }).await;
    within("write", write(&client, 1)).await;
    cluster.members[1].kill();
    cluster.members[2].kill();
    let cut_off = |s: &State| matches!(s, State::Disconnected { error } if error.contains("lost its cluster"));
    within("loss of the cluster", client.state().wait_for(cut_off)).await.unwrap();
    cluster.members[1].restart();
    within("recovery", client.synced()).await;
    within("write", write(&client, 2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_convert_too() {
    let dir = Dir::new();
    let db = dir.file("db");
    let (schema, address) = (Host.schema(NB), format!("unix:{}", dir.file("raft").display()));
    let args = ["create-cluster".as_ref(), db.as_os_str(), schema.as_os_str(), address.as_ref()];
    Trixie.run::<&OsStr>("ovsdb-tool", &args);
    let server = Server::start(Trixie, &dir, "m", &db, &[]);
    let client = live(options(vec![server.remote()])).await;
    for n in 0..30 {
        write(&client, n).await;
    }
    assert!(server.convert(&Trixie.schema(NB)).status.success());
    within("new schema", async {
        while !client.supports(nb::acl::TABLE, nb::acl::TIER) || !client.state().borrow().is_live() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    within("write", write(&client, 31)).await;
    assert_cache_is_fresh(&client, server.remote()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writing_client_leaves_the_backup_of_a_pair() {
    let (dir, backup_dir) = (Dir::new(), Dir::new());
    let active = Server::standalone(Trixie, &dir, NB);
    let db = backup_dir.file("db");
    Trixie.run("ovsdb-tool", &["create".as_ref(), db.as_os_str(), Trixie.schema(NB).as_os_str()]);
    let from = format!("--sync-from=unix:{}", active.socket.display());
    let backup = Server::start(Trixie, &backup_dir, "s", &db, &[from]);
    let only_backup = live(options(vec![backup.remote()])).await;
    let (uuid, row) = switch(1);
    let mut txn = Txn::new(&nb::DATABASE);
    txn.insert(uuid, row);
    let error = only_backup.transact(txn).await.unwrap_err();
    assert_eq!((error.class, error.is_retryable(), error.maybe_committed()), (Class::ReadOnly, true, false), "{error}");
    let client = live(options(vec![backup.remote(), active.remote()])).await;
    within("write", write(&client, 1)).await;
    let state = client.state().borrow().clone();
    assert_eq!(state, State::Live { remote: active.remote() });
    assert_cache_is_fresh(&only_backup, active.remote()).await;
}
