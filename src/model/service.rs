//! Services: the addresses and ports that stand for sets of pods.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{AddrParseError, IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnetwork::IpNetwork;
use serde::{Deserialize, Serialize};

use crate::{Family, Meta, Name, Protocol};

/// Session affinity where the service does not set it, seconds.
const DEFAULT_AFFINITY: u32 = 10_800;
/// Kubernetes' longest affinity is taken for "always the same", which needs no memory.
const FOREVER: u32 = 86_400;

/// Limit for the addresses of a service times its ports. Each pair is a row's entry in OVN, and flows and translations
/// on each node.
const MOST_FRONTENDS: usize = 50_000;

/// Limit for the ranges of a service in `loadBalancerSourceRanges` times the addresses and ports that they limit. Nodes
/// have flows for each combination.
const MOST_SOURCES: usize = 100_000;
/// So many ranges of a family a service may have whatever its size.
const FEW_RANGES: usize = 16;

/// Limit of reported problems of one kind: each is an Event, and more would not be read.
pub(crate) const MOST_REPORTED: usize = 20;

/// The part of a service that can change what is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    pub uid: Name,
    /// Seconds since 1970; of two services that claim an address the older one keeps it.
    pub created: i64,
    pub kind: ServiceType,
    /// Empty for headless and ExternalName services.
    pub cluster_ips: Vec<IpAddr>,
    /// `spec.externalIPs`.
    pub external_ips: Vec<IpAddr>,
    /// `status.loadBalancer.ingress`, those whose packets arrive unchanged (`ipMode: VIP`).
    pub ingress_ips: Vec<IpAddr>,
    /// The others there (`ipMode: Proxy`): the load balancer serves them, and no other service may have them.
    #[serde(default)]
    pub proxied_ips: Vec<IpAddr>,
    pub ports: Vec<ServicePort>,
    pub external_policy: TrafficPolicy,
    pub internal_policy: TrafficPolicy,
    /// `sessionAffinity: ClientIP`: seconds a client stays with its endpoint.
    pub affinity: Option<u32>,
    pub publish_not_ready: bool,
    /// `spec.loadBalancerSourceRanges`, sorted, without those inside others; a family without any lets every client in.
    pub source_ranges: Vec<IpNetwork>,
    pub health_check_port: Option<u16>,
    pub bad: Vec<BadField>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServiceType {
    #[default]
    ClusterIp,
    NodePort,
    LoadBalancer,
    ExternalName,
}

/// Which endpoints a packet may go to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TrafficPolicy {
    #[default]
    Cluster,
    /// Those on the node where it comes in.
    Local,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServicePort {
    /// Empty for the only port of a service. Slices call their ports by it.
    pub name: Name,
    pub protocol: Protocol,
    pub port: u16,
    pub node_port: Option<u16>,
}

/// A field with an impossible value, which is not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadField {
    /// Path within the object: `spec.externalIPs`.
    pub field: Name,
    /// What is wrong with it and what would be right.
    pub problem: String,
}

/// The fields of a service beside its metadata that matter, as they were written.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServiceFields<'a> {
    pub kind: Option<&'a str>,
    pub cluster_ip: Option<&'a str>,
    pub cluster_ips: &'a [String],
    pub external_ips: &'a [String],
    /// Addresses of `status.loadBalancer.ingress` with their `ipMode`.
    pub ingress: &'a [(String, Option<String>)],
    pub ports: &'a [PortFields],
    pub external_traffic_policy: Option<&'a str>,
    pub internal_traffic_policy: Option<&'a str>,
    pub session_affinity: Option<&'a str>,
    pub affinity_timeout: Option<i64>,
    pub publish_not_ready: bool,
    pub source_ranges: &'a [String],
    pub health_check_port: i64,
}

/// A port of a service or slice, as it was written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PortFields {
    pub name: Option<String>,
    pub protocol: Option<String>,
    pub port: Option<i64>,
    pub node_port: Option<i64>,
}

impl BadField {
    pub(crate) fn new(field: impl Into<Name>, problem: impl fmt::Display) -> Self {
        Self { field: field.into(), problem: problem.to_string() }
    }
}

impl Service {
    pub fn parse(meta: &Meta<'_>, fields: &ServiceFields<'_>) -> Self {
        let mut read = Reader::default();
        let kind = read.kind(fields.kind);
        let cluster_ips = if fields.cluster_ips.is_empty() {
            read.addresses("spec.clusterIP", fields.cluster_ip.into_iter())
        } else {
            read.addresses("spec.clusterIPs", fields.cluster_ips.iter().map(String::as_str))
        };
        let balanced = kind == ServiceType::LoadBalancer;
        // a proxy that terminates connections must not be bypassed
        let is_proxied = |(_, mode): &&(String, Option<String>)| mode.as_deref() == Some("Proxy");
        let ingress = fields.ingress.iter().filter(|_| balanced);
        let (proxied, direct): (Vec<_>, Vec<_>) = ingress.partition(is_proxied);
        let mut service = Self {
            uid: meta.uid.into(),
            created: meta.created,
            kind,
            cluster_ips,
            external_ips: read.addresses("spec.externalIPs", fields.external_ips.iter().map(String::as_str)),
            ingress_ips: read.addresses("status.loadBalancer.ingress", direct.iter().map(|(ip, _)| ip.as_str())),
            proxied_ips: proxied.iter().filter_map(|(ip, _)| usable(decimal(ip).ok()?).ok()).collect(),
            ports: read.ports(fields.ports),
            external_policy: read.policy("spec.externalTrafficPolicy", fields.external_traffic_policy),
            internal_policy: read.policy("spec.internalTrafficPolicy", fields.internal_traffic_policy),
            affinity: read.affinity(fields),
            publish_not_ready: fields.publish_not_ready,
            source_ranges: read.ranges(fields.source_ranges),
            health_check_port: None,
            bad: Vec::new(),
        };
        if service.kind == ServiceType::ExternalName {
            service.cluster_ips.clear();
        }
        if !matches!(kind, ServiceType::NodePort | ServiceType::LoadBalancer) {
            // left over from another type
            service.ports.iter_mut().for_each(|port| port.node_port = None);
        }
        if service.is_headless() {
            // nothing is balanced: clients find the endpoints by DNS
            service.external_ips.clear();
            service.ingress_ips.clear();
            service.proxied_ips.clear();
            service.ports.clear();
        } else if balanced && service.external_policy == TrafficPolicy::Local {
            service.health_check_port = u16::try_from(fields.health_check_port).ok().filter(|port| *port > 0);
        }
        if !balanced {
            service.source_ranges.clear();
        }
        service.bad = read.bad;
        service.drop_own_cluster_ips();
        service.drop_other_families();
        service.bad.truncate(MOST_REPORTED);
        service.drop_excess();
        service
    }

    /// How many addresses with ports packets may be sent to; a port of all nodes counts as one address.
    pub(crate) fn frontends(&self) -> usize {
        (self.addresses() + usize::from(self.has_node_ports())) * self.ports.len()
    }

    /// How many addresses it has beside those of nodes.
    pub(crate) fn addresses(&self) -> usize {
        self.cluster_ips.len() + self.external_ips.len() + self.ingress_ips.len()
    }

    /// The same of the family that has more.
    pub(crate) fn addresses_of_a_family(&self) -> usize {
        let all = || [&self.cluster_ips, &self.external_ips, &self.ingress_ips].into_iter().flatten();
        let of_family = |family| all().filter(|ip| Family::of(**ip) == family).count();
        Family::ALL.into_iter().map(of_family).max().unwrap_or_default()
    }

    pub(crate) fn has_node_ports(&self) -> bool {
        self.ports.iter().any(|port| port.node_port.is_some())
    }

    /// Whether a client may get another endpoint after some time.
    pub fn has_affinity_timeout(&self) -> bool {
        self.affinity.is_some_and(|seconds| seconds != FOREVER)
    }

    /// Whether one row may have the node ports of all nodes. A template cannot recognise returning clients.
    pub fn fits_template(&self) -> bool {
        !self.is_external_local() && !self.has_affinity_timeout()
    }

    /// Drops ports and then external addresses, those of load balancers last, so that each address may have each port.
    fn drop_excess(&mut self) {
        let node_ports = self.ports.iter().filter(|port| port.node_port.is_some()).count();
        let own = self.cluster_ips.len() + usize::from(node_ports > 0);
        let mut drop = |field: &str, kept: usize, of: usize, what: &str| {
            if kept < of {
                let limit = format!("{MOST_FRONTENDS}, the limit for addresses times ports of a service");
                let left_out = format!("{} of {of} {what} are left out: there would be more than {limit}", of - kept);
                self.bad.push(BadField::new(field, format!("{left_out}; divide them among several services")));
            }
            kept
        };
        let most = MOST_FRONTENDS / own.max(1);
        self.ports.truncate(drop("spec.ports", self.ports.len().min(most), self.ports.len(), "ports"));
        let ports = self.ports.len();
        let mut left = (MOST_FRONTENDS - ports * own) / ports.max(1);
        let Self { external_ips, ingress_ips, proxied_ips, .. } = self;
        let of_balancer = [ingress_ips, proxied_ips].map(|ips| ("status.loadBalancer.ingress", ips));
        for (field, ips) in of_balancer.into_iter().chain([("spec.externalIPs", external_ips)]) {
            ips.truncate(drop(field, ips.len().min(left), ips.len(), "addresses"));
            left -= ips.len();
        }
        for family in Family::ALL {
            self.drop_excess_ranges(family);
        }
    }

    /// Drops ranges of a family, but not all, which would let every client in.
    fn drop_excess_ranges(&mut self, family: Family) {
        let addresses = self.ingress_ips.iter().filter(|ip| Family::of(**ip) == family).count();
        let most = (MOST_SOURCES / (addresses * self.ports.len()).max(1)).max(FEW_RANGES);
        let mut all = 0;
        self.source_ranges.retain(|range| {
            let is_meant = Family::of(range.ip()) == family;
            all += usize::from(is_meant);
            !is_meant || all <= most
        });
        if all > most {
            let limit = format!("{MOST_SOURCES}, the limit for ranges times addresses and ports");
            let left_out = format!("{} of {all} {} ranges allow no client", all - most, family.version());
            let problem = format!("{left_out}: with them there would be more than {limit}; write wider ranges");
            self.bad.push(BadField::new("spec.loadBalancerSourceRanges", problem));
        }
    }

    /// An external address that is also a cluster IP of the service is served as a cluster IP, as with kube-proxy. Otherwise
    /// `externalTrafficPolicy: Local` would give each gateway router the address twice: with the endpoints of all nodes,
    /// and with those of its own node, or none.
    fn drop_own_cluster_ips(&mut self) {
        let Self { cluster_ips, external_ips, ingress_ips, .. } = self;
        for ips in [external_ips, ingress_ips] {
            ips.retain(|ip| !cluster_ips.contains(ip));
        }
    }

    /// Drops addresses of a family without a cluster IP. They have no endpoints: OVN would reject packets to them
    /// even if they belong to another machine, and no service with that family could have them.
    fn drop_other_families(&mut self) {
        let families: Vec<_> = self.families().collect();
        let Self { external_ips, ingress_ips, bad, .. } = self;
        for (field, ips) in [("spec.externalIPs", external_ips), ("status.loadBalancer.ingress", ingress_ips)] {
            ips.retain(|ip| {
                let is_had = families.contains(&Family::of(*ip));
                if !is_had && bad.len() < MOST_REPORTED {
                    let problem = format!("\"{ip}\" is left out: the service has no cluster IP of its family");
                    bad.push(BadField::new(field, problem));
                }
                is_had
            });
        }
    }

    /// True for a service without an address of its own.
    pub fn is_headless(&self) -> bool {
        self.cluster_ips.is_empty()
    }

    /// External addresses of the service, sorted.
    pub fn claimed_external_ips(&self) -> impl Iterator<Item = IpAddr> + '_ {
        let mut ips: Vec<_> = self.external_ips.iter().chain(&self.ingress_ips).copied().collect();
        ips.sort_unstable();
        ips.dedup();
        ips.into_iter()
    }

    /// Addresses that a load balancer reports for it, whoever serves them.
    pub(crate) fn balanced_ips(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.ingress_ips.iter().chain(&self.proxied_ips).copied()
    }

    /// Whether `loadBalancerSourceRanges` keep a sender from an address of the load balancer. Ranges of one
    /// family do not affect the other.
    pub fn keeps_out(&self, from: IpAddr, at: IpAddr) -> bool {
        let mut ranges = self.source_ranges.iter().filter(|range| range.is_ipv6() == at.is_ipv6()).peekable();
        self.ingress_ips.contains(&at) && ranges.peek().is_some() && !ranges.any(|range| range.contains(from))
    }

    /// The families its endpoints are taken from.
    pub fn families(&self) -> impl Iterator<Item = Family> + '_ {
        Family::ALL.into_iter().filter(|family| self.cluster_ips.iter().any(|ip| Family::of(*ip) == *family))
    }

    /// Whether packets from outside go only to endpoints on the node they reach.
    pub fn is_external_local(&self) -> bool {
        let reachable = matches!(self.kind, ServiceType::NodePort | ServiceType::LoadBalancer);
        self.external_policy == TrafficPolicy::Local && (reachable || !self.external_ips.is_empty())
    }
}

#[derive(Default)]
struct Reader {
    bad: Vec<BadField>,
}

impl Reader {
    fn report(&mut self, field: &str, problem: impl fmt::Display) {
        if self.bad.len() < MOST_REPORTED {
            self.bad.push(BadField::new(field, problem));
        }
    }

    fn kind(&mut self, text: Option<&str>) -> ServiceType {
        match text {
            None | Some("" | "ClusterIP") => ServiceType::ClusterIp,
            Some("NodePort") => ServiceType::NodePort,
            Some("LoadBalancer") => ServiceType::LoadBalancer,
            Some("ExternalName") => ServiceType::ExternalName,
            Some(other) => {
                self.report("spec.type", format!("{other:?} is not known; it is served as a ClusterIP"));
                ServiceType::ClusterIp
            }
        }
    }

    fn policy(&mut self, field: &str, text: Option<&str>) -> TrafficPolicy {
        match text {
            None | Some("" | "Cluster") => TrafficPolicy::Cluster,
            Some("Local") => TrafficPolicy::Local,
            Some(other) => {
                self.report(field, format!("{other:?} is neither Cluster nor Local; Cluster is used"));
                TrafficPolicy::Cluster
            }
        }
    }

    fn addresses<'a>(&mut self, field: &str, texts: impl Iterator<Item = &'a str>) -> Vec<IpAddr> {
        let (mut ips, mut known) = (Vec::new(), BTreeSet::new());
        for text in texts.filter(|text| !text.is_empty() && *text != "None") {
            match decimal(text).map_err(|_: AddrParseError| "is not an address").and_then(usable) {
                Ok(ip) if known.insert(ip) => ips.push(ip),
                Ok(_) => {}
                Err(problem) => self.report(field, format!("{text:?} {problem}; it is left out")),
            }
        }
        ips
    }

    fn ranges(&mut self, texts: &[String]) -> Vec<IpNetwork> {
        let mut ranges = Vec::new();
        for text in texts {
            match decimal::<IpNetwork>(text.trim()) {
                Ok(range) => ranges.extend(IpNetwork::new(range.network(), range.prefix())),
                Err(_) => {
                    self.report(
                        "spec.loadBalancerSourceRanges",
                        format!("{text:?} is not a CIDR; it allows no client"),
                    );
                }
            }
        }
        let is_complete = ranges.len() == texts.len();
        // a range is followed by those inside it, since the wider one of two with the same address is the first
        ranges.sort_unstable();
        ranges.dedup_by(|inner, outer| inner.is_ipv6() == outer.is_ipv6() && outer.contains(inner.ip()));
        if !is_complete {
            // the invalid range may have been of either family, and letting every client in was not intended
            for none in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)].map(IpNetwork::from) {
                if !ranges.iter().any(|range| range.is_ipv6() == none.is_ipv6()) {
                    ranges.push(none);
                }
            }
        }
        ranges
    }

    fn ports(&mut self, fields: &[PortFields]) -> Vec<ServicePort> {
        let (mut ports, mut known) = (Vec::with_capacity(fields.len()), BTreeSet::new());
        for field in fields {
            let name = field.name.as_deref().unwrap_or_default();
            match service_port(field) {
                Ok(port) if known.insert((port.protocol, port.port)) => ports.push(port),
                Ok(port) => {
                    let problem = format!("port {} {} is there twice; the first one is used", port.protocol, port.port);
                    self.report("spec.ports", problem);
                }
                Err(problem) => self.report("spec.ports", format!("port {name:?}: {problem}")),
            }
        }
        ports
    }

    fn affinity(&mut self, fields: &ServiceFields<'_>) -> Option<u32> {
        match fields.session_affinity {
            Some("ClientIP") => {}
            None | Some("" | "None") => return None,
            Some(other) => {
                let problem = format!("{other:?} is neither ClientIP nor None; None is used");
                self.report("spec.sessionAffinity", problem);
                return None;
            }
        }
        let seconds = fields.affinity_timeout.unwrap_or(DEFAULT_AFFINITY.into());
        Some(u32::try_from(seconds).ok().filter(|s| (1..=FOREVER).contains(s)).unwrap_or_else(|| {
            let problem = format!("{seconds} is not 1 to 86400 seconds; {DEFAULT_AFFINITY} are used");
            self.report("spec.sessionAffinityConfig.clientIP.timeoutSeconds", problem);
            DEFAULT_AFFINITY
        }))
    }
}

fn service_port(field: &PortFields) -> Result<ServicePort, String> {
    let protocol = Protocol::parse(field.protocol.as_deref())?;
    let port = port_number(field.port.unwrap_or_default())?;
    let node_port = match field.node_port {
        None | Some(0) => None,
        Some(number) => Some(port_number(number)?),
    };
    Ok(ServicePort { name: field.name.as_deref().unwrap_or_default().into(), protocol, port, node_port })
}

pub(crate) fn port_number(number: i64) -> Result<u16, String> {
    u16::try_from(number).ok().filter(|port| *port > 0).ok_or_else(|| format!("{number} is not a port, 1 to 65535"))
}

/// Parses an address or range, also with leading zeros: API servers accept them as decimal numbers
/// (`ParseIPSloppy` of k8s.io/utils).
pub(crate) fn decimal<T: FromStr>(text: &str) -> Result<T, T::Err> {
    text.parse().or_else(|error| {
        let mut short = String::with_capacity(text.len());
        for part in text.split_inclusive(['.', '/']) {
            let significant = part.trim_start_matches('0');
            if !significant.starts_with(|c: char| c.is_ascii_digit()) && significant.len() < part.len() {
                short.push('0');
            }
            short.push_str(significant);
        }
        short.parse().map_err(|_| error)
    })
}

/// An address that packets can be sent to on another machine.
pub(crate) fn usable(ip: IpAddr) -> Result<IpAddr, &'static str> {
    let link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some() => return Err("is an IPv4 address written as an IPv6 one"),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    match ip {
        _ if ip.is_loopback() => Err("is a loopback address"),
        _ if ip.is_unspecified() => Err("is the unspecified address"),
        _ if ip.is_multicast() => Err("is a multicast address"),
        _ if link_local => Err("is a link-local address"),
        _ => Ok(ip),
    }
}
