//! The locks that a client wants, and the state of each.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::conn::{Conn, LockRequest, Pending};

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
pub(crate) struct Locks {
    wanted: Mutex<BTreeMap<String, Wanted>>,
    requests: AtomicU64,
}

struct Wanted {
    standing: watch::Sender<Standing>,
    /// The last request on this connection: requesting a lock twice is an error.
    request: Option<u64>,
    /// Whether that request has its reply. What the server notifies before it is about an earlier request.
    answered: bool,
}

impl Locks {
    fn all(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Wanted>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }

    /// Requests a lock on the connection that `conn` returns, if there is one; a later one requests all locks.
    pub(crate) fn add(&self, id: &str, conn: impl FnOnce() -> Option<Arc<Conn>>) -> watch::Receiver<Standing> {
        let (tx, standing) = watch::channel(Standing::default());
        let mut wanted = Wanted { standing: tx, request: None, answered: false };
        let mut all = self.all();
        if let Some(conn) = conn() {
            wanted.ask("lock", id, self.next(), &conn);
        }
        all.insert(id.to_owned(), wanted);
        standing
    }

    pub(crate) fn remove(&self, id: &str) {
        self.all().remove(id);
    }

    /// Requests every lock that is not requested on this connection.
    pub(crate) fn ask_all(&self, conn: &Conn) {
        for (id, wanted) in self.all().iter_mut().filter(|(_, wanted)| wanted.request.is_none()) {
            wanted.ask("lock", id, self.next(), conn);
        }
    }

    /// Requests to take a lock from its holder, on the connection that `conn` returns, if there is one.
    pub(crate) fn steal(&self, id: &str, conn: impl FnOnce() -> Option<Arc<Conn>>) {
        let mut all = self.all();
        if let Some(wanted) = all.get_mut(id)
            && let Some(conn) = conn()
        {
            // a client that waits in line has to leave it first; a connection that is gone has no line
            let _ = conn.request("unlock", &[id], Pending::Nobody);
            wanted.ask("steal", id, self.next(), &conn);
        }
    }

    /// Takes in the reply to a request.
    pub(crate) fn answer(&self, request: &LockRequest, held: bool) {
        if let Some(wanted) = self.all().get_mut(&request.id).filter(|wanted| wanted.request == Some(request.number)) {
            wanted.answered = true;
            wanted.set(held);
        }
    }

    /// Takes in the notification that a lock is held.
    pub(crate) fn locked(&self, id: &str) {
        self.notified(id, |standing| standing.held = true);
    }

    /// Takes in the notification that another client has taken a lock.
    pub(crate) fn stolen(&self, id: &str) {
        self.notified(id, |standing| *standing = Standing { held: false, stolen: true });
    }

    fn notified(&self, id: &str, change: impl FnOnce(&mut Standing)) {
        if let Some(wanted) = self.all().get(id).filter(|wanted| wanted.answered) {
            wanted.standing.send_modify(change);
        }
    }

    pub(crate) fn lose_all(&self) {
        for wanted in self.all().values_mut() {
            (wanted.request, wanted.answered) = (None, false);
            wanted.set(false);
        }
    }
}

impl Wanted {
    fn set(&self, held: bool) {
        self.standing.send_modify(|standing| standing.held = held);
    }

    /// Sends a request, to which notifications before its reply do not belong.
    fn ask(&mut self, method: &str, id: &str, number: u64, conn: &Conn) {
        let request = LockRequest { id: id.to_owned(), number };
        // if the connection is gone, the next one requests it
        let sent = conn.request(method, &[id], Pending::Lock(request)).is_ok();
        (self.request, self.answered) = (sent.then_some(number), false);
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    fn request(number: u64) -> LockRequest {
        LockRequest { id: "L".to_owned(), number }
    }

    #[test]
    fn what_was_said_about_an_earlier_request_does_not_count() {
        let (queue, _sent) = mpsc::unbounded_channel();
        let conn = Arc::new(Conn::new(queue, mpsc::unbounded_channel().0, 1));
        let locks = Locks::default();
        let held = |standing: &watch::Receiver<Standing>| (standing.borrow().held, standing.borrow().stolen);
        let first = locks.add("L", || Some(Arc::clone(&conn)));
        locks.answer(&request(0), true);
        assert_eq!(held(&first), (true, false));
        // released and requested again, when another client has just taken it
        locks.remove("L");
        let second = locks.add("L", || Some(Arc::clone(&conn)));
        locks.stolen("L");
        assert_eq!(held(&second), (false, false));
        // released and requested again, when the line has just reached it
        locks.remove("L");
        let third = locks.add("L", || Some(Arc::clone(&conn)));
        locks.answer(&request(1), true);
        locks.locked("L");
        assert_eq!(held(&third), (false, false));
        // taken, when it was granted just before; then granted and taken away in earnest
        locks.answer(&request(2), false);
        locks.steal("L", || Some(Arc::clone(&conn)));
        locks.locked("L");
        assert_eq!(held(&third), (false, false));
        locks.answer(&request(3), false);
        locks.locked("L");
        assert_eq!(held(&third), (true, false));
        locks.stolen("L");
        assert_eq!(held(&third), (false, true));
    }
}
