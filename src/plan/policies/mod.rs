//! Network policies: who may talk to whom.
//!
//! ```text
//! Port_Group NetworkPolicy(ns:name)     += ports of the pods it selects
//!    └ ACLs, one per rule, protocol and block      allow   priority 1001
//! Port_Group NetpolNamespace(ns, dir)   += ports of the pods that some policy selects for that direction
//!    ├ ACL defaultDeny                             drop    priority 1000
//!    ├ ACL arpAllow                                allow   priority 1001
//!    └ ACL nextTier, in the tiers before             pass    priority 0
//! Address_Set PodSelector(pods)         += addresses of the pods that rules refer to; shared by rules
//! Address_Set PodSelector(namespaces)   += of all their pods, and of nodes if a namespace stands for them
//! LS <node>            ACL NetpolNode: a pod's own node always reaches it, for the kubelet's probes
//! Port_Group Cluster   ACL NetpolDefault: a pod that reaches itself through a service
//! ```
//!
//! Policies write groups, sets and ACLs. Pods and nodes themselves add the members (see [`memberships`]), each pod in
//! the transaction that makes its port. So a namespace that comes, goes or gets other labels changes no ACL.

mod acl;
mod groups;
mod multicast;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use ovnkube_model::{
    Affected, Direction, Family, Name, NodeNetwork, ObjectKey, Pod, PodKey, PodSet, Roles, World, row_owners,
};
use ovnkube_ovn::nb::{address_set, logical_switch as ls, port_group};
use ovnkube_ovn::{OwnerId, Row};

use self::acl::{ALLOW, Acl, DENY, TIER};
use self::groups::{either, group_row, port_match};
use crate::topology::join_addresses;
use crate::{Feature, RowKey, RowWant, Want, names};

pub struct Policies;

/// What policy rows are planned per.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PolicyKey {
    Cluster,
    /// Pods that rules refer to.
    Set(Arc<PodSet>),
    /// Nodes are in sets, as pods are.
    Node(Name),
    /// What all policies of a namespace share.
    Namespace(Name),
    Policy(ObjectKey),
}

impl fmt::Display for PolicyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster => f.write_str("of the cluster"),
            Self::Node(name) => write!(f, "of node {name}"),
            Self::Namespace(name) => write!(f, "of namespace {name}"),
            Self::Set(set) => write!(f, "of pods {set}"),
            Self::Policy(key) => write!(f, "{key}"),
        }
    }
}

impl Feature for Policies {
    type Key = PolicyKey;

    fn is_enabled(roles: Roles) -> bool {
        roles.controller
    }

    fn affected(what: &Affected, world: &World) -> Vec<PolicyKey> {
        let policies = &world.policies;
        match what {
            Affected::Everything => {
                let namespaces = world.namespaces.keys().chain(policies.namespaces()).cloned();
                let sets = policies.sets().cloned().map(PolicyKey::Set);
                let each = policies.iter().map(|(key, _)| PolicyKey::Policy(key.clone()));
                let all = nodes(world, true).chain(namespaces.map(PolicyKey::Namespace)).chain(sets).chain(each);
                std::iter::once(PolicyKey::Cluster).chain(all).collect()
            }
            Affected::Node(name) => vec![PolicyKey::Node(name.clone())],
            // its annotations decide what is logged, its labels which sets nodes are in if it stands for them
            Affected::Namespace(name) => {
                let each = policies.in_namespace(name).cloned().map(PolicyKey::Policy);
                let is_of_nodes = world.settings.host_network_namespace.as_ref() == Some(name);
                let own = std::iter::once(PolicyKey::Namespace(name.clone()));
                own.chain(each).chain(nodes(world, is_of_nodes)).collect()
            }
            Affected::NetworkPolicy(key) => {
                vec![PolicyKey::Namespace(key.namespace.clone()), PolicyKey::Policy(key.clone())]
            }
            Affected::PodSet(set) => {
                std::iter::once(PolicyKey::Set(set.clone())).chain(nodes(world, world.is_of_nodes(set))).collect()
            }
            _ => Vec::new(),
        }
    }

    fn want(key: &PolicyKey, world: &World) -> Want {
        let mut want = Want::default();
        match key {
            PolicyKey::Cluster => cluster(&mut want, world),
            PolicyKey::Node(name) => node(&mut want, name, world),
            PolicyKey::Namespace(name) => namespace(&mut want, name, world),
            PolicyKey::Set(set) => address_sets(&mut want, set, world),
            PolicyKey::Policy(key) => {
                if let Some(policy) = world.policies.get(key) {
                    rules::want(&mut want, key, policy, world);
                }
            }
        }
        want
    }
}

/// Adds a pod to the groups of the policies that select it, and its addresses to the sets it belongs to.
/// A host-network pod has no port to add.
pub(crate) fn memberships(
    want: &mut Want,
    key: &PodKey,
    pod: &Pod,
    port: Option<&RowKey>,
    ips: &[(IpAddr, Arc<str>)],
    world: &World,
) {
    if let Some(port) = port {
        let mut isolated = [false; 2];
        for (key, policy) in world.policies_of(key, pod) {
            want.member(&names::group_key(&world.policy_group(key)), port_group::PORTS, port);
            for (isolated, direction) in isolated.iter_mut().zip(Direction::ALL) {
                *isolated |= policy.rules(direction).is_some();
            }
        }
        for (_, direction) in isolated.iter().zip(Direction::ALL).filter(|(isolated, _)| **isolated) {
            want.member(&names::group_key(&world.deny_group(&key.namespace, direction)), port_group::PORTS, port);
        }
    }
    for (set, number) in world.sets_of(key, pod) {
        for (ip, text) in ips {
            let set = RowKey::new(address_set::TABLE, world.pod_set_name(&set, number, Family::of(*ip)));
            want.text(&set, address_set::ADDRESSES, text.clone());
        }
    }
}

/// Lets a pod reach itself through a service; the source is then the hairpin address. Isolation of egress does not matter: since
/// 23.03, northd sends such packets back before ACLs that apply after load balancing (`ls_in_hairpin`).
fn cluster(want: &mut Want, world: &World) {
    let addresses =
        world.settings.families().into_iter().filter_map(|family| {
            Some(format!("{}.src == {}", family.ovn(), world.settings.masquerade(family)?.hairpin))
        });
    let matches = either(&addresses.collect::<Vec<_>>());
    if !matches.is_empty() {
        let group = names::group_key(&row_owners::cluster_port_group());
        for direction in Direction::ALL {
            let owner = OwnerId::new("NetpolDefault").name("allow-hairpinning").key("direction", direction.name());
            let acl = want.row(Acl::new(owner, direction, ALLOW, "allow-related", matches.clone()).row());
            want.member(&group, port_group::ACLS, &acl);
        }
    }
    if world.settings.multicast {
        multicast::cluster(want);
    }
}

/// All nodes if `are_meant`, else none.
fn nodes(world: &World, are_meant: bool) -> impl Iterator<Item = PolicyKey> {
    world.nodes.keys().filter(move |_| are_meant).cloned().map(PolicyKey::Node)
}

/// Lets in what comes from a pod's own node.
fn node(want: &mut Want, name: &Name, world: &World) {
    let here = world.nodes.get(name).is_some_and(|node| node.zone == world.settings.zone);
    let Some(network) = world.node_networks.get(name).filter(|network| here && !network.subnets.is_empty()) else {
        return;
    };
    for address in network.management() {
        let address = address.ip();
        let owner = OwnerId::new("NetpolNode").name(name).key("ip", &address.to_string());
        let matches = format!("{}.src=={address}", Family::of(address).ovn());
        let acl = want.row(Acl::new(owner, Direction::Ingress, ALLOW, "allow-related", matches).row());
        want.member(&names::switch(name), ls::ACLS, &acl);
    }
    in_host_network(want, network, world);
}

/// Adds the addresses that a node's packets arrive with to the set of the namespace that stands for nodes, and to
/// those of rules that refer to this namespace.
fn in_host_network(want: &mut Want, network: &NodeNetwork, world: &World) {
    let namespace = world.settings.host_network_namespace.as_ref();
    let Some(namespace) = namespace.filter(|name| world.namespaces.contains_key(*name)) else { return };
    let joins = network.id.into_iter().flat_map(|id| join_addresses(world, id));
    for ip in network.management().chain(joins).map(|address| address.ip()) {
        let of_rules = world.sets_of_nodes().map(|set| world.pod_set_name(set, None, Family::of(ip)));
        for set in of_rules.chain([world.namespace_set(namespace, Family::of(ip)).hashed_name()]) {
            want.text(&RowKey::new(address_set::TABLE, set), address_set::ADDRESSES, ip.to_string());
        }
    }
}

fn namespace(want: &mut Want, name: &Name, world: &World) {
    let namespace = world.namespaces.get(name);
    if world.settings.multicast && namespace.is_some_and(|namespace| namespace.multicast) {
        multicast::namespace(want, name, world);
    }
    if world.policies.in_namespace(name).next().is_none() {
        return;
    }
    let deny_severity = namespace.and_then(|namespace| namespace.acl_logging.deny);
    for direction in Direction::ALL {
        let owner = world.deny_group(name, direction);
        let group = want.row(group_row(&owner));
        let acl_name = format!("NP:{name}:{direction}");
        let everything = port_match(direction, &owner);
        let neighbours = format!("{everything} && (arp || nd)");
        if direction == Direction::Ingress {
            for tier in 0..TIER {
                let pass = want.row(Acl::next_tier(&owner, direction, tier, everything.clone()).row());
                want.member(&group, port_group::ACLS, &pass);
            }
        }
        let deny = Acl::new(owner.clone().key("type", "defaultDeny"), direction, DENY, "drop", everything);
        let arp = Acl::new(owner.key("type", "arpAllow"), direction, ALLOW, "allow", neighbours);
        for acl in [deny.named(&acl_name).logging(deny_severity), arp.named(&acl_name)] {
            let acl = want.row(acl.row());
            want.member(&group, port_group::ACLS, &acl);
        }
    }
}

fn address_sets(want: &mut Want, set: &PodSet, world: &World) {
    if !world.policies.is_used(set) {
        return;
    }
    let numbers: BTreeSet<_> = match &set.port {
        None => BTreeSet::from([None]),
        Some(_) => world.policies.numbers(set).map(Some).collect(),
    };
    for number in numbers {
        for family in world.settings.families() {
            let owner = world.pod_set(set, number, family);
            want.row(
                RowWant::new(owner.hashed_name(), Row::new(address_set::TABLE))
                    .with(address_set::NAME, owner.hashed_name())
                    .with(address_set::EXTERNAL_IDS, owner.external_ids()),
            );
        }
    }
}

/// The object that a key is about.
pub(crate) fn object(key: &PolicyKey, world: &World) -> Option<ovnkube_model::Object> {
    use ovnkube_model::Object;
    Some(match key {
        PolicyKey::Cluster | PolicyKey::Set(_) => return None,
        PolicyKey::Node(name) => Object::Node { name: name.clone(), uid: world.nodes.get(name)?.uid.clone() },
        PolicyKey::Namespace(name) => {
            Object::Namespace { name: name.clone(), uid: world.namespaces.get(name)?.uid.clone() }
        }
        PolicyKey::Policy(key) => Object::NetworkPolicy { key: key.clone(), uid: world.policies.get(key)?.uid.clone() },
    })
}
