//! How the Kubernetes API is reached: which of kubeconfig, address and token counts.

use std::path::PathBuf;

use crate::layers::Layered;
use crate::settings::Settings;
use crate::values::Secret;

/// The way to the Kubernetes API.
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
    /// File to read again as it changes.
    File(PathBuf),
    /// The token itself.
    Text(Secret),
}

impl Default for KubeAccess {
    fn default() -> Self {
        Self::Server { url: String::new(), ca: None, token: None }
    }
}

/// Chooses between settings that say the same thing: the higher layer counts. On a tie a kubeconfig
/// wins over an address and a token file over a token, so that what can rotate is preferred.
pub(crate) fn choose(settings: &Settings, layered: &Layered) -> KubeAccess {
    let kubernetes = &settings.kubernetes;
    let rank = |key| layered.get("kubernetes", key).map_or(0, |one| one.source.rank());
    if let Some(path) = &kubernetes.kubeconfig
        && rank("kubeconfig") >= rank("apiserver")
    {
        return KubeAccess::Kubeconfig(path.clone());
    }
    let file = kubernetes.cacert.clone().map(Authority::File);
    let data = kubernetes.cacert_data.clone().map(Authority::Base64);
    let ca = if rank("cacert-data") > rank("cacert") { data.or(file) } else { file.or(data) };
    let token_file = kubernetes.token_file.clone().map(Token::File);
    let text = (!kubernetes.token.is_empty()).then(|| Token::Text(kubernetes.token.clone()));
    let token = if rank("token") > rank("tokenFile") { text.or(token_file) } else { token_file.or(text) };
    KubeAccess::Server { url: kubernetes.apiserver.clone(), ca, token }
}
