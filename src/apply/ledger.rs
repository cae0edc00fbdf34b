//! Who has which rows written: what a key wants less than before is what goes away.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use ovnkube_plan::{Key, Member, MemberValue, RowKey};

use crate::diff::Owned;

/// What each key wants, as far as it is known.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Shared with the transaction that it is to be taken back for should that fail.
    owned: HashMap<Key, Arc<Owned>>,
    owner_of: HashMap<RowKey, Key>,
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

    /// True for a row that another key wants: then it is not this one's to remove.
    pub fn is_anothers(&self, row: &RowKey, key: &Key) -> bool {
        self.owner_of.get(row).is_some_and(|owner| owner != key)
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
        for row in old.into_iter().flat_map(|old| old.rows.iter()) {
            if self.owner_of.get(row) == Some(key) {
                self.owner_of.remove(row);
            }
        }
        for member in old.into_iter().flat_map(texts) {
            if let Some(count) = self.holders.get_mut(member) {
                *count -= 1;
                if *count == 0 {
                    self.holders.remove(member);
                }
            }
        }
        for member in texts(&owned) {
            *self.holders.entry(member.clone()).or_default() += 1;
        }
        for row in &owned.rows {
            self.owner_of.insert(row.clone(), key.clone());
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

fn texts(owned: &Owned) -> impl Iterator<Item = &Member> {
    owned.members.iter().filter(|member| matches!(member.value, MemberValue::Text(_)))
}
