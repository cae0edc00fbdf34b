//! What a node gets: a number, subnets, and the addresses that follow from them.

use ipnetwork::IpNetwork;
use ovnkube_ipam::{Mac, Subnet};

use super::World;
use crate::{BadAnnotation, Family, Name, Node, Notice, Object, Severity, Touched, keys};

/// Names of switches that are not a node's.
const RESERVED_NAMES: [&str; 1] = ["join"];
const SUBNETS_EXHAUSTED: &str = "SubnetsExhausted";

/// The network decided for a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeNetwork {
    pub id: Option<u32>,
    /// One per family of the cluster, fewer while there is no free one.
    pub subnets: Vec<Subnet>,
    /// Subnet that the node manages by itself, kept from others.
    foreign: Option<Subnet>,
    /// What stands in the way: exhausted ranges, annotations that were not obeyed.
    problems: Vec<(&'static str, String)>,
}

impl NodeNetwork {
    /// What the node lacks because nothing is free, if it lacks something.
    pub fn exhausted(&self) -> Option<&str> {
        self.problems.iter().find(|(reason, _)| *reason == SUBNETS_EXHAUSTED).map(|(_, message)| message.as_str())
    }

    /// The address of the node's router port, `.1` of each subnet.
    pub fn gateways(&self) -> impl Iterator<Item = IpNetwork> + '_ {
        self.subnets.iter().filter_map(|s| s.nth_with_prefix(1))
    }

    /// The address of the management port, `.2` of each subnet.
    pub fn management(&self) -> impl Iterator<Item = IpNetwork> + '_ {
        self.subnets.iter().filter_map(|s| s.nth_with_prefix(2))
    }

    /// MAC of the router port: that of the IPv4 gateway where there is one.
    pub fn gateway_mac(&self) -> Option<Mac> {
        mac_of(self.gateways())
    }

    /// MAC of the management port.
    pub fn management_mac(&self) -> Option<Mac> {
        mac_of(self.management())
    }
}

fn mac_of(addresses: impl Iterator<Item = IpNetwork>) -> Option<Mac> {
    let mut addresses: Vec<_> = addresses.collect();
    addresses.sort_by_key(IpNetwork::is_ipv6);
    addresses.first().map(|a| Mac::of(a.ip()))
}

impl World {
    pub(super) fn apply_node(&mut self, name: Name, new: Option<Node>) {
        let new = new.map(|node| self.in_our_zone(node));
        if self.nodes.get(&name) == new.as_ref() {
            return;
        }
        let reborn = new.as_ref().is_some_and(|n| self.nodes.get(&name).is_some_and(|old| old.uid != n.uid));
        if new.is_none() || reborn {
            self.forget_node(&name);
        }
        if let Some(node) = new {
            self.nodes.insert(name.clone(), node);
            if self.settled {
                let had = self.networks.get(&name).map(|n| n.subnets.clone()).unwrap_or_default();
                self.settle_node(&name);
                self.settle_switch(&name);
                let gave_up = |s: &Subnet| self.networks.get(&name).is_none_or(|n| !n.subnets.contains(s));
                if had.iter().any(gave_up) {
                    self.serve_waiting_nodes();
                }
            }
        }
        self.touch(Touched::Node(name));
    }

    /// There is one zone until there are several: no other keeps a node's pods from being served.
    fn in_our_zone(&self, mut node: Node) -> Node {
        let ours = &self.network.zone;
        if node.zone == *ours {
            return node;
        }
        if let Some(other) = node.written.get(keys::ZONE) {
            let problem = format!(
                "{other:?} is no zone of this cluster, which has one, {ours}: the node is served as the others; remove \
                 the annotation"
            );
            node.bad.push(BadAnnotation::new(keys::ZONE, problem));
        }
        node.zone = ours.clone();
        node
    }

    /// First settlement: what is annotated is honoured before anything new is given out, the older
    /// node first where two claim the same.
    pub(super) fn settle_all_nodes(&mut self) {
        let mut names: Vec<_> = self.nodes.iter().map(|(name, n)| (n.created, name.clone())).collect();
        names.sort();
        let takes_part = |name: &Name| !self.keeps_own_subnets(name) && !RESERVED_NAMES.contains(&name.as_ref());
        for (_, name) in names.iter().filter(|(_, name)| takes_part(name)).cloned().collect::<Vec<_>>() {
            self.claim_annotated(&name);
        }
        for (_, name) in &names {
            self.settle_node(name);
            self.settle_switch(name);
        }
    }

    fn settle_node(&mut self, name: &Name) {
        if self.keeps_own_subnets(name) {
            return self.release_network(name);
        }
        if RESERVED_NAMES.contains(&name.as_ref()) {
            self.networks.entry(name.clone()).or_default().problems = vec![(
                "NameReserved",
                format!(
                    "a node cannot be called {name}: the cluster's own switch has that name; it gets no pod network"
                ),
            )];
            return;
        }
        self.claim_annotated(name);
        if self.network.roles.cluster_manager {
            self.allocate_node(name);
        }
    }

    fn keeps_own_subnets(&self, name: &Name) -> bool {
        let selector = self.network.no_hostsubnet_nodes.as_ref();
        selector.zip(self.nodes.get(name)).is_some_and(|(selector, node)| (selector.0)(&node.labels))
    }

    /// Takes over what the node is annotated with, as far as it is possible.
    fn claim_annotated(&mut self, name: &Name) {
        let Some(node) = self.nodes.get(name) else { return };
        let network = self.networks.entry(name.clone()).or_default();
        network.problems.clear();
        if !self.network.roles.cluster_manager && !node.subnets.is_empty() {
            // the cluster manager decides; everybody else follows what it wrote
            for gone in network.subnets.extract_if(.., |s| !node.subnets.contains(s)) {
                if let Some(pool) = self.subnets.get_mut(&Family::of_subnet(gone)) {
                    pool.free(gone);
                }
            }
        }
        for subnet in &node.subnets {
            if network.subnets.contains(subnet) {
                continue;
            }
            let family = Family::of_subnet(*subnet);
            let Some(pool) = self.subnets.get_mut(&family) else { continue };
            if network.subnets.iter().any(|s| Family::of_subnet(*s) == family) {
                network.problems.push(not_obeyed(keys::NODE_SUBNETS, subnet, "the node has another one already"));
                continue;
            }
            match pool.take(*subnet) {
                Ok(()) => network.subnets.push(*subnet),
                Err(error) => network.problems.push(not_obeyed(keys::NODE_SUBNETS, subnet, &error.to_string())),
            }
        }
        if network.foreign != node.foreign_subnet {
            let pool = |subnet: &Subnet| Family::of_subnet(*subnet);
            if let Some(old) = network.foreign.take() {
                self.subnets.entry(pool(&old)).or_default().free(old);
            }
            // one outside of the ranges, or that somebody has, is nobody's business here
            let kept = node.foreign_subnet.filter(|new| self.subnets.entry(pool(new)).or_default().take(*new).is_ok());
            network.foreign = kept;
        }
        let Some(id) = node.id else { return };
        match network.id {
            Some(have) if have == id => {}
            Some(have) => network.problems.push(not_obeyed(keys::NODE_ID, &id, &format!("the node has {have}"))),
            None => match self.ids.take(id) {
                Ok(()) => network.id = Some(id),
                Err(error) => network.problems.push(not_obeyed(keys::NODE_ID, &id, &error.to_string())),
            },
        }
    }

    /// Gives the node what it lacks.
    fn allocate_node(&mut self, name: &Name) {
        let Some(network) = self.networks.get_mut(name) else { return };
        if self.nodes.get(name).is_some_and(|n| n.foreign_subnet.is_some()) {
            return;
        }
        if network.id.is_none() {
            match self.ids.allocate() {
                Ok(id) => network.id = Some(id),
                Err(error) => network.problems.push(("NodeIDsExhausted", error.to_string())),
            }
        }
        for family in self.network.families() {
            if network.subnets.iter().any(|s| Family::of_subnet(*s) == family) {
                continue;
            }
            match self.subnets.get_mut(&family).map(ovnkube_ipam::SubnetPool::allocate) {
                Some(Ok(subnet)) => network.subnets.push(subnet),
                Some(Err(error)) => network.problems.push((
                    SUBNETS_EXHAUSTED,
                    format!("{error}: the node has no pod network; widen cluster-subnets or remove nodes"),
                )),
                None => {}
            }
        }
        let order = self.network.families();
        network.subnets.sort_by_key(|s| order.iter().position(|f| *f == Family::of_subnet(*s)));
    }

    /// Gives back all the node had and serves those who wait for it.
    fn forget_node(&mut self, name: &Name) {
        self.nodes.remove(name);
        self.drop_switch(name);
        self.release_network(name);
        self.serve_waiting_nodes();
    }

    /// Something came free: whoever lacks something looks again.
    fn serve_waiting_nodes(&mut self) {
        let waiting: Vec<_> =
            self.networks.iter().filter(|(_, n)| !n.problems.is_empty()).map(|(name, _)| name.clone()).collect();
        for other in waiting {
            self.settle_node(&other);
            self.settle_switch(&other);
            self.touch(Touched::Node(other));
        }
    }

    fn release_network(&mut self, name: &Name) {
        let Some(network) = self.networks.remove(name) else { return };
        for subnet in network.subnets.into_iter().chain(network.foreign) {
            if let Some(pool) = self.subnets.get_mut(&Family::of_subnet(subnet)) {
                pool.free(subnet);
            }
        }
        if let Some(id) = network.id {
            self.ids.free(id);
        }
    }

    /// True when the API shows the subnets that were decided: only then may pods get addresses of
    /// them, else a crash now could give the subnet to another node while a pod uses it.
    pub(super) fn is_confirmed(&self, name: &Name) -> bool {
        let (Some(node), Some(network)) = (self.nodes.get(name), self.networks.get(name)) else { return false };
        !network.subnets.is_empty() && network.subnets.iter().all(|s| node.subnets.contains(s))
    }

    pub(super) fn node_notices(&self, name: &Name) -> Vec<Notice> {
        let Some(node) = self.nodes.get(name) else { return Vec::new() };
        let problems = self.networks.get(name).map(|n| n.problems.as_slice()).unwrap_or_default();
        let bad = node.bad.iter().map(|b| ("BadAnnotation", format!("annotation {}: {}", b.key, b.problem)));
        let notice = |(reason, message)| Notice {
            object: Object::Node { name: name.clone(), uid: node.uid.clone() },
            severity: Severity::Warning,
            reason,
            message,
        };
        let mtu = self.other_mtu(name, node).map(|message| ("MtuDiffers", message));
        bad.chain(problems.iter().cloned()).chain(mtu).map(notice).collect()
    }

    /// Nodes that choose by their uplinks may not choose the same.
    fn other_mtu(&self, name: &Name, node: &Node) -> Option<String> {
        let mtu = node.mtu?;
        let other = |other: &Node| other.mtu.filter(|other| *other != mtu);
        let (other, theirs) = self.nodes.iter().find_map(|(name, node)| Some((name, other(node)?)))?;
        let (small, large) = (mtu.min(theirs), mtu.max(theirs));
        Some(format!(
            "pods of {name} have MTU {mtu} and those of {other} {theirs}, as their uplinks leave: packets of {large} bytes \
             do not reach the others; set mtu to {small} on all nodes, or give the uplinks the same MTU"
        ))
    }
}

fn not_obeyed(key: &str, value: &dyn std::fmt::Display, why: &str) -> (&'static str, String) {
    ("AnnotationNotObeyed", format!("annotation {key}: {value} is not used: {why}; it is put right"))
}
