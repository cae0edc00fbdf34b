//! The binary as people run it, between a real Kubernetes API and real northbound servers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, clippy::print_stdout, reason = "tests")]

mod api;
mod lab;
mod process;

mod agents;
mod annotations;
mod bad_input;
mod certificates;
mod cluster;
mod db;
mod db_backups;
mod db_cut;
mod db_disk;
mod db_files;
mod db_refusals;
mod db_steps;
mod ended;
mod faults;
mod ic;
mod ic_cost;
mod identity;
mod manifests;
mod masters;
mod northd;
mod one_process;
mod plan;
mod pods;
mod preflight;
mod remove;
mod roles;
mod server_keys;
mod stranger;
mod unserved;
mod why;
mod writing;
