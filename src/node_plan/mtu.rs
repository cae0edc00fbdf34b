//! The MTU of pods: what the uplink leaves besides the tunnel's headers.

use std::net::IpAddr;

use crate::observed::Observed;

/// Bytes; used when neither the settings nor an uplink give an MTU.
const FALLBACK: u32 = 1400;

/// Bytes of the inner Ethernet, outer IP, UDP and tunnel headers; OVN adds an option to Geneve's.
pub fn tunnel_headers(encap_type: &str, encap_ip: IpAddr) -> u32 {
    let outer_ip = if encap_ip.is_ipv6() { 40 } else { 20 };
    let options = if encap_type == "geneve" { 8 } else { 0 };
    14 + outer_ip + 8 + 8 + options
}

/// What is known about the pods' MTU, bytes; the first known value counts.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// Set by the administrator.
    pub given: Option<u32>,
    /// What the uplink leaves.
    pub room: Option<u32>,
    /// Found before: an uplink that is missing for a moment changes nothing.
    pub last: Option<u32>,
    /// What the Node is annotated with.
    pub annotated: Option<u32>,
}

impl Known {
    /// The pods' MTU; `None` while no value and no tunnel address is known.
    pub fn of_pods(self, encap_ips: &[IpAddr]) -> Option<u32> {
        let Self { given, room, last, annotated } = self;
        let fallback = (!encap_ips.is_empty()).then_some(FALLBACK);
        given.or(room).or(last).or(annotated).or(fallback)
    }
}

/// The link on which tunnels end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uplink {
    pub name: String,
    /// Bytes.
    pub mtu: u32,
    /// Bytes of a tunnel's headers.
    pub headers: u32,
}

impl Uplink {
    /// The link with the tunnels' address; of several the one with the smallest MTU.
    pub fn find(host: &Observed, encap_type: &str, encap_ips: &[IpAddr], single_node: bool) -> Option<Self> {
        let uplink = |ip: &IpAddr| {
            let link = &host.link_with(*ip)?.link;
            let headers = if single_node { 0 } else { tunnel_headers(encap_type, *ip) };
            Some(Self { name: link.name.clone(), mtu: link.mtu, headers })
        };
        encap_ips.iter().filter_map(uplink).min_by_key(|uplink| uplink.mtu)
    }

    /// The largest MTU of pods.
    pub fn room(&self) -> u32 {
        self.mtu.saturating_sub(self.headers)
    }

    /// Why the pods' MTU does not fit, and what to do; `None` if it fits.
    pub fn problem(&self, mtu: u32) -> Option<String> {
        let Self { name, mtu: carries, headers } = self;
        let needs = mtu + headers;
        (needs > *carries).then(|| {
            format!(
                "pods' MTU {mtu} and {headers} bytes of tunnel headers need {needs}, but {name} carries {carries}: large \
                 packets between nodes are lost; raise the MTU of {name}, or set mtu to at most {} and restart the pods",
                carries.saturating_sub(*headers)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Link;
    use crate::observed::LinkState;

    /// Its MTU is 65536, which no link of a pod can have.
    #[test]
    fn the_loopback_carries_no_tunnels() {
        let own: IpAddr = "192.0.2.1".parse().unwrap();
        let link = |name: &str, mtu, ip: IpAddr| LinkState {
            link: Link { name: name.to_owned(), mtu, ..Link::default() },
            addresses: vec![ip.into()],
            ..LinkState::default()
        };
        let of = |links: Vec<LinkState>| {
            let host = Observed { links, ..Observed::default() };
            let room = Uplink::find(&host, "geneve", &[own], false).map(|uplink| uplink.room());
            Known { given: None, room, last: None, annotated: None }.of_pods(&[own])
        };
        let other = "198.51.100.1".parse().unwrap();
        let alone = vec![link("lo", 65536, own), link("eth0", 1500, other)];
        assert_eq!(of(alone), Some(FALLBACK));
        assert_eq!(of(vec![link("lo", 65536, own), link("eth0", 9000, own)]), Some(8942));
    }

    #[test]
    fn headers_of_tunnels() {
        let (v4, v6) = ("192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap());
        let headers = [("geneve", v4), ("geneve", v6), ("vxlan", v4), ("vxlan", v6)];
        assert_eq!(headers.map(|(kind, ip)| tunnel_headers(kind, ip)), [58, 78, 50, 70]);
    }
}
