//! When the engine looks for rows that no key wants, and how far it has come with that.

use std::time::Duration;

use tokio::time::Instant;

use crate::garbage::Left;

/// The time from a reason to sweep (another program changed our rows, or a sweep failed) to the sweep.
const DELAY: Duration = Duration::from_secs(1);
/// The longest time to the next sweep while sweeps are refused that go alone, or leave ways to other clusters.
const LONGEST: Duration = Duration::from_secs(30);
/// After this many sweeps in a row were refused because of keys in their transaction, the next goes without keys.
const REFUSALS: u32 = 3;
/// After this many more were refused alone, keys wait no longer for one that is to remove what others have put back.
const REFUSED_ALONE: u32 = 3;

/// Sweeps go on for as long as the engine runs. Each stage is reached once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing may be written yet: what the database holds has not been compared with what is wanted.
    Waiting,
    /// The first sweep was planned; it may have failed since.
    Begun,
    /// A sweep succeeded, at least for all that is in use: no leftover row has an address that may be given out.
    Clean,
}

#[derive(Debug)]
pub(crate) struct Sweep {
    stage: Stage,
    /// When the next sweep is due; `None`: nothing requires one.
    due: Option<Instant>,
    /// Sweeps in a row that were refused: because of keys in the same transaction, and then alone.
    refusals: u32,
    /// Sweeps in a row that left ways to other clusters.
    ways_left: u32,
    /// Others have put back what a sweep had removed, and its addresses may be others' by now: keys wait for the next sweep.
    holds_keys: bool,
}

impl Sweep {
    /// The first sweep is due at once.
    pub(crate) fn new(now: Instant) -> Self {
        Self { stage: Stage::Waiting, due: Some(now), refusals: 0, ways_left: 0, holds_keys: false }
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    /// Notes that a sweep is being planned; returns whether it is the first.
    pub(crate) fn begin(&mut self) -> bool {
        self.due = None;
        let is_first = self.stage == Stage::Waiting;
        if is_first {
            self.stage = Stage::Begun;
        }
        is_first
    }

    /// Whether the next sweep goes without keys.
    pub(crate) fn is_alone(&self) -> bool {
        self.refusals >= REFUSALS
    }

    /// A sweep was written, but for what it `left`. The next one goes on with that; ways to other clusters have time until new ones are
    /// written.
    pub(crate) fn went(&mut self, left: Left, now: Instant) {
        if left != Left::InUse {
            // what others have put back since it began is left to the next one
            self.holds_keys &= self.due.is_some();
            (self.stage, self.refusals) = (Stage::Clean, 0);
        }
        match left {
            Left::Nothing => self.ways_left = 0,
            Left::Ways => {
                self.request_after(now, pause(self.ways_left));
                self.ways_left = self.ways_left.saturating_add(1);
            }
            Left::Unused | Left::InUse => self.due = Some(now),
        }
    }

    /// Whether the last sweep left ways to other clusters.
    pub(crate) fn left_ways(&self) -> bool {
        self.ways_left > 0
    }

    /// No ways to other clusters are left to be written: those of before go now, if a sweep left them.
    pub(crate) fn ways_are_written(&mut self, now: Instant) {
        if self.left_ways() {
            (self.ways_left, self.due) = (0, Some(now));
        }
    }

    /// A sweep was not written. `is_claim`: the claim to write was sent in its place, and nothing of it yet.
    pub(crate) fn failed(&mut self, now: Instant, is_claim: bool) {
        if is_claim {
            self.due = Some(now);
        } else {
            self.request(now);
        }
    }

    /// Keys in the same transaction were refused. They wait, and the sweep is tried again before they are due.
    pub(crate) fn keys_were_refused(&mut self, now: Instant) {
        self.refusals += 1;
        self.due = Some(now);
    }

    /// The transaction was refused and the server does not say why: the next sweep goes without keys.
    pub(crate) fn was_refused(&mut self, now: Instant) {
        self.refusals = if self.is_alone() { self.refusals.saturating_add(1) } else { REFUSALS };
        self.holds_keys &= self.refusals < REFUSALS + REFUSED_ALONE;
        self.due = Some(now + self.delay());
    }

    /// From a request to the sweep: longer after each one that was refused alone. Those that left ways to other clusters do not count: keys
    /// may wait for what is requested.
    fn delay(&self) -> Duration {
        pause(self.refusals.saturating_sub(REFUSALS))
    }

    /// Schedules a sweep; several requests within a moment cost one sweep.
    pub(crate) fn request(&mut self, now: Instant) {
        self.request_after(now, self.delay());
    }

    fn request_after(&mut self, now: Instant, pause: Duration) {
        let soon = now + pause;
        self.due = Some(self.due.map_or(soon, |due| due.min(soon)));
    }

    /// Schedules a sweep, for which all keys wait.
    pub(crate) fn request_before_keys(&mut self, now: Instant) {
        self.holds_keys |= !self.is_alone();
        self.request(now);
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.stage != Stage::Waiting
    }

    /// Whether keys may be written without a sweep: one has succeeded, also since others put something back.
    pub(crate) fn is_clean(&self) -> bool {
        self.stage == Stage::Clean && !self.holds_keys
    }
}

/// Twice as long after each sweep in a row that did not remove all.
fn pause(in_vain: u32) -> Duration {
    LONGEST.min(DELAY * (1 << in_vain.min(5)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_before_a_sweep_succeeded() {
        let now = Instant::now();
        let mut sweep = Sweep::new(now);
        assert!(sweep.is_due(now) && !sweep.has_begun());
        assert!(sweep.begin());
        assert!(sweep.has_begun() && !sweep.is_clean() && sweep.due().is_none());
        sweep.request(now);
        assert!(!sweep.is_due(now) && sweep.is_due(now + DELAY));
        assert!(!sweep.begin(), "the second one is not the first");
        sweep.went(Left::Nothing, now);
        assert!(sweep.is_clean());
    }

    /// The rest is asked for at once, and if it fails nobody waits for it.
    #[test]
    fn a_later_sweep_in_parts_stops_no_keys() {
        let now = Instant::now();
        let mut sweep = Sweep::new(now);
        sweep.begin();
        sweep.went(Left::InUse, now);
        assert!(sweep.is_due(now) && !sweep.is_clean(), "the first one does");
        sweep.begin();
        sweep.went(Left::Unused, now);
        assert!(sweep.is_due(now) && sweep.is_clean());
        sweep.begin();
        sweep.was_refused(now);
        assert!(sweep.is_clean());
    }

    #[test]
    fn a_sweep_that_left_ways_goes_on_later() {
        let now = Instant::now();
        let mut sweep = Sweep::new(now);
        sweep.begin();
        sweep.went(Left::Ways, now);
        assert!(sweep.is_clean(), "no key waits for that");
        let mut pauses = Vec::new();
        for _ in 0..6 {
            pauses.push((sweep.due().unwrap() - now).as_secs());
            sweep.begin();
            sweep.went(Left::Ways, now);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30], "a way may be refused again and again");
        sweep.begin();
        sweep.went(Left::Nothing, now);
        assert_eq!(sweep.due(), None);
        sweep.request(now);
        assert_eq!(sweep.due(), Some(now + DELAY));
    }

    #[test]
    fn ways_that_a_sweep_left_go_once_the_new_ones_are_written() {
        let now = Instant::now();
        let mut sweep = Sweep::new(now);
        sweep.begin();
        sweep.went(Left::Nothing, now);
        sweep.ways_are_written(now);
        assert_eq!(sweep.due(), None, "none were left");
        for _ in 0..8 {
            sweep.begin();
            sweep.went(Left::Ways, now);
        }
        assert_eq!(sweep.due(), Some(now + LONGEST));
        sweep.ways_are_written(now);
        assert!(sweep.is_due(now));
        sweep.begin();
        sweep.failed(now, false);
        sweep.ways_are_written(now);
        assert_eq!(sweep.due(), Some(now + DELAY), "it is tried again like others");
    }

    /// New pods wait for such a sweep, so they do not wait for ways that cannot be written for long.
    #[test]
    fn what_others_put_back_goes_soon_also_after_sweeps_that_left_ways() {
        let now = Instant::now();
        let mut sweep = Sweep::new(now);
        for _ in 0..8 {
            sweep.begin();
            sweep.went(Left::Ways, now);
        }
        assert_eq!(sweep.due(), Some(now + LONGEST));
        sweep.request_before_keys(now);
        assert!(!sweep.is_clean());
        assert_eq!(sweep.due(), Some(now + DELAY));
        sweep.begin();
        sweep.failed(now, false);
        assert_eq!(sweep.due(), Some(now + DELAY), "it is tried again soon");
    }

    #[test]
    fn after_refusals_a_sweep_goes_alone() {
        let now = Instant::now();
        let mut sweep = Sweep::new(now);
        for _ in 0..REFUSALS {
            assert!(!sweep.is_alone());
            sweep.begin();
            sweep.keys_were_refused(now);
            assert!(sweep.is_due(now));
        }
        assert!(sweep.is_alone());
        sweep.went(Left::Nothing, now);
        assert!(!sweep.is_alone());
        sweep.was_refused(now);
        assert!(sweep.is_alone());
    }

    /// The server may refuse the removal of one row for as long as somebody's row refers to it.
    #[test]
    fn sweeps_that_are_refused_alone_pause() {
        let mut now = Instant::now();
        let mut sweep = Sweep::new(now);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            sweep.begin();
            sweep.was_refused(now);
            let due = sweep.due().unwrap();
            pauses.push((due - now).as_secs());
            now = due;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30, 30]);
        sweep.begin();
        sweep.went(Left::Nothing, now);
        sweep.request(now);
        assert_eq!(sweep.due(), Some(now + DELAY));
    }

    /// They bring back the rest of a backup while a sweep removes the first part.
    #[test]
    fn what_others_put_back_during_a_sweep_is_awaited_too() {
        let now = Instant::now();
        let mut sweep = Sweep::new(now);
        sweep.begin();
        sweep.went(Left::Nothing, now);
        for _ in 0..2 {
            sweep.request_before_keys(now);
            sweep.begin();
            sweep.request_before_keys(now);
            sweep.went(Left::Nothing, now);
            assert!(!sweep.is_clean() && sweep.is_due(now + DELAY));
            sweep.begin();
            sweep.went(Left::Nothing, now);
            assert!(sweep.is_clean() && sweep.due().is_none());
        }
    }

    /// But not for ever: the server may refuse to remove it.
    #[test]
    fn keys_wait_until_what_others_put_back_is_gone() {
        let now = Instant::now();
        let mut sweep = Sweep::new(now);
        sweep.begin();
        sweep.went(Left::Nothing, now);
        sweep.request_before_keys(now);
        assert!(!sweep.is_clean() && sweep.is_due(now + DELAY));
        sweep.begin();
        sweep.failed(now, false);
        assert!(!sweep.is_clean() && sweep.is_due(now + DELAY), "it is tried again");
        sweep.begin();
        sweep.went(Left::Nothing, now);
        assert!(sweep.is_clean());
        sweep.request_before_keys(now);
        let mut refused = 0;
        while !sweep.is_clean() {
            sweep.was_refused(now);
            refused += 1;
        }
        assert_eq!(refused, REFUSED_ALONE + 1);
        sweep.request_before_keys(now);
        assert!(sweep.is_clean(), "more of it");
    }

    #[test]
    fn the_earlier_reason_is_used() {
        let now = Instant::now();
        let mut sweep = Sweep::new(now);
        sweep.begin();
        sweep.request(now);
        sweep.request(now + DELAY / 2);
        assert_eq!(sweep.due(), Some(now + DELAY));
    }
}
