//! The path from changes to rows on real servers: crashes at any point, leftovers, drift, random
//! changes, and the whole engine against a real Kubernetes API.
#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::test_runner::{FailurePersistence, FileFailurePersistence};

mod access;
mod annotations;
mod another;
mod crash;
mod engine;
mod failures;
mod fencing;
mod foreign;
mod leftovers;
mod nodes;
mod pieces;
mod prefixes;
mod random;
mod recreated;
mod removal;
mod running;
mod scale;
mod schema;
mod services;
mod takeover;
mod unserved;

/// Where a property test stores the seeds that failed, to try them first in later runs: the file belongs in the repository.
#[allow(clippy::unnecessary_wraps, reason = "what proptest takes")]
fn found(file: &'static str) -> Option<Box<dyn FailurePersistence>> {
    Some(Box::new(FileFailurePersistence::Direct(file)))
}
