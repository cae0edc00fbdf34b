//! Tunnel keys: of transit switches and of the ports in them. All clusters use the same, so nobody's own may be among them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use ovnkube_ovn::Row;
use ovnkube_ovn::ic_nb::ic_nb_global;
use ovnkube_ovn::ic_sb::{datapath_binding, port_binding};
use ovnkube_ovn::nb::logical_switch as ls;
use ovnkube_ovsdb_data::Cache;

use crate::databases::Databases;

/// Keys of transit switches. Those below are for what a cluster has alone.
const SWITCHES: RangeInclusive<i64> = 16_711_681..=16_777_215;
/// The same where clusters have tunnels of VXLAN.
const VXLAN_SWITCHES: RangeInclusive<i64> = 1024..=4095;
pub(crate) const PORTS: RangeInclusive<i64> = 1..=32_767;
/// Type of rows of transit switches, where the schema tells them from those of transit routers.
pub(crate) const SWITCH: &str = "transit-switch";

const REMEDY: &str = "remove its row of Datapath_Binding in IC-SB, and a cluster chooses another key";
/// Key of `other_config` with the tunnel key that a switch of NB has.
const REQUESTED: &str = "requested-tnl-key";

/// The keys that transit switches have in IC-SB.
pub(crate) struct Keys<'a> {
    has_vxlan: bool,
    /// All that are written for each switch.
    of: BTreeMap<&'a str, BTreeSet<i64>>,
    /// Where it is known.
    nb: Option<&'a Cache>,
    taken: BTreeMap<i64, String>,
}

fn has_vxlan(ic_nb: &Cache) -> bool {
    let globals = ic_nb.iter(ic_nb_global::TABLE);
    globals.map(|(_, row)| row.map(ic_nb_global::OPTIONS)).any(|o| o.get("vxlan_mode") == Some("true"))
}

/// The keys that switches get which have none.
pub(crate) fn new(ic_nb: &Cache) -> RangeInclusive<i64> {
    if has_vxlan(ic_nb) { VXLAN_SWITCHES } else { SWITCHES }
}

/// The key of what is new: higher than those in use, as long as there are higher ones, and then the lowest that is free.
pub(crate) fn next(range: &RangeInclusive<i64>, taken: &BTreeSet<i64>) -> Option<i64> {
    let above = taken.range(range.clone()).next_back().map_or(*range.start(), |key| key + 1);
    std::iter::once(above).chain(range.clone()).find(|key| range.contains(key) && !taken.contains(key))
}

impl<'a> Keys<'a> {
    pub(crate) fn read(databases: Databases<'a>, nb: Option<&'a Cache>) -> Self {
        let has_vxlan = has_vxlan(databases.ic_nb);
        let mut of: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
        for (_, row) in databases.ic_sb.iter(datapath_binding::TABLE).filter(|(_, row)| is_of_switch(row)) {
            let keys = of.entry(row.str(datapath_binding::TRANSIT_SWITCH)).or_default();
            keys.insert(row.int(datapath_binding::TUNNEL_KEY));
        }
        Self { has_vxlan, of, nb, taken: BTreeMap::new() }
    }

    fn may_be(&self, key: i64) -> bool {
        SWITCHES.contains(&key) || (self.has_vxlan && VXLAN_SWITCHES.contains(&key))
    }

    /// The keys of a switch, the least first. Everyone can write one more for it: what no switch may have does not count.
    fn usable(&self, switch: &str) -> impl Iterator<Item = i64> {
        self.of.get(switch).into_iter().flatten().copied().filter(move |key| self.may_be(*key))
    }

    /// Whether this cluster has the switch already, with this key.
    fn has(&self, switch: &str, key: i64) -> bool {
        let Some(nb) = self.nb else { return false };
        let key = key.to_string();
        nb.named(ls::TABLE, switch).any(|(_, row)| row.map(ls::OTHER_CONFIG).get(REQUESTED) == Some(key.as_str()))
    }

    /// Orders switches by their age: a new one gets a higher key than those that are there, as long as there are higher ones (see
    /// [`next`]), and those that some cluster uses have one. Where clusters have VXLAN, keys of before are the high ones.
    ///
    /// Of two with one key the one that this cluster has with it is the first: who writes that key for another switch does not change
    /// our northbound database. A cluster that has neither cannot know, since all that the shared databases hold can be anybody's.
    pub(crate) fn age(&self, switch: &str) -> (bool, i64, bool) {
        let key = self.usable(switch).next();
        let is_here = key.is_some_and(|key| self.has(switch, key));
        (key.is_none_or(|key| !SWITCHES.contains(&key)), key.unwrap_or(i64::MAX), !is_here)
    }

    /// The key of a switch; `None`: nobody has chosen one. Fails if it has none that can be used, or only those of earlier switches.
    pub(crate) fn of(&mut self, switch: &str) -> Result<Option<u32>, String> {
        let Some(key) = self.usable(switch).find(|key| !self.taken.contains_key(key)) else {
            return self.unusable(switch).map_or(Ok(None), Err);
        };
        self.taken.insert(key, switch.to_owned());
        Ok(u32::try_from(key).ok())
    }

    /// Why none of the keys of a switch can be used; `None`: it has none.
    fn unusable(&self, switch: &str) -> Option<String> {
        let key = self.of.get(switch)?.first()?;
        if let Some((key, other)) = self.usable(switch).find_map(|key| Some((key, self.taken.get(&key)?))) {
            return Some(format!("transit switch {other} has its tunnel key {key} too; {REMEDY}"));
        }
        Some(format!("its tunnel key {key} is not {}; {REMEDY}", self.ranges()))
    }

    /// What else somebody has written for a switch that has a key.
    pub(crate) fn stray(&self, switch: &str) -> Option<String> {
        let key = self.of.get(switch)?.iter().find(|key| !self.may_be(**key))?;
        Some(format!(
            "transit switch {switch} also has a tunnel key {key}, which is not {} and is not used; remove that row of \
             Datapath_Binding in IC-SB",
            self.ranges()
        ))
    }

    fn ranges(&self) -> String {
        let range = |keys: &RangeInclusive<i64>| format!("from {} to {}", keys.start(), keys.end());
        let vxlan = if self.has_vxlan { format!(", or {}", range(&VXLAN_SWITCHES)) } else { String::new() };
        format!("one {}{vxlan}", range(&SWITCHES))
    }
}

pub(crate) fn is_of_switch(row: &Row) -> bool {
    let kind = row.str(datapath_binding::TYPE);
    kind.is_empty() || kind == SWITCH
}

/// The key of a port, if ports may have it.
pub(crate) fn port_key(row: &Row) -> Option<u32> {
    let key = row.int(port_binding::TUNNEL_KEY);
    u32::try_from(key).ok().filter(|_| PORTS.contains(&key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_joins_later_gets_a_higher_key() {
        let next = |taken: &[i64]| next(&PORTS, &taken.iter().copied().collect());
        assert_eq!([next(&[]), next(&[1]), next(&[2, 5])], [Some(1), Some(2), Some(6)]);
        assert_eq!([next(&[0]), next(&[-7, 99_999])], [Some(1), Some(1)]);
        assert_eq!([next(&[32_767]), next(&[1, 2, 32_767])], [Some(1), Some(3)]);
        assert_eq!(super::next(&PORTS, &PORTS.collect()), None);
    }
}
