//! Events that end the process, and files that are locked.

use std::fs::File;
use std::io;

use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown,
};

pub(crate) struct Signals {
    interrupt: CtrlC,
    pause: CtrlBreak,
    close: CtrlClose,
    shutdown: CtrlShutdown,
}

impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: ctrl_c()?, pause: ctrl_break()?, close: ctrl_close()?, shutdown: ctrl_shutdown()? })
    }

    /// The name of the one that came.
    pub(crate) async fn recv(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "Ctrl-C",
            _ = self.pause.recv() => "Ctrl-Break",
            _ = self.close.recv() => "the window was closed",
            _ = self.shutdown.recv() => "Windows shuts down",
        }
    }
}

/// Opens a file that is there to be locked.
pub(crate) fn open_lock(path: &std::path::Path) -> io::Result<File> {
    File::options().write(true).create(true).truncate(false).open(path)
}

/// How full a disk is, is not known here.
pub(crate) fn free(_: &std::path::Path) -> Option<u64> {
    None
}

/// Nor this.
pub(crate) fn is_read_only(_: &std::path::Path) -> bool {
    false
}

/// Nor whether it is another one.
pub(crate) fn is_same_disk(_: &std::path::Path, _: &std::path::Path) -> bool {
    false
}

/// Two names of one file cannot be told from two files.
pub(crate) fn is_same_file(_: &std::path::Path, _: &std::path::Path) -> bool {
    false
}
