//! Asks the servers of a database, side by side.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::time::Duration;

use futures::future::{join_all, select_ok};
use ovnkube_db::{Answer, ClusterStatus, Control, Model, Northd, Observed, Seen};
use ovnkube_ovn::{Database, sb};
use ovnkube_ovsdb::{About, Questions, Remote, TlsFiles, is_listening, is_lock_held};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::files;
use super::place::{self, Place, WITHIN};

/// Of the active northd, in each server of the southbound database.
const NORTHD_LOCK: &str = "ovn_northd";
/// How often northd is asked whether it has taken in what waits.
const AGAIN: Duration = Duration::from_millis(500);

/// An answer, and whose process gave it.
type Asked = Result<About, String>;

pub(crate) async fn look(place: &Place) -> Observed {
    let (tls, database) = (place.tls.as_ref(), place.database);
    let asked = join_all(place.remotes.iter().map(|remote| ask(remote, tls, database)));
    let socket = Remote::Unix(place.run_file("sock"));
    let (asked, here, control) = tokio::join!(asked, ask(&socket, tls, database), control(place));
    let distinct = distinct(&asked);
    let mut servers = all_seen(&place.remotes, &asked, &distinct);
    if let Some(control) = control {
        let ours = whose(place, &socket, &asked, &here).and_then(|at| distinct.iter().position(|kept| *kept == at));
        match ours.and_then(|at| servers.get_mut(at)) {
            Some(server) => server.control = Some(control),
            None => servers.push(Seen {
                control: Some(control),
                unnamed: place.addressed,
                ..seen(socket.to_string(), &here)
            }),
        }
    }
    let northd = if place.word == "nb" { Some(northd(place, &newest(place, &asked)).await) } else { None };
    Observed { database: place.database.name, servers, addressed: place.addressed, northd }
}

/// The one that takes writes, which has the newest contents; all, if none does.
fn newest<'a>(place: &'a Place, asked: &[Asked]) -> Vec<&'a Remote> {
    match writer(asked).and_then(|at| place.remotes.get(at)) {
        Some(remote) => vec![remote],
        None => place.remotes.iter().collect(),
    }
}

/// The server that takes writes. Of two leaders, one was cut off from the other and does not know yet.
fn writer(asked: &[Asked]) -> Option<usize> {
    let takes_writes = |about: &About| match about.model.as_str() {
        "clustered" => about.leader && about.connected,
        "standalone" => about.read_only != Some(true),
        _ => false,
    };
    let all = asked.iter().enumerate().filter_map(|(at, asked)| Some((at, asked.as_ref().ok()?)));
    let writers = all.filter(|(_, about)| takes_writes(about));
    writers.max_by_key(|(_, about)| about.index).map(|(at, _)| at)
}

/// What northd on this host says, and how far any northd is, as these servers tell.
async fn northd(place: &Place, servers: &[&Remote]) -> Northd {
    let marks = marks(servers, place.tls.as_ref());
    let (this_host, active, marks) = tokio::join!(northd_here(place), is_northd_active(place), marks);
    Northd { this_host, active, nb_cfg: marks.map(|(wanted, _)| wanted), sb_cfg: marks.map(|(_, done)| done) }
}

/// Whether a northd holds the lock of the southbound database, within some seconds: another one may just be taking over. Nothing if no
/// server answers at which it would.
pub(crate) async fn is_northd_active(place: &Place) -> Option<bool> {
    let (remotes, tls) = place.south.as_ref()?;
    let began = Instant::now();
    loop {
        let asked = join_all(remotes.iter().map(|remote| ask(remote, tls.as_ref(), &sb::DATABASE))).await;
        if let Some(remote) = writer(&asked).and_then(|at| remotes.get(at)) {
            let held = timeout(WITHIN, is_lock_held(remote, tls.as_ref(), NORTHD_LOCK)).await;
            match held {
                Ok(Ok(true)) => return Some(true),
                Ok(Ok(false)) if began.elapsed() > WITHIN => return Some(false),
                Ok(Ok(false)) => {}
                _ => return None,
            }
        } else if began.elapsed() > WITHIN || asked.iter().all(Result::is_err) {
            return None;
        }
        sleep(AGAIN).await;
    }
}

/// The state of northd on this host, in its word, or why it does not tell; nothing if none runs here.
pub(crate) async fn northd_here(place: &Place) -> Option<String> {
    let socket = place.northd_socket()?;
    let said = match place::control(&socket, "status", &[], WITHIN).await {
        Ok(said) => said.trim().trim_start_matches("Status: ").to_owned(),
        // a killed one leaves its socket
        Err(_) if !is_listening(&socket).await => return None,
        Err(problem) => format!("no answer: {problem}"),
    };
    Some(said.chars().take(80).collect())
}

/// The newest change that was marked before, and how far northd has come some seconds later if it is behind.
async fn marks(servers: &[&Remote], tls: Option<&TlsFiles>) -> Option<(i64, i64)> {
    let (wanted, mut done) = mark(servers, tls).await?;
    let began = Instant::now();
    while done < wanted && began.elapsed() < WITHIN {
        sleep(AGAIN).await;
        done = mark(servers, tls).await?.1;
    }
    Some((wanted, done.min(wanted)))
}

/// From the first of these that answers.
async fn mark(servers: &[&Remote], tls: Option<&TlsFiles>) -> Option<(i64, i64)> {
    let asked = servers.iter().map(|remote| {
        Box::pin(async move {
            let marks = timeout(WITHIN, marks_at(remote, tls)).await;
            marks.ok().flatten().ok_or(())
        })
    });
    Some(select_ok(asked.collect::<Vec<_>>()).await.ok()?.0)
}

async fn marks_at(remote: &Remote, tls: Option<&TlsFiles>) -> Option<(i64, i64)> {
    let mut questions = Questions::connect(remote, tls).await.ok()?;
    let select =
        json!(["OVN_Northbound", {"op": "select", "table": "NB_Global", "where": [], "columns": ["nb_cfg", "sb_cfg"]}]);
    let rows = questions.ask("transact", &select).await.ok()?;
    let mark = |column: &str| rows.pointer(&format!("/0/rows/0/{column}"))?.as_i64();
    Some((mark("nb_cfg")?, mark("sb_cfg")?))
}

/// What the servers at these addresses say.
pub(crate) async fn servers(remotes: &[Remote], tls: Option<&TlsFiles>, database: &'static Database) -> Observed {
    let asked = join_all(remotes.iter().map(|remote| ask(remote, tls, database))).await;
    let servers = all_seen(remotes, &asked, &distinct(&asked));
    Observed { database: database.name, servers, addressed: true, northd: None }
}

/// Which of those that were asked are others than the ones before: a shared address, or a name, may lead to a server whose own address
/// is given too. It would be counted twice.
fn distinct(asked: &[Asked]) -> Vec<usize> {
    let process = |asked: &Asked| asked.as_ref().ok().map(|about| about.process.clone());
    let mut known = BTreeSet::new();
    let is_new = |at: &usize| asked.get(*at).and_then(process).is_none_or(|process| known.insert(process));
    (0..asked.len()).filter(is_new).collect()
}

fn all_seen(remotes: &[Remote], asked: &[Asked], distinct: &[usize]) -> Vec<Seen> {
    let one = |at: &usize| Some(seen(remotes.get(*at)?.to_string(), asked.get(*at)?));
    distinct.iter().filter_map(one).collect()
}

async fn ask(remote: &Remote, tls: Option<&TlsFiles>, database: &'static Database) -> Asked {
    match timeout(WITHIN, About::ask(remote, tls, database)).await {
        Ok(about) => about.map_err(|error| error.to_string()),
        Err(_) => Err(format!("it was silent for {} s", WITHIN.as_secs())),
    }
}

fn seen(address: String, asked: &Asked) -> Seen {
    let model = |about: &About| match about.model.as_str() {
        "clustered" => Model::Clustered,
        "relay" => Model::Relay,
        _ => Model::Standalone,
    };
    let answer = |about: &About| Answer {
        model: model(about),
        connected: about.connected,
        leader: about.leader,
        read_only: about.read_only,
        cluster: about.cluster.clone(),
        member: about.member.clone(),
        index: about.index,
        schema: about.schema.clone(),
    };
    Seen { address, answer: asked.as_ref().ok().map(answer), problem: asked.as_ref().err().cloned(), ..Seen::default() }
}

/// Whether it is an address of this host; asks for the addresses of a name, which may take long.
pub(crate) fn is_here(remote: &Remote) -> bool {
    match remote {
        Remote::Tcp { host, .. } | Remote::Ssl { host, .. } => UdpSocket::bind((host.as_str(), 0)).is_ok(),
        Remote::Unix(_) => false,
    }
}

/// Which of the servers that were asked is the one on this host: the same process, or if that is silent, one that is silent at an
/// address of this host.
fn whose(place: &Place, socket: &Remote, asked: &[Asked], here: &Asked) -> Option<usize> {
    if let Ok(here) = here {
        return asked.iter().position(|asked| asked.as_ref().is_ok_and(|asked| asked.process == here.process));
    }
    let is_ours = |remote: &Remote| is_here(remote) || remote == socket;
    let mut silent = (0..asked.len())
        .filter(|at| asked.get(*at).is_some_and(Result::is_err) && place.remotes.get(*at).is_some_and(is_ours));
    silent.next().filter(|_| silent.next().is_none())
}

/// What the server on this host says on its control socket; nothing if no server has one here.
async fn control(place: &Place) -> Option<Control> {
    let database = place.database.name;
    let arguments = [database];
    let (databases, cluster, replication) = tokio::join!(
        place.control("ovsdb-server/list-dbs", &[], WITHIN),
        place.control("cluster/status", &arguments, WITHIN),
        place.control("ovsdb-server/sync-status", &[], WITHIN),
    );
    let problem = match databases {
        Ok(names) if !names.lines().any(|name| name == database) => return None,
        Ok(_) => None,
        // a socket that nobody listens at any more
        Err(_) if !runs(place).await => return None,
        Err(problem) => Some(problem.to_string()),
    };
    let copied = replication.as_deref().ok().and_then(backup_of);
    Some(Control {
        problem,
        cluster: cluster.ok().as_deref().and_then(ClusterStatus::parse),
        excluded: replication.as_deref().map(|text| excluded(text, database)).unwrap_or_default(),
        apart: copied.is_some_and(|(_, is_copied)| !is_copied),
        backup_of: copied.map(|(of, _)| of.to_owned()),
        file: files::open_by(place),
    })
}

/// Whether a process listens at the control socket, even if it does not answer.
pub(crate) async fn runs(place: &Place) -> bool {
    is_listening(&place.run_file("ctl")).await
}

/// The answer of a backup has `exclude: DATABASE:TABLE,…`: the tables of this database that it does not copy.
fn excluded(text: &str, database: &str) -> Vec<String> {
    let list = text.lines().find_map(|line| line.strip_prefix("exclude: ")).unwrap_or_default();
    let tables = list.split(',').filter_map(|one| one.trim().strip_prefix(database)?.strip_prefix(':'));
    tables.map(|table| table.chars().take(80).collect()).collect()
}

/// Whom a backup copies, and whether it has begun. Its answer has `state: backup`, and `replicating: ADDRESS` from the first copy on, also
/// while it has lost that server.
fn backup_of(text: &str) -> Option<(&str, bool)> {
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    value("state: backup")?;
    let failed = || value("Replication to (")?.split_once(')').map(|(address, _)| address);
    let other = || value("connecting: ").or_else(|| value("not connected to ")).or_else(failed);
    match value("replicating: ") {
        Some(address) => Some((address, true)),
        None => Some((other().unwrap_or("a server"), false)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What ovsdb-server 3.1 and 4.0 answer to `ovsdb-server/sync-status`.
    #[test]
    fn what_a_backup_copies() {
        let of = "tcp:10.0.0.9:6641";
        for (text, want) in [
            (format!("state: backup\nreplicating: {of}\ndatabase: OVN_Northbound\n"), Some((of, true))),
            (format!("database: OVN_Northbound\nstate: backup\nreplicating: {of}\nexclude: a:B"), Some((of, true))),
            (format!("state: backup\nconnecting: {of}"), Some((of, false))),
            (format!("database: OVN_Northbound\nstate: backup\nnot connected to {of}"), Some((of, false))),
            (format!("state: backup\nReplication to ({of}) failed"), Some((of, false))),
            ("state: backup\n".to_owned(), Some(("a server", false))),
            ("state: active\n".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(backup_of(&text), want, "{text}");
        }
    }
    /// A master asks a server each minute. While that stands still, all who have asked wait in the queue of its socket, until it is full.
    #[tokio::test]
    async fn a_server_that_stands_still_runs() {
        let dir = std::env::temp_dir().join(format!("ovnkube-stands-still-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        let run_dir = format!("--nb-run-dir={}", dir.display());
        let words = ["--config-file=/dev/null", "-init-node=n", &run_dir].map(Into::into);
        let loaded = ovnkube_config::load(words, |_| None, &ovnkube_config::Places::default());
        let place = Place::of(&loaded.unwrap().settings, ovnkube_config::Side::North);
        let socket = tokio::net::UnixSocket::new_stream().unwrap();
        socket.bind(place.run_file("ctl")).unwrap();
        let server = socket.listen(1).unwrap();
        let mut waiting = Vec::new();
        while let Ok(asked) = tokio::net::UnixStream::connect(place.run_file("ctl")).await {
            waiting.push(asked);
        }
        assert!(runs(&place).await);
        let problem = control(&place).await.unwrap().problem;
        assert!(problem.is_some(), "it answers");
        drop(server);
        assert!(!runs(&place).await, "only its socket is left");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
