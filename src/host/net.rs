//! Links, addresses, routes and neighbours of one network namespace.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};

use ipnetwork::IpNetwork;
use nix::errno::Errno;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::address::{AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage, CacheInfo};
use rtnetlink::packet_route::link::{InfoData, InfoVeth, LinkAttribute, LinkFlags, LinkMessage};
use rtnetlink::packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState};
use rtnetlink::packet_route::route::{RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric};
use rtnetlink::sys::protocols::NETLINK_ROUTE;
use rtnetlink::sys::{AsyncSocket, TokioSocket};
use rtnetlink::{Handle, LinkMessageBuilder, LinkUnspec, LinkVeth, RouteMessageBuilder, from_socket};
use tokio::sync::watch;

use ovnkube_node_plan::host::{DefaultRoute, Link, Mac, Route};

use crate::answer::{all, failed, first, in_time, is};
use crate::netns::on_thread;
use crate::{Error, Netns, Result};

/// An rtnetlink socket in one namespace; cheap to clone, closed with the last clone. The kernel runs one dump at a time
/// on it: a task that lists objects while others do needs a socket of its own.
#[derive(Debug, Clone)]
pub struct Net {
    pub(crate) handle: Handle,
    /// `None`: the process's own.
    pub(crate) netns: Option<Netns>,
    /// Its sender is the socket's task.
    ended: watch::Receiver<()>,
}

/// A veth pair to create: one end here, the other in `peer_netns`.
#[derive(Debug, Clone, Copy)]
pub struct Veth<'a> {
    pub name: &'a str,
    pub mac: Mac,
    pub peer: &'a str,
    pub peer_netns: &'a Netns,
    pub peer_mac: Mac,
    pub mtu: u32,
}

impl Net {
    /// Opens a socket in the process's own namespace.
    pub async fn here() -> Result<Self> {
        Ok(Self::wrap(on_thread(socket).await?, None))
    }

    /// Returns when the socket has failed: every request would fail from then on.
    pub async fn ended(&self) {
        let mut ended = self.ended.clone();
        while ended.changed().await.is_ok() {}
    }

    pub async fn within(netns: &Netns) -> Result<Self> {
        Ok(Self::wrap(netns.run(socket).await??, Some(netns.clone())))
    }

    // === links

    /// The link of that name; `None` when there is no such link.
    pub async fn link(&self, name: &str) -> Result<Option<Link>> {
        match first(self.handle.link().get().match_name(name).execute()).await {
            Ok(message) => Ok(message.as_ref().map(link_of)),
            Err(e) if is(&e, Errno::ENODEV) => Ok(None),
            Err(e) => Err(failed(format!("look up link {name}"), e)),
        }
    }

    pub async fn links(&self) -> Result<Vec<Link>> {
        let all: Vec<LinkMessage> =
            all(self.handle.link().get().execute()).await.map_err(|e| failed("list links".into(), e))?;
        Ok(all.iter().map(link_of).collect())
    }

    /// Creates both ends in one request, so that there is never half a pair.
    pub async fn add_veth(&self, veth: Veth<'_>) -> Result<()> {
        let peer = LinkMessageBuilder::<LinkUnspec>::default()
            .name(veth.peer)
            .mtu(veth.mtu)
            .address(veth.peer_mac.to_vec())
            .setns_by_fd(veth.peer_netns.as_fd().as_raw_fd())
            .build();
        let pair = LinkVeth::new(veth.name, veth.peer)
            .mtu(veth.mtu)
            .address(veth.mac.to_vec())
            .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
            .build();
        let added = in_time(self.handle.link().add(pair).execute()).await;
        added.map_err(|e| {
            failed(format!("create veth {} with {} in {}", veth.name, veth.peer, veth.peer_netns.path().display()), e)
        })
    }

    pub async fn set_up(&self, link: &Link) -> Result<()> {
        if link.up {
            return Ok(());
        }
        self.set(link, "set up link", LinkUnspec::new_with_index(link.index).up()).await
    }

    pub async fn ensure_mtu(&self, link: &Link, mtu: u32) -> Result<()> {
        if link.mtu == mtu {
            return Ok(());
        }
        self.set(link, "set the MTU of link", LinkUnspec::new_with_index(link.index).mtu(mtu)).await
    }

    pub async fn ensure_mac(&self, link: &Link, mac: Mac) -> Result<()> {
        if link.mac == Some(mac) {
            return Ok(());
        }
        self.set(link, "set the MAC address of link", LinkUnspec::new_with_index(link.index).address(mac.to_vec()))
            .await
    }

    pub async fn set_alias(&self, link: &Link, alias: &str) -> Result<()> {
        let to =
            LinkUnspec::new_with_index(link.index).append_extra_attribute(LinkAttribute::IfAlias(alias.to_owned()));
        self.set(link, "set the alias of link", to).await
    }

    pub async fn rename(&self, link: &Link, name: &str) -> Result<()> {
        self.set(link, "rename link", LinkUnspec::new_with_index(link.index).name(name)).await
    }

    /// Deletes the link; no error when it does not exist.
    pub async fn delete(&self, name: &str) -> Result<()> {
        let Some(link) = self.link(name).await? else { return Ok(()) };
        match in_time(self.handle.link().del(link.index).execute()).await {
            Err(e) if !is(&e, Errno::ENODEV) => Err(failed(format!("delete link {name}"), e)),
            _ => Ok(()),
        }
    }

    async fn set(&self, link: &Link, what: &str, to: LinkMessageBuilder<LinkUnspec>) -> Result<()> {
        let set = in_time(self.handle.link().set(to.build()).execute()).await;
        set.map_err(|e| failed(format!("{what} {}", link.name), e))
    }

    // === addresses

    /// Addresses with their prefix; without link-local IPv6 ones, which the kernel makes, and without those that failed
    /// duplicate address detection.
    pub async fn addresses(&self, link: &Link) -> Result<Vec<IpNetwork>> {
        let get = self.handle.address().get().execute();
        let all: Vec<AddressMessage> =
            all(get).await.map_err(|e| failed(format!("list addresses of {}", link.name), e))?;
        Ok(all.iter().filter(|message| message.header.index == link.index).filter_map(usable).collect())
    }

    /// As [`Net::addresses`], of all links but `except`.
    pub async fn all_addresses(&self, except: &str) -> Result<Vec<IpNetwork>> {
        let skip = self.link(except).await?.map(|link| link.index);
        let get = self.handle.address().get().execute();
        let all: Vec<AddressMessage> = all(get).await.map_err(|e| failed("list addresses".into(), e))?;
        Ok(all.iter().filter(|message| Some(message.header.index) != skip).filter_map(usable).collect())
    }

    /// Adds the address unless it exists. IPv6 addresses skip duplicate address detection: each is
    /// assigned only once, and a pod that starts must be able to use its own at once.
    pub async fn ensure_address(&self, link: &Link, address: IpNetwork) -> Result<()> {
        self.add_address(link, address, true).await
    }

    /// As [`Net::ensure_address`], but an IPv6 address is a source only if a program asks for it: the kernel prefers
    /// any other.
    pub async fn ensure_unpreferred_address(&self, link: &Link, address: IpNetwork) -> Result<()> {
        self.add_address(link, address, false).await
    }

    async fn add_address(&self, link: &Link, address: IpNetwork, preferred: bool) -> Result<()> {
        let mut add = self.handle.address().add(link.index, address.ip(), address.prefix());
        if address.is_ipv6() {
            let message = add.message_mut();
            message.header.flags |= AddressHeaderFlags::Nodad;
            message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
            if !preferred {
                let mut lifetime = CacheInfo::default();
                (lifetime.ifa_preferred, lifetime.ifa_valid) = (0, u32::MAX);
                message.attributes.push(AddressAttribute::CacheInfo(lifetime));
            }
        }
        match in_time(add.execute()).await {
            Err(e) if !is(&e, Errno::EEXIST) => Err(failed(format!("add address {address} to {}", link.name), e)),
            _ => Ok(()),
        }
    }

    pub async fn delete_address(&self, link: &Link, unwanted: IpNetwork) -> Result<()> {
        let get = self.handle.address().get().execute();
        let all: Vec<AddressMessage> =
            all(get).await.map_err(|e| failed(format!("list addresses of {}", link.name), e))?;
        for message in all.into_iter().filter(|m| m.header.index == link.index && address(m) == Some(unwanted)) {
            match in_time(self.handle.address().del(message).execute()).await {
                Err(e) if !is(&e, Errno::EADDRNOTAVAIL) => {
                    return Err(failed(format!("delete address {unwanted} of {}", link.name), e));
                }
                _ => {}
            }
        }
        Ok(())
    }

    // === routes

    /// The main table's routes through `link`, sorted; without those of the kernel and of router advertisements.
    pub async fn routes(&self, link: &Link) -> Result<Vec<Route>> {
        self.routes_in(link, RouteHeader::RT_TABLE_MAIN).await
    }

    /// As [`Net::routes`], of another table.
    pub async fn routes_in(&self, link: &Link, table: u8) -> Result<Vec<Route>> {
        let messages = self.route_messages(link, table).await?;
        let mut routes: Vec<Route> = messages.iter().filter_map(route).collect();
        routes.sort();
        Ok(routes)
    }

    /// Adds the route or replaces one to the same destination.
    pub async fn ensure_route(&self, link: &Link, want: Route) -> Result<()> {
        self.ensure_route_in(link, RouteHeader::RT_TABLE_MAIN, want).await
    }

    /// As [`Net::ensure_route`], in another table.
    pub async fn ensure_route_in(&self, link: &Link, table: u8, want: Route) -> Result<()> {
        let what = || format!("add route {want} through {}", link.name);
        let builder = RouteMessageBuilder::<IpAddr>::new().output_interface(link.index);
        let invalid = |_| Error::Netlink { what: what(), problem: io::ErrorKind::InvalidInput.into() };
        let mut builder =
            builder.destination_prefix(want.destination.network(), want.destination.prefix()).map_err(invalid)?;
        if let Some(gateway) = want.gateway {
            builder = builder.gateway(gateway).map_err(invalid)?;
        }
        if let Some(source) = want.source {
            builder = builder.pref_source(source).map_err(invalid)?;
        }
        if let Some(mtu) = want.mtu {
            builder.get_mut().attributes.push(RouteAttribute::Metrics(vec![RouteMetric::Mtu(mtu)]));
        }
        builder.get_mut().header.table = table;
        let added = in_time(self.handle.route().add(builder.build()).replace().execute()).await;
        added.map_err(|e| failed(what(), e))
    }

    /// Deletes the route from a table; no error when it does not exist.
    pub async fn delete_route_in(&self, link: &Link, table: u8, unwanted: Route) -> Result<()> {
        for message in self.route_messages(link, table).await?.into_iter().filter(|m| route(m) == Some(unwanted)) {
            self.drop_message(message, || format!("delete route {unwanted} through {}", link.name)).await?;
        }
        Ok(())
    }

    /// Deletes all routes through the link from a table.
    pub async fn delete_routes_in(&self, link: &Link, table: u8) -> Result<()> {
        for message in self.route_messages(link, table).await? {
            self.drop_message(message, || format!("delete routes through {} from table {table}", link.name)).await?;
        }
        Ok(())
    }

    /// Deletes a route; no error when it does not exist.
    pub(crate) async fn drop_message(&self, route: RouteMessage, what: impl FnOnce() -> String) -> Result<()> {
        match in_time(self.handle.route().del(route).execute()).await {
            Err(e) if !is(&e, Errno::ESRCH) => Err(failed(what(), e)),
            _ => Ok(()),
        }
    }

    async fn route_messages(&self, link: &Link, table: u8) -> Result<Vec<RouteMessage>> {
        let mut found = self.table(table).await?;
        found.retain(|m: &RouteMessage| m.attributes.contains(&RouteAttribute::Oif(link.index)));
        Ok(found)
    }

    /// Default routes of both families, the preferred ones first.
    pub async fn default_routes(&self) -> Result<Vec<DefaultRoute>> {
        let mut routes: Vec<DefaultRoute> = self.all_tables().await?.iter().flat_map(default_routes).collect();
        routes.sort();
        Ok(routes)
    }

    async fn table(&self, table: u8) -> Result<Vec<RouteMessage>> {
        let mut found = self.all_tables().await?;
        found.retain(|m: &RouteMessage| m.header.table == table);
        Ok(found)
    }

    pub(crate) async fn all_tables(&self) -> Result<Vec<RouteMessage>> {
        let mut found = self.all_tables_of(AddressFamily::Inet).await?;
        found.extend(self.all_tables_of(AddressFamily::Inet6).await?);
        Ok(found)
    }

    pub(crate) async fn all_tables_of(&self, family: AddressFamily) -> Result<Vec<RouteMessage>> {
        let mut query = RouteMessageBuilder::<IpAddr>::new().build();
        query.header.address_family = family;
        let routes = all(self.handle.route().get(query).execute()).await;
        let mut found: Vec<RouteMessage> = routes.map_err(|e| failed("list routes".into(), e))?;
        // for a family that the host does not support, the kernel lists the routes of all families
        found.retain(|message| message.header.address_family == family);
        Ok(found)
    }

    // === neighbours

    /// Adds a permanent entry unless it exists.
    pub async fn ensure_neighbour(&self, link: &Link, ip: IpAddr, mac: Mac) -> Result<()> {
        let what = || format!("add neighbour {ip} on {}", link.name);
        let have: Vec<NeighbourMessage> =
            all(self.handle.neighbours().get().execute()).await.map_err(|e| failed(what(), e))?;
        if have.iter().any(|m| m.header.ifindex == link.index && is_permanent(m, ip, mac)) {
            return Ok(());
        }
        let add = self.handle.neighbours().add(link.index, ip).link_layer_address(&mac).replace();
        in_time(add.execute()).await.map_err(|e| failed(what(), e))
    }

    /// Deletes a permanent entry; no error when it does not exist.
    pub async fn delete_neighbour(&self, link: &Link, unwanted: IpAddr) -> Result<()> {
        let what = || format!("delete neighbour {unwanted} on {}", link.name);
        let have: Vec<NeighbourMessage> =
            all(self.handle.neighbours().get().execute()).await.map_err(|e| failed(what(), e))?;
        let is_unwanted = |message: &NeighbourMessage| {
            message.header.ifindex == link.index
                && message.header.state == NeighbourState::Permanent
                && neighbour(message) == Some(unwanted)
        };
        for message in have.into_iter().filter(is_unwanted) {
            match in_time(self.handle.neighbours().del(message).execute()).await {
                Err(e) if !is(&e, Errno::ENOENT) => return Err(failed(what(), e)),
                _ => {}
            }
        }
        Ok(())
    }

    fn wrap(socket: TokioSocket, netns: Option<Netns>) -> Self {
        let (connection, handle, _) = from_socket(socket);
        let (alive, ended) = watch::channel(());
        tokio::spawn(async move {
            // it ends with the last handle, or when the socket fails
            connection.await;
            drop(alive);
        });
        Self { handle, netns, ended }
    }
}

pub(crate) fn link_of(message: &LinkMessage) -> Link {
    let mut link = Link {
        index: message.header.index,
        name: String::new(),
        mac: None,
        mtu: 0,
        up: message.header.flags.contains(LinkFlags::Up),
        alias: None,
        master: None,
        other: None,
        other_netns: None,
    };
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name.clone_from(name),
            LinkAttribute::IfAlias(alias) => link.alias = Some(alias.clone()),
            LinkAttribute::Controller(master) => link.master = Some(*master),
            LinkAttribute::Link(other) => link.other = Some(*other),
            LinkAttribute::LinkNetNsId(netns) => link.other_netns = Some(*netns),
            LinkAttribute::Mtu(mtu) => link.mtu = *mtu,
            LinkAttribute::Address(mac) => link.mac = mac.as_slice().try_into().ok(),
            _ => {}
        }
    }
    link
}

fn socket() -> Result<TokioSocket> {
    let mut socket = TokioSocket::new(NETLINK_ROUTE).map_err(Error::Socket)?;
    socket.socket_mut().bind_auto().map_err(Error::Socket)?;
    Ok(socket)
}

/// `None` for an address that another host has too: the kernel keeps it, but does not use it.
pub(crate) fn usable(message: &AddressMessage) -> Option<IpNetwork> {
    address(message).filter(|_| !message.header.flags.contains(AddressHeaderFlags::Dadfailed))
}

pub(crate) fn address(message: &AddressMessage) -> Option<IpNetwork> {
    // on point-to-point links Local is this end and Address the peer's; IPv6 has only Address
    let local =
        message.attributes.iter().find_map(|a| if let AddressAttribute::Local(ip) = a { Some(*ip) } else { None });
    let any =
        message.attributes.iter().find_map(|a| if let AddressAttribute::Address(ip) = a { Some(*ip) } else { None });
    let ip = local.or(any)?;
    let link_local = matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local());
    if link_local { None } else { IpNetwork::new(ip, message.header.prefix_len).ok() }
}

pub(crate) fn route(message: &RouteMessage) -> Option<Route> {
    use rtnetlink::packet_route::route::RouteProtocol::{Kernel, Ra};
    if matches!(message.header.protocol, Kernel | Ra) {
        return None;
    }
    let any: IpAddr =
        if message.header.address_family == AddressFamily::Inet { [0; 4].into() } else { [0u16; 8].into() };
    let mut to = any;
    let (mut gateway, mut source, mut mtu) = (None, None, None);
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(address) => to = ip(address)?,
            RouteAttribute::Gateway(address) => gateway = ip(address),
            RouteAttribute::PrefSource(address) => source = ip(address),
            RouteAttribute::Metrics(metrics) => {
                mtu = metrics
                    .iter()
                    .find_map(|metric| if let RouteMetric::Mtu(mtu) = metric { Some(*mtu) } else { None });
            }
            _ => {}
        }
    }
    let destination = IpNetwork::new(to, message.header.destination_prefix_length).ok()?;
    Some(Route { destination, gateway, source, mtu })
}

/// The default routes in a message of the main table: one for each gateway.
pub(crate) fn default_routes(message: &RouteMessage) -> Vec<DefaultRoute> {
    let (mut metric, mut gateway, mut link, mut hops) = (0, None, None, Vec::new());
    let gateway_of = |attributes: &[RouteAttribute]| {
        attributes.iter().find_map(|attribute| match attribute {
            RouteAttribute::Gateway(address) => ip(address),
            _ => None,
        })
    };
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Priority(priority) => metric = *priority,
            RouteAttribute::Gateway(address) => gateway = ip(address),
            RouteAttribute::Oif(index) => link = Some(*index),
            RouteAttribute::MultiPath(several) => {
                hops.extend(several.iter().map(|hop| (gateway_of(&hop.attributes), Some(hop.interface_index))));
            }
            _ => {}
        }
    }
    if message.header.destination_prefix_length > 0 || message.header.table != RouteHeader::RT_TABLE_MAIN {
        return Vec::new();
    }
    hops.push((gateway, link));
    let route = |(gateway, link): (Option<_>, Option<_>)| Some(DefaultRoute { metric, gateway: gateway?, link: link? });
    hops.into_iter().filter_map(route).collect()
}

pub(crate) fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(v4) => Some(IpAddr::from(*v4)),
        RouteAddress::Inet6(v6) => Some(IpAddr::from(*v6)),
        _ => None,
    }
}

fn is_permanent(message: &NeighbourMessage, ip: IpAddr, mac: Mac) -> bool {
    message.header.state == NeighbourState::Permanent && neighbour(message) == Some(ip) && mac_of(message) == Some(mac)
}

pub(crate) fn neighbour(message: &NeighbourMessage) -> Option<IpAddr> {
    message.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::Destination(NeighbourAddress::Inet(v4)) => Some((*v4).into()),
        NeighbourAttribute::Destination(NeighbourAddress::Inet6(v6)) => Some((*v6).into()),
        _ => None,
    })
}

pub(crate) fn mac_of(message: &NeighbourMessage) -> Option<Mac> {
    message.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLayerAddress(mac) => mac.as_slice().try_into().ok(),
        _ => None,
    })
}
