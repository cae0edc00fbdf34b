//! What this cluster offers to the others.

use std::collections::{BTreeMap, BTreeSet};

use ovnkube_model::{Interconnection, Local, Name, Subnet, World};

/// What the interconnection databases should hold of this cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub wanted: Interconnection,
    /// What tells this cluster from another one of the same name.
    pub cluster: Name,
    /// The names that it has or had: what has its mark under another name is not its own.
    pub former: BTreeSet<Name>,
    /// The nodes of the gateways, with the ids of their chassis as far as the agents there have written them.
    pub gateways: BTreeMap<Name, Option<Name>>,
    /// The ranges that the others may reach.
    pub prefixes: Vec<Subnet>,
    /// What no transit switch and no tunnel of another cluster may have.
    pub local: Local,
    /// Its nodes.
    pub nodes: BTreeSet<Name>,
    /// The chassis of all of them, whether they are there or not.
    pub own_chassis: BTreeSet<Name>,
    /// UDP port of its tunnels.
    pub encap_port: u16,
}

/// What this cluster offered to clusters that it has left, as far as its rows can be found by it.
pub fn left(world: &World) -> Vec<Offer> {
    let Some(cluster) = world.cluster_uid() else { return Vec::new() };
    let of = |wanted: &Interconnection| Offer {
        wanted: wanted.clone(),
        cluster: cluster.clone(),
        former: world.joined.former(),
        gateways: BTreeMap::new(),
        prefixes: Vec::new(),
        local: Local::default(),
        nodes: BTreeSet::new(),
        own_chassis: world.nodes.values().filter_map(|node| node.chassis_id.clone()).collect(),
        encap_port: world.settings.encap_port,
    };
    world.joined.left().into_iter().map(of).collect()
}

/// What this cluster offers; `None`: nothing, or it cannot be said yet.
pub fn offer(world: &World) -> Option<Offer> {
    let wanted = world.joined.wanted()?;
    let cluster = world.cluster_uid()?.clone();
    let gateways =
        wanted.gateways.iter().filter_map(|name| Some((name.clone(), world.nodes.get(name)?.chassis_id.clone())));
    let gateways = gateways.collect();
    let prefixes = if wanted.auto_route { world.offered_ranges().0 } else { Vec::new() };
    Some(Offer {
        wanted: wanted.clone(),
        cluster,
        former: world.joined.former(),
        gateways,
        prefixes,
        local: world.own_addresses(),
        nodes: world.nodes.keys().cloned().collect(),
        own_chassis: world.nodes.values().filter_map(|node| node.chassis_id.clone()).collect(),
        encap_port: world.settings.encap_port,
    })
}
