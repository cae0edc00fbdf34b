//! The host's side of the bridge: masquerade addresses, routes and neighbours.

use ipnetwork::IpNetwork;
use ovnkube_host::{Link, Net, Route, Rule, advertised, ethtool, sysctl};
use ovnkube_model::{Family, Mac, Masquerade, Subnet};

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
            let Some(masquerade) = Masquerade::find(self.masquerade, Family::of(ip.ip())) else { continue };
            if !addresses.contains(&masquerade.host) {
                // the node's own packets to the outside must not come from here
                here.ensure_unpreferred_address(bridge, masquerade.host).await?;
            }
            let routes = self.routes(*ip, &masquerade);
            ensure_routes(here, bridge, &routes).await?;
            // ranges that are no longer services'
            for route in elsewhere(here.routes(bridge).await?, &routes) {
                if route.gateway == Some(masquerade.next_hop) {
                    here.delete_route(bridge, route).await?;
                }
            }
            for neighbour in [masquerade.ovn, masquerade.next_hop] {
                here.ensure_neighbour(bridge, neighbour, Mac::of(neighbour).0).await?;
            }
            self.ensure_reply_route(here, mgmt, &masquerade).await?;
        }
        Ok(())
    }

    fn routes(&self, node: IpNetwork, masquerade: &Masquerade) -> Vec<Route> {
        let services = self.services(node.is_ipv6()).map(|range| {
            let source = Some(masquerade.host.ip());
            Route { source, mtu: Some(self.mtu), ..Route::via(range, masquerade.next_hop) }
        });
        let to_ovn = Route { destination: masquerade.ovn.into(), gateway: None, source: Some(node.ip()), mtu: None };
        services.chain([to_ovn]).collect()
    }

    fn services(&self, ipv6: bool) -> impl Iterator<Item = IpNetwork> {
        let ranges = self.service_cidrs.iter().filter(move |range| range.is_ipv6() == ipv6);
        ranges.filter_map(|range| IpNetwork::new(range.base(), range.prefix()).ok())
    }

    /// Services that keep the client's address are reached over the management port.
    async fn ensure_reply_route(&self, here: &Net, mgmt: &Mgmt, masquerade: &Masquerade) -> Result<()> {
        let Some(link) = here.link(mgmt::LINK).await? else { return Ok(()) };
        let ipv6 = masquerade.ovn.is_ipv6();
        let Some(gateway) = mgmt.gateways.iter().find(|gateway| gateway.is_ipv6() == ipv6) else { return Ok(()) };
        ensure_routes(here, &link, &[Route::via(masquerade.local.into(), *gateway)]).await?;
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
