//! The lease that says who may write.
//!
//! Only one process at a time holds it. The holder renews it every [`LeaseSettings::retry`]. Another process takes it
//! when it has not seen it change for [`LeaseSettings::lease`] on its own clock, so neither the wall clock nor its
//! steps matter. The holder counts from the moment it *sent* its last successful renewal, and only for the shorter
//! [`LeaseSettings::renew`]: what it writes while [`Leader::is_leader_now`] has the difference to arrive before another
//! process can write.
//!
//! ```text
//!  holder     renewal sent ├──────── may write ────────┤ renew
//!  others        └─▶ seen  ├──────────── wait ─────────────────┤ lease: take it
//! ```
//!
//! How it is acquired, and what happens when it is deleted: `election.rs`.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::election::{Election, Leadership, RELEASE_WITHIN};
use crate::pulse::Pulse;
use crate::{Client, Error, LeaseSettings};

/// Says whether this process may write: in the term that [`Leader::elected`] has found, or in any before that. Clones are
/// of the same term.
#[derive(Debug, Clone)]
pub struct Leader {
    leadership: watch::Receiver<Leadership>,
    /// `None`: any.
    term: Option<u64>,
    name: Arc<str>,
}

/// The thread that holds or seeks the lease. Dropping it ends the thread as if the process had been killed.
#[derive(Debug)]
pub struct LeaderTask {
    stop: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

/// The work of an election.
pub struct Seeker {
    election: Election,
    stopped: oneshot::Receiver<()>,
    end: oneshot::Sender<()>,
}

impl Leader {
    /// Seeks the lease from now on, on its own thread and connections: no other work of the process delays a renewal. But
    /// when the runtime that called this hangs, the lease is left to others.
    pub fn run(client: &Client, settings: LeaseSettings) -> Result<(Self, LeaderTask), Error> {
        let name = settings.name.clone();
        let problem = |e| Error::Access(format!("cannot start the thread for lease {name}: {e}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(problem)?;
        let (leader, task, mut seeker) = Self::seek(client, settings);
        seeker.election.follow(Pulse::start());
        thread::Builder::new().name("lease".into()).spawn(move || runtime.block_on(seeker.run())).map_err(problem)?;
        Ok((leader, task))
    }

    /// The same without a thread: the caller runs the [`Seeker`].
    pub fn seek(client: &Client, settings: LeaseSettings) -> (Self, LeaderTask, Seeker) {
        let (publish, leadership) = watch::channel(Leadership::default());
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let election = Election::new(client, settings, publish);
        let name = election.name().into();
        (Self { leadership, term: None, name }, LeaderTask { stop, ended }, Seeker { election, stopped, end })
    }

    /// The identity of this process, and what tells it from all others that are or were called so.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether a write may be sent now.
    pub fn is_leader_now(&self) -> bool {
        self.remaining().is_some()
    }

    /// How long writes may be sent without another renewal; `None` if not at all.
    pub fn remaining(&self) -> Option<Duration> {
        let leadership = self.leadership.borrow();
        // who was busy while the lease went away and came back knows nothing of what another holder wrote
        let is_same = self.term.is_none_or(|term| term == leadership.term);
        let left = leadership.until.filter(|_| is_same)?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Who holds the lease, in words; empty if this process has not read it yet.
    pub fn holder(&self) -> String {
        self.leadership.borrow().holder.clone()
    }

    /// Waits until another process renews the lease under the identity of this one.
    pub async fn twin(&self) {
        if self.leadership.clone().wait_for(|leadership| leadership.has_twin).await.is_err() {
            // the election has ended
            std::future::pending::<()>().await;
        }
    }

    /// Waits until this process may write. Logs whom it waits for.
    pub async fn elected(&mut self) {
        let mut told = String::new();
        self.term = None;
        loop {
            let term = self.leadership.borrow_and_update().term;
            if self.is_leader_now() {
                self.term = Some(term);
                return;
            }
            let holder = self.holder();
            if holder != told {
                tracing::info!(holder, "waiting for the lease");
                told = holder;
            }
            if self.leadership.changed().await.is_err() {
                // the election has ended
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until this process may no longer write. If it has lost the lease meanwhile, that it has it again is no matter.
    pub async fn lost(&mut self) {
        while let Some(left) = self.remaining() {
            tokio::select! {
                biased;
                () = sleep(left) => {}
                changed = self.leadership.changed() => if changed.is_err() { sleep(left).await },
            }
        }
    }
}

impl Seeker {
    /// Seeks and holds the lease until it is released.
    pub async fn run(self) {
        self.election.run(self.stopped).await;
        let _ = self.end.send(());
    }
}

impl LeaderTask {
    /// Releases the lease, so that another process takes it at once. Call it when nothing writes any more.
    pub async fn release(self) {
        let _ = self.stop.send(());
        // its thread may hang, as on a token file of a mount that is gone
        let _ = timeout(RELEASE_WITHIN * 2, self.ended).await;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::atomic::{AtomicU64, Ordering};

    use serde_json::json;

    use super::*;
    use crate::Access;
    use crate::pulse::HANGS_AFTER;

    const RETRY: Duration = Duration::from_millis(200);

    /// An API server on threads of its own, with one lease; counts the renewals.
    fn lease_server() -> (String, Arc<AtomicU64>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let renewals = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&renewals);
        thread::spawn(move || listener.incoming().for_each(|stream| answer(stream.unwrap(), &count)));
        (address, renewals)
    }

    fn answer(mut stream: TcpStream, renewals: &AtomicU64) {
        let (mut lines, mut length) = (BufReader::new(stream.try_clone().unwrap()), 0);
        let (mut asked, mut line) = (String::new(), String::new());
        while lines.read_line(&mut line).is_ok_and(|n| n > 2) {
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            asked.push_str(&std::mem::take(&mut line));
        }
        lines.take(length).read_to_string(&mut line).unwrap();
        let is_write = asked.starts_with("PATCH");
        let version = renewals.fetch_add(is_write.into(), Ordering::Relaxed) + u64::from(is_write);
        let holder = if version > 0 { "me" } else { "" };
        let lease = json!({"metadata": {"uid": "u", "resourceVersion": version.to_string()}, "spec": {"holderIdentity": holder}});
        let (body, close) = (lease.to_string(), "Content-Type: application/json\r\nConnection: close");
        let _ = write!(stream, "HTTP/1.1 200 OK\r\n{close}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    }

    /// Its log cannot be written, a file system does not answer, or it goes in circles: only the lease has a thread that runs.
    #[tokio::test]
    async fn a_process_that_hangs_leaves_the_lease_to_others() {
        let (apiserver, renewals) = lease_server();
        let client = Client::connect(&Access { apiserver: Some(apiserver), ..Access::default() }).await.unwrap();
        let [lease, renew] = [10, 8].map(Duration::from_secs);
        let (namespace, name, identity) = ("ns".to_owned(), "lease".to_owned(), "me".to_owned());
        let settings = LeaseSettings { namespace, name, identity, lease, renew, retry: RETRY };
        let (mut leader, _task) = Leader::run(&client, settings).unwrap();
        leader.elected().await;
        let count = || renewals.load(Ordering::Relaxed);
        let before = count();
        thread::sleep(HANGS_AFTER / 2);
        assert!(count() > before, "a busy process does not renew its lease");
        thread::sleep(HANGS_AFTER / 2 + RETRY * 10);
        let hanging = count();
        thread::sleep(RETRY * 10);
        assert_eq!(count(), hanging, "a process that hangs renews its lease");
        while count() == hanging {
            sleep(RETRY).await;
        }
    }
}
