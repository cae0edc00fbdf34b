//! The metrics of a running ovnkube.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};

use crate::interconnection::InterconnectionMetrics;
use crate::northd::NorthdMetrics;
use crate::process::Process;
use crate::writing::WritingMetrics;

/// The metrics of every role. Further families are added with [`Metrics::register`].
#[derive(Debug)]
pub struct Metrics {
    registry: Mutex<Registry>,
    /// Seconds from getting the lease until everything in the initial lists is written.
    pub ready_duration: Gauge<f64, AtomicU64>,
    /// 1 while this process holds the lease.
    pub leader: Gauge,
    /// Changes that came from the API.
    pub changes: Counter,
    /// Transactions sent to OVN databases.
    pub transactions: Counter,
    /// Transactions that failed, also those that succeeded later.
    pub transaction_errors: Counter,
    /// Annotations written.
    pub patches: Counter,
    /// Annotations that could not be written, also those that succeeded later.
    pub patch_errors: Counter,
    pub interconnection: InterconnectionMetrics,
    pub northd: NorthdMetrics,
    pub writing: WritingMetrics,
}

impl Metrics {
    /// `version` goes into `ovnkube_build_info`.
    pub fn new(version: &str) -> Arc<Self> {
        let metrics = Self {
            registry: Mutex::default(),
            ready_duration: Gauge::default(),
            leader: Gauge::default(),
            changes: Counter::default(),
            transactions: Counter::default(),
            transaction_errors: Counter::default(),
            patches: Counter::default(),
            patch_errors: Counter::default(),
            interconnection: InterconnectionMetrics::default(),
            northd: NorthdMetrics::default(),
            writing: WritingMetrics::default(),
        };
        let build = Info::new([("version", version.to_owned())]);
        metrics.register("ovnkube_build", "Version of this binary", build);
        metrics.register(
            "ovnkube_controller_ready_duration_seconds",
            "Time from getting the lease until everything was written for the first time",
            metrics.ready_duration.clone(),
        );
        metrics.register("ovnkube_changes", "Changes received from the Kubernetes API", metrics.changes.clone());
        metrics.register("ovnkube_transactions", "Transactions sent to OVN databases", metrics.transactions.clone());
        metrics.register("ovnkube_transaction_errors", "Transactions that failed", metrics.transaction_errors.clone());
        metrics.register("ovnkube_patches", "Annotations written", metrics.patches.clone());
        metrics.register("ovnkube_patch_errors", "Annotations that could not be written", metrics.patch_errors.clone());
        metrics.lock().register_collector(Box::new(Process));
        metrics.lock().register_collector(Box::new(metrics.interconnection.clone()));
        metrics.lock().register_collector(Box::new(metrics.northd.clone()));
        metrics.lock().register_collector(Box::new(metrics.writing.clone()));
        Arc::new(metrics)
    }

    /// Registers the gauge of the lease, under the name of a role.
    pub fn register_leader(&self, name: &str) {
        self.register(name, "Whether this process holds the lease", self.leader.clone());
    }

    /// Adds a family; a counter's name gets `_total`, an info's `_info`.
    pub fn register(&self, name: &str, help: &str, metric: impl Metric) {
        self.lock().register(name, help, metric);
    }

    /// All families as OpenMetrics text.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.lock())?;
        Ok(text)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
