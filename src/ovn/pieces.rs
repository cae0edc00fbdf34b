//! Sorted items in pieces that versions of a set share: a change copies the pieces that it is about, not the set.
//!
//! ```text
//!  version 1   [a b c] [d e f] [g h i]
//!                 │               │
//!  version 2      └──── [d f] ────┘        e was removed
//! ```

use std::iter::FusedIterator;
use std::slice::Iter;
use std::sync::Arc;

/// Sorted items without duplicates. Equal sets may be divided differently.
#[derive(Clone)]
pub(crate) struct Pieces<T> {
    len: usize,
    /// None is empty.
    pieces: Vec<Arc<[T]>>,
}

impl<T: Ord + Clone> Pieces<T> {
    /// Items of a new piece. A piece that grows has fewer than twice as many.
    const ITEMS: usize = 64;

    /// The items must be sorted and without duplicates.
    pub(crate) fn of_sorted(items: &[T]) -> Self {
        Pieces { len: items.len(), pieces: items.chunks(Self::ITEMS).map(Arc::from).collect() }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn contains(&self, item: &T) -> bool {
        self.place(item).is_some_and(|piece| piece.binary_search(item).is_ok())
    }

    /// The piece in which `item` is, if it is in one.
    fn place(&self, item: &T) -> Option<&Arc<[T]>> {
        let after = self.pieces.partition_point(|piece| piece.first().is_some_and(|first| first <= item));
        self.pieces.get(after.checked_sub(1)?)
    }

    pub(crate) fn items(&self) -> Items<'_, T> {
        Items { here: [].iter(), later: self.pieces.iter(), left: self.len }
    }

    pub(crate) fn slices(&self) -> impl Iterator<Item = &[T]> {
        self.pieces.iter().map(|piece| &**piece)
    }

    /// The pieces that `other` does not share.
    pub(crate) fn unshared<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a [T]> {
        let is_shared = move |piece: &Arc<[T]>| {
            let there = piece.first().and_then(|first| other.place(first));
            there.is_some_and(|there| Arc::ptr_eq(there, piece))
        };
        self.pieces.iter().filter(move |piece| !is_shared(piece)).map(|piece| &**piece)
    }

    /// The symmetric difference with `change`, which is sorted and without duplicates.
    pub(crate) fn toggled(&self, change: &[T]) -> Self {
        let mut out = Pieces { len: 0, pieces: Vec::with_capacity(self.pieces.len() + 1) };
        let mut rest = change;
        for (at, piece) in self.pieces.iter().enumerate() {
            let next = self.pieces.get(at + 1).and_then(|next| next.first());
            let here = next.map_or(rest.len(), |next| rest.partition_point(|item| item < next));
            let (here, later) = rest.split_at(here);
            rest = later;
            if here.is_empty() {
                out.len += piece.len();
                out.pieces.push(Arc::clone(piece));
            } else {
                out.append(toggled(piece, here));
            }
        }
        if self.pieces.is_empty() { Self::of_sorted(change) } else { out }
    }

    /// Adds items that follow all others: to the last piece if both are small, so that pieces do not become many and tiny.
    fn append(&mut self, mut items: Vec<T>) {
        self.len += items.len();
        if let Some(last) = self.pieces.pop_if(|last| last.len() + items.len() <= Self::ITEMS) {
            items.splice(0..0, last.iter().cloned());
        }
        if items.len() < 2 * Self::ITEMS {
            self.pieces.extend((!items.is_empty()).then(|| Arc::from(items)));
        } else {
            self.pieces.extend(items.chunks(Self::ITEMS).map(Arc::from));
        }
    }
}

/// The symmetric difference of two sorted slices.
pub(crate) fn toggled<T: Ord + Clone>(old: &[T], change: &[T]) -> Vec<T> {
    let mut out = Vec::with_capacity(old.len() + change.len());
    let (mut a, mut b) = (old.iter().peekable(), change.iter().peekable());
    loop {
        match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x == y => {
                a.next();
                b.next();
            }
            (Some(x), Some(y)) if x < y => out.extend(a.next().cloned()),
            (Some(_), None) => out.extend(a.next().cloned()),
            (_, Some(_)) => out.extend(b.next().cloned()),
            (None, None) => return out,
        }
    }
}

impl<T: Ord + Clone> PartialEq for Pieces<T> {
    fn eq(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.unshared(other).flatten(), other.unshared(self).flatten());
        self.len == other.len && mine.eq(theirs)
    }
}
impl<T: Ord + Clone> Eq for Pieces<T> {}

/// The items of a set, sorted.
pub struct Items<'a, T> {
    here: Iter<'a, T>,
    later: Iter<'a, Arc<[T]>>,
    left: usize,
}

impl<'a, T> Items<'a, T> {
    pub(crate) fn of(slice: &'a [T]) -> Self {
        Items { here: slice.iter(), later: [].iter(), left: slice.len() }
    }
}

impl<T> Clone for Items<'_, T> {
    fn clone(&self) -> Self {
        Items { here: self.here.clone(), later: self.later.clone(), left: self.left }
    }
}

impl<'a, T> Iterator for Items<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        loop {
            if let Some(item) = self.here.next() {
                self.left -= 1;
                return Some(item);
            }
            self.here = self.later.next()?.iter();
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}
impl<T> ExactSizeIterator for Items<'_, T> {}
impl<T> FusedIterator for Items<'_, T> {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn copied(old: &Pieces<u16>, new: &Pieces<u16>) -> usize {
        new.unshared(old).map(<[u16]>::len).sum()
    }

    #[test]
    fn a_change_of_one_item_copies_one_piece() {
        let all: Vec<u16> = (0..10_000).map(|n| n * 2).collect();
        let old = Pieces::of_sorted(&all);
        for item in [0, 1, 4_000, 4_001, 19_998, 19_999] {
            let new = old.toggled(&[item]);
            assert!(copied(&old, &new) <= 2 * Pieces::<u16>::ITEMS, "{item}");
            assert_eq!(new.contains(&item), !old.contains(&item), "{item}");
            assert!(new != old && new.toggled(&[item]) == old, "{item}");
        }
    }

    proptest! {
        /// Whatever is added and removed: the same items as in a plain set, in pieces that are neither empty nor large.
        #[test]
        fn pieces_hold_what_a_plain_set_holds(
            first in prop::collection::btree_set(0_u16..2_000, 0..900),
            changes in prop::collection::vec(prop::collection::btree_set(0_u16..2_000, 0..200), 0..12),
        ) {
            let mut plain = first;
            let mut set = Pieces::of_sorted(&plain.iter().copied().collect::<Vec<_>>());
            for change in changes {
                let old = set.clone();
                set = set.toggled(&change.iter().copied().collect::<Vec<_>>());
                let is: BTreeSet<u16> = plain.symmetric_difference(&change).copied().collect();
                prop_assert!(set.items().eq(&is) && set.len() == is.len() && set.items().len() == is.len());
                prop_assert!((0..2_000).all(|item| set.contains(&item) == is.contains(&item)));
                let (only_old, only_new): (BTreeSet<u16>, BTreeSet<u16>) =
                    (old.unshared(&set).flatten().copied().collect(), set.unshared(&old).flatten().copied().collect());
                prop_assert!(only_old.difference(&only_new).eq(plain.difference(&is)));
                prop_assert_eq!(set == old, change.is_empty());
                prop_assert!(set == Pieces::of_sorted(&is.iter().copied().collect::<Vec<_>>()));
                let most = 2 * Pieces::<u16>::ITEMS;
                prop_assert!(set.pieces.iter().all(|piece| !piece.is_empty() && piece.len() < most));
                plain = is;
            }
        }
    }
}
