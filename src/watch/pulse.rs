//! Whether a runtime makes progress, as another thread sees it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::time::sleep;

const BEAT: Duration = Duration::from_millis(500);
/// As in `/healthz`: a process that has done nothing for so long hangs. The first plan of a large cluster takes seconds.
pub(crate) const HANGS_AFTER: Duration = Duration::from_secs(if cfg!(test) { 6 } else { 60 });

#[derive(Debug)]
pub(crate) struct Pulse {
    start: Instant,
    /// Milliseconds from the start to the last beat.
    last: Arc<AtomicU64>,
}

impl Pulse {
    /// Of the runtime that calls this.
    pub(crate) fn start() -> Self {
        let pulse = Self { start: Instant::now(), last: Arc::default() };
        tokio::spawn(beat(pulse.start, Arc::downgrade(&pulse.last)));
        pulse
    }

    /// Whether the runtime has done anything lately.
    pub(crate) fn is_beating(&self) -> bool {
        self.start.elapsed().saturating_sub(Duration::from_millis(self.last.load(Ordering::Relaxed))) <= HANGS_AFTER
    }
}

async fn beat(start: Instant, last: Weak<AtomicU64>) {
    while let Some(last) = last.upgrade() {
        last.store(u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        drop(last);
        sleep(BEAT).await;
    }
}
