//! Builds transactions.

use std::collections::HashMap;

use ovnkube_ovn::{Atom, Column, ColumnId, Database, Datum, IntoDatum, Row, Table, Uuid};

use crate::uuids::UuidMap;

/// Operations that are all committed, or none. Every method that adds an operation returns its number, which
/// [`crate::TxnError::op`] names; changes of one set of one row share an operation.
#[derive(Debug, Clone)]
pub struct Txn {
    pub(crate) database: &'static Database,
    pub(crate) ops: Vec<Op>,
    /// The operations that write a row or remove references to it.
    pub(crate) by_row: UuidMap<Vec<usize>>,
    /// The last operation on a cell, for adding to it.
    last: HashMap<(Uuid, ColumnId), usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Op {
    Insert { uuid: Uuid, row: Row },
    Update { uuid: Uuid, row: Row },
    Delete { table: &'static Table, uuid: Uuid },
    Mutate { table: &'static Table, uuid: Uuid, column: ColumnId, mutation: Mutation },
    Wait { uuid: Uuid, row: Row },
    Comment(String),
    Assert(String),
    Commit,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Mutation {
    Insert(Datum),
    Remove(Datum),
    /// Pairs to set: a plain insert would keep the old value of an existing key.
    SetKeys(Datum),
    /// Keys, as a set.
    RemoveKeys(Datum),
}

impl Txn {
    pub fn new(database: &'static Database) -> Self {
        Txn { database, ops: Vec::new(), by_row: UuidMap::default(), last: HashMap::new() }
    }

    /// Number of operations.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// What each operation is about: a row, or one column of it if members of a set change.
    pub fn subjects(&self) -> Vec<Option<(Uuid, Option<ColumnId>)>> {
        let subject = |op: &Op| match op {
            Op::Insert { uuid, .. } | Op::Update { uuid, .. } | Op::Delete { uuid, .. } => Some((*uuid, None)),
            Op::Mutate { uuid, column, .. } => Some((*uuid, Some(*column))),
            Op::Wait { .. } | Op::Comment(_) | Op::Assert(_) | Op::Commit => None,
        };
        self.ops.iter().map(subject).collect()
    }

    /// Whether it inserts a row with that uuid.
    pub fn inserts(&self, uuid: Uuid) -> bool {
        let ops = self.by_row.get(&uuid).into_iter().flatten();
        ops.filter_map(|at| self.ops.get(*at)).any(|op| op.inserts(uuid))
    }

    /// The lock that it asserts.
    pub fn asserted_lock(&self) -> Option<&str> {
        self.ops.iter().rev().find_map(|op| if let Op::Assert(lock) = op { Some(lock.as_str()) } else { None })
    }

    /// Whether operation `at` needs an existing row: an update or a mutation.
    pub fn needs_row(&self, at: usize) -> bool {
        matches!(self.ops.get(at), Some(Op::Update { .. } | Op::Mutate { .. }))
    }

    /// A readable line for each operation that writes.
    pub fn lines(&self) -> Vec<String> {
        self.ops.iter().filter_map(Op::line).collect()
    }

    fn push(&mut self, op: Op) -> usize {
        self.ops.push(op);
        self.ops.len() - 1
    }

    fn index(&mut self, uuid: Uuid, op: usize) {
        self.by_row.entry(uuid).or_default().push(op);
    }

    /// Inserts a row with a uuid of our choice. A row outside the root set needs a strong reference from another row of
    /// this transaction, or the server would silently drop it.
    pub fn insert(&mut self, uuid: Uuid, row: Row) -> usize {
        self.write(uuid, row, |uuid, row| Op::Insert { uuid, row })
    }

    /// Sets the columns that `row` has; other columns stay.
    pub fn update(&mut self, uuid: Uuid, row: Row) -> usize {
        self.write(uuid, row, |uuid, row| Op::Update { uuid, row })
    }

    fn write(&mut self, uuid: Uuid, row: Row, op: impl FnOnce(Uuid, Row) -> Op) -> usize {
        let at = self.ops.len();
        self.last.extend(row.cells().map(|(column, _)| ((uuid, column), at)));
        self.index(uuid, at);
        self.push(op(uuid, row))
    }

    /// Deletes a row. It is no error if the row is gone already.
    pub fn delete(&mut self, table: &'static Table, uuid: Uuid) -> usize {
        self.index(uuid, self.ops.len());
        self.push(Op::Delete { table, uuid })
    }

    /// Adds members to a set; existing members stay.
    pub fn insert_into(
        &mut self,
        table: &'static Table,
        uuid: Uuid,
        column: impl Into<ColumnId>,
        datum: Datum,
    ) -> usize {
        self.mutate(table, uuid, column.into(), Mutation::Insert(datum))
    }

    /// Removes members from a set; missing ones are ignored.
    pub fn remove_from(
        &mut self,
        table: &'static Table,
        uuid: Uuid,
        column: impl Into<ColumnId>,
        datum: Datum,
    ) -> usize {
        // a row that loses its last strong reference is deleted with it
        let at = self.ops.len();
        datum.uuids().for_each(|child| self.index(child, at));
        self.mutate(table, uuid, column.into(), Mutation::Remove(datum))
    }

    /// Sets these pairs in a map, whatever values their keys had before.
    pub fn set_keys<T>(
        &mut self,
        table: &'static Table,
        uuid: Uuid,
        column: Column<T>,
        pairs: impl IntoDatum<T>,
    ) -> usize {
        self.set_pairs(table, uuid, column.id(), pairs.into_datum())
    }

    /// The same for a column given by its id.
    pub fn set_pairs(&mut self, table: &'static Table, uuid: Uuid, column: ColumnId, pairs: Datum) -> usize {
        self.mutate(table, uuid, column, Mutation::SetKeys(pairs))
    }

    /// Removes keys from a map with text keys.
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
        self.index(uuid, at);
        self.last.insert((uuid, column), at);
        at
    }

    /// Fails the transaction with [`crate::Class::Conflict`] unless the row still has these cells.
    pub fn wait_holds(&mut self, uuid: Uuid, cells: Row) -> usize {
        self.push(Op::Wait { uuid, row: cells })
    }

    /// Writes a comment to the database's log.
    pub fn comment(&mut self, text: impl Into<String>) -> usize {
        self.push(Op::Comment(text.into()))
    }

    /// Delays the reply until the transaction is on disk, as clusters always do.
    pub fn durable(&mut self) -> usize {
        self.push(Op::Commit)
    }

    /// Fails the transaction with [`crate::Class::NotOwner`] unless this client holds the lock.
    pub fn assert_lock(&mut self, lock: impl Into<String>) -> usize {
        self.push(Op::Assert(lock.into()))
    }
}

impl Mutation {
    /// Merges a later mutation of the same cell if both at once have the same effect. Returns whether it did.
    fn join(&mut self, later: &Mutation) -> bool {
        match (self, later) {
            (Mutation::Insert(all), Mutation::Insert(more))
            | (Mutation::Remove(all), Mutation::Remove(more))
            | (Mutation::RemoveKeys(all), Mutation::RemoveKeys(more)) => {
                if all.is_map() || more.is_map() {
                    return false;
                }
                *all = Datum::set(all.atoms().chain(more.atoms()).cloned());
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
    /// `None` if it writes nothing.
    fn line(&self) -> Option<String> {
        let cells = |table: &'static Table, column: &ColumnId, datum: &Datum| {
            let mut row = Row::new(table);
            row.put(*column, datum.clone());
            row.to_string()
        };
        Some(match self {
            Self::Insert { row, .. } => format!("insert {row}"),
            Self::Update { row, .. } => format!("set {row}"),
            Self::Delete { table, uuid } => format!("delete {} {uuid}", table.name),
            Self::Mutate { table, column, mutation, .. } => match mutation {
                Mutation::Insert(datum) => format!("add to {}", cells(table, column, datum)),
                Mutation::Remove(datum) => format!("remove from {}", cells(table, column, datum)),
                Mutation::SetKeys(datum) => format!("set {}", cells(table, column, datum)),
                Mutation::RemoveKeys(datum) => format!("remove keys from {}", cells(table, column, datum)),
            },
            Self::Wait { .. } | Self::Comment(_) | Self::Assert(_) | Self::Commit => return None,
        })
    }

    pub(crate) fn inserts(&self, of: Uuid) -> bool {
        matches!(self, Op::Insert { uuid, .. } if *uuid == of)
    }
}
