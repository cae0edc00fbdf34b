//! What users see of a running ovnkube: logs, `/metrics`, `/healthz` and `/readyz`.

mod error;
mod interconnection;
mod logs;
mod metrics;
mod node_health;
mod northd;
mod process;
mod series;
mod server;
#[cfg(test)]
mod tests;
mod web;
mod writing;

pub use error::Error;
pub use interconnection::{Clusters, Connected, InterconnectionMetrics, OtherCluster};
pub use logs::{FATAL, LogSettings, start_logging};
pub use metrics::Metrics;
pub use node_health::NodeHealth;
pub use northd::{Northd, NorthdMetrics, NorthdState};
pub use ovnkube_log_file::Limits as LogLimits;
/// The library of the metrics, for crates that register their own.
pub use prometheus_client as prometheus;
pub use server::{Readiness, Sources, keep_serving, serve};
pub use web::{Served, Web, one_request};
pub use writing::WritingMetrics;
