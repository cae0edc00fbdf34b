//! Commands to ovs-vswitchd over its control socket, as `ovs-appctl` sends them.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::{Error, Result};

/// The switch is busy for longer only when it is in trouble.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of an answer that are read: some hundred thousand connections.
const MOST: usize = 64 << 20;

/// Runs `command` in ovs-vswitchd, whose files are in `run_dir`; returns what it says.
pub async fn vswitchd(run_dir: &Path, command: &str, arguments: &[&str]) -> Result<String> {
    let failed = |why: String| Error::Unixctl { command: command.to_owned(), why };
    let pid = std::fs::read_to_string(run_dir.join("ovs-vswitchd.pid")).map_err(|e| failed(e.to_string()))?;
    let socket = run_dir.join(format!("ovs-vswitchd.{}.ctl", pid.trim()));
    let request = json!({ "id": 0, "method": command, "params": arguments }).to_string();
    let answer = timeout(PATIENCE, exchange(&socket, &request)).await;
    let answer = answer.map_err(|_| failed("no answer within 5 s".to_owned()))?.map_err(|e| failed(e.to_string()))?;
    match (answer.get("error"), answer.get("result")) {
        (Some(Value::String(error)), _) => Err(failed(error.trim().to_owned())),
        (_, Some(Value::String(text))) => Ok(text.clone()),
        _ => Err(failed("an answer that is none".to_owned())),
    }
}

/// The connection stays open: the answer ends where its object does.
async fn exchange(socket: &Path, request: &str) -> std::io::Result<Value> {
    let mut stream = UnixStream::connect(socket).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut text = Vec::new();
    while text.len() < MOST {
        if stream.read_buf(&mut text).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        // objects of an answer end nowhere else, as good as never
        if text.ends_with(b"}") {
            match serde_json::from_slice(&text) {
                Err(e) if e.is_eof() => {}
                other => return Ok(other?),
            }
        }
    }
    Err(std::io::ErrorKind::InvalidData.into())
}
