//! The northbound database as the engine has it: rows, what others do to them, and the lock by which one controller
//! writes.

use std::future::pending;

use ovnkube_ovsdb::{Client, Event, Lock, State, Subscription};
use tokio::sync::watch;

/// Lock of both databases that a controller holds while it writes. The lease keeps masters
/// from each other; this also keeps away a controller under another lease, and the server checks it.
pub const LOCK: &str = "ovnkube_controller";

pub(crate) struct Northbound {
    pub(crate) client: Client,
    changes: Subscription,
    state: watch::Receiver<State>,
    lock: Lock,
    /// As it was when last looked at.
    writable: bool,
}

impl Northbound {
    pub(crate) fn new(client: Client) -> Self {
        let (changes, state, lock) = (client.subscribe(), client.state(), client.lock(LOCK));
        Self { client, changes, state, lock, writable: false }
    }

    /// Whether it can be written to.
    pub(crate) fn look(&mut self) -> bool {
        self.writable = self.state.borrow().is_live() && self.lock.is_held();
        self.writable
    }

    /// What others did, or nothing if it can be written to and could not when it was last looked at, however long ago
    /// that became so.
    pub(crate) async fn next(&mut self) -> Vec<Event> {
        let Self { changes, state, lock, writable, .. } = self;
        let becomes_writable = async {
            if *writable || state.wait_for(State::is_live).await.is_err() {
                pending::<()>().await;
            }
            lock.until(true).await;
        };
        tokio::select! {
            events = changes.recv() => events,
            () = becomes_writable => Vec::new(),
        }
    }

    /// What has happened so far is known otherwise.
    pub(crate) fn forget(&mut self) {
        self.changes.take();
    }
}

#[cfg(test)]
mod tests {
    use ovnkube_tests::nb::{Release, Server, until, within};

    use super::*;

    #[tokio::test]
    async fn a_lock_that_is_had_before_it_is_waited_for() {
        let server = Server::new(Release::Host);
        let other = server.client().await;
        let mut first = other.lock(LOCK);
        within("the lock", first.until(true)).await;
        let mut northbound = Northbound::new(server.client().await);
        assert!(!northbound.look());
        northbound.forget();
        drop(first);
        until("the lock", async || northbound.lock.is_held()).await;
        assert!(within("that it is told", northbound.next()).await.is_empty());
        assert!(northbound.look());
        // it is told once
        assert!(tokio::time::timeout(std::time::Duration::from_millis(50), northbound.next()).await.is_err());
    }
}
