//! Says that the disk of a database's server on this host is full or nearly full, or that the log of a member has not been compacted: in
//! the log, and as an Event of the namespace of ovnkube. Each master says so, also one that waits for the lease: it looks at its own host
//! only.

use std::collections::BTreeMap;
use std::time::Duration;

use ovnkube_config::{Settings, Side};
use ovnkube_db::{ClusterStatus, DatabaseFile, FileProblem, file_problems};
use ovnkube_ovsdb::NoAnswer;
use ovnkube_watch::{Client, Events};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use crate::db::files;
use crate::db::look::runs;
use crate::db::place::{Place, WITHIN};
use crate::stranger::{REMIND, warning};

/// How often it is looked at: 100 MB are left when it is told.
const AGAIN: Duration = Duration::from_secs(60);

/// Runs for as long as the process does, on the host of this name.
pub(crate) async fn keep(settings: &Settings, host: &str, api: &Client, events: &Events) {
    let sides = [Side::North, Side::South].map(|side| keep_one(settings, side, host, api, events));
    futures::future::join_all(sides).await;
}

async fn keep_one(settings: &Settings, side: Side, host: &str, api: &Client, events: &Events) {
    let (mut told, mut reader) = (Told::default(), Reader::default());
    loop {
        // the directory of the socket depends on what is there
        let place = Place::of(settings, side);
        if let Some(problems) = problems(&place, &mut reader).await {
            let (new, over) = told.news(&problems);
            for problem in new {
                let message = format!("{} on host {host}: {}", place.database.name, problem.text);
                warn!("{message}");
                let namespace = &settings.kubernetes.ovn_config_namespace;
                events.publish(warning(api, namespace, problem.reason, message).await);
            }
            for reason in over {
                info!(database = place.database.name, reason, "this problem of its server on this host is over");
            }
        }
        sleep(AGAIN).await;
    }
}

/// What was said of a server: by reason, when, and whether the disk was full.
#[derive(Default)]
struct Told(BTreeMap<&'static str, (Instant, bool)>);

impl Told {
    /// Which of these problems are to be said, and what was said before and is over.
    fn news<'a>(&mut self, problems: &'a [FileProblem]) -> (Vec<&'a FileProblem>, Vec<&'static str>) {
        // that it is full now is news
        let is_known = |problem: &FileProblem| {
            let told = self.0.get(problem.reason);
            told.is_some_and(|(at, was)| at.elapsed() <= REMIND && (*was || !problem.is_full))
        };
        let new: Vec<_> = problems.iter().filter(|problem| !is_known(problem)).collect();
        self.0.extend(new.iter().map(|problem| (problem.reason, (Instant::now(), problem.is_full))));
        let is_over = |reason: &&str| problems.iter().all(|problem| problem.reason != *reason);
        let over: Vec<_> = self.0.keys().copied().filter(is_over).collect();
        self.0.retain(|reason, _| !over.contains(reason));
        (new, over)
    }
}

/// Reads files on threads of their own: a disk that fails answers late or never, and so does a server of files that is away.
#[derive(Default)]
struct Reader<T>(Option<JoinHandle<T>>);

impl<T: Send + 'static> Reader<T> {
    /// What is read. Nothing if that takes longer, or if an earlier read has not ended: they take up one thread, however long that is.
    async fn read(&mut self, within: Duration, database: &str, read: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        if self.0.as_ref().is_some_and(|earlier| !earlier.is_finished()) {
            return None;
        }
        let reading = self.0.insert(spawn_blocking(read));
        if let Ok(read) = timeout(within, reading).await {
            return read.ok();
        }
        warn!(database, "the disk of its server on this host does not answer within {within:?}");
        None
    }
}

/// Of the server on this host. Nothing if that is not known: no server of the database runs here, such as one that has ended because its
/// disk is full, or it does not answer, or its disk does not.
async fn problems(place: &Place, reader: &mut Reader<Option<DatabaseFile>>) -> Option<Vec<FileProblem>> {
    if !runs(place).await {
        return None;
    }
    let status = match place.control("cluster/status", &[place.database.name], WITHIN).await {
        Ok(said) => ClusterStatus::parse(&said),
        // it is in no cluster
        Err(NoAnswer::Refused(_)) => None,
        Err(NoAnswer::Failed(_)) => return None,
    };
    let (of, database) = (place.clone(), place.database.name);
    let file = reader.read(WITHIN, database, move || files::open_by(&of)).await??;
    Some(file_problems(&file, status.as_ref(), place.word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_server() {
        let problem = |reason, is_full| FileProblem { reason, text: String::new(), is_full };
        let (disk, log) = ("DatabaseDiskFull", "DatabaseLogGrown");
        let mut told = Told::default();
        for (problems, new, over) in [
            (vec![problem(disk, false)], vec![disk], vec![]),
            (vec![problem(disk, false), problem(log, false)], vec![log], vec![]),
            (vec![problem(disk, true), problem(log, false)], vec![disk], vec![]),
            // when there is a little room again, that is no news
            (vec![problem(disk, false)], vec![], vec![log]),
            (vec![], vec![], vec![disk]),
            (vec![problem(disk, true)], vec![disk], vec![]),
        ] {
            let (is_new, is_over) = told.news(&problems);
            let is_new: Vec<_> = is_new.into_iter().map(|problem| problem.reason).collect();
            assert_eq!((is_new, is_over), (new, over), "{problems:?}");
        }
    }

    /// Everything else goes on meanwhile, and however long it lasts, it is one thread.
    #[tokio::test]
    async fn a_read_that_hangs_is_given_up_and_not_begun_again() {
        let (release, hangs) = std::sync::mpsc::channel::<()>();
        let (mut reader, soon) = (Reader::default(), Duration::from_millis(50));
        let hanging = move || {
            let _ = hangs.recv();
            1
        };
        assert_eq!(reader.read(soon, "nb", hanging).await, None);
        assert_eq!(reader.read(soon, "nb", || 2).await, None, "the first one still reads");
        drop(release);
        let again = async {
            loop {
                if let Some(read) = reader.read(AGAIN, "nb", || 3).await {
                    return read;
                }
                sleep(soon).await;
            }
        };
        assert_eq!(timeout(AGAIN, again).await, Ok(3), "what is there by then");
    }

    fn place(flags: &[&str]) -> Place {
        let words = ["--config-file=/dev/null", "-init-node=n"].iter().chain(flags).map(Into::into);
        let loaded = ovnkube_config::load(words, |_| None, &ovnkube_config::Places::default());
        Place::of(&loaded.unwrap().settings, Side::North)
    }

    /// One that has ended on a full disk has not got over it.
    #[tokio::test]
    async fn nothing_is_known_of_a_server_that_does_not_run() {
        assert_eq!(problems(&place(&["--nb-run-dir=/nowhere"]), &mut Reader::default()).await, None);
    }

    /// It has not said that it is in no cluster.
    #[tokio::test]
    async fn nothing_is_known_of_a_server_that_ends_while_it_is_asked() {
        let dir = std::env::temp_dir().join(format!("ovnkube-disks-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("nb.db"), "").unwrap();
        let server = tokio::net::UnixListener::bind(dir.join("ovnnb_db.ctl")).unwrap();
        tokio::spawn(async move { while server.accept().await.is_ok() {} });
        let (run, file) =
            (format!("--nb-run-dir={}", dir.display()), format!("--nb-db-location={}/nb.db", dir.display()));
        assert_eq!(problems(&place(&[&run, &file]), &mut Reader::default()).await, None);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
