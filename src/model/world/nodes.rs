//! What a node gets: an id, subnets, and the addresses derived from them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ovnkube_ipam::{Subnet, SubnetPool};

use super::World;
use super::node_network::{IDS_EXHAUSTED, NAME_RESERVED, NodeNetwork, SUBNETS_EXHAUSTED};
use super::used::{Claims, best};
use crate::node::STATUS_ADDRESSES;
use crate::service::MOST_REPORTED;
use crate::{Affected, Family, Name, Node, Notice, Object, PodKey, Severity, keys};

/// Names of switches that do not belong to a node.
const RESERVED_NAMES: [&str; 1] = ["join"];

impl World {
    pub(super) fn apply_node(&mut self, name: Name, new: Option<Node>) {
        let new = new.map(|node| self.admitted(&name, node));
        let old = self.nodes.get(&name);
        if old == new.as_ref() {
            return;
        }
        let chassis = old.and_then(|node| node.chassis_id.clone());
        let is_gateway_changed = old.is_some() != new.is_some() && self.gateways().any(|gateway| *gateway == name);
        let is_renumbered = old.map(Node::own_addresses) != new.as_ref().map(Node::own_addresses);
        let is_moved = is_renumbered && old.map(Node::ips) != new.as_ref().map(Node::ips);
        let reborn = new.as_ref().is_some_and(|n| self.nodes.get(&name).is_some_and(|old| old.uid != n.uid));
        let mut is_free = new.is_none() || reborn;
        if is_free {
            self.forget_node(&name);
        }
        if let Some(node) = new {
            self.affect_namesake(&name, &node);
            if let Some(old) = self.nodes.insert(name.clone(), node) {
                self.affect_namesake(&name, &old);
            }
            is_free |= self.settled && self.gives_up(&name);
        }
        // the new Node of a name comes before those that wait: its pods may run in what it had
        if is_free {
            self.serve_waiting_nodes();
        }
        let has = self.nodes.get(&name).and_then(|node| node.chassis_id.as_ref());
        if let Some(lost) = chassis.filter(|had| has != Some(had)) {
            self.pass_chassis_on(&lost);
        }
        if is_renumbered {
            self.settle_prefixes();
        }
        if is_moved {
            self.affect_host_pods(&name);
        }
        if is_gateway_changed {
            // what is said of gateways that are no nodes
            self.affect(Affected::Interconnection);
        }
        self.affect(Affected::Node(name));
    }

    /// Settles all nodes for the first time. What nodes have is claimed before anything new is given out. If two claim
    /// the same, one whose pods run in it goes first, and one whose pods run elsewhere last; else the older one.
    pub(super) fn settle_all_nodes(&mut self) {
        let claims = |name: &Name| (self.claims(name), self.nodes.get(name).map(|node| node.created), name.clone());
        let mut names: Vec<_> = self.nodes.keys().map(claims).collect();
        names.sort();
        let all: Vec<_> = names.iter().filter(|(.., name)| self.takes_part(name)).cloned().collect();
        let (contradicted, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(claims, ..)| *claims == Claims::Contradicted);
        for (.., name) in &others {
            self.claim(name);
        }
        self.claim_contradicted(contradicted.into_iter().map(|(.., name)| name).collect());
        if self.settings.roles.cluster_manager {
            for (.., name) in &names {
                self.claim_lesser(name);
            }
        }
        names.sort_by(|(_, a, a_name), (_, b, b_name)| (a, a_name).cmp(&(b, b_name)));
        for (.., name) in &names {
            self.settle_node(name);
            self.settle_switch(name);
        }
    }

    /// A node that cannot have the subnet of its pods, since another has it, was given the annotated one for that reason:
    /// it goes before those that can, so that none of them gets it.
    fn claim_contradicted(&mut self, names: Vec<Name>) {
        let mut taken: BTreeSet<Subnet> =
            self.node_networks.values().flat_map(|network| network.subnets.iter().copied()).collect();
        let used = |name: Name| (best(&self.used_subnets(&name)), name);
        let mut rest: Vec<_> = names.into_iter().map(used).collect();
        while !rest.is_empty() {
            let is_left = |(used, _): &(Vec<Subnet>, Name)| used.iter().any(|subnet| taken.contains(subnet));
            let (_, name) = rest.remove(rest.iter().position(is_left).unwrap_or(0));
            self.claim(&name);
            taken.extend(self.node_networks.get(&name).into_iter().flat_map(|network| network.subnets.iter().copied()));
        }
    }

    fn takes_part(&self, name: &Name) -> bool {
        !self.keeps_own_subnets(name) && !RESERVED_NAMES.contains(&name.as_ref())
    }

    /// Settles the node and its switch; true if it gave up its id or a subnet.
    fn gives_up(&mut self, name: &Name) -> bool {
        let held = |world: &Self| {
            let network = world.node_networks.get(name);
            let subnets = network.into_iter().flat_map(|network| network.subnets.iter().chain(&network.foreign));
            (network.and_then(|network| network.id), subnets.copied().collect::<Vec<_>>())
        };
        let (had_id, had) = held(self);
        self.settle_node(name);
        self.settle_switch(name);
        let (id, has) = held(self);
        had_id.is_some() && had_id != id || had.iter().any(|subnet| !has.contains(subnet))
    }

    fn settle_node(&mut self, name: &Name) {
        if self.keeps_own_subnets(name) {
            return self.release_network(name);
        }
        if RESERVED_NAMES.contains(&name.as_ref()) {
            self.node_networks.entry(name.clone()).or_default().problems = vec![(
                NAME_RESERVED,
                format!(
                    "cannot give node {name} a pod network: a switch of the cluster has this name; give the node another one"
                ),
            )];
            return;
        }
        self.claim(name);
        if self.settings.roles.cluster_manager {
            self.claim_lesser(name);
            self.allocate_node(name);
        }
    }

    fn keeps_own_subnets(&self, name: &Name) -> bool {
        let selector = self.settings.no_hostsubnet_nodes.as_ref();
        selector.zip(self.nodes.get(name)).is_some_and(|(selector, node)| (selector.0)(&node.labels))
    }

    /// Claims what the node already has, as far as possible: its pods' subnets, and what is annotated.
    fn claim(&mut self, name: &Name) {
        if self.nodes.contains_key(name) {
            let network = self.node_networks.entry(name.clone()).or_default();
            network.problems.clear();
            self.claim_subnets(name);
            self.claim_foreign(name);
            self.claim_id(name);
        }
    }

    fn claim_subnets(&mut self, name: &Name) {
        let used = self.used_subnets(name);
        let (best, idle) = (best(&used), self.idle_subnets(name));
        let decides = self.settings.roles.cluster_manager;
        let (Some(node), Some(network)) = (self.nodes.get(name), self.node_networks.get_mut(name)) else { return };
        if !decides && !node.subnets.is_empty() {
            // the cluster manager decides: other processes follow its annotation, except for subnets that pods run in
            let gone = network.subnets.extract_if(.., |s| !node.subnets.contains(s) && !best.contains(s));
            free(&mut self.subnets, gone);
        }
        for subnet in best {
            let held = has(&network.subnets, subnet);
            let Some(pool) = self.subnets.get_mut(&Family::of_subnet(subnet)) else { continue };
            if held == Some(subnet) {
                continue;
            }
            let serves = held.or_else(|| has(&node.subnets, subnet)).is_some_and(|has| !idle.contains(&has));
            if !serves {
                moves(network, pool, subnet);
            }
        }
        for subnet in node.subnets.iter().copied() {
            let Some(pool) = self.subnets.get_mut(&Family::of_subnet(subnet)) else { continue };
            let taken = match has(&network.subnets, subnet) {
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
        network.is_left = used.iter().any(|subnet| !network.subnets.contains(subnet));
    }

    /// If another node has the best subnet, this one gets another free one in which pods of it run, unless what it has serves others.
    fn claim_lesser(&mut self, name: &Name) {
        if !self.node_networks.get(name).is_some_and(|network| network.is_left) {
            return;
        }
        let (used, idle) = (self.used_subnets(name), self.idle_subnets(name));
        let Some(network) = self.node_networks.get_mut(name) else { return };
        for subnet in used {
            let serves = has(&network.subnets, subnet).is_some_and(|held| held == subnet || !idle.contains(&held));
            if let Some(pool) = self.subnets.get_mut(&Family::of_subnet(subnet)).filter(|_| !serves) {
                moves(network, pool, subnet);
            }
        }
        network.subnets.sort_by_key(|subnet| subnet.is_ipv6());
    }

    fn claim_foreign(&mut self, name: &Name) {
        let (Some(node), Some(network)) = (self.nodes.get(name), self.node_networks.get_mut(name)) else { return };
        if network.foreign == node.foreign_subnet {
            return;
        }
        let pool = |subnet: &Subnet| Family::of_subnet(*subnet);
        if let Some(old) = network.foreign.take() {
            self.subnets.entry(pool(&old)).or_default().free(old);
        }
        // a subnet that is outside of the ranges, or taken, is not reserved
        let kept = node.foreign_subnet.filter(|new| self.subnets.entry(pool(new)).or_default().take(*new).is_ok());
        network.foreign = kept;
    }

    fn claim_id(&mut self, name: &Name) {
        let (Some(node), Some(network)) = (self.nodes.get(name), self.node_networks.get_mut(name)) else { return };
        let Some(id) = node.id else { return };
        let taken = match network.id {
            Some(have) if have == id => return,
            Some(have) => Err(format!("the node has {have}")),
            None => self.ids.take(id).map_err(|error| error.to_string()),
        };
        match taken {
            Ok(()) => network.id = Some(id),
            Err(why) => {
                let decides = self.settings.roles.cluster_manager;
                let (reason, mut message) = not_obeyed(keys::NODE_ID, &id, &why, decides);
                if network.id.is_none() {
                    message.push_str(" as soon as a number is free");
                }
                network.problems.push((reason, message));
            }
        }
    }

    /// Gives the node the id and the subnets that it lacks: all or none of them, if no id is left.
    fn allocate_node(&mut self, name: &Name) {
        let Some(network) = self.node_networks.get_mut(name) else { return };
        if self.nodes.get(name).is_some_and(|n| n.foreign_subnet.is_some()) {
            return;
        }
        if network.id.is_none() {
            match self.ids.allocate() {
                Ok(id) => network.id = Some(id),
                // without its address in the join subnets, its pods would reach nothing outside of the cluster
                Err(error) => {
                    let remedy =
                        if self.settings.has_short_join_subnet() { ", or set larger join subnets" } else { "" };
                    let message = format!("cannot give the node a number: {error}; remove nodes{remedy}");
                    return network.problems.push((IDS_EXHAUSTED, message));
                }
            }
        }
        for family in self.settings.families() {
            if network.subnets.iter().any(|s| Family::of_subnet(*s) == family) {
                continue;
            }
            match self.subnets.get_mut(&family).map(SubnetPool::allocate) {
                Some(Ok(subnet)) => network.subnets.push(subnet),
                Some(Err(error)) => network.problems.push((
                    SUBNETS_EXHAUSTED,
                    format!("cannot give the node a pod network: {error}; widen cluster-subnets or remove nodes"),
                )),
                None => {}
            }
        }
        network.subnets.sort_by_key(|subnet| subnet.is_ipv6());
    }

    /// Settles a node again after one of its pods is gone: a subnet that was kept for its pods may be released.
    pub(super) fn follow_again(&mut self, name: &Name) {
        let follows = !self.settings.roles.cluster_manager;
        let keeps = |network: &NodeNetwork| network.is_left || follows && !network.problems.is_empty();
        if self.node_networks.get(name).is_some_and(keeps) {
            self.settle_again(name);
        }
    }

    /// Settles the node of a pod again if the pod runs outside of the node's subnets: its status may come after the node
    /// got them, and they may serve nobody yet. Then they become what the next start of this program would make them.
    pub(super) fn follow_pod(&mut self, key: &PodKey) {
        if let Some(node) = self.runs_elsewhere(key).filter(|_| self.settled) {
            self.settle_again(&node);
        }
    }

    /// The node of a pod that runs outside of the node's subnets.
    fn runs_elsewhere(&self, key: &PodKey) -> Option<Name> {
        let pod = &self.pods.get(key)?.pod;
        let node = pod.wired_on()?;
        let subnets = &self.node_networks.get(node)?.subnets;
        // a node has one subnet of each family at most
        let is_elsewhere =
            |ip: IpAddr| subnets.iter().any(|subnet| subnet.is_ipv6() == ip.is_ipv6() && !subnet.contains(ip));
        pod.runs_with().any(is_elsewhere).then(|| node.clone())
    }

    fn settle_again(&mut self, name: &Name) {
        let subnets = |world: &Self| world.node_networks.get(name).map(|network| network.subnets.clone());
        let before = subnets(self);
        self.settle_node(name);
        let mut changed: BTreeSet<Name> = [false, true].into_iter().flat_map(|v6| self.exchange(name, v6)).collect();
        if subnets(self) != before {
            changed.insert(name.clone());
        }
        for name in &changed {
            self.settle_switch(name);
            self.affect(Affected::Node(name.clone()));
        }
        if !changed.is_empty() {
            self.serve_waiting_nodes();
        }
    }

    /// Gives nodes, this one among them, what each other's pods run in: each would wait for another to give up what it does not use.
    /// Returns these nodes.
    fn exchange(&mut self, name: &Name, is_ipv6: bool) -> Vec<Name> {
        let ring = if self.settings.roles.cluster_manager { self.ring(name, is_ipv6) } else { Vec::new() };
        for name in &ring {
            let Some(network) = self.node_networks.get_mut(name) else { continue };
            free(&mut self.subnets, network.subnets.extract_if(.., |subnet| subnet.is_ipv6() == is_ipv6));
        }
        for name in &ring {
            self.settle_node(name);
        }
        ring
    }

    /// Nodes of which each needs what the next one does not use, and the last one what the first does not use; else none.
    fn ring(&self, first: &Name, is_ipv6: bool) -> Vec<Name> {
        let mut ring = vec![first];
        while let Some(next) = ring.last().and_then(|name| self.needs_that_of(name, is_ipv6)) {
            if next == first {
                return ring.into_iter().cloned().collect();
            }
            if ring.contains(&next) {
                break;
            }
            ring.push(next);
        }
        Vec::new()
    }

    /// The node that has the best subnet for this one, if this one does not use what it has.
    fn needs_that_of(&self, name: &Name, is_ipv6: bool) -> Option<&Name> {
        let network = self.node_networks.get(name).filter(|network| network.is_left)?;
        let held = network.subnets.iter().find(|subnet| subnet.is_ipv6() == is_ipv6)?;
        let best = best(&self.used_subnets(name)).into_iter().find(|subnet| subnet.is_ipv6() == is_ipv6)?;
        if !self.idle_subnets(name).contains(held) {
            return None;
        }
        self.node_networks.iter().find(|(_, network)| network.subnets.contains(&best)).map(|(name, _)| name)
    }

    /// Releases everything the node had.
    fn forget_node(&mut self, name: &Name) {
        if let Some(node) = self.nodes.remove(name) {
            self.affect_namesake(name, &node);
        }
        self.drop_switch(name);
        self.release_network(name);
    }

    /// Something came free: nodes that lack it are settled again, as at a start those first whose pods may run in it.
    fn serve_waiting_nodes(&mut self) {
        let waits = |network: &NodeNetwork| network.is_left || !network.problems.is_empty();
        let waiting = self.node_networks.iter().filter(|(_, network)| waits(network));
        let mut waiting: Vec<_> = waiting.map(|(name, network)| (!network.is_left, name.clone())).collect();
        waiting.sort();
        let mut is_free = false;
        for (_, other) in waiting {
            is_free |= self.gives_up(&other);
            self.affect(Affected::Node(other));
        }
        if is_free {
            self.serve_waiting_nodes();
        }
    }

    fn release_network(&mut self, name: &Name) {
        let Some(network) = self.node_networks.remove(name) else { return };
        free(&mut self.subnets, network.subnets.into_iter().chain(network.foreign));
        if let Some(id) = network.id {
            self.ids.free(id);
        }
    }

    /// True when the API server shows the decided subnets. Only then may pods get addresses from them: otherwise a
    /// crash now could give the subnet to another node while a pod uses it.
    pub(super) fn is_confirmed(&self, name: &Name) -> bool {
        let (Some(node), Some(network)) = (self.nodes.get(name), self.node_networks.get(name)) else { return false };
        !network.subnets.is_empty() && network.subnets.iter().all(|s| node.subnets.contains(s))
    }

    pub(super) fn node_notices(&self, name: &Name) -> Vec<Notice> {
        let Some(node) = self.nodes.get(name) else { return Vec::new() };
        let problems = self.node_networks.get(name).map(|n| n.problems.as_slice()).unwrap_or_default();
        let bad = node.bad.iter().map(|b| ("BadAnnotation", format!("cannot use annotation {}: {}", b.key, b.problem)));
        let notice = |(reason, message)| Notice {
            object: Object::Node { name: name.clone(), uid: node.uid.clone() },
            severity: Severity::Warning,
            reason,
            message,
        };
        let surplus = Some(node.surplus_addresses).filter(|count| *count > 0).map(|count| ("BadField", surplus(count)));
        let mtu = self.other_mtu(name, node).map(|message| ("MtuDiffers", message));
        // each is an Event, and only so many of one reason wait: those of other objects must have a place too
        let misplaced = self.services.misplaced(name).take(MOST_REPORTED);
        let misplaced = misplaced.map(|ip| ("AddressConflict", misplaced_at(ip)));
        bad.chain(surplus).chain(problems.iter().cloned()).chain(mtu).chain(misplaced).map(notice).collect()
    }

    /// The problem that nodes have different MTUs, which they chose by their uplinks.
    fn other_mtu(&self, name: &Name, node: &Node) -> Option<String> {
        let mtu = node.mtu?;
        let other = |other: &Node| other.mtu.filter(|other| *other != mtu);
        let (other, theirs) = self.nodes.iter().find_map(|(name, node)| Some((name, other(node)?)))?;
        let (small, large) = (mtu.min(theirs), mtu.max(theirs));
        Some(format!(
            "pods of {name} have MTU {mtu} and those of {other} {theirs}, because their uplinks differ: packets of {large} \
             bytes are lost between them; set mtu to {small} on all nodes, or give the uplinks the same MTU"
        ))
    }
}

/// The one of these subnets that is of the same family.
fn has(subnets: &[Subnet], of: Subnet) -> Option<Subnet> {
    subnets.iter().copied().find(|subnet| subnet.is_ipv6() == of.is_ipv6())
}

/// Other nodes may have these subnets.
fn free(pools: &mut BTreeMap<Family, SubnetPool>, subnets: impl Iterator<Item = Subnet>) {
    for subnet in subnets {
        if let Some(pool) = pools.get_mut(&Family::of_subnet(subnet)) {
            pool.free(subnet);
        }
    }
}

/// Gives the node this subnet in place of the one that it has of its family, if it is free.
fn moves(network: &mut NodeNetwork, pool: &mut SubnetPool, to: Subnet) {
    if pool.take(to).is_ok() {
        network.subnets.extract_if(.., |have| have.is_ipv6() == to.is_ipv6()).for_each(|have| pool.free(have));
        network.subnets.push(to);
    }
}

fn surplus(count: usize) -> String {
    format!(
        "cannot use {count} of the addresses in status.addresses: {STATUS_ADDRESSES} of type InternalIP and {STATUS_ADDRESSES} others are \
         allowed, and the first of each are used; remove addresses from the host, or correct what writes the status"
    )
}

fn misplaced_at(ip: IpAddr) -> String {
    format!(
        "cannot reach the node at {ip} (of status.addresses or annotation {}): it is in a range of services; \
         give the node another address",
        keys::GATEWAY
    )
}

fn not_obeyed(key: &str, value: &dyn std::fmt::Display, why: &str, decides: bool) -> (&'static str, String) {
    let remedy = if decides { "it is corrected" } else { "the cluster manager corrects it" };
    ("AnnotationNotObeyed", format!("cannot use {value} of annotation {key}: {why}; {remedy}"))
}
