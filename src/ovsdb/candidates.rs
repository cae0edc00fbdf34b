//! Finds a server to stay with. Servers are asked in parallel: one that does not answer delays no other.
//!
//! ```text
//!  server 1  ── connect ── _Server? ─ ─ ─ ─ ─ ─ ─ ─ ─    no answer
//!  server 2      └250 ms── connect ── _Server? ── not the leader: watched for a second, then asked again
//!  server 3                                      └ connect ── _Server? ── good: the others are dropped
//! ```

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::conn::STAGGER;
use crate::fault::Fault;
use crate::remote::Remote;
use crate::session::{self, Session};
use crate::shared::Shared;
use crate::state::{State, Unfit};

/// A server that did not answer, or is of no use, is asked again after this, however often.
const AGAIN: Duration = Duration::from_secs(1);
/// A server whose sessions end as soon as they are live may send all its rows each time: its wait doubles up to this.
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// A session that lived this long was not a failed attempt.
const PROVEN: Duration = Duration::from_secs(1);

/// A leader that has just been elected may not have told yet how far its log is. One that is behind for longer has an old log.
const OLD: Duration = Duration::from_secs(4);

/// Without the entry that it has, which changes.
fn older(seen: u64) -> String {
    format!(
        "the log of the server ends before entry {seen}, which was seen already: an old copy of its file, or of those of most members, \
         was put back; bring back a member that has all entries, or, to go on with what is there, restart ovnkube, northd and \
         ovn-controller"
    )
}

pub(crate) struct Candidates(Vec<Candidate>);

struct Candidate {
    remote: Remote,
    /// When it may be asked.
    due: Instant,
    /// Whether it is being asked.
    asked: bool,
    /// How long to wait if its next session ends at once.
    wait: Duration,
    /// Why it was not good last time: the same reason is not logged again.
    fault: String,
    /// Why, if a person has to do something.
    unfit: Option<Unfit>,
    /// Since when it is behind what was seen.
    behind: Option<Instant>,
}

type Answer = (usize, Result<Session, Fault>);
/// A server that is watched, and why it is not good yet.
type Said = (usize, String);

impl Candidates {
    pub(crate) fn new(remotes: &[Remote]) -> Self {
        let candidate = |remote: &Remote| Candidate {
            remote: remote.clone(),
            due: Instant::now(),
            asked: false,
            wait: AGAIN,
            fault: String::new(),
            unfit: None,
            behind: None,
        };
        Self(remotes.iter().map(candidate).collect())
    }

    /// The first good one: its number and session. Attempts with others are dropped. `except`: one that has a session already.
    pub(crate) async fn find(&mut self, shared: &Arc<Shared>, except: Option<usize>) -> (usize, Session) {
        // an earlier search may have been dropped
        self.let_go(except);
        let mut asked: JoinSet<Answer> = JoinSet::new();
        let (waits, mut waiting) = mpsc::unbounded_channel();
        let mut next = Instant::now();
        loop {
            let candidate = self.next();
            let at = candidate.map(|at| self.0.get(at).map_or(next, |candidate| candidate.due.max(next)));
            tokio::select! {
                biased;
                Some(answer) = asked.join_next() => {
                    next = Instant::now();
                    match answer {
                        Ok((at, Ok(session))) => {
                            self.let_go(None);
                            self.0.iter_mut().for_each(|candidate| (candidate.unfit, candidate.behind) = (None, None));
                            self.name_unfit(shared);
                            return (at, session);
                        }
                        Ok((at, Err(fault))) => self.refused(shared, at, &fault),
                        // it is not known which server this was
                        Err(_) => {
                            asked.abort_all();
                            self.let_go(except);
                            next += AGAIN;
                        }
                    }
                }
                Some((at, said)) = waiting.recv() => {
                    next = Instant::now();
                    self.says(shared, at, said);
                }
                () = sleep_until(at.unwrap_or(next)), if at.is_some() => {
                    next = Instant::now() + STAGGER;
                    if let Some(at) = candidate {
                        self.ask(shared, at, &mut asked, waits.clone());
                    }
                }
            }
        }
    }

    /// The server to ask next: the one that is due first, a random one of several.
    fn next(&self) -> Option<usize> {
        let (random, now) = (RandomState::new(), Instant::now());
        let free = self.0.iter().enumerate().filter(|(_, candidate)| !candidate.asked);
        free.min_by_key(|(at, candidate)| (candidate.due.max(now), random.hash_one(at))).map(|(at, _)| at)
    }

    /// `waits`: where it says why a server is not good yet.
    fn ask(
        &mut self,
        shared: &Arc<Shared>,
        at: usize,
        asked: &mut JoinSet<Answer>,
        waits: mpsc::UnboundedSender<Said>,
    ) {
        let Some(candidate) = self.0.get_mut(at) else { return };
        candidate.asked = true;
        let (remote, shared) = (candidate.remote.clone(), Arc::clone(shared));
        shared.seems(State::Connecting { remote: remote.clone() });
        // who listens ends together with this task
        let waits = move |fault: &Fault| drop(waits.send((at, fault.to_string())));
        asked.spawn(async move { (at, session::greet(&shared, remote, waits).await) });
    }

    fn let_go(&mut self, except: Option<usize>) {
        self.0.iter_mut().enumerate().for_each(|(at, candidate)| candidate.asked = Some(at) == except);
    }

    fn refused(&mut self, shared: &Shared, at: usize, fault: &Fault) {
        let Some(candidate) = self.0.get_mut(at) else { return };
        // one that was watched has had its wait
        let wait = if fault.may_pass() { Duration::ZERO } else { AGAIN };
        (candidate.asked, candidate.due) = (false, Instant::now() + wait);
        candidate.behind = matches!(fault, Fault::Stale { .. }).then(|| candidate.behind.unwrap_or_else(Instant::now));
        let is_old = candidate.behind.is_some_and(|since| since.elapsed() > OLD);
        let remote = &candidate.remote;
        candidate.unfit = match fault {
            Fault::OtherCluster { .. } => Some(Unfit::Stranger(format!("{remote}: {fault}"))),
            Fault::Stale { seen, .. } if is_old => Some(Unfit::Older(format!("{remote}: {}", older(*seen)))),
            Fault::NoDatabase { has, .. } => {
                Some(Unfit::Missing { has: has.clone(), why: format!("{remote}: {fault}") })
            }
            _ => None,
        };
        self.says(shared, at, fault.to_string());
        self.name_unfit(shared);
    }

    /// Publishes the first server that was unfit when it was asked last, while no other one is used.
    fn name_unfit(&self, shared: &Shared) {
        if shared.is_live() {
            return;
        }
        let unfit = self.0.iter().find_map(|candidate| candidate.unfit.clone());
        shared.unfit.send_if_modified(|said| {
            // what is too large is not known before it is read
            let stays = unfit.is_none() && matches!(said, Some(Unfit::TooLarge(_)));
            *said != unfit && !stays && {
                *said = unfit;
                true
            }
        });
    }

    fn says(&mut self, shared: &Shared, at: usize, said: String) {
        let Some(candidate) = self.0.get_mut(at) else { return };
        let remote = &candidate.remote;
        let database = shared.options.database.name;
        if said == candidate.fault {
            tracing::debug!(database, %remote, error = %said, "no database session");
        } else {
            tracing::warn!(database, %remote, error = %said, "no database session; trying again every second");
        }
        shared.seems(State::Disconnected { error: format!("{remote}: {said}") });
        candidate.fault = said;
    }

    /// Notes that a session ended that was live for `lived`.
    pub(crate) fn ended(&mut self, shared: &Shared, at: usize, fault: &Fault, lived: Duration) {
        let Some(candidate) = self.0.get_mut(at) else { return };
        candidate.fault.clear();
        if lived > PROVEN {
            (candidate.due, candidate.wait) = (Instant::now(), AGAIN);
        } else {
            // a leader that is none any more may be elected again within a second; until then it is watched, and sends no rows
            let is_first = candidate.wait == AGAIN;
            let wait = if is_first && fault.may_pass() { Duration::ZERO } else { candidate.wait };
            candidate.due = Instant::now() + wait;
            candidate.wait = LONGEST_WAIT.min(candidate.wait * 2);
        }
        let remote = &candidate.remote;
        tracing::warn!(database = shared.options.database.name, %remote, error = %fault, "database session ended");
    }
}

#[cfg(test)]
mod tests {
    use ovnkube_ovn::nb;

    use super::*;
    use crate::options::Options;

    /// An election may be followed by another one.
    #[tokio::test(start_paused = true)]
    async fn a_leader_that_is_none_any_more_is_watched_at_once() {
        let remote = Remote::Unix("member".into());
        let shared = Shared::new(Options::new(&nb::DATABASE, vec![remote.clone()]));
        let waits = |fault: &Fault| {
            let mut candidates = Candidates::new(std::slice::from_ref(&remote));
            let mut wait = || {
                candidates.ended(&shared, 0, fault, Duration::from_millis(300));
                (candidates.0[0].due - Instant::now()).as_secs()
            };
            [wait(), wait(), wait(), wait(), wait()]
        };
        assert_eq!(waits(&Fault::NotLeader), [0, 2, 4, 8, 8], "but not again and again");
        assert_eq!(waits(&Fault::Eof), [1, 2, 4, 8, 8]);
    }
}
