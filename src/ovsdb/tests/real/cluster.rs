//! Raft clusters of three, and the active-backup pair.

use std::ffi::OsStr;
use std::time::Duration;

use ovnkube_ovn::nb::{logical_switch as ls, nb_global};
use ovnkube_ovn::{Row, Uuid, derived_uuid, nb, sb};
use ovnkube_ovsdb::{Class, Client, Event, Fence, Lock, Options, Remote, State, Txn, TxnError, Unfit};
use serde_json::{Value, json};

use crate::lab::{Dir, Host, Lts, NB, Release, Server, assert_cache_is_fresh, live, options, within};

pub(crate) struct Cluster {
    pub(crate) members: Vec<Server>,
    _dir: Dir,
}

impl Cluster {
    fn new(release: Release) -> Self {
        Self::with(release, &[])
    }

    /// With more arguments of the servers.
    pub(crate) fn with(release: Release, args: &[String]) -> Self {
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
            members.push(Server::start(release, &dir, &format!("m{n}"), &db, args));
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
pub(crate) async fn write(client: &Client, n: u32) {
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
async fn writes_continue_when_leaders_die_4_0() {
    leader_killed(Lts).await;
}

/// Who writes under the lock `L`, and a lock that it has.
async fn writer(holder: &str, fenced: bool, remote: Remote) -> (Client, Lock) {
    let fence =
        Fence { table: nb_global::TABLE, column: nb_global::EXTERNAL_IDS, key: "writer", holder: holder.to_owned() };
    let fence = fenced.then_some(fence);
    let client = live(Options { leader_only: false, fence, ..options(vec![remote]) }).await;
    let mut lock = client.lock("L");
    within("the lock", lock.until(true)).await;
    (client, lock)
}

/// Writes switch `n` under the lock.
async fn try_under_lock(client: &Client, n: u32) -> Result<(), TxnError> {
    let (uuid, row) = switch(n);
    let mut txn = Txn::new(&nb::DATABASE);
    txn.insert(uuid, row);
    txn.assert_lock("L");
    client.transact(txn).await.map(drop)
}

/// The same until it succeeds.
async fn write_under_lock(client: &Client, n: u32) {
    while let Err(error) = try_under_lock(client, n).await {
        assert!(error.is_retryable(), "{error}");
        client.synced().await;
    }
}

/// A client with a follower sends a transaction, and before the follower gets it another client, with another member, has the
/// same lock and writes.
async fn late_write(fenced: bool) -> Result<(), TxnError> {
    let cluster = Cluster::new(Lts);
    // the member that was first leads
    let (late, _its) = writer("late", fenced, cluster.members[1].remote()).await;
    let (present, _own) = writer("present", fenced, cluster.members[0].remote()).await;
    within("a write", write_under_lock(&late, 1)).await;
    cluster.members[1].signal("-STOP");
    let sent_before = late.stats().transactions;
    let sent = tokio::spawn({
        let late = late.clone();
        async move { try_under_lock(&late, 2).await }
    });
    within("the request", async {
        while late.stats().transactions == sent_before {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    within("a write of another", write_under_lock(&present, 3)).await;
    cluster.members[1].signal("-CONT");
    let result = within("the late write", sent).await.unwrap();
    within("a write after it", write_under_lock(&present, 4)).await;
    assert_eq!(present.cache().get(ls::TABLE, switch(2).0).is_some(), result.is_ok());
    result
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_member_of_a_cluster_gives_out_its_own_locks() {
    late_write(false).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_write_of_a_client_that_another_has_replaced_is_refused() {
    let error = late_write(true).await.unwrap_err();
    assert_eq!(error.class, Class::Conflict, "{error}");
}

/// A client sends a transaction to a member that is stopped, goes to another member and writes there. The first one still counts the
/// session that has ended as the holder of the lock, and passes on what it sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_ended_session_sent_is_refused() {
    let cluster = Cluster::new(Lts);
    // the member that was first leads
    let remotes = [1, 2].map(|member: usize| cluster.members[member].remote());
    let fence =
        Fence { table: nb_global::TABLE, column: nb_global::EXTERNAL_IDS, key: "writer", holder: "one".to_owned() };
    let fence = Some(fence);
    let txn_timeout = Duration::from_secs(3);
    let client = live(Options { leader_only: false, fence, txn_timeout, ..options(remotes.to_vec()) }).await;
    let first = cluster.member_of(&client).await;
    let mut lock = client.lock("L");
    within("the lock", lock.until(true)).await;
    within("a write", write_under_lock(&client, 1)).await;
    cluster.members[first].signal("-STOP");
    let lost = within("the end of the session", try_under_lock(&client, 2)).await.unwrap_err();
    assert!(lost.maybe_committed(), "{lost}");
    within("a write by another member", write_under_lock(&client, 3)).await;
    assert_ne!(cluster.member_of(&client).await, first);
    cluster.members[first].signal("-CONT");
    let other = live(Options { leader_only: false, ..options(vec![cluster.members[first].remote()]) }).await;
    // what the member got while it was stopped comes before this
    within("a write after it", write_under_lock(&client, 4)).await;
    let has = |n| other.cache().get(ls::TABLE, switch(n).0).is_some();
    within("the last write at the first member", async {
        while !has(4) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(has(3) && !has(2));
}

/// What somebody does to the row with the name.
type Edit = fn(&mut Txn, Uuid);

/// Who removes the name, or the row with it, costs one more transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_somebody_removes_is_written_again() {
    let cluster = Cluster::new(Lts);
    let (client, _lock) = writer("one", true, cluster.members[0].remote()).await;
    let admin = live(options(vec![cluster.members[0].remote()])).await;
    within("a write", write_under_lock(&client, 1)).await;
    let (table, column) = (nb_global::TABLE, nb_global::EXTERNAL_IDS);
    let global =
        || admin.cache().iter(table).next().map(|(uuid, row)| (uuid, row.map(column).get("writer") == Some("one")));
    let edits: [Edit; 4] = [
        |txn, global| {
            txn.remove_keys(nb_global::TABLE, global, nb_global::EXTERNAL_IDS, ["writer"]);
        },
        |txn, global| {
            txn.set_keys(nb_global::TABLE, global, nb_global::EXTERNAL_IDS, [("writer", "two")]);
        },
        |txn, global| {
            txn.set_keys(nb_global::TABLE, global, nb_global::EXTERNAL_IDS, [("x", "y")]);
        },
        |txn, global| {
            txn.delete(nb_global::TABLE, global);
        },
    ];
    for (n, edit) in (10..).zip(edits) {
        let mut txn = Txn::new(&nb::DATABASE);
        edit(&mut txn, global().unwrap().0);
        within("an edit", admin.transact(txn)).await.unwrap();
        let before = client.stats().transactions;
        within("a write after it", write_under_lock(&client, n)).await;
        // one may be refused since the edit was not known yet
        let sent = client.stats().transactions - before;
        assert!(sent <= 3, "{sent} transactions after edit {n}");
        within("it", async {
            while !global().is_some_and(|(_, is_there)| is_there) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        let before = client.stats().transactions;
        within("the next write", write_under_lock(&client, 100 + n)).await;
        assert_eq!(client.stats().transactions - before, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_leader_is_used_unless_configured_otherwise() {
    let cluster = Cluster::new(Lts);
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
    let cluster = Cluster::new(Lts);
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
    let mut cluster = Cluster::new(Lts);
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

/// A cluster of one, in a directory that may have been another one's.
fn one(dir: &Dir) -> Server {
    let (db, address) = (dir.file("db"), format!("unix:{}", dir.file("raft").display()));
    let _ = std::fs::remove_file(&db);
    let schema = Lts.schema(NB);
    Lts.run::<&OsStr>("ovsdb-tool", &["create-cluster".as_ref(), db.as_os_str(), schema.as_os_str(), address.as_ref()]);
    Server::start(Lts, dir, "m", &db, &[])
}

async fn refused(client: &Client, remote: &Remote, why: &str) {
    let is_refused = |s: &State| matches!(s, State::Disconnected { error } if error.starts_with(&remote.to_string()) && error.contains(why));
    within("refusal", client.state().wait_for(is_refused)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_another_cluster_is_refused() {
    let (dir, other_dir, alone_dir) = (Dir::new(), Dir::new(), Dir::new());
    let (mut server, other) = (one(&dir), one(&other_dir));
    let alone = Server::standalone(Lts, &alone_dir, NB);
    let id = |server: &Server| Lts.run("ovsdb-tool", &["db-cid".as_ref(), server.db.as_os_str()]).trim().to_owned();
    let first = id(&server);
    // found as the first one: the others cannot be reached yet
    other.signal("-STOP");
    alone.signal("-STOP");
    let client = live(options(vec![server.remote(), other.remote(), alone.remote()])).await;
    let old_copy = dir.file("old");
    std::fs::copy(&server.db, &old_copy).unwrap();
    for n in 1..=10 {
        within("write", write(&client, n)).await;
    }
    let mut unfit = client.unfit();
    assert_eq!(*unfit.borrow(), None);
    server.kill();
    other.signal("-CONT");
    alone.signal("-CONT");
    let of_other = format!("server is in cluster {}, but this process uses cluster {first}", id(&other));
    refused(&client, &other.remote(), &of_other).await;
    let told = format!("{}: {of_other}; give the addresses", other.remote());
    let is_told = |said: &Option<Unfit>| matches!(said, Some(Unfit::Stranger(why)) if why.starts_with(&told));
    within("its name", unfit.wait_for(is_told)).await.unwrap();
    refused(&client, &alone.remote(), &format!("server is in no cluster, but this process uses cluster {first}")).await;
    assert_eq!(client.cache().len(ls::TABLE), 10, "nothing was read from another cluster");
    server.restart();
    within("return of the first", client.synced()).await;
    assert_eq!(*client.state().borrow(), State::Live { remote: server.remote() });
    assert_eq!(*unfit.borrow(), None, "the right one is used");
    // an old copy of its file, of the time of its first start
    server.kill();
    let now = dir.file("now");
    std::fs::rename(&server.db, &now).unwrap();
    std::fs::copy(&old_copy, &server.db).unwrap();
    server.restart();
    let ends_early = |said: &Option<Unfit>| matches!(said, Some(Unfit::Older(why)) if why.contains("the log of the server ends before entry"));
    within("its age", unfit.wait_for(ends_early)).await.unwrap();
    server.kill();
    std::fs::rename(&now, &server.db).unwrap();
    server.restart();
    within("return of the newer one", client.synced()).await;
    assert_eq!(*unfit.borrow(), None);
    // created again: the process must be started anew
    server.kill();
    let server = one(&dir);
    let again = format!("server is in cluster {}, but this process uses cluster {first}", id(&server));
    refused(&client, &server.remote(), &again).await;
    let restarted = live(options(vec![server.remote()])).await;
    assert!(restarted.cache().is_empty(ls::TABLE));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_convert_too() {
    let dir = Dir::new();
    let db = dir.file("db");
    let (schema, address) = (Host.schema(NB), format!("unix:{}", dir.file("raft").display()));
    let args = ["create-cluster".as_ref(), db.as_os_str(), schema.as_os_str(), address.as_ref()];
    Lts.run::<&OsStr>("ovsdb-tool", &args);
    let server = Server::start(Lts, &dir, "m", &db, &[]);
    let client = live(options(vec![server.remote()])).await;
    for n in 0..30 {
        write(&client, n).await;
    }
    assert!(server.convert(&Lts.schema(NB)).status.success());
    within("new schema", async {
        while !client.supports(nb::acl::TABLE, nb::acl::TIER) || !client.state().borrow().is_live() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    within("write", write(&client, 31)).await;
    assert_cache_is_fresh(&client, server.remote()).await;
}

/// An active server and a backup that copies it.
struct Pair {
    servers: [Server; 2],
    _dir: Dir,
}

impl Pair {
    /// Number 0 is active.
    fn new(release: Release) -> Self {
        let dir = Dir::new();
        let start = |name: &str, other: &str, role: &[&str]| {
            let db = dir.file(&format!("{name}.db"));
            release.run("ovsdb-tool", &["create".as_ref(), db.as_os_str(), release.schema(NB).as_os_str()]);
            let mut args = vec![format!("--sync-from=unix:{}", dir.file(&format!("{other}.sock")).display())];
            args.extend(role.iter().map(ToString::to_string));
            Server::start(release, &dir, name, &db, &args)
        };
        Pair { servers: [start("a", "b", &["--active"]), start("b", "a", &[])], _dir: dir }
    }

    fn remotes(&self) -> Vec<Remote> {
        self.servers.iter().map(Server::remote).collect()
    }

    /// Makes this one active, and the other one its backup.
    fn activate(&self, n: usize) {
        self.servers[1 - n].appctl(&["ovsdb-server/connect-active-ovsdb-server"]);
        self.servers[n].appctl(&["ovsdb-server/disconnect-active-ovsdb-server"]);
    }
}

async fn live_at(client: &Client, remote: Remote) {
    let wanted = State::Live { remote };
    within("a session with the active server", client.state().wait_for(|state| *state == wanted)).await.unwrap();
}

async fn is_a_backup(client: &Client, remote: Remote) {
    let backup = |s: &State| matches!(s, State::Disconnected { error } if error.contains("is a backup") && error.contains(&remote.to_string()));
    within("refusal of the backup", client.state().wait_for(backup)).await.unwrap();
}

/// What is written once; it is not refused.
async fn write_once(client: &Client, n: u32) {
    let (uuid, row) = switch(n);
    let mut txn = Txn::new(&nb::DATABASE);
    txn.insert(uuid, row);
    within("write", client.transact(txn)).await.unwrap();
}

async fn backup_is_not_used(release: Release) {
    let pair = Pair::new(release);
    let [active, backup] = &pair.servers;
    let client = live(options(vec![backup.remote(), active.remote()])).await;
    assert_eq!(*client.state().borrow(), State::Live { remote: active.remote() });
    write_once(&client, 1).await;
    // nothing is read from it before it is active
    let waits = Client::connect(options(vec![backup.remote()]));
    is_a_backup(&waits, backup.remote()).await;
    assert!(waits.cache().is_empty(ls::TABLE) && waits.schema().is_none());
    // roles change while clients are connected; the servers do not tell
    pair.activate(1);
    live_at(&waits, backup.remote()).await;
    live_at(&client, backup.remote()).await;
    write_once(&client, 2).await;
    assert_cache_is_fresh(&waits, backup.remote()).await;
    assert_cache_is_fresh(&client, backup.remote()).await;
    assert_eq!(client.stats().transactions, 2);
    pair.activate(0);
    is_a_backup(&waits, backup.remote()).await;
    live_at(&client, active.remote()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_not_used_while_it_is_one_3_1() {
    backup_is_not_used(Host).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_not_used_while_it_is_one_4_0() {
    backup_is_not_used(Lts).await;
}

/// Only the southbound database has such ports.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_connection_is_not_used_while_it_is_one() {
    let dir = Dir::new();
    let db = dir.file("a.db");
    Lts.run("ovsdb-tool", &["create".as_ref(), db.as_os_str(), Lts.schema("ovn/ovn-sb.ovsschema").as_os_str()]);
    let args = ["--remote=db:OVN_Southbound,SB_Global,connections".to_owned()];
    let server = Server::start(Lts, &dir, "a", &db, &args);
    let transact = |operations: Value| {
        let mut all = vec![json!("OVN_Southbound")];
        all.extend(operations.as_array().unwrap().iter().cloned());
        let said = Lts.run("ovsdb-client", &["transact", &server.remote().to_string(), &json!(all).to_string()]);
        assert!(!said.contains("error"), "{said}");
    };
    let port = dir.file("port.sock");
    let listen = |read_only: bool| {
        let row = json!({"target": format!("punix:{}", port.display()), "read_only": read_only});
        transact(json!([
            {"op": "insert", "table": "Connection", "uuid-name": "port", "row": row},
            {"op": "mutate", "table": "SB_Global", "where": [], "mutations": [["connections", "insert", ["set", [["named-uuid", "port"]]]]]},
        ]));
    };
    transact(json!([{"op": "insert", "table": "SB_Global", "row": {}}]));
    listen(true);
    let remote = Remote::Unix(port.clone());
    let client = Client::connect(Options::new(&sb::DATABASE, vec![remote.clone()]));
    let refused =
        |s: &State| matches!(s, State::Disconnected { error } if error.contains("its Connection is read_only"));
    within("refusal of the port", client.state().wait_for(refused)).await.unwrap();
    assert!(client.schema().is_none());
    // a server that listens keeps to what its row said first: the row is made anew
    transact(json!([{"op": "update", "table": "SB_Global", "where": [], "row": {"connections": ["set", []]}}]));
    listen(false);
    live_at(&client, remote).await;
}

/// A write that meets the new backup before its role is asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_a_new_backup_refuses_is_tried_with_the_other() {
    let pair = Pair::new(Lts);
    let client = live(options(pair.remotes())).await;
    pair.activate(1);
    let (uuid, row) = switch(1);
    let mut txn = Txn::new(&nb::DATABASE);
    txn.insert(uuid, row);
    let error = client.transact(txn).await.unwrap_err();
    assert_eq!((error.class, error.is_retryable(), error.maybe_committed()), (Class::ReadOnly, true, false), "{error}");
    live_at(&client, pair.servers[1].remote()).await;
    write_once(&client, 1).await;
}
