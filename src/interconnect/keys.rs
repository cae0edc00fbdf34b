//! Tunnel keys: of transit switches and of the ports in them. All clusters use the same, so nobody's own may be among them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use ovnkube_ovn::Row;
use ovnkube_ovn::ic_nb::ic_nb_global;
use ovnkube_ovn::ic_sb::{datapath_binding, port_binding};
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

/// The keys that transit switches have in IC-SB.
pub(crate) struct Keys<'a> {
    has_vxlan: bool,
    /// The least one of each switch.
    of: BTreeMap<&'a str, i64>,
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
    pub(crate) fn read(databases: Databases<'a>) -> Self {
        let has_vxlan = has_vxlan(databases.ic_nb);
        let mut of = BTreeMap::new();
        for (_, row) in databases.ic_sb.iter(datapath_binding::TABLE).filter(|(_, row)| is_of_switch(row)) {
            let key = row.int(datapath_binding::TUNNEL_KEY);
            of.entry(row.str(datapath_binding::TRANSIT_SWITCH))
                .and_modify(|least| *least = key.min(*least))
                .or_insert(key);
        }
        Self { has_vxlan, of, taken: BTreeMap::new() }
    }

    fn may_be(&self, key: i64) -> bool {
        SWITCHES.contains(&key) || (self.has_vxlan && VXLAN_SWITCHES.contains(&key))
    }

    /// Orders switches by their age: a new one gets a higher key than those that are there, as long as there are higher ones (see
    /// [`next`]), and those that some cluster uses have one. Where clusters have VXLAN, keys of before are the high ones.
    pub(crate) fn age(&self, switch: &str) -> (bool, i64) {
        let key = self.of.get(switch).copied().filter(|key| self.may_be(*key));
        (key.is_none_or(|key| !SWITCHES.contains(&key)), key.unwrap_or(i64::MAX))
    }

    /// The key of a switch; `None`: nobody has chosen one. Fails if it cannot be used, or an earlier switch has it.
    pub(crate) fn of(&mut self, switch: &str) -> Result<Option<u32>, String> {
        let Some(key) = self.of.get(switch).copied() else { return Ok(None) };
        if !self.may_be(key) {
            let range = |keys: &RangeInclusive<i64>| format!("from {} to {}", keys.start(), keys.end());
            let vxlan = if self.has_vxlan { format!(", or {}", range(&VXLAN_SWITCHES)) } else { String::new() };
            return Err(format!("its tunnel key {key} is not one {}{vxlan}; {REMEDY}", range(&SWITCHES)));
        }
        if let Some(other) = self.taken.get(&key) {
            return Err(format!("transit switch {other} has its tunnel key {key} too; {REMEDY}"));
        }
        self.taken.insert(key, switch.to_owned());
        Ok(u32::try_from(key).ok())
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
