//! What people are told of the northbound database as a whole: its schema is too old.

use ovnkube_ovn::{ServerSchema, Table, nb};
use ovnkube_plan::preflight::old_northbound;

/// How many tables and columns are named.
const NAMED: usize = 15;

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
