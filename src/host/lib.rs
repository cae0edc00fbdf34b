//! Small verbs on the host: network namespaces, links, addresses, routes, neighbours, sysctls.
//!
//! ```text
//! Netns::open ─▶ Net::within ─▶ link / ensure_address / ensure_route / … (rtnetlink)
//!             └▶ Netns::run  ─▶ sysctl::set, ethtool::tx_checksum_off    (std thread)
//! flows::Switch, nft, cni::versions                                      (ovs-ofctl, nft, CNI plugins)
//! conntrack::end_udp, unixctl::vswitchd                                  (netlink, ovs-vswitchd)
//! ```
//! A runtime thread never changes its namespace: a short-lived std thread enters it, opens the
//! socket there and ends; the socket stays in that namespace. `ensure_*` verbs leave the host as
//! it is when it is already right, so they can run on every event.

pub mod advertised;
pub mod changes;
pub mod cni;
pub mod conntrack;
pub mod ethtool;
pub mod flows;
mod held;
mod net;
mod netlink;
mod netns;
pub mod nft;
mod program;
mod rules;
pub mod sysctl;
pub mod unixctl;

use std::io;
use std::path::PathBuf;

pub use held::{HeldAddress, HeldRoute};
pub use net::{DefaultRoute, Link, Net, Route, Veth};
pub use netns::Netns;
pub use rules::Rule;

/// MAC address of a link.
pub type Mac = [u8; 6];

/// What failed on which object of the host.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("open network namespace {path}: {source}")]
    OpenNetns { path: PathBuf, source: io::Error },
    #[error("open network namespace {path}: not a namespace file")]
    NotNetns { path: PathBuf },
    #[error("open network namespace {path}: it is the node's own")]
    OwnNetns { path: PathBuf },
    #[error("enter network namespace {path}: {source}")]
    EnterNetns { path: PathBuf, source: io::Error },
    #[error("open netlink socket: {0}")]
    Socket(#[source] io::Error),
    #[error("{what}: {source}")]
    Netlink { what: String, source: io::Error },
    #[error("write sysctl {key}: {source}")]
    Sysctl { key: String, source: io::Error },
    #[error("run {program}, for which package {package} is needed: {source}")]
    NoProgram { program: &'static str, package: &'static str, source: io::Error },
    #[error("{what}: {program}: {said}")]
    Program { what: String, program: &'static str, said: String },
    #[error("{what}: {program} did not end within 10 s and was killed; {remedy}")]
    Hangs { what: String, program: &'static str, remedy: &'static str },
    #[error("run {command} in ovs-vswitchd: {why}")]
    Unixctl { command: String, why: String },
    #[error("watch the flows of {bridge}: {source}")]
    Watch { bridge: String, source: io::Error },
    #[error("{what}: no reply from the kernel")]
    NoReply { what: String },
}

pub type Result<T> = std::result::Result<T, Error>;

#[cfg(test)]
mod tests;
