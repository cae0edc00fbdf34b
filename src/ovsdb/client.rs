//! The client: what a user of the crate holds.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, Weak};
use std::time::Duration;

use ovnkube_ovn::{ColumnId, Database, ServerSchema, Table, Uuid};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::cache::{Cache, Identity, RowChange};
use crate::check::{self, Known};
use crate::conn::{Conn, Monitor, Pending, Signal};
use crate::error::{Class, TxnError};
use crate::events::{Subscribers, Subscription};
use crate::fault::Fault;
use crate::layout::{Condition, Conditions, Layout, Monitored};
use crate::lock::{Lock, Locks};
use crate::outcome::{self, Reply};
use crate::reader::Patience;
use crate::remote::Remote;
use crate::render::Rendered;
use crate::server::{Seen, ServerRow};
use crate::session;
use crate::tls::TlsFiles;
use crate::txn::{self, Txn};
use crate::update::Updates;

/// What to connect to and what to keep.
#[derive(Clone)]
pub struct Options {
    pub database: &'static Database,
    /// Members of one cluster, or one server.
    pub remotes: Vec<Remote>,
    /// Needed for `ssl:` remotes.
    pub tls: Option<TlsFiles>,
    /// Stay only with a cluster's leader. Who writes wants this.
    pub leader_only: bool,
    /// What to keep in the cache.
    pub tables: Vec<Monitored>,
    /// What [`Cache::lookup`] finds rows by.
    pub identity: Identity,
    /// After this long without a word a server on TCP is asked for one, and after this long again
    /// given up. While a write waits it is asked after a tenth of that, and given up after four tenths more if there is
    /// another remote. None never asks.
    pub probe: Option<Duration>,
    pub connect_timeout: Duration,
    /// For each request before the download.
    pub step_timeout: Duration,
    /// For a byte of the download, the first or the next; a server works on a big one for seconds before it sends anything.
    pub monitor_timeout: Duration,
    pub txn_timeout: Duration,
    /// How many transactions may be under way.
    pub window: usize,
    /// Longer messages end the session, in bytes.
    pub max_message: usize,
}

impl Options {
    /// All tables of `database`, found by no identity, with the usual limits.
    pub fn new(database: &'static Database, remotes: Vec<Remote>) -> Self {
        Options {
            database,
            remotes,
            tls: None,
            leader_only: true,
            tables: Monitored::whole(database),
            identity: |_| None,
            probe: Some(Duration::from_secs(10)),
            connect_timeout: Duration::from_secs(10),
            step_timeout: Duration::from_secs(20),
            monitor_timeout: Duration::from_secs(60),
            txn_timeout: Duration::from_secs(60),
            window: 64,
            max_message: 1 << 30,
        }
    }
}

/// How the connection is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Connecting {
        remote: Remote,
    },
    /// The cache is what the server has, and transactions are taken.
    Live {
        remote: Remote,
    },
    /// Waiting to try again.
    Disconnected {
        error: String,
    },
}

impl State {
    pub fn is_live(&self) -> bool {
        matches!(self, State::Live { .. })
    }
}

/// Counts since the client was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Transactions sent.
    pub transactions: u64,
    /// Bytes of transactions sent.
    pub bytes_sent: u64,
    /// Bytes of everything received.
    pub bytes_received: u64,
    /// Row changes applied to the cache.
    pub changes: u64,
    /// Times the cache became live.
    pub sessions: u64,
    /// How many of these were full downloads.
    pub downloads: u64,
}

#[derive(Default)]
pub(crate) struct Counters([AtomicU64; 6]);

impl Counters {
    fn add(&self, at: usize, n: usize) {
        if let Some(counter) = self.0.get(at) {
            counter.fetch_add(n as u64, Ordering::Relaxed);
        }
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.add(2, bytes);
    }

    fn read(&self) -> Stats {
        let [transactions, bytes_sent, bytes_received, changes, sessions, downloads] =
            self.0.each_ref().map(|c| c.load(Ordering::Relaxed));
        Stats { transactions, bytes_sent, bytes_received, changes, sessions, downloads }
    }
}

/// A connected session.
#[derive(Clone)]
struct Live {
    conn: Arc<Conn>,
    schema: Arc<ServerSchema>,
    layout: Arc<Layout>,
}

/// The cache and the point to go on from.
struct Store {
    cache: Cache,
    last_txn: Uuid,
    /// What the cache was filled with; a monitor of something else starts anew.
    layout: Option<Arc<Layout>>,
}

pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) state: watch::Sender<State>,
    pub(crate) locks: Locks,
    pub(crate) stats: Counters,
    pub(crate) patience: Patience,
    store: RwLock<Store>,
    subscribers: Subscribers,
    live: RwLock<Option<Live>>,
    is_live: AtomicBool,
    schema: RwLock<Option<Arc<ServerSchema>>>,
    seen: Mutex<Option<Seen>>,
    /// A transaction whose caller is gone is nobody's any more: whoever subscribes next knows nothing
    /// of it.
    flights: Mutex<HashMap<u64, Weak<Txn>>>,
    conditions: Mutex<Conditions>,
    counter: AtomicU64,
}

/// A transaction on its way; it is not any more when this is dropped.
pub(crate) struct Flight {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.shared.flights.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// Connection to one database with a cache of it. Clones share both; the last one dropped ends them.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    _session: Arc<Session>,
}

struct Session(JoinHandle<()>);

impl Drop for Session {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Read access to the cache. Short-lived: updates wait for it, and it cannot be held over an await.
pub struct CacheGuard<'a>(RwLockReadGuard<'a, Store>);

impl Deref for CacheGuard<'_> {
    type Target = Cache;
    fn deref(&self) -> &Cache {
        &self.0.cache
    }
}

impl Client {
    /// Starts connecting in the background; must be called within a tokio runtime.
    pub fn connect(options: Options) -> Self {
        let cache = Cache::new(options.database, options.identity);
        let shared = Arc::new(Shared {
            store: RwLock::new(Store { cache, last_txn: Uuid::nil(), layout: None }),
            patience: Patience::new(options.remotes.len()),
            options,
            state: watch::Sender::new(State::Disconnected { error: "not connected yet".to_owned() }),
            locks: Locks::default(),
            stats: Counters::default(),
            subscribers: Subscribers::default(),
            live: RwLock::default(),
            is_live: AtomicBool::new(false),
            schema: RwLock::default(),
            seen: Mutex::default(),
            flights: Mutex::default(),
            conditions: Mutex::default(),
            counter: AtomicU64::new(0),
        });
        let session = Session(tokio::spawn(session::run(Arc::clone(&shared))));
        Client { shared, _session: Arc::new(session) }
    }

    /// Waits until the cache is what the server has.
    pub async fn synced(&self) {
        // the sender is in `self`
        let _ = self.shared.state.subscribe().wait_for(State::is_live).await;
    }

    /// How the connection is, now and whenever it changes.
    pub fn state(&self) -> watch::Receiver<State> {
        self.shared.state.subscribe()
    }

    /// The rows. Before [`Client::synced`] there are none, after a loss the last known ones.
    pub fn cache(&self) -> CacheGuard<'_> {
        CacheGuard(self.shared.store.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Row changes from now on; starts with [`crate::Event::Synced`] if the cache is live.
    pub fn subscribe(&self) -> Subscription {
        // under the lock no update can come between
        let _store = self.shared.store.read().unwrap_or_else(PoisonError::into_inner);
        self.shared.subscribers.add(self.shared.is_live())
    }

    /// The server's schema, as last seen.
    pub fn schema(&self) -> Option<Arc<ServerSchema>> {
        self.shared.schema.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// As [`Cache::supports`].
    pub fn supports(&self, table: &Table, column: impl Into<ColumnId>) -> bool {
        let info = table.info(column.into());
        self.schema().zip(info).is_some_and(|(schema, info)| schema.column(table, info).is_some())
    }

    pub fn stats(&self) -> Stats {
        self.shared.stats.read()
    }

    /// Keeps only some rows of a table, from now on; rows come and go as events when the server has
    /// taken note.
    pub fn set_condition(&self, table: &Table, condition: Condition) {
        let mut conditions = self.shared.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        match condition {
            Condition::All => conditions.remove(&table.id),
            Condition::Any(values) => conditions.insert(table.id, values),
        };
        drop(conditions);
        if let Some(conn) = self.shared.conn() {
            conn.signal(Signal::Conditions);
        }
    }

    /// Asks for a lock, waiting in line for it, now and after every reconnection.
    pub fn lock(&self, id: &str) -> Lock {
        self.shared.locks.add(id, &self.shared)
    }

    /// Runs a transaction. When this returns `Ok`, the cache has the changes (unless the server is a
    /// cluster's follower, which may be behind its leader). A transaction that is empty, or writes
    /// nothing but columns the server lacks, is not sent. Dropping the future does not take back what
    /// was sent, but its changes are told as somebody else's.
    pub async fn transact(&self, txn: Txn) -> Result<Reply, TxnError> {
        if txn.is_empty() {
            return Ok(Reply::default());
        }
        let gone = || TxnError::new(Class::NotConnected, None, "");
        let live = self.shared.live().ok_or_else(gone)?;
        let permit = Arc::clone(&live.conn.window).acquire_owned().await.map_err(|_| gone())?;
        self.shared.check(&txn, &live)?;
        let txn = Arc::new(txn);
        let rendered = Rendered::new(&txn, &live.schema);
        if rendered.sent.is_empty() {
            return Ok(Reply { counts: vec![None; txn.len()] });
        }
        let flight = self.shared.take_off(&txn);
        let (reply, rx) = oneshot::channel();
        let sent = live.conn.request("transact", &rendered, Pending::Txn { reply, flight, permit });
        let bytes = sent.map_err(|fault| match fault {
            Fault::Encode(e) => TxnError::new(Class::Invalid, None, e.to_string()),
            _ => gone(),
        })?;
        self.shared.stats.add(0, 1);
        self.shared.stats.add(1, bytes);
        let result = match tokio::time::timeout(self.shared.options.txn_timeout, rx).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => return Err(TxnError::new(Class::Lost, None, "")),
            Err(_) => {
                live.conn.signal(Signal::Stuck);
                return Err(TxnError::new(Class::TimedOut, None, ""));
            }
        };
        let outcome = match result {
            Ok(json) => outcome::read(json.get(), &txn, &rendered.sent),
            Err(error) => Err(TxnError::from_server(&error, None)),
        };
        if matches!(&outcome, Err(e) if e.class == Class::ReadOnly) && self.shared.options.remotes.len() > 1 {
            live.conn.signal(Signal::ReadOnly);
        }
        outcome
    }
}

impl Shared {
    fn live(&self) -> Option<Live> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn conn(&self) -> Option<Arc<Conn>> {
        self.live().map(|live| live.conn)
    }

    pub(crate) fn is_live(&self) -> bool {
        self.is_live.load(Ordering::Acquire)
    }

    pub(crate) fn next_cookie(&self) -> String {
        format!("ovnkube-{}", self.counter.fetch_add(1, Ordering::Relaxed))
    }

    /// What to monitor on a server with that schema, as things are now.
    pub(crate) fn layout(&self, schema: &ServerSchema) -> Layout {
        let conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Layout::new(self.options.database, &self.options.tables, schema, conditions)
    }

    /// The monitor was changed to this: it is what the cache holds now.
    pub(crate) fn set_layout(&self, layout: &Arc<Layout>) {
        self.store.write().unwrap_or_else(PoisonError::into_inner).layout = Some(Arc::clone(layout));
    }

    /// The transaction to go on from; zero for none.
    pub(crate) fn last_txn(&self, layout: &Arc<Layout>) -> Uuid {
        let store = self.store.read().unwrap_or_else(PoisonError::into_inner);
        if store.layout.as_ref() == Some(layout) { store.last_txn } else { Uuid::nil() }
    }

    fn take_off(self: &Arc<Self>, txn: &Arc<Txn>) -> Flight {
        let id = self.counter.fetch_add(1, Ordering::Relaxed);
        self.flights.lock().unwrap_or_else(PoisonError::into_inner).insert(id, Arc::downgrade(txn));
        Flight { shared: Arc::clone(self), id }
    }

    /// A transaction was sent and not answered.
    pub(crate) fn is_write_waiting(&self) -> bool {
        !self.flights.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn flights(&self) -> Vec<Arc<Txn>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner).values().filter_map(Weak::upgrade).collect()
    }

    fn check(&self, txn: &Txn, live: &Live) -> Result<(), TxnError> {
        let store = self.store.read().unwrap_or_else(PoisonError::into_inner);
        let flights = self.flights();
        let conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        // of a table that is kept in part nothing can be said to be missing
        let is_whole = |table: &Table| live.layout.has(table) && !conditions.contains_key(&table.id);
        let has_row = |table: &Table, uuid: Uuid| {
            let there = || store.cache.get(table, uuid).is_some();
            let coming = || flights.iter().any(|txn| txn.inserts(uuid));
            is_whole(table).then(|| there() || coming())
        };
        check::check(txn, &Known { database: self.options.database, schema: &live.schema, has_row: &has_row })
    }

    /// Whether to stay with the server; what it has seen is remembered.
    pub(crate) fn check_server(&self, row: &ServerRow) -> Result<(), Fault> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        row.check(self.options.database.name, self.options.leader_only, seen.as_ref())?;
        if let Some(now) = row.seen() {
            *seen = Some(now);
        }
        Ok(())
    }

    /// Applies the changes of a commit.
    pub(crate) fn apply(
        &self,
        conn: &Conn,
        updates: Updates,
        monitor: &Monitor,
        txn: Option<Uuid>,
    ) -> Result<(), Fault> {
        let mut store = self.store.write().unwrap_or_else(PoisonError::into_inner);
        // a session that is over has no say any more
        if conn.is_closed() {
            return Err(Fault::Closed);
        }
        let (changes, result) = store.cache.apply(updates, &monitor.layout);
        store.last_txn = if result.is_ok() { txn.unwrap_or_default() } else { Uuid::nil() };
        self.publish(changes);
        result.map_err(|e| Fault::Inconsistent(e.to_string()))
    }

    /// Takes a full download.
    pub(crate) fn replace(
        &self,
        conn: &Conn,
        updates: Updates,
        monitor: &Monitor,
        txn: Option<Uuid>,
    ) -> Result<(), Fault> {
        let mut store = self.store.write().unwrap_or_else(PoisonError::into_inner);
        if conn.is_closed() {
            return Err(Fault::Closed);
        }
        let changes = store.cache.replace(updates);
        store.last_txn = txn.unwrap_or_default();
        store.layout = Some(Arc::clone(&monitor.layout));
        self.stats.add(5, 1);
        self.publish(changes);
        Ok(())
    }

    fn publish(&self, changes: Vec<RowChange>) {
        self.stats.add(3, changes.len());
        if self.subscribers.is_empty() {
            return;
        }
        self.subscribers.rows(&txn::owned(changes, &self.flights()));
    }

    /// The cache is whole: transactions are taken.
    pub(crate) fn go_live(&self, conn: &Arc<Conn>, schema: Arc<ServerSchema>, layout: Arc<Layout>, remote: &Remote) {
        let mut store = self.store.write().unwrap_or_else(PoisonError::into_inner);
        store.cache.schema = Some(Arc::clone(&schema));
        *self.schema.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&schema));
        let live = Live { conn: Arc::clone(conn), schema, layout };
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = Some(live);
        self.is_live.store(true, Ordering::Release);
        self.locks.ask_all(conn);
        self.stats.add(4, 1);
        tracing::info!(database = self.options.database.name, %remote, "database session is live");
        self.state.send_replace(State::Live { remote: remote.clone() });
        // whom this wakes may look at the state
        self.subscribers.synced();
    }

    /// The session goes on, but its monitor is to be started anew.
    pub(crate) fn pause(&self) {
        let _store = self.store.write().unwrap_or_else(PoisonError::into_inner);
        let was = self.live.write().unwrap_or_else(PoisonError::into_inner).take();
        self.is_live.store(false, Ordering::Release);
        if was.is_some() {
            self.subscribers.lost();
            self.state.send_replace(State::Disconnected { error: "schema is being converted".to_owned() });
        }
    }

    /// The session is over.
    pub(crate) fn lose(&self, conn: &Conn, remote: &Remote, fault: &Fault) {
        let _store = self.store.write().unwrap_or_else(PoisonError::into_inner);
        self.locks.lose_all();
        let was = self.live.write().unwrap_or_else(PoisonError::into_inner).take();
        self.is_live.store(false, Ordering::Release);
        self.state.send_replace(State::Disconnected { error: format!("{remote}: {fault}") });
        if was.is_some() {
            self.subscribers.lost();
        }
        // last: who hears that no reply comes may look at the state
        conn.close();
    }
}
