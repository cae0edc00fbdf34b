//! How long to wait for a silent server.

use std::sync::atomic::{AtomicU32, Ordering};

/// How often a silent server is checked within the probe interval.
pub(crate) const PARTS: u32 = 10;

/// How long a server may leave an echo unanswered while a write waits. A server works on one thing at a time: one that
/// works on something large looks like one that is gone, and would be left again and again. So each time that it is
/// left, it gets twice as long, until it has answered a write.
pub(crate) struct Patience {
    /// Whether there is another remote.
    choice: bool,
    lost: AtomicU32,
}

impl Patience {
    /// For this many remotes.
    pub(crate) fn new(remotes: usize) -> Self {
        Self { choice: remotes > 1, lost: AtomicU32::new(0) }
    }

    /// How many parts of the probe interval to wait before the server is given up.
    pub(crate) fn parts(&self) -> u32 {
        if self.choice { (4 << self.lost.load(Ordering::Relaxed).min(3)).min(2 * PARTS) } else { PARTS }
    }

    /// Notes that the server was given up.
    pub(crate) fn lost(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that the server has answered a write.
    pub(crate) fn answered(&self) {
        self.lost.store(0, Ordering::Relaxed);
    }
}
