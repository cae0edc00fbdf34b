//! Interconnection: clusters joined to one routed network by the databases of OVN-IC.
//!
//! - [`config`]: what people want, from the ConfigMap `ovn-ic-config`
//! - [`peers`]: what the databases say about the other clusters
//! - [`subnet`]: ranges that people keep from the others
//! - [`declared`]: prefixes that people say are behind another cluster
//! - [`prefixes`]: which of the others' prefixes may be used here
//! - [`judged`]: these and the declared ones
//! - [`kept`]: what a master keeps for the next one
//! - [`host_routes`]: those that hosts have routes to

mod config;
mod declared;
mod host_routes;
mod judged;
mod kept;
mod peers;
mod prefixes;
mod range;
mod subnet;
#[cfg(test)]
mod tests;
mod text;

pub use config::{Asks, BadKey, Interconnection, InterconnectionConfig, Server};
pub use declared::Declared;
pub use host_routes::{HostRoutes, MOST_HOST_ROUTES};
pub(crate) use host_routes::{by_cluster, fair, text as host_routes_text};
pub use judged::prefixes;
pub(crate) use kept::Kept;
pub use peers::{OwnPort, PeerCluster, PeerPort, PeerRoute, Peers, RemotePort, TransitSwitch};
pub use prefixes::{Judge, Local, LocalRange, MOST_PREFIXES, Prefixes, Refused, RouteCounts};
pub use range::nowhere;
pub use subnet::InterconnectionSubnet;
pub use text::is_zone;
