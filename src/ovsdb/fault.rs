//! Why a session ended.

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
    #[error("connect with ssl: no certificate configured")]
    NoCertificate,
    #[error("connect: {0:?} is no host name")]
    HostName(String),
    #[error("connection closed by the server")]
    Eof,
    #[error("connection closed")]
    Closed,
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("read message: {0}")]
    Decode(#[from] serde_json::Error),
    #[error("write message: {0}")]
    Encode(serde_json::Error),
    #[error("read message: reply {0} was not asked for")]
    UnknownReply(String),
    #[error("{step}: {error}")]
    Refused { step: &'static str, error: RpcError },
    #[error("{0}: no answer in time")]
    Deadline(&'static str),
    #[error("server has no way to monitor a database")]
    NoMonitor,
    #[error("server is silent, even to an echo")]
    Silent,
    #[error("{}", no_database(.wanted, .has))]
    NoDatabase { wanted: &'static str, has: Vec<String> },
    #[error("server is not the leader of its cluster")]
    NotLeader,
    #[error("server lost its cluster")]
    Partitioned,
    #[error("server only reads")]
    ReadOnly,
    #[error("server is behind: it has entry {has}, entry {seen} was seen already")]
    Stale { has: u64, seen: u64 },
    #[error("{0}")]
    Inconsistent(String),
    #[error("session task ended: {0}")]
    Task(#[from] tokio::task::JoinError),
}

/// A handshake that fails is told by the next read or write.
impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(reason) => Fault::Handshake(tls::said(reason)),
            None => Fault::Io(error),
        }
    }
}

fn no_database(wanted: &str, has: &[String]) -> String {
    let option = |database: &str| match database {
        "OVN_Northbound" => Some("nb-address"),
        "OVN_Southbound" => Some("sb-address"),
        _ => None,
    };
    let have = if has.is_empty() { "none".to_owned() } else { has.join(", ") };
    let remedy = match (option(wanted), has.iter().find_map(|name| option(name))) {
        (Some(ours), Some(theirs)) => format!(": this address is for {theirs}; give another one with {ours}"),
        (Some(ours), None) => format!(": give its address with {ours}"),
        (None, _) => String::new(),
    };
    format!("the server has no database {wanted} but {have}{remedy}")
}
