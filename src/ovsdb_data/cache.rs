//! The cache: rows as the server has them, an index by identity, and an index of which rows refer to which. All are
//! updated together.

use std::collections::{BTreeSet, HashMap, HashSet, hash_map::Entry};
use std::sync::Arc;

use ovnkube_ovn::schema::ColumnInfo;
use ovnkube_ovn::{Atom, ColumnId, Database, Datum, Row, ServerSchema, Table, Uuid, derived_uuid};

use crate::gone::Gone;
use crate::layout::{Layout, Reads};
use crate::update::{Change, Updates};
use crate::uuids::UuidMap;

/// Returns a row's identity, by which [`Cache::lookup`] finds it. Any number of rows may share one.
pub type Identity = fn(&Row) -> Option<Arc<str>>;

/// One row before and after a change; the two are never equal.
#[derive(Clone, Debug)]
pub struct RowChange {
    pub table: &'static Table,
    pub uuid: Uuid,
    /// The row before; `None` if it was inserted.
    pub old: Option<Arc<Row>>,
    /// The row after; `None` if it was deleted.
    pub new: Option<Arc<Row>>,
}

/// A row that refers to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    pub table: &'static Table,
    pub column: ColumnId,
    pub uuid: Uuid,
}

/// An update or deletion of a row that does not exist.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("row {uuid} of {table} is not in the cache")]
pub struct Inconsistent {
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
    /// By table: the columns that refer to rows whose parents are indexed.
    referring: Vec<Vec<ColumnId>>,
    gone: Gone,
    /// The schema of the server the rows are from.
    schema: Option<Arc<ServerSchema>>,
}

#[derive(Default)]
struct TableRows {
    rows: UuidMap<Arc<Row>>,
    by_id: HashMap<Arc<str>, Ids>,
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
    /// An empty cache. It supports no column until the server's schema is set. `has_parents` says for which tables
    /// [`Cache::parents`] is needed.
    pub fn new(database: &'static Database, identity: Identity, has_parents: fn(&Table) -> bool) -> Self {
        let tables = database.tables.iter().map(|_| TableRows::default()).collect();
        let is_asked = |name: &str| database.table(name).is_some_and(has_parents);
        let refers = |info: &ColumnInfo| info.references().any(|reference| is_asked(reference.table));
        let columns =
            |table: &&'static Table| table.iter().filter(|(_, info)| refers(info)).map(|(id, _)| id).collect();
        let referring = database.tables.iter().map(columns).collect();
        let (parents, gone) = Default::default();
        Cache { tables, parents, database, identity, referring, gone, schema: None }
    }

    /// Sets the schema of the server that the rows come from.
    pub fn set_schema(&mut self, schema: Arc<ServerSchema>) {
        self.schema = Some(schema);
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

    /// A uuid for a new row of `table`: always the same for the same `name`, so that a repeated insert cannot create a
    /// second row; but another one if a row has it, or had it lately. `ovn-northd` 25.03 crashes if a load balancer is
    /// deleted and inserted again with the same uuid before it has looked.
    pub fn fresh_uuid(&self, table: &Table, name: &str) -> Uuid {
        let mut uuid = derived_uuid(table.name, name);
        let mut time = 0_u32;
        while self.get(table, uuid).is_some() || self.gone.has(uuid) {
            time += 1;
            uuid = derived_uuid(table.name, &format!("{name}\0{time}"));
        }
        uuid
    }

    /// The rows of `table` whose identity is `id`, sorted by uuid.
    pub fn lookup(&self, table: &Table, id: &str) -> &[Uuid] {
        self.of(table).and_then(|t| t.by_id.get(id)).map_or(&[], Ids::as_slice)
    }

    /// The same rows, each with its uuid.
    pub fn named<'a>(&'a self, table: &Table, id: &str) -> impl Iterator<Item = (Uuid, &'a Arc<Row>)> + use<'a> {
        let rows = self.of(table).map(|t| &t.rows);
        self.lookup(table, id).iter().filter_map(move |uuid| Some((*uuid, rows?.get(uuid)?)))
    }

    /// Whether the server has the column. A column that it lacks would always differ from what is wanted, so it is left
    /// out of transactions.
    pub fn supports(&self, table: &Table, column: impl Into<ColumnId>) -> bool {
        let info = table.info(column.into());
        self.schema.as_ref().zip(info).is_some_and(|(schema, info)| schema.column(table, info).is_some())
    }

    /// The sets in `row` with texts that the server's schema does not allow, such as a later release's, each without these:
    /// the server would refuse the row because of them.
    pub fn narrowed(&self, row: &Row) -> impl Iterator<Item = (ColumnId, Datum)> {
        row.cells().filter_map(move |(column, datum)| {
            let info = row.table().info(column).filter(|info| info.is_enum && info.max > 1)?;
            let allowed = &self.schema.as_ref()?.column(row.table(), info)?.ty.key.allowed;
            let is_allowed = |atom: &&Atom| atom.as_str().is_none_or(|text| allowed.iter().any(|one| one == text));
            let is_whole = allowed.is_empty() || datum.atoms().all(|atom| is_allowed(&atom));
            (!is_whole).then(|| (column, Datum::set(datum.atoms().filter(is_allowed).cloned())))
        })
    }

    /// Whether the server has the table.
    pub fn has_table(&self, table: &Table) -> bool {
        self.schema.as_ref().is_some_and(|schema| schema.tables.contains_key(table.name))
    }

    /// The monitored rows that refer to row `uuid`, sorted; none if `has_parents` of [`Cache::new`] excludes its table.
    pub fn parents(&self, uuid: Uuid) -> impl Iterator<Item = Parent> + '_ {
        let first = (uuid, 0, ColumnId(0), Uuid::nil());
        let last = (uuid, u16::MAX, ColumnId(u16::MAX), Uuid::max());
        self.parents.range(first..=last).filter_map(|(_, table, column, uuid)| {
            let table = self.database.tables.get(usize::from(*table))?;
            Some(Parent { table, column: *column, uuid: *uuid })
        })
    }

    /// Applies the changes of one commit. After an inconsistency, what was applied before it is returned, too.
    pub fn apply(&mut self, updates: Updates, layout: &Layout) -> (Vec<RowChange>, Result<(), Inconsistent>) {
        let mut done = Vec::new();
        self.gone.begin();
        for (table, rows) in updates.0 {
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

    /// Makes the cache hold exactly `updates`, a full download, and returns what that changed.
    pub fn replace(&mut self, updates: Updates) -> Vec<RowChange> {
        if self.tables.iter().all(|t| t.rows.is_empty()) {
            return self.fill(updates);
        }
        let mut stale: Vec<HashSet<Uuid>> = self.tables.iter().map(|t| t.rows.keys().copied().collect()).collect();
        let mut done = Vec::new();
        for (table, rows) in updates.0 {
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
        self.gone.begin();
        for (table, gone) in self.database.tables.iter().zip(stale) {
            for uuid in gone {
                // northd may not have looked since, as after an update
                self.gone.remember(uuid);
                let old = self.get(table, uuid).cloned();
                done.push(self.put(table, uuid, old, None));
            }
        }
        done
    }

    /// Like [`Cache::replace`] for an empty cache, but builds the reference index at once.
    fn fill(&mut self, updates: Updates) -> Vec<RowChange> {
        let (mut done, mut parents) = (Vec::new(), Vec::new());
        for (table, rows) in updates.0 {
            let Some(into) = self.tables.get_mut(usize::from(table.id)) else { continue };
            let referring = self.referring.get(usize::from(table.id)).map_or(&[][..], Vec::as_slice);
            into.rows.reserve(rows.len());
            for (uuid, change) in rows {
                let Change::Full(row) = change else { continue };
                if let Some(id) = (self.identity)(&row) {
                    into.add_id(id, uuid);
                }
                for (column, datum) in row.cells().filter(|(id, _)| referring.contains(id)) {
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

    /// Sets a row, or removes it.
    pub fn set(&mut self, table: &'static Table, uuid: Uuid, new: Option<Arc<Row>>) {
        let old = self.get(table, uuid).cloned();
        if old != new {
            self.put(table, uuid, old, new);
        }
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
        for column in self.referring.get(usize::from(table.id)).into_iter().flatten().copied() {
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
    a.only_here(b).filter_map(Atom::as_uuid).collect()
}

fn modified(old: &Row, cells: Vec<(ColumnId, Datum)>, layout: &Layout) -> Row {
    let mut row = old.clone();
    let table = old.table();
    for (column, change) in cells {
        let datum = match (layout.reads(table, column), old.get(column)) {
            (Reads::Difference, Some(have)) => have.patched(&change),
            // a set that cannot be empty has a default, which the row leaves out but the difference includes
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
    fn add_id(&mut self, id: Arc<str>, uuid: Uuid) {
        match self.by_id.entry(id) {
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
