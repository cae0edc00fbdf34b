//! Plans what should be written, from the world. It is pure: the same world always gives the same result.
//!
//! ```text
//!  Affected ──Feature::affected──▶ keys ──Feature::want──▶ Want { rows, members, patches }
//! ```
//!
//! One folder per feature, all of the same shape: `mod.rs` says what a user gets and which rows that makes, and
//! has the `Feature`; longer ones have one more file per kind of OVN object.
//!
//! *Invariant*: nothing in here knows what the database holds. Start, change, drift and deletion take the same
//! path: what a key no longer wants is removed.

mod cluster_manager;
mod feature;
mod features;
mod gateway;
mod interconnection;
pub mod names;
mod namespaces;
mod pods;
mod policies;
pub mod preflight;
mod rows;
mod services;
mod takeover;
#[cfg(test)]
mod tests;
mod topology;
mod unserved;
mod want;
mod whose;
pub mod why;

pub use feature::Feature;
pub use features::{Access, Key, access, affected, is_prefix, object, put_in_order, want};
pub use interconnection::{LEARNED, Offer, left, offer};
pub use rows::{identity, member_columns, prefix_of_way};
pub use takeover::Takeover;
pub use unserved::{Unserved, is_taken_over, unserved};
pub use want::{Member, MemberValue, Patch, PatchTarget, RowKey, RowName, RowWant, Seen, Unavailable, Want};
pub use whose::{Ownership, is_anothers_acl, is_garbage, is_our_variable, ownership, router_peer_port};
