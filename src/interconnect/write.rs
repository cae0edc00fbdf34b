//! Writes rows that should exist.

use ovnkube_ovn::{Row, Uuid};
use ovnkube_ovsdb_data::{Cache, Txn};

/// Makes the row with this uuid hold `want`; without a uuid, inserts a row whose uuid follows from `name`. Returns its uuid.
pub(crate) fn put(txn: &mut Txn, cache: &Cache, have: Option<Uuid>, name: &str, want: Row) -> Uuid {
    let table = want.table();
    let Some((uuid, row)) = have.and_then(|uuid| Some((uuid, cache.get(table, uuid)?))) else {
        let uuid = cache.fresh_uuid(table, name);
        txn.insert(uuid, want);
        return uuid;
    };
    let mut change = Row::new(table);
    for (column, datum) in want.differing(row).filter(|(column, _)| cache.supports(table, *column)) {
        change.put(column, datum.clone());
    }
    if !change.is_empty() {
        txn.update(uuid, change);
    }
    uuid
}
