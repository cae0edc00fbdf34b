//! The client against real servers of two releases. No test relies on a fixed time for a state to be
//! reached; every wait has a limit and names what it waits for.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

mod basics;
mod cluster;
mod conformance;
mod faults;
mod lab;
mod own;
mod pki;
mod proxy;
mod random;
mod silent;
mod tls;
