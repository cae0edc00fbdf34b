//! UDP senders that never pause: their connections in Open vSwitch go on to an endpoint that is
//! gone, so they are ended there, in the kernel's and in the userspace datapath alike.
//!
//! ovn-controller does the same for zones of its own, where it knows how. Either can do it only after the
//! new flows are in, and nobody tells the agent when that is: so it asks more than once.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use ovnkube_host::conntrack::{self, Connection};
use ovnkube_host::unixctl::vswitchd;
use ovnkube_model::{Backend, Family, Subnet};
use tokio::time::sleep;

use super::Board;
use super::nft::{Moved, stand_ins};
use super::want::{At, Senders};

/// Between two looks, and how often each stale connection is looked for.
const PAUSE: Duration = Duration::from_millis(700);
pub(super) const LOOKS: u8 = 5;
/// Where more endpoints than that go at once, all connections to the address are ended.
const ONE_BY_ONE: usize = 16;

/// An address that packets were sent to, and an endpoint that shall answer no more; `None`: any.
pub(crate) type Stale = ((At, u16), Option<Backend>);

/// What `new` no longer leads to.
pub(crate) fn left(old: &Senders, new: &Senders) -> BTreeSet<Stale> {
    let gone = |(door, backends): (&(At, u16), &BTreeSet<Backend>)| {
        let kept = new.get(door);
        let gone = backends.iter().filter(|backend| kept.is_none_or(|kept| !kept.contains(backend)));
        let gone: Vec<Stale> = gone.map(|backend| (*door, Some(*backend))).collect();
        if gone.len() > ONE_BY_ONE { vec![(*door, None)] } else { gone }
    };
    old.iter().flat_map(gone).collect()
}

/// Ends what becomes stale for as long as the process lives.
pub(crate) async fn run(board: &Board, run_dir: &Path, masquerade: &[Subnet]) {
    let mut changed = board.stale_changed();
    while changed.changed().await.is_ok() {
        loop {
            sleep(PAUSE).await;
            let (stale, mut ips) = board.stale();
            if stale.is_empty() {
                break;
            }
            ips.extend(stand_ins(masquerade));
            if let Err((failed, e)) = end(run_dir, &stale, &ips).await {
                tracing::warn!("end UDP connections to endpoints that are gone, {failed} of {}: {e}", stale.len());
            }
        }
    }
}

/// One that cannot be ended holds up no other; how many could not, and why the last one.
async fn end(run_dir: &Path, stale: &[Stale], ips: &[IpAddr]) -> Result<(), (usize, ovnkube_host::Error)> {
    let datapaths = vswitchd(run_dir, "dpctl/dump-dps", &[]).await.map_err(|e| (stale.len(), e))?;
    let datapaths: Vec<&str> = datapaths.lines().map(str::trim).collect();
    // Open vSwitch 3.1 takes the name of a datapath for what to look for: the only one has to go without, and of
    // several none can be named to it
    let named: Vec<&[&str]> = if datapaths.len() == 1 { vec![&[]] } else { datapaths.chunks(1).collect() };
    let mut outcome = Ok(());
    for tuples in stale.iter().flat_map(|stale| tuples(stale, ips)) {
        for datapath in &named {
            let arguments: Vec<&str> = datapath.iter().copied().chain(tuples.iter().map(String::as_str)).collect();
            if let Err(e) = vswitchd(run_dir, "dpctl/flush-conntrack", &arguments).await {
                outcome = Err((outcome.err().map_or(1, |(failed, _)| failed + 1), e));
            }
        }
    }
    outcome
}

/// What the senders say, and what answers them.
pub(super) fn tuples(((at, port), backend): &Stale, ips: &[IpAddr]) -> Vec<Vec<String>> {
    let to: Vec<IpAddr> = match at {
        At::Ip(ip) => vec![*ip],
        At::Node(family) => ips.iter().copied().filter(|ip| Family::of(*ip) == *family).collect(),
    };
    let reply = backend.map(|backend| tuple(backend.ip, "src", backend.port));
    to.iter().map(|ip| [tuple(*ip, "dst", *port)].into_iter().chain(reply.clone()).collect()).collect()
}

/// The same for what the host itself translates; `own` are the host's addresses.
pub(crate) async fn end_moved(moved: Moved, own: Vec<IpAddr>) -> ovnkube_host::Result<()> {
    conntrack::end_udp(move |connection| is_moved(connection, &moved, &own)).await.map(drop)
}

/// A node port's number is nobody's at addresses that are not the host's.
pub(super) fn is_moved(Connection { to, answers }: &Connection, moved: &Moved, own: &[IpAddr]) -> bool {
    let of = |ip| moved.get(&(ip, to.is_ipv6(), to.port()));
    match of(Some(to.ip())).or_else(|| of(None).filter(|_| own.contains(&to.ip()))) {
        Some(led) if led.is_empty() => answers != to,
        Some(led) => !led.contains(answers),
        None => false,
    }
}

fn tuple(ip: IpAddr, side: &str, port: u16) -> String {
    let family = if ip.is_ipv6() { "ipv6" } else { "nw" };
    format!("ct_{family}_{side}={ip},ct_nw_proto=17,ct_tp_{side}={port}")
}
