//! Row changes for subscribers. Of each row only the first old and the last new value are kept, and one that others have
//! overwritten, so a queue is never longer than there are rows and nothing has to be dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ovnkube_ovn::{Row, Table, Uuid};
use ovnkube_ovsdb_data::RowChange;
use tokio::sync::Notify;

/// What is reported to a subscriber.
#[derive(Clone, Debug)]
pub enum Event {
    /// The connection is lost: the cache keeps the last known rows, but nothing is sent any more.
    Lost,
    /// A row was inserted (`old` is `None`), changed, or deleted (`new` is `None`).
    Row(RowEvent),
    /// The cache matches the server. Comes after the rows that made it so.
    Synced,
}

/// All that happened to one row since the last [`Subscription::recv`].
#[derive(Clone, Debug)]
pub struct RowEvent {
    pub table: &'static Table,
    pub uuid: Uuid,
    pub old: Option<Arc<Row>>,
    /// What this client had written in between, before others changed or deleted it.
    pub overwritten: Option<Arc<Row>>,
    pub new: Option<Arc<Row>>,
    /// Transactions of this client wrote every change in it.
    pub own: bool,
}

/// The changes of a row so far.
struct Merged {
    event: RowEvent,
    any_own: bool,
    last_own: bool,
}

#[derive(Default)]
struct Pending {
    lost: bool,
    synced: bool,
    rows: Vec<Merged>,
    place: HashMap<(u16, Uuid), usize>,
}

#[derive(Default)]
struct Queue {
    pending: Mutex<Pending>,
    ready: Notify,
}

/// The queue of one subscriber. Dropping it ends the subscription.
pub struct Subscription(Arc<Queue>);

impl Subscription {
    /// Waits for events: a `Lost` if the connection was lost meanwhile, then rows in the order of their first change,
    /// then a `Synced` if the cache became complete and still is.
    pub async fn recv(&mut self) -> Vec<Event> {
        loop {
            let events = self.take();
            if !events.is_empty() {
                return events;
            }
            self.0.ready.notified().await;
        }
    }

    /// The events so far, without waiting.
    pub fn take(&mut self) -> Vec<Event> {
        let Pending { lost, synced, rows, .. } =
            std::mem::take(&mut *self.0.pending.lock().unwrap_or_else(PoisonError::into_inner));
        // a change that others made and reverted is none; one of ours that others reverted must be reported
        let rows = rows
            .into_iter()
            .filter(|Merged { event, any_own, .. }| *any_own || event.old.as_deref() != event.new.as_deref());
        let rows = rows.map(|merged| Event::Row(merged.event));
        lost.then_some(Event::Lost).into_iter().chain(rows).chain(synced.then_some(Event::Synced)).collect()
    }
}

/// The subscribers of one client.
#[derive(Default)]
pub(crate) struct Subscribers(Mutex<Vec<Weak<Queue>>>);

impl Subscribers {
    pub(crate) fn add(&self, synced: bool) -> Subscription {
        let queue = Arc::new(Queue::default());
        let all = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Arc::downgrade(&queue));
        if synced {
            queue.tell(|p| p.synced = true);
        }
        Subscription(queue)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn each(&self, mut tell: impl FnMut(&mut Pending)) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|queue| {
            let Some(queue) = queue.upgrade() else { return false };
            queue.tell(&mut tell);
            true
        });
    }

    /// Adds changes of rows, each with whether it is own.
    pub(crate) fn rows(&self, changes: &[(RowChange, bool)]) {
        if !changes.is_empty() {
            self.each(|pending| changes.iter().for_each(|(change, own)| pending.fold(change, *own)));
        }
    }

    pub(crate) fn synced(&self) {
        self.each(|pending| pending.synced = true);
    }

    pub(crate) fn lost(&self) {
        self.each(|pending| (pending.lost, pending.synced) = (true, false));
    }
}

impl Queue {
    fn tell(&self, tell: impl FnOnce(&mut Pending)) {
        tell(&mut self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        self.ready.notify_one();
    }
}

impl Pending {
    fn fold(&mut self, change: &RowChange, own: bool) {
        let key = (change.table.id, change.uuid);
        if let Some(Merged { event, any_own, last_own }) = self.place.get(&key).and_then(|at| self.rows.get_mut(*at)) {
            if *last_own && !own {
                event.overwritten.clone_from(&change.old);
            }
            event.new.clone_from(&change.new);
            event.own &= own;
            *any_own |= own;
            *last_own = own;
            return;
        }
        self.place.insert(key, self.rows.len());
        let RowChange { table, uuid, old, new } = change.clone();
        let event = RowEvent { table, uuid, old, overwritten: None, new, own };
        self.rows.push(Merged { event, any_own: own, last_own: own });
    }
}
