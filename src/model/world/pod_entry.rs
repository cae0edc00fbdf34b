//! A pod and what was decided for it.

use crate::{Pod, PodAddresses};

/// A pod and its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodEntry {
    pub pod: Box<Pod>,
    /// Fewer than the families of its node if the pod is older than one of them.
    pub addresses: Option<PodAddresses>,
    /// False while the pod is annotated with addresses that it was not given: its node would wire it with them,
    /// so it gets no port until the annotation is corrected.
    pub may_be_wired: bool,
    /// Boxed, since few of a cluster's many pods have one.
    pub(super) problem: Option<Box<Problem>>,
}

/// Reason and message of a notice.
pub(super) type Problem = (&'static str, String);
