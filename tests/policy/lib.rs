//! The meaning of NetworkPolicy, written from the Kubernetes reference alone, and clusters to test it.
//! It does not know ovnkube's implementation: both must give the same answers.
//!
//! ```text
//!  seed ──▶ generate ──objects──▶ API server ──▶ ovnkube ──▶ OVN ──▶ packets, ovn-trace
//!                         │                                              ║ equal?
//!                         └──▶ evaluate ──▶ allowed or not ══════════════╝
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

pub mod evaluate;
pub mod generate;
mod random;
#[cfg(test)]
mod tests;

pub use evaluate::{Cluster, End, Flow, Protocol};
pub use random::Random;
