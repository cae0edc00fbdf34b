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

use super::element::{Also, Element, Key, SLOTS, Set, declarations};
use super::{At, Frontend, Local, Want};

/// Mark of packets that go over the management port; the routing rule uses it too.
pub const MARK: u32 = 0x0017_45ec;

/// Elements with their values; `None` in a set.
pub type Elements = BTreeMap<Element, Option<SocketAddr>>;

/// Declarations of the maps and sets, and the chains.
pub fn body() -> String {
    let mut text = declarations();
    chain(&mut text, "services", "", &translations(Some(Set::Ips), Set::NodePorts));
    chain(&mut text, "services-etp", "", &translations(Some(Set::EtpIps), Set::EtpNodePorts));
    chain(&mut text, "services-elsewhere", "", &translations(None, Set::Elsewhere));
    let straight = both(|ip, family| {
        let map = Set::NoNodePort.name(family);
        format!("dnat {ip} to {ip} daddr . meta l4proto . th dport . numgen random mod {SLOTS} map @{map}")
    });
    // the fixed seed keeps the choice across restarts
    let by_source = both(|ip, family| {
        let map = Set::Affinity.name(family);
        format!("dnat {ip} to {ip} daddr . meta l4proto . th dport . jhash {ip} saddr mod {SLOTS} seed 0x1 map @{map}")
    });
    let nobody =
        both(|ip, family| format!("{ip} daddr . meta l4proto . th dport @{} counter drop", Set::Nobody.name(family)));
    chain(&mut text, "services-etp-no-nodeport", "", &[nobody, by_source, straight].concat());
    let redirect = both(|ip, family| {
        format!("dnat {ip} to {ip} daddr . meta l4proto . th dport map @{}", Set::ItpRedirect.name(family))
    });
    chain(&mut text, "services-itp", "", &redirect);
    let nat = |hook| format!("type nat hook {hook} priority -100; policy accept;");
    let jump = |to: &str| format!("jump {to}");
    let prerouting = ["services-etp", "services-etp-no-nodeport", "services"].map(jump);
    chain(&mut text, "services-prerouting", &nat("prerouting"), &prerouting);
    chain(&mut text, "services-output", &nat("output"), &["services-itp", "services-elsewhere", "services"].map(jump));
    let mark = both(|ip, family| {
        let set = Set::ItpMark.name(family);
        format!("{ip} daddr . meta l4proto . th dport @{set} meta mark set {MARK:#x}")
    });
    chain(&mut text, "services-itp-mark", "type route hook output priority mangle; policy accept;", &mark);
    let limit = both(|ip, family| {
        let [limited, sources] = [Set::Limited, Set::Sources].map(|set| set.name(family));
        // for a set with ranges, `nft` 1.0.6 changes the byte order of `meta l4proto`, which kernel 6.12.117 refuses
        let protocol = if family == Family::V4 { "ip protocol" } else { "ip6 nexthdr" };
        format!(
            "{ip} daddr . meta l4proto . th dport @{limited} \
             {ip} daddr . {protocol} . th dport . {ip} saddr != @{sources} counter drop"
        )
    });
    for hook in ["prerouting", "output"] {
        let head = format!("type filter hook {hook} priority -110; policy accept;");
        chain(&mut text, &format!("services-sources-{hook}"), &head, &limit);
    }
    let refuse =
        both(|ip, family| format!("{ip} daddr . meta l4proto . th dport @{} reject", Set::Refused.name(family)));
    // before the routing decision: the packet would be routed back where it came from, so the host would send
    // an ICMP redirect, and ICMP messages to one sender are rate-limited
    for (hook, priority) in [("output", 0), ("prerouting", -90)] {
        let head = format!("type filter hook {hook} priority {priority}; policy accept;");
        chain(&mut text, &format!("services-refused-{hook}"), &head, &refuse);
    }
    text
}

/// The rule for each family, with nftables' word for it.
fn both(rule: impl Fn(&str, Family) -> String) -> [String; 2] {
    [rule("ip", Family::V4), rule("ip6", Family::V6)]
}

/// Translation rules that use the maps of addresses and of node ports.
fn translations(by_ip: Option<Set>, by_port: Set) -> Vec<String> {
    let mut rules = Vec::new();
    for (family, ip, loopback) in [(Family::V4, "ip", "127.0.0.0/8"), (Family::V6, "ip6", "::1")] {
        let by_ip = by_ip.map(|set| set.name(family));
        rules.extend(by_ip.map(|map| format!("dnat {ip} to {ip} daddr . meta l4proto . th dport map @{map}")));
        let own = format!("fib daddr type local {ip} daddr != {loopback}");
        rules.push(format!("{own} dnat {ip} to meta l4proto . th dport map @{}", by_port.name(family)));
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
            let key = Key::of_ip(inner.service.ip, inner.protocol, inner.service.port);
            match inner.host {
                Some(host) => all.add(Set::ItpRedirect, family, key, Some(target(host))),
                None => all.add(Set::ItpMark, family, key, None),
            }
        }
        for there in &part.elsewhere {
            let value = SocketAddr::new(there.node, there.port);
            all.add(Set::Elsewhere, there.family, Key::of_port(there.protocol, there.port), Some(value));
        }
        for (protocol, service) in &part.refused {
            all.add(Set::Refused, Family::of(service.ip), Key::of_ip(service.ip, *protocol, service.port), None);
        }
    }
    all.elements.extend(want.databases.elements());
    all.elements
}

struct Writer<'a> {
    elements: Elements,
    mode: GatewayMode,
    masquerade: &'a [Subnet],
}

impl Writer<'_> {
    fn add(&mut self, set: Set, family: Family, key: Key, value: Option<SocketAddr>) {
        self.elements.entry(Element::new(set, family, key)).or_insert(value);
    }

    fn frontend(&mut self, frontend: &Frontend) {
        let family = frontend.at.family();
        let (key, [maps, etp_maps]) = match frontend.at {
            At::Node(_) => (Key::of_port(frontend.protocol, frontend.port), [Set::NodePorts, Set::EtpNodePorts]),
            At::Ip(ip) => (Key::of_ip(ip, frontend.protocol, frontend.port), [Set::Ips, Set::EtpIps]),
        };
        if self.elements.contains_key(&Element::new(maps, family, key)) {
            return;
        }
        self.add(maps, family, key, Some(target(frontend.service)));
        for source in &frontend.sources {
            self.add(Set::Limited, family, key, None);
            self.add(Set::Sources, family, key.and(Also::Source(*source)), None);
        }
        let Some(local) = &frontend.local else { return };
        if local.node_port.is_none() && local.host.is_none() {
            self.straight(frontend, key, local);
        }
        if let Some(to) = self.short_cut(local, family) {
            self.add(etp_maps, family, key, Some(target(to)));
        }
        // with shared gateways pods reply to others through the gateway router, which must have seen the request:
        // packets from the bridge go there, see `flows`; those from other links get the management port's address
        if self.mode == GatewayMode::Shared {
            return;
        }
        if let Some(port) = local.node_port {
            self.add(Set::NoSnatNodePorts, family, Key::of_port(frontend.protocol, port), None);
        }
        for endpoint in local.endpoints.iter().filter(|_| local.node_port.is_none()) {
            let key = Key::of_ip(endpoint.ip, frontend.protocol, endpoint.port);
            self.add(Set::NoSnatServices, family, key, None);
        }
    }

    /// Translates straight to endpoints: without a node port OVN has no address that leads only to this node's.
    fn straight(&mut self, frontend: &Frontend, key: Key, local: &Local) {
        let Local { endpoints, affinity, .. } = local;
        let family = frontend.at.family();
        if !matches!(frontend.at, At::Ip(_)) {
            return;
        }
        if endpoints.is_empty() {
            self.add(Set::Nobody, family, key, None);
        }
        for (slot, endpoint) in (0..SLOTS).zip(endpoints.iter().cycle()) {
            let map = if *affinity { Set::Affinity } else { Set::NoNodePort };
            self.add(map, family, key.and(Also::Slot(slot)), Some(target(*endpoint)));
        }
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

fn target(backend: Backend) -> SocketAddr {
    SocketAddr::new(backend.ip, backend.port)
}

/// Commands that change the elements of `have` to those of `want`.
pub fn change(table: &str, have: &Elements, want: &Elements) -> String {
    let differing = |verb: &str, of: &Elements, other: &Elements| -> String {
        let differs = of.iter().filter(|(element, value)| other.get(element) != Some(value));
        let line = |(element, value): (&Element, &Option<SocketAddr>)| {
            format!("{verb} element {table} {} {{ {} }}\n", element.set_name(), element.with(*value))
        };
        differs.map(line).collect()
    };
    differing("delete", have, want) + &differing("add", want, have)
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
            .filter(|(element, value)| other.get(element) != Some(value))
            .filter_map(|(element, _)| frontend(element))
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
    for (element, value) in want {
        // packets from outside may go elsewhere than those of the host itself
        if let Some(to) = frontend(element).and_then(|frontend| moved.get_mut(&frontend)) {
            to.extend(value);
        }
    }
    moved
}

/// The UDP frontend that an element translates, if it does.
fn frontend(element: &Element) -> Option<UdpFrontend> {
    let Key { ip, protocol, port, .. } = element.key();
    let is_udp = protocol == Protocol::Udp && element.set().translates();
    is_udp.then_some((ip, element.family() == Family::V6, port))
}
