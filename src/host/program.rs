//! Runs a program of the host.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

use crate::{Error, Result};

/// Programs and the kernel answer within milliseconds. A program that waits for a daemon that does not answer would
/// never end, nor would the wait for an answer of the kernel that is lost.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// The package to install if it is missing.
    pub(crate) package: &'static str,
    /// What to check when it does not end.
    pub(crate) remedy: &'static str,
}

impl Program {
    /// Runs it and returns what it prints, if it ends in time with one of the `good` codes.
    pub(crate) async fn run(self, what: &str, args: &[&str], input: &str, good: &[i32]) -> Result<String> {
        let missing = |problem| Error::NoProgram { program: self.name, package: self.package, problem };
        let output = end(Command::new(self.name).args(args), input, LIMIT).await.map_err(missing)?;
        let hangs = || Error::Hangs { what: what.to_owned(), program: self.name, remedy: self.remedy };
        let output = output.ok_or_else(hangs)?;
        let code = output.status.code();
        if code.is_some_and(|code| good.contains(&code)) {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = match output.status.signal() {
            Some(signal) => format!("signal {signal} ended it; if this repeats, see `dmesg`: memory may be short"),
            None => String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" "),
        };
        Err(Error::Program { what: what.to_owned(), program: self.name, said, code })
    }
}

/// The first line that a program prints of its version; `None`: there is no such program.
pub async fn version(name: &str) -> Option<String> {
    let mut command = Command::new(name);
    let ended = end(command.arg("--version"), "", LIMIT).await.ok()?;
    let said = ended.map_or_else(Vec::new, |output| output.stdout);
    Some(String::from_utf8_lossy(&said).lines().next().unwrap_or_default().trim().to_owned())
}

/// Runs `command`; returns its output and exit status. `None`: it did not end within `limit` and was killed.
pub(crate) async fn end(command: &mut Command, input: &str, limit: Duration) -> io::Result<Option<Output>> {
    let command = command.env("LC_ALL", "C").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // kills it when the timeout drops the future
    let mut child = command.kill_on_drop(true).spawn()?;
    let stdin = child.stdin.take();
    let feed = async {
        // a program that stops reading early prints why
        if let Some(mut stdin) = stdin {
            let _ = stdin.write_all(input.as_bytes()).await;
        }
    };
    let ended = timeout(limit, async { tokio::join!(feed, child.wait_with_output()).1 }).await;
    ended.ok().transpose()
}
