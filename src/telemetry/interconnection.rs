//! The metrics of interconnection with other clusters. They exist while this process keeps one. Names of clusters come from those
//! clusters, so only so many become labels.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use crate::series::{Series, family, one};

/// The most clusters that have series of their own; the others have one together.
const NAMED: usize = 64;
/// Label of the others: no cluster can have this name.
const OTHERS: &str = "(others)";
/// The longest name of a cluster.
const LONGEST_NAME: usize = 63;

/// What is shown of the interconnection. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct InterconnectionMetrics(Arc<Mutex<Shown>>);

#[derive(Debug, Default)]
struct Shown {
    databases: Option<Connected>,
    clusters: Option<Clusters>,
    /// How many clusters there are, with those that have no series of their own.
    number: usize,
}

/// Which of the shared databases are connected.
#[derive(Debug, Clone, Copy)]
pub struct Connected {
    pub north: bool,
    pub south: bool,
}

/// What the shared databases say.
#[derive(Debug, Clone, Default)]
pub struct Clusters {
    /// The other clusters, by name.
    pub others: BTreeMap<String, OtherCluster>,
    /// How many problems are in Events.
    pub problems: usize,
}

/// Another cluster.
#[derive(Debug, Clone, Copy, Default)]
pub struct OtherCluster {
    pub gateways: usize,
    /// Routes to it.
    pub used: usize,
    pub refused: usize,
    /// It has not followed the shared databases for long.
    pub silent: bool,
}

impl OtherCluster {
    fn add(&mut self, other: Self) {
        self.gateways += other.gateways;
        self.used += other.used;
        self.refused += other.refused;
        self.silent |= other.silent;
    }
}

impl InterconnectionMetrics {
    /// `None`: this process has no connections to these databases.
    pub fn connected(&self, databases: Option<Connected>) {
        self.lock().databases = databases;
    }

    /// `None`: there is no interconnection, or this process does not keep it.
    pub fn clusters(&self, clusters: Option<Clusters>) {
        let mut shown = self.lock();
        shown.number = clusters.as_ref().map_or(0, |clusters| clusters.others.len());
        shown.clusters = clusters.map(|clusters| Clusters { others: bounded(clusters.others), ..clusters });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same clusters, with as many names as become labels.
fn bounded(clusters: BTreeMap<String, OtherCluster>) -> BTreeMap<String, OtherCluster> {
    let mut bounded: BTreeMap<String, OtherCluster> = BTreeMap::new();
    for (name, cluster) in clusters {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        let is_name = (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(fits);
        let named = bounded.len() - usize::from(bounded.contains_key(OTHERS));
        let label = if is_name && named < NAMED { name } else { OTHERS.into() };
        bounded.entry(label).or_default().add(cluster);
    }
    bounded
}

impl Collector for InterconnectionMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let shown = self.lock();
        if let Some(Connected { north, south }) = shown.databases {
            let of = |database, is: bool| (vec![("database", database)], usize::from(is));
            family(
                &mut encoder,
                "ovnkube_interconnection_database_connected",
                "Whether a database that joined clusters share is connected",
                &[of("OVN_IC_Northbound", north), of("OVN_IC_Southbound", south)],
            )?;
        }
        let Some(Clusters { others, problems }) = &shown.clusters else { return Ok(()) };
        one(&mut encoder, "ovnkube_interconnection_clusters", "Other clusters", shown.number)?;
        one(&mut encoder, "ovnkube_interconnection_problems", "Problems that Events name", *problems)?;
        let of_each = |value: fn(&OtherCluster) -> usize| -> Vec<Series<'_>> {
            others.iter().map(|(az, cluster)| (vec![("az", az.as_str())], value(cluster))).collect()
        };
        let gateways = of_each(|cluster| cluster.gateways);
        let silent = of_each(|cluster| usize::from(cluster.silent));
        let in_state = |state: &'static str, value: fn(&OtherCluster) -> usize| {
            others.iter().map(move |(az, cluster)| (vec![("az", az.as_str()), ("state", state)], value(cluster)))
        };
        let routes = in_state("used", |cluster| cluster.used).chain(in_state("refused", |cluster| cluster.refused));
        for (name, help, series) in [
            ("gateways", "Gateways of another cluster", gateways),
            ("routes", "Routes that another cluster offers", routes.collect()),
            ("silent", "Whether another cluster has not followed the shared databases for long", silent),
        ] {
            family(&mut encoder, &format!("ovnkube_interconnection_{name}"), help, &series)?;
        }
        Ok(())
    }
}
