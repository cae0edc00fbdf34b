//! The management port `ovn-k8s-mp0`: the node's own place in its pod subnet.
//!
//! Under the userspace datapath the link is a tap of ovs-vswitchd and vanishes with it, taking
//! addresses and routes along. So nothing here is done once: [`Mgmt::ensure`] runs on every change
//! and puts back what is missing.

use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_host::{Link, Net, Route, advertised, ethtool, sysctl};
use ovnkube_model::{Mac, Subnet};

use crate::{OwnNode, Result};

pub(crate) const LINK: &str = "ovn-k8s-mp0";

/// How the port shall be, worked out from the node's subnets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mgmt {
    /// The second address of each node subnet.
    pub(crate) addresses: Vec<IpNetwork>,
    /// The first address of each: the node's router port.
    pub(crate) gateways: Vec<IpAddr>,
    routes: Vec<Route>,
    /// Instead of the one that follows from the address.
    mac: Option<Mac>,
    pub(crate) mtu: u32,
    checksums_in_software: bool,
}

impl Mgmt {
    /// `None` until the node has a subnet.
    pub(crate) fn new(
        node: &OwnNode,
        cluster: &[Subnet],
        mtu: u32,
        route_mtu: Option<u32>,
        checksums_in_software: bool,
    ) -> Option<Self> {
        let nth = |subnet: &Subnet, n| subnet.nth(n);
        let addresses: Vec<_> =
            node.subnets.iter().filter_map(|subnet| IpNetwork::new(nth(subnet, 2)?, subnet.prefix()).ok()).collect();
        let gateways: Vec<IpAddr> = node.subnets.iter().filter_map(|subnet| nth(subnet, 1)).collect();
        let routes = cluster.iter().filter_map(|range| {
            let gateway = gateways.iter().find(|gateway| gateway.is_ipv6() == range.is_ipv6())?;
            let destination = IpNetwork::new(range.base(), range.prefix()).ok()?;
            Some(Route { mtu: route_mtu, ..Route::via(destination, *gateway) })
        });
        let routes = routes.collect();
        (!addresses.is_empty()).then_some(Self {
            addresses,
            gateways,
            routes,
            mac: node.mgmt_mac,
            mtu,
            checksums_in_software,
        })
    }

    pub(crate) fn mac(&self) -> Option<Mac> {
        self.mac.or_else(|| mac_of(self.addresses.iter().map(IpNetwork::ip)))
    }

    /// MAC of the node's router port.
    pub(crate) fn router_mac(&self) -> Option<Mac> {
        mac_of(self.gateways.iter().copied())
    }

    /// Returns false when there is no link yet.
    pub(crate) async fn ensure(&self, here: &Net) -> Result<bool> {
        let Some(link) = here.link(LINK).await? else { return Ok(false) };
        if let Some(mac) = self.mac() {
            here.ensure_mac(&link, mac.0).await?;
        }
        here.ensure_mtu(&link, self.mtu).await?;
        self.sysctls()?;
        if self.checksums_in_software {
            // an ovs-vswitchd that takes up the tap of the one before switches it on again
            ethtool::tx_checksum_off(None, LINK).await?;
        }
        here.set_up(&link).await?;
        self.ensure_addresses(here, &link).await?;
        // with its last address a link would lose all routes, others' too
        self.leave_others(here, &link).await?;
        self.ensure_routes(here, &link).await?;
        if let Some(mac) = self.router_mac() {
            for gateway in &self.gateways {
                here.ensure_neighbour(&link, *gateway, mac.0).await?;
            }
        }
        Ok(true)
    }

    fn sysctls(&self) -> Result<()> {
        // replies to pods may come in on another link than the route back uses
        sysctl::set_link("ipv4", LINK, "rp_filter", "2")?;
        sysctl::set_link("ipv4", LINK, "forwarding", "1")?;
        // a MAC address that changes is told to those who have the last one
        sysctl::set_link("ipv4", LINK, "arp_notify", "1")?;
        if self.addresses.iter().any(IpNetwork::is_ipv6) {
            sysctl::set_link("ipv6", LINK, "accept_ra", "0")?;
            advertised::forward(LINK)?;
            sysctl::set_link("ipv6", LINK, "ndisc_notify", "1")?;
        }
        Ok(())
    }

    /// What is left of subnets that the node had before is known by their addresses, which go last.
    async fn leave_others(&self, here: &Net, link: &Link) -> Result<()> {
        let have = here.addresses(link).await?;
        let others: Vec<(IpNetwork, IpAddr)> = have
            .into_iter()
            .filter(|address| !self.addresses.contains(address))
            .filter_map(|address| {
                let subnet = Subnet::of(address);
                (subnet.nth(2) == Some(address.ip())).then_some((address, subnet.nth(1)?))
            })
            .collect();
        if others.is_empty() {
            return Ok(());
        }
        let through =
            |gateway: IpAddr| others.iter().any(|(_, other)| *other == gateway) && !self.gateways.contains(&gateway);
        for route in here.routes(link).await?.into_iter().filter(|route| route.gateway.is_some_and(through)) {
            here.delete_route(link, route).await?;
        }
        here.delete_permanent_neighbours(link, through).await?;
        for (address, _) in &others {
            here.delete_address(link, *address).await?;
        }
        Ok(())
    }

    async fn ensure_addresses(&self, here: &Net, link: &Link) -> Result<()> {
        let have = here.addresses(link).await?;
        for new in self.addresses.iter().filter(|address| !have.contains(address)) {
            here.ensure_address(link, *new).await?;
        }
        Ok(())
    }

    async fn ensure_routes(&self, here: &Net, link: &Link) -> Result<()> {
        let have = here.routes(link).await?;
        for new in self.routes.iter().filter(|route| !have.contains(route)) {
            here.ensure_route(link, *new).await?;
        }
        Ok(())
    }
}

/// A port has one MAC for all its addresses; the controller takes that of the IPv4 one where there is one.
fn mac_of(addresses: impl Iterator<Item = IpAddr>) -> Option<Mac> {
    addresses.min_by_key(IpAddr::is_ipv6).map(Mac::of)
}
