//! Claims of addresses in transit switches.

use ovnkube_ovn::ic_nb::transit_switch;
use ovnkube_ovsdb_data::Txn;
use ovnkube_plan::Offer;

use crate::addresses::choose;
use crate::switches::{CLAIM, Switch};
use crate::theirs::Theirs;

/// Claims an address in each switch where this cluster has none. If another cluster claims one meanwhile, nothing is
/// written, and the next step sees it.
pub(crate) fn write(txn: &mut Txn, offer: &Offer, switches: &[Switch], theirs: &Theirs) {
    let zone = &offer.wanted.zone;
    for switch in switches.iter().filter(|switch| switch.own.is_none()) {
        let ports = theirs.ports.iter().filter(|port| port.switch == switch.name);
        let taken = switch.claimed.iter().chain(ports.flat_map(|port| &port.addresses)).copied().collect();
        let Some(chosen) = choose(&format!("{zone} {}", switch.name), &switch.subnets, &taken) else { continue };
        let texts: Vec<String> = chosen.iter().map(ToString::to_string).collect();
        txn.wait_holds(switch.uuid, switch.external_ids.clone());
        let claim = [(format!("{CLAIM}{zone}"), texts.join(" "))];
        txn.set_keys(transit_switch::TABLE, switch.uuid, transit_switch::EXTERNAL_IDS, claim);
    }
}
