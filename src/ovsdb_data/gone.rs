//! The rows that were deleted last: their uuids are not used again for a while.

use std::collections::{BTreeSet, VecDeque};

use ovnkube_ovn::Uuid;

/// How many deleted rows are remembered: more than other programs can be behind. Of those that go at once, all are.
const REMEMBERED: usize = 16_384;
/// If this many go at once, memory is given back when they are forgotten.
const MANY: usize = 4 * REMEMBERED;

#[derive(Default)]
pub(crate) struct Gone {
    // half of the uuid, which halves the memory: two rows with the same half cost one of them another uuid, no more
    order: VecDeque<u64>,
    // a hash table would be twice as large: what is removed from it leaves places that are full
    set: BTreeSet<u64>,
    /// How many of them went with the present update or download.
    at_once: usize,
}

impl Gone {
    /// An update or a download begins.
    pub(crate) fn begin(&mut self) {
        self.at_once = 0;
    }

    pub(crate) fn remember(&mut self, uuid: Uuid) {
        if self.has(uuid) {
            return;
        }
        self.at_once += 1;
        // one goes for the new one; a second one, so that what many left becomes less again
        let surplus = (self.order.len() + 1).saturating_sub(REMEMBERED.max(self.at_once));
        for oldest in self.order.drain(..surplus.min(2)) {
            self.set.remove(&oldest);
        }
        self.order.push_back(half(uuid));
        self.set.insert(half(uuid));
        if self.order.capacity() > MANY && self.order.len() <= REMEMBERED {
            self.order.shrink_to(REMEMBERED);
        }
    }

    pub(crate) fn has(&self, uuid: Uuid) -> bool {
        self.set.contains(&half(uuid))
    }
}

fn half(uuid: Uuid) -> u64 {
    let (high, low) = uuid.as_u64_pair();
    high ^ low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: usize) -> Uuid {
        ovnkube_ovn::derived_uuid("Logical_Switch_Port", &number.to_string())
    }

    /// Rows that go one by one, which is all that most clusters ever see.
    #[test]
    fn what_is_remembered_does_not_grow() {
        let mut gone = Gone::default();
        for number in 0..3 * REMEMBERED {
            gone.begin();
            gone.remember(row(number));
        }
        assert_eq!((gone.order.len(), gone.set.len()), (REMEMBERED, REMEMBERED));
        assert!((2 * REMEMBERED..3 * REMEMBERED).all(|number| gone.has(row(number))));
        assert!(!gone.has(row(2 * REMEMBERED - 1)));
        assert_eq!(gone.order.capacity(), REMEMBERED);
    }

    #[test]
    fn what_many_rows_took_is_given_back() {
        const ROWS: usize = 100_000;
        let mut gone = Gone::default();
        (0..ROWS).for_each(|number| gone.remember(row(number)));
        assert!((0..ROWS).all(|number| gone.has(row(number))), "all that go at once");
        for number in ROWS..2 * ROWS {
            gone.begin();
            gone.remember(row(number));
        }
        assert_eq!((gone.order.len(), gone.set.len()), (REMEMBERED, REMEMBERED));
        assert_eq!(gone.order.capacity(), REMEMBERED);
    }
}
