//! Source addresses that only the cluster has.

use std::net::IpAddr;

use ovnkube_model::{Masquerade, Subnet};

/// What they follow from.
pub(super) struct Inside<'a> {
    pub(super) pods: &'a [Subnet],
    /// See [`super::GatewaySettings::pods_outside`].
    pub(super) pods_outside: bool,
    pub(super) masquerade: &'a [Subnet],
    /// The management port's addresses.
    pub(super) management: &'a [IpAddr],
}

impl Inside<'_> {
    /// What comes from outside with one of these is forged: policies would take it for a packet of a pod, or of the host,
    /// which they always allow.
    pub(super) fn sources(&self, ipv6: bool) -> Vec<String> {
        let of_gateway = self.masquerade.iter().filter_map(|range| Masquerade::used(*range));
        // a gateway outside may send what a pod sent to it back to another pod
        let of_pods = self.pods.iter().copied().filter(|_| !self.pods_outside);
        let ranges = of_gateway.chain(of_pods).filter(|range| range.is_ipv6() == ipv6);
        let own = self.management.iter().filter(|own| self.pods_outside && own.is_ipv6() == ipv6);
        ranges.map(|range| range.to_string()).chain(own.map(ToString::to_string)).collect()
    }
}
