//! What a client connects to, what it keeps, and its limits.

use std::sync::Arc;
use std::time::Duration;

use ovnkube_ovn::{Database, Table};
use ovnkube_ovsdb_data::{Identity, Monitored};

use crate::conn::{ReadHalf, WriteHalf};
use crate::fence::Fence;
use crate::remote::Remote;
use crate::tls::TlsFiles;

/// Opens a connection to a remote: what is read from it, and what is written to it.
pub type Dial = Arc<dyn Fn(&Remote) -> (ReadHalf, WriteHalf) + Send + Sync>;

/// What to connect to and what to keep.
#[derive(Clone)]
pub struct Options {
    pub database: &'static Database,
    /// Servers of one cluster, or a single server.
    pub remotes: Vec<Remote>,
    /// In place of the network, for a server within this process.
    pub dial: Option<Dial>,
    /// Needed for `ssl:` remotes.
    pub tls: Option<TlsFiles>,
    /// Stay only with a cluster's leader, as a client that writes should.
    pub leader_only: bool,
    /// Needed by clients that write under a lock to a cluster: keeps out what they send after another has the lock.
    pub fence: Option<Fence>,
    /// What to keep in the cache.
    pub tables: Vec<Monitored>,
    /// What [`crate::Cache::lookup`] finds rows by.
    pub identity: Identity,
    /// Whether [`crate::Cache::parents`] knows which rows refer to rows of a table. That is costly where many rows
    /// refer to many, as groups do to ports.
    pub has_parents: fn(&Table) -> bool,
    /// A server on TCP that is silent for this long is sent an echo, and after this long again it is given up. While a
    /// write waits, the echo is sent after a tenth of that time, and if there is another remote, the server is given up
    /// after four tenths more. `None`: no echo is sent.
    pub probe: Option<Duration>,
    pub connect_timeout: Duration,
    /// Limit for each request before the download.
    pub step_timeout: Duration,
    /// Limit for the first or next byte of the download: a server works on a big one for seconds before it sends
    /// anything.
    pub monitor_timeout: Duration,
    pub txn_timeout: Duration,
    /// How many transactions may be in flight.
    pub window: usize,
    /// Longest message in bytes; a longer one ends the session.
    pub max_message: usize,
    /// The most bytes that all rows may have as text; more end the session. For databases that strangers write. `None`: it is not counted.
    pub max_rows: Option<usize>,
}

impl Options {
    /// Options for all tables of `database`, without identity, with the default limits.
    pub fn new(database: &'static Database, remotes: Vec<Remote>) -> Self {
        Options {
            database,
            remotes,
            dial: None,
            tls: None,
            leader_only: true,
            fence: None,
            tables: Monitored::whole(database),
            identity: |_| None,
            has_parents: |_| true,
            probe: Some(Duration::from_secs(10)),
            connect_timeout: Duration::from_secs(10),
            step_timeout: Duration::from_secs(20),
            monitor_timeout: Duration::from_secs(60),
            txn_timeout: Duration::from_secs(60),
            window: 64,
            max_message: 1 << 30,
            max_rows: None,
        }
    }
}
