//! The environment and the files of the pod's service account.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::layers::Layer;
use crate::settings::SETTINGS;
use crate::source::Source;
use crate::table::Setting;
use crate::values::{Dialect, canonical};

/// Paths that no setting names. `Default` gives the system's paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Configuration file that may be missing.
    pub config_file: PathBuf,
    /// Directory with the service account's `token` and `ca.crt`.
    pub service_account: PathBuf,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            config_file: "/etc/openvswitch/ovn_k8s.conf".into(),
            service_account: "/var/run/secrets/kubernetes.io/serviceaccount".into(),
        }
    }
}

/// The environment's layer. A variable that is empty counts as not set.
pub(crate) fn layer(env: &impl Fn(&str) -> Option<String>) -> Result<Layer, Error> {
    let mut layer = Layer::default();
    for setting in SETTINGS.iter().filter(|setting| !setting.env.is_empty()) {
        let Some(text) = env(setting.env).filter(|text| !text.is_empty()) else { continue };
        let source = Source::Env(setting.env.to_owned());
        let text = canonical(setting.kind, Dialect::File, &text)
            .map_err(|problem| Error::value(setting, &source, &text, problem))?;
        layer.set(setting, text, source);
    }
    Ok(layer)
}

/// The service account's layer: token and certificate authority that the cluster mounts in every pod,
/// with the API server's address as the cluster gives it to every container.
pub(crate) fn service_account(dir: &Path, env: &impl Fn(&str) -> Option<String>) -> Layer {
    let mut layer = Layer::default();
    let mut set = |key: &str, text: String| {
        if let Some(setting) = kubernetes(key) {
            layer.set(setting, text, Source::ServiceAccount);
        }
    };
    let authority = dir.join("ca.crt");
    if authority.is_file() {
        set("cacert", authority.display().to_string());
    }
    let token = dir.join("token");
    let Ok(text) = fs::read_to_string(&token) else { return layer };
    set("token", text.trim().to_owned());
    set("tokenFile", token.display().to_string());
    let part = |name| env(name).filter(|text| !text.is_empty());
    if let (Some(host), Some(port)) = (part("KUBERNETES_SERVICE_HOST"), part("KUBERNETES_SERVICE_PORT")) {
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        set("apiserver", format!("https://{host}:{port}"));
    }
    layer
}

fn kubernetes(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.section == "kubernetes" && setting.key == key)
}
