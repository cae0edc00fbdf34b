//! TX checksum offload over the kernel's `ethtool` netlink family.

use rtnetlink::sys::protocols::NETLINK_GENERIC;
use rtnetlink::sys::{Socket, SocketAddr};

use crate::netns::on_thread;
use crate::{Error, Netns, Result};

/// What `ethtool -K LINK tx off` clears.
const TX_CHECKSUM: [&str; 4] = ["tx-checksum-ipv4", "tx-checksum-ip-generic", "tx-checksum-ipv6", "tx-checksum-sctp"];

const NLM_F_REQUEST_ACK: u16 = 1 | 4;
const NLMSG_ERROR: u16 = 2;
const NLA_F_NESTED: u16 = 1 << 15;
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const ETHTOOL_MSG_FEATURES_SET: u8 = 12;
const ETHTOOL_A_FEATURES_HEADER: u16 = 1 | NLA_F_NESTED;
const ETHTOOL_A_FEATURES_WANTED: u16 = 3 | NLA_F_NESTED;
const ETHTOOL_A_HEADER_DEV_NAME: u16 = 2;
const ETHTOOL_A_HEADER_FLAGS: u16 = 3;
const ETHTOOL_FLAG_OMIT_REPLY: u32 = 2;
const ETHTOOL_A_BITSET_BITS: u16 = 3 | NLA_F_NESTED;
const ETHTOOL_A_BITSET_BITS_BIT: u16 = 1 | NLA_F_NESTED;
const ETHTOOL_A_BITSET_BIT_NAME: u16 = 2;

/// Switches TX checksum offload of `link` off, in `netns` or in the process's own namespace. The
/// userspace datapath takes packets as they are: a checksum left to hardware is never filled in.
pub async fn tx_checksum_off(netns: Option<&Netns>, link: &str) -> Result<()> {
    let link = link.to_owned();
    match netns {
        Some(netns) => netns.run(move || clear(&link)).await?,
        None => on_thread(move || clear(&link)).await,
    }
}

fn clear(link: &str) -> Result<()> {
    let what = format!("switch TX checksum offload of {link} off");
    let mut socket = Socket::new(NETLINK_GENERIC).map_err(Error::Socket)?;
    socket.bind_auto().map_err(Error::Socket)?;
    let family = family(&socket, &what)?;
    let request = message(family, ETHTOOL_MSG_FEATURES_SET, &features(link));
    exchange(&socket, &request, &what).map(drop)
}

fn family(socket: &Socket, what: &str) -> Result<u16> {
    let name = attr(CTRL_ATTR_FAMILY_NAME, b"ethtool\0");
    let replies = exchange(socket, &message(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, &name), what)?;
    let id = replies.iter().find_map(|reply| find(reply.get(4..)?, CTRL_ATTR_FAMILY_ID));
    id.and_then(|id| Some(u16::from_ne_bytes(id.try_into().ok()?)))
        .ok_or_else(|| Error::NoReply { what: what.to_owned() })
}

/// A list of bits without values: those named are cleared, the others stay.
fn features(link: &str) -> Vec<u8> {
    let device = [
        attr(ETHTOOL_A_HEADER_DEV_NAME, &text(link)),
        attr(ETHTOOL_A_HEADER_FLAGS, &ETHTOOL_FLAG_OMIT_REPLY.to_ne_bytes()),
    ]
    .concat();
    let bits: Vec<u8> = TX_CHECKSUM
        .iter()
        .flat_map(|bit| attr(ETHTOOL_A_BITSET_BITS_BIT, &attr(ETHTOOL_A_BITSET_BIT_NAME, &text(bit))))
        .collect();
    let wanted = attr(ETHTOOL_A_BITSET_BITS, &bits);
    [attr(ETHTOOL_A_FEATURES_HEADER, &device), attr(ETHTOOL_A_FEATURES_WANTED, &wanted)].concat()
}

/// Sends one request and gathers the payloads up to its acknowledgement.
fn exchange(socket: &Socket, request: &[u8], what: &str) -> Result<Vec<Vec<u8>>> {
    let failed = |source| Error::Netlink { what: what.to_owned(), source };
    socket.send_to(request, &SocketAddr::new(0, 0), 0).map_err(failed)?;
    let mut replies = Vec::new();
    loop {
        let (datagram, _) = socket.recv_from_full().map_err(failed)?;
        for (kind, payload) in messages(&datagram) {
            if kind != NLMSG_ERROR {
                replies.push(payload.to_vec());
                continue;
            }
            let errno = payload.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
            return if errno == 0 { Ok(replies) } else { Err(failed(std::io::Error::from_raw_os_error(-errno))) };
        }
    }
}

fn message(kind: u16, command: u8, attributes: &[u8]) -> Vec<u8> {
    let length = 20 + attributes.len() as u32;
    let mut out = length.to_ne_bytes().to_vec();
    out.extend(kind.to_ne_bytes());
    out.extend(NLM_F_REQUEST_ACK.to_ne_bytes());
    out.extend([0; 8]);
    out.extend([command, 1, 0, 0]);
    out.extend(attributes);
    out
}

fn attr(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut out = (4 + value.len() as u16).to_ne_bytes().to_vec();
    out.extend(kind.to_ne_bytes());
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

fn text(value: &str) -> Vec<u8> {
    [value.as_bytes(), b"\0"].concat()
}

/// Type and payload of each netlink message in a datagram.
fn messages(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*rest.first_chunk()?) as usize;
        let kind = u16::from_ne_bytes(*rest.get(4..)?.first_chunk()?);
        let payload = rest.get(16..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, payload))
    })
}

fn find(mut rest: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(*rest.first_chunk()?));
        let kind = u16::from_ne_bytes(*rest.get(2..)?.first_chunk()?);
        let value = rest.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}
