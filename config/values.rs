//! The types of settings, and how each is parsed.
//!
//! The same text rules hold for every layer; booleans and numbers, whose spelling differs between
//! flags and file, are converted to one form by [`canonical`] first.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ipnetwork::{IpNetwork, Ipv4Network, Ipv6Network};

use crate::table::Kind;

/// A value that users write as text. The error says what is wrong and what to write instead.
pub trait FromText: Sized {
    /// Shape shown in help.
    const KIND: Kind;
    /// Parses the value; `Err` is the second half of a sentence about the value.
    fn from_text(text: &str) -> Result<Self, String>;
}

/// A token or other text that must never be shown. `Debug` and `Display` print `***`.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

/// A range of addresses for pods, cut into one subnet per node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterSubnet {
    /// The whole range, host bits zero.
    pub net: IpNetwork,
    /// Prefix length of one node's subnet, longer than the range's own.
    pub host_prefix: u8,
}

/// Where a flow collector listens; without an address, on the node itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collector {
    /// Collector's address; `None` is the node's own.
    pub ip: Option<IpAddr>,
    /// UDP port.
    pub port: u16,
}

/// Defines an enum of fixed words.
macro_rules! words {
    ($( #[doc = $doc:literal] $Name:ident { $( #[doc = $about:literal] $Word:ident = $text:literal, )+ } )*) => { $(
        #[doc = $doc]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $Name { $( #[doc = $about] $Word, )+ }

        impl FromText for $Name {
            const KIND: Kind = Kind::Text("word");
            fn from_text(text: &str) -> Result<Self, String> {
                match text {
                    $( $text => Ok(Self::$Word), )+
                    _ => Err(format!("it must be one of {}", [$( $text ),+].join(", "))),
                }
            }
        }

        impl fmt::Display for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $( Self::$Word => $text, )+ })
            }
        }
    )* };
}

words! {
    /// Tunnel protocol between nodes.
    EncapType {
        /// Geneve: full feature set.
        Geneve = "geneve",
        /// VXLAN: fewer logical switches and ports per switch.
        Vxlan = "vxlan",
    }
    /// How traffic leaves a node.
    GatewayMode {
        /// Through OVN's gateway router and the shared bridge.
        Shared = "shared",
        /// Through the host's own routing.
        Local = "local",
    }
    /// Where the node agent runs.
    NodeMode {
        /// Everything on this host.
        Full = "full",
        /// On the processor of a smart NIC.
        Dpu = "dpu",
        /// On a host whose network runs on a smart NIC.
        DpuHost = "dpu-host",
    }
    /// Whether advertised user-defined networks stay apart.
    UdnIsolation {
        /// No traffic between them.
        Strict = "strict",
        /// Traffic may be routed outside.
        Loose = "loose",
    }
}

// === impl Secret ===

impl Secret {
    /// The text itself; for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
    /// Whether nothing was set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "" } else { "***" })
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

// === impl ClusterSubnet ===

impl fmt::Display for ClusterSubnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.net, self.host_prefix)
    }
}

impl FromText for ClusterSubnet {
    const KIND: Kind = Kind::Text("cidr[/hostprefix]");

    fn from_text(text: &str) -> Result<Self, String> {
        let (cidr, host_prefix) = match text.match_indices('/').nth(1) {
            Some((at, _)) => (text.get(..at).unwrap_or_default(), text.get(at + 1..)),
            None => (text, None),
        };
        let net = IpNetwork::from_text(cidr)?;
        let (default, longest) = if net.is_ipv4() { (24, 29) } else { (64, 64) };
        let host_prefix = match host_prefix {
            None => default,
            Some(digits) => digits.parse::<u8>().map_err(|_| {
                format!("the host prefix {digits:?} is not a number; write CIDR/hostprefix such as 10.128.0.0/14/23")
            })?,
        };
        if net.is_ipv6() && host_prefix != 64 {
            return Err(format!("the host prefix of an ipv6 range must be 64, not {host_prefix}"));
        }
        if host_prefix > longest {
            return Err(format!("a /{host_prefix} has no room for pods; take a host prefix of at most {longest}"));
        }
        if host_prefix <= net.prefix() {
            return Err(format!(
                "a range of /{} cannot be cut into node subnets of /{host_prefix}; take a wider range or a longer host prefix",
                net.prefix()
            ));
        }
        Ok(Self { net, host_prefix })
    }
}

// === impl FromText for the rest ===

/// Ports and addresses from `ip:port`, `[v6]:port`, `:port`.
fn ip_port(text: &str, example: &str) -> Result<Collector, String> {
    let wrong = || format!("it is not an address and port; write {example}");
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let port = port.parse::<u16>().map_err(|_| wrong())?;
    let ip = match (host.strip_prefix('[').and_then(|h| h.strip_suffix(']')), host) {
        (Some(v6), _) => Some(IpAddr::V6(v6.parse().map_err(|_| wrong())?)),
        (None, "") => None,
        (None, "localhost") => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        (None, v4) => Some(IpAddr::V4(v4.parse().map_err(|_| wrong())?)),
    };
    Ok(Collector { ip, port })
}

impl FromText for Collector {
    const KIND: Kind = Kind::Text("[ip]:port");
    fn from_text(text: &str) -> Result<Self, String> {
        match ip_port(text, "10.0.0.1:2055, [fd00::1]:2055 or :2055")? {
            Self { port: 0, .. } => Err("port 0 cannot be sent to; give the collector's port".to_owned()),
            target => Ok(target),
        }
    }
}

impl FromText for SocketAddr {
    const KIND: Kind = Kind::Text("[ip]:port");
    fn from_text(text: &str) -> Result<Self, String> {
        let Collector { ip, port } = ip_port(text, "127.0.0.1:9409, [::1]:9409 or :9409 for every address")?;
        Ok(Self::new(ip.unwrap_or(Ipv6Addr::UNSPECIFIED.into()), port))
    }
}

impl FromText for IpNetwork {
    const KIND: Kind = Kind::Text("cidr");
    fn from_text(text: &str) -> Result<Self, String> {
        // a bare address would parse as a range of one address
        let parsed: Option<Self> = if text.contains('/') { text.parse().ok() } else { None };
        let net = parsed.ok_or_else(|| {
            format!("{text:?} is not a CIDR; write address/prefix such as 10.128.0.0/14 or fd01::/48")
        })?;
        Self::new(net.network(), net.prefix()).map_err(|error| error.to_string())
    }
}

impl FromText for Ipv4Network {
    const KIND: Kind = Kind::Text("cidr");
    fn from_text(text: &str) -> Result<Self, String> {
        match IpNetwork::from_text(text)? {
            IpNetwork::V4(net) => Ok(net),
            IpNetwork::V6(_) => Err("it must be an ipv4 CIDR".to_owned()),
        }
    }
}

impl FromText for Ipv6Network {
    const KIND: Kind = Kind::Text("cidr");
    fn from_text(text: &str) -> Result<Self, String> {
        match IpNetwork::from_text(text)? {
            IpNetwork::V6(net) => Ok(net),
            IpNetwork::V4(_) => Err("it must be an ipv6 CIDR".to_owned()),
        }
    }
}

impl FromText for IpAddr {
    const KIND: Kind = Kind::Text("ip");
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| format!("{text:?} is not an ip address; write one such as 10.0.0.1 or fd00::1"))
    }
}

impl FromText for bool {
    const KIND: Kind = Kind::Bool;
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "it must be true or false".to_owned())
    }
}

macro_rules! numbers {
    ($($Number:ty)*) => { $(
        impl FromText for $Number {
            const KIND: Kind = Kind::Int;
            fn from_text(text: &str) -> Result<Self, String> {
                text.parse().map_err(|_| format!("it must be a whole number from 0 to {}", Self::MAX))
            }
        }
    )* };
}
numbers! { u8 u16 u32 }

impl FromText for String {
    const KIND: Kind = Kind::Text("string");
    fn from_text(text: &str) -> Result<Self, String> {
        if text.contains('\0') {
            return Err("it contains a NUL character; remove it".to_owned());
        }
        Ok(text.to_owned())
    }
}

impl FromText for Secret {
    const KIND: Kind = Kind::Text("string");
    fn from_text(text: &str) -> Result<Self, String> {
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err("it contains spaces or control characters; check that it was copied whole".to_owned());
        }
        Ok(Self(text.to_owned()))
    }
}

impl FromText for PathBuf {
    const KIND: Kind = Kind::Text("path");
    fn from_text(text: &str) -> Result<Self, String> {
        String::from_text(text).map(Self::from)
    }
}

impl FromText for Duration {
    const KIND: Kind = Kind::Text("duration");
    fn from_text(text: &str) -> Result<Self, String> {
        go_duration(text).ok_or_else(|| "it is not a duration; write one such as 100s, 1m40s or 1.5h".to_owned())
    }
}

impl<T: FromText> FromText for Option<T> {
    const KIND: Kind = T::KIND;
    fn from_text(text: &str) -> Result<Self, String> {
        if text.is_empty() { Ok(None) } else { T::from_text(text).map(Some) }
    }
}

/// Comma lists; blanks around items and empty items are ignored.
impl<T: FromText> FromText for Vec<T> {
    const KIND: Kind = T::KIND;
    fn from_text(text: &str) -> Result<Self, String> {
        text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(T::from_text).collect()
    }
}

/// Go's duration grammar without sign: decimal numbers with a unit each, or a bare 0.
fn go_duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at_checked(unit_at)?;
        let unit_end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, next) = tail.split_at_checked(unit_end)?;
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" | "μs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?;
        total = total.checked_add(part)?;
        rest = next;
    }
    (!text.is_empty()).then_some(total)
}

// === spelling of the layers ===

/// How a layer spells booleans and numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Go's flag package: `1 t T TRUE …`, numbers in base 10, 0x, 0o, 0b.
    Flag,
    /// gcfg: `true yes on 1 …` in any case, numbers in base 10 (leading zeros too) or 0x.
    File,
}

/// Converts a boolean or number to `true`/`false` or decimal digits; other text is unchanged.
pub(crate) fn canonical(kind: Kind, dialect: Dialect, text: &str) -> Result<String, String> {
    match kind {
        Kind::Bool => match dialect {
            Dialect::Flag => go_bool(text).ok_or("it must be true or false"),
            Dialect::File => gcfg_bool(text).ok_or("it must be true, yes, on, 1 or false, no, off, 0"),
        }
        .map(|on| on.to_string())
        .map_err(str::to_owned),
        Kind::Int => match dialect {
            Dialect::Flag => go_int(text),
            Dialect::File => gcfg_int(text),
        }
        .map(|number| number.to_string())
        .ok_or_else(|| "it must be a whole number".to_owned()),
        Kind::Text(_) => Ok(text.to_owned()),
    }
}

/// The booleans of Go's flag package.
pub(crate) fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

fn gcfg_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

fn go_int(text: &str) -> Option<i64> {
    let (minus, digits) = sign(text);
    let lower = digits.to_ascii_lowercase();
    let value = if let Some(hex) = lower.strip_prefix("0x") {
        radix(hex, 16)
    } else if let Some(binary) = lower.strip_prefix("0b") {
        radix(binary, 2)
    } else if let Some(octal) = lower.strip_prefix("0o") {
        radix(octal, 8)
    } else if lower.len() > 1 && lower.starts_with('0') {
        radix(&lower, 8)
    } else {
        radix(&lower, 10)
    }?;
    Some(if minus { -value } else { value })
}

fn gcfg_int(text: &str) -> Option<i64> {
    let (minus, digits) = sign(text.trim());
    let value = match digits.strip_prefix("0x") {
        Some(hex) => radix(hex, 16),
        None => radix(digits, 10),
    }?;
    Some(if minus { -value } else { value })
}

fn sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

fn radix(digits: &str, base: u32) -> Option<i64> {
    digits.chars().all(|c| c.is_digit(base)).then(|| i64::from_str_radix(digits, base).ok()).flatten()
}
