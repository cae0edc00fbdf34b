//! How the Kubernetes API is reached: which of kubeconfig, address and token is used.

use std::path::PathBuf;

use crate::values::Secret;

/// How the Kubernetes API is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KubeAccess {
    /// By a kubeconfig file: its current context.
    Kubeconfig(PathBuf),
    /// By address.
    Server {
        /// `http://` or `https://` URL.
        url: String,
        /// Certificate authority for `https`.
        ca: Option<Authority>,
        /// Bearer token.
        token: Option<Token>,
    },
}

/// A certificate authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authority {
    /// PEM file.
    File(PathBuf),
    /// Base64 of PEM text.
    Base64(String),
}

/// A bearer token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// File that is read again when it changes.
    File(PathBuf),
    /// The token itself.
    Text(Secret),
}

impl Default for KubeAccess {
    fn default() -> Self {
        Self::Server { url: String::new(), ca: None, token: None }
    }
}
