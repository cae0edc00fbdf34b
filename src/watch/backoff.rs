//! Pauses between attempts: doubled each time, and random, so that clients do not retry in step.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
/// Short enough that everything works again five seconds after the API server does.
const LONGEST: Duration = Duration::from_secs(3);
/// After so many failures pauses do not grow any more.
const DOUBLINGS: u32 = 5;

#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Whether pauses do not grow any more.
    pub(crate) fn is_long(&self) -> bool {
        self.failures > DOUBLINGS
    }

    /// The next pause: 100 ms, 200 ms … 3 s, of which half is random.
    pub(crate) fn next(&mut self) -> Duration {
        let pause = FIRST.saturating_mul(1 << self.failures.min(DOUBLINGS)).min(LONGEST);
        self.failures += 1;
        between(pause / 2, pause)
    }
}

/// A random duration from `low` to `high`.
pub(crate) fn between(low: Duration, high: Duration) -> Duration {
    low + high.saturating_sub(low).mul_f64(fastrand::f64())
}
