//! Source addresses of what the host forwards, in a table of our own.

use std::net::IpAddr;

use ovnkube_host::nft;
use ovnkube_model::{GatewayMode, Subnet};

use crate::Result;
use crate::mgmt;

const TABLE: &str = "inet ovn-kubernetes";

/// The table as written and as the kernel shows it.
#[derive(Debug, Default)]
pub(super) struct Table {
    written: Option<(String, String)>,
}

impl Table {
    /// Writes the table anew unless it is as this process left it.
    pub(super) async fn ensure(&mut self, body: String) -> Result<()> {
        let shown = nft::list(TABLE).await?;
        let kept = matches!((&self.written, &shown), (Some((was, left)), Some(is)) if *was == body && left == is);
        if !kept {
            nft::replace(TABLE, &body).await?;
            self.written = nft::list(TABLE).await?.map(|shown| (body, shown));
        }
        Ok(())
    }
}

/// `management` are the management port's addresses, `masquerade` the masquerade subnets.
pub(super) fn table(mode: GatewayMode, subnets: &[Subnet], management: &[IpAddr], masquerade: &[Subnet]) -> String {
    let mut text = to_pods(management);
    if mode == GatewayMode::Local {
        text += &from_pods(subnets, masquerade);
    }
    text
}

/// Pods answer to the management port's address over the management port, to others through OVN.
fn to_pods(management: &[IpAddr]) -> String {
    let mut rules = vec![format!("oifname != \"{}\" return", mgmt::LINK)];
    for ip in management {
        let (family, protocol) = if ip.is_ipv6() { ("ip6", "ipv6") } else { ("ip", "ipv4") };
        rules.push(format!("{family} saddr {ip} counter return"));
        rules.push(format!("meta nfproto {protocol} counter snat {family} to {ip}"));
    }
    chain("mgmtport-snat", &rules)
}

/// Local mode: the host gives what leaves the node its own address.
fn from_pods(subnets: &[Subnet], masquerade: &[Subnet]) -> String {
    let ovn = masquerade.iter().filter_map(|range| range.nth(1)).map(|ip| (ip.is_ipv6(), ip.to_string()));
    let sources = ovn.chain(subnets.iter().map(|subnet| (subnet.is_ipv6(), subnet.to_string())));
    let masquerade = |(ipv6, source)| format!("{} saddr {source} counter masquerade", if ipv6 { "ip6" } else { "ip" });
    chain("ovn-kube-pod-subnet-masq", &sources.map(masquerade).collect::<Vec<_>>())
}

fn chain(name: &str, rules: &[String]) -> String {
    let head = "type nat hook postrouting priority srcnat; policy accept;";
    format!("\tchain {name} {{\n\t\t{head}\n\t\t{}\n\t}}\n", rules.join("\n\t\t"))
}
