//! The client certificate of a node's agent: asked for with the rights of the kubelet, kept in a directory, and renewed with its own
//! rights before it ends.

use std::convert::Infallible;
use std::hash::{BuildHasher as _, RandomState};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use ovnkube_watch::{Access, Client, Verdict};
use tokio::time::{sleep, timeout};

use crate::kept::{Validity, pause, read};
use crate::key::Key;
use crate::names::{SIGNER, USAGES};
use crate::store;

/// What names of requests begin with; the API server adds a random end.
const PREFIX: &str = "csr-ovn-node-";
/// An approver and a signer take a second. People, who also may approve, take longer.
const USUALLY_WITHIN: Duration = Duration::from_secs(30);
/// Then the request is given up, as client-go does, and another one made.
const ISSUED_WITHIN: Duration = Duration::from_secs(15 * 60);
/// The clock is looked at so often: it may be set, or the host suspended.
const LOOK_EVERY: Duration = Duration::from_secs(20);
/// The least time from one certificate to the next, whatever times the signer and the file system give.
const LEAST: Duration = Duration::from_secs(5);

/// Whose certificate, and where it is kept.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub node: String,
    pub dir: PathBuf,
    /// How long it shall be valid; signers may shorten it.
    pub duration: Duration,
    /// The first request is made with these rights: the kubelet's.
    pub bootstrap: Access,
    /// Access with the certificate itself.
    pub own: Access,
}

/// The certificate of a node's agent.
#[derive(Debug)]
pub struct NodeCertificate {
    wanted: Wanted,
    /// Attempts to get one that failed in a row.
    failures: u32,
}

/// One that can be used now.
struct Usable {
    validity: Validity,
    stored: SystemTime,
}

impl NodeCertificate {
    pub fn new(wanted: Wanted) -> Self {
        Self { wanted, failures: 0 }
    }

    /// Waits until there is one that can be used: the one that was kept, or a new one.
    pub async fn ready(&mut self) {
        let dir = &self.wanted.dir;
        match self.usable() {
            Ok(_) => {
                return tracing::info!(file = %store::current(dir).display(), "using the certificate that was kept");
            }
            Err(None) => tracing::info!(dir = %dir.display(), "there is no certificate yet; asking for one"),
            Err(Some(why)) => {
                tracing::warn!(file = %store::current(dir).display(), %why, "cannot use the certificate; asking for another");
            }
        }
        while self.usable().is_err() {
            self.renew().await;
        }
    }

    /// Renews it in time, for ever.
    pub async fn keep(&mut self) -> Infallible {
        loop {
            match self.usable() {
                Ok(Usable { validity, stored }) => wait_until(validity.renew_at(stored, random())).await,
                Err(why) => {
                    let why = why.unwrap_or_else(|| "it is gone".to_owned());
                    tracing::warn!(%why, "cannot use the certificate any more; asking for another");
                }
            }
            while !self.renew().await {}
            sleep(LEAST).await;
        }
    }

    /// Asks for a new one and keeps it; says whether that succeeded, and waits a little if not.
    async fn renew(&mut self) -> bool {
        // the rights of the kubelet help if those of the certificate do not suffice
        let access = if self.usable().is_ok() && self.failures.is_multiple_of(2) {
            &self.wanted.own
        } else {
            &self.wanted.bootstrap
        };
        match self.ask(access).await {
            Ok(()) => {
                self.failures = 0;
                true
            }
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                tracing::warn!(%error, node = self.wanted.node, "no new certificate; trying again");
                sleep(pause(self.failures).mul_f64(0.5 + random() / 2.0)).await;
                false
            }
        }
    }

    /// Why there is none that can be used now; `None`: there is no file.
    fn usable(&self) -> Result<Usable, Option<String>> {
        let kept = store::read(&self.wanted.dir).map_err(|e| Some(format!("cannot read it: {e}")))?;
        let Some((pem, stored)) = kept else { return Err(None) };
        let validity = read(&pem, &self.wanted.node).map_err(Some)?;
        match validity.fault(SystemTime::now()) {
            Some(fault) => Err(Some(fault)),
            None => Ok(Usable { validity, stored }),
        }
    }

    async fn ask(&self, access: &Access) -> Result<(), String> {
        let Wanted { node, dir, duration, .. } = &self.wanted;
        let key = Key::of_agent(node)?;
        let api = Client::connect(access).await.map_err(|e| e.to_string())?;
        let spec = CertificateSigningRequestSpec {
            request: ByteString(key.request.into_bytes()),
            signer_name: SIGNER.to_owned(),
            usages: Some(USAGES.map(str::to_owned).into()),
            expiration_seconds: Some(i32::try_from(duration.as_secs()).unwrap_or(i32::MAX)),
            ..CertificateSigningRequestSpec::default()
        };
        let name = api.request_certificate(PREFIX, spec).await.map_err(|e| e.to_string())?;
        tracing::info!(name, "asked for a certificate");
        let chain = issued(&api, &name).await?;
        let pem = format!("{}\n{}", chain.trim_end(), key.private);
        let validity = read(pem.as_bytes(), node).map_err(|e| format!("cannot use the certificate of {name}: {e}"))?;
        let now = SystemTime::now();
        if let Some(behind) = validity.behind(now) {
            let seconds = behind.as_secs();
            tracing::warn!(
                name,
                seconds,
                "the clock of this host is behind that of the signer, or the signer's is ahead; correct it"
            );
        }
        if let Some(fault) = validity.fault(now) {
            return Err(format!("cannot use the certificate of {name}: {fault}"));
        }
        store::write(dir, pem.as_bytes()).map_err(|e| {
            format!(
                "cannot keep the certificate of {name} in {}: {e}; make cert-dir writable, with 100 kB free",
                dir.display()
            )
        })?;
        let until =
            jiff::Timestamp::try_from(validity.not_after).map_or_else(|_| String::new(), |until| until.to_string());
        tracing::info!(name, until, "have a new certificate");
        Ok(())
    }
}

/// The certificate, as PEM, that a request leads to.
async fn issued(api: &Client, name: &str) -> Result<String, String> {
    let mut answer = std::pin::pin!(api.follow_signing_requests("metadata.name", name, outcome));
    if let Ok(outcome) = timeout(USUALLY_WITHIN, &mut answer).await {
        return outcome;
    }
    tracing::warn!(
        name,
        "nobody has approved and signed the certificatesigningrequest yet: see that ovnkube identity runs, or run \
         kubectl certificate approve {name}; kube-controller-manager signs it"
    );
    timeout(ISSUED_WITHIN, answer).await.unwrap_or_else(|_| {
        Err(format!(
            "certificatesigningrequest {name} has no certificate after {} minutes",
            ISSUED_WITHIN.as_secs() / 60
        ))
    })
}

/// What a request has led to so far.
fn outcome(request: &CertificateSigningRequest) -> ControlFlow<Result<String, String>, Option<Verdict>> {
    let Some(status) = &request.status else { return ControlFlow::Continue(None) };
    if let Some(ByteString(pem)) = &status.certificate {
        let text = String::from_utf8(pem.clone());
        return ControlFlow::Break(text.map_err(|_| "the certificate is not PEM".to_owned()));
    }
    let failed = |kind: &str| matches!(kind, "Denied" | "Failed");
    match status.conditions.iter().flatten().find(|one| failed(&one.type_)) {
        None => ControlFlow::Continue(None),
        Some(condition) => ControlFlow::Break(Err(format!(
            "certificatesigningrequest {} is {}: {}: {}",
            request.metadata.name.as_deref().unwrap_or_default(),
            condition.type_,
            condition.reason.as_deref().unwrap_or_default(),
            condition.message.as_deref().unwrap_or_default()
        ))),
    }
}

async fn wait_until(when: SystemTime) {
    while let Some(left) = when.duration_since(SystemTime::now()).ok().filter(|left| !left.is_zero()) {
        sleep(left.min(LOOK_EVERY)).await;
    }
}

/// From 0 to 1.
fn random() -> f64 {
    // the keys of a new hasher are random: good enough to spread load
    (RandomState::new().hash_one(0_u8) >> 32) as f64 / f64::from(u32::MAX)
}
