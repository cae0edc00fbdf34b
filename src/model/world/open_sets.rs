//! The open sets that policies of a namespace use, see [`PodSet::is_open`]. Each may list all pods of the cluster, so a
//! namespace has room for a limited number of different ones. Those that its policies use first are used, in the order
//! of the policies' names, whatever came first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::{Name, ObjectKey, PodSet};

/// Limit for the different open sets of a namespace.
pub(super) const MOST_OPEN_SETS: usize = 200;

#[derive(Debug, Default)]
pub(super) struct OpenSets(BTreeMap<Name, OfNamespace>);

#[derive(Debug, Default)]
struct OfNamespace {
    users: BTreeMap<Arc<PodSet>, BTreeSet<ObjectKey>>,
    /// Each set with its first user.
    order: BTreeSet<(ObjectKey, Arc<PodSet>)>,
}

impl OpenSets {
    /// A policy begins or ceases to use a set. Others than open ones are not looked at.
    pub(super) fn change(&mut self, key: &ObjectKey, set: &Arc<PodSet>, uses: bool) {
        if !set.is_open() {
            return;
        }
        let OfNamespace { users, order } = self.0.entry(key.namespace.clone()).or_default();
        let of_set = users.entry(set.clone()).or_default();
        if let Some(first) = of_set.first() {
            order.remove(&(first.clone(), set.clone()));
        }
        if uses {
            of_set.insert(key.clone());
        } else {
            of_set.remove(key);
        }
        if let Some(first) = of_set.first() {
            order.insert((first.clone(), set.clone()));
        } else {
            users.remove(set);
        }
        if users.is_empty() {
            self.0.remove(&key.namespace);
        }
    }

    /// The sets of a namespace for which there is no room: nearly always none.
    pub(super) fn left_out(&self, namespace: &str) -> BTreeSet<Arc<PodSet>> {
        let order = self.0.get(namespace).into_iter().flat_map(|sets| &sets.order);
        order.skip(MOST_OPEN_SETS).map(|(_, set)| set.clone()).collect()
    }

    /// Whether policies of a namespace may use a set.
    pub(super) fn has_room(&self, namespace: &str, set: &PodSet) -> bool {
        let Some(OfNamespace { users, order }) = self.0.get(namespace) else { return true };
        let Some((limit, first_without)) = order.iter().nth(MOST_OPEN_SETS) else { return true };
        let first = users.get(set).and_then(BTreeSet::first);
        first.is_none_or(|first| (first, set) < (limit, &**first_without))
    }

    /// The policies of a namespace that use a set.
    pub(super) fn users(&self, namespace: &str, set: &PodSet) -> impl Iterator<Item = &ObjectKey> {
        self.0.get(namespace).and_then(|sets| sets.users.get(set)).into_iter().flatten()
    }
}
