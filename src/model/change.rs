//! What comes in, and what it touched.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    EndpointSlice, Name, Namespace, NetworkPolicy, Node, ObjectKey, Pod, PodKey, PodSet, Service, ServiceCidr,
};

/// One thing that happened outside. `None` means the object is gone. Serialisable, so that a run can
/// be recorded and replayed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Change {
    Node(Name, Option<Box<Node>>),
    Namespace(Name, Option<Namespace>),
    Pod(PodKey, Option<Box<Pod>>),
    Service(ObjectKey, Option<Box<Service>>),
    EndpointSlice(ObjectKey, Option<Box<EndpointSlice>>),
    NetworkPolicy(ObjectKey, Option<Box<NetworkPolicy>>),
    ServiceCidr(Name, Option<ServiceCidr>),
    /// What nodes reach by which address, all of it: the API server, databases, their DNS.
    Connections(BTreeMap<IpAddr, Name>),
    /// The first full list of this kind is in: everything that exists has been said.
    Synced(Kind),
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
}

/// What a change made worth planning again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Touched {
    /// All first lists are in: plan everything.
    Everything,
    /// A node, its network or its existence.
    Node(Name),
    Namespace(Name),
    Pod(PodKey),
    /// A service or its endpoints.
    Service(ObjectKey),
    NetworkPolicy(ObjectKey),
    /// Pods that policies refer to together: whether they do, and the numbers of their named port.
    PodSet(Arc<PodSet>),
    /// The places where services are served: any of [`crate::World::sites`].
    Sites,
}
