//! How the lease is sought and held.
//!
//! ```text
//!  renew ─ no answer ─▶ the same on another connection ─ no answer ─▶ on a third; the first answer counts
//!    └─ somebody changed or deleted it ─▶ read ─ may we take it? ─▶ take, if nobody has changed it since
//! ```
//!
//! A lease is only ever taken by changing the version that was read, so one of many who try gets it, and a
//! request that arrives late does nothing.
//!
//! A lease that is gone was deleted, and whoever held it may write until it hears of that. So the one who finds none makes it
//! anew without a holder. The last holder takes that at once if it still may write: then nobody else has had it. Others wait as
//! long as they would have waited for that holder. A lease that was never held, as dist/yaml has it, is taken at once, but not
//! in place of one that was.
//!
//! A process that was killed and started again finds the lease in its own name, but marked by another
//! instance. It waits only as long as a living one could leave the lease alone, 2.5 s: one that goes on
//! renewing it is a second process under the same name, and keeps the lease. The time that stands in a lease counts for
//! nothing: another host's clock may have written it.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, interval_at, sleep, timeout};

use crate::backoff::between;
use crate::leader::Claim;
use crate::lease::{Lease, Place};
use crate::{Client, Error, LeaseSettings};

/// Renewals under our name that show another process of it; one may have been on its way when an
/// earlier run of ours was killed.
const TWIN: u32 = 2;
/// Connections that one question is asked on, side by side.
const TRIES: usize = 4;
/// A process that was told to stop waits no longer for an API server that does not answer.
const RELEASE_WITHIN: Duration = Duration::from_millis(1500);

pub(crate) struct Election {
    place: Place,
    /// Whose credentials are used; its connections are for others.
    client: Client,
    /// The connection that answered last.
    connected: Option<Client>,
    publish: watch::Sender<Claim>,
    /// The lease as we wrote it last; `None` when it is not ours.
    mine: Option<Lease>,
    /// Somebody else's lease.
    seen: Option<Seen>,
    /// The uid of the lease that we or others held last.
    known: Option<String>,
    /// How long a lease is left alone whose holder nobody knows: the longest word of those seen.
    word: Duration,
    /// How often another process was seen to renew the lease under our name.
    twin: u32,
}

struct Seen {
    version: String,
    /// When it may be taken if it stays so.
    free_at: Instant,
}

/// What a look at the lease came to.
enum Found {
    /// Written by us; when that was sent.
    Ours(Lease, Instant),
    Theirs(Lease),
}

impl Election {
    pub(crate) fn new(client: &Client, settings: LeaseSettings, publish: watch::Sender<Claim>) -> Self {
        let instance = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
        Self {
            client: client.clone(),
            connected: None,
            publish,
            mine: None,
            seen: None,
            known: None,
            word: settings.lease,
            twin: 0,
            place: Place { settings, instance },
        }
    }

    /// Until told to stop: then the lease is given back. Where nobody can tell it any more, it just ends.
    pub(crate) async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        loop {
            let round = async {
                let pause = self.step().await;
                sleep(pause).await;
            };
            tokio::select! {
                () = round => {}
                told = &mut stopped => return if told.is_ok() { self.release().await },
            }
        }
    }

    /// One renewal, or one look at somebody else's lease; how long to wait then is returned.
    async fn step(&mut self) -> Duration {
        let LeaseSettings { name, renew, retry, .. } = &self.place.settings;
        let (limit, retry) = (*renew / 2, *retry);
        let look = self.on_one_of_many(*renew / 8, async |client| self.look(client).await);
        let found = match timeout(limit, look).await {
            Ok(found) => found,
            Err(_) => Err(Error::failed(&format!("renew lease {name}"), format!("no answer within {limit:?}"))),
        };
        match found {
            Ok((client, found)) => {
                self.connected = Some(client);
                self.note(found);
            }
            Err(error @ Error::Conflict { .. }) => {
                tracing::debug!("{error}; another was faster");
                return retry / 10;
            }
            Err(error) => {
                tracing::warn!("{error}; trying again");
                self.connected = None;
                // there is still time
                return if self.may_write() { retry / 4 } else { between(retry, retry * 6 / 5) };
            }
        }
        let Some(Seen { free_at, .. }) = &self.seen else { return retry };
        free_at.saturating_duration_since(Instant::now()).clamp(retry / 10, between(retry, retry * 6 / 5))
    }

    /// Asks on another connection too when there is no answer for `patience`: what is silent may be one API server of many.
    /// The first answer counts. Nothing that is asked may do harm when it is asked twice, or arrives late.
    async fn on_one_of_many<T>(
        &self,
        patience: Duration,
        ask: impl AsyncFn(&Client) -> Result<T, Error>,
    ) -> Result<(Client, T), Error> {
        let attempt = async |client: Option<Client>| {
            let client = match client {
                Some(client) => client,
                None => self.client.anew().await?,
            };
            let answer = ask(&client).await?;
            Ok((client, answer))
        };
        let mut attempts = FuturesUnordered::from_iter([attempt(self.connected.clone())]);
        let mut made = 1;
        let mut impatient = interval_at(Instant::now() + patience, patience);
        loop {
            tokio::select! {
                Some(answer) = attempts.next() => if answer.is_ok() || attempts.is_empty() {
                    return answer;
                },
                _ = impatient.tick(), if made < TRIES => {
                    made += 1;
                    attempts.push(attempt(None));
                }
            }
        }
    }

    async fn look(&self, client: &Client) -> Result<Found, Error> {
        if let Some(mine) = &self.mine {
            match self.take(client, mine).await {
                // somebody wrote it, an attempt of ours for one, or it was deleted
                Err(Error::Conflict { .. } | Error::Gone { .. }) => {}
                result => return result,
            }
        }
        let lease = match self.place.read(client).await {
            Err(Error::Gone { .. }) => {
                let name = &self.place.settings.name;
                tracing::warn!("read lease {name}: there is none; making it, for whoever held it to take it first");
                let seconds = u32::try_from(self.word.as_secs()).unwrap_or(u32::MAX).max(1);
                self.place.make(client, seconds).await?
            }
            lease => lease?,
        };
        let now = Instant::now();
        if self.free_at(&lease, now) <= now { self.take(client, &lease).await } else { Ok(Found::Theirs(lease)) }
    }

    async fn take(&self, client: &Client, lease: &Lease) -> Result<Found, Error> {
        let began = Instant::now();
        self.place.take(client, lease).await.map(|lease| Found::Ours(lease, began))
    }

    /// When the lease may be taken if it stays as it is.
    fn free_at(&self, lease: &Lease, now: Instant) -> Instant {
        if let Some(seen) = self.seen.as_ref().filter(|seen| seen.version == lease.metadata.resource_version) {
            return seen.free_at;
        }
        let is_another = self.known.as_ref().is_some_and(|known| *known != lease.metadata.uid);
        let is_free = if lease.holder().is_empty() && !is_another {
            true
        } else if lease.is_unclaimed() {
            // while we may write nobody else has had it
            self.may_write()
        } else {
            self.place.holds(lease)
        };
        if is_free { now } else { now + self.wait(lease) }
    }

    /// How long a lease that was just seen changed is left alone.
    fn wait(&self, lease: &Lease) -> Duration {
        let LeaseSettings { identity, retry, .. } = &self.place.settings;
        if lease.holder() == identity && self.twin < TWIN {
            return *retry * 5 / 4;
        }
        self.word.max(Duration::from_secs(lease.seconds().into()))
    }

    /// Whether the last renewal still counts.
    fn may_write(&self) -> bool {
        self.publish.borrow().until.is_some_and(|until| until > Instant::now())
    }

    fn note(&mut self, found: Found) {
        match found {
            Found::Ours(lease, began) => self.won(lease, began),
            Found::Theirs(lease) => self.wait_for(&lease),
        }
    }

    fn won(&mut self, lease: Lease, began: Instant) {
        let LeaseSettings { identity, name, renew, .. } = &self.place.settings;
        if self.mine.is_none() {
            tracing::info!("{identity} holds lease {name}");
        }
        self.known = Some(lease.metadata.uid.clone());
        self.mine = Some(lease);
        (self.seen, self.twin) = (None, 0);
        self.publish.send_replace(Claim { holder: identity.clone(), until: Some(began + *renew) });
    }

    fn wait_for(&mut self, lease: &Lease) {
        let free_at = self.free_at(lease, Instant::now());
        let version = lease.metadata.resource_version.clone();
        let is_changed = self.seen.as_ref().is_some_and(|seen| seen.version != version);
        if is_changed && lease.holder() == self.place.settings.identity {
            self.meet_twin();
        }
        if !lease.is_unclaimed() {
            self.known = Some(lease.metadata.uid.clone());
            self.word = self.place.settings.lease.max(Duration::from_secs(lease.seconds().into()));
        }
        self.seen = Some(Seen { version, free_at });
        self.mine = None;
        self.publish.send_replace(Claim { holder: lease.holder().to_owned(), until: None });
    }

    /// Somebody renewed the lease under our name.
    fn meet_twin(&mut self) {
        let LeaseSettings { name, identity, .. } = &self.place.settings;
        self.twin = self.twin.saturating_add(1);
        if self.twin == TWIN {
            tracing::error!(
                "take lease {name}: another process that is called {identity} too renews it; stop it or rename one"
            );
        }
    }

    async fn release(self) {
        self.publish.send_replace(Claim::default());
        let give_back = async |client: &Client| self.place.give_back(client).await;
        let name = &self.place.settings.name;
        match timeout(RELEASE_WITHIN, self.on_one_of_many(RELEASE_WITHIN / 3, give_back)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!("{error}; others wait until the lease runs out"),
            Err(_) => tracing::warn!(
                "release lease {name}: no answer within {} ms; others wait until it runs out",
                RELEASE_WITHIN.as_millis()
            ),
        }
    }
}
