//! The maps and sets of the agent's nftables table, and what is in them.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use ipnetwork::IpNetwork;
use ovnkube_model::{Family, Protocol};

/// Number of slots that endpoints share for connections that go straight to them: enough for nearly equal shares, and
/// more than the 110 pods that a kubelet runs by default. Of more endpoints only the first ones serve.
pub(super) const SLOTS: usize = 128;

/// A map or set for each family; [`Set::NoSnatNodePorts`] and [`Set::DatabasePorts`] are each one for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Set {
    EtpIps,
    EtpNodePorts,
    Ips,
    NodePorts,
    ItpMark,
    ItpRedirect,
    NoSnatServices,
    Limited,
    Sources,
    NoSnatNodePorts,
    Refused,
    Elsewhere,
    NoNodePort,
    Nobody,
    Affinity,
    Databases,
    DatabasePorts,
}

/// What packets are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// `None`: a node port, at each of the host's addresses.
    pub ip: Option<IpAddr>,
    pub protocol: Protocol,
    pub port: u16,
    pub also: Also,
}

/// The last part of some keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Also {
    Nothing,
    /// An allowed client.
    Source(IpNetwork),
    /// One of [`SLOTS`].
    Slot(usize),
}

/// A map or set, and a key in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Element {
    set: Set,
    family: Family,
    key: Key,
}

impl Set {
    /// In the order in which they are declared.
    const ALL: [Self; 17] = [
        Self::EtpIps,
        Self::EtpNodePorts,
        Self::Ips,
        Self::NodePorts,
        Self::ItpMark,
        Self::ItpRedirect,
        Self::NoSnatServices,
        Self::Limited,
        Self::Sources,
        Self::NoSnatNodePorts,
        Self::Refused,
        Self::Elsewhere,
        Self::NoNodePort,
        Self::Nobody,
        Self::Affinity,
        Self::Databases,
        Self::DatabasePorts,
    ];

    /// As nftables knows it, such as `nodeports-v4`.
    pub fn name(self, family: Family) -> String {
        let name = match self {
            Self::EtpIps => "external-ips-etp-local",
            Self::EtpNodePorts => "nodeports-etp-local",
            Self::Ips => "external-ips",
            Self::NodePorts => "nodeports",
            Self::ItpMark => "itp-services-to-mark",
            Self::ItpRedirect => "itp-services-to-redirect",
            Self::NoSnatServices => "mgmtport-no-snat-services",
            Self::Limited => "limited-services",
            Self::Sources => "services-sources",
            Self::NoSnatNodePorts => return "mgmtport-no-snat-nodeports".to_owned(),
            Self::Refused => "refused-services",
            Self::Elsewhere => "nodeports-elsewhere",
            Self::NoNodePort => "external-ips-no-nodeport",
            Self::Nobody => "external-ips-nobody",
            Self::Affinity => "external-ips-affinity",
            Self::Databases => "databases",
            Self::DatabasePorts => return "database-ports".to_owned(),
        };
        format!("{name}-{}", family.name())
    }

    /// The families that have a map or set of their own.
    fn families(self) -> &'static [Family] {
        if matches!(self, Self::NoSnatNodePorts | Self::DatabasePorts) { &[Family::V4] } else { &Family::ALL }
    }

    /// Whether packets with a key of it are sent elsewhere.
    pub(super) fn translates(self) -> bool {
        self.kind().0 == "map"
    }

    /// Its kind and type. `IP` stands for `ipv4_addr` or `ipv6_addr`, after `typeof` for `ip` or `ip6`, and `N` for
    /// [`SLOTS`].
    fn kind(self) -> (&'static str, &'static str) {
        match self {
            Self::EtpIps | Self::Ips | Self::ItpRedirect => {
                ("map", "IP . inet_proto . inet_service : IP . inet_service")
            }
            Self::EtpNodePorts | Self::NodePorts | Self::Elsewhere => {
                ("map", "inet_proto . inet_service : IP . inet_service")
            }
            Self::ItpMark | Self::NoSnatServices | Self::Limited | Self::Refused | Self::Nobody | Self::Databases => {
                ("set", "IP . inet_proto . inet_service")
            }
            Self::Sources => ("set", "IP . inet_proto . inet_service . IP; flags interval"),
            Self::NoSnatNodePorts | Self::DatabasePorts => ("set", "inet_proto . inet_service"),
            // that of `Affinity` is looked up by a hash of the source, but not declared so: `nft` 1.0.6 crashes when
            // it lists such a map
            Self::NoNodePort | Self::Affinity => {
                ("map", "typeof IP daddr . meta l4proto . th dport . numgen random mod N : IP daddr . th dport")
            }
        }
    }
}

/// Declarations of all maps and sets.
pub(super) fn declarations() -> String {
    let declare = |set: Set, family: Family| {
        let (kind, of) = set.kind();
        let [long, short] = if family == Family::V6 { ["ipv6_addr", "ip6"] } else { ["ipv4_addr", "ip"] };
        let of = match of.strip_prefix("typeof ") {
            Some(of) => format!("typeof {}", of.replace("IP", short).replace('N', &SLOTS.to_string())),
            None => format!("type {}", of.replace("IP", long)),
        };
        format!("\t{kind} {} {{\n\t\t{of}\n\t}}\n", set.name(family))
    };
    Set::ALL.iter().flat_map(|set| set.families().iter().map(|family| declare(*set, *family))).collect()
}

impl Key {
    pub fn of_ip(ip: IpAddr, protocol: Protocol, port: u16) -> Self {
        Self { ip: Some(ip), protocol, port, also: Also::Nothing }
    }

    pub fn of_port(protocol: Protocol, port: u16) -> Self {
        Self { ip: None, protocol, port, also: Also::Nothing }
    }

    #[must_use]
    pub(super) fn and(self, also: Also) -> Self {
        Self { also, ..self }
    }
}

/// As nftables writes it, such as `192.0.2.9 . udp . 53`.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(ip) = self.ip {
            write!(f, "{ip} . ")?;
        }
        write!(f, "{} . {}", self.protocol.ovn(), self.port)?;
        match self.also {
            Also::Nothing => Ok(()),
            Also::Source(range) => write!(f, " . {range}"),
            Also::Slot(slot) => write!(f, " . {slot}"),
        }
    }
}

impl Element {
    pub fn new(set: Set, family: Family, key: Key) -> Self {
        // one that both families share must not be deleted twice
        let family = if set.families().contains(&family) { family } else { Family::V4 };
        Self { set, family, key }
    }

    pub fn set(&self) -> Set {
        self.set
    }

    pub fn family(&self) -> Family {
        self.family
    }

    pub fn key(&self) -> Key {
        self.key
    }

    /// Name of its map or set.
    pub fn set_name(&self) -> String {
        self.set.name(self.family)
    }

    /// With its value in a map, as nftables writes it: `192.0.2.9 . udp . 53 : 10.96.0.9 . 53`.
    pub fn with(&self, value: Option<SocketAddr>) -> String {
        match value {
            Some(to) => format!("{} : {} . {}", self.key, to.ip(), to.port()),
            None => self.key.to_string(),
        }
    }
}
