//! Building transactions.

use std::collections::HashMap;
use std::sync::Arc;

use ovnkube_ovn::{Atom, Column, ColumnId, Database, Datum, IntoDatum, Row, Table, Uuid};

use crate::cache::{RowChange, UuidMap};

/// Operations that happen all or not at all. Every method that adds one returns its number, which
/// is what [`crate::TxnError::op`] names; changes of one set of one row share an operation.
#[derive(Debug, Clone)]
pub struct Txn {
    pub(crate) database: &'static Database,
    pub(crate) ops: Vec<Op>,
    /// The operations that write a row or remove references to it.
    pub(crate) touched: UuidMap<Vec<usize>>,
    /// The last operation on a cell, for adding to it.
    last: HashMap<(Uuid, ColumnId), usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Op {
    Insert { uuid: Uuid, row: Row },
    Update { uuid: Uuid, row: Row },
    Delete { table: &'static Table, uuid: Uuid },
    Mutate { table: &'static Table, uuid: Uuid, column: ColumnId, mutation: Mutation },
    Wait { table: &'static Table, wait: Wait },
    Comment(String),
    Assert(String),
    Commit,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Mutation {
    Insert(Datum),
    Remove(Datum),
    /// Pairs to have: a plain insert would keep the old value of a key that is there.
    SetKeys(Datum),
    /// Keys, as a set.
    RemoveKeys(Datum),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wait {
    /// No row has this in that column.
    Absent(ColumnId, Datum),
    /// The row holds these cells.
    Holds(Uuid, Row),
}

impl Txn {
    pub fn new(database: &'static Database) -> Self {
        Txn { database, ops: Vec::new(), touched: UuidMap::default(), last: HashMap::new() }
    }

    /// Number of operations.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// What each operation is about: a row, or one column of it where it changes members of a set.
    pub fn subjects(&self) -> Vec<Option<(Uuid, Option<ColumnId>)>> {
        let subject = |op: &Op| match op {
            Op::Insert { uuid, .. } | Op::Update { uuid, .. } | Op::Delete { uuid, .. } => Some((*uuid, None)),
            Op::Mutate { uuid, column, .. } => Some((*uuid, Some(*column))),
            Op::Wait { .. } | Op::Comment(_) | Op::Assert(_) | Op::Commit => None,
        };
        self.ops.iter().map(subject).collect()
    }

    pub(crate) fn inserts(&self, uuid: Uuid) -> bool {
        let ops = self.touched.get(&uuid).into_iter().flatten();
        ops.filter_map(|at| self.ops.get(*at)).any(|op| op.inserts(uuid))
    }

    fn push(&mut self, op: Op) -> usize {
        self.ops.push(op);
        self.ops.len() - 1
    }

    fn touch(&mut self, uuid: Uuid, op: usize) {
        self.touched.entry(uuid).or_default().push(op);
    }

    /// Makes a row with a uuid of our choice. A row of a table that is not a root must be referred to
    /// strongly by another row of this transaction, or the server would drop it without a word.
    pub fn insert(&mut self, uuid: Uuid, row: Row) -> usize {
        self.write(uuid, row, |uuid, row| Op::Insert { uuid, row })
    }

    /// Sets the columns that `row` has, leaving others as they are.
    pub fn update(&mut self, uuid: Uuid, row: Row) -> usize {
        self.write(uuid, row, |uuid, row| Op::Update { uuid, row })
    }

    fn write(&mut self, uuid: Uuid, row: Row, op: impl FnOnce(Uuid, Row) -> Op) -> usize {
        let at = self.ops.len();
        self.last.extend(row.cells().map(|(column, _)| ((uuid, column), at)));
        self.touch(uuid, at);
        self.push(op(uuid, row))
    }

    /// Deletes a row. That it is gone already is no error.
    pub fn delete(&mut self, table: &'static Table, uuid: Uuid) -> usize {
        self.touch(uuid, self.ops.len());
        self.push(Op::Delete { table, uuid })
    }

    /// Adds members to a set; those that are there stay.
    pub fn insert_into(
        &mut self,
        table: &'static Table,
        uuid: Uuid,
        column: impl Into<ColumnId>,
        datum: Datum,
    ) -> usize {
        self.mutate(table, uuid, column.into(), Mutation::Insert(datum))
    }

    /// Takes members out of a set; those that are not there don't matter.
    pub fn remove_from(
        &mut self,
        table: &'static Table,
        uuid: Uuid,
        column: impl Into<ColumnId>,
        datum: Datum,
    ) -> usize {
        // what loses its last strong reference goes with it
        let at = self.ops.len();
        datum.uuids().for_each(|child| self.touch(child, at));
        self.mutate(table, uuid, column.into(), Mutation::Remove(datum))
    }

    /// Makes a map hold these pairs, whatever their keys had before.
    pub fn set_keys<T>(
        &mut self,
        table: &'static Table,
        uuid: Uuid,
        column: Column<T>,
        pairs: impl IntoDatum<T>,
    ) -> usize {
        self.set_pairs(table, uuid, column.id(), pairs.into_datum())
    }

    /// The same for a column known by number.
    pub fn set_pairs(&mut self, table: &'static Table, uuid: Uuid, column: ColumnId, pairs: Datum) -> usize {
        self.mutate(table, uuid, column, Mutation::SetKeys(pairs))
    }

    /// Takes keys out of a map of text keys.
    pub fn remove_keys<'a>(
        &mut self,
        table: &'static Table,
        uuid: Uuid,
        column: impl Into<ColumnId>,
        keys: impl IntoIterator<Item = &'a str>,
    ) -> usize {
        let keys = Datum::set(keys.into_iter().map(|key| Atom::Str(key.into())));
        self.mutate(table, uuid, column.into(), Mutation::RemoveKeys(keys))
    }

    fn mutate(&mut self, table: &'static Table, uuid: Uuid, column: ColumnId, mutation: Mutation) -> usize {
        // adding 500 ports to a switch is one operation: the server copies the set once, not 500 times
        let joined = self.last.get(&(uuid, column)).copied();
        if let Some(at) = joined
            && let Some(Op::Mutate { mutation: before, .. }) = self.ops.get_mut(at)
            && before.join(&mutation)
        {
            return at;
        }
        let at = self.push(Op::Mutate { table, uuid, column, mutation });
        self.touch(uuid, at);
        self.last.insert((uuid, column), at);
        at
    }

    /// Fails the transaction with [`crate::Class::Conflict`] if a row has `value` in `column`: what
    /// stands in for an index where the schema has none.
    pub fn wait_absent<T>(&mut self, table: &'static Table, column: Column<T>, value: impl IntoDatum<T>) -> usize {
        self.push(Op::Wait { table, wait: Wait::Absent(column.id(), value.into_datum()) })
    }

    /// Fails the transaction with [`crate::Class::Conflict`] unless the row still has these cells.
    pub fn wait_holds(&mut self, uuid: Uuid, cells: Row) -> usize {
        self.push(Op::Wait { table: cells.table(), wait: Wait::Holds(uuid, cells) })
    }

    /// Leaves a remark in the database's log.
    pub fn comment(&mut self, text: impl Into<String>) -> usize {
        self.push(Op::Comment(text.into()))
    }

    /// Has the reply wait until the transaction is on disk. Clusters always do.
    pub fn durable(&mut self) -> usize {
        self.push(Op::Commit)
    }

    /// Fails the transaction with [`crate::Class::NotOwner`] unless this client holds the lock.
    pub fn assert_lock(&mut self, lock: impl Into<String>) -> usize {
        self.push(Op::Assert(lock.into()))
    }
}

impl Mutation {
    /// Takes up a later mutation of the same cell, if doing both at once is the same.
    fn join(&mut self, later: &Mutation) -> bool {
        match (self, later) {
            (Mutation::Insert(all), Mutation::Insert(more))
            | (Mutation::Remove(all), Mutation::Remove(more))
            | (Mutation::RemoveKeys(all), Mutation::RemoveKeys(more)) => {
                if all.is_map() || more.is_map() {
                    return false;
                }
                *all = Datum::set(all.atoms().iter().chain(more.atoms()).cloned());
                true
            }
            (Mutation::SetKeys(all), Mutation::SetKeys(more)) => {
                *all = Datum::map(all.pairs().iter().chain(more.pairs()).cloned());
                true
            }
            _ => false,
        }
    }
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

    /// What this operation does to some members of `column`.
    fn mutation(&self, of: ColumnId) -> Option<&Mutation> {
        if let Op::Mutate { column, mutation, .. } = self { Some(mutation).filter(|_| *column == of) } else { None }
    }

    fn inserts(&self, of: Uuid) -> bool {
        matches!(self, Op::Insert { uuid, .. } if *uuid == of)
    }

    fn removes(&self, of: Uuid) -> bool {
        match self {
            Op::Delete { uuid, .. } => *uuid == of,
            Op::Mutate { mutation: Mutation::Remove(gone), .. } => gone.contains(&Atom::Uuid(of)),
            _ => false,
        }
    }
}

/// Changes of one commit, each with whether it is own: explained by transactions in flight, or the end
/// of a row that went because all that referred to it strongly was changed by them.
pub(crate) fn owned(changes: Vec<RowChange>, flights: &[Arc<Txn>]) -> Vec<(RowChange, bool)> {
    let mut own: Vec<bool> = changes.iter().map(|change| is_own(change, flights.iter())).collect();
    if own.contains(&true) {
        // a child's child goes a round later
        while own_ends(&changes, &mut own) {}
    }
    changes.into_iter().zip(own).collect()
}

/// Adds rows whose every strong reference was taken by own changes; whether there were any.
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

/// Whether transactions in flight explain all of a change: the cells they wrote are as they wrote
/// them, and of sets and maps nothing changed but what they added or took out.
pub(crate) fn is_own<'a>(change: &RowChange, flights: impl Iterator<Item = &'a Arc<Txn>>) -> bool {
    let uuid = change.uuid;
    let ops: Vec<&Op> = flights
        .flat_map(|txn| txn.touched.get(&uuid).into_iter().flatten().filter_map(|at| txn.ops.get(*at)))
        .collect();
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
    // a pair whose key has a new value went too
    let unset = |(key, _): &(Atom, Atom)| {
        let replaced = |d: &Datum| d.pairs().binary_search_by(|(k, _)| k.cmp(key)).is_ok();
        any(&|m| {
            matches!(m, Mutation::RemoveKeys(d) if d.contains(key)) || matches!(m, Mutation::SetKeys(d) if replaced(d))
        })
    };
    only_in(is.atoms(), was.atoms()).all(came)
        && only_in(was.atoms(), is.atoms()).all(went)
        && only_in(is.pairs(), was.pairs()).all(set)
        && only_in(was.pairs(), is.pairs()).all(unset)
}

/// What sorted `a` has and sorted `b` has not, in one walk over both.
pub(crate) fn only_in<'a, T: Ord>(a: &'a [T], b: &'a [T]) -> impl Iterator<Item = &'a T> {
    let mut rest = b.iter().peekable();
    a.iter().filter(move |item| {
        while rest.next_if(|r| r < item).is_some() {}
        rest.peek() != Some(item)
    })
}
