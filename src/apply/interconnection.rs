//! Keeps the interconnection databases and the southbound chassis of other clusters as the cluster's offer demands, and tells
//! the engine what the others have.
//!
//! ```text
//!  World ──Offer──▶ step ──▶ IC-NB, IC-SB, SB: one transaction each
//!    ▲               ▲
//!    └──── Peers ────┴─ IC-NB, IC-SB, SB
//! ```
//!
//! While a database cannot be reached, nothing changes: the engine keeps what it knew. Where people name other databases, the
//! cluster stays in the present ones until it has reached these, and the northbound database says so for the next master.

use std::collections::BTreeMap;
use std::sync::Arc;

use ovnkube_model::{
    Affected, Change, Interconnection as Wanted, Name, Notice, Object, PeerCluster, RouteCounts, Stuck, World,
};
use ovnkube_ovn::nb::logical_router;
use ovnkube_ovsdb::{Cache, Client, Lock};
use ovnkube_plan::{Offer, left, names, offer};
use ovnkube_telemetry::{Clusters, InterconnectionMetrics, OtherCluster};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;
use tracing::{info, warn};

use crate::chassis::Chassis;
use crate::diff::existing;
use crate::interconnection_refusals::tell;
use crate::interconnection_session::{JoinSettings, LEAVE_WITHIN, OwnDatabases, Reach, Session, TRY_AGAIN, write};
use crate::write_lock::LOCK;

/// Lock of OVN's own daemon in SB: while it is held here, that daemon does nothing.
pub const DAEMON_LOCK: &str = "ovn_ic";

/// What the engine says.
#[derive(Clone, Default, PartialEq)]
enum Says {
    /// It is not known yet what people want: everything stays as it is.
    #[default]
    Unknown,
    /// The cluster is joined with no others. With where it may have been.
    Alone(Vec<Arc<Offer>>),
    Join(Join),
}

/// The cluster is joined, or is to be.
#[derive(Clone, PartialEq)]
struct Join {
    offer: Arc<Offer>,
    /// Where it is until the databases of the offer are reached, if it is elsewhere.
    present: Option<Reach>,
    /// Where it was, and rows of it may be.
    left: Vec<Arc<Offer>>,
}

impl Join {
    fn of(world: &World, offer: Offer) -> Self {
        let of = |left: &Wanted| Arc::new(Offer { wanted: left.clone(), ..offer.clone() });
        let left = world.joined.left_behind().iter().map(of).collect();
        Self { present: world.joined.present().map(Reach::of_wanted), left, offer: Arc::new(offer) }
    }
}

impl Says {
    fn is_alone(&self) -> bool {
        matches!(self, Self::Alone(_))
    }

    fn of(world: &World) -> Self {
        match offer(world) {
            // before anything is written there, the next master must know where
            Some(offer) if world.joined.is_stored() => Self::Join(Join::of(world, offer)),
            None if world.joined.is_off() => Self::Alone(left(world).into_iter().map(Arc::new).collect()),
            _ => Self::Unknown,
        }
    }
}

/// What an earlier master, or this one, has stored of the interconnection that it keeps, unless that is known.
pub fn stored_interconnection(nb: &Cache, world: &World) -> Option<Change> {
    let router = existing(nb, &names::cluster_router()).and_then(|uuid| nb.get(logical_router::TABLE, uuid));
    let stored = router.and_then(|row| row.external_ids().get(names::KEPT_INTERCONNECTION)).unwrap_or_default();
    (!world.joined.has_stored(stored)).then(|| Change::InterconnectionStored(stored.into()))
}

/// The engine's end: what the cluster offers, what hosts are told, and what is shown of the others.
pub struct Offers {
    says: watch::Sender<Says>,
    hosts: watch::Sender<Option<BTreeMap<String, String>>>,
    metrics: InterconnectionMetrics,
}

impl Drop for Offers {
    fn drop(&mut self) {
        self.metrics.clusters(None);
    }
}

impl Offers {
    /// Keys and values that agents should read of routes of their hosts to other clusters; `None`: there is nothing to write.
    pub fn host_routes(&self) -> watch::Receiver<Option<BTreeMap<String, String>>> {
        self.hosts.subscribe()
    }

    /// `notices`: what people are told of `affected`.
    pub(crate) fn update(&self, affected: &Affected, world: &World, notices: &[Notice]) {
        if !concerns_offer(affected) || !world.is_settled() {
            return;
        }
        let new = Says::of(world);
        if matches!(affected, Affected::Everything | Affected::Interconnection) {
            self.metrics.clusters((!new.is_alone()).then(|| clusters(world, notices)));
            // where there is nothing to write, what was said before still is to be written
            if let Some(hosts) = world.host_routes() {
                self.hosts.send_replace(Some(hosts));
            }
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

/// Whether what the cluster offers may be something else now. Only one namespace says something about it; to look at all nodes for each
/// of many new ones would delay their pods.
fn concerns_offer(affected: &Affected) -> bool {
    match affected {
        Affected::Everything | Affected::Interconnection | Affected::Node(_) => true,
        Affected::Namespace(name) => name.as_ref() == World::SYSTEM,
        _ => false,
    }
}

fn clusters(world: &World, notices: &[Notice]) -> Clusters {
    let of = |(name, cluster, routes): (&Name, &PeerCluster, RouteCounts)| {
        let RouteCounts { used, refused } = routes;
        (name.to_string(), OtherCluster { gateways: cluster.gateways, silent: cluster.silent, used, refused })
    };
    let others = world.joined.clusters().map(of).collect();
    // those of the interconnection are about its ConfigMap, and no others are
    let problems = notices.iter().filter(|notice| matches!(notice.object, Object::ConfigMap { .. })).count();
    Clusters { others, problems }
}

/// See the module.
pub struct Interconnection {
    own: OwnDatabases,
    settings: JoinSettings,
    offers: watch::Receiver<Says>,
    changes: mpsc::WeakSender<Change>,
    sessions: Sessions,
    leaving: Leaving,
    /// The southbound database of the current session: who leaves it is to know.
    joined: watch::Sender<Option<Client>>,
    /// What is wanted, in the databases of the current session.
    place: watch::Sender<Option<Wanted>>,
    /// The next databases of which people know that they cannot be reached.
    late: Option<Reach>,
}

/// Connections to shared databases.
#[derive(Default)]
struct Sessions {
    /// Held while there are any.
    lock: Option<Lock>,
    current: Option<Session>,
    /// With other databases, which are not reached yet, or the next master does not know it yet.
    next: Option<Session>,
}

/// Databases that are being left, while others go on, or have been since they were joined last.
#[derive(Default)]
struct Leaving {
    /// They return what was left, if nothing is there any more.
    tasks: JoinSet<Option<Wanted>>,
    from: Vec<(Reach, AbortHandle)>,
}

impl Interconnection {
    /// The engine's end, and the part to run. `changes` is where the engine hears of the other clusters.
    pub fn new(own: OwnDatabases, settings: JoinSettings, changes: &mpsc::WeakSender<Change>) -> (Offers, Self) {
        let (to, offers) = watch::channel(Says::default());
        let engine = Offers { says: to, hosts: watch::Sender::default(), metrics: settings.metrics.clone() };
        let (sessions, leaving, joined, place, late) = <_>::default();
        (engine, Self { own, settings, offers, changes: changes.clone(), sessions, leaving, joined, place, late })
    }

    /// Where the cluster is joined with others; `None`: nowhere. It changes when these are other databases, or other servers.
    pub fn place(&self) -> watch::Receiver<Option<Wanted>> {
        self.place.subscribe()
    }

    /// Runs until [`Offers`] is dropped.
    pub async fn run(mut self) {
        loop {
            let says = self.offers.borrow_and_update().clone();
            let is_alone = says.is_alone();
            self.follow(says);
            self.set_joined();
            loop {
                if self.sessions.next.is_none() && self.late.is_some() {
                    self.say_late(None).await;
                }
                let Sessions { current, next, .. } = &mut self.sessions;
                let forgotten = forget(&self.own.sb, &self.settings, is_alone);
                tokio::select! {
                    biased;
                    changed = self.offers.changed() => match changed {
                        Ok(()) => break,
                        Err(_) => return,
                    },
                    live = is_live(next.as_ref(), self.late.as_ref()) => match live {
                        Ok(()) => self.move_on().await,
                        Err(late) => self.say_late(Some(late)).await,
                    },
                    Some(left) = self.leaving.tasks.join_next() => if let Ok(Some(left)) = left {
                        tell(&self.changes, Change::InterconnectionLeft(Box::new(left))).await;
                    },
                    () = is_due(current.as_mut()) => self.step().await,
                    () = forgotten => {}
                }
            }
        }
    }

    /// Takes a step. It has time to end when something else is to be done: an answer that is not awaited is not known. But a database
    /// that is silent does not keep it from being done.
    async fn step(&mut self) {
        let Sessions { lock, current, next } = &mut self.sessions;
        let (Some(session), Some(lock)) = (current, lock) else { return };
        tokio::select! {
            biased;
            () = session.take(lock, &self.changes) => {}
            () = overdue(self.offers.clone(), next.as_ref()) => warn!("a shared database does not answer: going on without it"),
        }
    }

    /// Tells people that the databases to move to cannot be reached; `None`: that is over.
    async fn say_late(&mut self, late: Option<Name>) {
        if let Some(late) = &late {
            warn!("interconnection stays in the previous databases: {late}");
        }
        self.late = late.as_ref().and(self.sessions.next.as_ref()).map(|next| next.reach.clone());
        tell(&self.changes, Change::InterconnectionStuck(Stuck::Next, late)).await;
    }

    /// Begins what the engine says.
    fn follow(&mut self, says: Says) {
        let Join { offer, present, left } = match says {
            Says::Unknown => return,
            Says::Alone(left) => {
                self.sessions.next = None;
                self.leave_current();
                for offer in left {
                    self.clear(offer);
                }
                if self.sessions.lock.take().is_some() {
                    Chassis::watch_ports(&self.own.sb, false);
                }
                return;
            }
            Says::Join(join) => join,
        };
        let Sessions { lock, current, next } = &mut self.sessions;
        if lock.is_none() {
            *lock = Some(self.own.sb.lock(DAEMON_LOCK));
            Chassis::watch_ports(&self.own.sb, true);
        }
        let reach = Reach::of(&offer);
        let place = present.unwrap_or_else(|| reach.clone());
        let is_in = |session: &Option<Session>, reach: &Reach| session.as_ref().is_some_and(|s| s.reach == *reach);
        // that it has moved is known to the next master by now, and `left` says where something is to be removed
        if !is_in(current, &place) {
            *current = next.take_if(|next| next.reach == place).map(Session::moved);
        }
        if current.is_none() {
            self.leaving.stop(&place);
            info!(zone = %offer.wanted.zone, servers = offer.wanted.servers.len(), "joining other clusters");
            let session = Session::start_at(place, offer.clone(), self.own.clone(), &self.settings);
            *current = Some(session.resumed());
        }
        if is_in(current, &reach) {
            *next = None;
        } else if !is_in(next, &reach) {
            self.leaving.stop(&reach);
            info!(zone = %offer.wanted.zone, "moving to other databases; until these are reached, the cluster stays where it is");
            *next = Some(Session::start(offer.clone(), self.own.clone(), &self.settings));
        }
        // what is not about a move takes effect in the present databases, too
        current.iter_mut().chain(next).for_each(|session| session.follow(&offer));
        for offer in left {
            self.clear(offer);
        }
    }

    /// The next databases are there. The next master is to know that before anything is written there, or removed from the present ones:
    /// else one that is killed in between has the next one make the rows here once more, or leaves rows there for which nobody looks. So
    /// the engine writes it down first, see [`Self::follow`]. If they are the present ones, with other servers, nothing is left.
    async fn move_on(&mut self) {
        let Sessions { current, next, .. } = &mut self.sessions;
        let Some(next) = next else { return };
        let is_same = current.as_ref().is_some_and(|current| current.shares_rows(next));
        info!(zone = %next.offer.wanted.zone, is_same, "reached the other servers of interconnection databases; using them from now on");
        next.is_reached = true;
        let place = Box::new(next.place());
        tell(&self.changes, Change::InterconnectionMoved(place, is_same)).await;
    }

    fn set_joined(&self) {
        self.joined.send_replace(self.sessions.current.as_ref().map(Session::shared));
        let place = self.sessions.current.as_ref().map(Session::place);
        let reach = |place: &Option<Wanted>| place.as_ref().map(Reach::of_wanted);
        self.place.send_if_modified(|old| {
            let is_moved = reach(old) != reach(&place);
            *old = place;
            is_moved
        });
    }

    fn leave_current(&mut self) {
        if let Some(session) = self.sessions.current.take() {
            self.settings.metrics.connected(None);
            let reach = session.reach.clone();
            self.set_joined();
            self.leaving.begin(reach, session.leave(self.joined.subscribe()));
        }
    }

    /// Looks once whether something is left where the cluster was.
    fn clear(&mut self, offer: Arc<Offer>) {
        let reach = Reach::of(&offer);
        if !self.leaving.has(&reach) {
            let session = Session::start(offer, self.own.clone(), &self.settings);
            self.set_joined();
            self.leaving.begin(reach, session.clear(self.joined.subscribe()));
        }
    }
}

impl Drop for Interconnection {
    fn drop(&mut self) {
        self.settings.metrics.connected(None);
    }
}

impl Leaving {
    fn begin(&mut self, from: Reach, leave: impl Future<Output = Option<Wanted>> + Send + 'static) {
        let task = self.tasks.spawn(leave);
        self.from.push((from, task));
    }

    /// Whether these databases are being left, or have been.
    fn has(&self, reach: &Reach) -> bool {
        self.from.iter().any(|(from, _)| from == reach)
    }

    /// Stops to leave databases that are joined again.
    fn stop(&mut self, reach: &Reach) {
        self.from.retain(|(from, task)| {
            if from == reach {
                task.abort();
            }
            from != reach
        });
    }
}

/// Returns when the next databases are there, once, or what to tell about the wait for them, unless that was told of `late`.
async fn is_live(session: Option<&Session>, late: Option<&Reach>) -> Result<(), Name> {
    let Some(session) = session.filter(|session| !session.is_reached) else { return std::future::pending().await };
    let is_said = late == Some(&session.reach);
    tokio::select! {
        biased;
        () = session.is_live() => Ok(()),
        late = session.is_late(), if !is_said => Err(late),
    }
}

/// Returns when something else has been wanted for long, or the next databases have been there. `offers`: a copy, since the loop is to
/// see what is wanted, too.
async fn overdue<T>(mut offers: watch::Receiver<T>, next: Option<&Session>) {
    tokio::select! {
        biased;
        _ = offers.changed() => {}
        _ = is_live(next, next.map(|next| &next.reach)) => {}
    }
    sleep(LEAVE_WITHIN).await;
}

/// Returns when the next step in the present databases is due.
async fn is_due(session: Option<&mut Session>) {
    match session {
        Some(session) => session.is_due().await,
        None => std::future::pending().await,
    }
}

/// Removes the chassis of other clusters if there is no interconnection. Never returns.
async fn forget(sb: &Client, settings: &JoinSettings, is_alone: bool) {
    if is_alone {
        remove_chassis(sb, settings).await;
    }
    std::future::pending::<()>().await;
}

async fn remove_chassis(sb: &Client, settings: &JoinSettings) {
    loop {
        sb.synced().await;
        let mut txn = ovnkube_interconnect::forget(&sb.cache());
        if txn.is_empty() {
            return;
        }
        txn.assert_lock(LOCK);
        if (settings.may_write)() && write(sb, txn, "SB").await.is_ok() {
            return;
        }
        sleep(TRY_AGAIN).await;
    }
}

#[cfg(test)]
mod tests {
    use ovnkube_model::{NetworkSettings, ObjectKey, Severity};
    use tokio::time::{Instant, timeout};

    use super::*;

    #[test]
    fn of_all_that_people_are_told_the_problems_of_the_interconnection_are_counted() {
        let world = World::new(NetworkSettings::default(), []);
        let (key, uid) =
            (ObjectKey { namespace: "kube-system".into(), name: "ovn-ic-config".into() }, Name::from("u1"));
        let objects = [Object::Node { name: "n1".into(), uid: uid.clone() }, Object::ConfigMap { key, uid }];
        let notice = |object| Notice { object, severity: Severity::Warning, reason: "Any", message: String::new() };
        assert_eq!(clusters(&world, &objects.map(notice)).problems, 1);
    }

    #[test]
    fn of_namespaces_only_the_one_with_the_clusters_uid_concerns_what_is_offered() {
        let concerns = |name: &str| concerns_offer(&Affected::Namespace(name.into()));
        assert!(concerns(World::SYSTEM) && !concerns("a"));
        assert!(concerns_offer(&Affected::Node("n1".into())) && concerns_offer(&Affected::Interconnection));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_wanted_waits_for_a_silent_database_for_a_while() {
        let (says, offers) = watch::channel(1);
        assert!(timeout(LEAVE_WITHIN * 30, overdue(offers.clone(), None)).await.is_err(), "nothing else is wanted");
        says.send_replace(2);
        let began = Instant::now();
        overdue(offers.clone(), None).await;
        assert_eq!(began.elapsed().as_secs(), LEAVE_WITHIN.as_secs());
        assert!(offers.has_changed().unwrap(), "the loop sees it");
    }
}
