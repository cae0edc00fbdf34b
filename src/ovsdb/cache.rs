//! The cache: rows as the server has them, with an index by identity and one of who refers to
//! whom, all kept in the same step.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque, hash_map::Entry};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use ovnkube_ovn::schema::ColumnInfo;
use ovnkube_ovn::{Atom, ColumnId, Database, Datum, Row, ServerSchema, Table, Uuid, derived_uuid};

use crate::layout::{Layout, Reads};
use crate::txn::only_in;
use crate::update::{Change, Updates};

/// Deleted rows that are remembered: more than others can be behind with.
const REMEMBERED: usize = 16_384;

/// Gives a row's identity: what [`Cache::lookup`] finds it by. Any number of rows may share one.
pub type Identity = fn(&Row) -> Option<String>;

/// Uuids are random already; hashing them again would cost and not help.
#[derive(Default)]
pub(crate) struct UuidHasher(u64);

impl Hasher for UuidHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            for (to, from) in word.iter_mut().zip(chunk) {
                *to = *from;
            }
            self.0 = (self.0 ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
    }
}

pub(crate) type UuidMap<T> = HashMap<Uuid, T, BuildHasherDefault<UuidHasher>>;

/// One row before and after; the same row on neither side twice.
#[derive(Clone, Debug)]
pub(crate) struct RowChange {
    pub(crate) table: &'static Table,
    pub(crate) uuid: Uuid,
    pub(crate) old: Option<Arc<Row>>,
    pub(crate) new: Option<Arc<Row>>,
}

/// A row that refers to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    pub table: &'static Table,
    pub column: ColumnId,
    pub uuid: Uuid,
}

/// An update for a row that is not there, or of a row that is there already.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("apply update: row {uuid} of {table} is not in the cache")]
pub(crate) struct Inconsistent {
    table: &'static str,
    uuid: Uuid,
}

/// All monitored rows of one database.
pub struct Cache {
    tables: Vec<TableRows>,
    /// (row referred to, table and column and row that refers)
    parents: BTreeSet<(Uuid, u16, ColumnId, Uuid)>,
    database: &'static Database,
    identity: Identity,
    gone: Gone,
    /// The schema of the server the rows are from.
    pub(crate) schema: Option<Arc<ServerSchema>>,
}

/// The rows that were deleted last.
#[derive(Default)]
struct Gone {
    order: VecDeque<Uuid>,
    set: HashSet<Uuid, BuildHasherDefault<UuidHasher>>,
}

impl Gone {
    fn remember(&mut self, uuid: Uuid) {
        if !self.set.insert(uuid) {
            return;
        }
        self.order.push_back(uuid);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.set.remove(&oldest);
        }
    }
}

#[derive(Default)]
struct TableRows {
    rows: UuidMap<Arc<Row>>,
    by_id: HashMap<Box<str>, Ids>,
}

enum Ids {
    One(Uuid),
    Many(Vec<Uuid>),
}

impl Ids {
    fn as_slice(&self) -> &[Uuid] {
        match self {
            Ids::One(uuid) => std::slice::from_ref(uuid),
            Ids::Many(uuids) => uuids,
        }
    }
}

impl Cache {
    pub(crate) fn new(database: &'static Database, identity: Identity) -> Self {
        let tables = database.tables.iter().map(|_| TableRows::default()).collect();
        Cache { tables, parents: BTreeSet::new(), database, identity, gone: Gone::default(), schema: None }
    }

    fn of(&self, table: &Table) -> Option<&TableRows> {
        self.tables.get(usize::from(table.id))
    }

    /// The row of `table` with that uuid.
    pub fn get(&self, table: &Table, uuid: Uuid) -> Option<&Arc<Row>> {
        self.of(table)?.rows.get(&uuid)
    }

    /// All rows of `table`, in no order.
    pub fn iter(&self, table: &Table) -> impl Iterator<Item = (Uuid, &Arc<Row>)> {
        self.of(table).into_iter().flat_map(|t| t.rows.iter().map(|(uuid, row)| (*uuid, row)))
    }

    /// Number of rows of `table`.
    pub fn len(&self, table: &Table) -> usize {
        self.of(table).map_or(0, |t| t.rows.len())
    }

    /// Whether `table` has no rows.
    pub fn is_empty(&self, table: &Table) -> bool {
        self.len(table) == 0
    }

    /// A uuid for a new row of `table`: always the same one for the same `name`, so that an insert that is sent
    /// again cannot make a second row; but another one where a row has it, or had it lately. `ovn-northd` 25.03
    /// dies of load balancers that go and come back with one uuid before it has looked.
    pub fn fresh_uuid(&self, table: &Table, name: &str) -> Uuid {
        let mut uuid = derived_uuid(table.name, name);
        let mut time = 0_u32;
        while self.get(table, uuid).is_some() || self.gone.set.contains(&uuid) {
            time += 1;
            uuid = derived_uuid(table.name, &format!("{name}\0{time}"));
        }
        uuid
    }

    /// The rows of `table` whose identity is `id`, sorted by uuid.
    pub fn lookup(&self, table: &Table, id: &str) -> &[Uuid] {
        self.of(table).and_then(|t| t.by_id.get(id)).map_or(&[], Ids::as_slice)
    }

    /// Whether the server has the column. One it lacks differs from what is wanted for ever, and is
    /// left out of transactions.
    pub fn supports(&self, table: &Table, column: impl Into<ColumnId>) -> bool {
        let info = table.info(column.into());
        self.schema.as_ref().zip(info).is_some_and(|(schema, info)| schema.column(table, info).is_some())
    }

    /// Whether the server has the table.
    pub fn has_table(&self, table: &Table) -> bool {
        self.schema.as_ref().is_some_and(|schema| schema.tables.contains_key(table.name))
    }

    /// The monitored rows that refer to row `uuid`, sorted.
    pub fn parents(&self, uuid: Uuid) -> impl Iterator<Item = Parent> + '_ {
        let first = (uuid, 0, ColumnId(0), Uuid::nil());
        let last = (uuid, u16::MAX, ColumnId(u16::MAX), Uuid::max());
        self.parents.range(first..=last).filter_map(|(_, table, column, uuid)| {
            let table = self.database.tables.get(usize::from(*table))?;
            Some(Parent { table, column: *column, uuid: *uuid })
        })
    }

    /// Applies the changes of one commit. What was applied before an inconsistency is reported too.
    pub(crate) fn apply(&mut self, updates: Updates, layout: &Layout) -> (Vec<RowChange>, Result<(), Inconsistent>) {
        let mut done = Vec::new();
        for (table, rows) in updates {
            for (uuid, change) in rows {
                let old = self.get(table, uuid).cloned();
                let new = match (change, &old) {
                    (Change::Full(row), _) => Some(row),
                    (Change::Modify(cells), Some(old)) => Some(modified(old, cells, layout)),
                    (Change::Delete, Some(_)) => None,
                    (Change::Modify(_) | Change::Delete, None) => {
                        return (done, Err(Inconsistent { table: table.name, uuid }));
                    }
                };
                if new.is_none() {
                    self.gone.remember(uuid);
                }
                if old.as_deref() != new.as_ref() {
                    done.push(self.put(table, uuid, old, new.map(Arc::new)));
                }
            }
        }
        (done, Ok(()))
    }

    /// Makes the cache hold exactly `updates`, a full download, and tells what that changed.
    pub(crate) fn replace(&mut self, updates: Updates) -> Vec<RowChange> {
        if self.tables.iter().all(|t| t.rows.is_empty()) {
            return self.fill(updates);
        }
        let mut stale: Vec<HashSet<Uuid>> = self.tables.iter().map(|t| t.rows.keys().copied().collect()).collect();
        let mut done = Vec::new();
        for (table, rows) in updates {
            for (uuid, change) in rows {
                let Change::Full(row) = change else { continue };
                if let Some(stale) = stale.get_mut(usize::from(table.id)) {
                    stale.remove(&uuid);
                }
                let old = self.get(table, uuid).cloned();
                if old.as_deref() != Some(&row) {
                    done.push(self.put(table, uuid, old, Some(Arc::new(row))));
                }
            }
        }
        for (table, gone) in self.database.tables.iter().zip(stale) {
            for uuid in gone {
                let old = self.get(table, uuid).cloned();
                done.push(self.put(table, uuid, old, None));
            }
        }
        done
    }

    /// As [`Cache::replace`] for an empty cache: the reference index is built in one go.
    fn fill(&mut self, updates: Updates) -> Vec<RowChange> {
        let (mut done, mut parents) = (Vec::new(), Vec::new());
        for (table, rows) in updates {
            let Some(into) = self.tables.get_mut(usize::from(table.id)) else { continue };
            into.rows.reserve(rows.len());
            for (uuid, change) in rows {
                let Change::Full(row) = change else { continue };
                if let Some(id) = (self.identity)(&row) {
                    into.add_id(id, uuid);
                }
                for (column, datum) in row.cells().filter(|(id, _)| refers(table, *id)) {
                    parents.extend(datum.uuids().map(|to| (to, table.id, column, uuid)));
                }
                let row = Arc::new(row);
                into.rows.insert(uuid, Arc::clone(&row));
                done.push(RowChange { table, uuid, old: None, new: Some(row) });
            }
        }
        self.parents = parents.into_iter().collect();
        done
    }

    fn put(&mut self, table: &'static Table, uuid: Uuid, old: Option<Arc<Row>>, new: Option<Arc<Row>>) -> RowChange {
        self.update_parents(table, uuid, old.as_deref(), new.as_deref());
        if let Some(into) = self.tables.get_mut(usize::from(table.id)) {
            let (was, is) = (old.as_deref().and_then(self.identity), new.as_deref().and_then(self.identity));
            if was != is {
                if let Some(id) = was {
                    into.remove_id(&id, uuid);
                }
                if let Some(id) = is {
                    into.add_id(id, uuid);
                }
            }
            match &new {
                Some(row) => into.rows.insert(uuid, Arc::clone(row)),
                None => into.rows.remove(&uuid),
            };
        }
        RowChange { table, uuid, old, new }
    }

    fn update_parents(&mut self, table: &'static Table, uuid: Uuid, old: Option<&Row>, new: Option<&Row>) {
        for (column, info) in table.iter().filter(|(_, info)| info.references().next().is_some()) {
            debug_assert!(refers(table, column), "{}", info.name);
            let (was, is) = (old.and_then(|r| r.get(column)), new.and_then(|r| r.get(column)));
            if was == is {
                continue;
            }
            for to in gone(was, is) {
                self.parents.remove(&(to, table.id, column, uuid));
            }
            for to in gone(is, was) {
                self.parents.insert((to, table.id, column, uuid));
            }
        }
    }
}

/// The uuids in `a` and not in `b`.
fn gone(a: Option<&Datum>, b: Option<&Datum>) -> Vec<Uuid> {
    let Some(a) = a else { return Vec::new() };
    let Some(b) = b else { return a.uuids().collect() };
    if a.is_map() || b.is_map() {
        let kept: BTreeSet<Uuid> = b.uuids().collect();
        return a.uuids().filter(|u| !kept.contains(u)).collect();
    }
    only_in(a.atoms(), b.atoms()).filter_map(Atom::as_uuid).collect()
}

fn refers(table: &Table, column: ColumnId) -> bool {
    table.info(column).is_some_and(|c| c.references().next().is_some())
}

fn modified(old: &Row, cells: Vec<(ColumnId, Datum)>, layout: &Layout) -> Row {
    let mut row = old.clone();
    let table = old.table();
    for (column, change) in cells {
        let datum = match (layout.reads(table, column), old.get(column)) {
            (Reads::Difference, Some(have)) => have.patched(&change),
            // an absent value of a set that cannot be empty is its default, and part of the difference
            (Reads::Difference, None) => {
                table.info(column).map_or(Datum::EMPTY, ColumnInfo::default_datum).patched(&change)
            }
            _ => change,
        };
        if table.info(column).is_some_and(|c| c.is_default(&datum)) {
            row.remove(column);
        } else {
            row.put(column, datum);
        }
    }
    row
}

impl TableRows {
    fn add_id(&mut self, id: String, uuid: Uuid) {
        match self.by_id.entry(id.into_boxed_str()) {
            Entry::Vacant(place) => drop(place.insert(Ids::One(uuid))),
            Entry::Occupied(mut place) => {
                let mut uuids = place.get().as_slice().to_vec();
                if let Err(at) = uuids.binary_search(&uuid) {
                    uuids.insert(at, uuid);
                    place.insert(Ids::Many(uuids));
                }
            }
        }
    }

    fn remove_id(&mut self, id: &str, uuid: Uuid) {
        let Some(ids) = self.by_id.get_mut(id) else { return };
        let left: Vec<Uuid> = ids.as_slice().iter().copied().filter(|u| *u != uuid).collect();
        match left.as_slice() {
            [] => drop(self.by_id.remove(id)),
            [one] => *ids = Ids::One(*one),
            _ => *ids = Ids::Many(left),
        }
    }
}
