//! Transactions in flight.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ovnkube_ovsdb_data::Txn;

/// Transactions that were sent and not answered, by number. One whose caller is gone does not count as own any more: a
/// later subscriber knows nothing of it.
#[derive(Clone, Default)]
pub(crate) struct Flights(Arc<Mutex<HashMap<u64, Weak<Txn>>>>);

/// A transaction in flight, until this is dropped.
pub(crate) struct Flight {
    flights: Flights,
    id: u64,
}

impl Flights {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Weak<Txn>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a transaction that is about to be sent; `id` must be unique.
    pub(crate) fn take_off(&self, id: u64, txn: &Arc<Txn>) -> Flight {
        self.lock().insert(id, Arc::downgrade(txn));
        Flight { flights: self.clone(), id }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Those that a caller waits for.
    pub(crate) fn all(&self) -> Vec<Arc<Txn>> {
        self.lock().values().filter_map(Weak::upgrade).collect()
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.flights.lock().remove(&self.id);
    }
}
