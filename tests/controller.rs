//! The controller's loop in single steps: it writes only when a test requests it.

use std::collections::BTreeSet;

use ovnkube_apply::batch::{self, Limits, Next};
use ovnkube_apply::diff::{Diff, ENOUGH, Missing};
use ovnkube_apply::garbage::{self, Left};
use ovnkube_apply::owner_index::{Owned, OwnerIndex};
use ovnkube_apply::{note_stored_ways, stored_interconnection};
use ovnkube_model::{Change, NetworkSettings, Notice, World};
use ovnkube_ovn::nb;
use ovnkube_ovsdb::{Client, Txn};
use ovnkube_plan::{Key, Patch};

use crate::Objects;
use crate::objects::kinds;

#[derive(Debug)]
pub enum Write {
    Transaction(usize),
    Annotations(Patch),
}

/// World, owner index and database of one run; dropping it is a crash.
pub struct Controller {
    pub world: World,
    pub nb: Client,
    pub notices: BTreeSet<Notice>,
    /// The maximum number of keys in a transaction, except those that must change together.
    pub batch: usize,
    /// The number of rows above which a transaction takes no more of these keys.
    pub rows: usize,
    owner_index: OwnerIndex,
    dirty: BTreeSet<Key>,
    /// What the sweep has left; `None`: it has not begun.
    left: Option<Left>,
    patches: Vec<Patch>,
}

impl Controller {
    /// Knows all objects and has written nothing yet.
    pub fn start(network: NetworkSettings, nb: Client, objects: &Objects) -> Self {
        let mut controller = Self {
            world: World::new(network, kinds()),
            nb,
            notices: BTreeSet::new(),
            batch: 500,
            rows: ENOUGH.0,
            owner_index: OwnerIndex::default(),
            dirty: BTreeSet::new(),
            left: None,
            patches: Vec::new(),
        };
        controller.take(objects.first_lists());
        controller
    }

    pub fn take(&mut self, changes: Vec<Change>) {
        for change in changes {
            for affected in self.world.apply(change) {
                ovnkube_plan::affected(&affected, &self.world, &mut self.dirty);
                self.notices.extend(self.world.notices(&affected));
            }
        }
    }

    /// The number of keys to plan.
    pub fn waiting(&self) -> usize {
        self.dirty.len()
    }

    /// Does the next write and returns it; `None` when nothing is left to write. With
    /// `annotations_first`, an annotation is written before the rows that it describes.
    pub async fn step(&mut self, objects: &mut Objects, annotations_first: bool) -> Option<Write> {
        let news = stored_interconnection(&self.nb.cache(), &self.world);
        self.take(news.into_iter().collect());
        note_stored_ways(&self.nb.cache(), &self.world, &mut self.owner_index, &mut self.dirty);
        while !matches!(self.left, Some(Left::Nothing | Left::Ways)) {
            self.owner_index.note(&self.dirty, &self.world);
            let txn = self.plan(true);
            if !txn.is_empty() {
                return Some(self.transact(txn).await);
            }
        }
        loop {
            if annotations_first && !self.patches.is_empty() {
                return Some(self.annotate(objects));
            }
            if self.dirty.is_empty() && self.left == Some(Left::Ways) {
                let txn = self.plan(true);
                if !txn.is_empty() {
                    return Some(self.transact(txn).await);
                }
            }
            if self.dirty.is_empty() {
                return (!self.patches.is_empty()).then(|| self.annotate(objects));
            }
            let txn = self.plan(false);
            if !txn.is_empty() {
                return Some(self.transact(txn).await);
            }
        }
    }

    /// Writes until nothing is left to write; returns how many transactions and annotations it took.
    pub async fn settle(&mut self, objects: &mut Objects) -> (usize, Vec<Patch>) {
        let (mut transactions, mut patches) = (0, Vec::new());
        while let Some(write) = self.step(objects, false).await {
            match write {
                Write::Transaction(_) => transactions += 1,
                Write::Annotations(patch) => patches.push(patch),
            }
            assert!(transactions + patches.len() < 10_000, "endless writes");
        }
        (transactions, patches)
    }

    async fn transact(&self, txn: Txn) -> Write {
        let operations = txn.len();
        self.nb.transact(txn).await.unwrap();
        Write::Transaction(operations)
    }

    fn annotate(&mut self, objects: &mut Objects) -> Write {
        let patch = self.patches.remove(0);
        let changes = objects.patch(&patch);
        self.take(changes);
        Write::Annotations(patch)
    }

    fn plan(&mut self, sweeps: bool) -> Txn {
        let Self { world, nb, owner_index, dirty, patches, batch, rows, left, .. } = self;
        let cache = nb.cache();
        let mut diff = Diff::with_limit(&cache, (*rows, ENOUGH.1));
        let mut unused = Some(Vec::new());
        let keeps_ways = sweeps && batch::has_ways(dirty.iter());
        if sweeps {
            unused = garbage::collect(&mut diff, &cache, &nb::DATABASE, owner_index.all(), world, true, keeps_ways);
            diff.begin_keys();
        }
        let mut waiting = Vec::new();
        let limits = Limits { others: *batch, all: usize::MAX };
        for Next { key, may_wait } in batch::take(dirty, limits, world, owner_index, Some(&cache)) {
            if unused.is_none() || (may_wait && diff.is_large()) {
                waiting.push(key);
                continue;
            }
            let mut want = ovnkube_plan::want(&key, world);
            let patch = want.patch.take();
            let old = owner_index.get(&key).cloned().unwrap_or_default();
            if let Err(Missing(_)) = diff.key(&want, &old, owner_index) {
                waiting.push(key);
                continue;
            }
            owner_index.write(&key, Owned::of(&want));
            if let Some(patch) = patch {
                patches.retain(|p| p.target != patch.target || p.labels.is_empty() != patch.labels.is_empty());
                patches.push(patch);
            }
        }
        if sweeps {
            let remove = |unused| garbage::remove_unused(&mut diff, &cache, &unused, keeps_ways);
            *left = Some(unused.map_or(Left::InUse, remove));
        }
        let txn = diff.into_txn(&nb::DATABASE);
        // a key that waits for a row is planned again after another write
        assert!(waiting.is_empty() || !txn.is_empty() || !dirty.is_empty(), "keys that wait for ever: {waiting:?}");
        dirty.extend(waiting);
        txn
    }
}
