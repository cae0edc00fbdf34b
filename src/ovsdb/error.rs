//! Why a transaction did not go through, and what can be done about it.

use std::fmt;

use crate::rpc::RpcError;

/// A failed transaction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct TxnError {
    pub class: Class,
    /// Which operation was at fault, as numbered by the methods of [`crate::Txn`]; none where the
    /// whole is at fault or the server found out at commit.
    pub op: Option<usize>,
    /// In the server's words, or ours.
    pub details: String,
}

/// Kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// There is no connection; nothing was sent.
    NotConnected,
    /// The connection went before the reply came: done or not done.
    Lost,
    /// No reply came in time: done or not done.
    TimedOut,
    /// A `wait` found other rows than expected: the cache was behind.
    Conflict,
    /// A lock asserted is not held.
    NotOwner,
    /// The server cancelled it, as it does when the schema is being converted.
    Canceled,
    /// The cluster could not agree, say because its leader changed.
    Cluster,
    /// The server (or this connection) only reads: the backup of an active-backup pair.
    ReadOnly,
    /// An update or mutation found no row. The rest was committed.
    Missing,
    /// Refused before sending, because the server would refuse it or silently do something else.
    Invalid,
    /// An index, cardinality, enumeration or range is violated.
    Constraint,
    /// A reference would dangle.
    Integrity,
    /// A row with that uuid is there already: most often our own, from an attempt whose reply was lost.
    Duplicate,
    /// Role-based access control forbids it.
    Permission,
    /// Anything else the server does not take.
    Rejected,
}

impl TxnError {
    pub(crate) fn new(class: Class, op: Option<usize>, details: impl Into<String>) -> Self {
        TxnError { class, op, details: details.into() }
    }

    pub(crate) fn invalid(op: usize, details: impl Into<String>) -> Self {
        Self::new(Class::Invalid, Some(op), details)
    }

    pub(crate) fn from_server(error: &RpcError, op: Option<usize>) -> Self {
        let class = match error.error.as_str() {
            "timed out" => Class::Conflict,
            "not owner" => Class::NotOwner,
            "canceled" => Class::Canceled,
            "cluster error" => Class::Cluster,
            "not allowed" => Class::ReadOnly,
            "constraint violation" | "domain error" | "range error" => Class::Constraint,
            "referential integrity violation" => Class::Integrity,
            "duplicate uuid" => Class::Duplicate,
            "permission error" => Class::Permission,
            _ => Class::Rejected,
        };
        Self::new(class, op, error.to_string())
    }

    /// Whether the same work, planned anew from the cache, may succeed without anybody's help.
    pub fn is_retryable(&self) -> bool {
        match self.class {
            Class::NotConnected
            | Class::Lost
            | Class::TimedOut
            | Class::Conflict
            | Class::NotOwner
            | Class::Canceled
            | Class::Cluster
            | Class::ReadOnly
            | Class::Missing => true,
            Class::Invalid
            | Class::Constraint
            | Class::Integrity
            | Class::Duplicate
            | Class::Permission
            | Class::Rejected => false,
        }
    }

    /// Whether the transaction may be in the database nevertheless.
    pub fn maybe_committed(&self) -> bool {
        matches!(self.class, Class::Lost | Class::TimedOut | Class::Cluster | Class::Missing)
    }
}

impl fmt::Display for TxnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.class {
            Class::NotConnected => "database is not connected",
            Class::Lost => "connection lost before the reply",
            Class::TimedOut => "no reply in time",
            Class::Conflict => "rows changed meanwhile",
            Class::NotOwner => "lock is not held",
            Class::Canceled => "server cancelled it",
            Class::Cluster => "cluster did not agree",
            Class::ReadOnly => "server is read-only",
            Class::Missing => "row is gone",
            Class::Invalid => "refused before sending",
            Class::Constraint => "limit violated",
            Class::Integrity => "reference would dangle",
            Class::Duplicate => "uuid is taken",
            Class::Permission => "not permitted",
            Class::Rejected => "server rejected it",
        };
        write!(f, "transact: {what}")?;
        if let Some(op) = self.op {
            write!(f, " (operation {op})")?;
        }
        if self.details.is_empty() { Ok(()) } else { write!(f, ": {}", self.details) }
    }
}
