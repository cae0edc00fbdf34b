//! Claims of addresses in transit switches.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_model::Subnet;
use ovnkube_ovn::Row;
use ovnkube_ovn::ic_nb::transit_switch;
use ovnkube_ovn::ic_sb::{availability_zone, port_binding};
use ovnkube_ovsdb_data::Txn;
use ovnkube_plan::names;

use crate::addresses::choose;
use crate::switches::{CLAIM, Reader, Switch};
use crate::theirs::{Theirs, read_address};

/// Gives up claims of addresses that ports of other clusters have, where this cluster has no port with them itself. Clusters with OVN's own
/// daemon read no claims: one may have taken an address while this cluster was away, or had no port yet.
pub(crate) fn give_up(switches: &mut [Switch], reader: Reader<'_>) {
    let Some(nb) = reader.nb else { return };
    for switch in switches {
        let Some(own) = &switch.own else { continue };
        let have: BTreeSet<IpAddr> = switch.networks(nb, reader.zone).iter().map(IpNetwork::ip).collect();
        let is_had = |net: &IpNetwork| have.contains(&net.ip());
        // mostly it has all of them
        if own.addresses.iter().all(is_had) {
            continue;
        }
        let others = of_others(switch, reader);
        let is_lost = |net: &&IpNetwork| !is_had(net) && others.contains(&net.ip());
        let lost: BTreeSet<IpAddr> = own.addresses.iter().filter(is_lost).map(IpNetwork::ip).collect();
        switch.give_up(lost);
    }
}

/// The addresses in a switch that ports of other clusters have, also those that cannot be used.
fn of_others(switch: &Switch, reader: Reader<'_>) -> BTreeSet<IpAddr> {
    let ic_sb = reader.databases.ic_sb;
    // somebody may have put it into another zone
    let own = names::transit(&switch.name, reader.zone).switch_side;
    let is_other = |port: &Row| {
        let zone = port.uuid(port_binding::AVAILABILITY_ZONE);
        let name =
            zone.and_then(|uuid| ic_sb.get(availability_zone::TABLE, uuid)).map(|row| row.str(availability_zone::NAME));
        let is_of_other = name.is_some_and(|name| name != reader.zone && !reader.former.contains(name));
        is_of_other && port.str(port_binding::LOGICAL_PORT) != own
    };
    let ports = ic_sb.iter(port_binding::TABLE).map(|(_, row)| row);
    let ports = ports.filter(|row| row.str(port_binding::TRANSIT_SWITCH) == switch.name.as_ref() && is_other(row));
    let addresses = ports.filter_map(|row| Some(read_address(row.str(port_binding::ADDRESS))?.1));
    addresses.flatten().map(|net| net.ip()).collect()
}

/// Claims an address in each subnet of a switch where this cluster claims none: that which its port has, if nobody else has it. If another
/// cluster claims one meanwhile, nothing is written, and the next step sees it.
pub(crate) fn write(
    txn: &mut Txn,
    reader: Reader<'_>,
    switches: &[Switch],
    theirs: &Theirs,
    problems: &mut Vec<String>,
) {
    let zone = &reader.offer.wanted.zone;
    for switch in switches {
        if switch.unclaimed().is_empty() {
            continue;
        }
        let own: BTreeSet<IpAddr> = switch.own.iter().flat_map(|port| &port.addresses).map(IpNetwork::ip).collect();
        let former = switch.former.iter().flat_map(|port| &port.addresses).map(IpNetwork::ip);
        let taken: BTreeSet<IpAddr> =
            switch.claimed.iter().copied().chain(used(switch, theirs)).chain(former).collect();
        let subnets = switch.without(&own);
        // as after a move to other databases
        let had = reader.nb.map(|nb| switch.networks(nb, zone)).unwrap_or_default();
        let is_free = |subnet: &Subnet, ip: &IpAddr| subnet.contains(*ip) && !taken.contains(ip);
        let stays = |subnet: &Subnet| had.iter().map(IpNetwork::ip).find(|ip| is_free(subnet, ip));
        let chosen: Option<Vec<IpAddr>> = subnets.iter().map(stays).collect();
        let chosen = chosen.or_else(|| choose(&format!("{zone} {}", switch.name), &subnets, &taken));
        let Some(chosen) = chosen else {
            let subnets: Vec<String> = subnets.iter().map(ToString::to_string).collect();
            problems.push(format!(
                "no address is free for this cluster in {} of transit switch {}; give the switch a larger subnet in IC-NB, or remove \
                 {CLAIM}NAME from its external_ids for each cluster NAME that is gone for good",
                subnets.join(" and "),
                switch.name
            ));
            continue;
        };
        let texts: Vec<String> = own.into_iter().chain(chosen).map(|ip| ip.to_string()).collect();
        txn.wait_holds(switch.uuid, switch.external_ids.clone());
        let claim = [(format!("{CLAIM}{zone}"), texts.join(" "))];
        txn.set_keys(transit_switch::TABLE, switch.uuid, transit_switch::EXTERNAL_IDS, claim);
    }
}

/// Addresses that the others' ports have in a switch.
fn used<'a>(switch: &'a Switch, theirs: &'a Theirs) -> impl Iterator<Item = IpAddr> {
    let ports = theirs.ports.iter().filter(|port| port.switch == switch.name);
    ports.flat_map(|port| &port.addresses).copied()
}
