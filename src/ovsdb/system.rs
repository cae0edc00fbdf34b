//! What unix has of sockets.

use std::io;
use std::path::Path;
use std::time::Duration;

use socket2::SockRef;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpStream, UnixStream};

pub(crate) async fn unix_socket(path: &Path) -> io::Result<(OwnedReadHalf, OwnedWriteHalf)> {
    Ok(UnixStream::connect(path).await?.into_split())
}

/// Ends a connection to a host that has acknowledged nothing of what was sent for so long. While that waits, there is no keepalive.
pub(crate) fn limit_silence(stream: &TcpStream, limit: Duration) -> io::Result<()> {
    SockRef::from(stream).set_tcp_user_timeout(Some(limit))
}
