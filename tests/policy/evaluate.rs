//! Whether the policies of a cluster allow a connection.
//!
//! The rules of the `networking.k8s.io/v1` reference:
//!
//! - A connection is allowed if both ends allow it: the source as egress, the destination as
//!   ingress. Replies are part of it. A pod can always reach itself.
//! - A pod that no policy selects for a direction allows everything in that direction. Otherwise it
//!   allows what at least one rule of one of these policies allows.
//! - A policy without `policyTypes` applies to ingress, and to egress if it has egress rules.
//! - A rule without peers matches every peer, one without ports every port.
//!
//! The reference leaves open what policies mean for pods in the network of their node. Here no policy applies to them; a
//! `podSelector` matches the address that they share with their node, a `namespaceSelector` alone does not.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Container, Namespace, Pod};
use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};

/// All objects that affect the result.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    pub namespaces: Vec<Namespace>,
    pub pods: Vec<Pod>,
    pub policies: Vec<NetworkPolicy>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Protocol {
    Tcp,
    Udp,
    Sctp,
}

impl Protocol {
    pub const ALL: [Self; 3] = [Self::Tcp, Self::Udp, Self::Sctp];

    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
        }
    }
}

/// One end of a connection: an address, and the pod that has it, if any.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    pub pod: Option<&'a Pod>,
    pub ip: IpAddr,
}

/// An attempted connection.
#[derive(Debug, Clone, Copy)]
pub struct Flow<'a> {
    pub from: End<'a>,
    pub to: End<'a>,
    pub protocol: Protocol,
    /// The destination port.
    pub port: u16,
}

/// `namespace/name`.
pub fn name(meta: &ObjectMeta) -> String {
    format!("{}/{}", namespace(meta), meta.name.as_deref().unwrap_or_default())
}

/// The addresses of a pod.
pub fn addresses(pod: &Pod) -> Vec<IpAddr> {
    let ips = pod.status.iter().filter_map(|status| status.pod_ips.as_ref()).flatten();
    ips.map(|ip| ip.ip.parse().unwrap()).collect()
}

/// Whether a pod has only its node's addresses.
pub fn is_in_host_network(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true))
}

impl Cluster {
    /// Whether the connection may be made.
    pub fn allows(&self, flow: &Flow<'_>) -> bool {
        let to_itself = flow.from.pod.zip(flow.to.pod).is_some_and(|(a, b)| is_same(&a.metadata, &b.metadata));
        to_itself || self.egress_allows(flow) && self.ingress_allows(flow)
    }

    fn egress_allows(&self, flow: &Flow<'_>) -> bool {
        self.direction_allows(flow.from.pod, &flow.to, is_about_egress, |policy, spec, who| {
            spec.egress.iter().flatten().any(|rule| {
                self.peers_match(rule.to.as_deref(), policy, who, flow.to.ip)
                    && ports_match(rule.ports.as_deref(), flow, who)
            })
        })
    }

    fn ingress_allows(&self, flow: &Flow<'_>) -> bool {
        self.direction_allows(flow.to.pod, &flow.from, is_about_ingress, |policy, spec, who| {
            spec.ingress.iter().flatten().any(|rule| {
                self.peers_match(rule.from.as_deref(), policy, who, flow.from.ip)
                    && ports_match(rule.ports.as_deref(), flow, flow.to.pod)
            })
        })
    }

    /// Whether no policy of this direction selects the pod, or one of those that do has a rule for the other end.
    fn direction_allows(
        &self,
        pod: Option<&Pod>,
        other: &End<'_>,
        is_about: fn(&NetworkPolicySpec) -> bool,
        has_rule: impl Fn(&NetworkPolicy, &NetworkPolicySpec, Option<&Pod>) -> bool,
    ) -> bool {
        let Some(pod) = pod else { return true };
        let mut policies = self.policies_of(pod, is_about).peekable();
        if policies.peek().is_none() {
            return true;
        }
        let known_as = self.known_as(other);
        policies.any(|(policy, spec)| known_as.iter().any(|who| has_rule(policy, spec, *who)))
    }

    /// The pods that rules may match for an end: the pod that has the address, or each that shares it with its node.
    fn known_as<'a>(&'a self, end: &End<'a>) -> Vec<Option<&'a Pod>> {
        let sharing = self.pods.iter().filter(|pod| is_in_host_network(pod) && addresses(pod).contains(&end.ip));
        std::iter::once(end.pod).chain(sharing.map(Some)).collect()
    }

    /// The policies that select a pod and apply to a direction.
    fn policies_of<'a>(
        &'a self,
        pod: &'a Pod,
        is_about: fn(&NetworkPolicySpec) -> bool,
    ) -> impl Iterator<Item = (&'a NetworkPolicy, &'a NetworkPolicySpec)> {
        self.policies.iter().filter_map(move |policy| {
            let spec = policy.spec.as_ref()?;
            let same_namespace = namespace(&policy.metadata) == namespace(&pod.metadata);
            // without a selector it selects everything
            let is_selected = || spec.pod_selector.as_ref().is_none_or(|selector| selects(selector, &pod.metadata));
            (same_namespace && is_about(spec) && is_selected()).then_some((policy, spec))
        })
    }

    fn peers_match(
        &self,
        peers: Option<&[NetworkPolicyPeer]>,
        policy: &NetworkPolicy,
        who: Option<&Pod>,
        ip: IpAddr,
    ) -> bool {
        let peers = peers.unwrap_or_default();
        peers.is_empty() || peers.iter().any(|peer| self.peer_matches(peer, policy, who, ip))
    }

    fn peer_matches(&self, peer: &NetworkPolicyPeer, policy: &NetworkPolicy, who: Option<&Pod>, ip: IpAddr) -> bool {
        if let Some(block) = &peer.ip_block {
            return block_holds(block, ip);
        }
        let Some(pod) = who.filter(|pod| peer.pod_selector.is_some() || !is_in_host_network(pod)) else {
            return false;
        };
        let pod_namespace = namespace(&pod.metadata);
        let in_namespace = match &peer.namespace_selector {
            None => pod_namespace == namespace(&policy.metadata),
            Some(selector) => {
                let object = self.namespaces.iter().find(|n| n.metadata.name.as_deref() == Some(pod_namespace));
                object.is_some_and(|n| selects(selector, &n.metadata))
            }
        };
        in_namespace && peer.pod_selector.as_ref().is_none_or(|selector| selects(selector, &pod.metadata))
    }
}

fn is_same(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    namespace(one) == namespace(other) && one.name == other.name
}

fn namespace(meta: &ObjectMeta) -> &str {
    meta.namespace.as_deref().unwrap_or("default")
}

fn is_about_ingress(spec: &NetworkPolicySpec) -> bool {
    let types = spec.policy_types.as_deref().unwrap_or_default();
    types.is_empty() || types.iter().any(|t| t == "Ingress")
}

fn is_about_egress(spec: &NetworkPolicySpec) -> bool {
    let types = spec.policy_types.as_deref().unwrap_or_default();
    let has_rules = spec.egress.as_ref().is_some_and(|rules| !rules.is_empty());
    if types.is_empty() { has_rules } else { types.iter().any(|t| t == "Egress") }
}

/// All requirements hold; a selector without requirements selects everything.
pub fn selects(selector: &LabelSelector, meta: &ObjectMeta) -> bool {
    let label = |key: &String| meta.labels.as_ref().and_then(|labels| labels.get(key));
    let equal = selector.match_labels.iter().flatten().all(|(key, value)| label(key) == Some(value));
    let mut expressions = selector.match_expressions.iter().flatten();
    equal
        && expressions.all(|e| {
            let listed = |value: &String| e.values.iter().flatten().any(|v| v == value);
            match e.operator.as_str() {
                "In" => label(&e.key).is_some_and(listed),
                "NotIn" => !label(&e.key).is_some_and(listed),
                "Exists" => label(&e.key).is_some(),
                "DoesNotExist" => label(&e.key).is_none(),
                other => panic!("the API server lets no operator {other:?} pass"),
            }
        })
}

fn block_holds(block: &IPBlock, ip: IpAddr) -> bool {
    cidr_holds(&block.cidr, ip) && !block.except.iter().flatten().any(|except| cidr_holds(except, ip))
}

fn cidr_holds(cidr: &str, ip: IpAddr) -> bool {
    let (network, length) = cidr.split_once('/').unwrap();
    let (network, length): (IpAddr, u32) = (network.parse().unwrap(), length.parse().unwrap());
    match (network, ip) {
        (IpAddr::V4(network), IpAddr::V4(ip)) => {
            (u32::from(network) ^ u32::from(ip)).checked_shr(32 - length).unwrap_or_default() == 0
        }
        (IpAddr::V6(network), IpAddr::V6(ip)) => {
            (u128::from(network) ^ u128::from(ip)).checked_shr(128 - length).unwrap_or_default() == 0
        }
        _ => false,
    }
}

fn ports_match(ports: Option<&[NetworkPolicyPort]>, flow: &Flow<'_>, destination: Option<&Pod>) -> bool {
    let ports = ports.unwrap_or_default();
    ports.is_empty() || ports.iter().any(|port| port_matches(port, flow, destination))
}

fn port_matches(port: &NetworkPolicyPort, flow: &Flow<'_>, destination: Option<&Pod>) -> bool {
    if port.protocol.as_deref().unwrap_or("TCP") != flow.protocol.name() {
        return false;
    }
    match &port.port {
        None => true,
        Some(IntOrString::Int(first)) => {
            let last = port.end_port.unwrap_or(*first);
            (*first..=last).contains(&i32::from(flow.port))
        }
        // ports of this name at the destination, whatever their numbers
        Some(IntOrString::String(name)) => destination.is_some_and(|pod| {
            let ports = containers(pod).flat_map(|container| container.ports.iter().flatten());
            ports
                .filter(|p| {
                    p.name.as_ref() == Some(name) && p.protocol.as_deref().unwrap_or("TCP") == flow.protocol.name()
                })
                .any(|p| p.container_port == i32::from(flow.port))
        }),
    }
}

/// The containers that run concurrently: those of the pod and its sidecars.
fn containers(pod: &Pod) -> impl Iterator<Item = &Container> {
    let spec = pod.spec.iter();
    spec.flat_map(|spec| {
        let sidecars = spec.init_containers.iter().flatten().filter(|c| c.restart_policy.as_deref() == Some("Always"));
        spec.containers.iter().chain(sidecars)
    })
}
