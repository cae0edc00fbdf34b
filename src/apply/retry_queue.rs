//! Keys that wait: for a row of another key, or for a retry after a failure.
//!
//! Each key has at most one deadline for each cause. So its retries do not add up, however often it fails or is planned
//! in between.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use ovnkube_plan::Key;
use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);
/// Least time between two tries: an object that changes all the time costs at most five requests a second.
const APART: Duration = Duration::from_millis(200);

/// What a key waits for. Failures of each cause are counted separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Rows,
    Patch,
    /// Nothing has failed; the key is only checked.
    Recheck,
}

/// Keys and when to try them again; each failure in a row doubles the wait.
#[derive(Debug, Default)]
pub(crate) struct RetryQueue {
    /// Each key once, at its earliest deadline.
    next: BTreeSet<(Instant, Key)>,
    keys: HashMap<Key, Retries>,
    /// Keys whose rows the database has refused, until it accepts them.
    refused: BTreeSet<Key>,
}

#[derive(Debug, Default)]
struct Retries {
    causes: [Waiting; 3],
}

#[derive(Debug, Default)]
struct Waiting {
    failures: u32,
    until: Option<Instant>,
    /// Before this time, not even a change makes the key try again.
    held_until: Option<Instant>,
}

impl Retries {
    fn earliest(&self) -> Option<Instant> {
        self.causes.iter().filter_map(|waiting| waiting.until).min()
    }

    fn is_over(&self) -> bool {
        self.causes.iter().all(|waiting| waiting.until.is_none() && waiting.failures == 0)
    }
}

impl RetryQueue {
    /// Delays a key after a failure, by at least `at_least`.
    pub(crate) fn add_rate_limited(&mut self, key: Key, cause: Cause, now: Instant, at_least: Duration) {
        self.change(key, |retries| {
            let waiting = &mut retries.causes[cause as usize];
            let wait = FIRST.saturating_mul(1 << waiting.failures.min(10)).min(LONGEST).max(at_least);
            waiting.failures = waiting.failures.saturating_add(1);
            waiting.until = Some(now + wait);
        });
    }

    /// Delays a key whose rows the database has refused. Not even a change makes it try again at once.
    pub(crate) fn add_refused(&mut self, key: Key, now: Instant) {
        self.add_rate_limited(key.clone(), Cause::Rows, now, APART);
        self.refused.insert(key.clone());
        self.change(key, |retries| retries.causes[Cause::Rows as usize].held_until = Some(now + APART));
    }

    pub(crate) fn refused(&self) -> impl Iterator<Item = &Key> {
        self.refused.iter()
    }

    /// Schedules a check of a key that has not failed; an earlier check stays.
    pub(crate) fn add_after(&mut self, key: Key, at: Instant) {
        self.change(key, |retries| {
            let until = &mut retries.causes[Cause::Recheck as usize].until;
            *until = Some(until.map_or(at, |earlier| earlier.min(at)));
        });
    }

    /// Delays a key that changed right after its rows were refused. Returns whether it did.
    pub(crate) fn hold_back(&mut self, key: &Key, now: Instant) -> bool {
        let rests = self.keys.get(key).and_then(|retries| retries.causes[Cause::Rows as usize].held_until);
        let Some(rests) = rests.filter(|until| *until > now) else { return false };
        self.change(key.clone(), |retries| retries.causes[Cause::Rows as usize].until = Some(rests));
        true
    }

    /// Notes a success: the next failure starts with the shortest wait.
    pub(crate) fn forget(&mut self, key: &Key, cause: Cause) {
        if cause == Cause::Rows {
            self.refused.remove(key);
        }
        self.clear(key, &[cause]);
    }

    /// Notes that nothing is to be patched: neither a retry nor a check is needed.
    pub(crate) fn forget_patch(&mut self, key: &Key) {
        self.clear(key, &[Cause::Patch, Cause::Recheck]);
    }

    fn clear(&mut self, key: &Key, causes: &[Cause]) {
        if self.keys.contains_key(key) {
            let clear = |retries: &mut Retries| {
                for cause in causes {
                    retries.causes[*cause as usize] = Waiting::default();
                }
            };
            self.change(key.clone(), clear);
        }
    }

    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.next.first().map(|(at, _)| *at)
    }

    /// Takes out the keys that have waited long enough, with what for: their patch before a check, a check before their rows.
    pub(crate) fn take_ready(&mut self, now: Instant) -> Vec<(Key, Cause)> {
        let mut ready = Vec::new();
        while let Some((_, key)) = self.next.first().filter(|(at, _)| *at <= now).cloned() {
            let mut about = Cause::Rows;
            self.change(key.clone(), |retries| {
                for cause in [Cause::Rows, Cause::Recheck, Cause::Patch] {
                    let waiting = &mut retries.causes[cause as usize];
                    if waiting.until.take_if(|until| *until <= now).is_some() {
                        about = cause;
                    }
                }
            });
            ready.push((key, about));
        }
        ready
    }

    /// Changes the state of a key and its place in `next`.
    fn change(&mut self, key: Key, change: impl FnOnce(&mut Retries)) {
        let retries = self.keys.entry(key.clone()).or_default();
        let before = retries.earliest();
        change(retries);
        let (after, is_over) = (retries.earliest(), retries.is_over());
        if is_over {
            self.keys.remove(&key);
        }
        if before != after {
            if let Some(before) = before {
                self.next.remove(&(before, key.clone()));
            }
            self.next.extend(after.map(|after| (after, key)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Duration = Duration::ZERO;

    fn key() -> Key {
        Key::Namespaces("a".into())
    }

    #[tokio::test(start_paused = true)]
    async fn waits_double_and_start_over() {
        let mut queue = RetryQueue::default();
        let now = Instant::now();
        queue.add_rate_limited(key(), Cause::Rows, now, NONE);
        assert!(queue.take_ready(now).is_empty());
        assert_eq!(queue.take_ready(now + FIRST), [(key(), Cause::Rows)]);
        queue.add_rate_limited(key(), Cause::Rows, now, NONE);
        assert_eq!(queue.next_wake(), Some(now + FIRST * 2));
        queue.take_ready(now + FIRST * 2);
        for _ in 0..50 {
            queue.add_rate_limited(key(), Cause::Rows, now, NONE);
        }
        assert_eq!(queue.next_wake(), Some(now + LONGEST));
        queue.forget(&key(), Cause::Rows);
        assert!(queue.keys.is_empty() && queue.next.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failing_key_that_changes_has_one_deadline() {
        let mut queue = RetryQueue::default();
        let (start, mut tries) = (Instant::now(), 0);
        let hour = start + Duration::from_secs(3600);
        let mut change = start;
        while change < hour {
            // whichever comes first: the retry, or another change
            let at = queue.next_wake().map_or(change, |retry| retry.min(change));
            if at == change {
                change += Duration::from_secs(10);
            }
            queue.take_ready(at);
            queue.add_rate_limited(key(), Cause::Rows, at, NONE);
            tries += 1;
            assert!(queue.next.len() <= 1);
        }
        assert!(tries <= 360 + 20, "{tries} tries in an hour");
    }

    #[tokio::test(start_paused = true)]
    async fn successful_rows_do_not_reset_the_backoff_of_a_patch() {
        let mut queue = RetryQueue::default();
        let now = Instant::now();
        for failures in 1..=4 {
            queue.add_rate_limited(key(), Cause::Patch, now, NONE);
            queue.add_rate_limited(key(), Cause::Rows, now, NONE);
            queue.forget(&key(), Cause::Rows);
            assert_eq!(queue.next_wake(), Some(now + FIRST * (1 << (failures - 1))));
        }
        assert_eq!(queue.take_ready(now + LONGEST), [(key(), Cause::Patch)]);
        queue.forget(&key(), Cause::Patch);
        assert!(queue.keys.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_servers_retry_after_is_used() {
        let mut queue = RetryQueue::default();
        let now = Instant::now();
        queue.add_rate_limited(key(), Cause::Patch, now, Duration::from_secs(7));
        assert_eq!(queue.next_wake(), Some(now + Duration::from_secs(7)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_changed_key_is_tried_soon_but_not_at_once_again() {
        let mut queue = RetryQueue::default();
        let now = Instant::now();
        assert!(!queue.hold_back(&key(), now));
        for _ in 0..8 {
            queue.add_refused(key(), now);
        }
        assert!(queue.hold_back(&key(), now + APART / 2));
        assert_eq!(queue.next_wake(), Some(now + APART));
        assert_eq!(queue.take_ready(now + APART), [(key(), Cause::Rows)]);
        assert!(!queue.hold_back(&key(), now + APART));
    }

    #[tokio::test(start_paused = true)]
    async fn the_earlier_check_is_used() {
        let mut queue = RetryQueue::default();
        let now = Instant::now();
        for seconds in [3, 5, 4] {
            queue.add_after(key(), now + Duration::from_secs(seconds));
        }
        assert_eq!(queue.take_ready(now + Duration::from_secs(3)), [(key(), Cause::Recheck)]);
        assert!(queue.keys.is_empty());
    }
}
