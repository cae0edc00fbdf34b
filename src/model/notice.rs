//! Messages to users about an object; each becomes a Kubernetes Event.

use serde::{Deserialize, Serialize};

use crate::{Name, ObjectKey, PodKey};

/// The object a notice is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Object {
    Node { name: Name, uid: Name },
    Pod { key: PodKey, uid: Name },
    Namespace { name: Name, uid: Name },
    Service { key: ObjectKey, uid: Name },
    NetworkPolicy { key: ObjectKey, uid: Name },
    ServiceCidr { name: Name, uid: Name },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Severity {
    Normal,
    Warning,
}

/// One message about one object. An equal notice is no news.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Notice {
    pub object: Object,
    pub severity: Severity,
    /// CamelCase, as Kubernetes wants it: `AddressConflict`.
    pub reason: &'static str,
    /// What happened, to which field, and what to do.
    pub message: String,
}
