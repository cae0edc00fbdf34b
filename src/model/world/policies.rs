//! Which policies and sets of pods concern a pod or a namespace, found without asking all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::World;
use super::selector_index::{SelectorIndex, is_demanding};
use crate::pod_set::{of_policy, whole_namespaces};
use crate::{
    Labels, Name, Namespaces, NetworkPolicy, Notice, Object, ObjectKey, Pod, PodKey, PodSet, Selector, Severity,
    Touched,
};

/// The policies of the cluster.
#[derive(Debug, Default)]
pub struct Policies {
    all: BTreeMap<ObjectKey, NetworkPolicy>,
    /// By the namespace and the labels of the pods they are about.
    about: BTreeMap<Name, SelectorIndex<ObjectKey>>,
    /// By the labels of namespaces that they refer to as a whole.
    whole_namespaces: SelectorIndex<ObjectKey>,
    sets: BTreeMap<Arc<PodSet>, Users>,
    sets_in: BTreeMap<Name, SelectorIndex<Arc<PodSet>>>,
    /// Of several namespaces: by the labels of pods.
    sets_by_pods: SelectorIndex<Arc<PodSet>>,
    /// Of several namespaces and of all pods with certain ports: by the labels of namespaces.
    sets_by_namespaces: SelectorIndex<Arc<PodSet>>,
    /// Sets with a named port.
    with_port: usize,
}

/// Who uses a set of pods.
#[derive(Debug, Default)]
struct Users {
    policies: BTreeSet<ObjectKey>,
    /// The numbers its named port has, and how many pods have each.
    numbers: BTreeMap<u16, u32>,
}

/// A set and a number that its named port has.
type Numbered = (Arc<PodSet>, u16);

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

    /// The numbers that a set's named port has.
    pub fn numbers(&self, set: &PodSet) -> impl Iterator<Item = u16> {
        self.sets.get(set).into_iter().flat_map(|users| users.numbers.keys().copied())
    }

    fn index(&mut self, key: &ObjectKey, policy: NetworkPolicy) {
        self.about.entry(key.namespace.clone()).or_default();
        if let (Some(pods), Some(about)) = (&policy.pods, self.about.get_mut(&key.namespace)) {
            about.insert(pods, key.clone());
        }
        for selector in whole_namespaces(&policy) {
            self.whole_namespaces.insert(selector, key.clone());
        }
        self.all.insert(key.clone(), policy);
    }

    fn unindex(&mut self, key: &ObjectKey) -> Option<NetworkPolicy> {
        let policy = self.all.remove(key)?;
        if let (Some(pods), Some(about)) = (&policy.pods, self.about.get_mut(&key.namespace)) {
            about.remove(pods, key);
        }
        if self.in_namespace(&key.namespace).next().is_none() {
            self.about.remove(&key.namespace);
        }
        for selector in whole_namespaces(&policy) {
            self.whole_namespaces.remove(selector, key);
        }
        Some(policy)
    }

    /// Notes a user of a set; true for the first one.
    fn use_set(&mut self, set: &Arc<PodSet>, policy: &ObjectKey) -> bool {
        if let Some(users) = self.sets.get_mut(set) {
            users.policies.insert(policy.clone());
            return false;
        }
        let users = Users { policies: BTreeSet::from([policy.clone()]), numbers: BTreeMap::new() };
        self.sets.insert(set.clone(), users);
        self.with_port += usize::from(set.port.is_some());
        self.place(set, |index, selector| index.insert(selector, set.clone()));
        true
    }

    /// Forgets a user of a set; true for the last one.
    fn leave_set(&mut self, set: &Arc<PodSet>, policy: &ObjectKey) -> bool {
        let Some(users) = self.sets.get_mut(set) else { return false };
        users.policies.remove(policy);
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

    /// The index that a set stands in, and the selector it is found by.
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

impl World {
    /// The policies that are about a pod.
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

    /// The sets in use that a pod belongs to, those with a named port once for each of its numbers.
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

    /// The sets that a pod belongs to, its ports aside.
    fn sets_around<'a>(&'a self, key: &'a PodKey, pod: &'a Pod) -> impl Iterator<Item = &'a Arc<PodSet>> {
        let namespace = self.namespaces.get(&key.namespace).map(|namespace| &namespace.labels);
        let own = self.policies.sets_in.get(&key.namespace).into_iter();
        let own = own.flat_map(|index| index.candidates(&pod.labels));
        let by_pods = self.policies.sets_by_pods.candidates(&pod.labels);
        let by_namespaces = namespace.into_iter().flat_map(|l| self.policies.sets_by_namespaces.candidates(l));
        let candidates = own.chain(by_pods).chain(by_namespaces).filter(|_| !pod.finished);
        candidates.filter(move |set| set.holds(&key.namespace, namespace, pod))
    }

    /// Namespaces with these labels.
    pub fn namespaces_labelled<'a>(&'a self, selector: &'a Selector) -> impl Iterator<Item = &'a Name> {
        let by_label = selector.labels.iter().filter_map(|label| Some((label, self.namespaces_by.get(label)?)));
        // a demanded label that no namespace has ends it, the rarest one narrows it
        let nobody = selector.labels.iter().any(|label| !self.namespaces_by.contains_key(label));
        let rarest = by_label.map(|(_, names)| names).min_by_key(|names| names.len());
        let all = self.namespaces.keys().filter(move |_| rarest.is_none() && !nobody);
        let some = rarest.into_iter().flatten().filter(move |_| !nobody);
        all.chain(some).filter(|name| self.namespaces.get(*name).is_some_and(|n| selector.matches(&n.labels)))
    }

    /// All pods of a set, its named port aside.
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
        let old = self.policies.unindex(&key);
        if self.settled {
            self.touch_subjects(&key, old.as_ref(), new.as_ref());
        }
        let sets = |policy: Option<&NetworkPolicy>| policy.map(|p| of_policy(&key, p)).unwrap_or_default();
        let (had, has) = (sets(old.as_ref()), sets(new.as_ref()));
        if let Some(policy) = new {
            self.policies.index(&key, policy);
        }
        for set in has.iter().filter(|set| !had.contains(set)).cloned() {
            let set = Arc::new(set);
            if self.policies.use_set(&set, &key) && self.settled {
                self.begin_set(&set);
            }
        }
        for set in had.into_iter().filter(|set| !has.contains(set)) {
            let set = Arc::new(set);
            if self.policies.leave_set(&set, &key) && self.settled {
                self.touch_set(&set);
            }
        }
        self.touch(Touched::NetworkPolicy(key));
    }

    /// Pods that a policy is about now and was not, or the other way round.
    fn touch_subjects(&mut self, key: &ObjectKey, old: Option<&NetworkPolicy>, new: Option<&NetworkPolicy>) {
        let says = |policy: Option<&NetworkPolicy>, labels: &Labels| {
            let policy = policy.filter(|policy| policy.pods.as_ref().is_some_and(|pods| pods.matches(labels)));
            policy.map(|policy| (policy.ingress.is_some(), policy.egress.is_some()))
        };
        let changed = |key: &&PodKey| {
            let labels = self.pods.get(*key).map(|e| &e.pod.labels);
            labels.is_some_and(|labels| says(old, labels) != says(new, labels))
        };
        for pod in self.pods_in(&key.namespace).filter(changed).cloned().collect::<Vec<_>>() {
            self.touch(Touched::Pod(pod));
        }
    }

    /// Counts the numbers of a new set, and has its pods go in.
    fn begin_set(&mut self, set: &Arc<PodSet>) {
        if let Some((protocol, name)) = &set.port {
            let mut numbers: BTreeMap<u16, u32> = BTreeMap::new();
            for pod in self.pods_of(set).iter().filter_map(|key| self.pods.get(key)).filter(|e| !e.pod.finished) {
                for number in pod.pod.numbers(*protocol, name).collect::<BTreeSet<_>>() {
                    *numbers.entry(number).or_default() += 1;
                }
            }
            if let Some(users) = self.policies.sets.get_mut(set) {
                users.numbers = numbers;
            }
        }
        self.touch_set(set);
    }

    fn touch_set(&mut self, set: &Arc<PodSet>) {
        for pod in self.pods_of(set) {
            self.touch(Touched::Pod(pod));
        }
        self.touch(Touched::PodSet(set.clone()));
    }

    /// The policies that refer as a whole to a namespace with these labels.
    pub(super) fn touch_referring(&mut self, labels: &Labels) {
        let referring: BTreeSet<_> = self.policies.whole_namespaces.candidates(labels).cloned().collect();
        for key in referring {
            let matches = |policy: &NetworkPolicy| whole_namespaces(policy).any(|selector| selector.matches(labels));
            if self.policies.get(&key).is_some_and(matches) {
                self.touch(Touched::NetworkPolicy(key));
            }
        }
    }

    /// The numbers by which a pod counts in sets with a named port.
    pub(super) fn numbers_of(&self, key: &PodKey) -> BTreeSet<Numbered> {
        let Some(entry) = self.pods.get(key).filter(|e| self.policies.with_port > 0 && !e.pod.ports.is_empty()) else {
            return BTreeSet::new();
        };
        let sets = self.sets_of(key, &entry.pod).into_iter();
        sets.filter_map(|(set, number)| Some((set, number?))).collect()
    }

    /// Takes in that a pod counts by other numbers now: who uses a number that is new or gone looks
    /// again.
    pub(super) fn recount(&mut self, before: &BTreeSet<Numbered>, after: &BTreeSet<Numbered>) {
        for (set, number) in after.difference(before) {
            let Some(users) = self.policies.sets.get_mut(set) else { continue };
            let count = users.numbers.entry(*number).or_default();
            *count += 1;
            if *count == 1 {
                self.touch_users(set);
            }
        }
        for (set, number) in before.difference(after) {
            let Some(users) = self.policies.sets.get_mut(set) else { continue };
            let Some(count) = users.numbers.get_mut(number) else { continue };
            *count -= 1;
            if *count == 0 {
                users.numbers.remove(number);
                self.touch_users(set);
            }
        }
    }

    fn touch_users(&mut self, set: &Arc<PodSet>) {
        let users = self.policies.sets.get(set).map(|users| users.policies.clone()).unwrap_or_default();
        for key in users {
            self.touch(Touched::NetworkPolicy(key));
        }
        self.touch(Touched::PodSet(set.clone()));
    }

    /// Counts all numbers, once all lists are in.
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
            message: format!("{}: {}", bad.field, bad.problem),
        };
        policy.bad.iter().map(notice).collect()
    }
}
