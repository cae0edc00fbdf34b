//! Addresses of the OVN databases: `tcp:`, `ssl:` and `unix:` lists, and the local sockets.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::PathBuf;

use crate::table::Kind;
use crate::values::FromText;

/// One address at which a database listens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remote {
    /// A unix socket.
    Unix(PathBuf),
    /// Plain TCP; the host is an address without brackets, or a name.
    Tcp(String, u16),
    /// TLS, host as for TCP.
    Ssl(String, u16),
}

/// A list of remotes of one scheme, as written in `address`. Empty means the local socket.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DbAddress(pub Vec<Remote>);

/// Everything needed to connect to one database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Database {
    /// Where to try, in the order written; for an empty address the sockets that OVN creates, new location first.
    pub remotes: Vec<Remote>,
    /// Certificates; present exactly when the remotes are `ssl:`.
    pub tls: Option<Tls>,
    /// Those of the server itself, if a master is to set them.
    pub server: Option<ServerKeys>,
}

/// The certificate with which a database's server listens. Paths name PEM files on the servers' hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerKeys {
    pub privkey: PathBuf,
    pub cert: PathBuf,
    /// Certificate authority of the clients.
    pub cacert: PathBuf,
}

/// Client side of a TLS connection to a database. Paths name PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// Private key.
    pub privkey: PathBuf,
    /// Certificate of the key.
    pub cert: PathBuf,
    /// Certificate authority of the server.
    pub cacert: PathBuf,
    /// Name that the server's certificate must carry; `None` takes the host of the remote.
    pub common_name: Option<String>,
}

impl Remote {
    /// `unix`, `tcp` or `ssl`.
    pub fn scheme(&self) -> &'static str {
        match self {
            Self::Unix(_) => "unix",
            Self::Tcp(..) => "tcp",
            Self::Ssl(..) => "ssl",
        }
    }
}

/// OVS's own spelling, as in `ovn-remote`.
impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(host, port) | Self::Ssl(host, port) if host.contains(':') => {
                write!(f, "{}:[{host}]:{port}", self.scheme())
            }
            Self::Tcp(host, port) | Self::Ssl(host, port) => write!(f, "{}:{host}:{port}", self.scheme()),
        }
    }
}

impl DbAddress {
    /// Whether the list is `ssl:`.
    pub fn is_ssl(&self) -> bool {
        matches!(self.0.first(), Some(Remote::Ssl(..)))
    }
}

impl Database {
    /// The list as OVS writes it: `tcp:10.0.0.1:6642,tcp:10.0.0.2:6642`.
    pub fn address(&self) -> String {
        self.remotes.iter().map(Remote::to_string).collect::<Vec<_>>().join(",")
    }
}

impl FromText for DbAddress {
    const KIND: Kind = Kind::Text("address");

    fn from_text(text: &str) -> Result<Self, String> {
        let list = if text.trim().is_empty() { None } else { Some(text.split(',').map(str::trim)) };
        let remotes: Vec<Remote> = list.into_iter().flatten().map(remote).collect::<Result<_, _>>()?;
        if let Some(first) = remotes.first()
            && let Some(other) = remotes.iter().find(|remote| remote.scheme() != first.scheme())
        {
            return Err(format!(
                "it mixes {} and {}; give every server the same scheme",
                first.scheme(),
                other.scheme()
            ));
        }
        Ok(Self(remotes))
    }
}

fn remote(text: &str) -> Result<Remote, String> {
    const FORM: &str = "write scheme:host:port, such as ssl:10.0.0.1:6641 or tcp:[fd00::1]:6641";
    if text.is_empty() {
        // a variable that was not set: the server that it was to name would be left out
        return Err("an address of the list is empty; write it, or remove its comma".to_owned());
    }
    let (scheme, rest) = text.split_once(':').ok_or_else(|| format!("{text:?} has no scheme; {FORM}"))?;
    // `tcp://host` is the older spelling of `tcp:host`; in paths a `/` may be there twice
    let rest = if rest.starts_with("///") || scheme != "unix" { rest.strip_prefix("//").unwrap_or(rest) } else { rest };
    match scheme {
        "unix" if rest.starts_with('/') => Ok(Remote::Unix(rest.into())),
        "unix" => Err(format!("{text:?} needs an absolute path; write unix:/var/run/ovn/ovnnb_db.sock")),
        "tcp" => host_port(rest).map(|(host, port)| Remote::Tcp(host, port)).ok_or_else(|| wrong_host(text, FORM)),
        "ssl" => host_port(rest).map(|(host, port)| Remote::Ssl(host, port)).ok_or_else(|| wrong_host(text, FORM)),
        _ => Err(format!("scheme {scheme:?} is none of tcp, ssl, unix; {FORM}")),
    }
}

fn wrong_host(text: &str, form: &str) -> String {
    format!("{text:?} is not a host and port; {form}")
}

fn host_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse::<u16>().ok().filter(|port| *port != 0)?;
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']')?.parse::<Ipv6Addr>().ok()?.to_string(),
        None => is_host(host).then(|| host.to_owned())?,
    };
    Some((host, port))
}

/// An IPv4 address or a DNS name. Only digits and dots must be an address: `10.0.0.300` is a typo, not a name.
fn is_host(host: &str) -> bool {
    let dotted = host.chars().all(|c| c.is_ascii_digit() || c == '.');
    let named = host
        .split('.')
        .all(|label| !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'));
    if dotted { host.parse::<std::net::Ipv4Addr>().is_ok() } else { named }
}
