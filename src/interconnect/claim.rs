//! Claims of addresses in transit switches.

use ipnetwork::IpNetwork;
use ovnkube_ovn::ic_nb::transit_switch;
use ovnkube_ovsdb_data::Txn;
use ovnkube_plan::Offer;

use crate::addresses::choose;
use crate::switches::{CLAIM, Switch};
use crate::theirs::Theirs;

/// Claims an address in each subnet of a switch where this cluster has none. If another cluster claims one meanwhile, nothing is
/// written, and the next step sees it.
pub(crate) fn write(txn: &mut Txn, offer: &Offer, switches: &[Switch], theirs: &Theirs) {
    let zone = &offer.wanted.zone;
    for switch in switches {
        let subnets = switch.unclaimed();
        if subnets.is_empty() {
            continue;
        }
        let own = || switch.own.iter().flat_map(|port| &port.addresses).map(IpNetwork::ip);
        let ports = theirs.ports.iter().filter(|port| port.switch == switch.name);
        let former = switch.former.iter().flat_map(|port| &port.addresses).map(IpNetwork::ip);
        let theirs = ports.flat_map(|port| &port.addresses);
        let taken = switch.claimed.iter().chain(theirs).copied().chain(former).collect();
        let Some(chosen) = choose(&format!("{zone} {}", switch.name), &subnets, &taken) else { continue };
        let texts: Vec<String> = own().chain(chosen).map(|ip| ip.to_string()).collect();
        txn.wait_holds(switch.uuid, switch.external_ids.clone());
        let claim = [(format!("{CLAIM}{zone}"), texts.join(" "))];
        txn.set_keys(transit_switch::TABLE, switch.uuid, transit_switch::EXTERNAL_IDS, claim);
    }
}
