//! Port groups whose rows go later than what is in them, for releases of northd that lose a group of the same name otherwise.
//!
//! northd 25.09.0 to 25.09.3 and 26.03.0 to 26.03.1 forgets the southbound port group if one of its passes sees both that a port
//! group was removed and that one of the same name was added: pods of a policy that somebody has replaced then lose what the policy
//! allows, until something changes in the group. (OVN's commit "northd: Fix port group I-P for recreated groups" mends it.) With such
//! a northd a group loses its ports and its ACLs at once and its row [`REST`] later; if the group is wanted again in between, it has
//! the same row.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ovnkube_model::OvnRelease;
use ovnkube_ovn::Uuid;
use ovnkube_ovn::nb::{nb_global, port_group};
use ovnkube_ovsdb::Cache;
use ovnkube_plan::{RowKey, identity};
use tokio::time::Instant;

use crate::diff::{Diff, is_empty};
use crate::owner_index::OwnerIndex;

/// The time from the removal of a group's contents to that of its row: many passes of northd.
pub const REST: Duration = Duration::from_secs(10);

/// The first release of each series with the fault, and the first one without it.
const FAULTY: [(OvnRelease, OvnRelease); 2] =
    [(OvnRelease::new(25, 9, 0), OvnRelease::new(25, 9, 4)), (OvnRelease::new(26, 3, 0), OvnRelease::new(26, 3, 2))];

/// A diff that keeps groups where they must be kept.
pub(crate) fn diff(nb: &Cache) -> Diff<'_> {
    let mut diff = Diff::new(nb);
    if are_lost(nb) {
        diff.keep_groups();
    }
    diff
}

/// Whether the northd of this database loses groups that are made again.
fn are_lost(nb: &Cache) -> bool {
    northd_release(nb).is_some_and(is_faulty)
}

/// The release of the northd that last worked on this database.
pub fn northd_release(nb: &Cache) -> Option<OvnRelease> {
    let versions = nb.iter(nb_global::TABLE).map(|(_, row)| row.map(nb_global::OPTIONS).get("northd_internal_version"));
    versions.flatten().find_map(OvnRelease::parse)
}

fn is_faulty(release: OvnRelease) -> bool {
    FAULTY.iter().any(|(first, mended)| (*first..*mended).contains(&release))
}

/// The groups whose rows are still to go.
#[derive(Debug, Default)]
pub(crate) struct Resting {
    until: BTreeMap<Uuid, Instant>,
}

impl Resting {
    /// Notes groups that have lost their contents now. Those noted before go when they would have gone.
    pub(crate) fn add(&mut self, groups: BTreeSet<Uuid>, now: Instant) {
        for group in groups {
            self.until.entry(group).or_insert(now + REST);
        }
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        self.until.values().min().copied()
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.due().is_some_and(|due| due <= now)
    }

    /// Adds to `diff` the removal of those that have rested and are still wanted by nobody. Returns them: they rest again if the
    /// transaction fails.
    pub(crate) fn remove(
        &mut self,
        diff: &mut Diff<'_>,
        nb: &Cache,
        owner_index: &OwnerIndex,
        now: Instant,
    ) -> BTreeSet<Uuid> {
        let rested: Vec<Uuid> =
            self.until.iter().filter(|(_, until)| **until <= now).map(|(group, _)| *group).collect();
        let is_left = |group: &Uuid| {
            nb.get(port_group::TABLE, *group).is_some_and(|row| {
                let name = identity(row).map(|name| RowKey::new(port_group::TABLE, &*name));
                is_empty(row) && !name.is_some_and(|name| owner_index.is_wanted(&name))
            })
        };
        let mut removed = BTreeSet::new();
        for group in rested {
            if diff.is_full() {
                break;
            }
            self.until.remove(&group);
            if is_left(&group) {
                diff.delete_at_once(port_group::TABLE, group);
                removed.insert(group);
            }
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_with_the_fault() {
        for version in ["25.09.0-21.0.0-1.1", "25.09.3", "26.03.0-21.8.0-82.14", "26.03.1-21.8.0-82.14", "26.3.1"] {
            assert!(OvnRelease::parse(version).is_some_and(is_faulty), "{version}");
        }
        for version in
            ["25.03.0-20.41.0-79.6", "25.09.4-1-1", "26.03.2-21.8.0-82.14", "26.09.0", "", "26.03", "26.03.x", "-"]
        {
            assert!(!OvnRelease::parse(version).is_some_and(is_faulty), "{version}");
        }
    }

    #[test]
    fn a_group_that_is_noted_again_waits_no_longer() {
        let (now, group) = (Instant::now(), Uuid::from_u128(1));
        let mut resting = Resting::default();
        assert!(resting.due().is_none() && !resting.is_due(now + REST));
        resting.add([group].into(), now);
        resting.add([group].into(), now + REST / 2);
        assert_eq!(resting.due(), Some(now + REST));
        assert!(!resting.is_due(now) && resting.is_due(now + REST));
    }
}
