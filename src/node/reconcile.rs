//! Maintains the node's own state: after any change it looks at all of it, works out what differs, and corrects that.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ovnkube_host::changes::Changes;
use ovnkube_node_plan::annotations::{Annotations, Facts};
use ovnkube_node_plan::encap_ip_change::{self, EncapIpChange};
use ovnkube_node_plan::gateway::GatewayBridge;
use ovnkube_node_plan::links;
use ovnkube_node_plan::management_port::{self, ManagementPort};
use ovnkube_node_plan::observed::Observed;
use ovnkube_node_plan::releases::Releases;
use ovnkube_telemetry::NodeHealth;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::apply::Applier;
use crate::cni::Cni;
use crate::conf::Portmap;
use crate::dir_changes::DirChanges;
use crate::exchange::{OwnNode, Readiness, Reports, split};
use crate::gateway::Gateway;
use crate::mtu::Mtu;
use crate::observe::{Depth, find_stale, observe};
use crate::replug::Ports;
use crate::services::ServiceTracker;
use crate::settings::NodeSettings;
use crate::wanted;
use crate::warnings::Warnings;
use crate::{Error, Result};

/// Changes come in bursts: one comparison serves them all.
const SETTLE: Duration = Duration::from_millis(20);
/// Delay before a retry: after a failure there may be no notification.
const RETRY: Duration = Duration::from_secs(1);
/// The longest delay before a retry.
const LONGEST_RETRY: Duration = Duration::from_secs(8);

/// What the agent learns while it runs.
pub(crate) struct Known {
    pub(crate) node: watch::Receiver<OwnNode>,
    pub(crate) releases: watch::Receiver<Releases>,
}

pub(crate) struct Reconciler<'a> {
    settings: &'a NodeSettings,
    cni: Arc<Cni>,
    node: watch::Receiver<OwnNode>,
    ready: watch::Sender<Readiness>,
    annotations: watch::Sender<Annotations>,
    /// A new id for the case that neither OVS nor the Node has one.
    fresh_system_id: Option<String>,
    gateway: Option<Gateway<'a>>,
    mtu: Mtu<'a>,
    encap_ip_change: EncapIpChange,
    started: Instant,
    ports: Ports,
    pods_changed: watch::Receiver<()>,
    mirrors: watch::Receiver<()>,
    releases: watch::Receiver<Releases>,
    services: &'a ServiceTracker,
    services_changed: watch::Receiver<u64>,
    /// The remains of an earlier gateway have been removed.
    is_clean: bool,
    portmap: Portmap,
    health: NodeHealth,
    warnings: Warnings,
}

impl<'a> Reconciler<'a> {
    pub(crate) fn new(
        settings: &'a NodeSettings,
        cni: Arc<Cni>,
        Known { node, releases }: Known,
        services: &'a ServiceTracker,
        ready: watch::Sender<Readiness>,
        mtu: watch::Sender<Option<u32>>,
        reports: Reports,
    ) -> Self {
        let Reports { annotations, warnings, health, .. } = reports;
        Self {
            settings,
            node,
            ready,
            annotations,
            fresh_system_id: wanted::fresh_id(),
            gateway: Gateway::new(settings, warnings.clone()),
            mtu: Mtu::new(&settings.mtu, mtu, warnings.clone()),
            encap_ip_change: EncapIpChange::default(),
            started: Instant::now(),
            ports: Ports::new(warnings.clone()),
            pods_changed: cni.pods.changes(),
            mirrors: cni.pods.mirrors(),
            releases,
            services,
            services_changed: services.changes(),
            is_clean: false,
            portmap: Portmap::default(),
            health,
            warnings,
            cni,
        }
    }

    /// Runs until the process ends. Problems that the process cannot run with are errors before it
    /// changes anything: sockets, and a gateway interface that can never be one.
    pub(crate) async fn run(mut self) -> Result<()> {
        let mut links = Changes::watch()?;
        let mut rows = self.cni.ovs.changes();
        let conf_dir = DirChanges::new(
            "the network configuration",
            "a change of it is undone only with the next change on the host",
        );
        self.cni.ovs.synced().await;
        self.await_gateway(&mut links, &mut rows).await?;
        let mut dead_ports = DeadPorts::default();
        let mut pods = self.cni.pods.changes();
        let mut retry = Retry::default();
        loop {
            // if a comparison hangs, the time since the last one shows it
            self.health.set_programmed(false);
            pods.mark_unchanged();
            let are_gone = dead_ports.remove(&self.cni).await;
            let outcome = self.once().await;
            // a notification follows when something missing appears, but perhaps not after a failure
            let mut failed = outcome.is_err() || !are_gone;
            let now = outcome.unwrap_or_else(|e| Err(e.to_string()));
            let is_ready = now.is_ok();
            // before it is written: a file that is removed at once must be noticed
            conf_dir.watch(&self.settings.cni_conf.dir);
            let unwritten = is_ready && !self.write_conf().await;
            failed |= unwritten;
            // perhaps it has made the directory
            conf_dir.watch(&self.settings.cni_conf.dir);
            self.publish(now);
            let looks_again = self.gateway.as_ref().is_some_and(Gateway::looks_again);
            if !failed || looks_again {
                retry = Retry::default();
            }
            let again = failed || self.ports.is_busy() || looks_again;
            tokio::select! {
                () = links.next() => {},
                _ = rows.changed() => {},
                _ = self.node.changed() => {},
                _ = self.services_changed.changed() => {},
                _ = self.pods_changed.changed(), if !self.ports.is_complete() => {},
                // a pod goes after its link, which is the last change on the host
                _ = pods.changed(), if dead_ports.wait_for_pods => {},
                _ = self.mirrors.changed() => {},
                _ = self.releases.changed() => {},
                () = flows_changed(&mut self.gateway) => {},
                // an attempt that fails changes files there, too
                () = conf_dir.next(), if !unwritten => {},
                // a node that is not ready asks when it is
                () = self.portmap.ask_again(), if is_ready => {},
                () = retry.wait(), if again => {},
                () = sleep(encap_ip_change::WHILE), if self.encap_ip_change.is_recent() => {},
            }
            sleep(SETTLE).await;
        }
    }

    /// Waits until there can be a gateway. Changes nothing.
    async fn await_gateway(&self, links: &mut Changes, rows: &mut watch::Receiver<()>) -> Result<()> {
        let Some(gateway) = &self.gateway else { return Ok(()) };
        loop {
            let checked = self.observe(Depth::Usual).await.and_then(|host| gateway.check(&host));
            match checked {
                Ok(()) => return Ok(()),
                Err(e) if e.is_permanent() => return Err(e),
                Err(e) => self.publish(Err(e.to_string())),
            }
            tokio::select! {
                () = links.next() => {},
                _ = rows.changed() => {},
                () = sleep(RETRY) => {},
            }
        }
    }

    async fn observe(&self, depth: Depth) -> Result<Observed> {
        observe(&self.cni.here, Some(&self.cni.ovs), depth).await
    }

    /// One comparison of everything.
    async fn once(&mut self) -> Result<Readiness> {
        let node = self.node.borrow_and_update().clone();
        if !self.cni.ovs.is_connected() {
            return Ok(Err("there is no connection to the Open_vSwitch database".to_owned()));
        }
        // a failed removal is reported last: the rest does not depend on it
        let clean = self.remove_stale().await;
        let host = self.observe(Depth::Usual).await?;
        let (compared, now) = split(self.compare(&node, host).await);
        Error::all([compared, clean]).map(|()| now)
    }

    /// Removes the remains of an earlier gateway, once.
    async fn remove_stale(&mut self) -> Result<()> {
        if self.is_clean {
            return Ok(());
        }
        let mut host = self.observe(Depth::Whole).await?;
        let stays = self.gateway.as_ref().map(|gateway| gateway.place(&host)).transpose()?;
        let changes = find_stale(stays.as_ref(), &self.settings.stale_ranges(), &mut host).await?;
        applier(self.settings, &self.cni).all(&changes).await?;
        self.is_clean = true;
        Ok(())
    }

    /// Compares the wanted with the observed state, and corrects it. A part that fails stops only those that cannot be right
    /// without it; all that failed is reported.
    async fn compare(&mut self, node: &OwnNode, mut host: Observed) -> Result<Readiness> {
        let cni = Arc::clone(&self.cni);
        let ovs = &cni.ovs;
        let encap_ips = wanted::encap_ips(self.settings, node);
        let bridge = match &mut self.gateway {
            Some(gateway) => gateway.settle(&node.internal_ips, &mut host, &cni.here, ovs).await.map(Some),
            None => Ok(None),
        };
        let found = bridge.as_ref().ok().and_then(Option::as_ref);
        let mtu = self.mtu.find(&self.settings.chassis.encap_type, &encap_ips, node.mtu, &host);
        let mgmt = mtu.and_then(|mtu| wanted::management_port(self.settings, node, mtu, ovs.is_userspace()));
        let written = self.write_rows(node, &encap_ips, mgmt.as_ref(), found).await;
        self.pods_changed.mark_unchanged();
        self.mirrors.mark_unchanged();
        let ports = self.ports.compare(&cni).await;
        self.annotate(node, &encap_ips, found, mtu, &host);
        // the switch may have made the port just now
        if host.link(management_port::LINK).is_none() {
            host = self.observe(Depth::Usual).await?;
        }
        let (port, no_port) = split(self.ensure_management_port(mgmt.as_ref(), &mut host).await);
        let gateway = match (&bridge, &no_port) {
            (Ok(bridge), Ok(())) => self.ensure_gateway(bridge.as_ref(), node, mgmt.as_ref(), &host).await,
            _ => Ok(Ok(())),
        };
        let (gateway, missing) = split(gateway);
        // a problem matters more than what is only missing so far
        Error::all([bridge.map(drop), written, ports, port, gateway])?;
        Ok(no_port.and(missing))
    }

    /// Configures the gateway with what services need, or waits for them.
    async fn ensure_gateway(
        &mut self,
        bridge: Option<&GatewayBridge>,
        node: &OwnNode,
        mgmt: Option<&ManagementPort>,
        host: &Observed,
    ) -> Result<Readiness> {
        self.services_changed.mark_unchanged();
        let Some(services) = self.services.want() else {
            return Ok(Err("the API server has not listed the services yet".to_owned()));
        };
        let (Some(gateway), Some(bridge), Some(mgmt)) = (&mut self.gateway, bridge, mgmt) else { return Ok(Ok(())) };
        gateway.ensure(bridge, node, mgmt, host, applier(self.settings, &self.cni), &services).await
    }

    async fn write_rows(
        &mut self,
        node: &OwnNode,
        encap_ips: &[IpAddr],
        mgmt: Option<&ManagementPort>,
        bridge: Option<&GatewayBridge>,
    ) -> Result<()> {
        let ovs = &self.cni.ovs;
        let system_id = wanted::system_id(node, self.fresh_system_id.as_deref());
        let releases = *self.releases.borrow_and_update();
        let mut chassis = wanted::chassis(self.settings, node, encap_ips, mgmt, bridge, system_id, releases.waits());
        self.warnings.report("OlderThanNorthd", releases.problem());
        self.encap_ip_change.amend(ovs.encap_ip().as_deref(), &mut chassis.external_ids, self.started.elapsed());
        ovs.apply("set the node's Open_vSwitch rows", |cache| chassis.plan(cache).ok_or(Error::NoOvs)).await
    }

    /// Configures the management port. Updates `host` afterwards.
    async fn ensure_management_port(
        &mut self,
        mgmt: Option<&ManagementPort>,
        host: &mut Observed,
    ) -> Result<Readiness> {
        let Some(mgmt) = mgmt else {
            return Ok(Err("the node has no subnet yet (annotation k8s.ovn.org/node-subnets)".to_owned()));
        };
        self.mtu.compare_pods(mgmt.mtu, host, &self.cni.ovs);
        if host.link(management_port::LINK).is_none() {
            return Ok(Err(format!("ovs-vswitchd has not made {}", management_port::LINK)));
        }
        let changes = links::diff(&mgmt.state(host), host);
        if !changes.is_empty() {
            let set = applier(self.settings, &self.cni).all(&changes).await;
            *host = self.observe(Depth::Usual).await?;
            set?;
        }
        if !self.cni.ovs.has_installed(management_port::LINK) {
            return Ok(Err(format!("ovn-controller has not installed the flows of {}", management_port::LINK)));
        }
        Ok(Ok(()))
    }

    fn annotate(
        &self,
        node: &OwnNode,
        encap_ips: &[IpAddr],
        bridge: Option<&GatewayBridge>,
        mtu: Option<u32>,
        host: &Observed,
    ) {
        let Some(system_id) = self.cni.ovs.system_id() else { return };
        let addresses = host.addresses_except(management_port::LINK);
        self.services.addresses(&wanted::own_ips(self.settings, host));
        // what follows from the Node's addresses would be wrong on it until they are known: what is there stays
        if *node == OwnNode::default() {
            return;
        }
        let facts = Facts {
            system_id: &system_id,
            zone: &self.settings.zone,
            // while ovs-vswitchd restarts, the bridge's addresses are missing
            addresses: (self.gateway.is_none() || bridge.is_some()).then_some(&addresses),
            internal_ips: &node.internal_ips,
            encap_ips,
            masquerade: &self.settings.masquerade_subnets,
            gateway: match &self.gateway {
                Some(gateway) => bridge.map(|bridge| gateway.annotation(bridge)),
                None => Some(String::new()),
            },
            checks_mtu: self.gateway.as_ref().is_none_or(|gateway| gateway.checks_mtu(&self.cni.ovs)),
            mtu: self.mtu.annotation(mtu),
        };
        let now = facts.annotations();
        self.annotations.send_if_modified(|have| {
            let changed = *have != now;
            *have = now;
            changed
        });
    }

    async fn write_conf(&mut self) -> bool {
        let written = self.settings.cni_conf.write(&mut self.portmap).await;
        let problem = written.as_ref().err().map(|error| {
            format!(
                "the configuration of the container runtime cannot be written, so pods start with the one of before, or not at all: \
                 {error}; make room there, and make the directory writable, in a pod the mount of the host's"
            )
        });
        self.warnings.report("NoNetworkConfiguration", problem);
        written.is_ok()
    }

    /// Publishes the readiness for STATUS and in the log.
    fn publish(&self, now: Readiness) {
        self.health.set_programmed(now.is_ok());
        if *self.ready.borrow() == now {
            return;
        }
        match &now {
            Ok(()) => tracing::info!("node is ready for pods"),
            Err(why) => tracing::info!(%why, "node is not ready for pods"),
        }
        let _ = self.ready.send_replace(now);
    }
}

/// The delay before the next retry. It grows: what fails again and again, as on a full disk, may do so for long, and each
/// comparison reads all flows, all of nftables and all links.
struct Retry(Duration);

impl Default for Retry {
    fn default() -> Self {
        Self(RETRY)
    }
}

impl Retry {
    /// Waits. The next time takes longer, unless a notification ended this one.
    async fn wait(&mut self) {
        sleep(self.0).await;
        self.0 = LONGEST_RETRY.min(self.0 * 2);
    }
}

/// Ports of sandboxes that ended without a DEL.
#[derive(Default)]
struct DeadPorts {
    /// Those that were there when the agent started are gone.
    begun: bool,
    /// Some stayed at the last look because their pod was still there.
    wait_for_pods: bool,
    /// Why some were there at the last look.
    told: Vec<String>,
}

impl DeadPorts {
    /// Removes them, after the start only those of pods that are gone. Returns false when it must be repeated. What cannot be
    /// removed is told when it changes.
    async fn remove(&mut self, cni: &Cni) -> bool {
        if !cni.ovs.is_connected() {
            return true;
        }
        let (errors, wait_for_pods) = cni.remove_dead_ports(!self.begun).await;
        self.wait_for_pods = wait_for_pods;
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        for error in errors.iter().filter(|error| !self.told.contains(error)) {
            tracing::warn!(%error, "cannot remove the port of a dead sandbox; trying again");
        }
        self.begun |= errors.is_empty();
        self.told = errors;
        self.told.is_empty()
    }
}

fn applier<'a>(settings: &'a NodeSettings, cni: &'a Cni) -> Applier<'a> {
    Applier {
        here: &cni.here,
        ovs: Some(&cni.ovs),
        run_dir: settings.run_dir(),
        masquerade: &settings.masquerade_subnets,
    }
}

async fn flows_changed(gateway: &mut Option<Gateway<'_>>) {
    match gateway {
        Some(gateway) => gateway.changed().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use ovnkube_model::Services;
    use tokio::time::timeout;

    use super::*;
    use crate::tests::{apart, without_switch};

    #[tokio::test(start_paused = true)]
    async fn what_keeps_failing_is_tried_less_often() {
        let mut retry = Retry::default();
        let mut waited = Vec::new();
        for _ in 0..5 {
            let since = tokio::time::Instant::now();
            retry.wait().await;
            waited.push(since.elapsed().as_secs());
        }
        assert_eq!(waited, [1, 2, 4, 8, 8]);
        // notifications that come faster do not make it longer
        let mut retry = Retry::default();
        for _ in 0..5 {
            assert!(timeout(RETRY / 2, retry.wait()).await.is_err());
        }
        assert!(timeout(RETRY * 2, retry.wait()).await.is_ok());
    }

    /// Rows that cannot be written, as on a disk that is full, keep no pod without its port.
    #[test]
    fn a_part_that_fails_does_not_stop_the_others() {
        apart(async || {
            let settings = NodeSettings::default();
            let (cni, ready) = (Arc::new(without_switch().await), watch::Sender::new(Ok(())));
            let services =
                ServiceTracker::new("node-1".into(), true, None, Services::default(), watch::Sender::default());
            let (node, releases) = (watch::Sender::default().subscribe(), watch::Sender::default().subscribe());
            let known = Known { node, releases };
            let mut reconciler =
                Reconciler::new(&settings, cni, known, &services, ready, watch::Sender::default(), Reports::default());
            let outcome = reconciler.compare(&OwnNode::default(), Observed::default()).await;
            assert_eq!(outcome.unwrap_err().to_string(), Error::NoOvs.to_string());
            assert!(reconciler.ports.is_complete(), "pods' ports were compared");
        });
    }
}
