//! The pidfile.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};

/// A file with this process's id; removed with the value.
pub(crate) struct PidFile(PathBuf);

impl PidFile {
    /// Writes the file. It is taken over from a process that was killed; if its process still runs, that is an
    /// error.
    pub(crate) fn claim(path: &Path) -> Result<Self> {
        if let Some(other) = running(path) {
            bail!(
                "cannot take pidfile {}: process {other} runs already; stop it, its DaemonSet or its unit: a host has one node agent. \
                 For another master give another --pidfile",
                path.display()
            );
        }
        let new = path.with_extension("new");
        let text = format!("{}\n", std::process::id());
        fs::write(&new, text).and_then(|()| fs::rename(&new, path)).map_err(|e| {
            anyhow!("cannot write pidfile {}: {e}; give a --pidfile in a directory that can be written", path.display())
        })?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // another process may have taken it over
        if read(&self.0) == Some(std::process::id()) {
            let _ = fs::remove_file(&self.0);
        }
    }
}

fn read(path: &Path) -> Option<u32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The process in the file, if it runs and is one of this program: the id may have been reused.
fn running(path: &Path) -> Option<u32> {
    let pid = read(path).filter(|pid| *pid != std::process::id())?;
    let name = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    (name(pid)? == name(std::process::id())?).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_file_is_taken_over_and_removed_at_the_end() {
        let path = std::env::temp_dir().join(format!("ovnkube-pidfile-{}", std::process::id()));
        for stale in ["4194305\n", "1\n", "no number", ""] {
            fs::write(&path, stale).unwrap();
            let file = PidFile::claim(&path).unwrap();
            assert_eq!(read(&path), Some(std::process::id()), "{stale:?}");
            drop(file);
            assert!(!path.exists());
        }
        assert!(PidFile::claim(Path::new("/nonexistent/ovnkube.pid")).is_err());
    }
}
