//! The agent's nftables table: source addresses of packets that the host forwards, and services.

use std::net::IpAddr;

use ovnkube_model::{Family, GatewayMode, Masquerade, Subnet};

use super::inside::Inside;
use crate::management_port::LINK;
use crate::services::element::Set;
use crate::services::nft::Elements;
use crate::services::{self, Want};

pub const TABLE: &str = "inet ovn-kubernetes";

/// The wanted table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Chains, and maps and sets without their elements.
    pub body: String,
    pub elements: Elements,
}

/// What the table depends on.
pub struct Parts<'a> {
    pub mode: GatewayMode,
    pub bridge: &'a str,
    /// Of the whole cluster.
    pub pods: &'a [Subnet],
    /// See [`super::GatewaySettings::pods_outside`].
    pub pods_outside: bool,
    /// The node's pod subnets.
    pub subnets: &'a [Subnet],
    /// The management port's addresses.
    pub management: &'a [IpAddr],
    pub masquerade: &'a [Subnet],
    /// UDP port of the tunnels.
    pub encap_port: u16,
    /// With `-disable-forwarding`: the ranges of pods, services and masquerade addresses. Bridge and management port forward
    /// only for these.
    pub guard: Option<&'a [Subnet]>,
}

pub fn table(parts: &Parts<'_>, services: &Want) -> Wanted {
    let mut body = services::nft::body();
    body += &tunnels(parts.encap_port);
    body += &databases();
    body += &forward_to_pods(parts);
    body += &to_pods(parts.management);
    if parts.mode == GatewayMode::Local {
        body += &from_pods(parts.subnets, parts.masquerade);
    }
    body += &parts.guard.map(|ranges| forward(parts.bridge, ranges)).unwrap_or_default();
    Wanted { body, elements: services::nft::elements(services, parts.mode, parts.masquerade) }
}

/// Drops pods' packets to the tunnel port: they would leave with the node's address, and another node would take them
/// for OVN's tunnel packets.
fn tunnels(encap_port: u16) -> String {
    let rule = format!("iifname \"{LINK}\" udp dport {encap_port} counter drop");
    chain("mgmtport-tunnels", "type filter hook prerouting priority -310", &[rule])
}

/// Drops pods' packets to databases without TLS, after services were translated. A database on this host may listen on
/// any of its addresses.
fn databases() -> String {
    let to = |what, set: Set, family| {
        format!("iifname \"{LINK}\" {what} meta l4proto . th dport @{} counter drop", set.name(family))
    };
    let rules = [
        to("ip daddr .", Set::Databases, Family::V4),
        to("ip6 daddr .", Set::Databases, Family::V6),
        to("fib daddr type local", Set::DatabasePorts, Family::V4),
    ];
    chain("mgmtport-databases", "type filter hook prerouting priority -90", &rules)
}

/// Limits what the host forwards to pods. Pods accept all packets from the management port's address, regardless of
/// network policies, because the host itself sends from it. So the host forwards to pods only replies and packets that
/// were translated for a service or host port: not those that a pod sends by way of the host, nor those of an outside
/// host that uses the node as a router. Services that keep the client's address show it to pods: so what comes by any other
/// link of the host with an address that only the cluster has is dropped too. The gateway's bridge drops that itself.
fn forward_to_pods(parts: &Parts<'_>) -> String {
    let Parts { bridge, pods, pods_outside, masquerade, management, .. } = *parts;
    let inside = Inside { pods, pods_outside, masquerade, management };
    let mut rules = vec![format!("oifname != \"{LINK}\" return")];
    for (family, ipv6) in [("ip", false), ("ip6", true)] {
        let forged =
            |source| format!("iifname != \"{LINK}\" iifname != \"{bridge}\" {family} saddr {source} counter drop");
        rules.extend(inside.sources(ipv6).into_iter().map(forged));
    }
    rules.extend(["ct state established,related return", "ct status dnat return", "counter drop"].map(str::to_owned));
    chain("mgmtport-forward", "type filter hook forward priority filter", &rules)
}

/// Sets the source address of packets to pods: pods reply to the management port's address over the management port,
/// to other addresses through OVN.
fn to_pods(management: &[IpAddr]) -> String {
    let mut rules = vec![
        format!("oifname != \"{}\" return", LINK),
        // these endpoints must see the client's address
        format!("meta l4proto . th dport @{} counter return", Set::NoSnatNodePorts.name(Family::V4)),
    ];
    for ip in management {
        let (family, protocol) = if ip.is_ipv6() { ("ip6", "ipv6") } else { ("ip", "ipv4") };
        rules.push(format!("{family} saddr {ip} counter return"));
        let kept = Set::NoSnatServices.name(Family::of(*ip));
        rules.push(format!("{family} daddr . meta l4proto . th dport @{kept} counter return"));
        rules.push(format!("meta nfproto {protocol} counter snat {family} to {ip}"));
    }
    chain("mgmtport-snat", SNAT, &rules)
}

/// Local mode: the host gives packets of pods that leave the node its own address.
fn from_pods(subnets: &[Subnet], masquerade: &[Subnet]) -> String {
    let ovn = masquerade.iter().filter_map(|range| Some(Masquerade::of(*range)?.ovn));
    let ovn = ovn.map(|ip| (ip.is_ipv6(), ip.to_string()));
    let sources = ovn.chain(subnets.iter().map(|subnet| (subnet.is_ipv6(), subnet.to_string())));
    let masquerade = |(ipv6, source)| format!("{} saddr {source} counter masquerade", if ipv6 { "ip6" } else { "ip" });
    chain("ovn-kube-pod-subnet-masq", SNAT, &sources.map(masquerade).collect::<Vec<_>>())
}

/// Forwards packets that enter or leave by the gateway only if they are from or to the cluster.
fn forward(bridge: &str, ranges: &[Subnet]) -> String {
    let links = format!("{{ \"{bridge}\", \"{LINK}\" }}");
    let mut rules = vec![format!("iifname != {links} oifname != {links} return")];
    for range in ranges {
        let family = if range.is_ipv6() { "ip6" } else { "ip" };
        rules.extend(["saddr", "daddr"].map(|end| format!("{family} {end} {range} return")));
    }
    rules.push("counter drop".to_owned());
    chain("forward", "type filter hook forward priority filter", &rules)
}

const SNAT: &str = "type nat hook postrouting priority srcnat";

fn chain(name: &str, hook: &str, rules: &[String]) -> String {
    format!("\tchain {name} {{\n\t\t{hook}; policy accept;\n\t\t{}\n\t}}\n", rules.join("\n\t\t"))
}
