//! Indexes the policies, and the pod sets that they use, by what they select.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::numbers::{Numbers, Used};
use super::open_sets::OpenSets;
use super::room::{Room, without_rules};
use super::selector_index::{SelectorIndex, is_demanding};
use crate::network_policy::MOST_NUMBERS;
use crate::{Name, Namespaces, NetworkPolicy, ObjectKey, PodSet, Selector};

/// The policies of the cluster.
#[derive(Debug, Default)]
pub struct Policies {
    all: BTreeMap<ObjectKey, NetworkPolicy>,
    /// By namespace, and by the labels of the pods they select.
    pub(super) about: BTreeMap<Name, SelectorIndex<ObjectKey>>,
    pub(super) sets: BTreeMap<Arc<PodSet>, Users>,
    pub(super) sets_in: BTreeMap<Name, SelectorIndex<Arc<PodSet>>>,
    /// Sets of labelled namespaces, by the labels of pods.
    pub(super) sets_by_pods: SelectorIndex<Arc<PodSet>>,
    /// Sets of labelled namespaces that require no label of pods, and of whole ones: by the labels of namespaces.
    pub(super) sets_by_namespaces: SelectorIndex<Arc<PodSet>>,
    /// How many sets have a named port.
    pub(super) with_port: usize,
    pub(super) open_sets: OpenSets,
    pub(super) room: Room,
    /// Policies for which their namespace has no room, as they were given. Without their rules they are among the others.
    without_room: BTreeMap<ObjectKey, NetworkPolicy>,
}

/// The policies that use a set of pods, and the numbers of its named port.
#[derive(Debug, Default)]
pub(super) struct Users {
    /// Each with how many numbers of the named port it may use.
    pub(super) policies: BTreeMap<ObjectKey, usize>,
    /// How many policies may use so many numbers.
    counts: BTreeMap<usize, usize>,
    /// The numbers of its named port.
    pub(super) numbers: Numbers,
}

impl Users {
    /// Notes how many numbers a policy may use; the former number, if it was another.
    pub(super) fn change(&mut self, policy: &ObjectKey, most: usize) -> Option<usize> {
        let before = self.policies.get(policy).copied().filter(|before| *before != most)?;
        self.add(policy, most);
        Some(before)
    }

    fn add(&mut self, policy: &ObjectKey, most: usize) {
        self.remove(policy);
        self.policies.insert(policy.clone(), most);
        *self.counts.entry(most).or_default() += 1;
    }

    fn remove(&mut self, policy: &ObjectKey) {
        let Some(most) = self.policies.remove(policy) else { return };
        if let Some(count) = self.counts.get_mut(&most) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&most);
            }
        }
    }

    /// For how many numbers some policy has room.
    fn most(&self) -> usize {
        self.counts.last_key_value().map_or(0, |(most, _)| *most)
    }

    /// What their rules can depend on.
    pub(super) fn used(&self) -> Used {
        self.numbers.used(self.most())
    }
}

impl Policies {
    pub fn get(&self, key: &ObjectKey) -> Option<&NetworkPolicy> {
        self.all.get(key)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &NetworkPolicy)> {
        self.all.iter()
    }

    /// Policies of a namespace.
    pub fn in_namespace<'a>(&'a self, namespace: &'a Name) -> impl Iterator<Item = &'a ObjectKey> {
        let first = ObjectKey { namespace: namespace.clone(), name: "".into() };
        self.all.range(first..).map(|(key, _)| key).take_while(move |key| key.namespace == *namespace)
    }

    /// Namespaces that have policies.
    pub fn namespaces(&self) -> impl Iterator<Item = &Name> {
        self.about.keys()
    }

    /// The sets of pods in use.
    pub fn sets(&self) -> impl Iterator<Item = &Arc<PodSet>> {
        self.sets.keys()
    }

    pub fn is_used(&self, set: &PodSet) -> bool {
        self.sets.contains_key(set)
    }

    /// The policies that use a set.
    pub(super) fn users(&self, set: &PodSet) -> impl Iterator<Item = &ObjectKey> {
        self.sets.get(set).into_iter().flat_map(|users| users.policies.keys())
    }

    /// The numbers of a set's named port that rules may use.
    pub fn numbers(&self, set: &PodSet) -> impl Iterator<Item = u16> {
        self.common_numbers(set, self.sets.get(set).map_or(0, Users::most))
    }

    /// Whether rules may use a number of a set's named port.
    pub(super) fn has_number(&self, set: &PodSet, number: u16) -> bool {
        self.sets.get(set).is_some_and(|users| users.numbers.is_among(number, users.most()))
    }

    /// How many numbers of each named port a policy may use.
    pub fn most_numbers(&self, key: &ObjectKey) -> usize {
        let own = self.all.get(key).map_or(MOST_NUMBERS, |policy| policy.most_numbers);
        own.min(self.room.most_numbers(&key.namespace))
    }

    /// The most common numbers of a set's named port.
    pub fn common_numbers(&self, set: &PodSet, most: usize) -> impl Iterator<Item = u16> {
        self.sets.get(set).into_iter().flat_map(move |users| users.numbers.most_common(most))
    }

    /// Whether a number of a set's named port is among the most common ones.
    pub fn is_common(&self, set: &PodSet, number: u16, most: usize) -> bool {
        self.sets.get(set).is_some_and(|users| users.numbers.is_among(number, most))
    }

    /// Whether rules of policies in a namespace may refer to a set. A set for which there is no room selects nothing.
    pub fn has_room(&self, namespace: &str, set: &PodSet) -> bool {
        self.open_sets.has_room(namespace, set)
    }

    /// A policy as it was given, whether its namespace has room for it or not.
    pub(super) fn given(&self, key: &ObjectKey) -> Option<&NetworkPolicy> {
        self.without_room.get(key).or_else(|| self.all.get(key))
    }

    /// What is used of a policy: all of it, if its namespace has room.
    pub(super) fn usable(&mut self, key: &ObjectKey, given: Option<NetworkPolicy>) -> Option<NetworkPolicy> {
        self.without_room.remove(key);
        let given = given?;
        if self.room.has_room(key, given.created) {
            return Some(given);
        }
        let usable = without_rules(key, &given);
        self.without_room.insert(key.clone(), given);
        Some(usable)
    }

    /// Adds a policy that is not indexed yet.
    pub(super) fn index(&mut self, key: &ObjectKey, policy: NetworkPolicy) {
        self.about.entry(key.namespace.clone()).or_default();
        if let (Some(pods), Some(about)) = (&policy.pods, self.about.get_mut(&key.namespace)) {
            about.insert(pods, key.clone());
        }
        self.all.insert(key.clone(), policy);
    }

    /// Removes a policy and returns it.
    pub(super) fn unindex(&mut self, key: &ObjectKey) -> Option<NetworkPolicy> {
        let policy = self.all.remove(key)?;
        if let (Some(pods), Some(about)) = (&policy.pods, self.about.get_mut(&key.namespace)) {
            about.remove(pods, key);
        }
        if self.in_namespace(&key.namespace).next().is_none() {
            self.about.remove(&key.namespace);
        }
        Some(policy)
    }

    /// Adds a user of a set; true for the first one.
    pub(super) fn use_set(&mut self, set: &Arc<PodSet>, policy: &ObjectKey) -> bool {
        let (most, is_new) = (self.most_numbers(policy), !self.sets.contains_key(set));
        self.sets.entry(set.clone()).or_default().add(policy, most);
        if !is_new {
            return false;
        }
        self.with_port += usize::from(set.port.is_some());
        self.place(set, |index, selector| index.insert(selector, set.clone()));
        true
    }

    /// Removes a user of a set; true for the last one.
    pub(super) fn leave_set(&mut self, set: &Arc<PodSet>, policy: &ObjectKey) -> bool {
        let Some(users) = self.sets.get_mut(set) else { return false };
        users.remove(policy);
        if !users.policies.is_empty() {
            return false;
        }
        self.sets.remove(set);
        self.with_port -= usize::from(set.port.is_some());
        self.place(set, |index, selector| index.remove(selector, set));
        if let Namespaces::One(name) = &set.namespaces
            && self.sets_in.get(name).is_some_and(SelectorIndex::is_empty)
        {
            self.sets_in.remove(name);
        }
        true
    }

    /// Calls `act` with the index that a set belongs to, and the selector it is found by.
    fn place(&mut self, set: &PodSet, act: impl FnOnce(&mut SelectorIndex<Arc<PodSet>>, &Selector)) {
        match &set.namespaces {
            Namespaces::One(name) => act(self.sets_in.entry(name.clone()).or_default(), &set.pods),
            Namespaces::Labelled(_) if is_demanding(&set.pods) => act(&mut self.sets_by_pods, &set.pods),
            Namespaces::Labelled(selector) | Namespaces::Whole(selector) => {
                act(&mut self.sets_by_namespaces, selector);
            }
        }
    }
}
