//! What is to be said beside how the servers are: of the disk, of a log that grows, of northd.

use crate::cluster_status::ClusterStatus;
use crate::judgement::{Judgement, State, size};
use crate::observed::{DatabaseFile, Northd, Observed};
use crate::own_rows::OWN;
use crate::servers::{Role, Server, Servers};

/// A member goes on without what it could not write, and ovsdb-server does not start with a file that lacks entries.
pub(crate) const COMPACT: &str = "as soon as there is room, run ovnkube db compact, before ovsdb-server is stopped: its file may lack entries, and would be of no \
     use any more";

/// A file needs room beside it for a second one, when it is compacted, and to grow.
const ROOM: u64 = 100_000_000;
/// A log with more entries in a larger file should have been compacted: ovsdb-server does so by itself when it has grown a lot.
const MOST_ENTRIES: u64 = 100_000;
const LARGE: u64 = 100_000_000;

/// The judgement of the servers, together with the guards.
pub(crate) fn with_guards(judgement: Judgement, observed: &Observed, servers: &Servers) -> Judgement {
    let word = observed.word();
    let here = servers.all.iter().find(|server| server.this_host);
    let found = [
        here.and_then(full),
        here.and_then(|here| grown(here, word)),
        here.and_then(|here| partial(here, word)),
        observed.northd.as_ref().and_then(idle),
    ];
    // a server that is alone cannot be written any more
    let is_stuck = here.is_some_and(|here| here.role == Role::Active && no_writes(here));
    let least = if is_stuck { State::Broken } else { State::Degraded };
    found.into_iter().flatten().fold(judgement, |judged, (problem, remedy)| Judgement {
        state: judged.state.max(least),
        text: format!("{}; {problem}", judged.text),
        remedy: Some(judged.remedy.map_or(remedy.clone(), |first| format!("{first}; {remedy}"))),
    })
}

fn no_writes(here: &Server) -> bool {
    here.file.as_ref().is_some_and(DatabaseFile::takes_no_writes)
}

fn full(here: &Server) -> Option<(String, String)> {
    full_disk(here.file.as_ref()?, here.trouble.is_none() && here.entries.is_some())
}

/// What is to be said of the file of a server, and the reason of the Event that says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblem {
    pub reason: &'static str,
    /// With what to do.
    pub text: String,
    /// Whether nothing can be written now.
    pub is_full: bool,
}

/// What a master says of the file of the server on its host. `status`: of a member.
pub fn file_problems(file: &DatabaseFile, status: Option<&ClusterStatus>, word: &str) -> Vec<FileProblem> {
    let disk = full_disk(file, status.is_some()).map(|said| ("DatabaseDiskFull", said, file.takes_no_writes()));
    let log = status.and_then(|status| grown_log(file, status.entries, word));
    let log = log.map(|said| ("DatabaseLogGrown", said, false));
    let all = disk.into_iter().chain(log);
    let told = all.map(|(reason, (problem, remedy), is_full)| {
        let text = format!("{problem}; {remedy}");
        FileProblem { reason, text, is_full }
    });
    told.collect()
}

/// That a disk has no room for the file of a server, or soon will not, and what to do. Of a member that has not noticed, that is more.
fn full_disk(file: &DatabaseFile, is_member: bool) -> Option<(String, String)> {
    if file.read_only {
        let remedy = "look at the kernel's log of this host: file systems become so when their disk fails";
        return Some((format!("{} is on a file system that takes no writes", file.path), remedy.to_owned()));
    }
    if file.free == Some(0) {
        let member = if is_member { format!("; {COMPACT}") } else { String::new() };
        let remedy = format!("make room there: ovsdb-server cannot write until then{member}");
        return Some((format!("the disk of {} is full", file.path), remedy));
    }
    let free = file.free.filter(|free| *free < file.bytes.saturating_add(ROOM))?;
    Some((
        format!("the disk of {} is nearly full: {} are left", file.path, size(free)),
        "make room there: without it, ovsdb-server cannot write".to_owned(),
    ))
}

fn grown(here: &Server, word: &str) -> Option<(String, String)> {
    grown_log(here.file.as_ref()?, here.entries?, word)
}

/// That a member should have compacted its log, and what to do.
fn grown_log(file: &DatabaseFile, entries: u64, word: &str) -> Option<(String, String)> {
    (entries > MOST_ENTRIES && file.bytes > LARGE).then(|| {
        (
            format!("the log in {} has grown to {entries} entries and {}", file.path, size(file.bytes)),
            format!("run ovnkube db compact {word} on this host"),
        )
    })
}

fn partial(here: &Server, word: &str) -> Option<(String, String)> {
    let lacking: Vec<&str> = here.excluded.iter().map(String::as_str).filter(|table| !OWN.contains(table)).collect();
    here.backup_of.as_ref().filter(|_| !lacking.is_empty()).map(|of| {
        (
            format!(
                "the backup on this host does not copy {} from {of}: if it becomes active, these are lost",
                lacking.join(", ")
            ),
            format!(
                "leave --sync-exclude-tables out when it is started; until then, on this host, ovs-appctl -t \
                 /var/run/ovn/ovn{word}_db.ctl ovsdb-server/set-sync-exclude-tables \"\""
            ),
        )
    })
}

fn idle(northd: &Northd) -> Option<(String, String)> {
    if northd.this_host.as_deref() == Some("paused") {
        let remedy = "run ovn-appctl -t ovn-northd resume on this host";
        return Some(("northd on this host is paused".to_owned(), remedy.to_owned()));
    }
    let told = |problem: &str, remedy: &str| Some((problem.to_owned(), remedy.to_owned()));
    match (northd.this_host.as_deref(), northd.active) {
        (Some("active"), Some(false)) => {
            return told(
                "northd on this host is active, but not with the southbound database of --sb-address",
                "give northd and this command the addresses of one database",
            );
        }
        (_, Some(false)) => {
            return told(
                "no northd is active: changes of the northbound database have no effect",
                "start northd on a host of the databases, and look at its log",
            );
        }
        (Some(here), _) if here.starts_with("no answer") => {
            return told("northd on this host does not answer", "look at its log, and start it again");
        }
        _ => {}
    }
    northd.is_behind().then(|| {
        (
            "northd has not taken in the newest change that was marked".to_owned(),
            "look again in some seconds; if it stays so, no northd works: start one, and look at its log".to_owned(),
        )
    })
}
