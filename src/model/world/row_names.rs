//! Which of the port groups and address sets has a name that several have.
//!
//! ovn-kubernetes names them by 64 bits of a hash of what they are of, and so must we. But within a minute somebody finds a name
//! of a policy, a label or a namespace with the hash of another's group or set. With one row for both, the policy's rules
//! would be rules for the other's pods. So one of them has the name, and the others have long names instead.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use ovnkube_ovn::OwnerId;

use super::World;
use crate::row_owners::{self, cluster_port_group, cluster_router_port_group};
use crate::{Affected, Direction, Family, Name, Notice, Object, ObjectKey, PodSet, Severity};

/// What port groups and address sets are of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Named {
    Cluster,
    Namespace(Name),
    Policy(ObjectKey),
    /// All its pods, or those whose named port has the number.
    Set(Arc<PodSet>, Option<u16>),
}

impl Named {
    /// The hashes that are the usual names of its rows.
    fn hashes(&self) -> BTreeSet<u64> {
        let owners = match self {
            Self::Cluster => vec![cluster_port_group(), cluster_router_port_group()],
            Self::Namespace(name) => {
                let deny = Direction::ALL.map(|direction| row_owners::deny_group(name, direction));
                let sets = Family::ALL.map(|family| row_owners::namespace_set(name, family));
                [row_owners::namespace_group(name)].into_iter().chain(deny).chain(sets).collect()
            }
            Self::Policy(key) => vec![row_owners::policy_group(key)],
            Self::Set(set, number) => Family::ALL.map(|family| row_owners::pod_set(set, *number, family)).into(),
        };
        owners.iter().map(OwnerId::hash).collect()
    }
}

/// Who has each name; see the module.
#[derive(Debug, Default)]
pub(super) struct RowNames {
    /// By the hash that is the name: one that would have it, nearly always the only one.
    pub(super) by_hash: HashMap<u64, Named>,
    /// All that would have a name, where they are several.
    contested: BTreeMap<u64, BTreeSet<Named>>,
    /// Those that have another name instead.
    outranked: BTreeSet<(u64, Named)>,
}

impl RowNames {
    pub(super) fn enter(&mut self, named: &Named) {
        for hash in named.hashes() {
            let first = self.by_hash.entry(hash).or_insert_with(|| named.clone());
            if first != named {
                let all = self.contested.entry(hash).or_insert_with(|| BTreeSet::from([first.clone()]));
                all.insert(named.clone());
            }
        }
    }

    pub(super) fn leave(&mut self, named: &Named) {
        for hash in named.hashes() {
            let Some(all) = self.contested.get_mut(&hash) else {
                self.by_hash.remove(&hash);
                continue;
            };
            all.remove(named);
            if let (Some(left), true) = (all.first(), all.len() == 1) {
                self.by_hash.insert(hash, left.clone());
                self.contested.remove(&hash);
            }
        }
    }

    /// The owner with the name that its row has.
    fn named(&self, owner: OwnerId, is_it: impl Fn(&Named) -> bool) -> OwnerId {
        if self.outranked.is_empty() {
            return owner;
        }
        let hash = owner.hash();
        let first = (hash, Named::Cluster);
        let mut with_hash = self.outranked.range(first..).take_while(|(of, _)| *of == hash);
        if with_hash.any(|(_, named)| is_it(named)) { owner.with_long_name() } else { owner }
    }
}

impl World {
    /// The group of a namespace's pods.
    pub fn namespace_group(&self, namespace: &str) -> OwnerId {
        let is_it = |named: &Named| matches!(named, Named::Namespace(name) if **name == *namespace);
        self.row_names.named(row_owners::namespace_group(namespace), is_it)
    }

    /// The set of a namespace's pod addresses of one family.
    pub fn namespace_set(&self, namespace: &str, family: Family) -> OwnerId {
        let is_it = |named: &Named| matches!(named, Named::Namespace(name) if **name == *namespace);
        self.row_names.named(row_owners::namespace_set(namespace, family), is_it)
    }

    /// The group of a namespace's pods that some policy selects for a direction.
    pub fn deny_group(&self, namespace: &str, direction: Direction) -> OwnerId {
        let is_it = |named: &Named| matches!(named, Named::Namespace(name) if **name == *namespace);
        self.row_names.named(row_owners::deny_group(namespace, direction), is_it)
    }

    /// The group of the pods that a policy selects.
    pub fn policy_group(&self, key: &ObjectKey) -> OwnerId {
        self.row_names.named(row_owners::policy_group(key), |named| matches!(named, Named::Policy(of) if of == key))
    }

    /// The address set of a set of pods, or of those whose named port has a number.
    pub fn pod_set(&self, set: &PodSet, number: Option<u16>, family: Family) -> OwnerId {
        let is_it = |named: &Named| matches!(named, Named::Set(of, with) if **of == *set && *with == number);
        self.row_names.named(row_owners::pod_set(set, number, family), is_it)
    }

    /// Enters a namespace that begins to exist or to have policies, and removes one that ceased to.
    pub(super) fn name_namespace(&mut self, name: &Name, was_named: bool) {
        match (was_named, self.is_named(name)) {
            (false, true) => self.row_names.enter(&Named::Namespace(name.clone())),
            (true, false) => self.row_names.leave(&Named::Namespace(name.clone())),
            _ => {}
        }
    }

    /// Policies may be seen before their namespace, and after it.
    pub(super) fn is_named(&self, namespace: &Name) -> bool {
        self.namespaces.contains_key(namespace) || self.policies.about.contains_key(namespace)
    }

    /// Finds who has contested names now; whoever has another name than before is planned again.
    pub(super) fn settle_names(&mut self) {
        let names = &self.row_names;
        if !self.settled || names.contested.is_empty() && names.outranked.is_empty() {
            return;
        }
        let outranked = names.contested.iter().flat_map(|(hash, all)| {
            let first = all.iter().min_by_key(|named| self.rank(named));
            all.iter().filter(move |named| Some(*named) != first).map(|named| (*hash, named.clone()))
        });
        let outranked: BTreeSet<_> = outranked.collect();
        let before = std::mem::replace(&mut self.row_names.outranked, outranked.clone());
        for (_, named) in before.symmetric_difference(&outranked) {
            self.affect_named(named);
        }
    }

    /// The least one has a contested name. Namespaces come before what their users make, and the older before the younger, so that
    /// nobody loses a name to somebody who came later.
    fn rank<'a>(&self, named: &'a Named) -> (u8, i64, &'a Named) {
        let policy = |key: &ObjectKey| self.policies.get(key).map(|policy| policy.created);
        let (kind, created) = match named {
            Named::Cluster => (0, None),
            Named::Namespace(name) => (1, self.namespaces.get(name).map(|namespace| namespace.created)),
            Named::Policy(key) => (2, policy(key)),
            Named::Set(set, _) => (2, self.policies.users(set).filter_map(policy).min()),
        };
        (kind, created.unwrap_or(i64::MAX), named)
    }

    fn affect_named(&mut self, named: &Named) {
        match named {
            Named::Cluster => {}
            Named::Namespace(name) => {
                self.affect_pods_in(name);
                self.affect(Affected::Namespace(name.clone()));
            }
            Named::Policy(key) => {
                self.affect_pods_in(&key.namespace);
                self.affect(Affected::NetworkPolicy(key.clone()));
            }
            Named::Set(set, _) => {
                self.affect_set(set);
                for key in self.policies.users(set).cloned().collect::<Vec<_>>() {
                    self.affect(Affected::NetworkPolicy(key));
                }
            }
        }
    }

    fn affect_pods_in(&mut self, namespace: &Name) {
        for key in self.pods_in(namespace).cloned().collect::<Vec<_>>() {
            self.affect(Affected::Pod(key));
        }
    }

    /// Tells the author of a policy, or of one that refers to a set, that a row has another name than ovn-kubernetes would give it.
    pub(super) fn collision_notice(&self, key: &ObjectKey, uid: &Name) -> Option<Notice> {
        let is_of_policy = |named: &Named| match named {
            Named::Policy(of) => of == key,
            Named::Set(set, _) => self.policies.users(set).any(|user| user == key),
            Named::Cluster | Named::Namespace(_) => false,
        };
        let mut outranked = self.row_names.outranked.iter();
        outranked.any(|(_, named)| is_of_policy(named)).then(|| Notice {
            object: Object::NetworkPolicy { key: key.clone(), uid: uid.clone() },
            severity: Severity::Warning,
            reason: "NameCollision",
            message: "the policy works, but one of its rows has a longer name than usual: what has the usual one has the same 64-bit hash. \
                      That does not happen by chance: somebody chose a name or a label so"
                .to_owned(),
        })
    }
}
