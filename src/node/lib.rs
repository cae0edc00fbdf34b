//! The node agent: wires this node's pods, and maintains the node's own part of the network.
//!
//! ```text
//!  shim ──▶ server ─▶ request ─▶ cni ─┬▶ pair, sandbox  veth, addresses, routes (netlink)
//!                                     └▶ ovs, ports     port, ovn-installed    (OVSDB)
//!
//!  Node, services ─┐
//!  host ─ observe ─┴▶ reconcile ─▶ node_plan: want, diff ─▶ apply   links, routes, rules, stale things
//!                        ├▶ uplink             a NIC and its bridge                (OVSDB, netlink)
//!                        ├▶ replug             pods' ports that vanished           (OVSDB)
//!                        ├▶ gateway            flows and nftables of the bridge    (OpenFlow, nft)
//!                        ├▶ services           what the gateway does for services, health checks
//!                        └▶ conf               10-ovn-kubernetes.conflist once pods can be wired
//! ```
//! `reconcile` is level-triggered: any change of links, OVS rows or the Node makes it compare all of
//! the node's own state and restore what is missing. Nothing is polled. The pure crate
//! `ovnkube-node-plan` works out what is wanted and what is missing.

mod agent;
mod apply;
mod bandwidth;
mod cleanup;
mod cni;
mod conf;
mod dir_changes;
mod error;
mod exchange;
mod gateway;
mod mtu;
mod observe;
mod other_clusters;
mod ovn_releases;
mod ovs;
mod pair;
mod pods;
mod ports;
mod preflight;
mod preview;
mod reconcile;
mod replug;
mod reply;
mod request;
mod restore_wait;
mod sandbox;
mod sandbox_locks;
mod server;
mod services;
mod settings;
mod stamp;
mod subject;
mod switch_health;
#[cfg(test)]
mod tests;
mod uplink;
mod wanted;
mod warnings;

pub use agent::{Place, plan, run, run_at};
pub use cleanup::{CleanupSettings, clean_up};
pub use conf::CniConf;
pub use error::Error;
pub(crate) use error::Result;
pub(crate) use exchange::Readiness;
pub use exchange::{Change, OwnNode, Reports};
pub use ovnkube_node_plan::Warning;
pub use ovnkube_node_plan::annotations::Annotations;
pub use ovnkube_node_plan::chassis::{ChassisSettings, Tls};
pub use ovnkube_node_plan::gateway::GatewaySettings;
pub use pods::PodOnNode;
pub use preflight::{HostQuestion, preflight, uplink_addresses};
pub use reply::{CniResult, Refusal};
pub use request::Request;
pub use restore_wait::end_waits;
pub use server::{answers, has_been_ready};
pub use settings::{MtuSettings, NodeSettings};
pub use subject::Sandbox;
#[doc(hidden)]
pub use uplink::before_each_step;
pub use warnings::{Standing, Warnings};
