//! Real servers of OVN databases, northd between them, and hosts with ovn-controller.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use ovnkube_ovn::{Database, nb, sb, vswitch};
use ovnkube_ovsdb::{Client, Options, Remote};

use crate::dir::fresh_dir;

/// The OVS and OVN release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The release installed on this machine: OVN 23.03 on Debian 12.
    Host,
    /// Debian 13's OVN 25.03, unpacked next to it.
    Trixie,
    /// OVN 26.03 of Debian sid, likewise.
    Lts,
}

impl Release {
    fn root(self) -> PathBuf {
        let home = || PathBuf::from(std::env::var_os("LAB_HOME").unwrap_or_else(|| "/var/lib/ovnkube-lab".into()));
        match self {
            Self::Host => PathBuf::from("/"),
            Self::Trixie => home().join("trixie"),
            Self::Lts => home().join("lts"),
        }
    }

    /// A file of the release's packages.
    pub fn file(self, path: &str) -> PathBuf {
        let file = self.root().join(path);
        assert!(file.exists(), "{} is missing: run lab/install", file.display());
        file
    }

    /// A command of one of the release's programs.
    pub fn command(self, program: &str) -> Command {
        let root = self.root();
        let found = ["usr/sbin", "usr/bin"].iter().map(|d| root.join(d).join(program)).find(|p| p.exists());
        let path = found.unwrap_or_else(|| panic!("{program} of {self:?} is missing: run lab/install"));
        if self == Self::Host {
            return Command::new(path);
        }
        // its own loader, whose name depends on the architecture, is next to its libraries
        let libraries = root.join(format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH));
        let mut files = libraries.read_dir().unwrap().map(|file| file.unwrap());
        let loader = files.find(|file| file.file_name().to_string_lossy().starts_with("ld-linux-")).unwrap();
        let mut command = Command::new(loader.path());
        command.args(["--argv0", program, "--library-path"]).arg(libraries).arg(path);
        command
    }
}

/// A running server with its own database; dropping it kills and removes it.
pub struct Server {
    child: Option<Child>,
    release: Release,
    database: &'static Database,
    /// The source of a relay's rows.
    relayed: Option<String>,
    /// Whether it is a member of a Raft cluster.
    is_member: bool,
    args: Vec<String>,
    dir: PathBuf,
}

impl Server {
    /// A server of an empty northbound database.
    pub fn new(release: Release) -> Self {
        Self::of(release, &nb::DATABASE)
    }

    /// A server of an empty southbound database.
    pub fn southbound(release: Release) -> Self {
        Self::of(release, &sb::DATABASE)
    }

    fn of(release: Release, database: &'static Database) -> Self {
        Self::with(release, database, &[])
    }

    /// The same for any database; it also listens as `args` specify.
    pub fn with(release: Release, database: &'static Database, args: &[String]) -> Self {
        Self::started(release, database, args, None)
    }

    /// A server without its own database: a client of the one at `remote`.
    pub fn relay(release: Release, database: &'static Database, remote: &str, args: &[String]) -> Self {
        Self::started(release, database, args, Some(remote.to_owned()))
    }

    /// The only member of a Raft cluster.
    pub fn member(release: Release, database: &'static Database, args: &[String]) -> Self {
        let mut server = Self::stopped(release, database, args, None);
        server.is_member = true;
        server.create();
        server.start();
        server
    }

    /// One more member of the Raft cluster that this server is in.
    pub fn joining(&self, args: &[String]) -> Self {
        let mut server = Self::stopped(self.release, self.database, args, None);
        server.is_member = true;
        let [own, other] = [&server, self].map(|member| format!("unix:{}", member.dir.join("raft").display()));
        let mut command = self.release.command("ovsdb-tool");
        command.arg("join-cluster").arg(server.dir.join("db")).args([self.database.name, &own, &other]);
        let out = command.output().unwrap();
        assert!(out.status.success(), "ovsdb-tool: {}", String::from_utf8_lossy(&out.stderr));
        server.start();
        let socket = format!("unix:{}", server.socket().display());
        let mut command = self.release.command("ovsdb-client");
        let out = command.args(["-t", "180", "wait", &socket, self.database.name, "connected"]).output().unwrap();
        assert!(out.status.success(), "it does not join: {}", String::from_utf8_lossy(&out.stderr));
        server
    }

    fn started(release: Release, database: &'static Database, args: &[String], relayed: Option<String>) -> Self {
        let mut server = Self::stopped(release, database, args, relayed);
        if server.relayed.is_none() {
            server.create();
        }
        server.start();
        server
    }

    fn stopped(release: Release, database: &'static Database, args: &[String], relayed: Option<String>) -> Self {
        let dir = fresh_dir("ovnkube-tests");
        Self { child: None, release, database, relayed, is_member: false, args: args.to_owned(), dir }
    }

    fn create(&self) {
        let schema = self.release.file(match self.database.name {
            "OVN_Northbound" => "usr/share/ovn/ovn-nb.ovsschema",
            "OVN_Southbound" => "usr/share/ovn/ovn-sb.ovsschema",
            "OVN_IC_Northbound" => "usr/share/ovn/ovn-ic-nb.ovsschema",
            "OVN_IC_Southbound" => "usr/share/ovn/ovn-ic-sb.ovsschema",
            _ => "usr/share/openvswitch/vswitch.ovsschema",
        });
        let mut command = self.release.command("ovsdb-tool");
        command.arg(if self.is_member { "create-cluster" } else { "create" }).args([self.dir.join("db"), schema]);
        if self.is_member {
            command.arg(format!("unix:{}", self.dir.join("raft").display()));
        }
        let out = command.output().unwrap();
        assert!(out.status.success(), "ovsdb-tool: {}; run lab/install", String::from_utf8_lossy(&out.stderr));
    }

    /// Changes its schema while it runs.
    pub fn convert(&self, change: impl FnOnce(&mut serde_json::Value)) {
        let (socket, file) = (format!("unix:{}", self.socket().display()), self.dir.join("schema"));
        let run = |words: &[&str]| {
            let out = self.release.command("ovsdb-client").args(words).output().unwrap();
            assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
            out.stdout
        };
        let mut schema = serde_json::from_slice(&run(&["get-schema", &socket, self.database.name])).unwrap();
        change(&mut schema);
        std::fs::write(&file, schema.to_string()).unwrap();
        run(&["convert", &socket, file.to_str().unwrap()]);
    }

    /// Restarts with an empty database.
    pub fn wipe(&mut self) {
        self.kill();
        std::fs::remove_file(self.dir.join("db")).unwrap();
        self.create();
        self.start();
    }

    /// Starts it, also again after [`Server::kill`].
    pub fn start(&mut self) {
        let ctl = self.dir.join("ctl");
        let _ = std::fs::remove_file(&ctl);
        let mut command = self.release.command("ovsdb-server");
        command.arg(format!("--remote=punix:{}", self.socket().display()));
        command.arg(format!("--unixctl={}", ctl.display()));
        command.arg(format!("--log-file={}", self.dir.join("log").display()));
        command.args(["-vconsole:off", "-vsyslog:off", "--no-chdir"]).args(&self.args);
        match &self.relayed {
            Some(remote) => command.arg(format!("relay:{}:{remote}", self.database.name)),
            None => command.arg(self.dir.join("db")),
        };
        self.child = Some(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let deadline = Instant::now() + Duration::from_secs(120);
        let answers = || {
            let mut ask = self.release.command("ovs-appctl");
            ask.args(["-T", "20", "-t"]).arg(&ctl).arg("version").output().unwrap().status.success()
        };
        while !answers() {
            assert!(Instant::now() < deadline, "ovsdb-server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills it immediately.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Pauses it (`STOP`) or continues it (`CONT`).
    pub fn signal(&self, name: &str) {
        signal(self.child.as_ref().unwrap(), name);
    }

    pub fn release(&self) -> Release {
        self.release
    }

    /// Its log.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    /// From now on it starts at the port that the system has chosen for it.
    pub fn keep_port(&mut self) {
        let port = self.port();
        for arg in &mut self.args {
            *arg = arg.replace("ptcp:0:", &format!("ptcp:{port}:"));
        }
    }

    /// The port that the system chose for it.
    pub fn port(&self) -> u16 {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            let said = self.said();
            let port = said.lines().find_map(|line| line.split_once("listening on port ")?.1.trim().parse().ok());
            if let Some(port) = port {
                return port;
            }
            assert!(Instant::now() < deadline, "it listens on no port: {said}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The file of its database: each transaction that changes something makes it longer, before it is answered.
    pub fn database_file(&self) -> PathBuf {
        self.dir.join("db")
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.join("sock")
    }

    pub fn options(&self) -> Options {
        let remotes = vec![Remote::Unix(self.socket())];
        Options { identity: ovnkube_plan::identity, ..Options::new(self.database, remotes) }
    }

    /// A client whose cache is in sync with the server.
    pub async fn client(&self) -> Client {
        let client = Client::connect(self.options());
        within("first download", client.synced()).await;
        client
    }

    /// Everything written since the database was created, as the server stores it: one record for each
    /// transaction that changed something, with the changed columns.
    pub fn log(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.dir.join("db")).unwrap();
        let records = text.lines().filter(|line| line.starts_with('{'));
        let records = records.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        // the first one is the schema
        records.filter(|record| record.get("_date").is_some()).collect()
    }

    /// Changes rows as an administrator would, through `ovn-nbctl`.
    pub fn nbctl(&self, words: &[&str]) -> String {
        self.ctl("ovn-nbctl", words)
    }

    /// The same; returns whether `ovn-nbctl` accepted the command.
    pub fn may_nbctl(&self, words: &[&str]) -> bool {
        self.output("ovn-nbctl", words).status.success()
    }

    /// The same through `ovn-sbctl`.
    pub fn sbctl(&self, words: &[&str]) -> String {
        self.ctl("ovn-sbctl", words)
    }

    /// The same through any program that takes `--db`.
    pub fn ctl(&self, program: &str, words: &[&str]) -> String {
        let out = self.output(program, words);
        assert!(out.status.success(), "{program} {words:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    }

    fn output(&self, program: &str, words: &[&str]) -> Output {
        let mut command = self.release.command(program);
        if self.relayed.is_some() {
            command.arg("--no-leader-only");
        }
        command.arg(format!("--db=unix:{}", self.socket().display())).args(words).output().unwrap()
    }
}

fn signal(child: &Child, name: &str) {
    let done = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status().unwrap();
    assert!(done.success(), "kill -{name}");
}

/// A running program of OVN; dropping it kills it.
pub struct Daemon(Child);

impl Daemon {
    pub fn northd(nb: &Server, sb: &Server) -> Self {
        let mut command = nb.release.command("ovn-northd");
        command.arg(format!("--ovnnb-db=unix:{}", nb.socket().display()));
        command.arg(format!("--ovnsb-db=unix:{}", sb.socket().display()));
        Self::start(command, &nb.dir)
    }

    /// OVN's own daemon for a cluster. `shared`: the interconnection databases, IC-NB and IC-SB.
    pub fn ic(nb: &Server, sb: &Server, shared: [&Server; 2]) -> Self {
        let mut command = nb.release.command("ovn-ic");
        for (option, server) in ["ovnnb", "ovnsb", "ic-nb", "ic-sb"].iter().zip([nb, sb].into_iter().chain(shared)) {
            command.arg(format!("--{option}-db=unix:{}", server.socket().display()));
        }
        Self::start(command, &nb.dir)
    }

    /// Whether `ovn-ic` of this cluster has its lock, so that it works.
    pub fn ic_is_active(&self, nb: &Server) -> bool {
        let control = nb.dir.join(format!("ovn-ic.{}.ctl", self.0.id()));
        let asked = nb.release.command("ovn-appctl").arg("-t").arg(control).arg("status").output().unwrap();
        String::from_utf8_lossy(&asked.stdout).contains("active")
    }

    /// Pauses it (`STOP`) or continues it (`CONT`).
    pub fn signal(&self, name: &str) {
        signal(&self.0, name);
    }

    /// Its exit status, if it has exited.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().unwrap()
    }

    /// `dir`: for its control socket; ovn-controller 23.03 has no option for that.
    fn start(mut command: Command, dir: &Path) -> Self {
        command.env("OVN_RUNDIR", dir);
        command.args(["-vconsole:off", "-vsyslog:off", "--no-chdir"]);
        Self(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A host with only ovn-controller; dropping it kills ovn-controller, and its chassis stays.
pub struct Host {
    _controller: Daemon,
    switch: Server,
}

impl Host {
    /// `settings`: pairs of the external_ids that ovn-controller reads.
    pub fn start(sb: &Server, settings: &[(&str, &str)]) -> Self {
        let remote = format!("unix:{}", sb.socket().display());
        Self::with(sb.release, &[settings, &[("ovn-remote", &remote)]].concat(), None)
    }

    /// The same with a key, certificate and authority for ovn-controller.
    pub fn with(release: Release, settings: &[(&str, &str)], tls: Option<[&Path; 3]>) -> Self {
        let switch = Server::of(release, &vswitch::DATABASE);
        let ids = settings.iter().chain(&[("ovn-encap-type", "geneve")]);
        let ids: Vec<_> = ids.map(|(key, value)| format!("external_ids:{key}={value:?}")).collect();
        let ids: Vec<_> = ids.iter().map(String::as_str).collect();
        switch.ctl("ovs-vsctl", &[&["--no-wait", "init", "--", "set", "Open_vSwitch", "."], &ids[..]].concat());
        if let Some(files) = tls {
            let files = files.map(|file| file.to_str().unwrap());
            switch.ctl("ovs-vsctl", &[&["--no-wait", "set-ssl"], &files[..]].concat());
        }
        let mut command = release.command("ovn-controller");
        command.arg(format!("unix:{}", switch.socket().display()));
        command.arg(format!("--log-file={}", switch.dir.join("controller.log").display()));
        Self { _controller: Daemon::start(command, &switch.dir), switch }
    }

    /// The log of its ovn-controller.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.switch.dir.join("controller.log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Waits for something and fails with `what` after three minutes.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let patience = Duration::from_secs(180);
    tokio::time::timeout(patience, future).await.unwrap_or_else(|_| panic!("timed out waiting for: {what}"))
}

/// Waits until `condition` holds.
pub async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within(what, wait).await;
}
