//! Reads all links of a namespace with their addresses, routes and neighbours.

use std::collections::HashMap;
use std::net::IpAddr;

use ovnkube_node_plan::host::{DefaultRoute, Mac, Route, RouteSnapshot, Rule};
use ovnkube_node_plan::observed::LinkState;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::address::AddressMessage;
use rtnetlink::packet_route::link::LinkMessage;
use rtnetlink::packet_route::neighbour::{NeighbourMessage, NeighbourState};
use rtnetlink::packet_route::route::{RouteAttribute, RouteMessage};

use crate::answer::{all, failed};
use crate::net::{default_routes, link_of, mac_of, neighbour, route, usable};
use crate::rules::rule_of;
use crate::{Net, Result, SavedRoute};

/// A snapshot of one namespace's network.
#[derive(Debug, Default)]
pub struct Look {
    /// Without sysctls and offloads.
    pub links: Vec<LinkState>,
    /// Of both families, the preferred ones first.
    pub default_routes: Vec<DefaultRoute>,
    /// Rules such as the agent's; the flag says whether the rule is for IPv6.
    pub rules: Vec<(bool, Rule)>,
}

impl Net {
    /// Reads the network. `whole`: also every route through each link, to remove routes that other programs set.
    pub async fn look(&self, whole: bool) -> Result<Look> {
        let links: Vec<LinkMessage> =
            all(self.handle.link().get().execute()).await.map_err(|e| failed("list links".into(), e))?;
        let mut links: Vec<LinkState> =
            links.iter().map(|message| LinkState { link: link_of(message), ..LinkState::default() }).collect();
        let places: HashMap<u32, usize> = links.iter().enumerate().map(|(n, state)| (state.link.index, n)).collect();
        let mut on = |index: u32, put: &mut dyn FnMut(&mut LinkState)| {
            if let Some(state) = places.get(&index).and_then(|place| links.get_mut(*place)) {
                put(state);
            }
        };
        let addresses: Vec<AddressMessage> =
            all(self.handle.address().get().execute()).await.map_err(|e| failed("list addresses".into(), e))?;
        for message in &addresses {
            on(message.header.index, &mut |state| state.addresses.extend(usable(message)));
        }
        let routes = self.all_tables().await?;
        for message in &routes {
            for index in links_of(message) {
                on(index, &mut |state| {
                    state.tables.insert(message.header.table);
                    state.routes.extend(route(message).map(|route: Route| (message.header.table, route)));
                    if whole {
                        state.snapshots.extend(SavedRoute::read(message, index).map(|route| route.snapshot()));
                    }
                });
            }
        }
        let neighbours: Vec<NeighbourMessage> =
            all(self.handle.neighbours().get().execute()).await.map_err(|e| failed("list neighbours".into(), e))?;
        for message in neighbours.iter().filter(|message| message.header.state == NeighbourState::Permanent) {
            let entry: Option<(IpAddr, Mac)> = neighbour(message).zip(mac_of(message));
            on(message.header.ifindex, &mut |state| state.neighbours.extend(entry));
        }
        let mut default_routes: Vec<DefaultRoute> = routes.iter().flat_map(default_routes).collect();
        default_routes.sort();
        Ok(Look { links, default_routes, rules: self.known_rules().await? })
    }

    async fn known_rules(&self) -> Result<Vec<(bool, Rule)>> {
        let mut found = Vec::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let rules = self.rules(family).await.map_err(|e| failed("list rules".into(), e))?;
            found.extend(rules.iter().filter_map(rule_of).map(|rule| (family == AddressFamily::Inet6, rule)));
        }
        Ok(found)
    }
}

/// Indexes of the links that a route leads through.
fn links_of(message: &RouteMessage) -> Vec<u32> {
    let mut links = Vec::new();
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Oif(index) => links.push(*index),
            RouteAttribute::MultiPath(hops) => links.extend(hops.iter().map(|hop| hop.interface_index)),
            _ => {}
        }
    }
    links.sort_unstable();
    links.dedup();
    links
}

impl SavedRoute {
    pub(crate) fn snapshot(&self) -> RouteSnapshot {
        RouteSnapshot { text: self.to_string(), addresses: self.addresses(), message: self.encode() }
    }
}
