//! Whom a node's switch or router sends packets to.

use std::net::IpAddr;
use std::sync::Arc;

use ovnkube_model::{Backend, Family, Name, Network, Site};

use super::configs::{Behind, Config};

/// Of packets that come in by a node's switch, which is from its pods.
pub(super) fn on_switch(config: &Config<'_>, family: Family, node: &Name, site: &Site) -> Arc<str> {
    let behind = config.behind(family);
    if behind.has_hints {
        return text(&behind.all.cluster(Some(site.place(node))), |backend| backend.ip);
    }
    behind.cluster_text.clone()
}

/// Of packets that keep to the node they come in at.
pub(super) fn local(behind: &Behind<'_>, node: &Name) -> Arc<str> {
    text(&behind.all.local(node), |backend| backend.ip)
}

/// Of packets that come in by a node's gateway router: from outside and from the host itself.
pub(super) fn on_router(config: &Config<'_>, family: Family, node: &Name, site: &Site, network: &Network) -> Arc<str> {
    let behind = config.behind(family);
    let own = site.router.as_ref().map(|router| router.ips.as_slice()).unwrap_or_default();
    let is_own = |backend: &Backend| own.contains(&backend.ip);
    let local = config.external_local.then(|| behind.all.local(node));
    let near = || behind.has_hints.then(|| behind.all.cluster(Some(site.place(node))));
    let chosen = local.or_else(near);
    let backends = chosen.as_deref().unwrap_or(&behind.cluster);
    if chosen.is_none() && !backends.iter().any(is_own) {
        return behind.cluster_text.clone();
    }
    // from the host to itself: with the host's own address it would not come back this way
    let host = network.masquerade(family).map(|masquerade| masquerade.host.ip());
    text(backends, |backend| host.filter(|_| is_own(backend)).unwrap_or(backend.ip))
}

/// `10.128.0.5:8080,10.129.0.5:8080`, in the order of the addresses' text.
pub(super) fn text(backends: &[Backend], address: impl Fn(&Backend) -> IpAddr) -> Arc<str> {
    let mut sorted: Vec<_> = backends.iter().map(|backend| (ip_text(backend.ip), backend)).collect();
    sorted.sort_unstable();
    let mut list = String::with_capacity(sorted.len() * 20);
    for (text, backend) in sorted {
        if !list.is_empty() {
            list.push(',');
        }
        let ip = address(backend);
        let other = if ip == backend.ip { None } else { Some(ip_text(ip)) };
        let text = other.unwrap_or(text);
        let brackets = if ip.is_ipv6() { ["[", "]:"] } else { ["", ":"] };
        let [open, close] = brackets;
        list.push_str(open);
        list.push_str(&text);
        list.push_str(close);
        push_number(&mut list, backend.port);
    }
    list.into()
}

/// As `to_string`, in a fifth of the time for IPv4: there may be thousands.
fn ip_text(ip: IpAddr) -> String {
    let IpAddr::V4(ip) = ip else { return ip.to_string() };
    let mut text = String::with_capacity(15);
    for (at, octet) in ip.octets().into_iter().enumerate() {
        if at > 0 {
            text.push('.');
        }
        push_number(&mut text, octet.into());
    }
    text
}

fn push_number(text: &mut String, number: u16) {
    let mut power = 10_000;
    while power > number.max(1) {
        power /= 10;
    }
    while power > 0 {
        text.push(char::from(b'0' + (number / power % 10) as u8));
        power /= 10;
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn addresses_and_ports_are_written_as_everywhere() {
        for number in 0..=u16::MAX {
            let [high, low] = number.to_be_bytes();
            let v6 = [0xfd00, 0, 0, 0, 0, 0, 0, number];
            for ip in [IpAddr::from([10, high, low, 255 - low]), IpAddr::from(v6)] {
                let backend = Backend { ip, port: number };
                assert_eq!(*text(&[backend], |b| b.ip), SocketAddr::new(ip, number).to_string());
            }
        }
    }
}
