//! Client of OVSDB servers: a cache that follows the database, events of what changed, and
//! transactions checked before they are sent.
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
//!              candidates: which member ▶ session: steps, deadlines
//!                                            │ starts
//!  server ─▶ reader: frame ▶ decode ▶ cache ▶ events ─▶ Subscription
//!     ▲           └ replies ─▶ who waits                Client::cache
//!     └── writer ◀── requests: check ▶ render ◀──────── Client::transact
//! ```

mod cache;
mod candidates;
mod check;
mod client;
mod conn;
mod error;
mod events;
mod fault;
mod frame;
mod layout;
mod lock;
mod outcome;
mod reader;
mod remote;
mod render;
mod rpc;
mod server;
mod session;
#[cfg(test)]
mod tests;
mod tls;
mod txn;
mod update;

pub use cache::{Cache, Identity, Parent};
pub use client::{CacheGuard, Client, Options, State, Stats};
pub use error::{Class, TxnError};
pub use events::{Event, RowEvent, Subscription};
pub use frame::{FrameError, Framer};
pub use layout::{Columns, Condition, Monitored};
pub use lock::{Lock, Standing};
pub use outcome::Reply;
pub use remote::{Remote, RemoteError};
pub use tls::TlsFiles;
pub use txn::Txn;
