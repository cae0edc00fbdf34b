//! Which keys go into one transaction.
//!
//! As many as there are, up to a limit, so that the reply does not hold up the next pod. But who may
//! talk to whom changes for all at the same moment: a transaction with a policy in it carries every
//! dirty pod that has a port already. What that costs is small, since such a pod is there but for its
//! places in groups and sets, and these are joined into an operation for each. And an address passes
//! from one port to another in one transaction: never do two have it, nor is one let in where the
//! other was.

use std::collections::{BTreeSet, HashSet};

use ovnkube_model::World;
use ovnkube_ovn::Row;
use ovnkube_ovn::nb::logical_switch_port as lsp;
use ovnkube_ovsdb::Cache;
use ovnkube_plan::{Access, Key, RowKey, access, decides_access};

use crate::diff::existing;

/// Takes the next keys out of `dirty`, in their order: `limit` of them, and beyond it those that must
/// change together.
pub fn take(dirty: &mut BTreeSet<Key>, limit: usize, world: &World, cache: Option<&Cache>) -> Vec<Key> {
    let Some(cache) = cache else { return first(dirty, limit) };
    let mut next =
        if dirty.iter().any(decides_access) { with_access(dirty, limit, world, cache) } else { first(dirty, limit) };
    add_former_holders(&mut next, dirty, world, cache);
    next
}

fn first(dirty: &mut BTreeSet<Key>, limit: usize) -> Vec<Key> {
    std::iter::from_fn(|| dirty.pop_first()).take(limit).collect()
}

/// All that say who may talk to whom, with the ports that this is about, and `limit` others.
fn with_access(dirty: &mut BTreeSet<Key>, limit: usize, world: &World, cache: &Cache) -> Vec<Key> {
    let mut others = 0;
    let mut is_next = |key: &Key| {
        let together = match access(key, world) {
            Access::Says => true,
            Access::Concerns(row) => existing(cache, &row).is_some(),
            Access::Nothing => false,
        };
        others += usize::from(!together);
        together || others <= limit
    };
    let (next, rest) = std::mem::take(dirty).into_iter().partition::<Vec<_>, _>(&mut is_next);
    dirty.extend(rest);
    next
}

/// Adds the pods whose ports still have what pods of `next` get, then those whose ports have what these
/// get instead, and so on.
fn add_former_holders(next: &mut Vec<Key>, dirty: &mut BTreeSet<Key>, world: &World, cache: &Cache) {
    let mut looked_at = 0;
    while !dirty.is_empty() {
        let gained: HashSet<String> = next.iter().skip(looked_at).flat_map(|key| gained(key, world, cache)).collect();
        if gained.is_empty() {
            return;
        }
        looked_at = next.len();
        let has_one = |key: &Key| port(key, cache).is_some_and(|row| words(row).any(|word| gained.contains(word)));
        let (former, rest) = std::mem::take(dirty).into_iter().partition::<Vec<_>, _>(has_one);
        next.extend(former);
        dirty.extend(rest);
    }
}

/// The addresses of a pod that its port does not have yet.
fn gained(key: &Key, world: &World, cache: &Cache) -> Vec<String> {
    let Key::Pods(pod) = key else { return Vec::new() };
    let Some(addresses) = world.pods.get(pod).and_then(|entry| entry.addresses.as_ref()) else { return Vec::new() };
    let wanted = addresses.port_address();
    let has = |word: &str| port(key, cache).is_some_and(|row| words(row).any(|w| w == word));
    wanted.split(' ').filter(|word| !has(word)).map(str::to_owned).collect()
}

/// The port of a pod as it is.
fn port<'a>(key: &Key, cache: &'a Cache) -> Option<&'a Row> {
    let Key::Pods(pod) = key else { return None };
    cache.get(lsp::TABLE, existing(cache, &RowKey::new(lsp::TABLE, pod.port_name()))?).map(|row| &**row)
}

/// MAC and IPs of a port.
fn words(port: &Row) -> impl Iterator<Item = &str> {
    port.strs(lsp::ADDRESSES).flat_map(|text| text.split(' '))
}
