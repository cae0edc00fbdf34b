//! Lists what the agent would change on this host without changing it, from the agent's own plans.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ovnkube_host::flows::Switch;
use ovnkube_host::{Net, nft};
use ovnkube_model::HostRoutes;
use ovnkube_node_plan::change::HostChange;
use ovnkube_node_plan::gateway::nft::TABLE;
use ovnkube_node_plan::gateway::{GatewayBridge, Place};
use ovnkube_node_plan::links;
use ovnkube_node_plan::management_port::{self, ManagementPort};
use ovnkube_node_plan::mtu::{Known, Uplink as TunnelUplink};
use ovnkube_node_plan::observed::{LinkState, Observed};
use ovnkube_node_plan::openflow;
use ovnkube_node_plan::services::Want;
use ovnkube_node_plan::services::nft::{self as services_nft, Elements};

use crate::exchange::OwnNode;
use crate::gateway::Gateway;
use crate::observe::{Depth, find_stale, observe};
use crate::other_clusters::Ways;
use crate::ovs::Ovs;
use crate::services::ServiceTracker;
use crate::settings::NodeSettings;
use crate::uplink::Uplink;
use crate::{Error, Result, Warnings, wanted};

/// What the preview works with.
pub(crate) struct Preview<'a> {
    pub(crate) settings: &'a NodeSettings,
    pub(crate) here: &'a Net,
    pub(crate) ovs: &'a Ovs,
    pub(crate) tracker: &'a ServiceTracker,
}

/// The gateway and where it is, or would be.
struct Located<'a> {
    gateway: Gateway<'a>,
    bridge: GatewayBridge,
    place: Place,
}

impl Preview<'_> {
    /// The changes in words, in the order in which the agent would make them. `told`: prefixes of other clusters, if they are known.
    pub(crate) async fn changes(
        &self,
        node: &OwnNode,
        services: &Want,
        told: Option<HostRoutes>,
    ) -> Result<Vec<String>> {
        let mut host = observe(self.here, Some(self.ovs), Depth::Whole).await?;
        let mut lines = Vec::new();
        let mut located = self.locate(node, &host)?;
        lines.extend(texts(&self.stale(located.as_ref(), &mut host).await?));
        if let Some(located) = &located {
            lines.extend(self.move_of_nic(&located.place).await?);
            pretend_link(&mut host, &located.bridge.link.name, located.place.nic.as_deref());
        }
        let encap_ips = wanted::encap_ips(self.settings, node);
        let bridge = located.as_ref().map(|located| &located.bridge);
        let port = self
            .mtu(node, &encap_ips, &host)
            .and_then(|mtu| wanted::management_port(self.settings, node, mtu, self.ovs.is_userspace()));
        let system_id = wanted::system_id(node, wanted::fresh_id().as_deref());
        // the releases of OVN matter only while they change
        let chassis = wanted::chassis(self.settings, node, &encap_ips, port.as_ref(), bridge, system_id, None);
        let rows = self.ovs.read(|cache| chassis.plan(cache)).ok_or(Error::NoOvs)?;
        lines.extend(rows.lines().iter().map(|line| format!("Open vSwitch: {line}")));
        if let Some(port) = port {
            pretend_link(&mut host, management_port::LINK, None);
            match &mut located {
                Some(located) => lines.extend(self.of_gateway(located, node, &port, &host, services).await?),
                None => lines.extend(texts(&links::diff(&port.state(&host), &host))),
            }
        }
        lines.extend(self.of_other_clusters(told, node, host.clone()));
        let conf = self.settings.cni_conf.to_be_written().await;
        lines.extend(conf.map(|path| format!("write {}", path.display())));
        Ok(lines)
    }

    /// `None`: no gateway is configured.
    fn locate(&self, node: &OwnNode, host: &Observed) -> Result<Option<Located<'_>>> {
        // the running agent reports problems with service ranges
        let Some(gateway) = Gateway::new(self.settings, Warnings::default()) else { return Ok(None) };
        let Some(settings) = &self.settings.gateway else { return Ok(None) };
        settings.check_host(gateway.ranges(), host)?;
        let place = settings.place(gateway.ranges(), host)?;
        let mut bridge = settings.find(&place, gateway.ranges(), &node.internal_ips, host)?;
        bridge.link.name = place.bridge();
        Ok(Some(Located { gateway, bridge, place }))
    }

    async fn stale(&self, located: Option<&Located<'_>>, host: &mut Observed) -> Result<Vec<HostChange>> {
        let stays = located.map(|located| &located.place);
        find_stale(stays, &self.settings.stale_ranges(), host).await
    }

    async fn move_of_nic(&self, place: &Place) -> Result<Vec<String>> {
        let Some(nic) = &place.nic else { return Ok(Vec::new()) };
        let uplink = Uplink::new(nic, &self.settings.masquerade_subnets, self.here, self.ovs);
        let steps = uplink.steps_to_bridge().await?;
        Ok(steps.iter().map(|step| format!("gateway interface {nic}: {step}")).collect())
    }

    fn mtu(&self, node: &OwnNode, encap_ips: &[IpAddr], host: &Observed) -> Option<u32> {
        let s = self.settings;
        let uplink = TunnelUplink::find(host, &s.chassis.encap_type, encap_ips, s.mtu.single_node);
        let room = uplink.as_ref().map(TunnelUplink::room);
        Known { given: s.mtu.given, room, last: None, annotated: node.mtu }.of_pods(encap_ips)
    }

    async fn of_gateway(
        &self,
        located: &mut Located<'_>,
        node: &OwnNode,
        port: &ManagementPort,
        host: &Observed,
        services: &Want,
    ) -> Result<Vec<String>> {
        let Located { gateway, bridge, .. } = located;
        let service_cidrs = gateway.service_cidrs(host, services);
        let want = gateway.host_state(bridge, port, &service_cidrs, self.ovs.is_userspace(), host);
        let mut lines = texts(&links::diff(&want, host));
        let table = gateway.wanted_table(bridge, node, port, &service_cidrs, services);
        let commands =
            nft::replacement(TABLE, &table.body) + &services_nft::change(TABLE, &Elements::new(), &table.elements);
        let (shown, would_be) = (nft::list(TABLE).await?, nft::shown_after(TABLE, &commands).await?);
        if pieces(shown.as_deref().unwrap_or_default()) != pieces(&would_be) {
            lines.push(format!("write nftables table {TABLE}, with {} elements of services", table.elements.len()));
        }
        lines.extend(texts(&gateway.stale_rules().await?));
        let name = &bridge.link.name;
        match gateway.wanted_flows(bridge, port, self.ovs, services, &service_cidrs) {
            Ok(flows) => {
                let (changes, _) = Switch::new(self.settings.run_dir(), name).compare(openflow::COOKIE, &flows).await?;
                lines.extend(changes.lines().map(|change| format!("{name}: flow {change}")));
            }
            Err(missing) => lines.push(format!("{name}: write the gateway's flows, later: {missing}")),
        }
        Ok(lines)
    }

    fn of_other_clusters(&self, told: Option<HostRoutes>, node: &OwnNode, mut host: Observed) -> Vec<String> {
        // by then the agent has set it up
        host.links
            .iter_mut()
            .filter(|state| state.name() == management_port::LINK)
            .for_each(|state| state.link.up = true);
        let wanted = Ways::new(self.settings, self.ovs, self.tracker).want(told, node, &host);
        texts(&links::diff(&wanted.state, &host))
    }
}

fn texts(changes: &[HostChange]) -> Vec<String> {
    changes.iter().map(ToString::to_string).collect()
}

/// Adds a link that the agent would make, with what `like` has.
fn pretend_link(host: &mut Observed, name: &str, like: Option<&str>) {
    if host.link(name).is_some() {
        return;
    }
    let mut state = like.and_then(|like| host.link(like)).cloned().unwrap_or_else(LinkState::default);
    name.clone_into(&mut state.link.name);
    host.links.push(state);
}

/// Counts equal pieces, because the kernel lists elements in any order.
fn pieces(shown: &str) -> BTreeMap<&str, usize> {
    let all = shown.split([',', '\n', '{', '}']).map(str::trim).filter(|piece| !piece.is_empty());
    let mut counted = BTreeMap::new();
    for piece in all {
        *counted.entry(piece).or_insert(0) += 1;
    }
    counted
}
