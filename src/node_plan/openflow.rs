//! Flows of a bridge as text, and the keywords of `ovs-ofctl`.

use std::net::IpAddr;

use ovnkube_model::{Family, GatewayMode, Mac, Protocol, Subnet};

/// The cookie of all the agent's flows.
pub const COOKIE: &str = "0xdeff105";
/// The bit of `vlan_vid` that says that there is a VLAN tag.
const PRESENT: u16 = 0x1000;

/// What the flows depend on.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    pub mode: GatewayMode,
    pub mac: Mac,
    /// Number of the port to the outside, where there is one.
    pub uplink: Option<u16>,
    /// Number of the port to OVN.
    pub patch: u16,
    /// VLAN id of the outside network, if it is tagged.
    pub vlan: Option<u16>,
    /// The node's addresses on the bridge.
    pub ips: Vec<IpAddr>,
    pub service_cidrs: &'a [Subnet],
    pub masquerade: &'a [Subnet],
    pub pods: &'a [Subnet],
    /// Pods send to the outside with their own addresses and receive there; otherwise only replies reach them.
    pub pods_outside: bool,
    /// The management port's addresses, which are in the ranges of pods.
    pub management: Vec<IpAddr>,
    pub conntrack_zone: u16,
    pub encap_port: u16,
    /// Bytes of the largest frame for pods; `None`: no limit.
    pub max_frame: Option<u32>,
}

/// Keywords of an address family in matches.
pub struct Words {
    pub ip: &'static str,
    pub src: &'static str,
    pub dst: &'static str,
    pub tcp: &'static str,
    pub udp: &'static str,
    pub sctp: &'static str,
}

pub const V4: Words = Words { ip: "ip", src: "nw_src", dst: "nw_dst", tcp: "tcp", udp: "udp", sctp: "sctp" };
pub const V6: Words = Words { ip: "ipv6", src: "ipv6_src", dst: "ipv6_dst", tcp: "tcp6", udp: "udp6", sctp: "sctp6" };

impl Words {
    pub fn of(family: Family) -> &'static Self {
        if family == Family::V6 { &V6 } else { &V4 }
    }

    pub fn protocol(&self, protocol: Protocol) -> &'static str {
        match protocol {
            Protocol::Tcp => self.tcp,
            Protocol::Udp => self.udp,
            Protocol::Sctp => self.sctp,
        }
    }
}

/// Flows in the syntax of `ovs-ofctl add-flows`.
pub struct Flows(pub Vec<String>);

impl Flows {
    pub fn add(&mut self, table: u8, priority: u16, matches: &str, actions: &str) {
        let matches = if matches.is_empty() { String::new() } else { format!("{matches},") };
        self.0.push(format!("cookie={COOKIE},table={table},priority={priority},{matches}actions={actions}"));
    }
}

/// The VLAN tag in matches and actions: OVN sees the outside network's tag, the host does not.
pub struct Vlan {
    /// For a match; empty or with a trailing comma.
    pub tagged: String,
    /// For actions, likewise.
    pub push: String,
    pub strip: &'static str,
}

impl Vlan {
    pub fn of(facts: &Facts<'_>) -> Self {
        match facts.vlan {
            None => Self { tagged: String::new(), push: String::new(), strip: "" },
            Some(id) => Self {
                tagged: format!("dl_vlan={id},"),
                push: format!("push_vlan:0x8100,set_field:{}->vlan_vid,", PRESENT + id),
                strip: "strip_vlan,",
            },
        }
    }
}
