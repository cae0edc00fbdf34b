//! Whether this cluster may have a port in a transit switch: the subnet then becomes a route of its router. A switch where it has none
//! yet takes no addresses away by which another cluster is reached.
//!
//! That it has one is read from its own northbound database. Claims and ports in the shared databases are no proof: whoever adds a
//! switch can write them too, also in the name of this cluster.

use ovnkube_model::{Subnet, nowhere};
use ovnkube_plan::Offer;

use crate::switches::{Reader, Switch};
use crate::theirs::Theirs;

/// Leaves out subnets that begin among addresses that are in use, and switches that have no other.
pub(crate) fn restrict(
    switches: &mut Vec<Switch>,
    theirs: &mut Theirs,
    reader: Reader<'_>,
    problems: &mut Vec<String>,
) {
    let before = switches.len();
    switches.retain_mut(|switch| {
        let subnets = switch.subnets.iter().filter(|subnet| !has_port(switch, **subnet, reader));
        let taken = subnets.filter_map(|subnet| Some((*subnet, in_use(*subnet, theirs, reader.offer)?)));
        for (subnet, why) in taken.collect::<Vec<_>>() {
            problems.push(format!(
                "cannot use transit switch {}: its subnet {subnet} overlaps {why}; give the switch another subnet in all clusters",
                switch.name
            ));
            switch.leave_out(subnet);
        }
        !switch.subnets.is_empty()
    });
    if switches.len() < before {
        theirs.keep(switches);
    }
}

/// Whether this cluster has the subnet already. Where the northbound database is not known, its claim counts.
fn has_port(switch: &Switch, subnet: Subnet, reader: Reader<'_>) -> bool {
    let Some(nb) = reader.nb else {
        return switch.ports().flat_map(|own| &own.addresses).any(|net| subnet.contains(net.ip()));
    };
    let mut zones = reader.former.iter().copied().chain([reader.zone]);
    zones.any(|zone| switch.networks(nb, zone).into_iter().map(Subnet::of).any(|net| net.contains_subnet(subnet)))
}

/// Which addresses of other clusters a subnet has: `10.17.0.0/16, which cluster az2 offers`. What is refused anyway does not count.
fn in_use(subnet: Subnet, theirs: &Theirs, offer: &Offer) -> Option<String> {
    let is_used =
        |prefix: Subnet| prefix.overlaps(subnet) && nowhere(prefix).is_none() && offer.local.find(prefix).is_none();
    let mut declared = offer.wanted.routes.iter().filter(|(prefix, _)| is_used(**prefix));
    let mut offered = theirs.routes.iter().filter(|route| offer.wanted.auto_route && is_used(route.prefix));
    let declared = declared
        .next()
        .map(|(prefix, zone)| format!("{prefix}, which is behind cluster {zone} as key routes of this cluster says"));
    declared.or_else(|| offered.next().map(|route| format!("{}, which cluster {} offers", route.prefix, route.zone)))
}
