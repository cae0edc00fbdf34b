//! TLS as OVN uses it: both sides show certificates of private CAs. The server's must be signed by our CA and be valid
//! for the address or host name that the server is reached by. Certificates that `ovs-pki` makes name neither: for
//! these, the name that they do have can be configured.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme,
};

/// The files of one TLS client, read again for every new connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub private_key: PathBuf,
    pub ca: PathBuf,
    /// Name that the server's certificate must have, as its subject or as an alternative name; `None`: the host of the
    /// remote.
    pub common_name: Option<String>,
}

/// Why TLS cannot be set up from the files.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("cannot read {path}: {reason}")]
    File { path: PathBuf, reason: String },
    #[error("cannot use certificate {path} with key {key}: {reason}")]
    Pair { path: PathBuf, key: PathBuf, reason: rustls::Error },
}

impl TlsFiles {
    /// Reads the files.
    pub(crate) fn load(&self) -> Result<ClientConfig, TlsError> {
        let file = |path: &PathBuf, reason: String| TlsError::File { path: path.clone(), reason };
        let chain = certificates(&self.certificate)?;
        let key =
            PrivateKeyDer::from_pem_file(&self.private_key).map_err(|e| file(&self.private_key, e.to_string()))?;
        let mut roots = RootCertStore::empty();
        for ca in certificates(&self.ca)? {
            roots.add(ca).map_err(|e| file(&self.ca, e.to_string()))?;
        }
        let provider = Arc::new(ring::default_provider());
        let name = self.common_name.clone();
        let verifier = ServerVerifier { roots, provider: Arc::clone(&provider), name };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|reason| self.pair(reason))?;
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_auth_cert(chain, key)
            .map_err(|reason| self.pair(reason))
    }

    fn pair(&self, reason: rustls::Error) -> TlsError {
        TlsError::Pair { path: self.certificate.clone(), key: self.private_key.clone(), reason }
    }
}

fn certificates(path: &PathBuf) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let fail = |reason: String| TlsError::File { path: path.clone(), reason };
    let all: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(|e| fail(e.to_string()))?.collect();
    match all {
        Ok(list) if list.is_empty() => Err(fail("there is no certificate in it".to_owned())),
        Ok(list) => Ok(list),
        Err(e) => Err(fail(e.to_string())),
    }
}

#[derive(Debug)]
struct ServerVerifier {
    roots: RootCertStore,
    provider: Arc<CryptoProvider>,
    /// Required instead of the host.
    name: Option<String>,
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let algorithms = self.provider.signature_verification_algorithms.all;
        let parsed = ParsedCertificate::try_from(end_entity)?;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, intermediates, now, algorithms)?;
        self.verify_name(end_entity, &parsed, host)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl ServerVerifier {
    fn verify_name(
        &self,
        cert: &CertificateDer<'_>,
        parsed: &ParsedCertificate<'_>,
        host: &ServerName<'_>,
    ) -> Result<(), rustls::Error> {
        let subject = common_name(cert);
        if self.name.is_some() && self.name == subject {
            return Ok(());
        }
        let wanted = self.name.clone().unwrap_or_else(|| host.to_str().into_owned());
        // what cannot be a host name is no alternative name either
        let verified = ServerName::try_from(wanted.as_str()).map(|name| verify_server_name(parsed, &name));
        let alternatives = match verified {
            Ok(Err(rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext {
                presented, ..
            }))) => presented,
            Ok(verified) => return verified,
            Err(_) => Vec::new(),
        };
        let names = subject.into_iter().chain(alternatives.iter().map(|name| plain(name).to_owned())).collect();
        Err(CertificateError::Other(OtherError(Arc::new(WrongName { wanted, names }))).into())
    }
}

/// The certificate is for another name.
#[derive(Debug)]
pub(crate) struct WrongName {
    pub(crate) wanted: String,
    pub(crate) names: Vec<String>,
}

impl std::error::Error for WrongName {}

impl fmt::Display for WrongName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        let names: Vec<String> = self.names.iter().take(SHOWN).map(|name| format!("{name:?}")).collect();
        let more = if self.names.len() > SHOWN { ", ..." } else { "" };
        let names = if names.is_empty() { "no name".to_owned() } else { names.join(", ") + more };
        write!(
            f,
            "it contains {names}, but not {:?}; give the server one with that subjectAltName, or set \
             cert-common-name to the name that it should have",
            self.wanted
        )
    }
}

/// The name in `DnsName("db.example")` or `IpAddress(10.0.0.1)`.
fn plain(presented: &str) -> &str {
    let name = presented.split_once('(').map_or(presented, |(_, name)| name);
    name.strip_suffix(')').unwrap_or(name).trim_matches('"')
}

/// Why a handshake failed, and what to do about it.
pub(crate) fn said(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(error) => {
            format!("the server's certificate is refused: {}", of_server(error))
        }
        rustls::Error::AlertReceived(alert) => of_client(*alert),
        other => other.to_string(),
    }
}

fn of_server(error: &CertificateError) -> String {
    match error {
        CertificateError::Other(OtherError(wrong)) => wrong.to_string(),
        CertificateError::UnknownIssuer => "it is not of the authority in client-cacert".to_owned(),
        CertificateError::ExpiredContext { time, not_after } => {
            format!("it ended {} ago", span(time.as_secs().saturating_sub(not_after.as_secs())))
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            format!("it is not valid yet, but in {}", span(not_before.as_secs().saturating_sub(time.as_secs())))
        }
        CertificateError::InvalidPurposeContext { .. } => {
            "it is not one for servers: its extendedKeyUsage lacks serverAuth".to_owned()
        }
        other => other.to_string(),
    }
}

/// The server's alert says which kind of fault it has found, and no more.
fn of_client(alert: AlertDescription) -> String {
    let why = match alert {
        AlertDescription::UnknownCA => "it is not of an authority that the server trusts",
        AlertDescription::CertificateExpired => "it has ended",
        AlertDescription::UnsupportedCertificate => "it is not one for clients: its extendedKeyUsage lacks clientAuth",
        AlertDescription::BadCertificate => "it is damaged, or not valid yet",
        AlertDescription::CertificateRevoked => "it is revoked",
        AlertDescription::CertificateUnknown | AlertDescription::AccessDenied => "its log says why",
        other => return format!("the server ends the handshake: {other:?}"),
    };
    format!("the server refuses the certificate in client-cert: {why}")
}

fn span(seconds: u64) -> String {
    const DAY: u64 = 24 * 60 * 60;
    if seconds < 2 * DAY { format!("{seconds} seconds") } else { format!("{} days", seconds / DAY) }
}

/// The subject's common name: the sixth field of the certificate, or the fifth if the version is left out.
pub(crate) fn common_name(cert: &[u8]) -> Option<String> {
    const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
    let (_, certificate, _) = element(cert)?;
    let (_, mut fields, _) = element(certificate)?;
    // [version] serial signature issuer validity subject
    if element(fields)?.0 == 0xa0 {
        fields = element(fields)?.2;
    }
    for _ in 0..4 {
        fields = element(fields)?.2;
    }
    let (_, mut names, _) = element(fields)?;
    let mut found = None;
    while let Some((_, set, rest)) = element(names) {
        let (_, attribute, _) = element(set)?;
        let (_, oid, value) = element(attribute)?;
        if oid == COMMON_NAME {
            found = String::from_utf8(element(value)?.1.to_vec()).ok();
        }
        names = rest;
    }
    found
}

/// Tag and content of the first DER element, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = der.split_first_chunk::<2>()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0, |n, b| n << 8 | usize::from(*b)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}
