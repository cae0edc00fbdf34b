//! Which keys go into one transaction.
//!
//! As many as there are, up to a limit, so that the reply does not hold up the next pod. But the limit is for what is new.
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

/// Takes the next keys out of `dirty`, in their order: those that must change together, and `limit` others.
pub fn take(
    dirty: &mut BTreeSet<Key>,
    limit: usize,
    world: &World,
    ledger: &Ledger,
    cache: Option<&Cache>,
) -> Vec<Key> {
    let mut others = 0;
    // others knew it by its node's address, whatever it is now, if anything
    let was_in_host_network =
        |key: &Key| ledger.get(key).is_some_and(|had| had.rows.is_empty() && !had.members.is_empty());
    let mut is_next = |key: &Key| {
        let together = match access(key, world) {
            Access::Says => true,
            Access::Concerns(row) => {
                cache.is_some_and(|cache| existing(cache, &row).is_some()) || was_in_host_network(key)
            }
            Access::Nothing => false,
        };
        others += usize::from(!together);
        together || others <= limit
    };
    let (next, rest) = std::mem::take(dirty).into_iter().partition::<Vec<_>, _>(&mut is_next);
    dirty.extend(rest);
    next
}
