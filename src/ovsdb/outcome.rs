//! What a server's reply says about a transaction.

use ovnkube_ovsdb_data::{Class, Txn, TxnError};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::rpc::RpcError;

/// A committed transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// By operation: how many rows an update, mutation or deletion found; `None` for other operations, and for those
    /// that write only what the server's schema lacks.
    pub counts: Vec<Option<u64>>,
}

/// The failure of a transaction, or of its operation `op`, when a server answers with `error`.
pub(crate) fn refused(error: &RpcError, op: Option<usize>) -> TxnError {
    TxnError::new(Class::of(&error.error), op, error.to_string())
}

/// Reads the result of `transact`: one element per operation sent, and one more for an error at commit.
pub(crate) fn read(json: &str, txn: &Txn, sent: &[usize]) -> Result<Reply, TxnError> {
    #[derive(Deserialize)]
    struct Element {
        count: Option<u64>,
        error: Option<Box<RawValue>>,
        #[serde(default)]
        details: String,
        /// What the system says, if the server could not write its file.
        #[serde(default, rename = "io-error")]
        io_error: String,
    }
    let malformed = |why: String| TxnError::new(Class::Rejected, None, format!("its reply cannot be parsed: {why}"));
    let results: Vec<Option<Element>> = serde_json::from_str(json).map_err(|e| malformed(e.to_string()))?;
    let mut reply = Reply { counts: vec![None; txn.len()] };
    for (at, result) in results.iter().enumerate() {
        let op = sent.get(at).copied();
        let Some(element) = result else { continue };
        if let Some(error) = &element.error {
            let words = [&element.details, &element.io_error].map(String::as_str);
            let details = words.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(": ");
            return Err(refused(&RpcError { details, ..RpcError::read(error) }, op));
        }
        if let Some(place) = op.and_then(|op| reply.counts.get_mut(op)) {
            *place = element.count;
        }
    }
    if results.len() < sent.len() || results.iter().any(Option::is_none) {
        return Err(malformed(format!("{} results for {} operations", results.len(), sent.len())));
    }
    let missing = |at: &&usize| txn.needs_row(**at) && reply.counts.get(**at) == Some(&Some(0));
    match sent.iter().find(missing) {
        Some(at) => Err(TxnError::new(Class::Missing, Some(*at), "no such row; the other operations are done")),
        None => Ok(reply),
    }
}
