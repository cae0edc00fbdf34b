//! `ovnkube db status` about real servers.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ovnkube_tests::nb::{Release, Server, until};
use ovnkube_tests::raft::{self, Member};
use serde_json::Value;

use crate::lab::Dir;
use crate::process::{ovnkube, soon};

/// What the command printed, and its exit code.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    #[track_caller]
    pub(crate) fn has(&self, code: i32, text: &str) {
        assert!(
            self.code == code && (self.out.contains(text) || self.err.contains(text)),
            "{} {}\n{}",
            self.code,
            self.out,
            self.err
        );
    }
}

/// `ovnkube db` with these words, as on the host of `here`.
pub(crate) fn db(here: &Member, words: &[&str], addresses: &str) -> Said {
    said(&mut command(here, words, addresses))
}

pub(crate) fn said(command: &mut Command) -> Said {
    let out = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: out.status.code().unwrap_or(-1), out: text(out.stdout), err: text(out.stderr) }
}

pub(crate) fn command(here: &Member, words: &[&str], addresses: &str) -> Command {
    let config = here.dir().join("ovn_k8s.conf");
    std::fs::write(&config, "").unwrap();
    let flags = [
        format!("--config-file={}", config.display()),
        format!("--nb-address={addresses}"),
        format!("--nb-run-dir={}", here.dir().display()),
        format!("--nb-db-location={}", here.file().display()),
        "--sb-run-dir=/nowhere".to_owned(),
    ];
    let words = ["db"].iter().chain(words).map(ToString::to_string).chain(flags);
    ovnkube(words)
}

/// The addresses of all, for clients.
pub(crate) fn addresses(members: &[Member]) -> String {
    members.iter().map(Member::remote).collect::<Vec<_>>().join(",")
}

fn status(here: &Member, addresses: &str) -> Said {
    db(here, &["status", "nb"], addresses)
}

fn json(here: &Member, addresses: &str) -> Value {
    let said = db(here, &["status", "nb", "-o", "json"], addresses);
    let reports: Value = serde_json::from_str(&said.out).unwrap();
    reports[0].clone()
}

/// Waits until the status, on the host of `here`, contains this.
pub(crate) async fn told(here: &Member, addresses: &str, code: i32, text: &str) -> Said {
    let mut last = status(here, addresses);
    until(&format!("{text:?} in\n{}", last.out), async || {
        last = status(here, addresses);
        last.code == code && last.out.contains(text)
    })
    .await;
    last
}

async fn a_cluster(release: Release) {
    let elsewhere = Member::new(release);
    let mut members = Member::cluster(release, 3);
    let all = addresses(&members);
    let said = told(&members[0], &all, 0, "healthy: all 3 members are connected, one may fail").await;
    assert_eq!(said.out.matches(": leader, entry ").count(), 1, "{}", said.out);
    assert_eq!(said.out.matches(": follower, up to date").count(), 2, "{}", said.out);
    assert_eq!(said.out.matches("this host").count(), 1, "{}", said.out);
    status(&elsewhere, &all).has(0, "healthy: all 3 members are connected, one may fail");

    let report = json(&members[1], &all);
    let servers = report["servers"].as_array().unwrap();
    assert_eq!((&report["state"], servers.len()), (&"healthy".into(), 3), "{report}");
    let here = &servers[1];
    assert_eq!(here["this_host"], true);
    assert_eq!(here["id"], *members[1].id());
    assert_eq!(here["raft_address"], *members[1].raft());
    assert!(here["term"].as_u64().unwrap() >= 1 && here["index"].as_u64().unwrap() > 1);
    assert_eq!(here["file"]["path"], *members[1].file().display().to_string());
    assert_eq!(here["file"]["bytes"], members[1].file().metadata().unwrap().len());
    assert!(here["file"]["free"].as_u64().unwrap() > 1 && here["entries"].as_u64().is_some(), "{report}");

    // one is killed: both others can say so
    let leader = members.iter().position(Member::is_leader).unwrap();
    let (killed, stopped) = ((leader + 1) % 3, (leader + 2) % 3);
    members[killed].kill();
    let said =
        told(&members[leader], &all, 2, "works, but one more loss stops writes: 2 of 3 members are connected").await;
    let lost = said.out.lines().find(|line| line.contains(&members[killed].remote())).unwrap();
    assert!(lost.contains("no answer: ") && said.out.contains("start ovsdb-server of"), "{}", said.out);
    status(&elsewhere, &all).has(2, "works, but one more loss stops writes: 2 of 3 members are connected");

    // another one does not go on: there is no majority, and asking it costs 3 s
    members[stopped].signal("STOP");
    let said = told(&members[leader], &all, 2, "no leader, no writes: 1 of 3 members answers, and 2 are needed").await;
    assert!(said.out.contains("it was silent for 3 s"), "{}", said.out);
    let began = Instant::now();
    let said = status(&elsewhere, &all);
    assert!(began.elapsed() < Duration::from_secs(3) + soon(), "{:?}", began.elapsed());
    said.has(2, "start ovsdb-server of");
    // on its own host too
    let said = status(&members[stopped], &all);
    let line = said.out.lines().find(|line| line.contains(&members[stopped].remote())).unwrap();
    assert!(line.contains("this host") && line.contains("silent"), "{}", said.out);

    members[stopped].signal("CONT");
    members[killed].start();
    told(&members[leader], &all, 0, "healthy: all 3 members are connected, one may fail").await;
}

#[tokio::test]
async fn a_cluster_of_3_1() {
    a_cluster(Release::Host).await;
}

#[tokio::test]
async fn a_cluster_of_4_0() {
    a_cluster(Release::Lts).await;
}

#[tokio::test]
async fn a_member_that_does_not_reach_the_others() {
    let mut members = Member::cluster(Release::Host, 3);
    let all = addresses(&members);
    let cut = members.iter().position(|member| !member.is_leader()).unwrap();
    members[cut].kill();
    let others: Vec<_> = (0..3).filter(|at| *at != cut).map(|at| members[at].raft_socket()).collect();
    let hidden = |path: &std::path::Path| path.with_extension("hidden");
    for socket in &others {
        std::fs::rename(socket, hidden(socket)).unwrap();
    }
    members[cut].start();
    // nobody finds it either; should one have been quick, its connection ends when this one is killed
    std::fs::rename(members[cut].raft_socket(), hidden(&members[cut].raft_socket())).unwrap();
    let leader = (0..3).find(|at| members[*at].is_leader()).unwrap();
    let text = "works, but one more loss stops writes: 2 of 3 members are connected";
    let said = told(&members[leader], &all, 2, text).await;
    let line = said.out.lines().find(|line| line.contains(&members[cut].remote())).unwrap();
    assert!(line.contains("has lost its cluster"), "{}", said.out);
    assert!(said.out.contains("check the network between it and them"), "{}", said.out);
    // on its own host
    status(&members[cut], &all).has(2, text);
    status(&members[cut], &members[cut].remote()).has(2, "no leader is known: 1 of 3 members answer");
    for socket in others.iter().chain([&members[cut].raft_socket()]) {
        std::fs::rename(hidden(socket), socket).unwrap();
    }
    told(&members[leader], &all, 0, "healthy").await;
}

#[tokio::test]
async fn single_servers_and_pairs() {
    let elsewhere = Member::new(Release::Host);
    let mut active = Member::alone(Release::Host, &[]);
    let said = status(&active, &active.remote());
    said.has(0, "takes writes; a single server: nothing takes over if it fails");
    assert!(said.out.contains(&format!("file {} of ", active.file().display())), "{}", said.out);

    let backup = Member::alone(Release::Host, &[&format!("--sync-from={}", active.remote())]);
    let both = format!("{},{}", active.remote(), backup.remote());
    let healthy = format!("healthy: {} is active, 1 copy it", active.remote());
    let said = told(&backup, &both, 0, &healthy).await;
    let copies = format!("backup, takes no writes, copies {}", active.remote());
    assert!(said.out.contains(&copies), "{}", said.out);
    status(&elsewhere, &both).has(0, &healthy);
    // to ask wrote nothing
    let log = raft::run(Release::Host, "ovsdb-tool", &["show-log".as_ref(), active.file().as_os_str()]);
    assert!(!log.contains("record 1:"), "{log}");

    active.kill();
    status(&elsewhere, &both).has(2, &format!("no active server, no writes: {} only copies", backup.remote()));
    active.start();
    backup.control(&["ovsdb-server/disconnect-active-ovsdb-server"]);
    told(&elsewhere, &both, 2, "all take writes, and none copies another").await;
}

/// Such as the shared address of a pair, and that of the host which has it.
#[tokio::test]
async fn a_server_at_two_addresses_is_one() {
    let (elsewhere, dir) = (Member::new(Release::Host), Dir::new());
    let active = Member::alone(Release::Host, &[]);
    let shared = format!("unix:{}", dir.file("shared.sock").display());
    active.control(&["ovsdb-server/add-remote", &format!("p{shared}")]);
    let single = "takes writes; a single server: nothing takes over if it fails";
    for here in [&elsewhere, &active] {
        for both in [format!("{shared},{}", active.remote()), format!("{},{shared}", active.remote())] {
            told(here, &both, 0, single).await;
        }
    }
    let both = format!("{shared},{}", active.remote());
    let file = dir.file("backup").display().to_string();
    db(&active, &["backup", "nb", &file], &both).has(0, "are in");

    let members = Member::cluster(Release::Host, 3);
    let again = format!("unix:{}", dir.file("again.sock").display());
    members[0].control(&["ovsdb-server/add-remote", &format!("p{again}")]);
    let all = format!("{},{again}", addresses(&members));
    for here in [&elsewhere, &members[0]] {
        told(here, &all, 0, "healthy: all 3 members are connected, one may fail").await;
    }
}

/// As on a host with the servers and two northd, of which one waits.
#[tokio::test]
async fn northd_is_named() {
    let (nb, sb) = (Member::alone(Release::Lts, &[]), Server::southbound(Release::Lts));
    nb.nbctl(&["init"]);
    // without the southbound database, nobody knows
    let unknown = "northd, not here, not known whether active elsewhere, no change was marked";
    status(&nb, &nb.remote()).has(0, unknown);
    let south = format!("--sb-address=unix:{}", sb.socket().display());
    let both = || db(&nb, &["status", "nb", &south], &nb.remote());
    let none = "; no northd is active: changes of the northbound database have no effect; start northd on a host";
    both().has(2, none);
    both().has(2, "northd, not here, none is active");
    let northd = |name: &str| {
        let mut command = Release::Lts.command("ovn-northd");
        command.arg(format!("--ovnnb-db={}", nb.remote())).arg(format!("--ovnsb-db=unix:{}", sb.socket().display()));
        command.arg(format!("--pidfile={}", nb.dir().join(format!("{name}.pid")).display()));
        command.args(["--no-chdir", "-vconsole:off", "-vsyslog:off"]);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        Running(command.env("OVN_RUNDIR", nb.dir()).spawn().unwrap())
    };
    let first = northd("ovn-northd");
    told(&nb, &nb.remote(), 0, "northd, here: active, no change was marked").await;
    nb.nbctl(&["--wait=sb", "ls-add", "s"]);
    status(&nb, &nb.remote()).has(0, "northd, here: active, has taken in all marked changes, the newest is 1");
    assert_eq!(json(&nb, &nb.remote())["northd"]["this_host"], "active");
    both().has(0, "northd, here: active, has taken in all marked changes");
    // from another host
    let elsewhere = Member::new(Release::Lts);
    let other = db(&elsewhere, &["status", "nb", &south], &nb.remote());
    other.has(0, "northd, not here, active on another host, has taken in all marked changes");
    // it hangs; the lock stays its own while its connection does
    first.signal("STOP");
    let said = both();
    said.has(2, "northd, here: no answer: ");
    said.has(2, "northd on this host does not answer; look at its log, and start it again");
    first.signal("CONT");
    // the other one waits for the lock
    let second = northd("other");
    until("its control socket", async || nb.dir().join("other.pid").exists()).await;
    std::fs::copy(nb.dir().join("other.pid"), nb.dir().join("ovn-northd.pid")).unwrap();
    told(&nb, &nb.remote(), 0, "northd, here: standby, not known whether active elsewhere, has taken in all marked")
        .await;
    both().has(0, "northd, here: standby, active on another host");
    // the questions about the lock have taken it from nobody
    nb.nbctl(&["--wait=sb", "ls-add", "t"]);
    drop(first);
    // the other one takes over
    until("the other northd", async || both().out.contains("northd, here: active")).await;
    // none works
    drop(second);
    both().has(2, none);
    nb.nbctl(&["set", "NB_Global", ".", "nb_cfg=4"]);
    let said = status(&nb, &nb.remote());
    said.has(2, "has taken in mark 2 of 4");
    said.has(2, "northd has not taken in the newest change that was marked; look again in some seconds");
}

/// A follower that is cut off still answers, with what it had.
#[tokio::test]
async fn marks_of_northd_are_read_where_they_are_written() {
    let members = Member::cluster(Release::Lts, 3);
    let elsewhere = Member::new(Release::Lts);
    told(&elsewhere, &addresses(&members), 0, "healthy").await;
    let leader = members.iter().position(Member::is_leader).unwrap();
    let cut = &members[(leader + 1) % 3];
    cut.nbctl(&["set", "NB_Global", ".", "nb_cfg=7", "sb_cfg=5"]);
    let mark = async |member: &Member, column: &str, value: &str| {
        until(column, async || member.nbctl(&["get", "NB_Global", ".", column]).trim() == value).await;
    };
    mark(cut, "sb_cfg", "5").await;
    cut.control(&["cluster/failure-test", "stop-raft-rpc"]);
    members[leader].nbctl(&["set", "NB_Global", ".", "sb_cfg=7"]);
    mark(&members[leader], "sb_cfg", "7").await;
    let cut_first = format!("{},{}", cut.remote(), members[leader].remote());
    for _ in 0..5 {
        let said = status(&elsewhere, &cut_first);
        assert!(said.out.contains("has taken in all marked changes, the newest is 7"), "{}", said.out);
    }
}

/// A program that is killed on drop.
struct Running(Child);

impl Running {
    fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn servers_that_are_not_there() {
    let (here, dir) = (Member::new(Release::Host), Dir::new());
    // accepts connections and never answers
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let list = format!("tcp:127.0.0.1:1,tcp:{}", silent.local_addr().unwrap());
    let began = Instant::now();
    let said = status(&here, &list);
    assert!(began.elapsed() < Duration::from_secs(3) + soon(), "{:?}", began.elapsed());
    said.has(2, "no server of the database answers: tcp:127.0.0.1:1, tcp:127.0.0.1:");
    assert!(said.out.contains("refused") && said.out.contains("it was silent for 3 s"), "{}", said.out);

    // both databases, one line for each server
    let south = Server::southbound(Release::Host);
    let address = format!("unix:{}", south.socket().display());
    status(&here, &address).has(2, "no answer: the server has no database OVN_Northbound but OVN_Southbound");
    let config = dir.file("ovn_k8s.conf");
    std::fs::write(&config, format!("[ovnnorth]\naddress=tcp:127.0.0.1:1\n[ovnsouth]\naddress={address}\n")).unwrap();
    let out = ovnkube(["db", "status", "--config-file", &config.display().to_string()]).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let (north, south) = text.split_once("\n\n").unwrap();
    assert!(north.starts_with("OVN_Northbound\n") && south.starts_with("OVN_Southbound, schema "), "{text}");
    assert!(south.contains("takes writes; a single server"), "{text}");
}

#[test]
fn words_that_are_none() {
    for (words, problem) in [
        (vec!["db"], "db needs to know what to do: status, backup"),
        (vec!["db", "state", "nb"], "\"state\" is none of status"),
        (vec!["db", "status", "north"], "\"north\" is no database; write nb or sb"),
        (vec!["db", "compact"], "compact needs a database; write nb or sb"),
        (vec!["db", "backup", "nb"], "backup needs the file to write"),
        (vec!["db", "compact", "nb", "-o", "json"], "prints JSON with status only"),
        (vec!["db", "join", "nb", "10.0.0.1"], "has no scheme"),
        (vec!["db", "join", "nb", "tcp:10.0.0.1:6643,tcp:10.0.0.2:6643"], "is not one address"),
        (vec!["db", "status", "nb", "more"], "\"more\" is an unexpected argument"),
        // variables that were not set; without a member's name, this host's own would leave
        (vec!["db", "leave", "nb", ""], "leave: the member to remove is empty"),
        (vec!["db", "status", ""], "\"\" is no database"),
        (vec!["db", "backup", "nb", ""], "backup: the file is empty"),
        (vec!["db", "restore", "nb", ""], "restore: the file is empty"),
        (vec!["db", "join", "nb", ""], "join: this host's address is empty"),
        (vec!["db", "replace", "nb", "tcp:10.0.0.1:6643", ""], "replace: the list of the members' addresses is empty"),
        (
            vec!["db", "join", "nb", "tcp:10.0.0.1:6643", "tcp:10.0.0.2:6643,,tcp:10.0.0.3:6643"],
            "an address of the list is empty",
        ),
        (vec!["db", "bootstrap", "nb", "tcp:10.0.0.1:6643", ""], "bootstrap: the file of a backup is empty"),
        (vec!["db", "convert", "nb", ""], "convert: the file of the schema is empty"),
        (vec!["db", "status", "nb", "--nb-address="], "--nb-address is empty; write its value, or leave it out"),
        (vec!["db", "status", "--nb-run-dir", ""], "--nb-run-dir is empty"),
        (vec!["db", "compact", "nb", "--nb-db-location", " "], "--nb-db-location is empty"),
        (vec!["ic", "status", "--sb-address", ""], "--sb-address is empty"),
        (
            vec!["db", "status", "nb", "--nb-address=tcp:10.0.0.1:6641,,tcp:10.0.0.3:6641"],
            "(--nb-address), given by flag: an address of the list is empty",
        ),
    ] {
        let out = ovnkube(&words).output().unwrap();
        let error = String::from_utf8(out.stderr).unwrap();
        assert_eq!((out.status.code(), error.contains(problem)), (Some(1), true), "{words:?}: {error}");
    }
}
