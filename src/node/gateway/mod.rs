//! The node's gateway: its pods reach the outside with the node's address, and the host and pods
//! reach each other.
//!
//! ```text
//!           outside                                    shared: pod ─▶ OVN ─▶ patch port ─▶ uplink
//!              │ uplink                                local:  pod ─▶ OVN ─▶ mp0 ─▶ host ─▶ uplink
//!   host ──── bridge ──patch port── br-int ──mp0── host
//!     │          └ flows      where incoming packets go, conntrack marks (OpenFlow)
//!     ├ host      masquerade addresses, routes, neighbours              (netlink)
//!     └ nft       source addresses of forwarded packets, services       (nftables)
//! ```
//! Remains of an earlier gateway elsewhere are removed first; see [`stale`].
//! A NIC is put into a bridge first; see [`crate::uplink`]. Like the rest of the agent it is
//! level-triggered: each step compares, and restores what is missing.

mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnetwork::IpNetwork;
use ovnkube_host::Net;
use ovnkube_host::flows::{Switch, Watch};
use ovnkube_model::{GatewayMode, Subnet};
use ovnkube_node_plan::change::HostChange;
use ovnkube_node_plan::gateway::{GatewayBridge, GatewaySettings, Place, ReservedRanges, flows, nft, ranges, routing};
use ovnkube_node_plan::links::{self, HostState};
use ovnkube_node_plan::management_port::{self, ManagementPort};
use ovnkube_node_plan::observed::Observed;
use ovnkube_node_plan::services::nft::{self as services_nft, Moved};
use ovnkube_node_plan::services::{ServiceIntent, Want};
use ovnkube_node_plan::{iptables_cleanup, openflow, stale};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::apply::Applier;
use crate::exchange::{OwnNode, split};
use crate::observe::{Depth, observe, observe_tables};
use crate::ovs::Ovs;
use crate::services::end_moved;
use crate::settings::NodeSettings;
use crate::uplink::{BootGrace, UnmovedRoutes, Uplink, Watched};
use crate::{Error, Readiness, Result, Warning, Warnings};

/// Bytes of an Ethernet header.
const ETHERNET: u32 = 14;
/// Pause before the look at a change that may be the agent's own.
const AFTER_WRITE: Duration = Duration::from_secs(1);
/// Attempts to end connections before the next change: the kernel may not support it.
const ATTEMPTS: u8 = 5;

pub(crate) struct Gateway<'a> {
    node: &'a NodeSettings,
    settings: &'a GatewaySettings,
    table: table::Table,
    warnings: Warnings,
    /// Refused elements that were already reported.
    refused: Vec<table::Refused>,
    watch: Option<Watch>,
    /// The last comparison changed flows.
    wrote: bool,
    /// Flows that were already reported as foreign.
    taken: Vec<String>,
    /// Result of removing stale rules of ovn-kubernetes; `None`: not tried yet.
    swept: Option<std::result::Result<(), String>>,
    /// NIC, bridge and the reason why the NIC was taken out again; the move is not repeated.
    undone: Option<(String, String, String)>,
    /// Since when connectivity is checked after a NIC was put into its bridge.
    probation_since: Option<Instant>,
    /// How often in a row connections could not be ended.
    unended: u8,
    /// Progress of the host's own network setup.
    boot_grace: BootGrace,
    /// Routes that could not be moved to the bridge.
    unmoved: UnmovedRoutes,
}

impl<'a> Gateway<'a> {
    /// `None` when the settings want no gateway.
    pub(crate) fn new(node: &'a NodeSettings, warnings: Warnings) -> Option<Self> {
        let settings = node.gateway.as_ref()?;
        Some(Self {
            node,
            settings,
            table: table::Table::default(),
            warnings,
            refused: Vec::new(),
            watch: None,
            wrote: false,
            taken: Vec::new(),
            swept: None,
            undone: None,
            probation_since: None,
            unended: 0,
            boot_grace: BootGrace::new(settings.first_address, settings.default_route),
            unmoved: UnmovedRoutes::default(),
        })
    }

    /// Whether to look at the network again without a notification.
    pub(crate) fn looks_again(&self) -> bool {
        self.probation_since.is_some() || (1..ATTEMPTS).contains(&self.unended)
    }

    /// Checks that there is a gateway or can be one. Changes nothing.
    pub(crate) fn check(&self, host: &Observed) -> Result<()> {
        self.settings.check_host(self.ranges(), host)?;
        let place = self.settings.place(self.ranges(), host)?;
        // a move that has begun must be completed first
        if place.made && place.nic.is_some() {
            return Ok(());
        }
        self.settings.find(&place, self.ranges(), &[], host)?;
        Ok(())
    }

    /// Where the gateway is.
    pub(crate) fn place(&self, host: &Observed) -> Result<Place> {
        Ok(self.settings.place(self.ranges(), host)?)
    }

    /// Puts a NIC into its bridge, and returns the gateway's bridge. Updates `host` after the move.
    pub(crate) async fn settle(
        &mut self,
        internal: &[IpAddr],
        host: &mut Observed,
        net: &Net,
        ovs: &Ovs,
    ) -> Result<GatewayBridge> {
        let place = self.settings.place(self.ranges(), host)?;
        if let Some(nic) = &place.nic {
            self.move_to_bridge(nic, &place, internal, host, net, ovs).await?;
            *host = observe(net, Some(ovs), Depth::Usual).await?;
        }
        let place = Place { link: place.bridge(), made: true, ..place };
        Ok(self.settings.find(&place, self.ranges(), internal, host)?)
    }

    async fn move_to_bridge(
        &mut self,
        nic: &str,
        place: &Place,
        internal: &[IpAddr],
        host: &Observed,
        net: &Net,
        ovs: &Ovs,
    ) -> Result<()> {
        if let Some((nic, bridge, why)) = self.undone.clone() {
            return Err(Error::Undone { nic, bridge, why });
        }
        if !place.made {
            self.settings.find(place, self.ranges(), internal, host)?;
        }
        let uplink = Uplink::new(nic, &self.node.masquerade_subnets, net, ovs);
        let missing = self.boot_grace.await_routes(&uplink).await?;
        let left = self.unmoved.left();
        let uplink = uplink.with(&missing, &left);
        let elapsed = self.probation_since.map_or(Duration::ZERO, |since| since.elapsed());
        let passed = elapsed >= self.settings.probation;
        let next_hops = self.settings.watched_hops(place, host);
        let watched = Watched { next_hops, api_server: self.settings.api_server.clone() };
        let moved = uplink.to_bridge(&watched, passed, &mut self.unmoved).await;
        if let Err(e @ Error::Undone { nic, bridge, why }) = &moved {
            tracing::error!(error = %e, "the gateway is not tried again before the agent is restarted");
            self.undone = Some((nic.clone(), bridge.clone(), why.clone()));
        }
        self.probation_since = moved?.then(|| self.probation_since.unwrap_or_else(Instant::now));
        Ok(())
    }

    pub(crate) fn ranges(&self) -> ReservedRanges<'a> {
        ReservedRanges { cluster: &self.node.cluster_subnets, masquerade: &self.node.masquerade_subnets }
    }

    /// The Node's annotation `k8s.ovn.org/l3-gateway-config`.
    pub(crate) fn annotation(&self, site: &GatewayBridge) -> String {
        let bridge = &site.link.name;
        let config = L3GatewayConfig {
            mode: match self.settings.mode {
                GatewayMode::Shared => "shared",
                GatewayMode::Local => "local",
            },
            bridge_id: bridge,
            interface_id: format!("{bridge}_{}", self.node.node),
            mac_address: site.mac.to_string(),
            ip_addresses: &site.ips,
            ip_address: site.ips.first(),
            next_hops: &site.next_hops,
            next_hop: site.next_hops.first(),
            node_port_enable: self.settings.node_port.to_string(),
            vlan_id: self.settings.vlan.unwrap_or(0).to_string(),
        };
        serde_json::to_string(&BTreeMap::from([("default", config)])).unwrap_or_default()
    }

    /// Whether the gateway router checks the size of packets; not with hardware offload, which cannot do that.
    pub(crate) fn checks_mtu(&self, ovs: &Ovs) -> bool {
        self.settings.check_mtu && !ovs.is_offloaded()
    }

    /// Brings host, nftables and flows to the wanted state, as far as it can: one that fails stops no other, since services
    /// come and go in all of them. The readiness says what is still missing.
    pub(crate) async fn ensure(
        &mut self,
        site: &GatewayBridge,
        node: &OwnNode,
        mgmt: &ManagementPort,
        host: &Observed,
        applier: Applier<'_>,
        services: &Want,
    ) -> Result<Readiness> {
        let service_cidrs = self.service_cidrs(host, services);
        let is_local = self.settings.mode == GatewayMode::Local;
        let is_userspace = applier.ovs.is_some_and(Ovs::is_userspace);
        let want = self.host_state(site, mgmt, &service_cidrs, is_userspace, host);
        let routed = applier.all(&links::diff(&want, host)).await;
        let table = self.wanted_table(site, node, mgmt, &service_cidrs, services);
        let written = match self.table.ensure(table).await {
            Ok(moved) => {
                self.after_table(moved, mgmt, host, applier).await;
                Ok(())
            }
            Err(e) => Err(e),
        };
        self.tell_refused(services);
        // not before the table was written, and not while it is gone: it says what of that may reach pods
        let is_guarded = is_local && self.swept.is_some() && self.table.is_there();
        let passed = if is_guarded { let_pods_pass().await } else { Ok(()) };
        let flows = match applier.ovs {
            Some(ovs) => self.ensure_flows(site, mgmt, ovs, services, &service_cidrs).await,
            None => Ok(Ok(())),
        };
        let (flows, missing) = split(flows);
        Error::all([routed, written, passed, flows]).map(|()| missing)
    }

    /// What may be done only when the table is as wanted.
    async fn after_table(&mut self, moved: Moved, mgmt: &ManagementPort, host: &Observed, applier: Applier<'_>) {
        // until the table is there, the node's services need the rules that ovn-kubernetes left
        if self.swept.as_ref().is_none_or(std::result::Result::is_err) {
            self.sweep(applier).await;
        }
        if moved.is_empty() {
            return;
        }
        let mut own = mgmt.ips();
        let others = host.addresses_except(management_port::LINK);
        own.extend(others.iter().map(IpNetwork::ip).filter(|ip| !ip.is_loopback()));
        let ended = end_moved(moved, own).await;
        self.note_ended(ended);
    }

    /// The wanted links, routes and rules.
    pub(crate) fn host_state(
        &self,
        site: &GatewayBridge,
        mgmt: &ManagementPort,
        service_cidrs: &[Subnet],
        checksums_in_software: bool,
        host: &Observed,
    ) -> HostState {
        let facts = routing::Facts {
            bridge: site,
            management: mgmt,
            masquerade: &self.node.masquerade_subnets,
            service_cidrs,
            mtu: self.node.mtu.routable.unwrap_or(mgmt.mtu),
            checksums_in_software,
        };
        routing::want(&facts, host)
    }

    /// The wanted nftables table.
    pub(crate) fn wanted_table(
        &self,
        site: &GatewayBridge,
        node: &OwnNode,
        mgmt: &ManagementPort,
        service_cidrs: &[Subnet],
        services: &Want,
    ) -> nft::Wanted {
        let ranges = self.ranges_with(service_cidrs);
        let management = mgmt.ips();
        let parts = nft::Parts {
            mode: self.settings.mode,
            bridge: &site.link.name,
            pods: &self.node.cluster_subnets,
            pods_outside: self.settings.pods_outside,
            subnets: &node.subnets,
            management: &management,
            masquerade: &self.node.masquerade_subnets,
            encap_port: self.settings.encap_port,
            guard: self.settings.disable_forwarding.then_some(ranges.as_slice()),
        };
        nft::table(&parts, services)
    }

    /// A failure to end connections blocks nothing: it is logged once and retried.
    fn note_ended(&mut self, ended: ovnkube_host::Result<()>) {
        match ended {
            Ok(()) => {
                self.table.forget_turned();
                self.unended = 0;
            }
            Err(e) => {
                if self.unended == 0 {
                    tracing::warn!(error = %e, "cannot end UDP connections of services that lead elsewhere now");
                }
                self.unended = self.unended.saturating_add(1);
            }
        }
    }

    /// The configured service ranges and those of ServiceCIDR objects. Reports what is wrong with them.
    pub(crate) fn service_cidrs(&mut self, host: &Observed, services: &Want) -> Vec<Subnet> {
        let host = host.addresses_except(management_port::LINK);
        let taken = ranges::Taken {
            cluster: &self.node.cluster_subnets,
            join: &self.settings.join_subnets,
            masquerade: &self.node.masquerade_subnets,
            host: &host,
        };
        let (all, wrong) = ranges::of_services(&self.node.node, &self.settings.service_cidrs, services, &taken);
        self.warnings.replace("service ranges", wrong);
        all
    }

    /// Ranges of pods, services and masquerade addresses.
    pub(crate) fn ranges_with(&self, service_cidrs: &[Subnet]) -> Vec<Subnet> {
        [&self.node.cluster_subnets, service_cidrs, &self.node.masquerade_subnets].concat()
    }

    /// What removes stale rules of ovn-kubernetes from the tables of iptables.
    pub(crate) async fn stale_rules(&self) -> Result<Vec<HostChange>> {
        let ranges = self.ranges_with(&self.settings.service_cidrs);
        let mut host = Observed::default();
        observe_tables(&mut host).await?;
        Ok(stale::iptables(&ranges, self.settings.mode == GatewayMode::Local, &host))
    }

    /// Removes them. A failure is logged once and blocks nothing; the next change retries.
    async fn sweep(&mut self, applier: Applier<'_>) {
        let swept = match self.stale_rules().await {
            Ok(changes) => applier.all(&changes).await,
            Err(e) => Err(e),
        };
        let swept = swept.map_err(|e| e.to_string());
        if let (Err(e), true) = (&swept, self.swept.as_ref() != Some(&swept)) {
            tracing::warn!(error = %e, "rules that ovn-kubernetes left are still there");
        }
        self.swept = Some(swept);
    }

    /// Reports which service's elements the kernel refuses.
    fn tell_refused(&mut self, services: &Want) {
        let refused = self.table.refused();
        if refused == self.refused {
            return;
        }
        let node = &self.node.node;
        let warning = |table::Refused { element, why, .. }: &table::Refused| {
            let is_its = |part: &&Arc<ServiceIntent>| {
                let alone = Want { parts: vec![Arc::clone(part)], ..Want::default() };
                let elements = services_nft::elements(&alone, self.settings.mode, &self.node.masquerade_subnets);
                elements.contains_key(element)
            };
            let about = services.parts.iter().find(is_its).map(|part| part.service.clone());
            let (key, set) = (element.key(), element.set_name());
            let message = format!("cannot serve {key} of nftables' {set} on node {node}: the kernel refuses it: {why}");
            Warning { about, reason: "RefusedByKernel", message }
        };
        self.warnings.replace("elements of nftables", refused.iter().map(warning).collect());
        self.refused = refused.to_vec();
    }

    /// The wanted flows of the bridge. The error says what they need that does not exist yet.
    pub(crate) fn wanted_flows(
        &self,
        site: &GatewayBridge,
        mgmt: &ManagementPort,
        ovs: &Ovs,
        services: &Want,
        service_cidrs: &[Subnet],
    ) -> std::result::Result<Vec<String>, String> {
        let bridge = &site.link.name;
        let patch = format!("patch-{bridge}_{}-to-br-int", self.node.node);
        let patch_port =
            ovs.port_number(&patch).ok_or_else(|| format!("ovn-controller has not made port {patch} of {bridge}"))?;
        let uplink = site.uplink.as_ref().map(|uplink| {
            ovs.port_number(uplink).ok_or_else(|| format!("ovs-vswitchd has not taken {uplink} into {bridge}"))
        });
        let settings = self.settings;
        let facts = openflow::Facts {
            mode: settings.mode,
            mac: site.mac,
            uplink: uplink.transpose()?,
            vlan: settings.vlan,
            patch: patch_port,
            ips: site.ips.iter().map(IpNetwork::ip).collect(),
            service_cidrs,
            masquerade: &self.node.masquerade_subnets,
            pods: &self.node.cluster_subnets,
            pods_outside: settings.pods_outside,
            management: mgmt.ips(),
            conntrack_zone: settings.conntrack_zone,
            encap_port: settings.encap_port,
            max_frame: settings.check_mtu.then_some(mgmt.mtu + ETHERNET),
        };
        Ok(flows::flows(&facts, services))
    }

    async fn ensure_flows(
        &mut self,
        site: &GatewayBridge,
        mgmt: &ManagementPort,
        ovs: &Ovs,
        services: &Want,
        service_cidrs: &[Subnet],
    ) -> Result<Readiness> {
        let bridge = &site.link.name;
        let wanted = match self.wanted_flows(site, mgmt, ovs, services, service_cidrs) {
            Ok(wanted) => wanted,
            Err(missing) => return Ok(Err(missing)),
        };
        let switch = Switch::new(self.node.run_dir(), bridge);
        if self.watch.is_none() {
            self.watch = Some(switch.watch().await?);
        }
        let synced = switch.sync(openflow::COOKIE, &wanted).await?;
        self.wrote = synced.added + synced.removed > 0;
        if self.wrote {
            tracing::info!(bridge, added = synced.added, removed = synced.removed, "changed the gateway's flows");
        }
        if synced.taken != self.taken {
            for flow in &synced.taken {
                tracing::warn!(bridge, flow, "another program's flow is in place of the gateway's");
            }
            self.taken = synced.taken;
        }
        Ok(Ok(()))
    }

    /// Returns when a flow of the bridge was changed or ovs-vswitchd ended.
    pub(crate) async fn changed(&mut self) {
        match &mut self.watch {
            None => std::future::pending().await,
            Some(watch) => {
                if !watch.next().await {
                    self.watch = None;
                } else if self.wrote {
                    // our own change is reported too; and a program that undoes it cannot keep the agent busy
                    sleep(AFTER_WRITE).await;
                }
            }
        }
    }
}

/// Lets packets from and to pods pass `FORWARD` of iptables, where there is one.
async fn let_pods_pass() -> Result<()> {
    for table in iptables_cleanup::FILTERS {
        let Some(shown) = ovnkube_host::nft::list_with_handles(table).await? else { continue };
        let commands = iptables_cleanup::missing(table, &shown);
        if !commands.is_empty() {
            ovnkube_host::nft::change(table, &commands).await?;
        }
    }
    Ok(())
}

/// Annotation `k8s.ovn.org/l3-gateway-config`, of one network.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct L3GatewayConfig<'a> {
    mode: &'static str,
    bridge_id: &'a str,
    interface_id: String,
    mac_address: String,
    ip_addresses: &'a [IpNetwork],
    ip_address: Option<&'a IpNetwork>,
    next_hops: &'a [IpAddr],
    next_hop: Option<&'a IpAddr>,
    node_port_enable: String,
    vlan_id: String,
}
