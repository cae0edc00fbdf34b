//! What Windows has in place of what unix has of sockets.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// Always an error. A future, since it is one on unix.
pub(crate) fn unix_socket(_: &Path) -> impl Future<Output = io::Result<(OwnedReadHalf, OwnedWriteHalf)>> {
    let why = "on Windows databases are reached over the network; write tcp:HOST:PORT or ssl:HOST:PORT";
    std::future::ready(Err(io::Error::new(io::ErrorKind::Unsupported, why)))
}

/// Windows has a limit of its own.
pub(crate) struct SilenceLimit;

impl SilenceLimit {
    #[allow(clippy::unnecessary_wraps, reason = "as on unix")]
    pub(crate) fn set(_: &TcpStream, _: Duration) -> io::Result<Self> {
        Ok(Self)
    }
}
