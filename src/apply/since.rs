//! Since when something is so.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

/// What is so now, each with the moment in which it was seen first.
pub(crate) struct Since<T> {
    seen: BTreeMap<T, Instant>,
    /// After this long it counts.
    after: Duration,
}

impl<T: Clone + Ord> Since<T> {
    pub(crate) fn new(after: Duration) -> Self {
        Self { seen: BTreeMap::new(), after }
    }

    /// Notes what is so now, and forgets what is not. Returns when the next of it counts.
    pub(crate) fn note(&mut self, all: BTreeSet<T>, now: Instant) -> Option<Instant> {
        self.seen.retain(|one, _| all.contains(one));
        for one in all {
            self.seen.entry(one).or_insert(now);
        }
        self.seen.values().map(|at| *at + self.after).filter(|due| *due > now).min()
    }

    /// What counts.
    pub(crate) fn lasting(&self, now: Instant) -> impl Iterator<Item = T> {
        self.seen.iter().filter(move |(_, at)| **at + self.after <= now).map(|(one, _)| one.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_and_goes_does_not_count() {
        let mut since = Since::new(Duration::from_secs(5));
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut noted = |all: &[&'static str], seconds| {
            let due = since.note(all.iter().copied().collect(), at(seconds));
            let lasting: Vec<&str> = since.lasting(at(seconds)).collect();
            (due.map(|due| due.duration_since(began).as_secs()), lasting)
        };
        assert_eq!(noted(&["a"], 0), (Some(5), vec![]));
        assert_eq!(noted(&["a", "b"], 3), (Some(5), vec![]));
        assert_eq!(noted(&["a", "b"], 5), (Some(8), vec!["a"]));
        assert_eq!(noted(&["b"], 6), (Some(8), vec![]));
        assert_eq!(noted(&["a", "b"], 8), (Some(13), vec!["b"]));
        assert_eq!(noted(&[], 20), (None, vec![]));
    }
}
