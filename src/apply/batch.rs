//! Chooses the keys that go into one transaction.
//!
//! As many as there are, up to a limit: the reply must not delay the next pod, and a cluster's servers must agree on
//! the transaction within the election timer. The limit applies only to what is new.
//! Who may talk to whom changes for all at the same moment: every waiting policy and namespace, and every pod that
//! already has a port, goes along. That costs little, since such a pod changes only its places in groups and sets, and
//! these are joined into one operation each. So an address also moves between ports in one transaction: two ports never
//! have it at once, and none gets in where only the other was allowed.
//!
//! While no pod has a port, nobody can talk: a database is filled in limited transactions, and pods get their ports after
//! everything that says who may talk to them.

use std::collections::{BTreeSet, HashSet};

use ovnkube_model::World;
use ovnkube_ovn::Row;
use ovnkube_ovn::nb::logical_switch_port as lsp;
use ovnkube_ovsdb::Cache;
use ovnkube_plan::{Access, Key, RowKey, Want, access, is_prefix, put_in_order};

use crate::diff::existing;
use crate::owner_index::{Owned, OwnerIndex};

/// Limits on the keys of one transaction.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Of keys that may be written one by one: large enough to carry a burst.
    pub others: usize,
    /// Of all keys, even those that should change together: a transaction that is too large must not be repeated.
    pub all: usize,
}

/// A key for the next transaction.
#[derive(Debug)]
pub struct Next {
    pub key: Key,
    /// It may go into a later transaction if this one grows too large.
    pub may_wait: bool,
}

/// Takes the next keys out of `dirty`: those that must change together, and some others. New endpoints come last, the rest
/// in order.
pub fn take(
    dirty: &mut BTreeSet<Key>,
    limits: Limits,
    world: &World,
    owner_index: &OwnerIndex,
    cache: Option<&Cache>,
) -> Vec<Next> {
    if dirty.is_empty() {
        return Vec::new();
    }
    // others knew the pod by its node's address, whatever it is now
    let was_in_host_network =
        |key: &Key| owner_index.get(key).is_some_and(|had| had.rows.is_empty() && !had.members.is_empty());
    let mut is_filled = cache.is_none_or(has_pods);
    let (mut ordered, mut endpoints) = (Vec::new(), Vec::new());
    let mut keys: Vec<Key> = std::mem::take(dirty).into_iter().collect();
    put_in_order(&mut keys, world);
    for key in keys {
        let belongs = match access(&key, world) {
            Access::Says => true,
            Access::Nothing => false,
            Access::Concerns(row) if exists(&row, cache) => true,
            Access::Concerns(_) if was_in_host_network(&key) => {
                // in one transaction it stops being known by its node's address and gets a port: no other pod comes before
                is_filled |= matches!(key, Key::Pods(_));
                true
            }
            Access::Concerns(_) => {
                endpoints.push((key, false));
                continue;
            }
        };
        ordered.push((key, belongs));
    }
    let (mut next, mut others) = (Vec::new(), 0);
    for (key, belongs) in ordered.into_iter().chain(endpoints) {
        let may_wait = !(belongs && is_filled);
        others += usize::from(may_wait);
        if next.len() < limits.all && (!may_wait || others <= limits.others) {
            next.push(Next { key, may_wait });
        } else {
            dirty.insert(key);
        }
    }
    next
}

/// Whether ways to other clusters are among the keys that are still to be written. A sweep then leaves the ways of before: some of the new
/// ones may go into a later transaction, and packets would have none until then.
pub fn has_ways<'a>(mut keys: impl Iterator<Item = &'a Key>) -> bool {
    keys.any(is_prefix)
}

/// Takes those out of `failed`, keys that wait for another try, that must change together with whatever is written next: a pod
/// that is gone still has its port, and its address may be a new pod's by now; a node that is gone still has its switch and its
/// gateway, and its subnet and its number may be a new node's. With ways to other clusters that are `dirty` go all others: these may go
/// because those come, and packets would have none until a wait is over that may be long.
pub fn take_along(
    failed: &mut BTreeSet<Key>,
    dirty: &BTreeSet<Key>,
    world: &World,
    cache: Option<&Cache>,
) -> BTreeSet<Key> {
    let ways_go = has_ways(dirty.iter());
    let goes_along = |key: &Key| match access(key, world) {
        Access::Says => true,
        Access::Nothing => matches!(key, Key::Topology(_) | Key::Gateways(_)) || (ways_go && is_prefix(key)),
        Access::Concerns(row) => exists(&row, cache),
    };
    let (along, others) = std::mem::take(failed).into_iter().partition(goes_along);
    *failed = others;
    along
}

/// Whether the port of a pod has addresses that the pod of this name no longer has: they may be another pod's by now, so they are
/// taken back even while the key waits.
pub fn has_lost_addresses(key: &Key, want: &Want, had: &Owned, cache: &Cache) -> bool {
    let is_other = |row: &RowKey| {
        let have = existing(cache, row).and_then(|uuid| cache.get(row.table, uuid)?.get(lsp::ADDRESSES));
        let wanted = want.rows.iter().find(|want| want.key == *row).and_then(|want| want.row.get(lsp::ADDRESSES));
        have.is_some() && have != wanted
    };
    matches!(key, Key::Pods(_)) && had.rows.iter().any(is_other)
}

/// Addresses that these keys, if they are not among the `next` ones, have in the database and no longer want. Until they give
/// them back, no other port may get them.
pub fn not_given_back<'a>(
    keys: impl Iterator<Item = &'a Key>,
    next: &[Next],
    world: &World,
    owner_index: &OwnerIndex,
    cache: &Cache,
) -> BTreeSet<String> {
    let next: HashSet<_> = next.iter().map(|next| &next.key).collect();
    let mut addresses = BTreeSet::new();
    for key in keys.filter(|key| !next.contains(key)) {
        let had = owner_index.get(key).into_iter().flat_map(|had| &had.rows);
        let ports = had.filter(|row| row.table == lsp::TABLE);
        let ports: Vec<_> = ports.filter_map(|row| cache.get(row.table, existing(cache, row)?)).collect();
        if ports.is_empty() {
            continue;
        }
        let want = ovnkube_plan::want(key, world);
        let wanted = addresses_of(&want);
        let lost = ports.iter().flat_map(|port| split(port)).filter(|address| !wanted.contains(address));
        addresses.extend(lost.map(str::to_owned));
    }
    addresses
}

/// Whether a port that is wanted has one of these addresses.
pub fn wants_one_of(want: &Want, addresses: &BTreeSet<String>) -> bool {
    !addresses.is_empty() && addresses_of(want).iter().any(|address| addresses.contains(*address))
}

fn addresses_of(want: &Want) -> BTreeSet<&str> {
    want.rows.iter().filter(|row| row.key.table == lsp::TABLE).flat_map(|row| split(&row.row)).collect()
}

/// The MAC and IP addresses of a port.
fn split(port: &Row) -> impl Iterator<Item = &str> {
    port.strs(lsp::ADDRESSES).flat_map(|addresses| addresses.split(' ')).filter(|word| word.contains(['.', ':']))
}

fn exists(row: &RowKey, cache: Option<&Cache>) -> bool {
    cache.is_some_and(|cache| existing(cache, row).is_some())
}

fn has_pods(cache: &Cache) -> bool {
    cache.iter(lsp::TABLE).any(|(_, row)| row.map(lsp::EXTERNAL_IDS).get("pod") == Some("true"))
}
