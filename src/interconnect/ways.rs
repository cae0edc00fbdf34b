//! Which ways packets can take to the other clusters.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ovnkube_model::{Name, PeerPort, PeerRoute, Subnet};
use ovnkube_ovn::sb::port_binding;
use ovnkube_ovsdb_data::Cache;

use crate::in_use::routes;
use crate::switches::Switch;
use crate::theirs::{Port, Theirs};

/// A next hop in a transit switch.
pub type Way = (Name, IpAddr);

/// Next hops that packets can reach, by transit switch, and the ways that are used.
pub(crate) struct Ways {
    open: BTreeSet<Way>,
    /// Those that are open for so short a time that the other side may not know it yet.
    fresh: BTreeSet<Way>,
    /// Prefixes by next hop. None lies in another one of the same.
    used: BTreeMap<IpAddr, BTreeSet<Subnet>>,
    /// Prefixes of clusters that packets reach, where some of the ways are closed.
    reached: BTreeSet<(Name, Subnet)>,
}

impl Ways {
    /// A way is open when both this cluster's port in the switch and the other's are on a gateway. One that has a row in NB is used,
    /// and stays while there is no other, whatever becomes of its ports: a gateway that is away comes back. The next master decides as
    /// this one, since it reads the same rows. Beside an open way it would only lose its share of the packets.
    /// `known`: those that have been open for a while; without it, all count.
    pub(crate) fn find(
        nb: Option<&Cache>,
        sb: &Cache,
        switches: &[Switch],
        theirs: &Theirs,
        known: Option<&BTreeSet<Way>>,
    ) -> Self {
        let rows = sb.iter(port_binding::TABLE).filter(|(_, row)| row.uuid(port_binding::CHASSIS).is_some());
        let on_gateway: BTreeSet<&str> = rows.map(|(_, row)| row.str(port_binding::LOGICAL_PORT)).collect();
        let has_own = |switch: &&Switch| {
            switch.ends().any(|ends| on_gateway.contains(format!("cr-{}", ends.router_side).as_str()))
        };
        let own: BTreeSet<&Name> = switches.iter().filter(has_own).map(|switch| &switch.name).collect();
        let is_open = |port: &&Port| own.contains(&port.switch) && on_gateway.contains(port.name.as_ref());
        let (open, closed): (Vec<_>, Vec<_>) = theirs.ports.iter().partition(is_open);
        let open = open.into_iter().flat_map(|port| port.addresses.iter().map(|ip| (port.switch.clone(), *ip)));
        let open: BTreeSet<Way> = open.collect();
        let fresh: BTreeSet<Way> = known.map(|known| open.difference(known).cloned().collect()).unwrap_or_default();
        let is_asked = !closed.is_empty() || !fresh.is_empty();
        let used = nb.filter(|_| is_asked).map(routes).unwrap_or_default();
        let used = used.into_iter().map(|(next_hop, prefixes)| (next_hop, outermost(prefixes))).collect();
        let mut ways = Self { used, open, fresh, reached: BTreeSet::new() };
        if !closed.is_empty() && !ways.used.is_empty() {
            let passable = theirs.routes.iter().filter(|route| ways.passes(route));
            ways.reached = passable.map(|route| (route.zone.clone(), route.prefix)).collect();
        }
        ways
    }

    pub(crate) fn open(self) -> BTreeSet<Way> {
        self.open
    }

    pub(crate) fn has(&self, route: &PeerRoute) -> bool {
        let is_reached = || self.reached.contains(&(route.zone.clone(), route.prefix));
        self.passes(route) || (self.is_used_for(&route.next_hop, route.prefix) && !is_reached())
    }

    /// Whether packets to the prefix can take this way now.
    fn passes(&self, route: &PeerRoute) -> bool {
        let way = (route.switch.clone(), route.next_hop);
        // while there are other ways, a new one has time
        let is_other_used = || self.used.keys().any(|other| self.is_used_for(other, route.prefix));
        let waits = || self.fresh.contains(&way) && !self.is_used_for(&route.next_hop, route.prefix) && is_other_used();
        self.open.contains(&way) && !waits()
    }

    /// Whether packets to the prefix, or to a part of it, take this way already.
    fn is_used_for(&self, next_hop: &IpAddr, prefix: Subnet) -> bool {
        let Some(used) = self.used.get(next_hop) else { return false };
        // a part of the prefix may be another's
        let is_within = |first: &Subnet| prefix.contains_subnet(*first);
        // its cluster may offer in pieces what was one prefix before
        let is_around = |last: &Subnet| last.contains_subnet(prefix);
        used.range(prefix..).next().is_some_and(is_within) || used.range(..prefix).next_back().is_some_and(is_around)
    }

    /// Whether packets can take this way now, whatever their destination.
    fn is_passable(&self, way: &Way) -> bool {
        let waits = self.fresh.contains(way) && !self.used.is_empty() && !self.used.contains_key(&way.1);
        self.open.contains(way) && !waits
    }

    /// The others' addresses, sorted.
    pub(crate) fn ports(&self, theirs: &Theirs) -> Vec<PeerPort> {
        let of = |port: &Port, address: IpAddr| {
            let open = self.is_passable(&(port.switch.clone(), address));
            PeerPort { zone: port.zone.clone(), switch: port.switch.clone(), address, open }
        };
        let ports = theirs.ports.iter().flat_map(|port| port.addresses.iter().map(move |ip| of(port, *ip)));
        let mut ports: Vec<PeerPort> = ports.collect();
        if !self.used.is_empty() {
            let of = |port: &PeerPort| (port.zone.clone(), port.address.is_ipv6());
            let reached: BTreeSet<_> = ports.iter().filter(|port| port.open).map(of).collect();
            for port in &mut ports {
                port.open |= self.used.contains_key(&port.address) && !reached.contains(&of(port));
            }
        }
        ports.sort();
        ports.dedup();
        ports
    }
}

/// Those that lie in no other one.
fn outermost(prefixes: BTreeSet<Subnet>) -> BTreeSet<Subnet> {
    let mut outer = BTreeSet::new();
    // a prefix sorts before those that lie in it
    for prefix in prefixes {
        if !outer.last().is_some_and(|around: &Subnet| around.contains_subnet(prefix)) {
            outer.insert(prefix);
        }
    }
    outer
}
