//! Nodes that are alike for a service. Its rows for them are made once: it may have thousands of ports, and the cluster
//! thousands of nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ovnkube_model::{Family, Name, Site, World};

use super::configs::{At, Behind, Config};

/// All of a node that its load balancers can depend on, apart from the places where they are used.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Traits<'a> {
    /// `None` unless endpoints on it, or meant for it, count only there.
    node: Option<&'a Name>,
    /// The same of its failure domain.
    zone: Option<&'a Name>,
    node_port_ips: &'a [IpAddr],
    /// Its router's addresses that are endpoints, also of those that are not in every list.
    endpoints: Vec<IpAddr>,
    has_router: bool,
}

/// All nodes in groups that have the same load balancers, or for templates the same endpoints, in the order of their first
/// nodes. Another group may have the same ones too: what nodes have is compared, not yet what follows from it.
pub(super) fn groups<'a>(configs: &[&Config<'_>], world: &'a World) -> Vec<Vec<(&'a Name, &'a Site)>> {
    if configs.is_empty() {
        return Vec::new();
    }
    // in a template a variable stands for these addresses
    let has_node_ports = configs.iter().any(|config| matches!(config.at, At::Nodes) && !config.is_template);
    let has_hints = configs.iter().copied().flat_map(behind).any(|behind| behind.has_hints);
    let (nodes, ips) = (special_nodes(configs), endpoint_ips(configs));
    let traits = |node: &'a Name, site: &'a Site| {
        let router = site.router.as_ref();
        let own = router.map(|router| router.ips.as_slice()).unwrap_or_default();
        Traits {
            node: Some(node).filter(|node| nodes.contains(node)),
            zone: site.topology_zone.as_ref().filter(|_| has_hints),
            node_port_ips: if has_node_ports { site.node_port_ips() } else { &[] },
            endpoints: own.iter().copied().filter(|ip| ips.contains(ip)).collect(),
            has_router: router.is_some(),
        }
    };
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (node, site) in &world.sites {
        groups.entry(traits(node, site)).or_default().push((node, site));
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_unstable_by_key(|nodes| nodes.first().map(|(node, _)| *node));
    groups
}

/// The nodes whose own endpoints count there, and those that hints name.
fn special_nodes<'c>(configs: &[&'c Config<'_>]) -> BTreeSet<&'c Name> {
    let local = configs.iter().copied().filter(|config| config.external_local || !config.internal_local.is_empty());
    let local = local.flat_map(behind).flat_map(|behind| behind.all.homes());
    let hinted = configs.iter().copied().flat_map(behind).filter(|behind| behind.has_hints);
    local.chain(hinted.flat_map(|behind| behind.all.hinted_nodes())).collect()
}

fn endpoint_ips(configs: &[&Config<'_>]) -> BTreeSet<IpAddr> {
    let all = configs.iter().copied().flat_map(behind);
    all.flat_map(|behind| behind.all.ips()).collect()
}

fn behind<'c, 'w>(config: &'c Config<'w>) -> [&'c Behind<'w>; 2] {
    Family::ALL.map(|family| config.behind(family))
}
