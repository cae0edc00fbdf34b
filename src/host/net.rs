//! Links, addresses, routes and neighbours of one network namespace.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};

use futures::{Stream, TryStreamExt};
use ipnetwork::IpNetwork;
use nix::errno::Errno;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::address::{AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage, CacheInfo};
use rtnetlink::packet_route::link::{InfoData, InfoVeth, LinkAttribute, LinkFlags, LinkMessage};
use rtnetlink::packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState};
use rtnetlink::packet_route::route::{RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric};
use rtnetlink::sys::protocols::NETLINK_ROUTE;
use rtnetlink::sys::{AsyncSocket, TokioSocket};
use rtnetlink::{Handle, LinkGetRequest, LinkMessageBuilder, LinkUnspec, LinkVeth, RouteMessageBuilder, from_socket};

use crate::netns::on_thread;
use crate::{Error, Mac, Netns, Result};

/// An rtnetlink socket in one namespace; cheap to clone, closed with the last clone. The kernel lists one thing at a
/// time on it: what lists something beside others needs a socket of its own.
#[derive(Debug, Clone)]
pub struct Net {
    pub(crate) handle: Handle,
}

/// The part of a link that we look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub index: u32,
    pub name: String,
    pub mac: Option<Mac>,
    pub mtu: u32,
    pub up: bool,
    /// Free text on the link; says whose it is.
    pub alias: Option<String>,
    /// Index of the link that this one is a member of: a bond's, a bridge's.
    pub master: Option<u32>,
    /// Index of the link that this one belongs to: the other end of a pair, what a VLAN device is on.
    pub other: Option<u32>,
    /// The namespace `other` is in, as this one numbers it; `None`: this one.
    pub other_netns: Option<i32>,
}

/// A pair to create: one end here, the other in `peer_netns`.
#[derive(Debug, Clone, Copy)]
pub struct Veth<'a> {
    pub name: &'a str,
    pub mac: Mac,
    pub peer: &'a str,
    pub peer_netns: &'a Netns,
    pub peer_mac: Mac,
    pub mtu: u32,
}

/// A route of the main table through one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    pub destination: IpNetwork,
    pub gateway: Option<IpAddr>,
    /// What this host's own packets say they come from.
    pub source: Option<IpAddr>,
    pub mtu: Option<u32>,
}

impl Route {
    pub fn via(destination: IpNetwork, gateway: IpAddr) -> Self {
        Self { destination, gateway: Some(gateway), source: None, mtu: None }
    }
}

/// Where everything else goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DefaultRoute {
    pub metric: u32,
    pub gateway: IpAddr,
    /// Index of the link.
    pub link: u32,
}

impl Net {
    /// In the process's own namespace.
    pub async fn here() -> Result<Self> {
        Ok(Self::wrap(on_thread(socket).await?))
    }

    pub async fn within(netns: &Netns) -> Result<Self> {
        Ok(Self::wrap(netns.run(socket).await??))
    }

    // === links

    /// `None` when there is no such link.
    pub async fn link(&self, name: &str) -> Result<Option<Link>> {
        self.look_up(self.handle.link().get().match_name(name), || format!("look up link {name}")).await
    }

    async fn look_up(&self, get: LinkGetRequest, what: impl FnOnce() -> String) -> Result<Option<Link>> {
        match first(get.execute()).await {
            Ok(message) => Ok(message.as_ref().map(Link::from)),
            Err(e) if is(&e, Errno::ENODEV) => Ok(None),
            Err(e) => Err(failed(what(), e)),
        }
    }

    pub async fn links(&self) -> Result<Vec<Link>> {
        let all: Vec<LinkMessage> =
            all(self.handle.link().get().execute()).await.map_err(|e| failed("list links".into(), e))?;
        Ok(all.iter().map(Link::from).collect())
    }

    /// The link that has the address.
    pub async fn link_with(&self, ip: IpAddr) -> Result<Option<Link>> {
        let get = self.handle.address().get().execute();
        let all: Vec<AddressMessage> = all(get).await.map_err(|e| failed(format!("look up address {ip}"), e))?;
        let index = all.iter().find(|message| address(message).is_some_and(|have| have.ip() == ip));
        let Some(index) = index.map(|message| message.header.index) else { return Ok(None) };
        self.look_up(self.handle.link().get().match_index(index), || format!("look up the link with {ip}")).await
    }

    /// The other end of a pair, in whatever namespace; `None` when there is none.
    pub async fn other_end(&self, link: &Link) -> Result<Option<Link>> {
        let Some(index) = link.other else { return Ok(None) };
        let mut get = self.handle.link().get().match_index(index);
        get.message_mut().attributes.extend(link.other_netns.map(LinkAttribute::IfNetnsId));
        self.look_up(get, || format!("look up the other end of {}", link.name)).await
    }

    /// Both ends in one request: there is never half a pair.
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
        let added = self.handle.link().add(pair).execute().await;
        added.map_err(|e| {
            failed(format!("create veth {} with {} in {}", veth.name, veth.peer, veth.peer_netns.path().display()), e)
        })
    }

    pub async fn set_up(&self, link: &Link) -> Result<()> {
        if link.up {
            return Ok(());
        }
        self.set(link, "set up", LinkUnspec::new_with_index(link.index).up()).await
    }

    pub async fn ensure_mtu(&self, link: &Link, mtu: u32) -> Result<()> {
        if link.mtu == mtu {
            return Ok(());
        }
        self.set(link, "set the MTU of", LinkUnspec::new_with_index(link.index).mtu(mtu)).await
    }

    pub async fn ensure_mac(&self, link: &Link, mac: Mac) -> Result<()> {
        if link.mac == Some(mac) {
            return Ok(());
        }
        self.set(link, "set the MAC address of", LinkUnspec::new_with_index(link.index).address(mac.to_vec())).await
    }

    pub async fn set_alias(&self, link: &Link, alias: &str) -> Result<()> {
        let to =
            LinkUnspec::new_with_index(link.index).append_extra_attribute(LinkAttribute::IfAlias(alias.to_owned()));
        self.set(link, "set the alias of", to).await
    }

    pub async fn rename(&self, link: &Link, name: &str) -> Result<()> {
        self.set(link, "rename", LinkUnspec::new_with_index(link.index).name(name)).await
    }

    pub async fn move_to(&self, link: &Link, netns: &Netns) -> Result<()> {
        let target = LinkUnspec::new_with_index(link.index).setns_by_fd(netns.as_fd().as_raw_fd());
        self.set(link, "move to another namespace", target).await
    }

    /// A link that is not there is fine.
    pub async fn delete(&self, name: &str) -> Result<()> {
        let Some(link) = self.link(name).await? else { return Ok(()) };
        match self.handle.link().del(link.index).execute().await {
            Err(e) if !is(&e, Errno::ENODEV) => Err(failed(format!("delete link {name}"), e)),
            _ => Ok(()),
        }
    }

    async fn set(&self, link: &Link, what: &str, to: LinkMessageBuilder<LinkUnspec>) -> Result<()> {
        let set = self.handle.link().set(to.build()).execute().await;
        set.map_err(|e| failed(format!("{what} link {}", link.name), e))
    }

    // === addresses

    /// Addresses with their prefix, without link-local IPv6 ones, which the kernel makes, and those that another host
    /// was found to have.
    pub async fn addresses(&self, link: &Link) -> Result<Vec<IpNetwork>> {
        let get = self.handle.address().get().execute();
        let all: Vec<AddressMessage> =
            all(get).await.map_err(|e| failed(format!("list addresses of {}", link.name), e))?;
        Ok(all.iter().filter(|message| message.header.index == link.index).filter_map(usable).collect())
    }

    /// The same of every other link than `except`.
    pub async fn all_addresses(&self, except: &str) -> Result<Vec<IpNetwork>> {
        let skip = self.link(except).await?.map(|link| link.index);
        let get = self.handle.address().get().execute();
        let all: Vec<AddressMessage> = all(get).await.map_err(|e| failed("list addresses".into(), e))?;
        Ok(all.iter().filter(|message| Some(message.header.index) != skip).filter_map(usable).collect())
    }

    /// IPv6 addresses skip duplicate detection: OVN gives each out once, and a pod that starts
    /// must be able to use its own at once.
    pub async fn ensure_address(&self, link: &Link, address: IpNetwork) -> Result<()> {
        self.add_address(link, address, true).await
    }

    /// The same, but nothing goes out from an IPv6 address unless it is asked for: the kernel prefers any other.
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
        match add.execute().await {
            Err(e) if !is(&e, Errno::EEXIST) => Err(failed(format!("add address {address} to {}", link.name), e)),
            _ => Ok(()),
        }
    }

    pub async fn delete_address(&self, link: &Link, unwanted: IpNetwork) -> Result<()> {
        let get = self.handle.address().get().execute();
        let all: Vec<AddressMessage> =
            all(get).await.map_err(|e| failed(format!("list addresses of {}", link.name), e))?;
        for message in all.into_iter().filter(|m| m.header.index == link.index && address(m) == Some(unwanted)) {
            match self.handle.address().del(message).execute().await {
                Err(e) if !is(&e, Errno::EADDRNOTAVAIL) => {
                    return Err(failed(format!("delete address {unwanted} of {}", link.name), e));
                }
                _ => {}
            }
        }
        Ok(())
    }

    // === routes

    /// The main table's routes through `link` that somebody set: no kernel or router-advertised ones.
    pub async fn routes(&self, link: &Link) -> Result<Vec<Route>> {
        self.routes_in(link, RouteHeader::RT_TABLE_MAIN).await
    }

    /// The same of another table.
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

    /// The same in another table.
    pub async fn ensure_route_in(&self, link: &Link, table: u8, want: Route) -> Result<()> {
        let what = || format!("add route {want:?} through {}", link.name);
        let builder = RouteMessageBuilder::<IpAddr>::new().output_interface(link.index);
        let invalid = |_| Error::Netlink { what: what(), source: io::ErrorKind::InvalidInput.into() };
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
        let added = self.handle.route().add(builder.build()).replace().execute().await;
        added.map_err(|e| failed(what(), e))
    }

    pub async fn delete_route(&self, link: &Link, unwanted: Route) -> Result<()> {
        self.delete_route_in(link, RouteHeader::RT_TABLE_MAIN, unwanted).await
    }

    /// The same in another table.
    pub async fn delete_route_in(&self, link: &Link, table: u8, unwanted: Route) -> Result<()> {
        for message in self.route_messages(link, table).await?.into_iter().filter(|m| route(m) == Some(unwanted)) {
            self.drop_message(message, || format!("delete route {unwanted:?} through {}", link.name)).await?;
        }
        Ok(())
    }

    /// All of the link's in a table.
    pub async fn delete_routes_in(&self, link: &Link, table: u8) -> Result<()> {
        for message in self.route_messages(link, table).await? {
            self.drop_message(message, || format!("delete routes through {} from table {table}", link.name)).await?;
        }
        Ok(())
    }

    /// A route that is not there is fine.
    pub(crate) async fn drop_message(&self, route: RouteMessage, what: impl FnOnce() -> String) -> Result<()> {
        match self.handle.route().del(route).execute().await {
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
        let mut routes: Vec<DefaultRoute> =
            self.table(RouteHeader::RT_TABLE_MAIN).await?.iter().flat_map(default_routes).collect();
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
        // of a family that the host does not know the kernel lists those of all
        found.retain(|message| message.header.address_family == family);
        Ok(found)
    }

    // === neighbours

    /// A permanent entry.
    pub async fn ensure_neighbour(&self, link: &Link, ip: IpAddr, mac: Mac) -> Result<()> {
        let what = || format!("add neighbour {ip} on {}", link.name);
        let have: Vec<NeighbourMessage> =
            all(self.handle.neighbours().get().execute()).await.map_err(|e| failed(what(), e))?;
        if have.iter().any(|m| m.header.ifindex == link.index && is_permanent(m, ip, mac)) {
            return Ok(());
        }
        let add = self.handle.neighbours().add(link.index, ip).link_layer_address(&mac).replace();
        add.execute().await.map_err(|e| failed(what(), e))
    }

    /// The link's permanent entries.
    pub async fn permanent_neighbours(&self, link: &Link) -> Result<Vec<(IpAddr, Mac)>> {
        let have: Vec<NeighbourMessage> = all(self.handle.neighbours().get().execute())
            .await
            .map_err(|e| failed(format!("list neighbours on {}", link.name), e))?;
        let permanent =
            have.iter().filter(|m| m.header.ifindex == link.index && m.header.state == NeighbourState::Permanent);
        Ok(permanent.filter_map(|message| Some((neighbour(message)?, mac_of(message)?))).collect())
    }

    /// Permanent entries of the link whose addresses are `unwanted`.
    pub async fn delete_permanent_neighbours(&self, link: &Link, unwanted: impl Fn(IpAddr) -> bool) -> Result<()> {
        let what = || format!("delete neighbours on {}", link.name);
        let have: Vec<NeighbourMessage> =
            all(self.handle.neighbours().get().execute()).await.map_err(|e| failed(what(), e))?;
        let is_unwanted = |message: &NeighbourMessage| {
            message.header.ifindex == link.index
                && message.header.state == NeighbourState::Permanent
                && neighbour(message).is_some_and(&unwanted)
        };
        for message in have.into_iter().filter(is_unwanted) {
            match self.handle.neighbours().del(message).execute().await {
                Err(e) if !is(&e, Errno::ENOENT) => return Err(failed(what(), e)),
                _ => {}
            }
        }
        Ok(())
    }

    fn wrap(socket: TokioSocket) -> Self {
        let (connection, handle, _) = from_socket(socket);
        // ends with the last handle
        tokio::spawn(connection);
        Self { handle }
    }
}

impl From<&LinkMessage> for Link {
    fn from(message: &LinkMessage) -> Self {
        let mut link = Self {
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
}

fn socket() -> Result<TokioSocket> {
    let mut socket = TokioSocket::new(NETLINK_ROUTE).map_err(Error::Socket)?;
    socket.socket_mut().bind_auto().map_err(Error::Socket)?;
    Ok(socket)
}

/// The kernel keeps an address that another host has too, and does not use it.
fn usable(message: &AddressMessage) -> Option<IpNetwork> {
    address(message).filter(|_| !message.header.flags.contains(AddressHeaderFlags::Dadfailed))
}

pub(crate) fn address(message: &AddressMessage) -> Option<IpNetwork> {
    // Local is the own end, Address the peer's on point-to-point links; IPv6 has Address alone
    let local =
        message.attributes.iter().find_map(|a| if let AddressAttribute::Local(ip) = a { Some(*ip) } else { None });
    let any =
        message.attributes.iter().find_map(|a| if let AddressAttribute::Address(ip) = a { Some(*ip) } else { None });
    let ip = local.or(any)?;
    let link_local = matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local());
    if link_local { None } else { IpNetwork::new(ip, message.header.prefix_len).ok() }
}

fn route(message: &RouteMessage) -> Option<Route> {
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

/// One for each of its gateways.
fn default_routes(message: &RouteMessage) -> Vec<DefaultRoute> {
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
    if message.header.destination_prefix_length > 0 {
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

fn neighbour(message: &NeighbourMessage) -> Option<IpAddr> {
    message.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::Destination(NeighbourAddress::Inet(v4)) => Some((*v4).into()),
        NeighbourAttribute::Destination(NeighbourAddress::Inet6(v6)) => Some((*v6).into()),
        _ => None,
    })
}

fn mac_of(message: &NeighbourMessage) -> Option<Mac> {
    message.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLayerAddress(mac) => mac.as_slice().try_into().ok(),
        _ => None,
    })
}

async fn first<T>(
    messages: impl Stream<Item = std::result::Result<T, rtnetlink::Error>>,
) -> std::result::Result<Option<T>, rtnetlink::Error> {
    std::pin::pin!(messages).try_next().await
}

pub(crate) async fn all<T>(
    messages: impl Stream<Item = std::result::Result<T, rtnetlink::Error>>,
) -> std::result::Result<Vec<T>, rtnetlink::Error> {
    messages.try_collect().await
}

pub(crate) fn is(error: &rtnetlink::Error, errno: Errno) -> bool {
    matches!(error, rtnetlink::Error::NetlinkError(message) if message.raw_code() == -(errno as i32))
}

pub(crate) fn failed(what: String, error: rtnetlink::Error) -> Error {
    let source = match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other),
    };
    Error::Netlink { what, source }
}
