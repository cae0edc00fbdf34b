//! The loop: changes in, transactions and patches out.
//!
//! ```text
//!  watch ──Change──▶ World ──Touched──▶ dirty keys ──plan, diff──▶ one transaction at a time ──▶ NB
//!                                          ▲                          patches, a few at a time ──▶ API
//!                      parked keys ────────┤
//!                      drift seen in NB ───┘
//! ```
//!
//! While a transaction is on its way keys collect, and the next one carries them all: a burst costs
//! few transactions, a single pod waits for nothing.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use ovnkube_model::{Change, Notice, Severity, Touched, World};
use ovnkube_ovn::nb;
use ovnkube_ovsdb::{Class, Client, Event, RowEvent, Txn, TxnError};
use ovnkube_plan::{Key, identity, is_garbage};
use ovnkube_telemetry::{Metrics, Readiness};
use ovnkube_watch::Events;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::batch::{self, Limits, Next};
use crate::chassis::Claims;
use crate::diff::{Diff, Missing, Owned, Subjects};
use crate::garbage;
use crate::ledger::Ledger;
use crate::northbound::Northbound;
use crate::parking::{Cause, Parking};
use crate::patches::{Outcome, Patches};
use crate::turn::LOCK;

/// Keys of one transaction at most: large enough to carry a burst, small enough that its reply does
/// not hold up the next pod.
const BATCH: usize = 500;
/// After somebody else meddled with our rows, or a sweep failed, this passes before the next sweep.
const SWEEP_AFTER: Duration = Duration::from_secs(1);
/// So many sweeps may be refused for keys that went with them: the next one goes without any.
const REFUSED_SWEEPS: u32 = 3;
/// So many outcomes in a row that nobody knows, and half as much is tried.
const UNKNOWN_OUTCOMES: u32 = 2;
/// Operations of a transaction that is not suspected of being too large, whatever became of it.
const SMALL: usize = 1000;
/// How often to look whether writing is allowed again.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// What `/readyz` calls this part.
const PART: &str = "controller";

/// Answers whether this process may write right now.
pub type MayWrite = Arc<dyn Fn() -> bool + Send + Sync>;

/// What the engine works with.
pub struct Parts {
    pub world: World,
    /// The northbound database; without one only annotations are written.
    pub nb: Option<Client>,
    /// Is told which chassis are nodes'.
    pub chassis: Option<Claims>,
    pub patches: Patches,
    pub events: Events,
    pub may_write: MayWrite,
    pub metrics: Arc<Metrics>,
    pub readiness: Readiness,
}

/// See the module.
pub struct Engine {
    world: World,
    nb: Option<Northbound>,
    chassis: Option<Claims>,
    patches: Patches,
    events: Events,
    may_write: MayWrite,
    dirty: BTreeSet<Key>,
    /// Batches that are being taken apart to find the key that cannot be written.
    halves: VecDeque<Vec<Key>>,
    /// Outcomes in a row that nobody knows, of large transactions.
    unknown: u32,
    /// Keys of a transaction at most, until everything is written: less than all after such outcomes.
    most: usize,
    ledger: Ledger,
    parked: Parking,
    /// When to look for what nobody wants. Before the first time nothing is written.
    sweep_at: Option<Instant>,
    swept: bool,
    /// A sweep went through: no leftover has an address that may be given out.
    clean: bool,
    /// How many sweeps in a row were refused for keys that went with them.
    refused_sweeps: u32,
    metrics: Arc<Metrics>,
    readiness: Readiness,
    /// Set until everything was written for the first time.
    started: Option<Instant>,
}

/// Why a transaction was not done.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("not sent: the lease is gone")]
    NoLease,
    #[error(transparent)]
    Txn(#[from] TxnError),
}

/// What a transaction is about.
#[derive(Default)]
struct Batch {
    /// Its keys and what they had before it, should it fail.
    keys: Vec<(Key, Arc<Owned>)>,
    /// What its operations are about, should one of them be refused.
    subjects: Subjects,
    /// It removes what nobody wants.
    sweeps: bool,
    operations: usize,
}

type InFlight = std::pin::Pin<Box<dyn Future<Output = (Batch, Result<(), Failure>)> + Send>>;

impl Engine {
    pub fn new(parts: Parts) -> Self {
        let Parts { world, nb, chassis, patches, events, may_write, metrics, readiness } = parts;
        readiness.wait(PART, "the first lists are not written yet");
        Self {
            world,
            nb: nb.map(|nb| Northbound::new(nb, may_write.clone())),
            chassis,
            patches,
            events,
            may_write,
            dirty: BTreeSet::new(),
            halves: VecDeque::new(),
            unknown: 0,
            most: usize::MAX,
            ledger: Ledger::default(),
            parked: Parking::default(),
            sweep_at: Some(Instant::now()),
            swept: false,
            clean: false,
            refused_sweeps: 0,
            metrics,
            readiness,
            started: Some(Instant::now()),
        }
    }

    /// Runs until the changes end (their senders are gone).
    pub async fn run(mut self, mut changes: mpsc::Receiver<Change>) {
        let mut news = Vec::new();
        let mut in_flight: Option<InFlight> = None;
        loop {
            if in_flight.is_none() {
                in_flight = self.next_batch();
            }
            let wake = self.next_wake();
            tokio::select! {
                biased;
                (batch, result) = or_never(in_flight.as_mut()) => {
                    in_flight = None;
                    self.finish(batch, result);
                }
                count = changes.recv_many(&mut news, 1024) => {
                    if count == 0 {
                        return;
                    }
                    for change in news.drain(..) {
                        self.take(change);
                    }
                }
                seen = or_never(self.nb.as_mut().map(|nb| Box::pin(nb.next()))) => self.see(seen),
                outcome = self.patches.finished() => self.patched(outcome),
                () = tokio::time::sleep_until(wake) => self.wake(),
            }
        }
    }

    fn next_wake(&self) -> Instant {
        let parked = self.parked.next_wake();
        let (sweep, overdue) = match self.sweep_at {
            Some(at) if at <= Instant::now() => (None, true),
            later => (later, false),
        };
        // nobody tells when the lease is ours again
        let waiting = overdue || !self.dirty.is_empty() || !self.halves.is_empty() || self.patches.is_queued();
        let blocked = (waiting && !(self.may_write)()).then(|| Instant::now() + LOOK_AGAIN);
        [parked, blocked, sweep]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or_else(|| Instant::now() + Duration::from_secs(3600))
    }

    fn wake(&mut self) {
        self.patches.start();
        for (key, about_patch) in self.parked.due(Instant::now()) {
            if about_patch {
                self.patches.doubt(&key);
            }
            self.dirty.insert(key);
        }
    }

    fn take(&mut self, change: Change) {
        self.metrics.changes.inc();
        for touched in self.world.apply(change) {
            if touched == Touched::Everything {
                info!(nodes = self.world.nodes.len(), pods = self.world.pods.len(), "all lists are in");
            }
            ovnkube_plan::touched(&touched, &self.world, &mut self.dirty);
            if let Some(chassis) = &self.chassis {
                chassis.tell(&touched, &self.world);
            }
            for notice in self.world.notices(&touched) {
                debug_assert_eq!(notice.severity, Severity::Warning);
                self.events.publish(notice);
            }
        }
    }

    fn patched(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Accepted(key) => {
                self.metrics.patches.inc();
                self.parked.forgive(&key, Cause::Patch);
            }
            Outcome::Failed(key, at_least) => {
                self.metrics.patch_errors.inc();
                self.parked.park(key, Cause::Patch, Instant::now(), at_least);
            }
            Outcome::Gone(key) => self.parked.forgive(&key, Cause::Patch),
            Outcome::Outdated(key) => drop(self.dirty.insert(key)),
        }
    }

    /// Sends the next transaction; `None` when there is nothing to wait for.
    fn next_batch(&mut self) -> Option<InFlight> {
        let writable = self.nb.as_mut().is_none_or(Northbound::look);
        if !writable || !self.world.is_settled() || !(self.may_write)() {
            return None;
        }
        if self.sweep_at.is_some_and(|at| at <= Instant::now()) {
            self.sweep_at = None;
            self.learn();
            // what is new comes in the same moment as what is old goes
            let alone = self.refused_sweeps >= REFUSED_SWEEPS || self.most < usize::MAX;
            let keys = if alone { None } else { self.take_keys() };
            if let Some(batch) = self.plan(keys.unwrap_or_default(), true) {
                return Some(batch);
            }
        }
        if !self.clean {
            return None;
        }
        while let Some(keys) = self.take_keys() {
            if let Some(batch) = self.plan(keys, false) {
                return Some(batch);
            }
        }
        self.most = usize::MAX;
        if let Some(started) = self.started.take() {
            let seconds = started.elapsed().as_secs_f64();
            self.metrics.ready_duration.set(seconds);
            self.readiness.ready(PART);
            info!(seconds, "everything is written");
        }
        None
    }

    fn take_keys(&mut self) -> Option<Vec<Next>> {
        if let Some(half) = self.halves.pop_front() {
            return Some(half.into_iter().map(|key| Next { key, may_wait: false }).collect());
        }
        let cache = self.nb.as_ref().map(|nb| nb.client.cache());
        let limits = Limits { others: BATCH, all: self.most };
        let keys = batch::take(&mut self.dirty, limits, &self.world, &self.ledger, cache.as_deref());
        (!keys.is_empty()).then_some(keys)
    }

    /// Learns what all keys want, to know what is ours and wanted by none of them.
    fn learn(&mut self) {
        for key in &self.dirty {
            // beside what it has: that is taken back when the key is planned
            self.ledger.add(key, &Owned::of(ovnkube_plan::want(key, &self.world)));
        }
        if let Some(nb) = &mut self.nb
            && !std::mem::replace(&mut self.swept, true)
        {
            // the download: looked at here, all of it
            nb.forget();
            self.chassis.iter().for_each(|chassis| chassis.found(&nb.client.cache()));
        }
    }

    /// Plans these keys, and beside them the removal of what nobody wants; a transaction is sent only
    /// if something differs.
    fn plan(&mut self, keys: Vec<Next>, sweeps: bool) -> Option<InFlight> {
        let Self { world, nb, patches, parked, ledger, dirty, .. } = self;
        let now = Instant::now();
        let mut batch = Batch { keys: Vec::with_capacity(keys.len()), sweeps, ..Batch::default() };
        let cache = nb.as_ref().map(|nb| nb.client.cache());
        let mut diff = cache.as_ref().map(|cache| Diff::new(cache));
        if let (Some(diff), Some(cache)) = (diff.as_mut().filter(|_| sweeps), &cache) {
            garbage::collect(diff, cache, &nb::DATABASE, ledger.all(), &world.network);
            if diff.removals() > 0 {
                info!(removals = diff.removals(), "removing rows that nobody wants any more");
            }
        }
        for Next { key, may_wait } in keys {
            if may_wait && diff.as_ref().is_some_and(Diff::is_large) {
                dirty.insert(key);
                continue;
            }
            if parked.rests(&key, now) {
                continue;
            }
            let mut want = ovnkube_plan::want(&key, world);
            let patch = want.patch.take();
            if let Some(diff) = &mut diff {
                let old = ledger.get(&key).cloned().unwrap_or_default();
                if let Err(Missing(row)) = diff.key(&want, &old, ledger) {
                    debug!(%key, missing = %row, "waits for a row");
                    parked.park(key, Cause::Rows, now, Duration::ZERO);
                    continue;
                }
                ledger.write(&key, Owned::of(want));
                batch.keys.push((key.clone(), old));
            }
            if patch.is_none() {
                parked.forgive(&key, Cause::Patch);
            }
            if let Some(again) = patches.want(&key, patch) {
                parked.look_again(key, again);
            }
        }
        let parts = diff.map(|diff| diff.into_parts(&nb::DATABASE));
        drop(cache);
        let Some((txn, subjects)) = parts.filter(|(txn, _)| !txn.is_empty()) else {
            self.done(batch);
            return None;
        };
        (batch.subjects, batch.operations) = (subjects, txn.len());
        self.nb.as_ref().map(|nb| send(nb, batch, txn, &self.may_write))
    }

    fn done(&mut self, batch: Batch) {
        self.unknown = 0;
        if batch.sweeps {
            (self.clean, self.refused_sweeps) = (true, 0);
        }
        for (key, _) in batch.keys {
            self.parked.forgive(&key, Cause::Rows);
        }
    }

    fn finish(&mut self, batch: Batch, result: Result<(), Failure>) {
        self.metrics.transactions.inc();
        let Err(error) = result else {
            return self.done(batch);
        };
        self.metrics.transaction_errors.inc();
        warn!(%error, keys = batch.keys.len(), "transaction failed");
        self.suspect(&error, &batch);
        // what the keys had before is still to be taken back
        let sweeps = batch.sweeps;
        let keys: Vec<_> = batch
            .keys
            .into_iter()
            .map(|(key, old)| {
                self.ledger.add(&key, &old);
                key
            })
            .collect();
        if sweeps {
            self.sweep_soon();
        }
        let error = match error {
            // planned anew from what the database has by then
            Failure::NoLease => return self.retry_soon(keys),
            Failure::Txn(error) if error.is_retryable() || error.class == Class::Duplicate => {
                return self.retry_soon(keys);
            }
            Failure::Txn(error) => error,
        };
        self.refused(keys, &error, &batch.subjects, sweeps);
    }

    /// A large transaction that was lost again and again may be too large for who has to agree on it: from then on
    /// half of it goes at once, whatever should change together.
    fn suspect(&mut self, error: &Failure, batch: &Batch) {
        let is_unknown = matches!(error, Failure::Txn(error) if error.maybe_committed());
        if !is_unknown || batch.operations <= SMALL {
            return;
        }
        self.unknown += 1;
        if self.unknown >= UNKNOWN_OUTCOMES {
            (self.unknown, self.most) = (0, (batch.keys.len() / 2).max(1));
            let (operations, most) = (batch.operations, self.most);
            warn!(
                operations,
                most, "nobody knows what became of so large a transaction; from now on fewer keys at once"
            );
        }
    }

    /// Puts aside who is at fault: all others go on, and what changes together still does. Where the
    /// server cannot tell which operation it is, halves are tried.
    fn refused(&mut self, keys: Vec<Key>, error: &TxnError, subjects: &Subjects, sweeps: bool) {
        let is_guilty = |key: &Key| {
            let owned = self.ledger.get(key);
            error.op.zip(owned).is_some_and(|(op, owned)| subjects.concerns(op, owned))
        };
        let (mut guilty, mut others): (Vec<_>, Vec<_>) = keys.into_iter().partition(is_guilty);
        if guilty.is_empty() {
            std::mem::swap(&mut guilty, &mut others);
            if sweeps {
                self.refused_sweeps = REFUSED_SWEEPS;
            }
        } else if sweeps {
            // before those that wait are due again
            self.refused_sweeps += 1;
            self.sweep_at = Some(Instant::now());
        }
        self.dirty.extend(others);
        if guilty.len() == 1 {
            for key in guilty {
                warn!(%key, %error, "cannot be written; others go on");
                self.tell(&key, error);
                self.parked.refuse(key, Instant::now());
            }
        } else {
            let (left, right) = guilty.split_at(guilty.len() / 2);
            self.halves.extend([left.to_vec(), right.to_vec()].into_iter().filter(|half| !half.is_empty()));
        }
    }

    /// Tells people on the object itself why it has no network.
    fn tell(&self, key: &Key, error: &TxnError) {
        if let Some(object) = ovnkube_plan::object(key, &self.world) {
            let message =
                format!("the northbound database does not take its rows: {error}; tried again when it changes");
            self.events.publish(Notice { object, severity: Severity::Warning, reason: "RowsRefused", message });
        }
    }

    /// All at the same moment, so that what changes together still does.
    fn retry_soon(&mut self, keys: Vec<Key>) {
        let now = Instant::now();
        for key in keys {
            self.parked.park(key, Cause::Rows, now, Duration::ZERO);
        }
    }

    /// Looks at what others did to the database.
    fn see(&mut self, events: Vec<Event>) {
        let mut foreign = Vec::new();
        for event in events {
            match event {
                Event::Lost => warn!("the northbound database is away; what changes meanwhile is written later"),
                Event::Synced => debug!("the northbound database is as cached"),
                Event::Row(row) if !row.own && self.swept => foreign.push(row),
                Event::Row(_) => {}
            }
        }
        if !foreign.is_empty() {
            self.drifted(&foreign);
        }
    }

    /// Others changed rows: whoever wants one of them, or something in one, looks again.
    fn drifted(&mut self, events: &[RowEvent]) {
        // a row that was renamed is missed under its old name
        let rows = |event: &RowEvent| event.new.clone().into_iter().chain(event.old.clone());
        let ids = events.iter().flat_map(rows).filter_map(|row| Some((row.table().name, identity(&row)?)));
        let keys = self.ledger.interested(&ids.collect());
        // rows that look like ours and elements of ours: there may be too many now
        let leftover = |event: &RowEvent| event.new.as_deref().is_some_and(|row| is_garbage(row, false));
        if !keys.is_empty() || events.iter().any(leftover) {
            debug!(rows = events.len(), keys = keys.len(), "changed by somebody else");
            self.sweep_soon();
        }
        self.dirty.extend(keys);
    }

    fn sweep_soon(&mut self) {
        let soon = Instant::now() + SWEEP_AFTER;
        self.sweep_at = Some(self.sweep_at.map_or(soon, |at| at.min(soon)));
    }
}

impl Drop for Engine {
    /// Without the lease there is nothing to be ready for.
    fn drop(&mut self) {
        self.readiness.ready(PART);
    }
}

fn send(nb: &Northbound, batch: Batch, mut txn: Txn, may_write: &MayWrite) -> InFlight {
    let (client, may_write) = (nb.client.clone(), may_write.clone());
    txn.assert_lock(LOCK);
    Box::pin(async move {
        // planning took its time: asked again right before it goes
        let result = if may_write() {
            client.transact(txn).await.map(|_| ()).map_err(Failure::from)
        } else {
            Err(Failure::NoLease)
        };
        (batch, result)
    })
}

/// The future's result, or never where there is none.
async fn or_never<F: Future + Unpin>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
