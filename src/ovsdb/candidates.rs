//! Finds a member to stay with. Members are asked side by side: one that does not answer holds up nobody.
//!
//! ```text
//!  member 1  ── connect ── _Server? ─ ─ ─ ─ ─ ─ ─ ─ ─    no answer
//!  member 2      └250 ms── connect ── _Server? ── not the leader, again in a second
//!  member 3                                      └ connect ── _Server? ── good: the others are let go
//! ```

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::client::{Shared, State};
use crate::conn::STAGGER;
use crate::fault::Fault;
use crate::remote::Remote;
use crate::session::{self, Session};

/// A member that was no good is asked again after this, however often: it may be elected at any time.
const AGAIN: Duration = Duration::from_secs(1);
/// One whose sessions end as soon as they are live may send all its rows each time: it is left alone for longer and longer.
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// A session that lived this long was not a failed attempt.
const PROVEN: Duration = Duration::from_secs(1);

pub(crate) struct Candidates(Vec<Candidate>);

struct Candidate {
    remote: Remote,
    /// When it may be asked.
    due: Instant,
    /// It is being asked.
    asked: bool,
    /// How long to wait should its next session end at once.
    wait: Duration,
    /// What it was not good for, last time. Not to be told again.
    fault: String,
}

type Answer = (usize, Result<Session, Fault>);

impl Candidates {
    pub(crate) fn new(remotes: &[Remote]) -> Self {
        let candidate = |remote: &Remote| Candidate {
            remote: remote.clone(),
            due: Instant::now(),
            asked: false,
            wait: AGAIN,
            fault: String::new(),
        };
        Self(remotes.iter().map(candidate).collect())
    }

    /// The first that is good, and its number. Those that were asked meanwhile are let go.
    pub(crate) async fn find(&mut self, shared: &Arc<Shared>) -> (usize, Session) {
        let mut asked: JoinSet<Answer> = JoinSet::new();
        let mut next = Instant::now();
        loop {
            let candidate = self.next();
            let at = candidate.map(|at| self.0.get(at).map_or(next, |candidate| candidate.due.max(next)));
            tokio::select! {
                Some(answer) = asked.join_next() => {
                    next = Instant::now();
                    match answer {
                        Ok((at, Ok(session))) => {
                            self.let_go();
                            return (at, session);
                        }
                        Ok((at, Err(fault))) => self.refused(shared, at, &fault),
                        // which one it was is not known
                        Err(_) => {
                            asked.abort_all();
                            self.let_go();
                            next += AGAIN;
                        }
                    }
                }
                () = sleep_until(at.unwrap_or(next)), if at.is_some() => {
                    next = Instant::now() + STAGGER;
                    if let Some(at) = candidate {
                        self.ask(shared, at, &mut asked);
                    }
                }
                // there is none
                else => std::future::pending().await,
            }
        }
    }

    /// Whom to ask next: whoever is due first, one of several by chance.
    fn next(&self) -> Option<usize> {
        let (random, now) = (RandomState::new(), Instant::now());
        let free = self.0.iter().enumerate().filter(|(_, candidate)| !candidate.asked);
        free.min_by_key(|(at, candidate)| (candidate.due.max(now), random.hash_one(at))).map(|(at, _)| at)
    }

    fn ask(&mut self, shared: &Arc<Shared>, at: usize, asked: &mut JoinSet<Answer>) {
        let Some(candidate) = self.0.get_mut(at) else { return };
        candidate.asked = true;
        let (remote, shared) = (candidate.remote.clone(), Arc::clone(shared));
        shared.state.send_replace(State::Connecting { remote: remote.clone() });
        asked.spawn(async move { (at, session::greet(&shared, remote).await) });
    }

    fn let_go(&mut self) {
        self.0.iter_mut().for_each(|candidate| candidate.asked = false);
    }

    fn refused(&mut self, shared: &Shared, at: usize, fault: &Fault) {
        let Some(candidate) = self.0.get_mut(at) else { return };
        (candidate.asked, candidate.due) = (false, Instant::now() + AGAIN);
        let (remote, said) = (&candidate.remote, fault.to_string());
        let database = shared.options.database.name;
        if said == candidate.fault {
            tracing::debug!(database, %remote, error = %said, "no database session");
        } else {
            tracing::warn!(database, %remote, error = %said, "no database session; trying again every second");
        }
        shared.state.send_replace(State::Disconnected { error: format!("{remote}: {said}") });
        candidate.fault = said;
    }

    /// A session that was found ended, after having been live for so long.
    pub(crate) fn ended(&mut self, shared: &Shared, at: usize, fault: &Fault, lived: Duration) {
        let Some(candidate) = self.0.get_mut(at) else { return };
        candidate.fault.clear();
        if lived > PROVEN {
            (candidate.due, candidate.wait) = (Instant::now(), AGAIN);
        } else {
            candidate.due = Instant::now() + candidate.wait;
            candidate.wait = LONGEST_WAIT.min(candidate.wait * 2);
        }
        let remote = &candidate.remote;
        tracing::warn!(database = shared.options.database.name, %remote, error = %fault, "database session ended");
    }
}
