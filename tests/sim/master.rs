//! A simulated process: the master's own code, in a runtime of its own, whose clock the world moves. It can be paused and
//! killed, and its clock may run faster or slower than that of the world.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ovnkube_apply::{Engine, MayWrite, Parts, Patches, TakeoverCheck, northbound_fence};
use ovnkube_model::{Change, Connections, NetworkSettings, World};
use ovnkube_ovn::nb;
use ovnkube_ovsdb::{Client as Database, Options, Remote};
use ovnkube_telemetry::{Metrics, Readiness};
use ovnkube_watch::{Client, Events, Leader, LeaseSettings, Scope};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::wire::{Sent, Wire};

/// As the controller has it.
const CHANGES: usize = 4096;
/// More than enough for all tasks that are ready.
const ROUNDS: u32 = 64;
/// When stories begin: 2026-01-01.
const BEGIN: Duration = Duration::from_secs(1_767_225_600);

pub(crate) struct Master {
    main: Pin<Box<dyn Future<Output = ()>>>,
    runtime: Runtime,
    began: Instant,
    pub(crate) sent: UnboundedReceiver<Sent>,
    pub(crate) metrics: Arc<Metrics>,
    /// See [`crate::story::Fault::LeaseIsLate`].
    pub(crate) lease_is_late: Arc<AtomicBool>,
}

/// The wall clock of a master's host. That it is set does not change how time passes.
pub(crate) struct WallClock {
    /// When the master started, in ms since the story began.
    pub(crate) began: u64,
    /// So many seconds it has been set forward.
    pub(crate) ahead: Arc<AtomicI64>,
}

impl WallClock {
    fn time(&self, elapsed: Duration) -> SystemTime {
        let usual = UNIX_EPOCH + BEGIN + Duration::from_millis(self.began) + elapsed;
        let ahead = self.ahead.load(Ordering::Relaxed);
        let by = Duration::from_secs(ahead.unsigned_abs());
        if ahead < 0 { usual - by } else { usual + by }
    }
}

impl Master {
    pub(crate) fn start(
        identity: String,
        network: NetworkSettings,
        conns: Arc<AtomicU64>,
        wall_clock: WallClock,
    ) -> Self {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (to, sent) = mpsc::unbounded_channel();
        let metrics = Metrics::new("sim");
        let lease_is_late = Arc::<AtomicBool>::default();
        let wire = Wire { to, conns };
        let main = run(wire, wall_clock, identity, network, Arc::clone(&metrics), Arc::clone(&lease_is_late));
        let began = runtime.block_on(async { Instant::now() });
        Self { main: Box::pin(main), runtime, began, sent, metrics, lease_is_late }
    }

    /// Runs until this much time has passed since its start on its own clock.
    pub(crate) fn run(&mut self, until: Duration) {
        let Self { main, runtime, began, .. } = self;
        let ended = runtime.block_on(async {
            tokio::select! {
                biased;
                () = main => true,
                () = tokio::time::sleep_until(*began + until) => false,
            }
        });
        assert!(!ended, "a master has ended");
    }

    /// Does all that is ready, without the passing of time.
    pub(crate) fn finish(&mut self) {
        let Self { main, runtime, .. } = self;
        runtime.block_on(async {
            let rounds = async {
                for _ in 0..ROUNDS {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                biased;
                () = main => {}
                () = rounds => {}
            }
        });
    }

    /// Moves the clock without running anything.
    pub(crate) fn skip(&mut self, until: Duration) {
        let Self { runtime, began, .. } = self;
        runtime.block_on(async {
            let left = (*began + until).saturating_duration_since(Instant::now());
            tokio::time::advance(left).await;
        });
    }
}

/// As `controller.rs` does it, with a client for each server in place of the settings.
async fn run(
    wire: Wire,
    wall_clock: WallClock,
    identity: String,
    network: NetworkSettings,
    metrics: Arc<Metrics>,
    lease_is_late: Arc<AtomicBool>,
) {
    let began = Instant::now();
    let api = Client::over(wire.kube()).with_wall_clock(move || wall_clock.time(began.elapsed()));
    let events = Events::start(&api, "ovnkube", &identity);
    // no two processes have the same, and it is the same whenever a story is played
    let name = format!("{identity} {}", wire.conns.fetch_add(1, Ordering::Relaxed));
    let settings = LeaseSettings {
        namespace: "ovn-kubernetes".into(),
        name: "ovn-kubernetes-master".into(),
        identity,
        lease: Duration::from_secs(10),
        renew: Duration::from_secs(8),
        retry: Duration::from_secs(2),
    };
    let (leader, _task, seeker) = Leader::seek(&api, settings);
    let nb = Database::connect(Options {
        dial: Some(wire.dial()),
        fence: Some(northbound_fence(name)),
        identity: ovnkube_plan::identity,
        has_parents: |_| false,
        ..Options::new(&nb::DATABASE, vec![Remote::parse("tcp:192.0.2.1:6641").unwrap()])
    });
    tokio::join!(seeker.run(), lead(api, events, nb, leader, network, metrics, lease_is_late));
}

async fn lead(
    api: Client,
    events: Events,
    nb: Database,
    mut leader: Leader,
    network: NetworkSettings,
    metrics: Arc<Metrics>,
    lease_is_late: Arc<AtomicBool>,
) {
    let scope = Scope::Controller;
    loop {
        leader.elected().await;
        let (changes, incoming) = mpsc::channel(CHANGES);
        let _ = changes.send(Change::Connections(Connections::default())).await;
        let watches = ovnkube_watch::start(&api, &scope, &changes);
        drop(changes);
        let fence = leader.clone();
        let (is_late, questions) = (Arc::clone(&lease_is_late), AtomicU64::new(0));
        let may_write: MayWrite = Arc::new(move || {
            let refuses = is_late.load(Ordering::Relaxed) && questions.fetch_add(1, Ordering::Relaxed) % 2 == 0;
            !refuses && fence.is_leader_now()
        });
        let engine = Engine::new(Parts {
            world: World::new(network.clone(), scope.kinds().iter().copied()),
            nb: Some(nb.clone()),
            writing: watch::Sender::default(),
            chassis: None,
            offers: None,
            patches: Patches::new(api.clone(), may_write.clone()),
            events: events.clone(),
            may_write,
            takeover: TakeoverCheck::new(false, "ovn-kubernetes"),
            metrics: Arc::clone(&metrics),
            readiness: Readiness::default(),
        });
        tokio::select! {
            biased;
            () = leader.lost() => {}
            () = engine.run(incoming) => {}
        }
        drop(watches);
    }
}
