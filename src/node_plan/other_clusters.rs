//! The host's own way to pods of other clusters: routes by the management port, in a table of their own.
//!
//! ```text
//!  32764: iif lo lookup main suppress_prefixlength 0     any route of the host wins, except the default one
//!  32765: iif lo lookup 71                               10.244.0.0/16 via 10.128.2.1 dev ovn-k8s-mp0
//!  32766: lookup main                                    the default route
//! ```
//!
//! So only what would leave by the default route can be taken away, and nothing on which the node depends may be: a prefix
//! with such an address has no route. Packets that the host forwards see neither rule: where pods leave by their host, those
//! for a prefix that no cluster offers any more would go in circles.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_model::{Name, Subnet};

use crate::host::{MAIN, Packets, Route, Rule};
use crate::links::{HostState, LinkIntent};
use crate::management_port::LINK;
use crate::observed::{LinkState, Observed};

/// The routing table of routes to other clusters.
pub const TABLE: u8 = 71;
pub const RULES: [Rule; 2] = [
    Rule { priority: 32764, packets: Packets::OwnNotByDefault, table: MAIN },
    Rule { priority: 32765, packets: Packets::Own, table: TABLE },
];
/// The most prefixes that one message names.
const NAMED: usize = 10;

/// What the routes depend on.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The prefixes, each with its cluster; `None`: they are not known, and the routes that there are stay.
    pub prefixes: Option<&'a BTreeMap<Subnet, Name>>,
    /// The node's router port.
    pub gateways: &'a [IpAddr],
    /// MTU of the routes, where that is less than the link's, bytes.
    pub mtu: Option<u32>,
    /// Addresses that the node depends on, with what they are.
    pub needed: &'a BTreeMap<IpAddr, Name>,
}

/// The wanted state, and why the host has no route to some prefixes.
pub fn want(facts: &Facts<'_>, host: &Observed) -> (HostState, BTreeMap<Subnet, String>) {
    let port = host.link(LINK).filter(|port| port.link.up);
    let (mut wanted, mut held) = (Vec::new(), BTreeMap::new());
    for route in port.into_iter().flat_map(|port| facts.candidates(port)) {
        let prefix = Subnet::of(route.destination);
        match facts.problem(prefix, host) {
            Some(problem) => drop(held.insert(prefix, problem)),
            None => wanted.push(route),
        }
    }
    let mut state = HostState::default();
    for ipv6 in [false, true] {
        let has_routes = wanted.iter().any(|route| route.destination.is_ipv6() == ipv6);
        let rules = RULES.map(|rule| (ipv6, rule)).into_iter();
        if has_routes {
            state.rules.extend(rules);
        } else {
            // the first makes others' routes win until the end
            state.stale_rules.extend(rules.rev());
        }
    }
    let mut intent = LinkIntent::new(LINK);
    let have = port.into_iter().flat_map(|port| port.routes_in(TABLE));
    intent.stale.routes = have.filter(|route| !wanted.contains(route)).map(|route| (TABLE, route)).collect();
    intent.routes = wanted.into_iter().map(|route| (TABLE, route)).collect();
    if !intent.routes.is_empty() || !intent.stale.routes.is_empty() {
        state.links.push(intent);
    }
    (state, held)
}

impl Facts<'_> {
    fn candidates(&self, port: &LinkState) -> Vec<Route> {
        let Some(prefixes) = self.prefixes else { return port.routes_in(TABLE).collect() };
        let route = |prefix: &Subnet| {
            let gateway = self.gateways.iter().find(|gateway| gateway.is_ipv6() == prefix.is_ipv6())?;
            let destination = IpNetwork::new(prefix.base(), prefix.prefix()).ok()?;
            Some(Route { mtu: self.mtu, ..Route::via(destination, *gateway) })
        };
        prefixes.keys().filter_map(route).collect()
    }

    /// Why the host cannot have a route to a prefix.
    fn problem(&self, prefix: Subnet, host: &Observed) -> Option<String> {
        let others = || host.links.iter().filter(|state| state.name() != LINK);
        let table = || others().find(|state| state.tables.contains(&TABLE));
        let network = || {
            others()
                .find_map(|state| Some((state, state.addresses.iter().find(|net| Subnet::of(**net).overlaps(prefix))?)))
        };
        let gateway = || others().find_map(|state| Some((state, next_hops(state).find(|ip| prefix.contains(*ip))?)));
        let needed = || self.needed.range(prefix.base()..).next().filter(|(ip, _)| prefix.contains(**ip));
        let largest = if prefix.is_ipv6() { 16 } else { 8 };
        let size = (prefix.prefix() < largest).then(|| format!("it is larger than a /{largest}"));
        size.or_else(|| {
            table().map(|state| format!("routing table {TABLE} has routes of another program by {}", state.name()))
        })
        .or_else(|| network().map(|(state, net)| format!("it overlaps {net}, a network of {}", state.name())))
        .or_else(|| gateway().map(|(state, ip)| format!("it contains {ip}, a gateway of the host by {}", state.name())))
        .or_else(|| needed().map(|(ip, what)| format!("it contains {ip} ({what})")))
    }
}

fn next_hops(state: &LinkState) -> impl Iterator<Item = IpAddr> {
    state.routes.iter().filter_map(|(_, route)| route.gateway)
}

/// What to say of prefixes that the host has no route to; `None`: there are none.
pub fn say(held: &BTreeMap<Subnet, String>) -> Option<String> {
    let named: Vec<_> = held.iter().take(NAMED).map(|(prefix, problem)| format!("{prefix}: {problem}")).collect();
    let more = held.len() - named.len();
    let more = if more > 0 { format!("; {more} more") } else { String::new() };
    (!held.is_empty()).then(|| {
        format!(
            "this host has no route to prefixes of other clusters: {}{more}; give the host or the other cluster other addresses",
            named.join("; ")
        )
    })
}
