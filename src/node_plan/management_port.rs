//! The management port `ovn-k8s-mp0`: the node's own interface in its pod subnet.
//!
//! With the userspace datapath the link is a tap of ovs-vswitchd and vanishes with it, together with its addresses and
//! routes. So each look compares everything.

use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_model::{Mac, Subnet};

use crate::host::{MAIN, Route, Sysctl};
use crate::links::{Address, HostState, LinkIntent, Stale};
use crate::observed::{LinkState, Observed};

pub const LINK: &str = "ovn-k8s-mp0";

/// Sysctls that the agent sets on the link, for addresses of any family.
pub const SYSCTLS: [(Sysctl, &str); 3] = [
    // replies to pods may arrive on another link than the route back uses
    (Sysctl::v4("rp_filter"), "2"),
    (Sysctl::v4("forwarding"), "1"),
    // announces a changed MAC address to neighbours that know the old one
    (Sysctl::v4("arp_notify"), "1"),
];
/// Sysctls that it also sets for IPv6 addresses.
pub const SYSCTLS_V6: [(Sysctl, &str); 2] = [(Sysctl::v6("accept_ra"), "0"), (Sysctl::v6("ndisc_notify"), "1")];

/// The wanted management port, worked out from the node's subnets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagementPort {
    /// The second address of each node subnet.
    pub addresses: Vec<IpNetwork>,
    /// The first address of each: the node's router port.
    pub gateways: Vec<IpAddr>,
    routes: Vec<Route>,
    /// In place of the MAC address that follows from the address.
    mac: Option<Mac>,
    /// Bytes.
    pub mtu: u32,
    checksums_in_software: bool,
}

/// What the port depends on.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The node's pod subnets.
    pub subnets: &'a [Subnet],
    pub cluster: &'a [Subnet],
    /// In place of the MAC address that follows from the port's address.
    pub mac: Option<Mac>,
    /// Bytes.
    pub mtu: u32,
    /// MTU of routes, where that is less.
    pub route_mtu: Option<u32>,
    pub checksums_in_software: bool,
}

impl ManagementPort {
    /// `None` until the node has a subnet.
    pub fn new(facts: &Facts<'_>) -> Option<Self> {
        let Facts { subnets, cluster, mac, mtu, route_mtu, checksums_in_software } = *facts;
        let address = |subnet: &Subnet| IpNetwork::new(subnet.nth(2)?, subnet.prefix()).ok();
        let addresses: Vec<_> = subnets.iter().filter_map(address).collect();
        let gateways: Vec<IpAddr> = subnets.iter().filter_map(|subnet| subnet.nth(1)).collect();
        let routes = cluster.iter().filter_map(|range| {
            let gateway = gateways.iter().find(|gateway| gateway.is_ipv6() == range.is_ipv6())?;
            let destination = IpNetwork::new(range.base(), range.prefix()).ok()?;
            Some(Route { mtu: route_mtu, ..Route::via(destination, *gateway) })
        });
        let routes = routes.collect();
        let port = Self { addresses, gateways, routes, mac, mtu, checksums_in_software };
        (!port.addresses.is_empty()).then_some(port)
    }

    pub fn mac(&self) -> Option<Mac> {
        self.mac.or_else(|| mac_of(self.addresses.iter().map(IpNetwork::ip)))
    }

    /// MAC of the node's router port.
    pub fn router_mac(&self) -> Option<Mac> {
        mac_of(self.gateways.iter().copied())
    }

    /// Its addresses without their prefix lengths.
    pub fn ips(&self) -> Vec<IpAddr> {
        self.addresses.iter().map(IpNetwork::ip).collect()
    }

    /// The wanted link. `have` is the observed one: leftovers of the node's earlier subnets are removed from it.
    pub fn want(&self, have: &LinkState) -> LinkIntent {
        let is_ipv6 = self.addresses.iter().any(IpNetwork::is_ipv6);
        let router = self.router_mac();
        LinkIntent {
            name: LINK.to_owned(),
            mac: self.mac().map(|mac| mac.0),
            mtu: Some(self.mtu),
            checksums_in_software: self.checksums_in_software,
            sysctls: SYSCTLS.into_iter().chain(SYSCTLS_V6.into_iter().filter(|_| is_ipv6)).collect(),
            forwards_ipv6: is_ipv6,
            addresses: self.addresses.iter().map(|address| Address { address: *address, preferred: true }).collect(),
            routes: self.routes.iter().map(|route| (MAIN, *route)).collect(),
            neighbours: self.gateways.iter().filter_map(|gateway| Some((*gateway, router?.0))).collect(),
            stale: self.stale(have),
        }
    }

    /// [`ManagementPort::want`] as the state of the whole host; empty when the link does not exist.
    pub fn state(&self, have: &Observed) -> HostState {
        let links = have.link(LINK).map(|now| self.want(now));
        HostState { links: links.into_iter().collect(), ..HostState::default() }
    }

    /// Leftovers of the node's earlier subnets, which the link's addresses reveal.
    fn stale(&self, have: &LinkState) -> Stale {
        let of_subnet = |address: &IpNetwork| {
            let subnet = Subnet::of(*address);
            (subnet.nth(2) == Some(address.ip())).then_some((*address, subnet.nth(1)?))
        };
        let others: Vec<(IpNetwork, IpAddr)> =
            have.addresses.iter().filter(|address| !self.addresses.contains(address)).filter_map(of_subnet).collect();
        let is_gone =
            |gateway: &IpAddr| others.iter().any(|(_, other)| other == gateway) && !self.gateways.contains(gateway);
        let routes = have.routes.iter().filter(|(table, _)| *table == MAIN);
        Stale {
            routes: routes.filter(|(_, route)| route.gateway.is_some_and(|via| is_gone(&via))).copied().collect(),
            neighbours: have.neighbours.iter().map(|(ip, _)| *ip).filter(is_gone).collect(),
            addresses: others.iter().map(|(address, _)| *address).collect(),
        }
    }
}

/// A port has one MAC for all its addresses; the controller derives it from the IPv4 one where there is one.
fn mac_of(addresses: impl Iterator<Item = IpAddr>) -> Option<Mac> {
    addresses.min_by_key(IpAddr::is_ipv6).map(Mac::of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(subnets: &[&str], mac: Option<Mac>) -> Option<ManagementPort> {
        let subnets: Vec<Subnet> = subnets.iter().map(|subnet| subnet.parse().unwrap()).collect();
        let cluster = ["10.128.0.0/14".parse().unwrap()];
        let facts = Facts {
            subnets: &subnets,
            cluster: &cluster,
            mac,
            mtu: 1400,
            route_mtu: None,
            checksums_in_software: false,
        };
        ManagementPort::new(&facts)
    }

    #[test]
    fn follows_from_the_subnets() {
        let subnets = ["10.128.0.0/23", "fd00:10::/64"];
        let made = port(&subnets, None).unwrap();
        assert_eq!(made.addresses, ["10.128.0.2/23", "fd00:10::2/64"].map(|a| a.parse().unwrap()));
        assert_eq!(made.mac().unwrap().to_string(), "0a:58:0a:80:00:02");
        // the controller gives the logical port an annotated MAC: the link has the same
        let annotated = Some("0a:58:0a:80:00:99".parse().unwrap());
        assert_eq!(port(&subnets, annotated).unwrap().mac(), annotated);
        assert_eq!(port(&[], None), None);
    }

    /// The controller gives each port one MAC: that of its IPv4 address where there is one.
    #[test]
    fn one_mac_serves_both_families() {
        let mut subnets = ["10.128.0.0/23", "fd00:10::/64"];
        for _ in 0..2 {
            let made = port(&subnets, None).unwrap();
            assert_eq!(made.mac().unwrap().to_string(), "0a:58:0a:80:00:02");
            assert_eq!(made.router_mac().unwrap().to_string(), "0a:58:0a:80:00:01");
            subnets.reverse();
        }
        let alone = port(&["fd00:10::/64"], None).unwrap();
        assert_eq!(alone.mac(), Some(Mac::of("fd00:10::2".parse().unwrap())));
        assert_eq!(alone.router_mac(), Some(Mac::of("fd00:10::1".parse().unwrap())));
    }
}
