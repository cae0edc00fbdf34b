//! The names of port groups and address sets, and who loses a contested one.

use std::collections::BTreeSet;

use ovnkube_ovn::{OwnerId, owner};

use super::World;
use super::row_names::Named;
use crate::{Affected, Direction, Family, Name, Notice, Object, ObjectKey, PodSet, Severity, row_owners};

impl World {
    /// The group of a namespace's pods.
    pub fn namespace_group(&self, namespace: &str) -> OwnerId {
        self.row_names.named(row_owners::namespace_group(namespace), |named| named.is_namespace(namespace))
    }

    /// The set of a namespace's pod addresses of one family.
    pub fn namespace_set(&self, namespace: &str, family: Family) -> OwnerId {
        self.row_names.named(row_owners::namespace_set(namespace, family), |named| named.is_namespace(namespace))
    }

    /// The group of a namespace's pods that some policy selects for a direction.
    pub fn deny_group(&self, namespace: &str, direction: Direction) -> OwnerId {
        self.row_names.named(row_owners::deny_group(namespace, direction), |named| named.is_namespace(namespace))
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

    /// Its name. Each pod needs those of all its sets, and a selector may have a long text, so it is made without that text.
    pub fn pod_set_name(&self, set: &PodSet, number: Option<u16>, family: Family) -> String {
        let hash = row_owners::pod_set_hash(set, number, family);
        let is_it = |named: &Named| matches!(named, Named::Set(of, with) if **of == *set && *with == number);
        if self.row_names.is_outranked(hash, is_it) {
            return self.pod_set(set, number, family).hashed_name();
        }
        owner::name_of(hash)
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
