//! Wake-ups for a level-triggered reconciler: links, addresses, routes, forwarding or nftables changed.

use std::time::Duration;

use nix::errno::Errno;
use rtnetlink::packet_core::{NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::neighbour::NeighbourState;
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage};
use rtnetlink::sys::protocols::{NETLINK_NETFILTER, NETLINK_ROUTE};
use rtnetlink::sys::{AsyncSocket, AsyncSocketExt, TokioSocket};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::{Error, Result};

// Groups of notifications, as linux/rtnetlink.h and linux/netfilter/nfnetlink.h number them.
/// `LINK`, `IPV4_IFADDR`, `IPV6_IFADDR`: reported at once, because a new port waits for them.
const LINKS: [u32; 3] = [1, 5, 9];
/// `IPV4_ROUTE`, `IPV4_RULE`, `IPV6_ROUTE`, `IPV6_RULE`; and `IPV4_NETCONF`, `IPV6_NETCONF`: any program changed `forwarding`
/// or `rp_filter` of a link.
const ROUTES: [u32; 6] = [7, 8, 11, 19, 24, 25];
const NEIGHBOURS: [u32; 1] = [3];
const NFTABLES: [u32; 1] = [7];
/// Shortest time between two wake-ups for routes and nftables: routing daemons change routes all the time.
const ROUTES_PAUSE: Duration = Duration::from_secs(1);

/// Netlink notifications of the process's own namespace.
#[derive(Debug)]
pub struct Changes {
    links: watch::Receiver<()>,
    routes: watch::Receiver<()>,
    routes_after: Instant,
}

impl Changes {
    pub fn watch() -> Result<Self> {
        let (links_changed, links) = watch::channel(());
        let (routes_changed, routes) = watch::channel(());
        let any = |_: &[u8]| true;
        notices(NETLINK_ROUTE, &LINKS, any, links_changed)?;
        notices(NETLINK_ROUTE, &ROUTES, any, routes_changed.clone())?;
        notices(NETLINK_ROUTE, &NEIGHBOURS, is_configured, routes_changed.clone())?;
        notices(NETLINK_NETFILTER, &NFTABLES, any, routes_changed)?;
        Ok(Self { links, routes, routes_after: Instant::now() })
    }

    /// Returns after at least one change; routes, neighbours and nftables wake at most once a second.
    pub async fn next(&mut self) {
        let Self { links, routes, routes_after } = self;
        let routes_changed = async {
            sleep_until(*routes_after).await;
            routes.changed().await
        };
        // neither fails: who sends to a channel lives as long as its receiver
        tokio::select! {
            _ = links.changed() => {},
            _ = routes_changed => *routes_after = Instant::now() + ROUTES_PAUSE,
        }
        // the caller's next look covers all changes so far
        self.links.mark_unchanged();
        self.routes.mark_unchanged();
    }
}

/// Marks `changed` at each notification of these groups that matters, until nobody waits for it any more. Notifications are
/// read as they arrive, so that none pile up while no task waits.
fn notices(
    protocol: isize,
    groups: &[u32],
    matters: impl Fn(&[u8]) -> bool + Send + 'static,
    changed: watch::Sender<()>,
) -> Result<()> {
    let socket = socket(protocol, groups).map_err(Error::Socket)?;
    tokio::spawn(async move {
        loop {
            let told = tokio::select! {
                told = socket.recv_from_full() => told,
                () = changed.closed() => return,
            };
            match told {
                Ok((message, _)) if !matters(&message) => continue,
                Ok(_) => {}
                // notifications that did not fit into the socket's buffer were changes too
                Err(e) if e.raw_os_error() == Some(Errno::ENOBUFS as i32) => {}
                Err(_) => sleep(ROUTES_PAUSE).await,
            }
            changed.send_replace(());
        }
    });
    Ok(())
}

fn socket(protocol: isize, groups: &[u32]) -> std::io::Result<TokioSocket> {
    let mut socket = TokioSocket::new(protocol)?;
    socket.socket_mut().bind_auto()?;
    for group in groups {
        socket.socket_mut().add_membership(*group)?;
    }
    Ok(socket)
}

/// Whether a notification is about an entry that somebody wrote: those that ARP and ND learn do not matter. A removed entry no
/// longer shows whether it was permanent.
fn is_configured(notification: &[u8]) -> bool {
    use RouteNetlinkMessage::{DelNeighbour, NewNeighbour};
    let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(notification) else { return true };
    let (to, is_kept) = match &message.payload {
        NetlinkPayload::InnerMessage(NewNeighbour(to)) => (to, to.header.state == NeighbourState::Permanent),
        NetlinkPayload::InnerMessage(DelNeighbour(to)) => (to, true),
        _ => return true,
    };
    is_kept && to.header.family != AddressFamily::Bridge
}
