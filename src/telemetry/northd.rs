//! The metrics of northd: whether one is active anywhere, and how the one on this host is. What is not known has no series.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use crate::series::{family, one};

/// What was seen of northd last. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct NorthdMetrics(Arc<Mutex<Northd>>);

/// What is seen of northd.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Northd {
    /// Whether one is active, on whatever host.
    pub is_active: Option<bool>,
    /// The one on this host.
    pub here: Option<NorthdState>,
}

/// How a northd is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NorthdState {
    Active,
    Standby,
    Paused,
    /// It runs and does not answer, or not one of these.
    Silent,
}

impl NorthdState {
    const ALL: [(Self, &'static str); 4] =
        [(Self::Active, "active"), (Self::Standby, "standby"), (Self::Paused, "paused"), (Self::Silent, "silent")];

    /// Of what northd says to `status`.
    pub fn of(said: &str) -> Self {
        Self::ALL.iter().find(|(_, word)| *word == said).map_or(Self::Silent, |(state, _)| *state)
    }
}

impl NorthdMetrics {
    pub fn seen(&self, northd: Northd) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = northd;
    }
}

impl Collector for NorthdMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Northd { is_active, here } = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(is_active) = is_active {
            one(&mut encoder, "ovnkube_northd_active", "Whether a northd is active on any host", is_active.into())?;
        }
        if let Some(here) = here {
            let series = NorthdState::ALL.map(|(state, word)| (vec![("state", word)], usize::from(state == here)));
            family(&mut encoder, "ovnkube_northd_here", "The state of northd on this host", &series)?;
        }
        Ok(())
    }
}
