//! Keeps pods away from databases that are reached without TLS: whoever can connect to one controls the network.
//!
//! Pods reach other hosts by the gateway's bridge or, like their own node, by the management port; both drop such packets.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use ovnkube_model::{Family, Protocol};

use crate::services::element::{Element, Key, Set};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Databases {
    pub at: BTreeSet<SocketAddr>,
    /// The ports of those on this host.
    pub here: BTreeSet<u16>,
}

impl Databases {
    /// `own`: this host's addresses.
    pub fn of(all: &BTreeSet<SocketAddr>, own: &[IpAddr]) -> Self {
        let is_own = |at: &&SocketAddr| at.ip().is_loopback() || own.contains(&at.ip());
        Self {
            at: all.iter().filter(|at| !at.ip().is_loopback()).copied().collect(),
            here: all.iter().filter(is_own).map(SocketAddr::port).collect(),
        }
    }

    /// What nftables' sets of databases contain.
    pub fn elements(&self) -> impl Iterator<Item = (Element, Option<SocketAddr>)> {
        let at = self.at.iter().map(|at| {
            let key = Key::of_ip(at.ip(), Protocol::Tcp, at.port());
            (Element::new(Set::Databases, Family::of(at.ip()), key), None)
        });
        let here = self
            .here
            .iter()
            .map(|port| (Element::new(Set::DatabasePorts, Family::V4, Key::of_port(Protocol::Tcp, *port)), None));
        at.chain(here)
    }
}
