//! Where a database is: `tcp:10.0.0.1:6641`, `ssl:[fd00::1]:6641`, `unix:/run/ovn/ovnnb_db.sock`.

use std::fmt;
use std::path::PathBuf;

/// One address a database may be reached at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Remote {
    Tcp { host: String, port: u16 },
    Ssl { host: String, port: u16 },
    Unix(PathBuf),
}

/// A remote that cannot be understood.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("parse database address {text:?}: {reason}; write tcp:HOST:PORT, ssl:HOST:PORT or unix:PATH")]
pub struct RemoteError {
    text: String,
    reason: &'static str,
}

impl Remote {
    /// Reads one address. The form `tcp://HOST:PORT` is taken too.
    pub fn parse(text: &str) -> Result<Self, RemoteError> {
        let fail = |reason| RemoteError { text: text.to_owned(), reason };
        let (scheme, rest) = text.trim().split_once(':').ok_or(fail("no scheme"))?;
        match scheme {
            "unix" if rest.is_empty() => Err(fail("no path")),
            "unix" => Ok(Remote::Unix(rest.into())),
            "tcp" | "ssl" => {
                let (host, port) = host_port(rest.strip_prefix("//").unwrap_or(rest)).map_err(fail)?;
                let host = host.to_owned();
                Ok(if scheme == "tcp" { Remote::Tcp { host, port } } else { Remote::Ssl { host, port } })
            }
            _ => Err(fail("scheme is not tcp, ssl or unix")),
        }
    }

    /// Reads a comma separated list of at least one address.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, RemoteError> {
        text.split(',').map(Remote::parse).collect()
    }
}

fn host_port(text: &str) -> Result<(&str, u16), &'static str> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once("]:").ok_or("no ]:PORT after the address")?;
            host.parse::<std::net::Ipv6Addr>().map_err(|_| "no IPv6 address between [ and ]")?;
            (host, port)
        }
        None => text.rsplit_once(':').ok_or("no port")?,
    };
    if host.is_empty() {
        return Err("no host");
    }
    if host.contains(':') && !text.starts_with('[') {
        return Err("an IPv6 address needs [ ]");
    }
    let port = port.parse().ok().filter(|p| *p != 0).ok_or("port is not 1-65535")?;
    Ok((host, port))
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, host, port) = match self {
            Remote::Unix(path) => return write!(f, "unix:{}", path.display()),
            Remote::Tcp { host, port } => ("tcp", host, port),
            Remote::Ssl { host, port } => ("ssl", host, port),
        };
        if host.contains(':') { write!(f, "{scheme}:[{host}]:{port}") } else { write!(f, "{scheme}:{host}:{port}") }
    }
}
