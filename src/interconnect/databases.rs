//! The databases that are read, and what several files here read in them.

use ovnkube_ovn::ic_nb::ic_nb_global;
use ovnkube_ovn::sb::chassis;
use ovnkube_ovn::{Row, Uuid};
use ovnkube_ovsdb_data::Cache;

/// The databases that a step reads.
#[derive(Clone, Copy)]
pub struct Databases<'a> {
    pub ic_nb: &'a Cache,
    pub ic_sb: &'a Cache,
    pub sb: &'a Cache,
}

/// Whether a chassis is another cluster's.
pub fn is_remote(row: &Row) -> bool {
    row.map(chassis::OTHER_CONFIG).get("is-remote") == Some("true")
}

/// The number that all clusters write to their zones when they have followed, and its row.
pub(crate) fn number(ic_nb: &Cache) -> Option<(Uuid, i64)> {
    let (uuid, row) = ic_nb.iter(ic_nb_global::TABLE).next()?;
    ic_nb.supports(ic_nb_global::TABLE, ic_nb_global::NB_IC_CFG).then(|| (uuid, row.int(ic_nb_global::NB_IC_CFG)))
}
