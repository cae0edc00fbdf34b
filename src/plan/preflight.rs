//! What has to be done before masters take over a cluster: found in what a person may read of it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_model::{Finding, Subnet};
use serde::Deserialize;

use crate::{Unserved, names};

/// The oldest Kubernetes whose API servers have what `dist/yaml` needs.
const KUBERNETES: (u32, u32) = (1, 33);
/// The northbound schema of OVN 23.03.
const NORTHBOUND: (u32, u32) = (7, 0);
/// How many objects of a kind are named.
const NAMED: usize = 3;

/// Kinds of objects that ovn-kubernetes serves and ovnkube does not, and the API's lists of them.
pub const KINDS: &[(&str, &str)] = &[
    ("AdminNetworkPolicy", "/apis/policy.networking.k8s.io/v1alpha1/adminnetworkpolicies"),
    ("AdminPolicyBasedExternalRoute", "/apis/k8s.ovn.org/v1/adminpolicybasedexternalroutes"),
    ("BaselineAdminNetworkPolicy", "/apis/policy.networking.k8s.io/v1alpha1/baselineadminnetworkpolicies"),
    ("ClusterNetworkConnect", "/apis/k8s.ovn.org/v1/clusternetworkconnects"),
    ("ClusterUserDefinedNetwork", "/apis/k8s.ovn.org/v1/clusteruserdefinednetworks"),
    ("EgressFirewall", "/apis/k8s.ovn.org/v1/egressfirewalls"),
    ("EgressIP", "/apis/k8s.ovn.org/v1/egressips"),
    ("EgressQoS", "/apis/k8s.ovn.org/v1/egressqoses"),
    ("EgressService", "/apis/k8s.ovn.org/v1/egressservices"),
    ("MultiNetworkPolicy", "/apis/k8s.cni.cncf.io/v1beta1/multi-networkpolicies"),
    (ATTACHMENT, "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions"),
    ("NetworkQoS", "/apis/k8s.ovn.org/v1alpha1/networkqoses"),
    ("RouteAdvertisements", "/apis/k8s.ovn.org/v1/routeadvertisements"),
    ("UserDefinedNetwork", "/apis/k8s.ovn.org/v1/userdefinednetworks"),
    ("VTEP", "/apis/k8s.ovn.org/v1/vteps"),
];
/// Only those of OVN count: see [`is_of_ovn`].
pub const ATTACHMENT: &str = "NetworkAttachmentDefinition";

/// Workloads that write other network configurations, by the names that their own manifests give them.
const OTHER_NETWORKS: [&str; 12] = [
    "antrea-agent",
    "aws-node",
    "azure-cns",
    "calico-node",
    "canal",
    "cilium",
    "kindnet",
    "kube-flannel",
    "kube-flannel-ds",
    "kube-ovn-cni",
    "kube-router",
    "weave-net",
];
/// Parts of ovn-kubernetes that write the same rows, annotations and hosts; ovnkube has none of these.
const OVN_KUBERNETES: [(&str, &str); 6] = [
    ("DaemonSet", "ovnkube-node"),
    ("DaemonSet", "ovnkube-node-dpu"),
    ("DaemonSet", "ovnkube-node-dpu-host"),
    ("DaemonSet", "ovnkube-zone-controller"),
    ("Deployment", "ovnkube-control-plane"),
    ("Deployment", "ovnkube-master"),
];

/// Encrypts the tunnels.
const IPSEC: (&str, &str) = ("DaemonSet", "ovn-ipsec");

/// Lets only the accounts of ovn-kubernetes change what node agents write.
const WEBHOOK: (&str, &str) = ("ValidatingWebhookConfiguration", "ovn-kubernetes-admission-webhook-node");

/// The cluster and what is wanted of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Observed {
    pub settings: Settings,
    /// Version of the API server: `v1.36.2`; empty if it is not known.
    pub kubernetes: String,
    pub nodes: Vec<NodeSeen>,
    /// Addresses of the service `default/kubernetes`.
    pub api_service: Vec<IpAddr>,
    /// `(kind, namespace, name)` of DaemonSets, Deployments and webhooks; these have no namespace.
    pub workloads: Vec<(String, String, String)>,
    /// Kind, and namespace and name: what a user asks of features that are not served.
    pub objects: Vec<(String, String)>,
    pub northbound: Northbound,
}

/// What ovnkube would be started with.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    pub cluster_subnets: Vec<Subnet>,
    pub service_cidrs: Vec<Subnet>,
    pub join_subnets: Vec<Subnet>,
    pub masquerade_subnets: Vec<Subnet>,
    /// `None`: nodes choose it.
    pub mtu: Option<u32>,
}

/// A Node.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NodeSeen {
    pub name: String,
    pub addresses: Vec<IpAddr>,
    /// Subnets that it is annotated with.
    pub subnets: Vec<Subnet>,
    /// Subnets that the controller manager gave it.
    pub pod_cidrs: Vec<String>,
    pub zone: String,
    /// What it says of its masquerade subnets.
    pub masquerade_subnets: Vec<Subnet>,
}

/// The northbound database.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Northbound {
    /// Why it was not read; empty if it was.
    pub unreachable: String,
    /// Of its schema.
    pub version: String,
    /// Addresses of the cluster router on the join switch.
    pub join: Vec<IpNetwork>,
    /// MTU of pods, by the router port that says so.
    pub mtus: BTreeMap<String, u32>,
    #[serde(skip)]
    pub unserved: Unserved,
}

/// Everything to do, in the order of the checks.
pub fn check(observed: &Observed) -> Vec<Finding> {
    let Observed { settings, kubernetes, nodes, api_service, workloads, objects, northbound } = observed;
    let mut found = Vec::new();
    found.extend(too_old(
        "Kubernetes",
        kubernetes,
        KUBERNETES,
        "update the API servers to 1.33 or later, or use the webhook of docs/install.md",
    ));
    found.extend(nodes.iter().flat_map(|node| node_findings(node, settings)));
    found.extend(masquerade(nodes, settings));
    found.extend(outside(api_service, settings));
    found.extend(workloads.iter().filter_map(|(kind, namespace, name)| workload(kind, namespace, name)));
    found.extend(unserved_objects(objects));
    found.extend(northbound_findings(northbound, settings));
    found
}

/// The numbers of `v1.36.2-rc1`; `None` if it does not begin with two.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.trim_start_matches('v').split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn too_old(what: &str, version: &str, least: (u32, u32), remedy: &str) -> Option<Finding> {
    let have = numbers(version)?;
    (have < least).then(|| Finding::new(format!("{what} is too old"), format!("version {version}"), remedy))
}

/// A northbound schema that is older than what is supported.
pub fn old_northbound(version: &str) -> Option<Finding> {
    too_old("the northbound database's schema", version, NORTHBOUND, "update OVN to 23.03 or later")
}

fn node_findings(node: &NodeSeen, settings: &Settings) -> Vec<Finding> {
    let mut found = Vec::new();
    let place = |value: &dyn std::fmt::Display| format!("node {}, {value}", node.name);
    if let Some(cidr) = node.pod_cidrs.first() {
        let what = "the controller manager gives nodes subnets too";
        found.push(Finding::new(what, place(cidr), "start it with --allocate-node-cidrs=false"));
    }
    for subnet in &node.subnets {
        if !settings.cluster_subnets.iter().any(|range| range.contains_subnet(*subnet)) {
            let what = "a node has a subnet outside of cluster-subnets";
            found.push(Finding::new(what, place(subnet), "set cluster-subnets to the range that the cluster uses"));
        }
    }
    let ranges = [
        ("cluster-subnets", &settings.cluster_subnets),
        ("service-cidrs", &settings.service_cidrs),
        ("v4-join-subnet or v6-join-subnet", &settings.join_subnets),
    ];
    for (name, ranges) in ranges {
        for address in node.addresses.iter().filter(|address| ranges.iter().any(|range| range.contains(**address))) {
            let what = format!("a node has an address of {name}");
            found.push(Finding::new(what, place(address), format!("choose another range for {name}")));
        }
    }
    if !matches!(node.zone.as_str(), "" | "global") {
        let remedy = "bring the cluster to one zone first: ovnkube has all nodes in one";
        found.push(Finding::new("a node is a zone of its own", place(&format!("zone {}", node.zone)), remedy));
    }
    found
}

/// One node says it for all: the cluster has one value for each family.
fn masquerade(nodes: &[NodeSeen], settings: &Settings) -> Vec<Finding> {
    let finding = |is_ipv6: bool| {
        let mut all = nodes.iter().flat_map(|node| node.masquerade_subnets.iter().map(|subnet| (&node.name, *subnet)));
        let is_other = |subnet: Subnet| subnet.is_ipv6() == is_ipv6 && !settings.masquerade_subnets.contains(&subnet);
        let (name, subnet) = all.find(|(_, subnet)| is_other(*subnet))?;
        let flag = if is_ipv6 { "v6-masquerade-subnet" } else { "v4-masquerade-subnet" };
        let remedy = format!("set {flag} of [gateway] to it, or what the host has of it is replaced while pods use it");
        Some(Finding::new("nodes have another masquerade subnet", format!("node {name}, {subnet}"), remedy))
    };
    [false, true].into_iter().filter_map(finding).collect()
}

/// Service addresses outside of the range: nobody would reach the API server by its service.
fn outside(api_service: &[IpAddr], settings: &Settings) -> Vec<Finding> {
    let is_outside = |ip: &&IpAddr| !settings.service_cidrs.iter().any(|range| range.contains(**ip));
    let finding = |ip: &IpAddr| {
        let what = "a service has an address outside of service-cidrs";
        let remedy = "set service-cidrs to the API server's --service-cluster-ip-range";
        Finding::new(what, format!("service default/kubernetes, {ip}"), remedy)
    };
    api_service.iter().filter(is_outside).map(finding).collect()
}

fn workload(kind: &str, namespace: &str, name: &str) -> Option<Finding> {
    let place = if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") };
    let finding = |what, remedy| Some(Finding::new(what, place, remedy));
    if name == "kube-proxy" {
        return finding("kube-proxy runs", "delete it: ovnkube serves what it serves");
    }
    if OVN_KUBERNETES.contains(&(kind, name)) {
        return finding("a part of ovn-kubernetes runs", "docs/migrate.md says how to change over from it");
    }
    if (kind, name) == IPSEC {
        let remedy = "end IPsec while ovn-kubernetes still runs: ovnkube does not encrypt tunnels";
        return finding("ovn-kubernetes encrypts the tunnels", remedy);
    }
    if (kind, name) == WEBHOOK {
        let remedy =
            "delete it: it refuses what ovnkube's agents write, and every status of a Node once its pods are gone";
        return finding("a webhook of ovn-kubernetes judges changes of Nodes", remedy);
    }
    let is_other = kind == "DaemonSet" && OTHER_NETWORKS.contains(&name);
    if is_other { finding("another network plugin runs", "remove it and its files in /etc/cni/net.d") } else { None }
}

/// One finding for each kind.
fn unserved_objects(objects: &[(String, String)]) -> Vec<Finding> {
    let mut kinds: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (kind, object) in objects {
        kinds.entry(kind).or_default().insert(object);
    }
    let finding = |(kind, objects): (&str, BTreeSet<&str>)| {
        let named = objects.iter().copied().take(NAMED).collect::<Vec<_>>().join(", ");
        let more = objects.len().saturating_sub(NAMED);
        let place = if more > 0 { format!("{named} and {more} more") } else { named };
        Finding::new(format!("{kind} is not supported"), place, "remove what is named here, or live without its effect")
    };
    kinds.into_iter().map(finding).collect()
}

fn northbound_findings(northbound: &Northbound, settings: &Settings) -> Vec<Finding> {
    let Northbound { unreachable, version, join, mtus, unserved } = northbound;
    if !unreachable.is_empty() {
        let remedy = "start it or name it with --nb-address, and run this again: its rows are not checked";
        return vec![Finding::new("the northbound database is not reached", unreachable.as_str(), remedy)];
    }
    let mut found = Vec::new();
    found.extend(old_northbound(version));
    for network in join.iter().filter(|net| !settings.join_subnets.iter().any(|range| range.contains(net.ip()))) {
        let place = format!("Logical_Router_Port {}, {network}", names::CLUSTER_ROUTER_TO_JOIN);
        let remedy = "set v4-join-subnet and v6-join-subnet of [gateway] to what the cluster uses";
        found.push(Finding::new("the cluster has another join subnet", place, remedy));
    }
    // one says it for all: the cluster has one value
    if let Some((port, mtu)) = mtus.iter().find(|(_, mtu)| settings.mtu != Some(**mtu)) {
        let place = format!("Logical_Router_Port {port}, {mtu}");
        found.push(Finding::new(
            "running pods have another MTU",
            place,
            format!("set mtu to {mtu}, or restart all pods afterwards"),
        ));
    }
    for (feature, holding) in unserved.features() {
        let remedy = "delete these objects while ovn-kubernetes still runs, or start the master with --allow-unserved";
        found.push(Finding::new(format!("{feature} is not supported, but has rows"), holding, remedy));
    }
    found
}

/// Whether the text of a NetworkAttachmentDefinition asks for a network of OVN besides the cluster's own.
pub fn is_of_ovn(config: &str) -> bool {
    let Ok(config) = serde_json::from_str::<serde_json::Value>(config) else { return false };
    let plugins = config.get("plugins").and_then(serde_json::Value::as_array);
    let mut all = std::iter::once(&config).chain(plugins.into_iter().flatten());
    let is_default = config.get("name").is_some_and(|name| name == "default");
    !is_default && all.any(|plugin| plugin.get("type").is_some_and(|kind| kind == "ovn-k8s-cni-overlay"))
}
