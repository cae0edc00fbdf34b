//! A pod's network namespace: addresses and routes of its interface.

use std::io;
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_host::{Link, Net, Netns, Route, ethtool, sysctl};
use ovnkube_model::PodNetwork;

use crate::reply::{self, CniResult};
use crate::{Error, Result};

/// The wanted interface of one pod.
#[derive(Debug, Clone)]
pub(crate) struct Wiring {
    pub(crate) container_id: String,
    /// The uid by which the runtime knows the pod: for a static pod the hash of its file.
    pub(crate) pod_uid: String,
    pub(crate) netns: Netns,
    /// Name in the pod.
    pub(crate) interface: String,
    pub(crate) network: PodNetwork,
    pub(crate) mtu: u32,
    /// MTU of routes, where it is less.
    pub(crate) route_mtu: Option<u32>,
    /// The userspace datapath forwards packets unchanged, without the checksums that offload
    /// leaves to hardware.
    pub(crate) checksums_in_software: bool,
}

impl Wiring {
    /// Configures the pod's side: addresses, routes, offload.
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

    /// What differs from the result of [`Wiring::configure`]. `reported`: the routes that ADD reported, if that is known.
    pub(crate) async fn faults(&self, here: &Net, reported: Option<&[reply::Route]>) -> Result<Vec<String>> {
        let pod = Net::within(&self.netns).await?;
        let Some(link) = pod.link(&self.interface).await? else {
            return Ok(vec![format!("{} is missing", self.interface)]);
        };
        let mut faults = Vec::new();
        let mac = self.network.mac_address;
        if link.mac != Some(mac.0) {
            faults.push(format!("{} does not have the MAC address {mac}", self.interface));
        }
        if !link.up {
            faults.push(format!("{} is down", self.interface));
        }
        // a pod keeps the MTU that it was wired with, which the node's end has too
        let given = here.link(self.host_name()).await?.map(|host| host.mtu);
        if let Some(given) = given.filter(|given| *given != link.mtu) {
            faults.push(format!("{} has MTU {}, not {given}", self.interface, link.mtu));
        }
        let addresses = pod.addresses(&link).await?;
        for address in self.network.ip_addresses.iter().filter(|address| !addresses.contains(address)) {
            faults.push(format!("{} does not have the address {address}", self.interface));
        }
        let missing = self.missing_routes(&pod.routes(&link).await?, reported).into_iter();
        faults.extend(missing.map(|route| format!("the route to {} is missing", route.destination)));
        Ok(faults)
    }

    /// Running pods keep the routes that they were wired with: those that the annotation gets later, as with another range
    /// in `cluster-subnets`, are not missing.
    fn missing_routes(&self, have: &[Route], reported: Option<&[reply::Route]>) -> Vec<Route> {
        let is = |given: &reply::Route, want: &Route| given.dst == want.destination && Some(given.gw) == want.gateway;
        let was_given = |want: &Route| reported.is_none_or(|all| all.iter().any(|given| is(given, want)));
        // they also keep the MTU that they were wired with
        let is_there = |want: &Route| have.iter().any(|have| Route { mtu: want.mtu, ..*have } == *want);
        self.routes().into_iter().filter(|want| was_given(want) && !is_there(want)).collect()
    }

    pub(crate) fn result(&self, host: &Link) -> CniResult {
        let mac = |link: &Link| link.mac.map_or_else(String::new, |mac| ovnkube_model::Mac(mac).to_string());
        let ends = vec![
            reply::Interface { name: host.name.clone(), mac: mac(host), mtu: self.mtu, sandbox: None },
            reply::Interface {
                name: self.interface.clone(),
                mac: self.network.mac_address.to_string(),
                mtu: self.mtu,
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

/// Disables duplicate address detection, which would delay addresses for a second, and router advertisements.
/// A runtime may have switched IPv6 off; `wanted` switches it on.
fn set_ipv6(link: &str, wanted: bool) -> Result<()> {
    for key in ["accept_dad", "accept_ra"] {
        optional(sysctl::set_link("ipv6", link, key, "0"))?;
    }
    if wanted { Ok(sysctl::set_link("ipv6", link, "disable_ipv6", "0")?) } else { Ok(()) }
}

/// Ignores a missing sysctl, as on a kernel without IPv6.
pub(crate) fn optional(set: ovnkube_host::Result<()>) -> Result<()> {
    match set {
        Err(ovnkube_host::Error::Sysctl { problem, .. }) if problem.kind() == io::ErrorKind::NotFound => Ok(()),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pod that is annotated with these routes besides its default one.
    fn wiring(routes: &[&str]) -> Wiring {
        let gateway: IpAddr = "10.128.0.1".parse().unwrap();
        let route = |dest: &&str| ovnkube_model::Route { dest: dest.parse().unwrap(), next_hop: gateway };
        let network = PodNetwork {
            ip_addresses: vec!["10.128.0.3/24".parse().unwrap()],
            mac_address: "0a:58:0a:80:00:03".parse().unwrap(),
            gateway_ips: vec![gateway],
            routes: routes.iter().map(route).collect(),
            ip_address: None,
            gateway_ip: None,
            role: None,
        };
        Wiring {
            container_id: "0abc".into(),
            pod_uid: "uid".into(),
            netns: Netns::open("/proc/thread-self/ns/net".as_ref()).unwrap(),
            interface: "eth0".into(),
            network,
            mtu: 1400,
            route_mtu: None,
            checksums_in_software: false,
        }
    }

    #[test]
    fn running_pods_keep_the_routes_that_they_were_wired_with() {
        let at_start = wiring(&["10.128.0.0/14"]);
        let later = wiring(&["10.128.0.0/14", "10.200.0.0/16"]);
        let has = at_start.routes();
        let given = |route: &Route| reply::Route { dst: route.destination, gw: route.gateway.unwrap() };
        let reported: Vec<reply::Route> = has.iter().map(given).collect();
        let missing = |have: &[Route], reported: Option<&[reply::Route]>| {
            let missing = later.missing_routes(have, reported);
            missing.iter().map(|route| route.destination.to_string()).collect::<Vec<_>>()
        };
        assert!(missing(&has, Some(&reported)).is_empty());
        assert_eq!(missing(&has[1..], Some(&reported)), ["0.0.0.0/0"]);
        // ovn-kubernetes reports none
        assert!(missing(&has, Some(&[])).is_empty());
        assert_eq!(missing(&has, None), ["10.200.0.0/16"]);
    }
}
