//! Namespaces.

use serde::{Deserialize, Serialize};

use crate::{Meta, Name};

/// The part of a namespace that matters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    pub uid: Name,
}

impl Namespace {
    pub fn parse(meta: &Meta<'_>) -> Self {
        Self { uid: meta.uid.into() }
    }
}
