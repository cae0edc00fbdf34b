//! What an engine is made of.

use std::sync::Arc;

use ovnkube_model::World;
use ovnkube_ovsdb::Client;
use ovnkube_telemetry::{Metrics, Readiness};
use ovnkube_watch::Events;
use tokio::sync::watch;

use crate::chassis::ChassisReports;
use crate::interconnection::Offers;
use crate::may_write::MayWrite;
use crate::patches::Patches;
use crate::takeover_check::TakeoverCheck;
use crate::writing::Writing;

/// The parts that an [`Engine`](crate::Engine) needs.
pub struct Parts {
    pub world: World,
    /// The northbound database; `None`: only annotations are written.
    pub nb: Option<Client>,
    /// Hears whether that can be written to.
    pub writing: watch::Sender<Writing>,
    /// Receives which chassis belongs to which node.
    pub chassis: Option<ChassisReports>,
    /// Receives what the cluster offers to others.
    pub offers: Option<Offers>,
    pub patches: Patches,
    pub events: Events,
    pub may_write: MayWrite,
    pub takeover: TakeoverCheck,
    pub metrics: Arc<Metrics>,
    pub readiness: Readiness,
}
