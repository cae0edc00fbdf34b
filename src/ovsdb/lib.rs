//! Client of OVSDB servers: a cache that follows the database, events of what changed, and transactions that are
//! checked before they are sent. The cache and the transactions themselves are in `ovnkube-ovsdb-data`.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use ovnkube_ovn::{Row, derived_uuid, nb, nb::logical_switch as ls};
//! use ovnkube_ovsdb::{Client, Options, Remote, Txn};
//!
//! let remotes = Remote::parse_list("tcp:10.0.0.1:6641,tcp:10.0.0.2:6641")?;
//! let client = Client::connect(Options::new(&nb::DATABASE, remotes));
//! client.synced().await;
//! let mut txn = Txn::new(&nb::DATABASE);
//! txn.insert(derived_uuid("Logical_Switch", "n1"), Row::new(ls::TABLE).with(ls::NAME, "n1"));
//! client.transact(txn).await?;
//! assert!(client.cache().iter(ls::TABLE).any(|(_, row)| row.str(ls::NAME) == "n1"));
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//!              candidates: which server ▶ session: steps, deadlines
//!                                            │ starts
//!  server ─▶ reader: frame ▶ decode ▶ cache ▶ events ─▶ Subscription
//!     ▲           └ replies ─▶ the caller               Client::cache
//!     └── writer ◀── requests: check ▶ render ◀──────── Client::transact
//! ```

mod about;
mod backup;
mod candidates;
mod client;
mod conn;
mod events;
mod fault;
mod fence;
mod flights;
mod frame;
mod held;
mod lock;
mod locks;
#[cfg(test)]
#[path = "../ovsdb_data/nearly.rs"]
mod nearly;
mod options;
mod outcome;
mod patience;
mod questions;
mod reader;
mod remote;
mod rpc;
mod server;
mod session;
mod sessions;
mod shared;
mod state;
#[cfg_attr(windows, path = "system/windows.rs")]
mod system;
#[cfg(test)]
mod tests;
mod tls;

pub use ovnkube_ovsdb_data::{Cache, Class, Columns, Condition, Identity, Monitored, Parent, Txn, TxnError};

pub use about::About;
pub use client::{CacheGuard, Client};
pub use events::{Event, RowEvent, Subscription};
pub use fence::Fence;
pub use frame::{FrameError, Framer};
pub use held::is_lock_held;
pub use lock::Lock;
pub use locks::Standing;
pub use options::{Dial, Options};
pub use outcome::Reply;
pub use questions::{NoAnswer, Questions, is_listening};
pub use remote::{Remote, RemoteError};
pub use state::{State, Stats, Unfit};
pub use tls::TlsFiles;
