//! Claims of addresses in transit switches.

use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_ovn::ic_nb::transit_switch;
use ovnkube_ovsdb_data::Txn;
use ovnkube_plan::Offer;

use crate::addresses::choose;
use crate::switches::{CLAIM, Switch};
use crate::theirs::Theirs;

/// Claims an address in each subnet of a switch where this cluster has none. If another cluster claims one meanwhile, nothing is
/// written, and the next step sees it.
pub(crate) fn write(txn: &mut Txn, offer: &Offer, switches: &[Switch], theirs: &Theirs, problems: &mut Vec<String>) {
    let zone = &offer.wanted.zone;
    for switch in switches {
        let subnets = switch.unclaimed();
        if subnets.is_empty() {
            continue;
        }
        let own = || switch.own.iter().flat_map(|port| &port.addresses).map(IpNetwork::ip);
        let former = switch.former.iter().flat_map(|port| &port.addresses).map(IpNetwork::ip);
        let taken = switch.claimed.iter().copied().chain(used(switch, theirs)).chain(former).collect();
        let Some(chosen) = choose(&format!("{zone} {}", switch.name), &subnets, &taken) else {
            let subnets: Vec<String> = subnets.iter().map(ToString::to_string).collect();
            problems.push(format!(
                "no address is free for this cluster in {} of transit switch {}; give the switch a larger subnet in IC-NB, or remove \
                 {CLAIM}NAME from its external_ids for each cluster NAME that is gone for good",
                subnets.join(" and "),
                switch.name
            ));
            continue;
        };
        let texts: Vec<String> = own().chain(chosen).map(|ip| ip.to_string()).collect();
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
