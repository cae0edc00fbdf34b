//! The bridge's OpenFlow rules, worked out from facts.
//!
//! ```text
//!            ┌────────────── bridge ──────────────┐
//!  uplink ───┤ 0 who sent it ─▶ conntrack ─▶ 1 whose reply is it ─▶ patch port (OVN) or host
//!  patch  ───┤   OVN's connections are marked 1, the host's 2: one address serves both
//!  host   ───┤   masquerade addresses: 2 to OVN, 3 to the host, 4 and 5 translate in between
//!            └────────────────────────────────────┘   11 too large for pods ─▶ host, which tells the sender
//! ```

use std::net::IpAddr;

use ovnkube_model::{Family, GatewayMode, Masquerade};

use super::inside::Inside;
use crate::databases::Databases;
use crate::openflow::{Facts, Flows, V6, Vlan, Words};
use crate::services::{self, Want};

/// Mark of packets that leave with an egress address.
const EGRESS_IP: &str = "0x3f0";
const BFD: u16 = 3784;
/// The highest priority.
const FIRST: u16 = 700;
/// ICMPv6 types of router and neighbour advertisements, which conntrack considers invalid.
const ADVERTISEMENTS: [u8; 2] = [134, 136];

struct Zones {
    /// For everything that comes in from outside.
    main: u16,
    /// The host's address becomes its masquerade address.
    host: u16,
    /// OVN's address becomes its masquerade address.
    ovn: u16,
    fragments: u16,
}

/// The bridge's flows in the syntax of `ovs-ofctl add-flows`.
pub fn flows(facts: &Facts<'_>, services: &Want) -> Vec<String> {
    let zone = facts.conntrack_zone;
    let zones = Zones { main: zone, host: zone + 1, ovn: zone + 2, fragments: zone + 4 };
    // the default flow of a new bridge, without our cookie: nothing works without it
    let mut flows = Flows(vec!["table=0,priority=0,actions=NORMAL".to_owned()]);
    common(&mut flows, facts);
    for ip in &facts.ips {
        let words = Words::of(Family::of(*ip));
        masquerade(&mut flows, facts, words, &zones, *ip);
        classify(&mut flows, facts, words, &zones, *ip);
        replies(&mut flows, facts, words);
    }
    databases(&mut flows, facts, &services.databases);
    services::flows::add(&mut flows, services, facts);
    flows.0
}

/// Flows that do not depend on the address family.
fn common(flows: &mut Flows, facts: &Facts<'_>) {
    let Facts { mac, patch, .. } = facts;
    let Vlan { tagged, push, strip } = &Vlan::of(facts);
    // OVN gets the tagged packet, so the tag is stripped last
    let both =
        if facts.vlan.is_some() { format!("output:{patch},{strip}LOCAL") } else { format!("LOCAL,output:{patch}") };
    if let Some(uplink) = facts.uplink {
        flows.add(0, 10, &format!("in_port={uplink},{tagged}dl_dst={mac}"), &both);
    }
    flows.add(0, 10, &format!("in_port={patch},dl_src={mac}"), "NORMAL");
    flows.add(0, 9, &format!("in_port={patch}"), "drop");
    flows.add(1, 10, &format!("{tagged}dl_dst={mac}"), &format!("{strip}LOCAL"));
    flows.add(1, 0, "", "NORMAL");
    flows.add(2, 100, "", &format!("{push}mod_dl_dst:{mac},output:{patch}"));
    let turned = format!("move:NXM_OF_ETH_DST[]->NXM_OF_ETH_SRC[],mod_dl_dst:{mac},{strip}LOCAL");
    flows.add(3, 32768, tagged.trim_end_matches(','), &turned);
    if checked_frame(facts).is_some() {
        flows.add(11, 10, &format!("{tagged}reg0=0x1"), &format!("{strip}LOCAL"));
        flows.add(11, 1, "", &format!("output:{patch}"));
    }
}

/// Host and OVN share an address. To reach each other, each has a masquerade address.
fn masquerade(flows: &mut Flows, facts: &Facts<'_>, words: &Words, zones: &Zones, node: IpAddr) {
    let Words { ip, src, dst, .. } = words;
    let Zones { host: host_zone, ovn: ovn_zone, .. } = zones;
    let (patch, ipv6) = (facts.patch, node.is_ipv6());
    let Some(Masquerade { ovn, host, .. }) = Masquerade::find(facts.masquerade, Family::of(node)) else { return };
    let host = host.ip();
    let matches = format!("in_port={patch},{ip},{src}={node},{dst}={host}");
    flows.add(0, 500, &matches, &format!("ct(commit,table=4,zone={host_zone},nat(dst={node}))"));
    flows.add(0, 500, &format!("in_port=LOCAL,{ip},{dst}={ovn}"), &format!("ct(table=5,zone={ovn_zone},nat)"));
    for services in facts.service_cidrs.iter().filter(|range| range.is_ipv6() == ipv6) {
        let from_host = format!("ct(commit,table=2,zone={host_zone},nat(src={host}))");
        flows.add(0, 500, &format!("in_port=LOCAL,{ip},{dst}={services}"), &from_host);
        let back = format!("in_port={patch},{ip},{src}={services},{dst}={host}");
        flows.add(0, 500, &back, &format!("ct(table=3,zone={host_zone},nat)"));
        flows.add(0, 105, &format!("in_port={patch},{ip},{dst}={services}"), "drop");
    }
    flows.add(4, 32768, ip, &format!("ct(commit,table=3,zone={ovn_zone},nat(src={ovn}))"));
    flows.add(5, 32768, ip, &format!("ct(commit,table=2,zone={host_zone},nat)"));
}

/// Table 0: classifies packets by sender.
fn classify(flows: &mut Flows, facts: &Facts<'_>, words: &Words, zones: &Zones, node: IpAddr) {
    let Facts { patch, encap_port, .. } = facts;
    // packets of pods leave with the node's address: another node would take these for OVN's tunnel packets
    flows.add(0, FIRST, &format!("in_port={patch},{},tp_dst={encap_port}", words.udp), "drop");
    if facts.mode == GatewayMode::Local {
        // replies of pods go through the host
        for protocol in [words.tcp, words.udp, words.sctp] {
            let matches = format!("in_port={patch},{protocol},{}={node}", words.src);
            flows.add(0, 175, &matches, &format!("ct(table=4,zone={})", zones.host));
        }
    }
    if let Some(uplink) = facts.uplink {
        tunnels(flows, facts, words, uplink);
        forged(flows, facts, words, uplink);
        from_outside(flows, facts, words, zones, uplink);
        to_outside(flows, facts, words, zones, node, uplink);
    }
}

/// Tunnel packets belong to the host, and are too many for conntrack.
fn tunnels(flows: &mut Flows, facts: &Facts<'_>, words: &Words, uplink: u16) {
    let Facts { mac, encap_port, .. } = facts;
    let Vlan { tagged, push, strip } = &Vlan::of(facts);
    let tunnel = format!("{},tp_dst={encap_port}", words.udp);
    flows.add(0, 205, &format!("in_port={uplink},{tagged}dl_dst={mac},{tunnel}"), &format!("{strip}LOCAL"));
    flows.add(0, 200, &format!("in_port={uplink},{tunnel}"), "NORMAL");
    flows.add(0, 200, &format!("in_port=LOCAL,{tunnel}"), &format!("{push}output:{uplink}"));
}

/// Databases without TLS are not for pods. One on this host may listen on all of the host's addresses, also on its
/// masquerade address.
fn databases(flows: &mut Flows, facts: &Facts<'_>, databases: &Databases) {
    let Facts { mac, patch, .. } = facts;
    for at in &databases.at {
        let Words { tcp, dst, .. } = Words::of(Family::of(at.ip()));
        flows.add(0, FIRST, &format!("in_port={patch},{tcp},{dst}={},tp_dst={}", at.ip(), at.port()), "drop");
    }
    for family in Family::ALL {
        let Words { tcp, dst, .. } = Words::of(family);
        for port in &databases.here {
            flows.add(0, FIRST, &format!("in_port={patch},{tcp},dl_dst={mac},tp_dst={port}"), "drop");
            if let Some(Masquerade { host, .. }) = Masquerade::find(facts.masquerade, family) {
                flows.add(0, FIRST, &format!("in_port={patch},{tcp},{dst}={},tp_dst={port}", host.ip()), "drop");
            }
        }
    }
}

/// Drops what comes from outside with an address that only the cluster has.
fn forged(flows: &mut Flows, facts: &Facts<'_>, words: &Words, uplink: u16) {
    let Words { ip, src, .. } = words;
    let Facts { pods, pods_outside, masquerade, management, .. } = facts;
    let inside = Inside { pods, pods_outside: *pods_outside, masquerade, management };
    for source in inside.sources(*ip == V6.ip) {
        flows.add(0, 190, &format!("in_port={uplink},{ip},{src}={source}"), "drop");
    }
}

fn from_outside(flows: &mut Flows, facts: &Facts<'_>, words: &Words, zones: &Zones, uplink: u16) {
    let ip = words.ip;
    if facts.mode == GatewayMode::Shared {
        // later fragments have no ports to recognize a service by
        let matches = format!("in_port={uplink},{ip},nw_frag=yes");
        flows.add(0, 110, &matches, &format!("ct(table=0,zone={})", zones.fragments));
    }
    flows.add(0, 50, &format!("in_port={uplink},{ip}"), &format!("ct(table=1,zone={},nat)", zones.main));
}

fn to_outside(flows: &mut Flows, facts: &Facts<'_>, words: &Words, zones: &Zones, node: IpAddr, uplink: u16) {
    let Facts { mac, patch, .. } = facts;
    let Words { ip, udp, .. } = words;
    if facts.mode == GatewayMode::Local {
        let bfd = format!("in_port={patch},dl_src={mac},{udp},tp_dst={BFD}");
        flows.add(0, 650, &bfd, &format!("output:{uplink}"));
    }
    let from_ovn = format!("in_port={patch},dl_src={mac},{ip}");
    let commit = |nat: &str, mark, push: &str| {
        format!("ct(commit,zone={},{nat}exec(load:{mark:#x}->NXM_NX_CT_MARK[])),{push}output:{uplink}", zones.main)
    };
    flows.add(0, 105, &format!("pkt_mark={EGRESS_IP},{from_ovn}"), &commit(&format!("nat(src={node}),"), 1, ""));
    flows.add(0, 100, &from_ovn, &commit("", 1, ""));
    flows.add(0, 100, &format!("in_port=LOCAL,{ip}"), &commit("", 2, &Vlan::of(facts).push));
}

/// Table 1: sends replies to OVN or to the host, whichever sent the request.
fn replies(flows: &mut Flows, facts: &Facts<'_>, words: &Words) {
    let to_ovn = match checked_frame(facts) {
        Some(bytes) => format!("check_pkt_larger({bytes})->NXM_NX_REG0[0],resubmit(,11)"),
        None => format!("output:{}", facts.patch),
    };
    let Vlan { tagged, strip, .. } = &Vlan::of(facts);
    for state in ["+est+trk", "+rel+trk"] {
        flows.add(1, 100, &format!("{},ct_state={state},ct_mark=0x1", words.ip), &to_ovn);
        let to_host = format!("{tagged}{},ct_state={state},ct_mark=0x2", words.ip);
        flows.add(1, 100, &to_host, &format!("{strip}LOCAL"));
    }
    // the tag is stripped only for the host
    let both = format!("output:{},{strip}LOCAL", facts.patch);
    let ipv6 = words.ip == V6.ip;
    let Words { ip, dst, .. } = words;
    for range in facts.pods.iter().filter(|range| facts.pods_outside && range.is_ipv6() == ipv6) {
        flows.add(1, 15, &format!("{ip},{dst}={range}"), &format!("output:{}", facts.patch));
    }
    for own in facts.management.iter().filter(|own| facts.pods_outside && own.is_ipv6() == ipv6) {
        flows.add(1, 16, &format!("{tagged}{ip},{dst}={own}"), &format!("{strip}LOCAL"));
    }
    if ipv6 {
        let all = if facts.vlan.is_some() { both.as_str() } else { "FLOOD" };
        for kind in ADVERTISEMENTS {
            flows.add(1, 14, &format!("{tagged}icmp6,icmp_type={kind}"), all);
        }
    }
    if let Some(uplink) = facts.uplink {
        flows.add(1, 13, &format!("in_port={uplink},{tagged}{},tp_dst={BFD}", words.udp), &both);
    }
}

/// Only with local gateways the host routes requests itself, so that OVN gets replies without having seen them.
fn checked_frame(facts: &Facts<'_>) -> Option<u32> {
    facts.max_frame.filter(|_| facts.mode == GatewayMode::Local)
}
