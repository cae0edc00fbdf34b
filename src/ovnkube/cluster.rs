//! Values that the whole cluster must agree on. The master with the lease keeps them in a ConfigMap for node agents.
//!
//! ```text
//!  master's settings ──▶ ConfigMap ovnkube-cluster ──▶ agent: overrides its own
//! ```
//!
//! An agent takes the values at its start and keeps them, since running pods are not readdressed. Nothing depends on
//! them until the own Node has subnets. So an agent that found none before, or got no reply, asks once more then, and
//! starts over if they differ: a master writes them before it gives out subnets.

use std::fmt::Display;
use std::time::Duration;

use ovnkube_config::values::FromText;
use ovnkube_config::{ClusterSubnet, Settings};
use ovnkube_watch::{Client, Data, Leader};
use tokio::time::{sleep, timeout};
use tracing::warn;

const NAME: &str = "ovnkube-cluster";
const CLUSTER_SUBNETS: &str = "cluster-subnets";
const SERVICE_CIDRS: &str = "service-cidrs";
const JOIN_SUBNETS: &str = "join-subnets";
/// Longest value that is accepted, bytes.
const LONGEST: usize = 4096;
/// For one attempt of the master to write, or of an agent to read.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
const TRIES: u32 = 3;
/// An agent whose Node has subnets waits no longer: perhaps only ConfigMaps cannot be read.
const PATIENCE: Duration = Duration::from_secs(30);
const TRY_AGAIN: Duration = Duration::from_secs(1);

fn values(settings: &Settings) -> Data {
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

/// Publishes this master's values while it leads. Without a reply it gives up for now: agents keep what they have.
pub(crate) async fn publish(api: &Client, settings: &Settings, leader: &Leader) {
    let (namespace, want) = (&settings.kubernetes.ovn_config_namespace, values(settings));
    for _ in 0..TRIES {
        if !leader.is_leader_now() {
            return;
        }
        match timeout(ANSWER_WITHIN, api.set_config_map(namespace, NAME, &want)).await {
            Ok(Ok(before)) => {
                for (key, now) in &want {
                    if let Some(was) = before.get(key).filter(|was| *was != now) {
                        warn!(
                            "{key} of the cluster was {was} and is {now} now (config map {namespace}/{NAME}): agents take it \
                             when they start"
                        );
                    }
                }
                return;
            }
            // already logged
            Ok(Err(error)) if error.is_forbidden() => return,
            Ok(Err(error)) => warn!(%error, "trying again"),
            Err(_) => warn!(namespace, config_map = NAME, "cannot write the config map: no answer; trying again"),
        }
        sleep(TRY_AGAIN).await;
    }
    warn!(
        namespace,
        config_map = NAME,
        "cannot write the config map until the lease is won again; agents go on with what they have"
    );
}

/// The cluster's values, as soon as the API server replies; empty if there are none or they cannot be read.
async fn ask(api: &Client, settings: &Settings) -> Data {
    let namespace = &settings.kubernetes.ovn_config_namespace;
    loop {
        match timeout(ANSWER_WITHIN, api.config_map(namespace, NAME)).await {
            Ok(Ok(data)) => return data,
            Ok(Err(error)) if error.is_retryable() => warn!(%error, "trying again"),
            Ok(Err(error)) => {
                // a forbidden request is already logged
                if !error.is_forbidden() {
                    warn!(%error, "using this host's own settings");
                }
                return Data::new();
            }
            Err(_) => warn!(namespace, config_map = NAME, "cannot read the config map: no answer; trying again"),
        }
        sleep(TRY_AGAIN).await;
    }
}

/// The same, or empty if that takes long: nothing new is set up without the API server, but what runs must be served.
pub(crate) async fn ask_at_start(api: &Client, settings: &Settings) -> Data {
    timeout(ANSWER_WITHIN, ask(api, settings)).await.unwrap_or_default()
}

/// The cluster's values if they differ from these settings; to be asked before an agent acts on its own.
pub(crate) async fn ask_for_others(api: &Client, settings: &Settings) -> Option<Data> {
    let Ok(cluster) = timeout(PATIENCE, ask(api, settings)).await else {
        warn!(config_map = NAME, "cannot read the config map; using this host's own settings");
        return None;
    };
    differs(settings, &cluster).then_some(cluster)
}

fn differs(settings: &Settings, cluster: &Data) -> bool {
    values(settings).iter().any(|(key, own)| cluster.get(key).is_some_and(|value| value != own))
}

/// An agent's settings with the cluster's values in place of its own.
pub(crate) fn taken(settings: &Settings, cluster: &Data) -> Settings {
    let mut taken = settings.clone();
    for (key, own) in values(settings) {
        let Some(value) = cluster.get(&key).filter(|value| **value != own) else { continue };
        match take(&mut taken, &key, value) {
            Ok(()) => {
                warn!(
                    "{key} of the cluster is {value}, of this host {own}: using the cluster's value; remove the setting here"
                );
            }
            Err(error) => {
                warn!(key, cluster = value, own, %error, "cannot use the cluster's value; using this host's");
            }
        }
    }
    taken
}

fn take(settings: &mut Settings, key: &str, value: &str) -> Result<(), String> {
    if value.len() > LONGEST {
        return Err("it is too long".to_owned());
    }
    match key {
        CLUSTER_SUBNETS => {
            let subnets = Vec::<ClusterSubnet>::from_text(value)?;
            if subnets.is_empty() {
                return Err("pods need addresses".to_owned());
            }
            settings.default.cluster_subnets = subnets;
        }
        SERVICE_CIDRS => settings.kubernetes.service_cidrs = Vec::from_text(value)?,
        _ => {
            let (v4, v6) = value.split_once(',').ok_or("it is not a range of each family")?;
            let ranges = (FromText::from_text(v4)?, FromText::from_text(v6)?);
            (settings.gateway.v4_join_subnet, settings.gateway.v6_join_subnet) = ranges;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(words: &[&str]) -> Settings {
        let words = ["--config-file=/dev/null"].iter().chain(words).map(Into::into);
        ovnkube_config::load(words, |_| None, &ovnkube_config::Places::default()).unwrap().settings
    }

    /// Seed 1: the master's line and a minion's.
    #[test]
    fn an_agent_uses_the_masters_values() {
        let master = [
            "-init-cluster-manager=m",
            "-cluster-subnets=10.244.0.0/16,fd01::/48/64",
            "-k8s-service-cidr=10.96.0.0/16",
        ];
        let minion =
            settings(&["-init-node=n", "-init-gateways", "-k8s-service-cidr=", "-cluster-subnets=10.96.0.0/16"]);
        let master = settings(&master);
        let taken = taken(&minion, &values(&master));
        assert_eq!(values(&taken), values(&master));
        assert_eq!(taken.default.cluster_subnets, master.default.cluster_subnets);
        assert_eq!(taken.kubernetes.service_cidrs, master.kubernetes.service_cidrs);
        // what belongs to the node
        assert_eq!(taken.gateway.mode, minion.gateway.mode);
    }

    #[test]
    fn missing_and_invalid_values_are_not_used() {
        let own = settings(&["-init-node=n"]);
        assert_eq!(values(&taken(&own, &Data::new())), values(&own));
        let long = "10.0.0.0/8,".repeat(LONGEST / 10);
        for (key, values_of) in [
            (CLUSTER_SUBNETS, vec!["", "x", "10.0.0.0/99", "10.0.0.0/16/8", "\n\0", &long]),
            (SERVICE_CIDRS, vec!["x", "10.0.0.0/99", &long]),
            (JOIN_SUBNETS, vec!["", "100.64.0.0/16", "fd98::/64,100.64.0.0/16", "100.64.0.0/16,fd98::/64,fd99::/64"]),
            ("other", vec!["10.0.0.0/8"]),
        ] {
            for value in values_of {
                let data = Data::from([(key.to_owned(), value.to_owned())]);
                assert_eq!(values(&taken(&own, &data)), values(&own), "{key} {value}");
            }
        }
    }
}
