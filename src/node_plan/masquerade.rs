//! Finds masquerade subnets that a gateway used on a link.

use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_model::{Mac, Masquerade, Subnet};

use crate::observed::LinkState;

/// Prefix lengths of the smallest subnets that hold all masquerade addresses, for IPv4 and IPv6.
const SMALLEST: (u8, u8) = (29, 125);

/// The masquerade subnets that the link's permanent neighbours reveal, with the smallest possible size.
pub fn masquerade_subnets(state: &LinkState) -> Vec<Subnet> {
    let spells = |(ip, mac): &&(IpAddr, [u8; 6])| Mac::of(*ip).0 == *mac;
    let spelled: Vec<IpAddr> = state.neighbours.iter().filter(spells).map(|(ip, _)| *ip).collect();
    let subnet = |ip: &IpAddr| {
        let prefix = if ip.is_ipv6() { SMALLEST.1 } else { SMALLEST.0 };
        let around = Subnet::of(IpNetwork::new(*ip, prefix).ok()?);
        let ours = Masquerade::of(around)?;
        let is_ours = ours.ovn == *ip && spelled.contains(&ours.next_hop);
        is_ours.then_some(around)
    };
    spelled.iter().filter_map(subnet).collect()
}
