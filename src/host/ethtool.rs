//! TX checksum offload over the kernel's `ethtool` netlink family.

use rtnetlink::sys::Socket;
use rtnetlink::sys::protocols::NETLINK_GENERIC;

use crate::netlink::{NLA_F_NESTED, NLM_F_ACK, NLM_F_REQUEST, attr, exchange, find, header};
use crate::netns::on_thread;
use crate::{Error, Netns, Result};

/// What `ethtool -K LINK tx off` clears.
const TX_CHECKSUM: [&str; 4] = ["tx-checksum-ipv4", "tx-checksum-ip-generic", "tx-checksum-ipv6", "tx-checksum-sctp"];

const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const ETHTOOL_MSG_FEATURES_GET: u8 = 11;
const ETHTOOL_MSG_FEATURES_SET: u8 = 12;
const ETHTOOL_A_FEATURES_HEADER: u16 = 1 | NLA_F_NESTED;
const ETHTOOL_A_FEATURES_WANTED: u16 = 3 | NLA_F_NESTED;
const ETHTOOL_A_FEATURES_ACTIVE: u16 = 4;
const ETHTOOL_A_HEADER_DEV_NAME: u16 = 2;
const ETHTOOL_A_HEADER_FLAGS: u16 = 3;
const ETHTOOL_FLAG_OMIT_REPLY: u32 = 2;
const ETHTOOL_A_BITSET_BITS: u16 = 3 | NLA_F_NESTED;
const ETHTOOL_A_BITSET_BITS_BIT: u16 = 1 | NLA_F_NESTED;
const ETHTOOL_A_BITSET_BIT_NAME: u16 = 2;

/// Switches TX checksum offload of `link` off, in `netns` or in the process's own namespace. The
/// userspace datapath forwards packets unchanged: a checksum left to hardware is never filled in.
pub async fn tx_checksum_off(netns: Option<&Netns>, link: &str) -> Result<()> {
    let link = link.to_owned();
    match netns {
        Some(netns) => netns.run(move || clear(&link)).await?,
        None => on_thread(move || clear(&link)).await,
    }
}

/// Whether the kernel leaves the checksums of packets that `link` sends to hardware.
pub async fn offloads_tx_checksum(link: &str) -> Result<bool> {
    let link = link.to_owned();
    on_thread(move || is_offloaded(&link)).await
}

fn is_offloaded(link: &str) -> Result<bool> {
    let what = format!("read the TX checksum offload of {link}");
    let mut socket = Socket::new(NETLINK_GENERIC).map_err(Error::Socket)?;
    socket.bind_auto().map_err(Error::Socket)?;
    let family = family(&socket, &what)?;
    let device = attr(ETHTOOL_A_FEATURES_HEADER, &attr(ETHTOOL_A_HEADER_DEV_NAME, &text(link)));
    let replies = exchange(&socket, &message(family, ETHTOOL_MSG_FEATURES_GET, &device), &what)?;
    let active = replies.iter().find_map(|reply| find(reply.get(4..)?, ETHTOOL_A_FEATURES_ACTIVE));
    let active = active.ok_or(Error::NoReply { what })?;
    // this bitset lists only the features that are on
    Ok(TX_CHECKSUM.iter().any(|bit| contains(active, &text(bit))))
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
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

/// A list of bits without values: the kernel clears the named bits and keeps the others.
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

fn message(kind: u16, command: u8, attributes: &[u8]) -> Vec<u8> {
    let body = [&[command, 1, 0, 0], attributes].concat();
    [header(kind, NLM_F_REQUEST | NLM_F_ACK, body.len()), body].concat()
}

fn text(value: &str) -> Vec<u8> {
    [value.as_bytes(), b"\0"].concat()
}
