//! A lock for each sandbox, and which sandbox of a pod is current.
//!
//! Requests for one sandbox run one after the other; a DEL cancels the ADD before it. Its ADDs are all about the same
//! interface, since a sandbox has only one. A request that is refused or deletes nothing decides nothing for the others.
//! Of two sandboxes of one pod the later one wins, even if the earlier one is still being wired.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(crate) struct SandboxLocks {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sandboxes: HashMap<String, Arc<Queue>>,
    /// The newest sandbox of each logical port that has an ADD running, with its turn.
    newest: HashMap<String, (u64, String)>,
    /// How many ADDs have come.
    turns: u64,
}

/// Requests of one sandbox in the order they came.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) lock: tokio::sync::Mutex<()>,
    /// Wakes the ADDs that run or wait.
    pub(crate) cancel: Notify,
    /// The interface of the ADDs among them.
    interface: OnceLock<String>,
}

impl Queue {
    /// Takes the sandbox for an ADD of `interface`, which has found no other one there. Fails with the interface of an ADD that
    /// was earlier.
    pub(crate) fn take_for(&self, interface: &str) -> Result<(), String> {
        let about = self.interface.get_or_init(|| interface.to_owned());
        if about == interface { Ok(()) } else { Err(about.clone()) }
    }

    /// The interface that an ADD took the sandbox for, if it is another one.
    pub(crate) fn other_than(&self, interface: &str) -> Option<String> {
        self.interface.get().filter(|about| *about != interface).cloned()
    }
}

impl SandboxLocks {
    pub(crate) fn queue(&self, sandbox: &str) -> Arc<Queue> {
        let mut state = self.lock();
        // removes queues that no request uses
        state.sandboxes.retain(|_, queue| Arc::strong_count(queue) > 1);
        state.sandboxes.entry(sandbox.to_owned()).or_default().clone()
    }

    /// Whether a request for that sandbox runs or waits.
    pub(crate) fn busy(&self, sandbox: &str) -> bool {
        self.lock().sandboxes.get(sandbox).is_some_and(|queue| Arc::strong_count(queue) > 1)
    }

    /// The place of an ADD among all, by when it came.
    pub(crate) fn turn(&self) -> u64 {
        let mut state = self.lock();
        state.turns += 1;
        state.turns
    }

    /// Makes `sandbox` the current one of logical port `port`, unless one with a later turn is.
    pub(crate) fn claim(&self, port: &str, sandbox: &str, turn: u64) {
        let mut state = self.lock();
        if state.newest.get(port).is_none_or(|(newest, _)| *newest <= turn) {
            state.newest.insert(port.to_owned(), (turn, sandbox.to_owned()));
        }
    }

    /// The sandbox that took `port` over from `sandbox`.
    pub(crate) fn successor(&self, port: &str, sandbox: &str) -> Option<String> {
        self.lock().newest.get(port).map(|(_, newest)| newest).filter(|newest| *newest != sandbox).cloned()
    }

    /// Forgets a sandbox that is gone.
    pub(crate) fn release(&self, sandbox: &str) {
        self.lock().newest.retain(|_, (_, newest)| newest != sandbox);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
