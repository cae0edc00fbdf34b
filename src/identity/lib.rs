//! An admission webhook that keeps each node to its own Node, for Kubernetes without the policies of dist/yaml/admission.yaml.
//!
//! ```text
//!  kube-apiserver ──AdmissionReview──▶ server (TLS, limits) ─▶ review (JSON) ─▶ rules ─▶ allowed, or why not
//!                                        ▲
//!                        certificate ────┘ read again when its files change
//! ```
//! `review` and `rules` are pure: the same request gets the same answer. The rules are those of the policies; the tests
//! give both the same cases, tests/identity/cases.yaml.

mod certificate;
mod error;
mod review;
mod rules;
mod server;

#[cfg(test)]
mod tests;

pub use error::Error;
pub use review::{Answer, answer};
pub use server::Webhook;
