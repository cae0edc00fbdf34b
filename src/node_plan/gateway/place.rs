//! Finds the bridge or NIC for the gateway and checks it: compares the settings with the observed host.

use std::net::IpAddr;

use ipnetwork::IpNetwork;
use ovnkube_model::{Mac, Masquerade, Subnet};

use super::GatewaySettings;
use crate::host::Link;
use crate::management_port;
use crate::masquerade::masquerade_subnets;
use crate::observed::{BridgeState, LinkState, Observed};
use crate::uplink::{LONGEST_NAME, bridge_of};

/// The bridge to the outside, as observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayBridge {
    pub link: Link,
    /// The bridge's port to the outside; `None`: it has none, which the settings allow.
    pub uplink: Option<String>,
    pub mac: Mac,
    /// The node's addresses, one of each family that pods have.
    pub ips: Vec<IpNetwork>,
    pub next_hops: Vec<IpAddr>,
}

/// The ranges that the node's networks must not overlap.
#[derive(Debug, Clone, Copy)]
pub struct ReservedRanges<'a> {
    pub cluster: &'a [Subnet],
    pub masquerade: &'a [Subnet],
}

/// Where the gateway is or will be, before it is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The link that has the node's addresses or will get them.
    pub link: String,
    /// The NIC, if the bridge is or will be one made for a NIC.
    pub nic: Option<String>,
    /// The bridge exists.
    pub made: bool,
}

/// Why there can be no gateway.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// `permanent`: no change of the host can fix it.
    #[error("cannot use {interface} as gateway interface: {why}")]
    Interface { interface: String, why: String, permanent: bool },
    #[error("cannot start the gateway: network {network} of link {link} overlaps {what} {range}; move one of them")]
    Overlap { link: String, network: String, what: &'static str, range: String },
    #[error("cannot find the gateway interface: there is no default route; add one or give --gateway-interface")]
    NoDefaultRoute,
}

type Result<T> = std::result::Result<T, Refused>;

impl Refused {
    /// Whether the agent has to be started with other settings.
    pub fn is_permanent(&self) -> bool {
        matches!(self, Self::Interface { permanent: true, .. } | Self::Overlap { .. })
    }
}

impl Place {
    /// The bridge that has the flows or will get them.
    pub fn bridge(&self) -> String {
        self.nic.as_deref().map_or_else(|| self.link.clone(), bridge_of)
    }
}

impl GatewaySettings {
    /// The bridge or NIC that the settings mean on this host.
    pub fn place(&self, ranges: ReservedRanges<'_>, host: &Observed) -> Result<Place> {
        let made = || host.bridges.iter().filter(|bridge| bridge.made_for.is_some());
        let name = match (&self.interface, made().find(|made| made.journalled)) {
            (Some(name), _) => name.clone(),
            (None, Some(made)) => made.name.clone(),
            // default routes come and go, also while the agent runs: the gateway does not move with them
            (None, None) => in_use(host).map_or_else(|| self.of_default_route(ranges, host), Ok)?,
        };
        let made = made().find(|made| made.name == name || made.made_for.as_ref() == Some(&name));
        if let Some(BridgeState { name, made_for, .. }) = made {
            return Ok(Place { link: name.clone(), nic: made_for.clone(), made: true });
        }
        if host.bridge(&name).is_some() {
            return Ok(Place { link: name, nic: None, made: true });
        }
        check_nic(&name, host)?;
        Ok(Place { link: name.clone(), nic: Some(name), made: false })
    }

    /// The link of the first default route of the pods' families, rather one that has a default route of each. Those whose next hop is
    /// given need none, and a link that reaches these comes first: if no route is needed, also one of a default route of the other family.
    /// A link that lacks a route comes before one that does not reach a hop: the route may still appear.
    fn of_default_route(&self, ranges: ReservedRanges<'_>, host: &Observed) -> Result<String> {
        let of_pods = |ipv6: bool| ranges.cluster.iter().any(|range| range.is_ipv6() == ipv6);
        let hops: Vec<IpAddr> = self.next_hops.iter().copied().filter(|hop| of_pods(hop.is_ipv6())).collect();
        let needs = |ipv6: bool| of_pods(ipv6) && !hops.iter().any(|hop| hop.is_ipv6() == ipv6);
        let leads = |link: u32, ipv6: bool| {
            host.default_routes.iter().any(|route| route.link == link && route.gateway.is_ipv6() == ipv6)
        };
        let has_all =
            |state: &LinkState| [false, true].iter().all(|ipv6| !needs(*ipv6) || leads(state.link.index, *ipv6));
        let is_near = |state: &LinkState, hop: IpAddr| {
            state.addresses.iter().any(|address| address.is_ipv6() == hop.is_ipv6() && reaches(*address, hop).is_ok())
        };
        let has_hops = |state: &LinkState| hops.iter().all(|hop| is_near(state, *hop));
        let links = |is_wanted: &dyn Fn(bool) -> bool| {
            let routes = host.default_routes.iter().filter(|route| is_wanted(route.gateway.is_ipv6()));
            let link_of = |link: u32| host.links.iter().find(move |state| state.link.index == link);
            routes.filter_map(|route| link_of(route.link)).collect::<Vec<_>>()
        };
        let (own, other) = (links(&of_pods), links(&|ipv6| !of_pods(ipv6) && !needs(!ipv6)));
        let near = own.iter().chain(&other).find(|state| has_all(state) && has_hops(state));
        let near = near.or_else(|| own.iter().find(|state| has_hops(state)));
        let found = near.or_else(|| own.iter().find(|state| has_all(state))).or_else(|| own.first());
        found.map(|state| state.name().to_owned()).ok_or(Refused::NoDefaultRoute)
    }

    /// The gateway's bridge with its addresses and next hops. The error is one line that says what is wrong.
    pub fn find(
        &self,
        place: &Place,
        ranges: ReservedRanges<'_>,
        internal: &[IpAddr],
        host: &Observed,
    ) -> Result<GatewayBridge> {
        let name = &place.link;
        let refuse = |why: String| Refused::Interface { interface: name.clone(), why, permanent: false };
        let wrong = |why: String| Refused::Interface { interface: name.clone(), why, permanent: true };
        let uplink = match &place.nic {
            Some(nic) => Some(nic.clone()),
            None => self.uplink_of(name, host).map_err(refuse)?,
        };
        let state = host.link(name).ok_or_else(|| refuse("there is no such link".to_owned()))?;
        let mac = state.link.mac.map(Mac).ok_or_else(|| refuse("it has no MAC address".to_owned()))?;
        let left = masquerade_subnets(state);
        let is_gateways = |ip: &IpNetwork| ranges.masquerade.iter().chain(&left).any(|range| range.contains(ip.ip()));
        let addresses: Vec<_> = state.addresses.iter().filter(|address| !is_gateways(address)).copied().collect();
        self.overlaps(ranges, &addresses).map_err(wrong)?;
        let ips = ips(ranges, internal, &addresses).map_err(refuse)?;
        self.given_hops(&ips).map_err(wrong)?;
        let next_hops = self.next_hops(state, host, &ips).map_err(refuse)?;
        Ok(GatewayBridge { link: state.link.clone(), uplink, mac, ips, next_hops })
    }

    /// The port of bridge `name` that leads outside.
    fn uplink_of(&self, name: &str, host: &Observed) -> std::result::Result<Option<String>, String> {
        let bridge = host.bridge(name).ok_or("the bridge is gone")?;
        if let Some(named) = bridge.uplink.as_ref().filter(|named| bridge.physical.contains(named)) {
            return Ok(Some(named.clone()));
        }
        match bridge.physical.as_slice() {
            [only] => Ok(Some(only.clone())),
            [] if self.allow_no_uplink => Ok(None),
            [] => Err("the bridge holds no link to the outside; add one or give --allow-no-uplink".to_owned()),
            [others @ .., last] => Err(format!(
                "it has several links to the outside, {} and {last}; name one by `ovs-vsctl br-set-external-id {name} bridge-uplink LINK`",
                others.join(", ")
            )),
        }
    }

    /// The next hops that must answer in the connectivity check.
    pub fn watched_hops(&self, place: &Place, host: &Observed) -> Vec<IpAddr> {
        if !self.next_hops.is_empty() {
            return self.next_hops.clone();
        }
        let is_ours = |state: &&LinkState| place.nic.as_deref() == Some(state.name()) || place.link == state.name();
        let links: Vec<u32> = host.links.iter().filter(is_ours).map(|state| state.link.index).collect();
        let through = host.default_routes.iter().filter(|route| links.contains(&route.link));
        let mut next_hops: Vec<IpAddr> = through.map(|route| route.gateway).collect();
        next_hops.dedup();
        next_hops
    }

    fn overlaps(&self, ranges: ReservedRanges<'_>, addresses: &[IpNetwork]) -> std::result::Result<(), String> {
        match addresses.iter().find_map(|ip| Some((ip, self.overlapped(ranges, *ip)?))) {
            Some((ip, (what, range))) => Err(format!("its network {ip} overlaps {what} {range}; move one of them")),
            None => Ok(()),
        }
    }

    /// The range of the cluster that overlaps a network of the host, and its purpose.
    fn overlapped(&self, ranges: ReservedRanges<'_>, ip: IpNetwork) -> Option<(&'static str, Subnet)> {
        let named = [
            ("cluster subnet", ranges.cluster),
            ("service range", &self.service_cidrs),
            ("join subnet", &self.join_subnets),
        ];
        let mut all = named.into_iter().flat_map(|(what, list)| list.iter().map(move |range| (what, *range)));
        // of two overlapping ranges one contains the other's first address
        all.find(|(_, range)| range.contains(ip.network()) || ip.contains(range.base()))
    }

    /// Fails if a network of any link overlaps a range of the cluster.
    pub fn check_host(&self, ranges: ReservedRanges<'_>, host: &Observed) -> Result<()> {
        for state in host.links.iter().filter(|state| state.link.up && state.name() != management_port::LINK) {
            // addresses from another masquerade subnet of an earlier gateway are removed before this one adds its own
            let left = masquerade_subnets(state);
            let is_left = |ip: &IpNetwork| left.iter().any(|range| range.contains(ip.ip()));
            for ip in state.addresses.iter().filter(|ip| !ip.ip().is_loopback() && !is_left(ip)) {
                // the gateway's own address stays when the agent ends, also on an earlier bridge
                let is_own = |range: Subnet| Masquerade::of(range).is_some_and(|ours| ours.host == *ip);
                let taken = |range: &&Subnet| range.contains(ip.ip()) && !is_own(**range);
                let masquerade = || ranges.masquerade.iter().find(taken).map(|range| ("masquerade subnet", *range));
                if let Some((what, range)) = self.overlapped(ranges, *ip).or_else(masquerade) {
                    let (link, network, range) = (state.name().to_owned(), ip.to_string(), range.to_string());
                    return Err(Refused::Overlap { link, network, what, range });
                }
            }
        }
        Ok(())
    }

    /// Checks the configured next hops, not those of routes.
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
        bridge: &LinkState,
        host: &Observed,
        ips: &[IpNetwork],
    ) -> std::result::Result<Vec<IpAddr>, String> {
        let mut next_hops = Vec::new();
        for ip in ips {
            let same = |hop: &IpAddr| hop.is_ipv6() == ip.is_ipv6();
            let given = self.next_hops.iter().copied().find(same);
            let through = host.default_routes.iter().filter(|route| route.link == bridge.link.index);
            let hop = given.or_else(|| through.map(|route| route.gateway).find(same)).ok_or_else(|| {
                format!("no default route of {ip}'s family leads through it; add one or give --gateway-nexthop")
            })?;
            reaches(*ip, hop)?;
            next_hops.push(hop);
        }
        Ok(next_hops)
    }
}

/// Checks that a bridge can be made for a NIC.
fn check_nic(name: &str, host: &Observed) -> Result<()> {
    let refuse = |why: String, permanent| Err(Refused::Interface { interface: name.to_owned(), why, permanent });
    if let Some(BridgeState { name: bridge, .. }) = host.bridges.iter().find(|bridge| bridge.holds(name)) {
        return refuse(format!("it is a port of bridge {bridge}; give --gateway-interface={bridge}"), true);
    }
    let Some(state) = host.link(name) else {
        return refuse("there is no such link and no such bridge".to_owned(), false);
    };
    let master = host.links.iter().find(|other| Some(other.link.index) == state.link.master);
    if let Some(master) = master.map(LinkState::name) {
        return refuse(format!("it is a member of {master}; give --gateway-interface={master}"), true);
    }
    let bridge = bridge_of(name);
    if bridge.len() > LONGEST_NAME {
        let why = format!(
            "bridge {bridge} would have too long a name for a link; make a bridge that holds it and the node's addresses, and give that"
        );
        return refuse(why, true);
    }
    if host.link(&bridge).is_some() {
        let why = format!("its bridge would be {bridge}, and there is another link of that name; rename one of them");
        return refuse(why, true);
    }
    Ok(())
}

/// The bridge that is the gateway's now, whatever its link lacks at this moment.
fn in_use(host: &Observed) -> Option<String> {
    host.mapped.iter().find(|name| host.bridge(name).is_some()).cloned()
}

/// One address per family of the pods: the one that Kubernetes knows, else the first.
fn ips(
    ranges: ReservedRanges<'_>,
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

fn reaches(ip: IpNetwork, hop: IpAddr) -> std::result::Result<(), String> {
    // a router's link-local address is on every network
    let local = matches!(hop, IpAddr::V6(v6) if v6.is_unicast_link_local());
    if local || ip.contains(hop) {
        return Ok(());
    }
    Err(format!("next hop {hop} is outside its network {ip}; correct --gateway-nexthop"))
}
