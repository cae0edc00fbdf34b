//! Services on the node: the host, and clients outside, reach them as pods do.
//!
//! ```text
//!  Service, EndpointSlice ─▶ tracker ─▶ node_plan::services   what the host has to do for each
//!                               │            ├▶ nft      node ports, external addresses    maps and sets
//!                               │            ├▶ flows    what the bridge sends to OVN      OpenFlow
//!                               │            └▶ health   healthCheckNodePort               HTTP
//!                               └▶ stale                 UDP connections to gone endpoints ovs-vswitchd
//! ```
//! OVN balances the endpoints: the host needs nothing for most services, and does nothing when
//! their endpoints change.

mod health;
mod stale;
#[cfg(test)]
mod tests;
mod tracker;

pub(crate) use health::run as answer_health_checks;
pub(crate) use stale::{end_moved, run as end_stale};
pub(crate) use tracker::ServiceTracker;
