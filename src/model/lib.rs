//! The cluster as ovnkube sees it: only the fields that can change what is written to OVN.
//!
//! ```text
//!  watch ──Change──▶ World::apply ──Affected──▶ plan
//!                      │
//!                      ├ nodes, pods, services …   what Kubernetes says
//!                      └ networks, addresses       what ovnkube decided (or found annotated)
//! ```
//!
//! All input is parsed once, here, into small types. What cannot be parsed becomes a [`BadAnnotation`] of its
//! object, never a guess. There is no clock, no IO and no randomness: the same changes in the same order give
//! the same world.

mod annotations;
mod change;
mod endpoint_slice;
mod family;
mod finding;
mod for_hosts;
mod gateway;
mod interconnection;
mod labels;
mod masquerade;
mod meta;
mod names;
mod namespace;
mod network_policy;
mod network_settings;
mod node;
mod notice;
mod ovn_release;
mod pod;
mod pod_network;
mod pod_set;
mod protocol;
#[cfg(test)]
mod restart_tests;
pub mod row_owners;
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
pub use change::{Affected, Change, Connections, Kind, Stuck, Written};
pub use endpoint_slice::{
    Conditions, Endpoint, EndpointFields, EndpointSlice, HintFields, HintName, Hints, SliceFields, SlicePort,
};
pub use family::Family;
pub use finding::Finding;
pub use for_hosts::ForHosts;
pub use gateway::{Gateway, GatewayMode};
pub(crate) use interconnection::Kept;
pub use interconnection::{
    Asks, BadKey, Declared, HostRoutes, Interconnection, InterconnectionConfig, InterconnectionSubnet, Judge, Local,
    LocalRange, MOST_HOST_ROUTES, MOST_PREFIXES, OwnPort, PeerCluster, PeerPort, PeerRoute, Peers, Prefixes, Refused,
    RemotePort, RouteCounts, Server, TransitSwitch, is_zone, nowhere, prefixes,
};
pub use labels::Labels;
pub use masquerade::Masquerade;
pub use meta::Meta;
pub use names::{Name, Names, ObjectKey, PodKey};
pub use namespace::{AclLogging, AclSeverity, Namespace};
pub use network_policy::fields::PolicyFields;
pub use network_policy::{Block, Direction, Need, NetworkPolicy, Peer, PolicyPort, Rule};
pub use network_settings::{NetworkSettings, NodeSelector, Roles};
pub use node::{Node, NodeFields};
pub use notice::{About, Notice, Object, Severity};
pub use ovn_release::OvnRelease;
pub use ovnkube_ipam::{ClusterSubnet, Mac, Subnet};
pub use pod::{AddressRequest, NamedPort, Pod, PodFields, Wiring};
pub use pod_network::{PodAddresses, PodAnnotation, PodNetwork, Route, render_pod_networks};
pub use pod_set::{Namespaces, PodSet};
pub use protocol::Protocol;
pub use selector::{Operator, Requirement, Selector, SelectorFields};
pub use service::{BadField, PortFields, Service, ServiceFields, ServicePort, ServiceType, TrafficPolicy};
pub use service_cidr::ServiceCidr;
pub use services::kept_out::KeptOut;
pub use services::{AddressRules, Backend, Backends, ExternalIps, NodeIps, Services, Topology};
pub use world::{Joined, NodeNetwork, PodEntry, Policies, Site, SiteRouter, World, is_for_pods};
