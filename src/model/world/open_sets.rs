//! The open sets that policies of a namespace use, see [`PodSet::is_open`]. Each may list all pods of the cluster, so a
//! namespace has room for a limited number of different ones. Those that its policies use first are used, in the order
//! of the policies' names, whatever came first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::{Name, ObjectKey, PodSet};

type Sets = BTreeSet<Arc<PodSet>>;

/// A set with its first user.
type Place = (ObjectKey, Arc<PodSet>);

/// Limit for the different open sets of a namespace.
pub(super) const MOST_OPEN_SETS: usize = 200;

#[derive(Debug, Default)]
pub(super) struct OpenSets(BTreeMap<Name, OfNamespace>);

#[derive(Debug, Default)]
struct OfNamespace {
    users: BTreeMap<Arc<PodSet>, BTreeSet<ObjectKey>>,
    /// Each set with its first user.
    order: BTreeSet<Place>,
}

impl OpenSets {
    /// Replaces the sets of a policy. Returns those for which there was no room, and those for which there is none now: of its own sets,
    /// and of those that get room by this or lose it. It costs no look at all sets, of which a namespace may have any number.
    pub(super) fn replace(&mut self, key: &ObjectKey, had: &Sets, has: &Sets) -> (Sets, Sets) {
        let namespace = &key.namespace;
        let own: Sets = had.union(has).filter(|set| set.is_open()).cloned().collect();
        let without = |all: &Self| own.iter().filter(|set| !all.has_room(namespace, set)).cloned().collect::<Sets>();
        let (mut before, old_end) = (without(self), self.end(namespace).cloned());
        own.iter().filter(|set| !had.contains(*set)).for_each(|set| self.change(key, set, true));
        own.iter().filter(|set| !has.contains(*set)).for_each(|set| self.change(key, set, false));
        let (mut after, end) = (without(self), self.end(namespace).cloned());
        let first = old_end.iter().chain(&end).min().filter(|_| old_end != end);
        let all = self.0.get(namespace).zip(first);
        let is_before = |end: &Option<Place>, place: &Place| end.as_ref().is_none_or(|end| place < end);
        for place in all.into_iter().flat_map(|(all, first)| all.order.range::<Place, _>(first..)) {
            match (is_before(&old_end, place), is_before(&end, place)) {
                (true, false) if !own.contains(&place.1) => drop(after.insert(place.1.clone())),
                (false, true) if !own.contains(&place.1) => drop(before.insert(place.1.clone())),
                (old, new) if old == new => break,
                _ => {}
            }
        }
        (before, after)
    }

    /// A policy begins or ceases to use a set.
    fn change(&mut self, key: &ObjectKey, set: &Arc<PodSet>, uses: bool) {
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

    /// The first set of a namespace for which there is no room; there is none for all after it either. Nearly always there is none.
    fn end(&self, namespace: &str) -> Option<&Place> {
        self.0.get(namespace)?.order.iter().nth(MOST_OPEN_SETS)
    }

    /// Whether there are sets of a namespace without room.
    pub(super) fn is_full(&self, namespace: &str) -> bool {
        self.end(namespace).is_some()
    }

    /// Whether policies of a namespace may use a set.
    pub(super) fn has_room(&self, namespace: &str, set: &PodSet) -> bool {
        let Some((limit, first_without)) = self.end(namespace).filter(|_| set.is_open()) else { return true };
        let first = self.users(namespace, set).next();
        first.is_none_or(|first| (first, set) < (limit, &**first_without))
    }

    /// The policies of a namespace that use a set.
    pub(super) fn users(&self, namespace: &str, set: &PodSet) -> impl Iterator<Item = &ObjectKey> {
        self.0.get(namespace).and_then(|sets| sets.users.get(set)).into_iter().flatten()
    }
}
