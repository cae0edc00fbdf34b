//! Names of objects as shared strings: a name is used in many places but stored once.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A Kubernetes name, uid or similar short text.
pub type Name = Arc<str>;

/// Recently seen names, so that repeated ones are stored once: each pod names its namespace, each endpoint its node.
/// Which names it holds never changes a result, and their number is bounded.
#[derive(Debug, Default)]
pub struct Names {
    slots: Vec<Option<Name>>,
    hasher: RandomState,
}

impl Names {
    const MOST: usize = 1024;

    /// Replaces a name by an equal one that was seen before.
    pub fn share(&mut self, name: &mut Name) {
        if self.slots.is_empty() {
            self.slots.resize(Self::MOST, None);
        }
        let at = self.hasher.hash_one(&**name) as usize % Self::MOST;
        match self.slots.get_mut(at) {
            Some(Some(known)) if known == name => name.clone_from(known),
            Some(slot) => *slot = Some(name.clone()),
            None => {}
        }
    }
}

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

/// Namespace and name of an object other than a pod: a service, a slice.
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
