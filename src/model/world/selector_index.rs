//! Finds the selectors that may match some labels without checking those that cannot.

use std::collections::{BTreeSet, HashMap};

use crate::{Labels, Name, Operator, Selector};

/// Things filed by their selectors, each under one requirement of its selector: a label with its value if it
/// requires one, else a label with any value.
#[derive(Debug)]
pub(super) struct SelectorIndex<T> {
    by_label: HashMap<(Name, Name), BTreeSet<T>>,
    by_key: HashMap<Name, BTreeSet<T>>,
    /// Things whose selectors require no label: empty ones, and those that only exclude.
    others: BTreeSet<T>,
}

impl<T> Default for SelectorIndex<T> {
    fn default() -> Self {
        Self { by_label: HashMap::new(), by_key: HashMap::new(), others: BTreeSet::new() }
    }
}

/// Whether a selector requires some label.
pub(super) fn is_demanding(selector: &Selector) -> bool {
    let demands = |operator| matches!(operator, Operator::In | Operator::Exists);
    !selector.labels.is_empty() || selector.expressions.iter().any(|e| demands(e.operator))
}

impl<T: Ord + Clone> SelectorIndex<T> {
    pub(super) fn insert(&mut self, selector: &Selector, thing: T) {
        // the label with the fewest things under it narrows a search most
        let crowd = |label: &&(Name, Name)| self.by_label.get(*label).map_or(0, BTreeSet::len);
        if let Some(label) = selector.labels.iter().min_by_key(crowd) {
            self.by_label.entry(label.clone()).or_default().insert(thing);
        } else if let Some(one_of) = selector.expressions.iter().find(|e| e.operator == Operator::In) {
            for value in &one_of.values {
                self.by_label.entry((one_of.key.clone(), value.clone())).or_default().insert(thing.clone());
            }
        } else if let Some(exists) = selector.expressions.iter().find(|e| e.operator == Operator::Exists) {
            self.by_key.entry(exists.key.clone()).or_default().insert(thing);
        } else {
            self.others.insert(thing);
        }
    }

    pub(super) fn remove(&mut self, selector: &Selector, thing: &T) {
        for label in &selector.labels {
            remove(&mut self.by_label, label, thing);
        }
        for expression in &selector.expressions {
            remove(&mut self.by_key, &expression.key, thing);
            for value in &expression.values {
                remove(&mut self.by_label, &(expression.key.clone(), value.clone()), thing);
            }
        }
        self.others.remove(thing);
    }

    /// All things whose selectors may match, each once.
    pub(super) fn candidates<'a>(&'a self, labels: &'a Labels) -> impl Iterator<Item = &'a T> {
        let by_label = labels.iter().filter_map(|label| self.by_label.get(label));
        let by_key = labels.iter().filter_map(|(key, _)| self.by_key.get(key));
        by_label.chain(by_key).flatten().chain(&self.others)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_label.is_empty() && self.by_key.is_empty() && self.others.is_empty()
    }
}

fn remove<K: std::hash::Hash + Eq, T: Ord>(index: &mut HashMap<K, BTreeSet<T>>, key: &K, thing: &T) {
    if let Some(things) = index.get_mut(key) {
        things.remove(thing);
        if things.is_empty() {
            index.remove(key);
        }
    }
}
