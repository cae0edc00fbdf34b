//! Hand-written netlink messages, for families without a crate here.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::time::{TimeVal, TimeValLike};
use rtnetlink::sys::{Socket, SocketAddr};

use crate::program::LIMIT;
use crate::{Error, Result};

pub(crate) const NLM_F_REQUEST: u16 = 1;
pub(crate) const NLM_F_ACK: u16 = 4;
pub(crate) const NLM_F_DUMP: u16 = 0x300;
pub(crate) const NLA_F_NESTED: u16 = 1 << 15;
const NLA_TYPE: u16 = 0x3fff;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;

/// Sends one request and collects the payloads up to its acknowledgement, or to the end of a dump. Each message of the
/// answer must come in time.
pub(crate) fn exchange(socket: &Socket, request: &[u8], what: &str) -> Result<Vec<Vec<u8>>> {
    let mut replies = Vec::new();
    exchange_each(socket, request, what, |payload| replies.push(payload.to_vec()))?;
    Ok(replies)
}

/// As [`exchange`], but gives each payload to `take`: of a long dump only what matters need be kept.
pub(crate) fn exchange_each(socket: &Socket, request: &[u8], what: &str, mut take: impl FnMut(&[u8])) -> Result<()> {
    let failed = |problem: io::Error| match problem.kind() {
        ErrorKind::WouldBlock => Error::Silent { what: what.to_owned() },
        _ => Error::Netlink { what: what.to_owned(), problem },
    };
    socket.send_to(request, &SocketAddr::new(0, 0), 0).map_err(failed)?;
    loop {
        let datagram = receive(socket).map_err(failed)?;
        for (kind, payload) in messages(&datagram) {
            if kind == NLMSG_DONE {
                return Ok(());
            }
            if kind != NLMSG_ERROR {
                take(payload);
                continue;
            }
            let errno = payload.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
            return if errno == 0 { Ok(()) } else { Err(failed(io::Error::from_raw_os_error(-errno))) };
        }
    }
}

/// The next datagram. Any signal, also one for a child of another thread, ends a call that has a limit: signal(7). The
/// call is made again with the time that is left, and at least once: a process that was stopped finds its answer.
fn receive(socket: &Socket) -> io::Result<Vec<u8>> {
    let end = Instant::now() + LIMIT;
    loop {
        // zero would be no limit
        let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        setsockopt(socket, ReceiveTimeout, &TimeVal::milliseconds(left.as_millis() as i64))?;
        match socket.recv_from_full() {
            Err(problem) if problem.kind() == ErrorKind::Interrupted => {}
            received => return received.map(|(datagram, _)| datagram),
        }
    }
}

/// The header of a message with a body of `length` bytes.
pub(crate) fn header(kind: u16, flags: u16, length: usize) -> Vec<u8> {
    let mut out = (16 + length as u32).to_ne_bytes().to_vec();
    out.extend(kind.to_ne_bytes());
    out.extend(flags.to_ne_bytes());
    out.extend([0; 8]);
    out
}

pub(crate) fn attr(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut out = (4 + value.len() as u16).to_ne_bytes().to_vec();
    out.extend(kind.to_ne_bytes());
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
    out
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

/// The value of the first attribute of type `wanted`.
pub(crate) fn find(mut rest: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(*rest.first_chunk()?));
        let kind = u16::from_ne_bytes(*rest.get(2..)?.first_chunk()?);
        let value = rest.get(4..length)?;
        if kind & NLA_TYPE == wanted {
            return Some(value);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}
