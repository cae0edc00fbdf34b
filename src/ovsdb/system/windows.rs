//! Without unix sockets.

use std::io;
use std::path::Path;

use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// Always an error. A future, since it is one on unix.
pub(crate) fn unix_socket(_: &Path) -> impl Future<Output = io::Result<(OwnedReadHalf, OwnedWriteHalf)>> {
    let why = "on Windows databases are reached over the network; write tcp:HOST:PORT or ssl:HOST:PORT";
    std::future::ready(Err(io::Error::new(io::ErrorKind::Unsupported, why)))
}
