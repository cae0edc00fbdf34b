//! Connect, follow, write.

use ovnkube_ovn::nb::{acl, load_balancer, logical_switch as ls, logical_switch_port as lsp, port_group as pg};
use ovnkube_ovn::{Atom, Datum, Row, Uuid, derived_uuid, nb};
use ovnkube_ovsdb::{Class, Event, RowEvent, Subscription, Txn};

use crate::lab::{Dir, Host, Lts, NB, Release, Server, assert_cache_is_fresh, live, options, within};

fn one(uuid: Uuid) -> Datum {
    Datum::one(Atom::Uuid(uuid))
}

/// A switch with one port, in one transaction.
fn switch_and_port(name: &str) -> (Txn, Uuid, Uuid) {
    let (switch, port) = (derived_uuid("Logical_Switch", name), derived_uuid("Logical_Switch_Port", name));
    let mut txn = Txn::new(&nb::DATABASE);
    txn.insert(switch, Row::new(ls::TABLE).with(ls::NAME, name));
    txn.insert(port, Row::new(lsp::TABLE).with(lsp::NAME, format!("{name}-port")).with(lsp::ADDRESSES, ["dynamic"]));
    txn.insert_into(ls::TABLE, switch, ls::PORTS, one(port));
    (txn, switch, port)
}

fn written(write: impl FnOnce(&mut Txn)) -> Txn {
    let mut txn = Txn::new(&nb::DATABASE);
    write(&mut txn);
    txn
}

async fn rows(sub: &mut Subscription) -> Vec<RowEvent> {
    let events = within("events", sub.recv()).await;
    events.into_iter().filter_map(|e| if let Event::Row(row) = e { Some(row) } else { None }).collect()
}

async fn read_your_writes(release: Release) {
    let dir = Dir::new();
    let server = Server::standalone(release, &dir, NB);
    let client = live(options(vec![server.remote()])).await;
    let (txn, switch, port) = switch_and_port("n1");
    client.transact(txn).await.unwrap();
    {
        let cache = client.cache();
        assert_eq!(cache.lookup(ls::TABLE, "n1"), [switch]);
        assert!(cache.get(ls::TABLE, switch).unwrap().uuids(ls::PORTS).any(|uuid| uuid == port));
        assert_eq!(cache.get(lsp::TABLE, port).unwrap().str(lsp::NAME), "n1-port");
        let parents: Vec<_> = cache.parents(port).map(|p| (p.table.name, p.column, p.uuid)).collect();
        assert_eq!(parents, [("Logical_Switch", ls::PORTS.id(), switch)]);
    }
    // maps: other keys stay, an old value is replaced, a removed key is deleted
    let mut txn = Txn::new(&nb::DATABASE);
    txn.set_keys(ls::TABLE, switch, ls::EXTERNAL_IDS, [("a", "1"), ("b", "2")]);
    client.transact(txn).await.unwrap();
    let mut txn = Txn::new(&nb::DATABASE);
    txn.set_keys(ls::TABLE, switch, ls::EXTERNAL_IDS, [("a", "9")]);
    txn.remove_keys(ls::TABLE, switch, ls::EXTERNAL_IDS, ["b", "not there"]);
    txn.set_keys(ls::TABLE, switch, ls::EXTERNAL_IDS, [("c", "3")]);
    client.transact(txn).await.unwrap();
    let ids: Vec<(String, String)> = {
        let cache = client.cache();
        let row = cache.get(ls::TABLE, switch).unwrap();
        row.map(ls::EXTERNAL_IDS).iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
    };
    assert_eq!(ids, [("a".to_owned(), "9".to_owned()), ("c".to_owned(), "3".to_owned())]);
    assert_cache_is_fresh(&client, server.remote()).await;
    // removing the last reference removes the port
    let mut txn = Txn::new(&nb::DATABASE);
    txn.remove_from(ls::TABLE, switch, ls::PORTS, one(port));
    client.transact(txn).await.unwrap();
    assert!(client.cache().get(lsp::TABLE, port).is_none());
    let mut txn = Txn::new(&nb::DATABASE);
    txn.delete(ls::TABLE, switch);
    assert_eq!(client.transact(txn.clone()).await.unwrap().counts, [Some(1)]);
    assert_eq!(client.transact(txn).await.unwrap().counts, [Some(0)], "deleting a missing row is no error");
    assert_cache_is_fresh(&client, server.remote()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_are_in_the_cache_when_transact_returns_3_1() {
    read_your_writes(Host).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_are_in_the_cache_when_transact_returns_4_0() {
    read_your_writes(Lts).await;
}

#[tokio::test]
async fn events_are_merged_and_own_changes_are_marked() {
    let dir = Dir::new();
    let server = Server::standalone(Lts, &dir, NB);
    let (ours, theirs) = (live(options(vec![server.remote()])).await, live(options(vec![server.remote()])).await);
    let mut sub = ours.subscribe();
    assert!(matches!(within("marker", sub.recv()).await[..], [Event::Synced]));
    let (txn, switch, port) = switch_and_port("n1");
    ours.transact(txn).await.unwrap();
    let mut txn = Txn::new(&nb::DATABASE);
    txn.update(switch, Row::new(ls::TABLE).with(ls::OTHER_CONFIG, [("subnet", "10.0.0.0/24")]));
    ours.transact(txn).await.unwrap();
    let mut seen = rows(&mut sub).await;
    seen.sort_by_key(|e| e.table.name);
    let [first, second] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((first.uuid, second.uuid), (switch, port));
    assert!(first.old.is_none() && first.own && second.own);
    assert_eq!(first.new.as_ref().unwrap().map(ls::OTHER_CONFIG).get("subnet"), Some("10.0.0.0/24"));
    // another client's write is not ours
    let mut txn = Txn::new(&nb::DATABASE);
    txn.update(switch, Row::new(ls::TABLE).with(ls::NAME, "renamed"));
    theirs.transact(txn).await.unwrap();
    let seen = rows(&mut sub).await;
    assert!(!seen[0].own && seen[0].uuid == switch, "{seen:?}");
    assert_eq!(seen[0].old.as_ref().unwrap().str(ls::NAME), "n1");
    assert_eq!(ours.cache().lookup(ls::TABLE, "renamed"), [switch]);
    assert!(ours.cache().lookup(ls::TABLE, "n1").is_empty());
    // a port that is deleted with its switch is our change, like that of the switch
    let mut txn = Txn::new(&nb::DATABASE);
    txn.delete(ls::TABLE, switch);
    ours.transact(txn).await.unwrap();
    let seen = rows(&mut sub).await;
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|e| e.new.is_none() && e.own), "{seen:?}");
}

#[tokio::test]
async fn what_the_server_would_ignore_silently_is_refused() {
    let dir = Dir::new();
    let server = Server::standalone(Lts, &dir, NB);
    let client = live(options(vec![server.remote()])).await;
    let (txn, switch, port) = switch_and_port("n1");
    client.transact(txn).await.unwrap();
    let sent = client.stats().transactions;
    let new = |n| Uuid::from_u128(n);
    let weak = Row::new(pg::TABLE).with(pg::NAME, "g").with(pg::PORTS, [new(2)]);
    let rule = |row: Row| {
        written(|t| {
            t.insert(new(4), row.with(acl::DIRECTION, "to-lport"));
            t.insert_into(ls::TABLE, switch, ls::ACLS, one(new(4)));
        })
    };
    let drops = || Row::new(acl::TABLE).with(acl::ACTION, "drop");
    let cell = |column, datum| written(|t| _ = t.update(port, Row::from_cells(lsp::TABLE, [(column, datum)])));
    let text = Datum::one(Atom::Str("x".into()));
    let cases = [
        ("refers to it strongly", written(|t| _ = t.insert(new(1), Row::new(lsp::TABLE).with(lsp::NAME, "x")))),
        ("Port does not have", written(|t| _ = t.insert_into(ls::TABLE, switch, ls::PORTS, one(new(2))))),
        // a weak reference that the server would drop silently
        ("Port does not have", written(|t| _ = t.insert(new(3), weak))),
        ("is not one of allow", rule(Row::new(acl::TABLE).with(acl::ACTION, "bogus"))),
        ("99999 is not in 0..=32767", rule(drops().with(acl::PRIORITY, 99999))),
        ("64 long where 0 to 63 is allowed", rule(drops().with(acl::NAME, Some("x".repeat(64))))),
        ("0 values where 1 to 1 are allowed", cell(lsp::NAME.id(), Datum::EMPTY)),
        ("is not of type Str", cell(lsp::NAME.id(), Datum::one(Atom::Int(5)))),
        ("is a map", cell(lsp::OPTIONS.id(), text)),
        (
            "inserted twice",
            written(|t| {
                t.insert(new(5), Row::new(ls::TABLE));
                t.insert(new(5), Row::new(ls::TABLE));
            }),
        ),
        ("is not a table of", written(|t| _ = t.delete(ovnkube_ovn::sb::chassis::TABLE, new(5)))),
    ];
    for (reason, txn) in cases {
        let error = client.transact(txn).await.unwrap_err();
        assert_eq!(error.class, Class::Invalid, "{error}");
        assert!(error.to_string().contains(reason), "{error}");
        assert!(!error.is_retryable() && !error.maybe_committed());
    }
    assert_eq!(client.stats().transactions, sent);
    // the server silently accepts a mutation of a missing row
    let mut txn = Txn::new(&nb::DATABASE);
    txn.comment("first");
    let op = txn.set_keys(ls::TABLE, new(77), ls::EXTERNAL_IDS, [("a", "1")]);
    let error = client.transact(txn).await.unwrap_err();
    assert_eq!((error.class, error.op, error.is_retryable()), (Class::Missing, Some(op), true));
}

#[tokio::test]
async fn failures_have_classes() {
    let dir = Dir::new();
    let server = Server::standalone(Host, &dir, NB);
    let client = live(options(vec![server.remote()])).await;
    let (txn, switch, _) = switch_and_port("n1");
    client.transact(txn.clone()).await.unwrap();
    let error = client.transact(txn).await.unwrap_err();
    assert_eq!((error.class, error.op), (Class::Duplicate, Some(0)), "{error}");

    let mut txn = Txn::new(&nb::DATABASE);
    let port = Uuid::from_u128(5);
    txn.insert(port, Row::new(lsp::TABLE).with(lsp::NAME, "n1-port"));
    txn.insert_into(ls::TABLE, switch, ls::PORTS, one(port));
    let error = client.transact(txn).await.unwrap_err();
    assert_eq!((error.class, error.op), (Class::Constraint, None), "found at commit: {error}");

    let mut txn = Txn::new(&nb::DATABASE);
    txn.wait_holds(switch, Row::new(ls::TABLE).with(ls::NAME, "n1"));
    client.transact(txn).await.unwrap();
    let mut txn = Txn::new(&nb::DATABASE);
    let wait = txn.wait_holds(switch, Row::new(ls::TABLE).with(ls::NAME, "other"));
    let error = client.transact(txn).await.unwrap_err();
    assert_eq!((error.class, error.op, error.is_retryable()), (Class::Conflict, Some(wait), true), "{error}");

    let mut txn = Txn::new(&nb::DATABASE);
    txn.assert_lock("L");
    let error = client.transact(txn.clone()).await.unwrap_err();
    assert_eq!((error.class, error.is_retryable()), (Class::NotOwner, true));
    let mut lock = client.lock("L");
    within("lock", lock.until(true)).await;
    client.transact(txn).await.unwrap();
    assert_cache_is_fresh(&client, server.remote()).await;
}

#[tokio::test]
async fn columns_of_newer_schemas_are_left_out() {
    let dir = Dir::new();
    let server = Server::standalone(Host, &dir, NB);
    let client = live(options(vec![server.remote()])).await;
    assert!(!client.supports(acl::TABLE, acl::TIER) && client.supports(acl::TABLE, acl::PRIORITY));
    let (txn, switch, _) = switch_and_port("n1");
    client.transact(txn).await.unwrap();
    let (mut txn, uuid) = (Txn::new(&nb::DATABASE), Uuid::from_u128(5));
    let row = Row::new(acl::TABLE).with(acl::ACTION, "drop").with(acl::DIRECTION, "to-lport").with(acl::TIER, 2);
    txn.insert(uuid, row);
    txn.insert_into(ls::TABLE, switch, ls::ACLS, one(uuid));
    let only_new = txn.update(uuid, Row::new(acl::TABLE).with(acl::TIER, 3));
    let reply = client.transact(txn).await.unwrap();
    assert_eq!(reply.counts[only_new], None, "no column of it is known");
    assert_eq!(client.cache().get(acl::TABLE, uuid).unwrap().int(acl::TIER), 0);
    assert_eq!(client.cache().get(acl::TABLE, uuid).unwrap().str(acl::ACTION), "drop");
    // if nothing is left to write, nothing is sent
    let sent = client.stats().transactions;
    let reply =
        client.transact(written(|t| _ = t.update(uuid, Row::new(acl::TABLE).with(acl::TIER, 3)))).await.unwrap();
    assert_eq!((reply.counts, client.stats().transactions), (vec![None], sent));
    let cache = client.cache();
    assert!(!cache.supports(acl::TABLE, acl::TIER) && cache.supports(acl::TABLE, acl::PRIORITY));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_transactions_at_once_are_committed() {
    let dir = Dir::new();
    let server = Server::standalone(Lts, &dir, NB);
    let client = live(options(vec![server.remote()])).await;
    let (txn, switch, _) = switch_and_port("n1");
    client.transact(txn).await.unwrap();
    let tasks: Vec<_> = (0..500_u32)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(async move {
                let (mut txn, port) = (Txn::new(&nb::DATABASE), derived_uuid("p", &n.to_string()));
                txn.insert(port, Row::new(lsp::TABLE).with(lsp::NAME, format!("p{n}")));
                txn.insert_into(ls::TABLE, switch, ls::PORTS, one(port));
                client.transact(txn).await.unwrap();
                assert!(client.cache().get(ls::TABLE, switch).unwrap().uuids(ls::PORTS).any(|uuid| uuid == port));
            })
        })
        .collect();
    for task in tasks {
        within("transactions", task).await.unwrap();
    }
    assert_eq!(client.cache().len(lsp::TABLE), 501);
    // 500 ports added to a group: one operation
    let ports: Vec<Uuid> = client.cache().iter(lsp::TABLE).map(|(uuid, _)| uuid).collect();
    let (mut txn, group) = (Txn::new(&nb::DATABASE), Uuid::from_u128(9));
    txn.insert(group, Row::new(pg::TABLE).with(pg::NAME, "g"));
    for port in &ports {
        txn.insert_into(pg::TABLE, group, pg::PORTS, one(*port));
    }
    assert_eq!(txn.len(), 2);
    client.transact(txn).await.unwrap();
    assert_eq!(client.cache().get(pg::TABLE, group).unwrap().uuids(pg::PORTS).count(), 501);
    assert_eq!(client.cache().len(load_balancer::TABLE), 0);
    assert_cache_is_fresh(&client, server.remote()).await;
}
