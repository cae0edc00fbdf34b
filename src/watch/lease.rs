//! The Lease object: the fields that matter, and the requests for it.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{JSON, MERGE_PATCH, query_value};
use crate::patch::merge_patch;
use crate::{Client, Error, LeaseSettings};

/// Annotation that distinguishes processes of the same name.
const INSTANCE: &str = "ovnkube.io/holder-instance";
/// Holder of a recreated lease, until it is known that no process holds the deleted one. No host has this name.
const UNKNOWN: &str = "(unknown)";

/// A lease as the API returns it.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) struct Lease {
    pub(crate) metadata: LeaseMeta,
    spec: LeaseSpec,
    /// With what others have written there.
    whole: Value,
}

impl TryFrom<Value> for Lease {
    type Error = serde_json::Error;

    fn try_from(whole: Value) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Parts {
            metadata: LeaseMeta,
            #[serde(default)]
            spec: LeaseSpec,
        }
        let Parts { metadata, spec } = Parts::deserialize(&whole)?;
        Ok(Self { metadata, spec, whole })
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LeaseMeta {
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaseSpec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<u32>,
    renew_time: Option<String>,
    lease_transitions: Option<i64>,
}

impl Lease {
    pub(crate) fn holder(&self) -> &str {
        self.spec.holder_identity.as_deref().unwrap_or_default()
    }

    /// Whether it names no holder, or an unknown one.
    pub(crate) fn is_unclaimed(&self) -> bool {
        matches!(self.holder(), "" | UNKNOWN)
    }

    /// The time of the last renewal, as its writer wrote it.
    pub(crate) fn renewed(&self) -> &str {
        self.spec.renew_time.as_deref().unwrap_or_default()
    }

    /// How often it has gone from one holder to another.
    pub(crate) fn transitions(&self) -> i64 {
        self.spec.lease_transitions.unwrap_or_default()
    }

    /// How long the holder has written that it counts on the lease, in seconds.
    pub(crate) fn seconds(&self) -> u32 {
        self.spec.lease_duration_seconds.unwrap_or_default()
    }
}

/// Names a process for the annotation: the host's start, without dashes, and a number of chance.
pub(crate) fn instance() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let boot: String = boot.chars().filter(char::is_ascii_hexdigit).collect();
    format!("{boot}-{:016x}", RandomState::new().hash_one(std::process::id()))
}

/// The host's start in the name of a process. Earlier releases did not write it.
fn boot_of(instance: &str) -> Option<&str> {
    instance.split_once('-').map(|(boot, _)| boot).filter(|boot| !boot.is_empty())
}

/// A process and the lease that it wants.
pub(crate) struct Candidate {
    pub(crate) settings: LeaseSettings,
    /// Marks the lease as held by this process, not by another of the same name.
    pub(crate) instance: String,
    /// The account may replace the lease, but not patch it: those of ovn-kubernetes.
    pub(crate) replaces: AtomicBool,
}

impl Candidate {
    /// Whether this process holds the lease.
    pub(crate) fn holds(&self, lease: &Lease) -> bool {
        let instance = lease.metadata.annotations.get(INSTANCE);
        lease.holder() == self.settings.identity && instance == Some(&self.instance)
    }

    /// Whether the holder's process ran on this host, since its last start: one that was killed, or a second one of the same name here.
    pub(crate) fn ran_here(&self, lease: &Lease) -> bool {
        let boot = lease.metadata.annotations.get(INSTANCE).and_then(|instance| boot_of(instance));
        boot.is_some() && boot == boot_of(&self.instance)
    }

    pub(crate) async fn read(&self, client: &Client) -> Result<Lease, Error> {
        let action = format!("read lease {}", self.settings.name);
        client.exchange(&action, Method::GET, &self.path(), JSON, Vec::new()).await
    }

    /// Writes our name and the time, in the form of [`now`], into the lease, if it has not changed since it was read.
    pub(crate) async fn take(&self, client: &Client, lease: &Lease, time: &str) -> Result<Lease, Error> {
        let mut spec = json!({
            "holderIdentity": self.settings.identity,
            "leaseDurationSeconds": self.settings.lease.as_secs().max(1),
            "renewTime": time,
        });
        if lease.holder() != self.settings.identity {
            spec["acquireTime"] = json!(time);
            spec["leaseTransitions"] = json!(lease.transitions().saturating_add(1));
        }
        let metadata = json!({
            "resourceVersion": lease.metadata.resource_version,
            "annotations": { INSTANCE: self.instance },
        });
        let action = format!("renew lease {}", self.settings.name);
        self.change(client, &action, lease, &json!({ "metadata": metadata, "spec": spec })).await
    }

    /// Creates a missing lease without a holder: the request may arrive at any time later, and must not make a leader.
    pub(crate) async fn make(&self, client: &Client, seconds: u32) -> Result<Lease, Error> {
        let LeaseSettings { namespace, name, .. } = &self.settings;
        let body = bytes(&json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": name, "namespace": namespace },
            "spec": { "holderIdentity": UNKNOWN, "leaseDurationSeconds": seconds, "renewTime": now(client) },
        }));
        let action = format!("create lease {namespace}/{name}");
        client.exchange(&action, Method::POST, &self.all(), JSON, body).await.map_err(|e| match e {
            Error::Gone { action, problem } => {
                Error::failed(&action, format!("{problem}; kubectl apply -f dist/yaml makes namespace and accounts"))
            }
            other => other,
        })
    }

    /// Removes our name from the lease. Reads it first: a renewal may have been on its way.
    pub(crate) async fn give_back(&self, client: &Client) -> Result<(), Error> {
        let lease = match self.read(client).await {
            Ok(lease) if self.holds(&lease) => lease,
            Ok(_) | Err(Error::Gone { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        let body = json!({
            "metadata": { "resourceVersion": lease.metadata.resource_version, "annotations": { INSTANCE: null } },
            "spec": { "holderIdentity": null, "leaseDurationSeconds": 1 },
        });
        let action = format!("release lease {}", self.settings.name);
        self.change(client, &action, &lease, &body).await.map(|_| ())
    }

    /// Applies a merge patch. Its `resourceVersion` is that of the lease.
    async fn change(&self, client: &Client, action: &str, lease: &Lease, patch: &Value) -> Result<Lease, Error> {
        if !self.replaces.load(Ordering::Relaxed) {
            match client.exchange(action, Method::PATCH, &self.path(), MERGE_PATCH, bytes(patch)).await {
                Err(Error::Forbidden { .. }) => {}
                changed => return changed,
            }
        }
        let mut whole = lease.whole.clone();
        merge_patch(&mut whole, patch);
        let replaced = client.exchange(action, Method::PUT, &self.path(), JSON, bytes(&whole)).await?;
        self.replaces.store(true, Ordering::Relaxed);
        Ok(replaced)
    }

    fn all(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", query_value(&self.settings.namespace))
    }

    fn path(&self) -> String {
        format!("{}/{}", self.all(), query_value(&self.settings.name))
    }
}

fn bytes(body: &Value) -> Vec<u8> {
    body.to_string().into_bytes()
}

/// As the API server writes it back.
pub(crate) fn now(client: &Client) -> String {
    client.wall_time().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
