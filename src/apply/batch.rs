//! Which keys go into one transaction.
//!
//! As many as there are, up to a limit, so that the reply does not hold up the next pod, and a cluster's members can agree on
//! it within an election's time. But the limit is for what is new.
//! Who may talk to whom changes for all at the same moment: every policy and namespace that waits, and every pod that has
//! a port already, comes along. What that costs is small, since such a pod is there but for its places in groups and sets,
//! and these are joined into an operation for each. So an address, too, passes from one port to another in one
//! transaction: never do two have it, nor is one let in where the other was.

use std::collections::BTreeSet;

use ovnkube_model::World;
use ovnkube_ovsdb::Cache;
use ovnkube_plan::{Access, Key, access};

use crate::diff::existing;
use crate::ledger::Ledger;

/// Keys of one transaction.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Of those that may go one by one: large enough to carry a burst.
    pub others: usize,
    /// Of all, whoever should change together: a transaction that no server has managed is not to be repeated for ever.
    pub all: usize,
}

/// A key for the next transaction.
#[derive(Debug)]
pub struct Next {
    pub key: Key,
    /// It need not be in this one, if it grows too large.
    pub may_wait: bool,
}

/// Takes the next keys out of `dirty`, in their order: those that must change together, and some others.
pub fn take(
    dirty: &mut BTreeSet<Key>,
    limits: Limits,
    world: &World,
    ledger: &Ledger,
    cache: Option<&Cache>,
) -> Vec<Next> {
    // others knew it by its node's address, whatever it is now, if anything
    let was_in_host_network =
        |key: &Key| ledger.get(key).is_some_and(|had| had.rows.is_empty() && !had.members.is_empty());
    let belongs = |key: &Key| match access(key, world) {
        Access::Says => true,
        Access::Concerns(row) => cache.is_some_and(|cache| existing(cache, &row).is_some()) || was_in_host_network(key),
        Access::Nothing => false,
    };
    let (mut next, mut rest) = (Vec::new(), BTreeSet::new());
    let mut others = 0;
    for key in std::mem::take(dirty) {
        let may_wait = !belongs(&key);
        others += usize::from(may_wait);
        if next.len() < limits.all && (!may_wait || others <= limits.others) {
            next.push(Next { key, may_wait });
        } else {
            rest.insert(key);
        }
    }
    *dirty = rest;
    next
}
