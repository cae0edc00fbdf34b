//! Commands to ovs-vswitchd over its control socket, as `ovs-appctl` sends them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::{Error, Result};

const PIDFILE: &str = "ovs-vswitchd.pid";
/// ovs-vswitchd takes longer only when something is wrong with it.
const PATIENCE: Duration = Duration::from_secs(5);
/// Largest answer in bytes: enough for some hundred thousand connections.
const MOST: usize = 64 << 20;

/// Runs `command` in ovs-vswitchd, whose files are in `run_dir`; returns its output.
pub async fn vswitchd(run_dir: &Path, command: &str, arguments: &[&str]) -> Result<String> {
    let failed = |why: String| Error::Unixctl { command: command.to_owned(), why };
    let pid = std::fs::read_to_string(run_dir.join(PIDFILE)).map_err(|e| failed(e.to_string()))?;
    let socket = control_socket(run_dir, &pid);
    let request = json!({ "id": 0, "method": command, "params": arguments }).to_string();
    let answer = timeout(PATIENCE, exchange(&socket, &request)).await;
    let answer =
        answer.map_err(|_| failed("it does not answer within 5 s".to_owned()))?.map_err(|e| failed(e.to_string()))?;
    match (answer.get("error"), answer.get("result")) {
        (Some(Value::String(error)), _) => Err(failed(error.trim().to_owned())),
        (_, Some(Value::String(text))) => Ok(text.clone()),
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

fn control_socket(run_dir: &Path, pid: &str) -> PathBuf {
    run_dir.join(format!("ovs-vswitchd.{}.ctl", pid.trim()))
}

/// The connection stays open, so the answer ends where its JSON object does.
async fn exchange(socket: &Path, request: &str) -> std::io::Result<Value> {
    let mut stream = UnixStream::connect(socket).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut text = Vec::new();
    while text.len() < MOST {
        if stream.read_buf(&mut text).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        // text that ends so is almost always complete; parsing every chunk would cost too much
        if text.ends_with(b"}") {
            match serde_json::from_slice(&text) {
                Err(e) if e.is_eof() => {}
                other => return Ok(other?),
            }
        }
    }
    Err(std::io::ErrorKind::InvalidData.into())
}
