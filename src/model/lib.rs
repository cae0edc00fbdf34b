//! The cluster as ovnkube sees it: only the fields that can change what is written to OVN.
//!
//! ```text
//!  watch ──Change──▶ World::apply ──Touched──▶ plan
//!                      │
//!                      ├ nodes, pods, services …   what Kubernetes says
//!                      └ networks, addresses       what ovnkube decided (or found annotated)
//! ```
//!
//! Everything that comes from outside is parsed once, here, into small types; what cannot be parsed
//! becomes a [`BadAnnotation`] on its object and never a guess. No clock, no IO, no randomness: the
//! same changes in the same order give the same world.

mod annotations;
mod change;
mod endpoint_slice;
mod gateway;
mod labels;
mod masquerade;
mod names;
mod namespace;
mod network;
mod network_policy;
mod node;
mod notice;
mod pod;
mod pod_network;
mod pod_set;
#[cfg(test)]
mod running_tests;
mod selector;
mod service;
mod service_cidr;
mod services;
#[cfg(test)]
mod tests;
mod world;

pub use annotations::{BadAnnotation, keys};
pub use change::{Change, Kind, Touched};
pub use endpoint_slice::{
    Conditions, Endpoint, EndpointFields, EndpointSlice, HintFields, HintName, Hints, SliceFields, SlicePort,
};
pub use gateway::{Gateway, GatewayMode};
pub use labels::Labels;
pub use masquerade::Masquerade;
pub use names::{Name, ObjectKey, PodKey};
pub use namespace::{AclLogging, AclSeverity, Namespace};
pub use network::{Family, Network, NodeSelector, Roles};
pub use network_policy::{Block, Direction, NetworkPolicy, Peer, PolicyFields, PolicyPort, Rule};
pub use node::{Node, NodeFields};
pub use notice::{Notice, Object, Severity};
pub use ovnkube_ipam::{ClusterSubnet, Mac, Subnet};
pub use pod::{AddressRequest, Meta, NamedPort, Pod, PodFields, Wiring};
pub use pod_network::{PodAddresses, PodAnnotation, PodNetwork, Route, render_pod_networks};
pub use pod_set::{Namespaces, PodSet};
pub use selector::{Operator, Requirement, Selector, SelectorFields};
pub use service::{BadField, PortFields, Protocol, Service, ServiceFields, ServicePort, ServiceType, TrafficPolicy};
pub use service_cidr::ServiceCidr;
pub use services::{AddressRules, Backend, Backends, ExternalIps, NodeIps, Place, Services};
pub use world::{NodeNetwork, PodEntry, Policies, Site, SiteRouter, World};
