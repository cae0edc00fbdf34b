//! Values that the whole cluster must agree on. The master with the lease keeps them in a ConfigMap for node agents.
//!
//! ```text
//!  master's settings ──▶ ConfigMap ovnkube-cluster ──▶ agent: overrides its own
//! ```
//!
//! A master writes them before it gives out subnets, and again when somebody has changed them. What an agent does with them: `node/cluster.rs`.

use std::fmt::Display;
use std::time::Duration;

use ovnkube_apply::{MayWrite, northd_release};
use ovnkube_config::Settings;
use ovnkube_model::keys;
use ovnkube_watch::{Client, Data};
use tokio::time::{Instant, sleep, timeout};
use tracing::warn;

pub(crate) const NAME: &str = "ovnkube-cluster";
pub(crate) const CLUSTER_SUBNETS: &str = "cluster-subnets";
pub(crate) const SERVICE_CIDRS: &str = "service-cidrs";
pub(crate) const JOIN_SUBNETS: &str = "join-subnets";
/// The release of the master that wrote them.
pub(crate) const VERSION: &str = "version";
/// This release.
pub(crate) const OURS: &str = env!("CARGO_PKG_VERSION");
/// For one answer of the API server.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// For one attempt to write the config map, which is read first.
const WRITTEN_WITHIN: Duration = ANSWER_WITHIN.saturating_mul(2);
const TRIES: u32 = 3;
pub(crate) const TRY_AGAIN: Duration = Duration::from_secs(1);
/// So long an edit by hand lasts.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// How often what northd has written is looked at. It is in memory.
const NORTHD_AGAIN: Duration = Duration::from_secs(5);

pub(crate) fn values(settings: &Settings) -> Data {
    let gateway = &settings.gateway;
    let join = format!("{},{}", gateway.v4_join_subnet, gateway.v6_join_subnet);
    let values = [
        (CLUSTER_SUBNETS, list(&settings.default.cluster_subnets)),
        (SERVICE_CIDRS, list(&settings.kubernetes.service_cidrs)),
        (JOIN_SUBNETS, join),
    ];
    values.map(|(key, value)| (key.to_owned(), value)).into()
}

fn list(all: &[impl Display]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Publishes this master's values, which agents need with their subnets. Without a reply it gives up for now, and [`keep`] goes on.
pub(crate) async fn publish(api: &Client, settings: &Settings, may_write: &MayWrite) {
    for _ in 0..TRIES {
        if write(api, settings, may_write).await {
            return;
        }
        sleep(TRY_AGAIN).await;
    }
}

/// Keeps them published while it leads: somebody may edit or delete the config map.
pub(crate) async fn keep(api: &Client, settings: &Settings, may_write: MayWrite) {
    loop {
        sleep(LOOK_AGAIN).await;
        write(api, settings, &may_write).await;
    }
}

/// Keeps the release of northd published while it leads: nodes need to know it while the two are updated.
pub(crate) async fn keep_northd(api: &Client, settings: &Settings, may_write: MayWrite, nb: &ovnkube_ovsdb::Client) {
    let namespace = &settings.kubernetes.ovn_config_namespace;
    let (mut written, mut at) = (None, Instant::now());
    loop {
        let release = northd_release(&nb.cache()).map(|release| release.to_string());
        if let Some(release) = release.filter(|release| written.as_ref() != Some(release) || at.elapsed() > LOOK_AGAIN)
        {
            let data = Data::from([(keys::NORTHD_RELEASE.to_owned(), release.clone())]);
            at = Instant::now();
            written = match put(api, namespace, &data, &may_write).await {
                // a right that is missing somebody may give: it is written with the next look
                Ok(_) | Err(NotWritten::Forbidden) => Some(release),
                Err(NotWritten::Failed) => None,
            };
        }
        sleep(NORTHD_AGAIN).await;
    }
}

/// Why keys of the config map were not written. It is logged.
#[derive(PartialEq, Eq)]
pub(crate) enum NotWritten {
    Forbidden,
    Failed,
}

/// Writes keys of the config map that are missing or other. Returns all that it held before.
pub(crate) async fn put(api: &Client, namespace: &str, data: &Data, may_write: &MayWrite) -> Result<Data, NotWritten> {
    match timeout(WRITTEN_WITHIN, api.set_config_map(namespace, NAME, data, &**may_write)).await {
        Ok(Ok(before)) => return Ok(before),
        // already logged
        Ok(Err(error)) if error.is_forbidden() => return Err(NotWritten::Forbidden),
        Ok(Err(error)) => warn!(%error, "trying again"),
        Err(_) => warn!(namespace, config_map = NAME, "cannot write the config map: no answer; trying again"),
    }
    Err(NotWritten::Failed)
}

/// Writes the values where they are missing or other. False: to be tried again soon.
async fn write(api: &Client, settings: &Settings, may_write: &MayWrite) -> bool {
    let (namespace, values) = (&settings.kubernetes.ovn_config_namespace, values(settings));
    let mut want = values.clone();
    want.insert(VERSION.to_owned(), OURS.to_owned());
    match put(api, namespace, &want, may_write).await {
        Ok(before) => {
            for (key, now) in &values {
                if let Some(was) = before.get(key).filter(|was| *was != now) {
                    warn!(
                        "{key} of the cluster was {was} and is {now} now (config map {namespace}/{NAME}): agents take it \
                         when they start"
                    );
                }
            }
            true
        }
        Err(why) => why == NotWritten::Forbidden || !may_write(),
    }
}
