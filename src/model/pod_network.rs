//! The `k8s.ovn.org/pod-networks` annotation: how a pod's addresses get from the controller to the
//! node that wires it.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_ipam::Mac;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::{BadAnnotation, Name, keys};

/// Longest annotation that is read, bytes.
const LONGEST: usize = 64 * 1024;

/// The addresses of a pod on the default network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodAddresses {
    /// One per family, with the prefix length of the node's subnet.
    pub ips: Vec<IpNetwork>,
    pub mac: Mac,
}

impl PodAddresses {
    /// The addresses without prefix length.
    pub fn each(&self) -> impl Iterator<Item = IpAddr> {
        self.ips.iter().map(IpNetwork::ip)
    }

    /// Whether these are the same addresses, in any order: a kubelet puts its node's first family first.
    pub fn are(&self, ips: &[IpAddr]) -> bool {
        let known = |ip: &IpAddr| self.each().any(|have| have == *ip);
        ips.len() == self.ips.len() && self.each().all(|ip| ips.contains(&ip)) && ips.iter().all(known)
    }

    /// `"0a:58:0a:80:00:03 10.128.0.3"`, as `Logical_Switch_Port.addresses` wants it.
    pub fn port_address(&self) -> String {
        use std::fmt::Write;
        let mut text = self.mac.to_string();
        for ip in &self.ips {
            let _ = write!(text, " {}", ip.ip());
        }
        text
    }
}

/// The addresses found in the annotation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodAnnotation {
    pub addresses: PodAddresses,
    /// Digest of the whole `default` entry, to tell whether it must be written again.
    pub digest: u64,
    /// The whole annotation if it has entries of other networks, which must be kept.
    pub with_others: Option<Name>,
}

/// One network's entry of the annotation. Field order is that of ovn-kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodNetwork {
    #[serde(default)]
    pub ip_addresses: Vec<IpNetwork>,
    pub mac_address: Mac,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateway_ips: Vec<IpAddr>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// The single address of a single-stack pod, for old readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<IpNetwork>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_ip: Option<IpAddr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

/// A route in the pod's namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Route {
    pub dest: IpNetwork,
    #[serde(rename = "nextHop")]
    pub next_hop: IpAddr,
}

impl PodNetwork {
    /// Parses the `default` entry of the annotation; the text may hold other networks too.
    pub fn parse(text: &str) -> Result<Self, BadAnnotation> {
        let bad = |problem: String| BadAnnotation::new(keys::POD_NETWORKS, problem);
        object(text).and_then(|networks| Self::default_of(&networks)).map_err(bad)
    }

    fn default_of(networks: &BTreeMap<String, &RawValue>) -> Result<Self, String> {
        let entry = networks.get("default").ok_or("it has no \"default\" network")?;
        let network: Self = serde_json::from_str(entry.get()).map_err(|e| format!("its default network: {e}"))?;
        network.check()
    }

    fn check(mut self) -> Result<Self, String> {
        if self.ip_addresses.is_empty() {
            self.ip_addresses.extend(self.ip_address);
        }
        if self.ip_addresses.len() > 2 {
            return Err(format!(
                "its default network has {} addresses, and one per family is allowed",
                self.ip_addresses.len()
            ));
        }
        if !self.mac_address.is_unicast() {
            return Err(format!("mac_address {} of its default network is not unicast", self.mac_address));
        }
        Ok(self)
    }

    /// Digest of the entry. Equal entries have equal digests, whatever the spacing and order of their texts and the
    /// order of their routes.
    pub fn digest(&self) -> u64 {
        let Self { ip_addresses, mac_address, gateway_ips, routes, ip_address, gateway_ip, role } = self;
        let each = routes.iter().map(Fnv::of).fold(0, u64::wrapping_add);
        Fnv::of(&(ip_addresses, mac_address, gateway_ips, (routes.len(), each), ip_address, gateway_ip, role))
    }
}

/// FNV-1a, since digests are recorded and must be the same in every process.
struct Fnv(u64);

impl Fnv {
    fn of(what: &impl Hash) -> u64 {
        let mut hash = Self(0xcbf2_9ce4_8422_2325);
        what.hash(&mut hash);
        hash.finish()
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl PodAnnotation {
    pub fn parse(text: &str) -> Result<Self, BadAnnotation> {
        let bad = |problem: String| BadAnnotation::new(keys::POD_NETWORKS, problem);
        let networks: BTreeMap<String, &RawValue> = object(text).map_err(bad)?;
        let others = networks.len() > 1;
        let network = PodNetwork::default_of(&networks).map_err(bad)?;
        Ok(Self {
            digest: network.digest(),
            addresses: PodAddresses { ips: network.ip_addresses, mac: network.mac_address },
            with_others: others.then(|| text.into()),
        })
    }
}

/// The annotation's text with `network` as its default entry; entries of other networks in `have` are kept.
pub fn render_pod_networks(network: &PodNetwork, have: Option<&str>) -> String {
    let mut networks: Map<String, Value> = have.and_then(|text| object(text).ok()).unwrap_or_default();
    if networks.keys().all(|name| name == "default") {
        // the common case keeps the field order; concat allocates no more than needed, which counts with one per pod
        return [r#"{"default":"#, &serde_json::to_string(network).unwrap_or_default(), "}"].concat();
    }
    networks.insert("default".into(), serde_json::to_value(network).unwrap_or_default());
    Value::Object(networks).to_string()
}

/// Parses a JSON object of limited length.
fn object<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    if text.len() > LONGEST {
        return Err(format!("it has {} bytes, and at most {LONGEST} are read", text.len()));
    }
    serde_json::from_str(text).map_err(|e| format!("it is not a JSON object: {e}"))
}
