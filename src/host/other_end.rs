//! The other end of a pair of links. Root in its namespace may give it a name and an alias of any bytes. For text that is
//! not UTF-8 rtnetlink drops the whole answer, so this reads no more of it than is needed.

use nix::errno::Errno;
use ovnkube_node_plan::host::{Link, Mac};
use rtnetlink::sys::Socket;
use rtnetlink::sys::protocols::NETLINK_ROUTE;

use crate::netlink::{NLM_F_ACK, NLM_F_REQUEST, attr, exchange, find, header};
use crate::netns::on_thread;
use crate::{Error, Net, Result};

const RTM_GETLINK: u16 = 18;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_TARGET_NETNSID: u16 = 46;
/// Of `ifinfomsg`, before the attributes.
const HEAD: usize = 16;

/// One end of a pair, as seen from the other one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherEnd {
    pub index: u32,
    /// What is no UTF-8 is replaced.
    pub name: String,
    pub mac: Option<Mac>,
}

impl Net {
    /// The other end of a pair, in any namespace; `None` when there is none.
    pub async fn other_end(&self, link: &Link) -> Result<Option<OtherEnd>> {
        let Some(index) = link.other else { return Ok(None) };
        let (netns, what) = (link.other_netns, format!("look up the other end of {}", link.name));
        let work = move || look_up(index, netns, &what);
        match &self.netns {
            Some(own) => own.run(work).await?,
            None => on_thread(work).await,
        }
    }
}

fn look_up(index: u32, netns: Option<i32>, what: &str) -> Result<Option<OtherEnd>> {
    let mut socket = Socket::new(NETLINK_ROUTE).map_err(Error::Socket)?;
    socket.bind_auto().map_err(Error::Socket)?;
    let mut body = [[0; 4], index.to_ne_bytes(), [0; 4], [0; 4]].concat();
    if let Some(id) = netns {
        body.extend(attr(IFLA_TARGET_NETNSID, &id.to_ne_bytes()));
    }
    let request = [header(RTM_GETLINK, NLM_F_REQUEST | NLM_F_ACK, body.len()), body].concat();
    match exchange(&socket, &request, what) {
        Ok(replies) => Ok(replies.iter().find_map(|reply| end(reply))),
        Err(Error::Netlink { problem, .. }) if problem.raw_os_error() == Some(Errno::ENODEV as i32) => Ok(None),
        Err(e) => Err(e),
    }
}

fn end(reply: &[u8]) -> Option<OtherEnd> {
    let index = u32::from_ne_bytes(*reply.get(4..)?.first_chunk()?);
    let attributes = reply.get(HEAD..)?;
    let name = find(attributes, IFLA_IFNAME)?;
    let name = String::from_utf8_lossy(name.strip_suffix(b"\0").unwrap_or(name)).into_owned();
    Some(OtherEnd { index, name, mac: find(attributes, IFLA_ADDRESS).and_then(|mac| mac.try_into().ok()) })
}
