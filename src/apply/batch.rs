//! Which keys go into one transaction.
//!
//! As many as there are, up to a limit, so that the reply does not hold up the next pod. But who may
//! talk to whom changes for all at the same moment: a transaction with a policy in it carries every
//! dirty pod that has a port already. What that costs is small, since such a pod is there but for its
//! places in groups and sets, and these are joined into an operation for each.

use std::collections::BTreeSet;

use ovnkube_model::World;
use ovnkube_ovsdb::Cache;
use ovnkube_plan::{Access, Key, access, decides_access};

use crate::diff::existing;

/// Takes the next keys out of `dirty`, in their order: `limit` of them, and beyond it those that must
/// change together.
pub fn take(dirty: &mut BTreeSet<Key>, limit: usize, world: &World, cache: Option<&Cache>) -> Vec<Key> {
    let Some(cache) = cache.filter(|_| dirty.iter().any(decides_access)) else {
        return std::iter::from_fn(|| dirty.pop_first()).take(limit).collect();
    };
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
