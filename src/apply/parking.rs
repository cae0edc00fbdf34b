//! Keys that have to wait: for a row of another key, or for better times after a failure.
//!
//! Each key has at most one time for each cause, so that however often it fails and is looked at in between, its tries
//! do not add up.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use ovnkube_plan::Key;
use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);
/// Between two tries of the same thing: an object that changes all the time costs five requests a second at most.
const APART: Duration = Duration::from_millis(200);

/// What a key waits with. Each fails and recovers for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Rows,
    Patch,
    /// Nothing has failed; it is looked at to be sure.
    Look,
}

/// Keys and when to try them again; each failure in a row doubles the wait.
#[derive(Debug, Default)]
pub(crate) struct Parking {
    /// Each key once, at the earliest of its times.
    next: BTreeSet<(Instant, Key)>,
    parked: HashMap<Key, Parked>,
}

#[derive(Debug, Default)]
struct Parked {
    causes: [Waiting; 3],
}

#[derive(Debug, Default)]
struct Waiting {
    failures: u32,
    until: Option<Instant>,
    /// Not even a change has it tried before this.
    rests: Option<Instant>,
}

impl Parked {
    fn earliest(&self) -> Option<Instant> {
        self.causes.iter().filter_map(|waiting| waiting.until).min()
    }

    fn is_over(&self) -> bool {
        self.causes.iter().all(|waiting| waiting.until.is_none() && waiting.failures == 0)
    }
}

impl Parking {
    /// Puts a key aside after a failure, for `at_least` so long.
    pub(crate) fn park(&mut self, key: Key, cause: Cause, now: Instant, at_least: Duration) {
        self.change(key, |parked| {
            let waiting = &mut parked.causes[cause as usize];
            let wait = FIRST.saturating_mul(1 << waiting.failures.min(10)).min(LONGEST).max(at_least);
            waiting.failures = waiting.failures.saturating_add(1);
            waiting.until = Some(now + wait);
        });
    }

    /// Puts a key aside whose rows the database has refused. Not even a change has them tried again at once.
    pub(crate) fn refuse(&mut self, key: Key, now: Instant) {
        self.park(key.clone(), Cause::Rows, now, APART);
        self.change(key, |parked| parked.causes[Cause::Rows as usize].rests = Some(now + APART));
    }

    /// Has a key looked at again at a certain time, or earlier if that is so already, without a failure.
    pub(crate) fn look_again(&mut self, key: Key, at: Instant) {
        self.change(key, |parked| {
            let until = &mut parked.causes[Cause::Look as usize].until;
            *until = Some(until.map_or(at, |earlier| earlier.min(at)));
        });
    }

    /// Puts a key back whose rows were refused just now: it has changed, so its turn comes soon, but not at once.
    pub(crate) fn rests(&mut self, key: &Key, now: Instant) -> bool {
        let rests = self.parked.get(key).and_then(|parked| parked.causes[Cause::Rows as usize].rests);
        let Some(rests) = rests.filter(|until| *until > now) else { return false };
        self.change(key.clone(), |parked| parked.causes[Cause::Rows as usize].until = Some(rests));
        true
    }

    /// This went through: its next failure starts from the beginning.
    pub(crate) fn forgive(&mut self, key: &Key, cause: Cause) {
        if self.parked.contains_key(key) {
            self.change(key.clone(), |parked| parked.causes[cause as usize] = Waiting::default());
        }
    }

    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.next.first().map(|(at, _)| *at)
    }

    /// The keys whose time has come, and whether that is about their patches.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<(Key, bool)> {
        let mut due = Vec::new();
        while let Some((_, key)) = self.next.first().filter(|(at, _)| *at <= now).cloned() {
            let mut patch = false;
            self.change(key.clone(), |parked| {
                for (cause, waiting) in parked.causes.iter_mut().enumerate() {
                    if waiting.until.take_if(|until| *until <= now).is_some() {
                        patch |= cause != Cause::Rows as usize;
                    }
                }
            });
            due.push((key, patch));
        }
        due
    }

    /// Changes what is known of a key, and its place in the order with it.
    fn change(&mut self, key: Key, change: impl FnOnce(&mut Parked)) {
        let parked = self.parked.entry(key.clone()).or_default();
        let before = parked.earliest();
        change(parked);
        let (after, is_over) = (parked.earliest(), parked.is_over());
        if is_over {
            self.parked.remove(&key);
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
        let mut parking = Parking::default();
        let now = Instant::now();
        parking.park(key(), Cause::Rows, now, NONE);
        assert!(parking.due(now).is_empty());
        assert_eq!(parking.due(now + FIRST), [(key(), false)]);
        parking.park(key(), Cause::Rows, now, NONE);
        assert_eq!(parking.next_wake(), Some(now + FIRST * 2));
        parking.due(now + FIRST * 2);
        for _ in 0..50 {
            parking.park(key(), Cause::Rows, now, NONE);
        }
        assert_eq!(parking.next_wake(), Some(now + LONGEST));
        parking.forgive(&key(), Cause::Rows);
        assert!(parking.parked.is_empty() && parking.next.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failing_key_that_is_touched_has_one_deadline() {
        let mut parking = Parking::default();
        let (start, mut tries) = (Instant::now(), 0);
        let hour = start + Duration::from_secs(3600);
        let mut touched = start;
        while touched < hour {
            // whatever comes first: its turn, or another change
            let at = parking.next_wake().map_or(touched, |turn| turn.min(touched));
            if at == touched {
                touched += Duration::from_secs(10);
            }
            parking.due(at);
            parking.park(key(), Cause::Rows, at, NONE);
            tries += 1;
            assert!(parking.next.len() <= 1);
        }
        assert!(tries <= 360 + 20, "{tries} tries in an hour");
    }

    #[tokio::test(start_paused = true)]
    async fn rows_that_go_through_do_not_forgive_a_patch() {
        let mut parking = Parking::default();
        let now = Instant::now();
        for failures in 1..=4 {
            parking.park(key(), Cause::Patch, now, NONE);
            parking.park(key(), Cause::Rows, now, NONE);
            parking.forgive(&key(), Cause::Rows);
            assert_eq!(parking.next_wake(), Some(now + FIRST * (1 << (failures - 1))));
        }
        assert_eq!(parking.due(now + LONGEST), [(key(), true)]);
        parking.forgive(&key(), Cause::Patch);
        assert!(parking.parked.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_server_asks_for_counts() {
        let mut parking = Parking::default();
        let now = Instant::now();
        parking.park(key(), Cause::Patch, now, Duration::from_secs(7));
        assert_eq!(parking.next_wake(), Some(now + Duration::from_secs(7)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_tried_soon_but_not_at_once_again() {
        let mut parking = Parking::default();
        let now = Instant::now();
        assert!(!parking.rests(&key(), now));
        for _ in 0..8 {
            parking.refuse(key(), now);
        }
        assert!(parking.rests(&key(), now + APART / 2));
        assert_eq!(parking.next_wake(), Some(now + APART));
        assert_eq!(parking.due(now + APART), [(key(), false)]);
        assert!(!parking.rests(&key(), now + APART));
    }

    #[tokio::test(start_paused = true)]
    async fn the_earlier_look_counts() {
        let mut parking = Parking::default();
        let now = Instant::now();
        for seconds in [3, 5, 4] {
            parking.look_again(key(), now + Duration::from_secs(seconds));
        }
        assert_eq!(parking.due(now + Duration::from_secs(3)), [(key(), true)]);
        assert!(parking.parked.is_empty());
    }
}
