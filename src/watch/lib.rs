//! The only place that talks to the Kubernetes API.
//!
//! ```text
//!                    ┌ list in pages, then watch; relist as a diff ┐
//!  kube-apiserver ──▶│ pods.rs  nodes.rs  services.rs  …           │──Change──▶ World
//!                    └─────────────────────────────────────────────┘
//!                 ◀── give_pod, give_node …          guarded by uid and by what they replace
//!                 ◀── Events                         one Event per Notice, counted
//!                 ◀──▶ Leader                        the lease that says who may write
//!                 ◀──▶ config_map, set_config_map    what the cluster agrees on
//!                 ◀──▶ endpoints, make_endpoints     where the databases are
//!                 ◀──▶ request_certificate, follow_signing_requests    certificates of node agents
//! ```
//!
//! Objects are decoded directly into the few fields that matter; only keys and uids of the objects seen are kept. A new
//! kind takes one file like `namespaces.rs`, and lines in `scope.rs` and `decode.rs`.

mod access;
mod backoff;
#[cfg(test)]
mod busy_tests;
mod client;
mod config_map;
mod connection;
mod decode;
mod election;
mod endpoint_slices;
mod endpoints;
mod error;
mod events;
mod for_hosts;
mod interconnection;
mod interconnection_subnets;
mod leader;
mod lease;
mod lease_settings;
mod namespaces;
mod network_policies;
mod nodes;
mod object;
mod patch;
mod pods;
mod pulse;
mod scope;
mod service_cidrs;
mod services;
mod signing;
mod stream;
mod survey;
#[cfg_attr(windows, path = "system/windows.rs")]
mod system;
#[cfg(test)]
mod tests;

pub use access::{Access, LOG_IN_WITHIN, Secret};
pub use client::Client;
pub use config_map::Data;
pub use decode::{decode, decode_gone};
pub use endpoints::Endpoints;
pub use error::Error;
pub use events::Events;
pub use leader::{Leader, LeaderTask, Seeker};
pub use lease_settings::LeaseSettings;
pub use patch::{Annotations, Condition, Given, merge_patch};
pub use scope::{Scope, Watches, read, start};
pub use signing::Verdict;
