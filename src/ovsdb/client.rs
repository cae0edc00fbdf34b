//! The client: the handle that users of the crate have.

use std::ops::Deref;
use std::sync::{Arc, RwLockReadGuard};

use ovnkube_ovn::{ColumnId, ServerSchema, Table};
use ovnkube_ovsdb_data::{Cache, Class, Condition, Rendered, Txn, TxnError};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::conn::{Pending, Signal};
use crate::events::Subscription;
use crate::fault::Fault;
use crate::lock::Lock;
use crate::options::Options;
use crate::outcome::{self, Reply};
use crate::sessions;
use crate::shared::{Live, Shared, Store};
use crate::state::{State, Stats, Unfit};

/// A connection to one database, with a cache of it. Clones share both; dropping the last one ends them.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    _task: Arc<AbortOnDrop>,
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Read access to the cache. Drop it soon: updates wait for it, and it cannot be held over an await.
pub struct CacheGuard<'a>(RwLockReadGuard<'a, Store>);

impl Deref for CacheGuard<'_> {
    type Target = Cache;
    fn deref(&self) -> &Cache {
        &self.0.cache
    }
}

impl Client {
    /// A client that connects in the background. Must be called within a tokio runtime.
    pub fn connect(options: Options) -> Self {
        let shared = Arc::new(Shared::new(options));
        let task = AbortOnDrop(tokio::spawn(sessions::run(Arc::clone(&shared))));
        Client { shared, _task: Arc::new(task) }
    }

    /// Waits until the cache matches the server.
    pub async fn synced(&self) {
        // the sender is in `self`
        let _ = self.shared.state.subscribe().wait_for(State::is_live).await;
    }

    /// The state of the connection, now and whenever it changes.
    pub fn state(&self) -> watch::Receiver<State> {
        self.shared.state.subscribe()
    }

    /// A server that is refused, why, and what to do, while no other one is used; or one that is used and cannot write.
    pub fn unfit(&self) -> watch::Receiver<Option<Unfit>> {
        self.shared.unfit.subscribe()
    }

    /// The rows: none before [`Client::synced`], the last known ones after the connection is lost.
    pub fn cache(&self) -> CacheGuard<'_> {
        CacheGuard(self.shared.store())
    }

    /// Row changes from now on; starts with [`crate::Event::Synced`] if the cache is live.
    pub fn subscribe(&self) -> Subscription {
        self.shared.subscribe()
    }

    /// The server's schema, as last seen.
    pub fn schema(&self) -> Option<Arc<ServerSchema>> {
        self.shared.schema()
    }

    /// See [`Cache::supports`].
    pub fn supports(&self, table: &Table, column: impl Into<ColumnId>) -> bool {
        let info = table.info(column.into());
        self.schema().zip(info).is_some_and(|(schema, info)| schema.column(table, info).is_some())
    }

    /// The id of the Raft cluster whose servers are used, also after the connection is lost. `None`: they are in none, or none was
    /// reached yet.
    pub fn cluster(&self) -> Option<String> {
        self.shared.cluster()
    }

    pub fn stats(&self) -> Stats {
        self.shared.stats.read()
    }

    /// Keeps only some rows of a table from now on. Rows come and go as events once the server has applied the
    /// condition.
    pub fn set_condition(&self, table: &Table, condition: Condition) {
        self.shared.set_condition(table, condition);
    }

    /// Whether the cache has the rows of all conditions that were set. Until then it may lack some, although it is live.
    pub fn has_conditions(&self) -> bool {
        self.shared.has_conditions()
    }

    /// Requests a lock, waiting in line for it, now and after every reconnection.
    pub fn lock(&self, id: &str) -> Lock {
        Lock::ask(id, &self.shared)
    }

    /// Runs a transaction. When this returns `Ok`, the cache has the changes, unless the server is a cluster's
    /// follower, which may be behind its leader. A transaction that is empty, or writes only columns that the server
    /// lacks, is not sent. The first transaction under a lock of a client with a [`crate::Fence`] is not sent either: it
    /// fails with [`Class::Claimed`]. Dropping the future does not undo what was sent, but its changes are then reported
    /// as foreign.
    pub async fn transact(&self, mut txn: Txn) -> Result<Reply, TxnError> {
        if txn.is_empty() {
            return Ok(Reply::default());
        }
        let live = self.shared.live().ok_or_else(gone)?;
        match self.shared.guard(&mut txn, &live) {
            None => self.send(txn, live).await,
            Some(claim) => {
                let done = self.send(claim, live).await;
                Err(done.map_or_else(TxnError::of_claim, |_| TxnError::new(Class::Claimed, None, "")))
            }
        }
    }

    async fn send(&self, txn: Txn, live: Live) -> Result<Reply, TxnError> {
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
            Err(error) => Err(outcome::refused(&error, None)),
        };
        match &outcome {
            Err(error) if error.class == Class::ReadOnly => live.conn.signal(Signal::Backup),
            Err(error) if error.class == Class::Disk => self.shared.cannot_write(Some(&error.details)),
            Ok(_) => self.shared.cannot_write(None),
            Err(_) => {}
        }
        outcome
    }
}

fn gone() -> TxnError {
    TxnError::new(Class::NotConnected, None, "")
}
