//! Keeps the interconnection databases and the southbound chassis of other clusters as the cluster's offer demands, and tells
//! the engine what the others have.
//!
//! ```text
//!  World ──Offer──▶ step ──▶ IC-NB, IC-SB, SB: one transaction each
//!    ▲               ▲
//!    └──── Peers ────┴─ IC-NB, IC-SB, SB
//! ```
//!
//! While a database cannot be reached, nothing changes: the engine keeps what it knew.

use std::sync::Arc;
use std::time::Duration;

use ovnkube_interconnect::{Databases, Step, step, withdraw};
use ovnkube_model::{Affected, Change, Name, PeerCluster, Peers, RouteCounts, World};
use ovnkube_ovn::{Database, ic_nb, ic_sb};
use ovnkube_ovsdb::{Client, Lock, Options, Remote, Subscription, TlsFiles, Txn};
use ovnkube_plan::{Offer, offer};
use ovnkube_telemetry::{Clusters, Connected, InterconnectionMetrics, OtherCluster};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{info, warn};

use crate::chassis::Chassis;
use crate::may_write::MayWrite;
use crate::write_lock::LOCK;

/// Lock of OVN's own daemon in SB: while it is held here, that daemon does nothing.
const DAEMON_LOCK: &str = "ovn_ic_sb";
/// Wait after a failure, and while writing is not allowed.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// How long to wait for databases from which the cluster is removed.
const LEAVE_WITHIN: Duration = Duration::from_secs(10);
/// After this long without a database, or without the lock, it is said.
const SAY_AFTER: Duration = Duration::from_secs(10);
/// Longest wait when nothing is due.
const REST: Duration = Duration::from_secs(3600);

/// What the engine says.
#[derive(Clone, Default, PartialEq)]
enum Says {
    /// It is not known yet what people want: everything stays as it is.
    #[default]
    Unknown,
    /// The cluster is joined with no others.
    Alone,
    Join(Arc<Offer>),
}

impl Says {
    fn of(world: &World) -> Self {
        match offer(world) {
            Some(offer) => Self::Join(Arc::new(offer)),
            None if world.joined.is_off() => Self::Alone,
            None => Self::Unknown,
        }
    }
}

/// The engine's end: what the cluster offers, and what is shown of the others.
pub struct Offers {
    says: watch::Sender<Says>,
    metrics: InterconnectionMetrics,
}

impl Drop for Offers {
    fn drop(&mut self) {
        self.metrics.clusters(None);
    }
}

impl Offers {
    pub(crate) fn update(&self, affected: &Affected, world: &World) {
        let concerns = matches!(
            affected,
            Affected::Everything | Affected::Interconnection | Affected::Node(_) | Affected::Namespace(_)
        );
        if !concerns || !world.is_settled() {
            return;
        }
        let new = Says::of(world);
        if matches!(affected, Affected::Everything | Affected::Interconnection) {
            self.metrics.clusters((new != Says::Alone).then(|| clusters(world)));
        }
        self.says.send_if_modified(|old| {
            let differs = *old != new;
            if differs {
                *old = new;
            }
            differs
        });
    }
}

fn clusters(world: &World) -> Clusters {
    let of = |(name, cluster, routes): (&Name, &PeerCluster, RouteCounts)| {
        let RouteCounts { used, refused } = routes;
        (name.to_string(), OtherCluster { gateways: cluster.gateways, used, refused })
    };
    let others = world.joined.clusters().map(of).collect();
    Clusters { others, problems: world.notices(&Affected::Interconnection).len() }
}

/// How to reach the databases, and whether they may be written to.
pub struct JoinSettings {
    /// For servers with TLS.
    pub tls: Option<TlsFiles>,
    pub txn_timeout: Duration,
    pub may_write: MayWrite,
    pub metrics: InterconnectionMetrics,
}

/// See the module.
pub struct Interconnection {
    sb: Client,
    settings: JoinSettings,
    offers: watch::Receiver<Says>,
    changes: mpsc::WeakSender<Change>,
}

impl Interconnection {
    /// The engine's end, and the part to run. `changes` is where the engine hears of the other clusters.
    pub fn new(sb: Client, settings: JoinSettings, changes: &mpsc::WeakSender<Change>) -> (Offers, Self) {
        let (to, offers) = watch::channel(Says::default());
        (Offers { says: to, metrics: settings.metrics.clone() }, Self { sb, settings, offers, changes: changes.clone() })
    }

    /// Runs until [`Offers`] is dropped.
    pub async fn run(mut self) {
        let mut session: Option<Session> = None;
        loop {
            let says = self.offers.borrow_and_update().clone();
            let is_alone = says == Says::Alone;
            session = self.follow(session, says).await;
            let kept = keep(session.as_mut(), &self.changes);
            let forgotten = async {
                if is_alone {
                    forget(&self.sb, &self.settings.may_write).await;
                }
            };
            let changed = tokio::select! {
                changed = self.offers.changed() => changed,
                ((), ()) = async { tokio::join!(kept, forgotten) } => Ok(()),
            };
            if changed.is_err() {
                return;
            }
        }
    }

    /// The session for what the engine says. One with other servers is left.
    async fn follow(&self, session: Option<Session>, says: Says) -> Option<Session> {
        let offer = match says {
            Says::Unknown => return session,
            Says::Alone => None,
            Says::Join(offer) => Some(offer),
        };
        match (session, offer) {
            (Some(session), Some(offer)) if session.reaches(&offer) => Some(Session { offer, ..session }),
            (session, offer) => {
                if let Some(session) = session {
                    session.leave().await;
                }
                offer.map(|offer| Session::start(offer, self.sb.clone(), &self.settings))
            }
        }
    }
}

async fn keep(session: Option<&mut Session>, changes: &mpsc::WeakSender<Change>) {
    match session {
        Some(session) => session.keep(changes).await,
        None => std::future::pending().await,
    }
}

/// Removes the chassis of other clusters while there is no interconnection.
async fn forget(sb: &Client, may_write: &MayWrite) {
    loop {
        sb.synced().await;
        let mut txn = ovnkube_interconnect::forget(&sb.cache());
        if txn.is_empty() {
            break;
        }
        txn.assert_lock(LOCK);
        if may_write() && write(sb, txn, "SB").await {
            break;
        }
        sleep(TRY_AGAIN).await;
    }
}

/// Whether it was written.
async fn write(client: &Client, txn: Txn, what: &str) -> bool {
    let done = client.transact(txn).await;
    done.inspect_err(|error| warn!(%error, "cannot write to {what}")).is_ok()
}

/// Connections to the databases of one interconnection.
struct Session {
    offer: Arc<Offer>,
    north: Client,
    south: Client,
    sb: Client,
    events: [Subscription; 3],
    lock: Lock,
    may_write: MayWrite,
    metrics: InterconnectionMetrics,
    /// What the engine was told.
    told: Option<Peers>,
    /// Since when it is not as it should be, and whether that was said.
    waits: Option<(Instant, bool)>,
}

impl Session {
    fn start(offer: Arc<Offer>, sb: Client, settings: &JoinSettings) -> Self {
        let connect = |database: &'static Database, port| {
            let texts = offer.wanted.servers.iter().map(|server| server.remote(port));
            let remotes: Vec<Remote> = texts.filter_map(|text| Remote::parse(&text).ok()).collect();
            Client::connect(Options {
                tls: settings.tls.clone(),
                txn_timeout: settings.txn_timeout,
                ..Options::new(database, remotes)
            })
        };
        let north = connect(&ic_nb::DATABASE, offer.wanted.nb_port);
        let south = connect(&ic_sb::DATABASE, offer.wanted.sb_port);
        info!(zone = %offer.wanted.zone, servers = offer.wanted.servers.len(), "joining other clusters");
        Chassis::watch_ports(&sb, true);
        Self {
            events: [north.subscribe(), south.subscribe(), sb.subscribe()],
            lock: sb.lock(DAEMON_LOCK),
            may_write: settings.may_write.clone(),
            metrics: settings.metrics.clone(),
            offer,
            north,
            south,
            sb,
            told: None,
            waits: None,
        }
    }

    fn reaches(&self, offer: &Offer) -> bool {
        let of = |offer: &Offer| (offer.wanted.servers.clone(), offer.wanted.nb_port, offer.wanted.sb_port);
        of(&self.offer) == of(offer)
    }

    /// Takes steps until it is dropped.
    async fn keep(&mut self, changes: &mpsc::WeakSender<Change>) {
        loop {
            let wake = self.step(changes).await;
            let [north, south, own] = &mut self.events;
            tokio::select! {
                _ = north.recv() => {}
                _ = south.recv() => {}
                _ = own.recv() => {}
                () = sleep_until(wake) => {}
            }
        }
    }

    /// One step; returns when the next one is due if nothing happens.
    async fn step(&mut self, changes: &mpsc::WeakSender<Change>) -> Instant {
        let now = Instant::now();
        let is_live = |client: &Client| client.state().borrow().is_live();
        self.metrics.connected(Some(Connected { north: is_live(&self.north), south: is_live(&self.south) }));
        if let Some(problem) = self.missing() {
            self.say(now, &problem);
            return now + TRY_AGAIN;
        }
        self.waits = None;
        let Step { claims, offers, chassis, peers } = self.with_databases(|databases| step(&self.offer, databases));
        if self.told.as_ref() != Some(&peers) {
            let Some(engine) = changes.upgrade() else { return now + REST };
            if engine.send(Change::Peers(Box::new(peers.clone()))).await.is_ok() {
                self.told = Some(peers);
            }
        }
        if [&claims, &offers, &chassis].iter().all(|txn| txn.is_empty()) {
            return now + REST;
        }
        let written = self.write(claims, offers, chassis).await;
        if written { now + REST } else { now + TRY_AGAIN }
    }

    /// What must be there before anything is read or written.
    fn missing(&self) -> Option<String> {
        let dead = |client: &Client, what: &str| {
            (!client.state().borrow().is_live()).then(|| format!("{what} cannot be reached"))
        };
        dead(&self.north, "the northbound interconnection database")
            .or_else(|| dead(&self.south, "the southbound interconnection database"))
            .or_else(|| dead(&self.sb, "the southbound database"))
            .or_else(|| {
                (!self.lock.is_held()).then(|| {
                    format!("another program holds the lock {DAEMON_LOCK} of the southbound database; stop ovn-ic")
                })
            })
    }

    fn say(&mut self, now: Instant, problem: &str) {
        let (since, said) = self.waits.get_or_insert((now, false));
        if !*said && *since + SAY_AFTER <= now {
            *said = true;
            warn!("interconnection stays as it is: {problem}");
        }
    }

    fn with_databases<T>(&self, work: impl FnOnce(Databases<'_>) -> T) -> T {
        let (north, south, own) = (self.north.cache(), self.south.cache(), self.sb.cache());
        work(Databases { ic_nb: &north, ic_sb: &south, sb: &own })
    }

    /// Whether all was written.
    async fn write(&self, claims: Txn, offers: Txn, mut chassis: Txn) -> bool {
        if !chassis.is_empty() {
            chassis.assert_lock(LOCK);
        }
        for (client, txn, what) in
            [(&self.north, claims, "IC-NB"), (&self.south, offers, "IC-SB"), (&self.sb, chassis, "SB")]
        {
            if !(self.may_write)() {
                return false;
            }
            if !write(client, txn, what).await {
                return false;
            }
        }
        true
    }

    /// Removes the cluster from the shared databases, if they can be reached soon.
    async fn leave(self) {
        let removed = async {
            self.south.synced().await;
            self.sb.synced().await;
            let offers = self.with_databases(|databases| withdraw(&self.offer, databases));
            (self.may_write)() && write(&self.south, offers, "IC-SB").await
        };
        if !timeout(LEAVE_WITHIN, removed).await.unwrap_or(false) {
            warn!("cannot remove this cluster from the shared databases: what they have of it stays there");
        }
        Chassis::watch_ports(&self.sb, false);
        info!(zone = %self.offer.wanted.zone, "left the other clusters");
    }
}
