//! The northbound database as the engine has it: rows, what others do to them, and the lock by which one controller
//! writes.

use std::future::pending;

use ovnkube_ovsdb::{Client, Event, State, Subscription};
use tokio::sync::watch;

use crate::MayWrite;
use crate::turn::{TAKE_AFTER, Turn};

pub(crate) struct Northbound {
    pub(crate) client: Client,
    changes: Subscription,
    state: watch::Receiver<State>,
    turn: Turn,
    /// As it was when last looked at.
    writable: bool,
}

impl Northbound {
    pub(crate) fn new(client: Client, may_write: MayWrite) -> Self {
        let (changes, state) = (client.subscribe(), client.state());
        let turn = Turn::new(&client, may_write, TAKE_AFTER);
        Self { client, changes, state, turn, writable: false }
    }

    /// Whether it can be written to.
    pub(crate) fn look(&mut self) -> bool {
        self.writable = self.state.borrow().is_live() && self.turn.is_held();
        self.writable
    }

    /// What others did, or nothing if it can be written to and could not when it was last looked at, however long ago
    /// that became so.
    pub(crate) async fn next(&mut self) -> Vec<Event> {
        let Self { changes, state, turn, writable, .. } = self;
        let becomes_writable = async {
            if *writable || state.wait_for(State::is_live).await.is_err() {
                pending::<()>().await;
            }
            turn.held().await;
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
    use crate::LOCK;

    #[tokio::test]
    async fn a_lock_that_is_had_before_it_is_waited_for() {
        let server = Server::new(Release::Host);
        let other = server.client().await;
        let mut first = other.lock(LOCK);
        within("the lock", first.until(true)).await;
        let mut northbound = Northbound::new(server.client().await, std::sync::Arc::new(|| true));
        assert!(!northbound.look());
        northbound.forget();
        drop(first);
        until("the lock", async || northbound.turn.is_held()).await;
        assert!(within("that it is told", northbound.next()).await.is_empty());
        assert!(northbound.look());
        // it is told once
        assert!(tokio::time::timeout(std::time::Duration::from_millis(50), northbound.next()).await.is_err());
    }
}
