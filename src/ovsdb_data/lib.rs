//! The parts of an OVSDB client that need no connection: the rows of a database, what updates do to them, and
//! transactions as data. `ovnkube-ovsdb` moves the bytes.
//!
//! ```text
//!  bytes of an update ─▶ Decoder ─▶ Updates ─▶ Cache ─▶ RowChange ─▶ owned: was it a transaction of ours?
//!                          ▲                     │
//!            Layout: what is monitored           └▶ get, lookup, parents
//!
//!  Txn ─▶ check: would the server refuse it? ─▶ Rendered ─▶ bytes of a request
//! ```

mod cache;
mod check;
mod error;
mod gone;
mod layout;
#[cfg(test)]
mod nearly;
mod own;
#[cfg(test)]
mod reload_tests;
mod render;
#[cfg(test)]
mod tests;
mod txn;
mod update;
mod uuids;

pub use cache::{Cache, Identity, Inconsistent, Parent, RowChange};
pub use check::{CheckContext, check};
pub use error::{Class, TxnError};
pub use layout::{Columns, Condition, Conditions, Layout, Monitored};
pub use own::owned;
pub use render::Rendered;
pub use txn::Txn;
pub use update::{Decoder, Updates};
