//! The lease that says who may write.
//!
//! Only one process at a time holds it. The holder renews it every [`LeaseSettings::retry`]; another
//! takes it when it has not seen it change for [`LeaseSettings::lease`] on its own clock, so neither
//! the wall clock nor its steps count. The holder counts from the moment it *sent* its last renewal
//! that got through, and only for the shorter [`LeaseSettings::renew`]: what it writes while
//! [`Leader::is_leader_now`] has two seconds to arrive before anybody else can write.
//!
//! ```text
//!  holder     renewal sent ├──────── may write ────────┤ 8 s
//!  others        └─▶ seen  ├──────────── wait ─────────────────┤ 10 s  take it
//! ```
//!
//! How it is sought, and what happens when it is deleted: `election.rs`.

use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep};

use crate::election::Election;
use crate::{Client, Error};

/// Which lease, who wants it, and its times.
#[derive(Debug, Clone)]
pub struct LeaseSettings {
    pub namespace: String,
    pub name: String,
    /// Names this process. The lease found in this name is taken as soon as nobody renews it, so that
    /// a restart needs no long wait.
    pub identity: String,
    /// How long others leave an unchanged lease alone.
    pub lease: Duration,
    /// How long the holder may write after it sent a renewal.
    pub renew: Duration,
    /// Time between renewals, or between looks at somebody else's lease.
    pub retry: Duration,
}

impl LeaseSettings {
    /// 10 s, 8 s and 2 s in the namespace `ovn-kubernetes`.
    pub fn new(name: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            namespace: "ovn-kubernetes".into(),
            name: name.into(),
            identity: identity.into(),
            lease: Duration::from_secs(10),
            renew: Duration::from_secs(8),
            retry: Duration::from_secs(2),
        }
    }
}

/// Tells whether this process may write. Clones tell the same.
#[derive(Debug, Clone)]
pub struct Leader {
    claim: watch::Receiver<Claim>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) holder: String,
    /// Until when this process may write.
    pub(crate) until: Option<Instant>,
}

/// The thread that holds or seeks the lease. Dropped, it ends as if the process had been killed.
#[derive(Debug)]
pub struct LeaderTask {
    stop: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

impl Leader {
    /// Seeks the lease from now on, on a thread and connections of its own: whatever else the process is busy with
    /// keeps no renewal waiting.
    pub fn run(client: &Client, settings: LeaseSettings) -> Result<(Self, LeaderTask), Error> {
        let (publish, claim) = watch::channel(Claim::default());
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let name = settings.name.clone();
        let problem = |e| Error::Access(format!("start the thread for lease {name}: {e}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(problem)?;
        let election = Election::new(client, settings, publish);
        let work = move || {
            runtime.block_on(election.run(stopped));
            let _ = end.send(());
        };
        thread::Builder::new().name("lease".into()).spawn(work).map_err(problem)?;
        Ok((Self { claim }, LeaderTask { stop, ended }))
    }

    /// Whether a write may be sent now.
    pub fn is_leader_now(&self) -> bool {
        self.remaining().is_some()
    }

    /// How long writes may be sent without another renewal; `None` if not at all.
    pub fn remaining(&self) -> Option<Duration> {
        let left = self.claim.borrow().until?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Who holds the lease, as far as is known.
    pub fn holder(&self) -> String {
        self.claim.borrow().holder.clone()
    }

    /// Waits until this process may write.
    pub async fn elected(&mut self) {
        while !self.is_leader_now() {
            if self.claim.changed().await.is_err() {
                // nobody seeks the lease any more
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until this process may not write any more.
    pub async fn lost(&mut self) {
        while let Some(left) = self.remaining() {
            tokio::select! {
                () = sleep(left) => {}
                changed = self.claim.changed() => if changed.is_err() { sleep(left).await },
            }
        }
    }
}

impl LeaderTask {
    /// Gives the lease back, so that another takes it at once. To be called when nothing writes any
    /// more.
    pub async fn release(self) {
        let _ = self.stop.send(());
        let _ = self.ended.await;
    }
}
