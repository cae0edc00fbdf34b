//! A southbound database behind a northbound one: northd fills it, `ovn-trace` traces packets through it.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::nb::{Daemon, Server};

/// No log.
const QUIET: [&str; 2] = ["-vconsole:off", "-vsyslog:off"];

/// ovsdb-server and northd; dropping it stops both.
pub struct Southbound {
    server: Server,
    _northd: Daemon,
}

impl Southbound {
    /// For the northbound database `nb`, of the same release.
    pub fn of(nb: &Server) -> Self {
        let server = Server::southbound(nb.release());
        Self { _northd: Daemon::northd(nb, &server), server }
    }

    /// `ovn-trace` on the current content of the database, for packets of new connections.
    pub fn tracer(&self) -> Tracer {
        // a tracer that is exiting still has its files
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let file = |name: &str| self.server.socket().with_file_name(name);
        let control = file(&format!("trace.{number}.ctl"));
        let mut command = self.server.release().command("ovn-trace");
        command.arg(format!("--db=unix:{}", self.server.socket().display()));
        command.arg(format!("--unixctl={}", control.display()));
        // consumed one by one, for each conntrack zone that any packet passes
        command.args(std::iter::repeat_n("--ct=new", 20_000));
        command.arg(format!("--log-file={}", file("trace.log").display()));
        command.args(["--detach", "--no-chdir", "-vfile:warn"]).args(QUIET);
        let done = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        assert!(done.success(), "ovn-trace does not start");
        wait_for(&control);
        Tracer { stream: UnixStream::connect(&control).unwrap() }
    }

    /// Logical flows that the tracers so far could not parse, one line each.
    pub fn complaints(&self) -> String {
        let log = std::fs::read_to_string(self.server.socket().with_file_name("trace.log")).unwrap();
        log.lines().filter(|line| line.contains("pars")).collect::<Vec<_>>().join("\n")
    }
}

fn wait_for(path: &Path) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !path.exists() {
        assert!(Instant::now() < deadline, "{} does not appear", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A running `ovn-trace`. It uses the database's content from the time it started.
pub struct Tracer {
    stream: UnixStream,
}

impl Tracer {
    /// Traces a packet.
    pub fn trace(&mut self, datapath: &str, microflow: &str) -> String {
        let text = self.ask("trace", &["--detailed", datapath, microflow]);
        assert!(!text.contains("use --ct to customize"), "all connections are used up; start another tracer");
        text
    }

    fn ask(&mut self, method: &str, words: &[&str]) -> String {
        let request = json!({"method": method, "params": words, "id": 0});
        self.stream.write_all(request.to_string().as_bytes()).unwrap();
        let (mut text, mut buffer) = (Vec::new(), vec![0; 65_536]);
        loop {
            let length = self.stream.read(&mut buffer).unwrap();
            assert!(length > 0, "ovn-trace ended");
            text.extend_from_slice(&buffer[..length]);
            if let Ok(reply) = serde_json::from_slice::<Value>(&text) {
                let error = reply["error"].as_str().unwrap_or_default();
                assert!(error.is_empty(), "ovn-trace {words:?}: {error}");
                return reply["result"].as_str().unwrap_or_default().to_owned();
            }
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.stream.write_all(json!({"method": "exit", "params": [], "id": 1}).to_string().as_bytes());
        // at exit, its complaints about flows are in the log
        let _ = self.stream.read_to_end(&mut Vec::new());
    }
}
