//! Keeps the node's own state: compares all of it whenever something changed.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ipnetwork::IpNetwork;
use ovnkube_host::changes::Changes;
use ovnkube_telemetry::NodeHealth;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::annotations::{Annotations, Facts};
use crate::chassis::{Chassis, MgmtPort, external_ids};
use crate::cni::Cni;
use crate::conf::Portmap;
use crate::conf_changes::ConfChanges;
use crate::gateway::{self, Gateway, Site};
use crate::mgmt::{self, Mgmt};
use crate::moved::{self, Moved};
use crate::mtu::{Mtu, Warnings};
use crate::replug::Ports;
use crate::services::Board;
use crate::settings::NodeSettings;
use crate::{Error, OwnNode, Readiness, Reports, Result};

/// Changes come in bursts: one comparison serves them all.
const SETTLE: Duration = Duration::from_millis(20);
/// Where the packages of OVS keep the id of the chassis.
const SYSTEM_ID: &str = "/etc/openvswitch/system-id.conf";
/// After a failure that no change may follow.
const RETRY: Duration = Duration::from_secs(1);

pub(crate) struct Keeper<'a> {
    settings: &'a NodeSettings,
    cni: Arc<Cni>,
    node: watch::Receiver<OwnNode>,
    ready: watch::Sender<Readiness>,
    annotations: watch::Sender<Annotations>,
    /// In case that nobody knows one.
    fresh_system_id: Option<String>,
    gateway: Option<Gateway<'a>>,
    mtu: Mtu<'a>,
    moved: Moved,
    ports: Ports,
    pods_changed: watch::Receiver<()>,
    services: &'a Board,
    services_changed: watch::Receiver<u64>,
    /// What an earlier gateway had is gone.
    left: bool,
    portmap: Portmap,
    health: NodeHealth,
}

impl<'a> Keeper<'a> {
    pub(crate) fn new(
        settings: &'a NodeSettings,
        cni: Arc<Cni>,
        node: watch::Receiver<OwnNode>,
        services: &'a Board,
        ready: watch::Sender<Readiness>,
        mtu: watch::Sender<Option<u32>>,
        reports: Reports,
    ) -> Self {
        let Reports { annotations, warnings, health, .. } = reports;
        let gateway = Gateway::new(settings, warnings.clone());
        let ports = Ports::new(Warnings::new(warnings.clone()));
        let pods_changed = cni.pods.changes();
        let mtu = Mtu::new(&settings.mtu, mtu, Warnings::new(warnings));
        let fresh_system_id = id_in("/proc/sys/kernel/random/uuid");
        let services_changed = services.changes();
        Self {
            settings,
            cni,
            node,
            ready,
            annotations,
            fresh_system_id,
            gateway,
            mtu,
            moved: Moved::default(),
            ports,
            pods_changed,
            services,
            services_changed,
            health,
            portmap: Portmap::default(),
            left: false,
        }
    }

    /// Until the process ends. What the process can't run with is an error before anything is
    /// touched: sockets, and a gateway interface that never can be one.
    pub(crate) async fn run(mut self) -> Result<()> {
        let mut links = Changes::watch()?;
        let mut rows = self.cni.ovs.changes();
        let conf_changes = ConfChanges::new();
        self.cni.ovs.synced().await;
        self.await_gateway(&mut links, &mut rows).await?;
        if let Err(e) = self.cni.remove_dead_ports().await {
            tracing::warn!("remove ports of dead sandboxes: {e}");
        }
        loop {
            // one that does not come to its end is told by how long ago the last one did
            self.health.set_programmed(false);
            let outcome = self.once().await;
            // what is merely missing comes with a change; a failure may not
            let mut failed = outcome.is_err();
            let now = outcome.unwrap_or_else(|e| Err(e.to_string()));
            failed |= now.is_ok() && !self.write_conf().await;
            conf_changes.watch(&self.settings.cni_conf.dir);
            self.publish(now);
            let again = failed || self.ports.is_busy() || self.gateway.as_ref().is_some_and(Gateway::looks_again);
            tokio::select! {
                alive = links.next() => if !alive { links = Changes::watch()? },
                _ = rows.changed() => {},
                _ = self.node.changed() => {},
                _ = self.services_changed.changed() => {},
                _ = self.pods_changed.changed(), if !self.ports.is_complete() => {},
                () = flows_changed(&mut self.gateway) => {},
                () = conf_changes.next() => {},
                () = sleep(RETRY), if again => {},
                () = sleep(moved::WHILE), if self.moved.is_recent() => {},
            }
            sleep(SETTLE).await;
        }
    }

    /// Returns when there can be a gateway, and touches nothing before.
    async fn await_gateway(&self, links: &mut Changes, rows: &mut watch::Receiver<()>) -> Result<()> {
        let Some(gateway) = &self.gateway else { return Ok(()) };
        loop {
            match gateway.check(&self.cni.here, &self.cni.ovs).await {
                Ok(()) => return Ok(()),
                Err(e @ (Error::WrongGateway { .. } | Error::Overlap { .. })) => return Err(e),
                Err(e) => self.publish(Err(e.to_string())),
            }
            tokio::select! {
                alive = links.next() => if !alive { *links = Changes::watch()? },
                _ = rows.changed() => {},
                () = sleep(RETRY) => {},
            }
        }
    }

    /// One comparison of everything.
    async fn once(&mut self) -> Result<Readiness> {
        let node = self.node.borrow_and_update().clone();
        if !self.cni.ovs.is_connected() {
            return Ok(Err("no connection to the Open_vSwitch database".to_owned()));
        }
        // what cannot go is told of last: the rest does not depend on it
        let left = self.leave().await;
        let now = self.compare(&node).await?;
        left.map(|()| now)
    }

    /// Takes away what an earlier gateway had, once.
    async fn leave(&mut self) -> Result<()> {
        if self.left {
            return Ok(());
        }
        let (here, ovs) = (&self.cni.here, &self.cni.ovs);
        match &self.gateway {
            Some(gateway) => gateway.leave_others(here, ovs).await?,
            None => gateway::left::leave(self.settings, None, here, ovs).await?,
        }
        self.left = true;
        Ok(())
    }

    /// What there shall be, with what there is.
    async fn compare(&mut self, node: &OwnNode) -> Result<Readiness> {
        let ovs = &self.cni.ovs;
        let encap_ips = if self.settings.chassis.encap_ips.is_empty() {
            node.internal_ips.first().copied().into_iter().collect()
        } else {
            self.settings.chassis.encap_ips.clone()
        };
        // a gateway that is gone or changed is told of last: the rest does not depend on it
        let site = match &mut self.gateway {
            Some(gateway) => gateway.settle(&node.internal_ips, &self.cni.here, ovs).await.map(Some),
            None => Ok(None),
        };
        let found = site.as_ref().ok().and_then(Option::as_ref);
        let mtu = self.mtu.find(&self.settings.chassis.encap_type, &encap_ips, node.mtu, &self.cni.here).await?;
        let (cluster, route_mtu) = (&self.settings.cluster_subnets, self.settings.mtu.routable);
        let mgmt = mtu.and_then(|mtu| Mgmt::new(node, cluster, mtu, route_mtu, ovs.is_userspace()));
        let encap: Vec<String> = encap_ips.iter().map(ToString::to_string).collect();
        let mut ids = external_ids(&self.settings.node, &self.settings.chassis, &encap);
        self.moved.amend(ovs.encap_ip().as_deref(), &mut ids, Instant::now());
        let chassis = Chassis {
            external_ids: ids,
            tls: self.settings.chassis.sb_tls.clone(),
            system_id: system_id(id_in(SYSTEM_ID), node, self.fresh_system_id.as_deref()),
            mgmt: mgmt.as_ref().and_then(|mgmt| {
                Some(MgmtPort { iface_id: format!("k8s-{}", self.settings.node), mac: mgmt.mac()?, mtu: mgmt.mtu })
            }),
            gateway_bridge: found.map(|site| site.bridge.name.clone()),
        };
        ovs.apply("set the node's Open_vSwitch rows", |cache| chassis.plan(cache)).await?;
        self.pods_changed.mark_unchanged();
        let ports = self.ports.compare(&self.cni).await;
        self.annotate(node, &encap_ips, found, mtu).await?;
        let port = self.ensure_mgmt(mgmt.as_ref()).await?;
        // what is wrong with the gateway counts more than what is only not there yet
        let site = site?;
        ports?;
        if port.is_err() {
            return Ok(port);
        }
        self.services_changed.mark_unchanged();
        let Some(services) = self.services.want() else {
            return Ok(Err("the API server has not listed the services yet".to_owned()));
        };
        match (&mut self.gateway, site, mgmt) {
            (Some(gateway), Some(site), Some(mgmt)) => {
                gateway.ensure(&site, node, &mgmt, &self.cni.here, &self.cni.ovs, &services).await
            }
            _ => Ok(Ok(())),
        }
    }

    async fn ensure_mgmt(&mut self, mgmt: Option<&Mgmt>) -> Result<Readiness> {
        let Some(mgmt) = mgmt else {
            return Ok(Err("the node has no subnet yet (annotation k8s.ovn.org/node-subnets)".to_owned()));
        };
        self.mtu.compare_pods(mgmt.mtu, &self.cni.here, &self.cni.ovs).await?;
        if !mgmt.ensure(&self.cni.here).await? {
            return Ok(Err(format!("ovs-vswitchd has not made {}", mgmt::LINK)));
        }
        if !self.cni.ovs.has_installed(mgmt::LINK) {
            return Ok(Err(format!("ovn-controller has not installed the flows of {}", mgmt::LINK)));
        }
        Ok(Ok(()))
    }

    async fn annotate(
        &self,
        node: &OwnNode,
        encap_ips: &[std::net::IpAddr],
        site: Option<&Site>,
        mtu: Option<u32>,
    ) -> Result<()> {
        let Some(system_id) = self.cni.ovs.system_id() else { return Ok(()) };
        let addresses = self.cni.here.all_addresses(mgmt::LINK).await?;
        let masquerade = |ip: &IpAddr| self.settings.masquerade_subnets.iter().any(|range| range.contains(*ip));
        let own = addresses.iter().map(IpNetwork::ip).filter(|ip| !ip.is_loopback() && !masquerade(ip));
        self.services.addresses(&own.collect::<Vec<_>>());
        let facts = Facts {
            system_id: &system_id,
            zone: &self.settings.zone,
            // an ovs-vswitchd that restarts takes the bridge's addresses away
            addresses: (self.gateway.is_none() || site.is_some()).then_some(&addresses),
            internal_ips: &node.internal_ips,
            encap_ips,
            masquerade: &self.settings.masquerade_subnets,
            gateway: match &self.gateway {
                Some(gateway) => site.map(|site| gateway.annotation(site)),
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
        Ok(())
    }

    async fn write_conf(&mut self) -> bool {
        let written = self.settings.cni_conf.write(&mut self.portmap).await;
        if let Err(e) = &written {
            tracing::error!("{e}");
        }
        written.is_ok()
    }

    /// For STATUS and the log.
    fn publish(&self, now: Readiness) {
        self.health.set_programmed(now.is_ok());
        if *self.ready.borrow() == now {
            return;
        }
        match &now {
            Ok(()) => tracing::info!("node is ready for pods"),
            Err(why) => tracing::info!("node is not ready for pods: {why}"),
        }
        let _ = self.ready.send_replace(now);
    }
}

async fn flows_changed(gateway: &mut Option<Gateway<'_>>) {
    match gateway {
        Some(gateway) => gateway.changed().await,
        None => std::future::pending().await,
    }
}

/// The one that the packages of OVS keep, else the one that the Node has had: an OVS that has lost everything goes on as
/// the same chassis. Else a new one, once the Node is known.
pub(crate) fn system_id(kept: Option<String>, node: &OwnNode, fresh: Option<&str>) -> Option<String> {
    let annotated = node.chassis_id.as_deref();
    let fresh = fresh.filter(|_| *node != OwnNode::default());
    kept.or_else(|| annotated.or(fresh).map(str::to_owned))
}

fn id_in(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|id| id.trim().to_owned()).filter(|id| !id.is_empty())
}
