//! Which prefixes lead to other clusters: those that they offer, and those that people declare.

use std::collections::BTreeSet;

use ovnkube_ipam::Subnet;

use super::declared::{Declared, behind};
use super::prefixes::{Judge, MOST_PREFIXES, Prefixes, learned, taken};
use crate::Name;

/// Judges both. `learns`: whether what is offered is used.
pub fn prefixes(judge: &Judge<'_>, learns: bool) -> Prefixes {
    let mut found = if learns { learned(judge) } else { Prefixes::default() };
    add(&mut found, judge);
    found
}

/// Adds the declared routes. One that is both is one. What only agents of nodes say keeps none away.
fn add(found: &mut Prefixes, judge: &Judge<'_>) {
    let mut all = BTreeSet::new();
    for (prefix, zone) in judge.declared {
        let own = judge.local.find_sure(*prefix).map(|what| taken(&what));
        let pieces = match own.or_else(|| judge.closed(*prefix)) {
            Some(problem) => Err(problem),
            None => pieces(*prefix, zone, judge, &mut all),
        };
        let pieces = pieces.and_then(|pieces| known(*prefix, zone, judge).map(|()| pieces));
        let (pieces, problem) = pieces.map_or_else(|problem| (Vec::new(), Some(problem)), |pieces| (pieces, None));
        let mut used = false;
        for port in judge.ports(zone).filter(|port| port.open && port.address.is_ipv6() == prefix.is_ipv6()) {
            for piece in &pieces {
                found.used.entry(*piece).or_default().entry(port.address).or_insert(None);
                used = true;
            }
        }
        let doubt = judge.local.find_said(*prefix).filter(|_| problem.is_none());
        found.declared.insert(*prefix, Declared { zone: zone.clone(), used, problem, doubt });
    }
}

/// What of it is not closed, and not declared for another cluster.
fn pieces(prefix: Subnet, zone: &Name, judge: &Judge<'_>, all: &mut BTreeSet<Subnet>) -> Result<Vec<Subnet>, String> {
    let pieces = judge.pieces(prefix).filter(|pieces| all.len() + pieces.len() <= MOST_PREFIXES);
    let too_many = || {
        format!(
            "Subnets with disableInterConnection cut the declared prefixes into more than {MOST_PREFIXES}; close fewer, larger ranges"
        )
    };
    let mut pieces = pieces.ok_or_else(too_many)?;
    pieces.retain(|piece| behind(judge.declared, *piece).is_none_or(|(_, of)| of == zone));
    if pieces.is_empty() {
        return Err(
            "Subnets with disableInterConnection and longer prefixes for other clusters leave nothing of it; remove it"
                .into(),
        );
    }
    all.extend(&pieces);
    Ok(pieces)
}

/// Whether the cluster is there, with addresses of the family.
fn known(prefix: Subnet, zone: &Name, judge: &Judge<'_>) -> Result<(), String> {
    if !judge.peers.clusters.contains_key(zone) {
        return Err(format!(
            "it waits for cluster {zone}, which has not joined; correct the name, or have that cluster join"
        ));
    }
    let (mut ports, family) = (judge.ports(zone).peekable(), if prefix.is_ipv6() { "IPv6" } else { "IPv4" });
    if ports.peek().is_none() || ports.any(|port| port.address.is_ipv6() == prefix.is_ipv6()) {
        return Ok(());
    }
    Err(format!("cluster {zone} has no {family} address in a transit switch; give the switches a subnet of {family}"))
}
