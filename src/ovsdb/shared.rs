//! What all parts of one client share: its cache, and what is in flight.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ovnkube_ovn::{Row, ServerSchema, Table, Uuid};
use ovnkube_ovsdb_data::{
    Cache, CheckContext, Condition, Conditions, Layout, RowChange, Txn, TxnError, Updates, check, owned,
};
use tokio::sync::watch;

use crate::conn::{Conn, Monitor, Signal};
use crate::events::{Subscribers, Subscription};
use crate::fault::Fault;
use crate::flights::{Flight, Flights};
use crate::locks::Locks;
use crate::options::Options;
use crate::patience::Patience;
use crate::remote::Remote;
use crate::server::{Model, Seen, ServerRow};
use crate::state::{Counters, State, Unfit};

/// What helps where a server cannot write.
const MAKE_ROOM: &str =
    "make room on its disk, or mend the disk: until then nothing is written, and what is there stays as it is";

/// A connected session.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) conn: Arc<Conn>,
    pub(crate) schema: Arc<ServerSchema>,
    pub(crate) layout: Arc<Layout>,
    /// Whether other servers have the same rows and locks of their own.
    pub(crate) is_replicated: bool,
    /// How many sessions there were before it.
    pub(crate) session: u64,
}

/// The cache, and the transaction to continue from.
pub(crate) struct Store {
    pub(crate) cache: Cache,
    last_txn: Uuid,
    /// Bytes of all rows as text, if they are counted.
    bytes: usize,
    /// What the cache was filled with; a monitor of something else starts from nothing.
    layout: Option<Arc<Layout>>,
}

/// What the client, its sessions and their readers share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) state: watch::Sender<State>,
    /// See [`crate::Client::unfit`].
    pub(crate) unfit: watch::Sender<Option<Unfit>>,
    pub(crate) locks: Locks,
    pub(crate) stats: Counters,
    pub(crate) patience: Patience,
    store: RwLock<Store>,
    subscribers: Subscribers,
    live: RwLock<Option<Live>>,
    is_live: AtomicBool,
    schema: RwLock<Option<Arc<ServerSchema>>>,
    seen: Mutex<Option<Seen>>,
    flights: Flights,
    conditions: Mutex<Conditions>,
    counter: AtomicU64,
}

impl Shared {
    /// The state before the first connection.
    pub(crate) fn new(options: Options) -> Self {
        let cache = Cache::new(options.database, options.identity, options.has_parents);
        Shared {
            store: RwLock::new(Store { cache, last_txn: Uuid::nil(), bytes: 0, layout: None }),
            patience: Patience::new(options.remotes.len()),
            options,
            state: watch::Sender::new(State::Disconnected { error: "not connected yet".to_owned() }),
            unfit: watch::Sender::default(),
            locks: Locks::default(),
            stats: Counters::default(),
            subscribers: Subscribers::default(),
            live: RwLock::default(),
            is_live: AtomicBool::new(false),
            schema: RwLock::default(),
            seen: Mutex::default(),
            flights: Flights::default(),
            conditions: Mutex::default(),
            counter: AtomicU64::new(0),
        }
    }

    /// Read access to the cache; no update is applied meanwhile.
    pub(crate) fn store(&self) -> RwLockReadGuard<'_, Store> {
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// See [`crate::Client::subscribe`].
    pub(crate) fn subscribe(&self) -> Subscription {
        // the lock keeps out updates in between
        let _store = self.store();
        self.subscribers.add(self.is_live())
    }

    /// The server's schema, as last seen.
    pub(crate) fn schema(&self) -> Option<Arc<ServerSchema>> {
        self.schema.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// See [`crate::Client::set_condition`].
    pub(crate) fn set_condition(&self, table: &Table, condition: Condition) {
        let mut conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        match condition {
            Condition::All => conditions.remove(&table.id),
            Condition::Any(values) => conditions.insert(table.id, values),
        };
        drop(conditions);
        if let Some(conn) = self.conn() {
            conn.signal(Signal::Conditions);
        }
    }

    /// See [`crate::Client::has_conditions`].
    pub(crate) fn has_conditions(&self) -> bool {
        let Some(live) = self.live() else { return false };
        let wanted = self.layout(&live.schema);
        let store = self.store();
        store.layout.as_deref() == Some(&wanted)
    }

    /// The live session, if there is one.
    pub(crate) fn live(&self) -> Option<Live> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn conn(&self) -> Option<Arc<Conn>> {
        self.live().map(|live| live.conn)
    }

    pub(crate) fn is_live(&self) -> bool {
        self.is_live.load(Ordering::Acquire)
    }

    /// What is told of servers that are asked, unless a session went live meanwhile.
    pub(crate) fn seems(&self, state: State) {
        if !self.is_live() {
            self.state.send_replace(state);
        }
    }

    pub(crate) fn next_cookie(&self) -> String {
        format!("ovnkube-{}", self.counter.fetch_add(1, Ordering::Relaxed))
    }

    /// What to monitor on a server with that schema, with the conditions of now.
    pub(crate) fn layout(&self, schema: &ServerSchema) -> Layout {
        let conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Layout::new(self.options.database, &self.options.tables, schema, conditions)
    }

    /// Notes that the monitor was changed to this: the cache holds it now.
    pub(crate) fn set_layout(&self, layout: &Arc<Layout>) {
        self.store.write().unwrap_or_else(PoisonError::into_inner).layout = Some(Arc::clone(layout));
    }

    /// Notes that the monitor is being changed: until that is done, nobody knows which rows the cache holds.
    pub(crate) fn forget_layout(&self) {
        self.store.write().unwrap_or_else(PoisonError::into_inner).layout = None;
    }

    /// The transaction to continue from; zero if there is none.
    pub(crate) fn last_txn(&self, layout: &Arc<Layout>) -> Uuid {
        let store = self.store();
        if store.layout.as_ref() == Some(layout) { store.last_txn } else { Uuid::nil() }
    }

    /// Notes a transaction that is about to be sent.
    pub(crate) fn take_off(&self, txn: &Arc<Txn>) -> Flight {
        self.flights.take_off(self.counter.fetch_add(1, Ordering::Relaxed), txn)
    }

    /// Whether a transaction was sent and not answered.
    pub(crate) fn is_write_waiting(&self) -> bool {
        !self.flights.is_empty()
    }

    /// Whether the server would accept it, as far as is known here.
    pub(crate) fn check(&self, txn: &Txn, live: &Live) -> Result<(), TxnError> {
        let store = self.store();
        let flights = self.flights.all();
        let conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        // of a table that is cached in part, no row can be said to be missing
        let is_whole = |table: &Table| live.layout.has(table) && !conditions.contains_key(&table.id);
        let has_row = |table: &Table, uuid: Uuid| {
            let there = || store.cache.get(table, uuid).is_some();
            let coming = || flights.iter().any(|txn| txn.inserts(uuid));
            is_whole(table).then(|| there() || coming())
        };
        check(txn, &CheckContext { database: self.options.database, schema: &live.schema, has_row: &has_row })
    }

    /// See `Fence::guard`; for a single server its lock is enough.
    pub(crate) fn guard(&self, txn: &mut Txn, live: &Live) -> Option<Txn> {
        let fence = self.options.fence.as_ref().filter(|_| live.is_replicated)?;
        fence.guard(txn, self.options.database, &self.store().cache, live.session)
    }

    /// Whether to stay with the server; remembers how far its cluster was.
    pub(crate) fn check_server(&self, row: &ServerRow) -> Result<Model, Fault> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let model = row.check(self.options.database.name, self.options.leader_only, seen.as_ref())?;
        if let Some(now) = row.seen() {
            *seen = Some(now);
        }
        Ok(model)
    }

    /// The cluster that was seen last.
    pub(crate) fn cluster(&self) -> Option<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.as_ref().map(|seen| seen.cluster.clone())
    }

    /// Publishes why the server cannot write, or that it can.
    pub(crate) fn cannot_write(&self, why: Option<&str>) {
        if let (Some(why), State::Live { remote }) = (why, &*self.state.borrow()) {
            let text = format!("{remote}: server cannot write its file: {why}; {MAKE_ROOM}");
            self.unfit.send_replace(Some(Unfit::Full(text)));
        } else if why.is_none() {
            self.unfit.send_if_modified(|said| said.take_if(|said| matches!(said, Unfit::Full(_))).is_some());
        }
    }

    /// The store, for what this session received: one that has ended must not change the cache.
    fn store_of(&self, conn: &Conn) -> Result<RwLockWriteGuard<'_, Store>, Fault> {
        let store = self.store.write().unwrap_or_else(PoisonError::into_inner);
        if conn.is_closed() { Err(Fault::Closed) } else { Ok(store) }
    }

    /// Applies the changes of a commit.
    pub(crate) fn apply(
        &self,
        conn: &Conn,
        updates: Updates,
        monitor: &Monitor,
        txn: Option<Uuid>,
    ) -> Result<(), Fault> {
        let mut store = self.store_of(conn)?;
        let (changes, result) = store.cache.apply(updates, &monitor.layout);
        store.last_txn = if result.is_ok() { txn.unwrap_or_default() } else { Uuid::nil() };
        let fits = self.count(&mut store, &changes);
        self.publish(changes);
        result.map_err(|e| Fault::Inconsistent(e.to_string()))?;
        fits
    }

    /// Replaces the contents of the cache by a full download.
    pub(crate) fn replace(
        &self,
        conn: &Conn,
        updates: Updates,
        monitor: &Monitor,
        txn: Option<Uuid>,
    ) -> Result<(), Fault> {
        let mut store = self.store_of(conn)?;
        let changes = store.cache.replace(updates);
        store.last_txn = txn.unwrap_or_default();
        store.layout = Some(Arc::clone(&monitor.layout));
        self.stats.add(5, 1);
        let fits = self.count(&mut store, &changes);
        self.publish(changes);
        fits
    }

    /// Counts the bytes of all rows. Fails if there are too many.
    fn count(&self, store: &mut Store, changes: &[RowChange]) -> Result<(), Fault> {
        let Some(most) = self.options.max_rows else { return Ok(()) };
        let bytes = |row: &Option<Arc<Row>>| row.as_ref().map_or(0, |row| row.to_string().len());
        for change in changes {
            store.bytes = (store.bytes + bytes(&change.new)).saturating_sub(bytes(&change.old));
        }
        if store.bytes > most { Err(Fault::TooMuch(most)) } else { Ok(()) }
    }

    fn publish(&self, changes: Vec<RowChange>) {
        self.stats.add(3, changes.len());
        if self.subscribers.is_empty() {
            return;
        }
        self.subscribers.rows(&owned(changes, &self.flights.all()));
    }

    /// Notes that the cache is complete: from now on transactions are accepted.
    pub(crate) fn go_live(&self, live: Live, remote: &Remote) {
        let conn = Arc::clone(&live.conn);
        let mut store = self.store.write().unwrap_or_else(PoisonError::into_inner);
        store.cache.set_schema(Arc::clone(&live.schema));
        *self.schema.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&live.schema));
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = Some(live);
        self.is_live.store(true, Ordering::Release);
        self.locks.ask_all(&conn);
        self.stats.add(4, 1);
        // another one may have been refused while this one worked on its rows; that it is full is only known by writing
        self.unfit.send_if_modified(|said| said.take_if(|said| !matches!(said, Unfit::Full(_))).is_some());
        tracing::info!(database = self.options.database.name, %remote, "database session is live");
        self.state.send_replace(State::Live { remote: remote.clone() });
        // subscribers that this wakes may look at the state
        self.subscribers.synced();
    }

    /// The session goes on, but its monitor has to be started again.
    pub(crate) fn pause(&self) {
        let _store = self.store.write().unwrap_or_else(PoisonError::into_inner);
        let was = self.live.write().unwrap_or_else(PoisonError::into_inner).take();
        self.is_live.store(false, Ordering::Release);
        if was.is_some() {
            self.subscribers.lost();
            self.state.send_replace(State::Disconnected { error: "schema is being converted".to_owned() });
        }
    }

    /// Ends the session.
    pub(crate) fn lose(&self, conn: &Conn, remote: &Remote, fault: &Fault) {
        let _store = self.store.write().unwrap_or_else(PoisonError::into_inner);
        let was = self.live.write().unwrap_or_else(PoisonError::into_inner).take();
        // after that no lock is asked for on this connection, which the next session would take for asked
        self.locks.lose_all();
        self.is_live.store(false, Ordering::Release);
        self.state.send_replace(State::Disconnected { error: format!("{remote}: {fault}") });
        if fault.is_too_large() {
            self.unfit.send_replace(Some(Unfit::TooLarge(format!("{remote}: {fault}; remove rows that nobody needs"))));
        }
        if was.is_some() {
            self.subscribers.lost();
        }
        // last: callers that learn that no reply comes may look at the state
        conn.close();
    }
}
