//! Events of a subscriber: when they arrive, and which changes are reported as its own.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use ovnkube_ovn::nb::{
    gateway_chassis as gc, logical_router as lr, logical_router_port as lrp, logical_switch as ls,
    logical_switch_port as lsp,
};
use ovnkube_ovn::{Atom, Datum, Row, Uuid, nb};
use ovnkube_ovsdb::{Client, Event, RowEvent, State, Subscription, Txn};
use tokio::sync::watch;

use crate::lab::{Dir, Lts, NB, Server, live, options, within};

const SWITCH: Uuid = Uuid::from_u128(1);
const PORT: Uuid = Uuid::from_u128(2);

fn one(uuid: Uuid) -> Datum {
    Datum::one(Atom::Uuid(uuid))
}

fn switch_and_port() -> Txn {
    let mut txn = Txn::new(&nb::DATABASE);
    txn.insert(SWITCH, Row::new(ls::TABLE).with(ls::NAME, "s"));
    txn.insert(PORT, Row::new(lsp::TABLE).with(lsp::NAME, "p"));
    txn.insert_into(ls::TABLE, SWITCH, ls::PORTS, one(PORT));
    txn
}

/// The next `count` rows, in the order of their tables' names.
async fn rows(sub: &mut Subscription, count: usize) -> Vec<RowEvent> {
    let mut rows = Vec::new();
    while rows.len() < count {
        let events = within("events", sub.recv()).await;
        rows.extend(events.into_iter().filter_map(|e| if let Event::Row(row) = e { Some(row) } else { None }));
    }
    rows.sort_by_key(|row| row.table.name);
    rows
}

/// Their tables, and whether they are own.
fn owned(rows: &[RowEvent]) -> Vec<(&'static str, bool)> {
    rows.iter().map(|row| (row.table.name, row.own)).collect()
}

/// Notes whether the client is live when a subscriber is woken.
struct Look {
    state: watch::Receiver<State>,
    seen: Mutex<Vec<bool>>,
}

impl Wake for Look {
    fn wake(self: Arc<Self>) {
        self.seen.lock().unwrap().push(self.state.borrow().is_live());
    }
}

#[tokio::test]
async fn a_subscriber_that_is_told_synced_finds_the_client_live() {
    let dir = Dir::new();
    // an empty database: there are no rows to report before
    let server = Server::standalone(Lts, &dir, NB);
    let client = Client::connect(options(vec![server.remote()]));
    let mut sub = client.subscribe();
    let look = Arc::new(Look { state: client.state(), seen: Mutex::default() });
    let waker = Waker::from(Arc::clone(&look));
    let mut told = Box::pin(sub.recv());
    assert!(told.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    within("first download", client.synced()).await;
    let Poll::Ready(events) = told.as_mut().poll(&mut Context::from_waker(&waker)) else { panic!("not told") };
    assert!(matches!(events[..], [Event::Synced]), "{events:?}");
    assert_eq!(*look.seen.lock().unwrap(), [true]);
}

#[tokio::test]
async fn a_transaction_whose_caller_is_gone_is_not_own() {
    let dir = Dir::new();
    let server = Server::standalone(Lts, &dir, NB);
    let client = live(options(vec![server.remote()])).await;
    server.signal("-STOP");
    let sent = async {
        while client.stats().transactions == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        reply = client.transact(switch_and_port()) => panic!("a stopped server replied {reply:?}"),
        () = within("transaction", sent) => {}
    }
    let mut sub = client.subscribe();
    server.signal("-CONT");
    assert_eq!(owned(&rows(&mut sub, 2).await), [("Logical_Switch", false), ("Logical_Switch_Port", false)]);
    // a transaction with a waiting caller is own
    let mut txn = Txn::new(&nb::DATABASE);
    txn.update(SWITCH, Row::new(ls::TABLE).with(ls::NAME, "t"));
    client.transact(txn).await.unwrap();
    assert_eq!(owned(&rows(&mut sub, 1).await), [("Logical_Switch", true)]);
}

#[tokio::test]
async fn rows_deleted_with_our_rows_are_own() {
    let dir = Dir::new();
    let server = Server::standalone(Lts, &dir, NB);
    let (ours, theirs) = (live(options(vec![server.remote()])).await, live(options(vec![server.remote()])).await);
    // a router whose port has a gateway: two levels of child rows
    let (router, router_port, gateway) = (Uuid::from_u128(3), Uuid::from_u128(4), Uuid::from_u128(5));
    let fill = || {
        let mut txn = switch_and_port();
        txn.insert(router, Row::new(lr::TABLE).with(lr::NAME, "r"));
        txn.insert(router_port, Row::new(lrp::TABLE).with(lrp::NAME, "rp").with(lrp::MAC, "0a:00:00:00:00:01"));
        txn.insert_into(lr::TABLE, router, lr::PORTS, one(router_port));
        txn.insert(gateway, Row::new(gc::TABLE).with(gc::NAME, "g").with(gc::CHASSIS_NAME, "c"));
        txn.insert_into(lrp::TABLE, router_port, lrp::GATEWAY_CHASSIS, one(gateway));
        txn
    };
    let delete = || {
        let mut txn = Txn::new(&nb::DATABASE);
        txn.delete(lr::TABLE, router);
        // a set that is written as a whole
        txn.update(SWITCH, Row::from_cells(ls::TABLE, [(ls::PORTS.id(), Datum::EMPTY)]));
        txn
    };
    let tables = ["Gateway_Chassis", "Logical_Router", "Logical_Router_Port", "Logical_Switch", "Logical_Switch_Port"];
    for (client, own) in [(&ours, true), (&theirs, false)] {
        ours.transact(fill()).await.unwrap();
        let mut sub = ours.subscribe();
        within("the rows", async {
            while theirs.cache().len(gc::TABLE) == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        client.transact(delete()).await.unwrap();
        assert_eq!(owned(&rows(&mut sub, 5).await), tables.map(|table| (table, own)));
        let mut txn = Txn::new(&nb::DATABASE);
        txn.delete(ls::TABLE, SWITCH);
        ours.transact(txn).await.unwrap();
        within("the rows' end", async {
            while !theirs.cache().is_empty(ls::TABLE) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
    // a row that another client removed from ours is not own, although our row is deleted right after it
    ours.transact(fill()).await.unwrap();
    let mut sub = ours.subscribe();
    within("the rows", async {
        while theirs.cache().is_empty(ls::TABLE) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let mut txn = Txn::new(&nb::DATABASE);
    txn.remove_from(ls::TABLE, SWITCH, ls::PORTS, one(PORT));
    theirs.transact(txn).await.unwrap();
    assert_eq!(owned(&rows(&mut sub, 2).await), [("Logical_Switch", false), ("Logical_Switch_Port", false)]);
}
