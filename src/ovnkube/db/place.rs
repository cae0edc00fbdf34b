//! Where a database is: its servers, and the files and sockets that OVN's scripts give the one on this host.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use ovnkube_config::{Database as Reached, DbAddress, Settings, Side};
use ovnkube_ovn::{Database, nb, sb};
use ovnkube_ovsdb::{NoAnswer, Questions, Remote, TlsFiles};
use tokio::time::timeout;

use crate::translate;

/// A server that does not answer for so long is told as one that does not.
pub(crate) const WITHIN: Duration = Duration::from_secs(3);
/// Where releases of OVN's packages have had the files; new ones first.
const DIRECTORIES: [&str; 4] = ["/var/lib/ovn", "/etc/ovn", "/var/lib/openvswitch", "/etc/openvswitch"];
/// Where OVN before 20.03 had the sockets.
const OLD_RUN_DIR: &str = "/var/run/openvswitch";

#[derive(Clone)]
pub(crate) struct Place {
    /// `nb` or `sb`.
    pub(crate) word: &'static str,
    pub(crate) database: &'static Database,
    pub(crate) remotes: Vec<Remote>,
    /// Whether they are given; otherwise they are the sockets of this host.
    pub(crate) addressed: bool,
    pub(crate) tls: Option<TlsFiles>,
    /// Of the northbound database: the servers of the southbound one, which northd works with too.
    pub(crate) south: Option<(Vec<Remote>, Option<TlsFiles>)>,
    run_dir: PathBuf,
    location: PathBuf,
}

impl Place {
    pub(crate) fn of(settings: &Settings, side: Side) -> Self {
        let place = |word, database, (given, reached): (&DbAddress, &Reached), run_dir: &Path, location: &Path| Self {
            word,
            database,
            remotes: remotes(reached),
            addressed: !given.0.is_empty(),
            tls: translate::tls(reached),
            south: (side == Side::North).then(|| (remotes(&settings.sb), translate::tls(&settings.sb))),
            run_dir: directory(run_dir, word),
            location: location.to_owned(),
        };
        let (north, south) = (&settings.ovnnorth, &settings.ovnsouth);
        match side {
            Side::North => {
                place("nb", &nb::DATABASE, (&north.address, &settings.nb), &north.run_dir, &north.db_location)
            }
            Side::South => {
                place("sb", &sb::DATABASE, (&south.address, &settings.sb), &south.run_dir, &south.db_location)
            }
        }
    }

    /// `ovnnb_db.ctl`, `.sock` or `.pid`.
    pub(crate) fn run_file(&self, ending: &str) -> PathBuf {
        self.run_dir.join(format!("ovn{}_db.{ending}", self.word))
    }

    /// The file of the database, or where it is to be: that of the settings, or where packages have it.
    pub(crate) fn file(&self) -> PathBuf {
        let name = format!("ovn{}_db.db", self.word);
        let usual = || DIRECTORIES.iter().map(|directory| Path::new(directory).join(&name));
        let is_default = self.location == Path::new("/etc/ovn").join(&name);
        // a link that leads nowhere too: its disk may not be mounted
        if !is_default || is_there(&self.location) {
            return self.location.clone();
        }
        let existing = usual().find(|file| is_there(file));
        let possible = || usual().find(|file| file.parent().is_some_and(Path::exists));
        existing.or_else(possible).unwrap_or_else(|| self.location.clone())
    }

    /// Runs a command in the server on this host.
    pub(crate) async fn control(
        &self,
        command: &'static str,
        arguments: &[&str],
        within: Duration,
    ) -> Result<String, NoAnswer> {
        control(&self.run_file("ctl"), command, arguments, within).await
    }

    /// The control socket of northd on this host, if one runs.
    pub(crate) fn northd_socket(&self) -> Option<PathBuf> {
        control_socket(&self.run_dir, "ovn-northd").ok().filter(|socket| socket.exists())
    }
}

/// The control socket of a program: its pod gives it the plain name, others have the process's id in it.
pub(crate) fn control_socket(dir: &Path, program: &str) -> Result<PathBuf> {
    let plain = dir.join(format!("{program}.ctl"));
    if plain.exists() {
        return Ok(plain);
    }
    let file = dir.join(format!("{program}.pid"));
    let pid = std::fs::read_to_string(&file).with_context(|| format!("it does not run: {}", file.display()))?;
    Ok(dir.join(format!("{program}.{}.ctl", pid.trim())))
}

/// Runs a command in the program of this control socket.
pub(crate) async fn control(
    socket: &Path,
    command: &'static str,
    arguments: &[&str],
    within: Duration,
) -> Result<String, NoAnswer> {
    let socket = Remote::Unix(socket.to_owned());
    let ask = async {
        let mut questions = Questions::connect(&socket, None).await?;
        questions.ask(command, &arguments).await
    };
    match timeout(within, ask).await {
        Ok(answer) => Ok(answer?.as_str().unwrap_or_default().to_owned()),
        Err(_) => Err(NoAnswer::Failed(format!("no answer within {} s", within.as_secs()))),
    }
}

/// Without an address there are only sockets of this host, of which those count that exist.
fn remotes(reached: &Reached) -> Vec<Remote> {
    let mut all = translate::remotes(reached);
    let is_missing = |remote: &Remote| matches!(remote, Remote::Unix(path) if !path.exists());
    while all.len() > 1 && all.last().is_some_and(is_missing) {
        all.pop();
    }
    all
}

fn directory(run_dir: &Path, word: &str) -> PathBuf {
    let socket = format!("ovn{word}_db.ctl");
    let old = Path::new(OLD_RUN_DIR);
    let is_old = run_dir == Path::new("/var/run/ovn/") && !run_dir.join(&socket).exists() && old.join(&socket).exists();
    if is_old { old.to_owned() } else { run_dir.to_owned() }
}

/// Whether anything has this name, even a link that leads nowhere.
pub(crate) fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
