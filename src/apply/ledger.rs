//! Who has which rows written: what a key wants less than before is what goes away.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use ovnkube_plan::{Key, Member, MemberValue, RowKey};

use crate::diff::Owned;

/// What each key wants, as far as it is known.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Shared with the transaction that it is to be taken back for should that fail.
    owned: HashMap<Key, Arc<Owned>>,
    /// How many keys want a row: it goes with the last of them.
    owners: HashMap<RowKey, u32>,
    /// Keys that want a text in a set. An address passes from one pod to another, and which of the
    /// two is planned first is chance: only the last holder's going takes it out.
    holders: HashMap<Member, u32>,
}

impl Ledger {
    pub fn get(&self, key: &Key) -> Option<&Arc<Owned>> {
        self.owned.get(key)
    }

    pub fn all(&self) -> impl Iterator<Item = &Owned> {
        self.owned.values().map(AsRef::as_ref)
    }

    /// True for a row that more than one key wants: then it is not the one's to remove.
    pub fn has_others(&self, row: &RowKey) -> bool {
        self.owners.get(row).is_some_and(|owners| *owners > 1)
    }

    /// True for an element that more than one key wants.
    pub fn is_shared(&self, member: &Member) -> bool {
        self.holders.get(member).is_some_and(|count| *count > 1)
    }

    /// Notes what a key wants now.
    pub fn write(&mut self, key: &Key, owned: Owned) {
        let old = self.owned.get(key).map(AsRef::as_ref);
        if old == Some(&owned) {
            return;
        }
        debug_assert_eq!(owned.rows.iter().collect::<HashSet<_>>().len(), owned.rows.len(), "{key} wants a row twice");
        for row in old.into_iter().flat_map(|old| old.rows.iter()) {
            leave(&mut self.owners, row);
        }
        for member in old.into_iter().flat_map(texts) {
            leave(&mut self.holders, member);
        }
        for member in texts(&owned) {
            *self.holders.entry(member.clone()).or_default() += 1;
        }
        for row in &owned.rows {
            *self.owners.entry(row.clone()).or_default() += 1;
        }
        if owned.is_empty() {
            self.owned.remove(key);
        } else {
            self.owned.insert(key.clone(), Arc::new(owned));
        }
    }

    /// Notes what a key may have beside what it wants: after a failure, what it had before.
    pub fn add(&mut self, key: &Key, more: &Owned) {
        let now = self.owned.get(key).cloned().unwrap_or_default();
        let rows: BTreeSet<_> = now.rows.iter().chain(&more.rows).cloned().collect();
        let members: BTreeSet<_> = now.members.iter().chain(&more.members).cloned().collect();
        self.write(key, Owned { rows: rows.into_iter().collect(), members: members.into_iter().collect() });
    }

    /// The keys that want one of these rows, or something in it. Looks at everything once: only for
    /// what others did to rows, which is rare.
    pub fn interested(&self, rows: &HashSet<(&str, String)>) -> Vec<Key> {
        if rows.is_empty() {
            return Vec::new();
        }
        let tables: HashSet<&str> = rows.iter().map(|(table, _)| *table).collect();
        let is_one =
            |row: &RowKey| tables.contains(row.table.name) && rows.contains(&(row.table.name, row.id.to_string()));
        let concerns =
            |owned: &Owned| owned.rows.iter().any(is_one) || owned.members.iter().any(|member| is_one(&member.of));
        self.owned.iter().filter(|(_, owned)| concerns(owned)).map(|(key, _)| key.clone()).collect()
    }
}

/// One key fewer wants it.
fn leave<T: Hash + Eq>(wanted: &mut HashMap<T, u32>, what: &T) {
    if let Some(count) = wanted.get_mut(what) {
        *count -= 1;
        if *count == 0 {
            wanted.remove(what);
        }
    }
}

fn texts(owned: &Owned) -> impl Iterator<Item = &Member> {
    owned.members.iter().filter(|member| matches!(member.value, MemberValue::Text(_)))
}

#[cfg(test)]
mod tests {
    use ovnkube_ovn::nb::port_group;

    use super::*;

    #[test]
    fn a_row_of_two_keys_goes_with_the_last_of_them() {
        let (one, other) = (Key::Namespaces("a".into()), Key::Namespaces("b".into()));
        let row = RowKey::new(port_group::TABLE, "g");
        let owned = || Owned { rows: [row.clone()].into(), members: [].into() };
        let mut ledger = Ledger::default();
        for key in [&one, &other, &one] {
            ledger.write(key, owned());
        }
        assert!(ledger.has_others(&row), "neither is the one to remove it");
        ledger.write(&other, Owned::default());
        assert!(!ledger.has_others(&row), "the last one is");
        // a failure brings it back
        ledger.add(&other, &owned());
        assert!(ledger.has_others(&row));
    }
}
