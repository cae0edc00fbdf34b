//! Checks connectivity after a move: next hops and API server must answer and default routes must exist, if they did
//! before the move.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;

use ovnkube_host::{Link, Net};
use ovnkube_model::Family;
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Instant, sleep, timeout};

use crate::{Error, Result};

/// How long a check may fail after a move.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// How long a check may fail before a move and still be required after it.
const BEFORE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(100);
/// The discard port: the packet only makes the kernel resolve the MAC address.
const DISCARD: u16 = 9;

/// The next hops and the API server that the node depends on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watched {
    pub(crate) next_hops: Vec<IpAddr>,
    /// As `10.0.0.1:6443`.
    pub(crate) api_server: Option<String>,
}

/// One thing that the node depends on. The journal and messages contain its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Check {
    NextHop(IpAddr),
    /// As `10.0.0.1:6443`.
    ApiServer(String),
    DefaultRoute(Family),
}

const HOP: &str = "next hop ";
const API: &str = "API server ";
const ROUTE: &str = "the default route for ";

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NextHop(ip) => write!(f, "{HOP}{ip}"),
            Self::ApiServer(server) => write!(f, "{API}{server}"),
            Self::DefaultRoute(Family::V4) => write!(f, "{ROUTE}IPv4"),
            Self::DefaultRoute(Family::V6) => write!(f, "{ROUTE}IPv6"),
        }
    }
}

impl Check {
    /// `None`: a later release wrote it.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Some(server) = text.strip_prefix(API) {
            return Some(Self::ApiServer(server.to_owned()));
        }
        match text.strip_prefix(ROUTE) {
            Some("IPv4") => Some(Self::DefaultRoute(Family::V4)),
            Some("IPv6") => Some(Self::DefaultRoute(Family::V6)),
            _ => Some(Self::NextHop(text.strip_prefix(HOP)?.parse().ok()?)),
        }
    }

    async fn passes(&self, link: Option<&Link>, here: &Net) -> Result<bool> {
        match (self, link) {
            (Self::ApiServer(server), _) => {
                Ok(timeout(BEFORE, TcpStream::connect(server)).await.is_ok_and(|connected| connected.is_ok()))
            }
            // the link may be gone for a while
            (_, None) => Ok(false),
            (Self::DefaultRoute(family), Some(link)) => {
                let through = here.default_routes().await?.into_iter().filter(|route| route.link == link.index);
                Ok(through.map(|route| Family::of(route.gateway)).any(|of| of == *family))
            }
            (Self::NextHop(hop), Some(link)) => {
                // without a route, it does not answer
                let _ = ask(*hop, link.index).await;
                Ok(here.has_answered(link, *hop).await?)
            }
        }
    }
}

impl Watched {
    /// The checks that pass on this link within [`BEFORE`].
    pub(super) async fn answering(&self, link: &str, here: &Net) -> Result<Vec<Check>> {
        let all = self.all();
        let silent = within(BEFORE, &all, link, here).await?;
        Ok(all.into_iter().filter(|check| !silent.contains(check)).collect())
    }

    /// The checks of `counted` that still fail on this link after [`PATIENCE`].
    pub(super) async fn silent(&self, counted: &[Check], link: &str, here: &Net) -> Result<Vec<Check>> {
        // a hop or server that is no longer configured does not count
        let asked = self.all();
        let counts = |check: &&Check| matches!(check, Check::DefaultRoute(_)) || asked.contains(check);
        let counted: Vec<Check> = counted.iter().filter(counts).cloned().collect();
        tokio::select! {
            silent = within(PATIENCE, &counted, link, here) => silent,
            // the link must be set up first
            why = down(link, here) => Err(why),
        }
    }

    fn all(&self) -> Vec<Check> {
        let hops = self.next_hops.iter().copied().map(Check::NextHop);
        let servers = self.api_server.iter().cloned().map(Check::ApiServer);
        hops.chain(servers).chain([Family::V4, Family::V6].map(Check::DefaultRoute)).collect()
    }
}

async fn within(patience: Duration, asked: &[Check], link: &str, here: &Net) -> Result<Vec<Check>> {
    let end = Instant::now() + patience;
    let mut silent = asked.to_vec();
    loop {
        let mut still = Vec::new();
        let link = here.link(link).await?;
        for check in silent {
            if !check.passes(link.as_ref(), here).await? {
                still.push(check);
            }
        }
        silent = still;
        if silent.is_empty() || Instant::now() > end {
            return Ok(silent);
        }
        sleep(LOOK).await;
    }
}

/// Waits until the link is set down, or cannot be read.
async fn down(link: &str, here: &Net) -> Error {
    loop {
        match here.link(link).await {
            Ok(Some(found)) if !found.up => return Error::LinkDown { name: link.to_owned() },
            Ok(_) => sleep(LOOK).await,
            Err(e) => return e.into(),
        }
    }
}

async fn ask(hop: IpAddr, link: u32) -> std::io::Result<()> {
    let (any, to): (IpAddr, SocketAddr) = match hop {
        IpAddr::V4(v4) => (Ipv4Addr::UNSPECIFIED.into(), (v4, DISCARD).into()),
        IpAddr::V6(v6) => (Ipv6Addr::UNSPECIFIED.into(), SocketAddrV6::new(v6, DISCARD, 0, link).into()),
    };
    UdpSocket::bind((any, 0)).await?.send_to(&[], to).await.map(drop)
}
