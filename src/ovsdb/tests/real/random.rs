//! Random transactions of two writers: both caches equal a fresh download, and the events
//! lead from one state to the next.

use std::cell::RefCell;
use std::collections::HashMap;

use ovnkube_ovn::nb::{acl, logical_switch as ls, logical_switch_port as lsp, port_group as pg};
use ovnkube_ovn::{Atom, Datum, Row, Uuid, derived_uuid, nb};
use ovnkube_ovsdb::{Class, Client, Event, Subscription, Txn};
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};

use crate::lab::{Dir, Host, Lts, NB, Release, Server, assert_cache_is_fresh, live, options, within};

/// What a writer does next. Numbers are reduced to the few existing rows.
#[derive(Clone, Debug)]
enum Step {
    Switch(u8),
    Delete(u8),
    Port(u8, u8),
    Unplug(u8, u8),
    Keys(u8, Vec<(u8, u8)>),
    RemoveKeys(u8, Vec<u8>),
    Addresses(u8, Vec<u8>),
    Scalars(u8, Option<u8>, bool),
    Group(Vec<u8>),
    Acl(u8, u8),
}

fn step() -> impl Strategy<Value = Step> {
    let few = 0..6_u8;
    prop_oneof![
        few.clone().prop_map(Step::Switch),
        few.clone().prop_map(Step::Delete),
        (few.clone(), 0..12_u8).prop_map(|(a, b)| Step::Port(a, b)),
        (few.clone(), 0..12_u8).prop_map(|(a, b)| Step::Unplug(a, b)),
        (few.clone(), prop::collection::vec((0..5_u8, 0..3_u8), 0..4)).prop_map(|(a, b)| Step::Keys(a, b)),
        (few.clone(), prop::collection::vec(0..5_u8, 0..3)).prop_map(|(a, b)| Step::RemoveKeys(a, b)),
        (0..12_u8, prop::collection::vec(0..4_u8, 0..4)).prop_map(|(a, b)| Step::Addresses(a, b)),
        (0..12_u8, prop::option::of(0..9_u8), any::<bool>()).prop_map(|(a, b, c)| Step::Scalars(a, b, c)),
        prop::collection::vec(0..12_u8, 0..6).prop_map(Step::Group),
        (few, 0..4_u8).prop_map(|(a, b)| Step::Acl(a, b)),
    ]
}

fn id(kind: &str, n: u8) -> Uuid {
    derived_uuid(kind, &n.to_string())
}

fn one(uuid: Uuid) -> Datum {
    Datum::one(Atom::Uuid(uuid))
}

fn transaction(step: &Step, client: &Client) -> Txn {
    let mut txn = Txn::new(&nb::DATABASE);
    let cache = client.cache();
    let (switch, port, group) = (|n| id("s", n), |n| id("p", n), id("g", 0));
    match step {
        Step::Switch(n) => _ = txn.insert(switch(*n), Row::new(ls::TABLE).with(ls::NAME, format!("s{n}"))),
        Step::Delete(n) => _ = txn.delete(ls::TABLE, switch(*n)),
        Step::Port(s, p) => {
            if cache.get(lsp::TABLE, port(*p)).is_none() {
                txn.insert(port(*p), Row::new(lsp::TABLE).with(lsp::NAME, format!("p{p}")));
            }
            txn.insert_into(ls::TABLE, switch(*s), ls::PORTS, one(port(*p)));
        }
        Step::Unplug(s, p) => _ = txn.remove_from(ls::TABLE, switch(*s), ls::PORTS, one(port(*p))),
        Step::Keys(s, pairs) => {
            let pairs = pairs.iter().map(|(k, v)| (format!("k{k}"), format!("v{v}")));
            txn.set_keys(ls::TABLE, switch(*s), ls::EXTERNAL_IDS, pairs);
        }
        Step::RemoveKeys(s, keys) => {
            let keys: Vec<String> = keys.iter().map(|k| format!("k{k}")).collect();
            txn.remove_keys(ls::TABLE, switch(*s), ls::EXTERNAL_IDS, keys.iter().map(String::as_str));
        }
        Step::Addresses(p, all) => {
            let all = all.iter().map(|a| format!("a{a}"));
            txn.update(port(*p), Row::new(lsp::TABLE).with(lsp::ADDRESSES, all));
        }
        Step::Scalars(p, tag, on) => {
            let kind = if *on { "router" } else { "" };
            let tag = tag.map(|t| i64::from(t) + 1);
            let row = Row::new(lsp::TABLE).with(lsp::TAG, tag).with(lsp::ENABLED, Some(*on)).with(lsp::TYPE, kind);
            txn.update(port(*p), row);
        }
        Step::Group(ports) => {
            let there: Vec<Uuid> =
                ports.iter().map(|p| port(*p)).filter(|p| cache.get(lsp::TABLE, *p).is_some()).collect();
            let row = Row::new(pg::TABLE).with(pg::NAME, "g").with(pg::PORTS, there);
            if cache.get(pg::TABLE, group).is_some() {
                txn.update(group, row)
            } else {
                txn.insert(group, row)
            };
        }
        Step::Acl(s, n) => {
            let (uuid, drop) = (id("a", *n), Row::new(acl::TABLE).with(acl::ACTION, "drop"));
            let row =
                drop.with(acl::DIRECTION, "to-lport").with(acl::PRIORITY, i64::from(*n)).with(acl::NAME, Some("x"));
            if cache.get(acl::TABLE, uuid).is_none() {
                txn.insert(uuid, row);
            }
            txn.insert_into(ls::TABLE, switch(*s), ls::ACLS, one(uuid));
        }
    }
    txn
}

/// Follows one writer's cache by its events.
#[derive(Default)]
struct Replica(HashMap<(u16, Uuid), std::sync::Arc<Row>>);

impl Replica {
    fn follow(&mut self, sub: &mut Subscription) {
        for event in sub.take() {
            let Event::Row(row) = event else { continue };
            let key = (row.table.id, row.uuid);
            let known = match row.new {
                Some(new) => self.0.insert(key, new),
                None => self.0.remove(&key),
            };
            assert_eq!(known, row.old);
        }
    }
}

fn agree(release: Release) {
    let dir = Dir::new();
    let server = Server::standalone(release, &dir, NB);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let clients = runtime
        .block_on(async { [live(options(vec![server.remote()])).await, live(options(vec![server.remote()])).await] });
    let subs = clients.each_ref().map(|client| RefCell::new((Replica::default(), client.subscribe())));
    // seeds that failed are tried first in later runs: the file belongs in the repository
    let found = Box::new(FileFailurePersistence::Direct("tests/real/random.seeds"));
    let mut runner = TestRunner::new(Config { cases: 60, failure_persistence: Some(found), ..Config::default() });
    let steps = prop::collection::vec((any::<bool>(), step()), 1..40);
    let result = runner.run(&steps, |steps| {
        runtime.block_on(async {
            for (second, step) in &steps {
                let client = &clients[usize::from(*second)];
                let txn = transaction(step, client);
                if let Err(e) = client.transact(txn).await {
                    // the writers do not know of each other, and rows may be missing
                    let fine = matches!(
                        e.class,
                        Class::Missing | Class::Duplicate | Class::Invalid | Class::Constraint | Class::Integrity
                    );
                    assert!(fine, "{step:?}: {e}");
                }
            }
            for client in &clients {
                within("agreement", assert_cache_is_fresh(client, server.remote())).await;
            }
        });
        for (follower, client) in subs.iter().zip(&clients) {
            let (replica, sub) = &mut *follower.borrow_mut();
            replica.follow(sub);
            let cache = client.cache();
            let rows: usize = nb::DATABASE.tables.iter().map(|t| cache.len(t)).sum();
            assert_eq!(replica.0.len(), rows);
            assert!(replica.0.iter().all(|((table, uuid), row)| {
                cache.get(nb::DATABASE.tables[usize::from(*table)], *uuid) == Some(row)
            }));
        }
        Ok(())
    });
    result.unwrap();
}

#[test]
fn caches_are_equal_after_any_writes_3_1() {
    agree(Host);
}

#[test]
fn caches_are_equal_after_any_writes_4_0() {
    agree(Lts);
}
