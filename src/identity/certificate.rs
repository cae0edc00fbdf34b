//! The certificate that the webhook shows, read again when its files change, so that it can be renewed while the process runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::Error;

/// Names of a secret of the type kubernetes.io/tls, mounted as a volume.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
/// The files are read at most this often, however many clients connect.
const READ_EVERY: Duration = Duration::from_secs(1);

/// The newest usable content of a directory's `tls.crt` and `tls.key`.
#[derive(Debug)]
pub(crate) struct Certificate {
    dir: PathBuf,
    provider: Arc<CryptoProvider>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    shown: Arc<CertifiedKey>,
    files: Files,
    read: Instant,
}

/// Both files as they were read; the renewal of a volume replaces both at one moment.
#[derive(Debug, PartialEq)]
struct Files {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Certificate {
    pub(crate) fn read(dir: &Path, provider: Arc<CryptoProvider>) -> Result<Self, Error> {
        let files = Files::read(dir)?;
        let shown = Arc::new(files.parse(dir, &provider)?);
        let state = Mutex::new(State { shown, files, read: Instant::now() });
        Ok(Self { dir: dir.to_owned(), provider, state })
    }

    /// Files that cannot be used leave the old certificate, and are reported once.
    fn current(&self) -> Arc<CertifiedKey> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.read.elapsed() < READ_EVERY {
            return state.shown.clone();
        }
        state.read = Instant::now();
        match Files::read(&self.dir) {
            Ok(files) if files == state.files => {}
            Ok(files) => {
                match files.parse(&self.dir, &self.provider) {
                    Ok(new) => {
                        tracing::info!(dir = %self.dir.display(), "the certificate was renewed");
                        state.shown = Arc::new(new);
                    }
                    Err(error) => tracing::warn!(%error, "the old certificate is shown"),
                }
                state.files = files;
            }
            // between the removal and the creation of a file
            Err(error) => tracing::debug!(%error, "the old certificate is shown"),
        }
        state.shown.clone()
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

impl Files {
    fn read(dir: &Path) -> Result<Self, Error> {
        let file = |name| {
            let path = dir.join(name);
            fs::read(&path).map_err(|problem| Error::Read { path, problem })
        };
        Ok(Self { certificate: file(CERTIFICATE)?, key: file(KEY)? })
    }

    fn parse(&self, dir: &Path, provider: &CryptoProvider) -> Result<CertifiedKey, Error> {
        let fault = |name, wanted, problem| Error::Parse { path: dir.join(name), wanted, problem };
        let no_certificate = |problem| fault(CERTIFICATE, "certificate", problem);
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.certificate).collect();
        let chain = chain.map_err(|problem| no_certificate(problem.to_string()))?;
        if chain.is_empty() {
            return Err(no_certificate("there is no certificate in it".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|problem| fault(KEY, "private key without a passphrase", problem.to_string()))?;
        CertifiedKey::from_der(chain, key, provider)
            .map_err(|problem| Error::Pair { path: dir.join(CERTIFICATE), problem })
    }
}
