//! What the policies of a namespace need together. The oldest ones have room, as far as it lasts, whatever came first.

use std::collections::BTreeMap;

use crate::network_policy::{MOST_NUMBERS, OF_NAMESPACE};
use crate::{BadField, Name, Need, NetworkPolicy, ObjectKey};

/// When a policy was created, and what it needs.
pub(super) type Claim = (i64, Need);

/// A policy's place in the order in which room is given: its age and its name.
type Place = (i64, Name);

#[derive(Debug, Default)]
pub(super) struct Room(BTreeMap<Name, OfNamespace>);

/// A change costs no look at all policies, of which there may be any number.
#[derive(Debug, Default)]
struct OfNamespace {
    needs: BTreeMap<Place, Need>,
    /// The oldest policy for which there is no room; none for all after it either.
    end: Option<Place>,
    /// What those before it need.
    used: Need,
}

/// What becomes of the others if one policy of a namespace changes.
#[derive(Debug)]
pub(super) struct Shift {
    /// Those that get room, or lose it.
    pub(super) others: Vec<Name>,
    /// Whether there is room for another number of numbers of each named port.
    pub(super) has_other_numbers: bool,
}

impl OfNamespace {
    fn has_room(&self, place: &Place) -> bool {
        self.end.as_ref().is_none_or(|end| place < end)
    }

    /// For so many numbers of each named port: a power of two, so that it seldom changes.
    fn most_numbers(&self) -> usize {
        1_usize << self.used.most_numbers(OF_NAMESPACE).ilog2()
    }

    fn insert(&mut self, place: Place, need: Need) {
        if self.has_room(&place) {
            self.used = self.used + need;
        }
        self.needs.insert(place, need);
    }

    fn remove(&mut self, place: &Place) {
        let has_room = self.has_room(place);
        let Some(need) = self.needs.remove(place) else { return };
        if has_room {
            self.used = self.used - need;
        } else if self.end.as_ref() == Some(place) {
            self.end = self.needs.range::<Place, _>(place..).next().map(|(next, _)| next.clone());
        }
    }

    /// Moves the end to where the room ends.
    fn settle(&mut self) {
        while !self.used.fits(OF_NAMESPACE) {
            let last = match &self.end {
                Some(end) => self.needs.range::<Place, _>(..end).next_back(),
                None => self.needs.last_key_value(),
            };
            let Some((last, need)) = last else { return };
            (self.used, self.end) = (self.used - *need, Some(last.clone()));
        }
        while let Some(end) = &self.end {
            let mut left_out = self.needs.range::<Place, _>(end..);
            let more = left_out.next().map(|(_, need)| self.used + *need).filter(|more| more.fits(OF_NAMESPACE));
            let Some(more) = more else { return };
            (self.used, self.end) = (more, left_out.next().map(|(next, _)| next.clone()));
        }
    }

    /// The policies for which the end makes a difference, whether it is at one place or the other.
    fn between<'a>(&'a self, one: Option<&'a Place>, other: Option<&'a Place>) -> impl Iterator<Item = &'a Name> {
        let is_before = |end: Option<&Place>, place: &Place| end.is_none_or(|end| place < end);
        let first = one.into_iter().chain(other).min().filter(|_| one != other);
        let from_first = first.into_iter().flat_map(move |first| self.needs.range::<Place, _>(first..));
        let differs = move |(place, _): &(&Place, &Need)| is_before(one, place) != is_before(other, place);
        from_first.take_while(differs).map(|((_, name), _)| name)
    }
}

impl Room {
    /// A policy comes, goes, or takes the place of another one of its name.
    pub(super) fn change(&mut self, key: &ObjectKey, had: Option<Claim>, has: Option<Claim>) -> Shift {
        let of_namespace = self.0.entry(key.namespace.clone()).or_default();
        let (end, most_numbers) = (of_namespace.end.clone(), of_namespace.most_numbers());
        if let Some((created, _)) = had {
            of_namespace.remove(&(created, key.name.clone()));
        }
        if let Some((created, need)) = has {
            of_namespace.insert((created, key.name.clone()), need);
        }
        of_namespace.settle();
        let others = of_namespace.between(end.as_ref(), of_namespace.end.as_ref()).filter(|name| **name != key.name);
        let shift =
            Shift { others: others.cloned().collect(), has_other_numbers: of_namespace.most_numbers() != most_numbers };
        if of_namespace.needs.is_empty() {
            self.0.remove(&key.namespace);
        }
        shift
    }

    pub(super) fn most_numbers(&self, namespace: &str) -> usize {
        self.0.get(namespace).map_or(MOST_NUMBERS, OfNamespace::most_numbers)
    }

    /// Whether there is room for a policy that was created then.
    pub(super) fn has_room(&self, key: &ObjectKey, created: i64) -> bool {
        let of_namespace = self.0.get(&key.namespace);
        of_namespace.is_none_or(|of_namespace| of_namespace.has_room(&(created, key.name.clone())))
    }
}

/// The policy as long as there is no room for it: it isolates the pods that it selects, and allows nothing.
pub(super) fn without_rules(key: &ObjectKey, policy: &NetworkPolicy) -> NetworkPolicy {
    let problem = format!(
        "the policies of namespace {} need more than {} prefixes, selectors and ports in ACLs, or more than {} ACLs and address \
         sets, the limit for all together; the oldest policies are used, and this one allows nothing to the pods that it \
         selects; remove policies, or write fewer rules, peers or ports",
        key.namespace, OF_NAMESPACE.entries, OF_NAMESPACE.rows
    );
    NetworkPolicy {
        uid: policy.uid.clone(),
        created: policy.created,
        pods: policy.pods.clone(),
        ingress: policy.ingress.as_ref().map(|_| Vec::new()),
        egress: policy.egress.as_ref().map(|_| Vec::new()),
        stateless: policy.stateless,
        most_numbers: policy.most_numbers,
        need: policy.need,
        bad: std::iter::once(BadField::new("spec", problem)).chain(policy.bad.iter().cloned()).collect(),
    }
}
