//! Wanted minus had: the smallest transaction that makes the database hold what keys want.
//!
//! ```text
//!  old Owned ─┐
//!  Want ──────┼─ resolve names to uuids ─▶ rows to insert, columns to set ──┐
//!  cache ─────┘                            members to add, members to drop ─┴─▶ Txn
//! ```
//!
//! *Invariant*: an unchanged key adds nothing, and an empty transaction is never sent.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use ovnkube_ovn::nb::{logical_router, port_group};
use ovnkube_ovn::schema::ColumnInfo;
use ovnkube_ovn::{Atom, ColumnId, Database, Datum, Row, Table, Uuid};
use ovnkube_ovsdb::{Cache, Txn};
use ovnkube_plan::{Key, Member, MemberValue, Ownership, RowKey, RowWant, Want, ownership, router_peer_port};

use crate::owner_index::{Owned, OwnerIndex};

/// A key refers to a row that does not exist and that no key in this batch creates.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} does not exist yet")]
pub struct Missing(pub RowKey);

type Cell = (Uuid, ColumnId);

/// What the operations of a transaction are about, in the names that keys use.
#[derive(Debug, Default)]
pub struct Subjects {
    ops: Vec<Option<(Uuid, Option<ColumnId>)>>,
    rows: HashMap<RowKey, Uuid>,
}

impl Subjects {
    /// Whether an operation is about a row or member in `owned`.
    pub fn concerns(&self, op: usize, owned: &Owned) -> bool {
        let Some((uuid, column)) = self.ops.get(op).copied().flatten() else { return false };
        let is_it = |row: &RowKey| self.rows.get(row) == Some(&uuid);
        match column {
            None => owned.rows.iter().any(is_it),
            Some(column) => owned.members.iter().any(|member| member.column == column && is_it(&member.of)),
        }
    }
}

/// Where the rows and members of a key are or will be, in the order in which they are wanted.
struct Located {
    rows: Vec<Option<Uuid>>,
    /// The row that has the member, and the member's value.
    members: Vec<Option<(Uuid, Atom)>>,
}

const NO_ROWS: [Uuid; 0] = [];

/// Collects the differences of many keys into one transaction.
pub struct Diff<'a> {
    cache: &'a Cache,
    /// Uuids of the rows named so far, including those to be created.
    known: HashMap<RowKey, Uuid>,
    placed: HashSet<Uuid>,
    inserts: Vec<(Uuid, Row)>,
    updates: Vec<(Uuid, Row)>,
    deletes: BTreeMap<Uuid, &'static Table>,
    /// Whether port groups lose only their contents for now.
    keeps_groups: bool,
    /// Port groups that nobody wants and whose rows stay for now.
    emptied: BTreeSet<Uuid>,
    added: BTreeMap<Cell, BTreeSet<Atom>>,
    /// Elements that exist already and that a key in this batch wants.
    kept: BTreeSet<(Uuid, ColumnId, Atom)>,
    dropped: BTreeMap<Cell, BTreeSet<Atom>>,
    /// Map entries: the value that each should have, `None` to remove it.
    entries: BTreeMap<Cell, BTreeMap<Arc<str>, Option<Arc<str>>>>,
    tables: HashMap<Uuid, &'static Table>,
    /// Number of rows to write or delete, and roughly the bytes to write.
    size: (usize, usize),
    /// The size when the first key came.
    before_keys: (usize, usize),
    enough: (usize, usize),
}

/// Rows and bytes above which a transaction is better split. Measured: a cluster of three with an election timer of 1 s
/// agrees on 50,000 rows, and never on 100,000.
pub const ENOUGH: (usize, usize) = (5_000, 2 << 20);

impl<'a> Diff<'a> {
    pub fn new(cache: &'a Cache) -> Self {
        Self::with_limit(cache, ENOUGH)
    }

    /// With another limit than [`ENOUGH`].
    pub fn with_limit(cache: &'a Cache, enough: (usize, usize)) -> Self {
        Self {
            enough,
            cache,
            known: HashMap::new(),
            placed: HashSet::new(),
            inserts: Vec::new(),
            updates: Vec::new(),
            deletes: BTreeMap::new(),
            keeps_groups: false,
            emptied: BTreeSet::new(),
            added: BTreeMap::new(),
            kept: BTreeSet::new(),
            dropped: BTreeMap::new(),
            entries: BTreeMap::new(),
            tables: HashMap::new(),
            size: (0, 0),
            before_keys: (0, 0),
        }
    }

    /// From now on port groups that go lose only their contents; see [`crate::recreated`].
    pub fn keep_groups(&mut self) {
        self.keeps_groups = true;
    }

    /// What follows is for keys. What a sweep has removed for them does not count against them: it is replaced by what
    /// they want.
    pub fn begin_keys(&mut self) {
        self.before_keys = self.size;
    }

    /// Whether keys that may wait should go into another transaction.
    pub fn is_large(&self) -> bool {
        self.is_larger_than(self.before_keys)
    }

    /// Whether removals that may wait should go into another transaction.
    pub fn is_full(&self) -> bool {
        self.is_larger_than((0, 0))
    }

    fn is_larger_than(&self, (rows, bytes): (usize, usize)) -> bool {
        self.size.0 > rows + self.enough.0 || self.size.1 > bytes + self.enough.1
    }

    fn grow(&mut self, row: &Row) {
        let bytes = |atom: &Atom| 8 + atom.as_str().map_or(32, str::len);
        let of_datum = |datum: &Datum| match datum.pairs() {
            [] => datum.atoms().map(bytes).sum::<usize>(),
            pairs => pairs.iter().map(|(key, value)| bytes(key) + bytes(value)).sum(),
        };
        self.size.0 += 1;
        self.size.1 += row.cells().map(|(_, datum)| of_datum(datum)).sum::<usize>();
    }

    /// The uuid of a row that exists or that this diff creates.
    pub fn find(&mut self, key: &RowKey) -> Option<Uuid> {
        if let Some(uuid) = self.known.get(key) {
            return Some(*uuid);
        }
        let uuid = existing(self.cache, key)?;
        self.known.insert(key.clone(), uuid);
        Some(uuid)
    }

    /// Adds what one key wants now and what it had before. If something it refers to is missing, nothing is added.
    pub fn key(&mut self, want: &Want, old: &Owned, owner_index: &OwnerIndex) -> Result<(), Missing> {
        let found = self.check(want)?;
        for (row, uuid) in want.rows.iter().zip(found.rows) {
            if let Some(uuid) = uuid {
                self.row(row, uuid);
            }
        }
        // usually they are equal, in the same order
        if *old.members != *want.members {
            let members: HashSet<_> = want.members.iter().collect();
            for member in old.members.iter().filter(|m| !members.contains(m) && !owner_index.is_shared(m)) {
                self.drop_member(member);
            }
        }
        for (member, place) in want.members.iter().zip(found.members) {
            if let Some((of, value)) = place {
                self.add_member(member, of, value);
            }
        }
        if !old.rows.iter().eq(want.rows.iter().map(|row| &row.key)) {
            let kept: HashSet<_> = want.rows.iter().map(|r| &r.key).collect();
            for row in old.rows.iter().filter(|row| !kept.contains(row) && !owner_index.has_others(row)) {
                self.drop_row(row);
            }
        }
        Ok(())
    }

    /// Removes what a key had, and returns it.
    pub fn take_back(&mut self, key: Key, had: Arc<Owned>, owner_index: &mut OwnerIndex) -> (Key, Arc<Owned>) {
        // nothing is missing for a key that wants nothing
        let _ = self.key(&Want::default(), &had, owner_index);
        owner_index.write(&key, Owned::default());
        (key, had)
    }

    /// Finds every row that is wanted or referred to, and gives uuids to those to be created.
    fn check(&mut self, want: &Want) -> Result<Located, Missing> {
        let mut fresh = Vec::new();
        let rows = want.rows.iter().map(|row| self.find_or_make(row, &mut fresh)).collect();
        match self.members(want) {
            Ok(members) => {
                self.tables.extend(fresh.iter().map(|row| (row.1, row.0.table)));
                Ok(Located { rows, members })
            }
            Err(missing) => {
                for (row, _) in &fresh {
                    self.known.remove(row);
                }
                Err(missing)
            }
        }
    }

    /// `None` for a row that would mean something else in this database, or whose table is missing.
    fn find_or_make(&mut self, want: &RowWant, fresh: &mut Vec<(RowKey, Uuid)>) -> Option<Uuid> {
        if let Some(uuid) = self.find(&want.key) {
            return Some(uuid);
        }
        let lacks = |column| !self.cache.supports(want.key.table, column);
        if want.needs.is_some_and(lacks) || !self.cache.has_table(want.key.table) {
            return None;
        }
        let uuid = self.fresh_uuid(&want.key);
        self.known.insert(want.key.clone(), uuid);
        fresh.push((want.key.clone(), uuid));
        Some(uuid)
    }

    fn members(&mut self, want: &Want) -> Result<Vec<Option<(Uuid, Atom)>>, Missing> {
        for row in want.rows.iter().flat_map(|row| row.refs.iter().flat_map(|(_, rows)| rows)) {
            self.find_for(want, row)?;
        }
        let mut members = Vec::with_capacity(want.members.len());
        for member in &want.members {
            let of = self.find_for(want, &member.of)?;
            let value = match &member.value {
                MemberValue::Row(row) => self.find_for(want, row)?.map(Atom::Uuid),
                MemberValue::Text(text) => Some(Atom::Str(text.clone())),
                MemberValue::Entry(entry) => Some(Atom::Str(entry.0.clone())),
            };
            members.push(of.zip(value));
        }
        Ok(members)
    }

    /// A row that `want` refers to; `None` for one of its own that is not created, or of a table that the server lacks.
    fn find_for(&mut self, want: &Want, row: &RowKey) -> Result<Option<Uuid>, Missing> {
        match self.find(row) {
            None if self.cache.has_table(row.table) && !want.rows.iter().any(|own| own.key == *row) => {
                Err(Missing(row.clone()))
            }
            found => Ok(found),
        }
    }

    /// A row with this uuid and another name was renamed by another program: it is left alone.
    fn fresh_uuid(&self, key: &RowKey) -> Uuid {
        let name = format!("{}\0{}", key.within.as_deref().unwrap_or_default(), key.id);
        self.cache.fresh_uuid(key.table, &name)
    }

    fn row(&mut self, want: &RowWant, uuid: Uuid) {
        let mut row = Cow::Borrowed(&want.row);
        for (column, keys) in &want.refs {
            let uuids: Vec<_> = keys.iter().filter_map(|k| self.find(k)).map(Atom::Uuid).collect();
            row.to_mut().put(*column, Datum::set(uuids));
        }
        for (column, left) in self.cache.narrowed(&want.row) {
            row.to_mut().put(column, left);
        }
        match self.cache.get(want.key.table, uuid) {
            Some(have) => {
                let mut change = Row::new(want.key.table);
                for (column, datum) in
                    row.differing(have).filter(|(column, _)| self.cache.supports(want.key.table, *column))
                {
                    change.put(column, datum.clone());
                }
                if !change.is_empty() {
                    self.grow(&change);
                    self.updates.push((uuid, change));
                }
                self.deletes.remove(&uuid);
                self.emptied.remove(&uuid);
            }
            // several keys may want the same row, all with the same content
            None => {
                if self.placed.insert(uuid) {
                    self.grow(&row);
                    self.inserts.push((uuid, row.into_owned()));
                }
            }
        }
    }

    fn add_member(&mut self, member: &Member, of: Uuid, value: Atom) {
        if let MemberValue::Entry(entry) = &member.value {
            return self.set_entry(member, of, &entry.0, &entry.1);
        }
        let cell = (of, member.column);
        if let Some(dropped) = self.dropped.get_mut(&cell) {
            dropped.remove(&value);
        }
        let have = self.cache.get(member.of.table, of).and_then(|row| row.get(member.column));
        if have.is_some_and(|have| have.contains(&value)) {
            self.kept.insert((of, member.column, value));
        } else {
            self.tables.insert(of, member.of.table);
            self.added.entry(cell).or_default().insert(value);
        }
    }

    fn set_entry(&mut self, member: &Member, of: Uuid, key: &Arc<str>, value: &Arc<str>) {
        let have = self.cache.get(member.of.table, of).and_then(|row| row.get(member.column));
        self.tables.insert(of, member.of.table);
        let entries = self.entries.entry((of, member.column)).or_default();
        if have.and_then(|have| have.value_of(key)).and_then(Atom::as_str) == Some(value) {
            self.kept.insert((of, member.column, Atom::Str(key.clone())));
            entries.remove(key);
        } else {
            entries.insert(key.clone(), Some(value.clone()));
        }
    }

    /// Removes an entry from a map, unless it is not there or this batch wants it.
    pub fn drop_entry(&mut self, table: &'static Table, of: Uuid, column: ColumnId, key: &Atom) {
        let Some(text) = key.as_str() else { return };
        let have = self.cache.get(table, of).and_then(|row| row.get(column));
        if have.and_then(|have| have.value_of(text)).is_some() && !self.kept.contains(&(of, column, key.clone())) {
            self.tables.insert(of, table);
            self.entries.entry((of, column)).or_default().entry(text.into()).or_insert(None);
        }
    }

    fn drop_member(&mut self, member: &Member) {
        if let MemberValue::Entry(entry) = &member.value {
            let of = self.find(&member.of);
            return of.into_iter().for_each(|of| {
                self.drop_entry(member.of.table, of, member.column, &Atom::Str(entry.0.clone()));
            });
        }
        let (Some(of), Some(value)) = (self.find(&member.of), self.value(&member.value)) else { return };
        self.drop_value(member.of.table, of, member.column, value);
    }

    /// Removes a value from a set, unless it is not there or this batch wants it.
    pub fn drop_value(&mut self, table: &'static Table, of: Uuid, column: ColumnId, value: Atom) {
        let cell = (of, column);
        let there = self.cache.get(table, of).and_then(|row| row.get(column)).is_some_and(|d| d.contains(&value));
        if there && !self.kept.contains(&(of, column, value.clone())) {
            self.tables.insert(of, table);
            self.size.0 += usize::from(value.as_uuid().is_some());
            self.dropped.entry(cell).or_default().insert(value);
        }
    }

    fn drop_row(&mut self, key: &RowKey) {
        if let Some(uuid) = existing(self.cache, key) {
            self.delete(key.table, uuid);
        }
    }

    /// Deletes a row. A row outside the root set goes with the last reference to it: the member or column that is
    /// dropped along with it.
    pub fn delete(&mut self, table: &'static Table, uuid: Uuid) {
        if self.keeps_groups && table == port_group::TABLE {
            let removes = self.cache.get(table, uuid).is_some_and(|have| self.removes(have));
            self.size.0 += usize::from(removes);
            self.emptied.insert(uuid);
        } else {
            self.delete_at_once(table, uuid);
        }
    }

    /// Whether the removal of a row would change anything now: a port group that only waits for its row's end is empty already.
    pub fn removes(&self, row: &Row) -> bool {
        !(self.keeps_groups && row.table() == port_group::TABLE && is_empty(row))
    }

    /// The same as [`Self::delete`], whatever is to be kept.
    pub fn delete_at_once(&mut self, table: &'static Table, uuid: Uuid) {
        if table.is_root {
            let children = self.cache.get(table, uuid).into_iter().flat_map(|row| row.cells()).map(|(_, datum)| datum);
            self.size.0 += 1 + children.flat_map(Datum::uuids).count();
            self.deletes.insert(uuid, table);
        }
    }

    fn value(&mut self, value: &MemberValue) -> Option<Atom> {
        match value {
            MemberValue::Row(key) => self.find(key).map(Atom::Uuid),
            MemberValue::Text(text) => Some(Atom::Str(text.clone())),
            MemberValue::Entry(entry) => Some(Atom::Str(entry.0.clone())),
        }
    }

    /// How many rows, set elements and map entries will be removed.
    pub fn removals(&self) -> usize {
        let entries = self.entries.values().flat_map(BTreeMap::values).filter(|value| value.is_none()).count();
        self.deletes.len() + self.dropped.values().map(BTreeSet::len).sum::<usize>() + entries
    }

    /// The transaction, empty if nothing differs, what its operations are about, and the port groups whose rows are to go later.
    pub fn into_parts(mut self, database: &'static Database) -> (Txn, Subjects, BTreeSet<Uuid>) {
        let rows = std::mem::take(&mut self.known);
        let emptied = self.emptied.clone();
        let txn = self.into_txn(database);
        let ops = txn.subjects();
        (txn, Subjects { ops, rows }, emptied)
    }

    /// The transaction; empty if nothing differs.
    pub fn into_txn(self, database: &'static Database) -> Txn {
        let mut txn = Txn::new(database);
        for (uuid, row) in self.inserts {
            txn.insert(uuid, row);
        }
        for (uuid, row) in self.updates {
            txn.update(uuid, row);
        }
        for group in &self.emptied {
            let nothing = Row::new(port_group::TABLE).with(port_group::PORTS, NO_ROWS).with(port_group::ACLS, NO_ROWS);
            if self.cache.get(port_group::TABLE, *group).is_some_and(|have| !is_empty(have)) {
                txn.update(*group, nothing);
            }
        }
        let gone = |cell: &Cell| self.deletes.contains_key(&cell.0) || self.emptied.contains(&cell.0);
        for (cell, values) in self.dropped.iter().filter(|(cell, values)| !values.is_empty() && !gone(cell)) {
            if let Some(table) = self.tables.get(&cell.0) {
                txn.remove_from(table, cell.0, cell.1, Datum::set(values.iter().cloned()));
            }
        }
        for (cell, values) in self.added.iter().filter(|(cell, values)| !values.is_empty() && !gone(cell)) {
            if let Some(table) = self.tables.get(&cell.0) {
                txn.insert_into(table, cell.0, cell.1, Datum::set(values.iter().cloned()));
            }
        }
        for (cell, entries) in self.entries.iter().filter(|(cell, _)| !gone(cell)) {
            let Some(table) = self.tables.get(&cell.0) else { continue };
            let removed: Vec<_> = entries.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| &**key).collect();
            if !removed.is_empty() {
                txn.remove_keys(table, cell.0, cell.1, removed);
            }
            let text = |text: &Arc<str>| Atom::Str(text.clone());
            let set = entries.iter().filter_map(|(key, value)| Some((text(key), text(value.as_ref()?))));
            let set = Datum::map(set);
            if !set.is_empty() {
                txn.set_pairs(table, cell.0, cell.1, set);
            }
        }
        for (uuid, table) in &self.deletes {
            txn.delete(table, *uuid);
        }
        txn
    }
}

/// Whether a port group has neither ports nor ACLs.
pub(crate) fn is_empty(group: &Row) -> bool {
    group.uuids(port_group::PORTS).next().is_none() && group.uuids(port_group::ACLS).next().is_none()
}

/// The row that a key names, if one of ours exists. A name without an index may occur several times: then the row with
/// our router peer port, else one with our marks, else the one with the lowest uuid. The others are garbage or foreign.
pub fn existing(cache: &Cache, key: &RowKey) -> Option<Uuid> {
    let named = cache.lookup(key.table, &key.id);
    let within = key.within.as_ref().map(|router| in_router(cache, router, key.table, named));
    let candidates = within.as_deref().unwrap_or(named).iter().copied();
    let rows = candidates.filter_map(|uuid| Some((uuid, cache.get(key.table, uuid)?.as_ref())));
    let mut ours = rows.filter(|(_, row)| ownership(row) != Ownership::Foreign || has_router_peer_port(cache, row));
    let first = ours.next()?;
    let Some(second) = ours.next() else { return Some(first.0) };
    let all = [first, second].into_iter().chain(ours);
    all.min_by_key(|(uuid, row)| (!has_router_peer_port(cache, row), ownership(row), *uuid)).map(|(uuid, _)| uuid)
}

/// Whether a switch or router has its router peer port, which only ours have.
pub(crate) fn has_router_peer_port(cache: &Cache, row: &Row) -> bool {
    let Some((table, port)) = router_peer_port(row) else { return false };
    let ports = row.table().column("ports").and_then(|column| row.get(column));
    cache.lookup(table, &port).iter().any(|uuid| ports.is_some_and(|ports| ports.contains(&Atom::Uuid(*uuid))))
}

/// Those of the rows of one name that a router has. A gateway router has few rows, but all of them have one of this name;
/// the cluster router has many rows, and few of this name. The fewer are looked for among the others, so that the work for
/// all nodes grows as their number does.
fn in_router(cache: &Cache, router: &str, table: &Table, named: &[Uuid]) -> Vec<Uuid> {
    let Some(router) = (!named.is_empty()).then(|| RowKey::new(logical_router::TABLE, router)) else {
        return Vec::new();
    };
    let router = existing(cache, &router).and_then(|uuid| cache.get(logical_router::TABLE, uuid));
    let refers = |info: &ColumnInfo| info.references().any(|to| to.table == table.name);
    let columns = logical_router::TABLE.iter().filter(|(_, info)| refers(info)).map(|(column, _)| column);
    let both = |has: &Datum| -> Vec<Uuid> {
        if has.len() < named.len() {
            has.uuids().filter(|uuid| named.binary_search(uuid).is_ok()).collect()
        } else {
            named.iter().copied().filter(|uuid| has.contains(&Atom::Uuid(*uuid))).collect()
        }
    };
    columns.filter_map(|column| router?.get(column)).flat_map(both).collect()
}

#[cfg(test)]
mod tests {
    use ovnkube_ovn::nb;

    use super::*;

    /// A sweep would stop at these again and again, and leave others as they are.
    #[test]
    fn groups_that_are_empty_already_fill_no_transaction() {
        let mut cache = Cache::new(&nb::DATABASE, ovnkube_plan::identity, |_| false);
        let (empty, full) = ([1, 2, 3].map(Uuid::from_u128), [4, 5].map(Uuid::from_u128));
        let group = |ports: &[Uuid]| Row::new(port_group::TABLE).with(port_group::PORTS, ports.iter().copied());
        for (groups, row) in [(&empty[..], group(&[])), (&full[..], group(&[Uuid::from_u128(9)]))] {
            for group in groups {
                cache.set(port_group::TABLE, *group, Some(Arc::new(row.clone())));
            }
        }
        let mut diff = Diff::with_limit(&cache, (1, ENOUGH.1));
        diff.keep_groups();
        for group in &empty {
            diff.delete(port_group::TABLE, *group);
        }
        assert!(!diff.is_full());
        for group in &full {
            diff.delete(port_group::TABLE, *group);
        }
        assert!(diff.is_full());
        let (txn, _, emptied) = diff.into_parts(&nb::DATABASE);
        assert_eq!((txn.len(), emptied.len()), (2, 5));
    }
}
