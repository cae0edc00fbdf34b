//! How the API server is reached: kubeconfig, explicit settings, or the pod's service account.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use http::header::HeaderValue;
use kube::Config;
use kube::client::middleware::AuthLayer;
use kube::client::{AuthError, ConfigExt as _};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig, KubeconfigError};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use secrecy::ExposeSecret;
use tokio::time::Instant;

use crate::Error;
use crate::error::{chain, one_line};
use crate::system::{Stamp, stamp};

const LARGEST_KUBECONFIG: u64 = 4 * 1024 * 1024;

/// Where the API server is, and which credentials to use. A kubeconfig takes precedence over `apiserver`; without
/// either, the pod's service account is used.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Its current context is used. It is read again when it changes, or a certificate that it names.
    pub kubeconfig: Option<PathBuf>,
    /// `https://host:port` or `http://host:port`.
    pub apiserver: Option<String>,
    /// Certificates that verify the API server; the system's if `None`. Read again when the file changes.
    pub ca: Option<PathBuf>,
    /// The same as text: PEM, or base64 of PEM as in a kubeconfig.
    pub ca_data: Option<String>,
    pub token: Option<Secret>,
    /// Takes precedence over `token`; read again when it changes.
    pub token_file: Option<PathBuf>,
    /// Certificate and key of this process in one PEM file, in place of all other credentials; read again when it changes.
    pub client_pem: Option<PathBuf>,
    /// Role of this process, for the API server's logs: `controller`, `node`.
    pub role: String,
    /// How long a kubeconfig's credential plugin may run. `None`: it is not run. Only for interactive commands: it may ask.
    pub plugin: Option<Duration>,
}

/// Time for a plugin of an interactive command: a person may have to log in.
pub const LOG_IN_WITHIN: Duration = Duration::from_secs(300);

/// A text that `Debug` does not print.
#[derive(Clone)]
pub struct Secret(String);

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

impl Access {
    pub(crate) async fn config(&self) -> Result<Config, Error> {
        let mut config = self.server().await?;
        if let Some(pem) = &self.client_pem {
            let both = Some(pem.display().to_string());
            config.auth_info = AuthInfo { client_certificate: both.clone(), client_key: both, ..AuthInfo::default() };
        }
        Ok(config)
    }

    /// The API server, with the credentials of the kubeconfig or of the settings.
    async fn server(&self) -> Result<Config, Error> {
        if let Some(path) = &self.kubeconfig {
            return from_kubeconfig(path, self.plugin.is_some()).await.map_err(|p| {
                Error::Access(format!(
                    "cannot read kubeconfig {}: {p}; set k8s-kubeconfig to one that kubectl can use",
                    path.display()
                ))
            });
        }
        let Some(server) = &self.apiserver else {
            return Config::incluster().map_err(|e| {
                Error::Access(format!(
                    "cannot find the API server: no kubeconfig and no address are set, and this is not a pod ({}); set k8s-kubeconfig or \
                     k8s-apiserver",
                    chain(&e)
                ))
            });
        };
        let mut config = Config::new(address(server).map_err(Error::Access)?);
        self.trust(&mut config).map_err(Error::Access)?;
        config.auth_info.token = self.token.as_ref().map(|t| t.0.clone().into());
        config.auth_info.token_file = self.token_file.as_ref().map(|p| p.display().to_string());
        Ok(config)
    }

    fn trust(&self, config: &mut Config) -> Result<(), String> {
        if let Some(path) = &self.ca {
            let pem = std::fs::read(path).map_err(|e| format!("cannot read k8s-cacert {}: {e}", path.display()))?;
            certificates(&pem).map_err(|p| format!("cannot read k8s-cacert {}: {p}", path.display()))?;
            // the file counts, now and when it changes
            config.root_cert = Some(Vec::new());
            config.root_cert_file = Some(path.clone());
        } else if let Some(data) = &self.ca_data {
            let certificates = decoded(data).and_then(|pem| certificates(&pem));
            config.root_cert = Some(certificates.map_err(|p| format!("cannot read k8s-cacert-data: {p}"))?);
        }
        Ok(())
    }
}

fn address(server: &str) -> Result<Uri, String> {
    let uri: Uri = server.parse().map_err(|e| format!("cannot use k8s-apiserver {server:?}: {e}"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none_or(str::is_empty) {
        return Err(format!("cannot use k8s-apiserver {server:?}: it is not an address; write https://host:port"));
    }
    Ok(uri)
}

/// Base64 may be split into lines, as `base64` prints it.
fn decoded(data: &str) -> Result<Vec<u8>, String> {
    if data.contains("-----BEGIN") {
        return Ok(data.as_bytes().to_vec());
    }
    let text: String = data.split_ascii_whitespace().collect();
    STANDARD.decode(text).map_err(|e| format!("it is not base64 of PEM: {e}; base64 -w0 FILE makes it"))
}

fn certificates(pem: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let certificates: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(pem).map(|c| c.map(|der| der.to_vec())).collect();
    match certificates {
        Ok(list) if list.is_empty() => Err("it has no certificate".into()),
        other => other.map_err(|e| chain(&e)),
    }
}

async fn from_kubeconfig(path: &Path, plugins: bool) -> Result<Config, String> {
    let about = std::fs::metadata(path).map_err(|e| e.to_string())?;
    if !about.is_file() || about.len() > LARGEST_KUBECONFIG {
        return Err("it is not a regular file of a sensible size".into());
    }
    let file = Kubeconfig::read_from(path).map_err(|e| kubeconfig_problem(&e))?;
    let options = KubeConfigOptions::default();
    let authority = authority(&file);
    let mut config = Config::from_custom_kubeconfig(file, &options).await.map_err(|e| kubeconfig_problem(&e))?;
    config.root_cert_file = authority;
    if config.auth_info.auth_provider.is_some() || (config.auth_info.exec.is_some() && !plugins) {
        return Err(
            "its user runs a credential plugin, which a daemon does not; use a client certificate or token".into()
        );
    }
    if !matches!(config.cluster_url.scheme_str(), Some("http" | "https")) {
        return Err(format!(
            "its server {:?} is not an address; write https://host:port",
            config.cluster_url.to_string()
        ));
    }
    Ok(config)
}

/// The CA file that the current context names for its API server.
fn authority(file: &Kubeconfig) -> Option<PathBuf> {
    let current = file.current_context.as_ref()?;
    let context = file.contexts.iter().find(|one| one.name == *current)?.context.as_ref()?;
    let cluster = file.clusters.iter().find(|one| one.name == context.cluster)?.cluster.as_ref()?;
    // data in the kubeconfig itself takes precedence
    let path = cluster.certificate_authority.as_ref().filter(|_| cluster.certificate_authority_data.is_none())?;
    Some(path.into())
}

/// Says where a YAML error is and never quotes the text there: it may be a key or token.
fn kubeconfig_problem(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::Parse(error) => match error.location() {
            Some(at) => format!("it is not a kubeconfig: line {} column {}", at.line(), at.column()),
            None => "it is not a kubeconfig".into(),
        },
        KubeconfigError::CurrentContextNotSet => {
            "it has no current-context; kubectl config use-context sets one".into()
        }
        other => one_line(&chain(other)),
    }
}

/// The credentials that a plugin adds to each request. The plugin is run here once, or twice if it answers with a
/// certificate: [`Config`] runs it for that, too.
pub(crate) fn plugin(config: &Config) -> Result<Option<AuthLayer>, String> {
    if config.auth_info.exec.is_none() {
        return Ok(None);
    }
    config.auth_layer().map_err(|error| cannot_run(config, &plugin_problem(&error)))
}

pub(crate) fn cannot_run(config: &Config, why: &str) -> String {
    let command = config.auth_info.exec.as_ref().and_then(|plugin| plugin.command.as_deref());
    format!("cannot run the credential plugin {:?} of the kubeconfig: {why}", command.unwrap_or_default())
}

/// Never quotes the plugin's standard output: it may be a token.
fn plugin_problem(error: &kube::Error) -> String {
    match error {
        kube::Error::Auth(AuthError::AuthExecRun { out, .. }) => {
            // filled only if the plugin could not write to the terminal itself
            let said = String::from_utf8_lossy(&out.stderr);
            one_line(&format!("{} {}", out.status, said.trim()))
        }
        kube::Error::Auth(AuthError::AuthExecParse(_)) => "what it prints is not an ExecCredential".into(),
        other => one_line(&chain(other)),
    }
}

/// The bearer token as a header. A token file is read again when it changes: service account tokens rotate.
pub(crate) struct Token {
    file: Option<PathBuf>,
    read: Mutex<ReadToken>,
}

struct ReadToken {
    header: HeaderValue,
    /// Of its file when it was read.
    stamp: Option<Stamp>,
    /// The file of this stamp could not be read, and is not read again before that.
    failed: Option<(Option<Stamp>, Instant)>,
}

/// The least time between two attempts to read credentials that cannot be read.
pub(crate) const READ_AGAIN: Duration = Duration::from_secs(1);

impl Token {
    pub(crate) fn of(config: &Config) -> Result<Option<Arc<Self>>, String> {
        let file = config.auth_info.token_file.as_ref().map(PathBuf::from);
        let stamp = file.as_deref().and_then(stamp);
        let header = match (&file, &config.auth_info.token) {
            (Some(path), _) => read_token(path)?,
            (None, Some(token)) => bearer(token.expose_secret())
                .ok_or("cannot use the token: it is empty or holds characters that no token has")?,
            (None, None) => return Ok(None),
        };
        Ok(Some(Arc::new(Self { file, read: Mutex::new(ReadToken { header, stamp, failed: None }) })))
    }

    pub(crate) fn header(&self) -> HeaderValue {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let rests = read.failed.as_ref().is_some_and(|(_, again)| *again > now);
        let Some(path) = self.file.as_ref().filter(|_| !rests) else { return read.header.clone() };
        let stamp = stamp(path);
        if stamp != read.stamp {
            match read_token(path) {
                Ok(header) => *read = ReadToken { header, stamp, failed: None },
                Err(problem) => {
                    if read.failed.as_ref().is_none_or(|(of, _)| *of != stamp) {
                        tracing::warn!(error = %problem, "using the last token");
                    }
                    read.failed = Some((stamp, now + READ_AGAIN));
                }
            }
        }
        read.header.clone()
    }
}

fn read_token(path: &Path) -> Result<HeaderValue, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read token file {}: {e}", path.display()))?;
    bearer(&text).ok_or_else(|| {
        format!("cannot read token file {}: it is empty or holds characters that no token has", path.display())
    })
}

fn bearer(token: &str) -> Option<HeaderValue> {
    let token = token.trim();
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok().filter(|_| !token.is_empty())?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    /// What cannot be read is read again, also if the file looks as it did then.
    #[tokio::test(start_paused = true)]
    async fn a_token_that_could_not_be_read_is_read_again() {
        let path = std::env::temp_dir().join(format!("ovnkube-token-{}", std::process::id()));
        fs::write(&path, "first").unwrap();
        let mut config = Config::new(Uri::from_static("http://127.0.0.1:1"));
        config.auth_info.token_file = Some(path.to_str().unwrap().to_owned());
        let token = Token::of(&config).unwrap().unwrap();
        let is = |text: &str| assert_eq!(token.header(), format!("Bearer {text}"));
        is("first");
        let at = std::time::SystemTime::now() + Duration::from_secs(5);
        for (text, now) in [("", "first"), ("second", "first")] {
            fs::write(&path, text).unwrap();
            File::options().write(true).open(&path).unwrap().set_modified(at).unwrap();
            is(now);
        }
        tokio::time::sleep(READ_AGAIN).await;
        is("second");
        fs::remove_file(&path).unwrap();
    }
}
