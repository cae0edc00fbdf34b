//! The northbound database as the engine uses it: rows, changes by other programs, and the write lock.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use ovnkube_ovn::ServerSchema;
use ovnkube_ovsdb::{Client, Event, State, Subscription};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, info, warn};

use crate::MayWrite;
use crate::backoff::Backoff;
use crate::database_state::too_old;
use crate::write_lock::{TAKE_AFTER, WriteLock};
use crate::writing::Writing;

/// First pause where the server cannot write; each failure in a row doubles it.
const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(30);

pub(crate) struct Northbound {
    pub(crate) client: Client,
    changes: Subscription,
    state: watch::Receiver<State>,
    write_lock: WriteLock,
    /// The last result of `check_writable`.
    writable: bool,
    /// Until when nothing is sent, since the server cannot write: what every key would meet is not tried for each.
    backoff: Backoff,
    /// What it had when it was last read as a whole.
    schema: Option<Arc<ServerSchema>>,
    /// What people are told if that is too old.
    pub(crate) too_old: Option<String>,
}

impl Northbound {
    pub(crate) fn new(client: Client, may_write: MayWrite, said: watch::Sender<Writing>) -> Self {
        let (changes, state) = (client.subscribe(), client.state());
        let write_lock = WriteLock::new(&client, may_write, TAKE_AFTER, said);
        let backoff = Backoff::new(FIRST, LONGEST);
        Self { client, changes, state, write_lock, writable: false, backoff, schema: None, too_old: None }
    }

    pub(crate) fn is_live(&self) -> bool {
        self.state.borrow().is_live()
    }

    /// Whether it can be written to.
    pub(crate) fn check_writable(&mut self) -> bool {
        let rests = self.backoff.rest(Instant::now()).is_some();
        self.writable = self.is_live() && self.write_lock.is_held() && !rests;
        self.writable
    }

    /// Notes how a transaction ended: whether the server cannot write its file.
    pub(crate) fn note(&mut self, is_full: bool) {
        if is_full {
            self.backoff.failed(Instant::now());
        } else {
            self.backoff.succeeded();
        }
    }

    /// Waits for events of the database; returns none once it is writable and was not at the last check, however long
    /// ago that changed.
    pub(crate) async fn next(&mut self) -> Vec<Event> {
        let Self { changes, state, write_lock, writable, backoff, .. } = self;
        let becomes_writable = async {
            if *writable || state.wait_for(State::is_live).await.is_err() {
                pending::<()>().await;
            }
            write_lock.held().await;
            if let Some(until) = backoff.until() {
                sleep_until(until).await;
            }
        };
        tokio::select! {
            biased;
            events = changes.recv() => events,
            () = becomes_writable => Vec::new(),
        }
    }

    /// Whether its schema is another one than when this was last asked: it may have room for columns and rows that were left out.
    pub(crate) fn has_another_schema(&mut self) -> bool {
        debug!("the northbound database is as cached");
        let Some(now) = self.client.schema() else { return false };
        if self.schema.as_ref() != Some(&now) {
            self.too_old = too_old(&now);
            self.too_old.iter().for_each(|why| warn!("{why}"));
        }
        let before = self.schema.replace(Arc::clone(&now));
        let is_another = before.is_some_and(|before| before != now);
        if is_another {
            info!("the northbound database has another schema; everything is compared with it");
        }
        is_another
    }

    /// The events so far.
    pub(crate) fn take(&mut self) -> Vec<Event> {
        self.changes.take()
    }
}

#[cfg(test)]
mod tests {
    use ovnkube_tests::nb::{Release, Server, until, within};

    use super::*;
    use crate::LOCK;

    #[tokio::test]
    async fn a_lock_that_is_held_before_it_is_awaited() {
        let server = Server::new(Release::Host);
        let other = server.client().await;
        let mut first = other.lock(LOCK);
        within("the lock", first.until(true)).await;
        let mut northbound =
            Northbound::new(server.client().await, std::sync::Arc::new(|| true), watch::Sender::default());
        assert!(!northbound.check_writable());
        northbound.take();
        drop(first);
        until("the lock", async || northbound.write_lock.is_held()).await;
        assert!(within("the event", northbound.next()).await.is_empty());
        assert!(northbound.check_writable());
        // it is reported once
        assert!(tokio::time::timeout(std::time::Duration::from_millis(50), northbound.next()).await.is_err());
    }
}
