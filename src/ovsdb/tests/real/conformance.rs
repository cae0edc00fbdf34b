//! Parts of the protocol that the other tests do not cover.

use std::time::Duration;

use ovnkube_ovn::nb::{connection as c, logical_switch as ls, nb_global};
use ovnkube_ovn::sb::{chassis, encap};
use ovnkube_ovn::vswitch::{bridge, interface, open_vswitch as ovs, port};
use ovnkube_ovn::{Atom, Datum, Row, Uuid, nb, sb, vswitch};
use ovnkube_ovsdb::{Class, Client, Condition, Monitored, Options, Remote, State, Txn};

use crate::lab::{Dir, Host, Lts, NB, Server, assert_cache_is_fresh, live, options, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_are_waited_for_and_can_be_stolen() {
    let dir = Dir::new();
    let mut server = Server::standalone(Lts, &dir, NB);
    let (a, b) = (live(options(vec![server.remote()])).await, live(options(vec![server.remote()])).await);
    let mut first = a.lock("L");
    within("lock", first.until(true)).await;
    let mut second = b.lock("L");
    let mut txn = Txn::new(&nb::DATABASE);
    txn.assert_lock("L");
    assert_eq!(b.transact(txn.clone()).await.unwrap_err().class, Class::NotOwner);
    assert!(!second.is_held());
    drop(first);
    within("lock handed on", second.until(true)).await;
    b.transact(txn.clone()).await.unwrap();
    let mut thief = a.lock("L");
    assert!(!second.standing().borrow().stolen);
    thief.steal();
    within("theft", thief.until(true)).await;
    within("loss", second.until(false)).await;
    assert!(second.standing().borrow().stolen);
    a.transact(txn.clone()).await.unwrap();
    // the lock is lost with the connection; the first client that reconnects gets it
    server.kill();
    within("loss", thief.until(false)).await;
    drop(second);
    server.restart();
    within("lock again", thief.until(true)).await;
    a.transact(txn).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_address_of_the_other_database_is_reported_at_once() {
    let dir = Dir::new();
    let server = Server::standalone(Host, &dir, "ovn/ovn-sb.ovsschema");
    for _ in 0..10 {
        let client = Client::connect(options(vec![server.remote()]));
        let mut state = client.state();
        let first = |state: &State| matches!(state, State::Disconnected { error } if error.contains("unix:"));
        let first = within("an error", state.wait_for(first)).await.unwrap().clone();
        let State::Disconnected { error } = first else { panic!("{first:?}") };
        assert!(error.contains("OVN_Northbound but OVN_Southbound") && error.contains("nb-address"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_sides_answer_echoes() {
    let dir = Dir::new();
    let server = Server::standalone(Lts, &dir, NB);
    // a listener from the database, with a server that asks after four seconds of silence
    let admin = live(options(vec![server.remote()])).await;
    let (global, connection) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let mut txn = Txn::new(&nb::DATABASE);
    let listener = Row::new(c::TABLE).with(c::TARGET, "ptcp:0:127.0.0.1").with(c::INACTIVITY_PROBE, Some(4000));
    txn.insert(connection, listener);
    txn.insert(global, Row::new(nb_global::TABLE).with(nb_global::CONNECTIONS, [connection]));
    admin.transact(txn).await.unwrap();
    server.appctl(&["ovsdb-server/add-remote", "db:OVN_Northbound,NB_Global,connections"]);
    let remote = Remote::Tcp { host: "127.0.0.1".to_owned(), port: server.port() };
    let client = live(Options { probe: Some(Duration::from_secs(4)), ..options(vec![remote]) }).await;
    tokio::time::sleep(Duration::from_secs(13)).await;
    assert_eq!(client.stats().sessions, 1, "neither side ended the connection");
    assert!(client.state().borrow().is_live());
    // the client leaves a server that does not answer
    server.signal("-STOP");
    within("silence noticed", client.state().wait_for(|s| !s.is_live())).await.unwrap();
    server.signal("-CONT");
    within("recovery", client.synced()).await;
    assert_cache_is_fresh(&client, server.remote()).await;
}

#[tokio::test]
async fn only_monitored_columns_are_cached() {
    let dir = Dir::new();
    let server = Server::standalone(Host, &dir, NB);
    let writer = live(options(vec![server.remote()])).await;
    let tables = vec![Monitored::only(ls::TABLE, [ls::NAME.id()])];
    let client = live(Options { tables, ..options(vec![server.remote()]) }).await;
    let uuid = Uuid::from_u128(1);
    let mut txn = Txn::new(&nb::DATABASE);
    txn.insert(uuid, Row::new(ls::TABLE).with(ls::NAME, "n").with(ls::OTHER_CONFIG, [("a", "b")]));
    writer.transact(txn).await.unwrap();
    // a write of an unmonitored column comes back without an update
    let mut txn = Txn::new(&nb::DATABASE);
    txn.set_keys(ls::TABLE, uuid, ls::OTHER_CONFIG, [("c", "d")]);
    client.transact(txn).await.unwrap();
    assert_eq!(*client.cache().get(ls::TABLE, uuid).unwrap().as_ref(), Row::new(ls::TABLE).with(ls::NAME, "n"));
    assert_eq!(client.cache().len(nb_global::TABLE), 0);
}

#[tokio::test]
async fn the_other_databases_work_too() {
    let dir = Dir::new();
    let server = Server::standalone(Host, &dir, "openvswitch/vswitch.ovsschema");
    let client = live(Options::new(&vswitch::DATABASE, vec![server.remote()])).await;
    let [root, br, p, i] = [1, 2, 3, 4].map(Uuid::from_u128);
    let one = |u| Datum::one(Atom::Uuid(u));
    let mut txn = Txn::new(&vswitch::DATABASE);
    txn.insert(root, Row::new(ovs::TABLE).with(ovs::EXTERNAL_IDS, [("system-id", "n1")]));
    txn.insert(br, Row::new(bridge::TABLE).with(bridge::NAME, "br-int").with(bridge::PORTS, [p]));
    txn.insert(p, Row::new(port::TABLE).with(port::NAME, "p").with(port::INTERFACES, [i]));
    txn.insert(i, Row::new(interface::TABLE).with(interface::NAME, "p").with(interface::OFPORT_REQUEST, Some(7)));
    txn.insert_into(ovs::TABLE, root, ovs::BRIDGES, one(br));
    client.transact(txn).await.unwrap();
    assert_eq!(client.cache().parents(i).map(|p| p.uuid).collect::<Vec<_>>(), [p]);
    assert_eq!(client.cache().get(interface::TABLE, i).unwrap().opt_int(interface::OFPORT_REQUEST), Some(7));
    let mut txn = Txn::new(&vswitch::DATABASE);
    txn.remove_from(ovs::TABLE, root, ovs::BRIDGES, one(br));
    client.transact(txn).await.unwrap();
    assert!(client.cache().is_empty(interface::TABLE), "all child rows were deleted with it");

    let dir = Dir::new();
    let server = Server::standalone(Lts, &dir, "ovn/ovn-sb.ovsschema");
    let client = live(Options::new(&sb::DATABASE, vec![server.remote()])).await;
    let mut txn = Txn::new(&sb::DATABASE);
    let mut tunnel = Row::new(encap::TABLE).with(encap::TYPE, "geneve").with(encap::IP, "192.0.2.1");
    txn.insert(p, tunnel.clone());
    txn.insert(i, Row::new(chassis::TABLE).with(chassis::NAME, "n1").with(chassis::ENCAPS, [p]));
    client.transact(txn).await.unwrap();
    // a second row with the same values violates an index
    tunnel.set(encap::CHASSIS_NAME, "");
    let mut txn = Txn::new(&sb::DATABASE);
    txn.insert(br, tunnel);
    txn.insert_into(chassis::TABLE, i, chassis::ENCAPS, one(br));
    assert_eq!(client.transact(txn).await.unwrap_err().class, Class::Constraint);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn databases_of_many_rows_arrive_completely() {
    let dir = Dir::new();
    let server = Server::standalone(Lts, &dir, NB);
    let writer = live(options(vec![server.remote()])).await;
    // more than the reader processes in place: this takes the path of large messages
    for batch in 0..5_u128 {
        let mut txn = Txn::new(&nb::DATABASE);
        for n in 0..2000 {
            let text = "\\\"{}[]é".repeat(20);
            let row =
                Row::new(ls::TABLE).with(ls::NAME, format!("s{batch}-{n}")).with(ls::EXTERNAL_IDS, [("text", text)]);
            txn.insert(Uuid::from_u128(batch * 10_000 + n + 1), row);
        }
        writer.transact(txn).await.unwrap();
    }
    let client = live(options(vec![server.remote()])).await;
    assert_eq!(client.cache().len(ls::TABLE), 10_000);
    assert!(client.stats().bytes_received > 2_000_000);
    assert_cache_is_fresh(&writer, server.remote()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_change_while_connected() {
    let dir = Dir::new();
    let mut server = Server::standalone(Lts, &dir, NB);
    let writer = live(options(vec![server.remote()])).await;
    let mut txn = Txn::new(&nb::DATABASE);
    for n in 1..5_u128 {
        txn.insert(Uuid::from_u128(n), Row::new(ls::TABLE).with(ls::NAME, format!("s{n}")));
    }
    txn.durable();
    writer.transact(txn).await.unwrap();
    let client = Client::connect(options(vec![server.remote()]));
    let only = |names: &[&str]| {
        let name = |n: &&str| (ls::NAME.id(), Datum::one(Atom::Str((*n).into())));
        Condition::Any(names.iter().map(name).collect())
    };
    let rows = || {
        let mut rows: Vec<String> = client.cache().iter(ls::TABLE).map(|(_, r)| r.str(ls::NAME).to_owned()).collect();
        rows.sort();
        rows
    };
    let taken_in = async || {
        while !client.has_conditions() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    client.set_condition(ls::TABLE, only(&["s1", "s2"]));
    within("first download", client.synced()).await;
    let mut events = client.subscribe();
    for wanted in [&["s1", "s2"][..], &["s2", "s3"], &[], &["s4"]] {
        client.set_condition(ls::TABLE, only(wanted));
        within("the condition", taken_in()).await;
        assert_eq!(rows(), wanted, "a cache that has the condition has its rows");
        within("rows wanted", async {
            while rows() != wanted {
                events.recv().await;
            }
        })
        .await;
    }
    server.kill();
    within("loss", client.state().wait_for(|s| !s.is_live())).await.unwrap();
    assert!(!client.has_conditions(), "nobody knows what the next server sends");
    server.restart();
    within("reconnection", client.synced()).await;
    assert_eq!(rows(), ["s4"], "the condition outlives the connection");
    assert!(client.has_conditions());
    // a server that is stopped sends nothing of another one
    server.signal("-STOP");
    client.set_condition(ls::TABLE, only(&["s1", "s4"]));
    assert!(client.state().borrow().is_live() && !client.has_conditions());
    server.signal("-CONT");
    within("both rows", taken_in()).await;
    assert_eq!(rows(), ["s1", "s4"]);
    client.set_condition(ls::TABLE, Condition::All);
    within("all rows", async {
        while rows().len() != 4 {
            events.recv().await;
        }
    })
    .await;
    assert_cache_is_fresh(&client, server.remote()).await;
}
