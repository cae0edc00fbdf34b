//! Allocation of addresses, subnets and ids. Pure bookkeeping: nothing here reads a clock, a file or
//! the network, and the same calls always give the same results.
//!
//! ```text
//!  cluster CIDRs ──SubnetPool──▶ a subnet per node ──AddressPool──▶ an address per pod
//!                                IdPool ──▶ an id per node (join and transit addresses follow from it)
//! ```
//!
//! The facts are in annotations: at start every pool is filled with `take` from what is annotated, and only
//! then asked for something new with `allocate`.

mod addresses;
mod error;
mod ids;
mod mac;
mod subnet;
mod subnets;
#[cfg(test)]
mod tests;
mod text;

pub use addresses::AddressPool;
pub use error::Error;
pub use ids::IdPool;
pub use mac::Mac;
pub use subnet::Subnet;
pub use subnets::{ClusterSubnet, SubnetPool};
