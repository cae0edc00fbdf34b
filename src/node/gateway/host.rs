//! The host's side of the bridge: masquerade addresses, routes and neighbours.

use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_host::{Link, Net, Route, Rule, advertised, ethtool, sysctl};
use ovnkube_model::{Mac, Subnet};

use super::settings::Site;
use crate::Result;
use crate::mgmt::{self, Mgmt};
use crate::services;

/// The routing table of packets that the host has marked, and its rule's place.
const TABLE: u8 = 7;
const PRIORITY: u32 = 30;
/// Those of the host that are ours.
pub(crate) const RULES: [Rule; 1] = [Rule { priority: PRIORITY, mark: services::nft::MARK, table: TABLE }];

/// How it shall be.
pub(super) struct Host<'a> {
    pub(super) site: &'a Site,
    pub(super) masquerade: &'a [Subnet],
    pub(super) service_cidrs: &'a [Subnet],
    pub(super) mtu: u32,
    pub(super) checksums_in_software: bool,
}

impl Host<'_> {
    /// Changes only what is missing.
    pub(super) async fn ensure(&self, here: &Net, mgmt: &Mgmt) -> Result<()> {
        let bridge = &self.site.bridge;
        here.set_up(bridge).await?;
        if self.checksums_in_software {
            ethtool::tx_checksum_off(None, &bridge.name).await?;
        }
        let addresses = here.addresses(bridge).await?;
        for ip in &self.site.ips {
            if ip.is_ipv6() {
                advertised::forward(&bridge.name)?;
            } else {
                sysctl::set_link("ipv4", &bridge.name, "forwarding", "1")?;
            }
            let masquerade = self.masquerade.iter().find(|range| range.is_ipv6() == ip.is_ipv6());
            let Some(stand_ins) = masquerade.and_then(|range| StandIns::of(*range)) else { continue };
            if !addresses.contains(&stand_ins.host) {
                // the node's own packets to the outside must not come from here
                here.ensure_unpreferred_address(bridge, stand_ins.host).await?;
            }
            let routes = self.routes(*ip, &stand_ins);
            ensure_routes(here, bridge, &routes).await?;
            // ranges that are no longer services'
            for route in elsewhere(here.routes(bridge).await?, &routes) {
                if route.gateway == Some(stand_ins.next_hop) {
                    here.delete_route(bridge, route).await?;
                }
            }
            for neighbour in [stand_ins.ovn, stand_ins.next_hop] {
                here.ensure_neighbour(bridge, neighbour, Mac::of(neighbour).0).await?;
            }
            self.ensure_reply_route(here, mgmt, &stand_ins).await?;
        }
        Ok(())
    }

    fn routes(&self, node: IpNetwork, stand_ins: &StandIns) -> Vec<Route> {
        let services = self.services(node.is_ipv6()).map(|range| {
            let source = Some(stand_ins.host.ip());
            Route { source, mtu: Some(self.mtu), ..Route::via(range, stand_ins.next_hop) }
        });
        let to_ovn = Route { destination: stand_ins.ovn.into(), gateway: None, source: Some(node.ip()), mtu: None };
        services.chain([to_ovn]).collect()
    }

    fn services(&self, ipv6: bool) -> impl Iterator<Item = IpNetwork> {
        let ranges = self.service_cidrs.iter().filter(move |range| range.is_ipv6() == ipv6);
        ranges.filter_map(|range| IpNetwork::new(range.base(), range.prefix()).ok())
    }

    /// Services that keep the client's address are reached over the management port.
    async fn ensure_reply_route(&self, here: &Net, mgmt: &Mgmt, stand_ins: &StandIns) -> Result<()> {
        let Some(link) = here.link(mgmt::LINK).await? else { return Ok(()) };
        let ipv6 = stand_ins.ovn.is_ipv6();
        let Some(gateway) = mgmt.gateways.iter().find(|gateway| gateway.is_ipv6() == ipv6) else { return Ok(()) };
        ensure_routes(here, &link, &[Route::via(stand_ins.local.into(), *gateway)]).await?;
        // so are those whose own clients keep to local endpoints
        let have = here.routes_in(&link, TABLE).await?;
        let routes: Vec<Route> = self.services(ipv6).map(|range| Route::via(range, *gateway)).collect();
        for route in routes.iter().filter(|route| !have.contains(route)) {
            here.ensure_route_in(&link, TABLE, *route).await?;
        }
        for route in elsewhere(have, &routes) {
            if route.destination.is_ipv6() == ipv6 {
                here.delete_route_in(&link, TABLE, route).await?;
            }
        }
        for rule in RULES {
            here.ensure_rule(ipv6, rule).await?;
        }
        Ok(())
    }
}

/// Addresses of the masquerade subnet, the same on every node. All else that is in it is not ours.
pub(super) struct StandIns {
    /// Stands for OVN where it has the host's address.
    pub(super) ovn: IpAddr,
    /// Stands for the host, with its prefix.
    pub(super) host: IpNetwork,
    /// Services with only local endpoints.
    local: IpAddr,
    /// A neighbour that is nobody.
    pub(super) next_hop: IpAddr,
}

impl StandIns {
    pub(super) fn of(subnet: Subnet) -> Option<Self> {
        Some(Self {
            ovn: subnet.nth(1)?,
            host: subnet.nth_with_prefix(2)?,
            local: subnet.nth(3)?,
            next_hop: subnet.nth(4)?,
        })
    }

    pub(super) fn has(&self, ip: IpAddr) -> bool {
        [self.ovn, self.host.ip(), self.local, self.next_hop].contains(&ip)
    }
}

/// Routes to where none of `wanted` leads.
fn elsewhere(have: Vec<Route>, wanted: &[Route]) -> impl Iterator<Item = Route> {
    have.into_iter().filter(|route| wanted.iter().all(|wanted| wanted.destination != route.destination))
}

async fn ensure_routes(here: &Net, link: &Link, routes: &[Route]) -> Result<()> {
    let have = here.routes(link).await?;
    for new in routes.iter().filter(|route| !have.contains(route)) {
        here.ensure_route(link, *new).await?;
    }
    Ok(())
}
