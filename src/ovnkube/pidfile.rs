//! The pidfile.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};

use crate::system::open_lock;

/// A file with this process's id; removed with the value.
pub(crate) struct PidFile {
    path: PathBuf,
    _lock: File,
}

impl PidFile {
    /// Writes the file, unless a process has it that still runs. That one holds a lock, on a file beside, which the kernel releases
    /// however it ends. Its id would not tell: it may be of another process by now, or of another container.
    pub(crate) fn claim(path: &Path) -> Result<Self> {
        let failed = |e: io::Error| {
            anyhow!("cannot write pidfile {}: {e}; give a --pidfile in a directory that can be written", path.display())
        };
        let lock = open_lock(&beside(path, ".lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let other = read(path).map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
                bail!(
                    "cannot take pidfile {}: {other} runs already; stop it, its DaemonSet or its unit: a host has one node agent. \
                     For another master give another --pidfile",
                    path.display()
                );
            }
            Err(TryLockError::Error(e)) => return Err(failed(e)),
        }
        let new = beside(path, ".new");
        let text = format!("{}\n", std::process::id());
        fs::write(&new, text).and_then(|()| fs::rename(&new, path)).map_err(failed)?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // one of an older version, which knows no lock, may have taken it over
        if read(&self.path) == Some(std::process::id()) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn read(path: &Path) -> Option<u32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The file with a longer name.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use super::*;

    /// A directory of one test.
    fn dir(of: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("ovnkube-pidfile-{of}-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        dir
    }

    /// A lock that was released: a process that another test makes has it too, until it is a program of its own.
    fn claim_released(path: &Path) -> Result<PidFile> {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            match PidFile::claim(path) {
                Err(e) if e.to_string().contains("runs already") && Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                claimed => return claimed,
            }
        }
    }

    #[test]
    fn a_stale_file_is_taken_over_and_removed_at_the_end() {
        let dir = dir("stale");
        let path = dir.join("ovnkube.pid");
        for stale in ["4194305\n", "1\n", "no number", ""] {
            fs::write(&path, stale).unwrap();
            let file = claim_released(&path).unwrap();
            assert_eq!(read(&path), Some(std::process::id()), "{stale:?}");
            drop(file);
            assert!(!path.exists());
        }
        assert!(PidFile::claim(Path::new("/nonexistent/ovnkube.pid")).is_err());
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_process_that_runs_keeps_its_file_whatever_its_id_is_here() {
        let dir = dir("held");
        let path = dir.join("ovnkube.pid");
        let held = PidFile::claim(&path).unwrap();
        let refused = || PidFile::claim(&path).err().unwrap().to_string();
        let process = format!("cannot take pidfile {}: process ", path.display());
        assert!(refused().starts_with(&format!("{process}{} runs already; stop it", std::process::id())));
        // its id in the container where it runs
        fs::write(&path, "4194305\n").unwrap();
        assert!(refused().starts_with(&format!("{process}4194305 runs already")));
        fs::remove_file(&path).unwrap();
        assert!(refused().contains(": another process runs already"));
        drop(held);
        drop(claim_released(&path).unwrap());
        fs::remove_dir_all(dir).unwrap();
    }

    /// Such as a master on the host of an agent that was killed.
    #[test]
    fn an_id_that_another_process_of_this_program_has_got_keeps_nobody_from_starting() {
        let dir = dir("reused");
        let name = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let own = name(std::process::id());
        let program = dir.join(own.trim());
        let script = r#"ln -s "$(command -v sleep)" "$1" && exec "$1" 60"#;
        let mut other = Command::new("sh").args(["-c", script, "sh"]).arg(&program).spawn().unwrap();
        while name(other.id()) != own {
            assert_eq!(other.try_wait().unwrap(), None);
            std::thread::sleep(Duration::from_millis(1));
        }
        let path = dir.join("ovnkube.pid");
        fs::write(&path, format!("{}\n", other.id())).unwrap();
        let claimed = PidFile::claim(&path);
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(claimed.is_ok(), "{:?}", claimed.err());
        fs::remove_dir_all(dir).unwrap();
    }
}
