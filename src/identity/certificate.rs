//! The certificate that the webhook shows, read again when its files change, so that it can be renewed while the process runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use x509_cert::der::Decode as _;

use crate::Error;
use crate::kept::Validity;

/// Names of a secret of the type kubernetes.io/tls, mounted as a volume.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
/// The files are read at most this often, however many clients connect.
const READ_EVERY: Duration = Duration::from_secs(1);
/// How long before its end a certificate is warned of, and in which part of its life at the earliest: those that live for days are renewed
/// often.
const SOON: Duration = Duration::from_secs(30 * 24 * 60 * 60);
const LAST_PART: u32 = 5;

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
    /// `None`: it cannot be read, although others may.
    validity: Option<Validity>,
    files: Files,
    read: Instant,
    is_unreadable: bool,
    /// What was last said about its end.
    end: End,
}

/// Whether a certificate ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Far,
    Soon,
    Over,
}

impl End {
    pub(crate) fn of(validity: Option<Validity>, now: SystemTime) -> Self {
        let Some(Validity { not_before, not_after }) = validity else { return Self::Far };
        let life = not_after.duration_since(not_before).unwrap_or_default();
        match not_after.duration_since(now) {
            Ok(left) if left > SOON.min(life / LAST_PART) => Self::Far,
            Ok(left) if !left.is_zero() => Self::Soon,
            _ => Self::Over,
        }
    }
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
        let (shown, validity) = files.parse(dir, &provider)?;
        let (read, is_unreadable, end) = (Instant::now(), false, End::Far);
        let mut state = State { shown: Arc::new(shown), validity, files, read, is_unreadable, end };
        state.warn(dir);
        Ok(Self { dir: dir.to_owned(), provider, state: Mutex::new(state) })
    }

    /// Why no API server trusts it any more.
    pub(crate) fn fault(&self) -> Option<String> {
        self.current();
        let validity = self.state.lock().unwrap_or_else(PoisonError::into_inner).validity;
        let is_over = End::of(validity, SystemTime::now()) == End::Over;
        validity.filter(|_| is_over).map(|validity| expired(&self.dir, validity.not_after))
    }

    /// Files that cannot be used leave the old certificate, and are reported once.
    fn current(&self) -> Arc<CertifiedKey> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.read.elapsed() < READ_EVERY {
            return state.shown.clone();
        }
        state.read = Instant::now();
        let files = Files::read(&self.dir);
        let was_unreadable = std::mem::replace(&mut state.is_unreadable, files.is_err());
        match files {
            Ok(files) if files == state.files => {}
            Ok(files) => {
                match files.parse(&self.dir, &self.provider) {
                    Ok((new, validity)) => {
                        tracing::info!(dir = %self.dir.display(), "the certificate was renewed");
                        (state.shown, state.validity, state.end) = (Arc::new(new), validity, End::Far);
                    }
                    Err(error) => tracing::warn!(%error, "serving the old certificate"),
                }
                state.files = files;
            }
            // it was said; or it is between the removal and the creation of a file
            Err(error) if was_unreadable => tracing::debug!(%error, "serving the old certificate"),
            Err(error) => tracing::warn!(%error, "serving the old certificate"),
        }
        state.warn(&self.dir);
        state.shown.clone()
    }
}

impl State {
    /// Says once that the certificate ends soon, and once that it is over.
    fn warn(&mut self, dir: &Path) {
        let end = End::of(self.validity, SystemTime::now());
        let said = std::mem::replace(&mut self.end, end);
        let Some(Validity { not_after, .. }) = self.validity.filter(|_| end != said) else { return };
        let file = dir.join(CERTIFICATE);
        match end {
            End::Far => {}
            End::Soon => tracing::warn!(
                file = %file.display(), until = text(not_after), "the certificate ends soon, and no API server trusts it then; renew it"
            ),
            End::Over => tracing::warn!("{}", expired(dir, not_after)),
        }
    }
}

fn expired(dir: &Path, not_after: SystemTime) -> String {
    let (file, until) = (dir.join(CERTIFICATE), text(not_after));
    format!("the certificate {} ended at {until}, and no API server trusts it any more; renew it", file.display())
}

fn text(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time).map_or_else(|_| String::new(), |time| time.to_string())
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

    fn parse(&self, dir: &Path, provider: &CryptoProvider) -> Result<(CertifiedKey, Option<Validity>), Error> {
        let fault = |name, wanted, problem| Error::Parse { path: dir.join(name), wanted, problem };
        let no_certificate = |problem| fault(CERTIFICATE, "certificate", problem);
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.certificate).collect();
        let chain = chain.map_err(|problem| no_certificate(problem.to_string()))?;
        let first = chain.first().ok_or_else(|| no_certificate("there is no certificate in it".to_owned()))?;
        let first = x509_cert::Certificate::from_der(first).ok();
        let validity = first.map(|first| Validity::of(&first));
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|problem| fault(KEY, "private key without a passphrase", problem.to_string()))?;
        let pair = CertifiedKey::from_der(chain, key, provider)
            .map_err(|problem| Error::Pair { path: dir.join(CERTIFICATE), problem })?;
        Ok((pair, validity))
    }
}
