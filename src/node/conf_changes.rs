//! Wakes the agent when somebody changes, empties or removes its network configuration.

use std::path::Path;
use std::sync::Arc;

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use tokio::sync::watch;

/// What can happen to files of a directory, and to itself.
const CHANGES: AddWatchFlags = AddWatchFlags::IN_CLOSE_WRITE
    .union(AddWatchFlags::IN_MOVE)
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_DELETE_SELF)
    .union(AddWatchFlags::IN_MOVE_SELF);

/// Changes in a directory, as long as the host gives out watches.
pub(crate) struct ConfChanges {
    inotify: Option<Arc<Inotify>>,
    changed: watch::Receiver<()>,
}

impl ConfChanges {
    pub(crate) fn new() -> Self {
        let (sender, changed) = watch::channel(());
        let inotify = listen(sender);
        if let Err(e) = &inotify {
            tracing::warn!(
                "watch the network configuration: {e}; raise fs.inotify.max_user_instances. What somebody changes in it is \
                 put right with the next change on the host"
            );
        }
        Self { inotify: inotify.ok(), changed }
    }

    /// To be called again whenever the directory may have been made anew; one that is watched already costs nothing.
    pub(crate) fn watch(&self, dir: &Path) {
        if let Some(inotify) = &self.inotify {
            // one that is not there is made when there is something to write into it
            let _ = inotify.add_watch(dir, CHANGES);
        }
    }

    /// Returns after at least one change.
    pub(crate) async fn next(&mut self) {
        if self.changed.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// A thread of its own waits for events, until there is nobody to tell.
fn listen(changed: watch::Sender<()>) -> std::io::Result<Arc<Inotify>> {
    let inotify = Arc::new(Inotify::init(InitFlags::IN_CLOEXEC)?);
    let events = Arc::clone(&inotify);
    let wait = move || while events.read_events().is_ok() && changed.send(()).is_ok() {};
    std::thread::Builder::new().name("ovnkube-conf".to_owned()).spawn(wait)?;
    Ok(inotify)
}
