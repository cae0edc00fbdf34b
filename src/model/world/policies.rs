//! Finds the policies and pod sets that concern a pod or a namespace without checking all of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::World;
use super::numbers::{Numbers, Used};
use super::open_sets::MOST_OPEN_SETS;
use super::policy_index::Users;
use super::row_names::Named;
use crate::pod_set::of_policy;
use crate::service::MOST_REPORTED;
use crate::{
    Affected, BadField, Direction, Labels, Name, Namespaces, NetworkPolicy, Notice, Object, ObjectKey, Pod, PodKey,
    PodSet, Protocol, Selector, Severity,
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

    /// The sets in use that a pod belongs to; sets with a named port once for each of the pod's numbers that rules use.
    pub fn sets_of(&self, key: &PodKey, pod: &Pod) -> BTreeSet<(Arc<PodSet>, Option<u16>)> {
        let is_used = |(set, number): &(Arc<PodSet>, Option<u16>)| {
            number.is_none_or(|number| self.policies.has_number(set, number))
        };
        self.all_sets_of(key, pod).filter(is_used).collect()
    }

    fn all_sets_of<'a>(
        &'a self,
        key: &'a PodKey,
        pod: &'a Pod,
    ) -> impl Iterator<Item = (Arc<PodSet>, Option<u16>)> + 'a {
        self.sets_around(key, pod).flat_map(move |set| {
            let named = set.port.iter().flat_map(move |(protocol, name)| pod.numbers(*protocol, name).map(Some));
            let whole = set.port.is_none().then_some(None);
            named.chain(whole).map(move |number| (set.clone(), number))
        })
    }

    /// The sets that a pod belongs to, regardless of its ports. A pod that runs nowhere belongs to none: it costs nobody
    /// anything, so there can be any number of them.
    fn sets_around<'a>(&'a self, key: &'a PodKey, pod: &'a Pod) -> impl Iterator<Item = &'a Arc<PodSet>> {
        let namespace = self.namespaces.get(&key.namespace).map(|namespace| &namespace.labels);
        let own = self.policies.sets_in.get(&key.namespace).into_iter();
        let own = own.flat_map(|index| index.candidates(&pod.labels));
        let by_pods = self.policies.sets_by_pods.candidates(&pod.labels);
        let by_namespaces = namespace.into_iter().flat_map(|l| self.policies.sets_by_namespaces.candidates(l));
        let candidates = own.chain(by_pods).chain(by_namespaces).filter(|_| pod.is_placed());
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

    pub(super) fn apply_policy(&mut self, key: &ObjectKey, new: Option<NetworkPolicy>) {
        let old = self.policies.given(key);
        if old == new.as_ref() {
            return;
        }
        let claim = |policy: &NetworkPolicy| (policy.created, policy.need);
        let (claimed, claims) = (old.map(claim), new.as_ref().map(claim));
        let shift = self.policies.room.change(key, claimed, claims);
        self.replace_policy(key, new);
        for name in shift.others {
            let other = ObjectKey::new(key.namespace.clone(), name);
            let given = self.policies.given(&other).cloned();
            self.replace_policy(&other, given);
        }
        if shift.has_other_numbers {
            for other in self.policies.in_namespace(&key.namespace).cloned().collect::<Vec<_>>() {
                self.follow_room(&other);
            }
        }
        self.settle_names();
    }

    fn replace_policy(&mut self, key: &ObjectKey, given: Option<NetworkPolicy>) {
        let was_named = self.is_named(&key.namespace);
        let old = self.policies.unindex(key);
        let new = self.policies.usable(key, given);
        if self.settled {
            self.affect_subjects(key, old.as_ref(), new.as_ref());
        }
        let sets = |policy: Option<&NetworkPolicy>| -> BTreeSet<Arc<PodSet>> {
            policy.into_iter().flat_map(|policy| of_policy(key, policy)).map(Arc::new).collect()
        };
        let (had, has) = (sets(old.as_ref()), sets(new.as_ref()));
        match (&old, &new) {
            (None, Some(_)) => self.row_names.enter(&Named::Policy(key.clone())),
            (Some(_), None) => self.row_names.leave(&Named::Policy(key.clone())),
            _ => {}
        }
        if let Some(policy) = new {
            self.policies.index(key, policy);
        }
        self.name_namespace(&key.namespace, was_named);
        self.change_sets(key, &had, &has);
        if old.is_some() {
            self.follow_room(key);
        }
        self.affect(Affected::NetworkPolicy(key.clone()));
    }

    /// Notes for how many numbers a policy has room, in the sets with named ports that it used before and still does.
    fn follow_room(&mut self, key: &ObjectKey) {
        let most = self.policies.most_numbers(key);
        let Some(policy) = self.policies.get(key) else { return };
        for set in of_policy(key, policy).into_iter().filter(|set| set.port.is_some()) {
            let Some(users) = self.policies.sets.get_mut(&set) else { continue };
            let had = users.used();
            let Some(before) = users.change(key, most) else { continue };
            if users.numbers.len() > before.min(most) {
                self.affect(Affected::NetworkPolicy(key.clone()));
            }
            self.affect_users(&Arc::new(set), &had);
        }
    }

    /// Replaces the sets of a policy. Other policies of its namespace may find room for theirs by it, or lose it.
    fn change_sets(&mut self, key: &ObjectKey, had: &BTreeSet<Arc<PodSet>>, has: &BTreeSet<Arc<PodSet>>) {
        let (left_out, no_room) = self.policies.open_sets.replace(key, had, has);
        let (had, has) = (had - &left_out, has - &no_room);
        has.difference(&had).for_each(|set| self.use_set(set, key));
        had.difference(&has).for_each(|set| self.leave_set(set, key));
        for set in left_out.symmetric_difference(&no_room) {
            let users = self.policies.open_sets.users(&key.namespace, set).filter(|user| *user != key);
            for user in users.cloned().collect::<Vec<_>>() {
                if no_room.contains(set) {
                    self.leave_set(set, &user);
                } else {
                    self.use_set(set, &user);
                }
                self.affect(Affected::NetworkPolicy(user));
            }
        }
    }

    fn use_set(&mut self, set: &Arc<PodSet>, policy: &ObjectKey) {
        let used = self.policies.sets.get(set).map(Users::used).unwrap_or_default();
        if self.policies.use_set(set, policy) {
            self.begin_set(set);
        } else {
            self.affect_users(set, &used);
        }
    }

    fn leave_set(&mut self, set: &Arc<PodSet>, policy: &ObjectKey) {
        let Some(used) = self.policies.sets.get(set).map(Users::used) else { return };
        if self.policies.leave_set(set, policy) {
            self.end_set(set, &used);
        } else {
            self.affect_users(set, &used);
        }
    }

    /// Marks the pods that a policy begins or ceases to select, for either direction.
    fn affect_subjects(&mut self, key: &ObjectKey, old: Option<&NetworkPolicy>, new: Option<&NetworkPolicy>) {
        // nothing changes for any pod if only the rules do, as when policies get room or lose it
        let is_alike = |(old, new): (&NetworkPolicy, &NetworkPolicy)| {
            let directions = |policy: &NetworkPolicy| (policy.ingress.is_some(), policy.egress.is_some());
            old.pods == new.pods && directions(old) == directions(new)
        };
        if old.zip(new).is_some_and(is_alike) {
            return;
        }
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
            let mut numbers = Numbers::default();
            for pod in self.pods_of(set).iter().filter_map(|key| self.pods.get(key)).filter(|e| e.pod.is_placed()) {
                for number in pod.pod.numbers(*protocol, name).collect::<BTreeSet<_>>() {
                    numbers.add(number);
                }
            }
            if let Some(users) = self.policies.sets.get_mut(set) {
                users.numbers = numbers;
                let used = users.used();
                self.name_numbers(set, &Used::default(), &used);
            }
        }
        self.affect_set(set);
    }

    fn end_set(&mut self, set: &Arc<PodSet>, used: &Used) {
        self.name_numbers(set, used, &Used::default());
        if set.port.is_none() {
            self.row_names.leave(&Named::Set(set.clone(), None));
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
        self.all_sets_of(key, &entry.pod).filter_map(|(set, number)| Some((set, number?))).collect()
    }

    /// Updates the counts after the numbers of a pod changed. Policies that use a number that is new or gone, or begin
    /// or cease to use one, are planned again.
    pub(super) fn recount(&mut self, before: &BTreeSet<Numbered>, after: &BTreeSet<Numbered>) {
        let sets: BTreeSet<_> = after.symmetric_difference(before).map(|(set, _)| set).collect();
        for set in sets {
            let of_set = || (set.clone(), 0)..=(set.clone(), u16::MAX);
            let Some(users) = self.policies.sets.get_mut(set) else { continue };
            let used = users.used();
            let new = after.range(of_set()).filter(|numbered| !before.contains(*numbered));
            new.for_each(|(_, number)| users.numbers.add(*number));
            let gone = before.range(of_set()).filter(|numbered| !after.contains(*numbered));
            gone.for_each(|(_, number)| users.numbers.remove(*number));
            self.affect_users(set, &used);
        }
        if before != after {
            self.settle_names();
        }
    }

    /// Marks what depends on the numbers of a set, if they have changed.
    fn affect_users(&mut self, set: &Arc<PodSet>, had: &Used) {
        let Some(users) = self.policies.sets.get(set) else { return };
        let has = users.used();
        if has == *had {
            return;
        }
        self.name_numbers(set, had, &has);
        let Some(users) = self.policies.sets.get(set) else { return };
        let sees = |(_, most): &(&ObjectKey, &usize)| has.differs(had, **most);
        for key in users.policies.iter().filter(sees).map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.affect(Affected::NetworkPolicy(key));
        }
        if has.is_other_than(had) {
            self.affect(Affected::PodSet(set.clone()));
        }
        let displaced = has.displaced(had);
        if let (Some((protocol, name)), false) = (&set.port, displaced.is_empty()) {
            let has_one = |pod: &Pod| pod.numbers(*protocol, name).any(|number| displaced.contains(&number));
            for key in self.pods_of(set) {
                if self.pods.get(&key).is_some_and(|entry| has_one(&entry.pod)) {
                    self.affect(Affected::Pod(key));
                }
            }
        }
    }

    /// Each number of a set that rules use has an address set of its own.
    fn name_numbers(&mut self, set: &Arc<PodSet>, had: &Used, has: &Used) {
        let named = |number| Named::Set(set.clone(), Some(number));
        has.beyond(had).for_each(|number| self.row_names.enter(&named(number)));
        had.beyond(has).for_each(|number| self.row_names.leave(&named(number)));
    }

    /// Counts all numbers once all initial lists are complete. A world that only answers questions, and awaits no lists, needs it too.
    pub fn count_everything(&mut self) {
        for key in self.pods.keys().cloned().collect::<Vec<_>>() {
            for (set, number) in self.numbers_of(&key) {
                if let Some(users) = self.policies.sets.get_mut(&set) {
                    users.numbers.add(number);
                }
            }
        }
        for (set, used) in self.policies.sets.iter().map(|(set, users)| (set.clone(), users.used())).collect::<Vec<_>>()
        {
            self.name_numbers(&set, &Used::default(), &used);
        }
    }

    pub(super) fn policy_notices(&self, key: &ObjectKey) -> Vec<Notice> {
        let Some(policy) = self.policies.get(key) else { return Vec::new() };
        let notice = |bad: BadField| Notice {
            object: Object::NetworkPolicy { key: key.clone(), uid: policy.uid.clone() },
            severity: Severity::Warning,
            reason: "BadField",
            message: format!("cannot use {}: {}", bad.field, bad.problem),
        };
        let bad = policy.bad.iter().cloned().chain(self.excess_numbers(key, policy));
        let bad = bad.chain(self.excess_sets(key, policy)).map(notice);
        bad.chain(self.collision_notice(key, &policy.uid)).collect()
    }

    /// Selectors for which the namespace has no room.
    fn excess_sets(&self, key: &ObjectKey, policy: &NetworkPolicy) -> Option<BadField> {
        if !self.policies.open_sets.is_full(&key.namespace) {
            return None;
        }
        let has_room = |set: &&PodSet| self.policies.open_sets.has_room(&key.namespace, set);
        let count = of_policy(key, policy).iter().filter(|set| !has_room(set)).count();
        (count > 0).then(|| {
            let problem = format!(
                "the policies of namespace {} have more than {MOST_OPEN_SETS} different selectors that require no label \
                 with one of a few values, the limit; the first by names of policies are used, and {count} of this \
                 policy select nothing; remove policies, or select by labels",
                key.namespace
            );
            BadField::new("spec", problem)
        })
    }

    /// Named ports with more numbers than their rules may use.
    fn excess_numbers(&self, key: &ObjectKey, policy: &NetworkPolicy) -> impl Iterator<Item = BadField> {
        let most = self.policies.most_numbers(key);
        let rules = Direction::ALL.into_iter().flat_map(|direction| {
            let rules = policy.rules(direction).into_iter().flatten().enumerate();
            rules.map(move |(index, rule)| (direction, index, rule))
        });
        let names = rules.flat_map(move |(direction, index, rule)| {
            let sets = PodSet::looked_up(key, policy, direction, rule);
            let is_over = move |protocol: Protocol, name: &Name| {
                let with_port = |set: &PodSet| self.policies.sets.get(&set.clone().with_port(protocol, name));
                sets.iter().filter_map(with_port).any(|users| users.numbers.len() > most)
            };
            let over = rule.named_ports().filter(move |(protocol, name)| is_over(*protocol, name));
            over.map(move |(_, name)| (format!("{}.ports", direction.field(index)), name))
        });
        let bad = names.map(move |(field, name)| {
            let problem = format!(
                "pods have more than {most} numbers for port {name:?}, for which this policy has room; the less common ones \
                 select nothing; give the pods' ports fewer numbers, or write the numbers in a policy with fewer peers"
            );
            BadField::new(field, problem)
        });
        bad.take(MOST_REPORTED)
    }
}
