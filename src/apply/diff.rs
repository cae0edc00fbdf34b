//! Wanted minus had: the smallest transaction that makes the database hold what keys want.
//!
//! ```text
//!  old Owned ─┐
//!  Want ──────┼─ resolve names to uuids ─▶ rows to insert, columns to set ──┐
//!  cache ─────┘                            members to add, members to drop ─┴─▶ Txn
//! ```
//!
//! *Invariant*: an unchanged key gives nothing, and no transaction at all is sent for nothing.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use ovnkube_ovn::{Atom, ColumnId, Database, Datum, Row, Table, Uuid};
use ovnkube_ovsdb::{Cache, Txn};
use ovnkube_plan::{Claim, Member, MemberValue, RowKey, RowWant, Want, cable, claim};

use crate::ledger::Ledger;

/// What a key had written: remembered to know what goes away when it wants less.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owned {
    pub rows: Box<[RowKey]>,
    pub members: Box<[Member]>,
}

impl Owned {
    pub fn of(want: Want) -> Self {
        Self { rows: want.rows.into_iter().map(|row| row.key).collect(), members: want.members.into() }
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.members.is_empty()
    }
}

/// A key refers to a row that does not exist and that nobody in this batch makes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} does not exist yet")]
pub struct Missing(pub RowKey);

type Cell = (Uuid, ColumnId);

/// What the operations of a transaction are about, by the names that keys have for it.
#[derive(Debug, Default)]
pub struct Subjects {
    ops: Vec<Option<(Uuid, Option<ColumnId>)>>,
    rows: HashMap<RowKey, Uuid>,
}

impl Subjects {
    /// Whether an operation is about something that is wanted here.
    pub fn concerns(&self, op: usize, owned: &Owned) -> bool {
        let Some((uuid, column)) = self.ops.get(op).copied().flatten() else { return false };
        let is_it = |row: &RowKey| self.rows.get(row) == Some(&uuid);
        match column {
            None => owned.rows.iter().any(is_it),
            Some(column) => owned.members.iter().any(|member| member.column == column && is_it(&member.of)),
        }
    }
}

/// Where what a key wants is or will be, in the order in which it is wanted.
struct Found {
    rows: Vec<Option<Uuid>>,
    /// The row that it is a member of, and what is in there.
    members: Vec<Option<(Uuid, Atom)>>,
}

/// Collects the differences of many keys and gives one transaction.
pub struct Diff<'a> {
    cache: &'a Cache,
    /// Uuids of the rows named so far, those to be made among them.
    known: HashMap<RowKey, Uuid>,
    placed: HashSet<Uuid>,
    inserts: Vec<(Uuid, Row)>,
    updates: Vec<(Uuid, Row)>,
    deletes: BTreeMap<Uuid, &'static Table>,
    added: BTreeMap<Cell, BTreeSet<Atom>>,
    /// Elements that are there already and that somebody in this batch wants.
    kept: BTreeSet<(Uuid, ColumnId, Atom)>,
    dropped: BTreeMap<Cell, BTreeSet<Atom>>,
    /// Entries of maps: what a key should be, nothing for one that goes.
    entries: BTreeMap<Cell, BTreeMap<Arc<str>, Option<Arc<str>>>>,
    tables: HashMap<Uuid, &'static Table>,
    /// Rows and elements to write, and about how many bytes they are.
    size: (usize, usize),
}

/// A transaction of more is better made two. Seen: a cluster of three with an election timer of 1 s agrees on 50,000
/// rows, and never on 100,000.
const ENOUGH: (usize, usize) = (10_000, 4 << 20);

impl<'a> Diff<'a> {
    pub fn new(cache: &'a Cache) -> Self {
        Self {
            cache,
            known: HashMap::new(),
            placed: HashSet::new(),
            inserts: Vec::new(),
            updates: Vec::new(),
            deletes: BTreeMap::new(),
            added: BTreeMap::new(),
            kept: BTreeSet::new(),
            dropped: BTreeMap::new(),
            entries: BTreeMap::new(),
            tables: HashMap::new(),
            size: (0, 0),
        }
    }

    /// Whether what may wait should go into another transaction.
    pub fn is_large(&self) -> bool {
        self.size.0 > ENOUGH.0 || self.size.1 > ENOUGH.1
    }

    fn grow(&mut self, row: &Row) {
        let bytes = |atom: &Atom| 8 + atom.as_str().map_or(32, str::len);
        let of_datum = |datum: &Datum| match datum.pairs() {
            [] => datum.atoms().iter().map(bytes).sum::<usize>(),
            pairs => pairs.iter().map(|(key, value)| bytes(key) + bytes(value)).sum(),
        };
        self.size.0 += 1;
        self.size.1 += row.cells().map(|(_, datum)| of_datum(datum)).sum::<usize>();
    }

    /// The uuid of a row that exists or that this diff makes.
    pub fn find(&mut self, key: &RowKey) -> Option<Uuid> {
        if let Some(uuid) = self.known.get(key) {
            return Some(*uuid);
        }
        let uuid = existing(self.cache, key)?;
        self.known.insert(key.clone(), uuid);
        Some(uuid)
    }

    /// Takes in what one key wants now and what it had before. Nothing is taken in when something
    /// it refers to is missing.
    pub fn key(&mut self, want: &Want, old: &Owned, ledger: &Ledger) -> Result<(), Missing> {
        let found = self.check(want)?;
        for (row, uuid) in want.rows.iter().zip(found.rows) {
            if let Some(uuid) = uuid {
                self.row(row, uuid);
            }
        }
        // mostly it wants as many as before, each with the same name
        if *old.members != *want.members {
            let members: HashSet<_> = want.members.iter().collect();
            for member in old.members.iter().filter(|m| !members.contains(m) && !ledger.is_shared(m)) {
                self.drop_member(member);
            }
        }
        for (member, place) in want.members.iter().zip(found.members) {
            if let Some((of, value)) = place {
                self.add_member(member, of, value);
            }
        }
        if !old.rows.iter().eq(want.rows.iter().map(|row| &row.key)) {
            let kept: HashSet<_> = want.rows.iter().map(|r| &r.key).collect();
            for row in old.rows.iter().filter(|row| !kept.contains(row) && !ledger.has_others(row)) {
                self.drop_row(row);
            }
        }
        Ok(())
    }

    /// Finds every row that is wanted or referred to, giving uuids to those to be made.
    fn check(&mut self, want: &Want) -> Result<Found, Missing> {
        let mut fresh = Vec::new();
        let rows = want.rows.iter().map(|row| self.find_or_make(row, &mut fresh)).collect();
        match self.members(want) {
            Ok(members) => {
                self.tables.extend(fresh.iter().map(|row| (row.1, row.0.table)));
                Ok(Found { rows, members })
            }
            Err(missing) => {
                for (row, _) in &fresh {
                    self.known.remove(row);
                }
                Err(missing)
            }
        }
    }

    /// Nothing for a row that says something else in this database.
    fn find_or_make(&mut self, want: &RowWant, fresh: &mut Vec<(RowKey, Uuid)>) -> Option<Uuid> {
        if let Some(uuid) = self.find(&want.key) {
            return Some(uuid);
        }
        let lacks = |column| !self.cache.supports(want.key.table, column);
        if want.needs.is_some_and(lacks) || !self.cache.has_table(want.key.table) {
            return None;
        }
        let uuid = self.fresh_uuid(&want.key);
        self.known.insert(want.key.clone(), uuid);
        fresh.push((want.key.clone(), uuid));
        Some(uuid)
    }

    fn members(&mut self, want: &Want) -> Result<Vec<Option<(Uuid, Atom)>>, Missing> {
        for row in want.rows.iter().flat_map(|row| row.refs.iter().flat_map(|(_, rows)| rows)) {
            self.find_for(want, row)?;
        }
        let mut members = Vec::with_capacity(want.members.len());
        for member in &want.members {
            let of = self.find_for(want, &member.of)?;
            let value = match &member.value {
                MemberValue::Row(row) => self.find_for(want, row)?.map(Atom::Uuid),
                MemberValue::Text(text) | MemberValue::Entry(text, _) => Some(Atom::Str(text.clone())),
            };
            members.push(of.zip(value));
        }
        Ok(members)
    }

    /// A row that `want` refers to; nothing for one of its own that is not to be, or of a table that the server lacks.
    fn find_for(&mut self, want: &Want, row: &RowKey) -> Result<Option<Uuid>, Missing> {
        match self.find(row) {
            None if self.cache.has_table(row.table) && !want.rows.iter().any(|own| own.key == *row) => {
                Err(Missing(row.clone()))
            }
            found => Ok(found),
        }
    }

    /// Where a row of that uuid has another name, somebody renamed it: it is left alone.
    fn fresh_uuid(&self, key: &RowKey) -> Uuid {
        let name = format!("{}\0{}", key.within.as_deref().unwrap_or_default(), key.id);
        self.cache.fresh_uuid(key.table, &name)
    }

    fn row(&mut self, want: &RowWant, uuid: Uuid) {
        let mut row = Cow::Borrowed(&want.row);
        for (column, keys) in &want.refs {
            let uuids: Vec<_> = keys.iter().filter_map(|k| self.find(k)).map(Atom::Uuid).collect();
            row.to_mut().put(*column, Datum::set(uuids));
        }
        match self.cache.get(want.key.table, uuid) {
            Some(have) => {
                let mut change = Row::new(want.key.table);
                for (column, datum) in
                    row.differing(have).filter(|(column, _)| self.cache.supports(want.key.table, *column))
                {
                    change.put(column, datum.clone());
                }
                if !change.is_empty() {
                    self.grow(&change);
                    self.updates.push((uuid, change));
                }
                self.deletes.remove(&uuid);
            }
            // several keys may want one row, each the same
            None => {
                if self.placed.insert(uuid) {
                    self.grow(&row);
                    self.inserts.push((uuid, row.into_owned()));
                }
            }
        }
    }

    fn add_member(&mut self, member: &Member, of: Uuid, value: Atom) {
        if let MemberValue::Entry(key, value) = &member.value {
            return self.set_entry(member, of, key, value);
        }
        let cell = (of, member.column);
        if let Some(dropped) = self.dropped.get_mut(&cell) {
            dropped.remove(&value);
        }
        let have = self.cache.get(member.of.table, of).and_then(|row| row.get(member.column));
        if have.is_some_and(|have| have.contains(&value)) {
            self.kept.insert((of, member.column, value));
        } else {
            self.tables.insert(of, member.of.table);
            self.added.entry(cell).or_default().insert(value);
        }
    }

    fn set_entry(&mut self, member: &Member, of: Uuid, key: &Arc<str>, value: &Arc<str>) {
        let have = self.cache.get(member.of.table, of).and_then(|row| row.get(member.column));
        self.tables.insert(of, member.of.table);
        let entries = self.entries.entry((of, member.column)).or_default();
        if have.and_then(|have| have.value_of(key)).and_then(Atom::as_str) == Some(value) {
            self.kept.insert((of, member.column, Atom::Str(key.clone())));
            entries.remove(key);
        } else {
            entries.insert(key.clone(), Some(value.clone()));
        }
    }

    /// Drops a key from a map, unless it is not in there or somebody wants it in this very batch.
    pub fn drop_entry(&mut self, table: &'static Table, of: Uuid, column: ColumnId, key: &Atom) {
        let Some(text) = key.as_str() else { return };
        let have = self.cache.get(table, of).and_then(|row| row.get(column));
        if have.and_then(|have| have.value_of(text)).is_some() && !self.kept.contains(&(of, column, key.clone())) {
            self.tables.insert(of, table);
            self.entries.entry((of, column)).or_default().entry(text.into()).or_insert(None);
        }
    }

    fn drop_member(&mut self, member: &Member) {
        if let MemberValue::Entry(key, _) = &member.value {
            let of = self.find(&member.of);
            return of.into_iter().for_each(|of| {
                self.drop_entry(member.of.table, of, member.column, &Atom::Str(key.clone()));
            });
        }
        let (Some(of), Some(value)) = (self.find(&member.of), self.value(&member.value)) else { return };
        self.drop_value(member.of.table, of, member.column, value);
    }

    /// Drops a value from a set, unless it is not in there or somebody wants it in this very batch.
    pub fn drop_value(&mut self, table: &'static Table, of: Uuid, column: ColumnId, value: Atom) {
        let cell = (of, column);
        let there = self.cache.get(table, of).and_then(|row| row.get(column)).is_some_and(|d| d.contains(&value));
        if there && !self.kept.contains(&(of, column, value.clone())) {
            self.tables.insert(of, table);
            self.dropped.entry(cell).or_default().insert(value);
        }
    }

    fn drop_row(&mut self, key: &RowKey) {
        if let Some(uuid) = existing(self.cache, key) {
            self.delete(key.table, uuid);
        }
    }

    /// Deletes a row. One that lives by a reference goes when the last reference does, which is the
    /// member or column that is dropped with it.
    pub fn delete(&mut self, table: &'static Table, uuid: Uuid) {
        if table.is_root {
            self.deletes.insert(uuid, table);
        }
    }

    fn value(&mut self, value: &MemberValue) -> Option<Atom> {
        match value {
            MemberValue::Row(key) => self.find(key).map(Atom::Uuid),
            MemberValue::Text(text) | MemberValue::Entry(text, _) => Some(Atom::Str(text.clone())),
        }
    }

    /// How many rows and elements are to go.
    pub fn removals(&self) -> usize {
        let entries = self.entries.values().flat_map(BTreeMap::values).filter(|value| value.is_none()).count();
        self.deletes.len() + self.dropped.values().map(BTreeSet::len).sum::<usize>() + entries
    }

    /// The transaction, empty when nothing differs, and what it is about.
    pub fn into_parts(mut self, database: &'static Database) -> (Txn, Subjects) {
        let rows = std::mem::take(&mut self.known);
        let txn = self.into_txn(database);
        let ops = txn.subjects();
        (txn, Subjects { ops, rows })
    }

    /// The transaction; empty when nothing differs.
    pub fn into_txn(self, database: &'static Database) -> Txn {
        let mut txn = Txn::new(database);
        for (uuid, row) in self.inserts {
            txn.insert(uuid, row);
        }
        for (uuid, row) in self.updates {
            txn.update(uuid, row);
        }
        let gone = |cell: &Cell| self.deletes.contains_key(&cell.0);
        for (cell, values) in self.dropped.iter().filter(|(cell, values)| !values.is_empty() && !gone(cell)) {
            if let Some(table) = self.tables.get(&cell.0) {
                txn.remove_from(table, cell.0, cell.1, Datum::set(values.iter().cloned()));
            }
        }
        for (cell, values) in self.added.iter().filter(|(cell, values)| !values.is_empty() && !gone(cell)) {
            if let Some(table) = self.tables.get(&cell.0) {
                txn.insert_into(table, cell.0, cell.1, Datum::set(values.iter().cloned()));
            }
        }
        for (cell, entries) in self.entries.iter().filter(|(cell, _)| !gone(cell)) {
            let Some(table) = self.tables.get(&cell.0) else { continue };
            let removed: Vec<_> = entries.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| &**key).collect();
            if !removed.is_empty() {
                txn.remove_keys(table, cell.0, cell.1, removed);
            }
            let text = |text: &Arc<str>| Atom::Str(text.clone());
            let set = entries.iter().filter_map(|(key, value)| Some((text(key), text(value.as_ref()?))));
            let set = Datum::map(set);
            if !set.is_empty() {
                txn.set_pairs(table, cell.0, cell.1, set);
            }
        }
        for (uuid, table) in &self.deletes {
            txn.delete(table, *uuid);
        }
        txn
    }
}

/// The row a key names, if there is one of ours. Of several (a name without an index may stand twice) the one with the
/// port that only ours has, else one with our marks, else the one with the lowest uuid; the others are garbage, or
/// somebody else's.
pub fn existing(cache: &Cache, key: &RowKey) -> Option<Uuid> {
    let within = |uuid: &Uuid| key.within.as_ref().is_none_or(|parent| has_parent(cache, *uuid, parent));
    let candidates = cache.lookup(key.table, &key.id).iter().copied().filter(within);
    let rows = candidates.filter_map(|uuid| Some((uuid, cache.get(key.table, uuid)?.as_ref())));
    let mut ours = rows.filter(|(_, row)| claim(row) != Claim::Foreign || has_cable(cache, row));
    let first = ours.next()?;
    let Some(second) = ours.next() else { return Some(first.0) };
    let all = [first, second].into_iter().chain(ours);
    all.min_by_key(|(uuid, row)| (!has_cable(cache, row), claim(row), *uuid)).map(|(uuid, _)| uuid)
}

/// Whether a switch or router has the port that only ours have.
pub(crate) fn has_cable(cache: &Cache, row: &Row) -> bool {
    let Some((table, port)) = cable(row) else { return false };
    let ports = row.table().column("ports").and_then(|column| row.get(column));
    cache.lookup(table, &port).iter().any(|uuid| ports.is_some_and(|ports| ports.contains(&Atom::Uuid(*uuid))))
}

fn has_parent(cache: &Cache, uuid: Uuid, name: &str) -> bool {
    cache.parents(uuid).any(|parent| existing(cache, &RowKey::new(parent.table, name)) == Some(parent.uuid))
}
