//! Unix sockets.

use std::io;
use std::path::Path;

use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

pub(crate) async fn unix_socket(path: &Path) -> io::Result<(OwnedReadHalf, OwnedWriteHalf)> {
    Ok(UnixStream::connect(path).await?.into_split())
}
