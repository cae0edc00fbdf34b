//! From the world to what should be written. Pure: the same world always gives the same answer.
//!
//! ```text
//!  Touched ──Feature::touched──▶ keys ──Feature::want──▶ Want { rows, members, patches }
//! ```
//!
//! One folder per feature, all of the same shape: `mod.rs` says what a person gets, which rows that
//! makes, and has the `Feature`; one more file per kind of OVN thing where it gets long.
//!
//! *Invariant*: nothing in here knows what the database holds. Start, change, drift and deletion are
//! one path: whatever a key wants less than before goes away.

mod cluster_manager;
mod features;
mod gateway;
mod names;
mod namespaces;
mod pods;
mod policies;
mod rows;
mod services;
mod takeover;
#[cfg(test)]
mod tests;
mod topology;
mod want;
mod whose;
pub mod why;

pub use features::{Access, Feature, Key, access, object, touched, want};
pub use rows::{identity, member_columns};
pub use takeover::Takeover;
pub use want::{Member, MemberValue, Patch, PatchTarget, RowKey, RowWant, Unavailable, Want};
pub use whose::{Claim, cable, claim, is_anothers_acl, is_garbage, is_our_variable};
