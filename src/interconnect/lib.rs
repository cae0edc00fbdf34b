//! What this cluster reads from the interconnection databases and writes there. It is pure: databases in, transactions
//! out.
//!
//! ```text
//!  IC-NB: transit switches ────────┐                      ┌─▶ IC-NB: the address that this cluster has in each switch
//!  IC-SB: zones, gateways, ports, ─┼─ Offer ─▶ step ──────┼─▶ IC-SB: zone, gateways, ports, routes of this cluster
//!         routes of all clusters   │                      ├─▶ SB: chassis of the others' gateways, where their ports are
//!  SB: chassis, gateway ports ─────┘                      └─▶ Peers, from which the northbound rows are planned
//! ```
//!
//! - [`switches`]: transit switches, and whether they go together with what the cluster has; [`joinable`]: and with what others have;
//!   [`keys`]: tunnel keys; [`claim`]: the address of this cluster in each
//! - [`ours`]: the rows of this cluster; [`former`]: those under an earlier name
//! - [`theirs`]: the rows of the others, checked; [`tunnels`]: their gateways; [`renamed`]: those that get another name;
//!   [`in_use`]: what this cluster has of them
//! - [`chassis`]: southbound rows; [`ways`]: which ways packets can take
//! - [`hearing`]: whether the others are there; [`emptied`], [`returning`]: whether the switches and the ways are, or a database was made
//!   anew
//! - [`reset`], [`clean`]: what people have removed; [`report`]: what they are told
//!
//! *Invariant*: rows of other clusters, and chassis that another program made, are never changed.

mod addresses;
mod chassis;
mod claim;
mod clean;
mod databases;
mod emptied;
mod former;
mod hearing;
#[cfg(test)]
mod hostile;
mod in_use;
mod joinable;
mod keys;
mod ours;
mod renamed;
pub mod report;
mod reset;
mod returning;
mod rows;
mod step;
mod switches;
mod text;
mod theirs;
mod tunnels;
mod ways;
mod write;

pub use clean::{Cleaning, Left, answered, clean, names, question};
pub use databases::{Databases, is_remote};
pub use emptied::{Emptied, FILLED_WITHIN};
pub use hearing::{Hearing, Listening, Numbers};
pub use ours::Moment;
pub use reset::{local, may_reset};
pub use returning::Returning;
pub use step::{Step, ask, forget, has_own_zone, has_rows, has_zone, step, withdraw};
pub use ways::Way;
