//! Which parts run, and how they end.

use std::future::pending;
use std::net::IpAddr;

use anyhow::{Context as _, Result, bail};
use ovnkube_config::{DatabasePorts, DbCommand, EventCommand, IcCommand, IdentityFlags, Loaded, Target};
use ovnkube_identity::{Webhook, approve};
use ovnkube_model::{Finding, Roles};
use ovnkube_telemetry::{LogLimits, LogSettings, Metrics, NodeHealth, Readiness, Sources, keep_serving};
use ovnkube_watch::Client;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::pidfile::PidFile;
use crate::stop::Stop;
use crate::system::Signals;
use crate::{controller, db, endpoints, event, ic, node, preflight, probe, remove, translate};

/// Runs the parts that the mode names until SIGTERM or SIGINT, or until one of them fails.
pub(crate) fn run(loaded: &Loaded) -> Result<()> {
    let settings = &loaded.settings;
    let mode = &settings.mode;
    if mode.is_empty() {
        bail!(
            "cannot start: there is nothing to run; give --init-master, --init-cluster-manager, --init-ovnkube-controller or \
             --init-node with this host's name"
        );
    }
    if let Some(node) = &mode.remove_node {
        return block_on(remove::run(settings, node));
    }
    ovnkube_telemetry::start_logging(&log(loaded))?;
    for remark in loaded.remarks() {
        warn!("{remark}");
    }
    if let Some(name) = &mode.cleanup_node {
        return block_on(node::clean_up(settings, name));
    }
    let claimed = settings.command_line.pidfile.as_deref().map(PidFile::claim).transpose();
    if let (Err(why), Some(name)) = (&claimed, &mode.node) {
        block_on(async {
            node::tell_refusal(settings, name, &why.to_string()).await;
            Ok(())
        })?;
    }
    let _pidfile = claimed?;
    block_on(parts(loaded))
}

/// Serves the admission webhook, approves certificates of node agents, or both, until SIGTERM or SIGINT.
pub(crate) fn identity(loaded: &Loaded, flags: &IdentityFlags) -> Result<()> {
    ovnkube_telemetry::start_logging(&log(loaded))?;
    for remark in loaded.remarks() {
        warn!("{remark}");
    }
    block_on(async {
        let mut signals = Signals::listen()?;
        let webhook = match &flags.webhook {
            Some(flags) => Some(Webhook::listen(flags.address, &flags.certificates).await?),
            None => None,
        };
        if let Some(webhook) = &webhook {
            info!(address = %webhook.address()?, "the admission webhook is served");
        }
        let served = async {
            match webhook {
                Some(webhook) => webhook.serve().await,
                None => pending().await,
            }
        };
        let approved = async {
            if !flags.approver {
                return pending().await;
            }
            let api = Client::connect(&translate::access(&loaded.settings, "identity")).await?;
            info!(server = api.server(), "approving certificates of node agents");
            match approve(&api).await {}
        };
        tokio::select! {
            signal = signals.recv() => info!("{signal}: stopping"),
            () = served => {}
            failed = approved => return failed,
        }
        Ok(())
    })
}

/// Where the databases in pods are, as soon as that is known.
pub(crate) fn databases(loaded: &Loaded) -> Result<String> {
    block_on(endpoints::wait(&loaded.settings))
}

/// Makes known where the databases in pods are.
pub(crate) fn publish(loaded: &Loaded, addresses: &[IpAddr], ports: DatabasePorts) -> Result<()> {
    block_on(endpoints::publish(&loaded.settings, addresses, ports))
}

/// Why a container of a pod ends.
pub(crate) fn event(loaded: &Loaded, command: &EventCommand) -> Result<()> {
    block_on(event::run(&loaded.settings, command))
}

/// What the node agent would change on this host, one step per entry.
pub(crate) fn plan(loaded: &Loaded, node: &str) -> Result<Vec<String>> {
    block_on(node::plan(&loaded.settings, node))
}

/// What to do before ovnkube runs: in the cluster, or on this host.
pub(crate) fn preflight(loaded: &Loaded, node: bool) -> Result<Vec<Finding>> {
    let settings = &loaded.settings;
    if node { block_on(node::preflight(settings)) } else { block_on(preflight::cluster(settings)) }
}

/// Whether a program on this host works.
pub(crate) fn probe(loaded: &Loaded, target: Target) -> Result<()> {
    block_on(probe::run(&loaded.settings, target))
}

/// About the servers of the databases: whether nothing is to be done about them.
pub(crate) fn db(loaded: &Loaded, command: &DbCommand) -> Result<bool, db::Failed> {
    block_on(async { Ok(db::run(&loaded.settings, command).await) })?
}

/// About the interconnection with other clusters: whether nothing is to be done about it.
pub(crate) fn ic(loaded: &Loaded, command: &IcCommand) -> Result<bool, db::Failed> {
    block_on(async { Ok(ic::run(&loaded.settings, command).await) })?
}

fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    // most work is a few short steps that wait for each other: waking a second thread for it would cost more
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
    let outcome = runtime.block_on(work);
    // what still runs is only waiting, as for a name server that does not answer
    runtime.shutdown_background();
    outcome
}

async fn parts(loaded: &Loaded) -> Result<()> {
    // before anything starts that must be stopped cleanly
    let mut signals = Signals::listen()?;
    let settings = &loaded.settings;
    let mode = &settings.mode;
    let metrics = Metrics::new(env!("CARGO_PKG_VERSION"));
    let roles = Roles { cluster_manager: mode.cluster_manager.is_some(), controller: mode.controller.is_some() };
    controller::leader_metrics(roles).for_each(|name| metrics.register_leader(name));
    let readiness = Readiness::default();
    let health = NodeHealth::default();
    if let Some(address) = settings.metrics.bind_address {
        let key = "metrics-bind-address";
        let sources = Sources { key, metrics: metrics.clone(), readiness: readiness.clone(), node: None };
        tokio::spawn(keep_serving(address, sources));
    }
    if let Some(address) = settings.kubernetes.healthz_bind_address {
        let node = mode.node.is_some().then(|| health.clone());
        let key = "healthz-bind-address";
        let sources = Sources { key, metrics: metrics.clone(), readiness: readiness.clone(), node };
        tokio::spawn(keep_serving(address, sources));
    }
    let (stop, stopped) = watch::channel(false);
    let mut tasks = tokio::task::JoinSet::new();
    if let Some(identity) = mode.controller.clone().or(mode.cluster_manager.clone()) {
        tasks.spawn(controller::run(
            settings.clone(),
            roles,
            identity,
            metrics.clone(),
            readiness.clone(),
            Stop(stopped.clone()),
        ));
    }
    if let Some(name) = mode.node.clone() {
        tasks.spawn(node::run(settings.clone(), name, health, Stop(stopped.clone())));
    }
    let first = tokio::select! {
        signal = signals.recv() => { info!("{signal}: stopping"); None }
        ended = tasks.join_next() => ended,
    };
    let _ = stop.send(true);
    let mut outcome =
        first.map_or(Ok(()), |ended| ended.context("cannot go on: a part of the process was aborted").flatten());
    while let Some(ended) = tasks.join_next().await {
        outcome = outcome.and(ended.context("cannot go on: a part of the process was aborted").flatten());
    }
    outcome
}

fn log(loaded: &Loaded) -> LogSettings {
    let logging = &loaded.settings.logging;
    LogSettings {
        level: logging.loglevel,
        file: logging.logfile.clone(),
        limits: LogLimits {
            size_mb: logging.logfile_maxsize.into(),
            backups: logging.logfile_maxbackups as usize,
            age_days: logging.logfile_maxage.into(),
        },
    }
}
