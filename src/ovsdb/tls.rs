//! TLS as OVN uses it: both sides show certificates of one private CA, and names in them mean
//! nothing (they are common names like `ovnnb` on a server reached by address). So the chain is
//! checked and the name is not, unless one is pinned.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// The files of one TLS client, read again for every new connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub private_key: PathBuf,
    pub ca: PathBuf,
    /// Common name the server's certificate must have; any if none.
    pub common_name: Option<String>,
}

/// Why TLS cannot be set up from the files.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("read {path}: {reason}")]
    File { path: PathBuf, reason: String },
    #[error("use certificate {path} with key {key}: {reason}")]
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
        let verifier = ChainVerifier { roots, provider: Arc::clone(&provider), common_name: self.common_name.clone() };
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
        Ok(list) if list.is_empty() => Err(fail("no certificate in it".to_owned())),
        Ok(list) => Ok(list),
        Err(e) => Err(fail(e.to_string())),
    }
}

#[derive(Debug)]
struct ChainVerifier {
    roots: RootCertStore,
    provider: Arc<CryptoProvider>,
    common_name: Option<String>,
}

impl ServerCertVerifier for ChainVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let algorithms = self.provider.signature_verification_algorithms.all;
        let parsed = ParsedCertificate::try_from(end_entity)?;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, intermediates, now, algorithms)?;
        match &self.common_name {
            Some(name) if common_name(end_entity).as_deref() != Some(name) => {
                Err(CertificateError::NotValidForName.into())
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
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

/// The subject's common name: the sixth field of the certificate, or the fifth where the version
/// is left out.
fn common_name(cert: &[u8]) -> Option<String> {
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

/// Tag, content and what follows of the first DER element.
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
