//! A certificate with its key, as an agent keeps it: whether it can be used, and when it is renewed. Pure.

use std::time::{Duration, SystemTime};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use crate::names::{AGENTS, agent};

/// It is renewed when this share of its life is over: the same as kubelets and ovn-kubernetes take, so that there is time for many
/// attempts. Random, so that nodes that started together do not renew together.
const EARLIEST: f64 = 0.7;
const LATEST: f64 = 0.9;

/// When a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Validity {
    pub(crate) not_before: SystemTime,
    pub(crate) not_after: SystemTime,
}

/// Reads a certificate and its key; fails if they are not those of this node's agent.
pub(crate) fn read(pem: &[u8], node: &str) -> Result<Validity, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let chain = chain.map_err(|e| format!("it is not PEM: {e}"))?;
    let first = chain.first().ok_or("there is no certificate in it")?;
    let certificate = Certificate::from_der(first).map_err(|e| format!("its certificate cannot be read: {e}"))?;
    let content = certificate.tbs_certificate();
    let mut subject: Vec<String> = content.subject().iter().map(ToString::to_string).collect();
    subject.sort();
    if subject != [format!("CN={}", agent(node)), format!("O={AGENTS}")] {
        return Err(format!("it is that of {}, not of the agent of node {node}", subject.join(", ")));
    }
    let validity = Validity::of(&certificate);
    let key = PrivateKeyDer::from_pem_slice(pem).map_err(|e| format!("there is no private key in it: {e}"))?;
    CertifiedKey::from_der(chain, key, &ring::default_provider())
        .map_err(|e| format!("its key is not that of its certificate: {e}"))?;
    Ok(validity)
}

impl Validity {
    pub(crate) fn of(certificate: &Certificate) -> Self {
        let validity = certificate.tbs_certificate().validity();
        Self { not_before: validity.not_before.to_system_time(), not_after: validity.not_after.to_system_time() }
    }

    /// Why it cannot be used at this time. That it begins later is no reason, as it is none for kubelets: the API server goes by its own
    /// clock, and another certificate would not begin earlier.
    pub(crate) fn fault(self, now: SystemTime) -> Option<String> {
        let ago = now.duration_since(self.not_after).ok()?;
        Some(format!("it expired {} s ago", ago.as_secs()))
    }

    /// How long the clock of this host is at least behind that of the signer.
    pub(crate) fn behind(self, now: SystemTime) -> Option<Duration> {
        self.not_before.duration_since(now).ok().filter(|behind| !behind.is_zero())
    }

    /// When to renew it. Signers date certificates back, so the time when it was stored counts, if it makes sense. It counts also if the
    /// certificate begins later: a host whose clock is behind sees the end later than the API server, by as much. `random` is from 0 to 1.
    pub(crate) fn renew_at(self, stored: SystemTime, random: f64) -> SystemTime {
        let began = if stored < self.not_after { stored } else { self.not_before };
        let life = self.not_after.duration_since(began.max(self.not_before)).unwrap_or_default();
        began + life.mul_f64(EARLIEST + (LATEST - EARLIEST) * random.clamp(0.0, 1.0))
    }
}

/// The pause after this many attempts that failed in a row.
pub(crate) fn pause(failures: u32) -> Duration {
    Duration::from_secs(1 << failures.saturating_sub(1).min(5)).min(Duration::from_secs(30))
}
