//! Rejects what a Node claims and others own: whoever controls its host can write its annotations.

use std::net::IpAddr;

use ipnetwork::IpNetwork;

use super::World;
use crate::{Affected, BadAnnotation, Name, Node, PodKey, keys};

impl World {
    /// The node without its claims to what others own.
    pub(super) fn admitted(&mut self, name: &Name, mut node: Node) -> Node {
        self.in_our_zone(&mut node);
        self.has_no_routers_address(&mut node);
        has_own_port(name, &mut node);
        self.has_own_chassis(name, &mut node);
        node
    }

    /// Only one zone is supported so far: another annotated zone must not keep a node's pods from being served.
    fn in_our_zone(&self, node: &mut Node) {
        let ours = &self.settings.zone;
        if node.zone == *ours {
            return;
        }
        if let Some(other) = node.written.get(keys::ZONE) {
            let problem = format!(
                "{other:?} is not {ours}, the only zone of the cluster; the node is served all the same; remove the \
                 annotation"
            );
            node.bad.push(BadAnnotation::new(keys::ZONE, problem));
        }
        node.zone = ours.clone();
    }

    /// Routers have the addresses of the join subnets. OVN forwards what is asked there for an address that a gateway router translates
    /// to, or has node ports at, to that router: one with the cluster router's address would get what all others send to pods.
    fn has_no_routers_address(&self, node: &mut Node) {
        let subnets = &self.settings.join_subnets;
        let is_routers = |net: &mut IpNetwork| subnets.iter().any(|subnet| subnet.contains(net.ip()));
        let gateway = node.gateway.iter_mut().map(|gateway| (keys::GATEWAY, &mut gateway.ips));
        for (key, ips) in gateway.chain([(keys::HOST_CIDRS, &mut node.host_cidrs)]) {
            let refused: Vec<IpAddr> = ips.extract_if(.., is_routers).map(|net| net.ip()).collect();
            let Some(first) = refused.first() else { continue };
            let problem = format!(
                "{first} is in a join subnet, whose addresses routers of the cluster have, and is not used; give the host \
                 another address, or the cluster another v4-join-subnet or v6-join-subnet"
            );
            node.bad.push(BadAnnotation::new(key, problem));
        }
        if node.gateway.as_ref().is_some_and(|gateway| gateway.ips.is_empty()) {
            node.gateway = None;
        }
    }

    /// A chassis belongs to the node that had it first; among nodes of the initial list, to the oldest.
    fn has_own_chassis(&mut self, name: &Name, node: &mut Node) {
        let Some(id) = node.chassis_id.clone() else { return };
        // no two admitted nodes have the same chassis
        let holder = self.nodes.iter_mut().find(|(other, has)| *other != name && has.chassis_id.as_ref() == Some(&id));
        let Some((holder, has)) = holder else { return };
        if !self.settled && (node.created, name) < (has.created, holder) {
            refuse_chassis(has, &id, name);
        } else {
            refuse_chassis(node, &id, holder);
        }
    }

    /// No node has this chassis any more: the oldest one that claims it gets it.
    pub(super) fn pass_chassis_on(&mut self, id: &Name) {
        let says = |node: &Node| node.chassis_id.is_none() && node.written.get(keys::CHASSIS_ID) == Some(id);
        let heirs = self.nodes.iter_mut().filter(|(_, node)| says(node));
        let Some((name, node)) = heirs.min_by_key(|(name, node)| (node.created, (*name).clone())) else { return };
        node.bad.retain(|bad| *bad.key != *keys::CHASSIS_ID);
        node.chassis_id = Some(id.clone());
        let name = name.clone();
        self.affect(Affected::Node(name));
    }

    /// Whether a pod's port would have the same name as a node's gateway port. The node has precedence.
    pub fn is_gateway_port(&self, key: &PodKey) -> bool {
        let gateway = self.nodes.get(&key.name).and_then(|node| node.gateway.as_ref());
        gateway.is_some_and(|gateway| bridge_of(&gateway.interface_id, &key.name) == Some(&key.namespace))
    }

    /// Marks the pod whose port would have the same name as the node's gateway port.
    pub(super) fn affect_namesake(&mut self, name: &Name, node: &Node) {
        let bridge = node.gateway.as_ref().and_then(|gateway| bridge_of(&gateway.interface_id, name));
        let Some(bridge) = bridge else { return };
        let key = PodKey { namespace: bridge.into(), name: name.clone() };
        if self.pods.contains_key(&key) {
            self.affect(Affected::Pod(key));
        }
    }
}

/// A gateway's port is named after its bridge and its node; any other name may belong to something else.
fn has_own_port(name: &Name, node: &mut Node) {
    let other = |gateway: &mut crate::Gateway| bridge_of(&gateway.interface_id, name).is_none();
    if let Some(gateway) = node.gateway.take_if(other) {
        let problem =
            format!("\"interface-id\" is {:?}, not <bridge>_{name}; the node gets no gateway", gateway.interface_id);
        node.bad.push(BadAnnotation::new(keys::GATEWAY, problem));
    }
}

/// What stands before `_<node>` in the names of the two switch ports that lead to the node's gateway router.
const OF_ROUTERS: [&str; 2] = ["jtor-GR", "etor-GR"];
/// The longest name of a link, in bytes.
const LINK_NAME: usize = 15;

/// The bridge in `<bridge>_<node>`.
fn bridge_of<'a>(interface_id: &'a str, node: &str) -> Option<&'a str> {
    let bridge = interface_id.strip_suffix(node)?.strip_suffix('_')?;
    (!bridge.is_empty() && bridge.len() <= LINK_NAME && !OF_ROUTERS.contains(&bridge)).then_some(bridge)
}

fn refuse_chassis(node: &mut Node, id: &Name, holder: &Name) {
    node.chassis_id = None;
    let problem = format!(
        "{id} is the chassis of node {holder}, and this node gets no gateway; give its Open vSwitch a system-id of its own \
         and remove the annotation"
    );
    node.bad.push(BadAnnotation::new(keys::CHASSIS_ID, problem));
}
