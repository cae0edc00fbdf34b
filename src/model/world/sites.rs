//! Where services are served: the nodes of this zone that have a switch, reduced to what load balancers need.

use super::World;
use super::site::{Site, SiteRouter};
use crate::services::places::Places;
use crate::{Affected, Family, Name, Node, Notice, ObjectKey};

/// Node label with the failure domain.
const TOPOLOGY_ZONE: &str = "topology.kubernetes.io/zone";

impl World {
    /// Updates the sites of the affected nodes.
    pub(super) fn settle_sites(&mut self) {
        let mut differs = false;
        let everything = self.affected.contains(&Affected::Everything);
        let nodes: Vec<Name> = if everything {
            self.nodes.keys().cloned().collect()
        } else {
            let node =
                |affected: &Affected| if let Affected::Node(name) = affected { Some(name.clone()) } else { None };
            self.affected.iter().filter_map(node).collect()
        };
        for name in nodes {
            let ips = self.nodes.get(&name).map(Node::ips).unwrap_or_default();
            let services = self.services.apply_node(&name, ips);
            if !everything {
                self.affected.extend(services.into_iter().map(Affected::Service));
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
        if !differs {
            return;
        }
        let services = self.services.apply_places(self.places());
        if !everything {
            self.affected.extend(services.into_iter().map(Affected::Service));
            self.affected.insert(Affected::Sites);
        }
    }

    fn places(&self) -> Places {
        let ips = || self.sites.values().map(|site| site.node_port_ips().len());
        let all = || self.sites.values().flat_map(Site::node_port_ips);
        let of_family = |family| all().filter(|ip| Family::of(**ip) == family).count();
        let (templates, of_a_node) = (self.settings.svc_template_support, ips().max().unwrap_or_default());
        Places {
            nodes: self.sites.len(),
            node_port_ips: ips().sum(),
            node_port_ips_of_a_family: Family::ALL.into_iter().map(of_family).max().unwrap_or_default(),
            node_port_ips_of_a_node: of_a_node,
            in_template: templates.then_some(of_a_node),
        }
    }

    fn site(&self, name: &Name) -> Option<Site> {
        let node = self.nodes.get(name).filter(|node| node.zone == self.settings.zone)?;
        let network = self.node_networks.get(name).filter(|network| !network.subnets.is_empty())?;
        let router = || {
            let (gateway, chassis) = (node.gateway.as_ref()?, node.chassis_id.clone()?);
            network.id?;
            let ips = gateway.ips.iter().map(ipnetwork::IpNetwork::ip).collect();
            Some(SiteRouter { ips, node_port: gateway.node_port, chassis })
        };
        let mut host_ips: Vec<_> = node.cidrs_with_rows().iter().map(ipnetwork::IpNetwork::ip).collect();
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
