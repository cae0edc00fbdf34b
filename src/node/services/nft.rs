//! Services in the host's nftables: what packets to them become before they are routed.
//!
//! ```text
//!  from outside ─▶ prerouting ─▶ who may come in ─▶ etp-local: 169.254.169.3:NODEPORT over mp0, source kept
//!                                              └─▶ else: the service's own address, through the bridge
//!  from the host ─▶ output    ─▶ itp-local: endpoint on this host, or mark ─▶ table 7 ─▶ mp0
//!                            ├─▶ etp-local, no endpoint here: the node port of a node that has one
//!                            └─▶ else: the service's own address, through the bridge
//!  then, to a service that has nobody ─▶ refused
//! ```
//! The chains never change; services are elements of their maps and sets.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use ovnkube_model::{Backend, Family, GatewayMode, Protocol, Subnet};

use super::want::{At, Door, Local, Part, Want};

/// Packets to go over the management port; the rule for it is made from this too.
pub(crate) const MARK: u32 = 0x0017_45ec;

/// Elements with their values, empty in a set, by map or set and key.
pub(crate) type Elements = BTreeMap<(&'static str, String), String>;

/// Each with its type and its name for IPv4 and IPv6. `IP` stands for `ipv4_addr` or `ipv6_addr`.
const SETS: [(&str, &str, [&str; 2]); 12] = [
    (
        "map",
        "IP . inet_proto . inet_service : IP . inet_service",
        ["external-ips-etp-local-v4", "external-ips-etp-local-v6"],
    ),
    ("map", "inet_proto . inet_service : IP . inet_service", ["nodeports-etp-local-v4", "nodeports-etp-local-v6"]),
    ("map", "IP . inet_proto . inet_service : IP . inet_service", ["external-ips-v4", "external-ips-v6"]),
    ("map", "inet_proto . inet_service : IP . inet_service", ["nodeports-v4", "nodeports-v6"]),
    ("set", "IP . inet_proto . inet_service", ["itp-services-to-mark-v4", "itp-services-to-mark-v6"]),
    (
        "map",
        "IP . inet_proto . inet_service : IP . inet_service",
        ["itp-services-to-redirect-v4", "itp-services-to-redirect-v6"],
    ),
    ("set", "IP . inet_proto . inet_service", ["mgmtport-no-snat-services-v4", "mgmtport-no-snat-services-v6"]),
    ("set", "IP . inet_proto . inet_service", ["limited-services-v4", "limited-services-v6"]),
    ("set", "IP . inet_proto . inet_service . IP; flags interval", ["services-sources-v4", "services-sources-v6"]),
    ("set", "inet_proto . inet_service", ["mgmtport-no-snat-nodeports", ""]),
    ("set", "IP . inet_proto . inet_service", ["refused-services-v4", "refused-services-v6"]),
    ("map", "inet_proto . inet_service : IP . inet_service", ["nodeports-elsewhere-v4", "nodeports-elsewhere-v6"]),
];

const ETP_IPS: usize = 0;
const ETP_NODE_PORTS: usize = 1;
const IPS: usize = 2;
const NODE_PORTS: usize = 3;
const ITP_MARK: usize = 4;
const ITP_REDIRECT: usize = 5;
const NO_SNAT_SERVICES: usize = 6;
const LIMITED: usize = 7;
const SOURCES: usize = 8;
const NO_SNAT_NODE_PORTS: usize = 9;
const REFUSED: usize = 10;
const ELSEWHERE: usize = 11;

/// Declarations and chains, the same whatever services there are; of those whose packets can't be
/// told by a node port the rules too.
pub(crate) fn body(want: &Want) -> String {
    let mut text = String::new();
    for (kind, of, names) in SETS {
        for (name, ip) in names.into_iter().zip(["ipv4_addr", "ipv6_addr"]).filter(|(name, _)| !name.is_empty()) {
            let _ = writeln!(text, "\t{kind} {name} {{\n\t\ttype {}\n\t}}", of.replace("IP", ip));
        }
    }
    chain(&mut text, "services", "", &translations(Some(IPS), NODE_PORTS));
    chain(&mut text, "services-etp", "", &translations(Some(ETP_IPS), ETP_NODE_PORTS));
    chain(&mut text, "services-elsewhere", "", &translations(None, ELSEWHERE));
    chain(
        &mut text,
        "services-etp-no-nodeport",
        "",
        &want.parts.iter().flat_map(|part| portless(part)).collect::<Vec<_>>(),
    );
    let both = |rule: &str| ["4", "6"].map(|n| rule.replace("IP", if n == "4" { "ip" } else { "ip6" }).replace('#', n));
    chain(
        &mut text,
        "services-itp",
        "",
        &both("dnat IP to IP daddr . meta l4proto . th dport map @itp-services-to-redirect-v#"),
    );
    let nat = |hook| format!("type nat hook {hook} priority -100; policy accept;");
    let jump = |to: &str| format!("jump {to}");
    let prerouting = ["services-etp", "services-etp-no-nodeport", "services"].map(jump);
    chain(&mut text, "services-prerouting", &nat("prerouting"), &prerouting);
    chain(&mut text, "services-output", &nat("output"), &["services-itp", "services-elsewhere", "services"].map(jump));
    let mark = format!("IP daddr . meta l4proto . th dport @itp-services-to-mark-v# meta mark set {MARK:#x}");
    chain(&mut text, "services-itp-mark", "type route hook output priority mangle; policy accept;", &both(&mark));
    let limit = both(
        "IP daddr . meta l4proto . th dport @limited-services-v# \
         IP daddr . meta l4proto . th dport . IP saddr != @services-sources-v# counter drop",
    );
    for hook in ["prerouting", "output"] {
        let head = format!("type filter hook {hook} priority -110; policy accept;");
        chain(&mut text, &format!("services-sources-{hook}"), &head, &limit);
    }
    let refuse = both("IP daddr . meta l4proto . th dport @refused-services-v# reject");
    for hook in ["output", "forward"] {
        let head = format!("type filter hook {hook} priority 0; policy accept;");
        chain(&mut text, &format!("services-refused-{hook}"), &head, &refuse);
    }
    text
}

/// Rules by the maps of addresses and of node ports.
fn translations(by_ip: Option<usize>, by_port: usize) -> Vec<String> {
    let name = |set: usize, family: usize| SETS.get(set).and_then(|(_, _, names)| names.get(family)).copied();
    let mut rules = Vec::new();
    for (family, (ip, loopback)) in [("ip", "127.0.0.0/8"), ("ip6", "::1")].into_iter().enumerate() {
        let by_ip = by_ip.and_then(|set| name(set, family));
        rules.extend(by_ip.map(|map| format!("dnat {ip} to {ip} daddr . meta l4proto . th dport map @{map}")));
        let own = format!("fib daddr type local {ip} daddr != {loopback}");
        let by_port = name(by_port, family);
        rules.extend(by_port.map(|map| format!("{own} dnat {ip} to meta l4proto . th dport map @{map}")));
    }
    rules
}

fn chain(text: &mut String, name: &str, head: &str, rules: &[String]) {
    let _ = writeln!(text, "\tchain {name} {{");
    for line in [head].into_iter().filter(|head| !head.is_empty()).chain(rules.iter().map(String::as_str)) {
        let _ = writeln!(text, "\t\t{line}");
    }
    text.push_str("\t}\n");
}

/// Of two services that claim the same the first keeps it.
pub(crate) fn elements(want: &Want, mode: GatewayMode, masquerade: &[Subnet]) -> Elements {
    let mut all = Writer { elements: Elements::new(), mode, masquerade };
    for part in &want.parts {
        for door in &part.doors {
            all.door(door);
        }
        for inner in &part.inner {
            let family = Family::of(inner.service.ip);
            let key = by_ip(inner.service.ip, inner.protocol, inner.service.port);
            match inner.host {
                Some(host) => all.add(ITP_REDIRECT, family, key, target(host)),
                None => all.add(ITP_MARK, family, key, String::new()),
            }
        }
        for there in &part.elsewhere {
            let value = target(Backend { ip: there.node, port: there.port });
            all.add(ELSEWHERE, there.family, by_port(there.protocol, there.port), value);
        }
        for (protocol, service) in &part.refused {
            all.add(REFUSED, Family::of(service.ip), by_ip(service.ip, *protocol, service.port), String::new());
        }
    }
    all.elements
}

struct Writer<'a> {
    elements: Elements,
    mode: GatewayMode,
    masquerade: &'a [Subnet],
}

impl Writer<'_> {
    fn add(&mut self, set: usize, family: Family, key: String, value: String) {
        let names = SETS.get(set).map_or([""; 2], |(_, _, names)| *names);
        let name = if family == Family::V6 && !names[1].is_empty() { names[1] } else { names[0] };
        self.elements.entry((name, key)).or_insert(value);
    }

    fn door(&mut self, door: &Door) {
        let family = door.at.family();
        let (key, [maps, etp_maps]) = match door.at {
            At::Node(_) => (by_port(door.protocol, door.port), [NODE_PORTS, ETP_NODE_PORTS]),
            At::Ip(ip) => (by_ip(ip, door.protocol, door.port), [IPS, ETP_IPS]),
        };
        if self.has(maps, family, &key) {
            return;
        }
        self.add(maps, family, key.clone(), target(door.service));
        for source in &door.sources {
            self.add(LIMITED, family, key.clone(), String::new());
            self.add(SOURCES, family, format!("{key} . {source}"), String::new());
        }
        let Some(local) = &door.local else { return };
        if let Some(to) = self.short_cut(local, family) {
            // with shared gateways the bridge keeps node ports' packets away from the host
            if self.mode == GatewayMode::Local || matches!(door.at, At::Ip(_)) {
                self.add(etp_maps, family, key, target(to));
            }
        }
        if let Some(port) = local.node_port {
            self.add(NO_SNAT_NODE_PORTS, family, by_port(door.protocol, port), String::new());
        }
        for endpoint in local.endpoints.iter().filter(|_| local.node_port.is_none()) {
            let key = by_ip(endpoint.ip, door.protocol, endpoint.port);
            self.add(NO_SNAT_SERVICES, family, key, String::new());
        }
    }

    fn has(&self, set: usize, family: Family, key: &str) -> bool {
        let names = SETS.get(set).map_or([""; 2], |(_, _, names)| *names);
        let name = if family == Family::V6 { names[1] } else { names[0] };
        self.elements.contains_key(&(name, key.to_owned()))
    }

    /// An endpoint on the host, or the address that OVN serves on the management port.
    fn short_cut(&self, local: &Local, family: Family) -> Option<Backend> {
        let stand_in = || {
            let range = self.masquerade.iter().find(|range| Family::of_subnet(**range) == family)?;
            Some(Backend { ip: range.nth(3)?, port: local.node_port? })
        };
        local.host.or_else(stand_in)
    }
}

/// Rules of services with local endpoints only and no node port: straight to the endpoints.
fn portless(part: &Part) -> Vec<String> {
    let doors = part.doors.iter().filter_map(|door| match (door.at, &door.local) {
        (At::Ip(ip), Some(local)) if local.node_port.is_none() && local.host.is_none() => Some((ip, door, local)),
        _ => None,
    });
    let rule = |(ip, door, local): (IpAddr, &Door, &Local)| {
        let targets: Vec<String> =
            local.endpoints.iter().enumerate().map(|(n, e)| format!("{n} : {}", target(*e))).collect();
        let family = if ip.is_ipv6() { "ip6" } else { "ip" };
        let matches = format!("{family} daddr {ip} meta l4proto {} th dport {}", door.protocol.ovn(), door.port);
        if targets.is_empty() {
            return format!("{matches} counter drop");
        }
        let choice = format!("numgen random mod {} map {{ {} }}", targets.len(), targets.join(", "));
        format!("{matches} dnat {family} to {choice}")
    };
    doors.map(rule).collect()
}

fn by_port(protocol: Protocol, port: u16) -> String {
    format!("{} . {port}", protocol.ovn())
}

fn by_ip(ip: IpAddr, protocol: Protocol, port: u16) -> String {
    format!("{ip} . {} . {port}", protocol.ovn())
}

fn target(backend: Backend) -> String {
    format!("{} . {}", backend.ip, backend.port)
}

/// Commands that make elements of `have` those of `want`.
pub(crate) fn change(table: &str, have: &Elements, want: &Elements) -> String {
    let differs = |a: &Elements, b: &Elements| -> BTreeSet<(&'static str, String)> {
        a.iter().filter(|(key, value)| b.get(*key) != Some(value)).map(|(key, _)| key.clone()).collect()
    };
    let mut text = String::new();
    let mut lines = |verb: &str, keys: BTreeSet<(&'static str, String)>, of: &Elements| {
        for key in keys {
            let value = of.get(&key).filter(|value| !value.is_empty()).map(|value| format!(" : {value}"));
            let _ = writeln!(text, "{verb} element {table} {} {{ {}{} }}", key.0, key.1, value.unwrap_or_default());
        }
    };
    lines("delete", differs(have, want), have);
    lines("add", differs(want, have), want);
    text
}

/// Where UDP packets to changed elements shall be led: `None` in the value leads nowhere, `None` in
/// the key stands for all of the host's addresses.
pub(crate) type Moved = BTreeMap<(Option<IpAddr>, bool, u16), Option<SocketAddr>>;

/// The UDP addresses and ports whose translation differs.
pub(crate) fn moved(have: &Elements, want: &Elements) -> Moved {
    let mut moved = Moved::new();
    let changed = have.iter().chain(want).filter(|(key, _)| have.get(*key) != want.get(*key));
    for (set, key) in changed.map(|(key, _)| key) {
        let to = want.get(&(*set, key.clone())).and_then(|value| address(value));
        let mut words = key.split(" . ");
        let ip = words.clone().next().and_then(|word| word.parse::<IpAddr>().ok());
        if ip.is_some() {
            words.next();
        }
        let (protocol, port) = (words.next(), words.next().and_then(|port| port.parse().ok()));
        if let (Some("udp"), Some(port), true) = (protocol, port, is_translation(set)) {
            moved.insert((ip, set.ends_with("v6"), port), to);
        }
    }
    moved
}

fn is_translation(set: &str) -> bool {
    [IPS, NODE_PORTS, ELSEWHERE].iter().any(|n| SETS.get(*n).is_some_and(|(_, _, names)| names.contains(&set)))
}

fn address(value: &str) -> Option<SocketAddr> {
    let (ip, port) = value.split_once(" . ")?;
    Some(SocketAddr::new(ip.parse().ok()?, port.parse().ok()?))
}
