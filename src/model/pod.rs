//! Pods.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ovnkube_ipam::Mac;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BadAnnotation, Labels, Meta, Name, PodAnnotation, Protocol, keys};

/// How many addresses of a pod are read: one per family, and one more that shows that there are too many.
const MOST_IPS: usize = 3;

/// How many numbers of a pod's ports of one name count for network policies: with any number of containers, a single pod would
/// otherwise take the place of all other pods' numbers. One more is read, which shows that there are too many.
pub(crate) const MOST_OF_NAME: usize = 8;

/// The fields of a pod beside its metadata that matter.
#[derive(Debug, Clone, Copy, Default)]
pub struct PodFields<'a> {
    pub node_name: Option<&'a str>,
    pub host_network: bool,
    /// `Succeeded` or `Failed`: its containers will never run again.
    pub finished: bool,
    /// `status.podIPs`.
    pub ips: &'a [IpAddr],
    /// Those ports of its containers that have names.
    pub ports: &'a [NamedPort],
}

/// The part of a pod that can change what is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Pod {
    pub uid: Name,
    /// Seconds since 1970; of two pods that claim an address the older one keeps it.
    pub created: i64,
    pub node: Option<Name>,
    pub host_network: bool,
    pub finished: bool,
    /// The pod has started: its status has addresses of the cluster's network.
    #[serde(default)]
    pub running: bool,
    /// It has no annotations, of anyone.
    #[serde(default)]
    pub is_bare: bool,
    pub labels: Labels,
    pub ports: Box<[NamedPort]>,
    /// Addresses of its status: the node's for a host-network pod, else those that it runs with if they differ from
    /// the annotated ones. They rarely do, so most pods have none here.
    #[serde(alias = "host_ips")]
    pub ips: Box<[IpAddr]>,
    pub annotated: Option<PodAnnotation>,
    pub request: Option<Box<AddressRequest>>,
    pub bad: Vec<BadAnnotation>,
    /// Only for pods of the own node: what else its agent needs.
    pub wiring: Option<Box<Wiring>>,
}

/// A named container port, which rules can refer to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPort {
    pub name: Name,
    pub protocol: Protocol,
    pub number: u16,
}

/// Annotations that only the agent of the pod's node reads, unparsed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wiring {
    pub networks: Option<Name>,
    /// Bits per second, like `10M`.
    pub ingress_bandwidth: Option<Name>,
    pub egress_bandwidth: Option<Name>,
    /// The uid that the kubelet uses for a static pod, the hash of its file. It is the value of the annotation of the pod in
    /// the API server, its mirror, which the API server lets nobody add, change or remove afterwards, unlike
    /// `kubernetes.io/config.hash`. What remains: whoever may create a pod that is bound to a node can create one with it,
    /// until the kubelet deletes that as a mirror of nothing.
    pub config_hash: Option<Name>,
}

/// A fixed IP or MAC that a user asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AddressRequest {
    pub ips: Vec<IpAddr>,
    pub mac: Option<Mac>,
}

impl Pod {
    pub fn parse(meta: &Meta<'_>, fields: PodFields<'_>) -> Self {
        let mut bad = Vec::new();
        let mut keep = |result: Result<_, BadAnnotation>| result.map_err(|b| bad.push(b)).ok();
        let annotated = meta.annotations.get(keys::POD_NETWORKS).and_then(|text| keep(PodAnnotation::parse(text)));
        let request = match meta.annotations.get(keys::DEFAULT_NETWORK).map(|text| AddressRequest::parse(text)) {
            Some(Ok(request)) => request.map(Box::new),
            Some(Err(problem)) => {
                bad.push(problem);
                None
            }
            None => None,
        };
        let running = !fields.host_network && !fields.finished && !fields.ips.is_empty();
        let as_annotated = annotated.as_ref().is_some_and(|a: &PodAnnotation| a.addresses.are(fields.ips));
        let kept = fields.host_network || running && !as_annotated;
        Self {
            uid: meta.uid.into(),
            created: meta.created,
            node: fields.node_name.filter(|n| !n.is_empty()).map(Into::into),
            host_network: fields.host_network,
            finished: fields.finished,
            running,
            is_bare: meta.annotations.is_empty(),
            labels: meta.labels.into(),
            ports: few_of_each_name(fields.ports),
            ips: fields.ips.iter().copied().take(if kept { MOST_IPS } else { 0 }).collect(),
            annotated,
            request,
            bad,
            wiring: None,
        }
    }

    /// Where the pod runs and with what addresses, nothing else; `None` for a pod that does not run.
    pub fn if_it_runs(self) -> Option<Self> {
        let annotated = self.annotated.map(|annotated| PodAnnotation { with_others: None, ..annotated });
        let (labels, ports, bad) = Default::default();
        self.running.then_some(Self { labels, ports, bad, annotated, request: None, ..self })
    }

    /// The pod with what its node's agent needs.
    pub fn with_wiring(mut self, meta: &Meta<'_>) -> Self {
        let text = |key| meta.annotations.get(key).map(|text| text.as_str().into());
        self.wiring = Some(Box::new(Wiring {
            networks: text(keys::POD_NETWORKS),
            ingress_bandwidth: text(keys::INGRESS_BANDWIDTH),
            egress_bandwidth: text(keys::EGRESS_BANDWIDTH),
            config_hash: text(keys::CONFIG_MIRROR),
        }));
        self
    }

    /// The numbers of its ports of this name.
    pub fn numbers<'a>(&'a self, protocol: Protocol, name: &'a str) -> impl Iterator<Item = u16> + 'a {
        let is_it = move |port: &&NamedPort| port.protocol == protocol && port.name.as_ref() == name;
        self.ports.iter().filter(is_it).map(|port| port.number).take(MOST_OF_NAME)
    }

    /// Names of ports that have more numbers than count.
    pub(crate) fn names_with_too_many_numbers(&self) -> BTreeSet<&Name> {
        if self.ports.len() <= MOST_OF_NAME {
            return BTreeSet::new();
        }
        let mut counts: BTreeMap<_, usize> = BTreeMap::new();
        for port in &self.ports {
            *counts.entry((port.protocol, &port.name)).or_default() += 1;
        }
        counts.into_iter().filter(|(_, count)| *count > MOST_OF_NAME).map(|((_, name), _)| name).collect()
    }

    /// Addresses of a pod in the host's network.
    pub fn host_ips(&self) -> &[IpAddr] {
        if self.host_network { &self.ips } else { &[] }
    }

    /// Addresses that a pod on the cluster's network runs with, as its kubelet reports them.
    pub fn runs_with(&self) -> impl Iterator<Item = IpAddr> {
        let told = self.ips.iter().copied();
        let annotated = self.annotated.iter().filter(|_| self.ips.is_empty()).flat_map(|a| a.addresses.each());
        told.chain(annotated).filter(|_| self.running)
    }

    /// Whether it runs on a node, or soon will.
    pub fn is_placed(&self) -> bool {
        self.node.is_some() && !self.finished
    }

    /// The node this pod needs a logical port on; `None` for pods that need none: unscheduled ones,
    /// those in the host's network, and those that have finished.
    pub fn wired_on(&self) -> Option<&Name> {
        self.node.as_ref().filter(|_| !self.host_network && !self.finished)
    }
}

/// The ports without those beyond the limit, each number once. The first ones stay, as services use them.
fn few_of_each_name(ports: &[NamedPort]) -> Box<[NamedPort]> {
    if ports.len() <= 1 {
        return ports.into();
    }
    let mut numbers: BTreeMap<_, BTreeSet<u16>> = BTreeMap::new();
    let few = ports.iter().filter(|port| {
        let of_name = numbers.entry((port.protocol, &port.name)).or_default();
        of_name.len() <= MOST_OF_NAME && of_name.insert(port.number)
    });
    few.cloned().collect()
}

impl AddressRequest {
    /// Parses a network selection: `[{"name":"…","namespace":"…","ips":["10.1.2.3/24"],"mac":"…"}]`,
    /// one object alone, or the short form `namespace/name@interface`, which requests nothing.
    fn parse(text: &str) -> Result<Option<Self>, BadAnnotation> {
        let bad = |problem: String| BadAnnotation::new(keys::DEFAULT_NETWORK, problem);
        if !text.trim_start().starts_with(['[', '{']) {
            return Ok(None);
        }
        let value: Value = serde_json::from_str(text).map_err(|e| bad(format!("it is not JSON: {e}")))?;
        let selection = match &value {
            Value::Array(list) if list.len() == 1 => list.first().unwrap_or(&Value::Null),
            Value::Array(list) => return Err(bad(format!("it selects {} networks; select one", list.len()))),
            other => other,
        };
        let request = Self { ips: ips(selection).map_err(bad)?, mac: mac(selection).map_err(bad)? };
        Ok((request != Self::default()).then_some(request))
    }
}

fn ips(selection: &Value) -> Result<Vec<IpAddr>, String> {
    let Some(list) = selection.get("ips") else { return Ok(Vec::new()) };
    let list = list.as_array().ok_or("\"ips\" is not a list")?;
    let mut ips = Vec::new();
    for item in list {
        let text = item.as_str().unwrap_or_default();
        let address = text.split_once('/').map_or(text, |(address, _)| address);
        let address: IpAddr = address.parse().map_err(|_| format!("\"ips\" holds {item}, not an address"))?;
        if ips.iter().any(|ip: &IpAddr| ip.is_ipv4() == address.is_ipv4()) {
            return Err(format!("\"ips\" holds {item} beside another address of its family"));
        }
        ips.push(address);
    }
    Ok(ips)
}

fn mac(selection: &Value) -> Result<Option<Mac>, String> {
    let Some(value) = selection.get("mac") else { return Ok(None) };
    let mac: Mac = value.as_str().unwrap_or_default().parse()?;
    if !mac.is_unicast() {
        return Err(format!("\"mac\" {mac} is not unicast"));
    }
    Ok(Some(mac))
}
