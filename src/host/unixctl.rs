//! Commands to ovs-vswitchd over its control socket, as `ovs-appctl` sends them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ovnkube_ovsdb::{NoAnswer, Questions, Remote};
use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::{Error, Result};

const PIDFILE: &str = "ovs-vswitchd.pid";
/// ovs-vswitchd takes longer only when something is wrong with it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs `command` in ovs-vswitchd, whose files are in `run_dir`; returns its output.
pub async fn vswitchd(run_dir: &Path, command: &'static str, arguments: &[&str]) -> Result<String> {
    let failed = |why: String| Error::Unixctl { command: command.to_owned(), why };
    let pid = std::fs::read_to_string(run_dir.join(PIDFILE)).map_err(|e| failed(e.to_string()))?;
    let socket = Remote::Unix(control_socket(run_dir, &pid));
    // large, since it could use TLS
    let ask = Box::pin(async { Questions::connect(&socket, None).await?.ask(command, &arguments).await });
    let answer: std::result::Result<Value, NoAnswer> =
        timeout(PATIENCE, ask).await.map_err(|_| failed("it does not answer within 5 s".to_owned()))?;
    match answer.map_err(|error| failed(error.to_string()))? {
        Value::String(text) => Ok(text),
        _ => Err(failed("its answer is not understood".to_owned())),
    }
}

/// Fails if ovs-vswitchd does not answer. Without a pid file or its usual socket it cannot be asked: it was stopped, or has
/// them elsewhere.
pub async fn ask(run_dir: &Path) -> Result<()> {
    let Ok(pid) = std::fs::read_to_string(run_dir.join(PIDFILE)) else { return Ok(()) };
    if !control_socket(run_dir, &pid).exists() {
        return Ok(());
    }
    vswitchd(run_dir, "version", &[]).await.map(drop)
}

/// An ovs-vswitchd that runs.
#[derive(Debug)]
pub struct Running(UnixStream);

/// The one that runs now, if it has its pid file and its usual socket in `run_dir`.
pub async fn running(run_dir: &Path) -> Option<Running> {
    let pid = std::fs::read_to_string(run_dir.join(PIDFILE)).ok()?;
    Some(Running(UnixStream::connect(control_socket(run_dir, &pid)).await.ok()?))
}

impl Running {
    /// Returns when it has ended. Until then it sends nothing that it was not asked for.
    pub async fn ended(&mut self) {
        let mut bytes = [0; 64];
        while matches!(self.0.read(&mut bytes).await, Ok(1..)) {}
    }
}

fn control_socket(run_dir: &Path, pid: &str) -> PathBuf {
    run_dir.join(format!("ovs-vswitchd.{}.ctl", pid.trim()))
}
