//! How the election timer of a cluster gets the value that is configured. Only the leader changes it, and at most doubles it at a time.

use crate::cluster_status::ClusterStatus;

/// What is to be done about the timer, as far as one member knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerStep {
    Right,
    /// The leader's task, and this member is not the leader.
    NotOurs,
    /// The step before is not done yet.
    UnderWay,
    /// To so many milliseconds next.
    Set(u64),
}

impl ClusterStatus {
    /// The next step to a timer of `wanted` milliseconds.
    pub fn timer_step(&self, wanted: u64) -> TimerStep {
        match self.election_timer_ms {
            _ if self.timer_changes => TimerStep::UnderWay,
            now if now == wanted => TimerStep::Right,
            // it is not known
            0 => TimerStep::NotOurs,
            now if self.is_leader() && self.is_member() => TimerStep::Set(wanted.min(now.saturating_mul(2))),
            _ => TimerStep::NotOurs,
        }
    }
}
