//! The observed host: links with their addresses and routes, routing rules, bridges.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnetwork::IpNetwork;

use crate::host::{DefaultRoute, Link, Mac, Route, RouteSnapshot, Rule, Sysctl};

const LOOPBACK: &str = "lo";

/// A snapshot of the host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observed {
    pub links: Vec<LinkState>,
    /// Of both families, the preferred ones first.
    pub default_routes: Vec<DefaultRoute>,
    /// The flag says whether the rule is for IPv6.
    pub rules: Vec<(bool, Rule)>,
    pub bridges: Vec<BridgeState>,
    /// Bridges that the chassis maps to the outside (`ovn-bridge-mappings`).
    pub mapped: Vec<String>,
    /// Existing nftables tables of the agent and of ovn-kubernetes, as `nft -s -a list table` shows them. Only read
    /// where stale entries are possible.
    pub tables: Vec<(&'static str, String)>,
}

/// A link and what is on it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkState {
    pub link: Link,
    /// Without link-local IPv6 ones, which the kernel makes, and those that failed duplicate address detection.
    pub addresses: Vec<IpNetwork>,
    /// Routes with their tables, without those of the kernel and of router advertisements.
    pub routes: Vec<(u8, Route)>,
    /// The tables that have any route through the link.
    pub tables: BTreeSet<u8>,
    /// Every route through the link except the kernel's local ones.
    pub snapshots: Vec<RouteSnapshot>,
    /// Permanent entries.
    pub neighbours: Vec<(IpAddr, Mac)>,
    pub sysctls: BTreeMap<Sysctl, String>,
    /// IPv6 packets that arrive on it are forwarded.
    pub forwards_ipv6: bool,
    /// TX checksums are left to hardware; only known with the userspace datapath.
    pub offloads_checksums: bool,
}

/// A bridge of the local Open vSwitch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BridgeState {
    pub name: String,
    /// Names of all its ports' interfaces, sorted.
    pub interfaces: Vec<String>,
    /// The interfaces that lead outside, sorted.
    pub physical: Vec<String>,
    /// The interface to the outside that the bridge's creator named (`external_ids:bridge-uplink`).
    pub uplink: Option<String>,
    /// The NIC that the bridge was made for, by the agent or by ovn-kubernetes.
    pub made_for: Option<String>,
    /// The agent made it.
    pub journalled: bool,
}

impl Observed {
    pub fn link(&self, name: &str) -> Option<&LinkState> {
        self.links.iter().find(|state| state.name() == name)
    }

    pub fn bridge(&self, name: &str) -> Option<&BridgeState> {
        self.bridges.iter().find(|bridge| bridge.name == name)
    }

    /// The link that has the address, apart from the loopback: where a host routes to its neighbours by several links, it has its
    /// address there, and no packet leaves by it.
    pub fn link_with(&self, ip: IpAddr) -> Option<&LinkState> {
        let mut others = self.links.iter().filter(|state| state.name() != LOOPBACK);
        others.find(|state| state.addresses.iter().any(|have| have.ip() == ip))
    }

    /// Addresses of all links but `except`.
    pub fn addresses_except(&self, except: &str) -> Vec<IpNetwork> {
        let others = self.links.iter().filter(|state| state.name() != except);
        others.flat_map(|state| state.addresses.iter().copied()).collect()
    }
}

impl BridgeState {
    /// Whether the link is one of its ports.
    pub fn holds(&self, link: &str) -> bool {
        self.interfaces.iter().any(|interface| interface == link)
    }
}

impl LinkState {
    pub fn name(&self) -> &str {
        &self.link.name
    }

    /// Routes of one table.
    pub fn routes_in(&self, table: u8) -> impl Iterator<Item = Route> + '_ {
        self.routes.iter().filter(move |(of, _)| *of == table).map(|(_, route)| *route)
    }
}
