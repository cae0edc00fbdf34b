//! The addresses of a masquerade subnet. Host and OVN share the node's address; each of these belongs to only one of
//! the two.

use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_ipam::Subnet;

use crate::Family;

/// The first addresses of a masquerade subnet, the same on every node. The rest of the subnet is not ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Masquerade {
    /// OVN's address towards the host.
    pub ovn: IpAddr,
    /// The host's address towards OVN, with its prefix length.
    pub host: IpNetwork,
    /// Where OVN receives node port traffic for local endpoints from the host.
    pub local: IpAddr,
    /// A next hop that no machine has.
    pub next_hop: IpAddr,
    /// The source that a pod sees when it reaches itself through a service.
    pub hairpin: IpAddr,
}

impl Masquerade {
    /// The addresses of the first of these subnets that is of the family.
    pub fn find(subnets: &[Subnet], family: Family) -> Option<Self> {
        Self::of(*subnets.iter().find(|subnet| Family::of_subnet(**subnet) == family)?)
    }

    /// The part of a masquerade subnet that has these addresses, a /29 or /125.
    pub fn used(subnet: Subnet) -> Option<Subnet> {
        subnet.nth_subnet(if subnet.is_ipv6() { 125 } else { 29 }, 0)
    }

    /// Returns `None` if the subnet is smaller than a /29 or /125.
    pub fn of(subnet: Subnet) -> Option<Self> {
        Some(Self {
            ovn: subnet.nth(1)?,
            host: subnet.nth_with_prefix(2)?,
            local: subnet.nth(3)?,
            next_hop: subnet.nth(4)?,
            hairpin: subnet.nth(5)?,
        })
    }
}
