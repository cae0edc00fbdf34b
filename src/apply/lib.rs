//! Makes OVN and Kubernetes hold what the plan wants: the one place where the controller writes.
//!
//! - [`Engine`]: the loop from changes to transactions
//! - [`batch`]: what goes into one transaction
//! - [`diff`]: wanted minus had
//! - [`garbage`]: what is ours and nobody wants
//! - [`Chassis`]: what hosts that are gone left in the southbound database
//! - [`removal`]: all rows of one node, where no controller removes them
//! - [`Patches`]: annotations on their way to the API server
//! - [`Ledger`](ledger::Ledger): who has what written

pub mod batch;
pub mod chassis;
pub mod diff;
mod encaps;
mod engine;
pub mod garbage;
pub mod ledger;
mod northbound;
mod parking;
mod patches;
pub mod removal;
mod turn;

pub use chassis::Chassis;
pub use engine::{Engine, MayWrite, Parts};
pub use patches::{Outcome, Patches};
pub use turn::LOCK;
