//! Real `ovsdb-server` processes for tests.

#[allow(unreachable_pub, clippy::unwrap_used, reason = "of the crate of tests")]
#[path = "../../../../tests/dir.rs"]
mod dir;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ovnkube_ovn::{Row, Uuid, nb};
use ovnkube_ovsdb::{Client, Options, Remote};

use dir::fresh_dir;

/// The northbound schema.
pub(crate) const NB: &str = "ovn/ovn-nb.ovsschema";

/// The OVS release of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// What is installed on this machine: OVS 3.1, OVN 23.03 on Debian 12.
    Host,
    /// OVN 26.03 and OVS 4.0 of Debian sid, unpacked next to it.
    Lts,
}
pub(crate) use Release::{Host, Lts};

fn rootfs() -> PathBuf {
    let home = std::env::var_os("LAB_HOME").unwrap_or_else(|| "/var/lib/ovnkube-lab".into());
    PathBuf::from(home).join("lts")
}

impl Release {
    pub(crate) fn schema(self, name: &str) -> PathBuf {
        let root = if self == Host { PathBuf::from("/") } else { rootfs() };
        let path = root.join("usr/share").join(name);
        assert!(path.exists(), "{} is missing: run lab/install", path.display());
        path
    }

    /// A command of one of the release's programs.
    pub(crate) fn command(self, program: &str) -> Command {
        let dirs = ["usr/sbin", "usr/bin"];
        let root = if self == Host { PathBuf::from("/") } else { rootfs() };
        let found = dirs.iter().map(|d| root.join(d).join(program)).find(|p| p.exists());
        let path = found.unwrap_or_else(|| panic!("{program} of {self:?} is missing: run lab/install"));
        if self == Host {
            return Command::new(path);
        }
        // its own loader is next to its libraries, with a name that depends on the architecture
        let libraries = root.join(format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH));
        let mut files = libraries.read_dir().unwrap().map(|file| file.unwrap());
        let loader = files.find(|file| file.file_name().to_string_lossy().starts_with("ld-linux-")).unwrap();
        let mut command = Command::new(loader.path());
        command.args(["--argv0", program, "--library-path"]).arg(libraries).arg(path);
        command
    }

    pub(crate) fn run<S: AsRef<OsStr>>(self, program: &str, args: &[S]) -> String {
        let out = self.command(program).args(args).output().unwrap();
        assert!(out.status.success(), "{program}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    }
}

/// A directory that is removed after the test.
pub(crate) struct Dir(PathBuf);

impl Dir {
    pub(crate) fn new() -> Self {
        Dir(fresh_dir("ovnkube-ovsdb"))
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running `ovsdb-server`, killed on drop.
pub(crate) struct Server {
    child: Child,
    release: Release,
    pub(crate) db: PathBuf,
    pub(crate) socket: PathBuf,
    ctl: PathBuf,
    args: Vec<String>,
}

impl Server {
    /// A standalone server of an empty database of `schema` (such as `ovn/ovn-nb.ovsschema`).
    pub(crate) fn standalone(release: Release, dir: &Dir, schema: &str) -> Self {
        let db = dir.file("db");
        release.run("ovsdb-tool", &[OsStr::new("create"), db.as_os_str(), release.schema(schema).as_os_str()]);
        Self::start(release, dir, "s", &db, &[])
    }

    /// A server of a database file, listening on a unix socket and as `args` specify.
    pub(crate) fn start(release: Release, dir: &Dir, name: &str, db: &Path, args: &[String]) -> Self {
        let (socket, ctl) = (dir.file(&format!("{name}.sock")), dir.file(&format!("{name}.ctl")));
        let mut server =
            Server { child: spawn_nothing(), release, db: db.to_owned(), socket, ctl, args: args.to_owned() };
        server.restart();
        server
    }

    /// Starts it again after [`Server::kill`].
    pub(crate) fn restart(&mut self) {
        let _ = std::fs::remove_file(&self.ctl);
        self.child = self
            .release
            .command("ovsdb-server")
            .arg(format!("--remote=punix:{}", self.socket.display()))
            .arg(format!("--unixctl={}", self.ctl.display()))
            .arg(format!("--log-file={}.log", self.socket.display()))
            .args(["-vconsole:off", "-vsyslog:off", "-vfile:info", "--no-chdir"])
            .args(&self.args)
            .arg(&self.db)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(120);
        while !self.answers() {
            assert!(Instant::now() < deadline, "ovsdb-server does not start: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills it at once.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Pauses it (SIGSTOP) or continues it (SIGCONT).
    pub(crate) fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success());
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(format!("{}.log", self.socket.display())).unwrap_or_default()
    }

    fn answers(&self) -> bool {
        let mut command = self.release.command("ovs-appctl");
        command.args(["-T", "20", "-t"]).arg(&self.ctl).arg("version").output().unwrap().status.success()
    }

    pub(crate) fn remote(&self) -> Remote {
        Remote::Unix(self.socket.clone())
    }

    pub(crate) fn appctl(&self, args: &[&str]) {
        let out = self.release.command("ovs-appctl").arg("-t").arg(&self.ctl).args(args).output().unwrap();
        assert!(out.status.success(), "ovs-appctl {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    }

    /// The port of its TCP or TLS listener, which the system chose.
    pub(crate) fn port(&self) -> u16 {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let log = std::fs::read_to_string(format!("{}.log", self.socket.display())).unwrap_or_default();
            let said = log.lines().find_map(|line| line.split_once("listening on port ")?.1.trim().parse().ok());
            if let Some(port) = said {
                return port;
            }
            assert!(Instant::now() < deadline, "no port in its log: {log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until a server has joined its cluster.
    pub(crate) fn wait_joined(&self) {
        let remote = format!("unix:{}", self.socket.display());
        self.release.run("ovsdb-client", &["-t", "180", "wait", &remote, "OVN_Northbound", "connected"]);
    }

    /// Changes the database's schema while it runs.
    pub(crate) fn convert(&self, schema: &Path) -> std::process::Output {
        let socket = format!("unix:{}", self.socket.display());
        let args = ["convert".as_ref(), OsStr::new(&socket), schema.as_os_str()];
        self.release.command("ovsdb-client").args(args).output().unwrap()
    }
}

fn spawn_nothing() -> Child {
    Command::new("true").spawn().unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Options for a northbound database with quick deadlines.
pub(crate) fn options(remotes: Vec<Remote>) -> Options {
    let identity = |row: &Row| {
        let table = row.table();
        let name = table.column("name").and_then(|c| row.get(c)?.single()?.as_text().cloned());
        name.filter(|n| !n.is_empty())
    };
    Options { identity, ..Options::new(&nb::DATABASE, remotes) }
}

/// Waits for something, failing with `what` after three minutes.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(180);
    tokio::time::timeout(limit, future).await.unwrap_or_else(|_| panic!("timed out waiting for: {what}"))
}

pub(crate) async fn live(options: Options) -> Client {
    let client = Client::connect(options);
    within("first download", client.synced()).await;
    client
}

/// Everything in a client's cache.
pub(crate) fn dump(client: &Client) -> BTreeSet<String> {
    let cache = client.cache();
    let show = |(uuid, row): (Uuid, &Arc<Row>)| format!("{uuid} {row}");
    nb::DATABASE.tables.iter().flat_map(|t| cache.iter(t).map(show).collect::<Vec<_>>()).collect()
}

/// The oracle: a fresh full download equals `client`'s cache, and its indexes are consistent.
pub(crate) async fn assert_cache_is_fresh(client: &Client, remote: Remote) {
    let fresh = live(Options { leader_only: false, ..options(vec![remote]) }).await;
    // the last writes of others may still be on their way
    let deadline = Instant::now() + Duration::from_secs(120);
    while dump(client) != dump(&fresh) && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (cached, right) = (dump(client), dump(&fresh));
    assert_eq!(cached.difference(&right).next(), None, "rows too many");
    assert_eq!(right.difference(&cached).next(), None, "rows missing");
    let (have, want) = (client.cache(), fresh.cache());
    for table in nb::DATABASE.tables {
        for (uuid, row) in want.iter(table) {
            let parents = |c: &ovnkube_ovsdb::Cache| {
                c.parents(uuid).map(|p| (p.table.name, p.column, p.uuid)).collect::<Vec<_>>()
            };
            assert_eq!(parents(&have), parents(&want), "who refers to {uuid} {row}");
            if let Some(name) = table.column("name").and_then(|c| row.get(c)?.single()?.as_str()) {
                assert_eq!(have.lookup(table, name), want.lookup(table, name));
                assert!(have.lookup(table, name).contains(&uuid));
            }
        }
    }
}
