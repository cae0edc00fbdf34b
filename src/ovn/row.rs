//! Rows: a table and some of its columns.
//!
//! A row of the cache leaves out columns that have their default. In a wanted row, an absent column is not managed.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use uuid::Uuid;

use crate::schema::{ColumnId, Table};
use crate::value::{Atom, Datum};

/// Kinds of columns, for [`Column`]'s type parameter.
pub mod kind {
    use std::marker::PhantomData;

    pub enum Int {}
    pub enum Real {}
    pub enum Bool {}
    pub enum Str {}
    pub enum Uuid {}
    /// Exactly one.
    pub struct One<K>(PhantomData<K>);
    /// None or one.
    pub struct Opt<K>(PhantomData<K>);
    /// A set.
    pub struct Set<K>(PhantomData<K>);
    /// A map.
    pub struct Map<K, V>(PhantomData<(K, V)>);
}
use kind::{Map, One, Opt, Set};

/// A column of a known table and type, such as `nb::acl::PRIORITY`.
pub struct Column<T> {
    id: ColumnId,
    kind: PhantomData<fn() -> T>,
}

impl<T> Clone for Column<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Column<T> {}

impl<T> Column<T> {
    pub(crate) const fn new(id: u16) -> Self {
        Column { id: ColumnId(id), kind: PhantomData }
    }

    pub const fn id(self) -> ColumnId {
        self.id
    }
}

impl<T> From<Column<T>> for ColumnId {
    fn from(column: Column<T>) -> ColumnId {
        column.id
    }
}

/// A value that can be an atom of kind `K`.
pub trait IntoAtom<K> {
    fn into_atom(self) -> Atom;
}

macro_rules! atoms {
    ($($kind:ident: $($from:ty)*, $to:expr;)*) => { $($(
        impl IntoAtom<kind::$kind> for $from {
            fn into_atom(self) -> Atom { ($to)(self.into()) }
        }
    )*)* };
}
atoms! {
    Int: i64 i32 u32 u16 u8, Atom::Int;
    Real: f64, |f| Atom::Real(crate::value::Real(f));
    Bool: bool, Atom::Bool;
    Str: &str String Arc<str> Cow<'_, str>, Atom::Str;
    Uuid: Uuid, Atom::Uuid;
}
impl IntoAtom<kind::Str> for &String {
    fn into_atom(self) -> Atom {
        Atom::Str(self.as_str().into())
    }
}
impl IntoAtom<kind::Uuid> for &Uuid {
    fn into_atom(self) -> Atom {
        Atom::Uuid(*self)
    }
}

/// A value that can be the whole value of a column of kind `T`.
pub trait IntoDatum<T> {
    fn into_datum(self) -> Datum;
}

impl<K, A: IntoAtom<K>> IntoDatum<One<K>> for A {
    fn into_datum(self) -> Datum {
        Datum::one(self.into_atom())
    }
}
impl<K, A: IntoAtom<K>> IntoDatum<Opt<K>> for Option<A> {
    fn into_datum(self) -> Datum {
        self.map_or(Datum::EMPTY, |a| Datum::one(a.into_atom()))
    }
}
impl<K, I: IntoIterator<Item: IntoAtom<K>>> IntoDatum<Set<K>> for I {
    fn into_datum(self) -> Datum {
        Datum::set(self.into_iter().map(IntoAtom::into_atom))
    }
}
impl<K, V, A: IntoAtom<K>, B: IntoAtom<V>, I: IntoIterator<Item = (A, B)>> IntoDatum<Map<K, V>> for I {
    fn into_datum(self) -> Datum {
        Datum::map(self.into_iter().map(|(k, v)| (k.into_atom(), v.into_atom())))
    }
}

/// Column kinds that hold at most one `K`.
pub trait Single<K> {}
impl<K> Single<K> for One<K> {}
impl<K> Single<K> for Opt<K> {}

/// Column kinds whose members are `K`s: exactly one, at most one, or a set.
pub trait Members<K> {}
impl<K> Members<K> for One<K> {}
impl<K> Members<K> for Opt<K> {}
impl<K> Members<K> for Set<K> {}

/// A row: of the cache, or a wanted one.
#[derive(Clone, PartialEq, Eq)]
pub struct Row {
    table: &'static Table,
    /// Sorted by column.
    cells: Vec<(ColumnId, Datum)>,
}

impl Row {
    pub fn new(table: &'static Table) -> Self {
        Row { table, cells: Vec::new() }
    }

    pub fn table(&self) -> &'static Table {
        self.table
    }

    /// Sets a column and returns the row, to build rows.
    pub fn with<T>(mut self, column: Column<T>, value: impl IntoDatum<T>) -> Self {
        self.set(column, value);
        self
    }

    pub fn set<T>(&mut self, column: Column<T>, value: impl IntoDatum<T>) {
        self.put(column.id, value.into_datum());
    }

    /// Sets a column given by its id.
    pub fn put(&mut self, column: ColumnId, datum: Datum) {
        match self.cells.binary_search_by_key(&column, |c| c.0) {
            Ok(at) => {
                if let Some(cell) = self.cells.get_mut(at) {
                    cell.1 = datum;
                }
            }
            Err(at) => self.cells.insert(at, (column, datum)),
        }
    }

    /// Removes a column and returns its value.
    pub fn remove(&mut self, column: impl Into<ColumnId>) -> Option<Datum> {
        let column = column.into();
        let at = self.cells.binary_search_by_key(&column, |c| c.0).ok()?;
        Some(self.cells.remove(at).1)
    }

    /// A row of cells in any order, without spare capacity.
    pub fn from_cells(table: &'static Table, cells: impl IntoIterator<Item = (ColumnId, Datum)>) -> Self {
        let mut cells: Vec<_> = cells.into_iter().collect();
        cells.sort_by_key(|c| c.0);
        cells.dedup_by_key(|c| c.0);
        cells.shrink_to_fit();
        Row { table, cells }
    }

    pub fn get(&self, column: impl Into<ColumnId>) -> Option<&Datum> {
        let column = column.into();
        let at = self.cells.binary_search_by_key(&column, |c| c.0).ok()?;
        self.cells.get(at).map(|c| &c.1)
    }

    /// The columns that are present, in the table's order.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = (ColumnId, &Datum)> {
        self.cells.iter().map(|(id, datum)| (*id, datum))
    }

    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Whether `column` holds `datum`; an absent column holds its default.
    pub fn holds(&self, column: ColumnId, datum: &Datum) -> bool {
        match self.get(column) {
            Some(have) => have == datum,
            None => self.table.info(column).is_some_and(|c| c.is_default(datum)),
        }
    }

    /// The columns of this wanted row that differ in `have`.
    pub fn differing<'a>(&'a self, have: &'a Row) -> impl Iterator<Item = (ColumnId, &'a Datum)> {
        self.cells().filter(|(id, want)| !have.holds(*id, want))
    }

    fn atom(&self, id: ColumnId) -> Option<&Atom> {
        self.get(id)?.single()
    }

    /// The text of a column; "" if there is none.
    pub fn str<T: Single<kind::Str>>(&self, column: Column<T>) -> &str {
        self.atom(column.id).and_then(Atom::as_str).unwrap_or_default()
    }

    /// The text of a column, shared.
    pub fn text<T: Single<kind::Str>>(&self, column: Column<T>) -> Option<&Arc<str>> {
        self.atom(column.id).and_then(Atom::as_text)
    }

    /// The number in a column; 0 if there is none.
    pub fn int<T: Single<kind::Int>>(&self, column: Column<T>) -> i64 {
        self.atom(column.id).and_then(Atom::as_int).unwrap_or_default()
    }

    pub fn opt_int(&self, column: Column<Opt<kind::Int>>) -> Option<i64> {
        self.atom(column.id)?.as_int()
    }

    /// Whether a column is true; false if there is no value.
    pub fn bool<T: Single<kind::Bool>>(&self, column: Column<T>) -> bool {
        matches!(self.atom(column.id), Some(Atom::Bool(true)))
    }

    /// The row that a column refers to.
    pub fn uuid<T: Single<kind::Uuid>>(&self, column: Column<T>) -> Option<Uuid> {
        self.atom(column.id)?.as_uuid()
    }

    fn members(&self, id: ColumnId) -> impl Iterator<Item = &Atom> {
        self.get(id).into_iter().flat_map(Datum::atoms)
    }

    /// The texts of a column, sorted.
    pub fn strs<T: Members<kind::Str>>(&self, column: Column<T>) -> impl Iterator<Item = &str> {
        self.members(column.id).filter_map(Atom::as_str)
    }

    /// The rows that a column refers to, sorted.
    pub fn uuids<T: Members<kind::Uuid>>(&self, column: Column<T>) -> impl Iterator<Item = Uuid> {
        self.members(column.id).filter_map(Atom::as_uuid)
    }

    /// A map of text to text; empty if there is none.
    pub fn map(&self, column: Column<Map<kind::Str, kind::Str>>) -> StrMap<'_> {
        StrMap(self.get(column.id))
    }

    /// What people and programs have noted on the row; empty if the table has no such column.
    pub fn external_ids(&self) -> StrMap<'_> {
        StrMap(self.table.column("external_ids").and_then(|column| self.get(column)))
    }

    /// The pairs of any map.
    pub fn pairs<K, V>(&self, column: Column<Map<K, V>>) -> &[(Atom, Atom)] {
        self.get(column.id).map_or(&[], Datum::pairs)
    }
}

/// View of a column of string keys and string values.
#[derive(Clone, Copy)]
pub struct StrMap<'a>(Option<&'a Datum>);

impl<'a> StrMap<'a> {
    pub fn get(self, key: &str) -> Option<&'a str> {
        self.0?.value_of(key)?.as_str()
    }

    /// The same, shared.
    pub fn text(self, key: &str) -> Option<&'a Arc<str>> {
        self.0?.value_of(key)?.as_text()
    }

    pub fn contains_key(self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// The pairs, sorted by key.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.map_or(&[][..], Datum::pairs).iter().filter_map(|(k, v)| Some((k.as_str()?, v.as_str()?)))
    }

    pub fn len(self) -> usize {
        self.0.map_or(0, Datum::len)
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{{", self.table.name)?;
        for (i, (id, datum)) in self.cells().enumerate() {
            let name = self.table.info(id).map_or("?", |c| c.name);
            write!(f, "{}{name}: {datum:?}", if i == 0 { "" } else { ", " })?;
        }
        f.write_str("}")
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
