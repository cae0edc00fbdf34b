//! Broken connections and bad servers: in the end the cache equals a fresh download.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ovnkube_ovn::nb::{logical_switch as ls, logical_switch_port as lsp};
use ovnkube_ovn::{Atom, Datum, Row, Uuid, derived_uuid, ic_nb, nb};
use ovnkube_ovsdb::{Class, Client, Event, Options, State, Txn, Unfit};

use crate::lab::{Dir, Host, Lts, NB, Server, assert_cache_is_fresh, live, options, within};
use crate::proxy::{Fault, Proxy};

/// Writes switches with ports, deleting every third again, until dropped.
struct Load(tokio::task::JoinHandle<()>);

impl Load {
    fn start(client: Client) -> Self {
        Load(tokio::spawn(async move {
            static NEXT: AtomicU64 = AtomicU64::new(0);
            loop {
                let n = NEXT.fetch_add(1, Ordering::Relaxed);
                if let Err(error) = client.transact(change(n)).await {
                    assert!(error.is_retryable(), "{error}");
                    client.synced().await;
                }
                tokio::task::yield_now().await;
            }
        }))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn change(n: u64) -> Txn {
    let (name, mut txn) = (format!("s{n}"), Txn::new(&nb::DATABASE));
    let (switch, port) = (derived_uuid("Logical_Switch", &name), derived_uuid("Logical_Switch_Port", &name));
    let ids = [("n", n.to_string()), ("text", "{[\"\\\"braces\\\\ and }quotes".to_owned())];
    txn.insert(switch, Row::new(ls::TABLE).with(ls::NAME, name.clone()).with(ls::EXTERNAL_IDS, ids));
    txn.insert(port, Row::new(lsp::TABLE).with(lsp::NAME, name).with(lsp::ADDRESSES, ["dynamic", "router"]));
    txn.insert_into(ls::TABLE, switch, ls::PORTS, Datum::one(Atom::Uuid(port)));
    if let Some(old) = n.checked_sub(40).filter(|old| old % 3 == 0) {
        txn.delete(ls::TABLE, derived_uuid("Logical_Switch", &format!("s{old}")));
    }
    txn
}

async fn filled(server: &Server, rows: u64) -> Client {
    let writer = live(options(vec![server.remote()])).await;
    for n in 0..rows {
        writer.transact(change(n)).await.unwrap();
    }
    writer
}

/// A client behind the proxy goes through `faults`, then is live with the right cache.
async fn survives(faults: Vec<Fault>) {
    let dir = Dir::new();
    let server = Server::standalone(Lts, &dir, NB);
    let writer = filled(&server, 30).await;
    let proxy = Proxy::new(&dir, &server.socket);
    for group in faults.chunks(30) {
        proxy.plan(group.to_vec());
        let short = Duration::from_millis(300);
        let patient = Options { step_timeout: short, monitor_timeout: short, ..options(proxy.remotes()) };
        let client = Client::connect(patient);
        within("recovery", client.synced()).await;
        writer.transact(change(1000)).await.ok();
        assert_cache_is_fresh(&client, server.remote()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_cut_at_any_byte() {
    let cuts = (0..200).step_by(7).chain((200..60_000).step_by(977)).map(Fault::Cut);
    survives(cuts.collect()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_split_into_pieces() {
    survives(vec![Fault::Pieces(1)]).await;
    survives(vec![Fault::Pieces(3)]).await;
    survives(vec![Fault::Pieces(4096)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_at_any_byte() {
    let texts = [
        "]",
        "garbage",
        "{}",
        "{\"id\":77,\"result\":[]}",
        "{\"method\":\"update3\",\"params\":[]}",
        "\u{0}",
        "{\"id\":1}",
    ];
    let places = [0, 10, 200, 38_000, 45_000];
    let all = places.iter().flat_map(|at| texts.iter().map(|text| Fault::Garbage(*at, text)));
    survives(all.collect()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_become_silent_at_any_step() {
    survives(vec![Fault::Stall(0), Fault::Stall(60), Fault::Stall(300), Fault::Stall(20_000), Fault::Stall(45_000)])
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn older_servers_have_fewer_methods() {
    let dir = Dir::new();
    let server = Server::standalone(Host, &dir, NB);
    let writer = filled(&server, 10).await;
    let proxy = Proxy::new(&dir, &server.socket);
    let without: [&'static [&'static str]; 3] = [
        &["monitor_cond_since"],
        &["monitor_cond_since", "monitor_cond"],
        &["set_db_change_aware", "monitor_cond_since", "monitor_cond"],
    ];
    for (round, methods) in without.into_iter().enumerate() {
        proxy.plan([Fault::Without(methods)]);
        let client = live(options(proxy.remotes())).await;
        // update and update2 also contain inserts, changes and deletions
        for n in 0..60 {
            writer.transact(change(1000 * (round as u64 + 1) + n)).await.unwrap();
        }
        let switch = derived_uuid("Logical_Switch", "s1");
        let mut txn = Txn::new(&nb::DATABASE);
        txn.set_keys(ls::TABLE, switch, ls::EXTERNAL_IDS, [("round", round.to_string())]);
        client.transact(txn).await.unwrap();
        let cached =
            client.cache().get(ls::TABLE, switch).unwrap().map(ls::EXTERNAL_IDS).get("round").map(str::to_owned);
        assert_eq!(cached, Some(round.to_string()));
        assert_cache_is_fresh(&client, server.remote()).await;
        assert_eq!(client.stats().sessions, 1, "all on one connection");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_replies_are_reported_and_repeating_is_harmless() {
    let dir = Dir::new();
    let server = Server::standalone(Lts, &dir, NB);
    let proxy = Proxy::new(&dir, &server.socket);
    for (round, fault) in [Fault::LoseReply, Fault::WrongId].into_iter().enumerate() {
        proxy.plan([fault]);
        let client = live(options(proxy.remotes())).await;
        let mut sub = client.subscribe();
        let error = client.transact(change(round as u64)).await.unwrap_err();
        assert_eq!((error.class, error.maybe_committed(), error.is_retryable()), (Class::Lost, true, true), "{error}");
        within("reconnection", client.synced()).await;
        let mut events = Vec::new();
        while !matches!(events.last(), Some(Event::Synced)) || !events.iter().any(|e| matches!(e, Event::Lost)) {
            events.extend(within("events", sub.recv()).await);
        }
        // it was committed: the same transaction is refused because its uuids exist
        assert_eq!(client.transact(change(round as u64)).await.unwrap_err().class, Class::Duplicate);
        assert_cache_is_fresh(&client, server.remote()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_and_restarted_under_load() {
    let dir = Dir::new();
    let mut server = Server::standalone(Lts, &dir, NB);
    let writer = live(options(vec![server.remote()])).await;
    let follower = live(options(vec![server.remote()])).await;
    let mut sub = follower.subscribe();
    let load = Load::start(writer.clone());
    for _ in 0..4 {
        let before = follower.stats().changes;
        within("load", async {
            while follower.stats().changes < before + 100 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        server.kill();
        let mut state = follower.state();
        within("loss", state.wait_for(|s| !s.is_live())).await.unwrap();
        let before = follower.stats();
        server.restart();
        within("reconnection", follower.synced()).await;
        assert_eq!(
            follower.stats().downloads,
            before.downloads + 1,
            "a standalone server cannot go on from a transaction"
        );
    }
    drop(load);
    assert_cache_is_fresh(&follower, server.remote()).await;
    assert_cache_is_fresh(&writer, server.remote()).await;
    // all these events, applied to an empty cache, give the cache
    let mut rows = std::collections::HashMap::new();
    for event in sub.take() {
        if let Event::Row(row) = event {
            let known = match row.new {
                Some(new) => rows.insert((row.table.id, row.uuid), new),
                None => rows.remove(&(row.table.id, row.uuid)),
            };
            assert_eq!(known, row.old, "the old row is the one reported last");
        }
    }
    assert_eq!(rows.len(), crate::lab::dump(&follower).len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_download_reports_only_changes() {
    let dir = Dir::new();
    let mut server = Server::standalone(Host, &dir, NB);
    let writer = filled(&server, 50).await;
    let client = live(options(vec![server.remote()])).await;
    let mut sub = client.subscribe();
    assert!(matches!(sub.recv().await[..], [Event::Synced]));
    drop(writer);
    server.kill();
    within("loss", client.state().wait_for(|s| !s.is_live())).await.unwrap();
    server.restart();
    within("reconnection", client.synced()).await;
    let mut events = Vec::new();
    while !matches!(events.last(), Some(Event::Synced)) {
        events.extend(within("events", sub.recv()).await);
    }
    assert!(events.iter().all(|e| !matches!(e, Event::Row(_))), "{events:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemas_convert_under_load() {
    let dir = Dir::new();
    // a new server with the old schema, as after an upgrade of packages
    let db = dir.file("db");
    let old = Host.schema(NB);
    Lts.run("ovsdb-tool", &["create".as_ref(), db.as_os_str(), old.as_os_str()]);
    let server = Server::start(Lts, &dir, "s", &db, &[]);
    let client = live(options(vec![server.remote()])).await;
    let acl = nb::acl::TABLE;
    assert!(!client.supports(acl, nb::acl::TIER));
    for (schema, has_tier) in [(Lts.schema(NB), true), (Host.schema(NB), false), (Lts.schema(NB), true)] {
        let load = Load::start(client.clone());
        let converted = server.convert(&schema);
        assert!(converted.status.success(), "{converted:?}");
        within("new schema", async {
            while client.supports(acl, nb::acl::TIER) != has_tier || !client.state().borrow().is_live() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        let before = client.stats().transactions;
        within("load", async {
            while client.stats().transactions < before + 20 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        drop(load);
        assert_cache_is_fresh(&client, server.remote()).await;
    }
}

#[tokio::test]
async fn messages_longer_than_allowed_end_the_session() {
    let dir = Dir::new();
    let server = Server::standalone(Lts, &dir, NB);
    let writer = live(options(vec![server.remote()])).await;
    let client = live(Options { max_message: 100_000, ..options(vec![server.remote(); 3]) }).await;
    let mut txn = Txn::new(&nb::DATABASE);
    txn.insert(Uuid::from_u128(1), Row::new(ls::TABLE).with(ls::NAME, "x".repeat(150_000)));
    writer.transact(txn).await.unwrap();
    let mut state = client.state();
    let is_too_long = |s: &State| matches!(s, State::Disconnected { error } if error.contains("longer than"));
    within("the long message", state.wait_for(is_too_long)).await.unwrap();
    let mut txn = Txn::new(&nb::DATABASE);
    txn.delete(ls::TABLE, Uuid::from_u128(1));
    writer.transact(txn).await.unwrap();
    within("recovery", client.synced()).await;
    assert_cache_is_fresh(&client, server.remote()).await;
}

/// Small changes fill a database as well as large ones.
#[tokio::test]
async fn more_rows_than_allowed_end_the_session() {
    let dir = Dir::new();
    let server = Server::standalone(Lts, &dir, NB);
    let writer = live(options(vec![server.remote()])).await;
    let client = live(Options { max_rows: Some(100_000), ..options(vec![server.remote()]) }).await;
    let mut unfit = client.unfit();
    for n in 1..=12 {
        let mut txn = Txn::new(&nb::DATABASE);
        txn.insert(Uuid::from_u128(n), Row::new(ls::TABLE).with(ls::NAME, "x".repeat(10_000)));
        writer.transact(txn).await.unwrap();
    }
    let is_told =
        |said: &Option<Unfit>| matches!(said, Some(Unfit::TooLarge(why)) if why.contains("more than 100000 bytes"));
    within("the report", unfit.wait_for(is_told)).await.unwrap();
    // it tries again, and stays away
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(!client.state().borrow().is_live() && is_told(&unfit.borrow()));
    // one that begins now takes no more
    let late = Client::connect(Options { max_rows: Some(100_000), ..options(vec![server.remote()]) });
    within("the report", late.unfit().wait_for(is_told)).await.unwrap();
    let mut txn = Txn::new(&nb::DATABASE);
    for n in 1..=4 {
        txn.delete(ls::TABLE, Uuid::from_u128(n));
    }
    writer.transact(txn).await.unwrap();
    for client in [client, late] {
        within("recovery", client.synced()).await;
        assert_cache_is_fresh(&client, server.remote()).await;
        assert_eq!(*client.unfit().borrow(), None);
    }
}

/// Such as one whose port was taken for that of another database.
#[tokio::test]
async fn a_server_without_the_database_says_which_it_has() {
    let dir = Dir::new();
    let mut server = Server::standalone(Lts, &dir, NB);
    let client = Client::connect(Options::new(&ic_nb::DATABASE, vec![server.remote()]));
    let why = format!("{}: the server has no database OVN_IC_Northbound but OVN_Northbound", server.remote());
    let told = Some(Unfit::Missing { has: vec!["OVN_Northbound".to_owned()], why });
    within("the report", client.unfit().wait_for(|said| *said == told)).await.unwrap();
    server.kill();
    within("that nothing answers", client.unfit().wait_for(Option::is_none)).await.unwrap();
}

#[tokio::test]
async fn nothing_is_sent_while_not_connected() {
    let dir = Dir::new();
    let client = Client::connect(options(vec![ovnkube_ovsdb::Remote::Unix(dir.file("nobody.sock"))]));
    let error = client.transact(change(1)).await.unwrap_err();
    assert_eq!((error.class, error.is_retryable(), error.maybe_committed()), (Class::NotConnected, true, false));
    within(
        "reason",
        client.state().wait_for(|s| matches!(s, State::Disconnected { error } if error.contains("nobody.sock"))),
    )
    .await
    .unwrap();
}
