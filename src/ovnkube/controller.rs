//! Master, cluster manager or network controller: the holder of the lease plans and writes.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use ovnkube_apply::{
    Chassis, Engine, Interconnection, JoinSettings, Listening, MayWrite, Offers, OwnDatabases, Parts, Patches,
    TakeoverCheck, northbound_fence, southbound_fence,
};
use ovnkube_config::Settings;
use ovnkube_model::{Roles, World};
use ovnkube_ovn::{ColumnId, nb, sb};
use ovnkube_ovsdb::{Client as Database, Monitored, Options};
use ovnkube_telemetry::{Metrics, Readiness};
use ovnkube_watch::{Client, Events, Leader, LeaseSettings, Scope};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use crate::connections::Connections;
use crate::stop::Stop;
use crate::{cluster, disks, election_timer, host_routes, ic, northd, recording, server_keys, stranger, translate};

/// How many changes may wait for the engine; beyond that the watches wait.
const CHANGES: usize = 4096;
/// A master that is stopped does not wait longer for answers of the API server.
const STOPS_WITHIN: Duration = Duration::from_secs(5);

/// Runs until stopped. Nothing is watched, decided or written without the lease: what a standby had in memory
/// could be older than the last leader's last write.
pub(crate) async fn run(
    settings: Settings,
    roles: Roles,
    identity: String,
    metrics: Arc<Metrics>,
    readiness: Readiness,
    mut stop: Stop,
) -> Result<()> {
    let recording = settings.command_line.record.as_deref().map(recording::create).transpose()?;
    let role = if roles.controller { "controller" } else { "cluster-manager" };
    let api = Client::connect(&translate::access(&settings, role)).await?;
    let times = lease(&settings, roles, &identity);
    // what is sent with the lease has so much time to arrive, whatever becomes of it
    let margin = times.lease.saturating_sub(times.renew).min(STOPS_WITHIN);
    let (mut leader, lease) = Leader::run(&api, times)?;
    let events = Events::start(&api, "ovnkube", &identity);
    let nb = roles.controller.then(|| {
        let fence = Some(northbound_fence(leader.name().to_owned()));
        Database::connect(Options { fence, has_parents: |_| false, ..northbound_options(&settings) })
    });
    let sb = roles.controller.then(|| {
        let fence = Some(southbound_fence(leader.name().to_owned()));
        connect_southbound(Options { fence, ..southbound_options(&settings) })
    });
    let mut beside = JoinSet::new();
    if roles.controller {
        // of the members on this host, also while another master holds the lease
        let settings = settings.clone();
        beside.spawn(async move { election_timer::keep(&settings).await });
    }
    if roles.controller {
        let (settings, api, events, metrics) = (settings.clone(), api.clone(), events.clone(), metrics.northd.clone());
        beside.spawn(async move { northd::keep(&settings, &api, &events, &metrics).await });
    }
    if roles.controller {
        let (settings, host, api, events) = (settings.clone(), identity.clone(), api.clone(), events.clone());
        beside.spawn(async move { disks::keep(&settings, &host, &api, &events).await });
    }
    let report = |part| stranger::Report {
        part,
        api: api.clone(),
        namespace: settings.kubernetes.ovn_config_namespace.clone(),
        readiness: readiness.clone(),
        events: events.clone(),
    };
    beside.spawn(report("lease").tell_of_twin(leader.clone(), identity.clone()));
    for (database, part) in [(&nb, "northbound database"), (&sb, "southbound database")] {
        let Some(database) = database else { continue };
        beside.spawn(report(part).keep(database.unfit()));
    }
    let (nb_writing, sb_writing) = (watch::Sender::default(), watch::Sender::default());
    if roles.controller {
        let north = report("writes to the northbound database");
        beside.spawn(north.follow("northbound", metrics.writing.clone(), nb_writing.subscribe()));
        let south = report("writes to the southbound database");
        beside.spawn(south.follow("southbound", metrics.writing.clone(), sb_writing.subscribe()));
    }
    let (mut gives_back, mut turn_ended) = (true, None);
    let scope = if roles.controller { Scope::Controller } else { Scope::ClusterManager };
    loop {
        tokio::select! {
            () = stop.wait() => break,
            () = leader.elected() => info!(%identity, role, "holds the lease"),
        }
        metrics.leader.set(1);
        metrics.ready_duration.set(0.0);
        let (fence, stopped) = (leader.clone(), stop.clone());
        let may_write: MayWrite = Arc::new(move || fence.is_leader_now() && !stopped.is_told());
        if roles.cluster_manager {
            // before subnets are given out, which agents wait for
            tokio::select! {
                () = stop.wait() => break,
                () = cluster::publish(&api, &settings, &may_write) => {}
            }
        }
        let (changes, incoming) = mpsc::channel(CHANGES);
        let network = translate::network(&settings, roles);
        let incoming = match &recording {
            Some(file) => recording::record(file, &network, scope.kinds(), incoming),
            None => incoming,
        };
        let mut connections = Connections::of(&settings, api.server());
        tokio::select! {
            // an answer of a name server may take seconds
            () = stop.wait() => break,
            () = connections.send(&changes) => {}
        }
        let watches = ovnkube_watch::start(&api, &scope, &changes);
        let weak = changes.downgrade();
        drop(changes);
        let patches = Patches::new(api.clone(), may_write.clone());
        let on_their_way = patches.on_their_way();
        let encap_port = translate::unusual_encap_port(&settings);
        let takeover = takeover(&settings);
        let gate = takeover.gate(may_write.clone());
        // without these the databases may not be reachable at all
        let keys = roles.controller.then(|| server_keys::keep(&settings, &api, may_write.clone()));
        let chassis = |sb| Chassis::new(sb, gate.clone(), encap_port, sb_writing.clone());
        let (reports, stale) = sb.clone().map(chassis).unzip();
        let own = nb.clone().zip(sb.clone()).map(|(nb, sb)| OwnDatabases { nb, sb });
        let join = |own| Interconnection::new(own, interconnection(&settings, &may_write, &metrics), &weak);
        let (offers, joined) = own.map(join).unzip();
        let servers = joined.as_ref().map(|joined| ic::servers::keep(&settings, joined.place(), weak.clone()));
        let hosts = offers.as_ref().map(Offers::host_routes);
        let hosts = hosts.map(|told| host_routes::keep(&api, &settings, may_write.clone(), told));
        let northd = nb.as_ref().map(|nb| cluster::keep_northd(&api, &settings, may_write.clone(), nb));
        let values = roles.cluster_manager.then(|| cluster::keep(&api, &settings, may_write.clone()));
        let engine = Engine::new(Parts {
            offers,
            world: World::new(network, scope.kinds().iter().copied()),
            nb: nb.clone(),
            writing: nb_writing.clone(),
            chassis: reports,
            patches,
            events: events.clone(),
            may_write,
            takeover,
            metrics: metrics.clone(),
            readiness: readiness.clone(),
        });
        let mut engine = pin!(engine.run(incoming));
        tokio::select! {
            () = stop.wait() => {
                // it sends nothing any more, and what it has sent must not arrive when the next master has begun
                let answered = async {
                    tokio::select! {
                        () = &mut engine => {}
                        () = on_their_way.ended() => {}
                    }
                };
                gives_back = timeout(margin, answered).await.is_ok();
                break;
            }
            () = leader.lost() => warn!("lost the lease; starting over when it is back"),
            () = connections.keep_sending(weak) => {}
            () = &mut engine => warn!("the watches ended; starting over"),
            () = or_never(stale.map(Chassis::run)) => {}
            () = or_never(joined.map(Interconnection::run)) => {}
            () = or_never(keys) => {}
            () = or_never(servers) => {}
            () = or_never(northd) => {}
            () = or_never(hosts) => {}
            () = or_never(values) => {}
        }
        drop(watches);
        turn_ended = Some(Instant::now());
        metrics.leader.set(0);
    }
    // patches of a turn that ended otherwise may be on their way yet
    if let Some(left) = turn_ended.and_then(|ended: Instant| margin.checked_sub(ended.elapsed())) {
        sleep(left).await;
    }
    if gives_back {
        lease.release().await;
    } else {
        warn!(
            "annotations are on their way to the API server: not giving the lease back, so others wait until it runs out"
        );
    }
    Ok(())
}

fn takeover(settings: &Settings) -> TakeoverCheck {
    TakeoverCheck::new(settings.command_line.allow_unserved, &settings.kubernetes.ovn_config_namespace)
}

/// Runs a part of the process, if there is one.
async fn or_never(part: Option<impl Future<Output = ()>>) {
    match part {
        Some(part) => part.await,
        None => std::future::pending().await,
    }
}

fn interconnection(settings: &Settings, may_write: &MayWrite, metrics: &Metrics) -> JoinSettings {
    JoinSettings {
        tls: translate::tls(&settings.nb),
        txn_timeout: settings.default.db_txn_timeout,
        may_write: may_write.clone(),
        metrics: metrics.interconnection.clone(),
        listening: Listening::default(),
    }
}

/// The gauges that say whether this process holds the lease: ovn-kubernetes has one for each role.
pub(crate) fn leader_metrics(roles: Roles) -> impl Iterator<Item = &'static str> {
    let all =
        [("ovnkube_clustermanager_leader", roles.cluster_manager), ("ovnkube_controller_leader", roles.controller)];
    all.into_iter().filter(|(_, is)| *is).map(|(name, _)| name)
}

fn lease(settings: &Settings, roles: Roles, identity: &str) -> LeaseSettings {
    // a cluster manager and a controller in processes of their own: each has a lease
    let name = if roles.cluster_manager {
        "ovn-kubernetes-master".to_owned()
    } else {
        format!("ovn-kubernetes-master-{}", translate::ZONE)
    };
    let seconds = |n: u32| Duration::from_secs(u64::from(n));
    let (lease, renew, retry) = if roles.controller {
        let ha = &settings.masterha;
        (ha.election_lease_duration, ha.election_renew_deadline, ha.election_retry_period)
    } else {
        let ha = &settings.clustermgrha;
        (ha.election_lease_duration, ha.election_renew_deadline, ha.election_retry_period)
    };
    LeaseSettings {
        namespace: settings.kubernetes.ovn_config_namespace.clone(),
        name,
        identity: identity.to_owned(),
        lease: seconds(lease),
        renew: seconds(renew),
        retry: seconds(retry),
    }
}

/// The southbound database, with the tables in which hosts that are gone leave something.
pub(crate) fn southbound(settings: &Settings) -> Database {
    connect_southbound(southbound_options(settings))
}

fn connect_southbound(options: Options) -> Database {
    let sb = Database::connect(options);
    Chassis::watch_ports(&sb, false);
    sb
}

fn southbound_options(settings: &Settings) -> Options {
    Options {
        tls: translate::tls(&settings.sb),
        tables: Chassis::monitored(),
        txn_timeout: settings.default.db_txn_timeout,
        ..Options::new(&sb::DATABASE, translate::remotes(&settings.sb))
    }
}

/// The northbound database, with what the plan reads and writes.
pub(crate) fn northbound(settings: &Settings) -> Database {
    Database::connect(northbound_options(settings))
}

fn northbound_options(settings: &Settings) -> Options {
    Options {
        tls: translate::tls(&settings.nb),
        tables: monitored(),
        identity: ovnkube_plan::identity,
        txn_timeout: settings.default.db_txn_timeout,
        ..Options::new(&nb::DATABASE, translate::remotes(&settings.nb))
    }
}

/// All tables and columns except those that northd and others write and nothing here reads: each change of one
/// would have to be processed.
fn monitored() -> Vec<Monitored> {
    use nb::{logical_router_port as lrp, logical_switch_port as lsp, nb_global};
    let others = ["Connection", "SSL", "DNS", "BFD", "Mirror", "Forwarding_Group"];
    let unread = [(lsp::TABLE, vec![lsp::UP.id(), lsp::DYNAMIC_ADDRESSES.id()]), (lrp::TABLE, vec![lrp::STATUS.id()])];
    let mut tables = Monitored::whole(&nb::DATABASE);
    tables.retain(|monitored| !others.contains(&monitored.table.name));
    for monitored in &mut tables {
        if let Some((table, unread)) = unread.iter().find(|(table, _)| table.name == monitored.table.name) {
            let columns = (0..table.columns.len()).map(|n| ColumnId(n as u16)).filter(|id| !unread.contains(id));
            *monitored = Monitored::only(table, columns);
        }
        if monitored.table.name == nb_global::TABLE.name {
            // northd's release stands there, and the name of the master that writes
            *monitored = Monitored::only(nb_global::TABLE, [nb_global::OPTIONS.id(), nb_global::EXTERNAL_IDS.id()]);
        }
    }
    tables
}

#[cfg(test)]
mod tests {
    use ovnkube_ovsdb::Columns;

    use super::*;

    /// A change of these columns would count as another program's, and cause a sweep.
    #[test]
    fn columns_that_northd_writes_are_not_monitored() {
        let all = monitored();
        for (table, column) in [("Logical_Switch_Port", "up"), ("Logical_Router_Port", "status")] {
            let of = all.iter().find(|monitored| monitored.table.name == table);
            let Some(Monitored { table, columns: Columns::Only(columns) }) = of else { panic!("all of {table}") };
            assert!(table.column(column).is_some_and(|id| !columns.contains(&id)), "{}.{column}", table.name);
        }
    }
}
