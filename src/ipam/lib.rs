//! Who has which address, subnet and number. Pure bookkeeping: nothing here reads a clock, a file or
//! the network, and the same calls always give the same answers.
//!
//! ```text
//!  cluster CIDRs ──SubnetPool──▶ a subnet per node ──AddressPool──▶ an address per pod
//!                                IdPool ──▶ a number per node (join and transit addresses follow from it)
//! ```
//!
//! Facts live in annotations, so at start every pool is filled with `take` from what is annotated and
//! only then asked for something new with `allocate`.

mod addresses;
mod ids;
mod mac;
mod subnet;
mod subnets;
#[cfg(test)]
mod tests;
mod text;

pub use addresses::AddressPool;
pub use ids::IdPool;
pub use mac::Mac;
pub use subnet::Subnet;
pub use subnets::{ClusterSubnet, SubnetPool};

/// Why a pool did not give or take something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The address or subnet lies outside of what the pool hands out.
    #[error("{what} is outside of {range}")]
    Outside { what: String, range: String },
    /// Somebody else has it.
    #[error("{what} is taken")]
    Taken { what: String },
    /// Nothing is free.
    #[error("no free {what} in {range}")]
    Exhausted { what: &'static str, range: String },
}
