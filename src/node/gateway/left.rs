//! What a gateway has left on the host: one that was on another bridge or had other masquerade subnets than now, or any
//! when there shall be none.
//!
//! ```text
//!  Open_vSwitch   ovn-bridge-mappings physnet:BRIDGE       may have flows of the gateway
//!  BRIDGE         fixed neighbours A and A+3, whose MAC addresses spell their own
//!                 A … A+3 are masquerade addresses: addresses and routes with them are the gateway's
//! ```
//! Nothing else is written down: each of these marks is taken away last, so that what a crash interrupts is found again.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use ipnetwork::IpNetwork;
use ovnkube_host::flows::Switch;
use ovnkube_host::{Link, Net, advertised, nft, sysctl};
use ovnkube_model::{Mac, Masquerade, Subnet};
use ovnkube_ovn::vswitch::open_vswitch;
use ovnkube_ovsdb::Cache;
use tokio::time::timeout;

use super::settings::Place;
use super::{RULES, TABLE, flows, legacy};
use crate::ovs::Ovs;
use crate::settings::NodeSettings;
use crate::uplink::{self, Uplink};
use crate::{Error, Result, chassis, mgmt};

/// How long a NIC may take to be given back; ovs-vswitchd has a part in it.
const GIVE_BACK: Duration = Duration::from_secs(15);
/// The smallest subnets that hold them.
const SMALLEST: (u8, u8) = (29, 125);

/// A link and the masquerade subnets it has something of.
#[derive(Debug, Clone)]
pub(crate) struct Left {
    pub(crate) link: Link,
    pub(crate) masquerade: Vec<Subnet>,
}

/// Takes away what is not of the gateway that there shall be now.
pub(crate) async fn leave(node: &NodeSettings, stays: Option<&Place>, here: &Net, ovs: &Ovs) -> Result<()> {
    let (stays, nic) = stays.map_or((None, None), |place| (Some(place.bridge()), place.nic.as_deref()));
    for Left { link, mut masquerade } in find(here, &node.masquerade_subnets, &ovs.read(mapped)).await? {
        if stays.as_ref() == Some(&link.name) {
            let known = |range: &Subnet| node.masquerade_subnets.iter().any(|given| given.base() == range.base());
            masquerade.retain(|range| !known(range));
            take_other_lengths(here, &link, &node.masquerade_subnets).await?;
        } else if ovs.bridge_ports(&link.name).is_some() {
            tracing::info!("taking the gateway off {}", link.name);
            take_flows(node.run_dir(), &link.name).await?;
            ovs.apply("unmap a bridge", |cache| Ok(chassis::unmap(cache, &link.name))).await?;
            // a host that was booted since then set it itself
            if !masquerade.is_empty() {
                take_forwarding(&link);
            }
        }
        if masquerade.is_empty() {
            continue;
        }
        if stays.is_none() {
            first(take_tables(here, &[&node.cluster_subnets[..], &node.masquerade_subnets].concat()).await)?;
        }
        first(take_host(here, &link, &masquerade).await)?;
    }
    for made in ovs.read(uplink::made).iter().filter(|made| made.is_journalled() && Some(made.nic.as_str()) != nic) {
        ovs.apply("unmap a bridge", |cache| Ok(chassis::unmap(cache, &made.bridge))).await?;
        give_back(&made.nic, &node.masquerade_subnets, here, ovs).await?;
    }
    Ok(())
}

/// The same address of a subnet that had another prefix length.
async fn take_other_lengths(here: &Net, link: &Link, masquerade: &[Subnet]) -> Result<()> {
    for address in here.addresses(link).await? {
        let mut hosts = masquerade.iter().filter_map(|range| Some(Masquerade::of(*range)?.host));
        if hosts.any(|host| host.ip() == address.ip() && host != address) {
            here.delete_address(link, address).await?;
        }
    }
    Ok(())
}

fn first(failed: Vec<Error>) -> Result<()> {
    failed.into_iter().next().map_or(Ok(()), Err)
}

/// All links that have something of a gateway. `given` are masquerade subnets that are known, `mapped` bridges that
/// count whatever is on them.
pub(crate) async fn find(here: &Net, given: &[Subnet], mapped: &[String]) -> Result<Vec<Left>> {
    let mut all = Vec::new();
    for link in here.links().await?.into_iter().filter(|link| link.name != mgmt::LINK) {
        let mut masquerade = subnets_on(here, &link).await?;
        let addresses = here.addresses(&link).await?;
        // others may have addresses in a wide one
        let has = |range: &&Subnet| Masquerade::of(**range).is_some_and(|ours| addresses.contains(&ours.host));
        let known: Vec<Subnet> = given.iter().filter(has).copied().collect();
        masquerade.retain(|range| known.iter().all(|known| known.base() != range.base()));
        masquerade.extend(known);
        if !masquerade.is_empty() || mapped.contains(&link.name) {
            all.push(Left { link, masquerade });
        }
    }
    Ok(all)
}

/// The masquerade subnets that the link's fixed neighbours tell of, as small as they can be.
pub(crate) async fn subnets_on(here: &Net, link: &Link) -> Result<Vec<Subnet>> {
    let neighbours = here.permanent_neighbours(link).await?;
    Ok(subnets(&neighbours.into_iter().map(|(ip, mac)| (ip, Mac(mac))).collect::<Vec<_>>()))
}

pub(super) fn subnets(neighbours: &[(IpAddr, Mac)]) -> Vec<Subnet> {
    let spelled: Vec<IpAddr> = neighbours.iter().filter(|(ip, mac)| Mac::of(*ip) == *mac).map(|(ip, _)| *ip).collect();
    let subnet = |ip: &IpAddr| {
        let prefix = if ip.is_ipv6() { SMALLEST.1 } else { SMALLEST.0 };
        let around = Subnet::of(IpNetwork::new(*ip, prefix).ok()?);
        let ours = Masquerade::of(around)?;
        let is_ours = ours.ovn == *ip && spelled.contains(&ours.next_hop);
        is_ours.then_some(around)
    };
    spelled.iter().filter_map(subnet).collect()
}

/// Puts back what a NIC had before it was put into a bridge of ours, and removes the bridge.
pub(crate) async fn give_back(nic: &str, masquerade: &[Subnet], here: &Net, ovs: &Ovs) -> Result<()> {
    let uplink = Uplink::new(nic, masquerade, here, ovs);
    timeout(GIVE_BACK, uplink.to_nic()).await.unwrap_or_else(|_| {
        Err(Error::Gateway { interface: nic.to_owned(), why: "moving it back took too long".to_owned() })
    })
}

/// Takes our flows off a bridge; others' stay.
pub(crate) async fn take_flows(run_dir: &Path, bridge: &str) -> Result<()> {
    Switch::new(run_dir, bridge).sync(flows::COOKIE, &[]).await?;
    Ok(())
}

/// Takes what the gateway has of these subnets off a link that stays.
pub(crate) async fn take_host(here: &Net, link: &Link, masquerade: &[Subnet]) -> Vec<Error> {
    let taken = masquerade.iter().filter_map(|range| Masquerade::of(*range));
    let taken: Vec<IpAddr> = taken.flat_map(|ours| [ours.ovn, ours.host.ip(), ours.local, ours.next_hop]).collect();
    let ours = |ip| taken.contains(&ip);
    let mut failed = Vec::new();
    let mut links = vec![link.clone()];
    match here.link(mgmt::LINK).await {
        Ok(port) => links.extend(port),
        Err(e) => failed.push(e.into()),
    }
    for through in &links {
        match here.held_routes(through).await {
            Ok(routes) => {
                // those of the addresses go with them
                for route in routes.iter().filter(|route| route.addresses().into_iter().any(ours)) {
                    failed.extend(here.drop_route(through, route).await.err().map(Error::from));
                }
            }
            Err(e) => failed.push(e.into()),
        }
    }
    match here.addresses(link).await {
        Ok(addresses) => {
            for address in addresses.into_iter().filter(|address| ours(address.ip())) {
                failed.extend(here.delete_address(link, address).await.err().map(Error::from));
            }
        }
        Err(e) => failed.push(e.into()),
    }
    if failed.is_empty() {
        failed.extend(here.delete_permanent_neighbours(link, ours).await.err().map(Error::from));
    }
    failed
}

/// A bridge that no gateway has any more forwards as a new link would.
pub(crate) fn take_forwarding(link: &Link) {
    // a link that went meanwhile and a host without IPv6 have none to set
    let _ = sysctl::inherit("ipv4", &link.name, "forwarding");
    let _ = advertised::put_back(&link.name);
}

/// Takes away what is of no one bridge: nftables, rules and their routing table. `ranges` are those of pods, services
/// and masquerade addresses.
pub(crate) async fn take_tables(here: &Net, ranges: &[Subnet]) -> Vec<Error> {
    let mut failed = Vec::new();
    failed.extend(nft::delete(TABLE).await.err().map(Error::from));
    failed.extend(legacy::remove(ranges, false).await.err());
    for rule in RULES {
        for ipv6 in [false, true] {
            failed.extend(here.delete_rule(ipv6, rule).await.err().map(Error::from));
        }
        match here.link(mgmt::LINK).await {
            Ok(None) => {}
            Ok(Some(port)) => failed.extend(here.delete_routes_in(&port, rule.table).await.err().map(Error::from)),
            Err(e) => failed.push(e.into()),
        }
    }
    failed
}

/// Bridges that the chassis maps to the outside.
pub(crate) fn mapped(cache: &Cache) -> Vec<String> {
    let roots = cache.iter(open_vswitch::TABLE);
    let mappings = roots.filter_map(|(_, row)| row.map(open_vswitch::EXTERNAL_IDS).get(chassis::MAPPINGS));
    let bridges = mappings.flat_map(|text| text.split(',')).filter_map(|one| one.trim().split_once(':'));
    bridges.filter(|(network, _)| *network == chassis::OUTSIDE).map(|(_, bridge)| bridge.to_owned()).collect()
}
