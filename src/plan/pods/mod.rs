//! Pods: a logical port for each, its addresses, and the annotation that gives them to the node.
//!
//! ```text
//! LSP <ns>_<pod> under LS <node>
//!    ├ addresses, port_security   "MAC IP[ IP6]"
//!    └ options                    iface-id-ver=<uid>, requested-chassis=<node>
//! Address_Set of the namespace  += its IPs
//! Port_Group of the namespace   += its port, if there is one
//! Port_Groups of the policies that select it += its port; Address_Sets it belongs to += its IPs
//! annotation k8s.ovn.org/pod-networks
//! ```
//!
//! All rows of a pod change in one transaction, so that it is in its groups before its first packet.

use std::net::IpAddr;
use std::sync::Arc;

use ipnetwork::IpNetwork;
use ovnkube_model::{
    Affected, Family, Name, NetworkSettings, NodeNetwork, PodAddresses, PodAnnotation, PodEntry, PodKey, PodNetwork,
    Roles, Route, Subnet, World, keys, render_pod_networks,
};
use ovnkube_ovn::Row;
use ovnkube_ovn::nb::{address_set, logical_switch, logical_switch_port as lsp, port_group};

use crate::{Feature, Patch, PatchTarget, RowKey, RowWant, Seen, Want, gateway, names, policies};

pub struct Pods;

impl Feature for Pods {
    type Key = PodKey;

    fn is_enabled(roles: Roles) -> bool {
        roles.controller
    }

    fn affected(what: &Affected, world: &World) -> Vec<PodKey> {
        match what {
            Affected::Everything => world.pods.keys().cloned().collect(),
            Affected::Pod(key) => vec![key.clone()],
            Affected::Node(name) => world.pods_on(name).cloned().collect(),
            Affected::Namespace(name) => world.pods_in(name).cloned().collect(),
            _ => Vec::new(),
        }
    }

    fn want(key: &PodKey, world: &World) -> Want {
        if let Some(entry) = world.pods.get(key).filter(|e| e.pod.host_network && e.pod.node.is_some()) {
            return in_host_network(key, entry, world);
        }
        wired(key, world)
            .map(|(entry, addresses, node, network)| pod(key, entry, addresses, node, network, world))
            .unwrap_or_default()
    }
}

/// The pod's port.
pub(crate) fn port_key(key: &PodKey) -> RowKey {
    RowKey::new(lsp::TABLE, key.port_name())
}

/// A host-network pod has no port; policies may refer to it as the other end.
fn in_host_network(key: &PodKey, entry: &PodEntry, world: &World) -> Want {
    let mut want = Want::default();
    let families = world.settings.families();
    let ips = with_text(world.host_ips(&entry.pod).filter(|ip| families.contains(&Family::of(*ip))));
    policies::memberships(&mut want, key, &entry.pod, None, &ips, world);
    want
}

/// Addresses with their text, which all sets they are in share.
fn with_text(ips: impl Iterator<Item = IpAddr>) -> Vec<(IpAddr, Arc<str>)> {
    ips.map(|ip| (ip, ip.to_string().into())).collect()
}

/// The pod with everything its port depends on: addresses, a node of this zone, a namespace.
fn wired<'a>(key: &PodKey, world: &'a World) -> Option<(&'a PodEntry, &'a PodAddresses, &'a Name, &'a NodeNetwork)> {
    let entry = world.pods.get(key)?;
    let addresses = entry.addresses.as_ref()?;
    let node = entry.pod.wired_on()?;
    let here = world.nodes.get(node)?.zone == world.settings.zone;
    let network = world.node_networks.get(node)?;
    let free = world.namespaces.contains_key(&key.namespace) && !world.is_gateway_port(key);
    (here && free).then_some((entry, addresses, node, network))
}

fn pod(
    key: &PodKey,
    entry: &PodEntry,
    addresses: &PodAddresses,
    node: &Name,
    network: &NodeNetwork,
    world: &World,
) -> Want {
    let mut want =
        Want { patch: annotation(key, entry, &pod_network(addresses, network, &world.settings)), ..Want::default() };
    if !entry.may_be_wired {
        return want;
    }
    let port = want.row(port(key, entry, addresses, node, &world.settings));
    want.member(&names::switch(node), logical_switch::PORTS, &port);
    if world.settings.has_namespace_groups() {
        want.member(&names::group_key(&world.namespace_group(&key.namespace)), port_group::PORTS, &port);
    }
    let ips = with_text(addresses.each());
    for (ip, text) in &ips {
        let set = names::set_key(&world.namespace_set(&key.namespace, Family::of(*ip)));
        want.text(&set, address_set::ADDRESSES, text.clone());
    }
    gateway::of_pod(&mut want, node, addresses.each(), world);
    policies::memberships(&mut want, key, &entry.pod, Some(&port), &ips, world);
    want
}

fn port(key: &PodKey, entry: &PodEntry, addresses: &PodAddresses, node: &Name, network: &NetworkSettings) -> RowWant {
    let name = key.port_name();
    let mut options = Vec::with_capacity(2);
    if !network.disable_iface_id_ver {
        options.push(("iface-id-ver", entry.pod.uid.as_ref()));
    }
    if !network.disable_requested_chassis {
        options.push(("requested-chassis", node.as_ref()));
    }
    let address = addresses.port_address();
    RowWant::new(name.as_str(), Row::new(lsp::TABLE))
        .with(lsp::NAME, name.as_str())
        .with(lsp::ADDRESSES, [address.as_str()])
        .with(lsp::PORT_SECURITY, [address.as_str()])
        .with(lsp::OPTIONS, options)
        .with(lsp::EXTERNAL_IDS, [("namespace", key.namespace.as_ref()), ("pod", "true")])
}

/// Gateways and routes for the families that the pod has, one family after the other.
fn pod_network(addresses: &PodAddresses, node: &NodeNetwork, network: &NetworkSettings) -> PodNetwork {
    let mut gateways = Vec::with_capacity(addresses.ips.len());
    let mut routes = Vec::new();
    for ip in addresses.each() {
        let Some(next_hop) = node.gateways().map(|g| g.ip()).find(|g| Family::of(*g) == Family::of(ip)) else {
            continue;
        };
        gateways.push(next_hop);
        routes.extend(routed(network, Family::of(ip)).map(|dest| Route { dest, next_hop }));
    }
    let single = addresses.ips.len() == 1;
    PodNetwork {
        ip_addresses: addresses.ips.clone(),
        mac_address: addresses.mac,
        ip_address: addresses.ips.first().copied().filter(|_| single),
        gateway_ip: gateways.first().copied().filter(|_| single),
        gateway_ips: gateways,
        routes,
        role: Some("primary".into()),
    }
}

/// What pods reach through their switch's router, whatever their default route is: other pods,
/// services, themselves behind a service, and the join network.
fn routed(network: &NetworkSettings, family: Family) -> impl Iterator<Item = IpNetwork> {
    let whole = |subnet: Subnet| IpNetwork::new(subnet.base(), subnet.prefix()).ok();
    let pods = network.cluster_subnets.iter().map(|range| range.cidr);
    let hairpin = network.masquerade(family).and_then(|m| IpNetwork::new(m.hairpin, family.bits()).ok());
    let ranges = pods.chain(network.service_cidrs.iter().copied()).filter(move |s| Family::of_subnet(*s) == family);
    ranges.filter_map(whole).chain(hairpin).chain(network.join_subnet(family).and_then(whole))
}

/// The annotation, unless the pod has it already.
fn annotation(key: &PodKey, entry: &PodEntry, network: &PodNetwork) -> Option<Patch> {
    let have = entry.pod.annotated.as_ref();
    if have.is_some_and(|a| a.digest == network.digest()) {
        return None;
    }
    let text = render_pod_networks(network, have.and_then(|a| a.with_others.as_deref()));
    let is_unreadable = || entry.pod.bad.iter().any(|bad| *bad.key == *keys::POD_NETWORKS);
    let seen = match have {
        Some(PodAnnotation { with_others: Some(text), .. }) => Seen::Texts(vec![Some(text.clone())]),
        Some(annotated) => Seen::Digest(Some(annotated.digest)),
        None if is_unreadable() => Seen::Digest(None),
        None if entry.pod.is_bare => Seen::Bare,
        None => Seen::Texts(vec![None]),
    };
    Some(Patch {
        target: PatchTarget::Pod(key.clone()),
        uid: entry.pod.uid.clone(),
        annotations: vec![(keys::POD_NETWORKS, text)],
        seen,
        labels: Vec::new(),
        network_unavailable: None,
    })
}
