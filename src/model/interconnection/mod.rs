//! Interconnection: clusters joined to one routed network by the databases of OVN-IC.
//!
//! - [`config`]: what people want, from the ConfigMap `ovn-ic-config`
//! - [`peers`]: what the databases say about the other clusters
//! - [`subnet`]: ranges that people keep from the others
//! - [`prefixes`]: which of the others' prefixes may be used here

mod config;
mod peers;
mod prefixes;
mod subnet;
#[cfg(test)]
mod tests;
mod text;

pub use config::{Asks, BadKey, Interconnection, InterconnectionConfig, Server};
pub use peers::{OwnPort, PeerCluster, PeerRoute, Peers, RemotePort, TransitSwitch};
pub use prefixes::{Local, LocalRange, MOST_PREFIXES, Prefixes, Refused, RouteCounts, prefixes};
pub use subnet::InterconnectionSubnet;
