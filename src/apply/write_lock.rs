//! The lock of a database that lets one controller write, and how it is taken from a dead one.
//!
//! A server frees the locks of a session when the session ends. With an inactivity probe of 0, the session of a host
//! that died never ends. So a controller that holds the lease takes the lock if it waits longer than a live holder
//! needs to release it: the lease says that the previous holder has stopped writing, and the server refuses what that
//! one still sends.
//!
//! If a controller that may write loses its lock to another, there is another lease: two clusters use one database. It
//! does not take the lock back. It waits until the lock is released, or until it has acquired its lease again.

use std::sync::{Arc, Weak};
use std::time::Duration;

use ovnkube_ovn::nb::nb_global;
use ovnkube_ovn::sb::sb_global;
use ovnkube_ovsdb::{Client, Fence, Lock, Standing, State};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tracing::{error, warn};

use crate::MayWrite;
use crate::writing::{self, Writing};

/// Lock of both databases that a controller holds while it writes. The lease keeps masters apart; the lock also
/// excludes a controller under another lease, and the server checks it.
pub const LOCK: &str = "ovnkube_controller";

/// What keeps the writes of an earlier controller out of a cluster's northbound database. `holder` is the name of this one.
pub fn northbound_fence(holder: String) -> Fence {
    Fence { table: nb_global::TABLE, column: nb_global::EXTERNAL_IDS, key: HOLDER, holder }
}

/// The same of the southbound database.
pub fn southbound_fence(holder: String) -> Fence {
    Fence { table: sb_global::TABLE, column: sb_global::EXTERNAL_IDS, key: HOLDER, holder }
}

const HOLDER: &str = "ovnkube-master";

/// A controller that is stopped releases the lock at once, `-remove-node` within a second or two.
pub(crate) const TAKE_AFTER: Duration = Duration::from_secs(5);

/// A controller's claim to the write lock. Dropping it releases the lock.
pub(crate) struct WriteLock {
    // the task has only a `Weak`: dropping the lock late would release that of the next `WriteLock`
    _lock: Arc<Lock>,
    standing: watch::Receiver<Standing>,
    said: watch::Sender<Writing>,
    task: JoinHandle<()>,
}

impl WriteLock {
    /// Requests the lock, and takes it from its holder if it is not released within `after`. `said` hears whether the
    /// database can be written to.
    pub(crate) fn new(client: &Client, may_write: MayWrite, after: Duration, said: watch::Sender<Writing>) -> Self {
        let lock = Arc::new(client.lock(LOCK));
        let wait = Wait { lock: Arc::downgrade(&lock), standing: lock.standing(), state: client.state(), after };
        let saying = writing::say(client.state(), lock.standing(), said.clone());
        let task = tokio::spawn(async move { tokio::join!(wait.run(may_write), saying).0 });
        Self { standing: lock.standing(), _lock: lock, said, task }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.standing.borrow().held
    }

    /// Waits until the lock is held.
    pub(crate) async fn held(&mut self) {
        until(&mut self.standing, |standing| standing.held).await;
    }
}

impl Drop for WriteLock {
    fn drop(&mut self) {
        self.task.abort();
        self.said.send_replace(Writing::Idle);
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
                biased;
                () = until(&mut self.standing, |standing| standing.held) => self.lost().await,
                () = until(&mut self.state, |state| !state.is_live()) => {}
                () = sleep(self.after) => self.take(&may_write),
            }
        }
    }

    /// Waits until the held lock is lost, and logs it if it was stolen.
    async fn lost(&mut self) {
        until(&mut self.standing, |standing| !standing.held).await;
        if self.standing.borrow().stolen {
            error!(
                lock = LOCK,
                "another controller has taken the lock of a database; this one writes nothing to it until that one stops. \
                 If this one still has its lease, two clusters use the same database: stop one of them"
            );
        }
    }

    fn take(&self, may_write: &MayWrite) {
        let may = may_write() && !self.standing.borrow().stolen;
        if let Some(lock) = self.lock.upgrade().filter(|_| may) {
            warn!(
                lock = LOCK,
                "took over the lock of a database: its holder did not release it, and this process holds the lease"
            );
            lock.steal();
        }
    }
}

/// Waits for a value; never returns if the sender is gone.
async fn until<T>(values: &mut watch::Receiver<T>, is_it: impl FnMut(&T) -> bool) {
    if values.wait_for(is_it).await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use ovnkube_tests::nb::{Release, Server, until, within};

    use super::*;

    const SOON: Duration = Duration::from_millis(200);

    #[tokio::test]
    async fn the_lock_of_a_dead_session_is_taken_only_with_the_lease() {
        let mut server = Server::new(Release::Host);
        let other = server.client().await;
        let mut dead = other.lock(LOCK);
        within("the lock", dead.until(true)).await;
        let lease = Arc::new(AtomicBool::new(false));
        let may_write: MayWrite = Arc::new({
            let lease = Arc::clone(&lease);
            move || lease.load(Ordering::Relaxed)
        });
        let (client, said) = (server.client().await, watch::Sender::default());
        let mut turn = WriteLock::new(&client, may_write, SOON, said.clone());
        assert!(tokio::time::timeout(4 * SOON, turn.held()).await.is_err(), "a standby took it");
        let now = || *said.borrow();
        assert!(matches!(now(), Writing::Blocked(why) if why.contains(LOCK)), "{:?}", now());
        lease.store(true, Ordering::Relaxed);
        within("the lock", turn.held()).await;
        within("the other's loss of it", dead.until(false)).await;
        until("it can be written to", async || now() == Writing::Possible).await;
        server.kill();
        until("the end of that", async || matches!(now(), Writing::Blocked(why) if !why.contains(LOCK))).await;
        drop(turn);
        assert_eq!(now(), Writing::Idle);
    }

    #[tokio::test]
    async fn two_leases_do_not_take_the_lock_from_each_other_for_ever() {
        let server = Server::new(Release::Host);
        let (a, b) = (server.client().await, server.client().await);
        let always: MayWrite = Arc::new(|| true);
        let mut first = WriteLock::new(&a, Arc::clone(&always), SOON, watch::Sender::default());
        within("the lock", first.held()).await;
        let mut second = WriteLock::new(&b, Arc::clone(&always), SOON, watch::Sender::default());
        within("the lock", second.held()).await;
        assert!(tokio::time::timeout(6 * SOON, first.held()).await.is_err(), "the lock was taken back");
        assert!(second.is_held());
        drop(second);
        within("the released lock", first.held()).await;
        // under a new lease it may be taken once more
        let mut third = WriteLock::new(&b, Arc::clone(&always), SOON, watch::Sender::default());
        within("the lock", third.held()).await;
        drop(first);
        let mut fourth = WriteLock::new(&a, always, SOON, watch::Sender::default());
        within("the lock", fourth.held()).await;
    }
}
