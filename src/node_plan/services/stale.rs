//! Finds UDP connections that must be ended because their endpoint is gone.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ovnkube_model::{Backend, Family};

use super::nft::Moved;
use super::{At, Senders};
use crate::host::Connection;

/// How often each stale connection is looked for. The pause before the first look is doubled before each later one.
pub const LOOKS: u8 = 6;

/// A frontend that packets were sent to, and an endpoint that must no longer answer.
pub type Stale = ((At, u16), Backend);

/// The endpoints that `new` no longer leads to, with their frontends.
pub fn left(old: &Senders, new: &Senders) -> BTreeSet<Stale> {
    let gone = |(frontend, backends): (&(At, u16), &BTreeSet<Backend>)| {
        let kept = new.get(frontend);
        let gone = backends.iter().filter(|backend| kept.is_none_or(|kept| !kept.contains(backend)));
        gone.map(|backend| (*frontend, *backend)).collect::<Vec<Stale>>()
    };
    old.iter().flat_map(gone).collect()
}

/// The endpoint that answers, from a line of `dpctl/dump-conntrack` such as
/// `udp,orig=(src=…,dst=…,sport=…,dport=…),reply=(src=IP,dst=…,sport=PORT,dport=…),zone=…`.
pub fn answers(line: &str) -> Option<Backend> {
    let (_, reply) = line.strip_prefix("udp,")?.split_once("reply=(")?;
    let field = |name| reply.split([',', ')']).find_map(|field| field.strip_prefix(name));
    Some(Backend { ip: field("src=")?.parse().ok()?, port: field("sport=")?.parse().ok()? })
}

/// Original and reply tuples of the connections, for `dpctl/flush-conntrack`.
pub fn tuples(((at, port), backend): &Stale, ips: &[IpAddr]) -> Vec<[String; 2]> {
    let to: Vec<IpAddr> = match at {
        At::Ip(ip) => vec![*ip],
        At::Node(family) => ips.iter().copied().filter(|ip| Family::of(*ip) == *family).collect(),
    };
    let reply = tuple(backend.ip, "src", backend.port);
    to.iter().map(|ip| [tuple(*ip, "dst", *port), reply.clone()]).collect()
}

/// Whether the connection goes elsewhere than `moved` says. Node ports count only at the host's `own` addresses.
pub fn is_moved(Connection { to, answers }: &Connection, moved: &Moved, own: &[IpAddr]) -> bool {
    let of = |ip| moved.get(&(ip, to.is_ipv6(), to.port()));
    match of(Some(to.ip())).or_else(|| of(None).filter(|_| own.contains(&to.ip()))) {
        Some(led) if led.is_empty() => answers != to,
        Some(led) => !led.contains(answers),
        None => false,
    }
}

fn tuple(ip: IpAddr, side: &str, port: u16) -> String {
    let family = if ip.is_ipv6() { "ipv6" } else { "nw" };
    format!("ct_{family}_{side}={ip},ct_nw_proto=17,ct_tp_{side}={port}")
}
