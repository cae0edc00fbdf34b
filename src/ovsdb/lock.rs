//! Database locks: held by one client at a time, lost with the connection, requested again on the next.

use std::sync::{Arc, Weak};

use tokio::sync::watch;

use crate::conn::Pending;
use crate::locks::Standing;
use crate::shared::Shared;

/// A lock that this client wants. Dropping it releases the lock.
pub struct Lock {
    id: String,
    standing: watch::Receiver<Standing>,
    shared: Weak<Shared>,
}

impl Lock {
    /// Requests the lock and waits in line for it, now and after every reconnection.
    pub(crate) fn ask(id: &str, shared: &Arc<Shared>) -> Self {
        let standing = shared.locks.add(id, || shared.conn());
        Lock { id: id.to_owned(), standing, shared: Arc::downgrade(shared) }
    }

    /// Whether the lock is held now. Use [`crate::Txn::assert_lock`] to be sure at commit.
    pub fn is_held(&self) -> bool {
        self.standing.borrow().held
    }

    /// The state of the lock, now and whenever it changes.
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.clone()
    }

    /// Takes the lock from its holder, once. Does nothing without a connection; after the next reconnection the lock is
    /// waited for again.
    pub fn steal(&self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.locks.steal(&self.id, || shared.conn());
        }
    }

    /// Waits until the lock is held (`true`) or is not (`false`).
    pub async fn until(&mut self, held: bool) {
        if self.standing.wait_for(|standing| standing.held == held).await.is_err() && held {
            // the client is gone: the lock will never be held
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
