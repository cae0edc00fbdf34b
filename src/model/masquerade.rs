//! What the addresses of a masquerade subnet stand for. Host and OVN share the node's address; each of these is one that
//! only one of the two has.

use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_ipam::Subnet;

use crate::Family;

/// The first addresses of a masquerade subnet, the same on every node. All else that is in it is not ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Masquerade {
    /// OVN, to the host.
    pub ovn: IpAddr,
    /// The host, to OVN; with its prefix.
    pub host: IpNetwork,
    /// Where OVN serves what the host hands over of node ports with local endpoints.
    pub local: IpAddr,
    /// A neighbour that is nobody.
    pub next_hop: IpAddr,
    /// A pod that reaches itself through a service, to itself.
    pub hairpin: IpAddr,
}

impl Masquerade {
    /// Of the first of these subnets that is of the family.
    pub fn find(subnets: &[Subnet], family: Family) -> Option<Self> {
        Self::of(*subnets.iter().find(|subnet| Family::of_subnet(**subnet) == family)?)
    }

    /// `None`: the subnet is smaller than a /29 or /125.
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
