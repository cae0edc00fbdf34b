//! Typed rows of the OVN databases, without any IO.
//!
//! ```
//! use ovnkube_ovn::{Row, nb::logical_switch_port as lsp};
//! let row = Row::new(lsp::TABLE)
//!     .with(lsp::NAME, "ns_pod")
//!     .with(lsp::ADDRESSES, ["0a:58:0a:01:00:03 10.1.0.3"])
//!     .with(lsp::OPTIONS, [("requested-chassis", "node-1")])
//!     .with(lsp::ENABLED, Some(true));
//! assert_eq!(row.str(lsp::NAME), "ns_pod");
//! assert_eq!(row.map(lsp::OPTIONS).get("requested-chassis"), Some("node-1"));
//! ```
//!
//! - [`nb`], [`sb`], [`ic_nb`], [`ic_sb`], [`vswitch`]: a module per table with `TABLE` and a constant per column,
//!   written by `cargo run -p xtask -- codegen` from the files in `schema/`
//! - [`Row`], [`Datum`]: rows and values; [`wire`]: their JSON
//! - [`schema`]: what the compiled rows expect and what a server has
//! - [`owner`]: the ids and hashed names that mark rows as ours

mod generated;
pub mod owner;
mod pieces;
mod row;
pub mod schema;
#[cfg(test)]
mod tests;
pub mod value;
pub mod wire;

pub use generated::{ic_nb, ic_sb, nb, sb, vswitch};
pub use owner::OwnerId;
pub use pieces::Items;
pub use row::{Column, IntoAtom, IntoDatum, Members, Row, Single, StrMap, kind};
pub use schema::{ColumnId, Database, ServerSchema, Table};
pub use uuid::Uuid;
pub use value::{Atom, Datum, Kind};

/// Namespace of the uuids this project derives.
const DERIVED: Uuid = Uuid::from_u128(0x6f1d_7c1e_2b6b_4c58_9a0e_5d2c_8f4a_7b31);

/// The uuid for the row of `table` with identity `id`: always the same, so that a repeated insert cannot create a
/// second row.
pub fn derived_uuid(table: &str, id: &str) -> Uuid {
    Uuid::new_v5(&DERIVED, format!("{table}\0{id}").as_bytes())
}
