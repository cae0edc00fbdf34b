//! Addresses and routes of a link exactly as the kernel has them, to move them to another link without loss.

use std::fmt;
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use rtnetlink::packet_core::{Emitable, Parseable};
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::address::{AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage, CacheInfo};
use rtnetlink::packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState};
use rtnetlink::packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteNextHopFlags, RouteProtocol, RouteType,
};

use ovnkube_node_plan::host::RouteSnapshot;
use ovnkube_node_plan::uplink::MayConflict;

use crate::answer::{all, failed, in_time};
use crate::net::{address, ip};
use crate::{Link, Net, Result};

/// How the kernel writes an unlimited lifetime.
const FOR_EVER: u32 = u32::MAX;
/// Ticks per second of the clock in which the kernel counts a route's remaining lifetime.
const TICKS: u32 = 100;
const CONFLICTING: AddressFlags = AddressFlags::Tentative.union(AddressFlags::Dadfailed);
/// The routing table of the host's own addresses.
const LOCAL: u8 = 255;

/// An address with its flags, metric and remaining lifetime, but without its link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedAddress {
    message: AddressMessage,
    address: IpNetwork,
}

/// The kernel is still looking for another host with this address, or has found one.
impl MayConflict for SavedAddress {
    fn may_conflict(&self) -> bool {
        self.flags().intersects(CONFLICTING)
    }
}

impl SavedAddress {
    pub fn address(&self) -> IpNetwork {
        self.address
    }

    /// Remaining lifetime in seconds; `None`: unlimited.
    pub fn valid(&self) -> Option<u32> {
        let seconds = self.lifetimes().map_or(FOR_EVER, |lifetimes| lifetimes.ifa_valid);
        (seconds != FOR_EVER).then_some(seconds)
    }

    /// The address after so many seconds; `None`: it has expired.
    pub fn aged(mut self, seconds: u32) -> Option<Self> {
        let age = |life: u32| if life == FOR_EVER { life } else { life.saturating_sub(seconds) };
        for attribute in &mut self.message.attributes {
            if let AddressAttribute::CacheInfo(info) = attribute {
                info.ifa_valid = age(info.ifa_valid);
                info.ifa_preferred = age(info.ifa_preferred);
            }
        }
        (self.valid() != Some(0)).then_some(self)
    }

    /// Encodes the address for [`SavedAddress::decode`].
    pub fn encode(&self) -> Vec<u8> {
        encode(&self.message)
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        Self::read(&AddressMessage::parse(bytes).ok()?)
    }

    fn lifetimes(&self) -> Option<&CacheInfo> {
        let mut attributes = self.message.attributes.iter();
        attributes
            .find_map(|attribute| if let AddressAttribute::CacheInfo(info) = attribute { Some(info) } else { None })
    }

    fn flags(&self) -> AddressFlags {
        let mut attributes = self.message.attributes.iter();
        let flags = attributes
            .find_map(|attribute| if let AddressAttribute::Flags(flags) = attribute { Some(*flags) } else { None });
        flags.unwrap_or(AddressFlags::empty())
    }

    /// The message that adds it to a link. An address that was found to be unique is not checked again.
    fn message(&self) -> AddressMessage {
        let mut flags = self.flags() - CONFLICTING;
        if self.address.is_ipv6() && !self.may_conflict() {
            flags |= AddressFlags::Nodad;
        }
        let mut message = self.message.clone();
        message.header.flags = AddressHeaderFlags::from_bits_truncate(flags.bits().to_le_bytes()[0]);
        message.attributes.retain(|attribute| !matches!(attribute, AddressAttribute::Flags(_)));
        message.attributes.push(AddressAttribute::Flags(flags));
        message
    }

    /// `None` for addresses that the kernel makes.
    fn read(from: &AddressMessage) -> Option<Self> {
        let address = address(from)?;
        let mut message = AddressMessage::default();
        message.header.family = from.header.family;
        message.header.prefix_len = from.header.prefix_len;
        message.header.scope = from.header.scope;
        let mut flags = AddressFlags::empty();
        for attribute in &from.attributes {
            match attribute {
                AddressAttribute::Flags(have) => {
                    flags |= *have & (AddressFlags::Noprefixroute | AddressFlags::Homeaddress | CONFLICTING);
                }
                // it names the link
                AddressAttribute::Label(_) => {}
                AddressAttribute::CacheInfo(have) => {
                    let mut info = CacheInfo::default();
                    (info.ifa_preferred, info.ifa_valid) = (have.ifa_preferred, have.ifa_valid);
                    message.attributes.push(AddressAttribute::CacheInfo(info));
                }
                other => message.attributes.push(other.clone()),
            }
        }
        message.attributes.push(AddressAttribute::Flags(flags));
        Some(Self { message, address })
    }
}

impl fmt::Display for SavedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

/// A unicast route of any table, but without the link it leads through.
#[derive(Debug, Clone)]
pub struct SavedRoute {
    message: RouteMessage,
    /// Remaining lifetime in seconds; advertised routes expire.
    expires: Option<u32>,
}

/// Ignores the remaining lifetime, which differs between two looks at the same route.
impl PartialEq for SavedRoute {
    fn eq(&self, other: &Self) -> bool {
        self.message == other.message
    }
}

impl Eq for SavedRoute {}

impl SavedRoute {
    /// Destination, gateways and source address, to compare the route with a range of addresses.
    pub fn addresses(&self) -> Vec<IpAddr> {
        let address = |attribute: &RouteAttribute| match attribute {
            RouteAttribute::Destination(at) | RouteAttribute::Gateway(at) | RouteAttribute::PrefSource(at) => ip(at),
            _ => None,
        };
        let hops = self.message.attributes.iter().flat_map(|attribute| match attribute {
            RouteAttribute::MultiPath(hops) => hops.iter().flat_map(|hop| &hop.attributes).collect(),
            other => vec![other],
        });
        hops.filter_map(address).collect()
    }

    /// The preferred source address.
    pub fn source(&self) -> Option<IpAddr> {
        let mut attributes = self.message.attributes.iter();
        attributes.find_map(|one| if let RouteAttribute::PrefSource(at) = one { ip(at) } else { None })
    }

    /// Whether it has no gateway: other routes may need it to reach theirs.
    pub fn is_direct(&self) -> bool {
        let indirect = |attribute: &RouteAttribute| {
            matches!(attribute, RouteAttribute::Gateway(_) | RouteAttribute::Via(_) | RouteAttribute::MultiPath(_))
        };
        !self.message.attributes.iter().any(indirect)
    }

    /// Whether an administrator, a program or the kernel set it. Routers and routing protocols set theirs again.
    pub fn is_lasting(&self) -> bool {
        use RouteProtocol::{Boot, Dhcp, Kernel, Static, Unspec};
        matches!(self.message.header.protocol, Unspec | Kernel | Boot | Static | Dhcp)
    }

    /// Whether it is a default route of the main table and of the given family.
    pub fn is_default(&self, ipv6: bool) -> bool {
        let header = &self.message.header;
        header.destination_prefix_length == 0
            && header.table == RouteHeader::RT_TABLE_MAIN
            && (header.address_family == AddressFamily::Inet6) == ipv6
    }

    /// Whether it comes from a router advertisement, which the router repeats.
    pub fn is_advertised(&self) -> bool {
        self.message.header.protocol == RouteProtocol::Ra
    }

    /// The route as it is added to a link: an advertised one gets a higher metric than the one that the kernel adds at
    /// the next advertisement. With the same metric it would keep the kernel from obeying advertisements.
    fn given(&self) -> Self {
        let mut given = self.clone();
        if self.is_advertised() {
            for attribute in &mut given.message.attributes {
                if let RouteAttribute::Priority(metric) = attribute {
                    *metric = metric.saturating_add(1);
                }
            }
        }
        given
    }

    /// Encodes the route for [`SavedRoute::decode`].
    pub fn encode(&self) -> Vec<u8> {
        encode(&self.message)
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        Some(Self { message: RouteMessage::parse(bytes).ok()?, expires: None })
    }

    /// `None` when it does not lead through `link`, or the kernel maintains it.
    pub(crate) fn read(from: &RouteMessage, link: u32) -> Option<Self> {
        let header = RouteHeader {
            // drops flags that only the kernel sets
            flags: from.header.flags & RouteFlags::Onlink,
            ..from.header.clone()
        };
        if header.kind != RouteType::Unicast || header.table == LOCAL || from.header.flags.contains(RouteFlags::Cloned)
        {
            return None;
        }
        let (mut through, mut expires) = (false, None);
        let mut message = RouteMessage::default();
        message.header = header;
        for attribute in &from.attributes {
            match attribute {
                RouteAttribute::Oif(oif) if *oif == link => through = true,
                RouteAttribute::Oif(_) => return None,
                RouteAttribute::Destination(to) if is_everywhere(ip(to)) => return None,
                RouteAttribute::MultiPath(hops) => {
                    let mut hops = hops.clone();
                    for hop in &mut hops {
                        hop.flags &= RouteNextHopFlags::Onlink;
                        if hop.interface_index == link {
                            (hop.interface_index, through) = (0, true);
                        }
                    }
                    message.attributes.push(RouteAttribute::MultiPath(hops));
                }
                RouteAttribute::CacheInfo(info) => {
                    expires = Some(info.expires / TICKS).filter(|seconds| *seconds > 0);
                }
                // a nexthop object belongs to the link, and the route's own attributes say the same
                RouteAttribute::NhId(_)
                | RouteAttribute::Uid(_)
                | RouteAttribute::TtlPropagate(_)
                | RouteAttribute::MfcStats(_) => {}
                other => message.attributes.push(other.clone()),
            }
        }
        through.then_some(Self { message, expires })
    }

    fn through(&self, link: u32) -> RouteMessage {
        let mut message = self.message.clone();
        let mut several = false;
        for attribute in &mut message.attributes {
            if let RouteAttribute::MultiPath(hops) = attribute {
                several = true;
                hops.iter_mut().filter(|hop| hop.interface_index == 0).for_each(|hop| hop.interface_index = link);
            }
        }
        if !several {
            message.attributes.push(RouteAttribute::Oif(link));
        }
        message
    }
}

/// For example `default via 172.18.255.1`.
impl fmt::Display for SavedRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let find = |which: fn(&RouteAttribute) -> Option<&RouteAddress>| {
            self.message.attributes.iter().find_map(which).and_then(ip)
        };
        match find(|attribute| if let RouteAttribute::Destination(to) = attribute { Some(to) } else { None }) {
            Some(to) => write!(f, "{to}/{}", self.message.header.destination_prefix_length)?,
            None => write!(f, "default")?,
        }
        match find(|attribute| if let RouteAttribute::Gateway(to) = attribute { Some(to) } else { None }) {
            Some(gateway) => write!(f, " via {gateway}"),
            None => Ok(()),
        }
    }
}

impl Net {
    /// The link's addresses, in the order in which adding them makes the same ones primary.
    pub async fn held_addresses(&self, link: &Link) -> Result<Vec<SavedAddress>> {
        let get = self.handle.address().get().execute();
        let all: Vec<AddressMessage> =
            all(get).await.map_err(|e| failed(format!("list addresses of {}", link.name), e))?;
        let of_link = all.iter().filter(|message| message.header.index == link.index);
        Ok(of_link.filter_map(SavedAddress::read).collect())
    }

    /// Adds the address, or renews its lifetime if the link has it.
    pub async fn hold_address(&self, link: &Link, held: &SavedAddress) -> Result<()> {
        let mut add = self.handle.address().add(link.index, held.address.ip(), held.address.prefix()).replace();
        let message = add.message_mut();
        *message = held.message();
        message.header.index = link.index;
        in_time(add.execute()).await.map_err(|e| failed(format!("add address {} to {}", held.address, link.name), e))
    }

    /// Routes through the link in all tables; those without a gateway first, since others need them.
    pub async fn held_routes(&self, link: &Link) -> Result<Vec<SavedRoute>> {
        let mut routes: Vec<SavedRoute> =
            self.all_tables().await?.iter().filter_map(|message| SavedRoute::read(message, link.index)).collect();
        routes.sort_by_key(|route| !route.is_direct());
        Ok(routes)
    }

    /// Adds the route, or replaces one to the same destination.
    pub async fn hold_route(&self, link: &Link, held: &SavedRoute) -> Result<()> {
        let have = self.held_routes(link).await?;
        let held = &held.given();
        // adding an address adds its route
        if have.contains(held) {
            return Ok(());
        }
        let mut message = held.through(link.index);
        message.attributes.extend(held.expires.map(RouteAttribute::Expires));
        let added = in_time(self.handle.route().add(message).replace().execute()).await;
        added.map_err(|e| failed(format!("add route {held} through {}", link.name), e))
    }

    /// Deletes the route; no error when it does not exist.
    pub async fn drop_route(&self, link: &Link, held: &SavedRoute) -> Result<()> {
        self.drop_message(held.through(link.index), || format!("delete route {held} of {}", link.name)).await
    }

    /// As [`Net::drop_route`], by its snapshot.
    pub async fn drop_snapshot(&self, link: &Link, route: &RouteSnapshot) -> Result<()> {
        match SavedRoute::decode(&route.message) {
            Some(held) => self.drop_route(link, &held).await,
            // does not happen: the kernel wrote the message
            None => Ok(()),
        }
    }

    /// Whether the kernel has a MAC address for `neighbour` on the link, in an entry that is not failed or incomplete.
    pub async fn has_answered(&self, link: &Link, neighbour: IpAddr) -> Result<bool> {
        let get = self.handle.neighbours().get().execute();
        let all: Vec<NeighbourMessage> =
            all(get).await.map_err(|e| failed(format!("list neighbours of {}", link.name), e))?;
        let address = match neighbour {
            IpAddr::V4(v4) => NeighbourAddress::Inet(v4),
            IpAddr::V6(v6) => NeighbourAddress::Inet6(v6),
        };
        let address = NeighbourAttribute::Destination(address);
        Ok(all.iter().any(|message| {
            message.header.ifindex == link.index
                && message.attributes.contains(&address)
                && message.attributes.iter().any(|a| matches!(a, NeighbourAttribute::LinkLayerAddress(_)))
                && !matches!(message.header.state, NeighbourState::Failed | NeighbourState::Incomplete)
        }))
    }
}

/// Multicast and link-local networks: the kernel makes those routes.
fn is_everywhere(ip: Option<IpAddr>) -> bool {
    matches!(ip, Some(IpAddr::V6(v6)) if v6.is_multicast() || v6.is_unicast_link_local())
}

fn encode(message: &impl Emitable) -> Vec<u8> {
    let mut bytes = vec![0; message.buffer_len()];
    message.emit(&mut bytes);
    bytes
}
