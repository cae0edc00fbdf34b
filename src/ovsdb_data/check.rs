//! Finds, before sending, what a server would refuse or, worse, accept and do differently.

use std::collections::HashSet;

use ovnkube_ovn::schema::{ColumnInfo, ServerBase, ServerColumn};
use ovnkube_ovn::{Atom, ColumnId, Database, Datum, Row, ServerSchema, Table, Uuid};

use crate::error::TxnError;
use crate::txn::{Mutation, Op, Txn};

/// What is known about the database a transaction goes to.
pub struct CheckContext<'a> {
    pub database: &'static Database,
    /// The server's schema.
    pub schema: &'a ServerSchema,
    /// Whether a row of a table exists or is about to; `None` if the table is not monitored.
    pub has_row: &'a dyn Fn(&Table, Uuid) -> Option<bool>,
}

/// Checks a whole transaction. An error has [`crate::Class::Invalid`] and names the operation.
pub fn check(txn: &Txn, known: &CheckContext<'_>) -> Result<(), TxnError> {
    let mut inserted = HashSet::new();
    let mut referred = HashSet::new();
    let strong = |info: &ColumnInfo| info.references().any(|r| r.strong);
    for (at, op) in txn.ops.iter().enumerate() {
        if let Op::Insert { uuid, .. } = op
            && !inserted.insert(*uuid)
        {
            return Err(TxnError::invalid(at, format!("row {uuid} is inserted twice")));
        }
        for (column, datum) in written(op) {
            if table_of(op).and_then(|t| t.info(column)).is_some_and(strong) {
                referred.extend(datum.uuids());
            }
        }
    }
    for (at, op) in txn.ops.iter().enumerate() {
        let fail = |details: String| TxnError::invalid(at, details);
        let Some(table) = table_of(op) else { continue };
        if !txn.database.tables.get(usize::from(table.id)).is_some_and(|t| **t == *table) {
            return Err(fail(format!("{} is not a table of {}", table.name, txn.database.name)));
        }
        let Some(theirs) = known.schema.tables.get(table.name) else {
            return Err(fail(format!("the server's schema {} has no table {}", known.schema.version, table.name)));
        };
        if let Op::Insert { uuid, .. } = op
            && !theirs.is_root
            && !referred.contains(uuid)
        {
            let reason = "is inserted, but no row written with it refers to it strongly";
            return Err(fail(format!("row {uuid} of {} {reason}", table.name)));
        }
        for (column, datum) in written(op) {
            check_cell(op, table, column, datum, known, &inserted).map_err(fail)?;
        }
    }
    Ok(())
}

fn table_of(op: &Op) -> Option<&'static Table> {
    match op {
        Op::Insert { row, .. } | Op::Update { row, .. } | Op::Wait { row, .. } => Some(row.table()),
        Op::Delete { table, .. } | Op::Mutate { table, .. } => Some(table),
        Op::Comment(_) | Op::Assert(_) | Op::Commit => None,
    }
}

/// The cells to which an operation writes values.
fn written(op: &Op) -> Vec<(ColumnId, &Datum)> {
    match op {
        Op::Insert { row, .. } | Op::Update { row, .. } => Row::cells(row).collect(),
        Op::Mutate { column, mutation: Mutation::Insert(datum) | Mutation::SetKeys(datum), .. } => {
            vec![(*column, datum)]
        }
        _ => Vec::new(),
    }
}

fn check_cell(
    op: &Op,
    table: &Table,
    column: ColumnId,
    datum: &Datum,
    known: &CheckContext<'_>,
    inserted: &HashSet<Uuid>,
) -> Result<(), String> {
    let info = table.info(column).ok_or_else(|| format!("{} has no column number {}", table.name, column.0))?;
    let place = || format!("{}.{}", table.name, info.name);
    // a column that the server lacks is not sent
    let Some(ServerColumn { ty, .. }) = known.schema.column(table, info) else { return Ok(()) };
    if datum.is_map() != info.is_map() && !datum.is_empty() {
        return Err(format!("{} is{} a map", place(), if info.is_map() { "" } else { " not" }));
    }
    let (count, (min, max)) = (datum.len() as u64, (u64::from(ty.min), u64::from(ty.max)));
    let whole = !matches!(op, Op::Mutate { .. });
    if count > max || (whole && count < min) {
        return Err(format!("{} has {count} values where {min} to {max} are allowed", place()));
    }
    let values = datum.pairs().iter().filter_map(|(_, v)| ty.value.as_ref().map(|base| (v, base)));
    let keys = datum.atoms().chain(datum.pairs().iter().map(|(k, _)| k)).map(|k| (k, &ty.key));
    keys.chain(values).try_for_each(|(atom, base)| check_atom(atom, base).map_err(|e| format!("{}: {e}", place())))?;
    for target in info.references().filter_map(|r| known.database.table(r.table)) {
        let missing = |uuid: &Uuid| !inserted.contains(uuid) && (known.has_row)(target, *uuid) == Some(false);
        if let Some(missing) = datum.uuids().find(missing) {
            return Err(format!("{} refers to row {missing}, which {} does not have", place(), target.name));
        }
    }
    Ok(())
}

fn check_atom(atom: &Atom, base: &ServerBase) -> Result<(), String> {
    let (min, max) = base.range;
    match atom {
        other if other.kind() != base.kind => Err(format!("{other:?} is not of type {:?}", base.kind)),
        Atom::Str(text) if text.contains('\0') => Err(format!("{text:?} has a NUL in it")),
        Atom::Str(text) if !base.allowed.is_empty() && !base.allowed.iter().any(|a| **a == **text) => {
            Err(format!("{text:?} is not one of {}", base.allowed.join(", ")))
        }
        Atom::Str(text) if max != i64::MAX || min != i64::MIN => {
            let (length, min) = (text.chars().count() as i64, min.max(0));
            let fits = (min..=max).contains(&length);
            if fits { Ok(()) } else { Err(format!("{text:?} is {length} long where {min} to {max} is allowed")) }
        }
        Atom::Int(i) if !(min..=max).contains(i) => Err(format!("{i} is not in {min}..={max}")),
        Atom::Real(real) if !real.0.is_finite() => Err(format!("{real:?} is not a number")),
        _ => Ok(()),
    }
}
