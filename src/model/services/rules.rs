//! Which addresses services may have.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::{Protocol, Subnet};

/// The rules for addresses, from the settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressRules {
    /// Ranges of pods: no service may have an address in them.
    pub pods: Vec<Subnet>,
    /// Subnets of the cluster's own routers: likewise.
    pub routers: Vec<Subnet>,
    /// Ranges of cluster IPs: an address in them that a Node claims is ignored.
    pub services: Vec<Subnet>,
    pub external: ExternalIps,
    /// UDP port of the tunnels between nodes.
    pub tunnels: u16,
}

/// What the administrator allows in `spec.externalIPs`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalIps {
    /// Nothing is allowed.
    pub disabled: bool,
    /// Only addresses in these are allowed; if empty, all that have no other owner. An address listed alone (`/32`,
    /// `/128`) is allowed even if the cluster's own connections use it.
    pub allowed: Vec<Subnet>,
}

/// Why an address is not served for a service that claims it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It belongs to this owner.
    Taken(String),
    /// Nodes depend on it to reach this.
    Needed(String),
    Disabled,
    NotAllowed,
}

impl AddressRules {
    /// Whether an endpoint is a node's tunnel port: OVN would take what clients send there for its own packets.
    pub(super) fn is_tunnel(&self, ip: IpAddr, protocol: Protocol, port: u16) -> bool {
        protocol == Protocol::Udp && port == self.tunnels && !self.is_of_pods(ip)
    }

    pub(super) fn is_of_pods(&self, ip: IpAddr) -> bool {
        contains(&self.pods, ip)
    }

    pub(super) fn is_of_routers(&self, ip: IpAddr) -> bool {
        contains(&self.routers, ip)
    }

    pub(super) fn is_of_services(&self, ip: IpAddr) -> bool {
        contains(&self.services, ip)
    }

    /// The part of the cluster's own network that an address is in.
    pub(super) fn part(&self, ip: IpAddr) -> Option<&'static str> {
        match () {
            () if self.is_of_pods(ip) => Some("in the pod network"),
            () if self.is_of_routers(ip) => Some("in a subnet of the cluster's own routers"),
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

    /// Whether an entry is exactly this address.
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
            Self::Taken(whose) => write!(f, "it is {whose}; use an address that is free"),
            Self::Needed(what) => write!(
                f,
                "nodes reach {what} at it; use another address, or ask an administrator to make it an entry of its own \
                 in allowed-external-ips, next to 0.0.0.0/0,::/0 if others are to stay allowed"
            ),
            Self::Disabled => {
                f.write_str("disable-external-ips is set; use a service of type LoadBalancer or NodePort")
            }
            Self::NotAllowed => f.write_str(
                "it is not in allowed-external-ips; use an address that is, or ask an administrator to add it",
            ),
        }
    }
}
