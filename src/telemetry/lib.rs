//! What a person sees of a running ovnkube: logs, `/metrics`, `/healthz` and `/readyz`.

mod logs;
mod metrics;
mod node_health;
mod process;
mod rotate;
mod server;
#[cfg(test)]
mod tests;
mod web;

pub use logs::{FATAL, LogSettings, start_logging};
pub use metrics::Metrics;
pub use node_health::NodeHealth;
/// The library of the metrics, for crates that register their own.
pub use prometheus_client as prometheus;
pub use server::{Readiness, Sources, keep_serving, serve};
pub use web::{Served, Web};

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// What can go wrong when telemetry starts. Once it runs it hurts nobody.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("open log file {}: {problem}; set logfile to a file in a directory that exists and is writable", path.display())]
    LogFile { path: PathBuf, problem: io::Error },
    #[error("use loglevel {0}: 1 (fatal), 2 (error), 3 (warning), 4 (info) or 5 (debug) are known")]
    LogLevel(u8),
    #[error("start logging: it was started before")]
    LoggingTwice,
    #[error("listen on {address} for metrics: {problem}; set another metrics-bind-address")]
    Listen { address: SocketAddr, problem: io::Error },
}
