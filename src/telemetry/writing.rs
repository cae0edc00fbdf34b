//! Whether the leader can write to its databases. What it does not write to has no series.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use crate::series::{Series, family};

/// What was seen last, by database. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct WritingMetrics(Arc<Mutex<BTreeMap<&'static str, bool>>>);

impl WritingMetrics {
    /// `None`: nobody here writes to it.
    pub fn seen(&self, database: &'static str, is_writable: Option<bool>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match is_writable {
            Some(is_writable) => drop(all.insert(database, is_writable)),
            None => drop(all.remove(database)),
        }
    }
}

impl Collector for WritingMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let series: Vec<Series<'_>> =
            all.iter().map(|(database, is)| (vec![("database", *database)], usize::from(*is))).collect();
        family(&mut encoder, "ovnkube_database_writable", "Whether the leader can write to this database", &series)
    }
}
