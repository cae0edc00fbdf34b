//! What an agent takes of the cluster's values.
//!
//! An agent takes the values at its start and keeps them, since running pods are not readdressed. Nothing depends on
//! them until the own Node has subnets. So an agent that found none before, or got no reply, asks again then, and
//! starts over if they differ: a master writes them before it gives out subnets. If there are still none, it works with its own and
//! asks now and then. Values that overlap each other or the
//! node's own ranges, or contain an address of the host, are refused together, and the agent keeps its own.

use std::net::IpAddr;
use std::time::Duration;

use ovnkube_config::values::FromText;
use ovnkube_config::{ClusterSubnet, Settings};
use ovnkube_watch::{Client, Data};
use tokio::time::{sleep, timeout};
use tracing::{error, warn};

use crate::cluster::{
    ANSWER_WITHIN, CLUSTER_SUBNETS, JOIN_SUBNETS, LOOK_AGAIN, NAME, OURS, SERVICE_CIDRS, TRY_AGAIN, VERSION, values,
};

/// Longest value that is accepted, bytes.
const LONGEST: usize = 4096;
/// Of all agents of a cluster whose masters publish nothing, such as those of ovn-kubernetes, each asks so seldom in the end.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// Characters of a bad value that are logged.
const SHOWN: usize = 100;
/// An agent whose Node has subnets waits no longer: perhaps only ConfigMaps cannot be read.
const PATIENCE: Duration = Duration::from_secs(30);

/// The cluster's values, as soon as the API server replies; empty if there are none or they cannot be read.
async fn ask(api: &Client, settings: &Settings) -> Data {
    let namespace = &settings.kubernetes.ovn_config_namespace;
    loop {
        match timeout(ANSWER_WITHIN, api.config_map(namespace, NAME)).await {
            Ok(Ok(data)) => return data.unwrap_or_default(),
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

/// The cluster's values if an agent with these settings would use others; to be asked before it acts on its own.
pub(crate) async fn ask_for_others(api: &Client, settings: &Settings, host: &[IpAddr]) -> Option<Data> {
    let Ok(cluster) = timeout(PATIENCE, ask(api, settings)).await else {
        warn!(config_map = NAME, "cannot read the config map; using this host's own settings");
        return None;
    };
    // nothing is said of values that are taken: the agent starts over with them, and says it then
    let other = differing(settings, &cluster);
    let differs = match try_take(settings, &other, host) {
        Ok(taken) => values(&taken) != values(settings),
        Err(why) => {
            refuse(settings, &why);
            false
        }
    };
    differs.then_some(cluster)
}

/// Whether a master has written the values: the config map has other keys, too.
pub(crate) fn is_published(cluster: &Data) -> bool {
    cluster.contains_key(CLUSTER_SUBNETS)
}

/// The cluster's values, once there are some, for an agent that had to begin with its own.
pub(crate) async fn found_later(api: &Client, settings: &Settings, host: &[IpAddr], known: &Data) -> Data {
    if is_published(known) {
        return std::future::pending().await;
    }
    let mut pause = LOOK_AGAIN;
    loop {
        sleep(pause).await;
        if let Some(found) = ask_for_others(api, settings, host).await {
            return found;
        }
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

/// An agent's settings with the cluster's values in place of its own. All or none: values that are bad, or that this
/// host cannot have, change nothing. `host`: addresses by which this host is reached.
pub(crate) fn taken(settings: &Settings, cluster: &Data, host: &[IpAddr]) -> Settings {
    let other = differing(settings, cluster);
    match try_take(settings, &other, host) {
        Ok(taken) => {
            for (key, own, value) in other {
                let own = if own.is_empty() { "not set" } else { &own };
                warn!(
                    "{key} of the cluster is {value}, of this host {own}: using the cluster's value; remove the setting here"
                );
            }
            taken
        }
        Err(why) => {
            refuse(settings, &why);
            settings.clone()
        }
    }
}

/// Each value in which the cluster differs: key, own, the cluster's.
fn differing<'a>(settings: &Settings, cluster: &'a Data) -> Vec<(String, String, &'a str)> {
    let other = |(key, own): (String, String)| {
        let value = cluster.get(&key).filter(|value| **value != own)?;
        Some((key, own, value.as_str()))
    };
    values(settings).into_iter().filter_map(other).collect()
}

/// What to say if the masters are of a newer release, MAJOR or MINOR, than this agent, which is of `own`.
fn older(own: &str, cluster: &Data) -> Option<String> {
    let release = |text: &str| {
        let mut numbers = text.split('.').map(|number| number.parse::<u32>().ok());
        Some((numbers.next()??, numbers.next()??))
    };
    let masters = cluster.get(VERSION)?;
    (release(own)? < release(masters)?).then(|| {
        format!(
            "this node's agent is ovnkube {own}, the masters are {}: they work together if no MINOR version is between \
             them; update the image of the DaemonSet ovnkube, or the package on this host",
            clipped(masters)
        )
    })
}

/// What to say of this agent's own release.
pub(crate) fn is_older(cluster: &Data) -> Option<String> {
    older(OURS, cluster)
}

fn refuse(settings: &Settings, why: &str) {
    error!(
        "cannot use the values of config map {}/{NAME}: {why}; correct that setting of the masters, restart them, \
         then this agent, which uses its own settings until then",
        settings.kubernetes.ovn_config_namespace
    );
}

fn try_take(settings: &Settings, other: &[(String, String, &str)], host: &[IpAddr]) -> Result<Settings, String> {
    let mut taken = settings.clone();
    if other.is_empty() {
        return Ok(taken);
    }
    for (key, _, value) in other {
        take(&mut taken, key, value).map_err(|why| format!("{key} {:?}: {why}", clipped(value)))?;
    }
    taken.check_ranges()?;
    let (pods, gateway) = (taken.default.cluster_subnets.iter().map(|subnet| subnet.net), &taken.gateway);
    let pods = pods.map(|net| (CLUSTER_SUBNETS, net));
    let services = taken.kubernetes.service_cidrs.iter().map(|net| (SERVICE_CIDRS, *net));
    let join = [gateway.v4_join_subnet.into(), gateway.v6_join_subnet.into()].map(|net| (JOIN_SUBNETS, net));
    // what is the same here is no news
    let is_new = |key: &str| other.iter().any(|(differing, ..)| differing == key);
    for (key, net) in pods.chain(services).chain(join).filter(|(key, _)| is_new(key)) {
        if let Some(ip) = host.iter().find(|ip| net.contains(**ip)) {
            return Err(format!("{net} of {key} contains {ip}, an address of this host"));
        }
    }
    Ok(taken)
}

/// Anything may be in a ConfigMap; the log gets the beginning.
fn clipped(value: &str) -> String {
    value.chars().take(SHOWN).collect()
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

    #[test]
    fn an_agent_that_is_older_than_the_masters_says_so() {
        let cluster = |version: &str| Data::from([(VERSION.to_owned(), version.to_owned())]);
        for (own, masters) in [("0.1.0", "0.2.0"), ("0.9.9", "0.10.0"), ("1.9.0", "2.0.0")] {
            let said = older(own, &cluster(masters)).unwrap();
            assert!(said.contains(own) && said.contains(masters) && said.contains("DaemonSet ovnkube"), "{said}");
        }
        let long = "9".repeat(LONGEST);
        for (own, masters) in [
            ("0.1.0", "0.1.0"),
            ("0.1.0", "0.1.9"),
            ("0.2.0", "0.1.0"),
            ("0.1.0", ""),
            ("0.1.0", "x.y"),
            ("0.1.0", &long),
        ] {
            assert_eq!(older(own, &cluster(masters)), None, "{own} {masters}");
        }
        assert_eq!(is_older(&Data::new()), None);
    }

    /// The lines of the first guide to clustered databases: the master's and a minion's.
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
        // agents of other versions read this
        let published = [
            (CLUSTER_SUBNETS, "10.244.0.0/16/24,fd01::/48/64"),
            (SERVICE_CIDRS, "10.96.0.0/16"),
            (JOIN_SUBNETS, "100.64.0.0/16,fd98::/64"),
        ];
        assert_eq!(values(&master), published.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
        assert_eq!(
            [CLUSTER_SUBNETS, SERVICE_CIDRS, JOIN_SUBNETS],
            ["cluster-subnets", "service-cidrs", "join-subnets"]
        );
        let taken = taken(&minion, &values(&master), &[]);
        assert_eq!(values(&taken), values(&master));
        assert_eq!(taken.default.cluster_subnets, master.default.cluster_subnets);
        assert_eq!(taken.kubernetes.service_cidrs, master.kubernetes.service_cidrs);
        // what belongs to the node
        assert_eq!(taken.gateway.mode, minion.gateway.mode);
    }

    #[test]
    fn missing_and_invalid_values_are_not_used() {
        let own = settings(&["-init-node=n"]);
        assert_eq!(values(&taken(&own, &Data::new(), &[])), values(&own));
        let long = "10.0.0.0/8,".repeat(LONGEST / 10);
        for (key, values_of) in [
            (CLUSTER_SUBNETS, vec!["", "x", "10.0.0.0/99", "10.0.0.0/16/8", "\n\0", &long]),
            (SERVICE_CIDRS, vec!["x", "10.0.0.0/99", &long]),
            (JOIN_SUBNETS, vec!["", "100.64.0.0/16", "fd98::/64,100.64.0.0/16", "100.64.0.0/16,fd98::/64,fd99::/64"]),
            ("other", vec!["10.0.0.0/8"]),
        ] {
            for value in values_of {
                let data = Data::from([(key.to_owned(), value.to_owned())]);
                assert_eq!(values(&taken(&own, &data, &[])), values(&own), "{key} {value}");
            }
        }
    }

    #[test]
    fn values_that_this_host_cannot_have_change_nothing() {
        let own = settings(&["-init-node=n", "-cluster-subnets=10.244.0.0/16", "-k8s-service-cidr=10.96.0.0/16"]);
        let host = ["172.18.0.2".parse().unwrap(), "fd00:172::2".parse().unwrap()];
        let good = [
            (CLUSTER_SUBNETS, "10.128.0.0/14/23"),
            (SERVICE_CIDRS, "172.30.0.0/16"),
            (JOIN_SUBNETS, "100.65.0.0/16,fd98::/64"),
        ];
        for (key, bad) in [
            // of the host
            (CLUSTER_SUBNETS, "172.16.0.0/12/24"),
            (CLUSTER_SUBNETS, "10.128.0.0/14/23,fd00::/16/64"),
            (SERVICE_CIDRS, "172.18.0.0/24"),
            (JOIN_SUBNETS, "172.18.0.0/16,fd98::/64"),
            // of each other
            (CLUSTER_SUBNETS, "172.30.0.0/16/24"),
            (CLUSTER_SUBNETS, "10.128.0.0/14/23,10.129.0.0/16/24"),
            (SERVICE_CIDRS, "10.128.0.0/16"),
            (SERVICE_CIDRS, "172.30.0.0/16,172.31.0.0/16"),
            (JOIN_SUBNETS, "10.128.0.0/16,fd98::/64"),
            (JOIN_SUBNETS, "100.65.0.0/31,fd98::/64"),
            // of the node's own masquerade addresses
            (CLUSTER_SUBNETS, "169.254.0.0/16/24"),
            // what is no range spoils the others too
            (CLUSTER_SUBNETS, "x"),
        ] {
            let mut data: Data = good.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
            assert_ne!(values(&taken(&own, &data, &host)), values(&own));
            data.insert(key.to_owned(), bad.to_owned());
            assert_eq!(values(&taken(&own, &data, &host)), values(&own), "{key} {bad}");
        }
        // what is the same here and there is no news: only another value is compared with the host's addresses
        let own = settings(&["-init-node=n", "-cluster-subnets=172.18.0.0/16"]);
        let data = Data::from([(SERVICE_CIDRS.to_owned(), "10.97.0.0/16".to_owned())]);
        assert_ne!(values(&taken(&own, &data, &host)), values(&own));
        let own = settings(&["-init-node=n", "-cluster-subnets=172.18.0.0/16"]);
        assert_eq!(values(&taken(&own, &values(&own), &host)), values(&own));
    }
}
