//! Wake-ups for a level-triggered `ensure`: "something about links, addresses or routes changed".

use futures::StreamExt;
use futures::channel::mpsc::UnboundedReceiver;
use rtnetlink::packet_core::NetlinkMessage;
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::sys::SocketAddr;
use rtnetlink::{MulticastGroup, new_multicast_connection};

use crate::{Error, Result};

/// Netlink notifications of the process's own namespace.
#[derive(Debug)]
pub struct Changes {
    messages: UnboundedReceiver<(NetlinkMessage<RouteNetlinkMessage>, SocketAddr)>,
}

impl Changes {
    pub fn watch() -> Result<Self> {
        let groups = [
            MulticastGroup::Link,
            MulticastGroup::Ipv4Ifaddr,
            MulticastGroup::Ipv6Ifaddr,
            MulticastGroup::Ipv4Route,
            MulticastGroup::Ipv6Route,
            MulticastGroup::Neigh,
        ];
        let (connection, _, messages) = new_multicast_connection(&groups).map_err(Error::Socket)?;
        tokio::spawn(connection);
        Ok(Self { messages })
    }

    /// Returns after at least one change, having taken all that are waiting. `false`: the socket
    /// is gone, watch again.
    pub async fn next(&mut self) -> bool {
        if self.messages.next().await.is_none() {
            return false;
        }
        while let Ok(message) = self.messages.try_recv() {
            drop(message);
        }
        true
    }
}
