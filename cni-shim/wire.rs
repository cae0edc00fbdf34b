//! One HTTP request over the node agent's unix socket.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::system::connect;

const SOCKET: &str = "/var/run/ovn-kubernetes/cni/ovn-cni-server.sock";
/// The agent gives up after two minutes, and undoes an ADD for up to 5 seconds; its reply, which says why, must still arrive.
const PATIENCE: Duration = Duration::from_secs(130);
/// The agent has this reply ready. The kubelet asks every few seconds, and a runtime may block all else meanwhile.
const STATUS_PATIENCE: Duration = Duration::from_secs(5);
/// How long a node counts as ready after its agent last found it so, as the agent itself counts: the kubelet would take its
/// pods out of their services at once, and they run without an agent.
const READY_PATIENCE: Duration = Duration::from_secs(30);
const REPLY_LIMIT: u64 = 1024 * 1024;

pub(crate) struct Reply {
    pub(crate) status: u16,
    /// The agent's CNI error code, header `cni-code`.
    pub(crate) cni_code: Option<u32>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Path of the agent's socket; `OVN_CNI_SOCKET` overrides it.
pub(crate) fn socket() -> String {
    std::env::var("OVN_CNI_SOCKET").unwrap_or_else(|_| SOCKET.to_owned())
}

/// How long the agent may take, from the first step to the last byte of its reply.
pub(crate) fn patience(command: &str) -> Duration {
    if command == "STATUS" { STATUS_PATIENCE } else { PATIENCE }
}

/// Whether the agent has found the node ready a short time ago: the time of a file that it keeps beside its socket. One in the
/// future tells nothing.
pub(crate) fn was_ready(socket: &str) -> bool {
    let ready = std::fs::metadata(Path::new(socket).with_file_name("ready")).and_then(|meta| meta.modified());
    ready.is_ok_and(|ready| ready.elapsed().is_ok_and(|age| age <= READY_PATIENCE))
}

/// The error says why there is no reply and names the socket.
pub(crate) fn post(socket: String, body: String, patience: Duration) -> Result<Reply, String> {
    let late = format!("no answer on {socket} within {} s: the agent hangs or is stopped", patience.as_secs());
    let (done, outcome) = mpsc::channel();
    // a stopped agent blocks every step, even the first; the thread ends with the process
    let asking = thread::Builder::new().spawn(move || drop(done.send(ask(&socket, &body))));
    asking.map_err(|e| format!("a thread cannot be started: {e}"))?;
    outcome.recv_timeout(patience).unwrap_or(Err(late))
}

fn ask(socket: &str, body: &str) -> Result<Reply, String> {
    let mut stream = connect(socket).map_err(|e| format!("{socket}: {e}"))?;
    exchange(&mut stream, body)
        .map_err(|e| format!("{socket}: {e}"))
        .and_then(|reply| parse(&reply).ok_or_else(|| format!("the answer on {socket} is not an HTTP reply")))
}

fn exchange(stream: &mut (impl Read + Write), body: &str) -> std::io::Result<Vec<u8>> {
    // 1.0: the reply is never chunked and ends with the connection
    let head = format!(
        "POST / HTTP/1.0\r\nHost: dummy\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
    let mut reply = Vec::new();
    stream.take(REPLY_LIMIT).read_to_end(&mut reply)?;
    Ok(reply)
}

fn parse(reply: &[u8]) -> Option<Reply> {
    let end = reply.windows(4).position(|w| w == b"\r\n\r\n")?;
    let (head, body) = reply.split_at(end);
    let mut lines = std::str::from_utf8(head).ok()?.lines();
    let status = lines.next()?.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    let mut length = None;
    let mut cni_code = None;
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse::<usize>().ok(),
            "cni-code" => cni_code = value.trim().parse().ok(),
            _ => {}
        }
    }
    let body = body.get(4..)?;
    // a truncated reply is no reply
    if length.is_some_and(|length| body.len() < length) {
        return None;
    }
    Some(Reply { status, cni_code, body: body.to_vec() })
}

/// Standard base64 with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let n = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for i in 0..4 {
            let digit = DIGITS[(n >> (18 - 6 * i)) as usize & 63];
            out.push(if i <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    out
}
