//! Who nodes are, and what they may do with it: an admission webhook that keeps each node to its own Node, for Kubernetes without the
//! policies of dist/yaml/admission.yaml; and certificates for node agents, which need no webhook.
//!
//! ```text
//!  kube-apiserver ──AdmissionReview──▶ server (TLS, limits) ─▶ review (JSON) ─▶ rules ─▶ allowed, or why not
//!                                        ▲
//!                        certificate ────┘ read again when its files change
//!
//!  node agent ── node_certificate ─ key ─▶ CertificateSigningRequest ─▶ approver ─ approval ─▶ approved, or denied and why
//!                  │      ▲                                                                          │
//!                  store  └─ kept: usable? renew when? ◀──────────── certificate ◀── its signer ◀────┘
//! ```
//! `review`, `rules`, `approval` and `kept` are pure: the same request gets the same answer. The rules are those of the policies; the
//! tests give both the same cases, tests/identity/cases.yaml.

mod approval;
mod approver;
mod certificate;
mod error;
mod kept;
mod key;
mod names;
mod node_certificate;
mod review;
mod rules;
mod server;
mod store;
#[cfg_attr(windows, path = "system/windows.rs")]
mod system;

#[cfg(test)]
mod tests;

pub use approval::judge;
pub use approver::approve;
pub use error::Error;
pub use node_certificate::{NodeCertificate, Wanted};
pub use review::{Answer, answer};
pub use server::Webhook;
pub use store::current;
