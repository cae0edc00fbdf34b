//! The metadata of Kubernetes objects.

use std::collections::BTreeMap;

/// Metadata that every object has, borrowed from the decoded object.
#[derive(Debug, Clone, Copy)]
pub struct Meta<'a> {
    pub uid: &'a str,
    /// Creation, seconds since 1970.
    pub created: i64,
    pub labels: &'a BTreeMap<String, String>,
    pub annotations: &'a BTreeMap<String, String>,
}
