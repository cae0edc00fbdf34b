//! Runs the agent, or lists what it would change.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ovnkube_host::Net;
use ovnkube_model::{HostRoutes, Services};
use ovnkube_node_plan::releases::Releases;
use tokio::net::UnixListener;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::cni::Cni;
use crate::conf::CniConf;
use crate::exchange::{Change, OwnNode, Reports};
use crate::observe::{Depth, observe};
use crate::other_clusters::OtherClusters;
use crate::ovs::Ovs;
use crate::pods::Pods;
use crate::preview::Preview;
use crate::reconcile::{Known, Reconciler};
use crate::sandbox_locks::SandboxLocks;
use crate::server::Socket;
use crate::services::{self, ServiceTracker};
use crate::settings::NodeSettings;
use crate::{Error, Result, ovn_releases, server, stamp, switch_health, wanted};

/// How long the API server may take to send the own Node and all services.
const HEAR: Duration = Duration::from_secs(20);

/// The place of this host's only agent: while it is held, no other agent gets it.
#[derive(Debug)]
pub struct Place {
    listener: UnixListener,
    socket: Socket,
}

impl Place {
    /// Takes the place, and changes nothing else of the host. Fails if another agent has it.
    pub async fn take(settings: &NodeSettings) -> Result<Self> {
        settings.cni_conf.check()?;
        Self::at(&settings.cni_socket).await
    }

    /// The node is not ready for pods any more.
    pub(crate) fn forget_ready(&self) {
        self.socket.forget_ready();
    }

    /// The same, with the path of the socket.
    pub(crate) async fn at(path: &Path) -> Result<Self> {
        let (listener, socket) = server::listen(path).await?;
        Ok(Self { listener, socket })
    }
}

/// Takes the place of this host's agent, and runs there.
pub async fn run(
    settings: NodeSettings,
    changes: mpsc::Receiver<Change>,
    reports: Reports,
    stop: impl Future<Output = ()>,
) -> Result<()> {
    let place = Place::take(&settings).await?;
    Box::pin(run_at(place, settings, changes, reports, stop)).await
}

/// Runs the agent until `stop` resolves. Running pods keep their network.
pub async fn run_at(
    place: Place,
    settings: NodeSettings,
    changes: mpsc::Receiver<Change>,
    reports: Reports,
    stop: impl Future<Output = ()>,
) -> Result<()> {
    let (conf, patience) = (settings.cni_conf.clone(), settings.patience);
    let Place { listener, mut socket } = place;
    let outcome = tokio::select! {
        () = stop => Ok(()),
        outcome = serve(settings, listener, &mut socket, changes, reports) => outcome,
    };
    let left = leave(&conf, &socket, patience);
    drop(socket);
    outcome.and(left)
}

/// Removes the network configuration, so that the runtime starts no pods that would not be wired. But then the kubelet
/// reports the node not ready at once, and its pods leave their services. So it stays where the runtime uses STATUS, which
/// fails if no agent has come after a while, and after a reboot.
fn leave(conf: &CniConf, socket: &Socket, patience: Duration) -> Result<()> {
    if socket.was_ready_within(patience) {
        return Ok(());
    }
    let removed = conf.remove();
    socket.forget_ready();
    removed
}

async fn serve(
    settings: NodeSettings,
    listener: UnixListener,
    socket: &mut Socket,
    changes: mpsc::Receiver<Change>,
    reports: Reports,
) -> Result<()> {
    let (mtu, mtu_now) = watch::channel(settings.mtu.given);
    let (ready, readiness) = watch::channel(Err("there is no connection to the Open_vSwitch database yet".to_owned()));
    let (node, own_node) = watch::channel(OwnNode::default());
    let (others, told) = watch::channel(None);
    let (releases, known_releases) = watch::channel(Releases::default());
    let cni = Arc::new(Cni {
        here: Net::here().await?,
        ovs: Ovs::connect(&settings.ovs_remote)?,
        pods: Pods::new(),
        locks: SandboxLocks::default(),
        mtu: mtu_now,
        route_mtu: settings.mtu.routable,
        ready: readiness,
        health: reports.health.clone(),
        patience: settings.patience,
        stamp: stamp::path(&settings.cni_socket),
    });
    let tracker = tracker(&settings, reports.needs_nodes.clone());
    let (health, warnings) = (reports.health.clone(), reports.warnings.clone());
    let here = Net::here().await?;
    let netlink = [cni.here.clone(), here.clone()];
    let routes = OtherClusters::new(&settings, &cni, here, own_node.clone(), told, &tracker, warnings.clone());
    let known = Known { node: own_node, releases: known_releases };
    let reconciler = Reconciler::new(&settings, Arc::clone(&cni), known, &tracker, ready, mtu, reports);
    tokio::select! {
        outcome = Box::pin(server::serve(listener, socket, Arc::clone(&cni))) => outcome,
        outcome = Box::pin(reconciler.run()) => outcome,
        // every request would fail from now on: a new process has a new socket
        () = netlink[0].ended() => Err(Error::NetlinkEnded),
        () = netlink[1].ended() => Err(Error::NetlinkEnded),
        () = switch_health::watch(&health, settings.run_dir()) => Ok(()),
        () = Box::pin(ovn_releases::follow(&settings.ovn_run_dir, &releases)) => Ok(()),
        () = listen(changes, Some(&cni), node, others, &releases, &tracker) => Ok(()),
        () = Box::pin(routes.keep()) => Ok(()),
        () = services::end_stale(&tracker, settings.run_dir(), &settings.masquerade_subnets) => Ok(()),
        () = services::answer_health_checks(&tracker, &settings.node, &health, &warnings) => Ok(()),
    }
}

/// Applies changes until the watches end.
async fn listen(
    mut changes: mpsc::Receiver<Change>,
    cni: Option<&Cni>,
    node: watch::Sender<OwnNode>,
    others: watch::Sender<Option<HostRoutes>>,
    releases: &watch::Sender<Releases>,
    services: &ServiceTracker,
) {
    while let Some(change) = changes.recv().await {
        match change {
            Change::Pod(key, pod) => {
                if let Some(cni) = cni {
                    cni.pods.set(key, pod);
                }
            }
            Change::Service(key, service) => services.service(&key, service.map(|service| *service)),
            Change::EndpointSlice(key, slice) => services.slice(&key, slice.map(|slice| *slice)),
            Change::ServiceCidr(name, range) => services.range(name, range),
            Change::NodeIps(name, ips) => services.node(&name, ips),
            Change::OtherClusters(told) => drop(others.send_replace(Some(told))),
            Change::Northd(northd) => ovn_releases::set(releases, |releases| releases.northd = Some(northd)),
            Change::Connections(connections) => services.connections(connections),
            Change::ServicesSynced => services.services_synced(),
            Change::NodesSynced => services.nodes_synced(),
            Change::Node(now) => {
                if let Some(cni) = cni {
                    cni.pods.set_subnets(&now.subnets);
                }
                node.send_if_modified(|have| {
                    let differs = *have != now;
                    *have = now;
                    differs
                });
            }
        }
    }
}

fn tracker(settings: &NodeSettings, needs_nodes: watch::Sender<bool>) -> ServiceTracker {
    let node_ports = settings.gateway.as_ref().is_some_and(|gateway| gateway.node_port);
    let no_services = Services::new(settings.address_rules.clone());
    let service_cidrs = settings.gateway.as_ref().map(|gateway| gateway.service_cidrs.clone());
    ServiceTracker::new(settings.node.clone(), node_ports, service_cidrs, no_services, needs_nodes)
}

/// Returns what the agent would change on this host, one text per step, in order. Changes nothing.
pub async fn plan(
    settings: &NodeSettings,
    changes: mpsc::Receiver<Change>,
    needs_nodes: watch::Sender<bool>,
) -> Result<Vec<String>> {
    let (here, ovs) = (Net::here().await?, Ovs::reach(&settings.ovs_remote, "start Open vSwitch").await?);
    let tracker = tracker(settings, needs_nodes);
    let host = observe(&here, Some(&ovs), Depth::Usual).await?;
    tracker.addresses(&wanted::own_ips(settings, &host));
    let (node, mut own_node) = watch::channel(OwnNode::default());
    let (others, mut told) = watch::channel(None);
    let releases = watch::Sender::default();
    let heard = async {
        let mut services = tracker.changes();
        while tracker.want().is_none() && services.changed().await.is_ok() {}
        let _ = own_node.wait_for(|node| *node != OwnNode::default()).await;
        let services = tracker.want().unwrap_or_default();
        (own_node.borrow().clone(), services)
    };
    let all = async {
        let (node, services) = timeout(HEAR, heard).await.map_err(|_| Error::NothingHeard)?;
        // an agent that may not read them leaves the routes as they are
        let told = timeout(HEAR, told.wait_for(Option::is_some)).await.ok().and_then(|told| told.ok()?.clone());
        Ok::<_, Error>((node, services, told))
    };
    let (node, services, told) = tokio::select! {
        all = all => all?,
        () = listen(changes, None, node, others, &releases, &tracker) => return Err(Error::NothingHeard),
    };
    Preview { settings, here: &here, ovs: &ovs, tracker: &tracker }.changes(&node, &services, told).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_configuration_stays_only_where_the_runtime_uses_status() {
        let dir = std::env::temp_dir().join(format!("ovnkube-leave-{}", std::process::id()));
        let conf = CniConf { dir: dir.join("net.d"), ..CniConf::default() };
        let file = conf.dir.join("10-ovn-kubernetes.conflist");
        let Place { listener: _listener, socket } = Place::at(&dir.join("cni/server.sock")).await.unwrap();
        let stamp = stamp::path(&dir.join("cni/server.sock"));
        std::fs::create_dir_all(&conf.dir).unwrap();
        std::fs::write(&file, "{}").unwrap();
        // STATUS found the node ready a moment ago
        stamp::set(&stamp);
        leave(&conf, &socket, Duration::from_secs(60)).unwrap();
        assert!(file.exists() && stamp.exists());
        // it was used, but the node has not been ready for long
        let long_ago = std::time::SystemTime::now() - Duration::from_secs(61);
        std::fs::File::options().append(true).open(&stamp).unwrap().set_modified(long_ago).unwrap();
        leave(&conf, &socket, Duration::from_secs(60)).unwrap();
        assert!(!file.exists() && !stamp.exists());
        // it is not used
        std::fs::write(&file, "{}").unwrap();
        leave(&conf, &socket, Duration::from_secs(60)).unwrap();
        assert!(!file.exists());
        std::fs::remove_dir_all(&dir).unwrap();
    }

    /// An agent that ends closes its socket first, and removes its files then.
    #[tokio::test]
    async fn an_agent_that_ends_takes_nothing_from_the_next() {
        let dir = std::env::temp_dir().join(format!("ovnkube-place-{}", std::process::id()));
        let path = dir.join("cni/server.sock");
        let Place { listener, socket } = Place::at(&path).await.unwrap();
        drop(listener);
        let of_next = path.clone();
        let next = tokio::spawn(async move { Place::at(&of_next).await });
        // the next one looks several times
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!next.is_finished());
        drop(socket);
        let next = next.await.unwrap().unwrap();
        assert!(tokio::net::UnixStream::connect(&path).await.is_ok());
        // one that does not end keeps its place
        let Place { listener, socket: _kept } = next;
        drop(listener);
        let refusal = Place::at(&path).await.unwrap_err().to_string();
        assert!(refusal.contains("another node agent does; stop that one"), "{refusal}");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
