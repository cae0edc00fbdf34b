//! A node where services are served.

use std::net::IpAddr;

use crate::{Name, Topology};

/// A node as load balancers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The node's own addresses.
    pub host_ips: Vec<IpAddr>,
    pub router: Option<SiteRouter>,
    /// The failure domain of the node; unrelated to zones of controllers.
    pub topology_zone: Option<Name>,
}

/// A node's gateway router, which exists once the node's agent has set up the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteRouter {
    /// The router's addresses, which are the node's on its gateway bridge.
    pub ips: Vec<IpAddr>,
    pub node_port: bool,
    pub chassis: Name,
}

impl Site {
    /// The addresses at which node ports answer; empty for a node that serves none.
    pub fn node_port_ips(&self) -> &[IpAddr] {
        if self.router.as_ref().is_some_and(|router| router.node_port) { &self.host_ips } else { &[] }
    }

    pub fn topology<'a>(&'a self, node: &'a str) -> Topology<'a> {
        Topology { node, zone: self.topology_zone.as_deref() }
    }
}
