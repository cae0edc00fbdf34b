//! A northbound interconnection database that was made anew, and is still empty.
//!
//! Whoever makes the database also makes the transit switches, a moment later. That none is there any more is believed at once where
//! it is the database of before: then a person has removed them. A master that starts does not know which one that was; the northbound
//! database of its cluster tells whether it had any.

use std::time::Duration;

use ovnkube_ovn::Uuid;
use ovnkube_ovn::ic_nb::{ic_nb_global, transit_switch};
use ovnkube_ovn::nb::logical_switch as ls;
use ovnkube_ovsdb_data::Cache;

use crate::rows::is_ours;

/// How long the switches of before stay.
pub const FILLED_WITHIN: Duration = Duration::from_secs(10);

/// What was seen so far. All times are from one moment on.
#[derive(Debug, Default)]
pub struct Emptied {
    /// The database that had switches: each has a row of its own in this table. Nil: one that an earlier master knew.
    had: Option<Uuid>,
    since: Option<Duration>,
}

impl Emptied {
    /// After an earlier master.
    pub fn resumed(nb: &Cache) -> Self {
        let has_switches = nb.iter(ls::TABLE).any(|(_, row)| is_ours(row));
        Self { had: has_switches.then(Uuid::nil), since: None }
    }

    /// Whether the switches of before should stay.
    pub fn waits(&mut self, ic_nb: &Cache, now: Duration) -> bool {
        let database = ic_nb.iter(ic_nb_global::TABLE).next().map(|(uuid, _)| uuid);
        if ic_nb.iter(transit_switch::TABLE).next().is_some() {
            *self = Self { had: database, since: None };
            return false;
        }
        if self.had.is_none() || self.had == database {
            self.since = None;
            return false;
        }
        let waits = now < *self.since.get_or_insert(now) + FILLED_WITHIN;
        if !waits {
            *self = Self::default();
        }
        waits
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ovnkube_ovn::{Row, Table, derived_uuid, owner};

    use super::*;

    fn set(ic_nb: &mut Cache, table: &'static Table, name: &str, is_there: bool) {
        ic_nb.set(table, derived_uuid(table.name, name), is_there.then(|| Arc::new(Row::new(table))));
    }

    #[test]
    fn a_database_that_is_made_anew_is_given_time() {
        let mut ic_nb = Cache::new(&ovnkube_ovn::ic_nb::DATABASE, ovnkube_plan::identity, |_| false);
        let mut emptied = Emptied::default();
        let at = Duration::from_secs;
        assert!(!emptied.waits(&ic_nb, at(0)), "it never had any");
        set(&mut ic_nb, ic_nb_global::TABLE, "one", true);
        set(&mut ic_nb, transit_switch::TABLE, "ts", true);
        assert!(!emptied.waits(&ic_nb, at(1)));
        set(&mut ic_nb, transit_switch::TABLE, "ts", false);
        assert!(!emptied.waits(&ic_nb, at(2)), "a person removed it");

        set(&mut ic_nb, transit_switch::TABLE, "ts", true);
        assert!(!emptied.waits(&ic_nb, at(3)));
        set(&mut ic_nb, transit_switch::TABLE, "ts", false);
        set(&mut ic_nb, ic_nb_global::TABLE, "one", false);
        assert!(emptied.waits(&ic_nb, at(4)), "not even its row is there");
        set(&mut ic_nb, ic_nb_global::TABLE, "two", true);
        assert!(emptied.waits(&ic_nb, at(13)));
        assert!(!emptied.waits(&ic_nb, at(14)) && !emptied.waits(&ic_nb, at(15)), "nobody adds one");

        set(&mut ic_nb, transit_switch::TABLE, "ts", true);
        assert!(!emptied.waits(&ic_nb, at(16)));
        set(&mut ic_nb, transit_switch::TABLE, "ts", false);
        assert!(!emptied.waits(&ic_nb, at(17)), "this is the database now");
    }

    #[test]
    fn a_master_that_starts_gives_an_empty_database_time() {
        let mut nb = Cache::new(&ovnkube_ovn::nb::DATABASE, ovnkube_plan::identity, |_| false);
        let mut ic_nb = Cache::new(&ovnkube_ovn::ic_nb::DATABASE, ovnkube_plan::identity, |_| false);
        let at = Duration::from_secs;
        let of_others = Row::new(ls::TABLE).with(ls::NAME, "n1");
        nb.set(ls::TABLE, derived_uuid(ls::TABLE.name, "n1"), Some(Arc::new(of_others)));
        assert!(!Emptied::resumed(&nb).waits(&ic_nb, at(0)), "it never had any");
        let ours = Row::new(ls::TABLE).with(ls::EXTERNAL_IDS, owner::marks(owner::INTERCONNECTION));
        nb.set(ls::TABLE, derived_uuid(ls::TABLE.name, "ts"), Some(Arc::new(ours)));
        let mut emptied = Emptied::resumed(&nb);
        assert!(emptied.waits(&ic_nb, at(1)));
        set(&mut ic_nb, ic_nb_global::TABLE, "one", true);
        assert!(emptied.waits(&ic_nb, at(10)));
        assert!(!emptied.waits(&ic_nb, at(11)) && !emptied.waits(&ic_nb, at(12)), "nobody adds one");
        let mut emptied = Emptied::resumed(&nb);
        set(&mut ic_nb, transit_switch::TABLE, "ts", true);
        assert!(!emptied.waits(&ic_nb, at(20)), "they are there");
    }
}
