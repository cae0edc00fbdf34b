//! A new key, and the PKCS #10 request that it signs.

use std::str::FromStr;

use pem::{EncodeConfig, LineEnding, Pem};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use x509_cert::attr::Attributes;
use x509_cert::der::Encode as _;
use x509_cert::der::asn1::{Any, BitString, ObjectIdentifier};
use x509_cert::name::Name;
use x509_cert::request::{CertReq, CertReqInfo, Version};
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};

use crate::names::{AGENTS, agent};

const EC_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const ECDSA_WITH_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");

/// What the PEM text of a request calls it.
pub(crate) const REQUEST: &str = "CERTIFICATE REQUEST";
/// As other programs write PEM.
pub(crate) const LINES: EncodeConfig = EncodeConfig::new().set_line_ending(LineEnding::LF);

/// Both as PEM.
pub(crate) struct Key {
    pub(crate) private: String,
    pub(crate) request: String,
}

impl Key {
    /// For the certificate of a node's agent.
    pub(crate) fn of_agent(node: &str) -> Result<Self, String> {
        Self::new(&format!("CN={},O={AGENTS}", agent(node)), Attributes::default())
    }

    /// For this subject, in the form of RFC 4514.
    pub(crate) fn new(subject: &str, attributes: Attributes) -> Result<Self, String> {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let private = EcdsaKeyPair::generate_pkcs8(algorithm, &random)
            .map_err(|_| "cannot make a key: the system gives no random numbers".to_owned())?;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, private.as_ref(), &random)
            .map_err(|e| format!("cannot use the new key: {e}"))?;
        let problem = |e: x509_cert::der::Error| format!("cannot write the request of {subject}: {e}");
        let info = CertReqInfo {
            version: Version::V1,
            subject: Name::from_str(subject).map_err(problem)?,
            public_key: SubjectPublicKeyInfoOwned {
                algorithm: AlgorithmIdentifierOwned {
                    oid: EC_KEY,
                    parameters: Some(Any::encode_from(&P256).map_err(problem)?),
                },
                subject_public_key: BitString::from_bytes(key.public_key().as_ref()).map_err(problem)?,
            },
            attributes,
        };
        let signature = key
            .sign(&random, &info.to_der().map_err(problem)?)
            .map_err(|_| format!("cannot sign the request of {subject}"))?;
        let request = CertReq {
            info,
            algorithm: AlgorithmIdentifierOwned { oid: ECDSA_WITH_SHA256, parameters: None },
            signature: BitString::from_bytes(signature.as_ref()).map_err(problem)?,
        };
        let text = |kind: &str, der: &[u8]| pem::encode_config(&Pem::new(kind, der), LINES);
        Ok(Self {
            private: text("PRIVATE KEY", private.as_ref()),
            request: text(REQUEST, &request.to_der().map_err(problem)?),
        })
    }
}
