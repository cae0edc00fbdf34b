//! Nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_ipam::{Mac, Subnet};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BadAnnotation, Gateway, Meta, Name, keys};

/// Annotations that the cluster manager and the node's agent write; kept as text to see whether they
/// must be written again.
const WRITTEN: [&str; 13] = [
    keys::NODE_SUBNETS,
    keys::NODE_ID,
    keys::NETWORK_IDS,
    keys::JOIN_ADDRESSES,
    keys::CHASSIS_ID,
    keys::ZONE,
    keys::HOST_CIDRS,
    keys::ENCAP_IPS,
    keys::PRIMARY_IFADDR,
    keys::GATEWAY,
    keys::GATEWAY_MTU_SUPPORT,
    keys::NODE_MTU,
    keys::MASQUERADE_SUBNET,
];

/// The most addresses of a host that have rows: each serves every node port, in rows of the node, and is a policy of the cluster's
/// router.
const HOST_CIDRS: usize = 64;
/// The most addresses of a host that are the node's, so that services may not have them.
const KNOWN_CIDRS: usize = 1024;
/// The most addresses in a node's status, of type InternalIP and of all others.
pub(crate) const STATUS_ADDRESSES: usize = 1024;

/// The part of a node that can change what is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub uid: Name,
    /// Seconds since 1970.
    pub created: i64,
    /// `status.addresses` of type InternalIP.
    pub addresses: Vec<IpAddr>,
    /// `status.addresses` of other types: nothing here reaches the node by them, but they belong to it.
    pub other_addresses: Vec<IpAddr>,
    /// The number of those in `status.addresses` that are left out, since there are too many.
    #[serde(default)]
    pub surplus_addresses: usize,
    /// OVS system-id of the node's chassis; set by the node's agent.
    pub chassis_id: Option<Name>,
    /// `global` if not annotated.
    pub zone: Name,
    pub id: Option<u32>,
    /// Subnets of the default network, at most one per family.
    pub subnets: Vec<Subnet>,
    /// Subnet that a hybrid-overlay node itself manages.
    pub foreign_subnet: Option<Subnet>,
    /// MAC of the management port if it is not the one derived from its address.
    pub mgmt_mac: Option<Mac>,
    /// The gateway of the node's pods; `None` until the node's agent has set it up.
    pub gateway: Option<Gateway>,
    /// Its gateway router tells senders when packets are too large for pods.
    pub checks_mtu: bool,
    /// MTU of its pods if the node chose it.
    pub mtu: Option<u32>,
    /// Addresses of the host itself, beside those of its gateway; those that have rows first.
    pub host_cidrs: Vec<IpNetwork>,
    pub labels: BTreeMap<String, String>,
    /// Reason of its condition NetworkUnavailable while that is true.
    pub network_unavailable: Option<Name>,
    /// It should get no new connections: it is being deleted, or will be.
    pub leaving: bool,
    /// It has no annotations, of anyone.
    #[serde(default)]
    pub is_bare: bool,
    /// Text of the annotations that ovnkube writes.
    pub written: BTreeMap<Name, Name>,
    pub bad: Vec<BadAnnotation>,
}

/// The fields of a node beside its metadata that matter.
#[derive(Debug, Clone, Copy, Default)]
pub struct NodeFields<'a> {
    /// `status.addresses` of type InternalIP.
    pub addresses: &'a [IpAddr],
    /// `status.addresses` of other types, such as ExternalIP.
    pub other_addresses: &'a [IpAddr],
    /// Reason of the condition NetworkUnavailable while that is true.
    pub network_unavailable: Option<&'a str>,
    /// It is being deleted, or an autoscaler will delete it.
    pub leaving: bool,
}

impl Node {
    /// What prefixes of other clusters are judged by: the addresses of the gateway and of the host, and those that Kubernetes knows.
    pub(crate) fn own_addresses(&self) -> (&[IpNetwork], &[IpNetwork], &[IpAddr], &[IpAddr]) {
        let gateway = self.gateway.as_ref().map(|gateway| gateway.ips.as_slice()).unwrap_or_default();
        (gateway, &self.host_cidrs, &self.addresses, &self.other_addresses)
    }

    /// Addresses of the host itself that have rows.
    pub fn cidrs_with_rows(&self) -> &[IpNetwork] {
        self.host_cidrs.get(..HOST_CIDRS).unwrap_or(&self.host_cidrs)
    }

    /// Whether the label tells its agent to look for routes of its host to other clusters.
    pub fn looks_for_routes(&self) -> bool {
        self.labels.get(keys::HOST_ROUTE).is_some_and(|value| value == "true")
    }

    /// Whether this is an address of the node, by its status or its agent.
    pub fn has_ip(&self, ip: IpAddr) -> bool {
        let gateway = self.gateway.iter().flat_map(|gateway| &gateway.ips);
        let mut links = self.host_cidrs.iter().chain(gateway);
        self.addresses.contains(&ip) || self.other_addresses.contains(&ip) || links.any(|net| net.ip() == ip)
    }

    pub fn parse(meta: &Meta<'_>, fields: NodeFields<'_>) -> Self {
        let mut read = Reader { annotations: meta.annotations, bad: Vec::new() };
        let first = |all: &[IpAddr]| all.iter().take(STATUS_ADDRESSES).copied().collect::<Vec<_>>();
        let surplus = |all: &[IpAddr]| all.len().saturating_sub(STATUS_ADDRESSES);
        let (gateway, addresses) = (read.gateway(), first(fields.addresses));
        let host_cidrs = read.host_cidrs(gateway.as_ref(), &addresses);
        Self {
            uid: meta.uid.into(),
            created: meta.created,
            addresses,
            other_addresses: first(fields.other_addresses),
            surplus_addresses: surplus(fields.addresses) + surplus(fields.other_addresses),
            network_unavailable: fields.network_unavailable.map(Into::into),
            leaving: fields.leaving,
            gateway,
            checks_mtu: meta.annotations.get(keys::GATEWAY_MTU_SUPPORT).is_none_or(|text| text != "false"),
            mtu: read.parsed(keys::NODE_MTU, mtu),
            host_cidrs,
            labels: meta.labels.clone(),
            chassis_id: read.text(keys::CHASSIS_ID),
            zone: read.text(keys::ZONE).unwrap_or_else(|| "global".into()),
            id: read.parsed(keys::NODE_ID, |text| text.parse().map_err(|_| format!("{text:?} is not a number"))),
            subnets: read.parsed(keys::NODE_SUBNETS, subnets).unwrap_or_default(),
            foreign_subnet: read.parsed(keys::HYBRID_SUBNET, str::parse),
            mgmt_mac: read.parsed(keys::MGMT_PORT_MACS, mgmt_mac).flatten(),
            is_bare: meta.annotations.is_empty(),
            written: WRITTEN
                .iter()
                .filter_map(|key| Some(((*key).into(), meta.annotations.get(*key)?.as_str().into())))
                .collect(),
            bad: read.bad,
        }
    }
}

struct Reader<'a> {
    annotations: &'a BTreeMap<String, String>,
    bad: Vec<BadAnnotation>,
}

impl Reader<'_> {
    fn text(&self, key: &str) -> Option<Name> {
        self.annotations.get(key).filter(|v| !v.is_empty()).map(|v| v.as_str().into())
    }

    fn parsed<T>(&mut self, key: &str, parse: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        let text = self.annotations.get(key)?;
        parse(text).map_err(|problem| self.bad.push(BadAnnotation::new(key, problem))).ok()
    }

    fn gateway(&mut self) -> Option<Gateway> {
        let mut gateway = self.parsed(keys::GATEWAY, Gateway::parse).flatten()?;
        let problem = gateway.limit();
        self.bad.extend(problem.map(|problem| BadAnnotation::new(keys::GATEWAY, problem)));
        Some(gateway)
    }

    /// Those that have rows come first, and of too many these are the addresses that the cluster knows the node by.
    fn host_cidrs(&mut self, gateway: Option<&Gateway>, addresses: &[IpAddr]) -> Vec<IpNetwork> {
        let mut cidrs = self.parsed(keys::HOST_CIDRS, host_cidrs).unwrap_or_default();
        let count = cidrs.len();
        if count > HOST_CIDRS {
            let gateway = gateway.iter().flat_map(|gateway| &gateway.ips).map(IpNetwork::ip);
            let named: BTreeSet<IpAddr> = gateway.chain(addresses.iter().copied()).collect();
            cidrs.sort_by_key(|cidr| !named.contains(&cidr.ip()));
            cidrs.truncate(KNOWN_CIDRS);
            let problem = format!(
                "it has {count} addresses and {HOST_CIDRS} are used, those of the gateway and of status.addresses first: each \
                 serves every node port; remove others from the host"
            );
            self.bad.push(BadAnnotation::new(keys::HOST_CIDRS, problem));
        }
        cidrs
    }
}

/// `{"default":["10.128.0.0/23"]}`, or the older `{"default":"10.128.0.0/23"}`.
fn subnets(text: &str) -> Result<Vec<Subnet>, String> {
    let networks: Value = serde_json::from_str(text).map_err(|e| format!("it is not JSON: {e}"))?;
    let mut subnets: Vec<Subnet> = Vec::new();
    let list = match networks.get("default") {
        None => return Ok(subnets),
        Some(Value::Array(list)) => list.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    for item in list {
        let subnet: Subnet = item.as_str().ok_or_else(|| format!("{item} is not a CIDR"))?.parse()?;
        if subnets.iter().any(|s| s.is_ipv6() == subnet.is_ipv6()) {
            return Err(format!("{text} has two subnets of one family"));
        }
        if !has_room(subnet) {
            return Err(format!("{subnet} has no room for pods"));
        }
        subnets.push(subnet);
    }
    Ok(subnets)
}

/// Whether there is an address for a pod beside those of the network, the gateway, the management port and broadcasts.
pub(crate) fn has_room(subnet: Subnet) -> bool {
    subnet.host_bits() > 2
}

/// `{"default":"0a:58:…"}`.
fn mgmt_mac(text: &str) -> Result<Option<Mac>, String> {
    let networks: Value = serde_json::from_str(text).map_err(|e| format!("it is not JSON: {e}"))?;
    let Some(mac) = networks.get("default") else { return Ok(None) };
    mac.as_str().unwrap_or_default().parse().map(Some)
}

/// Bytes.
fn mtu(text: &str) -> Result<u32, String> {
    let range = 576..=65535;
    text.parse()
        .ok()
        .filter(|mtu| range.contains(mtu))
        .ok_or_else(|| format!("{text:?} is not a number from 576 to 65535"))
}

/// `["172.18.0.2/16"]`.
fn host_cidrs(text: &str) -> Result<Vec<IpNetwork>, String> {
    let list: Vec<String> = serde_json::from_str(text).map_err(|e| format!("it is not a JSON list: {e}"))?;
    let mut known = BTreeSet::new();
    let parse = |item: &String| item.parse().map_err(|_| format!("{item:?} is not a CIDR"));
    let mut cidrs: Vec<IpNetwork> = list.iter().map(parse).collect::<Result<_, _>>()?;
    cidrs.retain(|cidr| known.insert(*cidr));
    Ok(cidrs)
}
