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
    standing: watch::Receiver<Standing>,
    shared: Weak<Shared>,
}

/// How a lock is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// It is ours now.
    pub held: bool,
    /// Somebody has taken it from us, at any time.
    pub stolen: bool,
}

impl Lock {
    /// Whether it is ours now. Use [`crate::Txn::assert_lock`] to be sure at commit.
    pub fn is_held(&self) -> bool {
        self.standing.borrow().held
    }

    /// How it is, now and whenever that changes.
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.clone()
    }

    /// Takes it from whoever has it, once. Nothing without a connection; after the next reconnection it is waited for again.
    pub fn steal(&self) {
        if let Some(conn) = self.shared.upgrade().and_then(|shared| shared.conn()) {
            // who waits in line has to leave it first; a connection that is gone has no line
            let _ = conn.request("unlock", &[&self.id], Pending::Nobody);
            let _ = conn.request("steal", &[&self.id], Pending::Lock(self.id.clone()));
        }
    }

    /// Waits until it is ours (`true`) or is not (`false`).
    pub async fn until(&mut self, held: bool) {
        if self.standing.wait_for(|standing| standing.held == held).await.is_err() && held {
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
    standing: watch::Sender<Standing>,
    /// Asked for on this connection: asking twice is an error.
    asked: bool,
}

impl Locks {
    fn all(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Wanted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, id: &str, shared: &Arc<Shared>) -> Lock {
        let (tx, standing) = watch::channel(Standing::default());
        let mut wanted = Wanted { standing: tx, asked: false };
        let mut all = self.all();
        if let Some(conn) = shared.conn() {
            wanted.ask(id, &conn);
        }
        all.insert(id.to_owned(), wanted);
        Lock { id: id.to_owned(), standing, shared: Arc::downgrade(shared) }
    }

    fn remove(&self, id: &str) {
        self.all().remove(id);
    }

    pub(crate) fn ask_all(&self, conn: &Conn) {
        self.all().iter_mut().for_each(|(id, wanted)| wanted.ask(id, conn));
    }

    pub(crate) fn set(&self, id: &str, held: bool) {
        if let Some(wanted) = self.all().get(id) {
            wanted.set(held);
        }
    }

    pub(crate) fn stolen(&self, id: &str) {
        if let Some(wanted) = self.all().get(id) {
            wanted.standing.send_replace(Standing { held: false, stolen: true });
        }
    }

    pub(crate) fn lose_all(&self) {
        for wanted in self.all().values_mut() {
            wanted.asked = false;
            wanted.set(false);
        }
    }
}

impl Wanted {
    fn set(&self, held: bool) {
        self.standing.send_modify(|standing| standing.held = held);
    }

    fn ask(&mut self, id: &str, conn: &Conn) {
        // a connection that is gone will be followed by one that asks again
        self.asked = self.asked || conn.request("lock", &[id], Pending::Lock(id.to_owned())).is_ok();
    }
}
