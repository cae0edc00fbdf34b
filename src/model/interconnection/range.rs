//! Ranges of addresses that people and other clusters name.

use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_ipam::Subnet;

/// As in Kube-OVN, the address may be any one of the range.
pub(super) fn range(text: &str) -> Option<Subnet> {
    let network: IpNetwork = text.parse().ok()?;
    text.contains('/').then(|| Subnet::of(network))
}

/// Why nobody's traffic for the prefix goes to another cluster.
pub(super) fn nowhere(prefix: Subnet) -> Option<String> {
    if prefix.prefix() == 0 {
        return Some("it is everything; have the cluster offer the ranges of its pods".into());
    }
    is_link_local(prefix.base()).then(|| "its addresses are link-local".into())
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}
