//! What the interconnection databases say, as far as it matters for the northbound database. They are read and
//! checked by `src/interconnection/`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_ipam::{Mac, Subnet};
use serde::{Deserialize, Serialize};

use crate::Name;

/// The transit switches and what the other clusters have there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peers {
    pub switches: BTreeMap<Name, TransitSwitch>,
    pub routes: Vec<PeerRoute>,
    /// Routes that no packet can take now. Their prefixes are their clusters' all the same.
    #[serde(default)]
    pub waiting: Vec<PeerRoute>,
    /// Where the others can be reached.
    #[serde(default)]
    pub ports: Vec<PeerPort>,
    /// The other clusters, by name.
    #[serde(default)]
    pub clusters: BTreeMap<Name, PeerCluster>,
    /// Chassis of this cluster's gateways of which the others cannot know yet: no port moves there.
    #[serde(default)]
    pub new_gateways: BTreeSet<Name>,
    /// Chassis that have ports of this cluster now: they stay gateways until the ports have moved.
    #[serde(default)]
    pub carrying: BTreeSet<Name>,
    /// Why something is not as wanted, one sentence each, with what to do.
    pub problems: Vec<String>,
}

/// Another cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PeerCluster {
    /// How many gateways it has.
    pub gateways: usize,
    /// It has not followed the shared databases for long.
    pub silent: bool,
    /// Its place among the others: who joined earlier comes first.
    pub place: usize,
    /// It gets this name, and has rows of both for a while: both are this one cluster.
    pub new_name: Option<Name>,
}

/// A switch that all clusters have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransitSwitch {
    /// Tunnel key, the same in all clusters.
    pub key: u32,
    /// The ports of this cluster: one, and while the cluster changes its name, one of each name.
    pub own: Vec<OwnPort>,
    /// The others' ports by name.
    pub remote: BTreeMap<Name, RemotePort>,
}

/// The port between this cluster's router and a transit switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnPort {
    /// The name of this cluster that the port's names have.
    pub zone: Name,
    pub mac: Mac,
    /// One address of each family of the switch. With the prefix length of its subnet where packets leave by this port, else that
    /// of a single address.
    pub addresses: Vec<IpNetwork>,
    /// Tunnel key of the port; `None` until the database has given one.
    pub key: Option<u32>,
}

/// A port of another cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemotePort {
    pub key: u32,
    /// `MAC ADDRESS/LENGTH…`, checked.
    pub address: Name,
}

/// An address of another cluster in a transit switch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PeerPort {
    pub zone: Name,
    pub switch: Name,
    pub address: IpAddr,
    /// Whether packets can take it: both this cluster's port in the switch and the other's are on a gateway.
    pub open: bool,
}

/// A prefix that another cluster offers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PeerRoute {
    pub prefix: Subnet,
    pub zone: Name,
    pub switch: Name,
    /// Address of the other cluster's port in that switch.
    pub next_hop: IpAddr,
    /// Uuid of its row.
    pub id: Name,
}
