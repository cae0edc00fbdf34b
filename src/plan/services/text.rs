//! Endpoints as text in load balancers.

use std::net::IpAddr;
use std::sync::Arc;

use ovnkube_model::Backend;

/// `10.128.0.5:8080,10.129.0.5:8080`, sorted by the addresses' text.
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

/// Like `to_string`, in a fifth of the time for IPv4: there may be thousands.
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
