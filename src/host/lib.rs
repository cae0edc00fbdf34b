//! Basic operations on the host: network namespaces, links, addresses, routes, neighbours, sysctls.
//!
//! ```text
//! Netns::open ─▶ Net::within ─▶ link / ensure_address / ensure_route / … (rtnetlink)
//!             └▶ Netns::run  ─▶ sysctl::set, ethtool::tx_checksum_off    (std thread)
//! flows::Switch, nft, cni::versions                                      (ovs-ofctl, nft, CNI plugins)
//! conntrack::end_udp, unixctl::Program                                   (netlink, control sockets)
//! ```
//! A runtime thread never changes its namespace: a short-lived std thread enters it, opens the
//! socket there and ends; the socket stays in that namespace. `ensure_*` functions change nothing
//! when the host is already as wanted, so they can run on every event.

pub mod advertised;
mod answer;
pub mod changes;
pub mod cni;
pub mod conntrack;
mod error;
pub mod ethtool;
pub mod flows;
mod look;
mod net;
mod netlink;
mod netns;
pub mod nft;
mod other_end;
mod program;
mod rules;
mod saved;
pub mod sockets;
pub mod sysctl;
pub mod unixctl;

pub use error::{Error, Result};
pub use look::Look;
pub use net::{Net, Veth};
pub use netns::Netns;
pub use other_end::OtherEnd;
pub use ovnkube_node_plan::host::{DefaultRoute, Link, Mac, Packets, Route, Rule};
pub use program::version;
pub use saved::{SavedAddress, SavedRoute};

#[cfg(test)]
mod rules_tests;
#[cfg(test)]
mod silence;
#[cfg(test)]
mod tests;
