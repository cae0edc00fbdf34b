//! The rows of a northbound database, and what `ovsdb-server` does with a transaction: it refuses what the server refuses,
//! and deletes and changes what the server does by itself. `real.rs` compares it with the server.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, LazyLock};

use ovnkube_ovn::nb::DATABASE;
use ovnkube_ovn::schema::{ColumnInfo, ServerBase, ServerColumn, ServerSchema};
use ovnkube_ovn::wire::{DatumSeed, Interner, WireDatum};
use ovnkube_ovn::{Atom, ColumnId, Datum, Row, Table, Uuid};
use serde::de::DeserializeSeed as _;
use serde_json::{Map, Value, json};

/// One of the releases that OVN has made.
const SCHEMA: &str = include_str!("../../src/ovn/schema/ovn-nb.ovsschema");

type Rows = BTreeMap<Uuid, Arc<Row>>;

/// Which columns of which tables a monitor asks for; `None`: all.
pub(crate) type Wanted = Option<BTreeMap<String, BTreeSet<String>>>;

#[derive(Clone)]
pub(crate) struct Database {
    schema: Arc<ServerSchema>,
    /// By the number of the table. Cells with default values are left out.
    tables: Vec<Rows>,
    /// By the number of the table: the columns that refer to rows.
    references: Arc<Vec<Vec<Refers>>>,
}

struct Refers {
    column: ColumnId,
    target: usize,
    strong: bool,
}

/// A row before and after a transaction.
pub(crate) struct Change {
    pub(crate) table: &'static Table,
    pub(crate) uuid: Uuid,
    pub(crate) old: Option<Arc<Row>>,
    pub(crate) new: Option<Arc<Row>>,
}

/// An error of the server, and its details.
struct Refusal(&'static str, String);

thread_local! {
    /// Made once: it is large.
    static TEXTS: RefCell<Interner> = RefCell::default();
}

const SYNTAX: &str = "syntax error";
const CONSTRAINT: &str = "constraint violation";
const INTEGRITY: &str = "referential integrity violation";

impl Database {
    /// An empty database of a schema.
    pub(crate) fn new(schema: &str) -> Self {
        let schema = ServerSchema::parse(schema.as_bytes()).unwrap();
        let target = |name: &str| DATABASE.tables.iter().position(|table| table.name == name).unwrap();
        let of = |table: &&'static Table| {
            let columns = table.iter().filter(|(_, info)| schema.column(table, info).is_some());
            let refers = columns.flat_map(|(column, info)| {
                info.references().map(move |reference| (column, reference)).collect::<Vec<_>>()
            });
            let refers = refers.filter(|(_, reference)| schema.tables.contains_key(reference.table));
            refers.map(|(column, to)| Refers { column, target: target(to.table), strong: to.strong }).collect()
        };
        let references = Arc::new(DATABASE.tables.iter().map(of).collect());
        Self { schema: Arc::new(schema), tables: vec![Rows::new(); DATABASE.tables.len()], references }
    }

    /// An empty database of our schema.
    pub(crate) fn empty() -> Self {
        static EMPTY: LazyLock<Database> = LazyLock::new(|| Database::new(SCHEMA));
        EMPTY.clone()
    }

    /// Our schema, without spaces.
    pub(crate) fn schema_text() -> &'static str {
        static TEXT: LazyLock<String> = LazyLock::new(|| serde_json::from_str::<Value>(SCHEMA).unwrap().to_string());
        &TEXT
    }

    pub(crate) fn schema(&self) -> &Arc<ServerSchema> {
        &self.schema
    }

    pub(crate) fn get(&self, table: &Table, uuid: Uuid) -> Option<&Arc<Row>> {
        self.tables[usize::from(table.id)].get(&uuid)
    }

    pub(crate) fn rows(&self, table: &Table) -> impl Iterator<Item = (Uuid, &Arc<Row>)> {
        self.tables[usize::from(table.id)].iter().map(|(uuid, row)| (*uuid, row))
    }

    /// All rows, as if they had just been inserted.
    pub(crate) fn all(&self) -> Vec<Change> {
        changes(&vec![Rows::new(); self.tables.len()], &self.tables)
    }

    /// Runs the operations; returns what the server answers, and what changed. `holds`: the locks of the caller.
    pub(crate) fn transact(&mut self, ops: &[Value], holds: impl Fn(&str) -> bool) -> (Vec<Value>, Vec<Change>) {
        let before = self.tables.clone();
        let mut results = Vec::new();
        for op in ops {
            match self.run(op, &holds, &before) {
                Ok(result) => results.push(result),
                Err(refusal) => {
                    results.push(refusal.json());
                    results.resize(ops.len(), Value::Null);
                    self.tables = before;
                    return (results, Vec::new());
                }
            }
        }
        if let Err(refusal) = self.commit() {
            results.push(refusal.json());
            self.tables = before;
            return (results, Vec::new());
        }
        let changes = changes(&before, &self.tables);
        (results, changes)
    }

    fn run(&mut self, op: &Value, holds: &impl Fn(&str) -> bool, before: &[Rows]) -> Result<Value, Refusal> {
        match op["op"].as_str().unwrap_or_default() {
            "comment" | "commit" => return Ok(json!({})),
            "assert" if holds(op["lock"].as_str().unwrap_or_default()) => return Ok(json!({})),
            "assert" => return Err(Refusal("not owner", "Asserted lock not held.".into())),
            _ => {}
        }
        let table = op["table"].as_str().and_then(|name| DATABASE.table(name));
        let table = table.filter(|table| self.schema.tables.contains_key(table.name));
        let table = table.ok_or_else(|| Refusal(SYNTAX, format!("No table named {}.", op["table"])))?;
        let at = usize::from(table.id);
        if op["op"] == "insert" {
            let uuid = parse_uuid(&op["uuid"])?;
            // also a row that this transaction has deleted
            if self.tables[at].contains_key(&uuid) || before[at].contains_key(&uuid) {
                return Err(Refusal("duplicate uuid", uuid.to_string()));
            }
            let mut row = Row::new(table);
            self.set(&mut row, &op["row"])?;
            self.tables[at].insert(uuid, Arc::new(row));
            return Ok(json!({"uuid": ["uuid", uuid.to_string()]}));
        }
        let uuid = selected(&op["where"])?;
        let have = self.tables[at].get(&uuid).cloned();
        let mut row = have.as_deref().map_or_else(|| Row::new(table), Row::clone);
        match op["op"].as_str().unwrap_or_default() {
            "update" => self.set(&mut row, &op["row"])?,
            "mutate" => {
                for mutation in op["mutations"].as_array().into_iter().flatten() {
                    self.mutate(&mut row, mutation, have.is_some())?;
                }
            }
            "delete" if have.is_none() => {}
            "delete" => {
                self.tables[at].remove(&uuid);
                return Ok(json!({"count": 1}));
            }
            other => return Err(Refusal("not supported", format!("operation {other} is not simulated"))),
        }
        // also an operation on a row that does not exist must be valid
        if have.is_none() {
            return Ok(json!({"count": 0}));
        }
        self.tables[at].insert(uuid, Arc::new(row));
        Ok(json!({"count": 1}))
    }

    fn column(&self, table: &Table, name: &str) -> Result<(ColumnId, &'static ColumnInfo, &ServerColumn), Refusal> {
        let found = table.column(name).and_then(|id| {
            let info = table.info(id)?;
            Some((id, info, self.schema.column(table, info)?))
        });
        found.ok_or_else(|| Refusal("unknown column", format!("No column {name} in table {}.", table.name)))
    }

    fn set(&self, row: &mut Row, cells: &Value) -> Result<(), Refusal> {
        for (name, value) in cells.as_object().into_iter().flatten() {
            let (id, info, theirs) = self.column(row.table(), name)?;
            let datum = parse(info, value)?;
            let count = datum.len() as u64;
            if count > u64::from(theirs.ty.max) || count < u64::from(theirs.ty.min) {
                return Err(Refusal(SYNTAX, format!("{count} values of {name}")));
            }
            check(&datum, theirs)?;
            put(row, id, info, datum);
        }
        Ok(())
    }

    fn mutate(&self, row: &mut Row, mutation: &Value, exists: bool) -> Result<(), Refusal> {
        let (id, info, theirs) = self.column(row.table(), mutation[0].as_str().unwrap_or_default())?;
        let have = cell(row, id, info);
        let given = mutation[2][1].as_array().filter(|_| mutation[2][0] == "set").map_or(1, Vec::len);
        if mutation[1] == "insert" && given as u64 > u64::from(theirs.ty.max) {
            return Err(Refusal(SYNTAX, format!("{given} values for {}", info.name)));
        }
        let datum = match mutation[1].as_str().unwrap_or_default() {
            "insert" if info.is_map() => {
                let more = parse(info, &mutation[2])?;
                check(&more, theirs)?;
                // pairs whose key exists are left out
                Datum::map(more.pairs().iter().chain(have.pairs()).cloned())
            }
            "insert" => {
                let more = parse(info, &mutation[2])?;
                check(&more, theirs)?;
                Datum::set(have.atoms().chain(more.atoms()).cloned())
            }
            "delete" if info.is_map() => {
                let is_set = mutation[2][0] != "map";
                let keys: Vec<Atom> = if is_set { parse_keys(info, &mutation[2])? } else { Vec::new() };
                let pairs = if is_set { Datum::EMPTY } else { parse(info, &mutation[2])? };
                let stays = |pair: &&(Atom, Atom)| !keys.contains(&pair.0) && !pairs.pairs().contains(pair);
                Datum::map(have.pairs().iter().filter(stays).cloned())
            }
            "delete" => {
                let less = parse(info, &mutation[2])?;
                Datum::set(have.atoms().filter(|atom| !less.contains(atom)).cloned())
            }
            other => return Err(Refusal("not supported", format!("mutation {other} is not simulated"))),
        };
        let count = datum.len() as u64;
        if exists && (count > u64::from(theirs.ty.max) || count < u64::from(theirs.ty.min)) {
            return Err(Refusal(CONSTRAINT, format!("{count} values of {}", info.name)));
        }
        put(row, id, info, datum);
        Ok(())
    }

    /// What the server does when all operations are done.
    fn commit(&mut self) -> Result<(), Refusal> {
        loop {
            let referred = self.referred()?;
            let mut gone = 0;
            for (table, rows) in DATABASE.tables.iter().zip(&mut self.tables) {
                let is_root = self.schema.tables.get(table.name).is_none_or(|theirs| theirs.is_root);
                if !is_root {
                    let before = rows.len();
                    rows.retain(|uuid, _| referred.contains(uuid));
                    gone += before - rows.len();
                }
            }
            if gone == 0 {
                break;
            }
        }
        self.drop_weak();
        self.check_tables()
    }

    /// The rows to which others refer strongly.
    fn referred(&self) -> Result<HashSet<Uuid>, Refusal> {
        let mut all = HashSet::new();
        for ((table, rows), refers) in DATABASE.tables.iter().zip(&self.tables).zip(&*self.references) {
            for Refers { column, target, .. } in refers.iter().filter(|refers| refers.strong) {
                // a row that must refer to another refers to the row 0 until it is set
                let must = table.info(*column).is_some_and(|info| info.min > 0);
                if must && rows.values().any(|row| row.get(*column).is_none()) {
                    return Err(Refusal(INTEGRITY, format!("a row of {} refers to none", table.name)));
                }
                for to in rows.values().filter_map(|row| row.get(*column)).flat_map(Datum::uuids) {
                    if !self.tables[*target].contains_key(&to) {
                        return Err(Refusal(INTEGRITY, format!("no row {to} in {}", DATABASE.tables[*target].name)));
                    }
                    all.insert(to);
                }
            }
        }
        Ok(all)
    }

    /// Takes references to rows that are gone out of the columns that refer weakly.
    fn drop_weak(&mut self) {
        let mut updates = Vec::new();
        for (at, refers) in self.references.iter().enumerate() {
            for Refers { column, target, .. } in refers.iter().filter(|refers| !refers.strong) {
                for (uuid, row) in &self.tables[at] {
                    let Some(datum) = row.get(*column) else { continue };
                    if datum.uuids().any(|to| !self.tables[*target].contains_key(&to)) {
                        let stays =
                            |atom: &&Atom| atom.as_uuid().is_some_and(|to| self.tables[*target].contains_key(&to));
                        updates.push((at, *uuid, *column, Datum::set(datum.atoms().filter(stays).cloned())));
                    }
                }
            }
        }
        for (at, uuid, column, datum) in updates {
            let info = DATABASE.tables[at].info(column).unwrap();
            let Some(row) = self.tables[at].get_mut(&uuid) else { continue };
            let mut changed = Row::clone(row);
            put(&mut changed, column, info, datum);
            *row = Arc::new(changed);
        }
    }

    fn check_tables(&self) -> Result<(), Refusal> {
        for (table, rows) in DATABASE.tables.iter().zip(&self.tables) {
            let Some(theirs) = self.schema.tables.get(table.name) else { continue };
            if theirs.max_rows.is_some_and(|most| rows.len() as u64 > most) {
                return Err(Refusal(CONSTRAINT, format!("too many rows in {}", table.name)));
            }
            for index in &theirs.indexes {
                let columns: Vec<_> = index.iter().filter_map(|name| table.column(name)).collect();
                let mut seen = HashSet::new();
                for row in rows.values() {
                    let key = columns.iter().map(|column| row.get(*column).map(|datum| format!("{datum:?}")));
                    if !seen.insert(key.collect::<Vec<_>>()) {
                        return Err(Refusal(CONSTRAINT, format!("identical values of {index:?} in {}", table.name)));
                    }
                }
            }
        }
        Ok(())
    }

    /// The changes as a monitor of these columns sends them in `update3`.
    pub(crate) fn update(&self, changes: &[Change], wanted: &Wanted, initial: bool) -> Value {
        let mut tables = Map::new();
        for change in changes {
            let table = change.table;
            let columns = wanted.as_ref().map(|wanted| wanted.get(table.name));
            if columns == Some(None) {
                continue;
            }
            let is_wanted = |info: &ColumnInfo| columns.flatten().is_none_or(|columns| columns.contains(info.name));
            let json = match (&change.old, &change.new) {
                (None, Some(row)) => {
                    let kind = if initial { "initial" } else { "insert" };
                    json!({ kind: whole(row, is_wanted) })
                }
                (Some(_), None) => json!({"delete": null}),
                (Some(old), Some(new)) => {
                    let cells = self.difference(old, new, is_wanted);
                    if cells.is_empty() {
                        continue;
                    }
                    json!({ "modify": cells })
                }
                (None, None) => continue,
            };
            let rows = tables.entry(table.name).or_insert_with(|| json!({}));
            rows[change.uuid.to_string()] = json;
        }
        Value::Object(tables)
    }

    fn difference(&self, old: &Row, new: &Row, is_wanted: impl Fn(&ColumnInfo) -> bool) -> Map<String, Value> {
        let table = old.table();
        let columns: BTreeSet<ColumnId> = old.cells().chain(new.cells()).map(|(id, _)| id).collect();
        let mut cells = Map::new();
        for id in columns {
            let Some(info) = table.info(id).filter(|info| is_wanted(info)) else { continue };
            let (was, is) = (cell(old, id, info), cell(new, id, info));
            if was != is {
                let many = self.schema.column(table, info).is_some_and(|theirs| theirs.ty.max > 1);
                let sent = if many { changed(&was, &is, info.is_map()) } else { is };
                cells.insert(info.name.to_owned(), wire(info, &sent));
            }
        }
        cells
    }
}

impl Refusal {
    fn json(&self) -> Value {
        json!({"error": self.0, "details": self.1})
    }
}

fn changes(before: &[Rows], after: &[Rows]) -> Vec<Change> {
    let mut changes = Vec::new();
    for ((table, before), after) in DATABASE.tables.iter().zip(before).zip(after) {
        for (uuid, new) in after {
            let old = before.get(uuid);
            if old.is_none_or(|old| !Arc::ptr_eq(old, new) && old != new) {
                changes.push(Change { table, uuid: *uuid, old: old.cloned(), new: Some(Arc::clone(new)) });
            }
        }
        for (uuid, old) in before.iter().filter(|(uuid, _)| !after.contains_key(uuid)) {
            changes.push(Change { table, uuid: *uuid, old: Some(Arc::clone(old)), new: None });
        }
    }
    changes
}

fn cell(row: &Row, id: ColumnId, info: &ColumnInfo) -> Datum {
    row.get(id).cloned().unwrap_or_else(|| info.default_datum())
}

fn put(row: &mut Row, id: ColumnId, info: &ColumnInfo, datum: Datum) {
    if info.is_default(&datum) {
        row.remove(id);
    } else {
        row.put(id, datum);
    }
}

/// What leads from one value to the other in a column that can hold more than one.
fn changed(was: &Datum, is: &Datum, is_map: bool) -> Datum {
    if is_map {
        let gone = was.pairs().iter().filter(|(key, _)| is.pairs().iter().all(|(other, _)| other != key));
        return Datum::map(gone.chain(is.pairs().iter().filter(|pair| !was.pairs().contains(pair))).cloned());
    }
    let only = |a: &Datum, b: &Datum| a.atoms().filter(|atom| !b.contains(atom)).cloned().collect::<Vec<_>>();
    Datum::set(only(was, is).into_iter().chain(only(is, was)))
}

fn whole(row: &Row, is_wanted: impl Fn(&ColumnInfo) -> bool) -> Map<String, Value> {
    let cells = row.cells().filter_map(|(id, datum)| Some((row.table().info(id)?, datum)));
    cells.filter(|(info, _)| is_wanted(info)).map(|(info, datum)| (info.name.to_owned(), wire(info, datum))).collect()
}

fn wire(info: &ColumnInfo, datum: &Datum) -> Value {
    serde_json::to_value(WireDatum { datum, is_map: info.is_map() }).unwrap()
}

fn parse(info: &ColumnInfo, value: &Value) -> Result<Datum, Refusal> {
    TEXTS.with_borrow_mut(|texts| {
        let seed = DatumSeed { column: info, texts };
        seed.deserialize(value).map_err(|error| Refusal(SYNTAX, error.to_string()))
    })
}

/// Keys of a map that are to be deleted: texts.
fn parse_keys(info: &ColumnInfo, value: &Value) -> Result<Vec<Atom>, Refusal> {
    let atom = |value: &Value| value.as_str().map(|text| Atom::Str(text.into()));
    let keys = match value {
        Value::String(_) => vec![atom(value)],
        _ => value[1].as_array().into_iter().flatten().map(atom).collect(),
    };
    let keys: Option<Vec<_>> = keys.into_iter().collect();
    keys.ok_or_else(|| Refusal(SYNTAX, format!("keys of {}: {value}", info.name)))
}

fn check(datum: &Datum, theirs: &ServerColumn) -> Result<(), Refusal> {
    let values = datum.pairs().iter().filter_map(|(_, value)| Some((value, theirs.ty.value.as_ref()?)));
    let keys = datum.atoms().chain(datum.pairs().iter().map(|(key, _)| key)).map(|key| (key, &theirs.ty.key));
    let fits = |(atom, base): (&Atom, &ServerBase)| match atom {
        Atom::Int(number) => (base.range.0..=base.range.1).contains(number),
        Atom::Str(text) if !base.allowed.is_empty() => base.allowed.iter().any(|allowed| **allowed == **text),
        Atom::Str(text) => (base.range.0..=base.range.1).contains(&(text.chars().count() as i64)),
        _ => true,
    };
    if keys.chain(values).all(fits) { Ok(()) } else { Err(Refusal(CONSTRAINT, format!("{datum:?} is not allowed"))) }
}

fn parse_uuid(value: &Value) -> Result<Uuid, Refusal> {
    value.as_str().and_then(|text| text.parse().ok()).ok_or_else(|| Refusal(SYNTAX, format!("{value} is no uuid")))
}

/// The row of `[["_uuid", "==", ["uuid", …]]]`.
fn selected(condition: &Value) -> Result<Uuid, Refusal> {
    match condition.as_array().map(Vec::as_slice) {
        Some([one]) if one[0] == "_uuid" && one[1] == "==" => parse_uuid(&one[2][1]),
        _ => Err(Refusal("not supported", format!("condition {condition} is not simulated"))),
    }
}
