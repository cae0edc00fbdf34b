//! Commands to ovs-vswitchd and ovn-controller over their control sockets, as `ovs-appctl` sends them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ovnkube_ovsdb::{NoAnswer, Questions, Remote};
use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::{Error, Result};

/// A program takes longer only when something is wrong with it.
const PATIENCE: Duration = Duration::from_secs(5);

/// A program that has its pid file and its control socket, of the usual names, in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    Vswitchd,
    OvnController,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::Vswitchd => "ovs-vswitchd",
            Self::OvnController => "ovn-controller",
        }
    }

    fn control_socket(self, run_dir: &Path) -> std::io::Result<PathBuf> {
        let name = self.name();
        let pid = std::fs::read_to_string(run_dir.join(format!("{name}.pid")))?;
        Ok(run_dir.join(format!("{name}.{}.ctl", pid.trim())))
    }

    /// Runs `command` in the program, whose files are in `run_dir`; returns its output.
    pub async fn run(self, run_dir: &Path, command: &'static str, arguments: &[&str]) -> Result<String> {
        let failed = |why: String| Error::Unixctl { command: command.to_owned(), program: self.name(), why };
        let socket = Remote::Unix(self.control_socket(run_dir).map_err(|e| failed(e.to_string()))?);
        // large, since it could use TLS
        let ask = Box::pin(async { Questions::connect(&socket, None).await?.ask(command, &arguments).await });
        let answer: std::result::Result<Value, NoAnswer> =
            timeout(PATIENCE, ask).await.map_err(|_| failed("it does not answer within 5 s".to_owned()))?;
        match answer.map_err(|error| failed(error.to_string()))? {
            Value::String(text) => Ok(text),
            _ => Err(failed("its answer is not understood".to_owned())),
        }
    }

    /// The one that runs now, if there is one.
    pub async fn running(self, run_dir: &Path) -> Option<Running> {
        Some(Running(UnixStream::connect(self.control_socket(run_dir).ok()?).await.ok()?))
    }
}

/// Fails if ovs-vswitchd does not answer. Without a pid file or its usual socket it cannot be asked: it was stopped, or has
/// them elsewhere.
pub async fn ask(run_dir: &Path) -> Result<()> {
    if !Program::Vswitchd.control_socket(run_dir).is_ok_and(|socket| socket.exists()) {
        return Ok(());
    }
    Program::Vswitchd.run(run_dir, "version", &[]).await.map(drop)
}

/// A program that runs.
#[derive(Debug)]
pub struct Running(UnixStream);

impl Running {
    /// Returns when it has ended. Until then it sends nothing that it was not asked for.
    pub async fn ended(&mut self) {
        let mut bytes = [0; 64];
        while matches!(self.0.read(&mut bytes).await, Ok(1..)) {}
    }
}
