//! When the node was last known to be ready for pods: the time of a file beside the socket. Without it a node whose agent is
//! killed would not be ready from that moment on. The CNI program reads it while no agent answers.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The CNI program has this name too.
const FILE: &str = "ready";

pub(crate) fn path(socket: &Path) -> PathBuf {
    socket.with_file_name(FILE)
}

/// The node is ready now. A file that cannot be written is none.
pub(crate) fn set(path: &Path) {
    let file = File::options().append(true).create(true).mode(0o600).open(path);
    let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
}

/// Whether the node was ready within this time. The directory is empty after a reboot.
pub(crate) fn is_recent(path: &Path, patience: Duration) -> bool {
    let ready = std::fs::metadata(path).and_then(|meta| meta.modified());
    // in the future: someone has set the clock
    ready.is_ok_and(|ready| ready.elapsed().is_ok_and(|age| age <= patience))
}
