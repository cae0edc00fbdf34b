//! Whether anybody holds a lock of a server. Nobody tells, so the lock is asked for, and given back at once: who waits for it gets it
//! then. Each server has its own locks.

use serde_json::Value;

use crate::questions::{NoAnswer, Questions};
use crate::remote::Remote;
use crate::tls::TlsFiles;

/// Asks the server at `remote`. Nothing is written. It has no deadline.
pub async fn is_lock_held(remote: &Remote, tls: Option<&TlsFiles>, lock: &str) -> Result<bool, NoAnswer> {
    let mut questions = Questions::connect(remote, tls).await?;
    let answer: Value = questions.ask_and_undo("lock", "unlock", &[lock]).await?;
    Ok(answer["locked"] != true)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixListener;

    use super::*;

    /// The server must not depend on a second message to give the lock back.
    #[tokio::test]
    async fn a_lock_is_asked_for_and_given_back_in_one_message() {
        let path = std::env::temp_dir().join(format!("held-{}.sock", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let server = async {
            let mut stream = listener.accept().await.unwrap().0;
            let mut heard = String::new();
            while !heard.contains("unlock") {
                let mut bytes = [0; 4096];
                let length = stream.read(&mut bytes).await.unwrap();
                assert!(length > 0, "{heard}");
                heard.push_str(std::str::from_utf8(&bytes[..length]).unwrap());
            }
            stream
                .write_all(br#"{"id":1,"result":{"locked":false},"error":null}{"id":2,"result":{},"error":null}"#)
                .await
                .unwrap();
            heard
        };
        let remote = Remote::parse(&format!("unix:{}", path.display())).unwrap();
        let both = async { tokio::join!(server, is_lock_held(&remote, None, "ovn_northd")) };
        let (heard, held) =
            tokio::time::timeout(std::time::Duration::from_secs(20), both).await.expect("it waits between them");
        assert!(held.unwrap() && heard.contains(r#""ovn_northd""#), "{heard}");
        std::fs::remove_file(&path).unwrap();
    }
}
