//! What the servers of a database say of themselves.

use serde::Serialize;

use crate::cluster_status::ClusterStatus;

/// The servers of one database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// `OVN_Northbound` or `OVN_Southbound`.
    pub database: &'static str,
    pub servers: Vec<Seen>,
    /// Whether addresses of servers are given. Otherwise only the socket of this host is known.
    pub addressed: bool,
    /// Of the northbound database.
    pub northd: Option<Northd>,
}

/// What is known of the program that makes the southbound database from the northbound one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Northd {
    /// What the one on this host does: `active`, `standby` or `paused`; or why it does not say so.
    pub this_host: Option<String>,
    /// Whether any northd holds the lock of the southbound database under which the active one works, where that is known.
    pub active: Option<bool>,
    /// The newest change that was marked, and the newest marked one that northd has taken in, looked at for some seconds.
    pub nb_cfg: Option<i64>,
    pub sb_cfg: Option<i64>,
}

impl Northd {
    /// Whether a change that was marked waits.
    pub fn is_behind(&self) -> bool {
        self.nb_cfg.zip(self.sb_cfg).is_some_and(|(wanted, done)| wanted > done)
    }
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
    /// Addresses are given, and none of them is known to lead to this server: it is only found on this host.
    pub unnamed: bool,
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
    /// It has copied nothing from there yet.
    pub apart: bool,
    /// Tables that it does not copy then.
    pub excluded: Vec<String>,
    pub file: Option<DatabaseFile>,
}

/// The file of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DatabaseFile {
    pub path: String,
    pub bytes: u64,
    /// Bytes that are left on its file system, where that is known.
    pub free: Option<u64>,
    /// Whether the file system takes no writes at all, as after errors of its disk.
    pub read_only: bool,
}

impl DatabaseFile {
    /// Whether nothing can be written to it now.
    pub fn takes_no_writes(&self) -> bool {
        self.read_only || self.free == Some(0)
    }
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

    /// The servers that the given addresses name: the one on this host only if it belongs to them.
    pub(crate) fn named(&self) -> Self {
        let mut named = self.clone();
        named.servers.retain(|seen| self.is_named(seen));
        named
    }

    /// The server on this host, if it is one of these.
    pub(crate) fn named_here(&self) -> Option<(&Seen, &Control)> {
        self.here().filter(|(seen, _)| self.is_named(seen))
    }

    /// Whether a server is one of those that the given addresses name, or belongs to them.
    pub(crate) fn is_named(&self, seen: &Seen) -> bool {
        !seen.unnamed || self.belongs(seen)
    }

    /// Whether a server is of the same cluster as one that is named and answers, or copies one.
    fn belongs(&self, seen: &Seen) -> bool {
        let named = || self.servers.iter().filter(|seen| !seen.unnamed);
        let copies = seen.control.as_ref().and_then(|control| control.backup_of.as_ref());
        let is_copied = copies.is_some_and(|of| named().any(|seen| seen.address == *of));
        let cluster = seen.cluster();
        is_copied || cluster.is_some() && named().any(|seen| seen.cluster() == cluster)
    }

    /// The server on this host, if no address leads to it and no server that is named answers, and it is not of their hosts' cluster.
    pub(crate) fn stranger(&self) -> Option<&Seen> {
        let stranger = self.servers.iter().find(|seen| seen.unnamed && !self.belongs(seen))?;
        let mut named = self.servers.iter().filter(|seen| !seen.unnamed);
        let status = stranger.control.as_ref().and_then(|control| control.cluster.as_ref());
        let has_member = |host: &str| {
            status.is_some_and(|status| status.members.iter().any(|listed| host_of(&listed.address) == Some(host)))
        };
        let is_apart = named.all(|seen| seen.answer.is_none() && !host_of(&seen.address).is_some_and(has_member));
        is_apart.then_some(stranger)
    }
}

impl Seen {
    /// The id of the cluster that it is in.
    fn cluster(&self) -> Option<&str> {
        let said = self.control.as_ref().and_then(|control| control.cluster.as_ref());
        let answered = self.answer.as_ref().and_then(|answer| answer.cluster.as_deref());
        answered.or(said.map(|status| &*status.cluster)).filter(|cluster| !cluster.is_empty())
    }
}

/// `10.0.0.1` of `tcp:10.0.0.1:6641`, nothing of a unix socket.
pub(crate) fn host_of(address: &str) -> Option<&str> {
    let (scheme, rest) = address.split_once(':')?;
    if scheme == "unix" { None } else { rest.rsplit_once(':').map(|(host, _)| host) }
}
