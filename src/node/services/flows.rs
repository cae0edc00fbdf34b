//! Services in the flows of the bridge.
//!
//! With shared gateways OVN balances what comes in from outside: the bridge leads it there and the
//! answers out, past conntrack. With local gateways the host translates it, see `nft`; the bridge
//! only keeps OVN from hearing who asks for external addresses.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ovnkube_model::{Backend, Family, GatewayMode, Protocol};

use super::want::{At, Door, Want};
use crate::gateway::flows::{Facts, Flows, V4, V6, Vlan, Words};

/// Of two services that claim the same the first keeps it.
pub(crate) fn add(flows: &mut Flows, want: &Want, facts: &Facts<'_>) {
    let mut taken = BTreeSet::new();
    let mut asked_for = BTreeSet::new();
    let mut hosts = BTreeSet::new();
    let doors = want.parts.iter().flat_map(|part| &part.doors);
    for (door, ip) in doors.flat_map(|door| places(door, facts).into_iter().map(move |ip| (door, ip))) {
        if !taken.insert((ip, door.protocol, door.port)) {
            continue;
        }
        let words = if ip.is_ipv6() { &V6 } else { &V4 };
        let outer = matches!(door.at, At::Ip(_));
        if outer && asked_for.insert(ip) {
            neighbour(flows, facts, words, ip);
        }
        if facts.mode == GatewayMode::Shared {
            let host = door.local.as_ref().and_then(|local| local.host);
            match host {
                Some(host) => {
                    from_outside_to_host(flows, facts, words, ip, door, host);
                    hosts.insert((door.protocol, host));
                }
                None => from_outside(flows, facts, words, ip, door),
            }
        }
    }
    answers_of_host(flows, facts, &hosts);
}

/// The addresses at which the bridge has a door, on a node that has one of the family.
fn places(door: &Door, facts: &Facts<'_>) -> Vec<IpAddr> {
    let own = |ip: &&IpAddr| Family::of(**ip) == door.at.family();
    let Some(node) = facts.ips.iter().find(own) else { return Vec::new() };
    match door.at {
        At::Node(_) => {
            // where the host translates, answers of pods would not go back through it; it refuses where none is
            let local = door.local.iter().filter(|local| !local.endpoints.is_empty());
            [*node].into_iter().chain(local.flat_map(|local| local.node_ips.iter().copied())).collect()
        }
        At::Ip(ip) => vec![ip],
    }
}

/// Who asks for the address is answered by the host alone.
fn neighbour(flows: &mut Flows, facts: &Facts<'_>, words: &Words, ip: IpAddr) {
    let Facts { uplink, patch, .. } = facts;
    let Vlan { tagged, strip, .. } = Vlan::of(facts);
    let (asks, too_large) = if ip.is_ipv6() {
        (format!("icmp6,in_port={uplink},{tagged}nd_target={ip},icmp_type=135,icmp_code=0"), "icmp6")
    } else {
        (format!("arp,in_port={uplink},{tagged}arp_tpa={ip},arp_op=1"), "icmp")
    };
    flows.add(0, 110, &asks, &format!("{strip}LOCAL"));
    if facts.mode == GatewayMode::Shared && !facts.ips.contains(&ip) {
        // what routers tell of packets that endpoints have sent
        let code = if ip.is_ipv6() { "icmp_type=2,icmp_code=0" } else { "icmp_type=3,icmp_code=4" };
        let matches = format!("{too_large},in_port={uplink},{}={ip},{code}", words.dst);
        flows.add(0, 110, &matches, &format!("output:{patch}"));
    }
}

fn from_outside(flows: &mut Flows, facts: &Facts<'_>, words: &Words, ip: IpAddr, door: &Door) {
    let Facts { mac, uplink, patch, .. } = facts;
    let (protocol, port) = (words.protocol(door.protocol), door.port);
    let comes = format!("{protocol},in_port={uplink},{}={ip},tp_dst={port}", words.dst);
    let to_ovn = format!("output:{patch}");
    if door.sources.is_empty() {
        flows.add(0, 110, &comes, &to_ovn);
    } else {
        for source in &door.sources {
            flows.add(0, 110, &format!("{comes},{}={source}", words.src), &to_ovn);
        }
        flows.add(0, 109, &comes, "drop");
    }
    let answer = format!("{protocol},in_port={patch},dl_src={mac},{}={ip},tp_src={port}", words.src);
    flows.add(0, 110, &answer, &format!("output:{uplink}"));
}

/// An endpoint on the host sees who sends to it: OVN would stand in between.
fn from_outside_to_host(flows: &mut Flows, facts: &Facts<'_>, words: &Words, ip: IpAddr, door: &Door, host: Backend) {
    let (protocol, zone) = (words.protocol(door.protocol), facts.conntrack_zone + 3);
    let uplink = facts.uplink;
    let comes = format!("{protocol},in_port={uplink},{}={ip},tp_dst={}", words.dst, door.port);
    let endpoint = match host.ip {
        IpAddr::V4(v4) => format!("{v4}:{}", host.port),
        IpAddr::V6(v6) => format!("[{v6}]:{}", host.port),
    };
    let translate = format!("ct(commit,zone={zone},nat(dst={endpoint}),table=6)");
    if door.sources.is_empty() {
        flows.add(0, 110, &comes, &translate);
    } else {
        for source in &door.sources {
            flows.add(0, 110, &format!("{comes},{}={source}", words.src), &translate);
        }
        flows.add(0, 109, &comes, "drop");
    }
}

fn answers_of_host(flows: &mut Flows, facts: &Facts<'_>, hosts: &BTreeSet<(Protocol, Backend)>) {
    let zone = facts.conntrack_zone + 3;
    for (protocol, host) in hosts {
        let words = if host.ip.is_ipv6() { &V6 } else { &V4 };
        let protocol = words.protocol(*protocol);
        let answer = format!("{protocol},in_port=LOCAL,{}={},tp_src={}", words.src, host.ip, host.port);
        flows.add(0, 110, &answer, &format!("ct(zone={zone},nat,table=7)"));
    }
    if !hosts.is_empty() {
        let Vlan { tagged, push, strip } = Vlan::of(facts);
        flows.add(6, 110, tagged.trim_end_matches(','), &format!("{strip}LOCAL"));
        flows.add(7, 110, "", &format!("{push}output:{}", facts.uplink));
    }
}
