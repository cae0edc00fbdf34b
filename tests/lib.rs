//! What the tests of whole paths share: real northbound servers, objects as YAML, and the planning
//! loop of the controller taken apart so that a test can stop it between any two writes.
//!
//! ```text
//!  objects (YAML) ──▶ Objects ──Change──▶ Controller ──transactions──▶ Server ──▶ dump
//!                        ▲                    │
//!                        └────annotations─────┘
//! ```
//!
//! - [`nb`]: an `ovsdb-server` per test
//! - [`servers`]: etcd and kube-apiserver, which tests take turns at
//! - [`Objects`]: what the API server would hold
//! - [`Controller`]: world, plan and diff, one write at a time
//! - [`acls`]: what the ACLs of a database let pass, for states too short to be asked about
//! - [`dump`]: rows as text with labels for uuids; [`load`](dump::load) is the way back
//! - [`southbound`]: northd behind such a server, and packets traced through what it makes
//! - [`rules`]: what must hold whenever nothing is going on
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "tests")]

pub mod acls;
pub mod api;
pub mod controller;
pub mod dir;
pub mod dump;
pub mod foreign;
pub mod nb;
pub mod objects;
pub mod rules;
pub mod servers;
pub mod settings;
pub mod southbound;

pub use controller::{Controller, Write};
pub use objects::Objects;
