//! The network of a node.

use ipnetwork::IpNetwork;
use ovnkube_ipam::{Mac, Subnet};

/// The reason reported when a range has no free subnet.
pub(super) const SUBNETS_EXHAUSTED: &str = "SubnetsExhausted";
/// The reason reported when no id is free.
pub(super) const IDS_EXHAUSTED: &str = "NodeIDsExhausted";
/// The reason reported when a switch of the cluster has the node's name.
pub(super) const NAME_RESERVED: &str = "NameReserved";

/// The condition's reason for each of these.
const LACKS: [(&str, &str); 3] =
    [(IDS_EXHAUSTED, "NoNodeID"), (SUBNETS_EXHAUSTED, "NoSubnet"), (NAME_RESERVED, "NameReserved")];

/// The network decided for a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeNetwork {
    pub id: Option<u32>,
    /// One per family of the cluster; fewer while none is free.
    pub subnets: Vec<Subnet>,
    /// Subnet that the node itself manages, reserved so that no other node gets it.
    pub(super) foreign: Option<Subnet>,
    /// Pods of the node run in a subnet that it does not have: another node has it, or others of its pods need its own.
    pub(super) is_left: bool,
    /// What is wrong: exhausted ranges, annotations that were not used.
    pub(super) problems: Vec<(&'static str, String)>,
}

impl NodeNetwork {
    /// Reason and message of the node's condition, if it lacks an id or a subnet because none is left, or because of its name.
    pub fn lacks(&self) -> Option<(&'static str, &str)> {
        self.problems.iter().find_map(|(event, message)| {
            let (_, reason) = LACKS.into_iter().find(|(of, _)| of == event)?;
            Some((reason, message.as_str()))
        })
    }

    /// Whether this is the condition's reason of a node that lacks something.
    pub fn may_lack(reason: &str) -> bool {
        LACKS.iter().any(|(_, of)| *of == reason)
    }

    /// The address of the node's router port, `.1` of each subnet.
    pub fn gateways(&self) -> impl Iterator<Item = IpNetwork> + '_ {
        self.subnets.iter().filter_map(|s| s.nth_with_prefix(1))
    }

    /// The address of the management port, `.2` of each subnet.
    pub fn management(&self) -> impl Iterator<Item = IpNetwork> + '_ {
        self.subnets.iter().filter_map(|s| s.nth_with_prefix(2))
    }

    /// MAC of the router port: that of the IPv4 gateway where there is one.
    pub fn gateway_mac(&self) -> Option<Mac> {
        mac_of(self.gateways())
    }

    /// MAC of the management port.
    pub fn management_mac(&self) -> Option<Mac> {
        mac_of(self.management())
    }
}

fn mac_of(addresses: impl Iterator<Item = IpNetwork>) -> Option<Mac> {
    let mut addresses: Vec<_> = addresses.collect();
    addresses.sort_by_key(IpNetwork::is_ipv6);
    addresses.first().map(|a| Mac::of(a.ip()))
}
