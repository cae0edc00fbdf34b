//! What Windows has in place of inodes and modes.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::MetadataExt;
use std::path::Path;

/// Who may read it is what its folder says. Windows locks only files that can be read.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).read(true).append(true).open(path)
}

/// Distinguishes a file from the one that has its name later. Windows gives a file the time of one that had its name
/// 15 s before: then two processes may write to different files for a while, and no line is lost.
pub(crate) fn identity(file: &Metadata) -> u64 {
    file.creation_time()
}
