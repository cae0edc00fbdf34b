//! Which addresses services may have at all.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::{Protocol, Subnet};

/// What is settled before any service is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressRules {
    /// Ranges of pods, which no service may have an address of.
    pub pods: Vec<Subnet>,
    /// Subnets of the cluster's own routers, likewise.
    pub routers: Vec<Subnet>,
    /// Ranges that cluster IPs are of: what a Node says that it has of them it has not.
    pub services: Vec<Subnet>,
    pub external: ExternalIps,
    /// UDP port of the tunnels between nodes.
    pub tunnels: u16,
}

/// What an administrator lets users write into `spec.externalIPs`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalIps {
    /// Nothing.
    pub disabled: bool,
    /// Only what is in one of these; empty: anything that is nobody else's. What is named alone (`/32`, `/128`) may be a
    /// service's even where the cluster's own connections use it.
    pub allowed: Vec<Subnet>,
}

/// Why an address is not served for a service that claims it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Somebody has it: whose it is.
    Taken(String),
    /// Nodes reach this by it.
    Needed(String),
    Disabled,
    NotAllowed,
}

impl AddressRules {
    /// Whether packets to an endpoint would come out of a node's tunnel as OVN's own: clients say what is in them.
    pub(super) fn is_tunnel(&self, ip: IpAddr, protocol: Protocol, port: u16) -> bool {
        protocol == Protocol::Udp && port == self.tunnels && !contains(&self.pods, ip)
    }

    pub(super) fn is_of_services(&self, ip: IpAddr) -> bool {
        contains(&self.services, ip)
    }

    /// What part of the cluster's own network an address is in.
    pub(super) fn part(&self, ip: IpAddr) -> Option<&'static str> {
        match () {
            () if contains(&self.pods, ip) => Some("in the pod network"),
            () if contains(&self.routers, ip) => Some("in a subnet of the cluster's own routers"),
            () => None,
        }
    }
}

impl ExternalIps {
    pub(super) fn refuse(&self, ip: IpAddr) -> Option<Refusal> {
        match () {
            () if self.disabled => Some(Refusal::Disabled),
            () if !self.allowed.is_empty() && !contains(&self.allowed, ip) => Some(Refusal::NotAllowed),
            () => None,
        }
    }

    /// Whether an entry is this address alone.
    pub(super) fn names(&self, ip: IpAddr) -> bool {
        self.allowed.iter().any(|range| range.host_bits() == 0 && range.contains(ip))
    }
}

fn contains(subnets: &[Subnet], ip: IpAddr) -> bool {
    subnets.iter().any(|subnet| subnet.contains(ip))
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken(whose) => write!(f, "is {whose}: it is not served there; use an address that nobody has"),
            Self::Needed(what) => write!(
                f,
                "is {what}, which nodes reach by it: it is not served there; use another one, or let an administrator name it \
                 alone in allowed-external-ips, beside 0.0.0.0/0,::/0 if others shall stay allowed"
            ),
            Self::Disabled => f.write_str(
                "is not served: disable-external-ips is set; use a service of type LoadBalancer or NodePort",
            ),
            Self::NotAllowed => {
                f.write_str("is not served: it is in none of allowed-external-ips; use one of those, or have it added")
            }
        }
    }
}
