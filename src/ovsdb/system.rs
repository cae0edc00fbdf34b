//! What unix has of sockets.

use std::io;
use std::path::Path;
use std::time::Duration;

use socket2::{SockRef, Socket};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpStream, UnixStream};

pub(crate) async fn unix_socket(path: &Path) -> io::Result<(OwnedReadHalf, OwnedWriteHalf)> {
    Ok(UnixStream::connect(path).await?.into_split())
}

/// Until it is dropped: ends a connection to a host that has acknowledged nothing of what was sent for so long. While that waits, there is
/// no keepalive. And while there is this limit, Linux does not count keepalive's probes: a host that is gone is given up only then too.
pub(crate) struct SilenceLimit(pub(crate) Socket);

impl SilenceLimit {
    pub(crate) fn set(stream: &TcpStream, limit: Duration) -> io::Result<Self> {
        let socket = SockRef::from(stream).try_clone()?;
        socket.set_tcp_user_timeout(Some(limit))?;
        Ok(Self(socket))
    }
}

impl Drop for SilenceLimit {
    fn drop(&mut self) {
        // of a connection that has ended nothing is awaited
        let _ = self.0.set_tcp_user_timeout(None);
    }
}
