//! UDP senders that never pause: their connections in Open vSwitch go on to an endpoint that is
//! gone, so they are ended there, in the kernel's and in the userspace datapath alike.
//!
//! ovn-controller does the same for zones of its own, where it knows how. Either can do it only after the
//! new flows are in, and nobody tells the agent when that is: so it asks more than once.

use std::collections::{BTreeSet, HashSet};
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
/// The switch goes through all of its connections for each that it ends: of more, only those that it has are named to it.
const ONE_BY_ONE: usize = 16;

/// An address that packets were sent to, and an endpoint that shall answer no more.
pub(crate) type Stale = ((At, u16), Backend);

/// What `new` no longer leads to.
pub(crate) fn left(old: &Senders, new: &Senders) -> BTreeSet<Stale> {
    let gone = |(door, backends): (&(At, u16), &BTreeSet<Backend>)| {
        let kept = new.get(door);
        let gone = backends.iter().filter(|backend| kept.is_none_or(|kept| !kept.contains(backend)));
        gone.map(|backend| (*door, *backend)).collect::<Vec<Stale>>()
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
    for datapath in named {
        let asked = those_that_are(run_dir, datapath, stale).await.map_err(|e| (stale.len(), e))?;
        for tuples in asked.iter().flat_map(|stale| tuples(stale, ips)) {
            let arguments: Vec<&str> = datapath.iter().copied().chain(tuples.iter().map(String::as_str)).collect();
            if let Err(e) = vswitchd(run_dir, "dpctl/flush-conntrack", &arguments).await {
                outcome = Err((outcome.err().map_or(1, |(failed, _)| failed + 1), e));
            }
        }
    }
    outcome
}

/// Of many, those that answer somebody.
async fn those_that_are(run_dir: &Path, datapath: &[&str], stale: &[Stale]) -> ovnkube_host::Result<Vec<Stale>> {
    if stale.len() <= ONE_BY_ONE {
        return Ok(stale.to_vec());
    }
    let dump = vswitchd(run_dir, "dpctl/dump-conntrack", datapath).await?;
    let answer: HashSet<Backend> = dump.lines().filter_map(answers).collect();
    Ok(stale.iter().copied().filter(|(_, backend)| answer.contains(backend)).collect())
}

/// Who does, in a line as `udp,orig=(src=…,dst=…,sport=…,dport=…),reply=(src=IP,dst=…,sport=PORT,dport=…),zone=…`.
pub(super) fn answers(line: &str) -> Option<Backend> {
    let (_, reply) = line.strip_prefix("udp,")?.split_once("reply=(")?;
    let field = |name| reply.split([',', ')']).find_map(|field| field.strip_prefix(name));
    Some(Backend { ip: field("src=")?.parse().ok()?, port: field("sport=")?.parse().ok()? })
}

/// What the senders say, and what answers them.
pub(super) fn tuples(((at, port), backend): &Stale, ips: &[IpAddr]) -> Vec<[String; 2]> {
    let to: Vec<IpAddr> = match at {
        At::Ip(ip) => vec![*ip],
        At::Node(family) => ips.iter().copied().filter(|ip| Family::of(*ip) == *family).collect(),
    };
    let reply = tuple(backend.ip, "src", backend.port);
    to.iter().map(|ip| [tuple(*ip, "dst", *port), reply.clone()]).collect()
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
