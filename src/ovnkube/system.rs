//! Signals that end the process, files that are locked, and how full a disk is.

use std::fs::File;
use std::io;
use std::path::Path;

use tokio::signal::unix::{Signal, SignalKind, signal};

pub(crate) struct Signals {
    term: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self { term: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The name of the one that came.
    pub(crate) async fn recv(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// Opens a file that is there to be locked. Other users may not open it: they could lock it too.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    File::options().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Bytes that are left on the file system of a file.
pub(crate) fn free(path: &Path) -> Option<u64> {
    let of = nix::sys::statvfs::statvfs(path).ok()?;
    // types that are wider or narrower elsewhere
    #[allow(clippy::useless_conversion, reason = "it is none on 32 bits")]
    Some(u64::from(of.blocks_available()).saturating_mul(u64::from(of.fragment_size())))
}

/// Whether the file system of a file takes no writes.
pub(crate) fn is_read_only(path: &Path) -> bool {
    use nix::sys::statvfs::{FsFlags, statvfs};
    statvfs(path).is_ok_and(|of| of.flags().contains(FsFlags::ST_RDONLY))
}

/// Whether two files are on one file system.
pub(crate) fn is_same_disk(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let of = |path: &Path| path.metadata().ok().map(|of| of.dev());
    of(one).is_some_and(|disk| Some(disk) == of(other))
}

/// Whether two names are of one file.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let of = |path: &Path| path.metadata().ok().map(|of| (of.dev(), of.ino()));
    of(one).is_some_and(|id| Some(id) == of(other))
}
