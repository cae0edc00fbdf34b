//! What the gateway is told, and what it finds on the node.

use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_host::{DefaultRoute, Link, Net};
use ovnkube_model::{GatewayMode, Mac, Subnet};

use crate::ovs::Ovs;
use crate::{Error, Result};

/// Filled by the binary from its flags and files.
#[derive(Debug, Clone)]
pub struct GatewaySettings {
    pub mode: GatewayMode,
    /// The bridge to the outside; `None`: the one of the default route.
    pub interface: Option<String>,
    /// Empty: the default routes' gateways.
    pub next_hops: Vec<IpAddr>,
    pub node_port: bool,
    /// The first of five conntrack zones.
    pub conntrack_zone: u16,
    /// Let the host answer packets that are too large for pods.
    pub check_mtu: bool,
    /// UDP port of the tunnels.
    pub encap_port: u16,
    pub service_cidrs: Vec<Subnet>,
    pub join_subnets: Vec<Subnet>,
}

/// The bridge to the outside, as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) bridge: Link,
    /// The bridge's port to the outside.
    pub(crate) uplink: String,
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

impl GatewaySettings {
    /// Looks at the node and changes nothing. What is wrong is told in one line.
    pub(crate) async fn find(&self, ranges: &Ranges<'_>, internal: &[IpAddr], net: &Net, ovs: &Ovs) -> Result<Site> {
        let defaults = net.default_routes().await?;
        let name = self.name(&defaults, net).await?;
        let refuse = |why: String| Error::Gateway { interface: name.clone(), why };
        let link = net.link(&name).await?;
        let uplink = uplink(&name, link.is_some(), ovs).map_err(refuse)?;
        let link = link.ok_or_else(|| refuse("there is no such link".to_owned()))?;
        let mac = link.mac.map(Mac).ok_or_else(|| refuse("it has no MAC address".to_owned()))?;
        let mut addresses = net.addresses(&link).await?;
        addresses.retain(|address| !ranges.masquerade.iter().any(|range| range.contains(address.ip())));
        let ips = self.ips(ranges, internal, &addresses).map_err(refuse)?;
        let next_hops = self.next_hops(&defaults, &link, &ips).map_err(refuse)?;
        Ok(Site { bridge: link, uplink, mac, ips, next_hops })
    }

    async fn name(&self, defaults: &[DefaultRoute], net: &Net) -> Result<String> {
        if let Some(name) = &self.interface {
            return Ok(name.clone());
        }
        let links = net.links().await?;
        let of =
            |route: &DefaultRoute| links.iter().find(|link| link.index == route.link).map(|link| link.name.clone());
        defaults.iter().find_map(of).ok_or(Error::NoGatewayInterface)
    }

    /// One address per family of the pods: the one that Kubernetes knows, else the first.
    fn ips(
        &self,
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
            ips.push(*ip.ok_or_else(|| format!("it has no {family} address; give it the node's"))?);
        }
        let named = [
            ("cluster subnet", ranges.cluster),
            ("service range", &self.service_cidrs),
            ("join subnet", &self.join_subnets),
        ];
        for (what, range) in named.iter().flat_map(|(what, list)| list.iter().map(move |range| (what, range))) {
            // of two ranges that overlap one holds the other's first address
            let overlaps = |ip: &&IpNetwork| range.contains(ip.network()) || ip.contains(range.base());
            if let Some(ip) = addresses.iter().find(overlaps) {
                return Err(format!("its network {ip} overlaps {what} {range}; move one of them"));
            }
        }
        Ok(ips)
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
            // a router's link-local address is on every network
            let local = matches!(hop, IpAddr::V6(v6) if v6.is_unicast_link_local());
            if !local && !ip.contains(hop) {
                return Err(format!("next hop {hop} is outside its network {ip}; correct --gateway-nexthop"));
            }
            next_hops.push(hop);
        }
        Ok(next_hops)
    }
}

/// The port of bridge `name` that leads outside.
fn uplink(name: &str, exists: bool, ovs: &Ovs) -> std::result::Result<String, String> {
    let Some(bridge) = ovs.bridge_ports(name) else {
        return Err(match (ovs.bridge_of(name), exists) {
            (Some(bridge), _) => format!("it is a port of bridge {bridge}; give --gateway-interface={bridge}"),
            (None, true) => "it is not an OVS bridge, and moving its addresses to one is not yet done for you; \
                make a bridge that holds it and the node's addresses, and give that"
                .to_owned(),
            (None, false) => "there is no such link and no such bridge".to_owned(),
        });
    };
    let mut physical = bridge.physical;
    if let Some(named) = bridge.uplink.filter(|named| physical.contains(named)) {
        return Ok(named);
    }
    match (physical.pop(), physical.is_empty()) {
        (Some(only), true) => Ok(only),
        (Some(last), false) => Err(format!(
            "it has several links to the outside, {} and {last}; name one by `ovs-vsctl br-set-external-id {name} bridge-uplink LINK`",
            physical.join(", ")
        )),
        (None, _) => Err("the bridge holds no link to the outside".to_owned()),
    }
}
