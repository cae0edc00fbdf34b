//! The loop: changes in, transactions and patches out.
//!
//! ```text
//!  watch ──Change──▶ World ──Affected──▶ dirty keys ──plan, diff──▶ one transaction at a time ──▶ NB
//!                                          ▲                          patches, a few at a time ──▶ API
//!                      retried keys ───────┤
//!                      drift seen in NB ───┘
//! ```
//!
//! Keys collect while a transaction is in flight, and the next one carries them all: a burst costs few transactions,
//! and a single pod does not wait.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use ovnkube_model::{Affected, Change, Notice, Severity, World};
use ovnkube_ovn::nb;
use ovnkube_ovsdb::{Class, Event, RowEvent, TxnError};
use ovnkube_plan::Key;
use ovnkube_telemetry::{Metrics, Readiness};
use ovnkube_watch::Events;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::{debug, error_span, info, warn};

use crate::batch::{self, Limits, Next};
use crate::chassis::ChassisReports;
use crate::database_state::emptied;
use crate::diff::{Diff, Missing, Subjects};
use crate::drift::Drift;
use crate::garbage::{self, Left};
use crate::in_flight::{Batch, Failure, InFlight, or_never, send};
use crate::interconnection::{Offers, stored_interconnection};
use crate::may_write::MayWrite;
use crate::northbound::Northbound;
use crate::owner_index::{Noted, Owned, OwnerIndex};
use crate::parts::Parts;
use crate::patches::{LOST_AFTER, Outcome, Patches, SEEN_WITHIN};
use crate::recreated::{self, Resting};
use crate::refusal;
use crate::retry_queue::{Cause, RetryQueue};
use crate::sweep::Sweep;
use crate::takeover_check::TakeoverCheck;
use crate::ways::note_stored_ways;

/// Limit on the keys of one transaction that need not change together: large enough to carry a burst, small enough that
/// the reply does not delay the next pod.
const BATCH: usize = 500;
/// After this many large transactions in a row with an unknown outcome, half as many keys are sent at once.
const UNKNOWN_OUTCOMES: u32 = 2;
/// A transaction of at most this many operations is never suspected of being too large.
const SMALL: usize = 1000;
/// How often to check whether writing is allowed again.
const CHECK_AGAIN: Duration = Duration::from_millis(200);

/// How often a warning that still stands is repeated: the API server deletes an Event after an hour.
const REMIND: Duration = Duration::from_secs(1800);

/// Name of this part in `/readyz`.
const PART: &str = "controller";

/// Turns changes into transactions and patches; see the module.
pub struct Engine {
    world: World,
    nb: Option<Northbound>,
    chassis: Option<ChassisReports>,
    offers: Option<Offers>,
    patches: Patches,
    events: Events,
    may_write: MayWrite,
    dirty: BTreeSet<Key>,
    /// Halves of refused batches, to find the key that cannot be written.
    halves: VecDeque<Vec<Key>>,
    /// Keys of failed transactions, which wait to be tried again.
    failed: BTreeSet<Key>,
    /// Addresses that keys outside the present transaction have yet to give back.
    held: BTreeSet<String>,
    /// Large transactions in a row whose outcome is unknown.
    unknown: u32,
    /// The outcome of the last transaction is unknown. Its keys wait to be tried again.
    is_lost: bool,
    /// Limit on the keys of one transaction: lowered after such outcomes, until everything is written.
    most: usize,
    owner_index: OwnerIndex,
    retries: RetryQueue,
    /// Batches planned so far: the number of the last one, in logs.
    batches: u64,
    sweep: Sweep,
    resting: Resting,
    takeover: TakeoverCheck,
    reminded: Instant,
    metrics: Arc<Metrics>,
    readiness: Readiness,
    /// When the engine started; `None` once everything was written for the first time.
    started: Option<Instant>,
}

impl Engine {
    pub fn new(parts: Parts) -> Self {
        let Parts { world, nb, writing, chassis, offers, patches, events, may_write, takeover, metrics, readiness } =
            parts;
        readiness.wait(PART, "the first lists are not written yet");
        Self {
            world,
            nb: nb.map(|nb| Northbound::new(nb, takeover.gate(may_write.clone()), writing)),
            chassis,
            offers,
            patches,
            events,
            may_write,
            dirty: BTreeSet::new(),
            halves: VecDeque::new(),
            failed: BTreeSet::new(),
            held: BTreeSet::new(),
            unknown: 0,
            is_lost: false,
            most: usize::MAX,
            owner_index: OwnerIndex::default(),
            retries: RetryQueue::default(),
            batches: 0,
            sweep: Sweep::new(Instant::now()),
            resting: Resting::default(),
            takeover,
            reminded: Instant::now(),
            metrics,
            readiness,
            started: Some(Instant::now()),
        }
    }

    /// Runs until all senders of `changes` are dropped.
    pub async fn run(mut self, mut changes: mpsc::Receiver<Change>) {
        let mut news = Vec::new();
        let mut in_flight: Option<InFlight> = None;
        loop {
            // one moment for both: nothing would wake what becomes due, or allowed, between them
            let (now, may_write) = (Instant::now(), (self.may_write)());
            if in_flight.is_none() {
                in_flight = self.next_batch(now, may_write);
            }
            let wake = self.next_wake(now, may_write);
            tokio::select! {
                biased;
                (batch, result) = or_never(in_flight.as_mut()) => {
                    in_flight = None;
                    self.finish(batch, result);
                }
                // these two end by themselves; changes may go on as long as another program writes
                outcome = self.patches.finished() => self.patched(outcome),
                () = tokio::time::sleep_until(wake) => self.wake(),
                count = changes.recv_many(&mut news, 1024) => {
                    if count == 0 {
                        return;
                    }
                    for change in news.drain(..) {
                        self.apply_change(change);
                    }
                }
                seen = or_never(self.nb.as_mut().map(|nb| Box::pin(nb.next()))) => self.on_database_events(seen),
            }
        }
    }

    /// When to look again if nothing happens. `now` and `may_write`: what the last look went by.
    fn next_wake(&self, now: Instant, may_write: bool) -> Instant {
        let (retry, remind) = (self.retries.next_wake(), self.reminded + REMIND);
        let due = || [self.sweep.due(), self.resting.due()].into_iter().flatten();
        let (overdue, later) = (due().any(|at| at <= now), due().filter(|at| *at > now).min());
        // no event says when the lease is held again
        let waiting = overdue || !self.dirty.is_empty() || !self.halves.is_empty();
        let blocked = ((waiting && !may_write) || self.patches.are_held_up()).then(|| now + CHECK_AGAIN);
        [retry, blocked, later].into_iter().flatten().min().map_or(remind, |wake| wake.min(remind))
    }

    /// Publishes what people still have to do, so that they still find it.
    fn remind(&mut self) {
        self.reminded = Instant::now();
        let refused = if self.sweep.has_begun() { Vec::new() } else { self.takeover.notices(&self.world) };
        let all = self.world.notices(&Affected::Everything).into_iter().chain(refused).chain(self.old_schema());
        all.for_each(|notice| self.events.publish(notice));
    }

    fn wake(&mut self) {
        if self.reminded.elapsed() >= REMIND {
            self.remind();
        }
        self.patches.start();
        for (key, about) in self.retries.take_ready(Instant::now()) {
            if about != Cause::Rows {
                self.patches.doubt(&key, about == Cause::Patch);
            }
            self.failed.remove(&key);
            self.dirty.insert(key);
        }
    }

    fn apply_change(&mut self, change: Change) {
        self.metrics.changes.inc();
        let was_known = self.world.joined.is_known();
        for affected in self.world.apply(change) {
            if affected == Affected::Everything {
                info!(nodes = self.world.nodes.len(), pods = self.world.pods.len(), "all lists are in");
            }
            ovnkube_plan::affected(&affected, &self.world, &mut self.dirty);
            let mut notices = self.world.notices(&affected);
            debug_assert!(notices.iter().all(|notice| notice.severity == Severity::Warning));
            self.chassis.iter().for_each(|chassis| chassis.update(&affected, &self.world));
            self.offers.iter().for_each(|offers| offers.update(&affected, &self.world, &notices));
            notices.drain(..).for_each(|notice| self.events.publish(notice));
        }
        if !was_known && self.world.joined.is_known() {
            self.sweep.request(Instant::now());
        }
    }

    fn patched(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Accepted(key) => {
                self.metrics.patches.inc();
                self.retries.forget(&key, Cause::Patch);
                if self.patches.is_unseen(&key) {
                    self.retries.add_after(key, Instant::now() + LOST_AFTER);
                }
            }
            Outcome::Failed(key, at_least) => {
                self.metrics.patch_errors.inc();
                self.retries.add_rate_limited(key, Cause::Patch, Instant::now(), at_least);
            }
            // a watch that stands still shows no conflict ever
            Outcome::Conflict(key) => self.retries.add_rate_limited(key, Cause::Patch, Instant::now(), SEEN_WITHIN),
            Outcome::Gone(key) => self.retries.forget(&key, Cause::Patch),
            Outcome::Outdated(key) => drop(self.dirty.insert(key)),
        }
    }

    /// Sends the next transaction; `None` if there is nothing to send or writing is not allowed.
    fn next_batch(&mut self, now: Instant, may_write: bool) -> Option<InFlight> {
        let writable = self.nb.as_mut().is_none_or(Northbound::check_writable);
        // what others have put into the database is known before anything is planned from it
        if let Some(events) = self.nb.as_mut().map(Northbound::take).filter(|events| !events.is_empty()) {
            self.on_database_events(events);
        }
        // without the lock, too: it decides whether the lock may be taken
        if !self.world.is_settled() || !self.may_begin() || !writable || !may_write {
            return None;
        }
        self.read_stored();
        // new rows appear in the same transaction in which old ones go
        let alone = self.sweep.is_alone() || self.most < usize::MAX;
        if self.sweep.is_due(now) {
            let noted = self.note_all_wants();
            let keys = if alone { None } else { self.take_keys() };
            if let Some(batch) = self.plan(keys.unwrap_or_default(), Some(noted)) {
                return Some(batch);
            }
        }
        if !self.sweep.is_clean() {
            return None;
        }
        while let Some(keys) = self.take_keys() {
            if let Some(batch) = self.plan(keys, None) {
                return Some(batch);
            }
        }
        if self.resting.is_due(now)
            && let Some(batch) = self.plan(Vec::new(), None)
        {
            return Some(batch);
        }
        if !self.is_lost {
            self.most = usize::MAX;
        }
        if let Some(started) = self.started.take() {
            let seconds = started.elapsed().as_secs_f64();
            self.metrics.ready_duration.set(seconds);
            self.readiness.ready(PART);
            info!(seconds, "everything is written");
        }
        None
    }

    /// Takes notice of what the database says of the interconnection, before anything of it is removed.
    fn read_stored(&mut self) {
        let Some(nb) = &self.nb else { return };
        // later there are none but its own
        if self.sweep.due().is_some() || !self.sweep.is_clean() {
            note_stored_ways(&nb.client.cache(), &self.world, &mut self.owner_index, &mut self.dirty);
        }
        let news = stored_interconnection(&nb.client.cache(), &self.world);
        if let Some(news) = news {
            self.apply_change(news);
        }
    }

    /// Whether the first sweep may begin, or has begun; says once why it may not.
    fn may_begin(&mut self) -> bool {
        let Some(nb) = self.nb.as_ref().filter(|_| !self.sweep.has_begun()) else { return true };
        if nb.is_live()
            && let Some(news) = self.takeover.look(&nb.client.cache(), &self.world)
        {
            self.takeover.notices(&self.world).into_iter().for_each(|notice| self.events.publish(notice));
            news.log().into_iter().for_each(|why| self.readiness.wait(PART, why));
        }
        self.takeover.may_begin()
    }

    fn take_keys(&mut self) -> Option<Vec<Next>> {
        let half = self.halves.pop_front();
        let is_part = half.is_some() || self.most < usize::MAX;
        let keys = match half {
            Some(half) => half.into_iter().map(|key| Next { key, may_wait: false }).collect(),
            None => self.take_dirty(),
        };
        if let Some(nb) = self.nb.as_ref().filter(|_| !keys.is_empty()) {
            let rest = self.dirty.iter().filter(|_| is_part).chain(self.halves.iter().flatten());
            let others = rest.chain(self.retries.refused()).chain(&self.failed);
            self.held = batch::not_given_back(others, &keys, &self.world, &self.owner_index, &nb.client.cache());
        }
        (!keys.is_empty()).then_some(keys)
    }

    fn take_dirty(&mut self) -> Vec<Next> {
        let cache = self.nb.as_ref().map(|nb| nb.client.cache());
        let limits = Limits { others: BATCH, all: self.most };
        if !self.dirty.is_empty() {
            let mut along = batch::take_along(&mut self.failed, &self.dirty, &self.world, cache.as_deref());
            self.dirty.append(&mut along);
        }
        batch::take(&mut self.dirty, limits, &self.world, &self.owner_index, cache.as_deref())
    }

    /// Notes what all dirty keys want, so that the sweep does not remove it; see [`OwnerIndex::note`].
    fn note_all_wants(&mut self) -> Noted {
        let is_first = self.sweep.begin();
        let noted = self.owner_index.note(&self.dirty, &self.world);
        if let Some(nb) = self.nb.as_mut().filter(|_| is_first) {
            // these events are the download, and the sweep reads all of it from the cache
            nb.take();
            self.chassis.iter().for_each(|chassis| chassis.found(&nb.client.cache()));
        }
        noted
    }

    /// Plans these keys, and, if wants were `noted` for that, the removal of what no key wants. Sends a transaction only if
    /// something differs.
    fn plan(&mut self, keys: Vec<Next>, noted: Option<Noted>) -> Option<InFlight> {
        let (sweeps, mut noted) = (noted.is_some(), noted.unwrap_or_default());
        let keeps_ways = sweeps && (self.has_ways() || batch::has_ways(keys.iter().map(|next| &next.key)));
        let Self { world, nb, patches, retries, owner_index, dirty, held, batches, most, resting, .. } = self;
        *batches += 1;
        let now = Instant::now();
        let span = error_span!("batch", number = *batches);
        let _inside = span.enter();
        let mut batch = Batch {
            keys: Vec::with_capacity(keys.len()),
            waiting: Vec::new(),
            subjects: Subjects::default(),
            sweeps: sweeps.then_some(Left::Nothing),
            operations: 0,
            emptied: BTreeSet::new(),
            rested: BTreeSet::new(),
            span: span.clone(),
        };
        let cache = nb.as_ref().map(|nb| nb.client.cache());
        let mut diff = cache.as_ref().map(|cache| recreated::diff(cache));
        let mut unused = Some(Vec::new());
        if let (Some(diff), Some(cache)) = (diff.as_mut().filter(|_| sweeps), &cache) {
            let at_one_moment = *most == usize::MAX;
            unused = garbage::collect(diff, cache, &nb::DATABASE, owner_index.all(), world, at_one_moment, keeps_ways);
            let removals = garbage::removals(diff, unused.as_ref());
            if removals > 0 {
                info!(removals, "removing rows that are no longer wanted");
            }
            diff.begin_keys();
        }
        for Next { key, may_wait } in keys {
            if unused.is_none() || (may_wait && diff.as_ref().is_some_and(Diff::is_large)) {
                dirty.insert(key);
                continue;
            }
            let mut waits = retries.hold_back(&key, now);
            let mut want = noted.remove(&key).unwrap_or_else(|| ovnkube_plan::want(&key, world));
            let patch = want.patch.take();
            if let (Some(diff), Some(cache)) = (&mut diff, &cache) {
                let old = owner_index.get(&key).cloned().unwrap_or_default();
                if !waits {
                    let missing = if batch::wants_one_of(&want, held) {
                        Some("an address that another port still has".to_owned())
                    } else {
                        diff.key(&want, &old, owner_index).err().map(|Missing(row)| row.to_string())
                    };
                    if let Some(missing) = missing {
                        debug!(%key, missing, "waits");
                        retries.add_rate_limited(key.clone(), Cause::Rows, now, Duration::ZERO);
                        waits = true;
                    }
                }
                if waits {
                    let is_lost = batch::has_lost_addresses(&key, &want, &old, cache);
                    batch.waiting.extend(is_lost.then(|| diff.take_back(key, old, owner_index)));
                    continue;
                }
                owner_index.write(&key, Owned::of(&want));
                batch.keys.push((key.clone(), old));
            }
            if patch.is_none() {
                retries.forget_patch(&key);
            }
            if let Some(again) = patches.want(&key, patch) {
                retries.add_after(key, again);
            }
        }
        if let (Some(diff), Some(cache)) = (diff.as_mut().filter(|_| sweeps), &cache) {
            let remove = |unused| garbage::remove_unused(diff, cache, &unused, keeps_ways);
            batch.sweeps = Some(unused.map_or(Left::InUse, remove));
        }
        if let (Some(diff), Some(cache)) = (&mut diff, &cache) {
            batch.rested = resting.remove(diff, cache, owner_index, now);
        }
        let parts = diff.map(|diff| diff.into_parts(&nb::DATABASE));
        drop(cache);
        let txn = parts.map(|(txn, subjects, emptied)| {
            (batch.subjects, batch.operations, batch.emptied) = (subjects, txn.len(), emptied);
            txn
        });
        let Some(txn) = txn.filter(|txn| !txn.is_empty()) else {
            self.done(batch);
            return None;
        };
        self.nb.as_ref().map(|nb| send(nb, batch, txn, &self.may_write))
    }

    /// Whether ways to other clusters are still to be written.
    fn has_ways(&self) -> bool {
        batch::has_ways(self.dirty.iter().chain(self.halves.iter().flatten()).chain(&self.failed))
    }

    fn done(&mut self, batch: Batch) {
        // keys that differ in nothing say nothing about large transactions
        if batch.operations > 0 {
            (self.unknown, self.is_lost) = (0, false);
        }
        self.resting.add(batch.emptied, Instant::now());
        batch.sweeps.iter().for_each(|left| self.sweep.went(*left, Instant::now()));
        for (key, _) in batch.keys {
            self.retries.forget(&key, Cause::Rows);
            self.failed.remove(&key);
        }
        if self.sweep.left_ways() && !self.has_ways() {
            self.sweep.ways_are_written(Instant::now());
        }
    }

    fn finish(&mut self, batch: Batch, result: Result<(), Failure>) {
        let span = batch.span.clone();
        let _inside = span.enter();
        let was_sent = !matches!(result, Err(Failure::NoLease | Failure::Claimed));
        self.nb.iter_mut().for_each(|nb| nb.note(matches!(result, Err(Failure::Full(_)))));
        self.metrics.transactions.inc_by(was_sent.into());
        let Err(error) = result else { return self.done(batch) };
        self.metrics.transaction_errors.inc_by(was_sent.into());
        if !matches!(error, Failure::Claimed) {
            warn!(%error, keys = batch.keys.len(), "transaction failed");
        }
        self.suspect(&error, &batch);
        self.resting.add(batch.rested, Instant::now());
        // what the keys had before still has to be taken back
        let sweeps = batch.sweeps.is_some();
        let keys: Vec<_> = batch
            .keys
            .into_iter()
            .chain(batch.waiting)
            .inspect(|(key, old)| self.owner_index.add(key, old))
            .map(|(key, _)| key)
            .collect();
        if sweeps {
            self.sweep.failed(Instant::now(), matches!(error, Failure::Claimed));
        }
        let error = match error {
            Failure::Claimed | Failure::Full(_) => return self.dirty.extend(keys),
            // planned again from what the database has by then
            Failure::NoLease => return self.retry_soon(keys),
            Failure::Txn(error) if error.is_retryable() || error.class == Class::Duplicate => {
                return self.retry_soon(keys);
            }
            Failure::Txn(error) => error,
        };
        self.refused(keys, &error, &batch.subjects, sweeps);
    }

    /// A large transaction whose outcome is unknown again and again may be too large for the servers to agree on. From
    /// then on half as many keys go at once, even of those that should change together.
    fn suspect(&mut self, error: &Failure, batch: &Batch) {
        let is_unknown = matches!(error, Failure::Txn(error) if error.maybe_committed());
        if !is_unknown || batch.operations <= SMALL {
            return;
        }
        self.is_lost = true;
        self.unknown += 1;
        if self.unknown >= UNKNOWN_OUTCOMES {
            // a sweep alone has no keys
            let keys = if batch.keys.is_empty() { BATCH } else { batch.keys.len() };
            (self.unknown, self.most) = (0, (keys / 2).max(1));
            let (operations, most) = (batch.operations, self.most);
            warn!(
                operations,
                most, "the outcome of a large transaction is not known; writing fewer keys at once from now on"
            );
        }
    }

    /// Delays the keys at fault; all others go on, and what changes together still does. If the server cannot say which
    /// operation failed, halves are tried.
    fn refused(&mut self, keys: Vec<Key>, error: &TxnError, subjects: &Subjects, sweeps: bool) {
        let is_guilty = |key: &Key| {
            let owned = self.owner_index.get(key);
            error.op.zip(owned).is_some_and(|(op, owned)| subjects.concerns(op, owned))
        };
        let (mut guilty, mut others): (Vec<_>, Vec<_>) = keys.into_iter().partition(is_guilty);
        if guilty.is_empty() {
            std::mem::swap(&mut guilty, &mut others);
            if sweeps {
                self.sweep.was_refused(Instant::now());
            }
        } else if sweeps {
            self.sweep.keys_were_refused(Instant::now());
        }
        self.dirty.extend(others);
        if guilty.len() == 1 {
            for key in guilty {
                warn!(%key, %error, "cannot write its rows; other keys are not affected");
                refusal::report(&self.events, &self.world, &key, error);
                self.retries.add_refused(key, Instant::now());
            }
        } else {
            let (left, right) = guilty.split_at(guilty.len() / 2);
            self.halves.extend([left.to_vec(), right.to_vec()].into_iter().filter(|half| !half.is_empty()));
        }
    }

    /// Retries all keys, so that what changes together still does: also with others that are written before.
    fn retry_soon(&mut self, keys: Vec<Key>) {
        let now = Instant::now();
        for key in keys {
            self.retries.add_rate_limited(key.clone(), Cause::Rows, now, Duration::ZERO);
            self.failed.insert(key);
        }
    }

    /// Handles what other programs did to the database.
    fn on_database_events(&mut self, events: Vec<Event>) {
        self.takeover.forget();
        let mut foreign = Vec::new();
        for event in events {
            match event {
                Event::Lost => warn!("the northbound database is away; what changes meanwhile is written later"),
                Event::Synced => self.look_at_schema(),
                Event::Row(row) if !row.own && self.sweep.has_begun() => foreign.push(row),
                Event::Row(_) => {}
            }
        }
        if !foreign.is_empty() {
            self.drifted(&foreign);
        }
    }

    /// The database is as cached. With another schema all is planned again; what is as it should be costs no write.
    fn look_at_schema(&mut self) {
        if self.nb.as_mut().is_some_and(Northbound::has_another_schema) {
            ovnkube_plan::affected(&Affected::Everything, &self.world, &mut self.dirty);
            self.sweep.request(Instant::now());
        }
        self.old_schema().into_iter().for_each(|notice| self.events.publish(notice));
    }

    fn old_schema(&self) -> Option<Notice> {
        let why = self.nb.as_ref()?.too_old.clone()?;
        Some(self.takeover.warning(&self.world, "DatabaseTooOld", why))
    }

    /// Other programs changed rows: the keys that want one of them, or something in one, are planned again.
    fn drifted(&mut self, events: &[RowEvent]) {
        let Some(client) = self.nb.as_ref().map(|nb| nb.client.clone()) else { return };
        if let Some(why) = emptied(events, &self.owner_index, &client.cache()) {
            warn!("{why}");
            self.events.publish(self.takeover.warning(&self.world, "DatabaseEmptied", why));
        }
        let drift = Drift::of(events, &self.owner_index, &self.world, &client.cache());
        drift.request_sweep(&mut self.sweep, Instant::now());
        self.dirty.extend(drift.keys);
    }
}

impl Drop for Engine {
    /// Without the lease this part has no work, so it counts as ready.
    fn drop(&mut self) {
        self.readiness.ready(PART);
    }
}
