//! Network policies: who may talk to whom.
//!
//! ```text
//! Port_Group NetworkPolicy(ns:name)     += ports of the pods it is about
//!    └ ACLs, one per rule, protocol and block      allow   priority 1001
//! Port_Group NetpolNamespace(ns, dir)   += ports of the pods some policy is about in that direction
//!    ├ ACL defaultDeny                             drop    priority 1000
//!    ├ ACL arpAllow                                allow   priority 1001
//!    └ ACL nextTier, of the tiers before             pass    priority 0
//! Address_Set PodSelector(pods)         += addresses of the pods that rules mean; shared by rules
//! LS <node>            ACL NetpolNode: its own node may always come in, for kubelet's probes
//! Port_Group Cluster   ACL NetpolDefault: a pod that reaches itself through a service
//! ```
//!
//! Policies write groups, sets and ACLs. What is in them the pods put there themselves (see
//! [`memberships`]), each in the transaction that makes its port.

mod acl;
mod multicast;
mod rules;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use ovnkube_model::{Direction, Family, Name, ObjectKey, Pod, PodKey, PodSet, Roles, Touched, World};
use ovnkube_ovn::nb::{address_set, logical_switch as ls, port_group};
use ovnkube_ovn::{OwnerId, Row};

use self::acl::{ALLOW, Acl, DENY, TIER};
use crate::{Feature, RowKey, RowWant, Want, names};

pub struct Policies;

/// What rows about access belong to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PolicyKey {
    Cluster,
    Node(Name),
    /// What all policies of a namespace share.
    Namespace(Name),
    /// Pods that rules mean.
    Set(Arc<PodSet>),
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

    fn is_ours(roles: Roles) -> bool {
        roles.controller
    }

    fn touched(what: &Touched, world: &World) -> Vec<PolicyKey> {
        let policies = &world.policies;
        match what {
            Touched::Everything => {
                let nodes = world.nodes.keys().cloned().map(PolicyKey::Node);
                let namespaces = world.namespaces.keys().chain(policies.namespaces()).cloned();
                let sets = policies.sets().cloned().map(PolicyKey::Set);
                let each = policies.iter().map(|(key, _)| PolicyKey::Policy(key.clone()));
                let all = nodes.chain(namespaces.map(PolicyKey::Namespace)).chain(sets).chain(each);
                std::iter::once(PolicyKey::Cluster).chain(all).collect()
            }
            Touched::Node(name) => vec![PolicyKey::Node(name.clone())],
            // its annotations say what is logged
            Touched::Namespace(name) => {
                let each = policies.in_namespace(name).cloned().map(PolicyKey::Policy);
                std::iter::once(PolicyKey::Namespace(name.clone())).chain(each).collect()
            }
            Touched::NetworkPolicy(key) => {
                vec![PolicyKey::Namespace(key.namespace.clone()), PolicyKey::Policy(key.clone())]
            }
            Touched::PodSet(set) => vec![PolicyKey::Set(set.clone())],
            Touched::Pod(_) | Touched::Service(_) | Touched::Sites => Vec::new(),
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

/// Puts a pod into the groups of the policies about it and its addresses into the sets it belongs to.
/// A pod in the host's network has no port to put anywhere.
pub(crate) fn memberships(
    want: &mut Want,
    key: &PodKey,
    pod: &Pod,
    port: Option<&RowKey>,
    ips: &[IpAddr],
    world: &World,
) {
    if let Some(port) = port {
        let mut isolated = [false; 2];
        for (key, policy) in world.policies_of(key, pod) {
            want.member(&names::group_key(&policy_group(key)), port_group::PORTS, port);
            for (isolated, direction) in isolated.iter_mut().zip(Direction::ALL) {
                *isolated |= policy.rules(direction).is_some();
            }
        }
        for (_, direction) in isolated.iter().zip(Direction::ALL).filter(|(isolated, _)| **isolated) {
            want.member(&names::group_key(&deny_group(&key.namespace, direction)), port_group::PORTS, port);
        }
    }
    for (set, number) in world.sets_of(key, pod) {
        for ip in ips {
            let set = names::set_key(&set_owner(&set, number, Family::of(*ip)));
            want.text(&set, address_set::ADDRESSES, ip.to_string());
        }
    }
}

/// A pod reaches itself through a service, with an address that stands for itself.
fn cluster(want: &mut Want, world: &World) {
    let addresses =
        world.network.families().into_iter().filter_map(|family| {
            Some(format!("{}.src == {}", family.ovn(), world.network.masquerade(family)?.hairpin))
        });
    let matches = either(&addresses.collect::<Vec<_>>());
    if !matches.is_empty() {
        let group = names::group_key(&names::cluster_port_group());
        for direction in Direction::ALL {
            let owner = OwnerId::new("NetpolDefault").name("allow-hairpinning").key("direction", direction.name());
            let acl = want.row(Acl::new(owner, direction, ALLOW, "allow-related", matches.clone()).row());
            want.member(&group, port_group::ACLS, &acl);
        }
    }
    if world.network.multicast {
        multicast::cluster(want);
    }
}

/// What comes from a pod's own node is let in.
fn node(want: &mut Want, name: &Name, world: &World) {
    let here = world.nodes.get(name).is_some_and(|node| node.zone == world.network.zone);
    let Some(network) = world.networks.get(name).filter(|_| here) else { return };
    for address in network.management() {
        let address = address.ip();
        let owner = OwnerId::new("NetpolNode").name(name).key("ip", &address.to_string());
        let matches = format!("{}.src=={address}", Family::of(address).ovn());
        let acl = want.row(Acl::new(owner, Direction::Ingress, ALLOW, "allow-related", matches).row());
        want.member(&names::switch(name), ls::ACLS, &acl);
    }
}

fn namespace(want: &mut Want, name: &Name, world: &World) {
    let namespace = world.namespaces.get(name);
    if world.network.multicast && namespace.is_some_and(|namespace| namespace.multicast) {
        multicast::namespace(want, name, &world.network);
    }
    if world.policies.in_namespace(name).next().is_none() {
        return;
    }
    let deny_severity = namespace.and_then(|namespace| namespace.acl_logging.deny);
    for direction in Direction::ALL {
        let owner = deny_group(name, direction);
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
    let numbers: Vec<_> = match &set.port {
        None => vec![None],
        Some(_) => world.policies.numbers(set).map(Some).collect(),
    };
    for number in numbers {
        for family in world.network.families() {
            let owner = set_owner(set, number, family);
            want.row(
                RowWant::new(owner.hashed_name(), Row::new(address_set::TABLE))
                    .with(address_set::NAME, owner.hashed_name())
                    .with(address_set::EXTERNAL_IDS, owner.external_ids()),
            );
        }
    }
}

fn group_row(owner: &OwnerId) -> RowWant {
    RowWant::new(owner.hashed_name(), Row::new(port_group::TABLE))
        .with(port_group::NAME, owner.hashed_name())
        .with(port_group::EXTERNAL_IDS, owner.external_ids())
}

/// The group of the pods a policy is about.
fn policy_group(key: &ObjectKey) -> OwnerId {
    OwnerId::new("NetworkPolicy").name(&format!("{}:{}", key.namespace, key.name))
}

/// The group of a namespace's pods that some policy is about in a direction.
fn deny_group(namespace: &str, direction: Direction) -> OwnerId {
    OwnerId::new("NetpolNamespace").name(namespace).key("direction", direction.name())
}

/// The addresses of a set of pods, or of those whose named port has a number.
fn set_owner(set: &PodSet, number: Option<u16>, family: Family) -> OwnerId {
    let name = number.map_or_else(|| set.to_string(), |number| format!("{set}:{number}"));
    OwnerId::new("PodSelector").name(&name).key("ip-family", family.name())
}

/// Packets of the pods of a group.
fn port_match(direction: Direction, group: &OwnerId) -> String {
    let port = match direction {
        Direction::Egress => "inport",
        Direction::Ingress => "outport",
    };
    format!("{port} == @{}", group.hashed_name())
}

/// One of several conditions; empty for none.
fn either(conditions: &[String]) -> String {
    match conditions {
        [] => String::new(),
        [one] => one.clone(),
        many => format!("({})", many.join(" || ")),
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
