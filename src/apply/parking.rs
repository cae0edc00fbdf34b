//! Keys that have to wait: for a row of another key, or for better times after a failure.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use ovnkube_plan::Key;
use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);

/// Keys and when to try them again; each failure in a row doubles the wait.
#[derive(Debug, Default)]
pub(crate) struct Parking {
    until: BTreeMap<Instant, BTreeSet<Key>>,
    failures: HashMap<Key, u32>,
}

impl Parking {
    /// Puts a key aside after a failure.
    pub(crate) fn park(&mut self, key: Key, now: Instant) {
        let failures = self.failures.entry(key.clone()).or_default();
        let wait = FIRST.saturating_mul(1 << (*failures).min(10)).min(LONGEST);
        *failures += 1;
        self.look_again(key, now + wait);
    }

    /// Has a key looked at again at a certain time, without a failure.
    pub(crate) fn look_again(&mut self, key: Key, at: Instant) {
        self.until.entry(at).or_default().insert(key);
    }

    /// The key went through: its next failure starts from the beginning.
    pub(crate) fn forgive(&mut self, key: &Key) {
        if !self.failures.is_empty() {
            self.failures.remove(key);
        }
    }

    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.until.keys().next().copied()
    }

    /// The keys whose time has come.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<Key> {
        let mut due = Vec::new();
        while let Some(entry) = self.until.first_entry().filter(|e| *e.key() <= now) {
            due.extend(entry.remove());
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_double_and_start_over() {
        let key = Key::Namespaces("a".into());
        let mut parking = Parking::default();
        let now = Instant::now();
        parking.park(key.clone(), now);
        assert!(parking.due(now).is_empty());
        assert_eq!(parking.due(now + FIRST), std::slice::from_ref(&key));
        parking.park(key.clone(), now);
        assert_eq!(parking.next_wake(), Some(now + FIRST * 2));
        parking.due(now + FIRST * 2);
        for _ in 0..20 {
            parking.park(key.clone(), now);
        }
        assert!(parking.until.keys().all(|at| *at <= now + LONGEST));
        parking.forgive(&key);
        assert!(parking.failures.is_empty());
    }
}
