//! The databases that are read, and what several files here read in them.

use ovnkube_ovn::Row;
use ovnkube_ovn::sb::chassis;
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
