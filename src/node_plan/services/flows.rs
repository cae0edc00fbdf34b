//! The bridge's flows for services.
//!
//! With shared gateways OVN balances packets from outside: the bridge sends them to OVN and the
//! replies out, bypassing conntrack. With local gateways the host translates them, see `nft`; the
//! bridge only keeps ARP and neighbour requests for external addresses from OVN.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ovnkube_model::{Backend, Family, GatewayMode, Protocol};

use super::{At, Frontend, Want};
use crate::openflow::{Facts, Flows, Vlan, Words};

/// Adds the flows of all services. If two services claim the same address and port, the first gets it.
pub fn add(flows: &mut Flows, want: &Want, facts: &Facts<'_>) {
    let mut taken = BTreeSet::new();
    let mut asked_for = BTreeSet::new();
    let mut hosts = BTreeSet::new();
    let frontends = want.parts.iter().flat_map(|part| &part.frontends);
    for (frontend, ip) in
        frontends.flat_map(|frontend| places(frontend, facts).into_iter().map(move |ip| (frontend, ip)))
    {
        if !taken.insert((ip, frontend.protocol, frontend.port)) {
            continue;
        }
        let Some(uplink) = facts.uplink else { continue };
        let from = Outside { facts, uplink, words: Words::of(Family::of(ip)) };
        let outer = matches!(frontend.at, At::Ip(_));
        if outer && asked_for.insert(ip) {
            from.neighbour(flows, ip);
        }
        if facts.mode == GatewayMode::Shared {
            let host = frontend.local.as_ref().and_then(|local| local.host);
            match host {
                Some(host) => {
                    from.to_host(flows, ip, frontend, host);
                    hosts.insert((frontend.protocol, host));
                }
                None => from.to_ovn(flows, ip, frontend),
            }
        }
    }
    answers_of_host(flows, facts, &hosts);
}

/// The addresses of a frontend on the bridge; none if the node has no address of the family.
fn places(frontend: &Frontend, facts: &Facts<'_>) -> Vec<IpAddr> {
    let own = |ip: &&IpAddr| Family::of(**ip) == frontend.at.family();
    let Some(node) = facts.ips.iter().find(own) else { return Vec::new() };
    match frontend.at {
        At::Node(_) => {
            // if the host translated, replies of pods would not go back through it; it rejects where no endpoint is
            let local = frontend.local.iter().filter(|local| !local.endpoints.is_empty());
            [*node].into_iter().chain(local.flat_map(|local| local.node_ips.iter().copied())).collect()
        }
        At::Ip(ip) => vec![ip],
    }
}

/// Packets from outside.
struct Outside<'a> {
    facts: &'a Facts<'a>,
    uplink: u16,
    words: &'a Words,
}

impl Outside<'_> {
    /// Only the host answers ARP and neighbour requests for the address.
    fn neighbour(&self, flows: &mut Flows, ip: IpAddr) {
        let Self { facts, uplink, words } = self;
        let Vlan { tagged, strip, .. } = Vlan::of(facts);
        let (asks, too_large) = if ip.is_ipv6() {
            (format!("icmp6,in_port={uplink},{tagged}nd_target={ip},icmp_type=135,icmp_code=0"), "icmp6")
        } else {
            (format!("arp,in_port={uplink},{tagged}arp_tpa={ip},arp_op=1"), "icmp")
        };
        flows.add(0, 110, &asks, &format!("{strip}LOCAL"));
        if facts.mode == GatewayMode::Shared && !facts.ips.contains(&ip) {
            // routers report that packets of endpoints are too large
            let code = if ip.is_ipv6() { "icmp_type=2,icmp_code=0" } else { "icmp_type=3,icmp_code=4" };
            let matches = format!("{too_large},in_port={uplink},{}={ip},{code}", words.dst);
            flows.add(0, 110, &matches, &format!("output:{}", facts.patch));
        }
    }

    fn to_ovn(&self, flows: &mut Flows, ip: IpAddr, frontend: &Frontend) {
        let Self { facts: Facts { mac, patch, .. }, uplink, words } = self;
        self.led(flows, ip, frontend, &format!("output:{patch}"));
        let (protocol, port) = (words.protocol(frontend.protocol), frontend.port);
        let answer = format!("{protocol},in_port={patch},dl_src={mac},{}={ip},tp_src={port}", words.src);
        flows.add(0, 110, &answer, &format!("output:{uplink}"));
    }

    /// Bypasses OVN, so that an endpoint on the host sees the client's address.
    fn to_host(&self, flows: &mut Flows, ip: IpAddr, frontend: &Frontend, host: Backend) {
        let endpoint = match host.ip {
            IpAddr::V4(v4) => format!("{v4}:{}", host.port),
            IpAddr::V6(v6) => format!("[{v6}]:{}", host.port),
        };
        let zone = self.facts.conntrack_zone + 3;
        self.led(flows, ip, frontend, &format!("ct(commit,zone={zone},nat(dst={endpoint}),table=6)"));
    }

    /// Applies `actions` to packets of allowed clients, and drops the others.
    fn led(&self, flows: &mut Flows, ip: IpAddr, frontend: &Frontend, actions: &str) {
        let Self { uplink, words, .. } = self;
        let protocol = words.protocol(frontend.protocol);
        let comes = format!("{protocol},in_port={uplink},{}={ip},tp_dst={}", words.dst, frontend.port);
        if frontend.sources.is_empty() {
            flows.add(0, 110, &comes, actions);
            return;
        }
        for source in &frontend.sources {
            flows.add(0, 110, &format!("{comes},{}={source}", words.src), actions);
        }
        flows.add(0, 109, &comes, "drop");
    }
}

fn answers_of_host(flows: &mut Flows, facts: &Facts<'_>, hosts: &BTreeSet<(Protocol, Backend)>) {
    let zone = facts.conntrack_zone + 3;
    for (protocol, host) in hosts {
        let words = Words::of(Family::of(host.ip));
        let protocol = words.protocol(*protocol);
        let answer = format!("{protocol},in_port=LOCAL,{}={},tp_src={}", words.src, host.ip, host.port);
        flows.add(0, 110, &answer, &format!("ct(zone={zone},nat,table=7)"));
    }
    if let Some(uplink) = facts.uplink.filter(|_| !hosts.is_empty()) {
        let Vlan { tagged, push, strip } = Vlan::of(facts);
        flows.add(6, 110, tagged.trim_end_matches(','), &format!("{strip}LOCAL"));
        flows.add(7, 110, "", &format!("{push}output:{uplink}"));
    }
}
