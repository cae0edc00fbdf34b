//! OpenFlow rules of one bridge: written with `ovs-ofctl`, watched over a separate OpenFlow connection.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::program::Program;
use crate::{Error, Result};

const OFCTL: Program = Program {
    name: "ovs-ofctl",
    package: "openvswitch-switch",
    remedy: "see that ovs-vswitchd runs and answers: `ovs-appctl version`",
};
/// Exit status of `ovs-ofctl diff-flows` when there are differences.
const DIFFERENT: i32 = 2;

/// A bridge of the local switch.
#[derive(Debug, Clone)]
pub struct Switch {
    bridge: String,
    socket: PathBuf,
}

/// What [`Switch::sync`] did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Synced {
    pub added: usize,
    pub removed: usize,
    /// Wanted flows that were left out, because another program's flow has the same table,
    /// priority and match.
    pub taken: Vec<String>,
}

impl Switch {
    /// `run_dir` is where ovs-vswitchd has its sockets.
    pub fn new(run_dir: &Path, bridge: &str) -> Self {
        Self { bridge: bridge.to_owned(), socket: run_dir.join(format!("{bridge}.mgmt")) }
    }

    /// Replaces the flows with `cookie` by `wanted` in one bundle. Flows with other cookies stay.
    /// Writes nothing when nothing differs.
    pub async fn sync(&self, cookie: &str, wanted: &[String]) -> Result<Synced> {
        let (changes, synced) = self.compare(cookie, wanted).await?;
        if !changes.is_empty() {
            let what = format!("change the flows of {}", self.bridge);
            OFCTL.run(&what, &["--bundle", "add-flows", &self.target(), "-"], &changes, &[0]).await?;
        }
        Ok(synced)
    }

    /// What [`Switch::sync`] would write, as lines for `ovs-ofctl add-flows`, and what it would return. Writes nothing.
    pub async fn compare(&self, cookie: &str, wanted: &[String]) -> Result<(String, Synced)> {
        let wanted = wanted.join("\n") + "\n";
        let what = format!("compare the flows of {}", self.bridge);
        let args = ["--no-names", "diff-flows", &self.target(), "/dev/stdin"];
        let diff = OFCTL.run(&what, &args, &wanted, &[0, DIFFERENT]).await?;
        Ok(plan(&diff, cookie))
    }

    fn target(&self) -> String {
        format!("unix:{}", self.socket.display())
    }

    /// Watches for changes of any flow, and for the end of ovs-vswitchd.
    pub async fn watch(&self) -> Result<Watch> {
        let failed = |problem| Error::Watch { bridge: self.bridge.clone(), problem };
        let mut stream = UnixStream::connect(&self.socket).await.map_err(failed)?;
        stream.write_all(&[hello(), monitor()].concat()).await.map_err(failed)?;
        Ok(Watch { stream, buffer: Vec::new() })
    }
}

/// Turns the output of `diff-flows` into lines for `add-flows`.
fn plan(diff: &str, cookie: &str) -> (String, Synced) {
    // ovs-ofctl 3.1 reports a flow that matches fragments as different from itself
    let of = |sign: char| diff.lines().filter_map(move |line| line.strip_prefix(sign)).collect::<BTreeSet<_>>();
    let (old, new) = (of('-'), of('+'));
    let (gone, wanted) = (old.difference(&new), new.difference(&old));
    let gone: Vec<_> = gone.filter_map(|line| Flow::parse(line)).collect();
    let foreign: BTreeSet<&str> = gone.iter().filter(|have| have.cookie != cookie).map(|have| have.key).collect();
    let mut synced = Synced::default();
    let mut changes = Vec::new();
    let mut added = BTreeSet::new();
    for new in wanted.filter_map(|line| Flow::parse(line)) {
        if foreign.contains(new.key) {
            synced.taken.push(new.key.to_owned());
            continue;
        }
        added.insert(new.key);
        synced.added += 1;
        changes.push(format!("add {}cookie={},{}\n", separated(new.key), new.cookie, new.actions));
    }
    // adding a flow replaces the one with the same key
    for old in gone.iter().filter(|have| have.cookie == cookie && !added.contains(have.key)) {
        synced.removed += 1;
        changes.push(format!("delete_strict {}cookie={cookie}/-1\n", separated(old.key)));
    }
    (changes.concat(), synced)
}

/// `[table=N ][MATCH ][cookie=C ]actions=…`
struct Flow<'a> {
    /// Table, priority and match, which together identify a flow.
    key: &'a str,
    cookie: &'a str,
    actions: &'a str,
}

impl<'a> Flow<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (head, _) = line.split_once("actions=")?;
        let actions = line.get(head.len()..)?;
        let (key, cookie) = head.split_once("cookie=").unwrap_or((head, "0"));
        Some(Self { key: key.trim(), cookie: cookie.split([' ', ',']).next()?, actions })
    }
}

fn separated(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("{},", key.split_whitespace().collect::<Vec<_>>().join(",")) }
}

/// An OpenFlow connection on which the switch reports every change of a flow.
#[derive(Debug)]
pub struct Watch {
    stream: UnixStream,
    /// Bytes received but not yet parsed.
    buffer: Vec<u8>,
}

const VERSION: u8 = 1;
const HELLO: u8 = 0;
const ECHO_REQUEST: u8 = 2;
const ECHO_REPLY: u8 = 3;
const STATS_REQUEST: u8 = 16;
const HEADER: usize = 8;

impl Watch {
    /// Returns after at least one message that may report a change. `false`: the switch has closed
    /// the connection, watch again. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> bool {
        loop {
            if !matches!(self.stream.read_buf(&mut self.buffer).await, Ok(1..)) {
                return false;
            }
            let mut heard = false;
            while let Some(mut message) = self.message() {
                match message.get_mut(1) {
                    Some(&mut HELLO) => {}
                    Some(kind @ &mut ECHO_REQUEST) => {
                        *kind = ECHO_REPLY;
                        // so few bytes always fit; without an answer the switch would close the connection
                        let _ = self.stream.try_write(&message);
                    }
                    _ => heard = true,
                }
            }
            if heard {
                return true;
            }
        }
    }

    /// Takes the next whole message out of the buffer.
    fn message(&mut self) -> Option<Vec<u8>> {
        let length = self.buffer.get(2..4)?.try_into().map(u16::from_be_bytes).ok()?;
        let length = usize::from(length).max(HEADER);
        (self.buffer.len() >= length).then(|| self.buffer.drain(..length).collect())
    }
}

fn hello() -> Vec<u8> {
    vec![VERSION, HELLO, 0, 8, 0, 0, 0, 1]
}

/// `NXST_FLOW_MONITOR` for flows that are added, deleted or modified, in any table.
fn monitor() -> Vec<u8> {
    let mut message = vec![VERSION, STATS_REQUEST, 0, 40, 0, 0, 0, 2];
    message.extend([0xff, 0xff, 0, 0]); // vendor statistics
    message.extend([0, 0, 0x23, 0x20, 0, 0, 0, 2, 0, 0, 0, 0]); // Nicira's, flow monitor
    message.extend([0, 0, 0, 1, 0, 2 | 4 | 8]); // id; add, delete, modify
    message.extend([0xff, 0xff, 0, 0, 0xff, 0, 0, 0, 0, 0]); // any port, no match, any table
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As both releases of `ovs-ofctl diff-flows` print it.
    const DIFF: &str = "\
+priority=500,ip,in_port=2 cookie=0xdeff105 actions=ct(commit,table=4,zone=64001,nat(dst=172.18.0.2))
-priority=33,ip cookie=0x7 actions=drop
+priority=33,ip cookie=0xdeff105 actions=LOCAL
-priority=0 actions=NORMAL
-table=1 priority=0 cookie=0xdeff105 actions=drop
+table=1 priority=0 cookie=0xdeff105 actions=NORMAL
-table=3  cookie=0xdeff105 actions=LOCAL
";

    #[test]
    fn foreign_flows_stay() {
        let (changes, synced) = plan(DIFF, "0xdeff105");
        assert_eq!(
            changes,
            "add priority=500,ip,in_port=2,cookie=0xdeff105,actions=ct(commit,table=4,zone=64001,nat(dst=172.18.0.2))\n\
             add table=1,priority=0,cookie=0xdeff105,actions=NORMAL\n\
             delete_strict table=3,cookie=0xdeff105/-1\n"
        );
        assert_eq!(synced, Synced { added: 2, removed: 1, taken: vec!["priority=33,ip".to_owned()] });
    }

    #[test]
    fn nothing_differs() {
        assert_eq!(plan("", "0xdeff105"), (String::new(), Synced::default()));
        assert_eq!(plan("-priority=0 actions=NORMAL\n", "0xdeff105"), (String::new(), Synced::default()));
        let same = "priority=110,ip,in_port=1,nw_frag=yes cookie=0xdeff105 actions=ct(table=0,zone=64004)\n";
        assert_eq!(plan(&format!("-{same}+{same}"), "0xdeff105"), (String::new(), Synced::default()));
    }
}
