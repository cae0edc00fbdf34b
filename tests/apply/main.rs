//! The path from changes to rows on real servers: crashes at any point, leftovers, drift, random
//! changes, and the whole engine against a real Kubernetes API.
#![allow(clippy::unwrap_used, reason = "tests")]

mod access;
mod annotations;
mod crash;
mod engine;
mod failures;
mod foreign;
mod leftovers;
mod nodes;
mod random;
mod removal;
mod running;
mod scale;
mod schema;
mod services;
mod takeover;
