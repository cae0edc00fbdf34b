//! What hosts are told for their routes to other clusters.

use std::collections::BTreeMap;

use ovnkube_ipam::Subnet;

use super::World;
use crate::interconnection::{by_cluster, fair, host_routes_text};
use crate::{MOST_HOST_ROUTES, Name, Node, keys};

impl World {
    /// Keys and values that agents should read of routes of their hosts. `None`: there is nothing to write, since it is not known what
    /// people want, or since hosts have no such routes and no agent looks for them. Servers may have names.
    pub fn host_routes(&self) -> Option<BTreeMap<String, String>> {
        let data = |prefixes: Option<String>, servers: String| {
            let prefixes = prefixes.map(|text| (keys::HOST_ROUTES.to_owned(), text));
            prefixes.into_iter().chain([(keys::HOST_ROUTE_SERVERS.to_owned(), servers)]).collect()
        };
        if !self.has_host_routes()? {
            let is_read = self.nodes.values().any(Node::looks_for_routes);
            return is_read.then(|| data(Some(String::new()), String::new()));
        }
        let servers = self.joined.wanted().into_iter().flat_map(|wanted| &wanted.servers);
        let servers: Vec<&str> = servers.map(|server| server.host.as_ref()).collect();
        // until it is known what others offer, hosts keep the routes that they have
        let prefixes = self.shared_host_prefixes().map(|(prefixes, _)| host_routes_text(&prefixes));
        Some(data(prefixes, servers.join(",")))
    }

    /// Whether hosts should have routes to other clusters; `None`: it is not known.
    pub fn has_host_routes(&self) -> Option<bool> {
        let wanted = self.joined.wanted().map(|wanted| wanted.host_route);
        wanted.or_else(|| self.joined.is_off().then_some(false))
    }

    /// The prefixes that hosts have routes to, and how many more there are. `None`: it is not known, or nobody wants it.
    fn shared_host_prefixes(&self) -> Option<(BTreeMap<Subnet, Name>, usize)> {
        let wanted = self.joined.wanted().filter(|wanted| wanted.host_route)?;
        Some(fair(by_cluster(&self.joined.prefixes, self.joined.peers.as_ref()?, &wanted.routes)))
    }

    /// What a person should know of it.
    pub(super) fn host_route_problem(&self) -> Option<String> {
        let (_, more) = self.shared_host_prefixes().filter(|(_, more)| *more > 0)?;
        Some(format!(
            "hosts get no routes to {more} of the other clusters' prefixes: they get at most {MOST_HOST_ROUTES}; have the clusters \
             offer larger ones"
        ))
    }
}
