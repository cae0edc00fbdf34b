//! Runs programs of Open vSwitch, with a deadline.

use std::ffi::OsStr;
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use ovnkube_db::Refused;
use ovnkube_ovsdb::TlsFiles;
use tokio::process::Command;
use tokio::time::timeout;

/// Large databases take long to write and to read.
const WITHIN: Duration = Duration::from_secs(600);

/// Why a step is not done.
pub(crate) enum Failed {
    /// It is not allowed: what to do first.
    Refused(String),
    Error(anyhow::Error),
}

impl From<anyhow::Error> for Failed {
    fn from(error: anyhow::Error) -> Self {
        Self::Error(error)
    }
}

impl From<Refused> for Failed {
    fn from(Refused(text): Refused) -> Self {
        Self::Refused(text)
    }
}

/// `ovsdb-tool` with these words: its output.
pub(crate) async fn tool<S: AsRef<OsStr>>(words: &[S]) -> Result<String> {
    text(program("ovsdb-tool").args(words)).await
}

/// What `ovsdb-tool` with these words prints, and whether it succeeds.
pub(crate) async fn tool_prints<S: AsRef<OsStr>>(words: &[S]) -> Result<(String, bool)> {
    let output = output(program("ovsdb-tool").args(words)).await?;
    Ok((String::from_utf8_lossy(&output.stdout).into_owned(), output.status.success()))
}

/// Whether `ovsdb-tool` says yes, by its exit code.
pub(crate) async fn tool_says<S: AsRef<OsStr>>(words: &[S]) -> Result<bool> {
    Ok(output(program("ovsdb-tool").args(words)).await?.status.success())
}

/// `ovsdb-client`, with the files for TLS.
pub(crate) fn client(tls: Option<&TlsFiles>) -> Command {
    let mut command = program("ovsdb-client");
    if let Some(tls) = tls {
        command.arg("--private-key").arg(&tls.private_key);
        command.arg("--certificate").arg(&tls.certificate);
        command.arg("--ca-cert").arg(&tls.ca);
    }
    command
}

fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// The output of a command that must succeed.
pub(crate) async fn text(command: &mut Command) -> Result<String> {
    let output = output(command).await?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{}: {}", name(command), said.trim().lines().last().unwrap_or("it failed and did not say why"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// How many bytes a command prints that must succeed. It ends by itself.
pub(crate) async fn printed(command: &mut Command) -> Result<u64> {
    let mut child = command.stderr(Stdio::null()).spawn()?;
    let mut out = child.stdout.take().context("its output is not read")?;
    let bytes = tokio::io::copy(&mut out, &mut tokio::io::sink()).await?;
    if !child.wait().await?.success() {
        bail!("{} failed", name(command));
    }
    Ok(bytes)
}

async fn output(command: &mut Command) -> Result<Output> {
    let cannot = format!("cannot run {}: install Open vSwitch's package on this host", name(command));
    let child = command.spawn().context(cannot.clone())?;
    let ended = timeout(WITHIN, child.wait_with_output()).await;
    ended.map_err(|_| anyhow!("{} does not end within {} s", name(command), WITHIN.as_secs()))?.context(cannot)
}

fn name(command: &Command) -> String {
    command.as_std().get_program().to_string_lossy().into_owned()
}
