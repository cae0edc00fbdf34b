//! Finds what earlier settings, an earlier release or ovn-kubernetes left on the observed host.
//!
//! ```text
//!  Open_vSwitch   ovn-bridge-mappings physnet:BRIDGE       may have flows of the gateway
//!  BRIDGE         permanent neighbours A and A+3, whose MAC addresses contain their IP addresses
//!                 A … A+3 are masquerade addresses: addresses and routes with them are the gateway's
//! ```
//! There is no other record: each of these marks is removed last, so that after a crash the rest is found again.
//! `ovnkube -cleanup-node` does the same for a node that keeps nothing.

use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_model::{Masquerade, Subnet};

use crate::change::{HostChange, What};
use crate::gateway::{Place, nft, routing};
use crate::host::MAIN;
use crate::iptables_cleanup;
use crate::management_port;
use crate::masquerade::masquerade_subnets;
use crate::observed::{BridgeState, LinkState, Observed};
use crate::other_clusters;

/// The ranges of the cluster, as far as they are known.
#[derive(Debug, Clone, Copy)]
pub struct Ranges<'a> {
    pub cluster: &'a [Subnet],
    pub service: &'a [Subnet],
    pub masquerade: &'a [Subnet],
}

/// A link and the masquerade subnets that were found on it.
struct Left<'a> {
    state: &'a LinkState,
    masquerade: Vec<Subnet>,
}

/// Changes that remove earlier gateways. The gateway at `stays` is kept; `None`: the host has none. Looks at the host's
/// nftables tables only if [`needs_tables`].
pub fn gateways(stays: Option<&Place>, ranges: &Ranges<'_>, host: &Observed) -> Vec<HostChange> {
    let bridge = stays.map(Place::bridge);
    let mut changes = Vec::new();
    for Left { state, masquerade } in left(host, ranges.masquerade) {
        if bridge.as_deref() == Some(state.name()) {
            changes.extend(of_bridge_that_stays(state, &masquerade, ranges.masquerade, host));
        } else {
            changes.extend(of_other_bridge(state, &masquerade, stays.is_none(), ranges, host));
        }
    }
    let nic = stays.and_then(|place| place.nic.as_ref());
    for made in host.bridges.iter().filter(|made| made.journalled && made.made_for.as_ref() != nic) {
        changes.extend(unmap(&made.name, host));
        changes.extend(made.made_for.iter().map(|nic| HostChange::on(nic, What::MoveBack)));
    }
    changes
}

/// Whether [`gateways`] must know the host's nftables tables: a gateway left something, and none is there any more.
pub fn needs_tables(stays: Option<&Place>, ranges: &Ranges<'_>, host: &Observed) -> bool {
    stays.is_none() && left(host, ranges.masquerade).iter().any(|left| !left.masquerade.is_empty())
}

/// Changes that remove everything from a host that is no longer a node, except the rows of Open vSwitch, which go after
/// the flows and before the rest.
pub fn of_no_node(ranges: &Ranges<'_>, host: &Observed) -> Vec<HostChange> {
    let mut changes = Vec::new();
    for Left { state, masquerade } in left(host, ranges.masquerade) {
        changes.extend(flows(state, host));
        changes.extend(masquerade_of(state, &masquerade, host, false));
        changes.push(HostChange::on(state.name(), What::ResetForwarding));
    }
    let made = host.bridges.iter().filter_map(|bridge: &BridgeState| bridge.made_for.as_ref());
    changes.extend(made.map(|nic| HostChange::on(nic, What::MoveBack)));
    changes
}

fn of_bridge_that_stays(state: &LinkState, left: &[Subnet], given: &[Subnet], host: &Observed) -> Vec<HostChange> {
    // the same address, from a subnet with another prefix length
    let hosts: Vec<IpNetwork> = given.iter().filter_map(|range| Some(Masquerade::of(*range)?.host)).collect();
    let has_other_length =
        |address: &&IpNetwork| hosts.iter().any(|host| host.ip() == address.ip() && host != *address);
    let lengths = state.addresses.iter().filter(has_other_length).map(|address| What::RemoveAddress(*address));
    let mut changes: Vec<HostChange> = lengths.map(|what| HostChange::on(state.name(), what)).collect();
    let is_known = |range: &&Subnet| given.iter().any(|given| given.base() == range.base());
    let unknown: Vec<Subnet> = left.iter().filter(|range| !is_known(range)).copied().collect();
    changes.extend(masquerade_of(state, &unknown, host, false));
    changes
}

fn of_other_bridge(
    state: &LinkState,
    masquerade: &[Subnet],
    is_last: bool,
    ranges: &Ranges<'_>,
    host: &Observed,
) -> Vec<HostChange> {
    let mut changes = Vec::new();
    changes.extend(flows(state, host));
    if host.bridge(state.name()).is_some() {
        changes.extend(unmap(state.name(), host));
        // if the host was booted since then, its own setup set forwarding
        if !masquerade.is_empty() {
            changes.push(HostChange::on(state.name(), What::ResetForwarding));
        }
    }
    if is_last && !masquerade.is_empty() {
        changes.extend(tables(&Ranges { service: &[], ..*ranges }, host));
    }
    changes.extend(masquerade_of(state, masquerade, host, is_last));
    changes
}

fn flows(state: &LinkState, host: &Observed) -> Option<HostChange> {
    host.bridge(state.name()).map(|bridge| HostChange::on(&bridge.name, What::RemoveFlows))
}

fn unmap(bridge: &str, host: &Observed) -> Option<HostChange> {
    host.mapped.iter().any(|mapped| mapped == bridge).then(|| HostChange::mark(bridge, What::Unmap))
}

/// All links with remains of a gateway. `given`: the known masquerade subnets. Bridges that are mapped to the outside
/// always count.
fn left<'a>(host: &'a Observed, given: &[Subnet]) -> Vec<Left<'a>> {
    let links = host.links.iter().filter(|state| state.name() != management_port::LINK);
    let of = |state: &'a LinkState| {
        let mut masquerade = masquerade_subnets(state);
        // compares the exact address: other programs may have addresses in a wide subnet
        let has = |range: &&Subnet| Masquerade::of(**range).is_some_and(|ours| state.addresses.contains(&ours.host));
        let known: Vec<Subnet> = given.iter().filter(has).copied().collect();
        masquerade.retain(|range| known.iter().all(|known| known.base() != range.base()));
        masquerade.extend(known);
        let is_mapped = host.mapped.iter().any(|bridge| bridge == state.name());
        (is_mapped || !masquerade.is_empty()).then_some(Left { state, masquerade })
    };
    links.filter_map(of).collect()
}

/// Changes that remove the gateway's addresses, neighbours and routes of these subnets from a link that stays, and the
/// routes from the management port.
///
/// `is_only_mark`: without fixed neighbours the addresses alone say that the host's tables may hold rules of a gateway.
fn masquerade_of(state: &LinkState, masquerade: &[Subnet], host: &Observed, is_only_mark: bool) -> Vec<HostChange> {
    let taken = masquerade.iter().filter_map(|range| Masquerade::of(*range));
    let taken: Vec<IpAddr> = taken.flat_map(|ours| [ours.ovn, ours.host.ip(), ours.local, ours.next_hop]).collect();
    let is_ours = |ip: &IpAddr| taken.contains(ip);
    let mut changes = Vec::new();
    for through in [Some(state), host.link(management_port::LINK)].into_iter().flatten() {
        // those of the addresses go with them
        let routes = through.snapshots.iter().filter(|route| route.addresses.iter().any(is_ours)).cloned();
        changes.extend(routes.map(|route| HostChange::on(through.name(), What::RemoveSnapshot(route))));
    }
    let addresses = state.addresses.iter().filter(|address| is_ours(&address.ip()));
    changes.extend(addresses.map(|address| HostChange {
        is_mark: is_only_mark,
        ..HostChange::on(state.name(), What::RemoveAddress(*address))
    }));
    let neighbours = state.neighbours.iter().map(|(ip, _)| *ip).filter(is_ours);
    changes.extend(neighbours.map(|ip| HostChange::mark(state.name(), What::RemoveNeighbour(ip))));
    changes
}

/// Changes that remove what belongs to no single bridge: nftables, routing rules and their routing table.
pub fn tables(ranges: &Ranges<'_>, host: &Observed) -> Vec<HostChange> {
    let mut changes = Vec::new();
    if host.tables.iter().any(|(name, _)| *name == nft::TABLE) {
        changes.push(HostChange::of_host(What::DeleteTable(nft::TABLE)));
    }
    let all = [ranges.cluster, ranges.service, ranges.masquerade].concat();
    changes.extend(iptables(&all, false, host));
    for rule in routing::RULES.into_iter().chain(other_clusters::RULES.into_iter().rev()) {
        let present = host.rules.iter().filter(|(_, have)| *have == rule);
        changes.extend(present.map(|&(ipv6, rule)| HostChange::of_host(What::RemoveRule { ipv6, rule })));
        let port = host.link(management_port::LINK);
        if rule.table != MAIN && port.is_some_and(|port| port.routes_in(rule.table).next().is_some()) {
            changes.push(HostChange::on(management_port::LINK, What::RemoveRoutesIn(rule.table)));
        }
    }
    changes
}

/// Changes that remove rules of ovn-kubernetes from the tables of iptables. Those that let pods' packets pass stay if
/// `pods_pass`.
pub fn iptables(ranges: &[Subnet], pods_pass: bool, host: &Observed) -> Vec<HostChange> {
    let theirs = host.tables.iter().filter(|(name, _)| iptables_cleanup::TABLES.contains(name));
    let commands = theirs.map(|(name, shown)| (*name, iptables_cleanup::plan(name, shown, ranges, pods_pass)));
    let changes = commands.filter(|(_, commands)| !commands.is_empty());
    changes.map(|(table, commands)| HostChange::of_host(What::ChangeTable { table, commands })).collect()
}
