//! Why a session ended. These are only reasons: the log message says what could not be done.

use std::io;

use crate::frame::FrameError;
use crate::rpc::RpcError;
use crate::tls::{self, TlsError};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error(transparent)]
    Io(io::Error),
    #[error("{0}")]
    Handshake(String),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("ssl needs a certificate, and there is no certificate configured")]
    NoCertificate,
    #[error("{0:?} is not a host name")]
    HostName(String),
    #[error("connection closed by the server")]
    Eof,
    #[error("connection closed")]
    Closed,
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("cannot read a message: {0}")]
    Decode(serde_json::Error),
    #[error("cannot write a message: {0}")]
    Encode(serde_json::Error),
    #[error("reply {0} answers no request")]
    UnknownReply(String),
    #[error("server refused {step}: {error}")]
    Refused { step: &'static str, error: RpcError },
    #[error("no answer to {0} in time")]
    Deadline(&'static str),
    #[error("server has no way to monitor a database")]
    NoMonitor,
    #[error("server is silent, even to an echo")]
    Silent,
    #[error("server was asked for the database and is silent, and another one is good")]
    Hangs,
    #[error("{}", no_database(.wanted, .has))]
    NoDatabase { wanted: &'static str, has: Vec<String> },
    #[error("server is not the leader of its cluster")]
    NotLeader,
    #[error("{}", relay(.0))]
    Relay(&'static str),
    #[error("server lost its cluster")]
    Partitioned,
    #[error(
        "server is a backup: it copies another server and takes no writes, or its Connection is read_only; waiting until this or another server takes them"
    )]
    Backup,
    #[error("server is behind: it has entry {has}, entry {seen} was seen already")]
    Stale { has: u64, seen: u64 },
    #[error("{}", other_cluster(.has.as_deref(), .seen))]
    OtherCluster { has: Option<String>, seen: String },
    #[error("{0}")]
    Inconsistent(String),
    #[error("the rows of the database have more than {0} bytes")]
    TooMuch(usize),
    #[error("a task of the session ended: {0}")]
    Task(tokio::task::JoinError),
}

impl Fault {
    /// Whether the database is larger than what is taken up.
    pub(crate) fn is_too_large(&self) -> bool {
        matches!(self, Self::TooMuch(_) | Self::Frame(FrameError::TooLong(_)))
    }

    /// Whether the server may become good while it is watched: it says so in `_Server`.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Self::NotLeader | Self::Partitioned | Self::Stale { .. })
    }
}

/// The next read or write reports a failed handshake.
impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(reason) => Fault::Handshake(tls::said(reason)),
            None => Fault::Io(error),
        }
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Fault::Decode(error)
    }
}

impl From<tokio::task::JoinError> for Fault {
    fn from(error: tokio::task::JoinError) -> Self {
        Fault::Task(error)
    }
}

fn other_cluster(has: Option<&str>, seen: &str) -> String {
    let has = has.map_or_else(|| "in no cluster".to_owned(), |has| format!("in cluster {has}"));
    format!(
        "server is {has}, but this process uses cluster {seen}; give the addresses of one cluster only, or, if the database was \
         created again, restart ovnkube"
    )
}

fn relay(database: &str) -> String {
    let how = option(database).map(|option| format!(" with {option}")).unwrap_or_default();
    format!(
        "server is a relay of {database} and has locks of its own, so two programs could write at once; give the addresses of the \
         servers that it copies{how}"
    )
}

/// The option with the addresses of a database.
fn option(database: &str) -> Option<&'static str> {
    match database {
        "OVN_Northbound" => Some("nb-address"),
        "OVN_Southbound" => Some("sb-address"),
        _ => None,
    }
}

fn no_database(wanted: &str, has: &[String]) -> String {
    let have = if has.is_empty() { "none".to_owned() } else { has.join(", ") };
    let remedy = match (option(wanted), has.iter().find_map(|name| option(name))) {
        (Some(ours), Some(theirs)) => format!("; this address is for {theirs}, give another one with {ours}"),
        (Some(ours), None) => format!("; give its address with {ours}"),
        (None, _) => String::new(),
    };
    format!("the server has no database {wanted} but {have}{remedy}")
}
