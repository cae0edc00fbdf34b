//! What Windows has in place of it: no node agent runs there.

use std::fs::{File, OpenOptions, create_dir_all};
use std::io;
use std::os::windows::fs::symlink_file;
use std::path::Path;

pub(crate) fn make_private_dir(path: &Path) -> io::Result<()> {
    create_dir_all(path)
}

pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

pub(crate) fn link(to: &str, at: &Path) -> io::Result<()> {
    symlink_file(to, at)
}

pub(crate) fn sync_dir(_: &Path) -> io::Result<()> {
    Ok(())
}
