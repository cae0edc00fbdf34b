//! What a node gets: a number, subnets, and the addresses that follow from them.

use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_ipam::{Mac, Subnet};

use super::World;
use crate::{Family, Name, Node, Notice, Object, Severity, Touched, keys};

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
        let new = new.map(|node| self.admitted(&name, node));
        let old = self.nodes.get(&name);
        if old == new.as_ref() {
            return;
        }
        let chassis = old.and_then(|node| node.chassis_id.clone());
        let reborn = new.as_ref().is_some_and(|n| self.nodes.get(&name).is_some_and(|old| old.uid != n.uid));
        if new.is_none() || reborn {
            self.forget_node(&name);
        }
        if let Some(node) = new {
            self.touch_namesake(&name, &node);
            if let Some(old) = self.nodes.insert(name.clone(), node) {
                self.touch_namesake(&name, &old);
            }
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
        let has = self.nodes.get(&name).and_then(|node| node.chassis_id.as_ref());
        if let Some(lost) = chassis.filter(|had| has != Some(had)) {
            self.pass_chassis_on(&lost);
        }
        self.touch(Touched::Node(name));
    }

    /// First settlement: what nodes have is honoured before anything new is given out. Of two that claim the same
    /// the one whose pods run in it goes first, and last the one whose pods run elsewhere; else the older one.
    pub(super) fn settle_all_nodes(&mut self) {
        let claims = |name: &Name| (self.claims(name), self.nodes.get(name).map(|node| node.created), name.clone());
        let mut names: Vec<_> = self.nodes.keys().map(claims).collect();
        names.sort();
        for (.., name) in names.iter().filter(|(.., name)| self.takes_part(name)).cloned().collect::<Vec<_>>() {
            self.claim(&name);
        }
        names.sort_by(|(_, a, a_name), (_, b, b_name)| (a, a_name).cmp(&(b, b_name)));
        for (.., name) in &names {
            self.settle_node(name);
            self.settle_switch(name);
        }
    }

    fn takes_part(&self, name: &Name) -> bool {
        !self.keeps_own_subnets(name) && !RESERVED_NAMES.contains(&name.as_ref())
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
        self.claim(name);
        if self.network.roles.cluster_manager {
            self.allocate_node(name);
        }
    }

    fn keeps_own_subnets(&self, name: &Name) -> bool {
        let selector = self.network.no_hostsubnet_nodes.as_ref();
        selector.zip(self.nodes.get(name)).is_some_and(|(selector, node)| (selector.0)(&node.labels))
    }

    /// Takes over what the node has, as far as it is possible: its pods' subnets, and what is annotated.
    fn claim(&mut self, name: &Name) {
        if self.nodes.contains_key(name) {
            self.networks.entry(name.clone()).or_default().problems.clear();
            self.claim_subnets(name);
            self.claim_foreign(name);
            self.claim_id(name);
        }
    }

    fn claim_subnets(&mut self, name: &Name) {
        let used = self.used_subnets(name);
        let decides = self.network.roles.cluster_manager;
        let (Some(node), Some(network)) = (self.nodes.get(name), self.networks.get_mut(name)) else { return };
        if !decides && !node.subnets.is_empty() {
            // the cluster manager decides; everybody else follows what it wrote, but for what pods run in
            for gone in network.subnets.extract_if(.., |s| !node.subnets.contains(s) && !used.contains(s)) {
                if let Some(pool) = self.subnets.get_mut(&Family::of_subnet(gone)) {
                    pool.free(gone);
                }
            }
        }
        let has =
            |network: &NodeNetwork, of: Subnet| network.subnets.iter().copied().find(|s| s.is_ipv6() == of.is_ipv6());
        for subnet in used {
            let pool = self.subnets.get_mut(&Family::of_subnet(subnet)).filter(|_| has(network, subnet).is_none());
            if pool.is_some_and(|pool| pool.take(subnet).is_ok()) {
                network.subnets.push(subnet);
            }
        }
        for subnet in node.subnets.iter().copied() {
            let Some(pool) = self.subnets.get_mut(&Family::of_subnet(subnet)) else { continue };
            let taken = match has(network, subnet) {
                Some(have) if have == subnet => continue,
                Some(have) => Err(format!("the node has {have}")),
                None => pool.take(subnet).map_err(|error| error.to_string()),
            };
            match taken {
                Ok(()) => network.subnets.push(subnet),
                Err(why) => network.problems.push(not_obeyed(keys::NODE_SUBNETS, &subnet, &why, decides)),
            }
        }
        network.subnets.sort_by_key(|subnet| subnet.is_ipv6());
    }

    fn claim_foreign(&mut self, name: &Name) {
        let (Some(node), Some(network)) = (self.nodes.get(name), self.networks.get_mut(name)) else { return };
        if network.foreign == node.foreign_subnet {
            return;
        }
        let pool = |subnet: &Subnet| Family::of_subnet(*subnet);
        if let Some(old) = network.foreign.take() {
            self.subnets.entry(pool(&old)).or_default().free(old);
        }
        // one outside of the ranges, or that somebody has, is nobody's business here
        let kept = node.foreign_subnet.filter(|new| self.subnets.entry(pool(new)).or_default().take(*new).is_ok());
        network.foreign = kept;
    }

    fn claim_id(&mut self, name: &Name) {
        let (Some(node), Some(network)) = (self.nodes.get(name), self.networks.get_mut(name)) else { return };
        let Some(id) = node.id else { return };
        let taken = match network.id {
            Some(have) if have == id => return,
            Some(have) => Err(format!("the node has {have}")),
            None => self.ids.take(id).map_err(|error| error.to_string()),
        };
        match taken {
            Ok(()) => network.id = Some(id),
            Err(why) => {
                let decides = self.network.roles.cluster_manager;
                network.problems.push(not_obeyed(keys::NODE_ID, &id, &why, decides));
            }
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
        network.subnets.sort_by_key(|subnet| subnet.is_ipv6());
    }

    /// A pod of this node is gone: a subnet that was kept for its pods may be no more.
    pub(super) fn follow_again(&mut self, name: &Name) {
        let subnets = |world: &Self| world.networks.get(name).map(|network| network.subnets.clone());
        let keeps = |network: &NodeNetwork| !network.problems.is_empty();
        if self.network.roles.cluster_manager || !self.networks.get(name).is_some_and(keeps) {
            return;
        }
        let before = subnets(self);
        self.settle_node(name);
        if subnets(self) != before {
            self.settle_switch(name);
            self.touch(Touched::Node(name.clone()));
            self.serve_waiting_nodes();
        }
    }

    /// Gives back all the node had and serves those who wait for it.
    fn forget_node(&mut self, name: &Name) {
        if let Some(node) = self.nodes.remove(name) {
            self.touch_namesake(name, &node);
        }
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
        let misplaced = self.services.misplaced(name).map(|ip| ("AddressConflict", misplaced(ip)));
        bad.chain(problems.iter().cloned()).chain(mtu).chain(misplaced).map(notice).collect()
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

fn misplaced(ip: IpAddr) -> String {
    format!(
        "its address {ip} (in status.addresses or annotation {}) is in a range of services, which keep it: the node is not \
         reached there; give the node another one",
        keys::GATEWAY
    )
}

fn not_obeyed(key: &str, value: &dyn std::fmt::Display, why: &str, decides: bool) -> (&'static str, String) {
    let remedy = if decides { "it is put right" } else { "the cluster manager puts it right" };
    ("AnnotationNotObeyed", format!("annotation {key}: {value} is not used: {why}; {remedy}"))
}
