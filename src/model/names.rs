//! Names of objects. Shared strings: a name stands in many places but is stored once.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A Kubernetes name, uid or similar short text.
pub type Name = Arc<str>;

/// A pod's namespace and name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodKey {
    pub namespace: Name,
    pub name: Name,
}

impl PodKey {
    pub fn new(namespace: impl Into<Name>, name: impl Into<Name>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The pod's logical switch port, `<namespace>_<name>`; neither part may hold a `_`.
    pub fn port_name(&self) -> String {
        format!("{}_{}", self.namespace, self.name)
    }
}

/// Namespace and name of an object that is no pod: a service, a slice.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    pub namespace: Name,
    pub name: Name,
}

impl ObjectKey {
    pub fn new(namespace: impl Into<Name>, name: impl Into<Name>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for PodKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for PodKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
