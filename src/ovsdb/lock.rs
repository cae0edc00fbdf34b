//! Database locks: held by one client at a time, lost with the connection, asked for again with
//! the next.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::watch;

use crate::client::Shared;
use crate::conn::{Conn, Pending};

/// A lock somebody wants. Dropping it gives it back.
pub struct Lock {
    id: String,
    held: watch::Receiver<bool>,
    shared: Weak<Shared>,
}

impl Lock {
    /// Whether it is ours now. Use [`crate::Txn::assert_lock`] to be sure at commit.
    pub fn is_held(&self) -> bool {
        *self.held.borrow()
    }

    /// Waits until it is ours (`true`) or is not (`false`).
    pub async fn until(&mut self, held: bool) {
        if self.held.wait_for(|h| *h == held).await.is_err() && held {
            // the client is gone: it will never be ours
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.locks.remove(&self.id);
            if let Some(conn) = shared.conn() {
                // if the connection is gone, so is the lock
                let _ = conn.request("unlock", &[&self.id], Pending::Nobody);
            }
        }
    }
}

#[derive(Default)]
pub(crate) struct Locks(Mutex<BTreeMap<String, Wanted>>);

struct Wanted {
    method: &'static str,
    held: watch::Sender<bool>,
    /// Asked for on this connection: asking twice is an error.
    asked: bool,
}

impl Locks {
    fn all(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Wanted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, id: &str, steal: bool, shared: &Arc<Shared>) -> Lock {
        let (tx, held) = watch::channel(false);
        let mut wanted = Wanted { method: if steal { "steal" } else { "lock" }, held: tx, asked: false };
        let mut all = self.all();
        if let Some(conn) = shared.conn() {
            wanted.ask(id, &conn);
        }
        all.insert(id.to_owned(), wanted);
        Lock { id: id.to_owned(), held, shared: Arc::downgrade(shared) }
    }

    fn remove(&self, id: &str) {
        self.all().remove(id);
    }

    pub(crate) fn ask_all(&self, conn: &Conn) {
        self.all().iter_mut().for_each(|(id, wanted)| wanted.ask(id, conn));
    }

    pub(crate) fn set(&self, id: &str, held: bool) {
        if let Some(wanted) = self.all().get(id) {
            wanted.held.send_replace(held);
        }
    }

    pub(crate) fn lose_all(&self) {
        for wanted in self.all().values_mut() {
            wanted.asked = false;
            wanted.held.send_replace(false);
        }
    }
}

impl Wanted {
    fn ask(&mut self, id: &str, conn: &Conn) {
        // a connection that is gone will be followed by one that asks again
        self.asked = self.asked || conn.request(self.method, &[id], Pending::Lock(id.to_owned())).is_ok();
    }
}
