//! What can go wrong when telemetry starts.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why logging or serving metrics cannot start. Once they run, their errors stop nothing else.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot open log file {}: {problem}; set logfile to a file in a directory that exists and is writable", path.display())]
    LogFile { path: PathBuf, problem: io::Error },
    #[error("cannot use loglevel {0}: it is not known; write 1 (fatal), 2 (error), 3 (warning), 4 (info) or 5 (debug)")]
    LogLevel(u8),
    #[error("cannot start logging: it was started before")]
    LoggingTwice,
    #[error("cannot listen on {address}: {problem}; stop the program that has it, or set another {key}")]
    Listen { address: SocketAddr, key: &'static str, problem: io::Error },
}
