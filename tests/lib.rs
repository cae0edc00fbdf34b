//! What the integration tests share: real northbound servers, objects as YAML, and the planning
//! loop of the controller in steps, so that a test can stop it between any two writes.
//!
//! ```text
//!  objects (YAML) ──▶ Objects ──Change──▶ Controller ──transactions──▶ Server ──▶ dump
//!                        ▲                    │
//!                        └────annotations─────┘
//! ```
//!
//! - [`nb`]: an `ovsdb-server` per test
//! - [`raft`]: members of Raft clusters, and pairs
//! - [`servers`]: etcd and kube-apiserver, shared by the tests
//! - [`Objects`]: the content of the API server
//! - [`Controller`]: world, plan and diff, one write at a time
//! - [`acls`]: evaluates the ACLs of a database, for states that are too short-lived to trace
//! - [`dump`]: rows as text with labels for uuids; [`load`](dump::load) is the inverse
//! - [`southbound`]: northd behind such a server, and packets traced through its logical flows
//! - [`rules`]: invariants that hold whenever nothing is pending
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

pub mod acls;
pub mod api;
pub mod controller;
pub mod dir;
pub mod dump;
pub mod foreign;
pub mod nb;
pub mod objects;
pub mod raft;
pub mod rules;
pub mod servers;
pub mod settings;
pub mod southbound;

pub use controller::{Controller, Write};
pub use objects::Objects;
