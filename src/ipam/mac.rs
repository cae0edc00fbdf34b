//! Ethernet addresses, and those of OVN-owned IPs.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The MAC of an OVN-owned IP, derived so that it never has to be stored: `0a:58` and the four octets of an
    /// IPv4 address. For IPv6 it is the first four octets of the SHA-256 of the canonical text, as in
    /// ovn-kubernetes (`util.IPAddrToHWAddr`).
    pub fn of(ip: IpAddr) -> Self {
        let tail = match ip {
            IpAddr::V4(ip) => ip.octets(),
            IpAddr::V6(ip) => sha256_head(ip.to_string().as_bytes()),
        };
        Self([0x0a, 0x58, tail[0], tail[1], tail[2], tail[3]])
    }

    /// The IPv6 link-local address of an interface with this MAC (RFC 4291, appendix A).
    pub fn link_local(self) -> Ipv6Addr {
        let [a, b, c, d, e, f] = self.0.map(u16::from);
        let pair = |high: u16, low: u16| high << 8 | low;
        Ipv6Addr::new(0xfe80, 0, 0, 0, pair(a ^ 2, b), pair(c, 0xff), pair(0xfe, d), pair(e, f))
    }

    /// True for addresses that a pod may have: unicast and not all zero.
    pub fn is_unicast(self) -> bool {
        self.0[0] & 1 == 0 && self.0 != [0; 6]
    }
}

fn sha256_head(text: &[u8]) -> [u8; 4] {
    use sha2::{Digest, Sha256};
    let sum = Sha256::digest(text);
    let mut head = [0; 4];
    head.copy_from_slice(&sum[..4]);
    head
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Mac {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not an Ethernet address like 0a:58:0a:80:00:03");
        let mut mac = [0; 6];
        let mut parts = text.split(':');
        for octet in &mut mac {
            let part =
                parts.next().filter(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit())).ok_or_else(wrong)?;
            *octet = u8::from_str_radix(part, 16).map_err(|_| wrong())?;
        }
        if parts.next().is_some() { Err(wrong()) } else { Ok(Self(mac)) }
    }
}
