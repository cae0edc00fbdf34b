//! The lease that says who may write.
//!
//! Only one process at a time holds it. The holder renews it every [`LeaseSettings::retry`]; another
//! takes it when it has not seen it change for [`LeaseSettings::lease`] on its own clock, so neither
//! the wall clock nor its steps count. The holder counts from the moment it *sent* its last renewal
//! that got through, and only for the shorter [`LeaseSettings::renew`]: what it writes while
//! [`Leader::is_leader_now`] has two seconds to arrive before anybody else can write.
//!
//! ```text
//!  holder     renewal sent ├──────── may write ────────┤ 8 s
//!  others        └─▶ seen  ├──────────── wait ─────────────────┤ 10 s  take it
//! ```
//!
//! A process that was killed and started again finds the lease in its own name, but marked by another
//! instance. It waits only as long as a living one could leave the lease alone, 2.5 s: one that goes on
//! renewing it is a second process under the same name, and keeps the lease.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::backoff::between;
use crate::client::{JSON, MERGE_PATCH, query_value};
use crate::{Client, Error};

/// Tells processes of one name apart.
const INSTANCE: &str = "ovnkube.io/holder-instance";
/// Renewals under our name that show another process of it; one may have been on its way when an
/// earlier run of ours was killed.
const TWIN: u32 = 2;
/// A process that was told to stop waits no longer for an API server that does not answer.
const RELEASE_WITHIN: Duration = Duration::from_millis(1500);

/// Which lease, who wants it, and its times.
#[derive(Debug, Clone)]
pub struct LeaseSettings {
    pub namespace: String,
    pub name: String,
    /// Names this process. The lease found in this name is taken as soon as nobody renews it, so that
    /// a restart needs no long wait.
    pub identity: String,
    /// How long others leave an unchanged lease alone.
    pub lease: Duration,
    /// How long the holder may write after it sent a renewal.
    pub renew: Duration,
    /// Time between renewals, or between looks at somebody else's lease.
    pub retry: Duration,
}

impl LeaseSettings {
    /// 10 s, 8 s and 2 s in the namespace `ovn-kubernetes`.
    pub fn new(name: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            namespace: "ovn-kubernetes".into(),
            name: name.into(),
            identity: identity.into(),
            lease: Duration::from_secs(10),
            renew: Duration::from_secs(8),
            retry: Duration::from_secs(2),
        }
    }
}

/// Tells whether this process may write. Clones tell the same.
#[derive(Debug, Clone)]
pub struct Leader {
    claim: watch::Receiver<Claim>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Claim {
    holder: String,
    /// Until when this process may write.
    until: Option<Instant>,
}

/// The task that holds or seeks the lease.
#[derive(Debug)]
pub struct LeaderTask {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Leader {
    /// Seeks the lease from now on.
    pub fn run(client: &Client, settings: LeaseSettings) -> (Self, LeaderTask) {
        let (publish, claim) = watch::channel(Claim::default());
        let (stop, stopped) = oneshot::channel();
        let instance = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
        let client = client.clone();
        let election = Election { client, settings, instance, publish, mine: None, seen: None, looked: false, twin: 0 };
        (Self { claim }, LeaderTask { stop, task: tokio::spawn(election.run(stopped)) })
    }

    /// Whether a write may be sent now.
    pub fn is_leader_now(&self) -> bool {
        self.remaining().is_some()
    }

    /// How long writes may be sent without another renewal; `None` if not at all.
    pub fn remaining(&self) -> Option<Duration> {
        let left = self.claim.borrow().until?.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Who holds the lease, as far as is known.
    pub fn holder(&self) -> String {
        self.claim.borrow().holder.clone()
    }

    /// Waits until this process may write.
    pub async fn elected(&mut self) {
        while !self.is_leader_now() {
            if self.claim.changed().await.is_err() {
                // nobody seeks the lease any more
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until this process may not write any more.
    pub async fn lost(&mut self) {
        while let Some(left) = self.remaining() {
            tokio::select! {
                () = sleep(left) => {}
                changed = self.claim.changed() => if changed.is_err() { sleep(left).await },
            }
        }
    }
}

impl LeaderTask {
    /// Gives the lease back, so that another takes it at once. To be called when nothing writes any
    /// more.
    pub async fn release(self) {
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

/// A lease as the API has it.
#[derive(Debug, Clone, Default, Deserialize)]
struct Lease {
    metadata: LeaseMeta,
    #[serde(default)]
    spec: LeaseSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LeaseMeta {
    resource_version: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaseSpec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<u32>,
    lease_transitions: Option<i64>,
    renew_time: Option<String>,
}

impl Lease {
    fn holder(&self) -> &str {
        self.spec.holder_identity.as_deref().unwrap_or_default()
    }
}

struct Election {
    client: Client,
    settings: LeaseSettings,
    /// Marks the lease as held by this process and no other of its name.
    instance: String,
    publish: watch::Sender<Claim>,
    /// The lease as we wrote it last; `None` when it is not ours.
    mine: Option<Lease>,
    /// The version of somebody else's lease, and when it may be taken if it stays so.
    seen: Option<(String, Instant)>,
    /// Whether the lease was ours or somebody's before.
    looked: bool,
    /// How often another process was seen to renew the lease under our name.
    twin: u32,
}

impl Election {
    async fn run(mut self, stopped: oneshot::Receiver<()>) {
        let stop = async {
            if stopped.await.is_err() {
                // a handle that is dropped does not stop the election
                std::future::pending::<()>().await;
            }
        };
        tokio::pin!(stop);
        loop {
            let round = async {
                let pause = self.step().await;
                sleep(pause).await;
            };
            tokio::select! {
                () = round => {}
                () = &mut stop => return self.release().await,
            }
        }
    }

    /// One renewal, or one look at somebody else's lease; how long to wait then is returned.
    async fn step(&mut self) -> Duration {
        // two attempts fit into the time a renewal has
        let limit = self.settings.renew / 2;
        match timeout(limit, self.renew_or_seek()).await {
            Ok(Ok(())) => {}
            Ok(Err(error @ Error::Conflict { .. })) => tracing::debug!("{error}; another was faster"),
            Ok(Err(error)) => tracing::warn!("{error}; trying again"),
            Err(_) => tracing::warn!(
                "renew lease {}: no answer within {} ms; trying again",
                self.settings.name,
                limit.as_millis()
            ),
        }
        let retry = self.settings.retry;
        let Some((_, free_at)) = &self.seen else { return retry };
        free_at.saturating_duration_since(Instant::now()).clamp(retry / 10, between(retry, retry * 6 / 5))
    }

    async fn renew_or_seek(&mut self) -> Result<(), Error> {
        if let Some(mine) = self.mine.clone() {
            match self.take(&mine).await {
                // somebody else wrote it, or it was deleted
                Err(Error::Conflict { .. } | Error::Gone { .. }) => self.mine = None,
                result => return result,
            }
        }
        let action = format!("read lease {}", self.settings.name);
        match self.client.exchange::<Lease>(&action, Method::GET, &self.path(), JSON, Vec::new()).await {
            Ok(lease) => self.seek(lease).await,
            Err(Error::Gone { .. }) => self.create().await,
            Err(error) => Err(error),
        }
    }

    async fn seek(&mut self, lease: Lease) -> Result<(), Error> {
        let now = Instant::now();
        let version = &lease.metadata.resource_version;
        let known = self.seen.as_ref().filter(|(known, _)| known == version);
        let free_at = known.map_or_else(|| now + self.wait(&lease), |(_, free_at)| *free_at);
        if lease.holder().is_empty() || self.holds(&lease) || now >= free_at {
            return self.take(&lease).await;
        }
        let is_changed = known.is_none() && self.seen.is_some();
        self.seen = Some((version.clone(), free_at));
        self.looked = true;
        if is_changed && lease.holder() == self.settings.identity {
            self.meet_twin();
        }
        self.publish.send_replace(Claim { holder: lease.holder().to_owned(), until: None });
        Ok(())
    }

    /// Somebody renewed the lease under our name.
    fn meet_twin(&mut self) {
        let LeaseSettings { name, identity, .. } = &self.settings;
        self.twin = self.twin.saturating_add(1);
        if self.twin == TWIN {
            tracing::error!(
                "take lease {name}: another process that is called {identity} too renews it; stop it or rename one"
            );
        }
    }

    /// How long a lease that was just seen changed is left alone.
    fn wait(&self, lease: &Lease) -> Duration {
        let LeaseSettings { identity, renew, retry, .. } = &self.settings;
        if lease.holder() != identity || self.twin >= TWIN {
            // the holder's own word on how long it counts on the lease
            let word = lease.spec.lease_duration_seconds.map(|s| Duration::from_secs(s.into()));
            return word.unwrap_or_default().max(self.settings.lease);
        }
        // an earlier run of ours had to stop writing long ago; later looks do without the wall clock
        let renewed: Option<jiff::Timestamp> = lease.spec.renew_time.as_ref().and_then(|time| time.parse().ok());
        let age = renewed.and_then(|at| Duration::try_from(jiff::Timestamp::now().duration_since(at)).ok());
        if !self.looked && age.is_some_and(|age| age > *renew) { Duration::ZERO } else { *retry * 5 / 4 }
    }

    /// Whether the lease is this very process's.
    fn holds(&self, lease: &Lease) -> bool {
        let instance = lease.metadata.annotations.get(INSTANCE);
        lease.holder() == self.settings.identity && instance == Some(&self.instance)
    }

    /// Writes our name and the time into the lease, if nobody has changed it since it was read.
    async fn take(&mut self, lease: &Lease) -> Result<(), Error> {
        let began = Instant::now();
        let mut body = self.body(lease);
        body["metadata"] = json!({
            "resourceVersion": lease.metadata.resource_version,
            "annotations": { INSTANCE: self.instance },
        });
        let action = format!("renew lease {}", self.settings.name);
        let body = body.to_string().into_bytes();
        let written = self.client.exchange(&action, Method::PATCH, &self.path(), MERGE_PATCH, body).await?;
        self.won(written, began);
        Ok(())
    }

    async fn create(&mut self) -> Result<(), Error> {
        let began = Instant::now();
        let LeaseSettings { namespace, name, .. } = &self.settings;
        let mut body = self.body(&Lease::default());
        body["metadata"] = json!({ "name": name, "namespace": namespace, "annotations": { INSTANCE: self.instance } });
        let action = format!("create lease {namespace}/{name}");
        let body = body.to_string().into_bytes();
        let written =
            self.client.exchange(&action, Method::POST, &self.all(), JSON, body).await.map_err(|e| match e {
                Error::Gone { action, problem } => Error::failed(
                    &action,
                    format!("{problem}; kubectl apply -f dist/yaml makes namespace and accounts"),
                ),
                other => other,
            })?;
        self.won(written, began);
        Ok(())
    }

    fn won(&mut self, lease: Lease, began: Instant) {
        let identity = &self.settings.identity;
        if self.mine.is_none() {
            tracing::info!("{identity} holds lease {}", self.settings.name);
        }
        self.mine = Some(lease);
        (self.seen, self.looked, self.twin) = (None, true, 0);
        self.publish.send_replace(Claim { holder: identity.clone(), until: Some(began + self.settings.renew) });
    }

    /// The lease with our name in it.
    fn body(&self, before: &Lease) -> Value {
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
        let transitions = before.spec.lease_transitions.unwrap_or_default();
        let mut spec = json!({
            "holderIdentity": self.settings.identity,
            "leaseDurationSeconds": self.settings.lease.as_secs().max(1),
            "renewTime": now,
        });
        if before.holder() != self.settings.identity {
            spec["acquireTime"] = json!(now);
            spec["leaseTransitions"] = json!(transitions + 1);
        }
        json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec })
    }

    async fn release(self) {
        self.publish.send_replace(Claim::default());
        match timeout(RELEASE_WITHIN, self.give_back()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("{error}; others wait until the lease runs out"),
            Err(_) => tracing::warn!(
                "release lease {}: no answer within {} ms; others wait until it runs out",
                self.settings.name,
                RELEASE_WITHIN.as_millis()
            ),
        }
    }

    /// Takes our name out of the lease. It is read first: a renewal may have been on its way.
    async fn give_back(&self) -> Result<(), Error> {
        let action = format!("release lease {}", self.settings.name);
        let path = self.path();
        let lease = match self.client.exchange::<Lease>(&action, Method::GET, &path, JSON, Vec::new()).await {
            Ok(lease) if self.holds(&lease) => lease,
            Ok(_) | Err(Error::Gone { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        let body = json!({
            "metadata": { "resourceVersion": lease.metadata.resource_version, "annotations": { INSTANCE: null } },
            "spec": { "holderIdentity": null, "leaseDurationSeconds": 1 },
        });
        self.client.send(&action, Method::PATCH, &path, MERGE_PATCH, body.to_string().into_bytes()).await
    }

    fn all(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", query_value(&self.settings.namespace))
    }

    fn path(&self) -> String {
        format!("{}/{}", self.all(), query_value(&self.settings.name))
    }
}
