//! Turns what a service asks for into as few load balancers as possible.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use ovnkube_model::{Family, Name, ObjectKey, Protocol, Site, World};

use super::alike;
use super::balancer::{Balancer, Vips};
use super::configs::{At, Config};
use super::targets::{local, on_router, on_switch};
use super::templates;
use crate::names;

/// All load balancers of a service.
pub(super) fn balancers(key: &ObjectKey, configs: &[Config<'_>], world: &World) -> Vec<Balancer> {
    let mut all = Vec::new();
    let (per_node, shared): (Vec<_>, Vec<_>) = configs.iter().partition(|config| config.is_per_node());
    let (in_templates, per_node): (Vec<_>, Vec<_>) = per_node.into_iter().partition(|config| config.is_template);
    for (protocol, configs) in by_protocol(&shared) {
        all.extend(cluster(key, protocol, &configs));
    }
    let groups = alike::groups(&in_templates, world);
    let mut templates = Vec::new();
    for (protocol, configs) in by_protocol(&in_templates) {
        templates.extend(templates::balancers(key, protocol, &configs, &groups, world));
    }
    all.extend(merged(templates));
    let groups = alike::groups(&per_node, world);
    let per_node = by_protocol(&per_node);
    let nodes = groups.iter().flat_map(|nodes| {
        per_node.iter().flat_map(move |(protocol, configs)| on_nodes(key, *protocol, configs, nodes, world))
    });
    all.extend(merged(nodes));
    all
}

/// Groups by protocol, without protocols that have nothing.
fn by_protocol<'a, 'c>(configs: &[&'a Config<'c>]) -> Vec<(Protocol, Vec<&'a Config<'c>>)> {
    let of = |protocol| configs.iter().copied().filter(|config| config.protocol == protocol).collect::<Vec<_>>();
    Protocol::ALL.map(|protocol| (protocol, of(protocol))).into_iter().filter(|(_, those)| !those.is_empty()).collect()
}

/// The load balancer on all switches and routers.
fn cluster(key: &ObjectKey, protocol: Protocol, configs: &[&Config<'_>]) -> Option<Balancer> {
    let mut vips = Vips::new();
    for config in configs {
        let At::Ips(ips) = &config.at else { continue };
        vips.extend(ips.iter().map(|ip| {
            (SocketAddr::new(*ip, config.port).to_string(), config.behind(Family::of(*ip)).cluster_text.clone())
        }));
    }
    let balancer = Balancer::new(key, protocol, "cluster", vips);
    balancer.map(|balancer| Balancer { groups: vec![names::CLUSTER_LB_GROUP], ..balancer })
}

/// The load balancers of nodes that are alike.
fn on_nodes(
    key: &ObjectKey,
    protocol: Protocol,
    configs: &[&Config<'_>],
    nodes: &[(&Name, &Site)],
    world: &World,
) -> Vec<Balancer> {
    let Some((first, others)) = nodes.split_first() else { return Vec::new() };
    let others: Vec<_> = others.iter().map(|(node, _)| Name::clone(node)).collect();
    let all = on_node(key, protocol, configs, *first, world);
    all.into_iter().map(|balancer| balancer.on_more(&others)).collect()
}

/// The load balancers of one node's switch and router.
pub(super) fn on_node(
    key: &ObjectKey,
    protocol: Protocol,
    configs: &[&Config<'_>],
    (node, site): (&Name, &Site),
    world: &World,
) -> Vec<Balancer> {
    let (mut switch, mut router, mut keeping) = (Vips::new(), Vips::new(), Vips::new());
    for config in configs {
        for ip in addresses(config, site) {
            let family = Family::of(ip);
            let at = |ip: IpAddr| SocketAddr::new(ip, config.port).to_string();
            if config.external_local && matches!(config.at, At::Nodes) {
                // the host sends packets from outside here if their client's address is kept
                let masked = world.settings.masquerade(family);
                switch.extend(masked.map(|masked| (at(masked.local), local(config.behind(family), node))));
            }
            let stays = config.internal_local.contains(&ip);
            let targets =
                if stays { local(config.behind(family), node) } else { on_switch(config, family, node, site) };
            let vip = at(ip);
            switch.insert(vip.clone(), targets);
            let targets = on_router(config, family, node, site, &world.settings);
            let vips = if config.external_local && !targets.is_empty() { &mut keeping } else { &mut router };
            vips.insert(vip, targets);
        }
    }
    let scope = |kind: &str| format!("{kind}_{node}");
    let both = site.router.is_some() && keeping.is_empty() && switch == router;
    let mut all = Vec::new();
    if site.router.is_some() {
        let kind = if both { "node_router+switch" } else { "node_router" };
        let switches = if both { vec![node.clone()] } else { Vec::new() };
        let router = Balancer::new(key, protocol, &scope(kind), router);
        all.extend(router.map(|balancer| Balancer { switches, routers: vec![node.clone()], ..balancer }));
        let keeping = Balancer::new(key, protocol, &scope("node_local_router"), keeping);
        all.extend(keeping.map(|balancer| Balancer { routers: vec![node.clone()], skip_snat: true, ..balancer }));
    }
    if !both {
        let switch = Balancer::new(key, protocol, &scope("node_switch"), switch);
        all.extend(switch.map(|balancer| Balancer { switches: vec![node.clone()], ..balancer }));
    }
    all
}

fn addresses(config: &Config<'_>, site: &Site) -> Vec<IpAddr> {
    match &config.at {
        At::Ips(ips) => ips.clone(),
        At::Nodes => site.node_port_ips().to_vec(),
    }
}

/// Merges those that differ only in where they are used, under the first one's name. Of thousands of nodes that have the same,
/// the addresses are in memory once.
fn merged(all: impl IntoIterator<Item = Balancer>) -> Vec<Balancer> {
    let mut out: Vec<Balancer> = Vec::new();
    let mut known = BTreeMap::new();
    for balancer in all {
        match known.entry((balancer.sort(), Rc::clone(&balancer.vips))) {
            Entry::Vacant(place) => {
                place.insert(out.len());
                out.push(balancer);
            }
            Entry::Occupied(at) => {
                if let Some(first) = out.get_mut(*at.get()) {
                    first.join(balancer);
                }
            }
        }
    }
    for balancer in &mut out {
        // they came group by group
        balancer.switches.sort_unstable();
        balancer.routers.sort_unstable();
    }
    out
}
