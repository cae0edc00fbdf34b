//! What is left over: rows with our marks, and elements of sets that are ours, that no key wants.
//!
//! Run once after the first full plan, before anything new is written: an address that a stale port
//! still carries may be given to a new pod in the very next transaction.

use std::collections::{BTreeSet, HashMap, HashSet};

use ovnkube_ovn::nb::logical_switch_port;
use ovnkube_ovn::{Atom, ColumnId, Database, Row, Table, Uuid};
use ovnkube_ovsdb::Cache;
use ovnkube_plan::{MemberValue, is_garbage, is_our_variable, member_columns};

use crate::diff::{Diff, Owned, existing};

/// Adds to `diff` the removal of everything of ours that nobody in `owned` wants.
pub fn collect<'a>(diff: &mut Diff<'_>, cache: &Cache, database: &Database, owned: impl Iterator<Item = &'a Owned>) {
    let wanted = Wanted::of(cache, owned);
    for table in database.tables {
        for (uuid, row) in cache.iter(table) {
            if wanted.rows.contains(&uuid) {
                wanted.prune(diff, cache, uuid, row);
            } else if table.is_root && is_garbage(row, ports(cache, row)) {
                // rows that live by a reference go with their parent, or are pruned from it: under
                // somebody else's switch or router nothing is ours
                diff.delete(table, uuid);
            }
        }
    }
}

struct Wanted {
    rows: HashSet<Uuid>,
    members: HashMap<(Uuid, ColumnId), BTreeSet<Atom>>,
}

impl Wanted {
    fn of<'a>(cache: &Cache, owned: impl Iterator<Item = &'a Owned>) -> Self {
        let mut wanted = Self { rows: HashSet::new(), members: HashMap::new() };
        for owned in owned {
            wanted.rows.extend(owned.rows.iter().filter_map(|key| existing(cache, key)));
            for member in &owned.members {
                let value = match &member.value {
                    MemberValue::Row(key) => existing(cache, key).map(Atom::Uuid),
                    MemberValue::Text(text) | MemberValue::Entry(text, _) => Some(Atom::Str(text.clone())),
                };
                if let (Some(of), Some(value)) = (existing(cache, &member.of), value) {
                    wanted.members.entry((of, member.column)).or_default().insert(value);
                }
            }
        }
        wanted
    }

    /// Drops from a wanted row's member columns what nobody wants in there.
    fn prune(&self, diff: &mut Diff<'_>, cache: &Cache, uuid: Uuid, row: &Row) {
        for column in member_columns(row.table()) {
            let wanted = self.members.get(&(uuid, *column));
            let Some(have) = row.get(*column) else { continue };
            for (variable, _) in have.pairs() {
                let is_ours = variable.as_str().is_some_and(is_our_variable);
                if is_ours && !wanted.is_some_and(|w| w.contains(variable)) {
                    diff.drop_entry(row.table(), uuid, *column, variable);
                }
            }
            for atom in have.atoms() {
                if !wanted.is_some_and(|w| w.contains(atom)) && self.is_ours(cache, row.table(), *column, atom) {
                    diff.drop_value(row.table(), uuid, *column, atom.clone());
                }
            }
        }
    }

    /// Texts and ports of port groups in our rows are all ours. Any other row is ours if it is wanted
    /// elsewhere or carries our marks; others may hang their own ports and load balancers on a node's
    /// switch.
    fn is_ours(&self, cache: &Cache, table: &'static Table, column: ColumnId, atom: &Atom) -> bool {
        let Some(child) = atom.as_uuid() else { return true };
        let Some(reference) = table.info(column).and_then(|info| info.key.refers) else { return true };
        let is_port_of_group = !reference.strong && reference.table == logical_switch_port::TABLE.name;
        if is_port_of_group || self.rows.contains(&child) {
            return true;
        }
        let Some(child_table) = ovnkube_ovn::nb::DATABASE.table(reference.table) else { return false };
        cache.get(child_table, child).is_some_and(|row| is_garbage(row, std::iter::empty()))
    }
}

/// Names of the ports of a switch; nothing for other rows.
pub(crate) fn ports<'a>(cache: &'a Cache, row: &'a Row) -> impl Iterator<Item = &'a str> {
    let is_switch = row.table().name == "Logical_Switch";
    let uuids = is_switch.then(|| row.uuids(ovnkube_ovn::nb::logical_switch::PORTS)).into_iter().flatten();
    uuids.filter_map(|uuid| cache.get(logical_switch_port::TABLE, uuid).map(|port| port.str(logical_switch_port::NAME)))
}
