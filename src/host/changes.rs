//! Wake-ups for a level-triggered reconciler: links, addresses, routes, forwarding or nftables changed.

use std::time::Duration;

use futures::StreamExt;
use futures::channel::mpsc::UnboundedReceiver;
use rtnetlink::packet_core::{NetlinkMessage, NetlinkPayload};
use rtnetlink::packet_route::neighbour::{NeighbourMessage, NeighbourState};
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage};
use rtnetlink::sys::protocols::{NETLINK_NETFILTER, NETLINK_ROUTE};
use rtnetlink::sys::{AsyncSocket, AsyncSocketExt, SocketAddr, TokioSocket};
use rtnetlink::{MulticastGroup, new_multicast_connection};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::{Error, Result};

/// `NFNLGRP_NFTABLES`
const NFTABLES: u32 = 7;
/// `RTNLGRP_IPV4_NETCONF`, `RTNLGRP_IPV6_NETCONF`: any program changed `forwarding` or `rp_filter` of a link.
const NETCONF: [u32; 2] = [24, 25];
/// Shortest time between two wake-ups for routes and nftables: routing daemons change routes all the time.
const ROUTES_PAUSE: Duration = Duration::from_secs(1);

/// Netlink notifications of the process's own namespace.
#[derive(Debug)]
pub struct Changes {
    links: watch::Receiver<()>,
    routes: watch::Receiver<()>,
    routes_after: Instant,
}

/// What a notification is about.
#[derive(Debug)]
enum Topic {
    /// Links and addresses: reported at once, because a new port waits for them.
    Links,
    /// Routes, routing rules and neighbours.
    Routes,
}

impl Changes {
    pub fn watch() -> Result<Self> {
        let groups = [
            MulticastGroup::Link,
            MulticastGroup::Ipv4Ifaddr,
            MulticastGroup::Ipv6Ifaddr,
            MulticastGroup::Ipv4Route,
            MulticastGroup::Ipv6Route,
            MulticastGroup::Ipv4Rule,
            MulticastGroup::Ipv6Rule,
            MulticastGroup::Neigh,
        ];
        let (connection, _, messages) = new_multicast_connection(&groups).map_err(Error::Socket)?;
        tokio::spawn(connection);
        let (links_changed, links) = watch::channel(());
        let (routes_changed, routes) = watch::channel(());
        for (protocol, groups) in [(NETLINK_NETFILTER, &[NFTABLES][..]), (NETLINK_ROUTE, &NETCONF)] {
            let socket = notifications(protocol, groups).map_err(Error::Socket)?;
            tokio::spawn(notice(socket, routes_changed.clone()));
        }
        tokio::spawn(sort(messages, links_changed, routes_changed));
        Ok(Self { links, routes, routes_after: Instant::now() })
    }

    /// Returns after at least one change; routes and neighbours wake at most once a second.
    /// `false`: the socket was closed, watch again.
    pub async fn next(&mut self) -> bool {
        let Self { links, routes, routes_after } = self;
        let routes_changed = async {
            sleep_until(*routes_after).await;
            routes.changed().await
        };
        let changed = tokio::select! {
            changed = links.changed() => changed,
            changed = routes_changed => {
                *routes_after = Instant::now() + ROUTES_PAUSE;
                changed
            }
        };
        // the caller's next look covers all changes so far
        self.links.mark_unchanged();
        self.routes.mark_unchanged();
        changed.is_ok()
    }
}

fn notifications(protocol: isize, groups: &[u32]) -> std::io::Result<TokioSocket> {
    let mut socket = TokioSocket::new(protocol)?;
    socket.socket_mut().bind_auto()?;
    for group in groups {
        socket.socket_mut().add_membership(*group)?;
    }
    Ok(socket)
}

/// Reports every notification, of any table or link: looking costs little and shows whether the change matters.
async fn notice(socket: TokioSocket, changed: watch::Sender<()>) {
    loop {
        let told = tokio::select! {
            told = socket.recv_from_full() => told,
            () = changed.closed() => return,
        };
        // notifications that did not fit into the socket's buffer were changes too
        changed.send_replace(());
        if told.is_err() {
            sleep(ROUTES_PAUSE).await;
        }
    }
}

/// Reads messages as they arrive, so that none pile up while no task waits for the next change.
async fn sort(
    mut messages: UnboundedReceiver<(NetlinkMessage<RouteNetlinkMessage>, SocketAddr)>,
    links: watch::Sender<()>,
    routes: watch::Sender<()>,
) {
    loop {
        let message = tokio::select! {
            message = messages.next() => message,
            () = links.closed() => return,
        };
        let Some((message, _)) = message else { return };
        let changed = match topic(&message.payload) {
            Some(Topic::Links) => &links,
            Some(Topic::Routes) => &routes,
            None => continue,
        };
        changed.send_replace(());
    }
}

fn topic(payload: &NetlinkPayload<RouteNetlinkMessage>) -> Option<Topic> {
    use RouteNetlinkMessage::{DelNeighbour, DelRoute, DelRule, NewNeighbour, NewRoute, NewRule};
    let NetlinkPayload::InnerMessage(message) = payload else {
        // for example: the kernel lost some messages
        return Some(Topic::Links);
    };
    let is_ip = |neighbour: &NeighbourMessage| neighbour.header.family != AddressFamily::Bridge;
    match message {
        NewRoute(_) | DelRoute(_) | NewRule(_) | DelRule(_) => Some(Topic::Routes),
        // entries that ARP and ND learn do not matter; a removed entry no longer shows whether it was permanent
        NewNeighbour(to) => (is_ip(to) && to.header.state == NeighbourState::Permanent).then_some(Topic::Routes),
        DelNeighbour(to) => is_ip(to).then_some(Topic::Routes),
        _ => Some(Topic::Links),
    }
}
