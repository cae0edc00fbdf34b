//! Reads the state of the host. Changes nothing.

use ovnkube_host::{Net, advertised, ethtool, nft, sysctl};
use ovnkube_node_plan::change::HostChange;
use ovnkube_node_plan::gateway::{Place, nft as table, routing};
use ovnkube_node_plan::host::Sysctl;
use ovnkube_node_plan::iptables_cleanup;
use ovnkube_node_plan::management_port::{self, SYSCTLS, SYSCTLS_V6};
use ovnkube_node_plan::observed::{BridgeState, LinkState, Observed};
use ovnkube_node_plan::{chassis, stale, vswitch};
use ovnkube_ovn::vswitch::{bridge, interface};
use ovnkube_ovsdb::Cache;

use crate::Result;
use crate::ovs::Ovs;
use crate::uplink;

/// How much to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// What the agent compares each time.
    Usual,
    /// Also every route: other programs and earlier gateways may have left some.
    Whole,
}

/// Reads the host's state. `ovs`: `None` where Open vSwitch is stopped.
pub(crate) async fn observe(here: &Net, ovs: Option<&Ovs>, depth: Depth) -> Result<Observed> {
    let look = here.look(depth == Depth::Whole).await?;
    let mut host = Observed {
        links: look.links,
        default_routes: look.default_routes,
        rules: look.rules,
        bridges: ovs.map(|ovs| ovs.read(bridges)).unwrap_or_default(),
        mapped: ovs.map(|ovs| ovs.read(chassis::mapped)).unwrap_or_default(),
        tables: Vec::new(),
    };
    let is_userspace = ovs.is_some_and(Ovs::is_userspace);
    for state in &mut host.links {
        let name = state.name();
        if name == management_port::LINK || host.bridges.iter().any(|bridge| bridge.name == name) {
            settings(state, is_userspace).await;
        }
    }
    Ok(host)
}

/// Reads the nftables tables that may contain stale entries.
pub(crate) async fn observe_tables(host: &mut Observed) -> Result<()> {
    for name in [table::TABLE].into_iter().chain(iptables_cleanup::TABLES) {
        let shown = nft::list_with_handles(name).await?;
        host.tables.extend(shown.map(|shown| (name, shown)));
    }
    Ok(())
}

/// What removes earlier gateways from the host. Reads the nftables tables too, but only where they count: an agent
/// without a gateway does not need `nft`.
pub(crate) async fn find_stale(
    stays: Option<&Place>,
    ranges: &stale::Ranges<'_>,
    host: &mut Observed,
) -> Result<Vec<HostChange>> {
    if stale::needs_tables(stays, ranges, host) {
        observe_tables(host).await?;
    }
    Ok(stale::gateways(stays, ranges, host))
}

/// Reads the link's settings that the agent may change.
async fn settings(state: &mut LinkState, is_userspace: bool) {
    let name = state.link.name.clone();
    let all = SYSCTLS.iter().chain(&SYSCTLS_V6).map(|(sysctl, _)| *sysctl).chain([routing::FORWARDING]);
    // a host without IPv6 has none of its sysctls, and a link that vanishes has none at all
    let read = |sysctl: Sysctl| Some((sysctl, sysctl::get_link(sysctl.family, &name, sysctl.key).ok()?));
    state.sysctls = all.filter_map(read).collect();
    state.forwards_ipv6 = advertised::forwards(&name);
    if is_userspace {
        // if it cannot be read, the agent switches it off
        state.offloads_checksums = ethtool::offloads_tx_checksum(&name).await.unwrap_or(true);
    }
}

fn bridges(cache: &Cache) -> Vec<BridgeState> {
    let made = uplink::made(cache);
    let mut all: Vec<BridgeState> = cache
        .iter(bridge::TABLE)
        .map(|(_, row)| {
            let name = row.str(bridge::NAME).to_owned();
            let made = made.iter().find(|made| made.bridge == name);
            BridgeState {
                uplink: row.map(bridge::EXTERNAL_IDS).get(uplink::UPLINK).map(str::to_owned),
                made_for: made.map(|made| made.nic.clone()),
                journalled: made.is_some_and(uplink::Made::is_journalled),
                name,
                ..BridgeState::default()
            }
        })
        .collect();
    for (uuid, row) in cache.iter(interface::TABLE) {
        let link = row.str(interface::NAME);
        let is_physical = matches!(row.str(interface::TYPE), "" | "system" | "dpdk");
        for of in vswitch::bridges(cache, uuid) {
            if let Some(bridge) = all.iter_mut().find(|bridge| bridge.name == of) {
                bridge.interfaces.push(link.to_owned());
                bridge.physical.extend(is_physical.then(|| link.to_owned()));
            }
        }
    }
    for bridge in &mut all {
        bridge.interfaces.sort();
        bridge.physical.sort();
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}
