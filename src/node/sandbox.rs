//! A pod's network namespace: the veth pair, addresses and routes of its interface.

use std::io;
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_host::{Link, Net, Netns, Route, Veth, ethtool, sysctl};
use ovnkube_model::PodNetwork;

use crate::reply::{self, CniResult};
use crate::{Error, Result};

/// How one pod's interface shall be.
#[derive(Debug, Clone)]
pub(crate) struct Wiring {
    pub(crate) container_id: String,
    pub(crate) netns: Netns,
    /// Name in the pod.
    pub(crate) interface: String,
    pub(crate) network: PodNetwork,
    pub(crate) mtu: u32,
    /// Of routes, where it is less.
    pub(crate) route_mtu: Option<u32>,
    /// The userspace datapath hands packets on as they are, without the checksums that offload
    /// leaves to hardware.
    pub(crate) checksums_in_software: bool,
}

/// The node's end of a sandbox's pair, as ovn-kubernetes names it.
pub(crate) fn host_name(container_id: &str) -> &str {
    container_id.get(..15).unwrap_or(container_id)
}

/// Text on the node's end: tells our links from a node's own that happen to have the same name.
fn alias(container_id: &str) -> String {
    format!("ovnkube sandbox {container_id}")
}

/// Whether a link with that alias is ours.
pub(crate) fn is_alias(text: &str) -> bool {
    text.starts_with(&alias(""))
}

/// Deletes the node's end, and with it the pod's. `known`: OVS says the link is this sandbox's,
/// as for pairs that ovn-kubernetes made.
pub(crate) async fn delete_pair(here: &Net, container_id: &str, known: bool) -> Result<()> {
    let Some(link) = here.link(host_name(container_id)).await? else { return Ok(()) };
    if known || link.alias.as_deref() == Some(&alias(container_id)) {
        here.delete(&link.name).await?;
    }
    Ok(())
}

impl Wiring {
    pub(crate) fn host_name(&self) -> &str {
        host_name(&self.container_id)
    }

    /// The pair, up on the node's side. One that is there from an earlier attempt is kept when it
    /// is right and replaced when not.
    pub(crate) async fn ensure_pair(&self, here: &Net) -> Result<Link> {
        let pod = Net::within(&self.netns).await?;
        let ours = alias(&self.container_id);
        if let Some(link) = here.link(self.host_name()).await? {
            if link.alias.as_deref() != Some(&ours) {
                return Err(Error::LinkTaken { name: link.name });
            }
            let inside = pod.link(&self.interface).await?;
            if inside.is_some_and(|inside| inside.mac == Some(self.network.mac_address.0)) {
                return Ok(link);
            }
            here.delete(&link.name).await?;
        }
        here.add_veth(Veth {
            name: self.host_name(),
            peer: &self.interface,
            peer_netns: &self.netns,
            peer_mac: self.network.mac_address.0,
            mtu: self.mtu,
        })
        .await?;
        let link =
            here.link(self.host_name()).await?.ok_or_else(|| Error::LinkGone { name: self.host_name().to_owned() })?;
        here.set_alias(&link, &ours).await?;
        // router advertisements of the pod must not configure the node
        optional(sysctl::set_link("ipv6", &link.name, "disable_ipv6", "1"))?;
        here.set_up(&link).await?;
        Ok(link)
    }

    /// The pod's side: addresses, routes, offload.
    pub(crate) async fn configure(&self) -> Result<()> {
        let pod = Net::within(&self.netns).await?;
        let link = self.link(&pod).await?;
        let (name, wanted) = (self.interface.clone(), self.network.ip_addresses.iter().any(IpNetwork::is_ipv6));
        self.netns.run(move || set_ipv6(&name, wanted)).await??;
        if self.checksums_in_software {
            ethtool::tx_checksum_off(Some(&self.netns), &self.interface).await?;
            ethtool::tx_checksum_off(None, self.host_name()).await?;
        }
        pod.ensure_mtu(&link, self.mtu).await?;
        pod.set_up(&link).await?;
        for address in &self.network.ip_addresses {
            pod.ensure_address(&link, *address).await?;
        }
        let have = pod.routes(&link).await?;
        for route in self.routes().into_iter().filter(|route| !have.contains(route)) {
            pod.ensure_route(&link, route).await?;
        }
        Ok(())
    }

    /// What is not as [`Wiring::configure`] makes it.
    pub(crate) async fn faults(&self) -> Result<Vec<String>> {
        let pod = Net::within(&self.netns).await?;
        let Some(link) = pod.link(&self.interface).await? else {
            return Ok(vec![format!("{} is missing", self.interface)]);
        };
        let mut faults = Vec::new();
        let mac = self.network.mac_address;
        if link.mac != Some(mac.0) {
            faults.push(format!("{} has not the MAC address {mac}", self.interface));
        }
        if !link.up {
            faults.push(format!("{} is down", self.interface));
        }
        let addresses = pod.addresses(&link).await?;
        for address in self.network.ip_addresses.iter().filter(|address| !addresses.contains(address)) {
            faults.push(format!("{} has not the address {address}", self.interface));
        }
        let routes = pod.routes(&link).await?;
        // a pod keeps the MTU that it was wired with
        let there = |want: &Route| routes.iter().any(|have| Route { mtu: want.mtu, ..*have } == *want);
        for route in self.routes().iter().filter(|route| !there(route)) {
            faults.push(format!("the route to {} is missing", route.destination));
        }
        Ok(faults)
    }

    pub(crate) fn result(&self, host: &Link) -> CniResult {
        let mac = |link: &Link| link.mac.map_or_else(String::new, |mac| ovnkube_model::Mac(mac).to_string());
        let ends = vec![
            reply::Interface { name: host.name.clone(), mac: mac(host), sandbox: None },
            reply::Interface {
                name: self.interface.clone(),
                mac: self.network.mac_address.to_string(),
                sandbox: Some(self.netns.path().display().to_string()),
            },
        ];
        let ips = self.network.ip_addresses.iter();
        let ips =
            ips.map(|address| reply::Ip { interface: 1, address: *address, gateway: self.gateway(*address) }).collect();
        let routes = self.routes().into_iter();
        let routes =
            routes.filter_map(|route| Some(reply::Route { dst: route.destination, gw: route.gateway? })).collect();
        CniResult { version: "1.0.0", interfaces: ends, ips, routes }
    }

    /// Default routes through the gateways, then the annotation's own.
    fn routes(&self) -> Vec<Route> {
        let gateways = self.gateways().filter_map(|gateway| Some(Route::via(default(gateway)?, gateway)));
        let others = self.network.routes.iter().filter_map(|route| {
            // as the kernel keeps it: without host bits
            let destination = IpNetwork::new(route.dest.network(), route.dest.prefix()).ok()?;
            Some(Route::via(destination, route.next_hop))
        });
        gateways.chain(others).map(|route| Route { mtu: self.route_mtu, ..route }).collect()
    }

    fn gateways(&self) -> impl Iterator<Item = IpAddr> {
        let single = self.network.gateway_ip.filter(|_| self.network.gateway_ips.is_empty());
        self.network.gateway_ips.iter().copied().chain(single)
    }

    fn gateway(&self, address: IpNetwork) -> Option<IpAddr> {
        self.gateways().find(|gateway| gateway.is_ipv6() == address.is_ipv6())
    }

    async fn link(&self, pod: &Net) -> Result<Link> {
        pod.link(&self.interface).await?.ok_or_else(|| Error::LinkGone { name: self.interface.clone() })
    }
}

fn default(gateway: IpAddr) -> Option<IpNetwork> {
    let any: IpAddr = if gateway.is_ipv6() { [0u16; 8].into() } else { [0u8; 4].into() };
    IpNetwork::new(any, 0).ok()
}

/// No duplicate detection, which would hold addresses back for a second, and no router but ours.
/// A runtime may have switched IPv6 off; `wanted` switches it on.
fn set_ipv6(link: &str, wanted: bool) -> Result<()> {
    for key in ["accept_dad", "accept_ra"] {
        optional(sysctl::set_link("ipv6", link, key, "0"))?;
    }
    if wanted { Ok(sysctl::set_link("ipv6", link, "disable_ipv6", "0")?) } else { Ok(()) }
}

/// A kernel without IPv6 has no such sysctls.
fn optional(set: ovnkube_host::Result<()>) -> Result<()> {
    match set {
        Err(ovnkube_host::Error::Sysctl { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(()),
        other => Ok(other?),
    }
}
