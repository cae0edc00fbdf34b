//! Tables and columns: the compiled description of a database ([`Database`], made from the `.ovsschema` files), and the
//! one that a running server reports ([`ServerSchema`]).

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use crate::value::{Atom, Datum, Kind, Real};

/// Index of a column in [`Table::columns`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(pub u16);

/// A database for which this crate has typed rows.
pub struct Database {
    pub name: &'static str,
    /// Version of the schema that the rows were generated from.
    pub version: &'static str,
    /// Sorted by name; a table's index is its [`Table::id`].
    pub tables: &'static [&'static Table],
}

/// A table: `nb::logical_switch::TABLE` and so on.
pub struct Table {
    pub name: &'static str,
    pub id: u16,
    /// Rows of other tables exist only while a row refers to them strongly.
    pub is_root: bool,
    /// Sorted by name; a column's index is its [`ColumnId`].
    pub columns: &'static [ColumnInfo],
    /// Sets of columns whose values no two rows may share.
    pub indexes: &'static [&'static [ColumnId]],
}

pub struct ColumnInfo {
    pub name: &'static str,
    pub key: Base,
    /// Set for maps.
    pub value: Option<Base>,
    pub min: u32,
    /// `u32::MAX` is unlimited.
    pub max: u32,
    /// Only some strings are allowed; the server's schema says which.
    pub is_enum: bool,
}

/// Type of a column's keys or values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
    pub kind: Kind,
    pub refers: Option<Reference>,
}

/// The table that a uuid refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    pub table: &'static str,
    /// A strong reference keeps its row alive and must not dangle; a weak one vanishes with its row.
    pub strong: bool,
}

type BaseDef = (Kind, Option<(&'static str, bool)>);

/// Builds a column; the generated tables use it.
pub(crate) const fn column(
    name: &'static str,
    key: BaseDef,
    (min, max): (u32, u32),
    value: Option<BaseDef>,
    is_enum: bool,
) -> ColumnInfo {
    let value = match value {
        Some(v) => Some(compiled(v)),
        None => None,
    };
    ColumnInfo { name, key: compiled(key), value, min, max, is_enum }
}

const fn compiled((kind, refers): BaseDef) -> Base {
    let refers = match refers {
        Some((table, strong)) => Some(Reference { table, strong }),
        None => None,
    };
    Base { kind, refers }
}

impl Database {
    pub fn table(&self, name: &str) -> Option<&'static Table> {
        let at = self.tables.binary_search_by(|t| t.name.cmp(name)).ok()?;
        self.tables.get(at).copied()
    }
}

impl Table {
    pub fn column(&self, name: &str) -> Option<ColumnId> {
        self.columns.binary_search_by(|c| c.name.cmp(name)).ok().map(|i| ColumnId(i as u16))
    }

    pub fn info(&self, id: ColumnId) -> Option<&'static ColumnInfo> {
        self.columns.get(usize::from(id.0))
    }

    /// The columns with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (ColumnId, &'static ColumnInfo)> + use<> {
        self.columns.iter().enumerate().map(|(i, c)| (ColumnId(i as u16), c))
    }
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}
impl Eq for Table {}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl ColumnInfo {
    pub fn is_map(&self) -> bool {
        self.value.is_some()
    }

    /// Every table that its uuids refer to.
    pub fn references(&self) -> impl Iterator<Item = Reference> + '_ {
        self.key.refers.into_iter().chain(self.value.and_then(|v| v.refers))
    }

    /// The value in a row to which none was ever written.
    pub fn default_datum(&self) -> Datum {
        if self.min == 0 || self.is_map() { Datum::EMPTY } else { Datum::one(default_atom(self.key.kind)) }
    }

    pub fn is_default(&self, datum: &Datum) -> bool {
        if self.min == 0 || self.is_map() { datum.is_empty() } else { datum.single().is_some_and(Atom::is_default) }
    }
}

fn default_atom(kind: Kind) -> Atom {
    match kind {
        Kind::Int => Atom::Int(0),
        Kind::Real => Atom::Real(Real(0.0)),
        Kind::Bool => Atom::Bool(false),
        Kind::Str => Atom::Str("".into()),
        Kind::Uuid => Atom::Uuid(uuid::Uuid::nil()),
    }
}

/// A schema that cannot be parsed.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the database schema: {0}")]
pub struct SchemaError(serde_json::Error);

/// The schema that a server reports (`get_schema`), which may be older or newer than the compiled description.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ServerSchema {
    pub name: String,
    #[serde(default)]
    pub version: String,
    pub tables: BTreeMap<String, ServerTable>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerTable {
    pub columns: BTreeMap<String, ServerColumn>,
    #[serde(default)]
    pub is_root: bool,
    pub max_rows: Option<u64>,
    #[serde(default)]
    pub indexes: Vec<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ServerColumn {
    #[serde(rename = "type")]
    pub ty: ServerType,
    #[serde(default)]
    pub ephemeral: bool,
    #[serde(default = "yes")]
    pub mutable: bool,
}

fn yes() -> bool {
    true
}

/// Type of a column, with every limit that the server enforces.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "Value")]
pub struct ServerType {
    pub key: ServerBase,
    pub value: Option<ServerBase>,
    pub min: u32,
    /// `u32::MAX` is unlimited.
    pub max: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ServerBase {
    pub kind: Kind,
    /// Table name and whether the reference is strong.
    pub refers: Option<(String, bool)>,
    /// The allowed strings; empty means any.
    pub allowed: Vec<String>,
    /// Allowed integers, or allowed lengths of a string in characters.
    pub range: (i64, i64),
}

impl ServerSchema {
    pub fn parse(json: &[u8]) -> Result<Self, SchemaError> {
        let mut schema: ServerSchema = serde_json::from_slice(json).map_err(SchemaError)?;
        // a schema that marks no table is older than the mark: all are roots
        if !schema.tables.values().any(|t| t.is_root) {
            schema.tables.values_mut().for_each(|t| t.is_root = true);
        }
        Ok(schema)
    }

    /// The server's column of that name, if our compiled column can be read from its type.
    pub fn column(&self, table: &Table, column: &ColumnInfo) -> Option<&ServerColumn> {
        let theirs = self.tables.get(table.name)?.columns.get(column.name)?;
        let same = theirs.ty.key.kind == column.key.kind
            && theirs.ty.value.as_ref().map(|v| v.kind) == column.value.map(|v| v.kind);
        same.then_some(theirs)
    }
}

impl TryFrom<Value> for ServerType {
    type Error = String;

    fn try_from(v: Value) -> Result<Self, String> {
        if v.is_string() {
            return Ok(ServerType { key: base(&v)?, value: None, min: 1, max: 1 });
        }
        let max = match v.get("max") {
            Some(Value::String(s)) if s == "unlimited" => u32::MAX,
            m => count(m)?,
        };
        let key = base(v.get("key").ok_or("column type without key")?)?;
        let value = v.get("value").map(base).transpose()?;
        Ok(ServerType { key, value, min: count(v.get("min"))?, max })
    }
}

fn count(v: Option<&Value>) -> Result<u32, String> {
    let Some(v) = v else { return Ok(1) };
    v.as_u64().and_then(|n| u32::try_from(n).ok()).ok_or_else(|| format!("{v} is not a count"))
}

fn base(v: &Value) -> Result<ServerBase, String> {
    let name = v.as_str().or_else(|| v.get("type")?.as_str()).ok_or("base type without name")?;
    let kind = match name {
        "integer" => Kind::Int,
        "real" => Kind::Real,
        "boolean" => Kind::Bool,
        "string" => Kind::Str,
        "uuid" => Kind::Uuid,
        other => return Err(format!("type {other} is not known")),
    };
    let limit = |a: &str, b: &str| v.get(a).or_else(|| v.get(b)).and_then(Value::as_i64);
    let refers = v.get("refTable").and_then(Value::as_str);
    let strong = v.get("refType").and_then(Value::as_str) != Some("weak");
    let allowed = match v.get("enum") {
        Some(Value::Array(set)) => set.get(1).and_then(Value::as_array).map(|a| strings(a)).unwrap_or_default(),
        Some(one) => strings(std::slice::from_ref(one)),
        None => Vec::new(),
    };
    Ok(ServerBase {
        kind,
        refers: refers.map(|t| (t.to_owned(), strong)),
        allowed,
        range: (
            limit("minInteger", "minLength").unwrap_or(i64::MIN),
            limit("maxInteger", "maxLength").unwrap_or(i64::MAX),
        ),
    })
}

fn strings(values: &[Value]) -> Vec<String> {
    values.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect()
}
