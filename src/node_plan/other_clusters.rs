//! The host's own way to pods of other clusters: a route by the management port to each of their prefixes. It may take away neither a
//! network that the host is on, nor what the node depends on.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_model::{Name, Subnet};

use crate::host::{MAIN, Route};
use crate::observed::{LinkState, Observed};

/// The most prefixes that one message names.
const NAMED: usize = 10;

/// What is known of other clusters.
#[derive(Debug, Clone, Copy)]
pub struct OtherClusters<'a> {
    /// `None`: not known, and the routes stay as they are.
    pub prefixes: Option<&'a [Subnet]>,
    /// What the node reaches elsewhere, by address: the API server, databases, their DNS.
    pub reached: &'a BTreeMap<IpAddr, Name>,
}

/// The routes to the prefixes of a family for which there is a gateway.
pub(crate) fn routes(prefixes: &[Subnet], gateways: &[IpAddr], mtu: Option<u32>) -> Vec<Route> {
    let route = |prefix: &Subnet| {
        let gateway = gateways.iter().find(|gateway| gateway.is_ipv6() == prefix.is_ipv6())?;
        let destination = IpNetwork::new(prefix.base(), prefix.prefix()).ok()?;
        Some(Route { mtu, to_cluster: true, ..Route::via(destination, *gateway) })
    };
    prefixes.iter().filter_map(route).collect()
}

/// The routes that the host can have, and why it cannot have the others.
pub(crate) fn judge(
    routes: &[Route],
    reached: &BTreeMap<IpAddr, Name>,
    have: &Observed,
) -> (Vec<Route>, Vec<(Subnet, String)>) {
    let networks: Vec<(Subnet, &str)> = have.links.iter().flat_map(networks).collect();
    let problem = |prefix: Subnet| {
        let network = networks.iter().find(|(network, _)| network.overlaps(prefix));
        let network = network.map(|(network, link)| format!("it overlaps {network}, a network of {link}"));
        let address = || reached.range(prefix.base()..).next().filter(|(ip, _)| prefix.contains(**ip));
        network.or_else(|| address().map(|(ip, owner)| format!("it contains {ip} ({owner})")))
    };
    let (mut possible, mut refused) = (Vec::new(), Vec::new());
    for route in routes {
        let prefix = Subnet::of(route.destination);
        match problem(prefix) {
            Some(problem) => refused.push((prefix, problem)),
            None => possible.push(*route),
        }
    }
    (possible, refused)
}

/// What to say of prefixes that the host has no route to.
pub(crate) fn say(refused: &[(Subnet, String)]) -> Option<String> {
    let named: Vec<_> = refused.iter().take(NAMED).map(|(prefix, problem)| format!("{prefix}: {problem}")).collect();
    let more = refused.len() - named.len();
    let more = if more > 0 { format!("; {more} more") } else { String::new() };
    (!refused.is_empty()).then(|| {
        format!(
            "this host has no route to prefixes of other clusters: {}{more}; give the host or the other cluster other addresses",
            named.join("; ")
        )
    })
}

/// The networks that a link leads to without a gateway.
fn networks(state: &LinkState) -> impl Iterator<Item = (Subnet, &str)> {
    let direct = state.routes_in(MAIN).filter(|route| route.gateway.is_none() && route.destination.prefix() > 0);
    let direct = direct.map(|route| Subnet::of(route.destination));
    let own = state.addresses.iter().map(|address| Subnet::of(*address));
    own.chain(direct).map(|network| (network, state.name()))
}
