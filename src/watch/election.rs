//! How a process acquires and holds the lease.
//!
//! ```text
//!  renew ─ no answer ─▶ the same on another connection ─ no answer ─▶ on a third; the first answer counts
//!    └─ it was changed or deleted ─▶ read ─ may we take it? ─▶ take, if it has not changed since
//! ```
//!
//! Each step is one request, and what it finds stays known: with an API server that answers slowly, two in a row would
//! not be done in the time that a step has, and a step that begins again and again from its first request never ends.
//!
//! A lease is only taken by changing the version that was read. So one of many candidates gets it, and a request that
//! arrives late does nothing.
//!
//! A lease that is gone was deleted, and its holder may write until it learns of that. So the process that finds no
//! lease creates one without a holder. The last holder takes it at once if it still may write: then no other process
//! has held it. Others wait as long as they would have waited for that holder. A lease that was never held, as in
//! dist/yaml, is taken at once, unless it replaces one that was held.
//!
//! When etcd is restored from a snapshot, a lease may come back that has gone to another holder since. That one may write until it learns of
//! this. So a lease that has gone from holder to holder less often than it had before is not free at once, whoever it names, but for a
//! process that still may write.
//!
//! A process that was killed and started again finds the lease in its own name, but marked by another instance. If that
//! ran on this host, it waits only 2.5 s, the longest that a living process leaves the lease unchanged where the API server
//! answers soon: one that goes on renewing it is a second process with the same name, and keeps the lease. One of another
//! host, to which somebody gave the same name, may write until the lease runs out. The time in a lease is ignored: the
//! clock of another host may have written it.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, interval_at, sleep, timeout};

use crate::backoff::between;
use crate::lease::{Candidate, Lease, instance, now};
use crate::pulse::{HANGS_AFTER, Pulse};
use crate::{Client, Error, LeaseSettings};

/// Who may write, as far as this process knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Leadership {
    /// For people; empty: not read yet.
    pub(crate) holder: String,
    /// Until when this process may write.
    pub(crate) until: Option<Instant>,
    /// How often it was elected: between two terms another process may have held the lease.
    pub(crate) term: u64,
    /// Another process renews the lease under our name.
    pub(crate) has_twin: bool,
}

/// What people read in place of a holder while the last holder of a lease that was deleted may still take the new one.
const NO_HOLDER: &str = "nobody: the lease was missing";
/// This many renewals under our name show a second process of that name; one may have been on its way when an earlier
/// run of ours was killed.
const TWIN: u32 = 2;
/// How many connections may carry one request in parallel.
const TRIES: usize = 4;
/// How long a process that is being stopped waits for the API server.
pub(crate) const RELEASE_WITHIN: Duration = Duration::from_millis(1500);

pub(crate) struct Election {
    candidate: Candidate,
    /// Provides the credentials; its own connections are for other requests.
    client: Client,
    /// The connection that answered last.
    connected: Option<Client>,
    publish: watch::Sender<Leadership>,
    next: Ask,
    /// The latest renewal, until its outcome is known: without an answer it may have been carried out all the same.
    sent: Option<Sent>,
    /// The lease that we wait for.
    seen: Option<Seen>,
    /// The lease that we or others held last.
    known: Option<Known>,
    /// How long a lease without a known holder is left alone: our duration, or the last holder's if that is longer.
    duration: Duration,
    /// How often another process has renewed the lease under our name.
    twin: u32,
    /// Of what the lease is held for. A process that hangs must not keep others from its work.
    pulse: Option<Pulse>,
    hangs: bool,
}

/// What tells a lease from one that was made again, and from an older state of it.
struct Known {
    uid: String,
    transitions: i64,
}

impl Known {
    fn of(lease: &Lease) -> Self {
        Self { uid: lease.metadata.uid.clone(), transitions: lease.transitions() }
    }
}

struct Seen {
    version: String,
    /// When it may be taken if it does not change.
    free_at: Instant,
}

/// A renewal, perhaps sent several times.
struct Sent {
    /// The version that it replaces.
    replaces: String,
    /// When it was sent first.
    at: Instant,
    /// The time that it writes.
    time: String,
}

/// A request.
enum Ask {
    Read,
    /// Create the lease, which is missing.
    Make,
    /// Write our name into it, if this is still its version.
    Take(Lease),
}

/// An answer.
enum Found {
    /// Read or created.
    Lease(Lease),
    /// Written by us, with a request sent at this time.
    Taken(Lease, Instant),
    /// There is none.
    Missing,
}

impl Election {
    pub(crate) fn new(client: &Client, settings: LeaseSettings, publish: watch::Sender<Leadership>) -> Self {
        let instance = instance();
        Self {
            client: client.clone(),
            connected: None,
            publish,
            next: Ask::Read,
            sent: None,
            seen: None,
            known: None,
            duration: settings.lease,
            twin: 0,
            pulse: None,
            hangs: false,
            candidate: Candidate { settings, instance, replaces: AtomicBool::default() },
        }
    }

    /// Seeks the lease only while this beats.
    pub(crate) fn follow(&mut self, pulse: Pulse) {
        self.pulse = Some(pulse);
    }

    /// See [`crate::Leader::name`].
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.candidate.settings.identity, self.candidate.instance)
    }

    /// Runs until it is stopped, then releases the lease; ends without a release if `stopped` is dropped.
    pub(crate) async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        loop {
            let round = async {
                let pause = self.step().await;
                sleep(pause).await;
            };
            tokio::select! {
                biased;
                told = &mut stopped => return if told.is_ok() { self.release().await },
                () = round => {}
            }
        }
    }

    /// One request; returns how long to wait before the next one.
    async fn step(&mut self) -> Duration {
        let &LeaseSettings { renew, retry, .. } = &self.candidate.settings;
        if self.hangs() {
            return retry;
        }
        let limit = renew / 2;
        if let Ask::Take(lease) = &self.next {
            let version = &lease.metadata.resource_version;
            if self.sent.as_ref().is_none_or(|sent| sent.replaces != *version) {
                self.sent = Some(Sent { replaces: version.clone(), at: Instant::now(), time: now(&self.client) });
            }
        }
        let answer = timeout(limit, self.on_one_of_many(renew / 8, async |client| self.ask(client).await)).await;
        let (client, answer) = answer.unwrap_or_else(|_| {
            let action = format!("renew lease {}", self.candidate.settings.name);
            (None, Err(Error::failed(&action, format!("no answer within {limit:?}"))))
        });
        self.connected = client;
        match answer {
            Ok(found) => self.note(found),
            Err(error @ Error::Conflict { .. }) => {
                // perhaps an earlier request of ours
                tracing::debug!(%error, "another was faster");
                self.next = Ask::Read;
                retry / 10
            }
            Err(error) => {
                tracing::warn!(%error, "trying again to renew the lease");
                self.connected = None;
                // the last renewal still counts: try again soon
                if self.may_write() { retry / 4 } else { between(retry, retry * 6 / 5) }
            }
        }
    }

    /// Whether the rest of the process hangs; says so once.
    fn hangs(&mut self) -> bool {
        let hangs = self.pulse.as_ref().is_some_and(|pulse| !pulse.is_beating());
        if hangs && !std::mem::replace(&mut self.hangs, hangs) {
            let (name, seconds) = (&self.candidate.settings.name, HANGS_AFTER.as_secs());
            tracing::error!("this process hangs: it has done nothing for {seconds} s; leaving lease {name} to others");
        }
        self.hangs = hangs;
        hangs
    }

    /// Asks on another connection too if there is no answer for `patience`: the silent one may be one API server of
    /// many. The first answer counts; a conflict is one. A request must do no harm if it is sent twice or arrives late.
    async fn on_one_of_many<T>(
        &self,
        patience: Duration,
        ask: impl AsyncFn(&Client) -> Result<T, Error>,
    ) -> (Option<Client>, Result<T, Error>) {
        let attempt = async |number: usize, client: Option<Client>| {
            let client = match client {
                Some(client) => client,
                None => match self.client.reconnected().await {
                    Ok(client) => client,
                    Err(error) => return (number, None, Err(error)),
                },
            };
            let answer = ask(&client).await;
            (number, Some(client), answer)
        };
        let mut attempts = FuturesUnordered::from_iter([attempt(0, self.connected.clone())]);
        let mut made = 1;
        let mut impatient = interval_at(Instant::now() + patience, patience);
        loop {
            tokio::select! {
                biased;
                Some((number, client, answer)) = attempts.next() => {
                    let is_answer = matches!(answer, Ok(_) | Err(Error::Conflict { .. }));
                    if is_answer && number > 0 {
                        // watches may be on the one that is silent, too
                        self.client.doubt.raise();
                    }
                    if is_answer || attempts.is_empty() {
                        return (client, answer);
                    }
                }
                _ = impatient.tick(), if made < TRIES => {
                    attempts.push(attempt(made, None));
                    made += 1;
                }
            }
        }
    }

    async fn ask(&self, client: &Client) -> Result<Found, Error> {
        let began = Instant::now();
        let found = match &self.next {
            Ask::Take(lease) => {
                let time = self.sent.as_ref().map_or_else(|| now(client), |sent| sent.time.clone());
                self.candidate.take(client, lease, &time).await.map(|lease| Found::Taken(lease, began))
            }
            Ask::Read => self.candidate.read(client).await.map(Found::Lease),
            Ask::Make => {
                let seconds = u32::try_from(self.duration.as_secs()).unwrap_or(u32::MAX).max(1);
                self.candidate.make(client, seconds).await.map(Found::Lease)
            }
        };
        match found {
            Err(Error::Gone { .. }) => Ok(Found::Missing),
            found => found,
        }
    }

    /// When the lease may be taken if it does not change.
    fn free_at(&self, lease: &Lease, now: Instant) -> Instant {
        if let Some(seen) = self.seen.as_ref().filter(|seen| seen.version == lease.metadata.resource_version) {
            return seen.free_at;
        }
        let is_ours = self.candidate.holds(lease);
        let is_left = (lease.holder().is_empty() || is_ours) && !self.is_another(lease);
        // while we may write, no other process has held it
        let is_free = is_left || (lease.is_unclaimed() || is_ours) && self.may_write();
        if is_free { now } else { now + self.wait(lease) }
    }

    /// Whether it is not the lease that was held last: it was made again, or etcd was restored from a snapshot.
    fn is_another(&self, lease: &Lease) -> bool {
        let is_not = |known: &Known| known.uid != lease.metadata.uid || lease.transitions() < known.transitions;
        self.known.as_ref().is_some_and(is_not)
    }

    /// How long a lease that was just seen to change is left alone.
    fn wait(&self, lease: &Lease) -> Duration {
        let LeaseSettings { identity, retry, .. } = &self.candidate.settings;
        let is_left_here = lease.holder() == identity && self.candidate.ran_here(lease) && !self.is_another(lease);
        if is_left_here && self.twin < TWIN {
            return *retry * 5 / 4;
        }
        self.duration.max(Duration::from_secs(lease.seconds().into()))
    }

    /// Whether the last renewal still counts.
    fn may_write(&self) -> bool {
        self.publish.borrow().until.is_some_and(|until| until > Instant::now())
    }

    /// Takes in an answer; returns how long to wait before the next request.
    fn note(&mut self, found: Found) -> Duration {
        let retry = self.candidate.settings.retry;
        match found {
            Found::Taken(lease, began) => {
                self.won(lease, began);
                retry
            }
            Found::Missing => {
                tracing::warn!(
                    lease = self.candidate.settings.name,
                    "the lease is missing; making it, so that the last holder can take it first"
                );
                self.next = Ask::Make;
                retry / 10
            }
            Found::Lease(lease) => self.judge(lease),
        }
    }

    /// Takes in a lease that was read.
    fn judge(&mut self, lease: Lease) -> Duration {
        let retry = self.candidate.settings.retry;
        let at = Instant::now();
        if self.candidate.holds(&lease)
            && let Some(sent) = self.sent.take_if(|sent| sent.time == lease.renewed())
        {
            // it was carried out, after it was sent first
            self.won(lease, sent.at);
            return Duration::ZERO;
        }
        let free_at = self.free_at(&lease, at);
        if free_at <= at {
            self.next = Ask::Take(lease);
            return Duration::ZERO;
        }
        self.wait_for(&lease, free_at);
        // several looks in a retry period: a lease that its holder releases is taken within a second
        free_at.saturating_duration_since(at).clamp(retry / 10, between(retry / 4, retry / 3))
    }

    fn won(&mut self, lease: Lease, began: Instant) {
        let LeaseSettings { identity, name, renew, .. } = &self.candidate.settings;
        let mut term = self.publish.borrow().term;
        if !self.may_write() {
            tracing::info!("{identity} holds lease {name}");
            term += 1;
        }
        self.known = Some(Known::of(&lease));
        self.next = Ask::Take(lease);
        (self.sent, self.seen, self.twin) = (None, None, 0);
        let until = Some(began + *renew);
        self.publish.send_replace(Leadership { holder: identity.clone(), until, term, has_twin: false });
    }

    fn wait_for(&mut self, lease: &Lease, free_at: Instant) {
        let version = lease.metadata.resource_version.clone();
        let is_changed = self.seen.as_ref().is_some_and(|seen| seen.version != version);
        if is_changed && lease.holder() == self.candidate.settings.identity {
            self.meet_twin();
        }
        let mut holder = NO_HOLDER;
        if !lease.is_unclaimed() {
            holder = lease.holder();
            self.known = Some(Known::of(lease));
            self.duration = self.candidate.settings.lease.max(Duration::from_secs(lease.seconds().into()));
        }
        (self.next, self.sent, self.seen) = (Ask::Read, None, Some(Seen { version, free_at }));
        self.publish.send_modify(|leadership| {
            (leadership.holder, leadership.until) = (holder.to_owned(), None);
        });
    }

    /// Another process renewed the lease under our name.
    fn meet_twin(&mut self) {
        let LeaseSettings { name, identity, .. } = &self.candidate.settings;
        self.twin = self.twin.saturating_add(1);
        if self.twin == TWIN {
            tracing::error!(
                "cannot take lease {name}: another process that is called {identity} too renews it; stop it or rename one"
            );
            self.publish.send_modify(|leadership| leadership.has_twin = true);
        }
    }

    async fn release(self) {
        self.publish.send_modify(|leadership| (leadership.holder, leadership.until) = (String::new(), None));
        let give_back = async |client: &Client| self.candidate.give_back(client).await;
        let name = &self.candidate.settings.name;
        match timeout(RELEASE_WITHIN, self.on_one_of_many(RELEASE_WITHIN / 3, give_back)).await {
            Ok((_, Ok(()))) => {}
            Ok((_, Err(error))) => tracing::warn!(%error, "cannot release the lease; others wait until it runs out"),
            Err(_) => tracing::warn!(
                lease = name,
                "cannot release the lease: no answer within {} ms; others wait until it runs out",
                RELEASE_WITHIN.as_millis()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::pending;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    const LEASE: Duration = Duration::from_secs(10);

    fn election() -> Election {
        let nobody = |_: Request<Body>| pending::<Result<Response<Body>, Infallible>>();
        let client = Client::over(kube::Client::new(tower::service_fn(nobody), "default"));
        let (namespace, name, identity) = ("ns".to_owned(), "lease".to_owned(), "me".to_owned());
        let [renew, retry] = [8, 2].map(Duration::from_secs);
        let settings = LeaseSettings { namespace, name, identity, lease: LEASE, renew, retry };
        Election::new(&client, settings, watch::channel(Leadership::default()).0)
    }

    /// Holder, instance, how often it has gone to another, and version.
    fn lease(holder: &str, instance: &str, transitions: i64, version: u64) -> Lease {
        let annotations = json!({ "ovnkube.io/holder-instance": instance });
        let metadata = json!({"uid": "u", "resourceVersion": version.to_string(), "annotations": annotations});
        let spec = json!({
            "holderIdentity": holder, "leaseDurationSeconds": 10, "leaseTransitions": transitions,
            "renewTime": "2099-01-01T00:00:00.000000Z",
        });
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    /// Whether it takes the lease that it reads.
    fn takes(election: &mut Election, lease: Lease) -> bool {
        election.judge(lease);
        matches!(election.next, Ask::Take(_))
    }

    /// The holder of now may write until it learns that the lease is of before.
    #[tokio::test(start_paused = true)]
    async fn a_lease_that_a_restored_etcd_brings_back_is_waited_for() {
        let mut election = election();
        let own = election.candidate.instance.clone();
        let killed = format!("{}-0011223344556677", own.split_once('-').unwrap().0);
        for (holder, instance) in [("me", &own), ("me", &killed), ("", &String::new())] {
            let back = || lease(holder, instance, 3, 30);
            election.won(lease("me", &own, 3, 30), Instant::now());
            assert!(!takes(&mut election, lease("other", "other", 4, 40)));
            assert!(!takes(&mut election, back()), "{instance}");
            sleep(LEASE.saturating_sub(Duration::from_secs(1))).await;
            assert!(!takes(&mut election, back()), "{instance}");
            sleep(Duration::from_secs(1)).await;
            assert!(takes(&mut election, back()), "{instance}");
        }
        // the other gives it back
        assert!(!takes(&mut election, lease("other", "other", 4, 50)));
        assert!(takes(&mut election, lease("", "", 4, 51)));
    }

    /// The holder goes on: the others wait.
    #[tokio::test(start_paused = true)]
    async fn the_holder_takes_a_lease_that_a_restored_etcd_brings_back() {
        let mut election = election();
        let own = election.candidate.instance.clone();
        for (holder, is_holder) in [("me", true), ("", true), ("me", false), ("", false)] {
            election.won(lease("me", &own, 5, 50), Instant::now());
            if !is_holder {
                sleep(LEASE).await;
            }
            let instance = if holder.is_empty() { "" } else { own.as_str() };
            assert_eq!(takes(&mut election, lease(holder, instance, 3, 30)), is_holder, "{holder}");
        }
    }
}
