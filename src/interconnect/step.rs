//! One step towards what is wanted, from what the databases hold now.

use ovnkube_model::{Peers, TransitSwitch};
use ovnkube_ovn::{ic_nb, ic_sb, sb};
use ovnkube_ovsdb_data::{Cache, Txn};
use ovnkube_plan::Offer;

use crate::databases::Databases;
use crate::ours::Ours;
use crate::switches::Switch;
use crate::theirs::Theirs;
use crate::{chassis, claim, switches};

/// What to write, and what the databases say.
pub struct Step {
    /// To IC-NB.
    pub claims: Txn,
    /// To IC-SB.
    pub offers: Txn,
    /// To SB.
    pub chassis: Txn,
    pub peers: Peers,
}

/// The next step. Where nothing differs, all transactions are empty.
pub fn step(offer: &Offer, databases: Databases<'_>) -> Step {
    let mut problems = Vec::new();
    let (mut claims, mut offers) = (Txn::new(&ic_nb::DATABASE), Txn::new(&ic_sb::DATABASE));
    let mut chassis = Txn::new(&sb::DATABASE);
    let switches = switches::read(databases, &offer.wanted.zone, &mut problems);
    let theirs = Theirs::read(databases.ic_sb, &offer.wanted.zone, &switches, &mut problems);
    match Ours::find(offer, databases) {
        Ok(ours) => {
            claim::write(&mut claims, offer, &switches, &theirs);
            ours.write(&mut offers, &switches, &mut problems);
        }
        Err(problem) => problems.push(problem),
    }
    chassis::write(&mut chassis, databases.sb, &theirs, &mut problems);
    let peers = Peers {
        switches: switches.iter().filter_map(|switch| transit(switch, &theirs)).collect(),
        routes: theirs.routes,
        clusters: theirs.clusters,
        problems,
    };
    Step { claims, offers, chassis, peers }
}

/// What removes this cluster from IC-SB. The addresses in IC-NB stay claimed, so that the cluster has them again if it comes
/// back.
pub fn withdraw(offer: &Offer, databases: Databases<'_>) -> Txn {
    let mut offers = Txn::new(&ic_sb::DATABASE);
    if let Ok(ours) = Ours::find(offer, databases) {
        ours.remove(&mut offers);
    }
    offers
}

/// What removes the other clusters' chassis from SB.
pub fn forget(sb: &Cache) -> Txn {
    let mut txn = Txn::new(&sb::DATABASE);
    chassis::write(&mut txn, sb, &Theirs::default(), &mut Vec::new());
    txn
}

/// A switch can be used once it has its key and this cluster its address.
fn transit(switch: &Switch, theirs: &Theirs) -> Option<(ovnkube_model::Name, TransitSwitch)> {
    let own = switch.own.clone()?;
    let remote = theirs.ports.iter().filter(|port| port.switch == switch.name);
    let remote = remote.map(|port| (port.name.clone(), port.remote.clone())).collect();
    Some((switch.name.clone(), TransitSwitch { key: switch.key?, own, remote }))
}
