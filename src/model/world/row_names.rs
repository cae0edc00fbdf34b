//! Which of the port groups and address sets has a name that several have.
//!
//! ovn-kubernetes names them by 64 bits of a hash of what they are of, and so must we. But within a minute somebody finds a name
//! of a policy, a label or a namespace with the hash of another's group or set. With one row for both, the policy's rules
//! would be rules for the other's pods. So one of them has the name, and the others have long names instead.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use ovnkube_ovn::OwnerId;

use crate::row_owners::{self, cluster_port_group, cluster_router_port_group};
use crate::{Direction, Family, Name, ObjectKey, PodSet};

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
    pub(super) fn is_namespace(&self, namespace: &str) -> bool {
        matches!(self, Self::Namespace(name) if **name == *namespace)
    }

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
            Self::Set(set, number) => {
                return Family::ALL.map(|family| row_owners::pod_set_hash(set, *number, family)).into();
            }
        };
        owners.iter().map(OwnerId::hash).collect()
    }
}

/// Who has each name; see the module.
#[derive(Debug, Default)]
pub(super) struct RowNames {
    /// By the hash that is the name: one that would have it, nearly always the only one; else one of the contested ones.
    pub(super) by_hash: HashMap<u64, Named>,
    /// All that would have a name, where they are several.
    pub(super) contested: BTreeMap<u64, BTreeSet<Named>>,
    /// Those that have another name instead.
    pub(super) outranked: BTreeSet<(u64, Named)>,
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
            // the one that leaves may be the one noted here: if it came back, it would look like the only one
            self.by_hash.extend(all.first().map(|left| (hash, left.clone())));
            if all.len() < 2 {
                self.contested.remove(&hash);
            }
        }
    }

    /// The owner with the name that its row has.
    pub(super) fn named(&self, owner: OwnerId, is_it: impl Fn(&Named) -> bool) -> OwnerId {
        // nearly always, and without hashing
        let is_usual = self.outranked.is_empty();
        if is_usual || !self.is_outranked(owner.hash(), is_it) { owner } else { owner.with_long_name() }
    }

    /// Whether the owner whose usual name has this hash has another one.
    pub(super) fn is_outranked(&self, hash: u64, is_it: impl Fn(&Named) -> bool) -> bool {
        let first = (hash, Named::Cluster);
        let mut with_hash = self.outranked.range(first..).take_while(|(of, _)| *of == hash);
        with_hash.any(|(_, named)| is_it(named))
    }
}
