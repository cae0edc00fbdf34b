//! Where services are served: the nodes of this zone that have a switch, reduced to what load balancers
//! need of them.

use std::net::IpAddr;

use super::World;
use crate::{Name, Node, Notice, ObjectKey, Place, Touched};

/// Label of nodes.
const TOPOLOGY_ZONE: &str = "topology.kubernetes.io/zone";

/// A node as load balancers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The node's own addresses.
    pub host_ips: Vec<IpAddr>,
    pub router: Option<SiteRouter>,
    /// The failure domain it stands in, which has nothing to do with zones of controllers.
    pub topology_zone: Option<Name>,
}

/// Its gateway router, which stands once the node's agent has set the gateway up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteRouter {
    /// The router's addresses, which are those of the node on its gateway bridge.
    pub ips: Vec<IpAddr>,
    pub node_port: bool,
    pub chassis: Name,
}

impl Site {
    /// Where node ports answer: nowhere on a node that serves none.
    pub fn node_port_ips(&self) -> &[IpAddr] {
        if self.router.as_ref().is_some_and(|router| router.node_port) { &self.host_ips } else { &[] }
    }

    pub fn place<'a>(&'a self, node: &'a str) -> Place<'a> {
        Place { node, zone: self.topology_zone.as_deref() }
    }
}

impl World {
    /// Looks again at the nodes that were touched.
    pub(super) fn settle_sites(&mut self) {
        let mut differs = false;
        let everything = self.touched.contains(&Touched::Everything);
        let nodes: Vec<Name> = if everything {
            self.nodes.keys().cloned().collect()
        } else {
            let node = |touched: &Touched| if let Touched::Node(name) = touched { Some(name.clone()) } else { None };
            self.touched.iter().filter_map(node).collect()
        };
        for name in nodes {
            let ips = self.nodes.get(&name).map(Node::ips).unwrap_or_default();
            let services = self.services.apply_node(&name, ips);
            if !everything {
                self.touched.extend(services.into_iter().map(Touched::Service));
            }
            let site = self.site(&name);
            if self.sites.get(&name) != site.as_ref() {
                differs = true;
                match site {
                    Some(site) => drop(self.sites.insert(name, site)),
                    None => drop(self.sites.remove(&name)),
                }
            }
        }
        if differs && !everything {
            self.touched.insert(Touched::Sites);
        }
    }

    fn site(&self, name: &Name) -> Option<Site> {
        let node = self.nodes.get(name).filter(|node| node.zone == self.network.zone)?;
        let network = self.networks.get(name).filter(|network| !network.subnets.is_empty())?;
        let router = || {
            let (gateway, chassis) = (node.gateway.as_ref()?, node.chassis_id.clone()?);
            network.id?;
            let ips = gateway.ips.iter().map(ipnetwork::IpNetwork::ip).collect();
            Some(SiteRouter { ips, node_port: gateway.node_port, chassis })
        };
        let mut host_ips: Vec<_> = node.host_cidrs.iter().map(ipnetwork::IpNetwork::ip).collect();
        host_ips.sort_by_key(ToString::to_string);
        host_ips.dedup();
        Some(Site {
            host_ips,
            router: router(),
            topology_zone: node.labels.get(TOPOLOGY_ZONE).map(|z| z.as_str().into()),
        })
    }

    pub(super) fn service_notices(&self, key: &ObjectKey) -> Vec<Notice> {
        self.services.notices(key)
    }
}
