//! Runs a program of the host.

use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::{Error, Result};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// What a person has to install for it.
    pub(crate) package: &'static str,
}

impl Program {
    /// What it prints, when it ends with one of the `good` codes.
    pub(crate) async fn run(self, what: &str, args: &[&str], input: &str, good: &[i32]) -> Result<String> {
        let missing = |source| Error::NoProgram { program: self.name, package: self.package, source };
        let mut child = Command::new(self.name)
            .args(args)
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(missing)?;
        let stdin = child.stdin.take();
        let feed = async {
            // a program that ends early says why on its own
            if let Some(mut stdin) = stdin {
                let _ = stdin.write_all(input.as_bytes()).await;
            }
        };
        let ((), output) = tokio::join!(feed, child.wait_with_output());
        let output = output.map_err(missing)?;
        if output.status.code().is_some_and(|code| good.contains(&code)) {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        Err(Error::Program { what: what.to_owned(), program: self.name, said })
    }
}
