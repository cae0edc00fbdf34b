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

use ovnkube_model::{Family, GatewayMode, Mac, Masquerade, Protocol, Subnet};

use crate::services::{self, Want};

/// On all of our flows.
pub(crate) const COOKIE: &str = "0xdeff105";
/// Mark of packets that leave with an egress address.
const EGRESS_IP: &str = "0x3f0";
const BFD: u16 = 3784;
/// Before all else.
const FIRST: u16 = 700;
/// Goes with a VLAN's number where there is one.
const PRESENT: u16 = 0x1000;
/// One that no port can have.
pub(crate) const NO_PORT: u16 = 0xfeff;
/// Router and neighbour advertisements, which conntrack takes for invalid.
const ADVERTISEMENTS: [u8; 2] = [134, 136];

#[derive(Debug, Clone)]
pub(crate) struct Facts<'a> {
    pub(crate) mode: GatewayMode,
    pub(crate) mac: Mac,
    /// Port numbers; the uplink's is [`NO_PORT`] where there is none.
    pub(crate) uplink: u16,
    pub(crate) patch: u16,
    /// The network outside is a tagged one.
    pub(crate) vlan: Option<u16>,
    /// The node's addresses on the bridge.
    pub(crate) ips: Vec<IpAddr>,
    pub(crate) service_cidrs: &'a [Subnet],
    pub(crate) masquerade: &'a [Subnet],
    /// Ranges of pods that the outside may send to; empty: only replies reach them.
    pub(crate) pods: &'a [Subnet],
    /// The management port's, which are of those ranges.
    pub(crate) management: Vec<IpAddr>,
    pub(crate) conntrack_zone: u16,
    pub(crate) encap_port: u16,
    /// Bytes of the largest frame for pods; `None`: any may pass.
    pub(crate) max_frame: Option<u32>,
}

/// How a family is called in a match.
pub(crate) struct Words {
    ip: &'static str,
    pub(crate) src: &'static str,
    pub(crate) dst: &'static str,
    tcp: &'static str,
    udp: &'static str,
    sctp: &'static str,
}

pub(crate) const V4: Words = Words { ip: "ip", src: "nw_src", dst: "nw_dst", tcp: "tcp", udp: "udp", sctp: "sctp" };
pub(crate) const V6: Words =
    Words { ip: "ipv6", src: "ipv6_src", dst: "ipv6_dst", tcp: "tcp6", udp: "udp6", sctp: "sctp6" };

impl Words {
    pub(crate) fn protocol(&self, protocol: Protocol) -> &'static str {
        match protocol {
            Protocol::Tcp => self.tcp,
            Protocol::Udp => self.udp,
            Protocol::Sctp => self.sctp,
        }
    }
}

struct Zones {
    /// Everything that comes in from outside.
    main: u16,
    /// The host's address becomes its masquerade address.
    host: u16,
    /// OVN's address becomes its masquerade address.
    ovn: u16,
    fragments: u16,
}

pub(crate) struct Flows(Vec<String>);

impl Flows {
    pub(crate) fn add(&mut self, table: u8, priority: u16, matches: &str, actions: &str) {
        let matches = if matches.is_empty() { String::new() } else { format!("{matches},") };
        self.0.push(format!("cookie={COOKIE},table={table},priority={priority},{matches}actions={actions}"));
    }
}

/// In the syntax of `ovs-ofctl add-flows`.
pub(crate) fn flows(facts: &Facts<'_>, services: &Want) -> Vec<String> {
    let zone = facts.conntrack_zone;
    let zones = Zones { main: zone, host: zone + 1, ovn: zone + 2, fragments: zone + 4 };
    // a fresh bridge's own flow, without a cookie: not ours, but nothing works without it
    let mut flows = Flows(vec!["table=0,priority=0,actions=NORMAL".to_owned()]);
    common(&mut flows, facts);
    for ip in &facts.ips {
        let words = if ip.is_ipv6() { &V6 } else { &V4 };
        masquerade(&mut flows, facts, words, &zones, *ip);
        classify(&mut flows, facts, words, &zones, *ip);
        replies(&mut flows, facts, words);
    }
    services::flows::add(&mut flows, services, facts);
    if facts.uplink == NO_PORT {
        let mentions = [format!("in_port={NO_PORT}"), format!("output:{NO_PORT}")];
        flows.0.retain(|flow| !mentions.iter().any(|mention| flow.contains(mention)));
    }
    flows.0
}

/// OVN sees the tags of the network outside, the host doesn't.
pub(crate) struct Vlan {
    /// In a match; empty or with a comma at its end.
    pub(crate) tagged: String,
    /// In actions, likewise.
    pub(crate) push: String,
    pub(crate) strip: &'static str,
}

impl Vlan {
    pub(crate) fn of(facts: &Facts<'_>) -> Self {
        match facts.vlan {
            None => Self { tagged: String::new(), push: String::new(), strip: "" },
            Some(id) => Self {
                tagged: format!("dl_vlan={id},"),
                push: format!("push_vlan:0x8100,set_field:{}->vlan_vid,", PRESENT + id),
                strip: "strip_vlan,",
            },
        }
    }
}

/// What no address family matters to.
fn common(flows: &mut Flows, facts: &Facts<'_>) {
    let Facts { mac, uplink, patch, .. } = facts;
    let Vlan { tagged, push, strip } = &Vlan::of(facts);
    // the tag is taken off last
    let both =
        if facts.vlan.is_some() { format!("output:{patch},{strip}LOCAL") } else { format!("LOCAL,output:{patch}") };
    flows.add(0, 10, &format!("in_port={uplink},{tagged}dl_dst={mac}"), &both);
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

/// Host and OVN share an address. To talk to each other, each has a masquerade address.
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

/// Table 0: who sent it.
fn classify(flows: &mut Flows, facts: &Facts<'_>, words: &Words, zones: &Zones, node: IpAddr) {
    let Facts { mac, uplink, patch, encap_port, .. } = facts;
    let Words { ip, src, udp, .. } = words;
    let main = zones.main;
    // tunnels are the host's, and too many packets for conntrack
    let Vlan { tagged, push, strip } = &Vlan::of(facts);
    let tunnel = format!("{udp},tp_dst={encap_port}");
    flows.add(0, 205, &format!("in_port={uplink},{tagged}dl_dst={mac},{tunnel}"), &format!("{strip}LOCAL"));
    flows.add(0, 200, &format!("in_port={uplink},{tunnel}"), "NORMAL");
    flows.add(0, 200, &format!("in_port=LOCAL,{tunnel}"), &format!("{push}output:{uplink}"));
    // what pods send has the node's address outside: another node would take it for what OVN sends
    flows.add(0, FIRST, &format!("in_port={patch},{tunnel}"), "drop");
    match facts.mode {
        GatewayMode::Local => {
            // what OVN's pods answer goes through the host
            for protocol in [words.tcp, udp, words.sctp] {
                let matches = format!("in_port={patch},{protocol},{src}={node}");
                flows.add(0, 175, &matches, &format!("ct(table=4,zone={})", zones.host));
            }
            let bfd = format!("in_port={patch},dl_src={mac},{udp},tp_dst={BFD}");
            flows.add(0, 650, &bfd, &format!("output:{uplink}"));
        }
        GatewayMode::Shared => {
            // later fragments have no ports that a service could be told by
            let matches = format!("in_port={uplink},{ip},nw_frag=yes");
            flows.add(0, 110, &matches, &format!("ct(table=0,zone={})", zones.fragments));
        }
    }
    let from_ovn = format!("in_port={patch},dl_src={mac},{ip}");
    let commit = |nat: &str, mark, push: &str| {
        format!("ct(commit,zone={main},{nat}exec(load:{mark:#x}->NXM_NX_CT_MARK[])),{push}output:{uplink}")
    };
    flows.add(0, 105, &format!("pkt_mark={EGRESS_IP},{from_ovn}"), &commit(&format!("nat(src={node}),"), 1, ""));
    flows.add(0, 100, &from_ovn, &commit("", 1, ""));
    flows.add(0, 100, &format!("in_port=LOCAL,{ip}"), &commit("", 2, push));
    flows.add(0, 50, &format!("in_port={uplink},{ip}"), &format!("ct(table=1,zone={main},nat)"));
}

/// Table 1: whose reply is it.
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
    // a tag is taken off for the host alone
    let both = format!("output:{},{strip}LOCAL", facts.patch);
    let ipv6 = words.ip == V6.ip;
    let Words { ip, dst, .. } = words;
    for range in facts.pods.iter().filter(|range| range.is_ipv6() == ipv6) {
        flows.add(1, 15, &format!("{ip},{dst}={range}"), &format!("output:{}", facts.patch));
    }
    for own in facts.management.iter().filter(|own| own.is_ipv6() == ipv6 && !facts.pods.is_empty()) {
        flows.add(1, 16, &format!("{tagged}{ip},{dst}={own}"), &format!("{strip}LOCAL"));
    }
    if ipv6 {
        let all = if facts.vlan.is_some() { both.as_str() } else { "FLOOD" };
        for kind in ADVERTISEMENTS {
            flows.add(1, 14, &format!("{tagged}icmp6,icmp_type={kind}"), all);
        }
    }
    let bfd = format!("in_port={},{tagged}{},tp_dst={BFD}", facts.uplink, words.udp);
    flows.add(1, 13, &bfd, &both);
}

/// Only the host's own routing makes replies that OVN has not seen the requests of.
fn checked_frame(facts: &Facts<'_>) -> Option<u32> {
    facts.max_frame.filter(|_| facts.mode == GatewayMode::Local)
}
