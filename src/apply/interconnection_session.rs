//! Connections to the databases that joined clusters share, and what is read and written there.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ovnkube_interconnect::{
    Databases, Emptied, Hearing, Listening, Moment, Returning, Step, Way, ask, has_own_zone, has_rows, has_zone, step,
    withdraw,
};
use ovnkube_model::{Change, Interconnection, Name, Peers, Server, Stuck, Written};
use ovnkube_ovn::ic_sb::ic_sb_global;
use ovnkube_ovn::{Database, Uuid, ic_nb, ic_sb, owner, sb};
use ovnkube_ovsdb::{Class, Client, Lock, Options, Remote, Subscription, TlsFiles, Txn, TxnError};
use ovnkube_plan::Offer;
use ovnkube_telemetry::{Connected, InterconnectionMetrics};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{info, warn};

use crate::interconnection_reasons::{Place, UNCERTIFIED, away, emptied, incomplete};
use crate::interconnection_refusals::{Lasting, Refusals, SAY_AFTER, tell};
use crate::may_write::MayWrite;
use crate::pace::Pace;
use crate::since::Since;
use crate::write_lock::LOCK;

/// Wait after a failure, and while writing is not allowed.
pub(crate) const TRY_AGAIN: Duration = Duration::from_secs(1);
/// How long to wait for databases from which the cluster is removed, or for those that are silent while something else is wanted.
pub(crate) const LEAVE_WITHIN: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// How long the other clusters have to follow what was written, before what it replaces goes.
const SETTLED_AFTER: Duration = Duration::from_secs(3);
/// A shared database that is silent for so long is asked whether it is there, and given up after as long again: a cluster that writes
/// nothing there notices in no other way that a server hangs, and until then does not follow the others. OVN's own clients ask as often.
const PROBE: Duration = Duration::from_secs(5);
/// The most that is read of a database which other clusters write: a master keeps all of it in memory.
const MOST_BYTES: usize = 64 << 20;
/// How soon it is noticed that a problem is mended.
const MENDED_WITHIN: Duration = Duration::from_secs(10);
/// The other side may take so long until its gateway passes packets of a way that is open.
const KNOWN_AFTER: Duration = Duration::from_secs(2);
/// The key of a transit switch that IC-NB does not have goes after so long. One that was just made may be told later there than its key in
/// IC-SB: by a server that stands still, until its connection counts as lost, after twice [`PROBE`], and the next server has been read.
const STALE_AFTER: Duration = Duration::from_secs(25);
/// For so long ovn-controller of a gateway may be away, as while it is restarted.
const IDLE_AFTER: Duration = Duration::from_secs(30);
/// Longest wait when nothing is due.
const REST: Duration = Duration::from_secs(3600);

/// How to reach the databases, and whether they may be written to.
pub struct JoinSettings {
    /// For servers with TLS.
    pub tls: Option<TlsFiles>,
    pub txn_timeout: Duration,
    pub may_write: MayWrite,
    pub metrics: InterconnectionMetrics,
    pub listening: Listening,
}

fn is_live(client: &Client) -> bool {
    client.state().borrow().is_live()
}

/// Since 1970, as the interconnection databases hold times.
pub fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

pub(crate) async fn write(client: &Client, txn: Txn, what: &str) -> Result<(), TxnError> {
    let done = client.transact(txn).await;
    let is_failure = |error: &&TxnError| error.class != Class::Claimed;
    done.as_ref().err().filter(is_failure).inspect(|error| warn!(%error, "cannot write to {what}"));
    done.map(drop)
}

/// The databases of this cluster.
#[derive(Clone)]
pub struct OwnDatabases {
    pub nb: Client,
    pub sb: Client,
}

/// Where databases are.
#[derive(Clone, PartialEq)]
pub(crate) struct Reach {
    servers: Vec<Server>,
    nb_port: u16,
    sb_port: u16,
}

impl Reach {
    pub(crate) fn of(offer: &Offer) -> Self {
        Self::of_wanted(&offer.wanted)
    }

    pub(crate) fn of_wanted(wanted: &Interconnection) -> Self {
        Self { servers: wanted.servers.clone(), nb_port: wanted.nb_port, sb_port: wanted.sb_port }
    }
}

/// The shared southbound database where the cluster is, if it is in any.
pub(crate) type Joined = watch::Receiver<Option<Client>>;

/// Connections to the databases of one interconnection.
pub(crate) struct Session {
    pub(crate) reach: Reach,
    pub(crate) offer: Arc<Offer>,
    north: Client,
    south: Client,
    sb: Client,
    /// It was there before there was an offer.
    nb: Client,
    events: [Subscription; 3],
    may_write: MayWrite,
    /// What to say where servers with TLS are wanted, and this process has no certificate for them.
    uncertified: Option<&'static str>,
    metrics: InterconnectionMetrics,
    listening: Listening,
    began: Instant,
    /// The engine knows that these databases, the next ones, are there.
    pub(crate) is_reached: bool,
    hearing: Hearing,
    emptied: Emptied,
    returning: Returning,
    /// When the next step is due if nothing happens.
    wake: Instant,
    /// What the engine was told.
    told: Option<Peers>,
    /// How often others were followed, and what is to be.
    pace: Pace,
    /// Whether it has taken steps: an empty zone of this name is then this cluster's.
    has_stepped: bool,
    /// The name whose zone this session has made, if that is the present one.
    made: Option<Name>,
    /// Names that the cluster had in this session, of zones that it made, until these are gone or another cluster's.
    vacated: Vec<Name>,
    /// When something was written last that others follow.
    wrote: Instant,
    /// How often a row of IC-NB had changed when it was live last.
    north_changes: Option<u64>,
    /// When it was heard last whether the others are there, since the session began.
    heard: Duration,
    /// Gateways of this cluster that carry nothing.
    idle: Lasting,
    /// The ways that are open.
    opened: Since<Way>,
    /// Keys of transit switches that are not there.
    stale: Since<Uuid>,
    /// Since when it is not as it should be.
    waits: Option<Instant>,
    /// What is not taken of what is written.
    refusals: Refusals,
    /// What people were told of that.
    said: Option<Name>,
    /// Whether they were told by this session: an earlier one may have told them something.
    has_said: bool,
}

impl Session {
    pub(crate) fn start(offer: Arc<Offer>, own: OwnDatabases, settings: &JoinSettings) -> Self {
        Self::start_at(Reach::of(&offer), offer, own, settings)
    }

    /// In other databases than those that the offer names.
    pub(crate) fn start_at(reach: Reach, offer: Arc<Offer>, own: OwnDatabases, settings: &JoinSettings) -> Self {
        let connect = |database: &'static Database, port| {
            let texts = reach.servers.iter().map(|server| server.remote(port));
            let remotes: Vec<Remote> = texts.filter_map(|text| Remote::parse(&text).ok()).collect();
            Client::connect(Options {
                tls: settings.tls.clone(),
                txn_timeout: settings.txn_timeout,
                probe: Some(PROBE),
                max_message: MOST_BYTES,
                max_rows: Some(MOST_BYTES),
                ..Options::new(database, remotes)
            })
        };
        let north = connect(&ic_nb::DATABASE, reach.nb_port);
        let south = connect(&ic_sb::DATABASE, reach.sb_port);
        Self {
            events: [north.subscribe(), south.subscribe(), own.sb.subscribe()],
            may_write: settings.may_write.clone(),
            uncertified: (settings.tls.is_none() && reach.servers.iter().any(|server| server.tls))
                .then_some(UNCERTIFIED),
            metrics: settings.metrics.clone(),
            listening: settings.listening,
            began: Instant::now(),
            is_reached: false,
            hearing: Hearing::default(),
            emptied: Emptied::default(),
            returning: Returning::default(),
            reach,
            offer,
            north,
            south,
            sb: own.sb,
            nb: own.nb,
            wake: Instant::now(),
            told: None,
            pace: Pace::new(Instant::now()),
            has_stepped: false,
            made: None,
            vacated: Vec::new(),
            wrote: Instant::now(),
            waits: None,
            refusals: Refusals::default(),
            north_changes: None,
            heard: Duration::ZERO,
            idle: Lasting::default(),
            opened: Since::new(KNOWN_AFTER),
            stale: Since::new(STALE_AFTER),
            said: None,
            has_said: false,
        }
    }

    /// The cluster may have been there with an earlier master: its own northbound database tells what it had.
    pub(crate) fn resumed(self) -> Self {
        let emptied = Emptied::resumed(&self.nb.cache());
        Self { emptied, returning: Returning::resumed(), ..self }
    }

    /// The cluster was elsewhere before. What it uses there of the others stays for a while: here it has no address yet, and they may move, too.
    pub(crate) fn moved(self) -> Self {
        Self { returning: Returning::resumed(), ..self }
    }

    /// Wants this from now on. The engine may have forgotten what it was told.
    pub(crate) fn follow(&mut self, offer: &Arc<Offer>) {
        let before = std::mem::replace(&mut self.offer, offer.clone());
        if before.wanted.zone != offer.wanted.zone {
            self.vacated.extend(self.made.take());
        }
        self.told = None;
        self.wake = Instant::now();
    }

    /// Returns when both databases are there. While they are awaited, the cluster stays where it is.
    pub(crate) async fn is_live(&self) {
        self.north.synced().await;
        self.south.synced().await;
    }

    /// Returns when it has waited for them for so long that people should know, with what to tell them.
    pub(crate) async fn is_late(&self) -> Name {
        sleep_until(self.began + SAY_AFTER).await;
        let away = self.north_away().or_else(|| self.south_away());
        away.unwrap_or_else(|| "the databases that it should move to were not there for a while".into())
    }

    /// Whether another session has the same southbound database, with other servers.
    pub(crate) fn shares_rows(&self, other: &Self) -> bool {
        is_same(&self.south, &other.south)
    }

    /// Returns when the next step is due.
    pub(crate) async fn is_due(&mut self) {
        let Self { events: [north, south, own], pace, wake, .. } = self;
        loop {
            tokio::select! {
                biased;
                _ = north.recv() => return,
                events = south.recv() => if pace.calls_for_step(&events) {
                    return;
                },
                _ = own.recv() => return,
                () = sleep_until(*wake) => return,
            }
        }
    }

    /// Takes one step. What it has sent when it is dropped may be written all the same, unknown to who leaves next: that one looks again.
    pub(crate) async fn take(&mut self, lock: &Lock, changes: &mpsc::WeakSender<Change>) {
        self.wake = self.step(lock, changes).await;
    }

    /// One step; returns when the next one is due if nothing happens.
    async fn step(&mut self, lock: &Lock, changes: &mpsc::WeakSender<Change>) -> Instant {
        let now = Instant::now();
        self.metrics.connected(Some(Connected { north: is_live(&self.north), south: is_live(&self.south) }));
        let (north_changes, north_away, missing) = (self.whole_north(), self.north_away(), self.missing(lock));
        let is_partial = north_away.is_some();
        if (north_changes.is_none() || missing.is_some())
            && let Some(problem) = north_away.clone().or(missing)
        {
            self.say_late(problem, now, changes).await;
            return now + TRY_AGAIN;
        }
        if !is_partial {
            self.waits = None;
        }
        if self.emptied.waits(&self.north.cache(), now - self.began) {
            self.say(Some(emptied()), changes).await;
            return now + TRY_AGAIN;
        }
        if let Some(due) = self.pace.due(now) {
            return due;
        }
        self.has_stepped = true;
        let settled = self.wrote + SETTLED_AFTER;
        self.vacated.retain(|name| has_own_zone(&self.south.cache(), name, &self.offer.cluster));
        let makes = (!has_zone(&self.south.cache(), &self.offer.wanted.zone)).then(|| self.offer.wanted.zone.clone());
        let known: BTreeSet<Way> = self.opened.lasting(now).collect();
        let stale: Vec<Uuid> = self.stale.lasting(now).collect();
        let (is_settled, vacated, known) = (settled <= now, &self.vacated, Some(&known));
        let moment = Moment { is_settled, now: seconds(), vacated, stale: &stale, known, is_partial };
        let all = self.with_databases(|databases| step(&self.offer, databases, Some(&self.nb.cache()), moment));
        let took = now.elapsed();
        let Step { mut claims, offers, mut chassis, mut peers, numbers, open, idle, stale, goes_on, .. } = all;
        let is_soon = all.is_soon;
        self.pace.has_one_name = all.has_one_name;
        if is_partial && north_changes != Some(self.north.stats().changes) {
            // it is being read again
            return now;
        }
        let (own, since) = (owner::fnv1a(&self.offer.cluster), now - self.began);
        if !is_partial {
            self.heard = since;
            self.hearing.hear(&numbers, since);
        }
        for name in self.hearing.silent(self.listening, self.heard) {
            peers.clusters.entry(name.clone()).or_default().silent = true;
        }
        let database = database(&self.south);
        let is_incomplete = self.returning.waits(database, &self.nb.cache(), &peers, since);
        if is_incomplete {
            // what the others have not written again yet stays here; what is this cluster's is there at once, for them
            chassis = Txn::new(&sb::DATABASE);
        }
        if !is_partial && claims.is_empty() && self.hearing.asks(own, self.listening, since) {
            claims = ask(&self.north.cache(), moment.now);
        }
        match north_away.filter(|_| !is_incomplete) {
            Some(away) => {
                let problem = format!("{away}. Gateways and routes are followed all the same");
                self.say_late(problem.into(), now, changes).await;
            }
            None => self.say(is_incomplete.then(incomplete), changes).await,
        }
        let next = self.hearing.next(own, self.listening, since).filter(|_| !is_partial);
        let rest = next.map_or(now + if is_partial { SAY_AFTER } else { REST }, |at| self.began + at);
        let due = self.idle.note(Stuck::Gateways, (idle.map(Name::from), IDLE_AFTER), changes).await;
        // some problems are rows of NB, whose changes wake nobody here
        let mended = (!peers.problems.is_empty()).then(|| now + MENDED_WITHIN);
        let more = [
            due,
            self.opened.note(open, now),
            self.stale.note(stale, now),
            (is_soon || is_incomplete).then(|| now + TRY_AGAIN),
            mended,
        ];
        let rest = more.into_iter().flatten().fold(rest, Instant::min);
        let is_told = self.told.as_ref() == Some(&peers);
        let has_writes = [&claims, &offers, &chassis].iter().any(|txn| !txn.is_empty());
        // the first step after an edit here follows that
        if !has_writes && is_told {
            self.pace.note_in_vain(now + took, took);
        } else if self.told.is_some() {
            self.pace.note(now);
        }
        if !is_incomplete && !is_told {
            let Some(engine) = changes.upgrade() else { return now + REST };
            if engine.send(Change::Peers(Box::new(peers.clone()))).await.is_ok() {
                self.told = Some(peers);
            }
        }
        if !has_writes {
            self.refusals.none(changes).await;
            return if goes_on { settled.min(rest) } else { rest };
        }
        if !offers.is_empty() {
            self.wrote = now;
        }
        let (told, written) = (self.refusals.told(), self.write([claims, offers, chassis], makes, changes).await);
        match (written, told) {
            (true, _) => rest.min(now + SETTLED_AFTER),
            (false, false) => now + TRY_AGAIN,
            (false, true) => now + SAY_AFTER,
        }
    }

    /// How often a row of IC-NB has changed, if all of it is known: it is live, or none has changed since it was. Of what is read again, a
    /// part may be missing.
    fn whole_north(&mut self) -> Option<u64> {
        let changes = self.north.stats().changes;
        if is_live(&self.north) {
            self.north_changes = Some(changes);
        }
        self.north_changes.filter(|whole| *whole == changes)
    }

    /// What beside IC-NB must be there before anything is read or written, and what to do.
    fn missing(&self, lock: &Lock) -> Option<Name> {
        let own = if is_live(&self.sb) {
            // a gateway port that is not there yet would be taken for one without gateway, and its routes would go
            let unsent = "the southbound database has not sent the ports of gateways yet; see the log of its server";
            (!self.sb.has_conditions()).then(|| unsent.into())
        } else {
            Some("the southbound database cannot be reached; start it".into())
        };
        let locked = || "another program holds the lock ovn_ic of the southbound database; stop ovn-ic in this cluster";
        self.south_away().or(own).or_else(|| (!lock.is_held()).then(|| locked().into()))
    }

    fn north_away(&self) -> Option<Name> {
        self.why_away(&self.north, "northbound", self.reach.nb_port, "ic-nb-port")
    }

    fn south_away(&self) -> Option<Name> {
        self.why_away(&self.south, "southbound", self.reach.sb_port, "ic-sb-port")
    }

    /// Why a shared database is not used, and what to do.
    fn why_away(&self, client: &Client, which: &'static str, port: u16, key: &'static str) -> Option<Name> {
        let place = Place { which, servers: &self.reach.servers, port, key };
        let is_away = !is_live(client);
        is_away.then(|| away(place, client.unfit().borrow().as_ref(), self.uncertified))
    }

    /// Tells people of what is away, once it has been so for long.
    async fn say_late(&mut self, problem: Name, now: Instant, changes: &mpsc::WeakSender<Change>) {
        if *self.waits.get_or_insert(now) + SAY_AFTER <= now {
            self.say(Some(problem), changes).await;
        }
    }

    /// Tells people, once.
    async fn say(&mut self, problem: Option<Name>, changes: &mpsc::WeakSender<Change>) {
        if self.has_said && self.said == problem {
            return;
        }
        if let Some(problem) = &problem {
            warn!("interconnection stays as it is: {problem}");
        }
        tell(changes, Change::InterconnectionStuck(Stuck::Present, problem.clone())).await;
        (self.said, self.has_said) = (problem, true);
    }

    fn with_databases<T>(&self, work: impl FnOnce(Databases<'_>) -> T) -> T {
        let (north, south, own) = (self.north.cache(), self.south.cache(), self.sb.cache());
        work(Databases { ic_nb: &north, ic_sb: &south, sb: &own })
    }

    fn has_rows(&self) -> bool {
        self.with_databases(|databases| has_rows(&self.offer, databases))
    }

    /// Whether all was written. Each database gets its part, whatever becomes of the others. `makes`: the zone that is inserted.
    async fn write(
        &mut self,
        [claims, offers, mut chassis]: [Txn; 3],
        makes: Option<Name>,
        changes: &mpsc::WeakSender<Change>,
    ) -> bool {
        let makes = makes.filter(|_| !offers.is_empty());
        if !chassis.is_empty() {
            chassis.assert_lock(LOCK);
        }
        let all = [
            (&self.north, claims, Written::NorthInterconnection, "IC-NB"),
            (&self.south, offers, Written::SouthInterconnection, "IC-SB"),
            (&self.sb, chassis, Written::South, "SB"),
        ];
        let mut is_all = true;
        for (client, txn, database, name) in all {
            if !(self.may_write)() {
                return false;
            }
            let done = if txn.is_empty() { Ok(()) } else { write(client, txn, name).await };
            is_all &= done.is_ok();
            if database == Written::SouthInterconnection && done.is_ok() && makes.is_some() {
                self.made.clone_from(&makes);
            }
            self.refusals.note(database, done.err(), changes).await;
        }
        is_all
    }

    /// Whether the cluster is in these databases again, perhaps by other servers: then nothing of it is removed.
    fn is_joined(&self, joined: &Joined) -> bool {
        joined.borrow().as_ref().is_some_and(|joined| is_same(&self.south, joined))
    }

    /// A handle to the southbound database that is shared.
    pub(crate) fn shared(&self) -> Client {
        self.south.clone()
    }

    /// What is wanted, in the databases of this session.
    pub(crate) fn place(&self) -> Interconnection {
        let Reach { servers, nb_port, sb_port } = self.reach.clone();
        Interconnection { servers, nb_port, sb_port, ..self.offer.wanted.clone() }
    }

    /// Removes what a master that was killed has left of this cluster, if the shared databases can be reached soon. Returns where
    /// nothing is left.
    pub(crate) async fn clear(self, joined: Joined) -> Option<Interconnection> {
        let looked = async {
            self.south.synced().await;
            self.sb.synced().await;
            let present = joined.borrow().clone();
            if let Some(present) = present {
                present.synced().await;
            }
            !self.is_joined(&joined) && self.has_rows()
        };
        match timeout(LEAVE_WITHIN, looked).await {
            Ok(true) => self.leave(joined).await,
            Ok(false) => Some(self.place()),
            Err(_) => {
                info!("cannot reach the shared databases to see whether rows of this cluster are left there");
                None
            }
        }
    }

    /// Removes the cluster from the shared databases, if they can be reached soon. Returns where nothing is left.
    pub(crate) async fn leave(self, joined: Joined) -> Option<Interconnection> {
        let removed = async {
            // a zone that is there again, and empty, is another cluster's
            let mut is_zone_own = self.has_stepped;
            loop {
                self.south.synced().await;
                self.sb.synced().await;
                if self.is_joined(&joined) {
                    return;
                }
                let offers = self.with_databases(|databases| withdraw(&self.offer, databases, is_zone_own));
                if offers.is_empty() && !self.has_rows() {
                    return;
                }
                // what the server has refused, or lost, it may take later; a follower's cache is behind
                let is_written = (self.may_write)() && write(&self.south, offers, "IC-SB").await.is_ok();
                is_zone_own &= !is_written;
                sleep(if is_written { LOOK_AGAIN } else { TRY_AGAIN }).await;
            }
        };
        let is_removed = timeout(LEAVE_WITHIN, removed).await.is_ok();
        if !is_removed {
            warn!("cannot remove this cluster from the shared databases; its rows stay there");
        }
        info!(zone = %self.offer.wanted.zone, "left the other clusters");
        is_removed.then(|| self.place())
    }
}

/// Whether both are of one database, for certain: what is taken for another one is left, and looked at once more then.
fn is_same(one: &Client, other: &Client) -> bool {
    database(one).is_some_and(|one| database(other) == Some(one))
}

/// What tells a southbound database from others, if anything does. A Raft cluster has an id; in any other database somebody has made a row
/// of this table, which has one row at most. Rows of clusters are no proof: the uuids of those that ovnkube makes follow from their names, so
/// they are the same in every database.
fn database(south: &Client) -> Option<String> {
    let row = || south.cache().iter(ic_sb_global::TABLE).next().map(|(uuid, _)| uuid.to_string());
    south.cluster().or_else(row)
}
