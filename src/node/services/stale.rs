//! Ends UDP connections of senders that never pause: in Open vSwitch they still go to an endpoint
//! that is gone. This works for the kernel's and the userspace datapath.
//!
//! ovn-controller does the same for its own zones, if its version can. Either can do it only after the new
//! flows are installed. The agent is not notified of that, so it repeats the attempt. An attempt that does not reach the
//! switch is none.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use ovnkube_host::conntrack;
use ovnkube_host::unixctl::{Program, ask};
use ovnkube_model::Subnet;
use ovnkube_node_plan::services::nft::{Moved, local_masquerade_ips};
use ovnkube_node_plan::services::stale::{Stale, is_moved, listed, tuples};
use tokio::time::{Instant, sleep_until};

use super::tracker::{FIRST_LOOK, ServiceTracker};

/// The longest pause while the switch does not answer.
const LONGEST: Duration = Duration::from_secs(30);
/// ovs-vswitchd scans all its connections for each of these. If there are more, it lists its connections once, and those to
/// end are named completely.
const ONE_BY_ONE: usize = 16;
/// What ovs-vswitchd says of a connection that has ended since it was listed.
const ENDED: &str = "failed to flush conntrack (No such file or directory)";

/// Ends stale connections as long as the process lives.
pub(crate) async fn run(tracker: &ServiceTracker, run_dir: &Path, masquerade: &[Subnet]) {
    let mut changed = tracker.stale_changed();
    // one look at a time serves all endpoints that are due
    let (mut pause, mut not_before) = (FIRST_LOOK, Instant::now());
    loop {
        let next = tracker.next_look().map(|next| next.max(not_before));
        tokio::select! {
            changed = changed.changed() => {
                if changed.is_err() {
                    return;
                }
                continue;
            }
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
        }
        let (stale, mut ips) = tracker.stale(Instant::now());
        if stale.is_empty() {
            continue;
        }
        ips.extend(local_masquerade_ips(masquerade));
        let (outcome, now, of) = (end(run_dir, &stale, &ips).await, Instant::now(), stale.len());
        let ended = match outcome {
            Ok(ended) => {
                tracker.looked(&stale, now);
                (pause, not_before) = (FIRST_LOOK, now + FIRST_LOOK);
                ended
            }
            Err(e) => {
                (pause, not_before) = (LONGEST.min(pause * 2), now + pause);
                Err((of, e))
            }
        };
        if let Err((failed, e)) = ended {
            tracing::warn!(error = %e, failed, of, "cannot end UDP connections to endpoints that are gone");
        }
    }
}

/// How many could not be ended, and why the last one could not.
type Failed = (usize, ovnkube_host::Error);

/// Ends connections; a failure does not stop the others. The outer error: the switch did not look for them.
async fn end(run_dir: &Path, stale: &[Stale], ips: &[IpAddr]) -> ovnkube_host::Result<Result<(), Failed>> {
    let datapaths = Program::Vswitchd.run(run_dir, "dpctl/dump-dps", &[]).await?;
    let datapaths: Vec<&str> = datapaths.lines().map(str::trim).collect();
    // Open vSwitch 3.1 takes the name of a datapath for the connection to look for: a single datapath must not be
    // named, and of several none can be
    let named: Vec<&[&str]> = if datapaths.len() == 1 { vec![&[]] } else { datapaths.chunks(1).collect() };
    let mut outcome = Ok(());
    for datapath in named {
        for named in those_that_are(run_dir, datapath, stale, ips).await? {
            let arguments: Vec<&str> = datapath.iter().copied().chain(named.iter().map(String::as_str)).collect();
            match Program::Vswitchd.run(run_dir, "dpctl/flush-conntrack", &arguments).await {
                Ok(_) => {}
                Err(e) if e.to_string().contains(ENDED) => {}
                Err(e) => outcome = Err((outcome.err().map_or(1, |(failed, _)| failed + 1), e)),
            }
        }
    }
    Ok(outcome)
}

/// The arguments that end the stale connections that exist; of a few, all, and if a list of all connections is too long.
async fn those_that_are(
    run_dir: &Path,
    datapath: &[&str],
    stale: &[Stale],
    ips: &[IpAddr],
) -> ovnkube_host::Result<Vec<[String; 2]>> {
    let one_by_one = || stale.iter().flat_map(|stale| tuples(stale, ips)).collect();
    if stale.len() <= ONE_BY_ONE {
        return Ok(one_by_one());
    }
    match Program::Vswitchd.run(run_dir, "dpctl/dump-conntrack", datapath).await {
        Ok(dump) => Ok(listed(&dump, stale, ips)),
        // a switch that hangs would let each of them wait
        Err(_) if ask(run_dir).await.is_ok() => Ok(one_by_one()),
        Err(e) => Err(e),
    }
}

/// Ends the connections that the host itself translates and that `moved` changes; `own` are the host's addresses.
pub(crate) async fn end_moved(moved: Moved, own: Vec<IpAddr>) -> ovnkube_host::Result<()> {
    conntrack::end_udp(move |connection| is_moved(connection, &moved, &own)).await.map(drop)
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::{Arc, Mutex};

    use ovnkube_model::Backend;
    use ovnkube_node_plan::services::At;
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{UnixListener, UnixStream};

    use super::*;

    /// Answers one question as ovs-vswitchd; a list of connections is too long for it.
    async fn answer(mut stream: UnixStream, flushed: Arc<Mutex<usize>>) {
        let mut text = Vec::new();
        let question: Value = loop {
            if stream.read_buf(&mut text).await.unwrap_or(0) == 0 {
                return;
            }
            if let Ok(question) = serde_json::from_slice(&text) {
                break question;
            }
        };
        let (result, error) = match question["method"].as_str().unwrap() {
            "dpctl/dump-conntrack" => (Value::Null, json!("too long")),
            "dpctl/dump-dps" => (json!("netdev@ovs-netdev\n"), Value::Null),
            method => {
                *flushed.lock().unwrap() += usize::from(method == "dpctl/flush-conntrack");
                (json!(""), Value::Null)
            }
        };
        let answer = json!({"id": question["id"], "result": result, "error": error});
        stream.write_all(answer.to_string().as_bytes()).await.unwrap();
    }

    /// An ovs-vswitchd, and how many connections it was told to end.
    pub(in super::super) fn switch(dir: &Path) -> (tokio::task::JoinHandle<()>, Arc<Mutex<usize>>) {
        std::fs::write(dir.join("ovs-vswitchd.pid"), "7\n").unwrap();
        let listener = UnixListener::bind(dir.join("ovs-vswitchd.7.ctl")).unwrap();
        let flushed = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&flushed);
        let switch = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&counted)));
            }
        });
        (switch, flushed)
    }

    #[tokio::test]
    async fn connections_end_where_their_list_is_too_long() {
        let dir = std::env::temp_dir().join(format!("ovnkube-stale-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (switch, flushed) = switch(&dir);
        let ip: IpAddr = "10.96.1.3".parse().unwrap();
        let many = ONE_BY_ONE as u16 + 1;
        let stale: Vec<Stale> = (0..many).map(|n| ((At::Ip(ip), 53), Backend { ip, port: 1000 + n })).collect();
        end(&dir, &stale, &[]).await.unwrap().unwrap();
        assert_eq!(*flushed.lock().unwrap(), stale.len());
        switch.abort();
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
