//! What the servers of a database say of themselves.

use serde::Serialize;

use crate::cluster_status::ClusterStatus;

/// The servers of one database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// `OVN_Northbound` or `OVN_Southbound`.
    pub database: &'static str,
    pub servers: Vec<Seen>,
}

/// A server that was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Where it was asked: `tcp:10.0.0.1:6641`.
    pub address: String,
    /// What it answers, or why there is no answer.
    pub answer: Option<Answer>,
    pub problem: Option<String>,
    /// Of the server on this host.
    pub control: Option<Control>,
}

/// How a server has the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Model {
    /// Alone, or as the active server or a backup of a pair.
    Standalone,
    /// As a member of a Raft cluster.
    Clustered,
    /// As a copy for readers.
    Relay,
}

/// What a server says over the OVSDB protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub model: Model,
    /// To its cluster, or to the server that it relays.
    pub connected: bool,
    pub leader: bool,
    /// Whether it refuses writes, where that is known.
    pub read_only: Option<bool>,
    /// Ids of the cluster and of the member.
    pub cluster: Option<String>,
    pub member: Option<String>,
    /// The newest entry of its log.
    pub index: Option<u64>,
    /// Version of the schema.
    pub schema: Option<String>,
}

/// What the server on this host says on its control socket, and its file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Control {
    /// Why it says nothing.
    pub problem: Option<String>,
    pub cluster: Option<ClusterStatus>,
    /// Where it copies the database from, if it is a backup.
    pub backup_of: Option<String>,
    pub file: Option<DatabaseFile>,
}

/// The file of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DatabaseFile {
    pub path: String,
    pub bytes: u64,
}

impl Observed {
    /// As in flags and commands: `nb`, `sb`.
    pub fn word(&self) -> &'static str {
        if self.database == "OVN_Southbound" { "sb" } else { "nb" }
    }

    /// The server on this host.
    pub fn here(&self) -> Option<(&Seen, &Control)> {
        self.servers.iter().find_map(|seen| Some((seen, seen.control.as_ref()?)))
    }
}
