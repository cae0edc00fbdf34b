//! Why a transaction failed, and what can be done about it.

use std::fmt;

/// A failed transaction. Its text is only a reason: the caller's message says what could not be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct TxnError {
    pub class: Class,
    /// The operation at fault, as numbered by the methods of [`crate::Txn`]; `None` if the whole transaction is at
    /// fault or the server found the error at commit.
    pub op: Option<usize>,
    /// The server's words, or ours.
    pub details: String,
}

/// Kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// There is no connection; nothing was sent.
    NotConnected,
    /// The connection was lost before the reply: the transaction may be committed.
    Lost,
    /// No reply came in time: the transaction may be committed.
    TimedOut,
    /// A `wait` found other rows than expected: the cache was behind.
    Conflict,
    /// An asserted lock is not held.
    NotOwner,
    /// Nothing was sent but the name of this client, as the first one to write under a lock: the cache may have been
    /// behind. The same work, planned again, may be sent at once.
    Claimed,
    /// The server cancelled it, as it does while the schema is being converted.
    Canceled,
    /// The cluster could not agree, for example because its leader changed.
    Cluster,
    /// The server (or this connection) is read-only: the backup of an active-backup pair.
    ReadOnly,
    /// The server could not write its file, as where its disk is full: nothing of it is done.
    Disk,
    /// An update or mutation found no row. The rest was committed.
    Missing,
    /// Refused before sending, because the server would refuse it or silently do something else.
    Invalid,
    /// An index, cardinality, enumeration or range is violated.
    Constraint,
    /// A reference would dangle.
    Integrity,
    /// A row with that uuid exists already: usually our own, from an attempt whose reply was lost.
    Duplicate,
    /// Role-based access control forbids it.
    Permission,
    /// Anything else that the server refuses.
    Rejected,
}

impl Class {
    /// The class of a server's error of that name.
    pub fn of(error: &str) -> Self {
        match error {
            "timed out" => Class::Conflict,
            "not owner" => Class::NotOwner,
            "canceled" => Class::Canceled,
            "cluster error" => Class::Cluster,
            "not allowed" => Class::ReadOnly,
            "I/O error" => Class::Disk,
            "constraint violation" | "domain error" | "range error" => Class::Constraint,
            "referential integrity violation" => Class::Integrity,
            "duplicate uuid" => Class::Duplicate,
            "permission error" => Class::Permission,
            _ => Class::Rejected,
        }
    }
}

impl TxnError {
    /// A failure of that class, of operation `op` or of the whole transaction.
    pub fn new(class: Class, op: Option<usize>, details: impl Into<String>) -> Self {
        TxnError { class, op, details: details.into() }
    }

    /// Of the transaction that claims a lock: the caller's was not sent, is not at fault, and may be tried again.
    pub fn of_claim(self) -> Self {
        let class = match self.class {
            Class::Lost | Class::TimedOut => Class::NotConnected,
            Class::Cluster => Class::Canceled,
            _ if self.is_retryable() && !self.maybe_committed() => self.class,
            _ => Class::Conflict,
        };
        let details = if class == self.class { self.details } else { self.to_string() };
        TxnError { class, op: None, details }
    }

    pub(crate) fn invalid(op: usize, details: impl Into<String>) -> Self {
        Self::new(Class::Invalid, Some(op), details)
    }

    /// Whether the same work, planned again from the cache, may succeed without help.
    pub fn is_retryable(&self) -> bool {
        match self.class {
            Class::NotConnected
            | Class::Lost
            | Class::TimedOut
            | Class::Conflict
            | Class::NotOwner
            | Class::Claimed
            | Class::Canceled
            | Class::Cluster
            | Class::ReadOnly
            | Class::Disk
            | Class::Missing => true,
            Class::Invalid
            | Class::Constraint
            | Class::Integrity
            | Class::Duplicate
            | Class::Permission
            | Class::Rejected => false,
        }
    }

    /// Whether the transaction may be committed nevertheless.
    pub fn maybe_committed(&self) -> bool {
        matches!(self.class, Class::Lost | Class::TimedOut | Class::Cluster | Class::Missing)
    }
}

impl fmt::Display for TxnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.class {
            Class::NotConnected => "the database is not connected",
            Class::Lost => "the connection was lost before the reply",
            Class::TimedOut => "no reply in time",
            Class::Conflict => "rows changed meanwhile",
            Class::NotOwner => "the lock is not held",
            Class::Claimed => "the lock was claimed first",
            Class::Canceled => "the server cancelled it",
            Class::Cluster => "the cluster did not agree",
            Class::ReadOnly => "the server is read-only",
            Class::Disk => "the server cannot write its file",
            Class::Missing => "the row is gone",
            Class::Invalid => "it was refused before sending",
            Class::Constraint => "a limit is violated",
            Class::Integrity => "a reference would dangle",
            Class::Duplicate => "the uuid is taken",
            Class::Permission => "it is not permitted",
            Class::Rejected => "the server rejected it",
        };
        f.write_str(what)?;
        if let Some(op) = self.op {
            write!(f, " (operation {op})")?;
        }
        if self.details.is_empty() { Ok(()) } else { write!(f, ": {}", self.details) }
    }
}
