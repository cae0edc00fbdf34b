//! The ConfigMap `ovn-ic-config` of namespace `kube-system`.
//!
//! ```text
//! enable-ic: "true"
//! az-name: "az1"
//! ic-db-host: "192.168.65.3,192.168.65.4"
//! ic-nb-port: "6645"
//! ic-sb-port: "6646"
//! gw-nodes: "node-a,node-b"
//! auto-route: "true"
//! gateway-mtu: "1300"
//! routes: "az2 10.17.0.0/16"
//! host-route: "true"
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use ovnkube_ipam::Subnet;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::declared;
use super::text::{LONGEST_NAME, is_zone, own_word, short};
use crate::{Meta, Name};

/// Ports of the databases where the ConfigMap names none.
const NB_PORT: u16 = 6645;
const SB_PORT: u16 = 6646;
/// The most entries of a list.
const MOST: usize = 64;
/// The least MTU: what IPv6 needs.
const LEAST_MTU: u16 = 1280;
/// These say where the databases are: a new host with the former port may be the server of another one.
const OF_DATABASES: [&str; 3] = ["ic-db-host", "ic-nb-port", "ic-sb-port"];

/// What one ConfigMap says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterconnectionConfig {
    pub uid: Name,
    pub asks: Asks,
    pub bad: Vec<BadKey>,
    /// All keys, where one cannot be used; see [`InterconnectionConfig::with_last`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) keys: BTreeMap<String, String>,
}

/// What a ConfigMap asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Asks {
    /// A key cannot be used: what it said last counts.
    Unclear,
    /// With what the other keys name, if all can be used: a master that was killed may have left rows there.
    Off(Option<Box<Interconnection>>),
    On(Box<Interconnection>),
}

/// A key of the ConfigMap that cannot be used, or an entry of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadKey {
    pub key: Name,
    /// What is wrong with it, and what to write instead.
    pub problem: String,
}

/// A wanted interconnection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interconnection {
    /// Name of this cluster among the others.
    pub zone: Name,
    pub servers: Vec<Server>,
    pub nb_port: u16,
    pub sb_port: u16,
    /// Nodes that carry the traffic, in the order of preference.
    pub gateways: Vec<Name>,
    /// Whether prefixes are exchanged.
    pub auto_route: bool,
    /// The largest packets of pods that get through to other clusters, if that is less than within this one.
    pub gateway_mtu: Option<u16>,
    /// Prefixes that people say are behind another cluster, each with its name.
    #[serde(default)]
    pub routes: BTreeMap<Subnet, Name>,
    /// Whether hosts have routes to the other clusters' prefixes.
    #[serde(default)]
    pub host_route: bool,
}

impl Asks {
    /// What its keys name, also while it is off.
    pub fn names(&self) -> Option<&Interconnection> {
        match self {
            Self::On(names) | Self::Off(Some(names)) => Some(names),
            Self::Off(None) | Self::Unclear => None,
        }
    }

    /// What a text of [`Interconnection::text`] asks for.
    pub fn of_text(text: &str) -> Self {
        let Ok(data) = serde_json::from_str(text) else { return Self::Unclear };
        Reader { data: &data, bad: Vec::new() }.asks()
    }
}

impl Interconnection {
    /// As one text, for the next master: the keys of the ConfigMap. `is_on`: the cluster is not about to leave.
    pub fn text(&self, is_on: bool) -> String {
        json!(self.keys(is_on)).to_string()
    }

    pub(super) fn keys(&self, is_on: bool) -> BTreeMap<&'static str, String> {
        let servers =
            self.servers.iter().map(|server| format!("{}{}", if server.tls { "ssl:" } else { "" }, server.host));
        let gateways: Vec<&str> = self.gateways.iter().map(AsRef::as_ref).collect();
        let mut keys = BTreeMap::from([
            ("enable-ic", is_on.to_string()),
            ("az-name", self.zone.to_string()),
            ("ic-db-host", servers.collect::<Vec<_>>().join(",")),
            ("ic-nb-port", self.nb_port.to_string()),
            ("ic-sb-port", self.sb_port.to_string()),
            ("gw-nodes", gateways.join(",")),
            ("auto-route", self.auto_route.to_string()),
        ]);
        keys.extend(self.gateway_mtu.map(|mtu| ("gateway-mtu", mtu.to_string())));
        let routes: Vec<String> = self.routes.iter().map(|(prefix, zone)| format!("{zone} {prefix}")).collect();
        keys.extend(Some(("routes", routes.join(","))).filter(|_| !routes.is_empty()));
        keys.extend(self.host_route.then(|| ("host-route", "true".to_owned())));
        keys
    }

    /// Whether both are in the same servers' databases.
    pub fn has_servers_of(&self, other: &Self) -> bool {
        let of = |one: &Self| (one.servers.clone(), one.nb_port, one.sb_port);
        of(self) == of(other)
    }
}

/// A server of the databases.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Server {
    /// An address or a DNS name, without brackets.
    pub host: Name,
    pub tls: bool,
}

impl Server {
    /// `tcp:[fd00::1]:6645`
    pub fn remote(&self, port: u16) -> String {
        let scheme = if self.tls { "ssl" } else { "tcp" };
        let host = &self.host;
        if host.contains(':') { format!("{scheme}:[{host}]:{port}") } else { format!("{scheme}:{host}:{port}") }
    }
}

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key, self.problem)
    }
}

impl InterconnectionConfig {
    pub fn parse(meta: &Meta<'_>, data: &BTreeMap<String, String>) -> Self {
        let mut read = Reader { data, bad: Vec::new() };
        let asks = read.asks();
        let keys = if asks == Asks::Unclear { data.clone() } else { BTreeMap::new() };
        Self { uid: meta.uid.into(), asks, bad: read.bad, keys }
    }

    /// One that can be used.
    pub fn on(uid: Name, names: Interconnection) -> Self {
        Self { uid, asks: Asks::On(Box::new(names)), bad: Vec::new(), keys: BTreeMap::new() }
    }

    /// What it asks for if each key that cannot be used says what it said last: the other keys count all the same. Where one of the
    /// databases' keys cannot be used, all three say what they said last. `last`: where the cluster is joined.
    pub(crate) fn with_last(&self, last: &Interconnection) -> Asks {
        let last = last.keys(true);
        let is_bad = |key: &str| self.bad.iter().any(|bad| &*bad.key == key);
        let moves = !OF_DATABASES.iter().any(|key| is_bad(key));
        let mut data = self.keys.clone();
        // of routes, the bad ones are left out
        let stay = |key: &&str| *key != "routes" && (is_bad(key) || !moves && OF_DATABASES.contains(key));
        for key in self.bad.iter().map(|bad| &*bad.key).chain(OF_DATABASES).filter(stay) {
            match last.get(key) {
                Some(text) => drop(data.insert(key.to_owned(), text.clone())),
                None => drop(data.remove(key)),
            }
        }
        Reader { data: &data, bad: Vec::new() }.asks()
    }
}

struct Reader<'a> {
    data: &'a BTreeMap<String, String>,
    bad: Vec<BadKey>,
}

impl<'a> Reader<'a> {
    fn asks(&mut self) -> Asks {
        match self.switch("enable-ic") {
            Some(true) => self.interconnection().map_or(Asks::Unclear, |wanted| Asks::On(Box::new(wanted))),
            // what is bad is of no interest while it is off
            Some(false) => Asks::Off(Reader { data: self.data, bad: Vec::new() }.interconnection().map(Box::new)),
            None => {
                // so that all problems are named
                self.interconnection();
                Asks::Unclear
            }
        }
    }

    fn interconnection(&mut self) -> Option<Interconnection> {
        // all are read, so that all problems are named at once
        let zone = self.zone();
        let servers = self.list("ic-db-host", server);
        let nb_port = self.port("ic-nb-port", NB_PORT);
        let sb_port = self.port("ic-sb-port", SB_PORT);
        let gateways = self.list("gw-nodes", node);
        let auto_route = self.switch("auto-route");
        let gateway_mtu = self.mtu("gateway-mtu");
        let routes = self.routes("routes", zone.as_deref());
        let host_route = self.text("host-route").map_or(Some(false), |_| self.switch("host-route"));
        Some(Interconnection {
            zone: zone?,
            servers: servers?,
            nb_port: nb_port?,
            sb_port: sb_port?,
            gateways: gateways?,
            auto_route: auto_route?,
            gateway_mtu: gateway_mtu.ok()?,
            routes,
            host_route: host_route?,
        })
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.data.get(key).map(|text| text.trim()).filter(|text| !text.is_empty())
    }

    fn is_bad<T>(&mut self, key: &str, problem: String) -> Option<T> {
        self.bad.push(BadKey { key: key.into(), problem });
        None
    }

    fn switch(&mut self, key: &str) -> Option<bool> {
        match self.text(key) {
            Some("true") => Some(true),
            Some("false") => Some(false),
            Some(other) => self.is_bad(key, format!("is {:?}; write \"true\" or \"false\"", short(other))),
            None => self.is_bad(key, "is missing; write \"true\" or \"false\"".into()),
        }
    }

    fn zone(&mut self) -> Option<Name> {
        let key = "az-name";
        let Some(name) = self.text(key) else {
            return self.is_bad(key, "is missing; give each cluster a name of its own".into());
        };
        if !is_zone(name) {
            let problem = format!(
                "is {:?}; write at most {LONGEST_NAME} letters, digits, '-' and '.', a letter or digit at both ends",
                short(name)
            );
            return self.is_bad(key, problem);
        }
        if let Some(word) = own_word(name) {
            let problem =
                format!("is {name:?}, and ports of this cluster's routers begin with {word}; write another name");
            return self.is_bad(key, problem);
        }
        Some(name.into())
    }

    fn port(&mut self, key: &str, default: u16) -> Option<u16> {
        let Some(text) = self.text(key) else { return Some(default) };
        match text.parse() {
            Ok(port) if port != 0 => Some(port),
            _ => self.is_bad(key, format!("is {:?}; write a port from 1 to 65535", short(text))),
        }
    }

    /// `None` where the key is not there; an error where it is bad.
    fn mtu(&mut self, key: &str) -> Result<Option<u16>, ()> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let mtu = text.parse().ok().filter(|mtu| *mtu >= LEAST_MTU);
        let problem = format!("is {:?}; write a number from {LEAST_MTU} to {}", short(text), u16::MAX);
        mtu.or_else(|| self.is_bad(key, problem)).map(Some).ok_or(())
    }

    /// Other than with the rest, an entry that is bad stops nothing.
    fn routes(&mut self, key: &str, own: Option<&str>) -> BTreeMap<Subnet, Name> {
        let (routes, bad) = declared::read(self.text(key).unwrap_or_default(), own);
        self.bad.extend(bad.into_iter().map(|problem| BadKey { key: key.into(), problem }));
        routes
    }

    /// The entries between commas, each once.
    fn list<T: PartialEq>(&mut self, key: &str, parse: fn(&str) -> Result<T, String>) -> Option<Vec<T>> {
        let mut entries = Vec::new();
        for text in self.text(key).unwrap_or_default().split(',').map(str::trim).filter(|text| !text.is_empty()) {
            match parse(text) {
                Ok(entry) if !entries.contains(&entry) => entries.push(entry),
                Ok(_) => {}
                Err(problem) => return self.is_bad(key, problem),
            }
            if entries.len() > MOST {
                return self.is_bad(key, format!("has more than {MOST} entries; remove some"));
            }
        }
        if entries.is_empty() {
            return self.is_bad(key, "is missing; write one or more, with commas between them".into());
        }
        Some(entries)
    }
}

fn server(text: &str) -> Result<Server, String> {
    let (text, tls) = text.strip_prefix("ssl:").map_or((text, false), |rest| (rest, true));
    let host = text.strip_prefix("tcp:").unwrap_or(text);
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let is_address = host.parse::<IpAddr>().is_ok();
    if is_address || is_dns_name(host) {
        return Ok(Server { host: host.into(), tls });
    }
    Err(format!("names {:?}; write addresses or DNS names, \"ssl:\" before one that has TLS", short(text)))
}

fn node(text: &str) -> Result<Name, String> {
    if is_dns_name(text) { Ok(text.into()) } else { Err(format!("names {:?}; write names of nodes", short(text))) }
}

fn is_dns_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    // an address that is cut short is no name
    let last = text.rsplit('.').next().unwrap_or_default();
    (1..=253).contains(&text.len()) && text.chars().all(fits) && (last.parse::<u32>().is_err() || !text.contains('.'))
}
