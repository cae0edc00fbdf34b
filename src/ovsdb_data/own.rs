//! Which changes of a commit were written by transactions of this client.

use std::sync::Arc;

use ovnkube_ovn::{Atom, ColumnId, Datum, Row, Uuid};

use crate::cache::RowChange;
use crate::txn::{Mutation, Op, Txn};
use crate::uuids::UuidMap;

/// The changes of one commit, each with whether it is own: explained by transactions in flight, or the end of a row
/// because they changed everything that referred to it strongly.
pub fn owned(changes: Vec<RowChange>, flights: &[Arc<Txn>]) -> Vec<(RowChange, bool)> {
    let mut own: Vec<bool> = changes.iter().map(|change| is_own(change, flights.iter())).collect();
    if own.contains(&true) {
        // a grandchild is found a round after the child
        while own_ends(&changes, &mut own) {}
    }
    changes.into_iter().zip(own).collect()
}

/// Marks the ends of rows whose every strong reference was in an own change; returns whether there were any.
fn own_ends(changes: &[RowChange], own: &mut [bool]) -> bool {
    let ends = changes.iter().zip(&*own).filter(|(change, own)| !**own && change.new.is_none());
    let mut ends: UuidMap<Option<bool>> = ends.map(|(change, _)| (change.uuid, None)).collect();
    if ends.is_empty() {
        return false;
    }
    for (change, own) in changes.iter().zip(&*own) {
        for child in strong_references(change.old.as_deref()) {
            if let Some(all_own) = ends.get_mut(&child) {
                *all_own = Some(all_own.unwrap_or(true) && *own);
            }
        }
    }
    let mut any = false;
    for (change, own) in changes.iter().zip(own) {
        if ends.get(&change.uuid) == Some(&Some(true)) {
            (*own, any) = (true, true);
        }
    }
    any
}

fn strong_references(row: Option<&Row>) -> impl Iterator<Item = Uuid> {
    let strong = |row: &Row, column| row.table().info(column).is_some_and(|c| c.references().any(|r| r.strong));
    row.into_iter().flat_map(move |row| {
        row.cells().filter(move |(column, _)| strong(row, *column)).flat_map(|(_, datum)| datum.uuids())
    })
}

/// Whether transactions in flight explain all of a change: each changed cell is as they wrote it, or, in a set or map,
/// only what they added or removed has changed.
pub(crate) fn is_own<'a>(change: &RowChange, flights: impl Iterator<Item = &'a Arc<Txn>>) -> bool {
    let uuid = change.uuid;
    let ops: Vec<&Op> =
        flights.flat_map(|txn| txn.by_row.get(&uuid).into_iter().flatten().filter_map(|at| txn.ops.get(*at))).collect();
    if ops.is_empty() {
        return false;
    }
    match (&change.old, &change.new) {
        (_, None) => ops.iter().any(|op| op.removes(uuid)),
        (None, Some(new)) => {
            let empty = Row::new(new.table());
            ops.iter().any(|op| op.inserts(uuid)) && columns_are_own(&ops, &empty, new)
        }
        (Some(old), Some(new)) => columns_are_own(&ops, old, new),
    }
}

fn columns_are_own(ops: &[&Op], old: &Row, new: &Row) -> bool {
    new.table().iter().map(|(column, _)| column).all(|column| {
        let (was, is) = (old.get(column), new.get(column));
        was == is || ops.iter().any(|op| op.wrote(column, new)) || {
            let mutations: Vec<&Mutation> = ops.iter().filter_map(|op| op.mutation(column)).collect();
            let nothing = Datum::EMPTY;
            members_are_own(&mutations, was.unwrap_or(&nothing), is.unwrap_or(&nothing))
        }
    })
}

fn members_are_own(mutations: &[&Mutation], was: &Datum, is: &Datum) -> bool {
    let any = |wanted: &dyn Fn(&Mutation) -> bool| mutations.iter().any(|m| wanted(m));
    let came = |a: &Atom| any(&|m| matches!(m, Mutation::Insert(d) if d.contains(a)));
    let went = |a: &Atom| any(&|m| matches!(m, Mutation::Remove(d) if d.contains(a)));
    let set = |p: &(Atom, Atom)| {
        any(&|m| matches!(m, Mutation::Insert(d) | Mutation::SetKeys(d) if d.pairs().binary_search(p).is_ok()))
    };
    // a pair whose key gets a new value is removed, too
    let unset = |(key, _): &(Atom, Atom)| {
        let replaced = |d: &Datum| d.pairs().binary_search_by(|(k, _)| k.cmp(key)).is_ok();
        any(&|m| {
            matches!(m, Mutation::RemoveKeys(d) if d.contains(key)) || matches!(m, Mutation::SetKeys(d) if replaced(d))
        })
    };
    is.only_here(was).all(came)
        && was.only_here(is).all(went)
        && is.pairs_only_here(was).all(set)
        && was.pairs_only_here(is).all(unset)
}

impl Op {
    /// Whether this operation wrote `column` as it is in `new`.
    fn wrote(&self, column: ColumnId, new: &Row) -> bool {
        match self {
            Op::Insert { row, .. } | Op::Update { row, .. } => {
                row.get(column).is_some_and(|want| new.holds(column, want))
            }
            _ => false,
        }
    }

    /// The mutation of `column` by this operation, if it is one.
    fn mutation(&self, of: ColumnId) -> Option<&Mutation> {
        if let Op::Mutate { column, mutation, .. } = self { Some(mutation).filter(|_| *column == of) } else { None }
    }

    fn removes(&self, of: Uuid) -> bool {
        match self {
            Op::Delete { uuid, .. } => *uuid == of,
            Op::Mutate { mutation: Mutation::Remove(gone), .. } => gone.contains(&Atom::Uuid(of)),
            _ => false,
        }
    }
}
