//! The rows of a northbound database, and what `ovsdb-server` does with a transaction: it refuses what the server refuses,
//! and deletes and changes what the server does by itself. `real.rs` compares it with the server.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write as _;
use std::mem::take;
use std::sync::{Arc, LazyLock};

use ovnkube_ovn::nb::DATABASE;
use ovnkube_ovn::schema::{ColumnInfo, ServerBase, ServerColumn, ServerSchema};
use ovnkube_ovn::wire::{DatumSeed, Interner, WireDatum};
use ovnkube_ovn::{Atom, ColumnId, Datum, Row, Table, Uuid};
use serde::de::DeserializeSeed as _;
use serde_json::{Value, json};

/// One of the releases that OVN has made.
const SCHEMA: &str = include_str!("../../src/ovn/schema/ovn-nb.ovsschema");

type Rows = BTreeMap<Uuid, Arc<Row>>;

/// Which columns of which tables a monitor asks for, by their numbers; `None`: all.
pub(crate) type Wanted = Option<BTreeMap<u16, BTreeSet<ColumnId>>>;

#[derive(Clone)]
pub(crate) struct Database {
    schema: Arc<ServerSchema>,
    /// By the number of the table. Cells with default values are left out.
    tables: Vec<Rows>,
    /// By the number of the table: the columns that refer to rows.
    references: Arc<Vec<Vec<Refers>>>,
    /// How often rows refer to a row strongly.
    referred: HashMap<Uuid, usize>,
    /// What a transaction has changed so far: rows, by the number of their table, as they were before it.
    before: BTreeMap<(usize, Uuid), Option<Arc<Row>>>,
}

struct Refers {
    column: ColumnId,
    target: usize,
    strong: bool,
}

/// An operation on one row, such as `delete`.
pub(crate) fn on(table: &Table, uuid: Uuid, op: &str) -> Value {
    json!({"op": op, "table": table.name, "where": [["_uuid", "==", ["uuid", uuid.to_string()]]]})
}

/// A row before and after a transaction.
#[derive(Clone)]
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
        let tables = vec![Rows::new(); DATABASE.tables.len()];
        Self { schema: Arc::new(schema), tables, references, referred: HashMap::new(), before: BTreeMap::new() }
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
        let of = |(table, rows): (&&'static Table, &Rows)| {
            let new = |(uuid, row): (&Uuid, &Arc<Row>)| (*uuid, None, Some(Arc::clone(row)));
            let change = |(uuid, old, new)| Change { table, uuid, old, new };
            rows.iter().map(new).map(change).collect::<Vec<_>>()
        };
        DATABASE.tables.iter().zip(&self.tables).flat_map(of).collect()
    }

    /// Operations that delete all rows but the one about the database itself.
    pub(crate) fn deletions(&self) -> Vec<Value> {
        let rows = self.all().into_iter().filter(|change| change.table.name != "NB_Global");
        rows.map(|row| on(row.table, row.uuid, "delete")).collect()
    }

    /// Runs the operations; returns what the server answers, and what changed. `holds`: the locks of the caller.
    pub(crate) fn transact(&mut self, ops: &[Value], holds: impl Fn(&str) -> bool) -> (Vec<Value>, Vec<Change>) {
        let mut results = Vec::new();
        for op in ops {
            match self.run(op, &holds) {
                Ok(result) => results.push(result),
                Err(refusal) => {
                    results.push(refusal.json());
                    results.resize(ops.len(), Value::Null);
                    self.undo();
                    return (results, Vec::new());
                }
            }
        }
        if let Err(refusal) = self.commit() {
            results.push(refusal.json());
            self.undo();
            return (results, Vec::new());
        }
        let change = |((at, uuid), old): ((usize, Uuid), Option<Arc<Row>>)| {
            let new = self.tables[at].get(&uuid);
            (old.as_ref() != new).then(|| Change { table: DATABASE.tables[at], uuid, old, new: new.cloned() })
        };
        let changes = take(&mut self.before).into_iter().filter_map(change).collect();
        (results, changes)
    }

    /// Has rows as they were before these changes.
    pub(crate) fn take_back(&mut self, changes: &[Change]) {
        for Change { table, uuid, old, .. } in changes {
            self.put(usize::from(table.id), *uuid, old.clone());
        }
        self.before.clear();
    }

    fn undo(&mut self) {
        for ((at, uuid), old) in take(&mut self.before) {
            self.put(at, uuid, old);
        }
        self.before.clear();
    }

    /// Sets a row, or deletes it.
    fn put(&mut self, at: usize, uuid: Uuid, new: Option<Arc<Row>>) {
        for (_, to) in strong(&self.references[at], new.as_deref()) {
            *self.referred.entry(to).or_default() += 1;
        }
        let old = match new {
            Some(row) => self.tables[at].insert(uuid, row),
            None => self.tables[at].remove(&uuid),
        };
        for (_, to) in strong(&self.references[at], old.as_deref()) {
            *self.referred.entry(to).or_default() -= 1;
        }
        self.before.entry((at, uuid)).or_insert(old);
    }

    fn run(&mut self, op: &Value, holds: &impl Fn(&str) -> bool) -> Result<Value, Refusal> {
        match op["op"].as_str().unwrap_or_default() {
            "comment" | "commit" => return Ok(json!({})),
            "abort" => return Err(Refusal("aborted", "aborted by request".into())),
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
            let was_there = self.before.get(&(at, uuid)).is_some_and(Option::is_some);
            if was_there || self.tables[at].contains_key(&uuid) {
                return Err(Refusal("duplicate uuid", uuid.to_string()));
            }
            let mut row = Row::new(table);
            self.set(&mut row, &op["row"])?;
            self.put(at, uuid, Some(Arc::new(row)));
            return Ok(json!({"uuid": ["uuid", uuid.to_string()]}));
        }
        let uuid = selected(&op["where"])?;
        let have = self.tables[at].get(&uuid).cloned();
        if op["op"] == "wait" {
            return self.wait(have.as_deref(), table, op);
        }
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
                self.put(at, uuid, None);
                return Ok(json!({"count": 1}));
            }
            other => return Err(Refusal("not supported", format!("operation {other} is not simulated"))),
        }
        // also an operation on a row that does not exist must be valid
        if have.is_none() {
            return Ok(json!({"count": 0}));
        }
        self.put(at, uuid, Some(Arc::new(row)));
        Ok(json!({"count": 1}))
    }

    /// Whether a row has exactly these cells, now.
    fn wait(&self, have: Option<&Row>, table: &'static Table, op: &Value) -> Result<Value, Refusal> {
        let mut want = Row::new(table);
        self.set(&mut want, &op["rows"][0])?;
        let names = op["columns"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let ids = names.map(|name| Ok(self.column(table, name)?.0)).collect::<Result<Vec<_>, Refusal>>()?;
        let is_so = have.is_some_and(|have| ids.iter().all(|id| have.get(*id) == want.get(*id)));
        if is_so { Ok(json!({})) } else { Err(Refusal("timed out", "\"wait\" timed out".into())) }
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
            set_cell(row, id, info, datum);
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
        set_cell(row, id, info, datum);
        Ok(())
    }

    /// What the server does when all operations are done.
    fn commit(&mut self) -> Result<(), Refusal> {
        self.check_references()?;
        self.remove_unreferred();
        self.drop_weak();
        self.check_tables()
    }

    /// The rows that were changed and are there.
    fn changed(&self) -> impl Iterator<Item = (usize, Uuid, &Arc<Row>)> {
        self.before.keys().filter_map(|(at, uuid)| Some((*at, *uuid, self.tables[*at].get(uuid)?)))
    }

    fn is_referred(&self, uuid: Uuid) -> bool {
        self.referred.get(&uuid).is_some_and(|count| *count > 0)
    }

    fn check_references(&self) -> Result<(), Refusal> {
        let refused = |text| Err(Refusal(INTEGRITY, text));
        for (at, _, row) in self.changed() {
            // a row that must refer to another refers to the row 0 until it is set
            let must = |refers: &&Refers| refers.strong && row.table().info(refers.column).is_some_and(|i| i.min > 0);
            if self.references[at].iter().filter(must).any(|refers| row.get(refers.column).is_none()) {
                return refused(format!("a row of {} refers to none", row.table().name));
            }
            if let Some((target, to)) =
                strong(&self.references[at], Some(row)).find(|(target, to)| !self.tables[*target].contains_key(to))
            {
                return refused(format!("no row {to} in {}", DATABASE.tables[target].name));
            }
        }
        let gone =
            self.before.keys().find(|(at, uuid)| !self.tables[*at].contains_key(uuid) && self.is_referred(*uuid));
        gone.map_or(Ok(()), |(at, uuid)| refused(format!("no row {uuid} in {}", DATABASE.tables[*at].name)))
    }

    /// Deletes the rows that exist only while others refer to them.
    fn remove_unreferred(&mut self) {
        let lost = self.before.iter().flat_map(|((at, _), old)| strong(&self.references[*at], old.as_deref()));
        let mut perhaps: Vec<_> = self.changed().map(|(at, uuid, _)| (at, uuid)).chain(lost).collect();
        while let Some((at, uuid)) = perhaps.pop() {
            let is_root = self.schema.tables.get(DATABASE.tables[at].name).is_none_or(|theirs| theirs.is_root);
            if is_root || self.is_referred(uuid) {
                continue;
            }
            if let Some(row) = self.tables[at].get(&uuid) {
                perhaps.extend(strong(&self.references[at], Some(row)));
                self.put(at, uuid, None);
            }
        }
    }

    /// Takes references to rows that are gone out of the columns that refer weakly.
    fn drop_weak(&mut self) {
        let is_gone = |(at, uuid): &&(usize, Uuid)| !self.tables[*at].contains_key(uuid);
        let gone: BTreeSet<usize> = self.before.keys().filter(is_gone).map(|(at, _)| *at).collect();
        let changed: BTreeSet<usize> = self.changed().map(|(at, _, _)| at).collect();
        let mut updates = Vec::new();
        for (at, refers) in self.references.iter().enumerate() {
            let touched = |refers: &&Refers| !refers.strong && (changed.contains(&at) || gone.contains(&refers.target));
            for Refers { column, target, .. } in refers.iter().filter(touched) {
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
            let Some(row) = self.tables[at].get(&uuid) else { continue };
            let mut changed = Row::clone(row);
            set_cell(&mut changed, column, info, datum);
            self.put(at, uuid, Some(Arc::new(changed)));
        }
    }

    fn check_tables(&self) -> Result<(), Refusal> {
        for (at, uuid, row) in self.changed() {
            let (table, rows) = (row.table(), &self.tables[at]);
            let Some(theirs) = self.schema.tables.get(table.name) else { continue };
            if theirs.max_rows.is_some_and(|most| rows.len() as u64 > most) {
                return Err(Refusal(CONSTRAINT, format!("too many rows in {}", table.name)));
            }
            for index in &theirs.indexes {
                let columns: Vec<_> = index.iter().filter_map(|name| table.column(name)).collect();
                let is_same = |other: &Row| columns.iter().all(|column| row.get(*column) == other.get(*column));
                if rows.iter().any(|(other, row)| *other != uuid && is_same(row)) {
                    return Err(Refusal(CONSTRAINT, format!("identical values of {index:?} in {}", table.name)));
                }
            }
        }
        Ok(())
    }

    /// The changes, sorted by table and row, as a monitor of these columns gets them in `update3`; `{}` if it gets none.
    pub(crate) fn update(&self, changes: &[Change], wanted: &Wanted, initial: bool) -> String {
        let (mut text, mut within) = (b"{".to_vec(), None);
        for change in changes {
            let table = change.table;
            let columns = wanted.as_ref().map(|wanted| wanted.get(&table.id));
            if columns == Some(None) {
                continue;
            }
            let length = text.len();
            let _ = match within {
                Some(id) if id == table.id => write!(text, ",\"{}\":", change.uuid),
                Some(_) => write!(text, "}},\"{}\":{{\"{}\":", table.name, change.uuid),
                None => write!(text, "\"{}\":{{\"{}\":", table.name, change.uuid),
            };
            if self.write_change(&mut text, change, columns.flatten(), initial) {
                within = Some(table.id);
            } else {
                text.truncate(length);
            }
        }
        text.extend_from_slice(if within.is_some() { b"}}" } else { b"}" });
        String::from_utf8(text).unwrap()
    }

    /// Returns whether there is anything to tell.
    fn write_change(
        &self,
        text: &mut Vec<u8>,
        change: &Change,
        columns: Option<&BTreeSet<ColumnId>>,
        initial: bool,
    ) -> bool {
        let is_wanted = |id: &ColumnId| columns.is_none_or(|columns| columns.contains(id));
        match (&change.old, &change.new) {
            (None, Some(row)) => {
                let kind = if initial { "initial" } else { "insert" };
                write_cells(text, kind, change.table, row.cells().filter(|(id, _)| is_wanted(id)));
            }
            (Some(_), None) => text.extend_from_slice(b"{\"delete\":null}"),
            (Some(old), Some(new)) => {
                let cells: Vec<_> = self.difference(old, new).into_iter().filter(|(id, _)| is_wanted(id)).collect();
                if cells.is_empty() {
                    return false;
                }
                write_cells(text, "modify", change.table, cells.iter().map(|(id, datum)| (*id, datum)));
            }
            (None, None) => return false,
        }
        true
    }

    fn difference(&self, old: &Row, new: &Row) -> BTreeMap<ColumnId, Datum> {
        let table = old.table();
        let mut cells = BTreeMap::new();
        for (id, _) in old.cells().chain(new.cells()).filter(|(id, _)| old.get(*id) != new.get(*id)) {
            let Some(info) = table.info(id) else { continue };
            let (was, is) = (cell(old, id, info), cell(new, id, info));
            let many = self.schema.column(table, info).is_some_and(|theirs| theirs.ty.max > 1);
            cells.insert(id, if many { changed(&was, &is, info.is_map()) } else { is });
        }
        cells
    }
}

/// The rows to which a row refers strongly, with the numbers of their tables.
fn strong<'a>(references: &'a [Refers], row: Option<&'a Row>) -> impl Iterator<Item = (usize, Uuid)> {
    let all = references.iter().filter(|refers| refers.strong);
    all.filter_map(move |refers| Some((refers.target, row?.get(refers.column)?)))
        .flat_map(|(target, datum)| datum.uuids().map(move |to| (target, to)))
}

fn write_cells<'a>(text: &mut Vec<u8>, kind: &str, table: &Table, cells: impl Iterator<Item = (ColumnId, &'a Datum)>) {
    let _ = write!(text, "{{\"{kind}\":{{");
    let mut comma = "";
    for (info, datum) in cells.filter_map(|(id, datum)| Some((table.info(id)?, datum))) {
        let _ = write!(text, "{comma}\"{}\":", info.name);
        serde_json::to_writer(&mut *text, &WireDatum { datum, is_map: info.is_map() }).unwrap();
        comma = ",";
    }
    text.extend_from_slice(b"}}");
}

impl Refusal {
    fn json(&self) -> Value {
        json!({"error": self.0, "details": self.1})
    }
}

fn cell(row: &Row, id: ColumnId, info: &ColumnInfo) -> Datum {
    row.get(id).cloned().unwrap_or_else(|| info.default_datum())
}

fn set_cell(row: &mut Row, id: ColumnId, info: &ColumnInfo, datum: Datum) {
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
