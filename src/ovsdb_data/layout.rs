//! Which columns of which tables one connection monitors: those that the caller asked for and the server has.

use std::collections::BTreeMap;

use ovnkube_ovn::schema::ColumnInfo;
use ovnkube_ovn::wire::WireDatum;
use ovnkube_ovn::{ColumnId, Database, Datum, ServerSchema, Table};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};

/// A table to keep in the cache.
#[derive(Clone, Debug)]
pub struct Monitored {
    pub table: &'static Table,
    pub columns: Columns,
}

/// Which columns of a table.
#[derive(Clone, Debug)]
pub enum Columns {
    All,
    Only(Vec<ColumnId>),
}

impl Monitored {
    /// All columns of `table`.
    pub fn all(table: &'static Table) -> Self {
        Monitored { table, columns: Columns::All }
    }

    /// Some columns of `table`.
    pub fn only(table: &'static Table, columns: impl IntoIterator<Item = ColumnId>) -> Self {
        Monitored { table, columns: Columns::Only(columns.into_iter().collect()) }
    }

    /// All columns of all tables of `database`.
    pub fn whole(database: &Database) -> Vec<Self> {
        database.tables.iter().map(|t| Monitored::all(t)).collect()
    }
}

/// Which rows of a table are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    #[default]
    All,
    /// Rows with one of these values in that column (a set must equal the value).
    Any(Vec<(ColumnId, Datum)>),
}

/// Conditions by table id; without one, all rows are kept.
pub type Conditions = BTreeMap<u16, Vec<(ColumnId, Datum)>>;

/// How to read a monitored column in a `modify`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reads {
    /// Not monitored.
    Nothing,
    /// The new value.
    Value,
    /// The difference from the old value.
    Difference,
}

/// What one monitor asks for, by table id and column id.
#[derive(PartialEq, Eq, Debug)]
pub struct Layout {
    tables: Vec<Option<(&'static Table, Vec<Reads>)>>,
    conditions: Conditions,
}

impl Layout {
    /// The part of `asked` that a server with that schema has.
    pub fn new(database: &Database, asked: &[Monitored], server: &ServerSchema, conditions: Conditions) -> Self {
        let mut tables: Vec<Option<(&'static Table, Vec<Reads>)>> = database.tables.iter().map(|_| None).collect();
        for Monitored { table, columns } in asked.iter().filter(|m| server.tables.contains_key(m.table.name)) {
            let wanted = |id| match columns {
                Columns::All => true,
                Columns::Only(list) => list.contains(&id),
            };
            let reads = |(id, info): (ColumnId, &ColumnInfo)| match server.column(table, info) {
                Some(theirs) if wanted(id) && theirs.ty.max > 1 => Reads::Difference,
                Some(_) if wanted(id) => Reads::Value,
                _ => Reads::Nothing,
            };
            if let Some(place) = tables.get_mut(usize::from(table.id)) {
                *place = Some((table, table.iter().map(reads).collect()));
            }
        }
        Layout { tables, conditions }
    }

    /// The monitored tables.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &'static Table> + '_ {
        self.tables.iter().flatten().map(|(t, _)| *t)
    }

    /// Whether the table is monitored.
    pub fn has(&self, table: &Table) -> bool {
        self.tables.get(usize::from(table.id)).is_some_and(Option::is_some)
    }

    pub(crate) fn reads(&self, table: &Table, column: ColumnId) -> Reads {
        let of = self.tables.get(usize::from(table.id)).and_then(Option::as_ref);
        of.and_then(|(_, reads)| reads.get(usize::from(column.0))).copied().unwrap_or(Reads::Nothing)
    }

    fn columns(&self, table: &'static Table) -> Vec<&'static str> {
        let monitored = |(id, info): (ColumnId, &'static ColumnInfo)| {
            (self.reads(table, id) != Reads::Nothing).then_some(info.name)
        };
        table.iter().filter_map(monitored).collect()
    }
}

impl Layout {
    fn wanted_rows(&self, table: &Table) -> Option<Value> {
        let clause = |(column, datum): &(ColumnId, Datum)| {
            let info = table.info(*column)?;
            Some(json!([info.name, "==", WireDatum { datum, is_map: info.is_map() }]))
        };
        let clauses: Vec<Value> = self.conditions.get(&table.id)?.iter().filter_map(clause).collect();
        // an empty list would mean all rows
        Some(if clauses.is_empty() { json!([false]) } else { json!(clauses) })
    }

    /// The parameter of `monitor_cond_change` that leads from `old` to this layout.
    pub fn condition_changes(&self, old: &Layout) -> Value {
        let changed = |t: &&'static Table| self.conditions.get(&t.id) != old.conditions.get(&t.id);
        let tables = self.tables().filter(changed);
        tables
            .map(|t| (t.name.to_owned(), json!([{ "where": self.wanted_rows(t).unwrap_or(json!([true])) }])))
            .collect()
    }
}

/// `{table: [{columns: […]}]}`; columns are always listed, as an empty request also sends `_version`.
impl Serialize for Layout {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        for table in self.tables() {
            let mut request = json!({ "columns": self.columns(table) });
            if let Some(rows) = self.wanted_rows(table) {
                request["where"] = rows;
            }
            map.serialize_entry(table.name, &[request])?;
        }
        map.end()
    }
}
