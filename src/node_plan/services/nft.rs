//! Services in the host's nftables: how packets to them are translated before they are routed.
//!
//! ```text
//!  from outside ─▶ prerouting ─▶ allowed clients ─▶ etp-local: 169.254.169.3:NODEPORT over mp0, local gateways: source kept
//!                                              └─▶ else: the service's own address, through the bridge
//!  from the host ─▶ output    ─▶ itp-local: endpoint on this host, or mark ─▶ table 7 ─▶ mp0
//!                            ├─▶ etp-local, no endpoint here: the node port of a node that has one
//!                            └─▶ else: the service's own address, through the bridge
//!  then, to a service without endpoints ─▶ rejected
//! ```
//! The chains do not depend on services, which are elements of maps and sets.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use ovnkube_model::{Backend, Family, GatewayMode, Masquerade, Protocol, Subnet};

use super::{At, Frontend, Local, Want};

/// Mark of packets that go over the management port; the routing rule uses it too.
pub const MARK: u32 = 0x0017_45ec;

/// Elements by map or set and key, with their values; the value is empty in a set.
pub type Elements = BTreeMap<(&'static str, String), String>;

/// Maps and sets: kind, type, and names for IPv4 and IPv6. `IP` stands for `ipv4_addr` or `ipv6_addr`, after
/// `typeof` for `ip` or `ip6`, and `N` for [`SLOTS`].
const SETS: [(&str, &str, [&str; 2]); 15] = [
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
    (
        "map",
        "typeof IP daddr . meta l4proto . th dport . numgen random mod N : IP daddr . th dport",
        ["external-ips-no-nodeport-v4", "external-ips-no-nodeport-v6"],
    ),
    ("set", "IP . inet_proto . inet_service", ["external-ips-nobody-v4", "external-ips-nobody-v6"]),
    // looked up by a hash of the source, but not declared so: `nft` 1.0.6 crashes when it lists such a map
    (
        "map",
        "typeof IP daddr . meta l4proto . th dport . numgen random mod N : IP daddr . th dport",
        ["external-ips-affinity-v4", "external-ips-affinity-v6"],
    ),
];

/// Number of slots that endpoints share for connections that go straight to them: enough for nearly equal shares, and
/// more than the 110 pods that a kubelet runs by default. Of more endpoints only the first ones serve.
const SLOTS: usize = 128;

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
const NO_NODE_PORT: usize = 12;
const NOBODY: usize = 13;
const AFFINITY: usize = 14;

/// Declarations of the maps and sets, and the chains.
pub fn body() -> String {
    let mut text = String::new();
    for (kind, of, names) in SETS {
        for (name, family) in names.into_iter().zip([("ipv4_addr", "ip"), ("ipv6_addr", "ip6")]) {
            let of = match of.strip_prefix("typeof ") {
                Some(of) => format!("typeof {}", of.replace("IP", family.1).replace('N', &SLOTS.to_string())),
                None => format!("type {}", of.replace("IP", family.0)),
            };
            if !name.is_empty() {
                let _ = writeln!(text, "\t{kind} {name} {{\n\t\t{of}\n\t}}");
            }
        }
    }
    chain(&mut text, "services", "", &translations(Some(IPS), NODE_PORTS));
    chain(&mut text, "services-etp", "", &translations(Some(ETP_IPS), ETP_NODE_PORTS));
    chain(&mut text, "services-elsewhere", "", &translations(None, ELSEWHERE));
    let both = |rule: &str| ["4", "6"].map(|n| rule.replace("IP", if n == "4" { "ip" } else { "ip6" }).replace('#', n));
    let straight = format!(
        "dnat IP to IP daddr . meta l4proto . th dport . numgen random mod {SLOTS} map @external-ips-no-nodeport-v#"
    );
    // the fixed seed keeps the choice across restarts
    let by_source = format!(
        "dnat IP to IP daddr . meta l4proto . th dport . jhash IP saddr mod {SLOTS} seed 0x1 map @external-ips-affinity-v#"
    );
    let nobody = "IP daddr . meta l4proto . th dport @external-ips-nobody-v# counter drop";
    chain(&mut text, "services-etp-no-nodeport", "", &[both(nobody), both(&by_source), both(&straight)].concat());
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
    // before the routing decision: the packet would be routed back where it came from, so the host would send
    // an ICMP redirect, and ICMP messages to one sender are rate-limited
    for (hook, priority) in [("output", 0), ("prerouting", -90)] {
        let head = format!("type filter hook {hook} priority {priority}; policy accept;");
        chain(&mut text, &format!("services-refused-{hook}"), &head, &refuse);
    }
    text
}

/// Translation rules that use the maps of addresses and of node ports.
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

/// The elements of all services. If two services claim the same address and port, the first gets it.
pub fn elements(want: &Want, mode: GatewayMode, masquerade: &[Subnet]) -> Elements {
    let mut all = Writer { elements: Elements::new(), mode, masquerade };
    for part in &want.parts {
        for frontend in &part.frontends {
            all.frontend(frontend);
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

    fn frontend(&mut self, frontend: &Frontend) {
        let family = frontend.at.family();
        let (key, [maps, etp_maps]) = match frontend.at {
            At::Node(_) => (by_port(frontend.protocol, frontend.port), [NODE_PORTS, ETP_NODE_PORTS]),
            At::Ip(ip) => (by_ip(ip, frontend.protocol, frontend.port), [IPS, ETP_IPS]),
        };
        if self.has(maps, family, &key) {
            return;
        }
        self.add(maps, family, key.clone(), target(frontend.service));
        for source in &frontend.sources {
            self.add(LIMITED, family, key.clone(), String::new());
            self.add(SOURCES, family, format!("{key} . {source}"), String::new());
        }
        let Some(local) = &frontend.local else { return };
        if local.node_port.is_none() && local.host.is_none() {
            self.straight(frontend, &key, local);
        }
        if let Some(to) = self.short_cut(local, family) {
            self.add(etp_maps, family, key, target(to));
        }
        // with shared gateways pods reply to others through the gateway router, which must have seen the request:
        // packets from the bridge go there, see `flows`; those from other links get the management port's address
        if self.mode == GatewayMode::Shared {
            return;
        }
        if let Some(port) = local.node_port {
            self.add(NO_SNAT_NODE_PORTS, family, by_port(frontend.protocol, port), String::new());
        }
        for endpoint in local.endpoints.iter().filter(|_| local.node_port.is_none()) {
            let key = by_ip(endpoint.ip, frontend.protocol, endpoint.port);
            self.add(NO_SNAT_SERVICES, family, key, String::new());
        }
    }

    /// Translates straight to endpoints: without a node port OVN has no address that leads only to this node's.
    fn straight(&mut self, frontend: &Frontend, key: &str, local: &Local) {
        let Local { endpoints, affinity, .. } = local;
        let family = frontend.at.family();
        if !matches!(frontend.at, At::Ip(_)) {
            return;
        }
        if endpoints.is_empty() {
            self.add(NOBODY, family, key.to_owned(), String::new());
        }
        for (slot, endpoint) in (0..SLOTS).zip(endpoints.iter().cycle()) {
            let map = if *affinity { AFFINITY } else { NO_NODE_PORT };
            self.add(map, family, format!("{key} . {slot}"), target(*endpoint));
        }
    }

    fn has(&self, set: usize, family: Family, key: &str) -> bool {
        let names = SETS.get(set).map_or([""; 2], |(_, _, names)| *names);
        let name = if family == Family::V6 { names[1] } else { names[0] };
        self.elements.contains_key(&(name, key.to_owned()))
    }

    /// Where packets for this node's endpoints go: an endpoint on the host, or OVN's address on the management port.
    fn short_cut(&self, local: &Local, family: Family) -> Option<Backend> {
        let local_masquerade_ip =
            || Some(Backend { ip: Masquerade::find(self.masquerade, family)?.local, port: local.node_port? });
        local.host.or_else(local_masquerade_ip)
    }
}

/// The addresses where OVN serves the host's packets to node ports with `externalTrafficPolicy: Local`.
pub fn local_masquerade_ips(masquerade: &[Subnet]) -> impl Iterator<Item = IpAddr> {
    masquerade.iter().filter_map(|range| Some(Masquerade::of(*range)?.local))
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

/// Commands that change the elements of `have` to those of `want`.
pub fn change(table: &str, have: &Elements, want: &Elements) -> String {
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

/// Destination of UDP packets: address, whether it is IPv6, port. `None` stands for all of the host's addresses.
pub type UdpFrontend = (Option<IpAddr>, bool, u16);

/// Where packets to UDP frontends may be translated to. Empty: they are not translated.
pub type Moved = BTreeMap<UdpFrontend, BTreeSet<SocketAddr>>;

/// The UDP frontends whose translation differs.
pub fn turned(have: &Elements, want: &Elements) -> BTreeSet<UdpFrontend> {
    let differs = |elements: &Elements, other: &Elements| -> BTreeSet<_> {
        elements
            .iter()
            .filter(|(key, value)| other.get(*key) != Some(value))
            .filter_map(|(key, _)| frontend(key))
            .collect()
    };
    differs(have, want).union(&differs(want, have)).copied().collect()
}

/// Where `want` translates the frontends to.
pub fn led(frontends: &BTreeSet<UdpFrontend>, want: &Elements) -> Moved {
    let mut moved: Moved = frontends.iter().map(|frontend| (*frontend, BTreeSet::new())).collect();
    if moved.is_empty() {
        return moved;
    }
    for (key, value) in want {
        // packets from outside may go elsewhere than those of the host itself
        if let Some(to) = frontend(key).and_then(|frontend| moved.get_mut(&frontend)) {
            to.extend(address(value));
        }
    }
    moved
}

/// The UDP frontend that an element translates, if it does.
fn frontend((set, key): &(&'static str, String)) -> Option<UdpFrontend> {
    let translations = [IPS, NODE_PORTS, ELSEWHERE, ETP_IPS, ETP_NODE_PORTS, ITP_REDIRECT, NO_NODE_PORT, AFFINITY];
    translations.iter().find(|n| SETS.get(**n).is_some_and(|(_, _, names)| names.contains(set)))?;
    let (ip, rest) = match key.split_once(" . ").map(|(ip, rest)| (ip.parse().ok(), rest)) {
        Some((Some(ip), rest)) => (Some(ip), rest),
        _ => (None, key.as_str()),
    };
    let (protocol, rest) = rest.split_once(" . ")?;
    let port = rest.split(" . ").next()?.parse().ok()?;
    (protocol == "udp").then_some((ip, set.ends_with("v6"), port))
}

fn address(value: &str) -> Option<SocketAddr> {
    let (ip, port) = value.split_once(" . ")?;
    Some(SocketAddr::new(ip.parse().ok()?, port.parse().ok()?))
}
