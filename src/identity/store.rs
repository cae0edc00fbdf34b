//! The directory in which an agent keeps its certificate: one file for each, and a link to the newest, as ovn-kubernetes does it.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::system;

const PREFIX: &str = "ovnkube-client-";
const SUFFIX: &str = ".pem";
const CURRENT: &str = "ovnkube-client-current.pem";
/// Replaces the link by a rename: there is no moment without one.
const NEXT_LINK: &str = "ovnkube-client-updated.pem";
const NEXT_FILE: &str = ".ovnkube-client-new";
/// Longer files are none of ours.
const LONGEST: u64 = 1024 * 1024;

/// The file that holds the newest certificate of a directory, with its key.
pub fn current(dir: &Path) -> PathBuf {
    dir.join(CURRENT)
}

/// What is kept there, and since when; `None` if there is nothing.
pub(crate) fn read(dir: &Path) -> io::Result<Option<(Vec<u8>, SystemTime)>> {
    let file = match fs::File::open(current(dir)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let about = file.metadata()?;
    if !about.is_file() || about.len() > LONGEST {
        return Err(io::Error::other("it is not a regular file of a sensible size"));
    }
    let mut pem = Vec::new();
    file.take(LONGEST).read_to_end(&mut pem)?;
    Ok(Some((pem, about.modified()?)))
}

/// Keeps it from now on. If that fails, what was kept before stays.
pub(crate) fn write(dir: &Path, pem: &[u8]) -> io::Result<()> {
    system::make_private_dir(dir)?;
    keep(dir, &format!("{PREFIX}{}{SUFFIX}", jiff::Timestamp::now().strftime("%Y-%m-%d-%H-%M-%S-%3f")), pem)
}

pub(crate) fn keep(dir: &Path, name: &str, pem: &[u8]) -> io::Result<()> {
    let new = dir.join(NEXT_FILE);
    // A rename would replace a file of that name, which the link may name: clocks go back, and moments are short.
    let written = write_whole(&new, pem).and_then(|()| fs::hard_link(&new, dir.join(name)));
    let _ = fs::remove_file(&new);
    written?;
    let link = dir.join(NEXT_LINK);
    match fs::remove_file(&link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    system::link(name, &link)?;
    fs::rename(&link, current(dir))?;
    system::sync_dir(dir)?;
    remove_others(dir, name);
    Ok(())
}

fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    // what a crash left may have another mode
    let _ = fs::remove_file(path);
    let mut file = system::create_private(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Certificates are renewed every few minutes: what is not the newest goes.
fn remove_others(dir: &Path, newest: &str) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.starts_with(PREFIX) && name.ends_with(SUFFIX) && name != newest && name != CURRENT {
            let _ = fs::remove_file(entry.path());
        }
    }
}
