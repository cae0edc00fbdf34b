//! Changes of the host, one step each, with a text that an administrator could follow by hand.

use std::fmt;
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_model::Mac as MacText;

use crate::host::{MAIN, Mac, Route, RouteSnapshot, Rule, Sysctl};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostChange {
    /// The link it is about; empty: the whole host.
    pub link: String,
    pub what: What,
    /// It removes a mark that identifies the remains of an earlier gateway. It is skipped if a change before it failed,
    /// so that the next run finds the rest.
    pub is_mark: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    SetMac(Mac),
    /// Bytes.
    SetMtu(u32),
    SetSysctl(Sysctl, &'static str),
    ForwardIpv6,
    /// Switch TX checksum offload off.
    ChecksumsInSoftware,
    SetUp,
    /// Unless `preferred`, the kernel does not choose it as source address.
    AddAddress {
        address: IpNetwork,
        preferred: bool,
    },
    RemoveAddress(IpNetwork),
    /// Adds the route or replaces one to the same destination.
    AddRoute {
        table: u8,
        route: Route,
    },
    RemoveRoute {
        table: u8,
        route: Route,
    },
    /// Removes a route of any table, set by any program.
    RemoveSnapshot(RouteSnapshot),
    /// Removes all routes of the link from a table.
    RemoveRoutesIn(u8),
    AddNeighbour(IpAddr, Mac),
    RemoveNeighbour(IpAddr),
    /// Sets forwarding to the value that a new link would get.
    ResetForwarding,
    AddRule {
        ipv6: bool,
        rule: Rule,
    },
    RemoveRule {
        ipv6: bool,
        rule: Rule,
    },
    DeleteTable(&'static str),
    /// Commands for `nft -f`.
    ChangeTable {
        table: &'static str,
        commands: String,
    },
    /// Removes the agent's flows from a bridge; other flows stay.
    RemoveFlows,
    /// Removes the bridge from `ovn-bridge-mappings`; other mappings stay.
    Unmap,
    /// Moves addresses and routes from the agent's bridge back to the NIC, and removes the bridge.
    MoveBack,
}

impl HostChange {
    pub fn on(link: &str, what: What) -> Self {
        Self { link: link.to_owned(), what, is_mark: false }
    }

    pub fn of_host(what: What) -> Self {
        Self::on("", what)
    }

    pub fn mark(link: &str, what: What) -> Self {
        Self { is_mark: true, ..Self::on(link, what) }
    }
}

impl fmt::Display for HostChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.link.is_empty() {
            write!(f, "{}: ", self.link)?;
        }
        write!(f, "{}", self.what)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetMac(mac) => write!(f, "set MAC address {}", MacText(*mac)),
            Self::SetMtu(mtu) => write!(f, "set MTU {mtu}"),
            Self::SetSysctl(Sysctl { family, key }, value) => write!(f, "set sysctl {family} {key} to {value}"),
            Self::ForwardIpv6 => f.write_str("forward IPv6"),
            Self::ChecksumsInSoftware => f.write_str("switch TX checksum offload off"),
            Self::SetUp => f.write_str("set up"),
            Self::AddAddress { address, preferred: true } => write!(f, "add address {address}"),
            Self::AddAddress { address, preferred: false } => write!(f, "add address {address}, not preferred"),
            Self::RemoveAddress(address) => write!(f, "remove address {address}"),
            Self::AddRoute { table, route } => write!(f, "add route {route}{}", InTable(*table)),
            Self::RemoveRoute { table, route } => write!(f, "remove route {route}{}", InTable(*table)),
            Self::RemoveSnapshot(route) => write!(f, "remove route {}", route.text),
            Self::RemoveRoutesIn(table) => write!(f, "remove all routes{}", InTable(*table)),
            Self::AddNeighbour(ip, mac) => write!(f, "add neighbour {ip} with MAC address {}", MacText(*mac)),
            Self::RemoveNeighbour(ip) => write!(f, "remove neighbour {ip}"),
            Self::ResetForwarding => f.write_str("forward as a new link would"),
            Self::AddRule { ipv6, rule } => write!(f, "add rule {}", OfFamily(*ipv6, *rule)),
            Self::RemoveRule { ipv6, rule } => write!(f, "remove rule {}", OfFamily(*ipv6, *rule)),
            Self::DeleteTable(table) => write!(f, "delete nftables table {table}"),
            Self::ChangeTable { table, commands } => {
                write!(f, "change nftables table {table}: {}", commands.trim_end().replace('\n', "; "))
            }
            Self::RemoveFlows => f.write_str("remove the agent's flows"),
            Self::Unmap => f.write_str("take the bridge out of ovn-bridge-mappings"),
            Self::MoveBack => f.write_str("move addresses and routes back from its bridge, and remove that"),
        }
    }
}

struct InTable(u8);

impl fmt::Display for InTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == MAIN { Ok(()) } else { write!(f, " table {}", self.0) }
    }
}

struct OfFamily(bool, Rule);

/// As `ip rule` shows it.
impl fmt::Display for OfFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(ipv6, rule) = self;
        let family = if *ipv6 { "IPv6" } else { "IPv4" };
        write!(f, "{rule} for {family}")
    }
}
