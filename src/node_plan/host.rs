//! Types for a host's network, as observed and as wanted.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use ipnetwork::IpNetwork;

/// MAC address of a link.
pub type Mac = [u8; 6];

/// The part of a link that the agent looks at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Link {
    pub index: u32,
    pub name: String,
    pub mac: Option<Mac>,
    pub mtu: u32,
    pub up: bool,
    /// Free text on the link; names its owner.
    pub alias: Option<String>,
    /// Index of the bond or bridge that this link is a member of.
    pub master: Option<u32>,
    /// Index of the other end of a veth pair, or of the parent of a VLAN device.
    pub other: Option<u32>,
    /// Id of the namespace of `other`, as this namespace numbers it; `None`: this one.
    pub other_netns: Option<i32>,
}

/// A route through one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    pub destination: IpNetwork,
    pub gateway: Option<IpAddr>,
    /// Source address of the host's own packets.
    pub source: Option<IpAddr>,
    pub mtu: Option<u32>,
}

impl Route {
    pub fn via(destination: IpNetwork, gateway: IpAddr) -> Self {
        Self { destination, gateway: Some(gateway), source: None, mtu: None }
    }
}

/// As `ip route` shows it.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { destination, gateway, source, mtu } = self;
        write!(f, "{destination}")?;
        gateway.iter().try_for_each(|gateway| write!(f, " via {gateway}"))?;
        source.iter().try_for_each(|source| write!(f, " src {source}"))?;
        mtu.iter().try_for_each(|mtu| write!(f, " mtu {mtu}"))
    }
}

/// A default route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DefaultRoute {
    pub metric: u32,
    pub gateway: IpAddr,
    /// Index of the link.
    pub link: u32,
}

/// `ip rule add priority PRIORITY PACKETS lookup TABLE`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    pub priority: u32,
    pub packets: Packets,
    pub table: u8,
}

/// The packets that a rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packets {
    /// With this mark.
    Marked(u32),
    /// The host's own, not those that it forwards.
    Own,
    /// The host's own, unless the table has only a default route for them.
    OwnNotByDefault,
}

/// As `ip rule` shows it.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { priority, packets, table } = self;
        let table = if *table == MAIN { "main".to_owned() } else { table.to_string() };
        match packets {
            Packets::Marked(mark) => write!(f, "{priority}: fwmark {mark:#x} lookup {table}"),
            Packets::Own => write!(f, "{priority}: iif lo lookup {table}"),
            Packets::OwnNotByDefault => write!(f, "{priority}: iif lo lookup {table} suppress_prefixlength 0"),
        }
    }
}

/// The kernel's main routing table.
pub const MAIN: u8 = 254;

/// A complete route of any table, so that a route of another program can be removed or restored exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteSnapshot {
    /// For messages: `default via 172.18.0.1`.
    pub text: String,
    /// All addresses that it names.
    pub addresses: Vec<IpAddr>,
    /// The kernel's message, without the link.
    pub message: Vec<u8>,
}

/// A setting below `/proc/sys/net/FAMILY/conf/LINK/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sysctl {
    /// `ipv4` or `ipv6`.
    pub family: &'static str,
    pub key: &'static str,
}

impl Sysctl {
    pub const fn v4(key: &'static str) -> Self {
        Self { family: "ipv4", key }
    }

    pub const fn v6(key: &'static str) -> Self {
        Self { family: "ipv6", key }
    }
}

/// A connection, by its original destination and by the endpoint that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    pub to: SocketAddr,
    pub answers: SocketAddr,
}
