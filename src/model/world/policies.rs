//! Finds the policies and pod sets that concern a pod or a namespace without checking all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::World;
use super::row_names::Named;
use crate::pod_set::of_policy;
use crate::{
    Affected, Labels, Name, Namespaces, NetworkPolicy, Notice, Object, ObjectKey, Pod, PodKey, PodSet, Selector,
    Severity,
};

/// A pod set and one number of its named port.
type Numbered = (Arc<PodSet>, u16);

impl World {
    /// The policies that select a pod.
    pub fn policies_of<'a>(
        &'a self,
        key: &PodKey,
        pod: &'a Pod,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a NetworkPolicy)> {
        let about = self.policies.about.get(&key.namespace);
        let candidates = about.into_iter().flat_map(|index| index.candidates(&pod.labels));
        let with_policy = candidates.filter_map(|key| Some((key, self.policies.get(key)?)));
        with_policy.filter(|(_, policy)| policy.pods.as_ref().is_some_and(|pods| pods.matches(&pod.labels)))
    }

    /// The sets in use that a pod belongs to; sets with a named port once for each of the pod's numbers.
    pub fn sets_of(&self, key: &PodKey, pod: &Pod) -> BTreeSet<(Arc<PodSet>, Option<u16>)> {
        let mut sets = BTreeSet::new();
        for set in self.sets_around(key, pod) {
            match &set.port {
                None => drop(sets.insert((set.clone(), None))),
                Some((protocol, name)) => {
                    sets.extend(pod.numbers(*protocol, name).map(|number| (set.clone(), Some(number))));
                }
            }
        }
        sets
    }

    /// The sets that a pod belongs to, regardless of its ports.
    fn sets_around<'a>(&'a self, key: &'a PodKey, pod: &'a Pod) -> impl Iterator<Item = &'a Arc<PodSet>> {
        let namespace = self.namespaces.get(&key.namespace).map(|namespace| &namespace.labels);
        let own = self.policies.sets_in.get(&key.namespace).into_iter();
        let own = own.flat_map(|index| index.candidates(&pod.labels));
        let by_pods = self.policies.sets_by_pods.candidates(&pod.labels);
        let by_namespaces = namespace.into_iter().flat_map(|l| self.policies.sets_by_namespaces.candidates(l));
        let candidates = own.chain(by_pods).chain(by_namespaces).filter(|_| !pod.finished);
        candidates.filter(move |set| set.holds(&key.namespace, namespace, pod))
    }

    /// The sets in use that nodes belong to.
    pub fn sets_of_nodes(&self) -> impl Iterator<Item = &Arc<PodSet>> {
        let labels = self.labels_of_nodes().into_iter();
        let candidates = labels.flat_map(|labels| self.policies.sets_by_namespaces.candidates(labels));
        candidates.filter(|set| self.is_of_nodes(set))
    }

    /// Whether nodes belong to a set: one of whole namespaces, which include the namespace that stands for nodes.
    pub fn is_of_nodes(&self, set: &PodSet) -> bool {
        let Namespaces::Whole(selector) = &set.namespaces else { return false };
        set.port.is_none() && self.labels_of_nodes().is_some_and(|labels| selector.matches(labels))
    }

    fn labels_of_nodes(&self) -> Option<&Labels> {
        let name = self.settings.host_network_namespace.as_ref()?;
        self.namespaces.get(name).map(|namespace| &namespace.labels)
    }

    /// Namespaces with these labels.
    fn namespaces_labelled<'a>(&'a self, selector: &'a Selector) -> impl Iterator<Item = &'a Name> {
        let by_label = selector.labels.iter().filter_map(|label| Some((label, self.namespaces_by.get(label)?)));
        // a required label that no namespace has means no match; else the rarest one leaves the fewest candidates
        let none_has_it = selector.labels.iter().any(|label| !self.namespaces_by.contains_key(label));
        let rarest = by_label.map(|(_, names)| names).min_by_key(|names| names.len());
        let all = self.namespaces.keys().filter(move |_| rarest.is_none() && !none_has_it);
        let some = rarest.into_iter().flatten().filter(move |_| !none_has_it);
        all.chain(some).filter(|name| self.namespaces.get(*name).is_some_and(|n| selector.matches(&n.labels)))
    }

    /// All pods of a set, regardless of its named port.
    fn pods_of(&self, set: &PodSet) -> Vec<PodKey> {
        let namespaces: Vec<_> = match &set.namespaces {
            Namespaces::One(name) => vec![name],
            Namespaces::Labelled(selector) | Namespaces::Whole(selector) => {
                self.namespaces_labelled(selector).collect()
            }
        };
        let in_set = |namespace: &Name, key: &PodKey| {
            let labels = self.namespaces.get(namespace).map(|namespace| &namespace.labels);
            self.pods.get(key).is_some_and(|entry| set.holds(namespace, labels, &entry.pod))
        };
        let all = namespaces.into_iter().flat_map(|name| self.pods_in(name).filter(move |key| in_set(name, key)));
        all.cloned().collect()
    }

    pub(super) fn apply_policy(&mut self, key: ObjectKey, new: Option<NetworkPolicy>) {
        if self.policies.get(&key) == new.as_ref() {
            return;
        }
        let was_named = self.is_named(&key.namespace);
        let old = self.policies.unindex(&key);
        if self.settled {
            self.affect_subjects(&key, old.as_ref(), new.as_ref());
        }
        let sets = |policy: Option<&NetworkPolicy>| policy.map(|p| of_policy(&key, p)).unwrap_or_default();
        let (had, has) = (sets(old.as_ref()), sets(new.as_ref()));
        match (&old, &new) {
            (None, Some(_)) => self.row_names.enter(&Named::Policy(key.clone())),
            (Some(_), None) => self.row_names.leave(&Named::Policy(key.clone())),
            _ => {}
        }
        if let Some(policy) = new {
            self.policies.index(&key, policy);
        }
        self.name_namespace(&key.namespace, was_named);
        for set in has.iter().filter(|set| !had.contains(set)).cloned() {
            let set = Arc::new(set);
            if self.policies.use_set(&set, &key) {
                self.begin_set(&set);
            }
        }
        for set in had.into_iter().filter(|set| !has.contains(set)) {
            let set = Arc::new(set);
            let numbers: Vec<_> = self.policies.numbers(&set).collect();
            if self.policies.leave_set(&set, &key) {
                self.end_set(&set, numbers);
            }
        }
        self.settle_names();
        self.affect(Affected::NetworkPolicy(key));
    }

    /// Marks the pods that a policy begins or ceases to select, for either direction.
    fn affect_subjects(&mut self, key: &ObjectKey, old: Option<&NetworkPolicy>, new: Option<&NetworkPolicy>) {
        let says = |policy: Option<&NetworkPolicy>, labels: &Labels| {
            let policy = policy.filter(|policy| policy.pods.as_ref().is_some_and(|pods| pods.matches(labels)));
            policy.map(|policy| (policy.ingress.is_some(), policy.egress.is_some()))
        };
        let changed = |key: &&PodKey| {
            let labels = self.pods.get(*key).map(|e| &e.pod.labels);
            labels.is_some_and(|labels| says(old, labels) != says(new, labels))
        };
        for pod in self.pods_in(&key.namespace).filter(changed).cloned().collect::<Vec<_>>() {
            self.affect(Affected::Pod(pod));
        }
    }

    /// Counts the port numbers of a new set and marks its pods, so that they are added.
    fn begin_set(&mut self, set: &Arc<PodSet>) {
        if set.port.is_none() {
            self.row_names.enter(&Named::Set(set.clone(), None));
        }
        if !self.settled {
            return;
        }
        if let Some((protocol, name)) = &set.port {
            let mut numbers: BTreeMap<u16, u32> = BTreeMap::new();
            for pod in self.pods_of(set).iter().filter_map(|key| self.pods.get(key)).filter(|e| !e.pod.finished) {
                for number in pod.pod.numbers(*protocol, name).collect::<BTreeSet<_>>() {
                    *numbers.entry(number).or_default() += 1;
                }
            }
            for number in numbers.keys() {
                self.row_names.enter(&Named::Set(set.clone(), Some(*number)));
            }
            if let Some(users) = self.policies.sets.get_mut(set) {
                users.numbers = numbers;
            }
        }
        self.affect_set(set);
    }

    fn end_set(&mut self, set: &Arc<PodSet>, numbers: Vec<u16>) {
        let all = set.port.is_none().then_some(None);
        for number in numbers.into_iter().map(Some).chain(all) {
            self.row_names.leave(&Named::Set(set.clone(), number));
        }
        if self.settled {
            self.affect_set(set);
        }
    }

    pub(super) fn affect_set(&mut self, set: &Arc<PodSet>) {
        for pod in self.pods_of(set) {
            self.affect(Affected::Pod(pod));
        }
        self.affect(Affected::PodSet(set.clone()));
    }

    /// The sets with a named port that a pod counts in, with each of its numbers.
    pub(super) fn numbers_of(&self, key: &PodKey) -> BTreeSet<Numbered> {
        let Some(entry) = self.pods.get(key).filter(|e| self.policies.with_port > 0 && !e.pod.ports.is_empty()) else {
            return BTreeSet::new();
        };
        let sets = self.sets_of(key, &entry.pod).into_iter();
        sets.filter_map(|(set, number)| Some((set, number?))).collect()
    }

    /// Updates the counts after the numbers of a pod changed. Policies that use a number that is new or gone are
    /// planned again.
    pub(super) fn recount(&mut self, before: &BTreeSet<Numbered>, after: &BTreeSet<Numbered>) {
        for (set, number) in after.difference(before) {
            let Some(users) = self.policies.sets.get_mut(set) else { continue };
            let count = users.numbers.entry(*number).or_default();
            *count += 1;
            if *count == 1 {
                self.row_names.enter(&Named::Set(set.clone(), Some(*number)));
                self.affect_users(set);
            }
        }
        for (set, number) in before.difference(after) {
            let Some(users) = self.policies.sets.get_mut(set) else { continue };
            let Some(count) = users.numbers.get_mut(number) else { continue };
            *count -= 1;
            if *count == 0 {
                users.numbers.remove(number);
                self.row_names.leave(&Named::Set(set.clone(), Some(*number)));
                self.affect_users(set);
            }
        }
        if before != after {
            self.settle_names();
        }
    }

    pub(super) fn affect_users(&mut self, set: &Arc<PodSet>) {
        let users = self.policies.sets.get(set).map(|users| users.policies.clone()).unwrap_or_default();
        for key in users {
            self.affect(Affected::NetworkPolicy(key));
        }
        self.affect(Affected::PodSet(set.clone()));
    }

    /// Counts all numbers once all initial lists are complete.
    pub(super) fn count_everything(&mut self) {
        for key in self.pods.keys().cloned().collect::<Vec<_>>() {
            let numbers = self.numbers_of(&key);
            self.recount(&BTreeSet::new(), &numbers);
        }
    }

    pub(super) fn policy_notices(&self, key: &ObjectKey) -> Vec<Notice> {
        let Some(policy) = self.policies.get(key) else { return Vec::new() };
        let notice = |bad: &crate::BadField| Notice {
            object: Object::NetworkPolicy { key: key.clone(), uid: policy.uid.clone() },
            severity: Severity::Warning,
            reason: "BadField",
            message: format!("cannot use {}: {}", bad.field, bad.problem),
        };
        policy.bad.iter().map(notice).chain(self.collision_notice(key, &policy.uid)).collect()
    }
}
