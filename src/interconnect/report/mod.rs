//! What `ovnkube ic` tells people about an interconnection. Others read Kubernetes and the databases.
//!
//! ```text
//!  Kubernetes ─▶ World ─┐                      ┌─▶ status
//!  IC-NB, IC-SB ────────┼─▶ Facts ─▶ checks ───┼─▶ diagnose
//!  NB, SB ──────────────┘                      └   routes
//! ```
//!
//! - [`zones`]: the clusters in IC-SB
//! - [`ways`]: the others' prefixes, as `ovnkube-model` judges them, and routes that people wrote
//! - [`declared`]: routes that people declared
//! - [`in_effect`]: what of this is in effect: the ConfigMap, or what the masters have kept of an earlier one
//! - [`facts`]: all that was found out; what could not be is said why
//! - [`checks`]: what is wrong, and what to do about it

mod checks;
mod declared;
mod facts;
mod in_effect;
mod northbound;
mod servers;
mod status;
#[cfg(test)]
mod tests;
mod ways;
mod zones;

pub use checks::{Check, Verdict, checks};
pub use facts::{Contents, Facts, GatewayNode, Reached, interconn};
pub use in_effect::{Asked, InEffect, Looked, Source, asked};
pub use northbound::Northbound;
pub use servers::judge;
pub use status::{RouteList, Status};
