//! Where a database is: `tcp:10.0.0.1:6641`, `ssl:[fd00::1]:6641`, `unix:/run/ovn/ovnnb_db.sock`.

use std::fmt;
use std::path::PathBuf;

/// An address at which a database may be reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Remote {
    Tcp { host: String, port: u16 },
    Ssl { host: String, port: u16 },
    Unix(PathBuf),
}

/// An address that cannot be parsed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("cannot use database address {text:?}: {reason}; write tcp:HOST:PORT, ssl:HOST:PORT or unix:PATH")]
pub struct RemoteError {
    text: String,
    reason: &'static str,
}

impl Remote {
    /// Parses one address. The form `tcp://HOST:PORT` is accepted, too.
    pub fn parse(text: &str) -> Result<Self, RemoteError> {
        let fail = |reason| RemoteError { text: text.to_owned(), reason };
        let (scheme, rest) = text.trim().split_once(':').ok_or(fail("it has no scheme"))?;
        match scheme {
            "unix" if rest.is_empty() => Err(fail("it has no path")),
            "unix" => Ok(Remote::Unix(rest.into())),
            "tcp" | "ssl" => {
                let (host, port) = host_port(rest.strip_prefix("//").unwrap_or(rest)).map_err(fail)?;
                let host = host.to_owned();
                Ok(if scheme == "tcp" { Remote::Tcp { host, port } } else { Remote::Ssl { host, port } })
            }
            _ => Err(fail("its scheme is not tcp, ssl or unix")),
        }
    }

    /// Parses a comma-separated list of at least one address.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, RemoteError> {
        text.split(',').map(Remote::parse).collect()
    }
}

fn host_port(text: &str) -> Result<(&str, u16), &'static str> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once("]:").ok_or("there is no ]:PORT after the address")?;
            host.parse::<std::net::Ipv6Addr>().map_err(|_| "there is no IPv6 address between [ and ]")?;
            (host, port)
        }
        None => text.rsplit_once(':').ok_or("it has no port")?,
    };
    if host.is_empty() {
        return Err("it has no host");
    }
    if host.contains(':') && !text.starts_with('[') {
        return Err("its IPv6 address needs [ ]");
    }
    let port = port.parse().ok().filter(|p| *p != 0).ok_or("its port is not 1-65535")?;
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
