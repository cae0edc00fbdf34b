//! What must be there after a move, if it was before it: answers of the next hops and of the API server, and a default
//! route.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;

use ovnkube_host::{Link, Net};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Instant, sleep, timeout};

use crate::{Error, Result};

/// How long they may be silent after a move.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// How long they may be silent before a move and still be counted on.
const BEFORE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(100);
/// Nobody listens there: the packet only makes the kernel ask for a MAC address.
const DISCARD: u16 = 9;

/// Those that the node depends on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watched {
    pub(crate) next_hops: Vec<IpAddr>,
    /// As `10.0.0.1:6443`.
    pub(crate) api_server: Option<String>,
}

impl Watched {
    /// Those that answer on this link within a while.
    pub(super) async fn answering(&self, link: &str, here: &Net) -> Result<Vec<String>> {
        let all = self.all();
        let silent = within(BEFORE, &all, link, here).await?;
        Ok(all.into_iter().filter(|one| !silent.contains(one)).collect())
    }

    /// Those of `counted` that are not there on this link for as long as they may.
    pub(super) async fn silent(&self, counted: &[String], link: &str, here: &Net) -> Result<Vec<String>> {
        // a hop or server that is no longer asked for does not count
        let asked = self.all();
        let counts = |one: &&String| one.starts_with(ROUTE) || asked.contains(one);
        let counted: Vec<String> = counted.iter().filter(counts).cloned().collect();
        tokio::select! {
            silent = within(PATIENCE, &counted, link, here) => silent,
            // it has to be set up first
            why = down(link, here) => Err(why),
        }
    }

    fn all(&self) -> Vec<String> {
        let hops = self.next_hops.iter().map(|hop| format!("{HOP}{hop}"));
        let routes = [V4, V6].map(|family| format!("{ROUTE}{family}"));
        hops.chain(self.api_server.iter().map(|server| format!("{API}{server}"))).chain(routes).collect()
    }
}

const HOP: &str = "next hop ";
const API: &str = "API server ";
const ROUTE: &str = "the default route for ";
const V4: &str = "IPv4";
const V6: &str = "IPv6";

async fn within(patience: Duration, asked: &[String], link: &str, here: &Net) -> Result<Vec<String>> {
    let end = Instant::now() + patience;
    let mut silent = asked.to_vec();
    loop {
        let mut still = Vec::new();
        let link = here.link(link).await?;
        for one in silent {
            if !answers(&one, link.as_ref(), here).await? {
                still.push(one);
            }
        }
        silent = still;
        if silent.is_empty() || Instant::now() > end {
            return Ok(silent);
        }
        sleep(LOOK).await;
    }
}

/// Waits until the link is set down, or can't be looked at.
async fn down(link: &str, here: &Net) -> Error {
    loop {
        match here.link(link).await {
            Ok(Some(found)) if !found.up => return Error::LinkDown { name: link.to_owned() },
            Ok(_) => sleep(LOOK).await,
            Err(e) => return e.into(),
        }
    }
}

async fn answers(one: &str, link: Option<&Link>, here: &Net) -> Result<bool> {
    if let Some(server) = one.strip_prefix(API) {
        return Ok(timeout(BEFORE, TcpStream::connect(server)).await.is_ok_and(|connected| connected.is_ok()));
    }
    // it may be gone for a while
    let Some(link) = link else { return Ok(false) };
    if let Some(family) = one.strip_prefix(ROUTE) {
        let through = here.default_routes().await?.into_iter().filter(|route| route.link == link.index);
        return Ok(through.map(|route| route.gateway.is_ipv6()).any(|ipv6| ipv6 == (family == V6)));
    }
    let Some(Ok(hop)) = one.strip_prefix(HOP).map(str::parse::<IpAddr>) else { return Ok(true) };
    // no route is an answer too: none
    let _ = ask(hop, link.index).await;
    Ok(here.has_answered(link, hop).await?)
}

async fn ask(hop: IpAddr, link: u32) -> std::io::Result<()> {
    let (any, to): (IpAddr, SocketAddr) = match hop {
        IpAddr::V4(v4) => (Ipv4Addr::UNSPECIFIED.into(), (v4, DISCARD).into()),
        IpAddr::V6(v6) => (Ipv6Addr::UNSPECIFIED.into(), SocketAddrV6::new(v6, DISCARD, 0, link).into()),
    };
    UdpSocket::bind((any, 0)).await?.send_to(&[], to).await.map(drop)
}
