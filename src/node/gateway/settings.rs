//! What the gateway is told, and what it finds on the node.

use std::net::IpAddr;
use std::time::Duration;

use ipnetwork::IpNetwork;
use ovnkube_host::{DefaultRoute, Link, Net};
use ovnkube_model::{GatewayMode, Mac, Masquerade, Subnet};

use super::left;
use crate::ovs::Ovs;
use crate::uplink::{self, Watched};
use crate::{Error, Result, mgmt};

/// Filled by the binary from its flags and files.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of its own that people set")]
pub struct GatewaySettings {
    pub mode: GatewayMode,
    /// The bridge or NIC to the outside; `None`: that of the default route.
    pub interface: Option<String>,
    /// Empty: the default routes' gateways.
    pub next_hops: Vec<IpAddr>,
    /// Tag of the network outside.
    pub vlan: Option<u16>,
    /// A bridge without a port to the outside will do.
    pub allow_no_uplink: bool,
    /// Forward on bridge and management port for the cluster alone.
    pub disable_forwarding: bool,
    /// Pods may leave with their own addresses through other gateways: what those send to pods is led to them.
    pub pods_outside: bool,
    pub node_port: bool,
    /// The first of five conntrack zones.
    pub conntrack_zone: u16,
    /// Let the host answer packets that are too large for pods.
    pub check_mtu: bool,
    /// UDP port of the tunnels.
    pub encap_port: u16,
    pub service_cidrs: Vec<Subnet>,
    pub join_subnets: Vec<Subnet>,
    /// As `10.0.0.1:6443`: has to be reached after a NIC was put into a bridge, if it was before.
    pub api_server: Option<String>,
    /// How long after a NIC was put into a bridge its loss of the network undoes that.
    pub probation: Duration,
    /// How long the host's own setup may take, from the agent's start on, to give the NIC an address of each family that
    /// it had a default route of before the host was started anew,
    pub first_address: Duration,
    /// and from then on to set the default routes.
    pub default_route: Duration,
}

/// The bridge to the outside, as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) bridge: Link,
    /// The bridge's port to the outside; `None`: it has none, and may.
    pub(crate) uplink: Option<String>,
    pub(crate) mac: Mac,
    /// The node's, one of each family that pods have.
    pub(crate) ips: Vec<IpNetwork>,
    pub(crate) next_hops: Vec<IpAddr>,
}

/// The ranges that the node's networks must not touch, with their names.
pub(crate) struct Ranges<'a> {
    pub(crate) cluster: &'a [Subnet],
    pub(crate) masquerade: &'a [Subnet],
}

/// Where the gateway is, before anything is asked of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The link that has the node's addresses, or will have.
    pub(crate) link: String,
    /// A NIC that belongs into a bridge of ours.
    pub(crate) nic: Option<String>,
    /// The bridge for the NIC is there.
    pub(crate) made: bool,
}

impl Place {
    /// Where the flows are, or will be.
    pub(super) fn bridge(&self) -> String {
        self.nic.as_deref().map_or_else(|| self.link.clone(), uplink::bridge_of)
    }
}

impl GatewaySettings {
    /// Finds out what is meant.
    pub(crate) async fn place(&self, net: &Net, ovs: &Ovs) -> Result<Place> {
        let made = ovs.read(uplink::made);
        let name = match (&self.interface, made.iter().find(|made| made.is_journalled())) {
            (Some(name), _) => name.clone(),
            (None, Some(made)) => made.bridge.clone(),
            (None, None) => of_default_route(net).await?,
        };
        if let Some(made) = made.into_iter().find(|made| made.bridge == name || made.nic == name) {
            return Ok(Place { link: made.bridge, nic: Some(made.nic), made: true });
        }
        if ovs.bridge_ports(&name).is_some() {
            return Ok(Place { link: name, nic: None, made: true });
        }
        Self::check_nic(&name, net, ovs).await?;
        Ok(Place { link: name.clone(), nic: Some(name), made: false })
    }

    /// Whether a bridge can be made for it.
    async fn check_nic(name: &str, net: &Net, ovs: &Ovs) -> Result<()> {
        let wrong = |why: String| Err(Error::WrongGateway { interface: name.to_owned(), why });
        if let Some(bridge) = ovs.bridge_of(name) {
            return wrong(format!("it is a port of bridge {bridge}; give --gateway-interface={bridge}"));
        }
        let links = net.links().await?;
        let Some(link) = links.iter().find(|link| link.name == name) else {
            let why = "there is no such link and no such bridge".to_owned();
            return Err(Error::Gateway { interface: name.to_owned(), why });
        };
        if let Some(master) = links.iter().find(|other| Some(other.index) == link.master) {
            let master = &master.name;
            return wrong(format!("it is a member of {master}; give --gateway-interface={master}"));
        }
        let bridge = uplink::bridge_of(name);
        if bridge.len() > uplink::LONGEST_NAME {
            return wrong(format!(
                "bridge {bridge} would have too long a name for a link; make a bridge that holds it and the node's addresses, and give that"
            ));
        }
        if links.iter().any(|link| link.name == bridge) {
            return wrong(format!(
                "its bridge would be {bridge}, and there is another link of that name; rename one of them"
            ));
        }
        Ok(())
    }

    /// Looks at the node and changes nothing. What is wrong is told in one line.
    pub(crate) async fn find(
        &self,
        place: &Place,
        ranges: &Ranges<'_>,
        internal: &[IpAddr],
        net: &Net,
        ovs: &Ovs,
    ) -> Result<Site> {
        let defaults = net.default_routes().await?;
        let name = &place.link;
        let refuse = |why: String| Error::Gateway { interface: name.clone(), why };
        let wrong = |why: String| Error::WrongGateway { interface: name.clone(), why };
        let link = net.link(name).await?;
        let uplink = match &place.nic {
            Some(nic) => Some(nic.clone()),
            None => self.uplink_of(name, ovs).map_err(refuse)?,
        };
        let link = link.ok_or_else(|| refuse("there is no such link".to_owned()))?;
        let mac = link.mac.map(Mac).ok_or_else(|| refuse("it has no MAC address".to_owned()))?;
        let mut addresses = net.addresses(&link).await?;
        let left = left::subnets_on(net, &link).await?;
        addresses.retain(|address| !ranges.masquerade.iter().chain(&left).any(|range| range.contains(address.ip())));
        self.overlaps(ranges, &addresses).map_err(wrong)?;
        let ips = Self::ips(ranges, internal, &addresses).map_err(refuse)?;
        self.given_hops(&ips).map_err(wrong)?;
        let next_hops = self.next_hops(&defaults, &link, &ips).map_err(refuse)?;
        Ok(Site { bridge: link, uplink, mac, ips, next_hops })
    }

    /// The port of bridge `name` that leads outside.
    fn uplink_of(&self, name: &str, ovs: &Ovs) -> std::result::Result<Option<String>, String> {
        let bridge = ovs.bridge_ports(name).ok_or("the bridge is gone")?;
        let mut physical = bridge.physical;
        if let Some(named) = bridge.uplink.filter(|named| physical.contains(named)) {
            return Ok(Some(named));
        }
        match (physical.pop(), physical.is_empty()) {
            (Some(only), true) => Ok(Some(only)),
            (Some(last), false) => Err(format!(
                "it has several links to the outside, {} and {last}; name one by `ovs-vsctl br-set-external-id {name} bridge-uplink LINK`",
                physical.join(", ")
            )),
            (None, _) if self.allow_no_uplink => Ok(None),
            (None, _) => Err("the bridge holds no link to the outside; add one or give --allow-no-uplink".to_owned()),
        }
    }

    /// Who has to answer on the way out.
    pub(crate) async fn watched(&self, place: &Place, net: &Net) -> Result<Watched> {
        let mut next_hops = self.next_hops.clone();
        if next_hops.is_empty() {
            let ours = |name: &str| place.nic.as_deref() == Some(name) || place.link == name;
            let links: Vec<u32> =
                net.links().await?.into_iter().filter(|link| ours(&link.name)).map(|link| link.index).collect();
            let defaults = net.default_routes().await?;
            next_hops =
                defaults.iter().filter(|route| links.contains(&route.link)).map(|route| route.gateway).collect();
            next_hops.dedup();
        }
        Ok(Watched { next_hops, api_server: self.api_server.clone() })
    }

    /// One address per family of the pods: the one that Kubernetes knows, else the first.
    fn ips(
        ranges: &Ranges<'_>,
        internal: &[IpAddr],
        addresses: &[IpNetwork],
    ) -> std::result::Result<Vec<IpNetwork>, String> {
        let mut ips = Vec::new();
        for ipv6 in [false, true] {
            if !ranges.cluster.iter().any(|range| range.is_ipv6() == ipv6) {
                continue;
            }
            let mut of_family = addresses.iter().filter(|address| address.is_ipv6() == ipv6);
            let known = of_family.clone().find(|address| internal.contains(&address.ip()));
            let family = if ipv6 { "IPv6" } else { "IPv4" };
            let ip = known.or_else(|| of_family.next());
            ips.push(*ip.ok_or_else(|| format!("it has no {family} address that it can use; give it the node's"))?);
        }
        Ok(ips)
    }

    fn overlaps(&self, ranges: &Ranges<'_>, addresses: &[IpNetwork]) -> std::result::Result<(), String> {
        match addresses.iter().find_map(|ip| Some((ip, self.overlapped(ranges, *ip)?))) {
            Some((ip, (what, range))) => Err(format!("its network {ip} overlaps {what} {range}; move one of them")),
            None => Ok(()),
        }
    }

    /// The range of the cluster's that shares addresses with a network of the host's, and what it is for.
    fn overlapped(&self, ranges: &Ranges<'_>, ip: IpNetwork) -> Option<(&'static str, Subnet)> {
        let named = [
            ("cluster subnet", ranges.cluster),
            ("service range", &self.service_cidrs),
            ("join subnet", &self.join_subnets),
        ];
        let mut all = named.into_iter().flat_map(|(what, list)| list.iter().map(move |range| (what, *range)));
        // of two ranges that overlap one holds the other's first address
        all.find(|(_, range)| range.contains(ip.network()) || ip.contains(range.base()))
    }

    /// Whether a network of any other link is the cluster's too.
    pub(crate) async fn check_host(&self, ranges: &Ranges<'_>, net: &Net) -> Result<()> {
        for link in net.links().await?.into_iter().filter(|link| link.up && link.name != mgmt::LINK) {
            // what a gateway with another masquerade subnet had goes before this one has its own
            let left = left::subnets_on(net, &link).await?;
            let is_left = |ip: &IpNetwork| left.iter().any(|range| range.contains(ip.ip()));
            for ip in net.addresses(&link).await?.into_iter().filter(|ip| !ip.ip().is_loopback() && !is_left(ip)) {
                // the gateway's own address stays there when the agent ends, also on a bridge it had before
                let is_own = |range: Subnet| Masquerade::of(range).is_some_and(|ours| ours.host == ip);
                let taken = |range: &&Subnet| range.contains(ip.ip()) && !is_own(**range);
                let masquerade = || ranges.masquerade.iter().find(taken).map(|range| ("masquerade subnet", *range));
                if let Some((what, range)) = self.overlapped(ranges, ip).or_else(masquerade) {
                    let (link, network, range) = (link.name, ip.to_string(), range.to_string());
                    return Err(Error::Overlap { link, network, what, range });
                }
            }
        }
        Ok(())
    }

    /// Those that were given, not those of routes.
    fn given_hops(&self, ips: &[IpNetwork]) -> std::result::Result<(), String> {
        for hop in &self.next_hops {
            if let Some(ip) = ips.iter().find(|ip| ip.is_ipv6() == hop.is_ipv6()) {
                reaches(*ip, *hop)?;
            }
        }
        Ok(())
    }

    fn next_hops(
        &self,
        defaults: &[DefaultRoute],
        link: &Link,
        ips: &[IpNetwork],
    ) -> std::result::Result<Vec<IpAddr>, String> {
        let mut next_hops = Vec::new();
        for ip in ips {
            let same = |hop: &IpAddr| hop.is_ipv6() == ip.is_ipv6();
            let given = self.next_hops.iter().copied().find(same);
            let found =
                || defaults.iter().filter(|route| route.link == link.index).map(|route| route.gateway).find(same);
            let hop = given.or_else(found).ok_or_else(|| {
                format!("no default route of {ip}'s family leads through it; add one or give --gateway-nexthop")
            })?;
            reaches(*ip, hop)?;
            next_hops.push(hop);
        }
        Ok(next_hops)
    }
}

async fn of_default_route(net: &Net) -> Result<String> {
    let (defaults, links) = (net.default_routes().await?, net.links().await?);
    let of = |route: &DefaultRoute| links.iter().find(|link| link.index == route.link).map(|link| link.name.clone());
    defaults.iter().find_map(of).ok_or(Error::NoGatewayInterface)
}

fn reaches(ip: IpNetwork, hop: IpAddr) -> std::result::Result<(), String> {
    // a router's link-local address is on every network
    let local = matches!(hop, IpAddr::V6(v6) if v6.is_unicast_link_local());
    if local || ip.contains(hop) {
        return Ok(());
    }
    Err(format!("next hop {hop} is outside its network {ip}; correct --gateway-nexthop"))
}
