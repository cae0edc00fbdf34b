//! Sees every change of the database at once, and checks what must hold after each transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use ovnkube_apply::northbound_fence;
use ovnkube_ovn::nb::{DATABASE, address_set, logical_switch as ls, nb_global};
use ovnkube_ovn::{Atom, ColumnId, Row, Table, Uuid};
use ovnkube_ovsdb_data::Cache;
use ovnkube_tests::rules;

use crate::database::{Change, Database};

pub(crate) struct Observer {
    pub(crate) cache: Cache,
    pub(crate) foreign: Vec<Foreign>,
    /// Address sets of ours that another program has taken for itself.
    pub(crate) taken: Vec<Uuid>,
    /// How often each node was deleted since the last rest and no master has removed its switch for that.
    pub(crate) deleted: BTreeMap<String, u64>,
}

/// A row of another program.
#[derive(Clone)]
pub(crate) struct Foreign {
    pub(crate) uuid: Uuid,
    pub(crate) row: Arc<Row>,
    /// The row of ours that has it.
    pub(crate) place: Option<Place>,
}

#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) table: &'static Table,
    pub(crate) uuid: Uuid,
    pub(crate) column: ColumnId,
}

impl Observer {
    pub(crate) fn of(database: &Database) -> Self {
        let mut cache = Cache::new(&DATABASE, ovnkube_plan::identity, |_| true);
        cache.set_schema(Arc::clone(database.schema()));
        let mut observer = Self { cache, foreign: Vec::new(), taken: Vec::new(), deleted: BTreeMap::new() };
        observer.see(&database.all());
        observer
    }

    /// Takes in changes.
    pub(crate) fn see(&mut self, changes: &[Change]) {
        for Change { table, uuid, new, .. } in changes {
            self.cache.set(table, *uuid, new.clone());
        }
        // what was in a row of ours goes with it
        let cache = &self.cache;
        let stays = |foreign: &Foreign| foreign.place.is_none_or(|place| cache.get(place.table, place.uuid).is_some());
        self.foreign.retain(stays);
        // a master that had not seen it yet may have deleted it: what has its uuid later is ours
        self.taken.retain(|uuid| cache.get(address_set::TABLE, *uuid).is_some());
    }

    /// The database has lost these changes. Which rows are others' follows from their uuids, and from names (see `deeds.rs`).
    pub(crate) fn lose(&mut self, database: &Database, lost: &[Change], is_others: impl Fn(Uuid) -> bool) {
        let mut deleted = std::mem::take(&mut self.deleted);
        // a switch that is there again may be removed again
        let removed = lost.iter().filter(|change| change.table == ls::TABLE && change.new.is_none());
        for name in removed.filter_map(|change| Some(change.old.as_ref()?.str(ls::NAME))) {
            *deleted.entry(name.to_owned()).or_default() += 1;
        }
        let mut now = Self { deleted, ..Self::of(database) };
        for table in DATABASE.tables {
            for (uuid, row) in database.rows(table).filter(|(uuid, _)| is_others(*uuid)) {
                let parent = now.cache.parents(uuid).next().filter(|_| !table.is_root);
                let place =
                    parent.map(|parent| Place { table: parent.table, uuid: parent.uuid, column: parent.column });
                now.foreign.push(Foreign { uuid, row: Arc::clone(row), place });
            }
        }
        let taken =
            database.rows(address_set::TABLE).filter(|(_, row)| row.str(address_set::NAME).starts_with("taken"));
        now.taken = taken.map(|(uuid, _)| uuid).collect();
        *self = now;
    }

    /// From now on no master may change what others have taken: each has seen that.
    pub(crate) fn protect_taken(&mut self) {
        let cache = &self.cache;
        let found =
            |uuid: Uuid| Some(Foreign { uuid, row: Arc::clone(cache.get(address_set::TABLE, uuid)?), place: None });
        self.foreign.extend(std::mem::take(&mut self.taken).into_iter().filter_map(found));
    }

    /// Takes in what a master has committed.
    pub(crate) fn commit(&mut self, changes: &[Change]) {
        for change in changes {
            self.check_removal(change);
        }
        self.see(changes);
        rules::addresses_are_unique(&self.cache);
        for Change { old, new, .. } in changes.iter().filter(|change| change.table == nb_global::TABLE) {
            assert!(new.is_some(), "a master deleted the row about the database itself");
            assert_eq!(without_writer(old.as_deref()), without_writer(new.as_deref()), "what others have in NB_Global");
        }
        for Foreign { uuid, row, place } in &self.foreign {
            let have = self.cache.get(row.table(), *uuid);
            assert!(have == Some(row), "the foreign row {row} is {have:?}");
            let has = |place: &Place| {
                let parent = self.cache.get(place.table, place.uuid);
                parent.and_then(|parent| parent.get(place.column)).is_some_and(|set| set.contains(&Atom::Uuid(*uuid)))
            };
            assert!(place.as_ref().is_none_or(has), "the foreign row {row} was taken out of its place");
        }
    }

    /// A master removes what others have rows in only if it is the switch of a node that was deleted.
    fn check_removal(&mut self, Change { table, uuid, old, new }: &Change) {
        let (Some(old), None) = (old, new) else { return };
        if *table == ls::TABLE
            && let Some(times) = self.deleted.get_mut(old.str(ls::NAME)).filter(|times| **times > 0)
        {
            *times -= 1;
            return;
        }
        let inside = self.foreign.iter().find(|foreign| foreign.place.is_some_and(|place| place.uuid == *uuid));
        assert!(inside.is_none(), "a master deleted {old} and with it the foreign row {:?}", inside.map(|f| &f.row));
    }
}

/// The row about the database itself, without the name of the master that writes.
fn without_writer(global: Option<&Row>) -> Row {
    let mut row = global.cloned().unwrap_or_else(|| Row::new(nb_global::TABLE));
    let writer = northbound_fence(String::new()).key;
    let ids = row.map(nb_global::EXTERNAL_IDS).iter().filter(|(key, _)| *key != writer);
    let ids: Vec<_> = ids.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    row.set(nb_global::EXTERNAL_IDS, ids);
    row
}
