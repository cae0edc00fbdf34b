//! Reads test cases, settings and observed state, from text; and simulates a host.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::IpAddr;
use std::str::FromStr;

use ipnetwork::IpNetwork;
use ovnkube_model::{GatewayMode, Mac, Name, Subnet};
use ovnkube_node_plan::change::{HostChange, What};
use ovnkube_node_plan::gateway::{GatewaySettings, ReservedRanges};
use ovnkube_node_plan::host::{DefaultRoute, Link, MAIN, Packets, Route, RouteSnapshot, Rule, Sysctl};
use ovnkube_node_plan::management_port::{Facts, SYSCTLS, SYSCTLS_V6};
use ovnkube_node_plan::observed::{BridgeState, LinkState, Observed};
use ovnkube_node_plan::other_clusters;
use serde::Deserialize;

/// A case, ready to be planned.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) cluster: Vec<Subnet>,
    pub(crate) masquerade: Vec<Subnet>,
    pub(crate) services: Vec<Subnet>,
    pub(crate) subnets: Vec<Subnet>,
    pub(crate) internal: Vec<IpAddr>,
    /// Prefixes of other clusters.
    pub(crate) others: Option<BTreeMap<Subnet, Name>>,
    pub(crate) needed: BTreeMap<IpAddr, Name>,
    pub(crate) mtu: u32,
    pub(crate) cleanup: bool,
    pub(crate) gateway: Option<GatewaySettings>,
    pub(crate) host: Observed,
    pub(crate) changes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    /// `shared` or `local`; missing: no gateway.
    mode: Option<String>,
    interface: Option<String>,
    /// The node is cleaned up.
    #[serde(default)]
    cleanup: bool,
    cluster: Vec<String>,
    #[serde(default)]
    subnets: Vec<String>,
    masquerade: Vec<String>,
    services: Vec<String>,
    /// Prefixes of other clusters; missing: they are not known.
    others: Option<Vec<String>>,
    /// Addresses that the node depends on, with what they are.
    #[serde(default)]
    needed: BTreeMap<String, String>,
    #[serde(default)]
    links: Vec<LinkText>,
    /// `PRIORITY MARK TABLE`, with ` v6` for IPv6; `others`: both rules for routes to other clusters.
    #[serde(default)]
    rules: Vec<String>,
    #[serde(default)]
    bridges: Vec<BridgeText>,
    #[serde(default)]
    mapped: Vec<String>,
    #[serde(default)]
    tables: BTreeMap<String, String>,
    changes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkText {
    name: String,
    mac: Option<String>,
    #[serde(default)]
    mtu: u32,
    #[serde(default)]
    down: bool,
    #[serde(default)]
    addresses: Vec<String>,
    /// `TO [via GATEWAY] [src SOURCE] [mtu BYTES] [table N]`
    #[serde(default)]
    routes: Vec<String>,
    /// `IP MAC`; an IP alone has the MAC address that is derived from it.
    #[serde(default)]
    neighbours: Vec<String>,
    /// All sysctls have the values that the agent wants.
    #[serde(default)]
    tuned: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BridgeText {
    name: String,
    #[serde(default)]
    physical: Vec<String>,
    made_for: Option<String>,
}

type Parsed<T> = Result<T, String>;

fn parse<T: FromStr<Err: Display>>(text: &str) -> Parsed<T> {
    text.parse().map_err(|e| format!("{text:?}: {e}"))
}

fn all<T: FromStr<Err: Display>>(texts: &[String]) -> Parsed<Vec<T>> {
    texts.iter().map(|text| parse(text)).collect()
}

impl Case {
    pub(crate) fn parse(text: &str) -> Parsed<Self> {
        let text: Text = serde_saphyr::from_str(text).map_err(|e| e.to_string())?;
        let services: Vec<Subnet> = all(&text.services)?;
        let gateway = text.mode.as_deref().map(|mode| settings(mode, text.interface.clone(), &services)).transpose()?;
        let mut host = Observed { mapped: text.mapped, ..Observed::default() };
        for (n, link) in text.links.iter().enumerate() {
            host.links.push(link.state(n as u32 + 1)?);
        }
        for state in &host.links {
            let defaults = state.routes_in(MAIN).filter(|route| route.destination.prefix() == 0);
            let route =
                |route: Route| Some(DefaultRoute { metric: 0, gateway: route.gateway?, link: state.link.index });
            host.default_routes.extend(defaults.filter_map(route));
        }
        for text in &text.rules {
            match text.strip_prefix("others") {
                Some(family) => host.rules.extend(other_clusters::RULES.map(|rule| (family == " v6", rule))),
                None => host.rules.push(rule(text)?),
            }
        }
        let bridge = |text: BridgeText| BridgeState {
            name: text.name,
            interfaces: text.physical.clone(),
            physical: text.physical,
            uplink: None,
            journalled: text.made_for.is_some(),
            made_for: text.made_for,
        };
        host.bridges = text.bridges.into_iter().map(bridge).collect();
        for (name, shown) in text.tables {
            // leaked for the duration of the test
            host.tables.push((Box::leak(name.into_boxed_str()), shown));
        }
        Ok(Self {
            cluster: all(&text.cluster)?,
            masquerade: all(&text.masquerade)?,
            services,
            subnets: all(&text.subnets)?,
            internal: Vec::new(),
            others: text
                .others
                .map(|others| all(&others))
                .transpose()?
                .map(|all| all.into_iter().map(|prefix| (prefix, "az2".into())).collect()),
            needed: text
                .needed
                .iter()
                .map(|(ip, what)| Ok((parse(ip)?, what.as_str().into())))
                .collect::<Parsed<_>>()?,
            mtu: 1400,
            cleanup: text.cleanup,
            gateway,
            host,
            changes: text.changes,
        })
    }

    pub(crate) fn ranges(&self) -> ReservedRanges<'_> {
        ReservedRanges { cluster: &self.cluster, masquerade: &self.masquerade }
    }

    pub(crate) fn management(&self) -> Facts<'_> {
        Facts {
            subnets: &self.subnets,
            cluster: &self.cluster,
            mac: None,
            mtu: self.mtu,
            route_mtu: None,
            checksums_in_software: false,
        }
    }
}

impl LinkText {
    fn state(&self, index: u32) -> Parsed<LinkState> {
        let mac = self.mac.as_ref().map(|mac| parse::<Mac>(mac)).transpose()?.map(|mac| mac.0);
        let link = Link { index, name: self.name.clone(), mac, mtu: self.mtu, up: !self.down, ..Link::default() };
        let mut state = LinkState { link, addresses: all::<IpNetwork>(&self.addresses)?, ..LinkState::default() };
        for text in &self.routes {
            let (table, route) = route(text)?;
            state.routes.push((table, route));
            state.tables.insert(table);
            let addresses = [Some(route.destination.ip()), route.gateway, route.source].into_iter().flatten().collect();
            state.snapshots.push(RouteSnapshot { text: route.to_string(), addresses, message: Vec::new() });
        }
        for text in &self.neighbours {
            let (ip, mac) = text.split_once(' ').map_or((text.as_str(), None), |(ip, mac)| (ip, Some(mac)));
            let ip: IpAddr = parse(ip)?;
            state.neighbours.push((ip, mac.map(parse::<Mac>).transpose()?.unwrap_or_else(|| Mac::of(ip)).0));
        }
        if self.tuned {
            let wanted = SYSCTLS.into_iter().chain(SYSCTLS_V6);
            state.sysctls = wanted.map(|(sysctl, value)| (sysctl, value.to_owned())).collect();
            state.sysctls.insert(Sysctl::v4("forwarding"), "1".to_owned());
            state.forwards_ipv6 = true;
        }
        Ok(state)
    }
}

fn route(text: &str) -> Parsed<(u8, Route)> {
    let mut words = text.split(' ');
    let to = words.next().unwrap_or_default();
    let any = |gateway: &str| if gateway.contains(':') { "::/0" } else { "0.0.0.0/0" };
    let mut route = Route {
        destination: if to == "default" { parse(any(text))? } else { parse(to)? },
        gateway: None,
        source: None,
        mtu: None,
    };
    let mut table = MAIN;
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{text:?}: {word} has no value"))?;
        match word {
            "via" => route.gateway = Some(parse(value)?),
            "src" => route.source = Some(parse(value)?),
            "mtu" => route.mtu = Some(parse(value)?),
            "table" => table = parse(value)?,
            _ => return Err(format!("{text:?}: what is {word}?")),
        }
    }
    Ok((table, route))
}

fn rule(text: &str) -> Parsed<(bool, Rule)> {
    let words: Vec<&str> = text.split(' ').collect();
    let [priority, mark, table, family @ ..] = words.as_slice() else { return Err(format!("{text:?} is no rule")) };
    let mark = u32::from_str_radix(mark.trim_start_matches("0x"), 16).map_err(|e| format!("{text:?}: {e}"))?;
    Ok((family == ["v6"], Rule { priority: parse(priority)?, packets: Packets::Marked(mark), table: parse(table)? }))
}

fn settings(mode: &str, interface: Option<String>, services: &[Subnet]) -> Parsed<GatewaySettings> {
    Ok(GatewaySettings {
        mode: match mode {
            "shared" => GatewayMode::Shared,
            "local" => GatewayMode::Local,
            _ => return Err(format!("{mode:?} is no gateway mode")),
        },
        interface,
        node_port: true,
        conntrack_zone: 64000,
        check_mtu: true,
        encap_port: 6081,
        service_cidrs: services.to_vec(),
        join_subnets: vec![parse("100.64.0.0/16")?],
        ..GatewaySettings::default()
    })
}

/// Applies a change to the observed host.
pub(crate) fn carry_out(host: &mut Observed, change: &HostChange) {
    let link = &change.link;
    match &change.what {
        What::AddRule { ipv6, rule } => host.rules.push((*ipv6, *rule)),
        What::RemoveRule { ipv6, rule } => host.rules.retain(|have| have != &(*ipv6, *rule)),
        What::DeleteTable(table) | What::ChangeTable { table, .. } => host.tables.retain(|(name, _)| name != table),
        What::Unmap | What::RemoveFlows => host.mapped.retain(|bridge| bridge != link),
        What::MoveBack => host.bridges.retain(|bridge| bridge.made_for.as_ref() != Some(link)),
        what => {
            let state = host.links.iter_mut().find(|state| state.name() == link);
            on_link(state.unwrap_or_else(|| panic!("{change}: no such link")), what);
        }
    }
}

fn on_link(state: &mut LinkState, what: &What) {
    match what {
        What::SetMac(mac) => state.link.mac = Some(*mac),
        What::SetMtu(mtu) => state.link.mtu = *mtu,
        What::SetUp => state.link.up = true,
        What::SetSysctl(name, value) => drop(state.sysctls.insert(*name, (*value).to_owned())),
        What::ForwardIpv6 => state.forwards_ipv6 = true,
        What::ChecksumsInSoftware => state.offloads_checksums = false,
        What::AddAddress { address, .. } => state.addresses.push(*address),
        What::RemoveAddress(address) => state.addresses.retain(|have| have != address),
        What::AddRoute { table, route } => {
            state.routes.retain(|(of, have)| (of, have.destination) != (table, route.destination));
            state.routes.push((*table, *route));
        }
        What::RemoveRoute { table, route } => state.routes.retain(|have| have != &(*table, *route)),
        What::RemoveSnapshot(route) => {
            state.snapshots.retain(|have| have != route);
            state.routes.retain(|(_, have)| have.to_string() != route.text);
        }
        What::RemoveRoutesIn(table) => state.routes.retain(|(of, _)| of != table),
        What::AddNeighbour(ip, mac) => state.neighbours.push((*ip, *mac)),
        What::RemoveNeighbour(ip) => state.neighbours.retain(|(have, _)| have != ip),
        What::ResetForwarding => state.sysctls.clear(),
        other => panic!("{other} is about no link"),
    }
}
