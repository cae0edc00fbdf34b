//! The contents of `update`, `update2` and `update3`, decoded directly into rows.

use std::borrow::Cow;
use std::fmt;

use ovnkube_ovn::schema::ColumnInfo;
use ovnkube_ovn::wire::{DatumSeed, Interner};
use ovnkube_ovn::{ColumnId, Database, Datum, Row, Table, Uuid};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::layout::{Layout, Reads};

/// What happened to one row.
#[derive(Debug)]
pub(crate) enum Change {
    /// The whole row as it is now.
    Full(Row),
    /// These columns changed, to be read as the layout says.
    Modify(Vec<(ColumnId, Datum)>),
    Delete,
}

/// Changes of one commit, or all rows of a first download.
#[derive(Debug)]
pub struct Updates(pub(crate) Vec<(&'static Table, Vec<(Uuid, Change)>)>);

/// Decodes updates of the tables and columns of a layout; skips others.
pub struct Decoder<'a> {
    pub database: &'static Database,
    pub layout: &'a Layout,
    /// Stores repeated texts once.
    pub texts: &'a mut Interner,
}

impl Decoder<'_> {
    /// `{table: {uuid: change}}`
    pub fn updates(mut self, json: &str) -> Result<Updates, serde_json::Error> {
        whole(json, UpdatesSeed(&mut self))
    }

    /// `[found, last-txn, {table: {uuid: change}}]`
    pub fn since_reply(mut self, json: &str) -> Result<(bool, Uuid, Updates), serde_json::Error> {
        whole(json, SinceSeed(&mut self))
    }

    /// `[cookie, {table: {uuid: change}}]` or, with `last-txn` between the two, the parameters of update3.
    pub fn notification(mut self, json: &str, with_txn: bool) -> Result<(Option<Uuid>, Updates), serde_json::Error> {
        whole(json, NotificationSeed { decoder: &mut self, with_txn })
    }
}

fn whole<'de, S: DeserializeSeed<'de>>(json: &'de str, seed: S) -> Result<S::Value, serde_json::Error> {
    let mut d = serde_json::Deserializer::from_str(json);
    let value = seed.deserialize(&mut d)?;
    d.end()?;
    Ok(value)
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

macro_rules! seed {
    ($name:ty, $value:ty, $how:ident) => {
        impl<'de> DeserializeSeed<'de> for $name {
            type Value = $value;
            fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
                d.$how(self)
            }
        }
    };
}

struct SinceSeed<'a, 'b>(&'a mut Decoder<'b>);
seed!(SinceSeed<'_, '_>, (bool, Uuid, Updates), deserialize_seq);

impl<'de> Visitor<'de> for SinceSeed<'_, '_> {
    type Value = (bool, Uuid, Updates);
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[found, last-txn, updates]")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let short = || A::Error::invalid_length(2, &"three elements");
        let found = seq.next_element()?.ok_or_else(short)?;
        let txn = seq.next_element()?.ok_or_else(short)?;
        let updates = seq.next_element_seed(UpdatesSeed(self.0))?.ok_or_else(short)?;
        Ok((found, txn, updates))
    }
}

struct NotificationSeed<'a, 'b> {
    decoder: &'a mut Decoder<'b>,
    with_txn: bool,
}
seed!(NotificationSeed<'_, '_>, (Option<Uuid>, Updates), deserialize_seq);

impl<'de> Visitor<'de> for NotificationSeed<'_, '_> {
    type Value = (Option<Uuid>, Updates);
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[cookie, updates] or [cookie, last-txn, updates]")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let short = || A::Error::invalid_length(1, &"two or three elements");
        seq.next_element::<IgnoredAny>()?.ok_or_else(short)?;
        let txn = if self.with_txn { Some(seq.next_element()?.ok_or_else(short)?) } else { None };
        let updates = seq.next_element_seed(UpdatesSeed(self.decoder))?.ok_or_else(short)?;
        Ok((txn, updates))
    }
}

struct UpdatesSeed<'a, 'b>(&'a mut Decoder<'b>);
seed!(UpdatesSeed<'_, '_>, Updates, deserialize_map);

impl<'de> Visitor<'de> for UpdatesSeed<'_, '_> {
    type Value = Updates;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("updates by table")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Updates, A::Error> {
        let mut out = Vec::new();
        while let Some(name) = map.next_key::<Text>()? {
            match self.0.database.table(&name.0).filter(|t| self.0.layout.has(t)) {
                Some(table) => out.push((table, map.next_value_seed(RowsSeed { decoder: self.0, table })?)),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Updates(out))
    }
}

struct RowsSeed<'a, 'b> {
    decoder: &'a mut Decoder<'b>,
    table: &'static Table,
}
seed!(RowsSeed<'_, '_>, Vec<(Uuid, Change)>, deserialize_map);

impl<'de> Visitor<'de> for RowsSeed<'_, '_> {
    type Value = Vec<(Uuid, Change)>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "updates of {} by uuid", self.table.name)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut out = Vec::new();
        while let Some(uuid) = map.next_key::<Uuid>()? {
            out.push((uuid, map.next_value_seed(ChangeSeed { decoder: &mut *self.decoder, table: self.table })?));
        }
        Ok(out)
    }
}

struct ChangeSeed<'a, 'b> {
    decoder: &'a mut Decoder<'b>,
    table: &'static Table,
}
seed!(ChangeSeed<'_, '_>, Change, deserialize_map);

impl<'de> Visitor<'de> for ChangeSeed<'_, '_> {
    type Value = Change;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of initial, insert, modify, delete, old and new of a row of {}", self.table.name)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Change, A::Error> {
        let mut out = None;
        while let Some(what) = map.next_key::<Text>()? {
            let cells = CellsSeed { decoder: &mut *self.decoder, table: self.table };
            match &*what.0 {
                // "new" comes from a plain monitor: it has all columns
                "initial" | "insert" | "new" => {
                    out = Some(Change::Full(map.next_value_seed(cells)?.into_row(self.table)));
                }
                "modify" => out = Some(Change::Modify(map.next_value_seed(cells)?.0)),
                // a row of a plain monitor with "old" and no "new" is deleted
                "delete" | "old" => {
                    map.next_value::<IgnoredAny>()?;
                    out = out.or(Some(Change::Delete));
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        out.ok_or_else(|| A::Error::custom("row update says nothing"))
    }
}

struct Cells(Vec<(ColumnId, Datum)>);

impl Cells {
    fn into_row(self, table: &'static Table) -> Row {
        let kept = |(id, datum): &(ColumnId, Datum)| !table.info(*id).is_some_and(|c| c.is_default(datum));
        Row::from_cells(table, self.0.into_iter().filter(kept))
    }
}

struct CellsSeed<'a, 'b> {
    decoder: &'a mut Decoder<'b>,
    table: &'static Table,
}
seed!(CellsSeed<'_, '_>, Cells, deserialize_map);

impl CellsSeed<'_, '_> {
    fn column(&self, name: &str) -> Option<(ColumnId, &'static ColumnInfo)> {
        let id = self.table.column(name)?;
        let read = self.decoder.layout.reads(self.table, id) != Reads::Nothing;
        self.table.info(id).filter(|_| read).map(|info| (id, info))
    }
}

impl<'de> Visitor<'de> for CellsSeed<'_, '_> {
    type Value = Cells;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "columns of {}", self.table.name)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Cells, A::Error> {
        let mut out = Vec::new();
        while let Some(name) = map.next_key::<Text>()? {
            match self.column(&name.0) {
                Some((id, column)) => {
                    out.push((id, map.next_value_seed(DatumSeed { column, texts: self.decoder.texts })?));
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Cells(out))
    }
}
