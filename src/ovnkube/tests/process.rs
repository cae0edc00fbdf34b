//! The binary as a process, with its log captured.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use ovnkube_tests::nb::until;

/// Lines of the log that a failed test shows.
const SHOWN: usize = 40;

/// `ovnkube` with these arguments, without this shell's environment.
pub(crate) fn ovnkube<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ovnkube"));
    command.args(words).env_clear().stdin(Stdio::null());
    command
}

/// Four seconds on an idle machine, and longer by the load of each processor: a fixed limit that a busy machine meets
/// would also accept a process that waits for something.
pub(crate) fn soon() -> Duration {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap();
    let mut words = text.split([' ', '/']);
    // of the last minute, and at this moment: the former follows slowly
    let mean: f64 = words.next().unwrap().parse().unwrap();
    let running: f64 = words.nth(2).unwrap().parse().unwrap();
    let processors = std::thread::available_parallelism().unwrap().get() as f64;
    Duration::from_secs(4).mul_f64(1.0 + mean.max(running) / processors)
}

/// A running ovnkube; killed when dropped.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts one that logs to a file of that name.
    pub(crate) fn start<S: AsRef<OsStr>>(log: &Path, words: impl IntoIterator<Item = S>) -> Self {
        Self::run(log, ovnkube(words))
    }

    /// The same, started by another program that executes it: the first argument.
    pub(crate) fn under<S: AsRef<OsStr>>(log: &Path, by: &[&str], words: impl IntoIterator<Item = S>) -> Self {
        let mut command = Command::new(by[0]);
        command.args(&by[1..]).arg(env!("CARGO_BIN_EXE_ovnkube")).args(words).stdin(Stdio::null());
        Self::run(log, command)
    }

    /// The same with a directory of its own for the agent's socket. Give it no Open vSwitch: then nothing of this host is changed.
    pub(crate) fn apart<S: AsRef<OsStr>>(log: &Path, words: impl IntoIterator<Item = S>) -> Self {
        let apart = "mkdir -p /run/ovn-kubernetes && mount -t tmpfs none /run/ovn-kubernetes && exec \"$@\"";
        Self::under(log, &["unshare", "-m", "sh", "-c", apart, "sh"], words)
    }

    fn run(log: &Path, mut command: Command) -> Self {
        let file = File::create(log).unwrap();
        let child = command.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        Self { child, log: log.to_owned() }
    }

    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap()).into_owned()
    }

    /// Waits until the log contains this text.
    pub(crate) async fn after(self, words: &str) -> Self {
        until(&format!("{words:?} in the log"), async || self.log().contains(words)).await;
        self
    }

    /// The CPU time of all its threads so far.
    pub(crate) fn cpu(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let nanoseconds = threads.filter_map(|thread| {
            let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanoseconds.sum())
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Like `kill -9`.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM and waits for the end; returns also how long that took.
    pub(crate) fn terminate(mut self) -> (ExitStatus, Duration) {
        let began = Instant::now();
        self.signal("TERM");
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status, began.elapsed());
            }
            assert!(began.elapsed() < Duration::from_secs(180), "SIGTERM has no effect");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<_> = log.lines().collect();
            let shown = lines.get(lines.len().saturating_sub(SHOWN)..).unwrap_or_default();
            eprintln!("--- end of {}\n{}", self.log.display(), shown.join("\n"));
        }
    }
}
