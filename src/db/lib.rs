//! What `ovnkube db` says about the servers of an OVN database, and which steps it allows. Pure: others ask the servers.
//!
//! ```text
//!  _Server of each ──┐
//!                    ├─▶ Observed ─▶ servers ─┬─▶ judge ───▶ Report, for people and as JSON
//!  control sockets ──┘                        └─▶ allowed ─▶ what the step uses, or why it is refused
//! ```

mod allowed;
#[cfg(test)]
mod allowed_tests;
mod cluster_status;
mod guards;
mod judge;
mod judgement;
mod local;
mod observed;
mod own_rows;
mod refused;
mod report;
mod room;
mod servers;
#[cfg(test)]
mod tests;
mod timer;

pub use allowed::{
    Here, Removal, Source, backup, bootstrap, compact, convert, is_tight, join, lacks, leave, remove, replace, restore,
};
pub use cluster_status::{ClusterStatus, Listed};
pub use guards::{FileProblem, file_problems};
pub use judge::judge;
pub use judgement::{Judgement, State};
pub use observed::{Answer, Control, DatabaseFile, Model, Northd, Observed, Seen};
pub use own_rows::{OwnRows, not_done};
pub use refused::Refused;
pub use report::Report;
pub use servers::{Role, Server, Servers, Trouble};
pub use timer::TimerStep;
