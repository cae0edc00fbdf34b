//! One step towards what is wanted, from what the databases hold now.

use std::collections::BTreeSet;

use ovnkube_model::{Name, OwnPort, Peers, TransitSwitch};
use ovnkube_ovn::ic_sb::datapath_binding;
use ovnkube_ovn::{Row, Uuid, ic_nb, ic_sb, sb};
use ovnkube_ovsdb_data::{Cache, Txn};
use ovnkube_plan::Offer;

use crate::databases::{Databases, number, raise};
use crate::former::{Former, Stage};
use crate::hearing::Numbers;
use crate::ours::{Moment, Ours};
use crate::rows::{is_of, rows_of_all, zone_of};
use crate::switches::{Reader, Switch};
use crate::text::PROBLEMS;
use crate::theirs::Theirs;
use crate::ways::{Way, Ways};
use crate::{chassis, claim, joinable, renamed, switches};

/// What to write, and what the databases say.
pub struct Step {
    /// To IC-NB.
    pub claims: Txn,
    /// To IC-SB.
    pub offers: Txn,
    /// To SB.
    pub chassis: Txn,
    pub peers: Peers,
    pub numbers: Numbers,
    /// The ways that are open.
    pub open: BTreeSet<Way>,
    /// Which gateways of this cluster carry nothing, and why.
    pub idle: Option<String>,
    /// Keys of switches that are not there.
    pub stale: BTreeSet<Uuid>,
    /// There is more to do once the others had time to follow: the cluster gets another name.
    pub goes_on: bool,
    /// The cluster has no earlier name here: that routes which it wrote itself are there changes nothing else.
    pub has_one_name: bool,
    /// There is more to do a second later.
    pub is_soon: bool,
}

/// The next step. Where nothing differs, all transactions are empty. NB tells which ways are used; where it is not known, only open
/// ones count.
pub fn step(offer: &Offer, databases: Databases<'_>, nb: Option<&Cache>, moment: Moment<'_>) -> Step {
    // those of this cluster, and those of what others wrote
    let (mut own_problems, mut problems) = (Vec::new(), Vec::new());
    let (mut claims, mut offers) = (Txn::new(&ic_nb::DATABASE), Txn::new(&ic_sb::DATABASE));
    let mut chassis = Txn::new(&sb::DATABASE);
    let ours = Ours::find(offer, databases);
    let (ic_sb, name) = (databases.ic_sb, offer.wanted.zone.as_ref());
    let zone = zone_of(ic_sb, name);
    let former = Former::find(ic_sb, Some(databases.sb), offer, zone);
    problems.extend(former.problems());
    // a name that another cluster has is that cluster's, unless this one was there before
    let own = if ours.is_ok() { name } else { "" };
    let names = former.names();
    let reader = Reader { databases, nb, offer, zone: own, former: &names };
    let mut switches = switches::read(reader, &mut problems);
    if !moment.is_partial {
        claim::give_up(&mut switches, reader);
    }
    own_problems.extend(switches::missing_family(&offer.prefixes, &switches));
    let mut theirs = Theirs::read(reader, &switches, &mut problems);
    joinable::restrict(&mut switches, &mut theirs, reader, &mut own_problems);
    theirs.order(&switches);
    renamed::note(&mut theirs, &mut problems);
    let (mut stage, mut idle, mut new_gateways, mut carrying) = (Stage::Attach, None, BTreeSet::new(), BTreeSet::new());
    let (mut is_soon, mut stale_keys) = (false, BTreeSet::new());
    match ours {
        Ok(mut ours) => {
            ours.look(&switches);
            is_soon = ours.has_new_gateway(moment.now);
            (new_gateways, carrying) = (ours.new_gateways(moment.now), ours.carrying());
            if !moment.is_partial {
                stale_keys = ours.stale_datapaths().collect();
                claim::write(&mut claims, reader, &switches, &theirs, &mut own_problems);
            }
            idle = ours.idle();
            stage = ours.write(&mut offers, &switches, &former, moment, &mut own_problems);
            for key in moment.stale.iter().filter(|key| stale_keys.contains(key)) {
                offers.delete(datapath_binding::TABLE, *key);
            }
        }
        Err(problem) => own_problems.push(problem),
    }
    chassis::write(&mut chassis, databases.sb, &theirs, Some(offer), &mut problems);
    let ways = Ways::find(nb, databases.sb, &switches, &theirs, moment.known);
    let ports = ways.ports(&theirs);
    let (routes, waiting) = theirs.routes.drain(..).partition(|route| ways.has(route));
    let peers = Peers {
        switches: switches.iter().filter_map(|switch| transit(switch, stage, &theirs)).collect(),
        ports,
        routes,
        waiting,
        clusters: theirs.clusters,
        new_gateways,
        carrying,
        problems: first(own_problems, problems),
    };
    let asked = number(databases.ic_nb).map(|(_, number)| number);
    let numbers = Numbers { asked, answers: theirs.answers, followers: theirs.followers };
    let goes_on = !moment.is_settled && stage != Stage::Done;
    let (open, has_one_name) = (ways.open(), stage == Stage::Done);
    Step { claims, offers, chassis, peers, numbers, open, idle, stale: stale_keys, goes_on, has_one_name, is_soon }
}

/// The problems that people are told: each becomes an Event, and many would keep those of pods and nodes from being written.
fn first(own: Vec<String>, others: Vec<String>) -> Vec<String> {
    let mut all = own;
    all.extend(others);
    let more = all.len().saturating_sub(PROBLEMS);
    all.truncate(PROBLEMS);
    if more > 0 {
        all.push(format!("the shared databases hold {more} more things that cannot be used; correct the first ones"));
    }
    all
}

/// Asks who is there; see [`crate::Hearing`]. `now`: seconds since 1970.
pub fn ask(ic_nb: &Cache, now: u64) -> Txn {
    raise(ic_nb, i64::MIN, now).unwrap_or_else(|| Txn::new(&ic_nb::DATABASE))
}

/// Whether IC-SB has rows of this cluster, of any name that it had.
pub fn has_rows(offer: &Offer, Databases { ic_sb, sb, .. }: Databases<'_>) -> bool {
    let own = zone_of(ic_sb, &offer.wanted.zone);
    let is_own = |row: &Row, zone: Option<Uuid>| own.is_some() && zone == own && is_of(row, &offer.cluster);
    rows_of_all(ic_sb).any(|(_, row, zone)| is_own(row, zone)) || !Former::find(ic_sb, Some(sb), offer, own).is_empty()
}

/// Whether IC-SB has a zone of this name.
pub fn has_zone(ic_sb: &Cache, name: &str) -> bool {
    zone_of(ic_sb, name).is_some()
}

/// Whether IC-SB has a zone of this name, and nothing of others in it.
pub fn has_own_zone(ic_sb: &Cache, name: &str, cluster: &str) -> bool {
    let zone = zone_of(ic_sb, name);
    zone.is_some() && rows_of_all(ic_sb).all(|(_, row, of)| of != zone || is_of(row, cluster))
}

/// What removes this cluster from IC-SB, and nothing of a cluster of the same name. The addresses in IC-NB stay claimed, so that
/// the cluster has them again if it comes back. `was_here`: this process has taken steps there.
pub fn withdraw(offer: &Offer, databases: Databases<'_>, was_here: bool) -> Txn {
    Ours::removal(offer, databases, was_here)
}

/// What removes the other clusters' chassis from SB.
pub fn forget(sb: &Cache) -> Txn {
    let mut txn = Txn::new(&sb::DATABASE);
    chassis::write(&mut txn, sb, &Theirs::default(), None, &mut Vec::new());
    txn
}

/// A switch can be used once it has its key and this cluster its address. Packets leave by the port under the earlier name until
/// the others have routes to the new one.
fn transit(switch: &Switch, stage: Stage, theirs: &Theirs) -> Option<(Name, TransitSwitch)> {
    let former = switch.former.first().filter(|_| stage < Stage::Withdraw || switch.own.is_none());
    let leaves_by = &former.or(switch.own.as_ref()).or(switch.former.first())?.zone;
    let own = switch.ports().map(|port| if port.zone == *leaves_by { port.clone() } else { alone(port) }).collect();
    let remote = theirs.ports.iter().filter(|port| port.switch == switch.name);
    let remote = remote.map(|port| (port.name.clone(), port.remote.clone())).collect();
    Some((switch.name.clone(), TransitSwitch { key: switch.key?, own, remote }))
}

/// The port without a subnet: packets reach it, and leave by another one.
fn alone(port: &OwnPort) -> OwnPort {
    let addresses = port.addresses.iter().map(|net| net.ip().into()).collect();
    OwnPort { addresses, ..port.clone() }
}
