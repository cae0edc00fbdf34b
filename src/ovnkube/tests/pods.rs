//! What containers of pods call: `ovnkube install-cni` and `ovnkube readiness-probe`, with real programs of OVN and Open vSwitch.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ovnkube_tests::nb::{Release, Server, until};
use ovnkube_tests::raft::Member;

use crate::lab::Dir;
use crate::process::ovnkube;

/// Runs it: its exit code, and what it printed.
fn said(mut command: Command) -> (i32, String) {
    let out = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap(), text(out.stdout) + &text(out.stderr))
}

#[track_caller]
fn says(command: Command, code: i32, text: &str) {
    let (have, output) = said(command);
    assert!(have == code && output.contains(text) && output.lines().count() <= 1, "{have} {output}");
}

fn program(dir: &Dir, contents: &[u8]) -> PathBuf {
    let file = dir.file("ovn-k8s-cni-overlay");
    fs::write(&file, contents).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file
}

fn install(program: &Path, to: &Path) -> Command {
    ovnkube(["install-cni".into(), program.display().to_string(), format!("--cni-bin-dir={}", to.display())])
}

/// The same where a file system with these mount options is the directory, with what `before` puts there first.
fn install_on(options: &str, before: &str, program: &Path, to: &Path, after: &str) -> Command {
    let script = format!(
        "mount -t tmpfs -o size=64k none \"$3\" && {{ {before}; mount -o remount,{options} \"$3\"; }} && \
         \"$1\" install-cni \"$2\" --cni-bin-dir=\"$3\"; code=$?; {after}; exit $code"
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script, "sh", env!("CARGO_BIN_EXE_ovnkube")]).arg(program).arg(to);
    command
}

#[test]
fn the_cni_program_is_copied_once_and_whole() {
    let dir = Dir::new();
    let to = dir.file("bin");
    fs::create_dir(&to).unwrap();
    let new = program(&dir, &vec![7; 100_000]);
    let there = to.join("ovn-k8s-cni-overlay");
    fs::write(&there, "an older one").unwrap();
    fs::write(to.join("bridge"), "of another network").unwrap();
    says(install(&new, &to), 0, "the CNI program is installed in ");
    assert_eq!(fs::read(&there).unwrap(), vec![7; 100_000]);
    assert_eq!(fs::metadata(&there).unwrap().mode() & 0o777, 0o755);
    let mut names: Vec<_> = fs::read_dir(&to).unwrap().map(|file| file.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["bridge", "ovn-k8s-cni-overlay"]);
    let before = fs::metadata(&there).unwrap().ino();
    let (code, output) = said(install(&new, &to));
    assert!(code == 0 && output.is_empty() && fs::metadata(&there).unwrap().ino() == before, "{code} {output}");
}

/// What a copy leaves that was killed before the program had its name goes at the next start, even if there is nothing to copy then.
#[test]
fn what_a_killed_copy_left_is_removed_and_nothing_else() {
    let dir = Dir::new();
    let to = dir.file("bin");
    fs::create_dir(&to).unwrap();
    let new = program(&dir, &vec![7; 100_000]);
    says(install(&new, &to), 0, "the CNI program is installed in ");
    // the signal of a file that is too large ends a process while it writes
    let killed = Command::new("sh")
        .args(["-c", "ulimit -c 0; ulimit -f 1; exec \"$1\" install-cni \"$2\" --cni-bin-dir=\"$3\"", "sh"])
        .arg(env!("CARGO_BIN_EXE_ovnkube"))
        .args([&program(&dir, &vec![8; 100_000]), &to])
        .status()
        .unwrap();
    assert!(!killed.success());
    let new = program(&dir, &vec![7; 100_000]);
    let count = || fs::read_dir(&to).unwrap().count();
    assert_eq!(count(), 2, "the half copy");
    says(install(&new, &to), 0, "");
    assert_eq!(count(), 1);
    let left = [".ovn-k8s-cni-overlay.4194999-1700000000000000000", ".ovn-k8s-cni-overlay.1-2"];
    let kept = [
        ".ovn-k8s-cni-overlay.old",
        ".ovn-k8s-cni-overlay.1-2.bak",
        ".ovn-k8s-cni-overlay.-",
        ".bridge.1-2",
        "ovn-k8s-cni-overlay.1-2",
        ".ovn-k8s-cni-overlay.77-1",
    ];
    for name in left.iter().chain(&kept) {
        fs::write(to.join(name), "half").unwrap();
    }
    fs::create_dir(to.join(".ovn-k8s-cni-overlay.3-3")).unwrap();
    std::os::unix::fs::symlink("bridge", to.join(".ovn-k8s-cni-overlay.4-4")).unwrap();
    // another process is writing this one
    let busy = fs::File::open(to.join(".ovn-k8s-cni-overlay.77-1")).unwrap();
    busy.lock().unwrap();
    says(install(&new, &to), 0, "");
    for name in left {
        assert!(!to.join(name).exists(), "{name}");
    }
    for name in kept.into_iter().chain([".ovn-k8s-cni-overlay.3-3", ".ovn-k8s-cni-overlay.4-4", "ovn-k8s-cni-overlay"])
    {
        assert!(fs::symlink_metadata(to.join(name)).is_ok(), "{name}");
    }
    drop(busy);
    says(install(&new, &to), 0, "");
    assert!(!to.join(".ovn-k8s-cni-overlay.77-1").exists());
}

#[test]
fn a_directory_that_cannot_take_the_cni_program_is_named() {
    let dir = Dir::new();
    let to = dir.file("bin");
    let new = program(&dir, &vec![7; 100_000]);
    let remedy = "mount the host's /opt/cni/bin there";
    says(install(&new, &to), 1, &format!("there is no directory {}; {remedy}", to.display()));
    says(install(&dir.file("none"), &to), 1, "cannot read ");
    fs::create_dir(&to).unwrap();
    let named = format!("cannot install the CNI program in {}: ", to.display());
    says(install_on("ro", "true", &new, &to, "true"), 1, &format!("{named}Read-only file system"));
    says(install_on("ro", "true", &new, &to, "true"), 1, &format!("{remedy}, writable"));
    // a full file system keeps the old program, and nothing of the new one
    let old = "echo old >\"$3/ovn-k8s-cni-overlay\"";
    let after = "[ \"$(ls -A \"$3\")\" = ovn-k8s-cni-overlay ] && grep -q old \"$3/ovn-k8s-cni-overlay\" || code=9";
    says(install_on("rw", old, &new, &to, after), 1, &format!("{named}No space left on device"));
}

/// A daemon with its files in a directory; killed when dropped.
struct Daemon(Child);

impl Daemon {
    fn start(dir: &Dir, program: &str, words: &[String]) -> Self {
        let mut command = Release::Host.command(program);
        let at = dir.file("");
        command.args(words).args(["-vconsole:off", "-vsyslog:off", "--no-chdir"]);
        command.arg(format!("--pidfile={}", dir.file(&format!("{program}.pid")).display()));
        command.env("OVN_RUNDIR", &at).env("OVS_RUNDIR", &at).stdin(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn probe(dir: &Path, target: &str) -> Command {
    let dir = dir.display();
    let flags = ["nb-run-dir", "sb-run-dir", "ovs-run-dir", "cni-conf-dir"].map(|flag| format!("--{flag}={dir}"));
    ovnkube(["readiness-probe".to_owned(), "-t".to_owned(), target.to_owned()].into_iter().chain(flags))
}

async fn becomes(dir: &Path, target: &str, code: i32, text: &str) {
    let mut last = said(probe(dir, target));
    until(&format!("{target}: {code} {text:?}, not {last:?}"), async || {
        last = said(probe(dir, target));
        last.0 == code && last.1.contains(text)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_are_ready_once_they_answer_and_members_once_there_is_a_leader() {
    let mut alone = Member::alone(Release::Host, &[]);
    says(probe(alone.dir(), "ovnnb-db"), 0, "");
    says(probe(alone.dir(), "ovnnb-db-raft"), 1, "ovnnb-db-raft is not ready: ");
    says(probe(alone.dir(), "ovnsb-db"), 1, "ovnsb-db is not ready: cannot ask at ");
    says(probe(alone.dir(), "ovn-ic-db"), 1, "ovn-ic-db is not ready: cannot ask at ");
    alone.signal("STOP");
    says(probe(alone.dir(), "ovnnb-db"), 1, "ovnnb-db is not ready: no answer within 5 s");
    alone.signal("CONT");
    alone.kill();
    says(probe(alone.dir(), "ovnnb-db"), 1, "ovnnb-db is not ready: cannot ask at ");

    let mut members = Member::cluster(Release::Host, 3);
    let first = members[0].dir().to_owned();
    becomes(&first, "ovnnb-db-raft", 0, "").await;
    says(probe(&first, "ovnnb-db"), 0, "");
    members[1].kill();
    becomes(&first, "ovnnb-db-raft", 0, "").await;
    members[2].kill();
    becomes(&first, "ovnnb-db-raft", 1, "its status is \"disconnected from the cluster").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_are_ready_once_they_are_connected() {
    let dir = Dir::new();
    let at = dir.file("");
    let mut databases = [Server::new(Release::Host), Server::southbound(Release::Host)];
    let remote = |server: &Server| format!("unix:{}", server.socket().display());
    says(probe(&at, "ovn-northd"), 1, "ovn-northd is not ready: it does not run: ");
    let socket = dir.file("ovn-northd.ctl").display().to_string();
    let words = [
        format!("--ovnnb-db={}", remote(&databases[0])),
        format!("--ovnsb-db={}", remote(&databases[1])),
        format!("--unixctl={socket}"),
    ];
    let _northd = Daemon::start(&dir, "ovn-northd", &words);
    becomes(&at, "ovn-northd", 0, "").await;
    let control = |word: &str| {
        assert!(Release::Host.command("ovn-appctl").args(["-t", &socket, word]).status().unwrap().success());
    };
    control("pause");
    becomes(&at, "ovn-northd", 1, "it is paused").await;
    control("resume");
    becomes(&at, "ovn-northd", 0, "").await;

    says(probe(&at, "ovs-daemons"), 1, "ovs-daemons is not ready: cannot ask at ");
    let file = dir.file("conf.db").display().to_string();
    let schema = Release::Host.file("usr/share/openvswitch/vswitch.ovsschema");
    ovnkube_tests::raft::run(Release::Host, "ovsdb-tool", &["create".as_ref(), file.as_ref(), schema.as_os_str()]);
    let listen = format!("--remote=punix:{}", dir.file("db.sock").display());
    let _ovsdb = Daemon::start(&dir, "ovsdb-server", &[listen, file]);
    becomes(&at, "ovs-daemons", 1, "Open vSwitch's database is empty").await;
    let switch = format!("unix:{}", dir.file("db.sock").display());
    let set = |words: &[&str]| {
        let db = format!("--db={switch}");
        ovnkube_tests::raft::run(Release::Host, "ovs-vsctl", &[&[&*db, "--no-wait"], words].concat());
    };
    set(&["init"]);
    becomes(&at, "ovs-daemons", 1, "it does not run: ").await;
    let vswitchd = Daemon::start(&dir, "ovs-vswitchd", &[switch.clone(), "--disable-system".to_owned()]);
    becomes(&at, "ovs-daemons", 0, "").await;
    vswitchd.signal("STOP");
    says(probe(&at, "ovs-daemons"), 1, "no answer within 5 s");
    vswitchd.signal("CONT");

    let southbound = format!("external_ids:ovn-remote=\"{}\"", remote(&databases[1]));
    set(&["set", "Open_vSwitch", ".", "external_ids:system-id=n1", "external_ids:ovn-encap-type=geneve"]);
    set(&["set", "Open_vSwitch", ".", "external_ids:ovn-encap-ip=127.0.0.1", &southbound]);
    says(probe(&at, "ovn-controller"), 1, "ovn-controller is not ready: it does not run: ");
    let _controller = Daemon::start(&dir, "ovn-controller", std::slice::from_ref(&switch));
    becomes(&at, "ovn-controller", 0, "").await;
    vswitchd.signal("STOP");
    says(probe(&at, "ovn-controller"), 1, "no answer within 5 s");
    vswitchd.signal("CONT");
    becomes(&at, "ovn-controller", 0, "").await;
    databases[1].kill();
    becomes(&at, "ovn-controller", 1, "it is not connected to the southbound database: not connected").await;
    becomes(&at, "ovn-northd", 1, "it is not connected to the southbound database: not connected").await;

    says(probe(&at, "ovnkube-node"), 1, "10-ovn-kubernetes.conflist, which it does once pods can be wired");
    fs::write(dir.file("10-ovn-kubernetes.conflist"), "").unwrap();
    says(probe(&at, "ovnkube-node"), 1, "has not written");
}
