//! Pauses after failures in a row: nothing is tried meanwhile, and each is twice as long as the one before.

use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
    until: Option<Instant>,
}

impl Backoff {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first, until: None }
    }

    /// Notes a failure; returns how long to pause.
    pub(crate) fn failed(&mut self, now: Instant) -> Duration {
        let pause = self.next;
        (self.until, self.next) = (Some(now + pause), self.longest.min(pause * 2));
        pause
    }

    pub(crate) fn succeeded(&mut self) {
        (self.until, self.next) = (None, self.first);
    }

    /// The end of the last pause since something succeeded.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// How long the pause lasts still.
    pub(crate) fn rest(&self, now: Instant) -> Option<Duration> {
        self.until.filter(|until| *until > now).map(|until| until - now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end_with_success() {
        let first = Duration::from_secs(1);
        let (mut failures, mut now) = (Backoff::new(first, Duration::from_secs(32)), Instant::now());
        let mut pauses = Vec::new();
        for _ in 0..40 {
            assert_eq!(failures.rest(now), None);
            let pause = failures.failed(now);
            assert_eq!(failures.rest(now), Some(pause), "a change of the database starts no attempt");
            now += pause;
            pauses.push(pause.as_secs());
        }
        assert_eq!(pauses[..7], [1, 2, 4, 8, 16, 32, 32]);
        assert_eq!(pauses.iter().max(), Some(&32));
        failures.succeeded();
        assert_eq!((failures.rest(now), failures.failed(now)), (None, first));
    }
}
