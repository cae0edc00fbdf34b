//! Whether the first sweep may begin: not on another cluster's database, nor on one that ovn-kubernetes wrote for features that are not
//! planned here.
//!
//! The cluster router has the uid of its cluster's namespace kube-system. If another one stands there, an address is wrong: a sweep
//! would remove that cluster's pods. Not even its lock is taken.
//!
//! No sweep removes the rows of these features, but nobody updates them any more either: a new pod may get the address of a deleted one
//! and leave by its egress address. So a person decides. A database that a master has swept before is not asked about
//! again, and rows that appear later are not looked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ovnkube_model::{Name, Notice, Object, Severity, World};
use ovnkube_ovn::nb::{self, logical_router as lr};
use ovnkube_ovsdb::Cache;
use ovnkube_plan::{Unserved, is_taken_over, names};

use crate::MayWrite;

/// What a person can do.
const REMEDY: &str = "stop this master, start ovn-kubernetes again, delete these objects (ovnkube preflight lists them) and \
                      wait until their rows are gone; or start the master with --allow-unserved: then the rows stay as they are";

/// What a person can do about another cluster's database.
const CORRECT_IT: &str = "correct --nb-address and --sb-address; or, if this cluster is to take the database over, stop the masters of \
                          the other one and run: ovn-nbctl remove Logical_Router ovn_cluster_router external_ids ovnkube-cluster";

/// What a person said, and what was found.
#[derive(Debug)]
pub struct TakeoverCheck {
    allow_unserved: bool,
    /// Events are about this namespace, which is ours.
    namespace: Name,
    /// What was found last.
    last: Option<Verdict>,
    /// The database has changed since then.
    is_outdated: bool,
    /// What was found last, for other tasks.
    begins: Arc<AtomicBool>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// That it is another cluster's.
    another: Option<String>,
    unserved: Unserved,
    may_begin: bool,
}

impl TakeoverCheck {
    pub fn new(allow_unserved: bool, namespace: &str) -> Self {
        Self { allow_unserved, namespace: namespace.into(), last: None, is_outdated: true, begins: Arc::default() }
    }

    /// For what may be done to the databases' locks and rows only when the first sweep may begin, too.
    pub fn gate(&self, may_write: MayWrite) -> MayWrite {
        let begins = Arc::clone(&self.begins);
        Arc::new(move || begins.load(Ordering::Relaxed) && may_write())
    }

    /// Notes that the database has changed.
    pub(crate) fn forget(&mut self) {
        self.is_outdated = true;
    }

    /// Looks at the database, unless nothing has changed in it; returns what is news.
    pub(crate) fn look(&mut self, cache: &Cache, world: &World) -> Option<Verdict> {
        if !std::mem::take(&mut self.is_outdated) {
            return None;
        }
        let now = Some(Verdict::of(cache, world, self.allow_unserved));
        if self.last == now {
            return None;
        }
        self.last.clone_from(&now);
        self.begins.store(self.may_begin(), Ordering::Relaxed);
        now.filter(|verdict| verdict.another.is_some() || !verdict.unserved.is_empty())
    }

    /// Whether the first sweep may begin, as of the last look.
    pub(crate) fn may_begin(&self) -> bool {
        self.last.as_ref().is_some_and(|verdict| verdict.may_begin)
    }

    /// An Event for another cluster, or one for each feature that was found last.
    pub(crate) fn notices(&self, world: &World) -> Vec<Notice> {
        let Some(verdict) = &self.last else { return Vec::new() };
        if let Some(why) = &verdict.another {
            return vec![self.warning(world, "ForeignDatabase", why.clone())];
        }
        let (reason, end) = if verdict.may_begin {
            ("UnservedRowsKept", "they stay as they are, and nothing keeps them up to date".to_owned())
        } else {
            ("UnservedRows", format!("nothing is written before you {REMEDY}"))
        };
        let message =
            |feature, holding| format!("{feature} is not supported, but the northbound database has {holding}; {end}");
        let features = verdict.unserved.features();
        features.map(|(feature, holding)| self.warning(world, reason, message(feature, holding))).collect()
    }

    /// A warning about the namespace of ovnkube.
    pub(crate) fn warning(&self, world: &World, reason: &'static str, message: String) -> Notice {
        let uid = world.namespaces.get(&self.namespace).map(|namespace| namespace.uid.clone()).unwrap_or_default();
        let object = Object::Namespace { name: self.namespace.clone(), uid };
        Notice { object, severity: Severity::Warning, reason, message }
    }
}

impl Verdict {
    fn of(cache: &Cache, world: &World, allow_unserved: bool) -> Self {
        if let Some(why) = another(cache, world) {
            return Self { another: Some(why), unserved: Unserved::default(), may_begin: false };
        }
        let rows = nb::DATABASE.tables.iter().flat_map(|table| cache.iter(table)).map(|(_, row)| &**row);
        let unserved = Unserved::of(rows);
        let is_swept = || cache.iter(lr::TABLE).any(|(_, row)| is_taken_over(row));
        let may_begin = unserved.is_empty() || allow_unserved || is_swept();
        Self { another: None, unserved, may_begin }
    }

    /// Logs what was found; returns why nothing is written.
    pub(crate) fn log(&self) -> Option<String> {
        let Self { another, unserved, may_begin } = self;
        if let Some(why) = another {
            tracing::error!("{why}");
            return Some(why.clone());
        }
        if *may_begin {
            tracing::warn!(%unserved, "the northbound database has rows of features that are not supported; they stay as they are");
            return None;
        }
        let why = format!(
            "cannot take over the northbound database: it has rows of features that are not supported: {unserved}; {REMEDY}"
        );
        tracing::error!("{why}");
        Some(why)
    }
}

fn another(cache: &Cache, world: &World) -> Option<String> {
    another_cluster(cache, world.cluster_uid()?)
}

/// That the northbound database is another cluster's, and what to do. `own`: the uid of this cluster's namespace kube-system. Of the
/// cache it needs the routers' names and marks.
pub fn another_cluster(nb: &Cache, own: &str) -> Option<String> {
    let mut rows = nb.named(lr::TABLE, names::CLUSTER_ROUTER);
    let found = rows.find_map(|(_, row)| row.map(lr::EXTERNAL_IDS).get(names::CLUSTER_UID).map(str::to_owned))?;
    (found != own).then(|| {
        format!(
            "the northbound database is another cluster's: its router {} has {}={found}, and the uid of this cluster's namespace {} is \
             {own}; nothing is written: {CORRECT_IT}",
            names::CLUSTER_ROUTER,
            names::CLUSTER_UID,
            World::SYSTEM,
        )
    })
}
