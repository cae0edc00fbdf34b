//! The state of the connection, and what has gone over it.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::remote::Remote;

/// The state of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Connecting {
        remote: Remote,
    },
    /// The cache matches the server, and transactions are accepted.
    Live {
        remote: Remote,
    },
    /// Waiting to try again.
    Disconnected {
        error: String,
    },
}

impl State {
    pub fn is_live(&self) -> bool {
        matches!(self, State::Live { .. })
    }
}

/// A server that is of no use although it answers, until a person does something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// It is of another cluster than the one in use.
    Stranger(String),
    /// Its log ends before an entry that was seen already: an old copy of its file, or of those of most members, was put back.
    Older(String),
    /// The database is larger than what is taken up.
    TooLarge(String),
    /// It does not have the database, but these.
    Missing { has: Vec<String>, why: String },
    /// It cannot write its file. Said again each time that it refuses a transaction for that.
    Full(String),
}

/// Counts since the client was created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Transactions sent.
    pub transactions: u64,
    /// Bytes of transactions sent.
    pub bytes_sent: u64,
    /// Bytes of everything received.
    pub bytes_received: u64,
    /// Row changes applied to the cache.
    pub changes: u64,
    /// Times the cache became live.
    pub sessions: u64,
    /// How many of these were full downloads.
    pub downloads: u64,
}

#[derive(Default)]
pub(crate) struct Counters([AtomicU64; 6]);

impl Counters {
    pub(crate) fn add(&self, at: usize, n: usize) {
        if let Some(counter) = self.0.get(at) {
            counter.fetch_add(n as u64, Ordering::Relaxed);
        }
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.add(2, bytes);
    }

    pub(crate) fn read(&self) -> Stats {
        let [transactions, bytes_sent, bytes_received, changes, sessions, downloads] =
            self.0.each_ref().map(|c| c.load(Ordering::Relaxed));
        Stats { transactions, bytes_sent, bytes_received, changes, sessions, downloads }
    }
}
