//! The routes that people declared, and the ways that they take.

use ovnkube_model::{Declared, Peers, Subnet, World};
use serde::Serialize;

use super::northbound::Northbound;
use super::ways::Way;

/// A route that a person declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeclaredRoute {
    pub prefix: Subnet,
    /// The cluster that it is behind.
    pub zone: String,
    pub used: bool,
    /// Why it is not used, with what to do.
    pub reason: Option<String>,
    pub ways: Vec<Way>,
}

impl DeclaredRoute {
    /// All of them. `world` knows the peers.
    pub(crate) fn all(world: &World, peers: &Peers, northbound: Option<&Northbound>) -> Vec<Self> {
        world
            .joined
            .declared()
            .map(|(prefix, declared)| Self::of(*prefix, declared, world, peers, northbound))
            .collect()
    }

    fn of(prefix: Subnet, declared: &Declared, world: &World, peers: &Peers, northbound: Option<&Northbound>) -> Self {
        let Declared { zone, used, problem, doubt: _ } = declared;
        let ports = peers.ports.iter().filter(|port| port.zone == *zone && port.address.is_ipv6() == prefix.is_ipv6());
        let ways = ports.map(|port| {
            let pieces = world
                .joined
                .prefixes()
                .iter()
                .filter(|(piece, hops)| prefix.contains_subnet(**piece) && hops.contains_key(&port.address));
            let written =
                |nb: &Northbound| pieces.clone().all(|(piece, _)| nb.learned.contains(&(*piece, port.address)));
            Way {
                switch: port.switch.to_string(),
                next_hop: port.address,
                written: northbound.filter(|_| port.open).map(written),
            }
        });
        let closed = || {
            format!(
                "no gateway has the ports of {zone}; start its gateways and those of this cluster, or see ovnkube ic diagnose"
            )
        };
        Self {
            prefix,
            zone: zone.to_string(),
            used: *used,
            reason: problem.clone().or_else(|| (!used).then(closed)),
            ways: ways.collect(),
        }
    }

    /// How many ways are used and not in the northbound database.
    pub(crate) fn missing(&self) -> usize {
        self.ways.iter().filter(|way| self.used && way.written == Some(false)).count()
    }

    /// `10.17.0.0/16 of az2 by ts 169.254.100.77: used`
    pub(crate) fn line(&self) -> String {
        let ways: Vec<String> = self.ways.iter().map(|way| way.text(self.used)).collect();
        let by = if ways.is_empty() { String::new() } else { format!(" by {}", ways.join(", ")) };
        let verdict = match &self.reason {
            Some(reason) => format!("not used, {reason}"),
            None => "used".to_owned(),
        };
        format!("{} of {}{by}: {verdict}", self.prefix, self.zone)
    }
}
