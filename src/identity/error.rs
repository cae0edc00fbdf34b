//! What keeps the webhook from being served.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// None of these goes away by itself.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}: {problem}; --webhook-cert-dir names the directory of tls.crt and tls.key", path.display())]
    Read { path: PathBuf, problem: io::Error },

    #[error("cannot use {}: {problem}; give a {wanted} as PEM", path.display())]
    Parse { path: PathBuf, wanted: &'static str, problem: String },

    #[error("cannot use {} with the key next to it: {problem}; give the certificate of that key", path.display())]
    Pair { path: PathBuf, problem: rustls::Error },

    #[error(
        "cannot listen on {address}: {problem}; give a free address of this host with --webhook-host and --webhook-port"
    )]
    Listen { address: SocketAddr, problem: io::Error },

    #[error("cannot set up TLS: {0}; this is a fault of ovnkube, report it")]
    Tls(rustls::Error),
}
