//! The databases that are read, and what several files here read in them.

use ovnkube_ovn::ic_nb::{self, ic_nb_global};
use ovnkube_ovn::sb::chassis;
use ovnkube_ovn::{Row, Uuid};
use ovnkube_ovsdb_data::{Cache, Txn};

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

/// What raises this number, also above `least`. `None`: the database has none.
pub(crate) fn raise(ic_nb: &Cache, least: i64) -> Option<Txn> {
    let (uuid, now) = number(ic_nb)?;
    let row = |number: i64| Row::new(ic_nb_global::TABLE).with(ic_nb_global::NB_IC_CFG, number);
    let mut txn = Txn::new(&ic_nb::DATABASE);
    txn.wait_holds(uuid, row(now));
    txn.update(uuid, row(now.max(least).checked_add(1).unwrap_or_default()));
    Some(txn)
}
