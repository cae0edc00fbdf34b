//! Ends UDP connections in the host's conntrack table that still lead to endpoints that are gone.
//!
//! A sender that never pauses keeps its connection alive, and a connection keeps the address
//! translation of its first packet. So when a translation changes, its connections must be ended.

use std::net::{IpAddr, SocketAddr};

pub use ovnkube_node_plan::host::Connection;
use rtnetlink::sys::Socket;

use crate::netlink::{NLA_F_NESTED, NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, attr, exchange, exchange_each, find, header};
use crate::netns::on_thread;
use crate::{Error, Result};

const NETLINK_NETFILTER: isize = 12;
const CT_GET: u16 = 1 << 8 | 1;
const CT_DELETE: u16 = 1 << 8 | 2;
const CTA_TUPLE_ORIG: u16 = 1;
const CTA_TUPLE_REPLY: u16 = 2;
const CTA_ZONE: u16 = 18;
const CTA_TUPLE_IP: u16 = 1;
const CTA_TUPLE_PROTO: u16 = 2;
const CTA_PROTO_NUM: u16 = 1;
const CTA_PROTO_SRC_PORT: u16 = 2;
const CTA_PROTO_DST_PORT: u16 = 3;
const UDP: u8 = 17;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// Ends the UDP connections of the process's own namespace for which `is_stale` is true; returns
/// how many. Connections of Open vSwitch are in zones of their own and stay.
pub async fn end_udp(is_stale: impl Fn(&Connection) -> bool + Send + 'static) -> Result<usize> {
    on_thread(move || end(&is_stale)).await
}

fn end(is_stale: &dyn Fn(&Connection) -> bool) -> Result<usize> {
    let mut socket = Socket::new(NETLINK_NETFILTER).map_err(Error::Socket)?;
    socket.bind_auto().map_err(Error::Socket)?;
    let mut ended = 0;
    for family in [AF_INET, AF_INET6] {
        let list = message(CT_GET, NLM_F_DUMP, family, &[]);
        // the table may have a million entries
        let mut stale = Vec::new();
        exchange_each(&socket, &list, "list UDP connections", |entry| {
            let found = entry.get(4..).and_then(udp).filter(|(_, connection)| is_stale(connection));
            stale.extend(found.map(|(tuple, _)| tuple.to_vec()));
        })?;
        for tuple in stale {
            let delete = message(CT_DELETE, NLM_F_ACK, family, &attr(CTA_TUPLE_ORIG | NLA_F_NESTED, &tuple));
            match exchange(&socket, &delete, "end a UDP connection") {
                Ok(_) => ended += 1,
                // it has ended meanwhile
                Err(Error::Netlink { problem, .. }) if problem.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
    }
    Ok(ended)
}

fn message(kind: u16, flags: u16, family: u8, attributes: &[u8]) -> Vec<u8> {
    let body = [&[family, 0, 0, 0], attributes].concat();
    [header(kind, NLM_F_REQUEST | flags, body.len()), body].concat()
}

/// The encoded original tuple and the parsed connection; `None` unless it is UDP of the host itself.
fn udp(entry: &[u8]) -> Option<(&[u8], Connection)> {
    if find(entry, CTA_ZONE).is_some() {
        return None;
    }
    let (original, reply) = (find(entry, CTA_TUPLE_ORIG)?, find(entry, CTA_TUPLE_REPLY)?);
    let protocol = find(find(original, CTA_TUPLE_PROTO)?, CTA_PROTO_NUM)?;
    let to = end_of(original, false)?;
    (protocol == [UDP]).then_some((original, Connection { to, answers: end_of(reply, true)? }))
}

fn end_of(tuple: &[u8], source: bool) -> Option<SocketAddr> {
    let (ip, proto) = (find(tuple, CTA_TUPLE_IP)?, find(tuple, CTA_TUPLE_PROTO)?);
    // sources are 1 and 3, destinations 2 and 4
    let [v4, v6, port] = if source { [1, 3, CTA_PROTO_SRC_PORT] } else { [2, 4, CTA_PROTO_DST_PORT] };
    let address = match find(ip, v4) {
        Some(v4) => IpAddr::from(<[u8; 4]>::try_from(v4).ok()?),
        None => IpAddr::from(<[u8; 16]>::try_from(find(ip, v6)?).ok()?),
    };
    let port = u16::from_be_bytes(find(proto, port)?.try_into().ok()?);
    Some(SocketAddr::new(address, port))
}
