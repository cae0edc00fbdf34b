//! Evaluates the ACLs of a northbound database as OVN does, but without northd: for states that are too short-lived to
//! trace.
//!
//! It supports only the part of OVN's expression language that policies use. A match that it cannot parse, or one that refers
//! to a missing set or group, fails the test: OVN would ignore such an ACL.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use ovnkube_ovn::Uuid;
use ovnkube_ovn::nb::{acl, address_set, logical_switch as ls, logical_switch_port as lsp, port_group};
use ovnkube_ovsdb::Cache;

/// The last tier of OVN.
const LAST_TIER: i64 = 3;

/// A port of a switch and one of its addresses.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub port: Uuid,
    pub switch: Uuid,
    pub ip: IpAddr,
}

/// The first packet of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    pub from: Place,
    pub to: Place,
    /// In OVN's spelling: `tcp`.
    pub protocol: &'a str,
    pub port: u16,
}

/// Parsed conditions by text: the same ones occur again and again.
#[derive(Default)]
pub struct Parsed(HashMap<String, Arc<Expr>>);

/// All ACLs of a database at one moment.
pub struct Acls {
    by_switch: BTreeMap<Uuid, Vec<Acl>>,
    sets: BTreeMap<String, BTreeSet<String>>,
    groups: BTreeMap<String, BTreeSet<Uuid>>,
}

struct Acl {
    tier: i64,
    priority: i64,
    egress: bool,
    action: String,
    matches: Arc<Expr>,
}

/// A packet, with the addresses of its ends as they stand in address sets.
struct Addressed<'a> {
    packet: &'a Packet<'a>,
    from: String,
    to: String,
}

impl Acls {
    pub fn of(cache: &Cache, parsed: &mut Parsed) -> Self {
        let mut by_switch: BTreeMap<Uuid, Vec<Acl>> = BTreeMap::new();
        let mut add = |switch: Uuid, uuid: Uuid| {
            let row = cache.get(acl::TABLE, uuid).unwrap();
            let text = row.str(acl::MATCH).to_owned();
            let matches = Arc::clone(parsed.0.entry(text).or_insert_with_key(|text| Arc::new(parse(text))));
            by_switch.entry(switch).or_default().push(Acl {
                tier: row.int(acl::TIER),
                priority: row.int(acl::PRIORITY),
                egress: row.str(acl::DIRECTION) == "from-lport",
                action: row.str(acl::ACTION).to_owned(),
                matches,
            });
        };
        for (switch, row) in cache.iter(ls::TABLE) {
            row.uuids(ls::ACLS).for_each(|uuid| add(switch, uuid));
        }
        for (_, row) in cache.iter(port_group::TABLE) {
            // a group's ACLs apply to every switch that has one of its ports
            for switch in
                row.uuids(port_group::PORTS).filter_map(|port| switch_of(cache, port)).collect::<BTreeSet<_>>()
            {
                row.uuids(port_group::ACLS).for_each(|uuid| add(switch, uuid));
            }
        }
        let set = |row: &ovnkube_ovn::Row| row.strs(address_set::ADDRESSES).map(str::to_owned).collect();
        let sets = cache.iter(address_set::TABLE).map(|(_, row)| (row.str(address_set::NAME).to_owned(), set(row)));
        let group = |row: &ovnkube_ovn::Row| row.uuids(port_group::PORTS).collect();
        let groups = cache.iter(port_group::TABLE).map(|(_, row)| (row.str(port_group::NAME).to_owned(), group(row)));
        let (sets, groups) = (sets.collect(), groups.collect());
        Self { by_switch, sets, groups }
    }

    /// Whether the connection can be made.
    pub fn allow(&self, packet: &Packet<'_>) -> bool {
        let [from, to] = [packet.from, packet.to].map(|end| end.ip.to_string());
        let addressed = Addressed { packet, from, to };
        self.judge(&addressed, true, packet.from.switch) && self.judge(&addressed, false, packet.to.switch)
    }

    fn judge(&self, packet: &Addressed<'_>, egress: bool, switch: Uuid) -> bool {
        let mine = || self.by_switch.get(&switch).into_iter().flatten().filter(|acl| acl.egress == egress);
        for tier in 0..=LAST_TIER {
            let matching = mine().filter(|acl| acl.tier == tier && self.holds(&acl.matches, packet));
            let Some(first) = matching.max_by_key(|acl| acl.priority) else { continue };
            match first.action.as_str() {
                "allow" | "allow-related" | "allow-stateless" => return true,
                "drop" => return false,
                "pass" => {}
                other => panic!("an ACL with action {other:?}"),
            }
        }
        true
    }

    fn holds(&self, expr: &Expr, addressed: &Addressed<'_>) -> bool {
        let packet = addressed.packet;
        match expr {
            Expr::All(list) => list.iter().all(|expr| self.holds(expr, addressed)),
            Expr::Any(list) => list.iter().any(|expr| self.holds(expr, addressed)),
            Expr::Is(word) => {
                let family = if packet.to.ip.is_ipv4() { "ip4" } else { "ip6" };
                word == family || word == packet.protocol
            }
            Expr::Range(field, first, last) => is_port(field, packet) && (*first..=*last).contains(&packet.port),
            Expr::OneOf { field, negated, values } => {
                let is = |value: &String| self.is(field, value, addressed);
                is_about(field, packet) && values.iter().any(is) != *negated
            }
        }
    }

    fn is(&self, field: &str, value: &str, Addressed { packet, from, to }: &Addressed<'_>) -> bool {
        let is_source = field.strip_suffix(".src").is_some();
        let (end, text) = if is_source { (packet.from, from) } else { (packet.to, to) };
        match field {
            "inport" => self.group(value).contains(&packet.from.port),
            "outport" => self.group(value).contains(&packet.to.port),
            "ip4.src" | "ip4.dst" | "ip6.src" | "ip6.dst" => match value.strip_prefix('$') {
                Some(name) => self.sets.get(name).unwrap_or_else(|| panic!("no set {name}")).contains(text),
                None => within(value, end.ip),
            },
            _ => value.parse() == Ok(packet.port),
        }
    }

    fn group(&self, value: &str) -> &BTreeSet<Uuid> {
        value.strip_prefix('@').and_then(|name| self.groups.get(name)).unwrap_or_else(|| panic!("no group {value}"))
    }
}

/// The switch of a port.
pub fn switch_of(cache: &Cache, port: Uuid) -> Option<Uuid> {
    cache.parents(port).find(|parent| parent.table == ls::TABLE && parent.column == ls::PORTS.id()).map(|p| p.uuid)
}

/// The places of a port that belongs to a switch.
pub fn places(cache: &Cache, name: &str) -> Vec<Place> {
    let [port] = cache.lookup(lsp::TABLE, name) else { return Vec::new() };
    let Some((row, switch)) = cache.get(lsp::TABLE, *port).zip(switch_of(cache, *port)) else { return Vec::new() };
    let ips = row.strs(lsp::ADDRESSES).flat_map(|text| text.split(' ')).filter_map(|word| word.parse().ok());
    ips.map(|ip| Place { port: *port, switch, ip }).collect()
}

/// Whether the packet has this field at all.
fn is_about(field: &str, packet: &Packet<'_>) -> bool {
    match field {
        "inport" | "outport" => true,
        "ip4.src" | "ip4.dst" => packet.to.ip.is_ipv4(),
        "ip6.src" | "ip6.dst" => packet.to.ip.is_ipv6(),
        _ => is_port(field, packet),
    }
}

/// Whether the field is the destination port of the packet's protocol.
fn is_port(field: &str, packet: &Packet<'_>) -> bool {
    field.strip_suffix(".dst") == Some(packet.protocol)
}

fn within(block: &str, ip: IpAddr) -> bool {
    let (network, length) = block.split_once('/').unwrap_or((block, if ip.is_ipv4() { "32" } else { "128" }));
    let (network, length): (IpAddr, u32) = (network.parse().unwrap(), length.parse().unwrap());
    match (network, ip) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u32::from(a) ^ u32::from(b)).checked_shr(32 - length).is_none_or(|x| x == 0),
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            (u128::from(a) ^ u128::from(b)).checked_shr(128 - length).is_none_or(|x| x == 0)
        }
        _ => false,
    }
}

enum Expr {
    All(Vec<Expr>),
    Any(Vec<Expr>),
    /// A protocol or family without a comparison.
    Is(String),
    Range(String, u16, u16),
    OneOf {
        field: String,
        negated: bool,
        values: Vec<String>,
    },
}

/// Fields that matches compare; the others concern packets that no test here asks about.
const FIELDS: [&str; 9] =
    ["inport", "outport", "ip4.src", "ip4.dst", "ip6.src", "ip6.dst", "tcp.dst", "udp.dst", "sctp.dst"];
/// Words without a comparison.
const WORDS: [&str; 8] = ["ip4", "ip6", "tcp", "udp", "sctp", "arp", "nd", "igmp"];

fn parse(text: &str) -> Expr {
    let mut tokens = Tokens { left: words(text), text };
    let expr = tokens.any();
    assert!(tokens.left.is_empty(), "{text:?}: {:?} is left over", tokens.left);
    expr
}

/// The words and signs of a condition, the last one first.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last = ' ';
    for c in text.chars() {
        let sign = |c: char| "&|=!<(){},".contains(c);
        let joins = match words.last() {
            _ if c == ' ' || last == ' ' => false,
            Some(word) if sign(c) => ["&&", "||", "==", "!=", "<="].contains(&format!("{word}{c}").as_str()),
            Some(_) => !sign(last),
            None => false,
        };
        match words.last_mut().filter(|_| joins) {
            Some(word) => word.push(c),
            None if c != ' ' => words.push(c.to_string()),
            None => {}
        }
        last = c;
    }
    words.reverse();
    words
}

struct Tokens<'a> {
    left: Vec<String>,
    text: &'a str,
}

impl Tokens<'_> {
    fn next(&mut self) -> String {
        self.left.pop().unwrap_or_else(|| panic!("{:?} ends too early", self.text))
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_next = self.left.last().is_some_and(|next| next == word);
        if is_next {
            self.left.pop();
        }
        is_next
    }

    fn any(&mut self) -> Expr {
        let mut list = vec![self.all()];
        while self.takes("||") {
            list.push(self.all());
        }
        Expr::Any(list)
    }

    fn all(&mut self) -> Expr {
        let mut list = vec![self.one()];
        while self.takes("&&") {
            list.push(self.one());
        }
        Expr::All(list)
    }

    fn one(&mut self) -> Expr {
        if self.takes("(") {
            let expr = self.any();
            assert!(self.takes(")"), "{:?}: a ) is missing", self.text);
            return expr;
        }
        let first = self.next();
        if self.takes("<=") {
            let field = self.next();
            assert!(self.takes("<="), "{:?}: a range without an end", self.text);
            return Expr::Range(field, first.parse().unwrap(), self.next().parse().unwrap());
        }
        let negated = self.takes("!=");
        if negated || self.takes("==") {
            assert!(FIELDS.contains(&first.as_str()), "{:?}: what is {first:?}?", self.text);
            return Expr::OneOf { field: first, negated, values: self.values() };
        }
        assert!(WORDS.contains(&first.as_str()), "{:?}: what is {first:?}?", self.text);
        Expr::Is(first)
    }

    fn values(&mut self) -> Vec<String> {
        if !self.takes("{") {
            return vec![self.next()];
        }
        let mut values = vec![self.next()];
        while self.takes(",") {
            values.push(self.next());
        }
        assert!(self.takes("}"), "{:?}: a }} is missing", self.text);
        values
    }
}
