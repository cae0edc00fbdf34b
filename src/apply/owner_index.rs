//! Which key has which rows written: what a key no longer wants is removed.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use ovnkube_model::World;
use ovnkube_ovn::ColumnId;
use ovnkube_plan::{Key, Member, MemberValue, RowKey, Want};

/// So many wants that were noted are kept: more would take much memory.
const KEPT: usize = 5000;

/// What keys want, until the world changes.
pub type Noted = HashMap<Key, Want>;

/// What each key wants, as far as it is known. Names of rows and texts are stored once, however many keys use them:
/// each pod of a node names its switch.
#[derive(Debug, Default)]
pub struct OwnerIndex {
    /// Shared with the transaction in flight, which needs it if it fails.
    owned: HashMap<Key, Arc<Owned>>,
    /// How many keys want a row: it is removed with the last of them.
    owners: HashMap<RowKey, u32>,
    /// How many keys want a text in a set. An address passes from one pod to another, and either may be planned first:
    /// the text is removed only with its last holder.
    holders: HashMap<(RowKey, ColumnId), HashMap<Arc<str>, u32>>,
}

/// What a key had written: needed to find what to remove when it wants less.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owned {
    pub rows: Box<[RowKey]>,
    pub members: Box<[Member]>,
}

impl Owned {
    pub fn of(want: &Want) -> Self {
        Self { rows: want.rows.iter().map(|row| row.key.clone()).collect(), members: want.members.as_slice().into() }
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.members.is_empty()
    }
}

impl OwnerIndex {
    pub fn get(&self, key: &Key) -> Option<&Arc<Owned>> {
        self.owned.get(key)
    }

    pub fn all(&self) -> impl Iterator<Item = &Owned> {
        self.owned.values().map(AsRef::as_ref)
    }

    /// Every row that a key wants.
    pub fn rows(&self) -> impl Iterator<Item = &RowKey> {
        self.owners.keys()
    }

    /// Whether other keys want the row too: then one key alone must not remove it.
    pub fn has_others(&self, row: &RowKey) -> bool {
        self.owners.get(row).is_some_and(|owners| *owners > 1)
    }

    pub fn is_wanted(&self, row: &RowKey) -> bool {
        self.owners.contains_key(row)
    }

    /// Whether more than one key wants the text in its set.
    pub fn is_shared(&self, member: &Member) -> bool {
        let MemberValue::Text(text) = &member.value else { return false };
        let holders = self.holders.get(&(member.of.clone(), member.column)).and_then(|texts| texts.get(text));
        holders.is_some_and(|count| *count > 1)
    }

    /// Notes what a key wants now.
    pub fn write(&mut self, key: &Key, mut owned: Owned) {
        let old = self.owned.get(key).cloned();
        if old.as_deref() == Some(&owned) {
            return;
        }
        debug_assert_eq!(owned.rows.iter().collect::<HashSet<_>>().len(), owned.rows.len(), "{key} wants a row twice");
        // names that are stored already are shared
        for row in &mut owned.rows {
            *self.owners.entry(row.clone()).or_default() += 1;
            self.rename(row);
        }
        for member in &mut owned.members {
            self.rename(&mut member.of);
            if let MemberValue::Row(row) = &mut member.value {
                self.rename(row);
            }
            self.hold(member);
        }
        for row in old.iter().flat_map(|old| &old.rows) {
            leave(&mut self.owners, row);
        }
        for member in old.iter().flat_map(|old| &old.members) {
            self.let_go(member);
        }
        if owned.is_empty() {
            self.owned.remove(key);
        } else {
            self.owned.insert(key.clone(), Arc::new(owned));
        }
    }

    /// Replaces a name of a row with the equal one that is stored already.
    fn rename(&self, row: &mut RowKey) {
        if let Some((known, _)) = self.owners.get_key_value(row) {
            row.clone_from(known);
        }
    }

    /// Counts one more key that wants a text.
    fn hold(&mut self, member: &mut Member) {
        let MemberValue::Text(text) = &mut member.value else { return };
        let holders = self.holders.entry((member.of.clone(), member.column)).or_default();
        if let Some((known, _)) = holders.get_key_value(text) {
            text.clone_from(known);
        }
        *holders.entry(text.clone()).or_default() += 1;
    }

    fn let_go(&mut self, member: &Member) {
        let MemberValue::Text(text) = &member.value else { return };
        let set = (member.of.clone(), member.column);
        let Some(holders) = self.holders.get_mut(&set) else { return };
        leave(holders, text);
        if holders.is_empty() {
            self.holders.remove(&set);
        }
    }

    /// Adds to what a key may have written: after a failure, what it had before.
    pub fn add(&mut self, key: &Key, more: &Owned) {
        let now = self.owned.get(key).cloned().unwrap_or_default();
        self.write(key, Owned { rows: both(&now.rows, &more.rows), members: both(&now.members, &more.members) });
    }

    /// Adds what keys want. Returns the wants of the first ones, so that they are not made a second time when these are planned.
    pub fn note(&mut self, keys: &BTreeSet<Key>, world: &World) -> Noted {
        let mut noted = Noted::new();
        for key in keys {
            let want = ovnkube_plan::want(key, world);
            // what the key has stays noted: planning the key takes it back
            self.add(key, &Owned::of(&want));
            if noted.len() < KEPT {
                noted.insert(key.clone(), want);
            }
        }
        noted
    }

    /// The keys that want one of these rows, or something in one. Searches all keys: only for changes by other
    /// programs, which are rare.
    pub fn interested(&self, rows: &HashSet<(&str, Arc<str>)>) -> Vec<Key> {
        if rows.is_empty() {
            return Vec::new();
        }
        let tables: HashSet<&str> = rows.iter().map(|(table, _)| *table).collect();
        let is_one = |row: &RowKey| tables.contains(row.table.name) && rows.contains(&(row.table.name, row.id.clone()));
        let concerns =
            |owned: &Owned| owned.rows.iter().any(is_one) || owned.members.iter().any(|member| is_one(&member.of));
        self.owned.iter().filter(|(_, owned)| concerns(owned)).map(|(key, _)| key.clone()).collect()
    }
}

/// What `now` has, then what only `more` has. Where nothing is new, the order is that of the want, which is then quickly
/// compared with it.
fn both<T: Clone + Eq + Hash>(now: &[T], more: &[T]) -> Box<[T]> {
    if now.is_empty() || now == more {
        return more.into();
    }
    let known: HashSet<&T> = now.iter().collect();
    now.iter().chain(more.iter().filter(|one| !known.contains(one))).cloned().collect()
}

/// Counts one key less.
fn leave<T: Hash + Eq>(wanted: &mut HashMap<T, u32>, what: &T) {
    if let Some(count) = wanted.get_mut(what) {
        *count -= 1;
        if *count == 0 {
            wanted.remove(what);
        }
    }
}

#[cfg(test)]
mod tests {
    use ovnkube_ovn::nb::port_group;

    use super::*;

    #[test]
    fn a_row_of_two_keys_is_removed_with_the_last_of_them() {
        let (one, other) = (Key::Namespaces("a".into()), Key::Namespaces("b".into()));
        let row = RowKey::new(port_group::TABLE, "g");
        let owned = || Owned { rows: [row.clone()].into(), members: [].into() };
        let mut owner_index = OwnerIndex::default();
        for key in [&one, &other, &one] {
            owner_index.write(key, owned());
        }
        assert!(owner_index.has_others(&row), "neither may remove it alone");
        owner_index.write(&other, Owned::default());
        assert!(!owner_index.has_others(&row), "the last one is");
        // a failure adds it again
        owner_index.add(&other, &owned());
        assert!(owner_index.has_others(&row));
    }

    /// Else each key of a first plan would be compared by sets.
    #[test]
    fn what_is_added_keeps_its_order() {
        let key = Key::Namespaces("a".into());
        let [first, second, third] = ["c", "b", "a"].map(|name| RowKey::new(port_group::TABLE, name));
        let owned = |rows: &[&RowKey]| Owned { rows: rows.iter().copied().cloned().collect(), members: [].into() };
        let mut owner_index = OwnerIndex::default();
        for more in [owned(&[&first, &second]), owned(&[]), owned(&[&second]), owned(&[&first, &second])] {
            owner_index.add(&key, &more);
            assert_eq!(**owner_index.get(&key).unwrap(), owned(&[&first, &second]));
        }
        owner_index.add(&key, &owned(&[&third, &first]));
        assert_eq!(**owner_index.get(&key).unwrap(), owned(&[&first, &second, &third]));
        assert_eq!(owner_index.owners.values().copied().collect::<Vec<_>>(), [1; 3]);
    }

    /// A cluster has many ports in few switches and groups.
    #[test]
    fn shared_names_and_texts_are_stored_once() {
        assert_eq!((size_of::<RowKey>(), size_of::<Member>()), (8, 40));
        let group = || RowKey::new(port_group::TABLE, "g");
        let text =
            |text: &str| Member { of: group(), column: port_group::NAME.id(), value: MemberValue::Text(text.into()) };
        let mut owner_index = OwnerIndex::default();
        let [owner, one, other] = ["o", "a", "b"].map(|name| Key::Namespaces(name.into()));
        owner_index.write(&owner, Owned { rows: [group()].into(), members: [].into() });
        for key in [&one, &other] {
            owner_index.write(key, Owned { rows: [].into(), members: [text("10.1.0.3")].into() });
        }
        let [first, second] = [&one, &other].map(|key| match &owner_index.get(key).unwrap().members[0] {
            Member { of, value: MemberValue::Text(text), .. } => (Arc::as_ptr(text), std::ptr::from_ref(&**of)),
            other => panic!("{other:?}"),
        });
        assert_eq!(first, second);
        // a key that goes removes its own element, not that of the other
        assert!(owner_index.is_shared(&text("10.1.0.3")));
        owner_index.write(&one, Owned::default());
        assert!(!owner_index.is_shared(&text("10.1.0.3")));
        owner_index.write(&other, Owned::default());
        owner_index.write(&owner, Owned::default());
        assert!(owner_index.owned.is_empty() && owner_index.owners.is_empty() && owner_index.holders.is_empty());
    }
}
