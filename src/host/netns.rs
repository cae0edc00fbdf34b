//! Network namespaces, opened once and used by descriptor.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::fcntl::OFlag;
use nix::sched::{CloneFlags, setns};
use nix::sys::statfs::{NSFS_MAGIC, fstatfs};

use crate::{Error, Result};

/// An open network namespace. It stays usable when its path is removed.
#[derive(Debug, Clone)]
pub struct Netns {
    file: Arc<File>,
    path: PathBuf,
}

impl Netns {
    /// The namespace at `path` (a bind mount or `/proc/…/ns/net`). Symbolic links are followed,
    /// but their target must be a namespace file: nothing else is opened for reading, so a fifo
    /// or a device at the path has no effect.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |problem| Error::OpenNetns { path: path.to_owned(), problem };
        let handle =
            std::fs::OpenOptions::new().read(true).custom_flags(OFlag::O_PATH.bits()).open(path).map_err(failed)?;
        let kind = fstatfs(&handle).map_err(|e| failed(e.into()))?.filesystem_type();
        if kind != NSFS_MAGIC {
            return Err(Error::NotNetns { path: path.to_owned() });
        }
        let file = File::open(format!("/proc/self/fd/{}", handle.as_raw_fd())).map_err(failed)?;
        Ok(Self { file: Arc::new(file), path: path.to_owned() })
    }

    /// As [`Netns::open`], but refuses the namespace of this thread: a pod must not be wired into
    /// the node's own network.
    pub fn open_other(path: &Path) -> Result<Self> {
        let netns = Self::open(path)?;
        let own = Self::open(Path::new("/proc/thread-self/ns/net"))?;
        if netns.id()? == own.id()? {
            return Err(Error::OwnNetns { path: path.to_owned() });
        }
        Ok(netns)
    }

    /// Device and inode: equal for two paths of the same namespace.
    pub fn id(&self) -> Result<(u64, u64)> {
        let meta = self.file.metadata().map_err(|problem| Error::OpenNetns { path: self.path.clone(), problem })?;
        Ok((meta.dev(), meta.ino()))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `work` on a thread of its own inside the namespace.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let netns = self.clone();
        on_thread(move || {
            setns(&netns, CloneFlags::CLONE_NEWNET)
                .map_err(|e| Error::EnterNetns { path: netns.path.clone(), problem: e.into() })?;
            Ok(work())
        })
        .await
    }
}

impl AsFd for Netns {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Runs `work` on a new thread that ends with it, so a namespace that it enters affects no other work.
pub(crate) async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let (done, outcome) = tokio::sync::oneshot::channel();
    let runtime = tokio::runtime::Handle::current();
    std::thread::Builder::new()
        .name("netns".into())
        .spawn(move || {
            // sockets opened here register with the runtime
            let _runtime = runtime.enter();
            let _ = done.send(work());
        })
        .map_err(Error::Thread)?;
    outcome.await.map_err(|_| Error::Thread(io::Error::other("it ended without a result")))?
}
