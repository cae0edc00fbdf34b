//! Transactions as they are sent.

use ovnkube_ovn::schema::ColumnInfo;
use ovnkube_ovn::wire::WireDatum;
use ovnkube_ovn::{Atom, ColumnId, Datum, Row, ServerSchema, Table, Uuid};
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};

use crate::txn::{Mutation, Op, Txn};

/// The parameters of a transaction, without columns that the server lacks.
pub struct Rendered<'a> {
    txn: &'a Txn,
    schema: &'a ServerSchema,
    /// For each operation that is sent, its number in the transaction.
    pub sent: Vec<usize>,
}

impl<'a> Rendered<'a> {
    /// The transaction for a server with that schema.
    pub fn new(txn: &'a Txn, schema: &'a ServerSchema) -> Self {
        let sent = txn.ops.iter().enumerate().filter(|(_, op)| says_something(op, schema)).map(|(at, _)| at).collect();
        Rendered { txn, schema, sent }
    }
}

/// An operation on nothing but columns that the server lacks is not sent.
fn says_something(op: &Op, schema: &ServerSchema) -> bool {
    let has = |table: &Table, column| known(schema, table, column).is_some();
    match op {
        Op::Update { row, .. } => row.cells().any(|(column, _)| has(row.table(), column)),
        Op::Mutate { table, column, mutation, .. } => has(table, *column) && !mutation.datum().is_empty(),
        _ => true,
    }
}

fn known(schema: &ServerSchema, table: &Table, column: ColumnId) -> Option<&'static ColumnInfo> {
    table.info(column).filter(|info| schema.column(table, info).is_some())
}

impl Mutation {
    fn datum(&self) -> &Datum {
        match self {
            Mutation::Insert(d) | Mutation::Remove(d) | Mutation::SetKeys(d) | Mutation::RemoveKeys(d) => d,
        }
    }
}

impl Serialize for Rendered<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut seq = s.serialize_seq(Some(self.sent.len() + 1))?;
        seq.serialize_element(self.txn.database.name)?;
        for op in self.sent.iter().filter_map(|at| self.txn.ops.get(*at)) {
            seq.serialize_element(&WireOp { op, schema: self.schema })?;
        }
        seq.end()
    }
}

struct WireOp<'a> {
    op: &'a Op,
    schema: &'a ServerSchema,
}

impl Serialize for WireOp<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        let cells = |row| Cells { row, schema: self.schema };
        match self.op {
            Op::Insert { uuid, row } => {
                map.serialize_entry("op", "insert")?;
                map.serialize_entry("table", row.table().name)?;
                map.serialize_entry("uuid", uuid)?;
                map.serialize_entry("row", &cells(row))?;
            }
            Op::Update { uuid, row } => {
                map.serialize_entry("op", "update")?;
                on_row(&mut map, row.table(), *uuid)?;
                map.serialize_entry("row", &cells(row))?;
            }
            Op::Delete { table, uuid } => {
                map.serialize_entry("op", "delete")?;
                on_row(&mut map, table, *uuid)?;
            }
            Op::Mutate { table, uuid, column, mutation } => {
                map.serialize_entry("op", "mutate")?;
                on_row(&mut map, table, *uuid)?;
                if let Some(info) = table.info(*column) {
                    map.serialize_entry("mutations", &Mutations { info, mutation })?;
                }
            }
            Op::Wait { uuid, row } => {
                let cells = Cells { row, schema: self.schema };
                let columns: Vec<&str> = cells.iter().map(|(info, _)| info.name).collect();
                map.serialize_entry("op", "wait")?;
                map.serialize_entry("timeout", &0)?;
                on_row(&mut map, row.table(), *uuid)?;
                map.serialize_entry("columns", &columns)?;
                map.serialize_entry("until", "==")?;
                map.serialize_entry("rows", &[cells])?;
            }
            Op::Comment(text) => {
                map.serialize_entry("op", "comment")?;
                map.serialize_entry("comment", text)?;
            }
            Op::Commit => {
                map.serialize_entry("op", "commit")?;
                map.serialize_entry("durable", &true)?;
            }
            Op::Assert(lock) => {
                map.serialize_entry("op", "assert")?;
                map.serialize_entry("lock", lock)?;
            }
        }
        map.end()
    }
}

fn on_row<M: SerializeMap>(map: &mut M, table: &Table, uuid: Uuid) -> Result<(), M::Error> {
    map.serialize_entry("table", table.name)?;
    map.serialize_entry("where", &[("_uuid", "==", Atom::Uuid(uuid))])
}

struct Cells<'a> {
    row: &'a Row,
    schema: &'a ServerSchema,
}

impl<'a> Cells<'a> {
    fn iter(&self) -> impl Iterator<Item = (&'static ColumnInfo, &'a Datum)> {
        let (table, schema) = (self.row.table(), self.schema);
        self.row.cells().filter_map(move |(column, datum)| known(schema, table, column).map(|info| (info, datum)))
    }
}

impl Serialize for Cells<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.iter().map(|(info, datum)| (info.name, WireDatum { datum, is_map: info.is_map() })))
    }
}

struct Mutations<'a> {
    info: &'static ColumnInfo,
    mutation: &'a Mutation,
}

impl Serialize for Mutations<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let (name, whole) = (self.info.name, |datum| WireDatum { datum, is_map: self.info.is_map() });
        let set = |datum| WireDatum { datum, is_map: false };
        match self.mutation {
            Mutation::Insert(datum) => [(name, "insert", whole(datum))].serialize(s),
            Mutation::Remove(datum) => [(name, "delete", whole(datum))].serialize(s),
            Mutation::RemoveKeys(keys) => [(name, "delete", set(keys))].serialize(s),
            Mutation::SetKeys(pairs) => {
                let keys = Datum::set(pairs.pairs().iter().map(|(key, _)| key.clone()));
                [(name, "delete", set(&keys)), (name, "insert", whole(pairs))].serialize(s)
            }
        }
    }
}
