//! Wakes the agent when files in a directory are changed, emptied or removed.

use std::future::pending;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use tokio::net::unix::pipe::Receiver;

/// Changes of files in a directory, and of the directory itself.
const CHANGES: AddWatchFlags = AddWatchFlags::IN_CLOSE_WRITE
    .union(AddWatchFlags::IN_MOVE)
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_DELETE_SELF)
    .union(AddWatchFlags::IN_MOVE_SELF);

/// Changes in a directory; none are reported if the host has no inotify instance left.
pub(crate) struct DirChanges(Option<Watched>);

struct Watched {
    inotify: Inotify,
    /// A duplicate of that descriptor, read like a pipe; the content of the events does not matter.
    events: Receiver,
}

impl DirChanges {
    /// `what` is watched; if that is not possible, `then` says what follows.
    pub(crate) fn new(what: &str, then: &str) -> Self {
        let watched = Watched::new();
        if let Err(e) = &watched {
            tracing::warn!(error = %e, "cannot watch {what}, so {then}; raise fs.inotify.max_user_instances");
        }
        Self(watched.ok())
    }

    /// Watches the directory. Call it again whenever the directory may have been recreated; repeating it costs nothing.
    pub(crate) fn watch(&self, dir: &Path) {
        if let Some(watched) = &self.0 {
            // a missing directory is created when the file is written
            let _ = watched.inotify.add_watch(dir, CHANGES);
        }
    }

    /// Returns after at least one change; what has changed by then is not reported again.
    pub(crate) async fn next(&self) {
        match &self.0 {
            Some(watched) if watched.next().await.is_ok() => {}
            _ => pending().await,
        }
    }
}

impl Watched {
    fn new() -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        let events = Receiver::from_owned_fd_unchecked(inotify.as_fd().try_clone_to_owned()?)?;
        Ok(Self { inotify, events })
    }

    async fn next(&self) -> io::Result<()> {
        // holds the longest event
        let mut events = [0; 4096];
        let mut any = false;
        loop {
            match self.events.try_read(&mut events) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock && any => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.events.readable().await?,
                read => any = read.map(|_| true)?,
            }
        }
    }
}
