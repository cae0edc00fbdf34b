//! Finds UDP connections that must be ended because their endpoint is gone.

use std::collections::{BTreeSet, HashSet};
use std::net::IpAddr;
use std::str::FromStr;

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

/// Of the connections that `dpctl/dump-conntrack` lists, the stale ones: zone and original tuple of each, for
/// `dpctl/flush-conntrack`. A connection that is named completely is ended without a search among all others.
pub fn listed(dump: &str, stale: &[Stale], ips: &[IpAddr]) -> Vec<[String; 2]> {
    let ways = stale.iter().flat_map(|one| frontends(one, ips).into_iter().map(move |ip| ((ip, one.0.1), one.1)));
    let ways: HashSet<Way> = ways.collect();
    let found = dump.lines().filter_map(connection).filter(|(way, _)| ways.contains(way));
    found.map(|(_, named)| named).collect()
}

/// Where packets are sent to, and the endpoint that answers.
type Way = ((IpAddr, u16), Backend);

/// From a line such as `udp,orig=(src=…,dst=…,sport=…,dport=…),reply=(src=IP,dst=…,sport=PORT,dport=…),zone=…`.
fn connection(line: &str) -> Option<(Way, [String; 2])> {
    let (original, rest) = line.strip_prefix("udp,orig=(")?.split_once("),reply=(")?;
    let (reply, rest) = rest.split_once(')')?;
    let (from, to): (IpAddr, IpAddr) = (field(original, "src=")?, field(original, "dst=")?);
    let (from_port, port): (u16, u16) = (field(original, "sport=")?, field(original, "dport=")?);
    let backend = Backend { ip: field(reply, "src=")?, port: field(reply, "sport=")? };
    // zone 0 is not listed
    let zone = format!("zone={}", field(rest, "zone=").unwrap_or(0_u16));
    let family = word(to);
    let tuple =
        format!("ct_{family}_src={from},ct_{family}_dst={to},ct_nw_proto=17,ct_tp_src={from_port},ct_tp_dst={port}");
    Some((((to, port), backend), [zone, tuple]))
}

fn field<T: FromStr>(of: &str, name: &str) -> Option<T> {
    of.split(',').find_map(|field| field.strip_prefix(name))?.parse().ok()
}

/// Original and reply tuples of the connections, for `dpctl/flush-conntrack`, which looks at all connections for each.
pub fn tuples(stale: &Stale, ips: &[IpAddr]) -> Vec<[String; 2]> {
    let ((_, port), backend) = stale;
    let reply = tuple(backend.ip, "src", backend.port);
    frontends(stale, ips).into_iter().map(|ip| [tuple(ip, "dst", *port), reply.clone()]).collect()
}

/// The addresses of its frontend; `ips` are those of a node port.
fn frontends(((at, _), _): &Stale, ips: &[IpAddr]) -> Vec<IpAddr> {
    match at {
        At::Ip(ip) => vec![*ip],
        At::Node(family) => ips.iter().copied().filter(|ip| Family::of(*ip) == *family).collect(),
    }
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
    format!("ct_{}_{side}={ip},ct_nw_proto=17,ct_tp_{side}={port}", word(ip))
}

/// The switch's word for the address family.
fn word(ip: IpAddr) -> &'static str {
    if ip.is_ipv6() { "ipv6" } else { "nw" }
}
