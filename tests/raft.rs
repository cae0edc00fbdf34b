//! Members of Raft clusters and servers beside them, each with a directory in which its files and sockets have the names that
//! OVN's scripts give them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::dir::fresh_dir;
use crate::nb::Release;

/// A host of a northbound database; dropping it kills its server and removes its files.
pub struct Member {
    release: Release,
    dir: PathBuf,
    child: Option<Child>,
    args: Vec<String>,
}

/// Runs a program of a release, which must succeed.
pub fn run<S: AsRef<OsStr>>(release: Release, program: &str, words: &[S]) -> String {
    let out = release.command(program).args(words).output().unwrap();
    assert!(out.status.success(), "{program}: {}; run lab/install", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// A file that a release's packages have in `/usr/share/ovn`.
pub fn schema(release: Release, name: &str) -> PathBuf {
    release.file(&format!("usr/share/ovn/{name}"))
}

impl Member {
    /// A host without a server.
    pub fn new(release: Release) -> Self {
        Self { release, dir: fresh_dir("ovnkube-raft"), child: None, args: Vec::new() }
    }

    /// A server that is in no cluster, started with more arguments.
    pub fn alone(release: Release, args: &[&str]) -> Self {
        let mut member = Self::new(release);
        let schema = schema(release, "ovn-nb.ovsschema");
        run(release, "ovsdb-tool", &["create".as_ref(), member.file().as_os_str(), schema.as_os_str()]);
        member.args = args.iter().map(ToString::to_string).collect();
        member.start();
        member
    }

    /// A cluster of as many members.
    pub fn cluster(release: Release, size: usize) -> Vec<Self> {
        let mut members: Vec<Self> = Vec::new();
        for _ in 0..size {
            let mut member = Self::new(release);
            let (file, own) = (member.file(), member.raft());
            match members.first() {
                None => member.create_cluster(),
                Some(first) => {
                    let first = first.raft();
                    let words = [
                        "join-cluster".as_ref(),
                        file.as_os_str(),
                        "OVN_Northbound".as_ref(),
                        own.as_ref(),
                        first.as_ref(),
                    ];
                    run::<&OsStr>(release, "ovsdb-tool", &words);
                }
            }
            member.start();
            member.joined();
            members.push(member);
        }
        members
    }

    /// Makes the file of a new cluster, of which it is the first member.
    pub fn create_cluster(&self) {
        let (file, own, schema) = (self.file(), self.raft(), schema(self.release, "ovn-nb.ovsschema"));
        let words = ["create-cluster".as_ref(), file.as_os_str(), schema.as_os_str(), own.as_ref()];
        run::<&OsStr>(self.release, "ovsdb-tool", &words);
    }

    /// Starts the server with the file that is there.
    pub fn start(&mut self) {
        let _ = std::fs::remove_file(self.run_file("ctl"));
        let mut command = self.release.command("ovsdb-server");
        command.arg(format!("--remote=punix:{}", self.run_file("sock").display()));
        command.arg(format!("--unixctl={}", self.run_file("ctl").display()));
        command.arg(format!("--pidfile={}", self.run_file("pid").display()));
        command.arg(format!("--log-file={}", self.dir.join("log").display()));
        command.args(["-vconsole:off", "-vsyslog:off", "--no-chdir"]).args(&self.args).arg(self.file());
        self.child = Some(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let deadline = Instant::now() + Duration::from_secs(120);
        while !self.appctl(&["-T", "20", "-t"], &["version"]).0 {
            assert!(Instant::now() < deadline, "ovsdb-server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until it is a member.
    pub fn joined(&self) {
        run(self.release, "ovsdb-client", &["-t", "180", "wait", &self.remote(), "OVN_Northbound", "connected"]);
    }

    /// Kills it at once.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Pauses it (`STOP`) or continues it (`CONT`).
    pub fn signal(&self, name: &str) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn file(&self) -> PathBuf {
        self.run_file("db")
    }

    fn run_file(&self, ending: &str) -> PathBuf {
        self.dir.join(format!("ovnnb_db.{ending}"))
    }

    /// Where clients reach it.
    pub fn remote(&self) -> String {
        format!("unix:{}", self.run_file("sock").display())
    }

    /// Where other members reach it.
    pub fn raft(&self) -> String {
        format!("unix:{}", self.raft_socket().display())
    }

    pub fn raft_socket(&self) -> PathBuf {
        self.dir.join("raft")
    }

    /// The first digits of its id.
    pub fn id(&self) -> String {
        run(self.release, "ovsdb-tool", &["db-sid".as_ref(), self.file().as_os_str()])[..4].to_owned()
    }

    /// The id of its cluster.
    pub fn cluster_id(&self) -> String {
        run(self.release, "ovsdb-tool", &["db-cid".as_ref(), self.file().as_os_str()]).trim().to_owned()
    }

    pub fn is_leader(&self) -> bool {
        self.appctl(&["-T", "20", "-t"], &["cluster/status", "OVN_Northbound"]).1.contains("Role: leader")
    }

    /// Sets the election timer of a leader in these steps, milliseconds; the cluster must agree on one before the next.
    pub fn set_election_timer(&self, steps: &[u32]) {
        for ms in steps {
            self.control(&["cluster/change-election-timer", "OVN_Northbound", &ms.to_string()]);
            let deadline = Instant::now() + Duration::from_secs(120);
            let is_set =
                || self.control(&["cluster/status", "OVN_Northbound"]).contains(&format!("Election timer: {ms}\n"));
            while !is_set() {
                assert!(Instant::now() < deadline, "the election timer is not set to {ms}");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// A command in the server; its output.
    pub fn control(&self, words: &[&str]) -> String {
        let (is_done, said) = self.appctl(&["-t"], words);
        assert!(is_done, "{words:?}: {said}");
        said
    }

    fn appctl(&self, flags: &[&str], words: &[&str]) -> (bool, String) {
        let mut command = self.release.command("ovs-appctl");
        let out = command.args(flags).arg(self.run_file("ctl")).args(words).output().unwrap();
        (out.status.success(), String::from_utf8_lossy(&out.stdout).into_owned())
    }

    /// `ovn-nbctl` at this server, also if it only follows.
    pub fn nbctl(&self, words: &[&str]) -> String {
        let mut all = vec!["--no-leader-only".to_owned(), "--timeout=60".to_owned(), format!("--db={}", self.remote())];
        all.extend(words.iter().map(ToString::to_string));
        run(self.release, "ovn-nbctl", &all)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
