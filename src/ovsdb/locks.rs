//! The locks that a client wants, and the state of each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::conn::{Conn, Pending};

/// The state of a lock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// This client holds it now.
    pub held: bool,
    /// Another client has taken it from this one, at any time.
    pub stolen: bool,
}

/// All locks that the client wants.
#[derive(Default)]
pub(crate) struct Locks(Mutex<BTreeMap<String, Wanted>>);

struct Wanted {
    standing: watch::Sender<Standing>,
    /// Requested on this connection: requesting it twice is an error.
    asked: bool,
}

impl Locks {
    fn all(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Wanted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests a lock on the connection that `conn` returns, if there is one; a later one requests all locks.
    pub(crate) fn add(&self, id: &str, conn: impl FnOnce() -> Option<Arc<Conn>>) -> watch::Receiver<Standing> {
        let (tx, standing) = watch::channel(Standing::default());
        let mut wanted = Wanted { standing: tx, asked: false };
        let mut all = self.all();
        if let Some(conn) = conn() {
            wanted.ask(id, &conn);
        }
        all.insert(id.to_owned(), wanted);
        standing
    }

    pub(crate) fn remove(&self, id: &str) {
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
        // if the connection is gone, the next one requests it
        self.asked = self.asked || conn.request("lock", &[id], Pending::Lock(id.to_owned())).is_ok();
    }
}
