//! Interconnection: clusters joined to one routed network by the databases of OVN-IC.
//!
//! - [`config`]: what people want, from the ConfigMap `ovn-ic-config`
//! - [`peers`]: what the databases say about the other clusters
//! - [`prefixes`]: which of the others' prefixes may be used here

mod config;
mod peers;
mod prefixes;
#[cfg(test)]
mod tests;

pub use config::{Asks, BadKey, Interconnection, InterconnectionConfig, Server};
pub use peers::{OwnPort, PeerRoute, Peers, RemotePort, TransitSwitch};
pub use prefixes::{LocalRange, Prefixes, Refused, prefixes};
