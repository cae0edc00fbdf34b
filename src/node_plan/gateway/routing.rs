//! The host's side of the bridge: masquerade addresses, routes and neighbours, and the way to services over the
//! management port.

use ipnetwork::IpNetwork;
use ovnkube_model::{Family, Mac, Masquerade, Subnet};

use super::GatewayBridge;
use crate::host::{MAIN, Packets, Route, Rule, Sysctl};
use crate::links::{Address, HostState, LinkIntent};
use crate::management_port::{self, ManagementPort};
use crate::observed::{LinkState, Observed};
use crate::services;

/// The routing table of packets that the host has marked.
pub const TABLE: u8 = 7;
const PRIORITY: u32 = 30;
/// The agent's routing rules.
pub const RULES: [Rule; 1] = [Rule { priority: PRIORITY, packets: Packets::Marked(services::nft::MARK), table: TABLE }];
/// Set on the bridge's link.
pub const FORWARDING: Sysctl = Sysctl::v4("forwarding");

/// What the wanted state depends on.
pub struct Facts<'a> {
    pub bridge: &'a GatewayBridge,
    pub management: &'a ManagementPort,
    pub masquerade: &'a [Subnet],
    pub service_cidrs: &'a [Subnet],
    /// MTU of routes, bytes.
    pub mtu: u32,
    pub checksums_in_software: bool,
}

/// The wanted state of the management port and the bridge. `have` shows which routes are stale.
pub fn want(facts: &Facts<'_>, have: &Observed) -> HostState {
    let mut state = HostState::default();
    let mut bridge =
        LinkIntent { checksums_in_software: facts.checksums_in_software, ..LinkIntent::new(&facts.bridge.link.name) };
    let port_now = have.link(management_port::LINK);
    let mut port = port_now.map(|now| facts.management.want(now));
    for ip in &facts.bridge.ips {
        if ip.is_ipv6() {
            bridge.forwards_ipv6 = true;
        } else {
            bridge.sysctls.push((FORWARDING, "1"));
        }
        let Some(masquerade) = Masquerade::find(facts.masquerade, Family::of(ip.ip())) else { continue };
        facts.bridge_side(&mut bridge, *ip, &masquerade, have.link(&facts.bridge.link.name));
        if let Some((port, now)) = port.as_mut().zip(port_now) {
            facts.port_side(port, &masquerade, now);
            state.rules.extend(RULES.map(|rule| (ip.is_ipv6(), rule)));
        }
    }
    state.links = port.into_iter().chain([bridge]).collect();
    state
}

impl Facts<'_> {
    fn bridge_side(&self, want: &mut LinkIntent, node: IpNetwork, masquerade: &Masquerade, now: Option<&LinkState>) {
        // not a source for the node's own packets to the outside
        want.addresses.push(Address { address: masquerade.host, preferred: false });
        let routes: Vec<(u8, Route)> = self.routes(node, masquerade).map(|route| (MAIN, route)).collect();
        // routes to ranges that services no longer have
        let stale = now.into_iter().flat_map(|now| elsewhere(now, MAIN, &routes));
        want.stale.routes.extend(stale.filter(|(_, route)| route.gateway == Some(masquerade.next_hop)));
        want.routes.extend(routes);
        want.neighbours.extend([masquerade.ovn, masquerade.next_hop].map(|ip| (ip, Mac::of(ip).0)));
    }

    fn routes(&self, node: IpNetwork, masquerade: &Masquerade) -> impl Iterator<Item = Route> {
        let (source, mtu, next_hop) = (Some(masquerade.host.ip()), Some(self.mtu), masquerade.next_hop);
        let services =
            self.services(node.is_ipv6()).map(move |range| Route { source, mtu, ..Route::via(range, next_hop) });
        let to_ovn = Route { destination: masquerade.ovn.into(), gateway: None, source: Some(node.ip()), mtu: None };
        services.chain([to_ovn])
    }

    fn services(&self, ipv6: bool) -> impl Iterator<Item = IpNetwork> {
        let ranges = self.service_cidrs.iter().filter(move |range| range.is_ipv6() == ipv6);
        ranges.filter_map(|range| IpNetwork::new(range.base(), range.prefix()).ok())
    }

    /// Routes over the management port: to services that keep the client's address, and to those with
    /// `internalTrafficPolicy: Local`.
    fn port_side(&self, want: &mut LinkIntent, masquerade: &Masquerade, now: &LinkState) {
        let ipv6 = masquerade.ovn.is_ipv6();
        let Some(gateway) = self.management.gateways.iter().find(|gateway| gateway.is_ipv6() == ipv6) else { return };
        want.routes.push((MAIN, Route::via(masquerade.local.into(), *gateway)));
        let marked: Vec<(u8, Route)> = self.services(ipv6).map(|range| (TABLE, Route::via(range, *gateway))).collect();
        let stale = elsewhere(now, TABLE, &marked).filter(|(_, route)| route.destination.is_ipv6() == ipv6);
        want.stale.routes.extend(stale);
        want.routes.extend(marked);
    }
}

/// The link's routes in `table` to destinations that none of `wanted` has.
fn elsewhere(now: &LinkState, table: u8, wanted: &[(u8, Route)]) -> impl Iterator<Item = (u8, Route)> {
    let have = now.routes_in(table);
    have.filter(|route| wanted.iter().all(|(_, wanted)| wanted.destination != route.destination))
        .map(move |route| (table, route))
}
