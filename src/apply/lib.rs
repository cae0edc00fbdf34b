//! Writes to OVN and Kubernetes what the plan wants: the only place where the controller writes.
//!
//! - [`Engine`]: the loop from changes to transactions
//! - [`batch`]: what goes into one transaction
//! - [`diff`]: wanted minus had
//! - [`garbage`]: what is ours and no key wants
//! - [`TakeoverCheck`]: whether the first sweep may begin
//! - [`Chassis`]: the southbound rows of hosts that are gone
//! - [`Interconnection`]: the databases that clusters share
//! - [`removal`]: all rows of one node, for a node that no controller removes
//! - [`Patches`]: annotations on their way to the API server
//! - [`OwnerIndex`](owner_index::OwnerIndex): which key has what written

mod backoff;
pub mod batch;
pub mod chassis;
mod database_state;
pub mod diff;
mod drift;
mod encaps;
mod engine;
pub mod garbage;
mod in_flight;
mod interconnection;
mod interconnection_reasons;
mod interconnection_refusals;
mod interconnection_session;
mod may_write;
mod northbound;
pub mod owner_index;
mod pace;
mod parts;
mod patches;
mod recreated;
mod refusal;
pub mod removal;
mod retry_queue;
mod since;
mod sweep;
mod takeover_check;
mod ways;
mod write_lock;
mod writing;

pub use chassis::Chassis;
pub use engine::Engine;
pub use interconnection::{DAEMON_LOCK, Interconnection, Offers, stored_interconnection};
pub use interconnection_refusals::Lasting;
pub use interconnection_session::{JoinSettings, OwnDatabases, seconds};
pub use may_write::MayWrite;
pub use ovnkube_interconnect::Listening;
pub use parts::Parts;
pub use patches::{OnTheirWay, Outcome, Patches};
pub use recreated::{REST, northd_release};
pub use takeover_check::{TakeoverCheck, another_cluster};
pub use ways::note_stored_ways;
pub use write_lock::{LOCK, northbound_fence, southbound_fence};
pub use writing::Writing;
