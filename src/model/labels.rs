//! Labels of objects. Pods of one workload have the same labels, so each set of labels is stored once.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Name;

/// Keys and values, sorted by key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Labels(Arc<[(Name, Name)]>);

impl Default for Labels {
    fn default() -> Self {
        Self(Arc::from([]))
    }
}

impl Labels {
    pub fn get(&self, key: &str) -> Option<&Name> {
        let at = self.0.binary_search_by(|(k, _)| k.as_ref().cmp(key)).ok()?;
        self.0.get(at).map(|(_, value)| value)
    }

    pub fn iter(&self) -> impl Iterator<Item = &(Name, Name)> {
        self.0.iter()
    }

    /// How many holders share this stored set.
    pub(crate) fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }
}

impl From<&BTreeMap<String, String>> for Labels {
    fn from(labels: &BTreeMap<String, String>) -> Self {
        Self(labels.iter().map(|(key, value)| (Name::from(key.as_str()), Name::from(value.as_str()))).collect())
    }
}
