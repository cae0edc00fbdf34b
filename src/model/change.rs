//! The changes that come in, and what they affect.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    EndpointSlice, ForHosts, Interconnection, InterconnectionConfig, InterconnectionSubnet, Name, Names, Namespace,
    NetworkPolicy, Node, ObjectKey, Peers, Pod, PodKey, PodSet, Service, ServiceCidr, Subnet,
};

/// One observed change. `None` means the object is gone. Serialisable, so that a run can be recorded and
/// replayed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Change {
    Node(Name, Option<Box<Node>>),
    Namespace(Name, Option<Namespace>),
    Pod(PodKey, Option<Box<Pod>>),
    Service(ObjectKey, Option<Box<Service>>),
    EndpointSlice(ObjectKey, Option<Box<EndpointSlice>>),
    NetworkPolicy(ObjectKey, Option<Box<NetworkPolicy>>),
    ServiceCidr(Name, Option<ServiceCidr>),
    /// What masters tell the hosts.
    ForHosts(Box<ForHosts>),
    Interconnection(Option<InterconnectionConfig>),
    InterconnectionSubnet(Name, Option<InterconnectionSubnet>),
    /// Whether it is hidden what people want of the interconnection: this process may not read the ConfigMap.
    InterconnectionHidden(bool),
    /// What an earlier master, or this one, has stored of the interconnection that it keeps; empty: nothing.
    InterconnectionStored(Name),
    /// The databases of this interconnection have nothing of this cluster any more.
    InterconnectionLeft(Box<Interconnection>),
    /// The cluster has reached the databases of this interconnection, and is in no others; whether these are the former ones, with
    /// other servers.
    InterconnectionMoved(Box<Interconnection>, bool),
    /// Why interconnection stays as it is; `None`: it does not.
    InterconnectionStuck(Stuck, Option<Name>),
    /// What the interconnection databases say.
    Peers(Box<Peers>),
    Connections(Connections),
    /// The initial list of this kind is complete.
    Synced(Kind),
}

impl Change {
    /// The uid of an object that exists, for kinds where it matters.
    pub fn uid(&self) -> Option<&Name> {
        match self {
            Self::Node(_, Some(node)) => Some(&node.uid),
            Self::Namespace(_, Some(namespace)) => Some(&namespace.uid),
            Self::Pod(_, Some(pod)) => Some(&pod.uid),
            Self::Service(_, Some(service)) => Some(&service.uid),
            Self::NetworkPolicy(_, Some(policy)) => Some(&policy.uid),
            _ => None,
        }
    }

    /// Replaces names that many objects have by the copies in `names`, except in its own key.
    pub fn share(&mut self, names: &mut Names) {
        match self {
            Self::Pod(_, Some(pod)) => pod.node.iter_mut().for_each(|node| names.share(node)),
            Self::Service(_, Some(service)) => service.ports.iter_mut().for_each(|port| names.share(&mut port.name)),
            Self::EndpointSlice(_, Some(slice)) => {
                slice.ports.iter_mut().for_each(|port| names.share(&mut port.name));
                slice.endpoints.iter_mut().filter_map(|e| e.node.as_mut()).for_each(|node| names.share(node));
            }
            _ => {}
        }
    }
}

/// What an interconnection waits for, or lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Stuck {
    /// The databases in which it is.
    Present,
    /// Those that it should move to.
    Next,
    /// This one does not take what the cluster writes.
    Write(Written),
    /// Nothing: not all servers of the databases are as they should be.
    Servers,
    /// Nothing: not all gateways of this cluster carry packets.
    Gateways,
}

/// A database that is written for an interconnection, apart from NB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Written {
    NorthInterconnection,
    SouthInterconnection,
    South,
}

/// What nodes depend on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// All addresses, with what nodes reach there: the API server, databases, their DNS.
    pub owners: BTreeMap<IpAddr, Name>,
    /// The databases that are reached without TLS: whoever can connect to one controls the network.
    pub databases: BTreeSet<SocketAddr>,
}

/// The kinds of objects that are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    Node,
    Namespace,
    Pod,
    Service,
    EndpointSlice,
    NetworkPolicy,
    ServiceCidr,
    /// What the ConfigMap `ovnkube-cluster` tells the hosts.
    ForHosts,
    /// The ConfigMap `ovn-ic-config`.
    Interconnection,
    /// `Subnet` of Kube-OVN.
    InterconnectionSubnet,
}

/// What must be planned again after a change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Affected {
    /// All initial lists are complete: plan everything.
    Everything,
    /// A node, its network or its existence.
    Node(Name),
    Namespace(Name),
    Pod(PodKey),
    /// A service or its endpoints.
    Service(ObjectKey),
    NetworkPolicy(ObjectKey),
    /// A set of pods that policies refer to: whether any does, and the numbers of its named port.
    PodSet(Arc<PodSet>),
    /// The nodes where services are served: any of [`crate::World::sites`].
    Sites,
    /// The wanted interconnection, what it offers, or what is wrong with it.
    Interconnection,
    /// A `Subnet` of Kube-OVN.
    InterconnectionSubnet(Name),
    TransitSwitch(Name),
    /// A prefix of other clusters.
    Prefix(Subnet),
}
