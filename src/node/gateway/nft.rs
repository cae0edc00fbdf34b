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
    let mut rules = format!("\t\toifname != \"{}\" return\n", mgmt::LINK);
    for ip in management {
        let family = if ip.is_ipv6() { "ip6" } else { "ip" };
        rules += &format!("\t\t{family} saddr {ip} counter return\n");
        rules +=
            &format!("\t\tmeta nfproto {} counter snat {family} to {ip}\n", if ip.is_ipv6() { "ipv6" } else { "ipv4" });
    }
    chain("mgmtport-snat", &rules)
}

/// Local mode: the host gives what leaves the node its own address.
fn from_pods(subnets: &[Subnet], masquerade: &[Subnet]) -> String {
    let mut rules = String::new();
    let ovn = masquerade.iter().filter_map(|range| range.nth(1)).map(|ip| (ip.is_ipv6(), ip.to_string()));
    for (ipv6, source) in ovn.chain(subnets.iter().map(|subnet| (subnet.is_ipv6(), subnet.to_string()))) {
        rules += &format!("\t\t{} saddr {source} counter masquerade\n", if ipv6 { "ip6" } else { "ip" });
    }
    chain("ovn-kube-pod-subnet-masq", &rules)
}

fn chain(name: &str, rules: &str) -> String {
    format!("\tchain {name} {{\n\t\ttype nat hook postrouting priority srcnat; policy accept;\n{rules}\t}}\n")
}
