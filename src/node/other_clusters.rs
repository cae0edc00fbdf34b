//! Keeps the host's routes to other clusters, apart from all other work: it needs no API server, and no database but for tunnels.
//! Whatever the host depends on is looked at again and again, so a route that takes something away does not stay.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use ovnkube_host::changes::Changes;
use ovnkube_host::{Net, sockets};
use ovnkube_model::{HostRoutes, Name, Subnet};
use ovnkube_node_plan::links::HostState;
use ovnkube_node_plan::observed::Observed;
use ovnkube_node_plan::other_clusters::{Facts, TABLE, say, want};
use ovnkube_node_plan::{links, management_port};
use ovnkube_ovn::vswitch::interface;
use ovnkube_ovsdb::Cache;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::Result;
use crate::apply::Applier;
use crate::cni::Cni;
use crate::exchange::OwnNode;
use crate::observe::{Depth, observe};
use crate::ovs::Ovs;
use crate::services::ServiceTracker;
use crate::settings::NodeSettings;
use crate::warnings::Warnings;

/// Not everything that counts brings a notification.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// Changes come in bursts: one look serves them all.
const SETTLE: Duration = Duration::from_secs(1);

pub(crate) struct OtherClusters<'a> {
    settings: &'a NodeSettings,
    cni: &'a Cni,
    /// A socket of its own, since others list objects meanwhile.
    here: Net,
    node: watch::Receiver<OwnNode>,
    /// `None`: it is not known.
    told: watch::Receiver<Option<HostRoutes>>,
    ways: Ways<'a>,
    warnings: Warnings,
}

/// Which routes the host has.
pub(crate) struct Ways<'a> {
    settings: &'a NodeSettings,
    ovs: &'a Ovs,
    services: &'a ServiceTracker,
    /// By prefix: an address with which the host has had a connection by another way. The connection may be lost and come back.
    connected: BTreeMap<Subnet, IpAddr>,
    /// When connections were looked at, and for which prefixes.
    looked: Option<(Instant, BTreeSet<Subnet>)>,
}

pub(crate) struct Wanted {
    pub(crate) state: HostState,
    /// Prefixes that the host has no route to, with the reason.
    pub(crate) held: BTreeMap<Subnet, String>,
    /// There are no routes, wanted or observed.
    pub(crate) is_idle: bool,
}

impl<'a> OtherClusters<'a> {
    pub(crate) fn new(
        settings: &'a NodeSettings,
        cni: &'a Cni,
        here: Net,
        node: watch::Receiver<OwnNode>,
        told: watch::Receiver<Option<HostRoutes>>,
        services: &'a ServiceTracker,
        warnings: Warnings,
    ) -> Self {
        Self { settings, cni, here, node, told, ways: Ways::new(settings, &cni.ovs, services), warnings }
    }

    /// Runs until the process ends.
    pub(crate) async fn keep(mut self) {
        let (mut links, mut failed) = (None, false);
        let mut rows = self.cni.ovs.changes();
        loop {
            let is_idle = match self.compare().await {
                Ok(is_idle) => {
                    failed = false;
                    is_idle
                }
                Err(error) => {
                    if !std::mem::replace(&mut failed, true) {
                        tracing::warn!(%error, "cannot keep the host's routes to other clusters; trying again");
                    }
                    false
                }
            };
            if is_idle {
                links = None;
                if self.told.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
                continue;
            }
            if links.is_none() {
                links = Changes::watch().ok();
            }
            tokio::select! {
                () = next(links.as_mut()) => {}
                _ = rows.changed() => {}
                _ = self.told.changed() => {}
                _ = self.node.changed() => {}
                () = sleep(LOOK_AGAIN) => {}
            }
            sleep(SETTLE).await;
        }
    }

    /// Compares the wanted with the observed routes, and corrects them. Returns whether there are none, wanted or observed.
    async fn compare(&mut self) -> Result<bool> {
        let told = self.told.borrow_and_update().clone();
        let node = self.node.borrow_and_update().clone();
        let host = observe(&self.here, None, Depth::Usual).await?;
        let Wanted { state, held, is_idle } = self.ways.want(told, &node, &host);
        self.warnings.report("HostRouteRefused", say(&held));
        let changes = links::diff(&state, &host);
        let applier = Applier {
            here: &self.here,
            ovs: None,
            run_dir: self.settings.run_dir(),
            masquerade: &self.settings.masquerade_subnets,
        };
        applier.all(&changes).await?;
        Ok(is_idle)
    }
}

impl<'a> Ways<'a> {
    pub(crate) fn new(settings: &'a NodeSettings, ovs: &'a Ovs, services: &'a ServiceTracker) -> Self {
        Self { settings, ovs, services, connected: BTreeMap::new(), looked: None }
    }

    /// `told`: the prefixes; `None`: they are not known, and the routes that there are stay.
    pub(crate) fn want(&mut self, told: Option<HostRoutes>, node: &OwnNode, host: &Observed) -> Wanted {
        let gateways: Vec<IpAddr> = node.subnets.iter().filter_map(|subnet| subnet.nth(1)).collect();
        let is_wanted = told.as_ref().is_some_and(|told| !told.prefixes.is_empty());
        // without a subnet of the node there is no way to go by; tunnels and the API server's addresses must be known
        let is_ready = !gateways.is_empty() && self.ovs.is_connected() && self.services.knows_services();
        let told = told.filter(|_| is_ready || !is_wanted);
        let prefixes = told.as_ref().map(|told| &told.prefixes);
        let looked_for = prefixes.map_or_else(|| existing(host), |prefixes| prefixes.keys().copied().collect());
        let mut needed = self.needed(&looked_for, node, host);
        let servers = told.iter().flat_map(|told| &told.servers);
        needed.extend(servers.map(|ip| (*ip, "a server of the shared databases".into())));
        let facts = Facts { prefixes, gateways: &gateways, mtu: self.settings.mtu.routable, needed: &needed };
        let (state, held) = want(&facts, host);
        Wanted { state, held, is_idle: looked_for.is_empty() && !is_wanted }
    }

    /// Addresses that the node depends on, with what they are.
    fn needed(&mut self, prefixes: &BTreeSet<Subnet>, node: &OwnNode, host: &Observed) -> BTreeMap<IpAddr, Name> {
        if prefixes.is_empty() {
            return BTreeMap::new();
        }
        self.look_at_connections(prefixes, node, host);
        let mut needed: BTreeMap<IpAddr, Name> =
            self.connected.values().map(|ip| (*ip, "this host is connected with it by another way".into())).collect();
        needed.extend(self.ovs.read(tunnels).into_iter().map(|ip| (ip, "the other end of a tunnel".into())));
        needed.extend(self.services.needed());
        needed
    }

    fn look_at_connections(&mut self, prefixes: &BTreeSet<Subnet>, node: &OwnNode, host: &Observed) {
        let is_known = |(at, of): &(Instant, BTreeSet<Subnet>)| at.elapsed() < LOOK_AGAIN && prefixes.is_subset(of);
        if self.looked.as_ref().is_some_and(is_known) {
            return;
        }
        self.looked = Some((Instant::now(), prefixes.clone()));
        self.connected.retain(|prefix, _| prefixes.contains(prefix));
        let port = host.link(management_port::LINK);
        // those by the routes have the management port's address
        let is_ours = |local: &IpAddr| {
            node.subnets.iter().any(|subnet| subnet.contains(*local))
                || port.is_some_and(|port| port.addresses.iter().any(|own| own.ip() == *local))
        };
        let others = sockets::connected().into_iter().filter(|(local, _)| !is_ours(local));
        let remotes: BTreeSet<IpAddr> = others.map(|(_, remote)| remote).collect();
        for prefix in prefixes {
            let remote = remotes.range(prefix.base()..).next().filter(|ip| prefix.contains(**ip));
            if let Some(ip) = remote {
                self.connected.entry(*prefix).or_insert(*ip);
            }
        }
    }
}

/// The prefixes that the host has routes to.
fn existing(host: &Observed) -> BTreeSet<Subnet> {
    let port = host.link(management_port::LINK).into_iter();
    port.flat_map(|port| port.routes_in(TABLE)).map(|route| Subnet::of(route.destination)).collect()
}

/// The other ends of the node's tunnels.
fn tunnels(cache: &Cache) -> Vec<IpAddr> {
    let rows = cache.iter(interface::TABLE);
    rows.filter_map(|(_, row)| row.map(interface::OPTIONS).get("remote_ip")?.parse().ok()).collect()
}

async fn next(links: Option<&mut Changes>) {
    match links {
        Some(links) => links.next().await,
        None => std::future::pending().await,
    }
}
