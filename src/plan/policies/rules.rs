//! A policy's rules as ACLs.
//!
//! A rule becomes, for each of its protocols, one ACL per block and one for all its selectors together. A named
//! port becomes one for each number that the destinations have under that name, limited to those that have it.
//!
//! No text of a user gets into a match: only hashed names, numbers and addresses.

use std::collections::BTreeSet;

use ovnkube_model::{
    Block, Direction, Family, Name, NetworkPolicy, ObjectKey, Peer, PodSet, PolicyPort, Protocol, Rule, World,
};
use ovnkube_ovn::nb::port_group;

use super::acl::{ALLOW, Acl};
use super::{either, group_row, port_match};
use crate::Want;

/// Index of an ACL without a block.
const NO_BLOCK: i64 = -1;

/// The condition for packets of each family; packets of an absent family never match.
type Conditions = Vec<(Family, String)>;

pub(super) fn want(want: &mut Want, key: &ObjectKey, policy: &NetworkPolicy, world: &World) {
    let group = want.row(group_row(&world.policy_group(key)));
    for direction in Direction::ALL {
        for (index, rule) in policy.rules(direction).into_iter().flatten().enumerate() {
            let rule = Written { key, policy, direction, index, rule, world };
            for acl in rule.acls() {
                let acl = want.row(acl.row());
                want.member(&group, port_group::ACLS, &acl);
            }
        }
    }
}

/// A rule with its policy and its place there.
struct Written<'a> {
    key: &'a ObjectKey,
    policy: &'a NetworkPolicy,
    direction: Direction,
    index: usize,
    rule: &'a Rule,
    world: &'a World,
}

impl Written<'_> {
    fn acls(&self) -> Vec<Acl> {
        let mut acls = Vec::new();
        for (protocol, l4) in plain_ports(self.rule) {
            for (block, l3) in self.peers() {
                acls.push(self.acl(protocol.map_or("None", Protocol::ovn), block, None, &l3, l4.as_deref()));
            }
        }
        for (protocol, name) in self.rule.named_ports().collect::<BTreeSet<_>>() {
            for number in self.numbers(protocol, name) {
                let l4 = format!("{0} && {0}.dst=={number}", protocol.ovn());
                for (block, l3) in self.named_peers(protocol, name, number) {
                    acls.push(self.acl(protocol.ovn(), block, Some((name, number)), &l3, Some(&l4)));
                }
            }
        }
        acls
    }

    fn acl(
        &self,
        protocol: &str,
        block: i64,
        port: Option<(&Name, u16)>,
        l3: &[(Family, String)],
        l4: Option<&str>,
    ) -> Acl {
        let group = self.world.policy_group(self.key);
        let parts = [Some(any_family(l3)), l4.map(str::to_owned), Some(port_match(self.direction, &group))];
        let matches = parts.into_iter().flatten().collect::<Vec<_>>().join(" && ");
        let name = format!("NP:{}:{}:{}:{}", self.key.namespace, self.key.name, self.direction, self.index);
        let mut owner = group
            .key("direction", self.direction.name())
            .key("gress-index", &self.index.to_string())
            .key("port-policy-protocol", protocol)
            .key("ip-block-index", &block.to_string());
        if let Some((name, number)) = port {
            owner = owner.key("port-name", name).key("port", &number.to_string());
        }
        let stateless = self.policy.stateless && self.world.settings.stateless_netpol;
        let action = if stateless { "allow-stateless" } else { "allow-related" };
        let logging = self.world.namespaces.get(&self.key.namespace).and_then(|n| n.acl_logging.allow);
        Acl::new(owner, self.direction, ALLOW, action, matches).named(&name).logging(logging)
    }

    /// OVN's word for the other end.
    fn end(&self) -> &'static str {
        match self.direction {
            Direction::Egress => "dst",
            Direction::Ingress => "src",
        }
    }

    /// The conditions for the other end: one for each block and one for all selectors together; a single one for a
    /// rule without peers.
    fn peers(&self) -> Vec<(i64, Conditions)> {
        let Some(peers) = &self.rule.peers else {
            let families = self.world.settings.families().into_iter();
            return vec![(NO_BLOCK, families.map(|family| (family, family.ovn().to_owned())).collect())];
        };
        let sets = peers.iter().filter_map(|peer| PodSet::of_peer(peer, &self.key.namespace));
        let sets: Vec<_> = sets.filter(|set| self.has_room(set)).collect();
        let selected = self
            .in_sets(self.end(), |family| sets.iter().map(|set| self.world.pod_set_name(set, None, family)).collect());
        self.blocks().chain(selected.map(|selected| (NO_BLOCK, selected))).collect()
    }

    fn blocks(&self) -> impl Iterator<Item = (i64, Conditions)> {
        let blocks = self.rule.peers.iter().flatten().filter_map(|peer| match peer {
            Peer::Block(block) => Some(block),
            _ => None,
        });
        blocks.filter_map(|block| {
            let condition = (block.family(), block_match(block, self.end())?);
            Some((i64::from(block.index), Conditions::from([condition])))
        })
    }

    /// The numbers that the destinations have for a named port.
    fn numbers(&self, protocol: Protocol, name: &Name) -> BTreeSet<u16> {
        let sets = self.destinations().into_iter().map(|set| set.with_port(protocol, name));
        sets.flat_map(|set| self.common_numbers(&set).collect::<Vec<_>>()).collect()
    }

    /// The numbers of a set that the policy has room for.
    fn common_numbers(&self, set: &PodSet) -> impl Iterator<Item = u16> {
        let numbers = self.world.policies.common_numbers(set, self.world.policies.most_numbers(self.key));
        let has_room = self.has_room(set);
        numbers.filter(move |_| has_room)
    }

    fn has_room(&self, set: &PodSet) -> bool {
        self.world.policies.has_room(&self.key.namespace, set)
    }

    /// The pods in which the numbers of named ports are looked up.
    fn destinations(&self) -> Vec<PodSet> {
        PodSet::looked_up(self.key, self.policy, self.direction, self.rule)
    }

    /// The conditions for the other end, limited to destinations whose named port has this number.
    fn named_peers(&self, protocol: Protocol, name: &Name, number: u16) -> Vec<(i64, Conditions)> {
        let having = |sets: Vec<PodSet>| {
            self.in_sets("dst", |family| {
                let sets = sets.iter().map(|set| set.clone().with_port(protocol, name));
                // a set exists only where a pod has the number
                let sets = sets.filter(|set| self.common_numbers(set).any(|n| n == number));
                sets.map(|set| self.world.pod_set_name(&set, Some(number), family)).collect()
            })
        };
        let limited = |peers: Vec<(i64, Conditions)>, pods: Option<Conditions>| {
            let pods = pods.unwrap_or_default();
            let both = peers.into_iter().map(|(block, conditions)| (block, both(&conditions, &pods)));
            both.filter(|(_, conditions)| !conditions.is_empty()).collect::<Vec<_>>()
        };
        match (self.direction, &self.rule.peers) {
            (_, None) => having(self.destinations()).map(|pods| (NO_BLOCK, pods)).into_iter().collect(),
            (Direction::Ingress, Some(_)) => limited(self.peers(), having(self.destinations())),
            (Direction::Egress, Some(peers)) => {
                let blocks = limited(self.blocks().collect(), having(vec![PodSet::everybody()]));
                let selected = peers.iter().filter_map(|peer| PodSet::of_peer(peer, &self.key.namespace));
                let selected = having(selected.collect()).map(|pods| (NO_BLOCK, pods));
                blocks.into_iter().chain(selected).collect()
            }
        }
    }

    /// The end's address is in one of the sets of its family; `None` if there are no sets.
    fn in_sets(&self, end: &str, sets: impl Fn(Family) -> BTreeSet<String>) -> Option<Conditions> {
        let families = self.world.settings.families().into_iter();
        let conditions = families.filter_map(|family| {
            let sets: Vec<_> = sets(family).iter().map(|set| format!("${set}")).collect();
            (!sets.is_empty()).then(|| (family, format!("{}.{end} == {{{}}}", family.ovn(), sets.join(", "))))
        });
        Some(conditions.collect::<Conditions>()).filter(|conditions| !conditions.is_empty())
    }
}

/// The conditions of all families as one.
fn any_family(conditions: &[(Family, String)]) -> String {
    let is_one = conditions.len() == 1;
    let whole = |(_, condition): &(Family, String)| {
        if is_one || !condition.contains(" && ") { condition.clone() } else { format!("({condition})") }
    };
    either(&conditions.iter().map(whole).collect::<Vec<_>>())
}

/// Both conditions, combined per family: otherwise ovn-controller would multiply them out with each other.
fn both(one: &[(Family, String)], other: &[(Family, String)]) -> Conditions {
    let other = |family: Family| other.iter().find(|(of, _)| *of == family);
    let pairs = one.iter().filter_map(|(family, one)| Some((*family, one, &other(*family)?.1)));
    pairs.map(|(family, one, other)| (family, format!("{one} && {other}"))).collect()
}

/// `None` for a block whose exceptions leave nothing of it.
///
/// For several exceptions ovn-controller would make as many flows as the product of their lengths, 32,768 for three
/// addresses. So the match lists what they leave.
fn block_match(block: &Block, end: &str) -> Option<String> {
    let end = format!("{}.{end}", block.family().ovn());
    let cidr = block.cidr;
    match block.except.as_slice() {
        [] => Some(format!("{end} == {cidr}")),
        [one] => Some(format!("{end} == {cidr} && {end} != {{{one}}}")),
        several => {
            // a policy with a block that leaves too many is not read
            let left: Vec<_> = cidr.without(several, usize::MAX)?.iter().map(ToString::to_string).collect();
            (!left.is_empty()).then(|| format!("{end} == {{{}}}", left.join(", ")))
        }
    }
}

/// The protocols of a rule with the match for the ports of each; `(None, None)` for a rule without ports.
fn plain_ports(rule: &Rule) -> Vec<(Option<Protocol>, Option<String>)> {
    let Some(ports) = &rule.ports else { return vec![(None, None)] };
    let of = |protocol: Protocol| {
        let mine = || ports.iter().filter(move |port| port.protocol() == protocol);
        let plain = mine().any(|port| !matches!(port, PolicyPort::Named(..)));
        plain.then(|| (Some(protocol), Some(numbers_match(protocol.ovn(), mine()))))
    };
    Protocol::ALL.into_iter().filter_map(of).collect()
}

fn numbers_match<'a>(protocol: &str, ports: impl Iterator<Item = &'a PolicyPort>) -> String {
    let (mut single, mut ranges) = (Vec::new(), Vec::new());
    for port in ports {
        match port {
            // all ports: numbers add nothing
            PolicyPort::All(_) => return protocol.to_owned(),
            PolicyPort::Numbers(_, first, last) if first == last => single.push(first.to_string()),
            PolicyPort::Numbers(_, first, last) => ranges.push(format!("{first}<={protocol}.dst<={last}")),
            PolicyPort::Named(..) => {}
        }
    }
    let single = match single.as_slice() {
        [] => None,
        [one] => Some(format!("{protocol}.dst=={one}")),
        many => Some(format!("{protocol}.dst=={{{}}}", many.join(","))),
    };
    format!("{protocol} && {}", either(&single.into_iter().chain(ranges).collect::<Vec<_>>()))
}
