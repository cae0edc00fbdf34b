//! The node agent's socket.

use std::io;
use std::os::unix::net::UnixStream;

pub(crate) fn connect(socket: &str) -> io::Result<UnixStream> {
    UnixStream::connect(socket)
}
