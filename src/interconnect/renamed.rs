//! Another cluster that gets another name has ports of both for a while, and offers its prefixes by both.
//!
//! That two names are one cluster's is not read from its mark: everyone who reads IC-SB can write the mark of another cluster. It is read
//! from what nobody does without changing rows of that cluster: the ports of the earlier name are on gateways that have gone over to the
//! zone of the new one. What has only the mark counts as a cluster of its own, and is named.

use std::collections::{BTreeMap, BTreeSet};

use ovnkube_model::Name;

use crate::rows::CLUSTER;
use crate::text::{first, remove_zone, short};
use crate::theirs::Theirs;

/// The most clusters that a message names.
const NAMED: usize = 5;

/// What the ports of a zone say.
#[derive(Default)]
struct Zone<'a> {
    marks: BTreeSet<Option<&'a Name>>,
    /// Zones and marks of the gateways that the ports are on.
    on: BTreeSet<(&'a Name, Option<&'a Name>)>,
}

/// Notes which clusters get another name. Each must have its place among the others.
pub(crate) fn note(theirs: &mut Theirs, problems: &mut Vec<String>) {
    let zones = zones(theirs);
    let new_names = zones.keys().filter_map(|zone| Some(((*zone).clone(), new_name(theirs, &zones, zone)?.clone())));
    let new_names: BTreeMap<Name, Name> = new_names.collect();
    problems.extend(same_marks(&zones, &new_names));
    for (zone, cluster) in &mut theirs.clusters {
        cluster.new_name = new_names.get(zone).cloned();
    }
}

fn zones(theirs: &Theirs) -> BTreeMap<&Name, Zone<'_>> {
    let mut zones: BTreeMap<&Name, Zone<'_>> = BTreeMap::new();
    for port in &theirs.ports {
        let zone = zones.entry(&port.zone).or_default();
        zone.marks.insert(port.cluster.as_ref());
        let gateway = theirs.gateways.get(&port.gateway);
        zone.on.extend(gateway.map(|gateway| (&gateway.zone, gateway.cluster.as_ref())));
    }
    zones
}

/// The name that a cluster gets: it has the gateways of this one now. A new name has higher tunnel keys, as every cluster that joins.
fn new_name<'a>(theirs: &'a Theirs, zones: &BTreeMap<&Name, Zone<'a>>, zone: &Name) -> Option<&'a Name> {
    let of = zones.get(zone)?;
    let (new, mark) = of.on.first().copied().filter(|(new, _)| of.on.len() == 1 && *new != zone)?;
    let has_mark = |zone: &Zone<'_>| mark.is_some() && zone.marks.iter().all(|other| *other == mark);
    let place = |zone: &Name| theirs.clusters.get(zone).map(|cluster| cluster.place);
    let is_later = || zones.get(new).is_none_or(|later| has_mark(later) && place(zone) < place(new));
    (has_mark(of) && is_later()).then_some(new)
}

/// Clusters that have the same mark, and are not one.
fn same_marks(zones: &BTreeMap<&Name, Zone<'_>>, new_names: &BTreeMap<Name, Name>) -> Vec<String> {
    let mut names: BTreeMap<&Name, BTreeSet<&Name>> = BTreeMap::new();
    for (zone, of) in zones {
        for mark in of.marks.iter().flatten() {
            names.entry(mark).or_default().insert(new_names.get(*zone).unwrap_or(zone));
        }
    }
    let several = names.into_iter().filter(|(_, names)| names.len() > 1);
    several.map(|(mark, names)| same_mark(mark, &names)).collect()
}

fn same_mark(mark: &Name, names: &BTreeSet<&Name>) -> String {
    let remedies: Vec<String> = names.iter().take(NAMED).map(|name| remove_zone(name)).collect();
    format!(
        "clusters {} have the same mark ({CLUSTER} {}) and gateways of their own: one is a copy of another, or has written its mark. Each \
         counts as a cluster of its own; have the copy leave, or if one is gone for good: {}",
        first(names.iter().copied().map(AsRef::<str>::as_ref), NAMED),
        short(mark),
        remedies.join(", or ")
    )
}
