//! The numbers that pods have for a port name. Rules open only the most common ones: whoever has pods can give their
//! ports any number, and each is an ACL more.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// How many pods have each.
    counts: BTreeMap<u16, u32>,
    ranked: BTreeSet<(Reverse<u32>, u16)>,
}

impl Numbers {
    pub(super) fn add(&mut self, number: u16) {
        let count = self.counts.entry(number).or_default();
        self.ranked.remove(&(Reverse(*count), number));
        *count += 1;
        self.ranked.insert((Reverse(*count), number));
    }

    pub(super) fn remove(&mut self, number: u16) {
        let Some(count) = self.counts.get_mut(&number) else { return };
        self.ranked.remove(&(Reverse(*count), number));
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&number);
        } else {
            self.ranked.insert((Reverse(*count), number));
        }
    }

    pub(super) fn len(&self) -> usize {
        self.counts.len()
    }

    /// The numbers of the most pods, and of those the lowest.
    pub(super) fn most_common(&self, most: usize) -> impl Iterator<Item = u16> {
        self.ranked.iter().take(most).map(|(_, number)| *number)
    }

    /// Whether there is room for a number.
    pub(super) fn is_among(&self, number: u16, most: usize) -> bool {
        self.len() <= most || self.most_common(most).any(|other| other == number)
    }

    /// What rules can depend on that use so many of them.
    pub(super) fn used(&self, most: usize) -> Used {
        Used { common: self.most_common(most).collect(), all: self.len() }
    }
}

/// The numbers that rules use, the most common ones first, and how many there are in all.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    common: Vec<u16>,
    all: usize,
}

impl Used {
    /// The numbers that the other one does not have.
    pub(super) fn beyond(&self, other: &Self) -> impl Iterator<Item = u16> {
        self.common.iter().copied().filter(|number| !other.common.contains(number))
    }

    /// Whether a rule that uses so many of them sees a difference.
    pub(super) fn differs(&self, other: &Self, most: usize) -> bool {
        let first = |used: &Self| used.common.iter().take(most).copied().collect::<BTreeSet<_>>();
        (self.all > most) != (other.all > most) || first(self) != first(other)
    }

    /// Numbers that rules use in one and not in the other.
    pub(super) fn is_other_than(&self, other: &Self) -> bool {
        self.beyond(other).chain(other.beyond(self)).next().is_some()
    }

    /// The numbers that only one of both has, if others than those that came or went may be among them.
    pub(super) fn displaced(&self, other: &Self) -> BTreeSet<u16> {
        if [self, other].iter().all(|used| used.common.len() == used.all) {
            return BTreeSet::new();
        }
        let numbers = |used: &Self| used.common.iter().copied().collect::<BTreeSet<_>>();
        numbers(self).symmetric_difference(&numbers(other)).copied().collect()
    }
}
