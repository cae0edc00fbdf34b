//! Whether anybody holds a lock of a server. Nobody tells, so the lock is asked for, and given back at once: who waits for it gets it
//! then. Each server has its own locks.

use serde_json::Value;

use crate::questions::{NoAnswer, Questions};
use crate::remote::Remote;
use crate::tls::TlsFiles;

/// Asks the server at `remote`. Nothing is written. It has no deadline.
pub async fn is_lock_held(remote: &Remote, tls: Option<&TlsFiles>, lock: &str) -> Result<bool, NoAnswer> {
    let mut questions = Questions::connect(remote, tls).await?;
    let answer: Value = questions.ask("lock", &[lock]).await?;
    let is_held = answer["locked"] != true;
    // the end of the connection does the same, somewhat later
    questions.ask("unlock", &[lock]).await?;
    Ok(is_held)
}
