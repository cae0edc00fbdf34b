//! The client against real servers of two releases. No test waits by the clock for something to
//! be true; every wait has a limit and says what was waited for.
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
