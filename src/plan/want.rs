//! What a key wants: rows, members of rows that other keys want, and annotations.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use ovnkube_model::{Name, PodKey};
use ovnkube_ovn::{Column, ColumnId, IntoDatum, Row, Table};

use crate::rows::is_named_within;

/// A row by its identity instead of its uuid: a table and its [`identity`](crate::identity) in it, and the parent's
/// identity for rows that only their parents tell apart (routes of two routers).
///
/// One pointer: most of what is stored for a large cluster are such keys, and they repeat.
#[derive(Clone)]
pub struct RowKey(Arc<RowName>);

/// The content of a [`RowKey`].
#[derive(Clone)]
pub struct RowName {
    pub table: &'static Table,
    pub id: Arc<str>,
    pub within: Option<Arc<str>>,
}

impl RowKey {
    pub fn new(table: &'static Table, id: impl Into<Arc<str>>) -> Self {
        Self(Arc::new(RowName { table, id: id.into(), within: None }))
    }

    /// The row of this identity that belongs to `parent`.
    fn within(&self, parent: &Self) -> Self {
        Self(Arc::new(RowName { within: Some(parent.id.clone()), ..RowName::clone(self) }))
    }
}

impl Deref for RowKey {
    type Target = RowName;
    fn deref(&self) -> &RowName {
        &self.0
    }
}

impl RowName {
    fn parts(&self) -> (&'static str, &str, Option<&str>) {
        (self.table.name, &self.id, self.within.as_deref())
    }
}

impl PartialEq for RowKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.parts() == other.parts()
    }
}
impl Eq for RowKey {}
impl PartialOrd for RowKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for RowKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.parts().cmp(&other.parts())
    }
}
impl std::hash::Hash for RowKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.table.id, &self.id, &self.within).hash(state);
    }
}
impl fmt::Display for RowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.table.name, self.id)?;
        self.within.as_ref().map_or(Ok(()), |parent| write!(f, " of {parent}"))
    }
}
impl fmt::Debug for RowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A row as it should be. Absent columns are left alone.
#[derive(Debug, Clone)]
pub struct RowWant {
    pub key: RowKey,
    pub row: Row,
    /// Reference columns of which this row sets the whole value.
    pub refs: Vec<(ColumnId, Vec<RowKey>)>,
    /// The row would mean something else without this column: if the database lacks it, the row is not wanted.
    pub needs: Option<ColumnId>,
}

impl RowWant {
    pub fn new(id: impl Into<Arc<str>>, row: Row) -> Self {
        Self { key: RowKey::new(row.table(), id), row, refs: Vec::new(), needs: None }
    }

    /// Adds the parent, where the identity alone is ambiguous.
    pub fn within(mut self, parent: &RowKey) -> Self {
        debug_assert!(is_named_within(self.key.table), "{}", self.key);
        self.key = self.key.within(parent);
        self
    }

    pub fn with<T>(mut self, column: Column<T>, value: impl IntoDatum<T>) -> Self {
        self.row.set(column, value);
        self
    }

    pub fn needs<T>(mut self, column: Column<T>) -> Self {
        self.needs = Some(column.id());
        self
    }

    pub fn refers<T>(mut self, column: Column<T>, rows: impl IntoIterator<Item = RowKey>) -> Self {
        self.refs.push((column.id(), rows.into_iter().collect()));
        self
    }
}

/// One element of a set or map column of a row: the port of a switch, the address of an address set. The set is
/// the union of what all keys want in it; no key writes it as a whole.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    pub of: RowKey,
    pub column: ColumnId,
    pub value: MemberValue,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemberValue {
    Row(RowKey),
    Text(Arc<str>),
    /// Key and value in a map column; boxed, since few of the many members are entries.
    Entry(Box<(Arc<str>, Arc<str>)>),
}

/// Annotations and labels to set on an object; those that have the wanted value already are not listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    pub target: PatchTarget,
    /// If the object of this name has another uid by now, nothing is written.
    pub uid: Name,
    pub annotations: Vec<(&'static str, String)>,
    /// What these annotations were: if one is something else by now, none is written.
    pub seen: Seen,
    /// Labels to set on a node; those that have the wanted value already are not listed.
    pub labels: Vec<(&'static str, &'static str)>,
    /// For a node: its wanted condition NetworkUnavailable, if it differs.
    pub network_unavailable: Option<Unavailable>,
}

/// What the annotations of a [`Patch`] were in the object that it was planned for. So a master that sleeps between its
/// last check and the request cannot overwrite what its successor has given out meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// The object had no annotations, of anyone.
    Bare,
    /// Their texts, in the same order; `None`: it did not have that one.
    Texts(Vec<Option<Name>>),
    /// It had the one annotation, of which only [`PodNetwork::digest`](ovnkube_model::PodNetwork::digest) is known; `None`:
    /// it could not be read.
    Digest(Option<u64>),
}

/// State of a node's condition NetworkUnavailable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    pub status: bool,
    /// CamelCase.
    pub reason: &'static str,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PatchTarget {
    Node(Name),
    Pod(PodKey),
}

/// Everything one key wants. Empty = it should not exist.
#[derive(Debug, Clone, Default)]
pub struct Want {
    pub rows: Vec<RowWant>,
    pub members: Vec<Member>,
    pub patch: Option<Patch>,
}

impl Want {
    /// Wants a row; returns its key for references to it.
    pub fn row(&mut self, row: RowWant) -> RowKey {
        let key = row.key.clone();
        self.rows.push(row);
        key
    }

    /// Wants `row` among the rows that `of` refers to in `column`.
    pub fn member<T>(&mut self, of: &RowKey, column: Column<T>, row: &RowKey) {
        self.members.push(Member { of: of.clone(), column: column.id(), value: MemberValue::Row(row.clone()) });
    }

    /// Wants a text in a set column of `of`.
    pub fn text<T>(&mut self, of: &RowKey, column: Column<T>, text: impl Into<Arc<str>>) {
        self.members.push(Member { of: of.clone(), column: column.id(), value: MemberValue::Text(text.into()) });
    }

    /// Wants `key` to be `value` in a map column of `of`.
    pub fn entry<T>(&mut self, of: &RowKey, column: Column<T>, key: impl Into<Arc<str>>, value: impl Into<Arc<str>>) {
        let value = MemberValue::Entry(Box::new((key.into(), value.into())));
        self.members.push(Member { of: of.clone(), column: column.id(), value });
    }
}
