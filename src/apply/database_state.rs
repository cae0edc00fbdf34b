//! What people are told of the northbound database as a whole: its schema is too old, or most of our rows went at once.

use ovnkube_ovn::{ServerSchema, Table, nb};
use ovnkube_ovsdb::{Cache, RowEvent};
use ovnkube_plan::preflight::old_northbound;

use crate::diff::existing;
use crate::owner_index::OwnerIndex;

/// How many tables and columns are named.
const NAMED: usize = 15;
/// So many rows go when somebody deletes nodes and pods by hand.
const FEW: usize = 100;

/// What is left out of a database that is older than all that are supported, and what to do.
pub(crate) fn too_old(schema: &ServerSchema) -> Option<String> {
    let finding = old_northbound(&schema.version)?;
    let (what, place, remedy) = (finding.what, finding.place, finding.remedy);
    Some(format!("{what}: {place}; what belongs into these is left out: {}; {remedy}", lacking(schema)))
}

/// The tables, then the columns that a newer schema has.
fn lacking(schema: &ServerSchema) -> String {
    let tables = || nb::DATABASE.tables.iter().copied();
    let has = |table: &&Table| schema.tables.contains_key(table.name);
    let missing = tables().filter(|table| !has(table)).map(|table| table.name.to_owned());
    let columns = tables().filter(has).flat_map(|table| {
        let missing = table.iter().filter(|(_, info)| schema.column(table, info).is_none());
        missing.map(|(_, info)| format!("{}.{}", table.name, info.name))
    });
    let all: Vec<_> = missing.chain(columns).collect();
    let named = all.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    let more = all.len().saturating_sub(NAMED);
    if more > 0 { format!("{named} and {more} more") } else { named }
}

/// Whether most of the rows that are wanted are gone since other programs deleted rows: by hand, or with the file.
pub(crate) fn emptied(events: &[RowEvent], owner_index: &OwnerIndex, cache: &Cache) -> Option<String> {
    if events.iter().filter(|event| event.new.is_none()).count() <= FEW {
        return None;
    }
    let (mut all, mut gone) = (0, 0);
    for row in owner_index.rows() {
        all += 1;
        gone += usize::from(existing(cache, row).is_none());
    }
    (gone > FEW && gone > all / 2).then(|| {
        format!(
            "another program deleted {gone} of ovnkube's {all} rows in the northbound database at once, or its file was \
             replaced; they are written again"
        )
    })
}
