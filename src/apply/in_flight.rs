//! The transaction that is in flight.

use std::collections::BTreeSet;
use std::sync::Arc;

use ovnkube_ovn::Uuid;
use ovnkube_ovsdb::{Class, Txn, TxnError};
use ovnkube_plan::Key;
use tracing::{Instrument, Span};

use crate::diff::Subjects;
use crate::garbage::Left;
use crate::may_write::MayWrite;
use crate::northbound::Northbound;
use crate::owner_index::Owned;
use crate::write_lock::LOCK;

/// Why a transaction failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("not sent: the lease is gone")]
    NoLease,
    /// See [`Class::Claimed`].
    #[error("not sent: the lock was claimed first")]
    Claimed,
    /// See [`Class::Disk`].
    #[error(transparent)]
    Full(TxnError),
    #[error(transparent)]
    Txn(TxnError),
}

impl From<TxnError> for Failure {
    fn from(error: TxnError) -> Self {
        match error.class {
            Class::Claimed => Self::Claimed,
            Class::Disk => Self::Full(error),
            _ => Self::Txn(error),
        }
    }
}

/// What is needed of a transaction when its result arrives.
pub(crate) struct Batch {
    /// Its keys, with what each had before: needed if it fails.
    pub(crate) keys: Vec<(Key, Arc<Owned>)>,
    /// Keys that wait and have nothing meanwhile.
    pub(crate) waiting: Vec<(Key, Arc<Owned>)>,
    /// What its operations are about: needed if one is refused.
    pub(crate) subjects: Subjects,
    /// It removes what no key wants, and leaves so much.
    pub(crate) sweeps: Option<Left>,
    pub(crate) operations: usize,
    /// Port groups that lose their contents, and those that lose their rows after that.
    pub(crate) emptied: BTreeSet<Uuid>,
    pub(crate) rested: BTreeSet<Uuid>,
    /// Adds the number of the batch to its log lines.
    pub(crate) span: Span,
}

pub(crate) type InFlight = std::pin::Pin<Box<dyn Future<Output = (Batch, Result<(), Failure>)> + Send>>;

/// Sends a transaction under the lock.
pub(crate) fn send(nb: &Northbound, batch: Batch, mut txn: Txn, may_write: &MayWrite) -> InFlight {
    let (client, may_write) = (nb.client.clone(), may_write.clone());
    txn.assert_lock(LOCK);
    let span = batch.span.clone();
    let sent = async move {
        // planning took time: check again right before sending
        let result = if may_write() {
            client.transact(txn).await.map(|_| ()).map_err(Failure::from)
        } else {
            Err(Failure::NoLease)
        };
        (batch, result)
    };
    Box::pin(sent.instrument(span))
}

/// The future's result; never returns if there is no future.
pub(crate) async fn or_never<F: Future + Unpin>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
