//! What a link holds, exactly as the kernel has it: to give it to another link and lose nothing of it.

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

use crate::net::{address, all, failed, ip};
use crate::{Link, Net, Result};

/// As the kernel writes "for ever".
const FOR_EVER: u32 = u32::MAX;
/// The kernel counts a route's rest of life in these.
const TICKS: u32 = 100;
const DOUBTED: AddressFlags = AddressFlags::Tentative.union(AddressFlags::Dadfailed);
/// The table of the host's own addresses.
const LOCAL: u8 = 255;

/// An address with its flags, metric and rest of life; of no link in particular.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldAddress {
    message: AddressMessage,
    address: IpNetwork,
}

impl HeldAddress {
    pub fn address(&self) -> IpNetwork {
        self.address
    }

    /// Seconds that it is still valid; `None`: for ever.
    pub fn valid(&self) -> Option<u32> {
        let seconds = self.lifetimes().map_or(FOR_EVER, |lifetimes| lifetimes.ifa_valid);
        (seconds != FOR_EVER).then_some(seconds)
    }

    /// Another host may have it too, as far as the kernel knows: it looks for one, or has found one.
    pub fn is_doubted(&self) -> bool {
        self.flags().intersects(DOUBTED)
    }

    /// As it is when so many seconds have passed; `None`: no longer valid.
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

    /// To be kept; see [`HeldAddress::decode`].
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

    /// To be given to a link. Nobody looks again for what was not found.
    fn message(&self) -> AddressMessage {
        let mut flags = self.flags() - DOUBTED;
        if self.address.is_ipv6() && !self.is_doubted() {
            flags |= AddressFlags::Nodad;
        }
        let mut message = self.message.clone();
        message.header.flags = AddressHeaderFlags::from_bits_truncate(flags.bits().to_le_bytes()[0]);
        message.attributes.retain(|attribute| !matches!(attribute, AddressAttribute::Flags(_)));
        message.attributes.push(AddressAttribute::Flags(flags));
        message
    }

    /// Addresses that the kernel makes by itself are `None`.
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
                    flags |= *have & (AddressFlags::Noprefixroute | AddressFlags::Homeaddress | DOUBTED);
                }
                // of the link it is on
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

impl fmt::Display for HeldAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

/// A unicast route through a link, of any table; of no link in particular.
#[derive(Debug, Clone)]
pub struct HeldRoute {
    message: RouteMessage,
    /// Seconds; routes that are advertised end.
    expires: Option<u32>,
}

/// Two looks at one route are equal though its end came nearer between them.
impl PartialEq for HeldRoute {
    fn eq(&self, other: &Self) -> bool {
        self.message == other.message
    }
}

impl Eq for HeldRoute {}

impl HeldRoute {
    /// Destination, gateways and source address: what it has to do with a range of addresses.
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

    /// The host's own address that it sends from.
    pub fn source(&self) -> Option<IpAddr> {
        let mut attributes = self.message.attributes.iter();
        attributes.find_map(|one| if let RouteAttribute::PrefSource(at) = one { ip(at) } else { None })
    }

    /// Whether others need it to reach their gateway.
    pub fn is_direct(&self) -> bool {
        let indirect = |attribute: &RouteAttribute| {
            matches!(attribute, RouteAttribute::Gateway(_) | RouteAttribute::Via(_) | RouteAttribute::MultiPath(_))
        };
        !self.message.attributes.iter().any(indirect)
    }

    /// Made by a person or a program, not by a router or a routing protocol that makes it again.
    pub fn is_lasting(&self) -> bool {
        use RouteProtocol::{Boot, Dhcp, Kernel, Static, Unspec};
        matches!(self.message.header.protocol, Unspec | Kernel | Boot | Static | Dhcp)
    }

    /// To everywhere, of IPv6 or not.
    pub fn is_default(&self, ipv6: bool) -> bool {
        let header = &self.message.header;
        header.destination_prefix_length == 0
            && header.table == RouteHeader::RT_TABLE_MAIN
            && (header.address_family == AddressFamily::Inet6) == ipv6
    }

    /// A router said so; it will say so again.
    pub fn is_advertised(&self) -> bool {
        self.message.header.protocol == RouteProtocol::Ra
    }

    /// As it is given to a link: behind the one that the kernel makes of the next advertisement. In its place it would
    /// keep the kernel from obeying any.
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

    /// To be kept; see [`HeldRoute::decode`].
    pub fn encode(&self) -> Vec<u8> {
        encode(&self.message)
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        Some(Self { message: RouteMessage::parse(bytes).ok()?, expires: None })
    }

    /// `None` when it is none of `link`'s, or the kernel's own.
    fn read(from: &RouteMessage, link: u32) -> Option<Self> {
        let header = RouteHeader {
            // what the kernel adds to its answer
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
                // an object of its own that belongs to the link: the route has all that it says
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

/// As `default via 172.18.255.1`.
impl fmt::Display for HeldRoute {
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
    /// In the order in which they have to be given to have the same primary ones.
    pub async fn held_addresses(&self, link: &Link) -> Result<Vec<HeldAddress>> {
        let get = self.handle.address().get().execute();
        let all: Vec<AddressMessage> =
            all(get).await.map_err(|e| failed(format!("list addresses of {}", link.name), e))?;
        let of_link = all.iter().filter(|message| message.header.index == link.index);
        Ok(of_link.filter_map(HeldAddress::read).collect())
    }

    /// Adds the address, or renews the rest of life of the one that is there.
    pub async fn hold_address(&self, link: &Link, held: &HeldAddress) -> Result<()> {
        let mut add = self.handle.address().add(link.index, held.address.ip(), held.address.prefix()).replace();
        let message = add.message_mut();
        *message = held.message();
        message.header.index = link.index;
        add.execute().await.map_err(|e| failed(format!("add address {} to {}", held.address, link.name), e))
    }

    /// Of all tables, those that others need first.
    pub async fn held_routes(&self, link: &Link) -> Result<Vec<HeldRoute>> {
        let mut routes: Vec<HeldRoute> =
            self.all_tables().await?.iter().filter_map(|message| HeldRoute::read(message, link.index)).collect();
        routes.sort_by_key(|route| !route.is_direct());
        Ok(routes)
    }

    /// Takes the place of the route to the same destination, if there is one.
    pub async fn hold_route(&self, link: &Link, held: &HeldRoute) -> Result<()> {
        let have = self.held_routes(link).await?;
        let held = &held.given();
        // an address brings its own
        if have.contains(held) {
            return Ok(());
        }
        let mut message = held.through(link.index);
        message.attributes.extend(held.expires.map(RouteAttribute::Expires));
        let added = self.handle.route().add(message).replace().execute().await;
        added.map_err(|e| failed(format!("add route {held} through {}", link.name), e))
    }

    /// A route that is not there is fine.
    pub async fn drop_route(&self, link: &Link, held: &HeldRoute) -> Result<()> {
        self.drop_message(held.through(link.index), || format!("delete route {held} of {}", link.name)).await
    }

    /// Whether the kernel knows a MAC address for `neighbour` on the link, and did not lose it.
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
