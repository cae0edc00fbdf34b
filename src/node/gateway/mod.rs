//! The node's gateway: its pods reach the outside with the node's address, and the host and pods
//! reach each other.
//!
//! ```text
//!           outside                                    shared: pod ─▶ OVN ─▶ patch port ─▶ uplink
//!              │ uplink                                local:  pod ─▶ OVN ─▶ mp0 ─▶ host ─▶ uplink
//!   host ──── bridge ──patch port── br-int ──mp0── host
//!     │          └ flows      who gets what comes in, conntrack marks (OpenFlow)
//!     ├ host      masquerade addresses, routes, neighbours            (netlink)
//!     └ nft       source addresses of what the host forwards, services (nftables)
//! ```
//! What an earlier gateway had elsewhere goes first; see [`left`].
//! A NIC is put into a bridge first; see [`crate::uplink`]. Like all of the agent it is
//! level-triggered: each step compares, and puts back what is missing.

pub(crate) mod flows;
mod host;
pub(crate) mod left;
pub(crate) mod legacy;
mod nft;
mod ranges;
mod settings;
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
use serde::Serialize;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, sleep};

use crate::mgmt::{self, Mgmt};
use crate::ovs::Ovs;
use crate::services::{self, Part, Want};
use crate::settings::NodeSettings;
use crate::uplink::{Setup, Unturned, Uplink, bridge_of};
use crate::{Error, OwnNode, Readiness, Result, Warning};
use host::Host;
use host::RULES;
use nft::TABLE;
pub use settings::GatewaySettings;
pub(crate) use settings::Site;
use settings::{Place, Ranges};

/// Bytes of an Ethernet header.
const ETHERNET: u32 = 14;
/// Pause before the look at a change that may be our own.
const AFTER_WRITE: Duration = Duration::from_secs(1);
/// To end connections, before the next change: a kernel may have no means for it.
const ATTEMPTS: u8 = 5;

pub(crate) struct Gateway<'a> {
    node: &'a NodeSettings,
    settings: &'a GatewaySettings,
    table: nft::Table,
    warnings: UnboundedSender<Warning>,
    /// What was told of it.
    refused: Vec<nft::Refused>,
    /// What was told of ServiceCIDR objects.
    wrong_ranges: Vec<Warning>,
    watch: Option<Watch>,
    /// The last comparison changed flows.
    wrote: bool,
    /// Flows that were told to be somebody else's.
    taken: Vec<String>,
    /// Rules that ovn-kubernetes left were looked for.
    swept: Option<std::result::Result<(), String>>,
    /// Why the NIC was taken out of its bridge; it is not tried again.
    undone: Option<(String, String)>,
    /// Since when the network is watched that a NIC was put into its bridge.
    trial: Option<Instant>,
    /// How often in a row connections could not be ended.
    unended: u8,
    /// How far the host's own setup of the network is.
    setup: Setup,
    /// What could not be put into the bridge.
    unturned: Unturned,
}

impl<'a> Gateway<'a> {
    /// `None` when the node shall have no gateway.
    pub(crate) fn new(node: &'a NodeSettings, warnings: UnboundedSender<Warning>) -> Option<Self> {
        let settings = node.gateway.as_ref()?;
        Some(Self {
            node,
            settings,
            table: nft::Table::default(),
            warnings,
            refused: Vec::new(),
            wrong_ranges: Vec::new(),
            watch: None,
            wrote: false,
            taken: Vec::new(),
            swept: None,
            undone: None,
            trial: None,
            unended: 0,
            setup: Setup::new(settings.first_address, settings.default_route),
            unturned: Unturned::default(),
        })
    }

    /// Whether to look at the network though nothing tells of a change.
    pub(crate) fn looks_again(&self) -> bool {
        self.trial.is_some() || (1..ATTEMPTS).contains(&self.unended)
    }

    /// Looks whether there is a gateway or can be one, and changes nothing.
    pub(crate) async fn check(&self, net: &Net, ovs: &Ovs) -> Result<()> {
        self.settings.check_host(&self.ranges(), net).await?;
        let place = self.settings.place(net, ovs).await?;
        // what was begun is brought to its end first
        if place.made && place.nic.is_some() { Ok(()) } else { self.find(&place, &[], net, ovs).await.map(drop) }
    }

    /// Takes away what an earlier gateway had elsewhere, or had otherwise.
    pub(crate) async fn leave_others(&self, net: &Net, ovs: &Ovs) -> Result<()> {
        left::leave(self.node, Some(&self.settings.place(net, ovs).await?), net, ovs).await
    }

    /// Puts a NIC into its bridge, and finds what the gateway needs to know.
    pub(crate) async fn settle(&mut self, internal: &[IpAddr], net: &Net, ovs: &Ovs) -> Result<Site> {
        let place = self.settings.place(net, ovs).await?;
        let Some(nic) = &place.nic else { return self.find(&place, internal, net, ovs).await };
        if let Some((interface, why)) = &self.undone {
            return Err(Error::Gateway { interface: interface.clone(), why: why.clone() });
        }
        if !place.made {
            self.find(&place, internal, net, ovs).await?;
        }
        let masquerade = &self.node.masquerade_subnets;
        let uplink = Uplink::new(nic, masquerade, net, ovs);
        let missing = self.setup.await_routes(&uplink).await?;
        let left = self.unturned.left();
        let uplink = uplink.with(&missing, &left);
        let trial = self.trial.map_or(Duration::ZERO, |since| since.elapsed());
        let passed = trial >= self.settings.probation;
        let watched = self.settings.watched(&place, net).await?;
        let moved = uplink.to_bridge(&watched, passed, &mut self.unturned).await;
        if let Err(e @ Error::Undone { .. }) = &moved {
            tracing::error!("{e}");
            self.undone = Some((nic.clone(), e.to_string()));
        }
        self.trial = moved?.then(|| self.trial.unwrap_or_else(Instant::now));
        let place = Place { link: bridge_of(nic), made: true, ..place };
        self.find(&place, internal, net, ovs).await
    }

    async fn find(&self, place: &Place, internal: &[IpAddr], net: &Net, ovs: &Ovs) -> Result<Site> {
        self.settings.find(place, &self.ranges(), internal, net, ovs).await
    }

    fn ranges(&self) -> Ranges<'_> {
        Ranges { cluster: &self.node.cluster_subnets, masquerade: &self.node.masquerade_subnets }
    }

    /// What the Node is annotated with.
    pub(crate) fn annotation(&self, site: &Site) -> String {
        let bridge = &site.bridge.name;
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

    /// Whether the gateway router shall look at the size of packets; cards that switch could no longer do it for it.
    pub(crate) fn checks_mtu(&self, ovs: &Ovs) -> bool {
        self.settings.check_mtu && !ovs.is_offloaded()
    }

    /// Brings host, nftables and flows to what they shall be; tells what is not there yet.
    pub(crate) async fn ensure(
        &mut self,
        site: &Site,
        node: &OwnNode,
        mgmt: &Mgmt,
        here: &Net,
        ovs: &Ovs,
        services: &Want,
    ) -> Result<Readiness> {
        let service_cidrs = self.service_cidrs(here, services).await?;
        let ranges = self.ranges_with(&service_cidrs);
        let is_local = self.settings.mode == GatewayMode::Local;
        if self.swept.as_ref().is_none_or(std::result::Result::is_err) {
            self.sweep(is_local).await;
        }
        let host = Host {
            site,
            masquerade: &self.node.masquerade_subnets,
            service_cidrs: &service_cidrs,
            mtu: self.node.mtu.routable.unwrap_or(mgmt.mtu),
            checksums_in_software: ovs.is_userspace(),
        };
        host.ensure(here, mgmt).await?;
        let management: Vec<IpAddr> = mgmt.addresses.iter().map(IpNetwork::ip).collect();
        let masquerade = &self.node.masquerade_subnets;
        let guard = nft::Guard { bridge: &site.bridge.name, ranges: &ranges };
        let guard = Some(&guard).filter(|_| self.settings.disable_forwarding);
        let parts = nft::Parts {
            mode: self.settings.mode,
            subnets: &node.subnets,
            management: &management,
            masquerade,
            encap_port: self.settings.encap_port,
            guard,
        };
        let table = nft::table(&parts, services);
        let moved = self.table.ensure(table).await?;
        self.tell_refused(services);
        if !moved.is_empty() {
            let mut own = management;
            own.extend(here.all_addresses(mgmt::LINK).await?.iter().map(IpNetwork::ip).filter(|ip| !ip.is_loopback()));
            let ended = services::end_moved(moved, own).await;
            self.note_ended(ended);
        }
        if is_local {
            legacy::let_pods_pass().await?;
        }
        self.ensure_flows(site, mgmt, ovs, services, &service_cidrs).await
    }

    /// What cannot be ended holds up nothing: that is told once, and tried again.
    fn note_ended(&mut self, ended: ovnkube_host::Result<()>) {
        match ended {
            Ok(()) => {
                self.table.forget_turned();
                self.unended = 0;
            }
            Err(e) => {
                if self.unended == 0 {
                    tracing::warn!("end UDP connections of services that the host leads elsewhere now: {e}");
                }
                self.unended = self.unended.saturating_add(1);
            }
        }
    }

    /// Those that were given and those of objects. Says once what is wrong with one.
    async fn service_cidrs(&mut self, here: &Net, services: &Want) -> Result<Vec<Subnet>> {
        let host = if services.ranges.is_empty() { Vec::new() } else { here.all_addresses(mgmt::LINK).await? };
        let taken = ranges::Taken {
            cluster: &self.node.cluster_subnets,
            join: &self.settings.join_subnets,
            masquerade: &self.node.masquerade_subnets,
            host: &host,
        };
        let (all, wrong) = ranges::of_services(&self.node.node, &self.settings.service_cidrs, services, &taken);
        for warning in wrong.iter().filter(|warning| !self.wrong_ranges.contains(warning)) {
            tracing::warn!("{}", warning.message);
            // the process ends: nobody listens
            let _ = self.warnings.send(warning.clone());
        }
        self.wrong_ranges = wrong;
        Ok(all)
    }

    /// Of pods, services and masquerade addresses.
    fn ranges_with(&self, service_cidrs: &[Subnet]) -> Vec<Subnet> {
        [&self.node.cluster_subnets, service_cidrs, &self.node.masquerade_subnets].concat()
    }

    /// What cannot be removed is told once and holds up nothing; it is tried again with the next change.
    async fn sweep(&mut self, is_local: bool) {
        let ranges = self.ranges_with(&self.settings.service_cidrs);
        let swept = legacy::remove(&ranges, is_local).await.map_err(|e| e.to_string());
        if let (Err(e), true) = (&swept, self.swept.as_ref() != Some(&swept)) {
            tracing::warn!("{e}");
        }
        self.swept = Some(swept);
    }

    /// Says once which service's elements the kernel does not take.
    fn tell_refused(&mut self, services: &Want) {
        let refused = self.table.refused();
        for nft::Refused { set, key, why, .. } in refused.iter().filter(|refused| !self.refused.contains(refused)) {
            let is_its = |part: &&Arc<Part>| {
                let alone = Want { parts: vec![Arc::clone(part)], ..Want::default() };
                let elements = services::nft::elements(&alone, self.settings.mode, &self.node.masquerade_subnets);
                elements.contains_key(&(*set, key.clone()))
            };
            let part = services.parts.iter().find(is_its);
            let node = &self.node.node;
            let message = format!("node {node} does not serve {key} of nftables' {set}: the kernel refuses it: {why}");
            tracing::warn!("{message}");
            let about = part.map(|part| part.service.clone());
            // the process ends: nobody listens
            let _ = self.warnings.send(Warning { about, reason: "RefusedByKernel", message });
        }
        self.refused = refused.to_vec();
    }

    async fn ensure_flows(
        &mut self,
        site: &Site,
        mgmt: &Mgmt,
        ovs: &Ovs,
        services: &Want,
        service_cidrs: &[Subnet],
    ) -> Result<Readiness> {
        let bridge = &site.bridge.name;
        let patch = format!("patch-{bridge}_{}-to-br-int", self.node.node);
        let Some(patch_port) = ovs.port_number(&patch) else {
            return Ok(Err(format!("ovn-controller has not made port {patch} of {bridge}")));
        };
        let uplink = match &site.uplink {
            None => flows::NO_PORT,
            Some(uplink) => match ovs.port_number(uplink) {
                Some(number) => number,
                None => return Ok(Err(format!("ovs-vswitchd has not taken {uplink} into {bridge}"))),
            },
        };
        let settings = self.settings;
        let facts = flows::Facts {
            mode: settings.mode,
            mac: site.mac,
            uplink,
            vlan: settings.vlan,
            patch: patch_port,
            ips: site.ips.iter().map(IpNetwork::ip).collect(),
            service_cidrs,
            masquerade: &self.node.masquerade_subnets,
            pods: if settings.pods_outside { &self.node.cluster_subnets } else { &[] },
            management: mgmt.addresses.iter().map(IpNetwork::ip).collect(),
            conntrack_zone: settings.conntrack_zone,
            encap_port: settings.encap_port,
            max_frame: settings.check_mtu.then_some(mgmt.mtu + ETHERNET),
        };
        let switch = Switch::new(self.node.run_dir(), bridge);
        if self.watch.is_none() {
            self.watch = Some(switch.watch().await?);
        }
        let synced = switch.sync(flows::COOKIE, &flows::flows(&facts, services)).await?;
        self.wrote = synced.added + synced.removed > 0;
        if self.wrote {
            tracing::info!(added = synced.added, removed = synced.removed, "changed the flows of {bridge}");
        }
        if synced.taken != self.taken {
            for flow in &synced.taken {
                tracing::warn!("{bridge} has somebody else's flow in place of ours: {flow}");
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
                    // our own change is heard too; and nobody who undoes it can keep us busy
                    sleep(AFTER_WRITE).await;
                }
            }
        }
    }
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
