//! Source addresses of what the host forwards, and services, in a table of our own.

use std::net::IpAddr;

use ovnkube_host::nft;
use ovnkube_model::{GatewayMode, Subnet};

use crate::services::nft::{Elements, Moved};
use crate::services::{self, Want};
use crate::{Result, mgmt};

pub(crate) const TABLE: &str = "inet ovn-kubernetes";

/// The table as it shall be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Wanted {
    /// Chains, and maps and sets without their elements.
    pub(super) body: String,
    pub(super) elements: Elements,
}

/// The table as written and as the kernel shows it.
#[derive(Debug, Default)]
pub(super) struct Table {
    written: Option<(Wanted, String)>,
}

impl Table {
    /// Writes elements that differ, or the table anew unless it is as this process left it. Returns
    /// where UDP packets are led now and were not before.
    pub(super) async fn ensure(&mut self, want: Wanted) -> Result<Moved> {
        let shown = nft::list(TABLE).await?;
        let left = self.written.take().filter(|(have, left)| shown.as_ref() == Some(left) && have.body == want.body);
        let none = Elements::new();
        let have = left.as_ref().map_or(&none, |(have, _)| &have.elements);
        let moved = services::nft::moved(have, &want.elements);
        let change = services::nft::change(TABLE, have, &want.elements);
        let generation = nft::generation().await?;
        match left {
            Some((_, left)) if change.is_empty() => {
                self.written = Some((want, left));
                return Ok(moved);
            }
            Some(_) => nft::change(TABLE, &change).await?,
            None => nft::replace(TABLE, &want.body, &change).await?,
        }
        // what somebody else has written meanwhile is not taken for ours
        let shown = nft::list(TABLE).await?;
        let ours = nft::generation().await? == generation.wrapping_add(1);
        self.written = shown.filter(|_| ours).map(|shown| (want, shown));
        Ok(moved)
    }
}

/// The links that forward for the cluster alone, with `-disable-forwarding`.
pub(super) struct Guard<'a> {
    pub(super) bridge: &'a str,
    /// Of pods, services and masquerade addresses.
    pub(super) ranges: &'a [Subnet],
}

/// `management` are the management port's addresses, `masquerade` the masquerade subnets.
pub(super) fn table(
    mode: GatewayMode,
    subnets: &[Subnet],
    management: &[IpAddr],
    masquerade: &[Subnet],
    services: &Want,
    guard: Option<&Guard<'_>>,
) -> Wanted {
    let mut body = services::nft::body(services);
    body += &to_pods(management);
    if mode == GatewayMode::Local {
        body += &from_pods(subnets, masquerade);
    }
    body += &guard.map(forward).unwrap_or_default();
    Wanted { body, elements: services::nft::elements(services, mode, masquerade) }
}

/// Pods answer to the management port's address over the management port, to others through OVN.
fn to_pods(management: &[IpAddr]) -> String {
    let mut rules = vec![
        format!("oifname != \"{}\" return", mgmt::LINK),
        // endpoints see who sends to them
        "meta l4proto . th dport @mgmtport-no-snat-nodeports counter return".to_owned(),
    ];
    for ip in management {
        let (family, protocol, n) = if ip.is_ipv6() { ("ip6", "ipv6", 6) } else { ("ip", "ipv4", 4) };
        rules.push(format!("{family} saddr {ip} counter return"));
        let kept = format!("@mgmtport-no-snat-services-v{n}");
        rules.push(format!("{family} daddr . meta l4proto . th dport {kept} counter return"));
        rules.push(format!("meta nfproto {protocol} counter snat {family} to {ip}"));
    }
    chain("mgmtport-snat", SNAT, &rules)
}

/// Local mode: the host gives what leaves the node its own address.
fn from_pods(subnets: &[Subnet], masquerade: &[Subnet]) -> String {
    let ovn = masquerade.iter().filter_map(|range| range.nth(1)).map(|ip| (ip.is_ipv6(), ip.to_string()));
    let sources = ovn.chain(subnets.iter().map(|subnet| (subnet.is_ipv6(), subnet.to_string())));
    let masquerade = |(ipv6, source)| format!("{} saddr {source} counter masquerade", if ipv6 { "ip6" } else { "ip" });
    chain("ovn-kube-pod-subnet-masq", SNAT, &sources.map(masquerade).collect::<Vec<_>>())
}

/// What comes in by the gateway or leaves by it is the cluster's, or is not forwarded.
fn forward(guard: &Guard<'_>) -> String {
    let links = format!("{{ \"{}\", \"{}\" }}", guard.bridge, mgmt::LINK);
    let mut rules = vec![format!("iifname != {links} oifname != {links} return")];
    for range in guard.ranges {
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
