//! The lock of a database by which one controller writes, and how it is got from one that is dead.
//!
//! A server frees the locks of a session when that ends. Where its inactivity probe is 0 that of a host that died never ends.
//! So a controller that holds the lease, and waits for the lock for longer than anybody needs to give it back, takes it: the
//! lease says that whoever had it before has stopped writing, and the server refuses what that one still sends.
//!
//! A lock that is taken from a controller which may write tells of another lease: two clusters with one database. The one
//! it was taken from does not take it back. It waits until it is given back, or until it has got its lease anew.

use std::sync::{Arc, Weak};
use std::time::Duration;

use ovnkube_ovsdb::{Client, Lock, Standing, State};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tracing::{error, warn};

use crate::MayWrite;

/// Lock of both databases that a controller holds while it writes. The lease keeps masters
/// from each other; this also keeps away a controller under another lease, and the server checks it.
pub const LOCK: &str = "ovnkube_controller";

/// One that is stopped gives it back at once, and `-remove-node` within a second or two.
pub(crate) const TAKE_AFTER: Duration = Duration::from_secs(5);

/// A controller's wish to write. Dropping it gives the lock back.
pub(crate) struct Turn {
    // only lent to the task: what is dropped late would give back the next one's
    _lock: Arc<Lock>,
    standing: watch::Receiver<Standing>,
    task: JoinHandle<()>,
}

impl Turn {
    /// The lock is taken from who has it if it is not given back within `after`.
    pub(crate) fn new(client: &Client, may_write: MayWrite, after: Duration) -> Self {
        let lock = Arc::new(client.lock(LOCK));
        let wait = Wait { lock: Arc::downgrade(&lock), standing: lock.standing(), state: client.state(), after };
        Self { standing: lock.standing(), _lock: lock, task: tokio::spawn(wait.run(may_write)) }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.standing.borrow().held
    }

    /// Waits until it is.
    pub(crate) async fn held(&mut self) {
        until(&mut self.standing, |standing| standing.held).await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Wait {
    lock: Weak<Lock>,
    standing: watch::Receiver<Standing>,
    state: watch::Receiver<State>,
    after: Duration,
}

impl Wait {
    async fn run(mut self, may_write: MayWrite) {
        loop {
            until(&mut self.state, State::is_live).await;
            tokio::select! {
                () = until(&mut self.standing, |standing| standing.held) => self.lost().await,
                () = until(&mut self.state, |state| !state.is_live()) => {}
                () = sleep(self.after) => self.take(&may_write),
            }
        }
    }

    /// It is ours: until it is not.
    async fn lost(&mut self) {
        until(&mut self.standing, |standing| !standing.held).await;
        if self.standing.borrow().stolen {
            error!(
                lock = LOCK,
                "another controller has taken the lock of a database; this one writes nothing to it until that one stops. \
                 If this one still has its lease, two clusters are given one database: stop one of them"
            );
        }
    }

    fn take(&self, may_write: &MayWrite) {
        let may = may_write() && !self.standing.borrow().stolen;
        if let Some(lock) = self.lock.upgrade().filter(|_| may) {
            warn!(
                lock = LOCK,
                "the lock of a database is not given back by who had it: taken from it, with the lease held"
            );
            lock.steal();
        }
    }
}

/// Waits for a value; for ever if there will be no other.
async fn until<T>(values: &mut watch::Receiver<T>, is_it: impl FnMut(&T) -> bool) {
    if values.wait_for(is_it).await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use ovnkube_tests::nb::{Release, Server, within};

    use super::*;

    const SOON: Duration = Duration::from_millis(200);

    #[tokio::test]
    async fn the_lock_of_a_session_that_never_ends_is_taken_with_the_lease_only() {
        let server = Server::new(Release::Host);
        let other = server.client().await;
        let mut dead = other.lock(LOCK);
        within("the lock", dead.until(true)).await;
        let lease = Arc::new(AtomicBool::new(false));
        let may_write: MayWrite = Arc::new({
            let lease = Arc::clone(&lease);
            move || lease.load(Ordering::Relaxed)
        });
        let client = server.client().await;
        let mut turn = Turn::new(&client, may_write, SOON);
        assert!(tokio::time::timeout(4 * SOON, turn.held()).await.is_err(), "a standby took it");
        lease.store(true, Ordering::Relaxed);
        within("the lock", turn.held()).await;
        within("the end of the other's", dead.until(false)).await;
    }

    #[tokio::test]
    async fn two_under_different_leases_do_not_take_it_from_each_other_for_ever() {
        let server = Server::new(Release::Host);
        let (a, b) = (server.client().await, server.client().await);
        let always: MayWrite = Arc::new(|| true);
        let mut first = Turn::new(&a, Arc::clone(&always), SOON);
        within("the lock", first.held()).await;
        let mut second = Turn::new(&b, Arc::clone(&always), SOON);
        within("the lock", second.held()).await;
        assert!(tokio::time::timeout(6 * SOON, first.held()).await.is_err(), "it was taken back");
        assert!(second.is_held());
        drop(second);
        within("what is given back", first.held()).await;
        // with another lease it may be taken once more
        let mut third = Turn::new(&b, Arc::clone(&always), SOON);
        within("the lock", third.held()).await;
        drop(first);
        let mut fourth = Turn::new(&a, always, SOON);
        within("the lock", fourth.held()).await;
    }
}
