//! Works out what the node agent wants of its host, and which changes that takes. Pure: the same settings, Node,
//! services and observed host always give the same changes, in the same order.
//!
//! ```text
//!  settings, Node, services ─▶ want ─┐
//!                                    ├─ diff ─▶ HostChange, HostChange, …      (applied by the crate node)
//!  links, rules, bridges ─▶ Observed ┘
//! ```
//!
//! One file or folder for each concern. *Invariant*: nothing in here reads or writes the host; the manifest has no
//! dependency that could.

pub mod annotations;
pub mod change;
pub mod chassis;
pub mod cni_conf;
pub mod databases;
pub mod encap_ip_change;
pub mod gateway;
pub mod host;
pub mod iptables_cleanup;
pub mod links;
pub mod management_port;
pub mod masquerade;
pub mod mtu;
pub mod observed;
pub mod openflow;
pub mod other_clusters;
pub mod preflight;
pub mod releases;
pub mod services;
pub mod stale;
pub mod uplink;
pub mod vswitch;
mod warning;

pub use warning::Warning;
