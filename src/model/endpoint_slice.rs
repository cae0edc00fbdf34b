//! Endpoint slices: the endpoints of services.

use std::net::{AddrParseError, IpAddr};

use serde::{Deserialize, Serialize};

use crate::service::{PortFields, decimal, port_number, usable};
use crate::{BadField, Family, Meta, Name, Protocol};

/// Label of a slice that names its service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// How many problems of one slice are reported; a slice has up to 1000 endpoints.
const TOLD: usize = 3;

/// The part of an endpoint slice that can change what is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointSlice {
    /// Name of its service; `None` for a slice that belongs to none.
    pub service: Option<Name>,
    pub ports: Vec<SlicePort>,
    pub endpoints: Vec<Endpoint>,
    pub bad: Vec<BadField>,
}

/// A port that all endpoints of a slice have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SlicePort {
    /// Name of the service's port.
    pub name: Name,
    pub protocol: Protocol,
    pub port: u16,
}

/// One address behind a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    pub ip: IpAddr,
    pub ready: bool,
    pub serving: bool,
    pub terminating: bool,
    /// The node it runs on.
    pub node: Option<Name>,
    /// Where it should be used from; boxed, since few endpoints have hints.
    pub hints: Option<Box<Hints>>,
}

/// Where an endpoint should be used from, as the control plane derived it from the service's
/// `trafficDistribution`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hints {
    pub zones: Vec<Name>,
    pub nodes: Vec<Name>,
}

/// The fields of a slice beside its metadata that matter, as they were written.
#[derive(Debug, Clone, Copy)]
pub struct SliceFields<'a> {
    pub address_type: &'a str,
    pub ports: &'a [PortFields],
    pub endpoints: &'a [EndpointFields],
}

/// An endpoint as it was written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointFields {
    pub addresses: Vec<String>,
    pub conditions: Option<Conditions>,
    pub node_name: Option<String>,
    pub hints: Option<HintFields>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct Conditions {
    pub ready: Option<bool>,
    pub serving: Option<bool>,
    pub terminating: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HintFields {
    pub for_zones: Option<Vec<HintName>>,
    pub for_nodes: Option<Vec<HintName>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct HintName {
    pub name: String,
}

impl EndpointSlice {
    pub fn parse(meta: &Meta<'_>, fields: SliceFields<'_>) -> Self {
        let service = meta.labels.get(SERVICE_NAME).filter(|name| !name.is_empty());
        let mut slice = Self {
            service: service.map(|name| name.as_str().into()),
            ports: Vec::with_capacity(fields.ports.len()),
            endpoints: Vec::with_capacity(fields.endpoints.len()),
            bad: Vec::new(),
        };
        let family = match fields.address_type {
            "IPv4" => Family::V4,
            "IPv6" => Family::V6,
            // endpoints that are names are for resolvers
            _ => return slice,
        };
        let mut problems = Vec::new();
        for port in fields.ports {
            match slice_port(port) {
                Ok(port) => slice.ports.extend(port),
                Err(problem) => problems.push(BadField::new("ports", problem)),
            }
        }
        for endpoint in fields.endpoints {
            slice.endpoints.extend(endpoint.addresses.iter().filter_map(|text| {
                let result = address(text, family);
                result
                    .map_err(|problem| problems.push(BadField::new("endpoints", problem)))
                    .ok()
                    .map(|ip| endpoint.at(ip))
            }));
        }
        let more = problems.len().saturating_sub(TOLD);
        problems.truncate(TOLD);
        if more > 0 {
            problems.push(BadField::new("endpoints", format!("{more} more have such problems")));
        }
        slice.bad = problems;
        slice
    }

    /// The numbers of a port, whose ports must be sorted: services look up each of theirs, and both may have thousands.
    pub(crate) fn numbers(&self, name: &Name, protocol: Protocol) -> impl Iterator<Item = u16> {
        let first = self.ports.partition_point(|port| (&port.name, port.protocol) < (name, protocol));
        let ports = self.ports.iter().skip(first);
        ports.take_while(move |port| (&port.name, port.protocol) == (name, protocol)).map(|port| port.port)
    }
}

impl EndpointFields {
    fn at(&self, ip: IpAddr) -> Endpoint {
        let conditions = self.conditions.unwrap_or_default();
        let ready = conditions.ready.unwrap_or(true);
        let names = |list: &Option<Vec<HintName>>| -> Vec<Name> {
            list.iter().flatten().map(|hint| hint.name.as_str().into()).collect()
        };
        let hints = self.hints.as_ref().map(|h| Hints { zones: names(&h.for_zones), nodes: names(&h.for_nodes) });
        Endpoint {
            ip,
            ready,
            serving: conditions.serving.unwrap_or(ready),
            terminating: conditions.terminating.unwrap_or(false),
            node: self.node_name.as_deref().filter(|name| !name.is_empty()).map(Into::into),
            hints: hints.filter(|hints| *hints != Hints::default()).map(Box::new),
        }
    }
}

fn slice_port(field: &PortFields) -> Result<Option<SlicePort>, String> {
    // a port without a number stands for all ports, which nothing here can serve
    let Some(number) = field.port else { return Ok(None) };
    let protocol = Protocol::parse(field.protocol.as_deref())?;
    let name = field.name.as_deref().unwrap_or_default().into();
    Ok(Some(SlicePort { name, protocol, port: port_number(number)? }))
}

fn address(text: &str, family: Family) -> Result<IpAddr, String> {
    let ip = decimal(text).map_err(|_: AddrParseError| format!("{text:?} is not an address; it is left out"))?;
    let ip = usable(ip).map_err(|problem| format!("{text:?} {problem}; it is left out"))?;
    if Family::of(ip) != family {
        return Err(format!("{text:?} is not of the slice's address type; it is left out"));
    }
    Ok(ip)
}
